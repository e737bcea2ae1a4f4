"""The backups of a session's files: file states, snapshot records, journal and backup files.

Records and backup files have the format of Claude Code. The journal, in steno's home directory, has what
the records cannot store: file modes, the state in which the agent left files, and created directories.
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
    """Return whether a path can be encoded as UTF-8, as records require."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_parents(path: str) -> list[str]:
    """Return the missing parent directories of a path, the nearest first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


MODE_BITS: Final = 0o777
"""The permission bits that are compared and restored."""
FileStamp = tuple[int, int, int, int]
"""A value that changes whenever the file is written."""
# Timestamps of files can be as coarse as two seconds, so a file modified shortly before it was read
# may be written again without a change of its stamp.
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
    """The content and mode of a file."""

    digest: str
    """Digest of the content or link target; empty if there is no file."""
    mode: int = 0
    """Mode including the file type; 0 if unknown."""

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    def matches(self, other: "ContentState") -> bool:
        """Return whether both states are equal, ignoring an unknown mode."""
        if self.digest != other.digest or self.is_link != other.is_link:
            return False
        bits = (self.mode & MODE_BITS, other.mode & MODE_BITS)
        return bits[0] == bits[1] or 0 in (self.mode, other.mode) or self.is_link


ABSENT: Final = ContentState("")


class FileEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The status of a file at one moment, with the digest of its content."""

    mtime: int
    ctime: int
    size: int
    inode: int
    mode: int
    digest: str = ""
    """Digest of the content; empty if the content is too large or cannot be read, and is therefore not saved."""
    is_recent: bool = False
    """Whether the file was written so recently that it must be read again."""

    @property
    def stamp(self) -> FileStamp:
        """A value that changes whenever the file is written."""
        return self.mtime, self.ctime, self.size, self.inode


def content_state(path: str) -> tuple[ContentState, FileStamp | None]:
    """Return the state of a path and its stamp, None if the stamp is not reliable.

    Raises:
        Unreadable: The file cannot be read or is not a regular file.
    """
    started_at = time.time_ns()
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return ContentState(content_digest(os.fsencode(os.readlink(path))), status.st_mode), None
        if stat.S_ISDIR(status.st_mode):
            return ABSENT, None
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path} is not a regular file")
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
    """Yield the content of a regular file, without following links or blocking on pipes."""
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(f"{path} is not a regular file")
        yield from iter(lambda: os.read(descriptor, _CHUNK_BYTES), b"")
    finally:
        os.close(descriptor)


def file_entry(status: os.stat_result, digest: str = "", *, started_at: int = 0) -> FileEntry:
    """Return the entry of a file; `started_at` is the time before its status was read."""
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
    """Return the digest of content."""
    return sha256(data).hexdigest()


