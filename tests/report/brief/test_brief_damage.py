"""Whatever a file holds, a brief comes of it."""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import VERSIONS
from tests.builders.everything import everything

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.report.brief import as_json, as_markdown, build_brief, estimate_tokens
from steno.session.session import Session
from steno.session.transcript import load

_FILES = [made.bytes() for version in VERSIONS for made in everything(version)[:6:5]]
_ODD: list[Any] = [None, True, 7, -1.5, "", "\ud800", [], {}, [[]], {"type": []}, ["x", {"text": 1}]]


def _told(data: bytes) -> None:
    session = Session(load(BytesSource(data)), name="made")
    brief = build_brief(session)
    assert brief == build_brief(session)
    assert estimate_tokens(as_markdown(brief, 300)) <= 300
    assert as_markdown(brief)
    assert as_json(brief)["briefs"]


def test_every_version_gives_a_brief() -> None:
    for data in _FILES:
        _told(data)


@settings(max_examples=40)
@given(st.sampled_from(_FILES), st.data())
def test_a_torn_and_spliced_file_gives_a_brief(data: bytes, draw: st.DataObject) -> None:
    places = st.integers(0, len(data))
    first, second, third = sorted(draw.draw(places) for _ in range(3))
    junk = draw.draw(st.binary(max_size=20))
    _told(data[:first] + junk + data[second:third] + data[first:second])


@settings(max_examples=60)
@given(st.sampled_from(_FILES), st.data())
def test_values_of_odd_types_give_a_brief(data: bytes, draw: st.DataObject) -> None:
    records = [json.loads(line) for line in data.splitlines()]
    for _ in range(draw.draw(st.integers(1, 6))):
        _spoil(draw.draw(st.sampled_from(records)), draw)
    _told(b"".join(encode_line(record) for record in records))


def _spoil(value: Any, draw: st.DataObject) -> None:
    """Put something odd at one place of a record."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.draw(st.sampled_from(keys))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw.draw(st.booleans()):
            value = inner
            continue
        value[key] = copy.deepcopy(draw.draw(st.sampled_from(_ODD)))
        return
