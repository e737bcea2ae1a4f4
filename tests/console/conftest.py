"""What tests of the console share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.console.terminal import Terminal

from steno.llm.testserver.responders import Responder


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Return what makes terminals, which are closed behind the test."""
    with ExitStack() as stack:

        def make(mind: Responder, **more: Any) -> Terminal:
            return stack.enter_context(Terminal(tmp_path, mind, **more))

        yield make
