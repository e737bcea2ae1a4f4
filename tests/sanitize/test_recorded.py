"""Every table of recorded answers still holds; `tests.sanitize.recording` says how to write one anew."""

from collections.abc import Iterator

import pytest
from tests.sanitize.recording import read
from tests.sanitize.tables import TABLES, WHOLE

_PART = 60
"""Inputs of one test: what is wrong shows soon, and in few lines."""


def _parts() -> Iterator[tuple[str, int]]:
    for name in sorted(TABLES):
        size = len(read(name)) or 1
        yield from ((name, at) for at in ([0] if name in WHOLE else range(0, size, _PART)))


@pytest.mark.parametrize(("name", "at"), list(_parts()))
def test_the_answers_are_those_that_were_recorded(name: str, at: int) -> None:
    recorded = read(name) if name in WHOLE else read(name)[at : at + _PART]
    made = TABLES[name]([label for label, _ in recorded])
    wrong = [
        f"{label}\n  recorded: {before}\n  now:      {now}"
        for (label, before), (_, now) in zip(recorded, made, strict=False)
        if before != now
    ]
    assert not wrong, "\n".join(wrong[:10])
    assert [label for label, _ in made] == [label for label, _ in recorded]
