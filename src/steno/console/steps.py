"""A step on one line, as `steno show` has it, and what is worth opening below it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from steno.format.encode import encode_line
from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.tool_catalogue import AGENT_TOOLS, FILE_TOOLS, SHELL, TEXT_EDITING_TOOLS
from steno.format.values import as_list, as_object
from steno.report import words
from steno.safe.terminal import Line, clean, cut, one_line, pad, short_path, width, without_colours
from steno.session.story.outcomes import outcome_of, subject_of, touch_of
from steno.tools.base import ToolResult

__all__ = ["Told", "body_lines", "diff_lines", "step_line", "subject", "told", "verb_of"]

_VERB: Final = 8
_LONGEST_VERB: Final = 15
_RIGHT: Final = 17
_DIFF: Final = 10
_OUTPUT: Final = 8
_NUMBER: Final = 5
_PER_TOKEN: Final = 4
_MINUS: Final = "\N{MINUS SIGN}"
_MARKS: Final = {"failed": ("✗", "red"), "denied": ("!", "yellow"), "interrupted": ("◻", "")}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A step, in words."""

    verb: str
    subject: str = ""
    outcome: str = ""
    state: str = "ok"
    tokens: int = 0
    seconds: float | None = None
    who: str = ""
    """The colour of a sub-agent."""


def verb_of(call: dict[str, Any]) -> str:
    """Return what a call is called: its tool, or the kind of its sub-agent."""
    name = str(call.get("name"))
    if name in AGENT_TOOLS:
        return str((as_object(call.get("input")) or {}).get("subagent_type") or "agent")
    if name.startswith("mcp__"):
        return ".".join(name.split("__")[1:])
    return name


def subject(call: dict[str, Any]) -> str:
    """Return what a call is about."""
    return subject_of(str(call.get("name")), as_object(call.get("input")) or {})


def told(call: dict[str, Any], outcome: ToolResult, seconds: float, *, refused: bool) -> Told:
    """Return a call and what came of it, in the words that the record of it gets everywhere."""
    name = str(call.get("name"))
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": str(call.get("id")),
        "content": outcome.content,
        "is_error": outcome.is_error,
    }
    message = {"role": "user", "content": [block]}
    fields = {"type": "user", "message": message, "toolUseResult": outcome.detail}
    said = None
    for piece in read_bytes(encode_line(fields)):
        if isinstance(piece, Record) and piece.tool_results:
            touch = touch_of(name, as_object(call.get("input")) or {})
            said = outcome_of(name, piece.tool_results[0], piece, touch)
    state = "denied" if refused else said.state if said else "ok"
    return Told(
        verb=verb_of(call),
        subject=subject(call),
        outcome="denied" if refused else said.words if said else "",
        state=state,
        tokens=len(_text(outcome.content)) // _PER_TOKEN,
        seconds=seconds,
    )


def step_line(step: Told, columns: int, project: str = "", mark: str = "▸") -> Line:
    """Return a step on one line; its figures go first where there is little room."""
    sign, sign_style = _MARKS.get(step.state, ("✓", "green") if step.verb == SHELL else ("", ""))
    tokens = words.tokens(step.tokens) if step.tokens else ""
    right = f"{tokens:>6} {words.duration(step.seconds):>7}" if columns > 3 * _RIGHT else ""
    verb = one_line(step.verb, _LONGEST_VERB)
    column = max(_VERB, width(verb))
    room = max(columns - column - 6 - len(right) - 2, 8)
    said, used = _said(step, room, project)
    style = f"bold {step.who}".strip() if step.state != "failed" else "bold red"
    return [
        (f"  {mark} ", "dim"),
        (pad(verb, column), style),
        " ",
        *said,
        " " * max(room - used, 0),
        (right if sign else right.rstrip(), "dim"),
        (f" {sign}" if sign else "", sign_style),
    ]


