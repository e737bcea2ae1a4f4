"""All that is said of hundreds of small files: findings, what clients resume, how each is mended.

Where a change of an answer is meant, `python -m tests.check.cases` writes the tables anew.
"""

import pytest
from tests.check.cases import TABLES, groups, recorded

_RECORDED = {table: recorded(table) for table in TABLES}
_GROUPS = {table: groups(table) for table in TABLES}


@pytest.mark.parametrize(("table", "group"), [(table, group) for table in TABLES for group in _GROUPS[table]])
def test_everything_that_is_said_of_a_file_is_as_it_was_recorded(table: str, group: str) -> None:
    for case in _GROUPS[table][group]:
        name = f"{group}: {case.name}"
        assert case.said().splitlines() == _RECORDED[table][name].splitlines(), name


@pytest.mark.parametrize("table", TABLES)
def test_every_recorded_answer_has_its_case(table: str) -> None:
    names = [f"{group}: {case.name}" for group, cases in _GROUPS[table].items() for case in cases]
    assert names == list(_RECORDED[table])
