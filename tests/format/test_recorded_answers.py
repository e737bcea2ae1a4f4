"""What every reader and writer of the format makes of many hundreds of small inputs, in full.

Where a change of an answer is meant, `python -m tests.format.answers` writes the tables anew.
"""

import pytest
from tests.format.answers import TABLES, recorded, told


@pytest.mark.parametrize("table", TABLES)
def test_every_answer_is_as_it_was_recorded(table: str) -> None:
    assert told(table) == recorded(table)
