"""A session as a transcript: per turn the prompt, one line per step, the answer, the figures."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from steno.cli.bodies import body_lines
from steno.console.markdown import markdown_lines
from steno.format.tool_catalogue import FILE_TOOLS, SHELL
from steno.report import words
from steno.safe.terminal import Line, cut, one_line, pad, short_path, width, wrap
from steno.session.story.branches import Branch
from steno.session.story.compactions import Compaction, sizes_of, summary_text
from steno.session.story.prompts import Prompt
from steno.session.story.steps import Step
from steno.session.story.turns import Turn
from steno.session.story.usage import Totals
from steno.session.transcript import Transcript

__all__ = [
    "AGENT_STYLES",
    "Manner",
    "StepTeller",
    "branch_lines",
    "figures",
    "prompt_lines",
    "prose_lines",
    "seam_lines",
    "turn_lines",
    "verb_column",
]

_GUTTER: Final = 11
_PROSE: Final = 84
_RIGHT: Final = 17
_PROMPT: Final = 30
_VERB: Final = 15
_DEEPEST: Final = 4
AGENT_STYLES: Final = ("magenta", "cyan")
_STATES: Final = {
    "failed": ("✗", "red"),
    "denied": ("!", "yellow"),
    "open": ("●", "green"),
    "interrupted": ("◻", ""),
}
_QUIET: Final = frozenset(("note", "hook"))
_UNCOUNTED: Final = _QUIET | {"words", "queued"}
_WHY: Final = {
    "rewind": "abandoned by a rewind",
    "edited": "a prompt that was taken back",
    "dangling": "hangs on a record that is not in the file",
    "second root": "begins on its own",
}


class Manner(msgspec.Struct):
    """How to tell it."""

    width: int = 80
    project: str = ""
    thinking: bool = False
    everything: bool = False
    unicode: bool = True


def turn_lines(transcript: Transcript, turn: Turn, manner: Manner) -> Iterator[Line]:
    """Yield everything about one turn."""
    if turn.opening is not None:
        yield from seam_lines(turn.opening, manner, transcript)
    yield from prompt_lines(turn.prompt, turn.number, turn.started, manner)
    teller = StepTeller(manner)
    yield from _apart(teller.lines(transcript, turn.steps[: turn.before]))
    if turn.answer:
        yield from _apart(["    ", *line] for line in prose_lines(turn.answer, manner))
    yield from _apart(teller.lines(transcript, turn.steps[turn.before :]))
    foot = _foot(transcript, turn, manner.width - 4)
    if foot:
        yield []
        yield ["    ", *foot]
    if turn.closing is not None:
        yield []
        yield from seam_lines(turn.closing, manner, transcript)


def _apart(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, if there are any, with an empty one before them."""
    for place, line in enumerate(lines):
        if not place:
            yield []
        yield line


def prose_lines(text: str, manner: Manner) -> Iterator[Line]:
    """Yield the words of an answer."""
    room = min(manner.width - 4, _PROSE)
    yield from markdown_lines(text, room, unicode=manner.unicode)


def prompt_lines(
    prompt: Prompt | None, number: int, started: datetime | None, manner: Manner
) -> Iterator[Line]:
    """Yield what was asked, beside the number of the turn, if it has one, and the time."""
    clock = words.clock(started.timestamp()) if started else ""
    gutter = f"{number or '':<4}{clock:<5}  "
    if prompt is None:
        yield [(gutter, "bold"), ("│ ", "blue"), ("(no prompt)", "dim")]
        return
    lines = wrap(prompt.text.strip("\n"), min(manner.width - _GUTTER - 2, _PROSE))
    if not manner.everything and len(lines) > _PROMPT:
        left = len(lines)
        lines = [*lines[: _PROMPT - 1], f"… {_PROMPT - 1} of {words.count(left, 'line')}"]
    if prompt.images:
        lines.append(f"[{words.count(prompt.images, 'picture')}]")
    if prompt.origin != "human":
        lines[:0] = [] if prompt.origin in ("command", "shell") else [f"({prompt.origin})"]
    for place, line in enumerate(lines or [""]):
        start = gutter if not place else " " * _GUTTER
        yield [(start, "bold"), ("│ ", "blue"), line]


def _foot(transcript: Transcript, turn: Turn, room: int) -> Line:
    counted = sum(step.kind not in _UNCOUNTED for step in turn.steps)
    parts = figures(counted, turn.duration, turn.usage)
    if context := _context(transcript, turn):
        parts.append(f"context {words.tokens(context)}")
    end = "◻ interrupted" if turn.interrupted else ""
    while len(parts) > 1 and width("  ".join((*parts, end))) > room:
        parts.pop()
    line: Line = [("  ".join(parts), "dim")] if parts else []
    if end:
        line += ["  " if parts else "", (end, "yellow")]
    return line


