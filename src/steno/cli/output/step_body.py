"""Body of a step in the terminal: the lines it changed, or the first lines of its output."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from steno.format.message import ToolUse
from steno.format.records import Record
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS
from steno.report import humanize
from steno.report.humanize import MINUS_SIGN
from steno.sanitize.terminal import StyledLine, clean, strip_colours, truncate
from steno.session.transcript import Transcript
from steno.session.turns.steps import Step

if TYPE_CHECKING:
    from steno.format.record_views import View

_MAX_DIFF_LINES: Final = 10
_MAX_OUTPUT_LINES: Final = 8
_LINE_NUMBER_WIDTH: Final = 5

_DiffRow = tuple[int | None, str, str]
"""A line of a diff: its number, its sign, its words."""


def step_body_lines(transcript: Transcript, step: Step, width: int, *, show_all: bool = False) -> Iterator[StyledLine]:
    """Yield the lines below a step, if there are any to show."""
    if step.verb in TEXT_EDITING_TOOLS and step.state in ("ok", "open"):
        rows = list(_diff_rows(transcript, step))
        yield from _diff_row_lines(rows, width, len(rows) if show_all else _MAX_DIFF_LINES)
    elif step.result is not None and (step.state == "failed" or (show_all and step.verb == SHELL)):
        yield from _output_lines(transcript.record(step.result), step, width, show_all=show_all)


def _diff_row_lines(rows: list[_DiffRow], width: int, max_rows: int) -> Iterator[StyledLine]:
    for number, sign, text in rows[:max_rows]:
        style = {"+": "green", MINUS_SIGN: "red"}.get(sign, "")
        visible = truncate(clean(text.expandtabs(4)), width - _LINE_NUMBER_WIDTH - 4)
        count = "" if number is None else str(number)
        yield [(f"{count:>{_LINE_NUMBER_WIDTH}} ", "dim"), (f"{sign} {visible}", style)]
    if len(rows) > max_rows:
        yield [" " * (_LINE_NUMBER_WIDTH + 3), (f"{max_rows} of {humanize.count(len(rows), 'line')}", "dim")]


def _diff_rows(transcript: Transcript, step: Step) -> Iterator[_DiffRow]:
    hunks = _patch_hunks(transcript, step)
    if hunks:
        for index, hunk in enumerate(hunks):
            if index:
                yield None, " ", "…"
            yield from _hunk_rows(hunk)
        return
    for old, new in _replaced_strings(transcript, step):
        yield from ((None, MINUS_SIGN, line) for line in old.splitlines())
        yield from ((None, "+", line) for line in new.splitlines())


def _patch_hunks(transcript: Transcript, step: Step) -> list["View"]:
    if step.result is None:
        return []
    from steno.format.record_views import result_view

    raw = transcript.record(step.result).envelope.tool_use_result
    view = result_view(step.verb, bytes(raw)) if raw else None
    return getattr(view, "structured_patch", None) or []


def _hunk_rows(hunk: "View") -> Iterator[_DiffRow]:
    """Yield a hunk with one line around each change."""
    lines = [line for line in hunk.lines or () if not line.startswith("\\")]
    changed = {index for index, line in enumerate(lines) if line[:1] in {"+", "-"}}
    old, new = int(hunk.old_start or 1), int(hunk.new_start or 1)
    for at, line in enumerate(lines):
        sign = line[:1]
        is_near_change = not changed.isdisjoint((at - 1, at, at + 1))
        if sign == "-":
            yield old, MINUS_SIGN, line[1:]
        elif is_near_change:
            yield new, sign if sign == "+" else " ", line[1:]
        old += sign != "+"
        new += sign != "-"


def _replaced_strings(transcript: Transcript, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the pairs of old and new words that the call itself names."""
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
        yield ["     ", (f"the last {len(visible)} of {humanize.count(len(lines), 'line')}", "dim")]
