"""Whether a page can be used by everybody, as far as a machine can tell."""

from functools import lru_cache
from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_LEVELS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
_DARK: Final = "matchMedia('(prefers-color-scheme: dark)').matches"


def assert_accessible(page: Page) -> None:
    """Fail with what axe finds wrong with a page.

    In the dark only the colours are looked at: all else is the same page, and was looked at.
    """
    only: list[str] | dict[str, Any] = [*_LEVELS]
    if page.evaluate(_DARK):
        only = {"type": "rule", "values": ["color-contrast"]}
    # What is well need not be told node by node, which is most of the work.
    found = _axe().run(page, options={"runOnly": only, "resultTypes": ["violations"]})
    wrong = [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in found.response["violations"]]
    assert wrong == [], wrong


@lru_cache(maxsize=1)
def _axe() -> Axe:
    return Axe()
