"""Pages about the structure name existing files and list every package."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, ROOT, fences, read

SOURCE = ROOT / "src" / "steno"
ARCHITECTURE = DOCS / "explanation" / "architecture.md"
MAX_MODULES = 20
_ROOTS = (ROOT, SOURCE.parent, SOURCE, DOCS / "reference")
"""Directories to which file names in a page are relative."""
GENERATED = SOURCE / "format" / "views"
_ENDINGS = "py|pyi|json|sql|toml|j2|zip|md|css|js"
_FILE = re.compile(rf"(?<![\w./-])[\w-]+(?:[\w./-]*[\w-])?\.(?:{_ENDINGS})(?![\w/])")
_SPAN = re.compile(r"`([^`\n]+)`")
_ENTRY = re.compile(r"^(?P<indent> *)(?P<path>[\w./-]+/)(?: {2,}(?P<text>.*))?$")
_DEEPEST = 16
"""Indentation from which a line of a tree continues the entry above it."""


def tree(block: str) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each directory in a tree."""
    parents: list[str] = []
    for line in block.splitlines():
        entry = _ENTRY.match(line)
        if entry and len(entry["indent"]) < _DEEPEST:
            depth = len(entry["indent"]) // 2
            parents[depth:] = [entry["path"].rstrip("/")]
            yield Path(*parents), entry["text"] or ""
        elif line.strip():
            yield Path(*parents), line


def tree_blocks(page: Path) -> Iterator[str]:
    for language, body, _ in fences(read(page)):
        if language == "text" and re.search(r"^ +[\w-]+/", body, re.MULTILINE):
            yield body


def exists(name: str, *folders: Path) -> bool:
    """Return whether a file or directory exists below one of the roots or other directories."""
    return any((folder / name).exists() for folder in (*_ROOTS, *folders))


def named_paths(text: str) -> list[str]:
    """Return the files and directories named in code spans of a text."""
    spans = _SPAN.findall(text)
    folders = [span for span in spans if re.fullmatch(r"[\w-]+(?:/[\w-]+)*/", span)]
    return [name for span in spans if " " not in span for name in _FILE.findall(span)] + folders


def missing_files(page: Path) -> list[str]:
    text = read(page)
    missing = [name for name in named_paths(text) if not exists(name)]
    for block in tree_blocks(page):
        for folder, description in tree(block):
            here = ROOT / folder
            if not exists(str(folder)):
                missing.append(str(folder))
            elif (SOURCE.parent / folder).exists():
                here = SOURCE.parent / folder
            missing += [name for name in _FILE.findall(description) if not exists(name, here)]
    return missing


@pytest.mark.parametrize(
    "page", [ARCHITECTURE, ROOT / "AGENTS.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert named_paths(read(page))
    assert missing_files(page) == []


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`agent/loop.py` and `agent/gone.py`, a folder `web/gone/`\n\n"
        "```text\nsrc/steno/\n  agent/        loop.py\n                lost.py\n  nowhere/\n```\n"
    )
    assert missing_files(page) == ["agent/gone.py", "web/gone/", "lost.py", "src/steno/nowhere"]


def packages() -> set[str]:
    """Return every directory of the package that contains files."""
    return {
        str(folder.relative_to(SOURCE))
        for folder in SOURCE.rglob("*")
        if folder.is_dir() and folder.name != "__pycache__" and any(file.is_file() for file in folder.iterdir())
    }


def test_the_tree_lists_every_package() -> None:
    block = next(tree_blocks(ARCHITECTURE))
    entries = {str(Path(*folder.parts[1:])): text for folder, text in tree(block)}
    assert entries.pop(".") == ""
    assert set(entries) == packages()
    assert [name for name, text in entries.items() if not text.strip()] == []


def test_the_map_for_agents_lists_every_top_level_package() -> None:
    block = next(tree_blocks(ROOT / "AGENTS.md"))
    listed = {str(folder.relative_to("src/steno")) for folder, _ in tree(block) if folder.is_relative_to("src/steno")}
    assert {name for name in packages() if "/" not in name} <= listed
    assert listed - {"."} <= packages()


def change_rows() -> list[list[str]]:
    _, _, section = read(ARCHITECTURE).partition("\n## Where does X go\n")
    table = section.partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


def test_each_change_names_the_files_it_touches() -> None:
    rows = change_rows()
    assert len(rows) >= 20
    for change, files in rows:
        names = named_paths(files)
        assert names, change
        assert [name for name in names if not exists(name)] == [], change


def test_directories_have_few_modules() -> None:
    counts = {
        str(folder.relative_to(SOURCE)): len([p for p in folder.glob("*.py") if p.stem != "__init__"])
        for folder in (SOURCE, *SOURCE.rglob("*"))
        if folder.is_dir() and folder != GENERATED
    }
    assert {name: count for name, count in counts.items() if count > MAX_MODULES} == {}


def test_the_import_order_matches_the_contract() -> None:
    project = tomllib.loads(read(ROOT / "pyproject.toml"))
    layers: list[str] = project["tool"]["importlinter"]["contracts"][0]["layers"]
    enforced = [re.sub(r" \| _version", "", layer) for layer in layers]
    blocks = [body.splitlines() for language, body, _ in fences(read(ARCHITECTURE)) if language == "text"]
    assert enforced in blocks
