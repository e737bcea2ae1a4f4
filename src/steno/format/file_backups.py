"""The backups of files that `file-history-snapshot` and `file-history-delta` records name.

Clients write a name, a version and a time for each file. Two published descriptions have the
original content of the file in their place, as text.

>>> fields = {"snapshot": {"trackedFileBackups": {"a.py": "x = 1"}}}
>>> [(each.path, each.content) for each in backups_in(fields)]
[('a.py', 'x = 1')]
"""

import ntpath
import posixpath
from typing import Any, Final

import msgspec

from steno.format.values import as_object

__all__ = [
    "BACKUP_TYPES",
    "BackupEntry",
    "absolute_path",
    "backups_in",
    "fingerprint",
    "is_update",
    "message_of",
    "snapshot_time",
]

BACKUP_TYPES: Final = frozenset(("file-history-snapshot", "file-history-delta"))
"""The types of record that name backups."""
_DRIVE: Final = 2
_BIG: Final = 1 << 53


class BackupEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file in a record of backups."""

    path: str
    """As recorded: relative to the working folder for files inside it."""
    file_name: str = ""
    """The name of the backup file; empty where there is none."""
    version: int | None = None
    time: str | int | float | None = None
    content: str | None = None
    """The original content, where the record holds it."""
    missing: bool = False
    """Whether the file did not exist when it was backed up."""
    folder: str = ""
    """The folder of the file, where the record names it."""

    @property
    def is_placed(self) -> bool:
        """Whether the record itself says where the file lies."""
        path = self.path
        return bool(self.folder) or path.startswith(("/", "\\", "~")) or path[1:_DRIVE] == ":"


def backups_in(fields: dict[str, Any]) -> list[BackupEntry]:
    """Return the files that a record of backups names, in its order; entries of no form are left out."""
    path = fields.get("trackingPath")
    if isinstance(path, str):
        named = {path: fields.get("backup")}
    else:
        snapshot = as_object(fields.get("snapshot")) or {}
        named = as_object(snapshot.get("trackedFileBackups")) or {}
    entries = (_entry(path, value) for path, value in named.items())
    return [entry for entry in entries if entry is not None]


def _entry(path: str, value: Any) -> BackupEntry | None:
    if value is None:
        return BackupEntry(path=path, missing=True)
    if isinstance(value, str):
        return BackupEntry(path=path, content=value)
    backup = as_object(value)
    if backup is None:
        return None
    name, version, time = (backup.get(key) for key in ("backupFileName", "version", "backupTime"))
    folder = backup.get("realParentDir")
    return BackupEntry(
        path=path,
        file_name=name if isinstance(name, str) else "",
        version=version if _is_number(version) else None,
        time=time if isinstance(time, str | int | float) else None,
        missing=name is None and "backupFileName" in backup,
        folder=folder if isinstance(folder, str) else "",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _BIG


def fingerprint(entry: BackupEntry) -> str:
    """Return what is another one when the file was backed up anew."""
    if entry.content is not None:
        # Rare, and it takes a while to import.
        from hashlib import blake2b

        data = entry.content.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=8).hexdigest()
    return f"{entry.version} {entry.file_name}"


def message_of(fields: dict[str, Any]) -> str:
    """Return the id of the message that a record of backups belongs to."""
    name = fields.get("messageId")
    return name if isinstance(name, str) else ""


def is_update(fields: dict[str, Any]) -> bool:
    """Whether the record adds files to a snapshot, right before their first change."""
    return "trackingPath" in fields or fields.get("isSnapshotUpdate") is True


def snapshot_time(fields: dict[str, Any]) -> str | int | float | None:
    """Return when the snapshot of a record was taken."""
    snapshot = as_object(fields.get("snapshot")) or {}
    time = snapshot.get("timestamp", fields.get("timestamp"))
    return time if isinstance(time, str | int | float) else None


def absolute_path(entry: BackupEntry, cwd: str) -> str:
    """Return the whole path of a file; `cwd` is the folder that the session began in.

    >>> absolute_path(BackupEntry(path="src/a.py"), "/home/ada/work")
    '/home/ada/work/src/a.py'
    """
    path = entry.path
    if entry.is_placed and not entry.folder:
        return path
    if path.startswith("/") or path[1:_DRIVE] == ":":
        return path
    windows = cwd[1:_DRIVE] == ":" or cwd.startswith("\\\\")
    flavour = ntpath if windows else posixpath
    if entry.folder:
        return flavour.join(entry.folder, flavour.basename(path))
    return flavour.normpath(flavour.join(cwd, path)) if cwd else path
