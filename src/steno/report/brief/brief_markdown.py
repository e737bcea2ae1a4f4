"""A brief as Markdown, for a new conversation, a CLAUDE.md or a pull request.

Text written by steno is plain; all text from a session is in a code span or a fenced block, as stated in the
introduction.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from steno.errors import BadRequest
from steno.report import clock, humanize
from steno.report.brief.brief_document import (
    AssistantText,
    Brief,
    BriefTurn,
    CommandRun,
    Commit,
    ContextCompaction,
    Decision,
    Failure,
    FileBackup,
    OpenItem,
    PullRequest,
    QueueOperation,
    Subagent,
    SubagentSummary,
    TestRun,
    ToolCall,
    WorkSummary,
)
from steno.report.brief.brief_reduction import fit_to_budget, mask_brief, shorten_inputs
from steno.sanitize.markdown import QUOTE_NOTICE, code_span, estimate_tokens, fenced_block

STATE_TEXTS: Final = {
    "ok": "ok",
    "failed": "failed",
    "denied": "denied",
    "open": "no result",
    "interrupted": "interrupted",
    "unknown": "unknown",
}
_MAX_INLINE_LENGTH: Final = 200
_MAX_NAME_LENGTH: Final = 80
_MAX_BACKUP_PATH_LENGTH: Final = 160
_MAX_OUTCOME_LENGTH: Final = 160
_MAX_LISTED_IDS: Final = 5
_CHANGE_TEXTS: Final = {
    "in_turn": "",
    "before_turn": "changed before this turn",
    "earlier": "changed before the session started",
}
_OPERATION_TEXTS: Final = {
    "enqueue": "added",
    "dequeue": "dequeued",
    "remove": "removed",
    "popAll": "cleared",
    "complete": "completed",
}


class TextLimits(msgspec.Struct, frozen=True):
    """Maximum lengths of session texts in Markdown."""

    text: int
    """Maximum characters of a prompt, text or answer."""
    value: int
    """Maximum characters of a call parameter."""
    blocks: bool = False
    """Whether long parameters are fenced blocks instead of code spans."""


def quote_text(text: str, longest: int) -> str:
    """Return a quoted text to follow a colon: on the same line if it is short."""
    is_short = len(text) <= _MAX_INLINE_LENGTH and "\n" not in text
    return f" {code_span(text, _MAX_INLINE_LENGTH)}" if is_short else f"\n\n{fenced_block(text, longest)}"


def content_before(turn: BriefTurn, limits: TextLimits) -> Iterator[str]:
    """Yield the compactions before the prompt of a turn."""
    yield from (_compaction_text(compaction, limits) for compaction in turn.compactions if compaction.order < 0)


def content_after(turn: BriefTurn, limits: TextLimits) -> Iterator[str]:
    """Yield the sub-agents, backups and queue operations of a turn."""
    for agent in turn.agents:
        yield from _agent_section(agent, limits)
    if turn.backups:
        yield f"Files backed up by Claude Code: {'; '.join(map(_backup_text, turn.backups))}."
    if turn.queue:
        yield f"Queue: {'; '.join(_queue_text(operation, limits) for operation in turn.queue)}."


def conversation(
    texts: Iterable[AssistantText],
    calls: Iterable[ToolCall],
    limits: TextLimits,
    compactions: Iterable[ContextCompaction] = (),
) -> Iterator[str]:
    """Yield texts, calls and compactions in order; consecutive calls form one list."""
    # A compaction has the same order as the text or call after it, and comes first.
    rows: list[AssistantText | ToolCall | ContextCompaction] = [*compactions, *texts, *calls]
    call_items: list[str] = []
    for row in sorted(rows, key=lambda entry: entry.order):
        if isinstance(row, ToolCall):
            call_items.append(_call_item(row, limits))
            continue
        if call_items:
            yield "\n".join(call_items)
            call_items = []
        if isinstance(row, ContextCompaction):
            yield _compaction_text(row, limits)
            continue
        label = "Text by Claude Code" if row.synthetic else "Text"
        yield f"{label}:{quote_text(row.text, limits.text)}"
    if call_items:
        yield "\n".join(call_items)


# Calls


def _call_item(call: ToolCall, limits: TextLimits) -> str:
    parameters = [_parameter_text(call, name, value, limits) for name, value in call.input.items()]
    inline_texts = [text for text, is_block in parameters if not is_block]
    blocks = [text for text, is_block in parameters if is_block]
    parameter_list = f" ({'; '.join(inline_texts)})" if inline_texts else ""
    outcome = code_span(call.outcome, _MAX_OUTCOME_LENGTH)
    result = STATE_TEXTS[call.state] + (f", {outcome}" if outcome else "")
    return "\n".join([f"- {code_span(call.tool, _MAX_NAME_LENGTH) or 'call'}{parameter_list} → {result}", *blocks])


def _parameter_text(call: ToolCall, name: str, value: Any, limits: TextLimits) -> tuple[str, bool]:
    """Return a parameter, and whether it is a block."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    size = call.cut.get(name, len(text))
    label = code_span(name, _MAX_NAME_LENGTH) or "parameter"
    if limits.blocks and (len(text) > _MAX_INLINE_LENGTH or "\n" in text):
        lines = fenced_block(text, limits.value).split("\n")
        return "\n".join([f"  {label}:", "", *(f"  {line}".rstrip() for line in lines)]), True
    size_note = f" [{size:,} characters]" if size > limits.value else ""
    return f"{label} {code_span(text, limits.value) or '(empty)'}{size_note}", False


