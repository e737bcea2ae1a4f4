"""A step as one line, as `steno show` prints it, and the details below it: diffs, output."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from steno.format.catalogue import MCP_PREFIX
from steno.format.encode import encode_line
from steno.format.lenient_json import as_list, as_object
from steno.format.line_diff import numbered_changes
from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.tool_catalogue import AGENT_TOOLS, FILE_TOOLS, SHELL, TEXT_EDITING_TOOLS
from steno.report import humanize
from steno.report.humanize import MINUS_SIGN
from steno.sanitize.terminal import (
    StyledLine,
    clean,
    display_width,
    one_line,
    pad,
    shorten_path,
    strip_colours,
    truncate,
)
from steno.session.turns.tool_outcomes import call_outcome, tool_call_subject, touched_file
from steno.tools.protocol import ToolResult

_LABEL_WIDTH: Final = 8
_MAX_LABEL_WIDTH: Final = 15
_FIGURES_WIDTH: Final = 17
_MAX_DIFF_LINES: Final = 10
_MAX_OUTPUT_LINES: Final = 8
_LINE_NUMBER_WIDTH: Final = 5
_DIFF_MARKS: Final = {"+": ("+", "green"), "-": (MINUS_SIGN, "red")}
_CHARACTERS_PER_TOKEN: Final = 4
_STATE_MARKS: Final = {"failed": ("✗", "red"), "denied": ("!", "yellow"), "interrupted": ("◻", "")}


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """The displayed parts of a step."""

    label: str
    subject: str = ""
    outcome: str = ""
    state: str = "ok"
    tokens: int = 0
    seconds: float | None = None
    style: str = ""
    """Colour of a sub-agent."""


def call_label(call: dict[str, Any]) -> str:
    """Return the label of a call: the tool name, or the type of a sub-agent."""
    name = str(call.get("name"))
    if name in AGENT_TOOLS:
        return str((as_object(call.get("input")) or {}).get("subagent_type") or "agent")
    if name.startswith(MCP_PREFIX):
        return ".".join(name.split("__")[1:])
    return name


def call_subject(call: dict[str, Any]) -> str:
    """Return the subject of a call, such as its path or command."""
    return tool_call_subject(str(call.get("name")), as_object(call.get("input")) or {})


def view_step(call: dict[str, Any], result: ToolResult, seconds: float, *, denied: bool) -> StepView:
    """Return a step for a call and its result, with the same outcome text as for its record."""
    name = str(call.get("name"))
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": str(call.get("id")),
        "content": result.content,
        "is_error": result.is_error,
    }
    message = {"role": "user", "content": [block]}
    fields = {"type": "user", "message": message, "toolUseResult": result.detail}
    description = None
    for piece in read_bytes(encode_line(fields)):
        if isinstance(piece, Record) and piece.tool_results:
            touch = touched_file(name, as_object(call.get("input")) or {})
            description = call_outcome(name, piece.tool_results[0], piece, touch)
    state = "denied" if denied else description.state if description else "ok"
    return StepView(
        label=call_label(call),
        subject=call_subject(call),
        outcome="denied" if denied else description.text if description else "",
        state=state,
        tokens=len(_content_text(result.content)) // _CHARACTERS_PER_TOKEN,
        seconds=seconds,
    )


def step_line(step: StepView, columns: int, project: str = "", mark: str = "▸") -> StyledLine:
    """Return a step as one line; narrow terminals omit tokens and duration."""
    sign, sign_style = _STATE_MARKS.get(step.state, ("✓", "green") if step.label == SHELL else ("", ""))
    tokens = humanize.tokens(step.tokens) if step.tokens else ""
    right = f"{tokens:>6} {humanize.duration(step.seconds):>7}" if columns > 3 * _FIGURES_WIDTH else ""
    label = one_line(step.label, _MAX_LABEL_WIDTH)
    column = max(_LABEL_WIDTH, display_width(label))
    body_room = max(columns - column - 6 - len(right) - 2, 8)
    body, body_width = _subject_and_outcome(step, body_room, project)
    style = f"bold {step.style}".strip() if step.state != "failed" else "bold red"
    return [
        (f"  {mark} ", "dim"),
        (pad(label, column), style),
        " ",
        *body,
        " " * max(body_room - body_width, 0),
        (right if sign else right.rstrip(), "dim"),
        (f" {sign}" if sign else "", sign_style),
    ]


def _subject_and_outcome(step: StepView, room: int, project: str) -> tuple[StyledLine, int]:
    outcome = one_line(step.outcome, max(room // 2, 8))
    subject_room = max(room - (display_width(outcome) + 2 if outcome else 0), 0)
    line: StyledLine = []
    if step.label in FILE_TOOLS:
        is_in_project = project and step.subject.startswith(f"{project}/")
        path = step.subject[len(project) + 1 :] if is_in_project else step.subject
        folder, name = shorten_path(path, subject_room)
        line += [(folder, "dim"), name]
        used = display_width(folder) + display_width(name)
    else:
        subject_text = one_line(step.subject, subject_room)
        line.append((subject_text, "dim" if step.label == "Thought" else ""))
        used = display_width(subject_text)
    if outcome:
        style = {"failed": "red", "denied": "yellow"}.get(step.state, "dim")
        line += ["  " if used else "", *_colour_outcome(outcome, style)]
        used += display_width(outcome) + (2 if used else 0)
    return line, used


def _colour_outcome(outcome: str, style: str) -> StyledLine:
    """Colour an outcome; added and removed counts get their own colours."""
    parts = outcome.split(" ")
    if style != "dim" or not all(part[:1] in ("+", MINUS_SIGN) for part in parts):
        return [(outcome, style)]
    signs = {"+": "green", MINUS_SIGN: "red"}
    line: StyledLine = []
    for part in parts:
        line += [(part, signs[part[0]]), " "]
    return line[:-1]


# Details


def body_lines(
    call: dict[str, Any], result: ToolResult, step: StepView, columns: int, *, show_all: bool = False
) -> Iterator[StyledLine]:
    """Yield the details of a step: a diff, or the last output of a failed call."""
    if str(call.get("name")) in TEXT_EDITING_TOOLS and step.state == "ok":
        detail = as_object(result.detail) or {}
        hunks = as_list(detail.get("structuredPatch")) or _creation_patch(call, detail)
        yield from diff_lines(hunks, columns, max_lines=None if show_all else _MAX_DIFF_LINES)
    elif step.state == "failed" or (show_all and step.state == "ok"):
        yield from _output_lines(_content_text(result.content), columns, show_all=show_all)


def _creation_patch(call: dict[str, Any], detail: dict[str, Any]) -> list[Any]:
    """Return the content of a new file as a patch that adds every line."""
    if detail.get("type") != "create":
        return []
    text = str((as_object(call.get("input")) or {}).get("content", ""))
    return [{"newStart": 1, "lines": [f"+{line}" for line in text.rstrip("\n").split("\n")]}]


def diff_lines(
    hunks: Sequence[Any], columns: int, max_lines: int | None = _MAX_DIFF_LINES, *, wrapped: bool = False
) -> Iterator[StyledLine]:
    """Yield the lines of a patch with line numbers and one context line around each change.

    Long lines are cut, or folded if `wrapped`, where a change must be visible in full.
    """
    rows = [row for hunk in hunks for row in _hunk_rows(as_object(hunk) or {})]
    shown = rows if max_lines is None else rows[:max_lines]
    text_width = max(columns - _LINE_NUMBER_WIDTH - 6, 8)
    for number, sign, text in shown:
        mark, style = _DIFF_MARKS.get(sign, (sign, ""))
        full_text = clean(text.expandtabs(4))
        first, *rest = _fold_line(full_text, text_width) if wrapped else [truncate(full_text, text_width)]
        yield [(f"  {number:>{_LINE_NUMBER_WIDTH}} ", "dim"), (f"{mark} {first}", style)]
        yield from ([" " * (_LINE_NUMBER_WIDTH + 5), (part, style)] for part in rest)
    if len(shown) < len(rows):
        count_text = f"{len(shown)} of {humanize.count(len(rows), 'line')}"
        yield [" " * (_LINE_NUMBER_WIDTH + 5), (count_text, "dim")]


def _fold_line(text: str, columns: int) -> list[str]:
    """Fold a line of code; keep blanks, which may be part of the change."""
    ends, used = [0], 0
    for index, character in enumerate(text):
        character_width = display_width(character)
        used += character_width
        if used > columns:
            ends.append(index)
            used = character_width
    return [text[start:end] for start, end in pairwise((*ends, len(text)))]


def _hunk_rows(hunk: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    lines = map(str, as_list(hunk.get("lines")) or [])
    return numbered_changes(lines, int(hunk.get("oldStart") or 1), int(hunk.get("newStart") or 1))


def _output_lines(text: str, columns: int, *, show_all: bool) -> Iterator[StyledLine]:
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    lines = [line.rstrip() for line in strip_colours(text).split("\n") if line.strip()]
    if lines and lines[0].startswith("Exit code"):
        lines = lines[1:]
    visible = lines if show_all else lines[-_MAX_OUTPUT_LINES:]
    for line in visible:
        yield ["       ", (truncate(clean(line.expandtabs(4)), max(columns - 8, 8)), "dim")]
    if len(visible) < len(lines):
        count_text = f"last {len(visible)} of {humanize.count(len(lines), 'line')} · ctrl-o to show all"
        yield ["       ", (truncate(count_text, max(columns - 8, 8)), "dim")]


def _content_text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)
