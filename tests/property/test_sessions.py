"""Sessions made of odd parts: nothing raises, and what is sent keeps the API's rules."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import answer, session, text, thinking, tool

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.report.brief import as_markdown, build_brief
from steno.report.export.export_formats import render_markdown, render_plain_text
from steno.report.export.steps_format import session_steps
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import CLIENTS
from steno.session.resume.replay import as_resumed
from steno.session.session import Session
from steno.session.transcript import load


def sound() -> list[dict[str, Any]]:
    built = session(seed=5, full=True).user("one")
    built.assistant(thinking("hm"), text("two"), tool("Bash", command="ls"), answer("out"))
    built.assistant(tool("Read", file_path="/a"), tool("Edit", file_path="/a")).results("x", "y")
    built.assistant(text("three")).done().compact("SUMMARY").user("four").assistant(text("five"))
    return built.rewind(1).user("again").assistant(tool("Bash", command="ls")).records()


SOUND = sound()
ID = "0dd00000-0000-4000-8000-000000000000"
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{"type": []}]),
    st.just({"type": "text", "text": 5}),
    st.just([{"type": "tool_use", "id": {}}, {"type": "tool_result", "tool_use_id": []}, 7]),
    st.just([{"type": "tool_use", "id": "t"}, {"type": "tool_use", "id": "t", "name": 4}]),
    st.just([{"type": "image", "source": {"type": "url"}}, {"type": "document"}]),
    st.sampled_from([record.get("uuid") for record in SOUND if record.get("uuid")]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, item in inner:
        found.append((*path, key))
        if isinstance(item, dict | list):
            found.extend(places(item, (*path, key)))
    return found


def fits(holder: Any, key: Any) -> bool:
    if isinstance(holder, dict):
        return key in holder
    return isinstance(holder, list) and isinstance(key, int) and key < len(holder)


PLACES = [(at, *path) for at, record in enumerate(SOUND) for path in places(record)]


@st.composite
def odd_sessions(draw: st.DrawFn) -> bytes:
    """A session in which a few values anywhere are of a kind nobody expects."""
    records = json.loads(json.dumps(SOUND))
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4)):
        holder: Any = records
        for key in path[:-1]:
            holder = holder[key] if fits(holder, key) else None
        # A value on the way may have become an odd one before.
        if fits(holder, path[-1]):
            holder[path[-1]] = deepcopy(draw(ODD))
    order = draw(st.permutations(range(len(records)))) if draw(st.booleans()) else None
    kept = [records[at] for at in order] if order else records
    return b"".join(encode_line(record) for record in kept)


@settings(max_examples=300)
@given(odd_sessions())
def test_odd_values_anywhere_never_raise(data: bytes) -> None:
    found = Session(load(BytesSource(data)))
    for client in CLIENTS:
        as_resumed(found.transcript, client)
    for turn in found.turns():
        assert turn.number
    _ = (found.branches, found.compactions, found.agents, found.usage, found.title, found.status())


@settings(max_examples=300)
@given(odd_sessions())
def test_messages_keep_the_rules_whatever_is_odd(data: bytes) -> None:
    assert find_breaches(Session(load(BytesSource(data))).messages()) == []


@settings(max_examples=100)
@given(odd_sessions())
def test_whatever_is_odd_can_be_told_in_brief_and_to_others(data: bytes) -> None:
    found = Session(load(BytesSource(data)), name=ID)
    assert as_markdown(build_brief(found), budget=500)
    assert "".join(render_markdown(found, "full"))
    assert "".join(render_plain_text(found, "full"))
    assert len(session_steps(found)) <= len(found.transcript.nodes)
