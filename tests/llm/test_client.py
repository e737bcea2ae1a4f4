"""The client, against a server on loopback that does to it whatever servers do."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
import pytest
from tests.llm.loopback import (
    BLOCKS,
    END,
    KEY,
    RECORDED,
    USAGE,
    Answer,
    Loopback,
    begun,
    delta,
    ended,
    http,
    loopback,
    message,
    refusal,
    sse,
    stopped,
    streamed,
)

from steno import __version__
from steno.errors import BadRequest
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.messages_api import ApiError, Request, StreamInterrupted, encode_request
from steno.llm.retry_policy import RetryPolicy
from steno.llm.stream_decoder import (
    ResponseAssembler,
    ResponseFinished,
    ResponseStarted,
    RetryScheduled,
    StreamEvent,
    TextDelta,
)

REQUEST = Request(
    model="m-1", max_tokens=100, messages=[{"role": "user", "content": [{"type": "text", "text": "Größe?"}]}]
)
WHOLE = streamed(*RECORDED)
_ASSEMBLY = ResponseAssembler("req_1")
EVENTS = [event for wire in RECORDED for event in _ASSEMBLY.feed(wire)]
_T = TypeVar("_T")


class Pauses:
    """Keeps what it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)


def endpoint_of(server: Loopback, **settings: Any) -> Endpoint:
    given: dict[str, Any] = {"api_key": KEY, "timeout": 20.0, "silence": 20.0}
    return Endpoint(server.url, **(given | settings))


def api_of(server: Loopback, pauses: Pauses | None = None, **settings: Any) -> ApiClient:
    patience = settings.pop("patience", RetryPolicy(retries=2))
    betas = settings.pop("betas", ())
    return ApiClient(
        endpoint_of(server, **settings),
        retry_policy=patience,
        betas=betas,
        sleep=pauses or Pauses(),
        random=lambda: 0.5,
    )


async def events_of(api: ApiClient, request: Request = REQUEST) -> list[StreamEvent]:
    async with aclosing(api.stream(request)) as events:
        return [event async for event in events]


def on(
    answers: list[Answer], work: Callable[[ApiClient, Loopback], Awaitable[_T]], **settings: Any
) -> tuple[_T, Loopback]:
    """Do something with a client of a server that gives these answers."""

    async def run() -> tuple[_T, Loopback]:
        async with loopback(*answers) as server, api_of(server, **settings) as api:
            return await work(api, server), server

    return asyncio.run(run())


async def streaming(api: ApiClient, _server: Loopback) -> list[StreamEvent]:
    return await events_of(api)


async def asking(api: ApiClient, _server: Loopback) -> int:
    return await api.count_tokens(REQUEST)


def failure(answers: list[Answer], work: Any = streaming, **settings: Any) -> ApiError:
    async def run(api: ApiClient, server: Loopback) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await work(api, server)
        return caught.value

    return on(answers, run, **settings)[0]


# What is sent


def test_a_stream_gives_its_events_and_the_whole_response() -> None:
    events, _ = on([WHOLE], streaming)
    assert events == EVENTS
    last = events[-1]
    assert isinstance(last, ResponseFinished)
    assert last.response.blocks == BLOCKS
    assert last.response.usage == USAGE
    assert last.response.request_id == "req_1"


def test_a_request_says_what_it_must() -> None:
    _, server = on([WHOLE], streaming, betas=("b-1", "b-2"))
    got = server.got[0]
    assert got.line == "POST /v1/messages HTTP/1.1"
    assert msgspec.json.decode(got.body)["stream"] is True
    wanted = {
        "x-api-key": KEY,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b-1,b-2",
        "user-agent": f"steno/{__version__}",
        "content-type": "application/json",
        "accept": "text/event-stream",
    }
    assert {name: got.headers.get(name) for name in wanted} == wanted