# Sub-agents


def _agent_section(agent: Subagent, limits: TextLimits) -> Iterator[str]:
    facts = [
        code_span(agent.status, _MAX_NAME_LENGTH),
        "in the background" if agent.background else "",
        humanize.count(len(agent.texts), "text") if agent.texts else "",
        humanize.count(len(agent.calls), "call") if agent.calls else "",
        humanize.count(agent.updates, "progress record") if agent.updates else "",
        f"started by sub-agent {code_span(agent.parent_id, _MAX_NAME_LENGTH)}" if agent.parent_id else "",
        "" if agent.source != "result" else "no records",
    ]
    title = " ".join(
        part for part in (code_span(agent.kind, _MAX_NAME_LENGTH), code_span(agent.task, _MAX_INLINE_LENGTH)) if part
    )
    yield f"Sub-agent {title or '(unnamed)'} ({', '.join(fact for fact in facts if fact)})."
    if agent.prompt:
        yield f"Sub-agent prompt:{quote_text(agent.prompt, limits.text)}"
    texts = (text for text in agent.texts if not agent.report or text.text.strip() != agent.report)
    yield from conversation(texts, agent.calls, limits)
    if agent.report:
        yield f"Sub-agent report:{quote_text(agent.report, limits.text)}"


# Compactions, backups and the queue


def _compaction_text(compaction: ContextCompaction, limits: TextLimits) -> str:
    saved = humanize.tokens(compaction.tokens_saved) if compaction.tokens_saved is not None else ""
    facts = [
        f"{humanize.tokens(compaction.pre_tokens)} tokens before" if compaction.pre_tokens is not None else "",
        f"{saved} tokens saved" if saved else "",
        humanize.count(compaction.results_removed, "tool result") + " removed" if compaction.results_removed else "",
        humanize.count(compaction.attachments_removed, "attachment") + " removed"
        if compaction.attachments_removed
        else "",
    ]
    ids = [code_span(name, _MAX_NAME_LENGTH) for name in compaction.compacted_tool_ids]
    shown_ids = ids if limits.blocks else ids[:_MAX_LISTED_IDS]
    remainder = f" and {len(ids) - len(shown_ids):,} more" if len(ids) > len(shown_ids) else ""
    kind = "Context compacted" if compaction.kind == "full" else "Old tool results removed from the context"
    trigger_text = f" ({code_span(compaction.trigger, _MAX_NAME_LENGTH)})" if compaction.trigger else ""
    facts_text = ", ".join(fact for fact in facts if fact)
    line = f"{kind}{trigger_text}{': ' if facts_text else ''}{facts_text}."
    line += f" Results of {', '.join(shown_ids)}{remainder}." if shown_ids else ""
    return line + (f" Summary:{quote_text(compaction.summary, limits.text)}" if compaction.summary else "")


def _backup_text(backup: FileBackup) -> str:
    facts = [
        f"version {backup.version}" if backup.version is not None else "",
        "" if backup.existed else "new file",
        _CHANGE_TEXTS[backup.change],
        f"{backup.size:,} characters" if backup.size is not None else "",
        "" if backup.by_call or backup.change == "earlier" else "not changed by a tool call",
    ]
    facts_text = ", ".join(fact for fact in facts if fact)
    return code_span(backup.path, _MAX_BACKUP_PATH_LENGTH) + (f" ({facts_text})" if facts_text else "")


