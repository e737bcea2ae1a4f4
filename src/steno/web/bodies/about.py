"""What a body has to know beside its step: whose it is, how much of it is wanted, where it lies."""

from typing import Any, Final

import msgspec

from steno.format.blocks import Block, Image, ServerToolUse, ToolResult, ToolUse
from steno.format.records import Record
from steno.session.story.steps import Step
from steno.session.transcript import Transcript
from steno.web.bodies.values import Fields, as_fields
from steno.web.links import Links

__all__ = ["About", "Call", "call_of"]

_USES: Final = (ToolUse, ServerToolUse)
_ERROR: Final = ("<tool_use_error>", "</tool_use_error>")


class About(msgspec.Struct, frozen=True):
    """Whose step or record is shown, and how."""

    key: str
    """What addresses call the session."""
    agent: str
    """What addresses call the sub-agent, or nothing."""
    transcript: Transcript
    links: Links
    full: bool = False
    """Show everything, not only the first lines. (`full=1` in an address.)"""
    begin: int = 0
    """Where in a text, or in the rows of a diff, to begin. (`from=N` in an address.)"""
    side: bool = False
    """Show changes side by side. (`diff=side` in an address.)"""
    here: str = ""
    """What addresses call the thing inside its session: `step/120-0`, `record/120`."""

    def shown(self, **query: str | int | None) -> str:
        """Return the address of the same thing, shown otherwise; nothing where it has none."""
        if not self.here:
            return ""
        if self.side and "diff" not in query:
            query["diff"] = "side"
        return self.links.inside(self.key, self.here, self.agent, **query)

    def raw(self, offset: int) -> str:
        """Return the address of a record as it stands in the file."""
        return self.links.record(self.key, offset, self.agent)

    def picture(self, offset: int, number: int) -> str:
        """Return the address of a picture inside a record."""
        return self.links.inside(self.key, f"image/{offset}-{number}", self.agent)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What the records say of a tool call and of its result."""

    step: Step
    about: About
    tool: str = ""
    asked: Fields = {}
    """The arguments."""
    odd: Any = None
    """The arguments where they are no object."""
    record: Record | None = None
    """The record of the result."""
    kept: Any = None
    """What the client itself kept of the result."""
    fields: Fields = {}
    """The same, where it is an object."""
    text: str = ""
    """What the model was told."""
    blocks: tuple[Block, ...] = ()
    failed: bool = False

    @property
    def has_pictures(self) -> bool:
        """Whether the model was given pictures."""
        return bool([block for block in self.blocks if isinstance(block, Image)])

    @property
    def offset(self) -> int | None:
        """Where the last record of it is."""
        node = self.step.result or self.step.call
        return node.offset if node is not None else None


def call_of(step: Step, about: About) -> Call:
    """Return what is known of a step that is a tool call."""
    use = _use(step, about)
    asked = use.input if use is not None else {}
    record = about.transcript.record(step.result) if step.result is not None else None
    results = record.tool_results if record is not None else ()
    result = _named(results, step.call_id)
    text = result.text if result is not None else ""
    # One record may answer several calls; what the client kept is then of no certain call.
    kept = record.tool_use_result if record is not None and len(results) == 1 else None
    return Call(
        step=step,
        about=about,
        tool=use.name if use is not None else step.verb,
        asked=asked,
        odd=_odd(use) if use is not None and not asked else None,
        record=record,
        kept=kept,
        fields=as_fields(kept),
        text=text.strip().removeprefix(_ERROR[0]).removesuffix(_ERROR[1]) if text else "",
        blocks=result.blocks if result is not None else (),
        failed=bool(result is not None and result.is_error),
    )


def _use(step: Step, about: About) -> ToolUse | ServerToolUse | None:
    if step.call is None:
        return None
    blocks = about.transcript.record(step.call).blocks
    uses = [block for block in blocks if isinstance(block, _USES)]
    for use in uses:
        if use.id == step.call_id:
            return use
    return uses[0] if uses else None


def _named(results: tuple[ToolResult, ...], call_id: str) -> ToolResult | None:
    for result in results:
        if result.tool_use_id == call_id:
            return result
    return None


def _odd(use: ToolUse | ServerToolUse) -> Any:
    from steno.format.loose import loose

    value = loose(use.raw_input) if use.raw_input else None
    return None if value == {} else value
