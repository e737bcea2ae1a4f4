"""Files, in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Look
from tests.web.explorer import Explorer

from steno.web.tags import tag_of

_SMOOTH = "/home/ada/tidegauge/src/tidegauge/smooth.py"
_LETTER = "/home/ada/invoice-render/templates/letter.html"
_SEEN = [("desk", "light"), ("desk", "dark"), ("phone", "light"), ("phone", "dark")]


@pytest.mark.parametrize(("size", "theme"), _SEEN)
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("files", "/files"),
        ("files-project", f"/files?project={tag_of('/home/ada/tidegauge')}"),
        ("file", f"/files/{tag_of(_SMOOTH)}"),
        ("file-outside", f"/files/{tag_of(_LETTER)}"),
    ],
)
def test_everybody_can_use_the_files(
    demo: Explorer,
    look: Look,
    shot: Callable[..., Path],
    name: str,
    way: str,
    size: str,
    theme: Literal["light", "dark"],
) -> None:
    page = look(demo, way, size=size, theme=theme)
    shot(page, f"{name}-{size}-{theme}")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
