"""The rules: what the API refuses is refused in its words, and nothing else is."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from tests.builders import document, image, pdf, png
from tests.llm.testserver.asking import assistant, body, call, result, tool, user

from steno.llm.testserver.request_handler import ThinkingSigner
from steno.llm.testserver.request_validator import ThinkingHistory, validate_request

_SYSTEM_BETA = frozenset({"mid-conversation-tool-changes-2026-07-01"})
_MARK = {"cache_control": {"type": "ephemeral"}}
_THINK = {"type": "thinking", "thinking": "hm", "signature": "abc"}
_SMALL = png([[(0, 0, 0)]])
_ENABLED = {"type": "enabled", "budget_tokens": 1024}


def _header(width: int, height: int = 1) -> bytes:
    """Return the beginning of a PNG that says it is so large."""
    return _SMALL[:16] + width.to_bytes(4, "big") + height.to_bytes(4, "big") + _SMALL[24:]


def _text(words: Any, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def _searching(**more: Any) -> dict[str, Any]:
    return {"type": "web_search_20250305", "name": "web_search", **more}


def _searched(content: Any, name: str = "srvtoolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": content, **more}


_SEARCH = call("srvtoolu_1", type="server_tool_use", name="web_search")
_FOUND = {
    "type": "web_search_result",
    "url": "https://a.example",
    "title": "A",
    "encrypted_content": "abc",
    "page_age": None,
}


_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a search tool by another name": (
        body(tools=[_searching(name="search")]),
        "tools.0.web_search_20250305.name: Input should be 'web_search'",
    ),
    "a search tool with a field of its own making": (
        body(tools=[_searching(pages=3)]),
        "tools.0.web_search_20250305.pages: Extra inputs are not permitted",
    ),
    "a search that may not be made even once": (
        body(tools=[_searching(max_uses=0)]),
        "tools.0.web_search_20250305.max_uses: Input should be greater than or equal to 1",
    ),
    "a search with domains both ways": (
        body(tools=[_searching(allowed_domains=["a.example"], blocked_domains=["b.example"])]),
        "Only one of `allowed_domains` and `blocked_domains`",
    ),
    "a search with a domain that is an address": (
        body(tools=[_searching(allowed_domains=["https://a.example"])]),
        "Invalid domain: https://a.example",
    ),
    "a search near a place of no kind": (
        body(tools=[_searching(user_location={"city": "Kiel"})]),
        "user_location.type: Field required",
    ),
    "a result of a search without its call": (
        body(user("Hi."), assistant(_searched([_FOUND]), "So."), user("Go on.")),
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result`",
    ),
    "a result of a search from the user": (
        body(user(_searched([_FOUND]))),
        "messages.0.content.0: `web_search_tool_result` blocks can only be in `assistant`",
    ),
    "a result of a search whose page was edited away": (
        body(user("Hi."), assistant(_SEARCH, _searched([{**_FOUND, "encrypted_content": ""}]), "So."), user("Go on.")),
        "encrypted_content: String should have at least 1 character",
    ),
    "a search that failed in a way there is not": (
        body(
            user("Hi."),
            assistant(_SEARCH, _searched({"type": "web_search_tool_result_error", "error_code": "x"})),
            user("Go on."),
        ),
        "error_code: Input should be 'invalid_tool_input'",
    ),
    "no model": (body(model=...), "model: Field required"),
    "an empty model": (body(model=""), "model: String should have at least 1 character"),
    "no messages": (body(messages=...), "messages: Field required"),
    "messages that are no list": (body(messages="Hi"), "messages: Input should be a valid list"),
    "an empty list of messages": (body(messages=[]), "messages: at least one message is required"),
    "no max_tokens": (body(max_tokens=...), "max_tokens: Field required"),
    "max_tokens of nothing": (body(max_tokens=0), "max_tokens: Input should be greater than or equal to 1"),
    "max_tokens as text": (body(max_tokens="9"), "max_tokens: Input should be a valid integer"),
    "max_tokens as a truth": (body(max_tokens=True), "max_tokens: Input should be a valid integer"),
    "an unknown field": (body(foo=1), "foo: Extra inputs are not permitted"),
    "a beta's field without the beta": (
        body(context_management={"edits": []}),
        "context_management: Extra inputs are not permitted",
    ),
    "a message that is no object": (body(messages=["Hi"]), "messages.0: Input should be a valid"),
    "a message without a role": (body({"content": "Hi"}), "messages.0.role: Field required"),
    "a message without content": (body({"role": "user"}), "messages.0.content: Field required"),
    "an unknown role": (
        body({"role": "tool", "content": "Hi"}),
        "messages.0.role: Input should be 'user' or 'assistant'",
    ),
    "the system as a role": (
        body(user("Hi."), {"role": "system", "content": "Be good."}),
        'messages.1: Unexpected role "system"',
    ),
    "an unknown field of a message": (
        body({"role": "user", "content": "Hi", "uuid": "1"}),
        "messages.0.uuid: Extra inputs are not permitted",
    ),
    "the assistant first": (body(assistant("Hi.")), 'first message must use the "user" role'),
    "empty content": (
        body(user("Hi."), assistant(""), user("Go on.")),
        "messages.1: all messages must have non-empty content",
    ),
    "no blocks": (body({"role": "user", "content": []}), "messages.0: all messages must have non-empty content"),
    "an empty text block": (body(user(_text(""))), "text content blocks must be non-empty"),
    "a blank text block": (body(user(_text(" \n"))), "text content blocks must contain non-whitespace text"),
    "an empty text block with a mark": (
        body(user(_text("", **_MARK))),
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    "a text block without text": (body(user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
    "text that is a number": (body(user(_text(4))), "messages.0.content.0.text.text: Input should be a valid string"),
    "an unknown block": (
        body(user({"type": "video"})),
        "messages.0.content.0: Input tag 'video' found using 'type' does not match",
    ),
    "a block without a type": (body(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    "an unknown field of a block": (
        body(user(_text("x", id=1))),
        "messages.0.content.0.text.id: Extra inputs are not permitted",
    ),
    "a call without a result": (
        body(user("Hi."), assistant(call()), user("And?")),
        ("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"),
    ),
    "a call at the end": (
        body(user("Hi."), assistant(call())),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    "one of two calls without a result": (
        body(user("Hi."), assistant(call(), call("toolu_2")), user(result())),
        "immediately after: toolu_2",
    ),
    "a result a message too late": (
        body(user("Hi."), assistant(call()), user("Wait."), user(result())),
        "messages.1: `tool_use` ids were found without",
    ),
    "a result without a call": (
        body(user(result())),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    "a result twice": (
        body(user("Hi."), assistant(call()), user(result(), result())),
        "messages.2.content.1: each tool_use must have a single result",
    ),
    "a result behind words": (
        body(user("Hi."), assistant(call()), user("See:", result())),
        "messages.2.content.1: `tool_result` blocks must come before",
    ),
    "the same id twice": (
        body(user("Hi."), assistant(call(), call()), user(result())),
        "`tool_use` ids must be unique",
    ),
    "the same id in two messages": (
        body(user("Hi."), assistant(call()), user(result()), assistant(call()), user(result())),
        "messages.3: `tool_use` ids must be unique",
    ),
    "an id with a blank": (
        body(user("Hi."), assistant(call("a b")), user(result("a b"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an input that is a text": (
        body(user("Hi."), assistant(call(input="{}")), user(result())),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "a call of the user's": (
        body(user(call())),
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "a result of the assistant's": (
        body(user("Hi."), assistant(call()), assistant(result())),
        "messages.2.content.0: `tool_result` blocks can only be in `user` messages",
    ),
    "a failed result that says nothing": (
        body(user("Hi."), assistant(call()), user(result(content="", is_error=True))),
        "content cannot be empty if `is_error` is true",
    ),
    "an error mark that is no truth": (
        body(user("Hi."), assistant(call()), user(result(is_error="no"))),
        "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
    ),
    "an empty text inside a result": (
        body(user("Hi."), assistant(call()), user(result(content=[_text("")]))),
        "text content blocks must be non-empty",
    ),
    "a call inside a result": (
        body(user("Hi."), assistant(call()), user(result(content=[call("x")]))),
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use'",
    ),
    "thinking without a signature": (
        body(user("Hi."), assistant({"type": "thinking", "thinking": "hm"}, "So."), user("And?")),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "a mark on thinking": (
        body(user("Hi."), assistant(_THINK | _MARK, "So."), user("And?")),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "thinking of the user's": (body(user(_THINK)), "`thinking` blocks can only be in `assistant` messages"),
    "a turn that thinks and does not begin so": (
        body(user("Hi."), assistant(call()), user(result()), max_tokens=2000, thinking=_ENABLED),
        ("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
    ),
    "a budget beyond the answer": (
        body(thinking=_ENABLED, max_tokens=1024),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    "a budget that is too small": (
        body(thinking={"type": "enabled", "budget_tokens": 10}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "thinking of no known kind": (body(thinking={"type": "deep"}), "thinking: Input tag 'deep' found using 'type'"),
    "thinking at another temperature": (
        body(thinking=_ENABLED, max_tokens=2000, temperature=0.5),
        "`temperature` may only be set to 1 when thinking is enabled",
    ),
    "thinking and a forced tool": (
        body(thinking=_ENABLED, max_tokens=2000, tools=[tool()], tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    "an image of an unknown kind": (
        body(user(image(_SMALL, "image/bmp"))),
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'",
    ),
    "an image of another kind than it says": (
        body(user(image(_SMALL, "image/jpeg"))),
        "the image appears to be a image/png image",
    ),
    "an image that is no base64": (
        body(user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}})),
        "messages.0.content.0.image.source.base64.data: Invalid base64 data",
    ),
    "an image that is none": (body(user(image(b"words"))), "Could not process image"),
    "an image beyond 5 MB": (body(user(image(_SMALL + bytes(5 << 20)))), "image exceeds 5 MB maximum"),
    "an image beyond 8000 pixels": (
        body(user(image(_header(8001)))),
        "At least one of the image dimensions exceed max allowed size: 8000 pixels",
    ),
    "many images, one beyond 2000 pixels": (
        body(user(*[image(_SMALL)] * 20, image(_header(2001)))),
        (
            "messages.0.content.20.image.source.base64.data: At least one of the image dimensions "
            "exceed max allowed size for many-image requests: 2000 pixels"
        ),
    ),
    "an image in a result beyond 8000 pixels": (
        body(user("Hi."), assistant(call()), user(result(content=[image(_header(1, 9000))]))),
        "messages.2.content.0.tool_result.content.0.image.source.base64.data",
    ),
    "a picture of the assistant's": (
        body(user("Hi."), assistant(image(_SMALL)), user("And?")),
        "`image` blocks can only be in `user` messages",
    ),
    "a document that is no PDF": (
        body(user(document(b"words"))),
        "messages.0.content.0.document.source.base64.data: The PDF specified was not valid",
    ),
    "a document of an unknown source": (
        body(user({"type": "document", "source": {"type": "disk"}})),
        "messages.0.content.0.document.source: Input tag 'disk'",
    ),
    "five marks": (
        body(user(*[_text("x", **_MARK)] * 5)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "five marks in all places": (
        body(user(*[_text("x", **_MARK)] * 3), tools=[{**tool(), **_MARK}], system=[_text("Be good.", **_MARK)]),
        "Found 5.",
    ),
    "a mark of an unknown kind": (
        body(user(_text("x", cache_control={"type": "forever"}))),
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    "a mark of an unknown length": (
        body(user(_text("x", cache_control={"type": "ephemeral", "ttl": "1d"}))),
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
    "a long mark behind a short one": (
        body(user(_text("x", cache_control={"type": "ephemeral", "ttl": "1h"})), system=[_text("Be good.", **_MARK)]),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    "a tool's name with a blank": (
        body(tools=[tool("Read it")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "a tool's name that is too long": (
        body(tools=[tool("x" * 129)]),
        "tools.0.custom.name: String should match pattern",
    ),
    "two tools of one name": (body(tools=[tool(), tool()]), "tools: Tool names must be unique."),
    "a tool without a schema": (body(tools=[{"name": "Read"}]), "tools.0.custom.input_schema: Field required"),
    "a tool whose input is no object": (
        body(tools=[tool(input_schema={"type": "string"})]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "a tool with an unknown field": (
        body(tools=[tool(parameters={})]),
        "tools.0.custom.parameters: Extra inputs are not permitted",
    ),
    "a tool of an unknown type": (
        body(tools=[{"type": "crystal_ball_20250101", "name": "look"}]),
        "tools.0: Input tag 'crystal_ball_20250101'",
    ),
    "a choice without tools": (
        body(tool_choice={"type": "auto"}),
        "tool_choice may only be specified while providing tools",
    ),
    "a choice of a tool that is not there": (
        body(tools=[tool()], tool_choice={"type": "tool", "name": "Write"}),
        "Tool 'Write' not found in provided tools",
    ),
    "a choice as a text": (body(tools=[tool()], tool_choice="auto"), "tool_choice: Input should be a valid dictionary"),
    "a choice of an unknown type": (
        body(tools=[tool()], tool_choice={"type": "some"}),
        "tool_choice: Input tag 'some'",
    ),
    "a last answer that ends in a blank": (
        body(user("Hi."), assistant("So ")),
        "final assistant content cannot end with trailing whitespace",
    ),
    "a temperature that is too high": (body(temperature=1.5), "temperature: range: 0..1"),
    "a temperature as text": (body(temperature="hot"), "temperature: Input should be a valid"),
    "a stop that is blank": (
        body(stop_sequences=["\n"]),
        "stop_sequences: each stop sequence must contain non-whitespace",
    ),
    "stops that are no list": (body(stop_sequences="x"), "stop_sequences: Input should be a"),
    "a system that is an object": (body(system={}), "system: Input should be a valid list"),
    "a system with an image": (body(system=[image(_SMALL)]), "system.0: Input tag 'image'"),
    "a system that is empty": (body(system=[_text("")]), "system: text content blocks must be non-empty"),
    "metadata of another kind": (body(metadata={"session": "x"}), "metadata.session: Extra inputs are not permitted"),
    "a stream that is no truth": (body(stream="yes"), "stream: Input should be a valid boolean"),
    "an unknown effort": (body(output_config={"effort": "extreme"}), "output_config.effort: Input should be 'low'"),
    "a search of the server's without its result": (
        body(
            user("Hi."), assistant(call("srvtoolu_1", type="server_tool_use", name="web_search"), "So."), user("And?")
        ),
        "`web_search` tool use with id `srvtoolu_1` was found without a corresponding",
    ),
}


@pytest.mark.parametrize("name", _BAD)
def test_what_the_api_refuses_is_refused_in_its_words(name: str) -> None:
    asked, expected = _BAD[name]
    refused = validate_request(asked)
    assert refused is not None, name
    assert expected in refused.message
    assert refused.status == 400
    assert refused.body("req_1") == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": refused.message},
        "request_id": "req_1",
    }


def test_the_table_is_long_enough() -> None:
    assert len(_BAD) >= 40


_GOOD: dict[str, dict[str, Any]] = {
    "words": body(),
    "parallel calls": body(
        user("Hi."),
        assistant("I look.", call(), call("toolu_2")),
        user(result("toolu_2"), result(is_error=True), "Well?"),
    ),
    "results with pictures": body(user("Hi."), assistant(call()), user(result(content=[_text("see"), image(_SMALL)]))),
    "a result that says nothing": body(user("Hi."), assistant(call()), user(result(content=...))),
    "pictures and papers": body(user(image(_SMALL), document(pdf("tides")), _text("What is it?", **_MARK))),
    "a picture as large as may be": body(user(image(_header(8000)))),
    "many pictures": body(user(*[image(_header(2000))] * 21)),
    "thinking sent back": body(
        user("Hi."),
        assistant(_THINK, call()),
        user(result()),
        assistant("Half."),
        user("And?"),
        thinking=_ENABLED,
        max_tokens=2000,
    ),
    "thinking in the turn under way": body(
        user("Hi."),
        assistant(_THINK, call()),
        user(result()),
        assistant(call("toolu_2")),
        user(result("toolu_2")),
        thinking=_ENABLED,
        max_tokens=2000,
    ),
    "thinking as the model likes": body(user("Hi."), assistant(call()), user(result()), thinking={"type": "adaptive"}),
    "four marks": body(user(*[_text("x", **_MARK)] * 2), tools=[{**tool(), **_MARK}], system=[_text("Hm.", **_MARK)]),
    "a long mark before a short one": body(
        user(_text("x", **_MARK)), system=[_text("x", cache_control={"type": "ephemeral", "ttl": "1h"})]
    ),
    "two users in a row": body(user("Hi."), user("And?")),
    "an answer begun": body(user("Hi."), assistant("So")),
    "an answer begun with nothing": body(user("Hi."), assistant("")),
    "a choice": body(tools=[tool()], tool_choice={"type": "tool", "name": "Read"}),
    "the server's tools": body(
        tools=[
            tool(),
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
            {"type": "bash_20250124", "name": "bash"},
        ]
    ),
    "all the rest": body(
        system="Be good.",
        temperature=0,
        top_p=0.9,
        stop_sequences=["END"],
        metadata={"user_id": "u"},
        stream=True,
        service_tier="auto",
        output_config={"effort": "medium"},
    ),
    "a search of the server's": body(
        user("Hi."),
        assistant(call("srvtoolu_1", type="server_tool_use", name="web_search"), _searched([_FOUND]), "Found."),
        user("And?"),
        tools=[_searching(max_uses=3, blocked_domains=["a.example", "*.b.example/news"]), tool()],
    ),
    "a search that failed": body(
        user("Hi."),
        assistant(_SEARCH, _searched({"type": "web_search_tool_result_error", "error_code": "unavailable"})),
        user("And?"),
        tools=[_searching(user_location={"type": "approximate", "city": "Kiel"})],
    ),
}


@pytest.mark.parametrize("name", _GOOD)
def test_what_the_api_takes_is_taken(name: str) -> None:
    asked = _GOOD[name]
    for message in asked["messages"]:
        for block in message["content"]:
            if isinstance(block, dict) and block.get("content") is ...:
                del block["content"]
    assert validate_request(asked) is None


def test_the_system_speaks_in_between_with_its_beta() -> None:
    notice = {"role": "system", "content": "Mind the tide.", "output_config": {"effort": "low"}}
    asked = body(user("Hi."), notice)
    assert validate_request(asked, betas=_SYSTEM_BETA) is None
    first = validate_request(body(notice), betas=_SYSTEM_BETA)
    assert first is not None
    assert 'must use the "user" role' in first.message


def test_a_beta_brings_its_field() -> None:
    asked = body(context_management={"edits": []})
    assert validate_request(asked, betas=frozenset({"context-management-2025-06-27"})) is None


def test_roles_alternate_where_that_is_wanted() -> None:
    refused = validate_request(body(user("Hi."), user("And?")), alternating=True)
    assert refused is not None
    assert 'multiple "user" roles in a row' in refused.message


def test_counting_takes_no_words_about_the_answer() -> None:
    assert validate_request(body(max_tokens=...), count_only=True) is None
    for field, value in (("max_tokens", 9), ("stream", True), ("temperature", 1)):
        asked = body(max_tokens=...) | {field: value}
        refused = validate_request(asked, count_only=True)
        assert refused is not None
        assert refused.message == f"{field}: Extra inputs are not permitted"


def test_thinking_passes_only_as_it_was_signed() -> None:
    signer = ThinkingSigner("seed")
    known = ThinkingHistory(signer.verify)
    signature = signer.sign("hm", b"n" * 12)

    def said(words: str, signed: str) -> str:
        block = {"type": "thinking", "thinking": words, "signature": signed}
        refused = validate_request(body(user("Hi."), assistant(block, "So."), user("And?")), history=known)
        return refused.message if refused else ""

    assert said("hm", signature) == ""
    assert "blocks in the latest assistant message cannot be modified" in said("ha", signature)
    foreign = ThinkingSigner("other").sign("hm", b"n" * 12)
    assert said("hm", foreign) == ("messages.1.content.0: Invalid `signature` in `thinking` block")
    assert "Invalid `signature`" in said("hm", "no base64")
    assert "Invalid `signature`" in said("hm", base64.b64encode(b"short").decode())


def test_an_answer_given_without_thinking_may_come_back_so() -> None:
    known = ThinkingHistory()
    known.record_without_thinking([call()])
    asked = body(user("Hi."), assistant(call()), user(result()), thinking=_ENABLED, max_tokens=2000)
    assert validate_request(asked, history=known) is None


_STRANGE: tuple[Any, ...] = (
    *(None, True, 1, -1.5, "", "x", [], [[]], [{}], [None], {}),
    *({"type": 1}, {"type": "text"}, {"type": "tool_use"}, [{"type": "tool_result"}]),
)


def _spoiled(value: Any) -> Iterator[Any]:
    """Yield a value with each part of it, in turn, replaced by something strange."""
    yield from _STRANGE
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: each for name, each in value.items() if name != key}
            yield from ({**value, key: each} for each in _spoiled(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], each, *value[place + 1 :]] for each in _spoiled(inner))


@pytest.mark.parametrize("name", ["parallel calls", "thinking sent back", "all the rest"])
def test_nothing_strange_makes_the_rules_fail(name: str) -> None:
    refused = 0
    for asked in _spoiled(_GOOD[name]):
        if isinstance(asked, dict):
            found = validate_request(asked, history=ThinkingHistory(ThinkingSigner().verify))
            refused += found is not None and bool(found.message)
    assert refused > 200
