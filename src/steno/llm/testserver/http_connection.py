"""One HTTP/1.1 connection from a client: h11 over asyncio streams."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.errors import StenoError

if TYPE_CHECKING:
    import h11


_CHUNK_SIZE: Final = 1 << 16
_MAX_HEADERS: Final = 1 << 16
_CONTINUE: Final = 100
# A client that is still sending does not read: a longer body is read and discarded first.
_DISCARD_FACTOR: Final = 4

Headers = Iterable[tuple[str, str]]


class InvalidHttp(StenoError):
    """The received data is not valid HTTP."""


class BodyTooLarge(StenoError):
    """The request body exceeds the limit."""


class HttpRequest(msgspec.Struct, frozen=True):
    """A request with its body."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The path without the query string."""
        return self.target.partition("?")[0]


class HttpConnection:
    """Reads requests and sends responses, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body: int) -> None:
        import h11

        self._h11 = h11
        self._connection: Any = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEADERS)
        self._reader = reader
        self._writer = writer
        self._max_body = max_body
        self._asks_for_body = True
        self.is_aborted = False
        """Whether the connection was closed early."""

    async def read_request(self) -> HttpRequest | None:
        """Return the next request; None if the client has disconnected.

        Raises:
            InvalidHttp: the data is not a valid request.
            BodyTooLarge: the body is too long.
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
                if size <= self._max_body:
                    parts.append(bytes(event.data))
                elif size > self._max_body * _DISCARD_FACTOR:
                    raise BodyTooLarge("the body is far too long")
            elif isinstance(event, self._h11.EndOfMessage) and head is not None:
                if size > self._max_body:
                    raise BodyTooLarge("the body is too long")
                return _to_request(head, b"".join(parts))
            else:
                return None

    async def _event(self) -> Any:
        try:
            while True:
                event = self._connection.next_event()
                if event is not self._h11.NEED_DATA:
                    return event
                if self._connection.they_are_waiting_for_100_continue:
                    continue_response = self._h11.InformationalResponse(status_code=_CONTINUE, headers=[])
                    await self._send(continue_response)
                self._connection.receive_data(await self._reader.read(_CHUNK_SIZE))
        except self._h11.RemoteProtocolError as error:
            raise InvalidHttp(str(error)) from error

    async def send_response(self, status: int, headers: Headers, body: bytes, *, cut: int = -1) -> int:
        """Send a response, or only the first `cut` bytes of its body; return the number of body bytes sent."""
        all_headers = [*headers, ("content-length", str(len(body)))]
        await self._send(self._h11.Response(status_code=status, headers=_encode_headers(all_headers)))
        asks_for_body = self._asks_for_body
        sent = body if cut < 0 else body[:cut]
        if sent and asks_for_body:
            await self._send(self._h11.Data(data=sent))
        if len(sent) == len(body):
            await self.send_end()
        else:
            self.abort()
        return len(sent) if asks_for_body else 0

    async def send_head(self, status: int, headers: Headers) -> None:
        """Start a streamed response."""
        await self._send(self._h11.Response(status_code=status, headers=_encode_headers(headers)))

    async def send_chunk(self, data: bytes) -> None:
        """Send a piece of a streamed response."""
        await self._send(self._h11.Data(data=data))

    async def send_end(self) -> None:
        """End a streamed response."""
        await self._send(self._h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        data: bytes | None = self._connection.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    def start_next_request(self) -> bool:
        """Prepare for the next request; return whether there can be one."""
        done_state = self._h11.DONE
        if self.is_aborted or self._connection.our_state is not done_state:
            return False
        if self._connection.their_state is not done_state:
            return False
        self._connection.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close the connection early; data already written is still sent."""
        self.is_aborted = True
        self._writer.close()

    async def close(self) -> None:
        """Close the connection and wait until it is closed."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return

    async def run_while_connected(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run a coroutine until it ends or the client disconnects; return whether it ended."""
        working = asyncio.ensure_future(work)
        listening = asyncio.ensure_future(self._read_until_closed())
        try:
            await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
            disconnected = not working.done()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            if not disconnected:
                working.result()
            return not disconnected
        finally:
            for task in (working, listening):
                task.cancel()
            await asyncio.gather(working, listening, return_exceptions=True)

    async def _read_until_closed(self) -> None:
        """Buffer data until the client disconnects."""
        try:
            while data := await self._reader.read(_CHUNK_SIZE):
                self._connection.receive_data(data)
        except OSError:
            return


def _to_request(head: "h11.Request", body: bytes) -> HttpRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return HttpRequest(head.method.decode("ascii"), head.target.decode("latin-1"), headers, body)


def _encode_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
