"""The wire: one JSON object a line. What is none is answered for, and the talk goes on."""

import asyncio
import os
import sys
from typing import Any, Final

import msgspec

from steno.errors import BadRequest
from steno.format.values import as_object

__all__ = ["Lines", "own_streams"]

_LONGEST: Final = 64 << 20
"""How long a line may be: a prompt brings its images along."""
_NOT_JSON: Final = (-32700, "Parse error: a line is one JSON object")
_NO_MESSAGE: Final = (-32600, "Invalid request: this is no message of JSON-RPC")
_TOO_LONG: Final = (-32600, f"Invalid request: a line is longer than {_LONGEST >> 20} MB")


class Lines:
    """Messages over two streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._writer.write(msgspec.json.encode(message, enc_hook=str) + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                line = end.partial
                if not line:
                    return None
            except asyncio.LimitOverrunError:
                await self._skip()
                await self._refuse(_TOO_LONG)
                continue
            message = await self._message(line)
            if message is not None:
                return message

    async def close(self) -> None:
        """Send nothing more."""
        self._writer.close()

    async def _message(self, line: bytes) -> dict[str, Any] | None:
        """Return a line as a message; what is none is answered, and what is empty left out."""
        if not line.strip():
            return None
        try:
            found = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            await self._refuse(_NOT_JSON)
            return None
        message = as_object(found)
        if message is None or not _is_message(message):
            await self._refuse(_NO_MESSAGE)
            return None
        return message

    async def _refuse(self, why: tuple[int, str]) -> None:
        code, words = why
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}})

    async def _skip(self) -> None:
        """Read past a line that is too long, without keeping it."""
        while True:
            try:
                await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as over:
                await self._reader.readexactly(over.consumed)
            except asyncio.IncompleteReadError:
                return
            else:
                return


def _is_message(message: dict[str, Any]) -> bool:
    # What the library looks up by these must be fit for it.
    name = message.get("id")
    fits = name is None or (isinstance(name, str | int | float) and not isinstance(name, bool))
    method = message.get("method")
    return fits and (isinstance(method, str) or (method is None and "id" in message))


async def own_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the standard input and output, which nobody else has from then on.

    Whatever is printed besides goes to the standard error, and programs that are started read
    nothing.

    Raises:
        BadRequest: they are no pipes.
    """
    from acp.stdio import stdio_streams

    own = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = own
    try:
        streams = await stdio_streams(limit=_LONGEST)
    except ValueError:
        raise BadRequest(
            "an editor starts this, with pipes to talk through",
            hint="`steno acp --editor` says how to add it to one",
        ) from None
    if sys.platform != "win32":
        # There the library goes on to read and write through these.
        sys.stdout = sys.stderr
    return streams
