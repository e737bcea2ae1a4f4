"""Writes what is new of a session's files into its folder of the archive.

First the frame, flushed; then its line in the journal, flushed. Whatever happens in between, the
next run finds bytes behind the last frame that has a line, and cuts them off.
"""

import os
import re
import stat
from binascii import crc32
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import StenoError, Unreadable
from steno.store.archive.index import (
    INDEX,
    File,
    FileLine,
    Frame,
    Head,
    Index,
    Mended,
    Seen,
    chained,
    encode_line,
    read_index,
    said_path,
)
from steno.store.archive.verify import flaw_of
from steno.store.clock import now
from steno.store.disk import append, flush_folder, make_folder, open_private
from steno.store.found import Found
from steno.store.read import FileSource
from steno.store.scratch import unreadable, unwritable

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

__all__ = ["FRAME", "Change", "Keeper", "frame_digests"]

FRAME: Final = 1 << 20
"""How many bytes of a file a frame holds at most: a look anywhere unpacks no more than that."""
_COMMIT: Final = 64
"""After how many frames a long file is brought to the disk, so that a kill costs little."""
_ENDS: Final = 1 << 16
_NEW: Final = os.O_CREAT | os.O_EXCL
_NOTHING: Final = -1
_NUMBER: Final = re.compile(r"([0-9]{4,9})-.*\.zst")

Done = Callable[[int], None]


class Change(msgspec.Struct, frozen=True):
    """What was done about one file."""

    path: str
    added: int = 0
    packed: int = 0
    generation: int = 1
    begun: bool = False
    """Whether the file, or a new generation of it, was begun."""
    healed: bool = False
    """Whether all of it was kept anew, because the copy was damaged."""


