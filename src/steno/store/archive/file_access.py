"""Opens a file from disk, or from the archive if it exists only there."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from steno.errors import BadRequest, Unreadable
from steno.format.dialects.detection import convert_open
from steno.format.source import OpenSource
from steno.store.discovery import ArchivedFile, DiscoveredFile
from steno.store.environment import CATALOGUE_PATH, steno_home
from steno.store.file_source import FileSource, PathSource

if TYPE_CHECKING:
    from steno.store.archive.journal import ArchiveSource


SESSIONS_FOLDER: Final = "sessions"


def archive_exists() -> bool:
    """Return whether an archive exists, without reading it."""
    with suppress(BadRequest):
        return os.path.exists(os.path.join(steno_home(), *CATALOGUE_PATH))
    return False


def open_file(file: DiscoveredFile) -> "FileSource | ArchiveSource":
    """Return an open file, to be closed by the caller. Raises Unreadable if it cannot be read."""
    return _archive_source(file) if isinstance(file, ArchivedFile) else FileSource(file.path)


def open_transcript(path: str, *, converted: bool | None = None) -> OpenSource:
    """Return the open transcript of a path, from disk or from the archive.

    A transcript with records in a published dialect is converted to Claude Code's format. `converted` states whether it
    has any; with None, the beginning of the file decides. Raises Unreadable if it is neither on disk nor in the
    archive, or cannot be read.
    """
    try:
        source: OpenSource = FileSource(path)
    except Unreadable:
        archived = None
        if archive_exists():
            from steno.store.archive.catalogue import archived_at

            archived = archived_at(path)
        if archived is None:
            raise
        source = _archive_source(archived)
    return convert_open(source, known=converted)


def lazy_source(file: DiscoveredFile) -> "PathSource | ArchiveSource":
    """Return a source that can be read at any time without being closed. Raises Unreadable if it cannot be read."""
    return _archive_source(file) if isinstance(file, ArchivedFile) else PathSource(file.path)


def _archive_source(file: ArchivedFile) -> "ArchiveSource":
    from steno.store.archive.journal import ArchiveSource

    return ArchiveSource(file.folder, file.copy_number)