def _queue_text(operation: QueueOperation, limits: TextLimits) -> str:
    name = _OPERATION_TEXTS.get(operation.operation) or code_span(operation.operation, _MAX_NAME_LENGTH) or "operation"
    content, reason = (code_span(operation.content, limits.value), code_span(operation.reason, _MAX_NAME_LENGTH))
    size = max(operation.size, len(operation.content))
    size_note = f" [{size:,} characters]" if size > limits.value else ""
    return " ".join(part for part in (name, content) if part) + size_note + (f" ({reason})" if reason else "")


MIN_MARKDOWN_BUDGET: Final = 100
"""Minimum budget in tokens."""
_MAX_SPAN_LENGTH: Final = 240
_MAX_COMMAND_LENGTH: Final = 140
_MAX_PATH_LENGTH: Final = 120
_MAX_TEXT_LENGTH: Final = 1_500
_MAX_PLAN_LENGTH: Final = 3_000
_UNLIMITED: Final = 1 << 62
_BUDGET_LIMITS: Final = TextLimits(_MAX_TEXT_LENGTH, 160)
_DEFAULT_LIMITS: Final = TextLimits(_UNLIMITED, 240)
_FULL_LIMITS: Final = TextLimits(_UNLIMITED, _UNLIMITED, blocks=True)
_MAX_LISTED_FILES: Final = 20
_MAX_ROWS: Final = 40
_MAX_LISTED_COMMANDS: Final = 12
_HEADINGS: Final = re.compile(r"^#+ .*$", re.MULTILINE)
_OMITTED_NOUNS: Final = {
    "open": ("open item", "open items"),
    "turns": ("turn", "turns"),
    "answers": ("answer", "answers"),
    "meanwhile": ("queued prompt", "queued prompts"),
    "commits": ("commit", "commits"),
    "pulls": ("pull request", "pull requests"),
    "files": ("file", "files"),
    "snapshot_files": ("file known only from backups", "files known only from backups"),
    "tests": ("test command", "test commands"),
    "helpers": ("sub-agent summary", "sub-agent summaries"),
    "decisions": ("decision", "decisions"),
    "troubles": ("failure", "failures"),
    "commands": ("command", "commands"),
    "tools": ("tool count", "tool counts"),
    "looks": ("read-only command", "read-only commands"),
    "slips": ("minor failure", "minor failures"),
    "turn_work": ("turn summary", "turn summaries"),
    "texts": ("assistant text", "assistant texts"),
    "calls": ("tool call", "tool calls"),
    "agents": ("sub-agent", "sub-agents"),
    "agent_texts": ("sub-agent text", "sub-agent texts"),
    "agent_calls": ("sub-agent call", "sub-agent calls"),
    "backups": ("file backup", "file backups"),
    "compactions": ("compaction", "compactions"),
    "queue": ("queue operation", "queue operations"),
}
_NOTIFICATION_ORIGINS: Final = frozenset(("notification", "teammate", "other"))
"""Origins of turns without a prompt by a user."""
_STATUS_TEXTS: Final = {
    "running": "running",
    "waiting": "waiting for input",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
}


def as_markdown(
    brief: Brief | Sequence[Brief],
    budget: int | None = None,
    *,
    redact: bool = True,
    unread_sessions: int = 0,
    full: bool = False,
) -> str:
    """Return one or several briefs, newest first, as Markdown.

    `budget` is the maximum number of tokens as counted by `estimate_tokens`; without it every text and call is
    included. `redact` masks likely secrets; `unread_sessions` is the number of further sessions that were not read;
    `full` writes call parameters in full.

    Raises:
        BadRequest: The budget is too small.
    """
    briefs = [brief] if isinstance(brief, Brief) else list(brief)
    if redact:
        briefs = [mask_brief(single) for single in briefs]
    if not full:
        briefs = [shorten_inputs(each) for each in briefs]
    if budget is None:
        return _document(briefs, unread_sessions, len(briefs), _FULL_LIMITS if full else _DEFAULT_LIMITS)
    if budget < MIN_MARKDOWN_BUDGET:
        raise BadRequest(f"a brief needs a budget of at least {MIN_MARKDOWN_BUDGET} tokens")
    total = len(briefs)

    def fits_budget(selected: list[Brief]) -> bool:
        return estimate_tokens(_document(selected, unread_sessions, total, _BUDGET_LIMITS)) <= budget

    return _document(fit_to_budget(briefs, fits_budget, budget), unread_sessions, total, _BUDGET_LIMITS)


