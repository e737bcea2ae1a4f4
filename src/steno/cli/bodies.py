"""What is inside a step that is worth opening: a short diff, the last lines of an error."""

from collections.abc import Iterator
from typing import Final

from steno.format.blocks import ToolUse
from steno.format.records import Record
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS
from steno.format.views import input_view, result_view
from steno.format.views.file_results import StructuredPatchItem
from steno.report import words
from steno.safe.terminal import Line, clean, cut, without_colours
from steno.session.story.steps import Step
from steno.session.transcript import Transcript

__all__ = ["body_lines"]

_DIFF: Final = 10
_OUTPUT: Final = 8
_NUMBER: Final = 5
_MINUS: Final = "\N{MINUS SIGN}"

_Row = tuple[int | None, str, str]
"""A line of a diff: its number, its sign, its words."""


def body_lines(
    transcript: Transcript, step: Step, width: int, *, everything: bool = False
) -> Iterator[Line]:
    """Yield the lines below a step, if there are any to show."""
    if step.verb in TEXT_EDITING_TOOLS and step.state in ("ok", "open"):
        rows = list(_diff(transcript, step))
        yield from _rows(rows, width, len(rows) if everything else _DIFF)
    elif step.result is not None and (
        step.state == "failed" or (everything and step.verb == SHELL)
    ):
        yield from _output(transcript.record(step.result), step, width, everything=everything)


def _rows(rows: list[_Row], width: int, most: int) -> Iterator[Line]:
    for number, sign, text in rows[:most]:
        style = {"+": "green", _MINUS: "red"}.get(sign, "")
        shown = cut(clean(text.expandtabs(4)), width - _NUMBER - 4)
        count = "" if number is None else str(number)
        yield [(f"{count:>{_NUMBER}} ", "dim"), (f"{sign} {shown}", style)]
    if len(rows) > most:
        yield [" " * (_NUMBER + 3), (f"{most} of {words.count(len(rows), 'line')}", "dim")]


def _diff(transcript: Transcript, step: Step) -> Iterator[_Row]:
    hunks = _hunks(transcript, step)
    if hunks:
        for place, hunk in enumerate(hunks):
            if place:
                yield None, " ", "…"
            yield from _hunk(hunk)
        return
    for old, new in _strings(transcript, step):
        yield from ((None, _MINUS, line) for line in old.splitlines())
        yield from ((None, "+", line) for line in new.splitlines())


def _hunks(transcript: Transcript, step: Step) -> list[StructuredPatchItem]:
    if step.result is None:
        return []
    raw = transcript.record(step.result).envelope.tool_use_result
    made = result_view(step.verb, bytes(raw)) if raw else None
    hunks = getattr(made, "structured_patch", None)
    return [hunk for hunk in hunks or () if isinstance(hunk, StructuredPatchItem)]


def _hunk(hunk: StructuredPatchItem) -> Iterator[_Row]:
    """Yield a hunk with one line around each change."""
    lines = [line for line in hunk.lines or () if not line.startswith("\\")]
    changed = {at for at, line in enumerate(lines) if line[:1] in {"+", "-"}}
    old, new = int(hunk.old_start or 1), int(hunk.new_start or 1)
    for at, line in enumerate(lines):
        sign = line[:1]
        near = not changed.isdisjoint((at - 1, at, at + 1))
        if sign == "-":
            yield old, _MINUS, line[1:]
        elif near:
            yield new, sign if sign == "+" else " ", line[1:]
        old += sign != "+"
        new += sign != "-"


def _strings(transcript: Transcript, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the pairs of old and new words that the call itself names."""
    if step.call is None:
        return
    for block in transcript.record(step.call).blocks:
        if not isinstance(block, ToolUse) or block.id != step.call_id or not block.raw_input:
            continue
        asked = input_view(block.name, bytes(block.raw_input))
        for edit in getattr(asked, "edits", None) or (asked,):
            old = getattr(edit, "old_string", None) or ""
            new = getattr(edit, "new_string", None) or getattr(edit, "content", None) or ""
            yield str(old), str(new)


def _output(record: Record, step: Step, width: int, *, everything: bool) -> Iterator[Line]:
    text = next((r.text for r in record.tool_results if r.tool_use_id == step.call_id), "")
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    lines = [line.rstrip() for line in without_colours(text).split("\n") if line.strip()]
    if lines and lines[0].startswith("Exit code"):
        lines = lines[1:]
    shown = lines if everything else lines[-_OUTPUT:]
    for line in shown:
        yield ["     ", (cut(clean(line.expandtabs(4)), width - 5), "dim")]
    if len(shown) < len(lines):
        yield ["     ", (f"the last {len(shown)} of {words.count(len(lines), 'line')}", "dim")]
