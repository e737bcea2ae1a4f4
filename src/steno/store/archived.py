"""Whether the archive has news: all that every sync asks of it."""

import os
from contextlib import suppress
from typing import Final

from steno.errors import BadRequest
from steno.store.places import steno_home

__all__ = ["ARCHIVE", "CATALOGUE", "archive_stamp"]

ARCHIVE: Final = "archive"
CATALOGUE: Final = (ARCHIVE, "sessions.jsonl")


def archive_stamp() -> str:
    """Return what tells whether anything was archived since; nothing where there is no archive."""
    with suppress(BadRequest, OSError):
        seen = os.stat(os.path.join(steno_home(), *CATALOGUE))
        return f"{seen.st_mtime_ns} {seen.st_size}"
    return ""
