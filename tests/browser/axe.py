"""Whether a page can be used by everybody, as far as a machine can tell."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def assert_accessible(page: Page) -> None:
    """Fail with what axe finds wrong with a page."""
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    wrong = [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found.response["violations"]
    ]
    assert wrong == [], wrong
