"""The page of a session, in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer
from tests.web.sessions import session_called

_BRANCHED = "Three languages"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_demo_session_is_accessible(
    demo: Explorer, look: Look, shot: Callable[..., Path], size: str, theme: str
) -> None:
    for name in (_BRANCHED, "Smooth the curve", "One cent off", "Try the same"):
        page = look(demo, f"/s/{session_called(demo, name)}", size=size, theme=theme)
        page.wait_for_selector(".turns .turn")
        shot(page, f"session-{name.split()[0].lower()}-{size}-{theme}")
        assert_accessible(page)
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, name
