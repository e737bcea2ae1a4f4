"""`steno brief`: summarizes sessions: requests, results, decisions and open items."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.fresh_index import NO_SYNC, open_fresh_index
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, SESSIONS, WIDTH, add_options
from steno.cli.output.screen import Screen, print_error, write_bytes
from steno.errors import NotFound
from steno.report import clock, humanize
from steno.report.humanize import MINUS_SIGN, SHORT_ID_LENGTH
from steno.sanitize.terminal import (
    ColourMode,
    StyledLine,
    StyledText,
    clean,
    display_width,
    one_line,
    shorten_path,
    strip_colours,
    truncate,
    wrap,
)
from steno.store import environment

if TYPE_CHECKING:
    from steno.report.brief.brief_builder import SessionFile
    from steno.report.brief.brief_document import (
        AssistantText,
        Brief,
        BriefTurn,
        ContextCompaction,
        Decision,
        Failure,
        FileBackup,
        OpenItem,
        QueueOperation,
        Subagent,
        TestRun,
        ToolCall,
        WorkSummary,
    )
    from steno.report.usage.usage_query import UsageQuery


_CALL_MARKS: Final = {"ok": ("✓", "green"), "failed": ("✗", "red"), "denied": ("✗", "yellow")}
_MIN_TEXT_WIDTH: Final = 8


def turn_notes(turn: "BriefTurn") -> Iterator[str]:
    """Yield one line each for compactions and for files that only backups show as changed."""
    yield from map(_compaction_text, turn.compactions)
    if turn.work.snapshot_files:
        paths = ", ".join(turn.work.snapshot_files)
        yield one_line(f"changed, known from backups alone: {paths}")


def full_turn_lines(turn: "BriefTurn", head: str, columns: int) -> Iterator[StyledLine]:
    """Yield a turn with all of its texts, calls, sub-agents, backups and queue."""
    indent = " " * len(head)
    yield from _compactions_before(turn, indent, columns)
    prompt = turn.text or f"({turn.origin or 'nobody asked'})"
    for index, line in enumerate(_wrapped_lines(prompt, columns - len(head) - 2)):
        yield [(indent if index else head, "bold"), ("│ ", "blue"), line]
    for prompt_text in turn.meanwhile:
        yield [indent, ("│ ", "blue"), (one_line(prompt_text, columns - len(head) - 2), "dim")]
    yield from _texts_and_calls(turn.texts, turn.calls, f"{indent}  ", columns)
    for agent in turn.agents:
        yield from _subagent_lines(agent, f"{indent}  ", columns)
    within = (compaction for compaction in turn.compactions if compaction.order >= 0)
    facts = [humanize.duration(turn.seconds), "interrupted" if turn.interrupted else ""]
    notes = [
        *map(_compaction_text, within),
        *map(_backup_text, turn.backups),
        *map(_queue_text, turn.queue),
        "  ".join(fact for fact in facts if fact),
    ]
    for note in notes:
        if note:
            yield [f"{indent}  ", (one_line(note, columns - len(indent) - 2), "dim")]
    yield []


def _compactions_before(turn: "BriefTurn", indent: str, columns: int) -> Iterator[StyledLine]:
    for compaction in turn.compactions:
        if compaction.order < 0:
            yield [f"{indent}  ", (one_line(_compaction_text(compaction), columns - len(indent) - 2), "dim")]
            yield from _text_lines(compaction.summary, f"{indent}    ", columns, "dim")


def _texts_and_calls(
    texts: "Iterable[AssistantText]", calls: "Iterable[ToolCall]", indent: str, columns: int
) -> Iterator[StyledLine]:
    """Yield texts and calls in the order of the conversation."""
    calls_by_order = {item.order: item for item in calls}
    texts_by_order = {each.order: each for each in texts}
    for order in sorted({*calls_by_order, *texts_by_order}):
        if order in texts_by_order:
            yield from _text_lines(texts_by_order[order].text, indent, columns)
        if order in calls_by_order:
            yield from _call_lines(calls_by_order[order], indent, columns)


def _call_lines(call: "ToolCall", indent: str, columns: int) -> Iterator[StyledLine]:
    mark = _CALL_MARKS.get(call.state, ("◻", "yellow"))
    state = "" if call.state == "ok" else f"{call.state}  "
    yield _heading_with_details(indent, mark, call.tool, state + call.outcome, columns)
    for name, value in call.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        size = call.cut.get(name)
        truncation = f" … [{size:,} characters]" if size is not None else ""
        yield from _text_lines(f"{name}: {text}{truncation}", f"{indent}    ", columns, "dim")


def _heading_with_details(indent: str, mark: tuple[str, str], name: str, details: str, columns: int) -> StyledLine:
    """Return a line with a mark and a name, and what is said of it as far as there is room."""
    line_width = columns - len(indent) - 2
    visible_name = one_line(name, line_width)
    details_width = line_width - display_width(visible_name) - 2
    return [
        indent,
        mark,
        f" {visible_name}",
        (f"  {one_line(details, details_width)}" if details_width > 1 and details else "", "dim"),
    ]


def _subagent_lines(agent: "Subagent", indent: str, columns: int) -> Iterator[StyledLine]:
    facts = [agent.status, "in the background" if agent.background else ""]
    if agent.updates:
        facts.append(humanize.count(agent.updates, "progress record"))
    facts_text = "  ".join(fact for fact in facts if fact)
    yield _heading_with_details(indent, ("▪", "magenta"), f"{agent.kind} {agent.task}", facts_text, columns)
    for name, text in (("prompt", agent.prompt), ("report", agent.report)):
        if name == "report" and (agent.texts or agent.calls):
            yield [(f"{indent}  work:", "dim")]
            yield from _texts_and_calls(agent.texts, agent.calls, f"{indent}    ", columns)
        if text:
            yield [(f"{indent}  {name}:", "dim")]
            yield from _text_lines(text, f"{indent}    ", columns)


def _compaction_text(compaction: "ContextCompaction") -> str:
    facts = [
        one_line(compaction.trigger),
        f"{humanize.tokens(compaction.pre_tokens)} tokens before" if compaction.pre_tokens is not None else "",
        f"{humanize.tokens(compaction.tokens_saved)} saved" if compaction.tokens_saved is not None else "",
        humanize.count(compaction.results_removed, "tool result") + " removed" if compaction.results_removed else "",
    ]
    label = "compacted" if compaction.kind == "full" else "old results removed from the context"
    return "  ".join([label, *(fact for fact in facts if fact)])


def _backup_text(backup: "FileBackup") -> str:
    version = f" version {backup.version}" if backup.version is not None else ""
    by = "" if backup.by_call or backup.change == "earlier" else ", no call changed it"
    return f"backup of {backup.path}{version} ({backup.change.replace('_', ' ')}{by})"


def _queue_text(operation: "QueueOperation") -> str:
    return f"queue: {operation.operation} {operation.content}"


def _text_lines(text: str, indent: str, columns: int, style: str = "") -> Iterator[StyledLine]:
    for line in _wrapped_lines(text, columns - len(indent)):
        yield [indent, (line, style)]


def _wrapped_lines(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a text, with nothing in them that acts on the terminal."""
    for line in clean(strip_colours(text.strip("\n")), newlines=True).split("\n"):
        yield from wrap(line, max(_MIN_TEXT_WIDTH, columns)) or [""]


