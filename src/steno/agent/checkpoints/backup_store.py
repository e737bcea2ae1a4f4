"""The backups of a session's files: file states, snapshot records, journal, and the backup files.

Records and backup files are those of the real client. The journal, in steno's own directory, has
what the records have no field for: modes, the state in which the agent left files, created
directories.
"""

import os
import re
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.encode import encode_line
from steno.format.lenient_json import as_object
from steno.format.paths import file_history_name
from steno.store.append import Appender
from steno.store.atomic import make_private_folder, replacing, sync_folder, unwritable_error, write_new_private
from steno.store.discovery import is_below


def is_encodable(path: str) -> bool:
    """Whether a path can be written down in a session."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_parents(path: str) -> list[str]:
    """Return the folders above a path that are not there, the nearest first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


MODE_BITS: Final = 0o777
"""The part of a mode that is looked at and brought back."""
FileStamp = tuple[int, int, int, int]
"""What is another when a file was written to."""
# Times of files are rough, some by as much as two seconds. What was written so shortly before a
# look may be written again without any sign of it.
_TIME_RESOLUTION_NS: Final = 2_000_000_000
_CHUNK_BYTES: Final = 1 << 20
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class ContentState(msgspec.Struct, frozen=True):
    """What a file is: its content and its mode."""

    digest: str
    """Of its content, or of where a link leads; nothing where no file is."""
    mode: int = 0
    """With its kind; 0 where it is not known."""

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def matches(self, other: "ContentState") -> bool:
        """Whether both are the same, as far as it is known."""
        if self.digest != other.digest or self.is_link != other.is_link:
            return False
        bits = (self.mode & MODE_BITS, other.mode & MODE_BITS)
        return bits[0] == bits[1] or 0 in (self.mode, other.mode) or self.is_link


ABSENT: Final = ContentState("")


class FileEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a look at a file showed."""

    mtime: int
    ctime: int
    size: int
    inode: int
    mode: int
    digest: str = ""
    """Nothing where the content is not kept: it is too big, or cannot be read."""
    is_recent: bool = False
    """Whether it was written so shortly before that it must be read again."""

    @property
    def stamp(self) -> FileStamp:
        """What is another when the file was written to."""
        return self.mtime, self.ctime, self.size, self.inode


def content_state(path: str) -> tuple[ContentState, FileStamp | None]:
    """Return what is at a path now, and a stamp that stays as long as nothing is written.

    Raises:
        Unreadable: there is a file that cannot be read, or something that is no file.
    """
    started_at = time.time_ns()
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return ContentState(content_digest(os.fsencode(os.readlink(path))), status.st_mode), None
        if stat.S_ISDIR(status.st_mode):
            return ABSENT, None
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path} is no file")
        digest = sha256()
        for chunk in read_chunks(path):
            digest.update(chunk)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    entry = file_entry(status, started_at=started_at)
    return ContentState(digest.hexdigest(), status.st_mode), None if entry.is_recent else entry.stamp


def read_chunks(path: str) -> Iterator[bytes]:
    """Yield what is in a regular file; a link is not followed, a pipe not waited for."""
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(f"{path} is no file")
        yield from iter(lambda: os.read(descriptor, _CHUNK_BYTES), b"")
    finally:
        os.close(descriptor)


def file_entry(status: os.stat_result, digest: str = "", *, started_at: int = 0) -> FileEntry:
    """Return a look at a file; `started_at` is when the looking began."""
    return FileEntry(
        mtime=status.st_mtime_ns,
        ctime=status.st_ctime_ns,
        size=status.st_size,
        inode=status.st_ino,
        mode=status.st_mode,
        digest=digest,
        is_recent=max(status.st_mtime_ns, status.st_ctime_ns) >= started_at - _TIME_RESOLUTION_NS,
    )


def content_digest(data: bytes) -> str:
    """Return the digest of a content."""
    return sha256(data).hexdigest()


def regular_file_status(path: str) -> os.stat_result | None:
    """Return the status of a regular file; None where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def file_stamp(path: str) -> FileStamp | None:
    """Return the stamp of a regular file; None where there is none."""
    status = regular_file_status(path)
    if status is None:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def write_atomically(
    path: str, chunks: Iterable[bytes], mode: int, *, owner_status: os.stat_result | None = None, digest: str = ""
) -> str:
    """Put a content at a path, whole or not at all; return its digest."""
    hasher = sha256()

    def hashed_chunks() -> Iterator[bytes]:
        for chunk in chunks:
            hasher.update(chunk)
            yield chunk

    with replacing(path) as temp_path:
        write_new_private(temp_path, hashed_chunks(), sync=True)
        if digest and hasher.hexdigest() != digest:
            raise Unreadable("its backup is damaged")
        if owner_status is not None and hasattr(os, "chown") and owner_status.st_uid != os.stat(temp_path).st_uid:
            with suppress(OSError):
                os.chown(temp_path, owner_status.st_uid, owner_status.st_gid)
        os.chmod(temp_path, mode)
    return hasher.hexdigest()