def figures(steps: int, duration: float | None, usage: Totals) -> list[str]:
    """Return what a turn took: steps, time, tokens."""
    parts = [words.count(steps, "step")] if steps else []
    if duration is not None:
        parts.append(words.duration(duration))
    if usage.messages:
        cached = f" ({usage.cache_read * 100 // usage.context}% cached)" if usage.context else ""
        about = "at least " if usage.estimated else ""
        parts.append(f"{words.tokens(usage.context)} in{cached}")
        parts.append(f"{about}{words.tokens(usage.output)} out")
    return parts


def _context(transcript: Transcript, turn: Turn) -> int:
    """Return how much the model had before it at the end of the turn."""
    for node in reversed(turn.nodes):
        if node.type == "assistant" and not node.sidechain:
            usage = transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return 0


def seam_lines(
    seam: Compaction, manner: Manner, transcript: Transcript | None = None
) -> Iterator[Line]:
    """Yield the line that is drawn where the conversation was compacted.

    Where everything is shown, the summary in the transcript follows.
    """
    said = "compacted" if seam.kind == "full" else "old results dropped"
    parts = [f"{said} ({one_line(seam.trigger)})" if seam.trigger else said]
    if said := words.shrunk(*sizes_of(seam)):
        parts.append(said)
    if said := words.kept_messages(seam.messages_before, seam.messages_kept, seam.ratio):
        parts.append(said)
    elif seam.kept:
        parts.append(f"{words.count(len(seam.kept), 'record')} kept")
    said = cut("  ".join(parts), manner.width - 10)
    dots = "╌" * max(manner.width - width(said) - 8, 2)
    yield [("╌╌╌╌  ", "yellow"), (said, "yellow"), (f"  {dots}", "yellow")]
    yield []
    summary = summary_text(transcript, seam) if manner.everything and transcript else ""
    if summary.strip():
        for line in prose_lines(summary, manner):
            yield ["    ", *line]
        yield []


def branch_lines(branches: Iterable[tuple[int, Branch]], manner: Manner) -> Iterator[Line]:
    """Yield a line or two about each branch that leaves the conversation here."""
    for number, branch in branches:
        usage = words.tokens(branch.usage.output) + " out" if branch.usage.output else ""
        counted = words.count(branch.turns, "turn") if branch.turns else ""
        parts = (f"╌╌ {_WHY.get(branch.why, 'abandoned')}", counted, usage)
        said = "  ".join(part for part in parts if part) + "  "
        how = f"--branch {number}"
        said = cut(said, manner.width - _GUTTER - 1 - len(how))
        yield [" " * _GUTTER, ("├", "dim"), (said, "dim"), how]
        first = _first_words(branch)
        if first:
            room = manner.width - _GUTTER - 4
            yield [" " * _GUTTER, ("┊  ", "dim"), (one_line(first, room), "dim")]


def _first_words(branch: Branch) -> str:
    for node in branch.nodes:
        if node.type in ("user", "human") and not node.meta and not node.results:
            return branch.transcript.record(node).text
    return ""


def verb_column(steps: Iterable[Step], least: int = 6) -> int:
    """Return how many columns the verbs of some steps take."""
    verbs = [width(one_line(step.verb)) for step in steps if step.kind != "words"]
    return min(max((*verbs, least)), _VERB)


