"""Proves that the archive holds what it says: every frame unpacked, every checksum compared."""

import os
from binascii import crc32
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.store.archive.catalogue import entry_of
from steno.store.archive.index import INDEX, File, Index, read_index
from steno.store.archive.opened import SESSIONS
from steno.store.archive.source import Frames
from steno.store.disk import make_folder
from steno.store.found import listed
from steno.store.lock import Lock
from steno.store.read import FileSource
from steno.store.scratch import unreadable

if TYPE_CHECKING:
    from steno.store.archive.archive import Archive, Done

__all__ = ["Failure", "advice", "flaw_of", "verify", "verify_all"]

_ANEW: Final = (
    "`steno archive --full` keeps it anew from the file on disk (with the --root or --demo that it "
    "was kept with)"
)
_AGAIN: Final = (
    "`steno archive --full` keeps anew what is on disk; what fails even then is nowhere else: "
    "`steno archive --forget` gives the session up, and `steno archive` begins it again"
)
_LOST: Final = (
    "it is nowhere else: put the archive's folder back from a backup, or give the session up with "
    "`steno archive --forget`"
)


class Failure(msgspec.Struct, frozen=True):
    """Something that is not as it was kept."""

    path: str
    """The file that was kept; nothing where that is not known."""
    copy: str
    """Where its copy lies, or the folder."""
    message: str
    hint: str = ""
    """What can be done about it."""


def verify_all(archive: "Archive", done: "Done") -> Iterator[Failure]:
    """Yield what is wrong with any folder; a folder the catalogue forgot is written into it."""
    above = os.path.join(archive.folder, SESSIONS)
    try:
        names = sorted(os.listdir(above))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise unreadable(above, error) from error
    known = {entry.folder: entry for entry in archive.entries()}
    for name in names:
        folder = os.path.join(above, name)
        yield from verify(folder, done)
        if name not in known:
            yield from _list_again(archive, folder)
    for name in sorted(known.keys() - set(names)):
        path = known[name].path
        hint = "`steno archive` keeps it again" if os.path.exists(path) else _LOST
        folder = os.path.join(above, name)
        yield Failure(path, folder, "its folder is gone from the archive", hint)


def _list_again(archive: "Archive", folder: str) -> Iterator[Failure]:
    try:
        index = read_index(folder)
    except Unreadable:
        return
    entry = entry_of(index)
    if entry is None:
        # An empty folder was left by a run that was killed; one without the session by a run that
        # could read only what goes with it.
        if index.whole and index.head is None:
            yield Failure("", folder, "it does not say whose it is", _AGAIN)
        return
    make_folder(archive.folder)
    with Lock(archive.lock):
        archive.catalogue.add(entry)


def verify(folder: str, done: "Done") -> Iterator[Failure]:
    """Yield what is wrong with one session's folder."""
    try:
        index = read_index(folder)
    except Unreadable as error:
        yield Failure("", folder, str(error))
        return
    if not index.whole and _has_lost_journal(folder):
        yield Failure("", folder, f"{INDEX} is missing", _AGAIN)
    for said in index.damage:
        yield Failure(index.path, folder, said, advice(index.path))
    for file in index.standing():
        copy = index.data_path(file)
        flaw = flaw_of(copy, file, done)
        if flaw:
            last = index.latest(file.path) is file
            hint = _ANEW if last and os.path.exists(file.path) else _LOST
            yield Failure(file.path, copy, flaw, hint)
        other = _on_disk(index, file)
        if other:
            yield Failure(file.path, copy, other, _ANEW)


def advice(path: str) -> str:
    """Return what can be done about a damaged journal: the file itself may still be on the disk."""
    return _AGAIN if os.path.exists(path) else _LOST


def _has_lost_journal(folder: str) -> bool:
    """Return whether copies have no journal; a run that was killed leaves at least an empty one."""
    names = {entry.name for entry in listed(folder, [])}
    return bool(names) and INDEX not in names


def flaw_of(copy: str, file: File, done: "Done | None" = None) -> str:
    """Return what is wrong with a copy; nothing when every byte of it is what was kept."""
    frames = Frames(copy)
    try:
        for frame in file.frames:
            if crc32(frames.packed(frame)) != frame.check:
                return f"the copy is damaged behind byte {frame.at:,}"
            if sha256(frames.unpacked(frame)).hexdigest() != frame.sha256:
                return f"the bytes from {frame.offset:,} on are not what was kept"
            if done is not None:
                done(frame.length)
        if not file.frames and not os.path.exists(copy):
            return "the copy is gone"
    except Unreadable as error:
        return str(error)
    return ""


def _on_disk(index: Index, file: File) -> str:
    """Compare with the file on disk, if that should still be what was kept."""
    seen = file.seen
    if index.latest(file.path) is not file or seen is None or seen.size != file.size:
        return ""
    try:
        status = os.stat(file.path)
        if (status.st_size, status.st_mtime_ns, status.st_ino) != (
            seen.size,
            seen.mtime_ns,
            seen.inode,
        ):
            return ""
        with FileSource(file.path) as source:
            for frame in file.frames:
                if sha256(source.read(frame.offset, frame.length)).hexdigest() != frame.sha256:
                    return f"the file on disk differs from byte {frame.offset:,} on"
    except OSError:
        # Gone, or not to be read: there is nothing to compare with.
        return ""
    return ""
