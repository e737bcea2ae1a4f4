"""Listens to one response as it streams in, and knows at any moment what there is of it."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from steno.agent import events
from steno.agent.events import Event
from steno.format.compose import Timings
from steno.model import events as streamed
from steno.model.wire import ApiError, Block, Response

__all__ = ["Hearing", "retry_fields"]


class Hearing:
    """One response, being heard."""

    def __init__(
        self, emit: Callable[[Event], None], retried: Callable[[streamed.Retrying], None]
    ) -> None:
        self._emit = emit
        self._retried = retried
        self._begun = Response()
        self._blocks: dict[int, Block] = {}
        self.bad_inputs: dict[str, str] = {}
        """Of calls whose input is no JSON object: their ids, and the text of the input."""
        self.timings = Timings()
        self._began: dict[int, float] = {}

    async def listen(self, stream: AsyncGenerator[streamed.Event, None]) -> Response:
        """Return the whole response; broken off, the stream is closed at once."""
        response: Response | None = None
        async with aclosing(stream):
            # It is heard to its very end: only then can the next request use the connection.
            async for event in stream:
                if isinstance(event, streamed.Ended):
                    response = event.response
                else:
                    self._hear(event)
        if response is None:
            raise ApiError("the model ended without an answer", kind="no_answer")
        return response

    def kept(self) -> Response:
        """Return what was said so far and can stand alone: words, but no thought and no call."""
        said = [
            block
            for _, block in sorted(self._blocks.items())
            if block.get("type") == "text" and str(block.get("text", "")).strip()
        ]
        return msgspec.structs.replace(self._begun, blocks=said if self._begun.id else [])

    def _hear(self, event: streamed.Event) -> None:
        match event:
            case streamed.Started(name, model):
                self._begun, self._blocks = Response(id=name, model=model), {}
            case streamed.BlockStarted(index, block):
                self._blocks[index] = dict(block)
                self._began[index] = time.monotonic()
            case streamed.BlockEnded(index, block, bad_input):
                self._blocks[index] = block
                self._time(index, block)
                if bad_input is not None:
                    self.bad_inputs[str(block.get("id"))] = bad_input
            case streamed.Verbatim(told):
                self._emit(events.Streamed(told))
            case streamed.Retrying(attempt, of, delay, error):
                self._retried(event)
                self._emit(events.Retrying(attempt, of, delay, error))
            case _:
                self._grow(event)

    def _time(self, index: int, block: Block) -> None:
        """Note how long a block took to come in, where records say it."""
        now = time.monotonic()
        took = round((now - self._began.get(index, now)) * 1000)
        match block.get("type"):
            case "tool_use":
                self.timings.inputs[str(block.get("id"))] = took
            case "thinking":
                self.timings.thoughts.append(took)
            case _:
                pass

    def _grow(self, event: streamed.Event) -> None:
        match event:
            case streamed.TextGrew(index, text):
                block = self._blocks.setdefault(index, {"type": "text", "text": ""})
                block["text"] = str(block.get("text", "")) + text
                self._emit(events.Grew("text", text, index))
            case streamed.ThinkingGrew(index, text):
                self._emit(events.Grew("thinking", text, index))
            case streamed.InputGrew(index, text):
                self._emit(events.Grew("input", text, index))
            case _:
                pass


def retry_fields(event: streamed.Retrying) -> dict[str, Any]:
    """Return what a session says of a request that is made again."""
    error = event.error
    return {
        "error": {
            "message": str(error),
            "status": error.status,
            "requestId": error.request_id,
            "formatted": f"{error.status} {error}" if error.status else str(error),
            "connection": None,
            "isNetworkDown": False,
            "rateLimits": None,
            "noResponse": None,
        },
        "retryInMs": round(event.delay * 1000),
        "retryAttempt": event.attempt,
        "maxRetries": event.of,
        "source": "request_retry",
    }
