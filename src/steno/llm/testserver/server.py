"""A Messages API server on loopback: validates requests and sends the replies of a responder.

async with Server(ScriptedResponder().on("hello", "Good day.")) as server:
    ...  # ANTHROPIC_BASE_URL=server.url
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Self

import msgspec

from steno.errors import Unwritable
from steno.format.encode import encode
from steno.llm.messages_api import RETRY_STATUSES
from steno.llm.testserver.http_connection import BodyTooLarge, HttpConnection, InvalidHttp
from steno.llm.testserver.request_handler import (
    HOST,
    HandlerResult,
    JsonAnswer,
    ReceivedRequest,
    RequestHandler,
    ServerSettings,
)
from steno.llm.testserver.responders import (
    ErrorReply,
    Pause,
    Refusal,
    ReleaseEvent,
    ReplyMessage,
    Responder,
    Wait,
    error_body,
    message_body,
    stream_events,
)

_STREAM_HEADERS: Final = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
_OK: Final = 200


class ResponseWriter:
    """Sends the response to one request and records its progress."""

    def __init__(
        self, connection: HttpConnection, received: ReceivedRequest, pause: Callable[[float], Awaitable[None]]
    ) -> None:
        self._connection = connection
        self._received = received
        self._pause = pause

    async def send(self, decision: HandlerResult) -> None:
        """Send a response of any kind."""
        match decision:
            case ReplyMessage():
                await self._send_message(decision)
            case JsonAnswer(body):
                await self._send_json(_OK, body)
            case Refusal(message, status, kind):
                await self._send_error(ErrorReply(status=status, kind=kind, message=message))
            case ErrorReply():
                await self._send_error(decision)
        self._received.finished = not self._connection.is_aborted

    async def _send_message(self, message: ReplyMessage) -> None:
        await self._wait_for(message.reply.after)
        cut_after = message.reply.cut_after
        if self._received.body.get("stream") is True:
            await self._send_stream(message, cut_after)
        elif message.reply.breaks is not None:
            await self._send_error(message.reply.breaks)
        else:
            for item in message.content:
                if isinstance(item, Pause | ReleaseEvent):
                    await self._wait_for(item)
            await self._send_json(_OK, message_body(message), cut=-1 if cut_after is None else cut_after)

    async def _send_stream(self, message: ReplyMessage, cut_after: int | None) -> None:
        self._received.status = _OK
        await self._connection.send_head(_OK, [*_STREAM_HEADERS, ("request-id", self._received.request_id)])
        for item in stream_events(message):
            if not isinstance(item, bytes):
                await self._wait_for(item)
                continue
            remaining = None if cut_after is None else cut_after - self._received.sent
            data = item if remaining is None else item[:remaining]
            if data:
                await self._connection.send_chunk(data)
                self._received.sent += len(data)
            if remaining is not None and remaining <= len(item):
                self._connection.abort()
                return
        await self._connection.send_end()

    async def _send_error(self, failure: ErrorReply) -> None:
        await self._wait_for(failure.after)
        if not failure.status:
            self._connection.abort()
            return
        body = error_body(failure.status, failure.kind, failure.message, self._received.request_id)
        should_retry = "true" if failure.status in RETRY_STATUSES else "false"
        headers = {"x-should-retry": should_retry, **failure.headers}
        await self._send_json(failure.status, body, headers=headers)

    async def _send_json(
        self, status: int, body: dict[str, Any], *, headers: dict[str, str] | None = None, cut: int = -1
    ) -> None:
        self._received.status = status
        all_headers = [("content-type", "application/json"), ("request-id", self._received.request_id)]
        all_headers += (headers or {}).items()
        self._received.sent = await self._connection.send_response(status, all_headers, encode(body), cut=cut)

    async def _wait_for(self, wait: Wait | None) -> None:
        if isinstance(wait, Pause):
            await self._pause(wait.seconds)
        elif isinstance(wait, ReleaseEvent):
            await wait.wait_for_release()


class Server:
    """The server; runs during its `async with` block.

    `changes` are fields of `ServerSettings`: `strict`, `signed`, `key`, `seed`, `window`, …
    """

    def __init__(self, responder: Responder, settings: ServerSettings | None = None, **changes: Any) -> None:
        self.responder = responder
        self.settings = msgspec.structs.replace(settings or ServerSettings(), **changes)
        self.url = ""
        self._handler = RequestHandler(responder, self.settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.connections = 0
        """Number of connections so far."""
        self._errors: list[BaseException] = []

    @property
    def requests(self) -> deque[ReceivedRequest]:
        """The last requests, oldest first."""
        return self._handler.requests

    @property
    def refused(self) -> deque[ReceivedRequest]:
        """The last refused requests."""
        return self._handler.refused

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start listening on loopback.

        Raises:
            Unwritable: the port is in use.
        """
        port = self.settings.port
        try:
            self._listener = await asyncio.start_server(self._accept, HOST, port)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else ""
            message = f"cannot listen on {HOST}:{port}: {(reason or str(error)).lower()}"
            raise Unwritable(message, hint="Use another port.") from error
        self.url = f"http://{HOST}:{self._listener.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening and close all connections; raise the first error of the responder."""
        if self._listener is None:
            return
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()
        self._listener = None
        if self._errors:
            raise self._errors[0]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = HttpConnection(reader, writer, self.settings.most)
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._tasks.add(task)
        self.connections += 1
        task.add_done_callback(self._connection_ended)
        # A task that was cancelled before it started has not closed its connection.
        task.add_done_callback(lambda _task: writer.close())

    def _connection_ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)

    async def _serve(self, connection: HttpConnection) -> None:
        try:
            while await self._handle_next(connection):
                pass
        except OSError:
            # The client has disconnected.
            return
        finally:
            await connection.close()

    async def _handle_next(self, connection: HttpConnection) -> bool:
        """Answer the next request; return whether another one may follow."""
        try:
            request = await connection.read_request()
        except InvalidHttp as error:
            return await self._reject(connection, ErrorReply(status=400, message=str(error)))
        except BodyTooLarge:
            return await self._reject(connection, ErrorReply(status=413))
        if request is None:
            return False
        received = self._handler.record_request(request)
        # Decided immediately, in order of arrival, so that IDs do not depend on timing.
        decision = self._handler.handle(request, received)
        response_writer = ResponseWriter(connection, received, self.settings.pause)
        try:
            is_connected = await connection.run_while_connected(response_writer.send(decision))
        finally:
            if self.settings.on_request is not None:
                self.settings.on_request(received)
        return is_connected and connection.start_next_request()

    async def _reject(self, connection: HttpConnection, failure: ErrorReply) -> bool:
        received = self._handler.record_unreadable()
        await ResponseWriter(connection, received, self.settings.pause).send(failure)
        return False


@contextmanager
def run_server_in_thread(
    responder: Responder, settings: ServerSettings | None = None, **changes: Any
) -> Generator[Server]:
    """Run a server in a thread during the `with` block."""
    server = Server(responder, settings, **changes)
    loop = asyncio.new_event_loop()
    # A separate event loop, because callers that test a blocking client have none.
    thread = threading.Thread(target=_run_loop, args=(loop,), name="steno-server", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
    finally:
        try:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
