"""Transcript of a session as lines or JSON: header, turns, steps, and abandoned branches.

A turn shows the prompt, one line per step, short diffs and output, the answer and the usage.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from steno.cli.output.screen import Screen
from steno.errors import NotFound
from steno.format.dialects.detection import dialect_label, records_in_dialect
from steno.format.line_diff import numbered_changes
from steno.format.message import ToolUse
from steno.format.paths import SHORT_ID_LENGTH
from steno.format.records import Record
from steno.format.tool_catalogue import FILE_TOOLS, SHELL, TEXT_EDITING_TOOLS
from steno.report import humanize
from steno.report.humanize import MINUS_SIGN
from steno.report.markdown_renderer import markdown_lines
from steno.sanitize.terminal import (
    StyledLine,
    StyledText,
    clean,
    display_width,
    one_line,
    pad,
    shorten_path,
    strip_colours,
    truncate,
    wrap,
)
from steno.session.session import Session
from steno.session.transcript import Transcript
from steno.session.turns.branches import Branch
from steno.session.turns.compactions import Compaction, context_sizes, summary_text
from steno.session.turns.prompts import Prompt, shorten_title
from steno.session.turns.steps import Step
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn, work_milliseconds
from steno.session.turns.usage import Totals
from steno.store import environment
from steno.store.discovery import DiscoveredFile
from steno.store.summary import SessionSummary, summarize

_GUTTER_WIDTH: Final = 11
_MAX_PROSE_WIDTH: Final = 84
_RIGHT_WIDTH: Final = 17
_MAX_PROMPT_LINES: Final = 30
_MAX_VERB_WIDTH: Final = 15
_MAX_DEPTH: Final = 4
_MAX_DIFF_LINES: Final = 10
_MAX_OUTPUT_LINES: Final = 8
_LINE_NUMBER_WIDTH: Final = 5
_DIFF_MARKS: Final = {"+": ("+", "green"), "-": (MINUS_SIGN, "red")}
AGENT_STYLES: Final = ("magenta", "cyan")
_STATE_MARKS: Final = {
    "failed": ("✗", "red"),
    "denied": ("!", "yellow"),
    "open": ("●", "green"),
    "interrupted": ("◻", ""),
}
_HIDDEN_KINDS: Final = frozenset(("note", "hook"))
_UNCOUNTED_KINDS: Final = _HIDDEN_KINDS | {"words", "queued"}
_BRANCH_REASONS: Final = {
    "rewind": "abandoned by a rewind",
    "edited": "abandoned by an edited prompt",
    "dangling": "parent record missing",
    "second root": "separate root",
}


class RenderOptions(msgspec.Struct):
    """How to render a transcript."""

    width: int = 80
    project: str = ""
    thinking: bool = False
    show_all: bool = False
    unicode: bool = True


def turn_lines(transcript: Transcript, turn: Turn, options: RenderOptions) -> Iterator[StyledLine]:
    """Yield the lines of a turn."""
    if turn.opening is not None:
        yield from compaction_lines(turn.opening, options, transcript)
    yield from prompt_lines(turn.prompt, turn.number, turn.started, options)
    renderer = StepRenderer(options)
    yield from _with_blank_line(renderer.lines(transcript, turn.steps[: turn.before]))
    if turn.answer:
        yield from _with_blank_line(["    ", *line] for line in prose_lines(turn.answer, options))
    yield from _with_blank_line(renderer.lines(transcript, turn.steps[turn.before :]))
    foot = _turn_footer(transcript, turn, options.width - 4)
    if foot:
        yield []
        yield ["    ", *foot]
    if turn.closing is not None:
        yield []
        yield from compaction_lines(turn.closing, options, transcript)


def _with_blank_line(lines: Iterable[StyledLine]) -> Iterator[StyledLine]:
    """Yield the lines, after an empty line if there are any."""
    for index, line in enumerate(lines):
        if not index:
            yield []
        yield line


def prose_lines(text: str, options: RenderOptions) -> Iterator[StyledLine]:
    """Yield Markdown text as wrapped lines."""
    available = min(options.width - 4, _MAX_PROSE_WIDTH)
    yield from markdown_lines(text, available, unicode=options.unicode)


def prompt_lines(
    prompt: Prompt | None, number: int, started: datetime | None, options: RenderOptions
) -> Iterator[StyledLine]:
    """Yield a prompt, after the turn number and start time."""
    start_time = humanize.time_of_day(started.timestamp()) if started else ""
    gutter = f"{number or '':<4}{start_time:<5}  "
    if prompt is None:
        yield [(gutter, "bold"), ("│ ", "blue"), ("(no prompt)", "dim")]
        return
    lines = wrap(prompt.text.strip("\n"), min(options.width - _GUTTER_WIDTH - 2, _MAX_PROSE_WIDTH))
    if not options.show_all and len(lines) > _MAX_PROMPT_LINES:
        total = len(lines)
        lines = [*lines[: _MAX_PROMPT_LINES - 1], f"… {_MAX_PROMPT_LINES - 1} of {humanize.count(total, 'line')}"]
    if prompt.images:
        lines.append(f"[{humanize.count(prompt.images, 'image')}]")
    if prompt.origin != "human":
        lines[:0] = [] if prompt.origin in ("command", "shell") else [f"({prompt.origin})"]
    for index, line in enumerate(lines or [""]):
        start = gutter if not index else " " * _GUTTER_WIDTH
        yield [(start, "bold"), ("│ ", "blue"), line]


def _turn_footer(transcript: Transcript, turn: Turn, available: int) -> StyledLine:
    counted = sum(step.kind not in _UNCOUNTED_KINDS for step in turn.steps)
    parts = usage_parts(counted, turn.duration, turn.usage)
    if context := _context_tokens(transcript, turn):
        parts.append(f"context {humanize.tokens(context)}")
    end = "◻ interrupted" if turn.interrupted else ""
    while len(parts) > 1 and display_width("  ".join((*parts, end))) > available:
        parts.pop()
    line: StyledLine = [("  ".join(parts), "dim")] if parts else []
    if end:
        line += ["  " if parts else "", (end, "yellow")]
    return line


def usage_parts(steps: int, duration: float | None, usage: Totals) -> list[str]:
    """Return the usage of a turn: steps, duration, tokens."""
    parts = [humanize.count(steps, "step")] if steps else []
    if duration is not None:
        parts.append(humanize.duration(duration))
    if usage.messages:
        cached = f" ({usage.cache_read * 100 // usage.context}% cached)" if usage.context else ""
        prefix = "at least " if usage.estimated else ""
        parts.append(f"{humanize.tokens(usage.context)} in{cached}")
        parts.append(f"{prefix}{humanize.tokens(usage.output)} out")
    return parts


def _context_tokens(transcript: Transcript, turn: Turn) -> int:
    """Return the context size in tokens at the end of a turn."""
    for node in reversed(turn.nodes):
        if node.type == "assistant" and not node.sidechain:
            usage = transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return 0


def compaction_lines(
    compaction: Compaction, options: RenderOptions, transcript: Transcript | None = None
) -> Iterator[StyledLine]:
    """Yield the line of a compaction.

    With `show_all` and a transcript, the summary follows.
    """
    text = "compacted" if compaction.kind == "full" else "old tool results removed"
    parts = [f"{text} ({one_line(compaction.trigger)})" if compaction.trigger else text]
    if text := humanize.token_reduction(*context_sizes(compaction)):
        parts.append(text)
    if text := humanize.kept_message_count(compaction.messages_before, compaction.messages_kept, compaction.ratio):
        parts.append(text)
    elif compaction.kept:
        parts.append(f"{humanize.count(len(compaction.kept), 'record')} kept")
    text = truncate("  ".join(parts), options.width - 10)
    dots = "╌" * max(options.width - display_width(text) - 8, 2)
    yield [("╌╌╌╌  ", "yellow"), (text, "yellow"), (f"  {dots}", "yellow")]
    yield []
    summary = summary_text(transcript, compaction) if options.show_all and transcript else ""
    if summary.strip():
        for line in prose_lines(summary, options):
            yield ["    ", *line]
        yield []


def _branch_lines(branches: Iterable[tuple[int, Branch]], options: RenderOptions) -> Iterator[StyledLine]:
    """Yield one or two lines for each branch that starts here."""
    for number, branch in branches:
        usage = humanize.tokens(branch.usage.output) + " out" if branch.usage.output else ""
        counted = humanize.count(branch.turns, "turn") if branch.turns else ""
        parts = (f"╌╌ {_BRANCH_REASONS.get(branch.why, 'abandoned')}", counted, usage)
        label = "  ".join(part for part in parts if part) + "  "
        how = f"--branch {number}"
        label = truncate(label, options.width - _GUTTER_WIDTH - 1 - len(how))
        yield [" " * _GUTTER_WIDTH, ("├", "dim"), (label, "dim"), how]
        first = _first_prompt(branch)
        if first:
            available = options.width - _GUTTER_WIDTH - 4
            yield [" " * _GUTTER_WIDTH, ("┊  ", "dim"), (one_line(first, available), "dim")]


def _first_prompt(branch: Branch) -> str:
    for node in branch.nodes:
        if node.type in ("user", "human") and not node.meta and not node.results:
            return branch.transcript.record(node).text
    return ""


def verb_column_width(steps: Iterable[Step], min_width: int = 6) -> int:
    """Return the width of the verb column for some steps."""
    verbs = [display_width(one_line(step.verb)) for step in steps if step.kind != "words"]
    return min(max((*verbs, min_width)), _MAX_VERB_WIDTH)


class StepRenderer:
    """Renders steps; sub-agents get colours in order of appearance."""

    def __init__(self, options: RenderOptions, depth: int = 0) -> None:
        self._options = options
        self._nesting_depth = depth
        self._agent_count = 0

    def lines(self, transcript: Transcript, steps: Iterable[Step]) -> Iterator[StyledLine]:
        """Yield the lines of steps; those of sub-agents are indented after a coloured rail."""
        visible = [step for step in steps if self.is_shown(step)]
        column = verb_column_width([step for step in visible if step.seam is None])
        for step in visible:
            yield from self.step_lines(transcript, step, column)

    def is_shown(self, step: Step) -> bool:
        """Return whether a step is shown with the current options."""
        is_quiet = step.kind in _HIDDEN_KINDS and step.state != "failed" and step.seam is None
        return self._options.show_all or not is_quiet

    def step_lines(self, transcript: Transcript, step: Step, column: int) -> Iterator[StyledLine]:
        """Yield the lines of a step; its verb takes `column` columns."""
        available = self._options.width
        if step.seam is not None:
            yield []
            yield from compaction_lines(step.seam, self._options, transcript)
            return
        match step.kind:
            case "words" if step.call is not None:
                text = transcript.record(step.call).text or step.subject
                for line in prose_lines(text, self._options):
                    yield ["    ", *line]
            case "queued":
                yield ["  ", ("┊ ", "blue"), ("queued  ", "dim"), one_line(step.subject, available - 14)]
            case "agent":
                yield from self._agent_lines(step, column)
            case _:
                body = list(self.body_lines(transcript, step))
                yield self._step_line(step, column, is_expanded=bool(body))
                yield from body

    def _step_body_lines(self, transcript: Transcript, step: Step, available: int) -> Iterator[StyledLine]:
        if step.kind == "thought":
            if self._options.thinking and step.call is not None:
                for line in wrap(transcript.record(step.call).thinking, min(available - 5, _MAX_PROSE_WIDTH)):
                    yield ["   ", ("│ ", "dim"), (line, "dim")]
            return
        show_all = self._options.show_all
        if step.verb in TEXT_EDITING_TOOLS and step.state in ("ok", "open"):
            rows = list(_diff_rows(transcript, step))
            yield from _diff_row_lines(rows, available, len(rows) if show_all else _MAX_DIFF_LINES)
        elif step.result is not None and (step.state == "failed" or (show_all and step.verb == SHELL)):
            yield from _output_lines(transcript.record(step.result), step, available, show_all=show_all)

    def _agent_lines(self, step: Step, column: int) -> Iterator[StyledLine]:
        agent_style = AGENT_STYLES[self._agent_count % len(AGENT_STYLES)]
        self._agent_count += 1
        # Notifications name the sub-agent again; its steps are shown at the call.
        thread = step.agent if self._nesting_depth < _MAX_DEPTH and step.call_id else None
        is_expanded = thread is not None and bool(thread.turns)
        yield self._step_line(step, column, is_expanded=is_expanded, agent_style=agent_style)
        if thread is None or not is_expanded:
            return
        # The rail takes six columns.
        nested_options = msgspec.structs.replace(self._options, width=self._options.width - 6)
        steps = thread.steps_with_deleted if nested_options.show_all else thread.steps
        for line in StepRenderer(nested_options, self._nesting_depth + 1).lines(thread.transcript, steps):
            yield ["    ", ("│ ", agent_style), *line]
        if thread.report:
            report = one_line(thread.report, nested_options.width - 2)
            yield ["    ", ("└ ", agent_style), ("  ", ""), report]

    def call_line(self, step: Step, column: int, agent_style: str = "") -> StyledLine:
        """Return the line of a tool call without a result yet."""
        subject, _ = self._subject_and_outcome(step, self._options.width - column - 6)
        return [
            ("  ● ", "green"),
            (pad(one_line(step.verb), column), f"bold {agent_style}" if agent_style else "bold"),
            "  ",
            *subject,
        ]

    def result_line(self, step: Step) -> StyledLine:
        """Return the result of a tool call, for the line below the call."""
        mark, mark_style = _state_mark(step)
        available = self._options.width - 6 - _RIGHT_WIDTH
        style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
        outcome = pad(one_line(step.outcome) or "done", available)
        right = _tokens_and_duration(step)
        return [
            ("    └ ", "dim"),
            (outcome, style),
            (right if mark else right.rstrip(), "dim"),
            (f" {mark}" if mark else "", mark_style),
        ]

    def body_lines(self, transcript: Transcript, step: Step) -> Iterator[StyledLine]:
        """Yield the body of a step: thinking, diff or output."""
        for line in self._step_body_lines(transcript, step, self._options.width - 4):
            yield ["  ", *line]

    def _step_line(self, step: Step, column: int, *, is_expanded: bool = False, agent_style: str = "") -> StyledLine:
        mark, mark_style = _state_mark(step)
        right = _tokens_and_duration(step)
        style = "bold red" if step.state == "failed" else f"bold {agent_style}" if agent_style else "bold"
        subject_width = self._options.width - column - 6 - _RIGHT_WIDTH
        subject, used_width = self._subject_and_outcome(step, subject_width)
        return [
            ("  ▾ " if is_expanded else "  ▸ ", "dim"),
            (pad(one_line(step.verb), column), style if step.kind != "unknown" else "dim"),
            "  ",
            *subject,
            " " * max(subject_width - used_width, 0),
            (right if mark else right.rstrip(), "dim"),
            (f" {mark}" if mark else "", mark_style),
        ]

    def _subject_and_outcome(self, step: Step, available: int) -> tuple[StyledLine, int]:
        """Return subject and outcome in at most `available` columns, and the width used."""
        preferred_outcome_width = available - display_width(one_line(step.subject, available)) - 2
        outcome = one_line(step.outcome, min(max(preferred_outcome_width, available // 2, 8), available))
        subject_width = max(available - (display_width(outcome) + 2 if outcome else 0), 0)
        line: StyledLine = []
        if step.verb in FILE_TOOLS:
            folder, name = shorten_path(self._relative_path(step.subject), subject_width)
            used_width = display_width(folder) + display_width(name)
            line += [(folder, "dim"), name]
        else:
            subject = one_line(step.subject, subject_width)
            used_width = display_width(subject)
            line.append((subject, "dim" if step.kind == "thought" else ""))
        if outcome:
            style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
            line += ["  " if used_width else "", (outcome, style)]
            used_width += display_width(outcome) + (2 if used_width else 0)
        return line, used_width

    def _relative_path(self, path: str) -> str:
        project = self._options.project
        inside = project and path.startswith((f"{project}/", f"{project}\\"))
        return path[len(project) + 1 :] if inside else path


def _tokens_and_duration(step: Step) -> str:
    tokens = humanize.tokens(step.tokens) if step.tokens else ""
    return f"{tokens:>6} {humanize.duration(step.duration):>7}"


def _state_mark(step: Step) -> tuple[str, str]:
    if step.kind == "error" and step.state == "ok":
        return "✓", "yellow"
    if step.state in _STATE_MARKS:
        return _STATE_MARKS[step.state]
    return ("✓", "green") if step.verb == SHELL and step.state == "ok" else ("", "")


class SessionTranscript:
    """Transcript of a session for a screen."""

    def __init__(self, file: DiscoveredFile, session: Session, screen: Screen) -> None:
        self._file = file
        self._screen = screen
        self._session = session
        self._summary: SessionSummary = summarize(file, environment.now())
        self._name = session.id[:SHORT_ID_LENGTH]

    def render_options(self, *, thinking: bool, show_all: bool) -> RenderOptions:
        """Return the render options for this screen."""
        return RenderOptions(
            width=self._screen.width,
            project=self._summary.project,
            thinking=thinking,
            show_all=show_all,
            unicode=self._screen.styler.unicode,
        )

    def lines(
        self, options: RenderOptions, turn: int | None, branch: int | None, agent: str | None
    ) -> Iterator[StyledLine]:
        """Yield the transcript, or the selected turn, branch or sub-agent."""
        transcript, turns = self._transcript_and_turns(branch, agent)
        chosen = _select_turn(_with_deleted(turns, show_all=options.show_all), turn)
        yield from self.header_lines(turns, branch=branch, agent=agent)
        main = branch is None and agent is None
        for selected_turn in chosen:
            yield []
            yield from turn_lines(transcript, selected_turn, options)
            if main:
                yield from _with_blank_line(_branch_lines(self._branches_after(selected_turn), options))
        if main and turn is None:
            yield from _with_blank_line(_branch_lines(self._unplaced_branches(turns), options))
            yield from self._unlisted_lines()

    def _unlisted_lines(self) -> Iterator[StyledLine]:
        """Yield gaps in the file, and sub-agents without a tool call."""
        gaps = [gap for gap in self._session.transcript.gaps if gap.damage]
        if gaps:
            lost_size = humanize.size(sum(gap.length for gap in gaps))
            text = f"{humanize.count(len(gaps), 'gap')} in the file, {lost_size} without a valid record"
            yield []
            yield self._line_with_hint(("! ", "yellow"), text, "  use --records to show")
        for thread in self._session.loose_agents:
            if not thread.warmup:
                text = f"sub-agent {thread.agent_id}  {thread.description or thread.prompt}"
                yield self._line_with_hint(("▪ ", "dim"), text, "  use --agent ID to show")

    def _line_with_hint(self, mark: StyledText, text: str, hint: str) -> StyledLine:
        available = self._screen.width - 2
        text = one_line(text, max(available - len(hint), available // 2))
        return [mark, text, (truncate(hint, available - display_width(text)), "dim")]

    def _transcript_and_turns(self, branch: int | None, agent: str | None) -> tuple[Transcript, list[Turn]]:
        if agent is not None:
            thread = self._find_agent(agent)
            return thread.transcript, thread.turns
        turns = self._session.turns() if branch is None else self._branch_turns(branch)
        return self._session.transcript, turns

    def _branch_turns(self, number: int) -> list[Turn]:
        """Return the turns of an abandoned branch that are not in the conversation."""
        branches = self._session.branches
        if not 1 <= number <= len(branches):
            explanation = f"the session has {len(branches)}" if branches else "the session has no abandoned branches"
            raise NotFound(f"no branch {number}; {explanation}")
        branch_indexes = {node.index for node in branches[number - 1].nodes}
        turns = self._session.turns(branches[number - 1].leaf)
        return [turn for turn in turns if any(node.index in branch_indexes for node in turn.nodes)]

    def _find_agent(self, name: str) -> Thread:
        """Return the sub-agent whose ID starts with `name`."""
        prefix = name.removeprefix("agent-")
        agents = self._session.all_agents
        matches = [thread for thread in agents if prefix and thread.agent_id.startswith(prefix)]
        if len(matches) == 1:
            return matches[0]
        many = f"{name!r} matches {len(matches)} sub-agents" if matches else f"no sub-agent matches {name!r}"
        known_ids = ", ".join(thread.agent_id for thread in agents[:8] if thread.agent_id)
        raise NotFound(many, hint=f"Sub-agents: {known_ids}." if known_ids else "")

    def header_lines(
        self, turns: list[Turn], *, branch: int | None = None, agent: str | None = None
    ) -> Iterator[StyledLine]:
        """Yield the title of the session, and the figures of the given turns."""
        summary, width = self._summary, self._screen.width
        yield [(one_line(self._title(turns), width), "bold")]
        if agent:
            thread = self._find_agent(agent)
            text = one_line(f"{thread.kind}  {thread.description}", width - 40)
            yield [("sub-agent ", "dim"), (thread.agent_id, "bold magenta"), "  ", text]
        if branch is not None:
            yield [(f"abandoned branch {branch} of {len(self._session.branches)}", "yellow")]
        work_seconds = work_milliseconds(turns) / 1000
        parts = (
            humanize.project_name(summary.project),
            summary.branch,
            humanize.model_name(summary.model),
            humanize.count(len(turns), "turn"),
            humanize.duration(work_seconds) if work_seconds else "",
            "" if summary.status in ("finished", "empty") else summary.status,
            dialect_label(self._session.transcript.source),
        )
        details = truncate("  ".join(one_line(part) for part in parts if part), width - 10)
        yield [(self._name, "bold"), (f"  {details}", "dim")]

    def _title(self, turns: list[Turn]) -> str:
        title = self._session.title
        if title.source == "summary":
            return title.text
        first = turns[0].prompt if turns else None
        return self._summary.title or (shorten_title(first.text) if first else "") or title.text

    def _branches_after(self, turn: Turn) -> Iterator[tuple[int, Branch]]:
        turn_indexes = {node.index for node in turn.nodes}
        for number, branch in enumerate(self._session.branches, 1):
            if branch.fork is not None and branch.fork.index in turn_indexes:
                yield number, branch

    def _unplaced_branches(self, turns: list[Turn]) -> Iterator[tuple[int, Branch]]:
        """Yield branches that start at no turn: second roots, and branches of branches."""
        turn_indexes = {node.index for turn in turns for node in turn.nodes}
        for number, branch in enumerate(self._session.branches, 1):
            if branch.fork is None or branch.fork.index not in turn_indexes:
                yield number, branch

    def as_json(
        self, turn: int | None, branch: int | None, agent: str | None, *, show_all: bool = False
    ) -> dict[str, Any]:
        """Return the transcript as JSON; deleted records only with `show_all`."""
        _, turns = self._transcript_and_turns(branch, agent)
        summary = self._summary
        return {
            "id": summary.id,
            "title": self._title(turns),
            "project": summary.project,
            "branch": summary.branch,
            "model": summary.model,
            "version": summary.version,
            "dialect": summary.dialect,
            "records_in_dialect": records_in_dialect(self._session.transcript.source),
            "status": summary.status,
            "turns": [_turn_json(entry) for entry in _select_turn(_with_deleted(turns, show_all=show_all), turn)],
            "abandoned": [_branch_json(each) for each in self._session.branches],
        }


def _with_deleted(turns: list[Turn], *, show_all: bool) -> list[Turn]:
    """Return the turns to show, with deleted records only if `show_all`."""
    return [turn.with_deleted() for turn in turns] if show_all else turns


def _select_turn(turns: list[Turn], number: int | None) -> list[Turn]:
    if number is None:
        return turns
    chosen = [turn for turn in turns if turn.number == number]
    if not chosen:
        numbers = sorted({turn.number for turn in turns})
        available = (
            f"turns {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"turn {numbers[0]}" if numbers else ""
        )
        raise NotFound(
            f"no turn {number}", hint=f"Available: {available}." if available else "The session has no turns."
        )
    return chosen


def _branch_json(branch: Branch) -> dict[str, Any]:
    return {
        "why": branch.why,
        "fork": branch.fork.uuid if branch.fork else None,
        "leaf": branch.leaf.uuid,
        "records": len(branch.nodes),
        "turns": branch.turns,
        "usage": msgspec.to_builtins(branch.usage),
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    prompt = turn.prompt
    return {
        "number": turn.number,
        "prompt": prompt
        and {"text": prompt.text, "origin": prompt.origin, "images": prompt.images, "uuid": prompt.node.uuid},
        "steps": [step_json(step) for step in turn.steps],
        "answer": turn.answer,
        "started": turn.started,
        "ended": turn.ended,
        "duration": turn.duration,
        "usage": msgspec.to_builtins(turn.usage),
        "files": msgspec.to_builtins(turn.files),
        "commands": turn.commands,
        "errors": turn.errors,
        "interrupted": turn.interrupted,
        "compaction": turn.compaction and compaction_json(turn.compaction),
        "closing": turn.closing and compaction_json(turn.closing),
    }


def compaction_json(compaction: Compaction) -> dict[str, Any]:
    """Return a compaction as JSON."""
    names = ("kind", "trigger", "pre_tokens", "post_tokens", "messages_before", "messages_kept", "ratio")
    return {name: getattr(compaction, name) for name in names}


def step_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON."""
    names = ("kind", "verb", "subject", "outcome", "state", "started", "duration", "tokens")
    return {
        **{name: getattr(step, name) for name in names},
        "call": step.call.uuid if step.call else None,
        "result": step.result.uuid if step.result else None,
        "agent": step.agent.agent_id if step.agent else None,
    }


