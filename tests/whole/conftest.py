"""What several tests of whole agents share."""

import pytest
from tests.whole.written import Written
from tests.whole.written import written as write_everything


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Sessions with everything that the engine writes."""
    return write_everything(tmp_path_factory.mktemp("written"))
