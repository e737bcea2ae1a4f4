"""What the index counts along while it reads is what the story of the session has."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import VERSIONS, Session, session, text, tool
from tests.builders.everything import everything
from tests.corpus import transcripts

from steno.format.source import BytesSource, Source
from steno.index.session_stats import ExtractionState, decode_state, encode_state
from steno.index.sync import extract as reading
from steno.index.sync.extract import extract_rows
from steno.session import session as told
from steno.session.transcript import load
from steno.session.turns.session_facts import SessionCounts, count_session
from steno.store.file_source import FileSource


def counted(source: Source, state: ExtractionState | None = None, start: int = 0) -> ExtractionState:
    """Read a file from a place on, and keep its state as an index does."""
    return decode_state(encode_state(extract_rows(source, 1, start, state).state))


def figures(state: ExtractionState) -> SessionCounts:
    return msgspec.structs.replace(state.stats.current_figures(), model=state.model)


def story(data: bytes) -> SessionCounts:
    return count_session(told.Session(load(BytesSource(data))))


def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what is not plain untold, so that it can be seen what is."""

    def leave(source: Source, state: ExtractionState) -> None:
        assert source.size or state

    monkeypatch.setattr(reading, "_count_in_full", leave)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_every_client_are_counted_as_they_are_told(version: str) -> None:
    for made in everything(version):
        data = made.bytes()
        assert figures(counted(BytesSource(data))) == story(data)


@settings(max_examples=40)
@given(st.sampled_from(VERSIONS), st.lists(st.integers(0, 10_000), max_size=4))
def test_it_does_not_matter_in_how_many_pieces_a_session_was_read(version: str, cuts: list[int]) -> None:
    made = session(version).turn("One", text("Two."), tool("Bash", command="ls"))
    made.result("a").assistant("Done.").turn("Three", "Four.").rewind(1)
    made.turn("Five", tool("Bash", command="cat x")).result("no", error=True).assistant("Six.")
    data = made.turn("/compact").bytes()
    state, start = None, 0
    for cut in (*sorted(cut % len(data) for cut in cuts), len(data)):
        state = counted(BytesSource(data[:cut]), state, start)
        start = data[:cut].rfind(b"\n") + 1
    assert state is not None
    assert figures(state) == story(data)


def plain() -> Session:
    made = session().turn("One", tool("Bash", command="ls"), tool("Bash", command="pwd"))
    made.results("a", "b").assistant("Done.").done()
    return made.turn("Two", "Three.").done()


def test_a_plain_session_need_not_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    untold(monkeypatch)
    data = plain().bytes()
    state = counted(BytesSource(data))
    assert not state.stats.needs_full_count
    assert figures(state) == story(data)
    assert (figures(state).turns, figures(state).steps) == (2, 2)


def test_a_rewind_is_counted_and_a_broken_chain_is_none() -> None:
    made = plain().turn("Left", "behind").rewind(2).turn("Instead", "this")
    assert figures(counted(BytesSource(made.bytes()))).branches == 1
    lines = plain().turn("Last", "words").bytes().splitlines(keepends=True)
    # The record that the last prompt hangs on is lost.
    place = next(at for at, line in enumerate(lines) if b'"Last"' in line)
    broken = b"".join(lines[: place - 2] + lines[place:])
    assert figures(counted(BytesSource(broken))).branches == 0
    assert figures(counted(BytesSource(broken))) == story(broken)


def test_a_session_that_was_rewound_is_plain_again_when_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plain().turn("Left", "behind").rewind(2).turn("Instead", "this").done()
    before = made.bytes()
    state = counted(BytesSource(before))
    untold(monkeypatch)
    data = made.turn("And on", tool("Bash", command="ls")).result("a").assistant("So.").bytes()
    state = counted(BytesSource(data), state, len(before))
    assert not state.stats.needs_full_count
    assert figures(state) == story(data)
    assert (figures(state).turns, figures(state).branches) == (4, 1)


def test_what_the_client_says_in_the_models_name_is_no_model() -> None:
    data = session().turn("One", "Two.").bytes()
    model = counted(BytesSource(data)).model
    line = data.splitlines()[-1].replace(model.encode(), b"<synthetic>")
    state = counted(BytesSource(data + line.replace(b'"uuid":"', b'"uuid":"f') + b"\n"))
    assert (state.model, model[:6]) == (model, "claude")


def test_a_refused_call_has_not_failed() -> None:
    refused = "The user doesn't want to proceed with this tool use."
    made = session().turn("One", tool("Bash", command="rm x")).result(refused, error=True)
    made.assistant(tool("Bash", command="ls y")).result("Exit code 2", error=True)
    data = made.assistant("So be it.").bytes()
    assert figures(counted(BytesSource(data))) == story(data)
    assert figures(counted(BytesSource(data))).failed == 1


@pytest.mark.corpus
def test_real_sessions_are_counted_as_they_are_told(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    untold(monkeypatch)
    plain = 0
    odd: list[str] = []
    for path in transcripts(shared):
        with FileSource(str(path)) as source:
            if source.size > 1 << 19:
                continue
            state = counted(source)
            if not state.main or state.stats.needs_full_count:
                continue
            plain += 1
            if figures(state) != count_session(told.Session(load(source))):
                odd.append(str(path))
    assert odd == []
    assert plain > 200