def test_a_token_goes_as_a_bearer_and_without_betas_there_is_no_header_of_them() -> None:
    _, server = on([WHOLE], streaming, api_key="", auth_token=KEY)
    headers = server.got[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in headers
    assert "anthropic-beta" not in headers


def test_custom_headers_are_sent_and_their_betas_join_the_others() -> None:
    custom = {"X-Team": "blue", "User-Agent": "mine/1", "anthropic-beta": "b-2,b-3"}
    _, server = on([WHOLE], streaming, headers=custom, betas=("b-1", "b-2"))
    headers = server.got[0].headers
    assert (headers["x-team"], headers["user-agent"]) == ("blue", "mine/1")
    assert headers["anthropic-beta"] == "b-1,b-2,b-3"


def test_the_path_of_an_address_stays_before_the_apis_own() -> None:
    async def run() -> str:
        async with loopback(WHOLE) as server:
            server.url += "/gate/"
            async with api_of(server) as api:
                await events_of(api)
            return server.got[0].line

    assert asyncio.run(run()) == "POST /gate/v1/messages HTTP/1.1"


def test_the_same_request_has_the_same_bytes_and_streaming_only_adds_a_last_key() -> None:
    request = msgspec.structs.replace(REQUEST, system=[{"type": "text", "text": "x"}], temperature=1.0)
    plain = encode_request(request)
    again = encode_request(msgspec.convert(msgspec.to_builtins(request), Request))
    assert plain == again
    assert encode_request(msgspec.structs.replace(request, stream=True)) == plain[:-1] + b',"stream":true}'


def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter() -> None:
    more = [*REQUEST.messages, {"role": "assistant", "content": BLOCKS}]
    longer = encode_request(msgspec.structs.replace(REQUEST, messages=more))
    assert longer.startswith(encode_request(REQUEST).removesuffix(b"]}"))


def test_half_a_surrogate_pair_in_a_conversation_is_mended_and_the_rest_left_alone() -> None:
    def asked(text: str) -> bytes:
        messages = [{"role": "user", "content": text, "n": 1.0}]
        return encode_request(msgspec.structs.replace(REQUEST, messages=messages))

    assert asked("a\ud83db") == asked("a\N{REPLACEMENT CHARACTER}b")


def test_a_request_that_is_no_json_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(BadRequest):
        encode_request(msgspec.structs.replace(REQUEST, messages=[{"role": object()}]))


def test_all_requests_go_over_one_connection_when_it_is_free() -> None:
    async def thrice(api: ApiClient, _server: Loopback) -> None:
        for _ in range(3):
            assert (await events_of(api))[-1] == EVENTS[-1]

    assert on([WHOLE], thrice)[1].connections == 1


def test_many_streams_at_once_do_not_mix() -> None:
    async def many(api: ApiClient, _server: Loopback) -> None:
        got = await asyncio.gather(*(events_of(api) for _ in range(20)))
        assert all(events == EVENTS for events in got)

    on([WHOLE], many)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert on([WHOLE], streaming)[0] == EVENTS


# How it arrives


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_chunks_of_any_size_give_the_same_events(step: int) -> None:
    raw = http(200, sse(*RECORDED), "text/event-stream", framing="chunked", step=step, request_id="req_1")
    assert on([Answer(raw=raw)], streaming)[0] == EVENTS


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_bytes_that_drip_one_by_one_give_the_same_events(framing: Any) -> None:
    raw = http(200, sse(*RECORDED), "text/event-stream", framing=framing, request_id="req_1")
    answer = Answer(raw=raw, drip=1, end="close" if framing == "close" else "keep")
    assert on([answer], streaming)[0] == EVENTS


async def until_cut(api: ApiClient) -> tuple[list[StreamEvent], StreamInterrupted | None]:
    events: list[StreamEvent] = []
    try:
        async with aclosing(api.stream(REQUEST)) as stream:
            async for event in stream:
                events += [event]
    except StreamInterrupted as error:
        return events, error
    return events, None


def _allowed(events: list[StreamEvent], cut: StreamInterrupted | None) -> None:
    """A stream that was cut was either made anew or gave what was whole; nothing else."""
    if cut is None:
        again = next(i for i, event in enumerate(events) if isinstance(event, RetryScheduled))
        assert events[again + 1 :] == EVENTS
        assert not [event for event in events[:again] if type(event).__name__ == "BlockFinished"]
        return
    assert not [event for event in events if isinstance(event, RetryScheduled | ResponseFinished)]
    assert events == EVENTS[: len(events)]
    whole = [block for block in cut.partial.blocks if block in BLOCKS]
    assert whole == BLOCKS[: len(whole)]
    assert whole
    begun_text = cut.partial.blocks[len(whole) :]
    assert len(begun_text) <= 1
    for block in begun_text:
        assert block["type"] == "text"
        assert BLOCKS[1]["text"].startswith(block["text"])


@pytest.mark.parametrize(
    ("framing", "start", "stride"), [*(("close", part, 4) for part in range(4)), ("chunked", 0, 9)]
)
def test_a_stream_cut_at_every_byte_is_made_anew_or_gives_what_was_whole(framing: Any, start: int, stride: int) -> None:
    """From the first byte of the answer's head on; where EOF is no error by itself, everywhere."""
    raw = http(200, sse(*RECORDED), "text/event-stream", framing=framing, request_id="req_1")
    first = raw.index(b"\n\n", raw.index(b'"content_block_stop"')) + 2
    last = raw.index(b"\n\n", raw.index(b'"message_stop"')) + 2
    whole = Answer(raw=raw, end="close")

    async def run() -> None:
        async with loopback(whole) as server, api_of(server) as api:
            for size in range(start, len(raw), stride):
                server.answers = [Answer(raw=raw[:size], end="close"), whole]
                events, cut = await until_cut(api)
                if size >= last:
                    assert events == EVENTS
                    continue
                assert (cut is not None) == (size >= first), size
                _allowed(events, cut)

    asyncio.run(run())


def test_a_connection_that_is_reset_is_no_other_than_one_that_is_closed() -> None:
    half = WHOLE.raw[: WHOLE.raw.index(b"Gr")]
    events = on([Answer(raw=half, end="abort"), WHOLE], streaming)[0]
    _allowed(events, None)


def test_a_stream_that_goes_silent_is_cut() -> None:
    half = WHOLE.raw[: WHOLE.raw.index(b" here")]
    error = failure([Answer(raw=half, end="hang")], silence=0.3)
    assert isinstance(error, StreamInterrupted)
    assert error.partial.blocks == [BLOCKS[0], BLOCKS[1] | {"text": "I am "}]
    assert "from 127.0.0.1" in str(error)


def test_a_server_that_never_answers_is_asked_again_and_then_given_up() -> None:
    error = failure([Answer(end="hang")], timeout=0.05)
    assert (error.status, error.kind) == (0, "timeout")
    assert "timed out waiting for a response" in str(error)


def test_a_server_that_hangs_after_the_last_event_does_not_hold_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.llm.client._LINGER_SECONDS", 0.01)
    body = WHOLE.raw.removesuffix(b"0\r\n\r\n")
    assert on([Answer(raw=body, end="hang")], streaming)[0] == EVENTS


def test_nobody_there_is_told_by_their_port_and_not_tried_for_long() -> None:
    pauses = Pauses()

    async def run() -> ApiError:
        async with loopback(WHOLE) as server:
            pass
        async with api_of(server, pauses=pauses, patience=RetryPolicy()) as api:
            with pytest.raises(ApiError, match=r"cannot connect to 127\.0\.0\.1:\d+") as caught:
                await events_of(api)
        return caught.value

    assert asyncio.run(run()).kind == "connection_refused"
    assert len(pauses.waited) == RetryPolicy().unheard < RetryPolicy().retries


# Trying again


def test_an_overloaded_server_is_asked_again_after_a_pause() -> None:
    pauses = Pauses()
    busy = refusal(529, "overloaded_error", "Overloaded", request_id="req_0")
    events, server = on([busy, busy, WHOLE], streaming, pauses=pauses)
    retries = [event for event in events if isinstance(event, RetryScheduled)]
    assert [(event.attempt, event.of, event.delay) for event in retries] == [(1, 2, 0.25), (2, 2, 0.5)]
    assert [event.error.status for event in retries] == [529, 529]
    assert retries[0].error.request_id == "req_0"
    assert pauses.waited == [0.25, 0.5]
    assert events[2:] == EVENTS
    assert len({got.body for got in server.got}) == 1


def test_patience_ends() -> None:
    error = failure([refusal(529, "overloaded_error", "Overloaded")])
    assert (error.status, error.kind, str(error)) == (529, "overloaded_error", "Overloaded")


def test_the_pause_is_as_long_as_the_server_asks() -> None:
    pauses = Pauses()
    limited = refusal(429, "rate_limit_error", "Slower", retry_after="17")
    on([limited, WHOLE], streaming, pauses=pauses)
    assert pauses.waited == [17.0]


def test_a_server_that_asks_for_more_time_than_there_is_gets_none() -> None:
    pauses = Pauses()
    limited = refusal(429, "rate_limit_error", "Slower", retry_after="17")
    error = failure([limited], pauses=pauses, patience=RetryPolicy(total=10.0))
    assert (error.retry_after, pauses.waited) == (17.0, [])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
    ],
)
def test_a_refusal_that_would_come_again_is_told_at_once(status: int, kind: str) -> None:
    pauses = Pauses()
    error = failure([refusal(status, kind, "No.", request_id="req_7")], pauses=pauses)
    assert (error.status, error.kind, str(error)) == (status, kind, "No.")
    assert error.request_id == "req_7"
    assert pauses.waited == []


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_overloaded_in_a_stream_before_a_block_is_whole_is_tried_again() -> None:
    events = on([streamed(*RECORDED[:4], OVERLOADED), WHOLE], streaming)[0]
    retry = next(event for event in events if isinstance(event, RetryScheduled))
    assert (retry.error.status, retry.error.kind) == (529, "overloaded_error")
    assert retry.error.request_id == "req_1"
    _allowed(events, None)


