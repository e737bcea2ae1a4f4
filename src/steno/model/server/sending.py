"""Sends what was decided: JSON in one piece, or a stream with its waits, cuts and breaks."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from steno.format.encode import encode
from steno.model.server.channel import Channel
from steno.model.server.desk import Decision, Plain, Received
from steno.model.server.minds import Failure, Gate, Pause, Wait
from steno.model.server.refusals import Refusal, error_body
from steno.model.server.stream import Message, events, whole

__all__ = ["Sender"]

_STREAM: Final = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
)
_FINE: Final = 200
_WORTH_ANOTHER_TRY: Final = frozenset((408, 409, 429, 500, 502, 503, 504, 529))


class Sender:
    """Sends the answer to one request, and notes how far it came."""

    def __init__(
        self,
        channel: Channel,
        received: Received,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._channel = channel
        self._received = received
        self._pause = pause

    async def send(self, decision: Decision) -> None:
        """Send an answer of whatever kind."""
        match decision:
            case Message():
                await self._message(decision)
            case Plain(body):
                await self._json(_FINE, body)
            case Refusal(message, status, kind):
                await self._failure(Failure(status=status, kind=kind, message=message))
            case Failure():
                await self._failure(decision)
        self._received.finished = not self._channel.dropped

    async def _message(self, message: Message) -> None:
        await self._wait(message.reply.after)
        cut = message.reply.cut_after
        if self._received.body.get("stream") is True:
            await self._stream(message, cut)
        elif message.reply.breaks is not None:
            await self._failure(message.reply.breaks)
        else:
            for item in message.content:
                if isinstance(item, Pause | Gate):
                    await self._wait(item)
            await self._json(_FINE, whole(message), cut=-1 if cut is None else cut)

    async def _stream(self, message: Message, cut: int | None) -> None:
        self._received.status = _FINE
        await self._channel.head(_FINE, [*_STREAM, ("request-id", self._received.request_id)])
        for item in events(message):
            if not isinstance(item, bytes):
                await self._wait(item)
                continue
            left = None if cut is None else cut - self._received.sent
            data = item if left is None else item[:left]
            if data:
                await self._channel.piece(data)
                self._received.sent += len(data)
            if left is not None and left <= len(item):
                self._channel.drop()
                return
        await self._channel.end()

    async def _failure(self, failure: Failure) -> None:
        await self._wait(failure.after)
        if not failure.status:
            self._channel.drop()
            return
        body = error_body(failure.status, failure.kind, failure.message, self._received.request_id)
        again = "true" if failure.status in _WORTH_ANOTHER_TRY else "false"
        headers = {"x-should-retry": again, **failure.headers}
        await self._json(failure.status, body, headers=headers)

    async def _json(
        self,
        status: int,
        body: dict[str, Any],
        *,
        headers: dict[str, str] | None = None,
        cut: int = -1,
    ) -> None:
        self._received.status = status
        named = [("content-type", "application/json"), ("request-id", self._received.request_id)]
        named += (headers or {}).items()
        self._received.sent = await self._channel.whole(status, named, encode(body), cut=cut)

    async def _wait(self, wait: Wait | None) -> None:
        if isinstance(wait, Pause):
            await self._pause(wait.seconds)
        elif isinstance(wait, Gate):
            await wait.pass_through()
