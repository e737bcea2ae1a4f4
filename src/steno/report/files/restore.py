"""A version of a file, put on the disk."""

import os
from collections.abc import Sequence

import msgspec

from steno.errors import BadRequest, NotFound
from steno.report.files.values import Version
from steno.store.places import config_dir, home_dir, steno_home
from steno.store.placing import place

__all__ = ["Restored", "bytes_of", "restore"]


class Restored(msgspec.Struct, frozen=True):
    """Where a version lies now."""

    path: str
    size: int


def bytes_of(version: Version) -> bytes:
    """Return a version as it would lie on the disk, with the line endings that are known of it.

    Raises:
        NotFound: not all of it is known.
        BadRequest: it holds what no text file can hold.
    """
    if version.text is None:
        known = sum(len(piece.lines) for piece in version.pieces)
        some = f"only {known:,} of its lines are known" if known else "nobody recorded it"
        raise NotFound(f"this version cannot be rebuilt: {some}", hint=version.note)
    try:
        return version.text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("this version holds half letters, which no file can hold") from error


def restore(
    version: Version, output: str, *, force: bool = False, roots: Sequence[str] = ()
) -> Restored:
    """Write a version to a path that somebody named, never below the folders of sessions.

    Raises:
        NotFound: not all of the version is known.
        BadRequest: the path names no file, or the text is none that could be written.
        Unwritable: something is there, or it cannot be written, as `place` says.
    """
    data = bytes_of(version)
    never = (*roots, config_dir(), steno_home(), os.path.join(home_dir(), ".claude"))
    return Restored(place(output, data, force=force, never=never), len(data))