def test_overloaded_in_a_stream_to_the_end_of_patience_is_that_error() -> None:
    error = failure([streamed(*RECORDED[:4], OVERLOADED)])
    assert (error.status, error.kind) == (529, "overloaded_error")
    assert not isinstance(error, StreamInterrupted)


def test_overloaded_in_a_stream_after_a_block_is_whole_is_a_cut() -> None:
    error = failure([streamed(*RECORDED[:9], OVERLOADED)])
    assert isinstance(error, StreamInterrupted)
    assert (error.status, error.kind, str(error)) == (529, "stream_cut", "Overloaded")
    assert [block["type"] for block in error.partial.blocks] == ["thinking", "text"]
    assert error.partial.usage["input_tokens"] == 9
    assert error.request_id == "req_1"


def test_a_stream_cut_to_the_end_of_patience_gives_the_text_that_was_begun() -> None:
    start = (message(), begun(0, "text", text=""), delta(0, "text", text="Hel"))
    error = failure([streamed(*start)])
    assert isinstance(error, StreamInterrupted)
    assert error.partial.blocks == [{"type": "text", "text": "Hel"}]


def test_text_of_a_void_try_is_told_before_the_retry_and_again_after() -> None:
    text = (message(), begun(0, "text", text=""), delta(0, "text", text="Hi"))
    rest = (ended(0), stopped("end_turn"), END)
    events = on([streamed(*text), streamed(*text, *rest)], streaming)[0]
    told = [event for event in events if isinstance(event, ResponseStarted | TextDelta | RetryScheduled)]
    assert [type(event).__name__ for event in told] == [
        "ResponseStarted",
        "TextDelta",
        "RetryScheduled",
        "ResponseStarted",
        "TextDelta",
    ]


