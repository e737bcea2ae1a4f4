"""Every table of recorded answers still holds; `tests.safe.recording` says how to write one anew."""

import pytest
from tests.safe.recording import read
from tests.safe.tables import TABLES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_answers_are_those_that_were_recorded(name: str) -> None:
    recorded = read(name)
    made = TABLES[name]()
    wrong = [
        f"{label}\n  recorded: {before}\n  now:      {now}"
        for (label, before), (_, now) in zip(recorded, made, strict=False)
        if before != now
    ]
    assert not wrong, "\n".join(wrong[:10])
    assert [label for label, _ in made] == [label for label, _ in recorded]
