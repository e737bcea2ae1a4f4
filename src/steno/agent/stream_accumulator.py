"""Accumulates streamed events into a response and emits them as agent events."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from steno.agent import events
from steno.agent.events import Event
from steno.format.encode import Timings
from steno.llm import stream_decoder as streamed
from steno.llm.messages_api import ApiError, Block, Response


class StreamAccumulator:
    """Accumulates the events of one response."""

    def __init__(self, emit: Callable[[Event], None], on_retry: Callable[[streamed.RetryScheduled], None]) -> None:
        self._emit = emit
        self._on_retry = on_retry
        self._response = Response()
        self._blocks: dict[int, Block] = {}
        self.invalid_inputs: dict[str, str] = {}
        """Raw input of calls whose input is not a JSON object, by call ID."""
        self.timings = Timings()
        self._block_started_at: dict[int, float] = {}

    async def read(self, stream: AsyncGenerator[streamed.StreamEvent, None]) -> Response:
        """Return the complete response; if cancelled, the stream is closed at once."""
        response: Response | None = None
        async with aclosing(stream):
            # Read to the end of the stream, so that the connection can be reused.
            async for event in stream:
                if isinstance(event, streamed.ResponseFinished):
                    response = event.response
                else:
                    self._handle(event)
        if response is None:
            raise ApiError("the stream ended without a response", kind="no_answer")
        return response

    def partial_response(self) -> Response:
        """Return the text received so far, without thinking and calls, which are invalid when incomplete."""
        text_blocks = [
            block
            for _, block in sorted(self._blocks.items())
            if block.get("type") == "text" and str(block.get("text", "")).strip()
        ]
        return msgspec.structs.replace(self._response, blocks=text_blocks if self._response.id else [])

    def _handle(self, event: streamed.StreamEvent) -> None:
        match event:
            case streamed.ResponseStarted(response_id, model):
                self._response, self._blocks = Response(id=response_id, model=model), {}
            case streamed.BlockStarted(index, block):
                self._blocks[index] = dict(block)
                self._block_started_at[index] = time.monotonic()
            case streamed.BlockFinished(index, block, invalid_input):
                self._blocks[index] = block
                self._record_timing(index, block)
                if invalid_input is not None:
                    self.invalid_inputs[str(block.get("id"))] = invalid_input
            case streamed.ApiEvent(raw_event):
                self._emit(events.RawStreamEvent(raw_event))
            case streamed.RetryScheduled(attempt, max_attempts, delay, error):
                self._on_retry(event)
                self._emit(events.Retrying(attempt, max_attempts, delay, error))
            case _:
                self._handle_delta(event)

    def _record_timing(self, index: int, block: Block) -> None:
        now = time.monotonic()
        milliseconds = round((now - self._block_started_at.get(index, now)) * 1000)
        match block.get("type"):
            case "tool_use":
                self.timings.inputs[str(block.get("id"))] = milliseconds
            case "thinking":
                self.timings.thoughts.append(milliseconds)
            case _:
                pass

    def _handle_delta(self, event: streamed.StreamEvent) -> None:
        match event:
            case streamed.TextDelta(index, text):
                block = self._blocks.setdefault(index, {"type": "text", "text": ""})
                block["text"] = str(block.get("text", "")) + text
                self._emit(events.ContentDelta("text", text, index))
            case streamed.ThinkingDelta(index, text):
                self._emit(events.ContentDelta("thinking", text, index))
            case streamed.InputDelta(index, text):
                self._emit(events.ContentDelta("input", text, index))
            case _:
                pass


def retry_record_fields(event: streamed.RetryScheduled) -> dict[str, Any]:
    """Return the fields of the record for a repeated request."""
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
