"""Many texts of one form are told at once as they would be one by one."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steno.check.evidence import are_usual_times, are_uuids
from steno.format.paths import is_uuid

UUID = "62ecc684-5437-43FF-95cf-5c331fca7ea1"
TIME = "2025-11-15T12:00:00.000Z"
MANY = 5_000
USUAL = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z")


def near(text: str) -> st.SearchStrategy[str]:
    """Return that text, and others that differ from it a little."""
    odd = st.sampled_from(["", "0", "g", "Z", "9", "-", "\n", "\r", "é", "\ud800", "\u0661"])

    def change(at: int, put: str, cut: int) -> str:
        return text[:at] + put + text[at + cut :]

    changed = st.builds(change, st.integers(0, len(text)), odd, st.integers(0, 2))
    return st.one_of(st.just(text), changed)


@given(st.lists(near(UUID)))
@example([f"{UUID}\n{UUID}"])
@example([UUID, f"{UUID}\n"])
@example(["", UUID])
def test_uuids_are_told_as_they_are_alone(texts: list[str]) -> None:
    assert are_uuids(texts) is all(map(is_uuid, texts))


@given(st.lists(near(TIME)))
@example([f"{TIME}\n{TIME}"])
@example([TIME, f"{TIME}\n"])
@example(["", TIME])
def test_times_are_told_as_they_are_alone(texts: list[str]) -> None:
    assert are_usual_times(texts) is all(USUAL.fullmatch(text) for text in texts)


@pytest.mark.parametrize("at", [0, MANY // 2, MANY - 1])
def test_one_odd_text_among_many_is_found(at: int) -> None:
    uuids, times = [UUID] * MANY, [TIME] * MANY
    assert are_uuids(uuids)
    assert are_usual_times(times)
    uuids[at] = times[at] = "x"
    assert not are_uuids(uuids)
    assert not are_usual_times(times)
