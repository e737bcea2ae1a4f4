"""Reads the small files around a project.

Every reading has a cap and never raises: a file that is not there, is too big or is no text gives
less, and a `Note` where somebody should hear of it.
"""

import os
import stat
from pathlib import Path
from typing import Any, Final

import msgspec

from steno.format.values import as_list, as_object

__all__ = [
    "MOST",
    "Note",
    "cut",
    "inside",
    "markdown_files",
    "object_in",
    "parse_json",
    "read_text",
    "strings",
    "text_in",
]

MOST: Final = 1 << 20
"""How many bytes of one file are read."""
_MOST_FILES: Final = 2000
_MOST_DEPTH: Final = 8


class Note(msgspec.Struct, frozen=True):
    """Something that was left out, and why; one line for the user."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def read_text(path: Path, notes: list[Note], most: int = MOST) -> str | None:
    """Return the text of a file, without a byte order mark; None when there is no such file.

    Only plain files are read: a pipe or a device would make the start wait for ever.
    """
    try:
        with os.fdopen(_opened(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(most + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:
        notes.append(Note(str(path), f"cannot be read ({_why(error)})"))
        return None
    if len(data) > most:
        notes.append(Note(str(path), f"is longer than {most // 1024} KB; the rest is left out"))
        data = data[:most]
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text:
        notes.append(Note(str(path), "is no text; left out"))
        return None
    return text.replace("\r\n", "\n")


def markdown_files(folder: Path, name: str = "*.md") -> list[Path]:
    """Return the files of that name in a folder and below, in order of their paths.

    Links to folders are not followed, so that a loop of them ends.
    """
    found: list[Path] = []
    below = [(folder, 0)]
    while below and len(found) < _MOST_FILES:
        here, depth = below.pop()
        try:
            entries = sorted(here.iterdir())
        except (OSError, ValueError):
            continue
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink() and depth < _MOST_DEPTH:
                below.append((entry, depth + 1))
            elif entry.match(name):
                found.append(entry)
    return sorted(found)


def inside(path: Path, folder: Path) -> bool:
    """Return whether a path, all links resolved, lies in a folder."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def object_in(given: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key, or an empty one in the place of anything else."""
    return as_object(given.get(key)) or {}


def text_in(given: dict[str, Any], key: str) -> str:
    """Return the text under a key; nothing in the place of anything else."""
    value = given.get(key)
    return value if isinstance(value, str) else ""


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of a JSON array."""
    return tuple(item for item in as_list(value) or () if isinstance(item, str))


def parse_json(text: str, path: str, notes: list[Note]) -> dict[str, Any]:
    """Return the object that a text holds; anything else is noted and gives an empty one."""
    if not text.strip():
        return {}
    try:
        value = as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        notes.append(Note(path, f"is not read: {_first_line(error)}"))
        return {}
    if value is None:
        notes.append(Note(path, "is not read: JSON, but not an object"))
        return {}
    return value


def cut(text: str, most: int) -> str:
    """Return the beginning of a text that is too long, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… {len(text) - most} more characters left out]"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0] or "too deeply nested"


def _opened(path: Path) -> int:
    # Without waiting: opening a pipe that nobody writes to would hang.
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))


def _why(error: Exception) -> str:
    return error.strerror or "error" if isinstance(error, OSError) else "a name that cannot be"
