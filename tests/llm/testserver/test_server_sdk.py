"""The official SDK talks to the server: in one piece, in a stream, and gets its own errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm.testserver.asking import assistant, result, tool, user

from steno.llm.testserver.responders import ErrorReply, ResponderRequest, cut_reply, error_reply, search, text, thinking
from steno.llm.testserver.responders import tool as use
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server, run_server_in_thread

anthropic: Any = pytest.importorskip("anthropic")

_ASK: dict[str, Any] = {"model": "claude-x", "max_tokens": 2000}
_FAIL = "fail "


def _failing(asked: ResponderRequest) -> ErrorReply:
    return error_reply(int(asked.prompt.removeprefix(_FAIL)))


def _at_once(*_: object) -> float:
    return 0.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    script = (
        ScriptedResponder()
        .on("look", [thinking("Let me see."), text("I look."), use("Read", path="/a")])
        .then("It says so.")
        .on("search it", [*search("tides", ("Tides", "https://tides.example")), text("They turn.")])
        .on("slow", "At last.", first=[error_reply(529), error_reply(429, retry_after=0)])
        .on("cut", cut_reply([text("never to be heard in full")], 700))
        .on(_FAIL, _failing)
    )
    with run_server_in_thread(script, key="k") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as made:
        yield made


def test_it_reads_an_answer_in_one_piece(client: Any) -> None:
    message = client.messages.create(messages=[user("look")], **_ASK)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 0
    assert message.model == "claude-x"


def test_it_reads_a_stream_and_goes_on_with_the_result(client: Any) -> None:
    talk = [user("look")]
    with client.messages.stream(messages=talk, tools=[tool()], **_ASK) as stream:
        assert "".join(stream.text_stream) == "I look."
        first = stream.get_final_message()
    assert first.content[2].input == {"path": "/a"}
    sent = [block.to_dict() for block in first.content]
    sent[1].pop("parsed_output", None)
    talk += [assistant(*sent), user(result(first.content[2].id))]
    with client.messages.stream(messages=talk, tools=[tool()], **_ASK) as stream:
        assert stream.get_final_text() == "It says so."


def test_it_sees_every_event_of_a_stream(client: Any) -> None:
    kinds: list[str] = []
    with client.messages.stream(messages=[user("look")], **_ASK) as stream:
        kinds.extend(event.type for event in stream)
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3


def test_it_tries_again_when_the_server_is_overloaded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=3) as patient:
        monkeypatch.setattr(patient, "_calculate_retry_timeout", _at_once)
        message = patient.messages.create(messages=[user("slow")], **_ASK)
    assert message.content[0].text == "At last."


def test_it_notices_a_cut(client: Any) -> None:
    with (
        pytest.raises(Exception, match="peer closed connection"),
        client.messages.stream(messages=[user("cut")], **_ASK) as stream,
    ):
        stream.get_final_message()


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (529, "APIStatusError"),
    ],
)
def test_it_raises_its_own_errors(client: Any, status: int, name: str) -> None:
    with pytest.raises(getattr(anthropic, name)) as raised:
        client.messages.create(messages=[user(f"fail {status}")], **_ASK)
    assert raised.value.status_code == status
    assert raised.value.request_id.startswith("req_")


def test_it_is_refused_what_the_api_refuses(client: Any, server: Server) -> None:
    with pytest.raises(anthropic.BadRequestError, match="Field required"):
        client.messages.create(messages=[user({"type": "text"})], **_ASK)
    assert server.refused[-1].refusal is not None
    with (
        pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"),
        anthropic.Anthropic(base_url=server.url, api_key="no", max_retries=0) as stranger,
    ):
        stranger.messages.create(messages=[user("Hi.")], **_ASK)


def test_it_counts_tokens_and_lists_models(client: Any) -> None:
    counted = client.messages.count_tokens(model="claude-x", messages=[user("Hi.")])
    assert counted.input_tokens > 0
    assert [model.id for model in client.models.list()]


@pytest.mark.parametrize("streams", [True, False])
def test_it_reads_a_search_of_the_servers_and_sends_it_back(client: Any, *, streams: bool) -> None:
    asked: dict[str, Any] = {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}], **_ASK}
    talk: list[Any] = [user("search it")]
    if streams:
        with client.messages.stream(messages=talk, **asked) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(messages=talk, **asked)
    kinds = [block.type for block in message.content]
    assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
    assert message.content[0].input == {"query": "tides"}
    assert message.content[1].content[0].url == "https://tides.example"
    assert message.content[1].tool_use_id == message.content[0].id
    assert message.usage.server_tool_use.web_search_requests == 1
    assert message.stop_reason == "end_turn"
    said = [block.model_dump(exclude_none=True) for block in message.content]
    again = client.messages.create(messages=[*talk, {"role": "assistant", "content": said}, user("look")], **asked)
    assert again.content
