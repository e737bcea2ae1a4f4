"""A client of the Messages API.

async with Api(Endpoint.from_environment(os.environ)) as api:
    async with aclosing(api.stream(request)) as events:
        async for event in events:
            ...

One `Api` keeps one set of connections and belongs to one event loop. The same request has the same
bytes every time, so that what the API has cached of it is found again.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from steno.format.loose import REFUSED
from steno.model.assembly import BAD_STREAM, TOLD, Assembly, event_of
from steno.model.bodies import body_of, counted
from steno.model.connection import connected, read_up_to, told
from steno.model.endpoint import Endpoint
from steno.model.events import Event, Retrying, Verbatim
from steno.model.retry import PATIENCE, Patience, pause, refused, tries
from steno.model.sse import Reader, Sse
from steno.model.wire import ApiError, Block, Request, Response, StreamCut
from steno.store.clock import now

if TYPE_CHECKING:
    import httpx2

__all__ = ["Api"]

_MESSAGES: Final = "/v1/messages"
_COUNT: Final = "/v1/messages/count_tokens"
_MOST: Final = 256 << 20  # of one answer, so that a server without end does not fill the memory
_MOST_OF_ERROR: Final = 64 << 10
_LINGER: Final = 1.0
_OK: Final = 200
# A page of somebody in between, or an error that calls itself a success. Others are looked into:
# not every server says right what it sends.
_WRONG: Final = frozenset({"text/html", "application/json"})
_T = TypeVar("_T")


class _Answer(msgspec.Struct):
    """A response that came in one piece."""

    content: list[Block]
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: dict[str, Any] | None = None


class _Count(msgspec.Struct):
    input_tokens: int


class Api:
    """Asks the Messages API, and asks again where that may help."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        patience: Patience = PATIENCE,
        betas: tuple[str, ...] = (),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] | None = None,
        verbatim: bool = False,
    ) -> None:
        """Take what to ask; with `verbatim` streams also hold the API's events as they came."""
        self.endpoint = endpoint
        self.patience = patience
        self.betas = tuple(dict.fromkeys((*betas, *endpoint.betas)))
        self._sleep = sleep
        self._random = random or _chance
        self._verbatim = verbatim
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # The three things one can ask

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask and give what comes, as it comes; the last event is `Ended`.

        A failure before the first block is whole is made good by asking again: what came since
        the last `Started` is then void, and `Retrying` says so. To stop, cancel the task or close
        the generator: the connection is closed at once.

        Raises:
            StreamCut: the stream failed after that; `partial` has what there was.
            ApiError: the API refused, or did not answer for longer than patience lasts.
        """
        body = body_of(msgspec.structs.replace(request, stream=True))
        begun = _time()
        attempt = 1
        while True:
            assembly = Assembly()
            try:
                async with aclosing(self._events(body, assembly)) as events:
                    async for event in events:
                        yield event
            except ApiError as error:
                if assembly.whole_blocks:
                    raise _cut(error, assembly) from error
                wait = self._pause(error, attempt, _time() - begun)
                if wait is None and assembly.started and not error.status:
                    raise _cut(error, assembly) from error
                if wait is None:
                    raise
                again = Retrying(attempt, tries(error, self.patience), wait, _bare(error))
            else:
                return
            yield again
            await self._sleep(again.delay)
            attempt += 1

    async def ask(self, request: Request) -> Response:
        """Ask and wait for the whole response.

        Raises:
            ApiError: the API refused, or did not answer for longer than patience lasts.
        """
        body = body_of(msgspec.structs.replace(request, stream=False))
        answer, request_id = await self._patiently(_MESSAGES, body, _Answer)
        return Response(
            id=answer.id,
            model=answer.model,
            blocks=answer.content,
            stop_reason=answer.stop_reason,
            stop_sequence=answer.stop_sequence,
            usage=answer.usage or {},
            request_id=request_id,
        )

    async def count_tokens(self, request: Request) -> int:
        """Return how many tokens a request has as input.

        Raises:
            ApiError: the API refused, or did not answer for longer than patience lasts.
        """
        count, _ = await self._patiently(_COUNT, counted(request), _Count)
        return count.input_tokens

    # How it is done

    def _pause(self, error: ApiError, attempt: int, spent: float) -> float | None:
        return pause(error, attempt, patience=self.patience, random=self._random, spent=spent)

    async def _patiently(self, path: str, body: bytes, kind: type[_T]) -> tuple[_T, str]:
        begun = _time()
        attempt = 1
        while True:
            try:
                return await self._once(path, body, kind)
            except ApiError as error:
                wait = self._pause(error, attempt, _time() - begun)
                if wait is None:
                    raise
            await self._sleep(wait)
            attempt += 1

    async def _once(self, path: str, body: bytes, kind: type[_T]) -> tuple[_T, str]:
        endpoint = self.endpoint
        async with self._opened(path, body, "application/json") as response:
            with told(endpoint, f"{endpoint.host} stopped in the middle of its answer"):
                async with asyncio.timeout(endpoint.timeout):
                    raw = await read_up_to(response, _MOST)
        request_id = response.headers.get("request-id", "")
        try:
            return msgspec.json.decode(raw, type=kind), request_id
        except REFUSED as error:
            is_cut = not isinstance(error, msgspec.ValidationError) and raw[:1] in b"{"
        if is_cut:
            said = f"{endpoint.host} stopped in the middle of its answer"
            raise ApiError(said, kind="connection_error", request_id=request_id)
        # With its status, a success, so that nobody asks again: the same would come.
        said = f"{endpoint.host} answered with something that is no answer of the API"
        raise ApiError(said, status=_OK, kind="bad_answer", request_id=request_id)

    async def _events(self, body: bytes, assembly: Assembly) -> AsyncGenerator[Event, None]:
        """Make one try, and give the events of its stream."""
        reader = Reader()
        async with self._opened(_MESSAGES, body, "text/event-stream") as response:
            assembly.request_id = response.headers.get("request-id", "")
            async with aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    for sse in reader.feed(chunk):
                        for event in self._taken(assembly, sse):
                            yield event
                    if assembly.done:
                        break
                    if reader.overflowed:
                        raise ApiError("an event of the stream is too large", kind=BAD_STREAM)
                else:
                    raise ApiError("the stream ended in the middle of it", kind="stream_cut")
                # The end of the answer is behind its last event; once it is read, the next
                # request can use the same connection. It is not worth waiting for.
                with suppress(ApiError, TimeoutError):
                    async with asyncio.timeout(_LINGER):
                        async for _ in chunks:
                            pass

    def _taken(self, assembly: Assembly, sse: Sse) -> list[Event]:
        try:
            event = event_of(sse)
            if event is None:
                return []
            meant = assembly.take(event)
            is_told = self._verbatim and event.get("type") in TOLD
            return [Verbatim(event), *meant] if is_told else meant
        except ApiError as error:
            error.request_id = error.request_id or assembly.request_id
            self._cleaned(error)
            raise

    async def _chunks(self, response: "httpx2.Response") -> AsyncGenerator[bytes, None]:
        """Give the bytes of an answer; a silence that is too long is a failure."""
        endpoint = self.endpoint
        size = 0
        async with aclosing(response.aiter_bytes()) as chunks:
            while True:
                with told(endpoint, f"{endpoint.host} stopped in the middle of a stream"):
                    async with asyncio.timeout(endpoint.silence):
                        chunk = await anext(chunks, None)
                if chunk is None:
                    return
                size += len(chunk)
                if size > _MOST:
                    raise ApiError("the answer does not end", kind=BAD_STREAM)
                yield chunk

    @asynccontextmanager
    async def _opened(
        self, path: str, body: bytes, accept: str
    ) -> "AsyncGenerator[httpx2.Response, None]":
        """Send a request and give the answer, whose body is still to be read, if it is a good one.

        Raises:
            ApiError: there was no answer, or it is a refusal.
        """
        endpoint = self.endpoint
        client = self._connected()
        with told(endpoint, f"{endpoint.host} does not answer"):
            request = client.build_request(
                "POST", endpoint.base_url + path, content=body, headers={"accept": accept}
            )
            async with asyncio.timeout(endpoint.timeout):
                response = await client.send(request, stream=True)
        try:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != _OK or kind in _WRONG - {accept}:
                raise await self._refusal(response)
            yield response
        finally:
            await response.aclose()

    def _connected(self) -> "httpx2.AsyncClient":
        """Return the client with its connections, made when it is first needed."""
        if self._client is None:
            self._client = connected(self.endpoint, self.betas)
        return self._client

    # What went wrong

    async def _refusal(self, response: "httpx2.Response") -> ApiError:
        raw = b""
        # What it says is welcome, but that it says no is what counts.
        with suppress(ApiError), told(self.endpoint, ""):
            async with asyncio.timeout(self.endpoint.connect):
                raw = await read_up_to(response, _MOST_OF_ERROR)
        error = refused(response.status_code, response.headers, raw, self.endpoint.host, now())
        return self._cleaned(error)

    def _cleaned(self, error: ApiError) -> ApiError:
        """Take the key out of what a server said, should it have said it."""
        error.args = (self.endpoint.shown(str(error)),)
        error.kind = self.endpoint.shown(error.kind)
        error.request_id = self.endpoint.shown(error.request_id)
        return error


def _bare(error: ApiError) -> ApiError:
    """Return an error without what it holds in memory, for those who keep it."""
    error.__context__ = None
    return error.with_traceback(None)


def _cut(error: ApiError, assembly: Assembly) -> StreamCut:
    cut = StreamCut(str(error), partial=assembly.partial())
    cut.status = error.status
    cut.retry_after = error.retry_after
    cut.hint = error.hint
    return cut


def _time() -> float:
    return asyncio.get_running_loop().time()


def _chance() -> float:
    from random import SystemRandom

    return SystemRandom().random()
