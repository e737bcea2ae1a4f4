"""Which sessions: those of a project, or those in which some words stand."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from steno.errors import Unreadable
from steno.report import clock
from steno.report.usage.wanted import Wanted
from steno.store.archive.gone import gone_at
from steno.store.discover import found_at
from steno.store.found import Found
from steno.store.glance import shown_project
from steno.store.library import newest_first

if TYPE_CHECKING:
    from steno.index.opened import Index

__all__ = ["files_of", "of_project", "with_words"]


def of_project(project: str, roots: Sequence[str] | None) -> list[Found]:
    """Return the sessions whose project's path has some words in it, newest first.

    `.` is the folder one is in, with what lies below it.
    """
    wanted = Wanted(project=project, here=os.getcwd() if project == "." else "")
    return [
        found
        for found in newest_first(roots, archived=True)
        if (own := _project(found)) is not None and wanted.has_project(own)
    ]


def _project(found: Found) -> str | None:
    try:
        return shown_project(found)
    except Unreadable:
        return None


def with_words(index: "Index", text: str) -> list[Found]:
    """Return the sessions in which words stand, or whose sub-agents have them, newest first.

    Raises:
        StenoError: the words make no sense, or the index cannot be read.
    """
    from steno.index.search.finder import open_finder
    from steno.index.search.language import parse
    from steno.index.state import SHIFT

    finder = open_finder(index, lambda said: clock.meant(said, clock.now()))
    messages = finder.find(parse(text), "newest", alone=True).messages
    files = list(dict.fromkeys(message >> SHIFT for message in messages))
    found = index.connection.execute(
        "SELECT DISTINCT f.path FROM sessions m JOIN sessions s ON s.id = m.id AND s.agent = '' "
        "JOIN files f ON f.id = s.file WHERE m.file IN (SELECT value FROM json_each(?)) "
        "ORDER BY s.ended DESC",
        (msgspec.json.encode(files).decode(),),
    )
    paths = [os.fsdecode(path) for (path,) in found.fetchall()]
    kept = (found_at(path) if os.path.lexists(path) else gone_at(path) for path in paths)
    return [each for each in kept if each is not None]


def files_of(index: "Index", files: Sequence[Found]) -> list[int]:
    """Return the numbers of sessions in the index, with those of their sub-agents."""
    paths = [_known(found.path) for found in files]
    rows = index.connection.execute(
        "SELECT DISTINCT m.file FROM files f JOIN sessions s ON s.file = f.id "
        "JOIN sessions m ON m.id = s.id WHERE CAST(f.path AS TEXT) IN "
        "(SELECT value FROM json_each(?))",
        (msgspec.json.encode(paths).decode(),),
    )
    return sorted(number for (number,) in rows.fetchall())


def _known(path: str) -> str:
    return os.path.abspath(path).encode("utf-8", "replace").decode()
