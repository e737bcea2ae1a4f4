"""Exported pages stay texts, ask for nothing, and show all: in a real browser, from the disk."""

from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page
from tests.campaign.size import spread
from tests.security.hostile import hostile_root
from tests.security.payloads import MARK
from tests.security.test_xss import LISTEN, OPEN

from steno.demo.recording import write_demo
from steno.report.export.session_export import ExportJob, write_files
from steno.sanitize.secret_masker import Masker
from steno.store.session_lookup import open_file_session, sessions_newest_first
from steno.web.export import session_pages as folder
from steno.web.export.session_pages import render_page_bytes, render_pages

pytestmark = pytest.mark.timeout(600)

_EVERY_DAY: Final = 10
_LOTS: Final = 12


_ODD: Final = """() => [...document.querySelectorAll("*")].flatMap((each) =>
  [...each.attributes].filter(({ name, value }) =>
    name.startsWith("on") || name === "style" || name === "srcset"
    || (["src", "href"].includes(name)
        && !/^(#|data:image\\/|https?:|mailto:|[\\w.-]+\\.html(#[\\w-]*)?$)/.test(value))
  ).map(({ name, value }) => `${each.tagName} ${name}=${value.slice(0, 80)}`))"""
"""Attributes that no page of ours has, and addresses that lead where nothing is."""


_CODE: Final = "() => [...document.querySelectorAll('.code, .diff')].map((each) => each.textContent)"


class Reader:
    """A browser without a network, that opens files."""

    def __init__(self, browser: Browser) -> None:
        self.trouble: list[str] = []
        context = browser.new_context(offline=True)
        context.add_init_script(LISTEN)
        self.page: Page = context.new_page()
        self.page.on("dialog", self._asked)
        self.page.on("pageerror", lambda error: self.trouble.append(f"error {error}"))
        self.page.on("console", self._said)
        self.page.on("request", self._wanted)

    def _asked(self, dialog: Any) -> None:
        self.trouble.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(f"console {message.text}")

    def _wanted(self, request: Any) -> None:
        if not request.url.startswith(("file://", "data:")):
            self.trouble.append(f"request {request.url}")

    def see(self, path: Path) -> None:
        """Open a page and everything on it."""
        self.page.goto(path.as_uri(), wait_until="load")
        self.page.evaluate(OPEN)
        breaches, ran, where = self.page.evaluate(f"[window.__breaches, window.{MARK} ?? null, location.href]")
        self.trouble += [f"policy {each}" for each in breaches]
        assert ran is None, path.name
        assert where == path.as_uri()
        assert self.trouble == [], path.name


@pytest.fixture
def reader(browser: Browser) -> Generator[Reader]:
    made = Reader(browser)
    yield made
    made.page.goto("about:blank")


def _exported(root: str, out: Path, *, level: Any = "full") -> list[Path]:
    job = ExportJob(level=level, masker=Masker(), out=f"{out}/")
    files = sessions_newest_first((root,))
    return [Path(path) for path in write_files(render_pages(files, job), job)]


@pytest.fixture(scope="module")
def hostile_pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("hostile-export")
    return _exported(str(hostile_root(folder / "root")), folder / "out")


def test_some_hostile_pages_run_ask_for_and_break_nothing(reader: Reader, hostile_pages: list[Path]) -> None:
    assert len(hostile_pages) > 200
    step = len(hostile_pages) // _EVERY_DAY
    index = next(path for path in hostile_pages if path.name == "index.html")
    for path in (index, *hostile_pages[::step]):
        reader.see(path)
        assert reader.page.evaluate(_ODD) == [], path.name


@pytest.mark.faults
@pytest.mark.parametrize("lot", range(_LOTS))
def test_no_hostile_page_runs_asks_for_or_breaks_anything(reader: Reader, hostile_pages: list[Path], lot: int) -> None:
    for path in spread(hostile_pages[lot::_LOTS]):
        reader.see(path)
        assert reader.page.evaluate(_ODD) == [], path.name


def test_a_page_paints_code_when_it_is_looked_at_and_changes_no_letter_of_it(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_MAX_HIGHLIGHTED_SESSIONS", 0)
    root = write_demo(str(tmp_path / "demo")).root
    painted = 0
    for path in _exported(root, tmp_path / "out"):
        reader.page.goto(path.as_uri(), wait_until="load")
        before = reader.page.evaluate(_CODE)
        assert reader.page.locator(".step .code .k").count() == 0
        reader.see(path)
        assert reader.page.evaluate(_CODE) == before
        painted += reader.page.locator(".step .code .k, .step .diff .k").count()
    assert painted


def test_every_turn_and_every_step_is_shown_without_a_network(reader: Reader, tmp_path: Path) -> None:
    root = write_demo(str(tmp_path / "demo")).root
    for found in sessions_newest_first((root,)):
        page = tmp_path / "page.html"
        page.write_bytes(render_page_bytes(found, ExportJob(masker=Masker())))
        reader.see(page)
        with open_file_session(found) as session:
            turns = session.turns()
            steps = sum(step.kind != "queued" for turn in turns for step in turn.steps)
        shown = reader.page.locator("article.turn").count()
        assert shown == len(turns), found.path
        own = reader.page.locator("article.turn > .body > .steps > details.step")
        assert own.count() == steps, found.path
        empty = reader.page.evaluate(
            """() => [...document.querySelectorAll("details.step > .in")]
              .filter((each) => !each.textContent.trim() && !each.querySelector("img")).length"""
        )
        assert empty == 0, found.path