def _diff_row_lines(rows: list[tuple[int | None, str, str]], width: int, max_rows: int) -> Iterator[StyledLine]:
    for number, sign, text in rows[:max_rows]:
        mark, style = _DIFF_MARKS.get(sign, (sign, ""))
        visible = truncate(clean(text.expandtabs(4)), width - _LINE_NUMBER_WIDTH - 4)
        count = "" if number is None else str(number)
        yield [(f"{count:>{_LINE_NUMBER_WIDTH}} ", "dim"), (f"{mark} {visible}", style)]
    if len(rows) > max_rows:
        yield [" " * (_LINE_NUMBER_WIDTH + 3), (f"{max_rows} of {humanize.count(len(rows), 'line')}", "dim")]


def _diff_rows(transcript: Transcript, step: Step) -> Iterator[tuple[int | None, str, str]]:
    from steno.format.record_views import result_view

    raw = transcript.record(step.result).envelope.tool_use_result if step.result is not None else None
    hunks = getattr(result_view(step.verb, bytes(raw)) if raw else None, "structured_patch", None)
    for index, hunk in enumerate(hunks or ()):
        if index:
            yield None, " ", "…"
        yield from numbered_changes(hunk.lines or (), int(hunk.old_start or 1), int(hunk.new_start or 1))
    if hunks:
        return
    for old, new in _replaced_strings(transcript, step):
        yield from ((None, "-", line) for line in old.splitlines())
        yield from ((None, "+", line) for line in new.splitlines())