def link_atomically(path: str, target: bytes) -> None:
    """Put a symbolic link at a path."""
    with replacing(path) as temp_path:
        os.symlink(os.fsdecode(target), temp_path)


SNAPSHOT_TYPE: Final = "file-history-snapshot"
"""The type of a record that tells of all files at a prompt."""
DELTA_TYPE: Final = "file-history-delta"
"""The type of a record that tells of one file more."""
_BACKUP_NAME: Final = re.compile(r"[0-9a-f]{16}@v[0-9]{1,9}")


class Backup(msgspec.Struct, frozen=True):
    """What a file was at some moment, as a record tells it."""

    name: str | None
    """Of the file that has its content; None where there was no file."""
    version: int
    time: str = ""
    parent: str = ""
    """The folder it was in, with all links followed; nothing in records of older clients."""

    def to_record(self) -> dict[str, Any]:
        """Return it as it is recorded."""
        record: dict[str, Any] = {"backupFileName": self.name, "version": self.version, "backupTime": self.time}
        return {**record, "realParentDir": self.parent} if self.parent else record


class SnapshotHistory:
    """What files were at each prompt, as the records of a session tell it."""

    def __init__(self, project: str, is_tracked: Callable[[str], bool]) -> None:
        self._project = project
        self._is_tracked = is_tracked
        self.files: dict[str, list[tuple[int, Backup]]] = {}
        """The backups of every known file, each with the number of its moment."""
        self.prompt_numbers: dict[str, int] = {}
        """The prompts, numbered in their order."""
        self.last_prompt = ""
        """The last one."""

    def add_prompt(self, prompt: str) -> int:
        """Note that a prompt is the last one; return the number of its moment."""
        self.last_prompt = prompt
        return self.prompt_numbers.setdefault(prompt, len(self.prompt_numbers))

    def add_backup(self, path: str, number: int, backup: Backup) -> None:
        """Note what a file was at a moment."""
        entries = self.files.setdefault(path, [])
        index = bisect_right(entries, number, key=lambda entry: entry[0])
        # Of a turn the first counts: it was made before the turn's first change.
        if not index or (entries[index - 1][0] != number and entries[index - 1][1] != backup):
            entries.insert(index, (number, backup))

    def read_record(self, fields: dict[str, Any]) -> None:
        """Take in a record, of whatever version; what makes no sense is left out."""
        if fields.get("type") == DELTA_TYPE:
            prompt: object = fields.get("snapshotMessageId")
            backups = {str(fields.get("trackingPath") or ""): fields.get("backup")}
        else:
            snapshot = as_object(fields.get("snapshot")) or {}
            prompt, backups = (snapshot.get("messageId"), as_object(snapshot.get("trackedFileBackups")) or {})
        if not isinstance(prompt, str):
            return
        number = self.add_prompt(prompt)
        for path, raw_backup in backups.items():
            backup = _read_backup(raw_backup)
            if backup is None or not path:
                continue
            absolute_path = os.path.normpath(os.path.join(self._project, path))
            if self._is_tracked(absolute_path):
                self.add_backup(absolute_path, number, backup)

    def backup_at(self, path: str, number: int) -> Backup:
        """Return what a file was at a moment; before its first change it was what it was then."""
        entries = self.files[path]
        index = bisect_right(entries, number, key=lambda entry: entry[0])
        return entries[max(index - 1, 0)][1]

    def latest_backup(self, path: str) -> Backup:
        """Return the newest backup of a known file."""
        return self.files[path][-1][1]

    def next_version(self, path: str) -> int:
        """Return the version that the next backup of a file has, if that is free."""
        return self.latest_backup(path).version + 1 if path in self.files else 1

    def snapshot_record(self, backups: dict[str, Backup], time: str) -> dict[str, Any]:
        """Return the record of what all files were at the last prompt."""
        snapshot = {
            "messageId": self.last_prompt,
            "trackedFileBackups": {self._recorded_path(path): backup.to_record() for path, backup in backups.items()},
            "timestamp": time,
        }
        return {"type": SNAPSHOT_TYPE, "messageId": self.last_prompt, "snapshot": snapshot, "isSnapshotUpdate": False}

    def delta_record(self, path: str, backup: Backup, leaf: str | None, time: str) -> dict[str, Any]:
        """Return the record of a file that is changed for the first time."""
        return {
            "type": DELTA_TYPE,
            "messageId": leaf or self.last_prompt,
            "snapshotMessageId": self.last_prompt,
            "trackingPath": self._recorded_path(path),
            "backup": backup.to_record(),
            "timestamp": time,
        }

    def _recorded_path(self, path: str) -> str:
        return os.path.relpath(path, self._project) if is_below(path, self._project) else path


def _read_backup(value: object) -> Backup | None:
    fields = as_object(value) or {}
    name, version = fields.get("backupFileName"), fields.get("version")
    if name is not None and not (isinstance(name, str) and _BACKUP_NAME.fullmatch(name)):
        return None
    if not isinstance(version, int) or version < 0:
        return None
    time, parent = fields.get("backupTime"), fields.get("realParentDir")
    return Backup(name, version, time if isinstance(time, str) else "", parent if isinstance(parent, str) else "")