def regular_file_status(path: str) -> os.stat_result | None:
    """Return the status of a regular file, else None."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def file_stamp(path: str) -> FileStamp | None:
    """Return the stamp of a regular file, else None."""
    status = regular_file_status(path)
    if status is None:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def write_atomically(
    path: str, chunks: Iterable[bytes], mode: int, *, owner_status: os.stat_result | None = None, digest: str = ""
) -> str:
    """Write a file atomically; return the digest of its content."""
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
    """Create or replace a symbolic link atomically."""
    with replacing(path) as temp_path:
        os.symlink(os.fsdecode(target), temp_path)


SNAPSHOT_TYPE: Final = "file-history-snapshot"
"""The type of a record with the backups of all files at a prompt."""
DELTA_TYPE: Final = "file-history-delta"
"""The type of a record with the backup of one more file."""
_BACKUP_NAME: Final = re.compile(r"[0-9a-f]{16}@v[0-9]{1,9}")


class Backup(msgspec.Struct, frozen=True):
    """A backup of a file, as in a record."""

    name: str | None
    """Name of the backup file; None if there was no file."""
    version: int
    time: str = ""
    parent: str = ""
    """The directory of the file with all links resolved; empty in records of older versions."""

    def to_record(self) -> dict[str, Any]:
        """Return the backup in the form of a record."""
        record: dict[str, Any] = {"backupFileName": self.name, "version": self.version, "backupTime": self.time}
        return {**record, "realParentDir": self.parent} if self.parent else record


class SnapshotHistory:
    """The backups of files at each prompt, read from the records of a session."""

    def __init__(self, project: str, is_tracked: Callable[[str], bool]) -> None:
        self._project = project
        self._is_tracked = is_tracked
        self.files: dict[str, list[tuple[int, Backup]]] = {}
        """The backups of every tracked file, each with the number of its prompt."""
        self.prompt_numbers: dict[str, int] = {}
        """Numbers of prompts by ID, in order."""
        self.last_prompt = ""
        """ID of the last prompt."""

    def add_prompt(self, prompt: str) -> int:
        """Add a prompt as the last one; return its number."""
        self.last_prompt = prompt
        return self.prompt_numbers.setdefault(prompt, len(self.prompt_numbers))

    def add_backup(self, path: str, number: int, backup: Backup) -> None:
        """Add the backup of a file at a prompt."""
        entries = self.files.setdefault(path, [])
        index = bisect_right(entries, number, key=lambda entry: entry[0])
        # The first backup of a turn is kept: it was made before the first change of the turn.
        if not index or (entries[index - 1][0] != number and entries[index - 1][1] != backup):
            entries.insert(index, (number, backup))

    def read_record(self, fields: dict[str, Any]) -> None:
        """Add the backups in a record of any version; invalid values are ignored."""
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
        """Return the backup of a file at a prompt; for prompts before its first change, the first backup."""
        entries = self.files[path]
        index = bisect_right(entries, number, key=lambda entry: entry[0])
        return entries[max(index - 1, 0)][1]

    def latest_backup(self, path: str) -> Backup:
        """Return the latest backup of a tracked file."""
        return self.files[path][-1][1]

    def next_version(self, path: str) -> int:
        """Return the version of the next backup of a file; `create` skips versions that already exist."""
        return self.latest_backup(path).version + 1 if path in self.files else 1

    def snapshot_record(self, backups: dict[str, Backup], time: str) -> dict[str, Any]:
        """Return a record with the backups of all files at the last prompt."""
        snapshot = {
            "messageId": self.last_prompt,
            "trackedFileBackups": {self._recorded_path(path): backup.to_record() for path, backup in backups.items()},
            "timestamp": time,
        }
        return {"type": SNAPSHOT_TYPE, "messageId": self.last_prompt, "snapshot": snapshot, "isSnapshotUpdate": False}

    def delta_record(self, path: str, backup: Backup, leaf: str | None, time: str) -> dict[str, Any]:
        """Return a record for a file that is changed for the first time."""
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
    """File modes, digests of files left by the agent, and created directories, stored in a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.backup_states: dict[str, ContentState] = {}
        self.left_digests: dict[str, str] = {}
        self.created_folders: set[str] = set()

    def read(self, path: str) -> None:
        """Read the entries of a journal file."""
        try:
            data = b"".join(read_chunks(path))
        except OSError:
            return
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):
                entry = msgspec.json.decode(line, type=_JournalEntry)
                self._apply(entry)

    def add_backup(self, name: str, state: ContentState) -> None:
        """Store the state in a backup."""
        self._add(_JournalEntry(backup=name, digest=state.digest, mode=state.mode))

    def add_left_state(self, path: str, state: ContentState) -> None:
        """Store the state in which the agent left a file."""
        if self.left_digests.get(path) != state.digest:
            self._add(_JournalEntry(path=path, digest=state.digest))

    def add_created_folders(self, folders: Iterable[str]) -> None:
        """Store directories that the agent created."""
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
    """The backup files of one session, and cached states of the original files."""

    def __init__(self, folder: str, journal: Journal, now: Callable[[], str]) -> None:
        self.folder = folder
        self._journal = journal
        self._now = now
        self._state_cache: dict[str, tuple[FileStamp, ContentState]] = {}

    def state(self, path: str) -> ContentState:
        """Return the current state of a path, cached while the file is unchanged.

        Raises:
            Unreadable: The file cannot be read.
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
        """Return the state in a backup; None if the backup is lost."""
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
        """Back up the current state of a file.

        Raises:
            Unreadable: The file cannot be read.
            Unwritable: The backup cannot be written.
        """
        state = self.state(path)
        if state == ABSENT:
            return self.create(path, version, None)
        if state.is_link:
            return self.create(path, version, state.mode, [os.fsencode(os.readlink(path))])
        return self.create(path, version, state.mode, read_chunks(path))

    def create(self, path: str, version: int, mode: int | None, chunks: Iterable[bytes] = ()) -> Backup:
        """Create a backup with this version or a later one; `mode` is None if the file does not exist.

        Raises:
            Unreadable: The content cannot be read.
            Unwritable: The backup cannot be written.
        """
        name = None
        if mode is not None:
            # Never replace an existing backup, even if no record refers to it.
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
        """Copy the backups of another session."""
        make_private_folder(self.folder)
        for name in names:
            source_path, target_path = (os.path.join(source_folder, name), os.path.join(self.folder, name))
            if not os.path.lexists(target_path) and os.path.isfile(source_path):
                write_atomically(target_path, read_chunks(source_path), 0o600)
