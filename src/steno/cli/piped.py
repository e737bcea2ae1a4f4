"""Lines that are piped in, as they come; waiting for one can be broken off."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Final

__all__ = ["lines_as_they_come"]

_CHUNK: Final = 1 << 16
_NEWLINE: Final = b"\n"


async def lines_as_they_come(file: int) -> AsyncIterator[str]:
    """Yield the lines of an open file, each when it is whole; the last one may have no end.

    No thread waits for them: one that reads cannot be stopped, and would outlast an interrupt.
    """
    held = bytearray()
    while chunk := await _more(file):
        # Only what is new is looked at: a line may be as long as an image is large.
        start = len(held)
        held += chunk
        while (end := held.find(_NEWLINE, start)) >= 0:
            yield held[:end].decode("utf-8", "replace")
            del held[: end + 1]
            start = 0
    if held:
        yield held.decode("utf-8", "replace")


async def _more(file: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except (NotImplementedError, OSError):
        # A file of the disk has nothing to wait for; where pipes cannot be watched, a thread reads.
        return await asyncio.to_thread(os.read, file, _CHUNK)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, _CHUNK)