_MAX_ROWS: Final = 8
_ROW_INDENT: Final = 2
_ITEM_MARKS: Final[dict[str, tuple[str, str]]] = {
    "interrupted": ("◻", "yellow"),
    "question": ("?", "yellow"),
    "todo": ("◻", "yellow"),
    "tests": ("✗", "red"),
    "error": ("✗", "red"),
    "running": ("▪", "yellow"),
}
_DECISION_LABELS: Final = {"plan": "plan", "answer": "answered", "refused": "refused", "said": "said"}


def brief_lines(
    briefs: "Sequence[Brief]", omitted: int, columns: int, now: float, *, full: bool = False
) -> Iterator[StyledLine]:
    """Yield the briefs, one behind the other; `full` with every text and call."""
    for index, brief in enumerate(briefs):
        if index:
            yield []
            yield [("─" * min(columns, 72), "dim")]
            yield []
        yield from _BriefRenderer(brief, columns, now, full=full).all_lines()
    if omitted:
        yield []
        yield [(f"{humanize.count(omitted, 'more session')}; --last N tells so many", "dim")]


class _BriefRenderer:
    """One brief, for a screen so wide."""

    def __init__(self, brief: "Brief", columns: int, now: float, *, full: bool) -> None:
        self._brief = brief
        self._width = columns
        self._now = now
        self._show_all = full

    def all_lines(self) -> Iterator[StyledLine]:
        """Yield everything: what is open first, the turns last."""
        yield from self._header_lines()
        work = self._brief.work
        sections = (
            ("Left open", self._open_item_lines(self._brief.open)),
            ("Done", self._work_lines(work)),
            ("Decided", self._decision_lines(work.decisions)),
            ("Went wrong", self._failure_lines(work)),
            ("Turns", self._turns_lines()),
        )
        for name, lines in sections:
            section_lines = list(lines)
            if section_lines:
                yield []
                yield [(name, "bold")]
                yield from section_lines

    def _header_lines(self) -> Iterator[StyledLine]:
        brief = self._brief
        yield [(one_line(brief.title, self._width), "bold")]
        turn_count = sum(not turn.idle for turn in brief.turns)
        parts = (
            humanize.project_name(brief.project),
            brief.branch,
            ", ".join(humanize.model_name(model) for model in brief.models[:3]),
            humanize.day_and_time(brief.ended, self._now) if brief.ended else "",
            humanize.count(turn_count, "turn") + (f" of {turn_count + brief.elsewhere:,}" if brief.elsewhere else ""),
            humanize.duration(brief.seconds) if brief.seconds else "",
            brief.standing,
            humanize.count(brief.gaps, "damaged stretch", "damaged stretches") if brief.gaps else "",
        )
        name = one_line(brief.id[:SHORT_ID_LENGTH])
        yield [(name, "bold"), (f"  {truncate(_join_parts(*parts), self._width - display_width(name) - 2)}", "dim")]

    def _item_line(self, mark: tuple[str, str], label: str, *details: str) -> StyledLine:
        """Return a line: a mark, some words, and what stands behind them as long as there is room."""
        details_text = _join_parts(*details)
        available = self._width - _ROW_INDENT - 2
        suffix = truncate(details_text, available * 2 // 3)
        shortened = one_line(label, max(available - display_width(suffix) - 2 * bool(suffix), available // 3))
        styled: list[StyledText] = ["  ", (mark[0], mark[1]), " ", shortened]
        if suffix:
            styled.append((f"  {truncate(suffix, available - display_width(shortened) - 2)}", "dim"))
        return styled

    # What is open

    def _open_item_lines(self, open_items: "Sequence[OpenItem]") -> Iterator[StyledLine]:
        for kind, group in groupby(open_items, key=lambda each: each.kind):
            items = list(group)
            if kind == "uncommitted":
                text = f"{humanize.count(len(items), 'file')} changed, in no commit of the session"
                yield self._item_line(("±", "yellow"), text)
                yield from self._path_lines([item.text for item in items])
                continue
            for each in items:
                state = "begun" if each.about == "in_progress" else ""
                details = state if kind == "todo" else each.about
                text = f"cut off: {each.text}" if kind == "interrupted" else each.text
                yield self._item_line(_ITEM_MARKS.get(kind, ("✗", "red")), text, details)

    def _path_lines(self, paths: Sequence[str]) -> Iterator[StyledLine]:
        for path in paths[:_MAX_ROWS]:
            directory, name = shorten_path(path, self._width - 6)
            yield ["      ", (directory, "dim"), name]
        if len(paths) > _MAX_ROWS:
            yield [(f"      … and {len(paths) - _MAX_ROWS:,} more", "dim")]

    # What was done

    def _work_lines(self, work: "WorkSummary") -> Iterator[StyledLine]:
        success_mark = ("✓", "green")
        for commit in work.commits:
            size = f"{humanize.count(commit.files, 'file')} {humanize.line_changes(commit.added, commit.removed)}"
            parts = (commit.hash, size if commit.files else "", "pushed" if commit.pushed else "")
            yield self._item_line(success_mark, f"commit {commit.subject}", *parts)
        for pull in work.pulls:
            yield self._item_line(success_mark, f"pull request {pull.url}", pull.title)
        yield from self._file_lines(work)
        if work.snapshot_files:
            number = len(work.snapshot_files)
            text = f"{humanize.count(number, 'file')} changed, known from the client's backups alone"
            yield self._item_line(("±", "cyan"), text)
            yield from self._path_lines(list(work.snapshot_files))
        for test in work.tests[-_MAX_ROWS:]:
            mark = success_mark if test.ok else ("✗", "red")
            yield self._item_line(mark, test.command, *_test_result(test))
        for subagent in work.helpers:
            steps = humanize.count(subagent.steps, "step") if subagent.steps else ""
            text = f"{subagent.kind} {subagent.task}"
            yield self._item_line(("▪", "magenta"), text, subagent.status, steps)
        for command_run in work.commands[-_MAX_ROWS:]:
            mark = ("▸", "dim") if command_run.state in ("ok", "unknown") else ("✗", "red")
            yield self._item_line(mark, command_run.command, "" if command_run.state == "ok" else command_run.outcome)
        if len(work.commands) > _MAX_ROWS:
            omitted = humanize.count(len(work.commands) - _MAX_ROWS, "command")
            yield [(f"    and {omitted} before", "dim")]
        if work.tools:
            yield [("    " + truncate(_join_parts(*_tool_counts(work)), self._width - 4), "dim")]

    def _file_lines(self, work: "WorkSummary") -> Iterator[StyledLine]:
        if not work.files:
            return
        yield [
            "  ",
            ("±", "cyan"),
            f" {humanize.count(len(work.files), 'file')} changed",
            *_changed_line_counts(work.added, work.removed),
        ]
        for file in work.files[:_MAX_ROWS]:
            size = _changed_line_counts(file.added, file.removed)
            available = self._width - 6 - sum(display_width(styled[0]) for styled in size)
            folder, name = shorten_path(file.path, available)
            yield ["      ", (folder, "dim"), name, *size]
        if len(work.files) > _MAX_ROWS:
            yield [(f"      … and {len(work.files) - _MAX_ROWS:,} more", "dim")]

    # What was decided, and what went wrong

    def _decision_lines(self, decisions: "Sequence[Decision]") -> Iterator[StyledLine]:
        for decision in decisions:
            text = decision.text or decision.about
            details = decision.about if decision.text else ""
            yield self._item_line(
                ("◆", "blue"), text, _DECISION_LABELS[decision.kind], details, f"turn {decision.turn}"
            )

    def _failure_lines(self, work: "WorkSummary") -> Iterator[StyledLine]:
        for failure in work.troubles:
            mark = ("✓", "green") if failure.solved else ("✗", "red")
            occurrences = f"{failure.times:,} times" if failure.times > 1 else ""
            yield self._item_line(mark, failure.what, occurrences, _resolution(failure))
            if failure.said:
                yield [("      " + one_line(failure.said, self._width - 6), "dim")]

    # Turn by turn

    def _turns_lines(self) -> Iterator[StyledLine]:
        for turn in self._brief.turns:
            if not turn.idle:
                yield from self._turn_lines(turn)
                continue
            for line in turn_notes(turn):
                yield [(f"       {truncate(line, self._width - 7)}", "dim")]

    def _turn_lines(self, turn: "BriefTurn") -> Iterator[StyledLine]:
        head = f"{turn.number:>3}  {humanize.time_of_day(turn.started):5}  "
        available = self._width - len(head) - 2
        prompt = turn.text or f"({turn.origin or 'nobody asked'})"
        if self._show_all:
            yield from full_turn_lines(turn, head, self._width)
            return
        yield [(head, "bold"), ("│ ", "blue"), one_line(prompt, available)]
        for queued_prompt in turn.meanwhile:
            yield [" " * len(head), ("│ ", "blue"), (one_line(queued_prompt, available), "dim")]
        cut_off = "interrupted" if turn.interrupted else ""
        texts = humanize.count(len(turn.texts), "text") if len(turn.texts) > 1 else ""
        facts = _join_parts(*_tool_counts(turn.work), texts, humanize.duration(turn.seconds), cut_off)
        if facts:
            yield [(" " * len(head) + "  " + truncate(facts, available), "dim")]
        for line in turn_notes(turn):
            yield [(" " * len(head) + "  " + truncate(line, available), "dim")]
        if turn.answer:
            yield [" " * len(head) + "  ", one_line(turn.answer, available)]


def _changed_line_counts(added: int, removed: int) -> list[tuple[str, str]]:
    return [(f"  +{added:,}", "green"), (f" {MINUS_SIGN}{removed:,}", "red")]


def _join_parts(*parts: str) -> str:
    """Return some words side by side, each on one line."""
    return "  ".join(one_line(part) for part in parts if part)


def _tool_counts(work: "WorkSummary") -> list[str]:
    return [f"{name} {number:,}" for name, number in work.tools.items()]


def _test_result(test: "TestRun") -> tuple[str, str]:
    numbers = [f"{test.failed:,} failed"] if test.failed else []
    numbers += [f"{test.passed:,} passed"] if test.passed else []
    text = ", ".join(numbers) or ("passed" if test.ok else "failed")
    has_failures = test.bad and test.times > 1
    return text, f"{test.times:,} runs, {test.bad:,} failed" if has_failures else ""


def _resolution(trouble: "Failure") -> str:
    if not trouble.solved:
        return "not seen to work since"
    after = ", ".join(trouble.after)
    return f"worked after changes to {after}" if after else "worked later"


_DEFAULT_SESSIONS: Final = 10
"""How many sessions are told where nobody says how many."""
_HELP: Final = """\
Tell sessions in brief: what was asked, what was done, what was decided, what is left open.

SESSION is named as everywhere; without one it is the newest. No model is asked: files with their
lines, commands, tests, commits, pull requests, sub-agents, failures and how they ended come from
the records. With --since or --until only the turns of that time are told.

\b
  steno brief                                   the newest session
  steno brief 7c1f --format markdown            to paste somewhere
  steno brief --project . --budget 2000         for a new conversation, at most 2,000 tokens
  steno brief --since yesterday                 what was done since then
  steno brief --last 3 --json                   for programs
  steno brief 7c1f --full                       every text, call and sub-agent

Every turn has all texts of the model, every call with its parameters and outcome, sub-agents,
files that the client backed up, compactions and the queue: in Markdown and JSON always, on the
terminal with --full. --full also leaves long parameters whole. A budget keeps what is worth most.

In Markdown and JSON, what looks like a secret is masked, and whatever sessions say is marked as
quoted material, in fences that it cannot close.
"""


class _BriefOptions(msgspec.Struct):
    """What was asked for, beside the sessions."""

    last: int | None = None
    project: str | None = None
    since: str | None = None
    until: str | None = None
    form: str | None = None
    budget: int | None = None
    full: bool = False
    no_redact: bool = False
    no_sync: bool = False
    as_json: bool = False
    no_pager: bool = False

    @property
    def needs_index(self) -> bool:
        """Whether the index says which sessions are meant."""
        return bool(self.project or self.since or self.until)


@click.command("brief", help=_HELP, short_help="Tell sessions in brief, for people and agents.")
@SESSIONS
@click.option("--last", metavar="N", type=click.IntRange(0), help="The newest N; 0 = all.")
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option("--since", metavar="WHEN", help="Only turns since: 2026-11-07, 7d, 3h, yesterday, …")
@click.option("--until", metavar="WHEN", help="Only turns until then, that day included.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    help="How to write it.  [default: text; with --budget markdown]",
)
@click.option(
    "--budget",
    metavar="TOKENS",
    type=click.IntRange(1),
    help="At most so many tokens: what is worth most, and what is left out.",
)
@click.option("--full", is_flag=True, help="All texts and calls, with whole parameters.")
@click.option("--no-redact", is_flag=True, help="Do not mask what looks like a secret.")
@NO_SYNC
@add_options(ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@add_options(COLOR)
def command(
    names: tuple[str, ...], root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Choose the sessions, and tell them."""
    command_options = _BriefOptions(**values)
    output_format = _output_format(command_options)
    if command_options.full and command_options.budget is not None:
        raise click.UsageError("--full and --budget exclude each other")
    if names and (command_options.needs_index or command_options.last is not None):
        raise click.UsageError("SESSION goes with none of --last, --project, --since, --until")
    from steno.report.brief.brief_builder import build_briefs

    query = _usage_query(command_options) if command_options.needs_index else None
    sessions, omitted = _selected_sessions(names, command_options, query, root, demo=demo)
    unread: list[str] = []
    from steno.cli.output.progress import ProgressBar

    with ProgressBar(sum(session.size for session in sessions), "Reading sessions") as bar:
        briefs = build_briefs(
            sessions, query, progress=bar.advance, unreadable=None if names else unread, full=command_options.full
        )
    if unread:
        print_error(f"{len(unread):,} sessions could not be read, such as {unread[0]}")
    if not briefs and output_format != "json":
        raise NotFound("no session has a turn like that", hint="`steno ls` lists the sessions")
    _print_briefs(briefs, omitted + len(unread), output_format, command_options, Screen(color, width))
    if not briefs:
        raise click.exceptions.Exit(1)


def _output_format(options: _BriefOptions) -> str:
    if options.as_json and options.form not in (None, "json"):
        raise click.UsageError(f"--json and --format {options.form} exclude each other")
    output_format = "json" if options.as_json else options.form
    if output_format == "text" and options.budget is not None:
        raise click.UsageError("--budget is for --format markdown and --json")
    return output_format or ("text" if options.budget is None else "markdown")


def _usage_query(options: _BriefOptions) -> "UsageQuery":
    from steno.report.usage.usage_query import UsageQuery

    now = environment.now()
    since = clock.parse_time_range(options.since, now)[0] if options.since else None
    until = clock.parse_time_range(options.until, now)[1] if options.until else None
    return UsageQuery(
        since=None if since is None else round(since * 1000),
        until=None if until is None else round(until * 1000),
        project=options.project or "",
        here=os.getcwd() if options.project == "." else "",
    )


def _selected_sessions(
    names: tuple[str, ...], options: _BriefOptions, query: "UsageQuery | None", root: tuple[str, ...], *, demo: bool
) -> "tuple[list[SessionFile], int]":
    """Return the sessions that are meant, and how many more fit."""
    from steno.report.brief.brief_builder import max_sessions_for, select_sessions, session_file_of
    from steno.store.session_lookup import find

    folders = search_roots(root, demo=demo)
    if names:
        files = {found.path: found for found in (find(name, folders) for name in names)}
        return [session_file_of(file) for file in files.values()], 0
    if query is None:
        sessions = _newest_sessions(folders, 1 if options.last is None else options.last)
        max_sessions = len(sessions)
    else:
        with open_fresh_index(root, demo=demo, no_sync=options.no_sync) as index:
            sessions = select_sessions(index.connection, query)
        max_sessions = _DEFAULT_SESSIONS if options.last is None else options.last or len(sessions)
    if options.budget is not None:
        max_sessions = min(max_sessions, max_sessions_for(options.budget))
    return sessions[:max_sessions], max(0, len(sessions) - max_sessions)


def _newest_sessions(folders: tuple[str, ...] | None, max_sessions: int) -> "list[SessionFile]":
    from steno.report.brief.brief_builder import session_file_of
    from steno.store.session_lookup import sessions_newest_first, summarize_files

    files_with_prompts = (
        file for file, summary in summarize_files(sessions_newest_first(folders, archived=True)) if not summary.hidden
    )
    sessions = [session_file_of(each) for each in islice(files_with_prompts, max_sessions or None)]
    if not sessions:
        raise NotFound("there is no session", hint="`steno demo` makes some to look at")
    return sessions


def _print_briefs(
    briefs: "list[Brief]", omitted: int, output_format: str, options: _BriefOptions, screen: Screen
) -> None:
    redact = not options.no_redact
    if output_format == "json":
        from steno.report.brief.brief_json import as_json, encode_brief

        value = as_json(briefs, options.budget, redact=redact, unread_sessions=omitted, full=options.full)
        write_bytes(encode_brief(value))
    elif output_format == "markdown":
        from steno.report.brief.brief_markdown import as_markdown

        text = as_markdown(briefs, options.budget, redact=redact, unread_sessions=omitted, full=options.full)
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    else:
        from steno.cli.output.screen import print_paged

        lines = brief_lines(briefs, omitted, screen.width, environment.now(), full=options.full)
        print_paged(screen, lines, use_pager=not options.no_pager)
