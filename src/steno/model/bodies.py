"""Requests of the Messages API as bytes: the same request has the same bytes every time."""

from collections.abc import Sequence
from typing import Any

import msgspec

from steno.errors import BadRequest
from steno.format.loose import loose
from steno.model.wire import Block, Message, Request

__all__ = ["body_of", "counted", "message_bytes"]


class _Counted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What counting tokens takes: it refuses whatever only matters to an answer."""

    model: str
    messages: Sequence[Message | msgspec.Raw]
    system: list[Block] = []
    tools: list[Block] = []
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None


def body_of(value: msgspec.Struct) -> bytes:
    """Return the bytes of a request; equal requests have equal ones.

    `stream` is the last key, so asking for a stream changes nothing before it.

    Raises:
        BadRequest: the request holds something that is no JSON.
    """
    return _encoded(value)


def message_bytes(message: Message) -> msgspec.Raw:
    """Return a message as the bytes it has in every request, to be encoded only once.

    Raises:
        BadRequest: it holds something that is no JSON.
    """
    return msgspec.Raw(_encoded(message))


def _encoded(value: msgspec.Struct | Message) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Half a surrogate pair cannot be sent; in a conversation it should not stop everything.
        import json

        plain = msgspec.to_builtins(value, enc_hook=msgspec.json.decode)
        mended = loose(json.dumps(plain).encode())
        if mended is not None:
            return msgspec.json.encode(mended)
        raise BadRequest("the request nests too deep to be sent") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"the request cannot be sent as JSON: {error}") from error


def counted(request: Request) -> bytes:
    """Return the bytes that ask how many tokens a request has.

    Raises:
        BadRequest: the request holds something that is no JSON.
    """
    return body_of(
        _Counted(
            model=request.model,
            messages=request.messages,
            system=request.system,
            tools=request.tools,
            tool_choice=request.tool_choice,
            thinking=request.thinking,
            output_config=request.output_config,
        )
    )
