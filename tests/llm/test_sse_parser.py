"""The reader of server-sent events gives the same events however the bytes arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.llm.loopback import RECORDED, sse

from steno.llm.stream_decoder import SseEvent, SseParser


def read(data: bytes) -> list[SseEvent]:
    return SseParser().feed(data)


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: x\n\n", [("message", "x")]),
        (b"data:x\n\n", [("message", "x")]),
        (b"data:  x \n\n", [("message", " x ")]),
        (b"event: a\ndata: x\n\n", [("a", "x")]),
        (b"data: x\nevent: a\n\n", [("a", "x")]),
        (b"event: a\nevent: b\ndata: x\n\n", [("b", "x")]),
        (b"event: a\r\ndata: x\r\n\r\n", [("a", "x")]),
        (b"event: a\rdata: x\r\r", [("a", "x")]),
        (b"event: a\ndata: x\r\r\ndata: y\n\r", [("a", "x"), ("message", "y")]),
        (b"data: x\ndata\ndata:\ndata: y\n\n", [("message", "x\n\n\ny")]),
        (b"data\n\n", [("message", "")]),
        (b": a comment\n\n: another\ndata: x\n\n", [("message", "x")]),
        (b"event: forgotten\n\ndata: x\n\n", [("message", "x")]),
        (b"id: 1\nretry: 5\nnothing\n data: y\ndata: x\n\n", [("message", "x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [("message", "x")]),
        (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [("message", "x")]),
        (b"data: \xef\xbb\xbf\n\n", [("message", "\ufeff")]),
        (b"data: a\xffb\n\n", [("message", "a\ufffdb")]),
        ("data: a\u2028b\x85c\x0bd\n\n".encode(), [("message", "a\u2028b\x85c\x0bd")]),
        (b"data: x\n\ndata: cut off\n", [("message", "x")]),
        (b"data: x\n\ndata: cut off", [("message", "x")]),
        (b"\n\n\r\n", []),
        (b"", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says(data: bytes, events: list[tuple[str, str]]) -> None:
    assert [(event.event, event.data) for event in read(data)] == events


def chunked(data: bytes, cuts: list[int], *, most: int = 1 << 20) -> tuple[list[SseEvent], bool]:
    reader = SseParser(max_bytes=most)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    events = [event for start, end in pairwise(edges) for event in reader.feed(data[start:end])]
    return events, reader.overflowed


LINES = st.sampled_from([b"data: x", b"data:", b"data", b"event: a", b": no", b"id: 1", b"", "data: é€💡".encode()])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.one_of(
    st.lists(st.tuples(LINES, ENDS), max_size=30).map(lambda pairs: b"".join(line + end for line, end in pairs)),
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"\xef\xbb\xbf", b"\xff"])).map(b"".join),
    st.binary(max_size=200),
)


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=12), st.sampled_from([3, 9, 20, 1 << 20]))
def test_any_chunking_equals_one_chunk(data: bytes, cuts: list[int], most: int) -> None:
    assert chunked(data, cuts, most=most) == chunked(data, [], most=most)


@given(STREAMS, st.sampled_from([9, 1 << 20]))
def test_byte_by_byte_equals_one_chunk(data: bytes, most: int) -> None:
    assert chunked(data, list(range(len(data))), most=most) == chunked(data, [], most=most)


def test_a_recorded_stream_is_the_same_with_every_line_end_and_cut_in_two_anywhere() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        data = sse(*RECORDED).replace(b"\n", end)
        whole = read(data)
        assert [event.event for event in whole] == [event["type"] for event in RECORDED]
        for cut in range(len(data)):
            assert chunked(data, [cut])[0] == whole


def test_an_event_larger_than_allowed_stops_the_reader_and_keeps_what_came_before() -> None:
    reader = SseParser(max_bytes=20)
    assert reader.feed(b"data: x\n\ndata: 12345\ndata: 12345\n\ndata: y\n\n") == [SseEvent("message", "x")]
    assert reader.overflowed
    assert reader.feed(b"data: z\n\n") == []


def test_a_line_that_never_ends_is_not_kept() -> None:
    reader = SseParser(max_bytes=1000)
    for _ in range(100):
        reader.feed(b"x" * 64)
    assert reader.overflowed
    assert len(reader._held) == 0


def test_small_events_without_end_are_no_large_one() -> None:
    reader = SseParser(max_bytes=20)
    for _ in range(100):
        assert reader.feed(b": still here\nevent: ping\ndata: {}\n\n") == [SseEvent("ping", "{}")]
    assert not reader.overflowed
