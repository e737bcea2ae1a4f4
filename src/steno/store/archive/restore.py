"""Puts kept files back: whole or not at all, and never over a file with other bytes."""

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

import msgspec

from steno.errors import NotFound, Unreadable, Unwritable
from steno.store.archive.index import INDEX, File, Index
from steno.store.archive.keep import frame_digests
from steno.store.archive.source import Frames
from steno.store.archive.verify import advice
from steno.store.discover import config_of
from steno.store.disk import make_folder
from steno.store.read import FileSource
from steno.store.replace import keep_new
from steno.store.scratch import Scratch, unwritable
from steno.store.session_lock import SessionLock

__all__ = ["Restored", "restore"]


class Restored(msgspec.Struct, frozen=True):
    """What became of one file."""

    path: str
    state: Literal["written", "same", "other", "damaged"]
    """Written; there already, with the same bytes; there with other bytes, and left alone; or
    damaged in the archive, and not written."""
    size: int = 0
    reason: str = ""
    """Which lines of the journal are damaged, and what can be done about it."""


def restore(index: Index, to: str | None, generation: int) -> list[Restored]:
    """Put back the last generation of every file, or one that was asked for of the session's."""
    chosen = [_generation(index, generation)] if generation else []
    instead = {file.path for file in chosen}
    files = chosen + [file for file in index.newest() if file.path not in instead]
    done = [_put_back(index, file, _target(index, file, to)) for file in files]
    if index.strays:
        done.append(_damaged(index, os.path.join(index.folder, INDEX), index.path))
    return done


def _damaged(index: Index, target: str, path: str) -> Restored:
    reason = "; ".join(index.damage[:3]) or "a part of it is missing"
    return Restored(target, "damaged", 0, f"{reason}; {advice(path)}")


def _is_cut(index: Index, file: File) -> bool:
    """Say whether a part of a file cannot be given back, because lines of the journal are damaged."""
    copy = index.data_path(file)
    longer = bool(index.torn) and os.path.exists(copy) and os.path.getsize(copy) > file.packed
    return longer or file.reach > file.size


def _generation(index: Index, wanted: int) -> File:
    there = index.generations(index.path)
    for file in there:
        if file.generation == wanted:
            return file
    raise NotFound(f"there is no generation {wanted}", hint=f"there are {len(there)}")


def _target(index: Index, file: File, to: str | None) -> str:
    """Return where a file goes: below another folder it lies as in its config folder."""
    if to is None:
        return file.path
    base = config_of(index.path) or os.path.dirname(index.path)
    prefix = base.rstrip(os.sep) + os.sep
    if file.path.startswith(prefix):
        below = file.path[len(prefix) :]
    else:
        # Part of the config folder was a link to somewhere else.
        names = file.path.rstrip(os.sep).split(os.sep)
        below = os.sep.join(names[-3:])
    if any(name in {"", os.pardir} for name in below.split(os.sep)):
        below = os.path.basename(file.path)
    return os.path.join(to, below)


def _put_back(index: Index, file: File, target: str) -> Restored:
    if os.path.lexists(target):
        return Restored(target, "same" if _is_same(file, target) else "other", file.size)
    if _is_cut(index, file):
        return _damaged(index, target, file.path)
    try:
        make_folder(os.path.dirname(os.path.abspath(target)))
    except OSError as error:
        raise unwritable(target, error) from error
    with Scratch(target) as scratch:
        try:
            scratch.write(_proven(index, file))
        except Unwritable as error:
            if isinstance(error.__cause__, Unreadable):
                return Restored(target, "damaged", file.size)
            raise
        try:
            if file.seen is not None:
                os.chmod(scratch.path, file.seen.mode & 0o777)
                os.utime(scratch.path, ns=(file.seen.mtime_ns, file.seen.mtime_ns))
        except OSError as error:
            raise unwritable(target, error) from error
        with SessionLock.take(target, live=False):
            keep_new(scratch, target)
    return Restored(target, "written", file.size)


def _is_same(file: File, target: str) -> bool:
    try:
        with FileSource(target) as source:
            if source.size != file.size:
                return False
            found = frame_digests(source, file.frames)
            return all(a == b.sha256 for a, b in zip(found, file.frames, strict=True))
    except Unreadable:
        return False


def _proven(index: Index, file: File) -> Iterator[bytes]:
    frames = Frames(index.data_path(file))
    for frame in file.frames:
        data = frames.unpacked(frame)
        if sha256(data).hexdigest() != frame.sha256:
            raise Unreadable(f"{frames.path} is not what was kept", hint="nothing was written")
        yield data
