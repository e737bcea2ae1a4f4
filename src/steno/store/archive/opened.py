"""A file that was found, open: from the disk, or from the archive where it is only there."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from steno.errors import BadRequest, Unreadable
from steno.format.dialects.detection import convert_open
from steno.format.source import OpenSource
from steno.store.archived import ARCHIVE, CATALOGUE
from steno.store.found import Found
from steno.store.places import steno_home
from steno.store.read import FileSource, PathSource

if TYPE_CHECKING:
    from steno.store.archive.source import ArchiveSource

__all__ = [
    "ARCHIVE",
    "CATALOGUE",
    "SESSIONS",
    "Archived",
    "has_archive",
    "open_anywhere",
    "opened",
    "source_of",
]

SESSIONS: Final = "sessions"


class Archived(Found, frozen=True, gc=False):
    """A file that is gone from the disk and still in the archive; `path` is where it was."""

    folder: str = ""
    """The folder of the archive that holds it."""
    number: int = 0
    """Which of the folder's files it is."""


def has_archive() -> bool:
    """Say whether there is an archive: all that it costs to have none."""
    with suppress(BadRequest):
        return os.path.exists(os.path.join(steno_home(), *CATALOGUE))
    return False


def opened(found: Found) -> "FileSource | ArchiveSource":
    """Return a file, open; to be closed, or used in a `with`.

    Raises:
        Unreadable: it cannot be read.
    """
    return _kept(found) if isinstance(found, Archived) else FileSource(found.path)


def open_anywhere(path: str, *, converted: bool | None = None) -> OpenSource:
    """Return the transcript that is or was at a path, open, wherever its bytes are.

    One with records in a published dialect is converted to what the real client would have written.
    Whether it has any is `converted`; where nobody knows, its beginning tells.

    Raises:
        Unreadable: it is neither on the disk nor in the archive, or cannot be read.
    """
    try:
        source: OpenSource = FileSource(path)
    except Unreadable:
        found = None
        if has_archive():
            from steno.store.archive.gone import gone_at

            found = gone_at(path)
        if found is None:
            raise
        source = _kept(found)
    return convert_open(source, known=converted)


def source_of(found: Found) -> "PathSource | ArchiveSource":
    """Return a file as bytes to be read by span for as long as one likes.

    Raises:
        Unreadable: it cannot be read.
    """
    return _kept(found) if isinstance(found, Archived) else PathSource(found.path)


def _kept(found: Archived) -> "ArchiveSource":
    from steno.store.archive.source import ArchiveSource

    return ArchiveSource(found.folder, found.number)
