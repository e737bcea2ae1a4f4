"""What the tests of the guard are given."""

from pathlib import Path

import pytest
from tests.permissions.judging import Judging


@pytest.fixture
def here(tmp_path: Path) -> Judging:
    return Judging(tmp_path)
