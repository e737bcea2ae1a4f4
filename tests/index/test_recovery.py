"""Recovery from a damaged index."""

import pytest

from steno.errors import Unwritable
from steno.index.recovery import is_damage, recover


@pytest.mark.timeout(10)
def test_errors_that_cause_each_other_are_looked_at_once() -> None:
    one, two = Unwritable("one"), Unwritable("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_damage(one)
    assert not recover(one)
