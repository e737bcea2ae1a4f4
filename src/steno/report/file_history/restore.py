"""Writes a version of a file to disk."""

import os
from collections.abc import Sequence

import msgspec

from steno.errors import BadRequest, NotFound
from steno.report.file_history.file_versions import Version
from steno.store.environment import config_dir, home_dir, steno_home
from steno.store.safe_output import write_output_file


class RestoredFile(msgspec.Struct, frozen=True):
    """Where a version lies now."""

    path: str
    size: int


def version_bytes(version: Version) -> bytes:
    """Return a version as it would lie on the disk, with the line endings that are known of it.

    Raises:
        NotFound: not all of it is known.
        BadRequest: it holds what no text file can hold.
    """
    if version.text is None:
        known_lines = sum(len(piece.lines) for piece in version.pieces)
        reason = f"only {known_lines:,} of its lines are known" if known_lines else "nobody recorded it"
        raise NotFound(f"this version cannot be rebuilt: {reason}", hint=version.note)
    try:
        return version.text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("this version holds half letters, which no file can hold") from error


def restore_version(version: Version, output: str, *, force: bool = False, roots: Sequence[str] = ()) -> RestoredFile:
    """Write a version to a path that somebody named, never below the folders of sessions.

    Raises:
        NotFound: not all of the version is known.
        BadRequest: the path names no file, or the text is none that could be written.
        Unwritable: something is there, or it cannot be written, as `place` says.
    """
    data = version_bytes(version)
    forbidden_folders = (*roots, config_dir(), steno_home(), os.path.join(home_dir(), ".claude"))
    return RestoredFile(write_output_file(output, data, force=force, protected=forbidden_folders), len(data))
