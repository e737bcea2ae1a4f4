"""Server-sent events: encoding, and pacing of streams that render changes."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any, Final

import msgspec
from starlette.responses import StreamingResponse

RETRY: Final = b"retry: 2000\n\n"
"""Reconnection delay of browsers, 2000 ms."""
KEEPALIVE: Final = b": here\n\n"
QUIET_SECONDS: Final = 15.0
"""Seconds without changes after which a stream checks again and sends a keep-alive."""
_MAX_PAUSE: Final = 10.0
_PAUSE_FACTOR: Final = 4.0
"""Ratio of the pause after an event to the time spent on the event, as long sessions are slow to render."""


def stream_response(events: AsyncGenerator[bytes]) -> StreamingResponse:
    """Return a response that streams events, unbuffered by proxies."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def encode_event(kind: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """Return an event; a browser that reconnects sends the ID of the last one."""
    id_line = f"id: {event_id}\n" if event_id else ""
    return f"{id_line}event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()


async def pause_since(started: float, min_pause: float) -> None:
    """Sleep in proportion to the time since `started` (a value of `perf_counter`)."""
    elapsed = perf_counter() - started
    await asyncio.sleep(min(_MAX_PAUSE, max(min_pause, elapsed * _PAUSE_FACTOR)))
