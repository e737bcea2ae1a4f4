"""A stream of the API's events becomes ours, and blocks that can be sent back as they are."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.llm.loopback import BLOCKS, END, RECORDED, USAGE, begun, delta, ended, message, stopped

from steno.llm.messages_api import ApiError, Response
from steno.llm.stream_decoder import (
    BlockFinished,
    BlockStarted,
    InputDelta,
    ResponseAssembler,
    ResponseFinished,
    ResponseStarted,
    SseEvent,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    decode_event,
)


def taken(*events: dict[str, Any]) -> tuple[ResponseAssembler, list[StreamEvent]]:
    assembly = ResponseAssembler("req_1")
    return assembly, [ours for event in events for ours in assembly.feed(event)]


def whole(*events: dict[str, Any]) -> Response:
    _, ours = taken(*events)
    last = ours[-1]
    assert isinstance(last, ResponseFinished)
    return last.response


def call(*parts: str, **fields: Any) -> BlockFinished:
    start = {"id": "toolu_1", "name": "Read", "input": {}} | fields
    deltas = [delta(0, "input_json", partial_json=part) for part in parts]
    _, ours = taken(message(), begun(0, "tool_use", **start), *deltas, ended(0))
    last = ours[-1]
    assert isinstance(last, BlockFinished)
    return last


def test_a_recorded_stream_gives_its_events_in_order() -> None:
    assembly, events = taken(*RECORDED)
    start = {"id": "toolu_1", "name": "Read", "input": {}, "caller": {"type": "direct"}}
    response = Response(id="msg_1", model="m-1", blocks=BLOCKS, stop_reason="tool_use", usage=USAGE, request_id="req_1")
    assert events == [
        ResponseStarted("msg_1", "m-1"),
        BlockStarted(0, {"type": "thinking", "thinking": "", "signature": ""}),
        ThinkingDelta(0, "Größe\u2028"),
        ThinkingDelta(0, "?\n"),
        BlockFinished(0, BLOCKS[0]),
        BlockStarted(1, {"type": "text", "text": "", "citations": None}),
        TextDelta(1, "I am "),
        TextDelta(1, "💡 here"),
        BlockFinished(1, BLOCKS[1]),
        BlockStarted(2, {"type": "tool_use"} | start),
        InputDelta(2, '{"file_'),
        InputDelta(2, 'path":"/ä","n":[1,2.5]}'),
        BlockFinished(2, BLOCKS[2]),
        ResponseFinished(response),
    ]
    assert assembly.done
    assert assembly.finished_block_count == 3


def test_the_keys_of_a_block_stay_in_their_order() -> None:
    for block, made in zip(BLOCKS, whole(*RECORDED).blocks, strict=True):
        assert list(made) == list(block)


def test_blocks_of_the_servers_own_tools_and_of_unknown_kinds_are_kept() -> None:
    result = {"tool_use_id": "srv_1", "content": [{"type": "web_search_result", "url": "u"}]}
    response = whole(
        message(),
        begun(0, "server_tool_use", id="srv_1", name="web_search", input={}),
        delta(0, "input_json", partial_json='{"query":"q"}'),
        ended(0),
        begun(1, "web_search_tool_result", **result),
        ended(1),
        begun(2, "redacted_thinking", data="abc=="),
        ended(2),
        begun(3, "of_tomorrow", a={"b": [1]}),
        delta(3, "of_tomorrow", x=1),
        ended(3),
        stopped("pause_turn"),
        END,
    )
    assert response.blocks == [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result"} | result,
        {"type": "redacted_thinking", "data": "abc=="},
        {"type": "of_tomorrow", "a": {"b": [1]}},
    ]
    assert response.stop_reason == "pause_turn"


@pytest.mark.parametrize(
    "parts", [["[1]"], ["nul", "l"], ['{"a":'], ["{'a':1}"], [" "], ['{"a":1}{'], ['"x"'], ["[" * 100_000]]
)
def test_input_that_is_no_json_object_is_told_and_the_block_can_be_sent(parts: list[str]) -> None:
    event = call(*parts)
    assert event.bad_input == "".join(parts)
    assert event.block["input"] == {}


def test_a_call_without_any_input_has_an_empty_one() -> None:
    assert call() == call("") == call(input=None)
    assert call().block["input"] == {}
    assert call().bad_input is None


def test_input_that_comes_with_the_beginning_of_the_block_is_kept() -> None:
    assert call(input={"a": 1}).block["input"] == {"a": 1}
    assert call(input="a").bad_input == '"a"'


def test_text_that_comes_with_the_beginning_of_the_block_is_the_first_of_it() -> None:
    _, events = taken(message(), begun(0, "text", text="He"), delta(0, "text", text="llo"), ended(0))
    assert events[2:] == [TextDelta(0, "He"), TextDelta(0, "llo"), BlockFinished(0, {"type": "text", "text": "Hello"})]


def test_of_two_figures_the_later_counts_and_null_is_no_figure() -> None:
    response = whole(
        message(input_tokens=3, output_tokens=1, server_tool_use={"a": 1, "b": 2}, tier="x"),
        stopped("end_turn", output_tokens=5, input_tokens=None, server_tool_use={"b": 3}),
        stopped("end_turn", output_tokens=7, inference_geo=None),
        END,
    )
    assert response.usage == {
        "input_tokens": 3,
        "output_tokens": 7,
        "server_tool_use": {"a": 1, "b": 3},
        "tier": "x",
        "inference_geo": None,
    }


def test_a_stop_sequence_is_kept() -> None:
    stop = {"stop_reason": "stop_sequence", "stop_sequence": "###"}
    response = whole(message(), {"type": "message_delta", "delta": stop}, END)
    assert (response.stop_reason, response.stop_sequence) == ("stop_sequence", "###")


def test_an_answer_without_blocks_is_whole() -> None:
    assert whole(message(), stopped("end_turn"), END).blocks == []


def test_overloaded_inside_a_stream_has_the_status_it_would_have_had_outside() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    with pytest.raises(ApiError, match=r"^Overloaded$") as caught:
        taken(message(), {"type": "error", "error": error})
    assert (caught.value.status, caught.value.kind) == (529, "overloaded_error")
    assert caught.value.request_id == "req_1"
    assert caught.value.is_transient


@pytest.mark.parametrize("event", [{"type": "error"}, {"type": "error", "error": {"type": None}}])
def test_an_error_that_says_nothing_is_an_error(event: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match="without a message"):
        taken(event)


@pytest.mark.parametrize(
    "events",
    [
        [ended(0)],
        [message(), message()],
        [message(), ended(0)],
        [message(), delta(0, "text", text="x")],
        [message(), begun(0, "text"), begun(0, "text")],
        [message(), begun(0, "text"), ended(0), ended(0)],
        [message(), begun(0, "text"), ended(0), begun(0, "text")],
        [message(), begun(0, "text"), END],
        [message(), begun(0, "text"), delta(0, "thinking", thinking="x")],
        [message(), begun(0, "text"), delta(0, "signature", signature="x")],
        [message(), begun(0, "text"), delta(0, "input_json", partial_json="x")],
        [message(), begun(0, "text", citations=5), delta(0, "citations", citation=5)],
        [message(), begun(0, "tool_use"), delta(0, "text", text="x")],
        [message(), begun(0, "tool_use"), delta(0, "input_json", partial_json=5)],
        [message(), begun(0, "text"), delta(0, "text", text=5)],
        [message(), begun(0, "text", text=5)],
        [message(), begun(-1, "text")],
        [message(), {"type": "content_block_start", "index": True, "content_block": {}}],
        [message(), {"type": "content_block_start", "index": 0}],
        [message(), {"type": "content_block_start", "index": 0, "content_block": {}}],
        [message(), {"type": "message_delta", "delta": 5}],
        [message(), {"type": "message_delta", "delta": {"stop_reason": 5}}],
        [{"type": "message_start", "message": "x"}],
        [{"type": "message_start", "message": {"id": 5, "model": "m"}}],
    ],
)
def test_a_stream_that_keeps_no_order_is_broken(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ApiError, match="invalid stream") as caught:
        taken(*events)
    assert caught.value.kind == "bad_stream"


def test_what_comes_after_the_end_is_nothing() -> None:
    assembly, _ = taken(*RECORDED)
    for event in (*RECORDED, {"type": "error", "error": {}}):
        assert assembly.feed(event) == []


def sendable(response: Response) -> bool:
    """Say whether blocks are whole enough that the API takes them back."""
    for block in response.blocks:
        if block["type"] == "text" and not block["text"].strip():
            return False
        if block["type"] == "thinking" and not block["signature"]:
            return False
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            return False
    return True


def test_a_stream_that_is_cut_leaves_whole_blocks_and_begun_text() -> None:
    seen: list[list[str]] = []
    for end in range(len(RECORDED) + 1):
        assembly, _ = taken(*RECORDED[:end])
        partial = assembly.partial_response()
        assert sendable(partial)
        shown = [block.get("text") or block["type"] for block in partial.blocks]
        if not seen or seen[-1] != shown:
            seen.append(shown)
    assert seen == [
        [],
        ["thinking"],
        ["thinking", "I am "],
        ["thinking", "I am 💡 here"],
        ["thinking", "I am 💡 here", "tool_use"],
    ]


def test_looking_at_a_partial_response_does_not_change_what_comes() -> None:
    assembly = ResponseAssembler("req_1")
    events: list[StreamEvent] = []
    for event in RECORDED:
        events += assembly.feed(event)
        assembly.partial_response().blocks.clear()
    assert events == taken(*RECORDED)[1]


def test_begun_text_of_nothing_but_blanks_is_no_text() -> None:
    assembly, _ = taken(message(), begun(0, "text", text=""), delta(0, "text", text=" \n"))
    assert assembly.partial_response().blocks == []


def test_an_event_without_a_type_has_the_name_the_stream_gives_it() -> None:
    assert decode_event(SseEvent("ping", "{}")) == {"type": "ping"}
    assert decode_event(SseEvent("x", '{"type":"ping"}')) == {"type": "ping"}


def test_half_a_surrogate_pair_costs_one_character_and_not_the_stream() -> None:
    half = decode_event(SseEvent("x", r'{"type":"x","a":"\ud83d"}'))
    assert half == {"type": "x", "a": "\N{REPLACEMENT CHARACTER}"}


def test_data_that_is_no_object_is_an_error_only_in_events_that_are_known() -> None:
    assert decode_event(SseEvent("of_tomorrow", "hello")) is None
    assert decode_event(SseEvent("of_tomorrow", "[" * 100_000)) is None
    for name in ("message", "message_stop", "error"):
        for data in ("", "[]", "{", "[" * 100_000):
            with pytest.raises(ApiError, match="is not a JSON object"):
                decode_event(SseEvent(name, data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "text", "tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "citations", "input", "usage", "id", "stop_reason"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
ANY = st.fixed_dictionaries(
    {"type": st.sampled_from([str(event["type"]) for event in RECORDED])},
    optional={"index": st.integers(0, 1) | JSON, "message": JSON, "content_block": JSON, "delta": JSON, "usage": JSON},
)


@given(st.lists(st.sampled_from(RECORDED) | ANY, max_size=12))
def test_no_order_and_no_content_of_events_gives_anything_but_an_api_error(events: list[dict[str, Any]]) -> None:
    assembly = ResponseAssembler()
    assembly.feed(message())
    for event in events:
        with suppress(ApiError):
            assembly.feed(event)
        assembly.partial_response()