class StepTeller:
    """Writes steps; sub-agents get their colours in order of appearance."""

    def __init__(self, manner: Manner, depth: int = 0) -> None:
        self._manner = manner
        self._depth = depth
        self._agents = 0

    def lines(self, transcript: Transcript, steps: Iterable[Step]) -> Iterator[Line]:
        """Yield the lines of some steps, those of sub-agents behind a rail of their colour."""
        shown = [step for step in steps if self.is_shown(step)]
        column = verb_column([step for step in shown if step.seam is None])
        for step in shown:
            yield from self.step(transcript, step, column)

    def is_shown(self, step: Step) -> bool:
        """Whether a step is shown, or is one that is shown on demand."""
        is_quiet = step.kind in _QUIET and step.state != "failed" and step.seam is None
        return self._manner.everything or not is_quiet

    def step(self, transcript: Transcript, step: Step, column: int) -> Iterator[Line]:
        """Yield the lines of one step; its verb takes `column` columns."""
        room = self._manner.width
        if step.seam is not None:
            yield []
            yield from seam_lines(step.seam, self._manner, transcript)
            return
        match step.kind:
            case "words" if step.call is not None:
                text = transcript.record(step.call).text or step.subject
                for line in prose_lines(text, self._manner):
                    yield ["    ", *line]
            case "queued":
                yield ["  ", ("┊ ", "blue"), ("queued  ", "dim"), one_line(step.subject, room - 14)]
            case "agent":
                yield from self._agent(step, column)
            case _:
                body = list(self.body(transcript, step))
                yield self._line(step, column, opened=bool(body))
                yield from body

    def _body(self, transcript: Transcript, step: Step, room: int) -> Iterator[Line]:
        if step.kind == "thought":
            if self._manner.thinking and step.call is not None:
                for line in wrap(transcript.record(step.call).thinking, min(room - 5, _PROSE)):
                    yield ["   ", ("│ ", "dim"), (line, "dim")]
            return
        yield from body_lines(transcript, step, room, everything=self._manner.everything)

    def _agent(self, step: Step, column: int) -> Iterator[Line]:
        who = AGENT_STYLES[self._agents % len(AGENT_STYLES)]
        self._agents += 1
        # A notification names its agent once more; the story is told at the call.
        thread = step.agent if self._depth < _DEEPEST and step.call_id else None
        opened = thread is not None and bool(thread.turns)
        yield self._line(step, column, opened=opened, who=who)
        if thread is None or not opened:
            return
        # The rail takes six columns of what its lines have to themselves.
        narrow = msgspec.structs.replace(self._manner, width=self._manner.width - 6)
        steps = thread.steps_with_deleted if narrow.everything else thread.steps
        for line in StepTeller(narrow, self._depth + 1).lines(thread.transcript, steps):
            yield ["    ", ("│ ", who), *line]
        if thread.report:
            said = one_line(thread.report, narrow.width - 2)
            yield ["    ", ("└ ", who), ("  ", ""), said]

    def called(self, step: Step, column: int, who: str = "") -> Line:
        """Return the line of a call whose result is still to come."""
        said, _ = self._said(step, self._manner.width - column - 6)
        return [
            ("  ● ", "green"),
            (pad(one_line(step.verb), column), f"bold {who}" if who else "bold"),
            "  ",
            *said,
        ]

    def came(self, step: Step) -> Line:
        """Return what came of a call, for the line below the one that told of the call."""
        mark, mark_style = _mark(step)
        room = self._manner.width - 6 - _RIGHT
        style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
        said = pad(one_line(step.outcome) or "done", room)
        right = _right(step)
        return [
            ("    └ ", "dim"),
            (said, style),
            (right if mark else right.rstrip(), "dim"),
            (f" {mark}" if mark else "", mark_style),
        ]

    def body(self, transcript: Transcript, step: Step) -> Iterator[Line]:
        """Yield what is worth opening in a step."""
        for line in self._body(transcript, step, self._manner.width - 4):
            yield ["  ", *line]

    def _line(self, step: Step, column: int, *, opened: bool = False, who: str = "") -> Line:
        mark, mark_style = _mark(step)
        right = _right(step)
        style = "bold red" if step.state == "failed" else f"bold {who}" if who else "bold"
        left = self._manner.width - column - 6 - _RIGHT
        said, used = self._said(step, left)
        return [
            ("  ▾ " if opened else "  ▸ ", "dim"),
            (pad(one_line(step.verb), column), style if step.kind != "unknown" else "dim"),
            "  ",
            *said,
            " " * max(left - used, 0),
            (right if mark else right.rstrip(), "dim"),
            (f" {mark}" if mark else "", mark_style),
        ]

    def _said(self, step: Step, room: int) -> tuple[Line, int]:
        """Return subject and outcome in at most that many columns, and how many they take."""
        wish = room - width(one_line(step.subject, room)) - 2
        outcome = one_line(step.outcome, min(max(wish, room // 2, 8), room))
        left = max(room - (width(outcome) + 2 if outcome else 0), 0)
        line: Line = []
        if step.verb in FILE_TOOLS:
            folder, name = short_path(self._relative(step.subject), left)
            used = width(folder) + width(name)
            line += [(folder, "dim"), name]
        else:
            subject = one_line(step.subject, left)
            used = width(subject)
            line.append((subject, "dim" if step.kind == "thought" else ""))
        if outcome:
            style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
            line += ["  " if used else "", (outcome, style)]
            used += width(outcome) + (2 if used else 0)
        return line, used

    def _relative(self, path: str) -> str:
        project = self._manner.project
        inside = project and path.startswith((f"{project}/", f"{project}\\"))
        return path[len(project) + 1 :] if inside else path


def _right(step: Step) -> str:
    tokens = words.tokens(step.tokens) if step.tokens else ""
    return f"{tokens:>6} {words.duration(step.duration):>7}"


def _mark(step: Step) -> tuple[str, str]:
    if step.kind == "error" and step.state == "ok":
        return "✓", "yellow"
    if step.state in _STATES:
        return _STATES[step.state]
    return ("✓", "green") if step.verb == SHELL and step.state == "ok" else ("", "")
