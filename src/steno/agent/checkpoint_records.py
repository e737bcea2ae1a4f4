"""The records of checkpoints: what files were at each prompt of a session, told and read."""

import os
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from steno.agent.file_paths import is_in

__all__ = ["DELTA", "SNAPSHOT", "Backup", "History"]

SNAPSHOT: Final = "file-history-snapshot"
"""The type of a record that tells of all files at a prompt."""
DELTA: Final = "file-history-delta"
"""The type of a record that tells of one file more."""
_NAME: Final = re.compile(r"[0-9a-f]{16}@v[0-9]{1,9}")


class Backup(msgspec.Struct, frozen=True):
    """What a file was at some moment, as a record tells it."""

    name: str | None
    """Of the file that has its content; None where there was no file."""
    version: int
    time: str = ""
    parent: str = ""
    """The folder it was in, with all links followed; nothing in records of older clients."""

    def told(self) -> dict[str, Any]:
        """Return it as it is recorded."""
        told: dict[str, Any] = {
            "backupFileName": self.name,
            "version": self.version,
            "backupTime": self.time,
        }
        return {**told, "realParentDir": self.parent} if self.parent else told


class History:
    """What files were at each prompt, as the records of a session tell it."""

    def __init__(self, project: str, is_tracked: Callable[[str], bool]) -> None:
        self._project = project
        self._is_tracked = is_tracked
        self.files: dict[str, list[tuple[int, Backup]]] = {}
        """The backups of every known file, each with the number of its moment."""
        self.moments: dict[str, int] = {}
        """The prompts, numbered in their order."""
        self.prompt = ""
        """The last one."""

    def mark(self, prompt: str) -> int:
        """Note that a prompt is the last one; return the number of its moment."""
        self.prompt = prompt
        return self.moments.setdefault(prompt, len(self.moments))

    def remember(self, path: str, number: int, backup: Backup) -> None:
        """Note what a file was at a moment."""
        entries = self.files.setdefault(path, [])
        at = bisect_right(entries, number, key=lambda entry: entry[0])
        # Of a turn the first counts: it was made before the turn's first change.
        if not at or (entries[at - 1][0] != number and entries[at - 1][1] != backup):
            entries.insert(at, (number, backup))

    def take(self, fields: dict[str, Any]) -> None:
        """Take in a record, of whatever version; what makes no sense is left out."""
        if fields.get("type") == DELTA:
            prompt: object = fields.get("snapshotMessageId")
            backups = {str(fields.get("trackingPath") or ""): fields.get("backup")}
        else:
            snapshot = _object(fields.get("snapshot"))
            prompt, backups = snapshot.get("messageId"), _object(snapshot.get("trackedFileBackups"))
        if not isinstance(prompt, str):
            return
        number = self.mark(prompt)
        for path, told in backups.items():
            backup = _read_backup(told)
            if backup is None or not path:
                continue
            full = os.path.normpath(os.path.join(self._project, path))
            if self._is_tracked(full):
                self.remember(full, number, backup)

    def at(self, path: str, number: int) -> Backup:
        """Return what a file was at a moment; before its first change it was what it was then."""
        entries = self.files[path]
        at = bisect_right(entries, number, key=lambda entry: entry[0])
        return entries[max(at - 1, 0)][1]

    def last(self, path: str) -> Backup:
        """Return the newest backup of a known file."""
        return self.files[path][-1][1]

    def next_version(self, path: str) -> int:
        """Return the version that the next backup of a file has, if that is free."""
        return self.last(path).version + 1 if path in self.files else 1

    def told_snapshot(self, found: dict[str, Backup], time: str) -> dict[str, Any]:
        """Return the record of what all files were at the last prompt."""
        snapshot = {
            "messageId": self.prompt,
            "trackedFileBackups": {self._told(path): each.told() for path, each in found.items()},
            "timestamp": time,
        }
        return {
            "type": SNAPSHOT,
            "messageId": self.prompt,
            "snapshot": snapshot,
            "isSnapshotUpdate": False,
        }

    def told_delta(self, path: str, backup: Backup, leaf: str | None, time: str) -> dict[str, Any]:
        """Return the record of a file that is changed for the first time."""
        return {
            "type": DELTA,
            "messageId": leaf or self.prompt,
            "snapshotMessageId": self.prompt,
            "trackingPath": self._told(path),
            "backup": backup.told(),
            "timestamp": time,
        }

    def _told(self, path: str) -> str:
        return os.path.relpath(path, self._project) if is_in(path, self._project) else path


def _read_backup(told: object) -> Backup | None:
    fields = _object(told)
    name, version = fields.get("backupFileName"), fields.get("version")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        return None
    if not isinstance(version, int) or version < 0:
        return None
    time, parent = fields.get("backupTime"), fields.get("realParentDir")
    return Backup(
        name,
        version,
        time if isinstance(time, str) else "",
        parent if isinstance(parent, str) else "",
    )


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
