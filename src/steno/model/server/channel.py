"""One connection of a client: HTTP/1.1 by h11 over the streams of asyncio."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.errors import StenoError

if TYPE_CHECKING:
    import h11

__all__ = ["BadHttp", "Channel", "HttpRequest", "TooLarge"]

_CHUNK: Final = 1 << 16
_HEADERS: Final = 1 << 16
_CONTINUE: Final = 100
# A client that is still sending does not listen: what is too long is read, and thrown away.
_PATIENCE: Final = 4

Headers = Iterable[tuple[str, str]]


class BadHttp(StenoError):
    """What came is no HTTP."""


class TooLarge(StenoError):
    """More came than is taken."""


class HttpRequest(msgspec.Struct, frozen=True):
    """A request with its body."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The path without what is asked behind the question mark."""
        return self.target.partition("?")[0]


class Channel:
    """Requests come out of it one after the other, and answers go in."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int
    ) -> None:
        import h11

        self._h11 = h11
        self._connection: Any = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEADERS)
        self._reader = reader
        self._writer = writer
        self._most = most
        self._asks_for_body = True
        self.dropped = False
        """Whether the connection was ended before its time."""

    async def request(self) -> HttpRequest | None:
        """Return the next request; None when the client has left.

        Raises:
            BadHttp: it is none.
            TooLarge: its body is too long.
        """
        head: h11.Request | None = None
        parts: list[bytes] = []
        size = 0
        while True:
            event = await self._event()
            if isinstance(event, self._h11.Request):
                head = event
                self._asks_for_body = event.method != b"HEAD"
            elif isinstance(event, self._h11.Data):
                size += len(event.data)
                if size <= self._most:
                    parts.append(bytes(event.data))
                elif size > self._most * _PATIENCE:
                    raise TooLarge("the body is far too long")
            elif isinstance(event, self._h11.EndOfMessage) and head is not None:
                if size > self._most:
                    raise TooLarge("the body is too long")
                return _request(head, b"".join(parts))
            else:
                return None

    async def _event(self) -> Any:
        try:
            while True:
                event = self._connection.next_event()
                if event is not self._h11.NEED_DATA:
                    return event
                if self._connection.they_are_waiting_for_100_continue:
                    go_on = self._h11.InformationalResponse(status_code=_CONTINUE, headers=[])
                    await self._send(go_on)
                self._connection.receive_data(await self._reader.read(_CHUNK))
        except self._h11.RemoteProtocolError as error:
            raise BadHttp(str(error)) from error

    async def whole(self, status: int, headers: Headers, body: bytes, *, cut: int = -1) -> int:
        """Send an answer in one piece, or only so many bytes of its body; return how many went."""
        sized = [*headers, ("content-length", str(len(body)))]
        await self._send(self._h11.Response(status_code=status, headers=_raw(sized)))
        asked = self._asks_for_body
        sent = body if cut < 0 else body[:cut]
        if sent and asked:
            await self._send(self._h11.Data(data=sent))
        if len(sent) == len(body):
            await self.end()
        else:
            self.drop()
        return len(sent) if asked else 0

    async def head(self, status: int, headers: Headers) -> None:
        """Begin an answer that goes out in pieces."""
        await self._send(self._h11.Response(status_code=status, headers=_raw(headers)))

    async def piece(self, data: bytes) -> None:
        """Send a piece of the answer."""
        await self._send(self._h11.Data(data=data))

    async def end(self) -> None:
        """End the answer."""
        await self._send(self._h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        data: bytes | None = self._connection.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    def again(self) -> bool:
        """Make ready for the next request; say whether there can be one."""
        done = self._h11.DONE
        if self.dropped or self._connection.our_state is not done:
            return False
        if self._connection.their_state is not done:
            return False
        self._connection.start_next_cycle()
        return True

    def drop(self) -> None:
        """End the connection where it is; what was written still goes out."""
        self.dropped = True
        self._writer.close()

    async def close(self) -> None:
        """End the connection and see it gone."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return

    async def while_there(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do some work for as long as the client is there; say whether it was to the end."""
        working = asyncio.ensure_future(work)
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
            left = not working.done()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            if not left:
                working.result()
            return not left
        finally:
            for task in (working, listening):
                task.cancel()
            await asyncio.gather(working, listening, return_exceptions=True)

    async def _listen(self) -> None:
        """Take in what the client sends ahead, until it has left."""
        try:
            while data := await self._reader.read(_CHUNK):
                self._connection.receive_data(data)
        except OSError:
            return


def _request(head: "h11.Request", body: bytes) -> HttpRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return HttpRequest(head.method.decode("ascii"), head.target.decode("latin-1"), headers, body)


def _raw(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
