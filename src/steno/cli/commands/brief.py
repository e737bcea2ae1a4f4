"""`steno brief`: summarizes sessions: work, decisions and open items."""

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
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock, humanize
from steno.report.humanize import MINUS_SIGN
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
    """Yield a line for each compaction, and a line for files whose changes are known only from backups."""
    yield from map(_compaction_text, turn.compactions)
    if turn.work.snapshot_files:
        paths = ", ".join(turn.work.snapshot_files)
        yield one_line(f"changed (from backups only): {paths}")


def full_turn_lines(turn: "BriefTurn", head: str, columns: int) -> Iterator[StyledLine]:
    """Yield a turn with all texts, tool calls, sub-agents, backups and queued prompts."""
    indent = " " * len(head)
    yield from _compactions_before(turn, indent, columns)
    prompt = turn.text or f"({turn.origin or 'no prompt'})"
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
    """Yield texts and tool calls in the order of the conversation."""
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
    """Return a line with a mark, a name, and the details that fit the width."""
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
    label = "compacted" if compaction.kind == "full" else "old tool results removed from context"
    return "  ".join([label, *(fact for fact in facts if fact)])


def _backup_text(backup: "FileBackup") -> str:
    version = f" version {backup.version}" if backup.version is not None else ""
    by = "" if backup.by_call or backup.change == "earlier" else ", not changed by a tool call"
    return f"backup of {backup.path}{version} ({backup.change.replace('_', ' ')}{by})"


def _queue_text(operation: "QueueOperation") -> str:
    return f"queue: {operation.operation} {operation.content}"


def _text_lines(text: str, indent: str, columns: int, style: str = "") -> Iterator[StyledLine]:
    for line in _wrapped_lines(text, columns - len(indent)):
        yield [indent, (line, style)]


def _wrapped_lines(text: str, columns: int) -> Iterator[str]:
    """Yield the wrapped lines of a text, without terminal control characters."""
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
    """Yield the lines of briefs, one after another; `full` includes every text and tool call."""
    for index, brief in enumerate(briefs):
        if index:
            yield []
            yield [("─" * min(columns, 72), "dim")]
            yield []
        yield from _BriefRenderer(brief, columns, now, full=full).all_lines()
    if omitted:
        yield []
        yield [(f"{humanize.count(omitted, 'more session')}; use --last N to include more", "dim")]