def _replaced_strings(transcript: Transcript, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the pairs of old and new text from the input of an edit call."""
    if step.call is None:
        return
    from steno.format.record_views import input_view

    for block in transcript.record(step.call).blocks:
        if not isinstance(block, ToolUse) or block.id != step.call_id or not block.raw_input:
            continue
        tool_input = input_view(block.name, bytes(block.raw_input))
        for edit in getattr(tool_input, "edits", None) or (tool_input,):
            old = getattr(edit, "old_string", None) or ""
            new = getattr(edit, "new_string", None) or getattr(edit, "content", None) or ""
            yield str(old), str(new)


def _output_lines(record: Record, step: Step, width: int, *, show_all: bool) -> Iterator[StyledLine]:
    text = next((r.text for r in record.tool_results if r.tool_use_id == step.call_id), "")
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    lines = [line.rstrip() for line in strip_colours(text).split("\n") if line.strip()]
    if lines and lines[0].startswith("Exit code"):
        lines = lines[1:]
    visible = lines if show_all else lines[-_MAX_OUTPUT_LINES:]
    for line in visible:
        yield ["     ", (truncate(clean(line.expandtabs(4)), width - 5), "dim")]
    if len(visible) < len(lines):
        yield ["     ", (f"last {len(visible)} of {humanize.count(len(lines), 'line')}", "dim")]
