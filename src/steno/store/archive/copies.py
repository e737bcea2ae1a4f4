"""Writes new bytes of a session's files into its directory in the archive, and verifies every frame.

Each frame is flushed before its journal line is written and flushed. After an interruption, the next process truncates
bytes after the last frame with a journal line.
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
from steno.store.archive.catalogue import catalogue_entry
from steno.store.archive.file_access import SESSIONS_FOLDER
from steno.store.archive.journal import (
    JOURNAL_FILE,
    FileGeneration,
    FileLine,
    FrameLine,
    FrameReader,
    Journal,
    RepairLine,
    SessionLine,
    StateLine,
    chain_digest,
    encode_line,
    encode_path,
    read_journal,
)
from steno.store.atomic import (
    make_private_folder,
    open_private,
    reading,
    sync_folder,
    unreadable_error,
    unwritable_error,
    write_all,
    writing,
)
from steno.store.discovery import DiscoveredFile, list_folder
from steno.store.environment import now
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

    from steno.store.archive.archive import Archive

FRAME_SIZE: Final = 1 << 20
"""Maximum bytes of a file per frame, and so the maximum that reading one position decompresses."""
_FRAMES_PER_COMMIT: Final = 64
"""Frames after which a long file is flushed, so that a killed process loses little work."""
_COMPARED_TAIL_SIZE: Final = 1 << 16
_CREATE_FLAGS: Final = os.O_CREAT | os.O_EXCL
_NEW_COPY: Final = -1
_COPY_NAME: Final = re.compile(r"([0-9]{4,9})-.*\.zst")

ProgressCallback = Callable[[int], None]


class ArchivedChange(msgspec.Struct, frozen=True):
    """The result of archiving one file."""

    path: str
    added: int = 0
    packed: int = 0
    generation: int = 1
    begun: bool = False
    """Whether a new file or generation was started."""
    healed: bool = False
    """Whether the file was archived again completely because its copy was damaged."""


class ArchiveWriter:
    """Writer of a session's archive directory; the caller holds the lock."""

    def __init__(self, folder: str, session: str, level: int) -> None:
        self._level = level
        self._compressor: ZstdCompressor | None = None
        self._pending_lines: list[bytes] = []
        self._previous_sizes: dict[str, int] = {}
        """Sizes of the modified copies at the last commit."""
        self._journal_descriptor = -1
        self._path = os.path.join(folder, JOURNAL_FILE)
        self.journal: Journal
        try:
            self._open(folder)
        except StenoError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise unwritable_error(folder, error) from error
        if self.journal.path != session:
            self._append_line(SessionLine(*encode_path(session)))

    def _open(self, folder: str) -> None:
        make_private_folder(folder)
        self._journal_descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
        self.journal = read_journal(folder)
        if os.fstat(self._journal_descriptor).st_size > self.journal.complete_size:
            os.ftruncate(self._journal_descriptor, self.journal.complete_size)
        os.lseek(self._journal_descriptor, self.journal.complete_size, os.SEEK_SET)

    def close(self) -> None:
        """Close the journal; uncommitted lines are discarded."""
        if self._journal_descriptor >= 0:
            os.close(self._journal_descriptor)
            self._journal_descriptor = -1

    def archive_file(
        self, discovered: DiscoveredFile, path: str, on_progress: ProgressCallback, *, full: bool = False
    ) -> ArchivedChange | None:
        """Archive the new bytes of a file under `path`; return None if nothing is new.

        Raises Unreadable if the file cannot be read or changes during reading, or Unwritable if the archive cannot be
        written; `roll_back` then restores the previous state.
        """
        with reading(discovered.path):
            status = os.stat(discovered.path)
        file = self.journal.latest(path)
        if file and not full and _is_unchanged(file, status) and not self._copy_is_short(file):
            on_progress(status.st_size)
            return None
        with FileSource(discovered.path) as source:
            # Bytes appended from here on are archived by the next run.
            source.size = min(source.size, status.st_size)
            damaged: FileGeneration | None = None
            if file is not None and self._continues(file, source, status, full=full):
                damaged = None if self._is_usable(file, full=full) else file
            else:
                file = None
            is_new = file is None or damaged is not None
            if file is None or is_new:
                file = self._begin_generation(discovered, path, damaged)
            size, packed = file.size, file.packed
            on_progress(size)
            if is_new or source.size > size:
                self._add_frames(file, source, on_progress, new=is_new)
        self._note_state(file, status)
        if not is_new and file.size == size:
            return None
        added, packed_size = file.size - size, file.packed - packed
        return ArchivedChange(path, added, packed_size, file.generation, is_new, damaged is not None)

    def _note_state(self, file: FileGeneration, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        state = StateLine(file.number, file.size, status.st_mtime_ns, status.st_ino, mode, now())
        if file.last_state is None or msgspec.structs.replace(file.last_state, time=state.time) != state:
            self._append_line(state)

    # Comparing files and copies

    def _continues(self, file: FileGeneration, source: FileSource, status: os.stat_result, *, full: bool) -> bool:
        """Return whether a file still starts with all archived bytes."""
        if source.size < file.known_size:
            return False
        has_grown = source.size > file.size
        same_inode = file.last_state is not None and file.last_state.inode == status.st_ino
        compare_ends_only = has_grown and same_inode and not full and not file.break_reason
        frames = _end_frames(file.frames) if compare_ends_only else file.frames + file.detached_frames
        return all(digest == frame.sha256 for frame, digest in zip(frames, source_digests(source, frames), strict=True))

    def _is_usable(self, file: FileGeneration, *, full: bool) -> bool:
        """Return whether a copy can be extended; `full` verifies its content."""
        if file.break_reason or self._copy_is_short(file):
            return False
        return not full or not find_flaw(self.journal.copy_path(file), file)

    def _copy_is_short(self, file: FileGeneration) -> bool:
        try:
            return os.stat(self.journal.copy_path(file)).st_size < file.packed
        except OSError:
            return True

    # Writing

    def _begin_generation(
        self, discovered: DiscoveredFile, path: str, damaged: FileGeneration | None
    ) -> FileGeneration:
        previous = self.journal.latest(path)
        text, raw = encode_path(path)
        place = discovered.place
        line = FileLine(
            self._free_number(),
            text,
            raw,
            place.role,
            place.session_id,
            place.agent_id,
            damaged.generation if damaged else previous.generation + 1 if previous else 1,
            damaged.number if damaged else 0,
        )
        self._append_line(line)
        return self.journal.files[line.n]

    def _free_number(self) -> int:
        """Return an unused copy number, also considering copies whose journal line was lost."""
        return max([0, *_copy_numbers(self.journal.folder), *self.journal.files]) + 1

    def _add_frames(
        self, file: FileGeneration, source: FileSource, on_progress: ProgressCallback, *, new: bool
    ) -> None:
        path = self.journal.copy_path(file)
        with writing(path):
            descriptor = open_private(path, os.O_RDWR | (_CREATE_FLAGS if new else 0))
        self._previous_sizes[path] = _NEW_COPY if new else file.packed
        try:
            self._write_frames(descriptor, file, source, on_progress)
        except StenoError:
            raise
        except OSError as error:
            raise unwritable_error(path, error) from error
        finally:
            os.close(descriptor)

    def _write_frames(
        self, descriptor: int, file: FileGeneration, source: FileSource, on_progress: ProgressCallback
    ) -> None:
        if os.fstat(descriptor).st_size > file.packed:
            os.ftruncate(descriptor, file.packed)
        os.lseek(descriptor, file.packed, os.SEEK_SET)
        try:
            for count, data in enumerate(_read_pieces(source, file.size), 1):
                self._write_frame(descriptor, file, data)
                on_progress(len(data))
                if count % _FRAMES_PER_COMMIT == 0:
                    os.fsync(descriptor)
                    self.commit()
                    self._previous_sizes[self.journal.copy_path(file)] = file.packed
        finally:
            # Also when the file ends early: the bytes read until then are archived.
            os.fsync(descriptor)

    def _write_frame(self, descriptor: int, file: FileGeneration, data: bytes) -> None:
        packed = self._compress(data)
        write_all(descriptor, packed)
        digest = sha256(data).hexdigest()
        self._append_line(
            FrameLine(
                n=file.number,
                offset=file.size,
                length=len(data),
                at=file.packed,
                packed=len(packed),
                check=crc32(packed),
                sha256=digest,
                chain=chain_digest(file.frames[-1].chain if file.frames else "", digest),
            )
        )

    def _compress(self, data: bytes) -> bytes:
        if self._compressor is None:
            import zstandard

            # With a checksum, so that decompression detects a damaged frame.
            self._compressor = zstandard.ZstdCompressor(level=self._level, write_checksum=True)
        return self._compressor.compress(data)

    def note_repair(self) -> None:
        """Record that everything named by damaged lines was archived again, if nothing is missing."""
        journal = self.journal
        if not journal.damaged_lines or journal.unnamed_numbers or _copy_numbers(journal.folder) - journal.files.keys():
            return
        if all(self._is_complete(file) for file in journal.valid_generations()):
            self._append_line(RepairLine(now()))

    def _is_complete(self, file: FileGeneration) -> bool:
        try:
            longer = os.stat(self.journal.copy_path(file)).st_size > file.packed
        except OSError:
            return False
        return not (file.break_reason or longer or file.known_size > file.size)

    def _append_line(self, line: SessionLine | FileLine | FrameLine | StateLine | RepairLine) -> None:
        self._pending_lines.append(encode_line(line))
        self.journal.add_line(line)

    def commit(self) -> None:
        """Write the pending journal lines and flush them to disk.

        Raises Unwritable on failure; the journal is then unchanged.
        """
        if not self._pending_lines:
            return
        data = b"".join(self._pending_lines)
        self._pending_lines = []
        with writing(self._path):
            # Flush the names of the copies first: a journal line must not refer to a file that a power cut can remove.
            if not self.journal.complete_size or _NEW_COPY in self._previous_sizes.values():
                sync_folder(self.journal.folder)
            write_all(self._journal_descriptor, data)
            os.fsync(self._journal_descriptor)
        self.journal.complete_size += len(data)
        self._previous_sizes.clear()

    def roll_back(self) -> None:
        """Remove everything written since the last commit, as far as possible."""
        with suppress(OSError):
            os.ftruncate(self._journal_descriptor, self.journal.complete_size)
            # After truncating the journal: copies must exist as long as journal lines refer to them.
            for path, size in self._previous_sizes.items():
                if size == _NEW_COPY:
                    os.unlink(path)
                else:
                    os.truncate(path, size)


def _copy_numbers(folder: str) -> set[int]:
    """Return the numbers of the copies in a directory."""
    names = map(_COPY_NAME.fullmatch, os.listdir(folder))
    return {int(match[1]) for match in names if match}


def _is_unchanged(file: FileGeneration, status: os.stat_result) -> bool:
    state = file.last_state
    return (
        state is not None
        and not file.break_reason
        and state.size == file.size == status.st_size
        and state.mtime_ns == status.st_mtime_ns
        and state.inode == status.st_ino
    )


def _end_frames(frames: list[FrameLine]) -> list[FrameLine]:
    """Return the first frame and enough of the last ones to recognize a file."""
    tail_frames: list[FrameLine] = []
    for frame in reversed(frames[1:]):
        tail_frames.append(frame)
        if sum(tail_frame.length for tail_frame in tail_frames) >= _COMPARED_TAIL_SIZE:
            break
    return [*frames[:1], *tail_frames]


def source_digests(source: FileSource, frames: list[FrameLine]) -> Iterator[str]:
    """Yield the digests of the file's bytes at the positions of some frames."""
    for frame in frames:
        yield sha256(source.read(frame.offset, frame.length)).hexdigest()


def _read_pieces(source: FileSource, start: int) -> Iterator[bytes]:
    while start < source.size:
        data = source.read(start, FRAME_SIZE)
        if not data:
            raise Unreadable(f"{source.path} changed while it was read", hint="Run the command again.")
        yield data
        start += len(data)


_ARCHIVE_AGAIN_HINT: Final = (
    "Run `steno archive --full` to archive the file again from disk (with the same --root or --demo option as before)."
)
_RECOVER_HINT: Final = (
    "Run `steno archive --full` to archive the files on disk again. If that fails, the data exists nowhere else: "
    "run `steno archive --forget` to remove the session, then `steno archive` to start again."
)
_LOST_HINT: Final = (
    "The data exists nowhere else: restore the archive directory from a backup, or run `steno archive --forget` to "
    "remove the session."
)


class VerificationFailure(msgspec.Struct, frozen=True):
    """A verification failure in the archive."""

    path: str
    """Path of the archived file; empty if unknown."""
    copy: str
    """Path of its copy or directory in the archive."""
    message: str
    hint: str = ""
    """How to fix the problem."""


def verify_archive(archive: "Archive", on_progress: ProgressCallback) -> Iterator[VerificationFailure]:
    """Yield all failures in the archive; add directories that are missing in the catalogue."""
    sessions_folder = os.path.join(archive.folder, SESSIONS_FOLDER)
    try:
        names = sorted(os.listdir(sessions_folder))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise unreadable_error(sessions_folder, error) from error
    entries = {entry.folder: entry for entry in archive.entries()}
    for name in names:
        folder = os.path.join(sessions_folder, name)
        yield from verify_session(folder, on_progress)
        if name not in entries:
            yield from _add_missing_entry(archive, folder)
    for name in sorted(entries.keys() - set(names)):
        path = entries[name].path
        hint = "Run `steno archive` to archive it again." if os.path.exists(path) else _LOST_HINT
        folder = os.path.join(sessions_folder, name)
        yield VerificationFailure(path, folder, "the archive directory of the session is missing", hint)


def _add_missing_entry(archive: "Archive", folder: str) -> Iterator[VerificationFailure]:
    try:
        journal = read_journal(folder)
    except Unreadable:
        return
    entry = catalogue_entry(journal)
    if entry is None:
        # A killed process can leave an empty directory, or one without the session if it could read only sidecar files.
        if journal.complete_size and journal.session_line is None:
            yield VerificationFailure("", folder, "the journal does not name its session", _RECOVER_HINT)
        return
    make_private_folder(archive.folder)
    with FileLock(archive.lock):
        archive.catalogue.add(entry)


def verify_session(folder: str, on_progress: ProgressCallback) -> Iterator[VerificationFailure]:
    """Yield all failures in one session's directory."""
    try:
        journal = read_journal(folder)
    except Unreadable as error:
        yield VerificationFailure("", folder, str(error))
        return
    if not journal.complete_size and _is_journal_missing(folder):
        yield VerificationFailure("", folder, f"{JOURNAL_FILE} is missing", _RECOVER_HINT)
    for message in journal.damage_messages:
        yield VerificationFailure(journal.path, folder, message, repair_hint(journal.path))
    for file in journal.valid_generations():
        copy = journal.copy_path(file)
        flaw = find_flaw(copy, file, on_progress)
        if flaw:
            is_latest = journal.latest(file.path) is file
            hint = _ARCHIVE_AGAIN_HINT if is_latest and os.path.exists(file.path) else _LOST_HINT
            yield VerificationFailure(file.path, copy, flaw, hint)
        difference = _compare_with_disk(journal, file)
        if difference:
            yield VerificationFailure(file.path, copy, difference, _ARCHIVE_AGAIN_HINT)


def repair_hint(path: str) -> str:
    """Return the hint for a damaged journal, depending on whether the file is still on disk."""
    return _RECOVER_HINT if os.path.exists(path) else _LOST_HINT


def _is_journal_missing(folder: str) -> bool:
    """Return whether copies have no journal; a killed process leaves at least an empty journal."""
    names = {entry.name for entry in list_folder(folder, [])}
    return bool(names) and JOURNAL_FILE not in names


def find_flaw(copy: str, file: FileGeneration, on_progress: ProgressCallback | None = None) -> str:
    """Return the damage of a copy; empty if it is intact."""
    frames = FrameReader(copy)
    try:
        for frame in file.frames:
            if crc32(frames.read_packed(frame)) != frame.check:
                return f"the copy is damaged after byte {frame.at:,}"
            if sha256(frames.read_frame(frame)).hexdigest() != frame.sha256:
                return f"checksum mismatch from byte {frame.offset:,} on"
            if on_progress is not None:
                on_progress(frame.length)
        if not file.frames and not os.path.exists(copy):
            return "the copy is missing"
    except Unreadable as error:
        return str(error)
    return ""


def _compare_with_disk(journal: Journal, file: FileGeneration) -> str:
    """Compare an archived file with the file on disk, if that should be unchanged."""
    state = file.last_state
    if journal.latest(file.path) is not file or state is None or state.size != file.size:
        return ""
    try:
        status = os.stat(file.path)
        if (status.st_size, status.st_mtime_ns, status.st_ino) != (state.size, state.mtime_ns, state.inode):
            return ""
        with FileSource(file.path) as source:
            for frame in file.frames:
                if sha256(source.read(frame.offset, frame.length)).hexdigest() != frame.sha256:
                    return f"the file on disk differs from byte {frame.offset:,} on"
    except OSError:
        # The file was deleted or cannot be read, so it cannot be compared.
        return ""
    return ""