@pytest.mark.parametrize(
    "body", [b"data: hello\n\n", b"data: []\n\n", sse(ended(0)), sse(message(), message()), b"", b"\xff"]
)
def test_a_stream_of_nonsense_is_tried_again(body: bytes) -> None:
    nonsense = Answer(raw=http(200, body, "text/event-stream"))
    events = on([nonsense, WHOLE], streaming)[0]
    _allowed(events, None)


def test_an_event_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.llm.client.SseParser.__init__.__kwdefaults__", {"max_bytes": 1000})
    endless = Answer(raw=http(200, b"data: " + b"x" * 5000, "text/event-stream"), end="hang")
    assert "too large" in str(failure([endless]))


# Answers that are none


@pytest.mark.parametrize("work", [streaming, asking])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (502, b"<html><title>Bad Gateway</title></html>", "text/html"),
        (503, b"", "text/plain"),
        (500, b"\xff\xfe", "application/json"),
        (400, b'{"error":', "application/json"),
        (404, b"[]", "application/json"),
        (200, b"<html>Log in to the network</html>", "text/html; charset=utf-8"),
        (204, b"", "text/plain"),
    ],
)
def test_an_answer_of_somebody_else_is_an_error_with_its_status(work: Any, status: int, body: bytes, kind: str) -> None:
    framing = "close" if status == 204 else "length"
    raw = http(status, body, kind, framing=framing)
    error = failure([Answer(raw=raw, end="close")], work)
    assert error.status == status
    assert str(error).startswith(f"127.0.0.1 returned status {status} with ")


