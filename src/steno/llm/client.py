"""Client of the Messages API.

async with ApiClient(Endpoint.from_environment(os.environ)) as client:
    async with aclosing(client.stream(request)) as events:
        async for event in events:
            ...

An `ApiClient` has one connection pool and belongs to one event loop. Equal requests have equal bytes, so that the
prompt cache of the API can be used.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self, cast

import msgspec

from steno._version import __version__
from steno.format.lenient_json import DECODE_ERRORS
from steno.llm.endpoint import Endpoint
from steno.llm.messages_api import (
    COUNT_PATH,
    MESSAGES_PATH,
    ApiError,
    Request,
    StreamInterrupted,
    encode_count_request,
    encode_request,
)
from steno.llm.retry_policy import DEFAULT_RETRY_POLICY, RetryPolicy, error_from_response, max_retries, retry_delay
from steno.llm.stream_decoder import (
    BAD_STREAM,
    RESPONSE_EVENTS,
    ApiEvent,
    ResponseAssembler,
    RetryScheduled,
    SseEvent,
    SseParser,
    StreamEvent,
    decode_event,
)
from steno.store.environment import now

if TYPE_CHECKING:
    import httpx2


_VERSION: Final = "2023-06-01"


def create_http_client(endpoint: Endpoint, betas: tuple[str, ...]) -> "httpx2.AsyncClient":
    """Return an HTTP client that has its own connection pool and signs its requests."""
    import ssl

    import httpx2

    def sign(request: httpx2.Request) -> httpx2.Request:
        endpoint.sign(request.headers)
        return request

    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "anthropic-version": _VERSION,
        "user-agent": f"steno/{__version__}",
    }
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    # Loading the system's certificates takes longer than a small request.
    is_plain_http = endpoint.base_url.startswith("http:")
    return httpx2.AsyncClient(
        auth=sign,
        headers=headers,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain_http else httpx2.create_ssl_context(),
        http2=False,
        follow_redirects=False,  # the key must not be sent to another host
        trust_env=not endpoint.local,
        timeout=httpx2.Timeout(endpoint.timeout, connect=endpoint.connect),
        limits=httpx2.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=60.0),
    )


async def read_limited(response: "httpx2.Response", max_bytes: int) -> bytes:
    """Read a response body up to `max_bytes`."""
    raw = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            raw += chunk
            if len(raw) >= max_bytes:
                break
    return bytes(raw[:max_bytes])


@contextmanager
def translate_errors(endpoint: Endpoint, timeout_message: str) -> Generator[None, None, None]:
    """Convert network errors to ApiError, without the key in the message."""
    import httpx2

    try:
        yield
    except (httpx2.TimeoutException, TimeoutError):
        raise ApiError(timeout_message, kind="timeout") from None
    except httpx2.InvalidURL:
        raise ApiError("the API address is not a valid URL", kind="bad_url") from None
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        message_text = endpoint.redact(str(error)) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in message_text:
            failure = ApiError(
                f"cannot verify the certificate of {endpoint.host}: {message_text}", kind="certificate_error"
            )
            failure.hint = "Behind a proxy with its own certificate, set SSL_CERT_FILE."
            raise failure from None
        if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
            message = f"cannot connect to {endpoint.place}: {message_text}"
            # No process listens on the port; retrying rarely helps.
            kind = "connection_refused" if _is_refused(error) else "connection_error"
            raise ApiError(message, kind=kind) from None
        message = f"lost the connection to {endpoint.host}: {message_text}"
        raise ApiError(message, kind="connection_error") from None


def _is_refused(error: BaseException) -> bool:
    """Return whether an error was caused by a refused connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            # One exception per address of the host.
            causes = cast("BaseExceptionGroup[BaseException]", cause).exceptions
            return all(map(_is_refused, causes))
        if isinstance(cause, ConnectionRefusedError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


_MAX_RESPONSE: Final = 256 << 20  # limits the memory used by one response
_MAX_ERROR: Final = 64 << 10
_LINGER_SECONDS: Final = 1.0
_OK: Final = 200
# An HTML page of a proxy, or an error with status 200. Other content types are read, because some servers send wrong
# ones.
_UNEXPECTED_TYPES: Final = frozenset({"text/html", "application/json"})


class _CountBody(msgspec.Struct):
    input_tokens: int


class ApiClient:
    """Sends requests to the Messages API and retries them."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
        betas: tuple[str, ...] = (),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] | None = None,
        api_events: bool = False,
    ) -> None:
        """Create a client; with `api_events`, streams also contain the raw API events."""
        self.endpoint = endpoint
        self.retry_policy = retry_policy
        self.betas = tuple(dict.fromkeys((*betas, *endpoint.betas)))
        self._sleep = sleep
        self._random = random or _random
        self._api_events = api_events
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

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Stream the events of a response; the last one is `ResponseFinished`.

        Failures before the first finished block are retried: `RetryScheduled` is sent, and events since the last
        `ResponseStarted` are void. Cancel the task or close the generator to stop; the connection is closed at once.

        Raises:
            StreamInterrupted: the stream failed later; `partial` contains the blocks received.
            ApiError: the API refused the request, or all retries failed.
        """
        body = encode_request(msgspec.structs.replace(request, stream=True))
        started = _loop_time()
        attempt = 1
        while True:
            assembler = ResponseAssembler()
            try:
                async with aclosing(self._stream_once(body, assembler)) as events:
                    async for event in events:
                        yield event
            except ApiError as error:
                if assembler.finished_block_count:
                    raise _stream_interrupted(error, assembler) from error
                delay = self._retry_delay(error, attempt, _loop_time() - started)
                if delay is None and assembler.started and not error.status:
                    raise _stream_interrupted(error, assembler) from error
                if delay is None:
                    raise
                retry = RetryScheduled(attempt, max_retries(error, self.retry_policy), delay, _without_traceback(error))
            else:
                return
            yield retry
            await self._sleep(retry.delay)
            attempt += 1

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request.

        Raises:
            ApiError: the API refused the request, or all retries failed.
        """
        body = encode_count_request(request)
        started = _loop_time()
        attempt = 1
        while True:
            try:
                return await self._count_once(body)
            except ApiError as error:
                delay = self._retry_delay(error, attempt, _loop_time() - started)
                if delay is None:
                    raise
            await self._sleep(delay)
            attempt += 1

    def _retry_delay(self, error: ApiError, attempt: int, elapsed: float) -> float | None:
        return retry_delay(error, attempt, policy=self.retry_policy, random=self._random, elapsed=elapsed)

    async def _count_once(self, body: bytes) -> int:
        endpoint = self.endpoint
        async with self._open_response(COUNT_PATH, body, "application/json") as response:
            with translate_errors(endpoint, f"timed out reading the response from {endpoint.host}"):
                async with asyncio.timeout(endpoint.timeout):
                    raw = await read_limited(response, _MAX_RESPONSE)
        request_id = response.headers.get("request-id", "")
        try:
            return msgspec.json.decode(raw, type=_CountBody).input_tokens
        except DECODE_ERRORS as error:
            is_truncated = not isinstance(error, msgspec.ValidationError) and raw[:1] in b"{"
        if is_truncated:
            message = f"incomplete response from {endpoint.host}"
            raise ApiError(message, kind="connection_error", request_id=request_id)
        # A success status prevents a retry, which would get the same response.
        message = f"unexpected response from {endpoint.host}"
        raise ApiError(message, status=_OK, kind="bad_answer", request_id=request_id)

    async def _stream_once(self, body: bytes, assembler: ResponseAssembler) -> AsyncGenerator[StreamEvent, None]:
        parser = SseParser()
        async with self._open_response(MESSAGES_PATH, body, "text/event-stream") as response:
            assembler.request_id = response.headers.get("request-id", "")
            async with aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    for sse_event in parser.feed(chunk):
                        for event in self._decode_sse(assembler, sse_event):
                            yield event
                    if assembler.done:
                        break
                    if parser.overflowed:
                        raise ApiError("an event in the stream is too large", kind=BAD_STREAM)
                else:
                    raise ApiError("the stream ended before the response was complete", kind="stream_cut")
                # Reading the end of the body allows the next request to reuse the connection. Do not wait long for it.
                with suppress(ApiError, TimeoutError):
                    async with asyncio.timeout(_LINGER_SECONDS):
                        async for _ in chunks:
                            pass

    def _decode_sse(self, assembler: ResponseAssembler, sse_event: SseEvent) -> list[StreamEvent]:
        try:
            event = decode_event(sse_event)
            if event is None:
                return []
            events = assembler.feed(event)
            includes_api_event = self._api_events and event.get("type") in RESPONSE_EVENTS
            return [ApiEvent(event), *events] if includes_api_event else events
        except ApiError as error:
            error.request_id = error.request_id or assembler.request_id
            self._redact_error(error)
            raise

    async def _chunks(self, response: "httpx2.Response") -> AsyncGenerator[bytes, None]:
        endpoint = self.endpoint
        size = 0
        async with aclosing(response.aiter_bytes()) as chunks:
            while True:
                with translate_errors(endpoint, f"timed out waiting for the next event from {endpoint.host}"):
                    async with asyncio.timeout(endpoint.silence):
                        chunk = await anext(chunks, None)
                if chunk is None:
                    return
                size += len(chunk)
                if size > _MAX_RESPONSE:
                    raise ApiError("the response is too large", kind=BAD_STREAM)
                yield chunk

    @asynccontextmanager
    async def _open_response(self, path: str, body: bytes, accept: str) -> "AsyncGenerator[httpx2.Response, None]":
        """Send a request and yield the response, with its body still unread.

        Raises:
            ApiError: no response arrived, or it is an error.
        """
        endpoint = self.endpoint
        client = self._get_client()
        with translate_errors(endpoint, f"timed out waiting for a response from {endpoint.host}"):
            request = client.build_request("POST", endpoint.base_url + path, content=body, headers={"accept": accept})
            async with asyncio.timeout(endpoint.timeout):
                response = await client.send(request, stream=True)
        try:
            content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != _OK or content_type in _UNEXPECTED_TYPES - {accept}:
                raise await self._refusal_error(response)
            yield response
        finally:
            await response.aclose()

    def _get_client(self) -> "httpx2.AsyncClient":
        if self._client is None:
            self._client = create_http_client(self.endpoint, self.betas)
        return self._client

    async def _refusal_error(self, response: "httpx2.Response") -> ApiError:
        raw = b""
        # The body may contain a message, but the status is enough.
        with suppress(ApiError), translate_errors(self.endpoint, ""):
            async with asyncio.timeout(self.endpoint.connect):
                raw = await read_limited(response, _MAX_ERROR)
        error = error_from_response(response.status_code, response.headers, raw, self.endpoint.host, now())
        return self._redact_error(error)

    def _redact_error(self, error: ApiError) -> ApiError:
        """Remove the key from an error message written by the server."""
        error.args = (self.endpoint.redact(str(error)),)
        error.kind = self.endpoint.redact(error.kind)
        error.request_id = self.endpoint.redact(error.request_id)
        return error


def _without_traceback(error: ApiError) -> ApiError:
    """Return an error without references to stack frames, for callers that keep it."""
    error.__context__ = None
    return error.with_traceback(None)


def _stream_interrupted(error: ApiError, assembler: ResponseAssembler) -> StreamInterrupted:
    interruption = StreamInterrupted(str(error), partial=assembler.partial_response())
    interruption.status = error.status
    interruption.retry_after = error.retry_after
    interruption.hint = error.hint
    return interruption


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


def _random() -> float:
    from random import SystemRandom

    return SystemRandom().random()