class Keeper:
    """The only one who writes in a session's folder; the caller holds the lock."""

    def __init__(self, folder: str, session: str, level: int) -> None:
        self._level = level
        self._packer: ZstdCompressor | None = None
        self._lines: list[bytes] = []
        self._before: dict[str, int] = {}
        """How long the copies were that have been written to since the last commit."""
        self._journal = -1
        self._path = os.path.join(folder, INDEX)
        self.index: Index
        try:
            self._open(folder)
        except StenoError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise unwritable(folder, error) from error
        if self.index.path != session:
            self._say(Head(*said_path(session)))

    def _open(self, folder: str) -> None:
        make_folder(folder)
        self._journal = open_private(self._path, os.O_RDWR | os.O_CREAT)
        self.index = read_index(folder)
        if os.fstat(self._journal).st_size > self.index.whole:
            os.ftruncate(self._journal, self.index.whole)
        os.lseek(self._journal, self.index.whole, os.SEEK_SET)

    def close(self) -> None:
        """Give the journal back; what was not committed is as if it had never been."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def keep(self, found: Found, path: str, done: Done, *, full: bool = False) -> Change | None:
        """Keep what is new of a file, known as `path`; None when nothing is.

        Raises:
            Unreadable: the file cannot be read, or changes under our eyes.
            Unwritable: the archive cannot be written; `roll_back` makes it what it was.
        """
        try:
            status = os.stat(found.path)
        except OSError as error:
            raise unreadable(found.path, error) from error
        file = self.index.latest(path)
        if file and not full and _is_as_seen(file, status) and not self._is_short(file):
            done(status.st_size)
            return None
        with FileSource(found.path) as source:
            # What is added from here on is the next run's.
            source.size = min(source.size, status.st_size)
            damaged: File | None = None
            if file is not None and self._goes_on(file, source, status, full=full):
                damaged = None if self._is_usable(file, full=full) else file
            else:
                file = None
            begun = file is None or damaged is not None
            if file is None or begun:
                file = self._begin(found, path, damaged)
            size, packed = file.size, file.packed
            done(size)
            if begun or source.size > size:
                self._add(file, source, done, new=begun)
        self._see(file, status)
        if not begun and file.size == size:
            return None
        added, taken = file.size - size, file.packed - packed
        return Change(path, added, taken, file.generation, begun, damaged is not None)

    def _see(self, file: File, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        seen = Seen(file.number, file.size, status.st_mtime_ns, status.st_ino, mode, now())
        if file.seen is None or msgspec.structs.replace(file.seen, time=seen.time) != seen:
            self._say(seen)

    # Is it the file we know?

    def _goes_on(
        self, file: File, source: FileSource, status: os.stat_result, *, full: bool
    ) -> bool:
        """Say whether a file still begins with everything that was kept of it."""
        if source.size < file.reach:
            return False
        grown = source.size > file.size
        same = file.seen is not None and file.seen.inode == status.st_ino
        quick = grown and same and not full and not file.broken
        frames = _ends(file.frames) if quick else file.frames + file.loose
        return all(
            digest == frame.sha256
            for frame, digest in zip(frames, frame_digests(source, frames), strict=True)
        )

    def _is_usable(self, file: File, *, full: bool) -> bool:
        """Say whether more can be added to a copy; `full` proves what is in it."""
        if file.broken or self._is_short(file):
            return False
        return not full or not flaw_of(self.index.data_path(file), file)

    def _is_short(self, file: File) -> bool:
        try:
            return os.stat(self.index.data_path(file)).st_size < file.packed
        except OSError:
            return True

    # Writing

    def _begin(self, found: Found, path: str, damaged: File | None) -> File:
        before = self.index.latest(path)
        text, raw = said_path(path)
        place = found.place
        line = FileLine(
            self._free_number(),
            text,
            raw,
            place.role,
            place.session_id,
            place.agent_id,
            damaged.generation if damaged else before.generation + 1 if before else 1,
            damaged.number if damaged else 0,
        )
        self._say(line)
        return self.index.files[line.n]

    def _free_number(self) -> int:
        """Return a number that no file has, not even one whose line was lost."""
        return max([0, *_numbers(self.index.folder), *self.index.files]) + 1

    def _add(self, file: File, source: FileSource, done: Done, *, new: bool) -> None:
        path = self.index.data_path(file)
        try:
            descriptor = open_private(path, os.O_RDWR | (_NEW if new else 0))
        except OSError as error:
            raise unwritable(path, error) from error
        self._before[path] = _NOTHING if new else file.packed
        try:
            self._pack(descriptor, file, source, done)
        except StenoError:
            raise
        except OSError as error:
            raise unwritable(path, error) from error
        finally:
            os.close(descriptor)

    def _pack(self, descriptor: int, file: File, source: FileSource, done: Done) -> None:
        if os.fstat(descriptor).st_size > file.packed:
            os.ftruncate(descriptor, file.packed)
        os.lseek(descriptor, file.packed, os.SEEK_SET)
        try:
            for count, data in enumerate(_pieces(source, file.size), 1):
                self._frame(descriptor, file, data)
                done(len(data))
                if count % _COMMIT == 0:
                    os.fsync(descriptor)
                    self.commit()
                    self._before[self.index.data_path(file)] = file.packed
        finally:
            # Also when the file ends before it should: what was read of it has been kept.
            os.fsync(descriptor)

    def _frame(self, descriptor: int, file: File, data: bytes) -> None:
        packed = self._packed(data)
        append(descriptor, packed)
        digest = sha256(data).hexdigest()
        self._say(
            Frame(
                n=file.number,
                offset=file.size,
                length=len(data),
                at=file.packed,
                packed=len(packed),
                check=crc32(packed),
                sha256=digest,
                chain=chained(file.frames[-1].chain if file.frames else "", digest),
            )
        )

    def _packed(self, data: bytes) -> bytes:
        if self._packer is None:
            import zstandard

            # With a checksum, so that a damaged frame is noticed by whoever unpacks it.
            self._packer = zstandard.ZstdCompressor(level=self._level, write_checksum=True)
        return self._packer.compress(data)

    def mend(self) -> None:
        """Note that what damaged lines spoke of has been kept anew, if nothing of it is missing."""
        index = self.index
        if not index.torn or index.strays or _numbers(index.folder) - index.files.keys():
            return
        if all(self._is_all_there(file) for file in index.standing()):
            self._say(Mended(now()))

    def _is_all_there(self, file: File) -> bool:
        try:
            longer = os.stat(self.index.data_path(file)).st_size > file.packed
        except OSError:
            return False
        return not (file.broken or longer or file.reach > file.size)

    def _say(self, line: Head | FileLine | Frame | Seen | Mended) -> None:
        self._lines.append(encode_line(line))
        self.index.take(line)

    def commit(self) -> None:
        """Write down what was kept, and come back when it is on the disk.

        Raises:
            Unwritable: that cannot be done; the journal is as it was.
        """
        if not self._lines:
            return
        data = b"".join(self._lines)
        self._lines = []
        try:
            # The copies' names first: a line must not speak of a file that a power cut takes back.
            if not self.index.whole or _NOTHING in self._before.values():
                flush_folder(self.index.folder)
            append(self._journal, data)
            os.fsync(self._journal)
        except OSError as error:
            raise unwritable(self._path, error) from error
        self.index.whole += len(data)
        self._before.clear()

    def roll_back(self) -> None:
        """Take away what was written since the last commit, as far as the disk lets us."""
        with suppress(OSError):
            os.ftruncate(self._journal, self.index.whole)
            # Only now: as long as there may be lines about them, the copies have to stay.
            for path, size in self._before.items():
                if size == _NOTHING:
                    os.unlink(path)
                else:
                    os.truncate(path, size)


def _numbers(folder: str) -> set[int]:
    """Return the numbers of the copies that lie in a folder."""
    names = map(_NUMBER.fullmatch, os.listdir(folder))
    return {int(match[1]) for match in names if match}


def _is_as_seen(file: File, status: os.stat_result) -> bool:
    seen = file.seen
    return (
        seen is not None
        and not file.broken
        and seen.size == file.size == status.st_size
        and seen.mtime_ns == status.st_mtime_ns
        and seen.inode == status.st_ino
    )


def _ends(frames: list[Frame]) -> list[Frame]:
    """Return the first frame and the last ones, enough of them to know a file by."""
    last: list[Frame] = []
    for frame in reversed(frames[1:]):
        last.append(frame)
        if sum(each.length for each in last) >= _ENDS:
            break
    return [*frames[:1], *last]


def frame_digests(source: FileSource, frames: list[Frame]) -> Iterator[str]:
    """Yield the digest of what a file on disk has where some frames come from."""
    for frame in frames:
        yield sha256(source.read(frame.offset, frame.length)).hexdigest()


def _pieces(source: FileSource, start: int) -> Iterator[bytes]:
    while start < source.size:
        data = source.read(start, FRAME)
        if not data:
            raise Unreadable(f"{source.path} changed while it was read", hint="try again")
        yield data
        start += len(data)