def _said(step: Told, room: int, project: str) -> tuple[Line, int]:
    outcome = one_line(step.outcome, max(room // 2, 8))
    left = max(room - (width(outcome) + 2 if outcome else 0), 0)
    line: Line = []
    if step.verb in FILE_TOOLS:
        inside = project and step.subject.startswith(f"{project}/")
        path = step.subject[len(project) + 1 :] if inside else step.subject
        folder, name = short_path(path, left)
        line += [(folder, "dim"), name]
        used = width(folder) + width(name)
    else:
        about = one_line(step.subject, left)
        line.append((about, "dim" if step.verb == "Thought" else ""))
        used = width(about)
    if outcome:
        style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
        line += ["  " if used else "", *_coloured(outcome, style)]
        used += width(outcome) + (2 if used else 0)
    return line, used


def _coloured(outcome: str, style: str) -> Line:
    """Return an outcome; what was added and removed in its colours."""
    parts = outcome.split(" ")
    if style != "dim" or not all(part[:1] in ("+", _MINUS) for part in parts):
        return [(outcome, style)]
    signs = {"+": "green", _MINUS: "red"}
    line: Line = []
    for part in parts:
        line += [(part, signs[part[0]]), " "]
    return line[:-1]


# Bodies


def body_lines(
    call: dict[str, Any], outcome: ToolResult, step: Told, columns: int, *, whole: bool = False
) -> Iterator[Line]:
    """Yield what is worth opening in a step: a diff, the end of what failed."""
    if str(call.get("name")) in TEXT_EDITING_TOOLS and step.state == "ok":
        detail = as_object(outcome.detail) or {}
        hunks = as_list(detail.get("structuredPatch")) or _made(call, detail)
        yield from diff_lines(hunks, columns, most=None if whole else _DIFF)
    elif step.state == "failed" or (whole and step.state == "ok"):
        yield from _output(_text(outcome.content), columns, whole=whole)


def _made(call: dict[str, Any], detail: dict[str, Any]) -> list[Any]:
    """Return a file that is new as a patch: everything in it was added."""
    if detail.get("type") != "create":
        return []
    text = str((as_object(call.get("input")) or {}).get("content", ""))
    return [{"newStart": 1, "lines": [f"+{line}" for line in text.rstrip("\n").split("\n")]}]


def diff_lines(
    hunks: Sequence[Any], columns: int, most: int | None = _DIFF, *, wrapped: bool = False
) -> Iterator[Line]:
    """Yield the lines of a patch with their numbers, with one line around each change.

    Long ones are cut, or `wrapped` where a change must be seen in full.
    """
    rows = [row for hunk in hunks for row in _rows(as_object(hunk) or {})]
    shown = rows if most is None else rows[:most]
    room = max(columns - _NUMBER - 6, 8)
    for number, sign, text in shown:
        style = {"+": "green", _MINUS: "red"}.get(sign, "")
        whole = clean(text.expandtabs(4))
        first, *rest = _folded(whole, room) if wrapped else [cut(whole, room)]
        yield [(f"  {number:>{_NUMBER}} ", "dim"), (f"{sign} {first}", style)]
        yield from ([" " * (_NUMBER + 5), (part, style)] for part in rest)
    if len(shown) < len(rows):
        said = f"{len(shown)} of {words.count(len(rows), 'line')}"
        yield [" " * (_NUMBER + 5), (said, "dim")]


def _folded(text: str, columns: int) -> list[str]:
    """Return a line of code in pieces; blanks are kept, as they may be what has changed."""
    ends, used = [0], 0
    for at, letter in enumerate(text):
        room = width(letter)
        used += room
        if used > columns:
            ends.append(at)
            used = room
    return [text[start:end] for start, end in pairwise((*ends, len(text)))]


def _rows(hunk: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    lines = [
        str(line) for line in as_list(hunk.get("lines")) or [] if not str(line).startswith("\\")
    ]
    changed = {at for at, line in enumerate(lines) if line[:1] in {"+", "-"}}
    old, new = int(hunk.get("oldStart") or 1), int(hunk.get("newStart") or 1)
    for at, line in enumerate(lines):
        sign = line[:1]
        if sign == "-":
            yield old, _MINUS, line[1:]
        elif not changed.isdisjoint((at - 1, at, at + 1)):
            yield new, sign if sign == "+" else " ", line[1:]
        old += sign != "+"
        new += sign != "-"


def _output(text: str, columns: int, *, whole: bool) -> Iterator[Line]:
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    lines = [line.rstrip() for line in without_colours(text).split("\n") if line.strip()]
    if lines and lines[0].startswith("Exit code"):
        lines = lines[1:]
    shown = lines if whole else lines[-_OUTPUT:]
    for line in shown:
        yield ["       ", (cut(clean(line.expandtabs(4)), max(columns - 8, 8)), "dim")]
    if len(shown) < len(lines):
        said = f"the last {len(shown)} of {words.count(len(lines), 'line')}; ctrl-o shows all"
        yield ["       ", (cut(said, max(columns - 8, 8)), "dim")]


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)
