"""A Messages API on loopback: strict about what it is sent, told by a mind what to answer.

async with Server(Script().on("hello", "Good day.")) as server:
    ...  # ANTHROPIC_BASE_URL=server.url
"""

import asyncio
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Self

import msgspec

from steno.errors import Unwritable
from steno.model.server.channel import BadHttp, Channel, TooLarge
from steno.model.server.desk import HOST, Desk, Received, Settings
from steno.model.server.minds import Failure, Mind
from steno.model.server.sending import Sender

__all__ = ["Received", "Server", "Settings", "serving"]


class Server:
    """The server, for as long as the `async with` block lasts.

    `changes` are fields of `Settings`: `strict`, `signed`, `key`, `seed`, `window`, …
    """

    def __init__(self, mind: Mind, settings: Settings | None = None, **changes: Any) -> None:
        self.mind = mind
        self.settings = msgspec.structs.replace(settings or Settings(), **changes)
        self.url = ""
        self._desk = Desk(mind, self.settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.connections = 0
        """How many were made to it so far."""
        self._faults: list[BaseException] = []

    @property
    def requests(self) -> deque[Received]:
        """The last requests, oldest first."""
        return self._desk.requests

    @property
    def refused(self) -> deque[Received]:
        """The last requests that broke a rule of the API."""
        return self._desk.refused

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to listen, on loopback only.

        Raises:
            Unwritable: the port is taken.
        """
        port = self.settings.port
        try:
            self._listener = await asyncio.start_server(self._connected, HOST, port)
        except (OSError, OverflowError) as error:
            said = error.strerror if isinstance(error, OSError) else ""
            about = f"cannot listen on {HOST}:{port}: {(said or str(error)).lower()}"
            raise Unwritable(about, hint="another port may be free") from error
        self.url = f"http://{HOST}:{self._listener.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """End the listening and every connection; what went wrong in the mind is raised here."""
        if self._listener is None:
            return
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()
        self._listener = None
        if self._faults:
            raise self._faults[0]

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer, self.settings.most)
        task = asyncio.get_running_loop().create_task(self._serve(channel))
        self._tasks.add(task)
        self.connections += 1
        task.add_done_callback(self._ended)
        # One that is ended before it began has closed nothing.
        task.add_done_callback(lambda _task: writer.close())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._faults.append(fault)

    async def _serve(self, channel: Channel) -> None:
        try:
            while await self._next(channel):
                pass
        except OSError:
            # The client is gone, which is its own affair.
            return
        finally:
            await channel.close()

    async def _next(self, channel: Channel) -> bool:
        """Answer the next request; say whether there may be another one."""
        try:
            request = await channel.request()
        except BadHttp as bad:
            return await self._turn_away(channel, Failure(status=400, message=str(bad)))
        except TooLarge:
            return await self._turn_away(channel, Failure(status=413))
        if request is None:
            return False
        received = self._desk.receive(request)
        # Decided at once, in the order of coming, so that names do not hang on the clock.
        decision = self._desk.decide(request, received)
        sender = Sender(channel, received, self.settings.pause)
        try:
            there = await channel.while_there(sender.send(decision))
        finally:
            if self.settings.on_request is not None:
                self.settings.on_request(received)
        return there and channel.again()

    async def _turn_away(self, channel: Channel, failure: Failure) -> bool:
        received = self._desk.unread()
        await Sender(channel, received, self.settings.pause).send(failure)
        return False


@contextmanager
def serving(mind: Mind, settings: Settings | None = None, **changes: Any) -> Generator[Server]:
    """Run a server in a thread of its own, for as long as the `with` block lasts."""
    server = Server(mind, settings, **changes)
    loop = asyncio.new_event_loop()
    # The loop's own thread: whoever tests a client that blocks has no loop to run it in.
    thread = threading.Thread(target=_run, args=(loop,), name="steno-server", daemon=True)
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


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
