"""What is known of session files that were read before, so that unchanged ones need not be read.

Only a help: it lies in steno's folder, and without it every file is read once more.
"""

import os
import time
from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from steno.report.export.steps import Source, SourceState
from steno.store import kept
from steno.store.archive.opened import Archived

__all__ = ["FileIdentity", "SourceCache"]

FileIdentity: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size and the times of the last write and of the last change."""
_SETTLED_NS: Final = 2_000_000_000
"""A file changed more recently may be changed again without another time."""


class _Entry(msgspec.Struct, array_like=True):
    identity: FileIdentity
    state: SourceState


class _Stored(msgspec.Struct):
    version: int
    entries: dict[str, _Entry] = {}


class SourceCache:
    """The states of the sources of one output folder."""

    def __init__(self, folder: str, version: int) -> None:
        self._name = os.path.join("steps", f"{crc32(os.fsencode(folder)):08x}.cache")
        self._version = version
        self._entries = _load(self._name, version)
        self._changed = False

    def identity(self, source: Source) -> FileIdentity | None:
        """Return what tells one state of a file from another; None where that is not certain."""
        if isinstance(source.found, Archived):
            return None
        try:
            status = os.stat(source.found.path)
        except OSError:
            return None
        latest = max(status.st_mtime_ns, status.st_ctime_ns)
        if latest > time.time_ns() - _SETTLED_NS:
            return None
        return (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )

    def state(self, source: Source) -> SourceState | None:
        """Return the state of a file that nobody has written to since it was read."""
        entry = self._entries.get(source.id)
        if entry is None or entry.identity != self.identity(source):
            return None
        return entry.state

    def last_state(self, source: Source) -> SourceState | None:
        """Return the state that a file had when it was read last."""
        entry = self._entries.get(source.id)
        return None if entry is None else entry.state

    def put(self, source: Source, identity: FileIdentity | None, state: SourceState) -> None:
        """Keep a state; `identity` is that of the file before it was read."""
        if identity is not None:
            self._entries[source.id] = _Entry(identity, state)
            self._changed = True

    def keep(self, sources: set[str]) -> None:
        """Store what is known of some sources for the next run, and forget the others."""
        entries = {name: each for name, each in self._entries.items() if name in sources}
        if self._changed or len(entries) != len(self._entries):
            kept.keep(self._name, msgspec.msgpack.encode(_Stored(self._version, entries)))


def _load(name: str, version: int) -> dict[str, _Entry]:
    raw = kept.kept(name)
    if raw is None:
        return {}
    try:
        stored = msgspec.msgpack.decode(raw, type=_Stored)
    except msgspec.MsgspecError:
        return {}
    return stored.entries if stored.version == version else {}
