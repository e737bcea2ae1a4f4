"""Input of views: session, record and extent; a tool call with its result; field access."""

from typing import Any, Final

import msgspec

from steno.format.message import Block, Image, ServerToolUse, ToolResult, ToolUse
from steno.format.records import Record
from steno.session.transcript import Transcript
from steno.session.turns.steps import Step
from steno.web.urls import Links

Fields = dict[str, Any]
_MAX_EXACT: Final = 1 << 53
_NUMBER_TYPES: Final = (int, float)


def as_text(value: Any) -> str:
    """Return a string, or a number as a string; empty for other types.

    >>> as_text("a"), as_text(3), as_text(True), as_text(None)
    ('a', '3', '', '')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if isinstance(value, _NUMBER_TYPES) and not isinstance(value, bool) else ""


def as_number(value: Any) -> int | None:
    """Return an integer within limits, else None."""
    if isinstance(value, bool) or not isinstance(value, _NUMBER_TYPES):
        return None
    return int(value) if abs(value) < _MAX_EXACT else None


def as_fields(value: Any) -> Fields:
    """Return a JSON object; empty for other types."""
    return value if value.__class__ is dict else {}


def as_items(value: Any) -> list[Any]:
    """Return a list; empty for other types."""
    return value if value.__class__ is list else []


def first_text(fields: Fields, *names: str) -> str:
    """Return the first of some fields that is a non-blank text."""
    for name in names:
        text = as_text(fields.get(name))
        if text:
            return text
    return ""


_TOOL_USE_TYPES: Final = (ToolUse, ServerToolUse)
_ERROR_TAGS: Final = ("<tool_use_error>", "</tool_use_error>")


class ViewContext(msgspec.Struct, frozen=True):
    """Session of a step or record, and display options."""

    key: str
    """The session's key in URLs."""
    agent: str
    """The sub-agent's ID in URLs; empty for the main conversation."""
    transcript: Transcript
    links: Links
    full: bool = False
    """Whether to show the full content; `full=1` in a URL."""
    start: int = 0
    """First character of a text, or first row of a diff; `from=N` in a URL."""
    side_by_side: bool = False
    """Whether to show changes side by side; `diff=side` in a URL."""
    path: str = ""
    """Path of the item within its session, such as `step/120-0` or `record/120`."""

    def url(self, **query: str | int | None) -> str:
        """Return the URL of the item with other options; empty if the item has no path."""
        if not self.path:
            return ""
        if self.side_by_side and "diff" not in query:
            query["diff"] = "side"
        return self.links.inside(self.key, self.path, self.agent, **query)

    def record_url(self, offset: int) -> str:
        """Return the URL of a raw record."""
        return self.links.record(self.key, offset, self.agent)

    def image_url(self, offset: int, number: int) -> str:
        """Return the URL of an image in a record."""
        return self.links.inside(self.key, f"image/{offset}-{number}", self.agent)


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and its result."""

    step: Step
    context: ViewContext
    tool: str = ""
    tool_input: Fields = {}
    """The arguments."""
    invalid_input: Any = None
    """Arguments that are not a JSON object."""
    record: Record | None = None
    """The record with the result."""
    result_data: Any = None
    """The structured result that Claude Code recorded (`toolUseResult`)."""
    result_fields: Fields = {}
    """The structured result, if it is a JSON object."""
    result_text: str = ""
    """The result text that was sent to the model."""
    result_blocks: tuple[Block, ...] = ()
    failed: bool = False

    @property
    def has_images(self) -> bool:
        """Whether the result contains images."""
        return bool([block for block in self.result_blocks if isinstance(block, Image)])

    @property
    def offset(self) -> int | None:
        """Return the offset of the last record of the call."""
        node = self.step.result or self.step.call
        return node.offset if node is not None else None


def tool_call(step: Step, context: ViewContext) -> ToolCall:
    """Return the tool call of a step."""
    use = _tool_use(step, context)
    tool_input = use.input if use is not None else {}
    record = context.transcript.record(step.result) if step.result is not None else None
    results = record.tool_results if record is not None else ()
    result = _result_for(results, step.call_id)
    text = result.text if result is not None else ""
    # If one record holds the results of several calls, the structured result cannot be assigned to a call.
    result_data = record.tool_use_result if record is not None and len(results) == 1 else None
    return ToolCall(
        step=step,
        context=context,
        tool=use.name if use is not None else step.verb,
        tool_input=tool_input,
        invalid_input=_invalid_input(use) if use is not None and not tool_input else None,
        record=record,
        result_data=result_data,
        result_fields=as_fields(result_data),
        result_text=text.strip().removeprefix(_ERROR_TAGS[0]).removesuffix(_ERROR_TAGS[1]) if text else "",
        result_blocks=result.blocks if result is not None else (),
        failed=bool(result is not None and result.is_error),
    )


def _tool_use(step: Step, context: ViewContext) -> ToolUse | ServerToolUse | None:
    if step.call is None:
        return None
    blocks = context.transcript.record(step.call).blocks
    uses = [block for block in blocks if isinstance(block, _TOOL_USE_TYPES)]
    for use in uses:
        if use.id == step.call_id:
            return use
    return uses[0] if uses else None


def _result_for(results: tuple[ToolResult, ...], call_id: str) -> ToolResult | None:
    for result in results:
        if result.tool_use_id == call_id:
            return result
    return None


def _invalid_input(use: ToolUse | ServerToolUse) -> Any:
    from steno.format.lenient_json import decode_lenient

    value = decode_lenient(use.raw_input) if use.raw_input else None
    return None if value == {} else value