def test_an_answer_that_does_not_stream_although_it_should_is_told() -> None:
    body = b'{"type":"error","error":{"type":"odd_error","message":"no streams here"}}'
    error = failure([Answer(raw=http(200, body))])
    assert (error.status, error.kind, str(error)) == (200, "odd_error", "no streams here")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_goes_nowhere_else(status: int) -> None:
    async def run() -> None:
        async with loopback(WHOLE) as other, loopback() as server:
            target = f"{other.url}/v1/messages"
            server.answers = [Answer(raw=http(status, b"", location=target))]
            async with api_of(server) as api:
                with pytest.raises(ApiError, match="to protect the API key") as caught:
                    await events_of(api)
            assert caught.value.status == status
            assert (len(server.got), other.got) == (1, [])

    asyncio.run(run())


@pytest.mark.parametrize("work", [streaming, asking])
def test_a_server_that_says_the_key_aloud_is_not_repeated(work: Any) -> None:
    told = f"invalid key {KEY} (x-api-key: {KEY})"
    answers = [
        refusal(401, f"authentication_error {KEY}", told, request_id=KEY),
        refusal(529, "overloaded_error", told),
        Answer(raw=http(302, b"", location=f"https://x.example/?key={KEY}")),
        streamed(message(), {"type": "error", "error": {"type": KEY, "message": told}}),
    ]
    for answer in answers:
        error = failure([answer], work, patience=RetryPolicy(retries=0))
        shown = "".join(traceback.format_exception(error))
        shown += repr(error) + error.hint + error.kind + error.request_id + repr(error.args)
        assert KEY not in shown


def test_the_key_is_in_no_picture_of_a_client() -> None:
    async def pictures(api: ApiClient, _server: Loopback) -> str:
        await events_of(api)
        return repr(api) + repr(api.endpoint) + repr(vars(api)) + repr(vars(api._client))

    assert KEY not in on([WHOLE], pictures)[0]


def test_an_error_of_many_lines_and_colours_is_one_line() -> None:
    error = failure([refusal(400, "invalid_request_error", "a\n\x1b[31mb\u202e" + "x" * 9999)])
    assert str(error).startswith("a ␛[31mb\\u{202e}xxx")
    assert len(str(error)) <= 2000


