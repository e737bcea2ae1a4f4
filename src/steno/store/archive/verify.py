"""Proves that the archive holds what it says: every frame unpacked, every checksum compared."""

import os
from binascii import crc32
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.store.archive.catalogue import catalogue_entry
from steno.store.archive.file_access import SESSIONS_FOLDER
from steno.store.archive.journal import JOURNAL_FILE, FileGeneration, FrameReader, Journal, read_journal
from steno.store.atomic import make_private_folder, unreadable_error
from steno.store.discovered import list_folder
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from steno.store.archive.archive import Archive, ProgressCallback


_ARCHIVE_AGAIN_HINT: Final = (
    "`steno archive --full` keeps it anew from the file on disk (with the --root or --demo that it was kept with)"
)
_RECOVER_HINT: Final = (
    "`steno archive --full` keeps anew what is on disk; what fails even then is nowhere else: "
    "`steno archive --forget` gives the session up, and `steno archive` begins it again"
)
_LOST_HINT: Final = (
    "it is nowhere else: put the archive's folder back from a backup, or give the session up with "
    "`steno archive --forget`"
)


class VerificationFailure(msgspec.Struct, frozen=True):
    """Something that is not as it was kept."""

    path: str
    """The file that was kept; nothing where that is not known."""
    copy: str
    """Where its copy lies, or the folder."""
    message: str
    hint: str = ""
    """What can be done about it."""


def verify_archive(archive: "Archive", on_progress: "ProgressCallback") -> Iterator[VerificationFailure]:
    """Yield what is wrong with any folder; a folder the catalogue forgot is written into it."""
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
        hint = "`steno archive` keeps it again" if os.path.exists(path) else _LOST_HINT
        folder = os.path.join(sessions_folder, name)
        yield VerificationFailure(path, folder, "its folder is gone from the archive", hint)


def _add_missing_entry(archive: "Archive", folder: str) -> Iterator[VerificationFailure]:
    try:
        journal = read_journal(folder)
    except Unreadable:
        return
    entry = catalogue_entry(journal)
    if entry is None:
        # An empty folder was left by a run that was killed; one without the session by a run that
        # could read only what goes with it.
        if journal.complete_size and journal.session_line is None:
            yield VerificationFailure("", folder, "it does not say whose it is", _RECOVER_HINT)
        return
    make_private_folder(archive.folder)
    with FileLock(archive.lock):
        archive.catalogue.add(entry)


def verify_session(folder: str, on_progress: "ProgressCallback") -> Iterator[VerificationFailure]:
    """Yield what is wrong with one session's folder."""
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
    """Return what can be done about a damaged journal: the file itself may still be on the disk."""
    return _RECOVER_HINT if os.path.exists(path) else _LOST_HINT


def _is_journal_missing(folder: str) -> bool:
    """Return whether copies have no journal; a run that was killed leaves at least an empty one."""
    names = {entry.name for entry in list_folder(folder, [])}
    return bool(names) and JOURNAL_FILE not in names


def find_flaw(copy: str, file: FileGeneration, on_progress: "ProgressCallback | None" = None) -> str:
    """Return what is wrong with a copy; nothing when every byte of it is what was kept."""
    frames = FrameReader(copy)
    try:
        for frame in file.frames:
            if crc32(frames.read_packed(frame)) != frame.check:
                return f"the copy is damaged behind byte {frame.at:,}"
            if sha256(frames.read_frame(frame)).hexdigest() != frame.sha256:
                return f"the bytes from {frame.offset:,} on are not what was kept"
            if on_progress is not None:
                on_progress(frame.length)
        if not file.frames and not os.path.exists(copy):
            return "the copy is gone"
    except Unreadable as error:
        return str(error)
    return ""


def _compare_with_disk(journal: Journal, file: FileGeneration) -> str:
    """Compare with the file on disk, if that should still be what was kept."""
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
        # Gone, or not to be read: there is nothing to compare with.
        return ""
    return ""
