"""Server-sent events: encoding, and the pacing of streams that render what changed."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any, Final

import msgspec
from starlette.responses import StreamingResponse

RETRY: Final = b"retry: 2000\n\n"
"""How soon a browser connects again, in milliseconds."""
KEEPALIVE: Final = b": here\n\n"
QUIET_SECONDS: Final = 15.0
"""Seconds without changes after which a stream looks again and shows that it is alive."""
_MAX_PAUSE: Final = 10.0
_PAUSE_FACTOR: Final = 4.0
"""How much longer than the work took is waited before the next, so that a long session, which takes
long to read, does not keep the machine busy."""


def stream_response(events: AsyncGenerator[bytes]) -> StreamingResponse:
    """Return a response that streams events, unbuffered by proxies."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def encode_event(kind: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """Return one event; with an id, a browser that reconnects says where it was."""
    id_line = f"id: {event_id}\n" if event_id else ""
    return f"{id_line}event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()


async def pause_since(started: float, min_pause: float) -> None:
    """Sleep in proportion to the work done since `started` (of `perf_counter`)."""
    elapsed = perf_counter() - started
    await asyncio.sleep(min(_MAX_PAUSE, max(min_pause, elapsed * _PAUSE_FACTOR)))
