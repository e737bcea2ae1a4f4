"""Pages: links resolve, code runs, shown output is current, promises have tests."""

import doctest
import os
import pkgutil
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.docs.pages import DOCS, ROOT, anchors, fences, name_of, pages, prose, read

from steno.demo.recording import write_demo
from tools import make_cli_docs, make_examples, make_screens

PAGES = pytest.mark.parametrize("page", pages(), ids=name_of)
PLAYED = pytest.mark.parametrize("page", list(make_examples.pages()), ids=name_of)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<(?:img|source)[^>]* src(?:set)?=\"([^\"]+)\"")
PROVEN = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
FILE = re.compile(r"`((?:src|tests|tools|docs|bench)/[\w./-]+)`")
DOTTED = re.compile(r"`(steno(?:\.[A-Za-z_]\w*)+)`")
ROOTS = (ROOT, ROOT / "src" / "steno")
LANGUAGES = {"console", "json", "make", "python", "sh", "text", "toml", ""}


@PAGES
def test_links_between_pages_resolve(page: Path) -> None:
    text = read(page)
    targets = [first or second for first, second in LINK.findall(prose(text))]
    broken = [target for target in targets if not leads_somewhere(page, target)]
    assert broken == []


def leads_somewhere(page: Path, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    path, _, anchor = unquote(target).partition("#")
    to = (page.parent / path).resolve() if path else page
    if not to.exists() or not to.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(read(to))


def test_a_broken_link_is_reported() -> None:
    readme = ROOT / "README.md"
    assert leads_somewhere(readme, "docs/index.md")
    assert leads_somewhere(readme, "README.md#license")
    assert not leads_somewhere(readme, "docs/no-such-page.md")
    assert not leads_somewhere(readme, "README.md#no-such-heading")


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [unquote(first).partition("#")[0] for first, _ in LINK.findall(prose(read(page)))]
        waiting += [
            to for target in targets if target.endswith(".md") and (to := (page.parent / target).resolve()).is_file()
        ]
    assert {name_of(page) for page in DOCS.rglob("*.md")} - {name_of(p) for p in reached} == set()


def test_the_navigation_of_the_site_lists_every_page() -> None:
    listed = re.findall(r"([\w/.-]+\.md)$", read(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


@PAGES
def test_files_and_names_in_pages_exist(page: Path) -> None:
    if is_dated(page):
        return
    text = read(page)
    gone = [name for name in FILE.findall(text) if not any((root / name).exists() for root in ROOTS)]
    gone += [name for name in DOTTED.findall(text) if not is_name(name)]
    assert gone == []


def is_dated(page: Path) -> bool:
    """Return whether a page is a decision older than 0023, which uses the old module names."""
    return page.parent.name == "decisions" and page.name < "0023"


def is_name(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@PAGES
def test_every_code_block_has_a_known_language(page: Path) -> None:
    assert {language for language, _, _ in fences(read(page))} <= LANGUAGES


@PAGES
def test_python_blocks_run(page: Path) -> None:
    """Python blocks use the demo sessions as the user's own."""
    write_demo(os.environ["CLAUDE_CONFIG_DIR"])
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    names: dict[str, Any] = {}
    for language, body, line in fences(read(page)):
        if language != "python":
            continue
        assert ">>> " in body, f"line {line}: Python that is shown must run, so show it as a doctest"
        test = parser.get_doctest(body, names, name_of(page), str(page), line)
        test.globs = names
        result = runner.run(test, clear_globs=False)
        assert result.failed == 0


@PLAYED
@pytest.mark.timeout(120)
def test_pages_show_the_output_of_the_commands(page: Path) -> None:
    text = read(page)
    assert make_examples.played(text) == text


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    assert make_cli_docs.main(["--check"]) == 0


@pytest.mark.timeout(120)
def test_images_show_the_output_of_the_commands() -> None:
    assert make_screens.main(["--check"]) == 0


def test_an_outdated_image_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ls.svg").write_text("old")
    assert make_screens.main(["--check"], tmp_path) == 1


def test_every_promise_names_an_existing_test() -> None:
    text = read(DOCS / "explanation" / "promises.md")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    promises = [row for row in rows if row != "| promise | test |"]
    assert len(promises) > 10
    assert [line for line in promises if not PROVEN.search(line)] == []
    missing = [f"{path}::{test}" for path, test in PROVEN.findall(text) if not is_there(path, test)]
    assert missing == []


def is_there(path: str, test: str) -> bool:
    file = ROOT / path
    return file.is_file() and (not test or f"def {test}(" in read(file))


def test_a_promise_without_a_test_is_reported() -> None:
    here = "tests/docs/test_pages.py"
    assert is_there(here, "test_a_promise_without_a_test_is_reported")
    assert not is_there(here, "test_that_nobody_wrote")
    assert not is_there("tests/docs/test_nothing.py", "")