def _document(briefs: list[Brief], unread_sessions: int, total: int, limits: TextLimits) -> str:
    has_several = total > 1
    heading = f"# Brief of {humanize.count(total, 'session')}" if has_several or not briefs else ""
    parts = [heading] if heading else []
    for index, brief in enumerate(briefs):
        parts += _session_section(brief, "##" if has_several else "#", limits)
        if not index and not has_several:
            parts.insert(1, QUOTE_NOTICE)
    if heading:
        parts.insert(1, QUOTE_NOTICE)
    missing = unread_sessions + total - len(briefs)
    if missing:
        parts.append(f"{humanize.count(missing, 'more session')} omitted.")
    return "\n\n".join(parts) + "\n"


def _session_section(brief: Brief, level: str, limits: TextLimits) -> Iterator[str]:
    title = code_span(brief.title, 120) or "(no title)"
    yield f"{level} {title}" if level == "##" else f"{level} Brief: {title}"
    yield _session_facts(brief)
    sections = (
        ("Open items", _open_section(brief.open)),
        ("Work", _work_section(brief.work)),
        ("Decisions", _decisions_section(brief.work.decisions, limits)),
        ("Failures", _failures_section(brief.work)),
    )
    for name, lines in sections:
        body = list(lines)
        if body:
            yield f"{level}# {name}"
            yield "\n".join(body)
    turns = [turn for turn in brief.turns if not turn.idle]
    if turns:
        yield f"{level}# Turns"
    for turn in brief.turns:
        if turn.idle:
            # An idle turn is omitted, except for its compactions.
            yield from conversation((), (), limits, turn.compactions)
            continue
        is_only_turn = len(turns) == 1 and not brief.elsewhere
        yield from _turn_section(turn, f"{level}##", limits, is_only_turn=is_only_turn)
    if brief.omitted:
        omitted_text = ", ".join(
            humanize.count(number, *_OMITTED_NOUNS[name]) for name, number in brief.omitted.items()
        )
        yield f"Omitted from this session to fit the budget: {omitted_text}."


