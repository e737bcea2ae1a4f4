"""What an address calls a session: its id or, where several files bear it, that and the file."""

import re
import sqlite3
from collections.abc import Iterable
from typing import Final

from steno.index.scan import path_to

__all__ = ["SHARED", "key_of", "keys_of", "read_key", "titled_at"]

SHARED: Final = (
    "(SELECT count(*) > 1 FROM "
    "(SELECT 1 FROM sessions k WHERE k.id = s.id AND k.agent = '' LIMIT 2))"
)
"""SQL: whether several sessions bear the id of `s`."""
_MARK: Final = "~"
_NO_PART: Final = re.compile(r"[/\\\x00-\x1f\x7f\ufffd\ud800-\udfff]")
"""What servers and clients take for something else, or lose."""
_CHUNK: Final = 500
_LONGEST: Final = 18
"""Digits; no file has a longer number."""


def key_of(name: str, file: int, *, shared: bool) -> str:
    """Return what an address calls a session.

    Some files say nowhere which session they are, and some ids of dialects cannot be part of an
    address: there the number of the file alone does.

    >>> key_of("5f2c", 7, shared=False), key_of("5f2c", 7, shared=True), key_of("", 7, shared=False)
    ('5f2c', '5f2c~7', '~7')
    >>> key_of("a/b", 7, shared=False), key_of("5f2c~1", 7, shared=False)
    ('~7', '~7')
    """
    if not _is_part_of_address(name):
        return f"{_MARK}{file}"
    return f"{name}{_MARK}{file}" if shared else name


def _is_part_of_address(name: str) -> bool:
    """Return whether an id is one part of a path, and reads as itself."""
    if name in ("", ".", "..") or _NO_PART.search(name):
        return False
    return read_key(name) == (name, None)


def read_key(key: str) -> tuple[str, int | None]:
    """Return the id and the file that an address names; None for whichever file bears the id.

    >>> read_key("5f2c"), read_key("5f2c~7"), read_key("a~b")
    (('5f2c', None), ('5f2c', 7), ('a~b', None))
    """
    name, mark, number = key.rpartition(_MARK)
    plain = number.isascii() and number.isdecimal() and len(number) <= _LONGEST
    return (name, int(number)) if mark and plain else (key, None)


def keys_of(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, str]:
    """Return what addresses call the sessions of some files, be these their own or sub-agents'."""
    numbers = list(files)
    found: dict[int, str] = {}
    for some in (numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)):
        marks = ", ".join("?" * len(some))
        rows = connection.execute(
            f"SELECT a.file, s.id, s.file, {SHARED} FROM sessions a "
            f"JOIN sessions s ON s.file = a.owner WHERE a.file IN ({marks})",
            some,
        )
        for file, name, owner, shared in rows:
            found[file] = key_of(name, owner, shared=bool(shared))
    return found


def titled_at(connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return what addresses call the sessions of the files at some paths, and their titles."""
    found: dict[str, tuple[str, str]] = {}
    for path in set(paths):
        row = connection.execute(
            f"SELECT s.id, s.file, {SHARED}, s.title FROM files f JOIN sessions a ON a.file = f.id "
            "JOIN sessions s ON s.file = a.owner WHERE f.path = ? AND s.agent = ''",
            (path_to(path),),
        ).fetchone()
        if row is not None:
            name, file, shared, title = row
            found[path] = key_of(name, file, shared=bool(shared)), title
    return found