class _JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the journal."""

    backup: str = ""
    path: str = ""
    made: str = ""
    digest: str = ""
    mode: int = 0


class Journal:
    """What no record has a place for: modes, what we have left in files, folders we have made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.backup_states: dict[str, ContentState] = {}
        self.left_digests: dict[str, str] = {}
        self.created_folders: set[str] = set()

    def read(self, path: str) -> None:
        """Take in what was noted before."""
        try:
            data = b"".join(read_chunks(path))
        except OSError:
            return
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):
                entry = msgspec.json.decode(line, type=_JournalEntry)
                self._apply(entry)

    def add_backup(self, name: str, state: ContentState) -> None:
        """Note what a backup holds."""
        self._add(_JournalEntry(backup=name, digest=state.digest, mode=state.mode))

    def add_left_state(self, path: str, state: ContentState) -> None:
        """Note what a file was left as."""
        if self.left_digests.get(path) != state.digest:
            self._add(_JournalEntry(path=path, digest=state.digest))

    def add_created_folders(self, folders: Iterable[str]) -> None:
        """Note folders that were made."""
        for folder in folders:
            if folder not in self.created_folders:
                self._add(_JournalEntry(made=folder))

    def _add(self, entry: _JournalEntry) -> None:
        self._apply(entry)
        with Appender(self._path) as file:
            file.append(encode_line(msgspec.to_builtins(entry)))

    def _apply(self, entry: _JournalEntry) -> None:
        if entry.backup:
            self.backup_states[entry.backup] = ContentState(entry.digest, entry.mode)
        elif entry.path:
            self.left_digests[entry.path] = entry.digest
        elif entry.made:
            self.created_folders.add(entry.made)


class BackupStore:
    """The backups of one session, and what the files are that they were made of."""

    def __init__(self, folder: str, journal: Journal, now: Callable[[], str]) -> None:
        self.folder = folder
        self._journal = journal
        self._now = now
        self._state_cache: dict[str, tuple[FileStamp, ContentState]] = {}

    def state(self, path: str) -> ContentState:
        """Return what is at a path now, without reading what has not changed.

        Raises:
            Unreadable: it cannot be read.
        """
        cached = self._state_cache.get(path)
        if cached is not None and cached[0] == file_stamp(path):
            return msgspec.structs.replace(cached[1], mode=os.lstat(path).st_mode)
        state, stamp = content_state(path)
        if stamp is None:
            self._state_cache.pop(path, None)
        else:
            self._state_cache[path] = (stamp, state)
        return state

    def stored_state(self, backup: Backup) -> ContentState | None:
        """Return what a backup holds; None if it is lost."""
        if backup.name is None:
            return ABSENT
        journal_state = self._journal.backup_states.get(backup.name)
        path = os.path.join(self.folder, backup.name)
        if journal_state is not None:
            return journal_state if os.path.isfile(path) else None
        try:
            state, _ = content_state(path)
        except Unreadable:
            return None
        return ContentState(state.digest) if state.digest and not state.is_link else None

    def back_up(self, path: str, version: int) -> Backup:
        """Make a backup of what a file is now.

        Raises:
            Unreadable: it cannot be read.
            Unwritable: it cannot be kept.
        """
        state = self.state(path)
        if state == ABSENT:
            return self.create(path, version, None)
        if state.is_link:
            return self.create(path, version, state.mode, [os.fsencode(os.readlink(path))])
        return self.create(path, version, state.mode, read_chunks(path))

    def create(self, path: str, version: int, mode: int | None, chunks: Iterable[bytes] = ()) -> Backup:
        """Make a backup of a content, of that version or a later one; no mode means no file.

        Raises:
            Unreadable: the content cannot be read.
            Unwritable: it cannot be kept.
        """
        name = None
        if mode is not None:
            # What is there already is somebody's, even if no record tells of it.
            while os.path.lexists(os.path.join(self.folder, file_history_name(path, version))):
                version += 1
            name = file_history_name(path, version)
            make_private_folder(self.folder)
            target = os.path.join(self.folder, name)
            try:
                digest = write_atomically(target, chunks, 0o600)
                sync_folder(self.folder)
            except OSError as error:
                raise (error if isinstance(error, Unreadable) else unwritable_error(target, error)) from None
            self._journal.add_backup(name, ContentState(digest, mode))
        return Backup(name, version, self._now(), os.path.realpath(os.path.dirname(path)))

    def copy_backups(self, source_folder: str, names: Iterable[str]) -> None:
        """Give the backups of another session to this one."""
        make_private_folder(self.folder)
        for name in names:
            source_path, target_path = (os.path.join(source_folder, name), os.path.join(self.folder, name))
            if not os.path.lexists(target_path) and os.path.isfile(source_path):
                write_atomically(target_path, read_chunks(source_path), 0o600)
