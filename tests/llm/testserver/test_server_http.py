"""The server on the wire: events in the API's order, errors in its form, cuts where they are due."""

import asyncio
import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.llm.testserver.asking import HEADERS, assistant, body, connect, events, receive, result, send, user

from steno.errors import Unwritable
from steno.llm.testserver.request_handler import ReceivedRequest
from steno.llm.testserver.responders import (
    PING,
    ErrorReply,
    Pause,
    ReleaseEvent,
    Reply,
    ReplyBlock,
    ResponderRequest,
    cut_reply,
    error_reply,
    invalid_tool_call,
    redacted_thinking,
    refusal_reply,
    text,
    thinking,
    tool,
)
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server, run_server_in_thread

_STREAM = body(stream=True)


def _ask(answer: Any, asked: dict[str, Any] | None = None, **settings: Any) -> Any:
    with run_server_in_thread(ScriptedResponder().otherwise(answer), **settings) as server:
        return send(server, asked or _STREAM)


def test_a_stream_has_the_events_of_the_api_in_its_order() -> None:
    got = _ask([thinking("Let me see."), text("I look at the file."), tool("Read", path="/a")])
    assert got.status == 200
    assert got.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert got.headers["request-id"].startswith("req_")
    assert got.headers["transfer-encoding"] == "chunked"
    assert got.kinds == [
        "message_start",
        *("content_block_start", "ping", "content_block_delta", "content_block_delta"),
        *("content_block_stop", "content_block_start"),
        *("content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_delta", "content_block_stop", "message_delta", "message_stop"),
    ]
    start, end = got.events[0]["message"], got.events[-2]
    assert start["content"] == []
    assert start["stop_reason"] is None
    assert start["usage"]["output_tokens"] == 1
    assert end["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert end["usage"]["output_tokens"] > 1


def test_the_deltas_make_up_the_blocks_of_the_whole_message() -> None:
    said = [thinking("Hm, hm, and hm again."), text("So it is, as was said."), tool("Read", a=[1])]
    with run_server_in_thread(ScriptedResponder().otherwise(said), seed="s") as server:
        streamed = send(server, _STREAM).events
    with run_server_in_thread(ScriptedResponder().otherwise(said), seed="s") as server:
        whole = send(server).json
    built: list[dict[str, Any]] = []
    for event in streamed:
        if event["type"] == "content_block_start":
            built.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            _grow(built[event["index"]], event["delta"])
    built[2]["input"] = json.loads(built[2].pop("json"))
    assert built == whole["content"]
    assert whole["id"] == streamed[0]["message"]["id"]
    assert whole["stop_reason"] == "tool_use"


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, into in (("text", "text"), ("thinking", "thinking"), ("signature", "signature")):
        if key in delta:
            block[into] += delta[key]
    if "partial_json" in delta:
        block["json"] = block.get("json", "") + delta["partial_json"]


def test_names_come_from_the_seed() -> None:
    first, same, other = (_ask([tool("Read")], body(), seed=seed).json for seed in ("one", "one", "two"))
    assert first == same
    assert first["id"] != other["id"]
    assert first["content"][0]["id"] != other["content"][0]["id"]


def test_a_tool_call_may_stream_what_is_no_json() -> None:
    got = _ask([invalid_tool_call("Read", '{"path": ')])
    deltas = [event["delta"] for event in got.events if "delta" in event]
    parts = [delta["partial_json"] for delta in deltas[:-1]]
    assert "".join(parts) == '{"path": '


def test_an_empty_reply_and_a_refusal_stream_no_blocks() -> None:
    empty = _ask(Reply())
    assert empty.kinds == ["message_start", "message_delta", "message_stop"]
    assert empty.events[1]["delta"]["stop_reason"] == "end_turn"
    declined = _ask(refusal_reply())
    assert declined.events[1]["delta"]["stop_reason"] == "refusal"
    short = _ask(Reply(content=(text("So"),), stop_reason="max_tokens"))
    assert short.events[-2]["delta"]["stop_reason"] == "max_tokens"


def test_hidden_thinking_has_a_signature_and_no_words() -> None:
    asked = body(stream=True, thinking={"type": "adaptive", "display": "omitted"})
    got = _ask([thinking("secret"), redacted_thinking("xyz"), text("So.")], asked)
    assert b"secret" not in got.data
    assert "signature_delta" in [event["delta"].get("type") for event in got.events if "delta" in event]
    assert got.events[5]["content_block"] == {"type": "redacted_thinking", "data": "xyz"}


def test_a_stream_can_break_in_an_error() -> None:
    got = _ask(Reply(content=(text("So far"),), breaks=error_reply(529)))
    assert got.status == 200
    assert got.events[-1]["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert "message_stop" not in got.kinds


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_kind_that_goes_with_its_status(status: int, kind: str) -> None:
    got = _ask(error_reply(status, retry_after=2.5))
    assert got.status == status
    assert got.json["type"] == "error"
    assert got.error["type"] == kind
    assert got.json["request_id"] == got.headers["request-id"]
    assert got.headers["retry-after"] == "2.5"
    assert _ask(error_reply(kind)).error["type"] == kind


def test_an_error_comes_so_often_and_then_the_answer() -> None:
    script = ScriptedResponder().on("Hi", "Fine.", first=[error_reply(529), error_reply(500), ErrorReply(status=0)])
    with run_server_in_thread(script) as server:
        statuses = [send(server).status for _ in range(2)]
        with pytest.raises(http.client.RemoteDisconnected):
            send(server)
        assert [*statuses, send(server).status] == [529, 500, 200]


def test_a_stream_is_cut_at_every_byte_that_is_asked_for() -> None:
    said = [text("Good day."), tool("Read", path="/a")]
    whole = _ask(said, seed="s").data
    places = [0, 1, 50, len(whole) // 2, len(whole) - 1]
    for place in places:
        with run_server_in_thread(ScriptedResponder().otherwise(cut_reply(said, place)), seed="s") as server:
            got = send(server, _STREAM)
            assert got.data == whole[:place]
            assert server.requests[0].sent == place
            assert not server.requests[0].finished


def test_a_cut_ends_the_connection_and_not_the_answer() -> None:
    with run_server_in_thread(ScriptedResponder().otherwise(cut_reply([text("Good day.")], 40))) as server:
        where = urlsplit(server.url)
        with socket.create_connection((str(where.hostname), int(where.port or 0)), 20) as wire:
            raw = json.dumps(_STREAM).encode()
            wire.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nanthropic-version: x\r\n"
                b"content-length: %d\r\n\r\n%b" % (len(raw), raw)
            )
            data = b"".join(iter(lambda: wire.recv(4096), b""))
    assert not data.endswith(b"0\r\n\r\n")


def test_an_answer_in_one_piece_is_cut_too() -> None:
    got = _ask(cut_reply([text("Good day.")], 10), body())
    assert len(got.data) == 10
    assert int(got.headers["content-length"]) > 10


def test_one_connection_serves_many_requests() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        connection = connect(server)
        for asked in (_STREAM, body(), body(max_tokens=0), _STREAM):
            connection.request("POST", "/v1/messages", json.dumps(asked), HEADERS)
            receive(connection)
        own = connection.sock
        connection.request("GET", "/v1/models", headers=HEADERS)
        assert receive(connection).status == 200
        assert connection.sock is own
        connection.close()
        assert [each.status for each in server.requests] == [200, 200, 400, 200, 200]


def test_only_loopback_is_listened_on() -> None:
    async def sockets() -> list[Any]:
        async with Server(ScriptedResponder()) as server:
            assert server.url.startswith("http://127.0.0.1:")
            assert server._listener is not None
            return [each.getsockname() for each in server._listener.sockets]

    assert [name[0] for name in asyncio.run(sockets())] == ["127.0.0.1"]


def test_a_page_that_had_its_name_point_here_gets_nothing() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        assert send(server, headers={**HEADERS, "host": "evil.example:80"}).status == 403
        assert send(server, headers={**HEADERS, "host": "localhost:80"}).status == 200


def test_cve_2025_52882_no_page_of_any_origin_is_answered() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        here = server.url.removeprefix("http://")
        for origin in ("http://evil.example", "null", server.url, f"http://{here}"):
            assert send(server, headers={**HEADERS, "origin": origin}).status == 403, origin
        for path in ("/v1/models", "/v1/messages/count_tokens"):
            got = send(server, path=path, headers={**HEADERS, "origin": "http://evil.example"})
            assert got.status == 403, path
        assert send(server).status == 200


def test_cve_2026_40864_the_site_counts_and_not_the_mode_of_a_request() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        for site in ("cross-site", "same-site"):
            headers = {**HEADERS, "sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert send(server, headers=headers).status == 403, site
        assert send(server, headers={**HEADERS, "sec-fetch-site": "none"}).status == 200


def test_what_is_not_there_is_not_found_in_the_form_of_the_api() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        for method, path in (("GET", "/"), ("GET", "/v1/complete"), ("POST", "/v1/nothing")):
            got = send(server, method=method, path=path)
            assert (got.status, got.error["type"]) == (404, "not_found_error")
        head = send(server, method="HEAD", path="/")
        assert (head.status, head.data) == (404, b"")
        assert send(server, method="GET").status == 405


def test_the_key_is_looked_at_where_one_is_given() -> None:
    with run_server_in_thread(ScriptedResponder(), key="secret") as server:
        assert send(server).error == {"type": "authentication_error", "message": "invalid x-api-key"}
        assert send(server).status == 401
        assert send(server, headers={**HEADERS, "x-api-key": "secret"}).status == 200
        assert send(server, headers={**HEADERS, "authorization": "Bearer secret"}).status == 200


def test_bodies_that_cannot_be_read_are_refused() -> None:
    with run_server_in_thread(ScriptedResponder(), most=1000) as server:
        assert "not valid JSON" in send(server, b"{").error["message"]
        assert "not valid JSON" in send(server, b'{"a": "\\ud800"}').error["message"]
        assert send(server, b"[]").error["message"] == "Input should be a valid dictionary"
        got = send(server, body(user("x" * 2000)))
        assert (got.status, got.error["type"]) == (413, "request_too_large")
        deep = send(server, b"[" * 900)
        assert deep.status == 400


def test_what_is_no_http_is_answered_and_left() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        where = urlsplit(server.url)
        with socket.create_connection((str(where.hostname), int(where.port or 0)), 20) as wire:
            wire.sendall(b"hello\r\n\r\n")
            data = b"".join(iter(lambda: wire.recv(4096), b""))
        assert data.startswith(b"HTTP/1.1 400")


def test_the_version_must_be_named_and_a_lenient_server_does_not_mind() -> None:
    bare = {"content-type": "application/json"}
    with run_server_in_thread(ScriptedResponder()) as server:
        got = send(server, headers=bare)
        assert got.error["message"] == "anthropic-version: header is required"
        assert [each.refusal is not None for each in server.refused] == [True]
    with run_server_in_thread(ScriptedResponder(), strict=False) as server:
        assert send(server, body(foo=1), headers=bare).status == 200


def test_tokens_are_counted_and_a_window_is_kept() -> None:
    with run_server_in_thread(ScriptedResponder(), window=50) as server:
        path = "/v1/messages/count_tokens"
        small = send(server, body(max_tokens=...), path=path).json["input_tokens"]
        assert 0 < small < 50
        got = send(server, body(user("many words " * 100)))
        assert got.error["message"].startswith("prompt is too long: ")
        assert got.error["message"].endswith(" tokens > 50 maximum")


def test_models_are_listed_and_others_are_not_found() -> None:
    with run_server_in_thread(ScriptedResponder(), models=("claude-x", "claude-y")) as server:
        listed = send(server, method="GET", path="/v1/models").json
        assert [each["id"] for each in listed["data"]] == ["claude-x", "claude-y"]
        assert send(server, method="GET", path="/v1/models/claude-x").json["id"] == "claude-x"
        assert send(server, method="GET", path="/v1/models/other").status == 404
        got = send(server, body(model="other"))
        assert (got.status, got.error["message"]) == (404, "model: other")


def test_signed_thinking_comes_back_or_the_request_is_refused() -> None:
    said = [thinking("Let me see."), tool("Read", path="/a")]
    with run_server_in_thread(ScriptedResponder().on("Hi", said).then("Done.")) as server:
        first = send(server).json["content"]
        back = body(user("Hi."), assistant(*first), user(result(first[1]["id"])))
        assert send(server, back).json["content"] == [{"type": "text", "text": "Done."}]
        first[0]["thinking"] = "Something else."
        got = send(server, back)
        assert (got.status, got.error["type"]) == (400, "invalid_request_error")
        assert "cannot be modified" in got.error["message"]
    with run_server_in_thread(ScriptedResponder(), signed=False) as server:
        assert send(server, back).status == 200


def test_requests_are_kept_but_not_all_of_them() -> None:
    with run_server_in_thread(ScriptedResponder(), keep=2) as server:
        for words in ("one", "two", "three"):
            send(server, body(user(words)))
        kept = [each.body["messages"][0]["content"] for each in server.requests]
        assert kept == ["two", "three"]
        assert server.requests[0].headers["anthropic-version"] == "2023-06-01"


def test_pauses_go_by_the_clock_of_the_server() -> None:
    slept: list[float] = []

    async def pause(seconds: float) -> None:
        slept.append(seconds)

    reply = Reply(content=(text("So", Pause(3), PING, " it is."),), after=Pause(9))
    got = _ask(reply, pause=pause)
    assert slept == [9, 3]
    assert got.kinds.count("ping") == 2
    assert _ask(reply, body(), pause=pause).status == 200
    assert slept == [9, 3, 9]


def test_an_answer_waits_at_a_gate_and_a_client_that_leaves_is_noticed() -> None:
    async def leave() -> tuple[bool, int]:
        gate, done = ReleaseEvent(), asyncio.Event()
        script = ScriptedResponder().otherwise([text("So", gate, " it is.")])

        def ended(_: ReceivedRequest) -> None:
            done.set()

        async with Server(script, on_request=ended) as server:
            where = urlsplit(server.url)
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            raw = json.dumps(_STREAM).encode()
            writer.write(
                b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nanthropic-version: x\r\n"
                b"content-length: %d\r\n\r\n%b" % (len(raw), raw)
            )
            await gate.wait_until_reached()
            writer.close()
            await done.wait()
            return server.requests[0].finished, server.requests[0].sent

    finished, sent = asyncio.run(leave())
    assert not finished
    assert sent > 0


def test_a_gate_opens_from_another_thread_and_stopping_does_not_wait_for_it() -> None:
    gate = ReleaseEvent()
    with run_server_in_thread(ScriptedResponder().otherwise([text("So", gate, " it is.")])) as server:
        connection = connect(server)
        connection.request("POST", "/v1/messages", json.dumps(_STREAM), HEADERS)
        gate.wait_reached()
        gate.release()
        assert receive(connection).kinds[-1] == "message_stop"
        connection.close()
    closed = ReleaseEvent()
    with run_server_in_thread(ScriptedResponder().otherwise(Reply(after=closed))) as server:
        connection = connect(server)
        connection.request("POST", "/v1/messages", json.dumps(_STREAM), HEADERS)
        closed.wait_reached()
    connection.close()


def test_a_port_that_is_taken_is_said_plainly() -> None:
    with run_server_in_thread(ScriptedResponder()) as server:
        second = run_server_in_thread(ScriptedResponder(), port=urlsplit(server.url).port)
        with pytest.raises(Unwritable, match="cannot listen on 127"):
            second.__enter__()


def test_blocks_of_the_servers_own_tools_stream_whole() -> None:
    found = ReplyBlock({"type": "web_search_tool_result", "tool_use_id": "s", "content": []})
    got = _ask([ReplyBlock({"type": "server_tool_use", "name": "web_search", "input": {}}), found])
    starts = [each["content_block"] for each in got.events if "content_block" in each]
    assert starts[0]["id"].startswith("srvtoolu_01")
    assert starts[1] == found.block
    assert events(got.data)[-2]["delta"]["stop_reason"] == "end_turn"


def test_a_fault_of_the_mind_is_raised_when_the_server_ends() -> None:
    def broken(_: ResponderRequest) -> str:
        raise ZeroDivisionError

    server = run_server_in_thread(ScriptedResponder().otherwise(broken))
    running = server.__enter__()
    with pytest.raises(http.client.RemoteDisconnected):
        send(running)
    with pytest.raises(ZeroDivisionError):
        server.__exit__(None, None, None)