class _BriefRenderer:
    """Renders one brief for a screen width."""

    def __init__(self, brief: "Brief", columns: int, now: float, *, full: bool) -> None:
        self._brief = brief
        self._width = columns
        self._now = now
        self._show_all = full

    def all_lines(self) -> Iterator[StyledLine]:
        """Yield all sections: open items first, turns last."""
        yield from self._header_lines()
        work = self._brief.work
        sections = (
            ("Open items", self._open_item_lines(self._brief.open)),
            ("Work", self._work_lines(work)),
            ("Decisions", self._decision_lines(work.decisions)),
            ("Failures", self._failure_lines(work)),
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
            humanize.count(brief.gaps, "damaged range") if brief.gaps else "",
        )
        name = one_line(brief.id[:SHORT_ID_LENGTH])
        yield [(name, "bold"), (f"  {truncate(_join_parts(*parts), self._width - display_width(name) - 2)}", "dim")]

    def _item_line(self, mark: tuple[str, str], label: str, *details: str) -> StyledLine:
        """Return a line: a mark, a label, and the details that fit the width."""
        details_text = _join_parts(*details)
        available = self._width - _ROW_INDENT - 2
        suffix = truncate(details_text, available * 2 // 3)
        shortened = one_line(label, max(available - display_width(suffix) - 2 * bool(suffix), available // 3))
        styled: list[StyledText] = ["  ", (mark[0], mark[1]), " ", shortened]
        if suffix:
            styled.append((f"  {truncate(suffix, available - display_width(shortened) - 2)}", "dim"))
        return styled

    # Open items

    def _open_item_lines(self, open_items: "Sequence[OpenItem]") -> Iterator[StyledLine]:
        for kind, group in groupby(open_items, key=lambda each: each.kind):
            items = list(group)
            if kind == "uncommitted":
                text = f"{humanize.count(len(items), 'file')} changed, not committed in the session"
                yield self._item_line(("±", "yellow"), text)
                yield from self._path_lines([item.text for item in items])
                continue
            for each in items:
                state = "begun" if each.about == "in_progress" else ""
                details = state if kind == "todo" else each.about
                text = f"interrupted: {each.text}" if kind == "interrupted" else each.text
                yield self._item_line(_ITEM_MARKS.get(kind, ("✗", "red")), text, details)

    def _path_lines(self, paths: Sequence[str]) -> Iterator[StyledLine]:
        for path in paths[:_MAX_ROWS]:
            directory, name = shorten_path(path, self._width - 6)
            yield ["      ", (directory, "dim"), name]
        if len(paths) > _MAX_ROWS:
            yield [(f"      … and {len(paths) - _MAX_ROWS:,} more", "dim")]

    # Work

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
            text = f"{humanize.count(number, 'file')} changed (from Claude Code backups only)"
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
            yield [(f"    … and {omitted} earlier", "dim")]
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

    # Decisions and failures

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

    # Turns

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
        prompt = turn.text or f"({turn.origin or 'no prompt'})"
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
        return "not resolved"
    after = ", ".join(trouble.after)
    return f"resolved after changes to {after}" if after else "resolved later"


_DEFAULT_SESSIONS: Final = 10
"""Maximum sessions in a brief with --project, --since or --until, but without --last."""
_HELP: Final = """\
Summarize sessions: work, decisions and open items.

Without SESSION, the newest session is summarized. No model is called: changed files, commands,
tests, commits, pull requests, sub-agents and failures are read from the records. With --since or
--until, only the turns in that range are included.

\b
Examples:
  steno brief                              Summarize the newest session
  steno brief 7c1f --format markdown       Print Markdown, to paste elsewhere
  steno brief --project . --budget 2000    Use at most 2,000 tokens, for a new conversation
  steno brief --since yesterday            Summarize the work since yesterday
  steno brief --last 3 --json              Print the 3 newest sessions as JSON
  steno brief 7c1f --full                  Include every text, tool call and sub-agent

Markdown and JSON contain, for every turn, all texts, tool calls with parameters and results,
sub-agents, file backups, compactions and queued prompts; the terminal shows them with --full.
--full also includes long parameters in full. --budget keeps the most important parts.

In Markdown and JSON, probable secrets are masked, and text from sessions is quoted in fenced
blocks that it cannot end.
"""


class _BriefOptions(msgspec.Struct):
    """The options of the command, except the session names."""

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
        """Whether the index selects the sessions."""
        return bool(self.project or self.since or self.until)


@click.command("brief", help=_HELP, short_help="Summarize sessions: work, decisions and open items.")
@SESSIONS
@click.option("--last", metavar="N", type=click.IntRange(0), help="Summarize the newest N sessions; 0 = all")
@click.option("--project", metavar="P", help="Filter by project path; `.` is the current directory")
@click.option("--since", metavar="WHEN", help="Only turns since WHEN: 2026-11-07, 7d, 3h, yesterday")
@click.option("--until", metavar="WHEN", help="Only turns until WHEN, that day included")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    help="Output format  [default: text, or markdown with --budget]",
)
@click.option(
    "--budget", metavar="TOKENS", type=click.IntRange(1), help="Maximum size in tokens; keeps the most important parts"
)
@click.option("--full", is_flag=True, help="Include all texts and tool calls, with complete parameters")
@click.option("--no-redact", is_flag=True, help="Do not mask probable secrets")
@NO_SYNC
@add_options(ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(
    names: tuple[str, ...], root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Select and summarize sessions."""
    command_options = _BriefOptions(**values)
    output_format = _output_format(command_options)
    if command_options.full and command_options.budget is not None:
        raise click.UsageError("--full cannot be combined with --budget")
    if names and (command_options.needs_index or command_options.last is not None):
        raise click.UsageError("SESSION cannot be combined with --last, --project, --since or --until")
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
        raise NotFound("no turns match these filters", hint="Run `steno ls` to list sessions.")
    _print_briefs(briefs, omitted + len(unread), output_format, command_options, Screen(color, width))
    if not briefs:
        raise click.exceptions.Exit(1)


def _output_format(options: _BriefOptions) -> str:
    if options.as_json and options.form not in (None, "json"):
        raise click.UsageError(f"--json cannot be combined with --format {options.form}")
    output_format = "json" if options.as_json else options.form
    if output_format == "text" and options.budget is not None:
        raise click.UsageError("--budget requires --format markdown or --json")
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
    """Return the selected sessions, and the number of other sessions that match."""
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
        raise NotFound("no sessions found", hint="Run `steno demo` to write demo sessions.")
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
