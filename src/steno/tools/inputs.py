"""What a call says, in the shape that its tool wants."""

from typing import Any, TypeVar

import msgspec

from steno.tools.base import ToolFailure

__all__ = ["taken"]

_Input = TypeVar("_Input", bound=msgspec.Struct)


def taken(tool_input: dict[str, Any], kind: type[_Input]) -> _Input:
    """Return a call's input as a value of that kind; numbers and switches may come as text.

    Raises:
        ToolFailure: something is missing, unknown or of another type; the words say where.
    """
    try:
        return msgspec.convert(tool_input, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"The input does not fit this tool: {error}") from error