def _session_facts(brief: Brief) -> str:
    turn_count = sum(not turn.idle for turn in brief.turns) + brief.omitted.get("turns", 0)
    facts = [
        f"Session {code_span(brief.id, 80)}",
        f"project {code_span(brief.project, 160)}" if brief.project else "",
        f"branch {code_span(brief.branch, 80)}" if brief.branch else "",
        _time_range(brief),
        humanize.count(turn_count, "turn")
        + (f" of {turn_count + brief.elsewhere:,}" if brief.elsewhere else "")
        + (f", {humanize.duration(brief.seconds)} of work" if brief.seconds else ""),
        ", ".join(code_span(humanize.model_name(model), 40) for model in brief.models[:3]),
        _STATUS_TEXTS[brief.standing],
        f"{humanize.count(brief.gaps, 'damaged section')} in the file" if brief.gaps else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _time_range(brief: Brief) -> str:
    start, end = _minute_text(brief.started), _minute_text(brief.ended)
    if not start or not end:
        return start or end
    if start == end:
        return f"{start} UTC"
    return f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC"


def _minute_text(seconds: float | None) -> str:
    return (clock.iso_time(seconds) or "")[:16].replace("T", " ")


def _list_items(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines of a list, and the number of further lines."""
    rows = list(lines)
    yield from (f"- {row}" for row in rows[:_MAX_ROWS])
    if len(rows) > _MAX_ROWS:
        yield f"- … and {len(rows) - _MAX_ROWS:,} more"


def _joined_names(names: Sequence[str], total: int) -> str:
    shown_names = names[:_MAX_LISTED_FILES]
    remainder = f" and {total - len(shown_names):,} more" if total > len(shown_names) else ""
    return ", ".join(shown_names) + remainder


# Open items


def _open_section(open_items: Sequence[OpenItem]) -> Iterator[str]:
    for kind, group in groupby(open_items, key=lambda each: each.kind):
        items = list(group)
        if kind == "uncommitted":
            paths = [code_span(item.text, _MAX_PATH_LENGTH) for item in items]
            count_text = humanize.count(items[0].of, "file")
            yield f"- {count_text} changed but not committed in this session: {_joined_names(paths, items[0].of)}"
        else:
            yield from _list_items(_open_item(each) for each in items)


def _open_item(item: OpenItem) -> str:
    text = code_span(item.text, _MAX_SPAN_LENGTH)
    about = code_span(item.about, _MAX_SPAN_LENGTH)
    match item.kind:
        case "interrupted":
            return f"Last turn interrupted: {text}"
        case "question":
            return f"Unanswered question: {text}"
        case "todo":
            return f"To-do{' (in progress)' if item.about == 'in_progress' else ''}: {text}"
        case "tests":
            return f"Last tests failed: {text} ({about})"
        case "running":
            return f"Sub-agent without a report: {text}"
        case _:
            return f"Unresolved failure: {text}" + (f", {about}" if about else "")


# Work


def _work_section(work: WorkSummary) -> Iterator[str]:
    yield from _list_items(map(_commit_text, work.commits))
    yield from _list_items(map(_pull_request_text, work.pulls))
    if work.files:
        yield f"- {_files_text(work, _MAX_LISTED_FILES)}"
    if work.snapshot_files:
        paths = [code_span(path, _MAX_PATH_LENGTH) for path in work.snapshot_files[:_MAX_LISTED_FILES]]
        number = len(work.snapshot_files)
        more = "more file" if work.files else "file"
        snapshot_text = humanize.count(number, more) + " changed, known only from backups"
        yield f"- {snapshot_text}: {_joined_names(paths, number)}"
    yield from _list_items(f"Tests: {_tests_text(test_run)}" for test_run in work.tests[-_MAX_ROWS:])
    yield from _list_items(map(_subagent_text, work.helpers))
    if work.commands:
        yield f"- Ran {_commands_text(work.commands, _MAX_LISTED_COMMANDS)}"
    if work.tools:
        yield f"- Tool calls: {_tools_text(work)}"


def _commit_text(commit: Commit) -> str:
    name = f"{code_span(commit.hash, 40)} " if commit.hash else ""
    size = f"{humanize.count(commit.files, 'file')}, {humanize.line_changes(commit.added, commit.removed)}"
    details = ", ".join(part for part in (size if commit.files else "", "pushed" if commit.pushed else "") if part)
    return f"Commit {name}{code_span(commit.subject, _MAX_SPAN_LENGTH)}" + (f" ({details})" if details else "")


def _pull_request_text(pull_request: PullRequest) -> str:
    title = code_span(pull_request.title, _MAX_SPAN_LENGTH)
    return f"Pull request {code_span(pull_request.url, 200)}" + (f" {title}" if title else "")


def _files_text(work: WorkSummary, max_files: int) -> str:
    names = [
        f"{code_span(changed_file.path, _MAX_PATH_LENGTH)} {humanize.line_changes(changed_file.added, changed_file.removed)}"
        for changed_file in work.files[:max_files]
    ]
    lines = humanize.line_changes(work.added, work.removed)
    return f"{humanize.count(work.changed, 'file')} changed, {lines}: {_joined_names(names, work.changed)}"


def _tests_text(test_run: TestRun) -> str:
    numbers = [
        f"{number:,} {name}"
        for number, name in ((test_run.failed, "failed"), (test_run.passed, "passed"))
        if number or (number == 0 and name == "passed" and test_run.ok)
    ]
    result = ", ".join(numbers) or ("passed" if test_run.ok else "failed")
    runs = f"; {test_run.times:,} runs, {test_run.bad:,} failed" if test_run.times > 1 else ""
    return f"{code_span(test_run.command, _MAX_COMMAND_LENGTH)} → {result}{runs if test_run.bad else ''}"


def _subagent_text(subagent: SubagentSummary) -> str:
    steps_text = humanize.count(subagent.steps, "step") if subagent.steps else ""
    files = f"{humanize.count(subagent.changed, 'file')} changed" if subagent.changed else ""
    facts = ", ".join(part for part in (code_span(subagent.status, 40), steps_text, files) if part)
    report = code_span(_HEADINGS.sub("", subagent.report), _MAX_SPAN_LENGTH)
    report_text = f"; reported {report}" if report else ""
    return f"Sub-agent {code_span(subagent.kind, 60)} {code_span(subagent.task, _MAX_COMMAND_LENGTH)} ({facts}){report_text}"


def _commands_text(commands: Sequence[CommandRun], max_commands: int) -> str:
    # Show the last commands: they are closest to the current state.
    command_texts = ", ".join(
        code_span(command.command, _MAX_COMMAND_LENGTH)
        + ("" if command.state == "ok" else f" ({code_span(command.outcome, 80) or STATE_TEXTS[command.state]})")
        for command in commands[-max_commands:]
    )
    prefix = f"{len(commands) - max_commands:,} earlier commands, then " if len(commands) > max_commands else ""
    return prefix + command_texts


def _tools_text(work: WorkSummary) -> str:
    counts = ", ".join(f"{code_span(name, 60)} {number:,}" for name, number in work.tools.items())
    read_only_text = f"; {humanize.count(work.looks, 'read-only command')}" if work.looks else ""
    return counts + read_only_text


# Decisions and failures


def _decisions_section(decisions: Iterable[Decision], limits: TextLimits) -> Iterator[str]:
    for decision in decisions:
        match decision.kind:
            case "plan":
                yield f"- Plan approved in turn {decision.turn}:\n\n{fenced_block(decision.text, max(_MAX_PLAN_LENGTH, limits.text))}\n"
            case "answer":
                yield f"- Question {code_span(decision.about, _MAX_SPAN_LENGTH)} answered with {code_span(decision.text, _MAX_SPAN_LENGTH)}"
            case "refused":
                instruction = code_span(decision.text, _MAX_SPAN_LENGTH)
                yield f"- Denied: {code_span(decision.about, _MAX_COMMAND_LENGTH)}" + (
                    f"; instruction: {instruction}" if instruction else ""
                )
            case _:
                yield f"- Stated in turn {decision.turn}: {code_span(decision.text, _MAX_TEXT_LENGTH)}"


def _failures_section(work: WorkSummary) -> Iterator[str]:
    yield from _list_items(map(_failure_text, work.troubles))
    if work.slips and work.troubles:
        yield f"- {humanize.count(work.slips, 'minor failure')}, such as no match or a file not read before."


def _failure_text(failure: Failure) -> str:
    times = f" {failure.times:,} times" if failure.times > 1 else ""
    error_text = code_span(failure.said, _MAX_SPAN_LENGTH)
    subject = f"{code_span(failure.what, _MAX_COMMAND_LENGTH)} failed{times}" + (
        f": {error_text}" if error_text else ""
    )
    if not failure.solved:
        return f"{subject}. Unresolved."
    turn_text = f" in turn {failure.until}" if failure.until != failure.turn else ""
    changed_files = ", ".join(code_span(path, _MAX_PATH_LENGTH) for path in failure.after)
    return f"{subject}. Resolved{turn_text or ' later'}" + (
        f" after changes to {changed_files}." if changed_files else "."
    )


# Turns


def _turn_section(turn: BriefTurn, level: str, limits: TextLimits, *, is_only_turn: bool) -> Iterator[str]:
    """Yield a turn; the section of a session with one turn already contains the work of that turn."""
    started = (clock.iso_time(turn.started) or "")[11:16]
    facts = [
        f"Turn {turn.number}",
        f"{started} UTC" if started else "",
        humanize.duration(turn.seconds),
        "interrupted" if turn.interrupted else "",
        "after a compaction" if turn.compacted else "",
        "" if turn.origin in ("human", "") else f"by {turn.origin}",
    ]
    yield f"{level} {' · '.join(mark for mark in facts if mark)}"
    yield from content_before(turn, limits)
    if turn.text:
        pictures = f" (and {humanize.count(turn.images, 'image')})" if turn.images else ""
        label = "Notification" if turn.origin in _NOTIFICATION_ORIGINS else "Prompt"
        yield f"{label}{pictures}:{quote_text(turn.text, limits.text)}"
    for message in turn.meanwhile:
        yield f"Queued prompt:{quote_text(message, limits.text)}"
    work_texts = list(_turn_work(turn.work))
    if work_texts and not is_only_turn:
        yield f"Work: {'; '.join(work_texts)}."
    texts = [text for text in turn.texts if not text.final]
    compactions_inside = [item for item in turn.compactions if item.order >= 0]
    yield from conversation(texts, turn.calls, limits, compactions_inside)
    yield from content_after(turn, limits)
    if turn.answer:
        yield f"Answer:{quote_text(turn.answer, limits.text)}"


def _turn_work(work: WorkSummary) -> Iterator[str]:
    """Yield the work of a turn, shorter than for a session."""
    if work.tools:
        yield _tools_text(work)
    if work.files:
        yield _files_text(work, 6)
    yield from (f"tests {_tests_text(item)}" for item in work.tests[-2:])
    yield from (f"commit {code_span(each.hash or each.subject, 80)}" for each in work.commits)
    if work.commands:
        yield f"ran {_commands_text(work.commands, 4)}"
    failed = sum(not each.solved for each in work.troubles)
    if failed:
        yield f"{humanize.count(failed, 'unresolved failure')}"
