"""Access to the documentation pages for tests."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
DOCS: Final = ROOT / "docs"
_SKIPPED: Final = frozenset((".git", ".hypothesis", "build", "dist", "results", "__pycache__"))
_FENCE: Final = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_SPAN: Final = re.compile(r"`[^`\n]*`")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def pages() -> list[Path]:
    """Return every Markdown page at the root and below `docs`."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def name_of(path: Path) -> str:
    """Return the path of a file relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    """Return the text of a page."""
    return path.read_text(encoding="utf-8")


def fences(text: str) -> list[tuple[str, str, int]]:
    """Return language, body and first line number of each code block of a page."""
    return [(found[2].strip(), found[3], text.count("\n", 0, found.start(3)) + 1) for found in _FENCE.finditer(text)]


def prose(text: str) -> str:
    """Return a page without code."""
    return _SPAN.sub("", _FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub builds them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        name, count = slug, 0
        while name in found:
            count += 1
            name = f"{slug}-{count}"
        found.add(name)
    return found


def repository() -> list[Path]:
    """Return every file of the repository; without git, every file that could belong to it."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode("utf-8", "surrogateescape")
    except (OSError, subprocess.CalledProcessError):
        return list(_walked())
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _walked() -> Iterator[Path]:
    for folder, below, files in os.walk(ROOT):
        here = Path(folder)
        below[:] = [
            name
            for name in below
            if name not in _SKIPPED
            and not name.endswith(("_cache", ".egg-info"))
            and not (here / name / "pyvenv.cfg").exists()
        ]
        yield from (here / name for name in files if not (here / name).is_symlink())