# Stopping


def test_cancelling_closes_the_connection_at_once() -> None:
    half = WHOLE.raw[: WHOLE.raw.index(b" here")]

    async def cancelled(api: ApiClient, server: Loopback) -> None:
        task = asyncio.create_task(events_of(api))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()

    on([Answer(raw=half, end="hang")], cancelled)


def test_cancelling_before_the_answer_closes_the_connection_at_once() -> None:
    async def cancelled(api: ApiClient, server: Loopback) -> None:
        task = asyncio.create_task(events_of(api))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()

    on([Answer(end="hang")], cancelled)


def test_closing_the_stream_closes_the_connection_at_once() -> None:
    half = WHOLE.raw[: WHOLE.raw.index(b" here")]

    async def closed(api: ApiClient, server: Loopback) -> None:
        async with aclosing(api.stream(REQUEST)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await server.left.wait()

    on([Answer(raw=half, end="hang")], closed)


def test_cancelling_in_a_pause_asks_no_more() -> None:
    async def run() -> int:
        waiting = asyncio.Event()

        async def forever(_seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        async with (
            loopback(refusal(529, "overloaded_error", "x")) as server,
            ApiClient(endpoint_of(server), sleep=forever) as api,
        ):
            task = asyncio.create_task(events_of(api))
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return len(server.got)

    assert asyncio.run(run()) == 1


# Without a stream


def test_asking_tries_again_and_gives_up() -> None:
    pauses = Pauses()
    busy = refusal(500, "api_error", "Oops")
    good = Answer(raw=http(200, b'{"input_tokens":2}'))
    assert on([busy, good], asking, pauses=pauses)[0] == 2
    assert failure([busy], asking, pauses=pauses).status == 500
    assert pauses.waited == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_an_answer_cut_at_every_byte_is_asked_for_again(framing: Any) -> None:
    raw = http(200, b'{"input_tokens":3,"of_tomorrow":"}"}', framing=framing)

    async def run() -> None:
        async with loopback(Answer()) as server, api_of(server) as api:
            for size in range(len(raw) + 1):
                server.answers = [Answer(raw=raw[:size], end="close"), Answer(raw=raw, end="close")]
                assert await api.count_tokens(REQUEST) == 3

    asyncio.run(run())


@pytest.mark.parametrize("body", [b"{}", b'{"content":5}', b'{"content":[5]}', b"[{}", b"5"])
def test_an_answer_that_is_no_count_is_told(body: bytes) -> None:
    error = failure([Answer(raw=http(200, body))], asking)
    assert (error.status, error.kind) == (200, "bad_answer")


def test_counting_tokens_sends_only_what_counts() -> None:
    request = msgspec.structs.replace(
        REQUEST, system=[{"type": "text", "text": "x"}], temperature=0.5, stop_sequences=["x"]
    )

    async def counting(api: ApiClient, _server: Loopback) -> int:
        return await api.count_tokens(request)

    tokens, server = on([Answer(raw=http(200, b'{"input_tokens":42}'))], counting)
    assert tokens == 42
    assert server.got[0].line == "POST /v1/messages/count_tokens HTTP/1.1"
    assert set(msgspec.json.decode(server.got[0].body)) == {"model", "messages", "system"}


def test_a_client_can_be_used_again_after_it_was_closed() -> None:
    async def twice(api: ApiClient, _server: Loopback) -> list[StreamEvent]:
        await events_of(api)
        await api.aclose()
        await api.aclose()
        return await events_of(api)

    assert on([WHOLE], twice)[0] == EVENTS


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    import subprocess
    import sys

    code = (
        "import sys, steno.llm.client\n"
        "heavy = {'httpx2', 'httpcore2', 'anyio', 'h11', 'urllib.request', 'email.utils'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
