"""The client's own backups of a file, made before a turn changes it."""

from collections.abc import Iterator
from typing import Any, Final

from steno.format.paths import file_history_name
from steno.format.records import Record
from steno.format.values import as_object
from steno.index.moments import millis
from steno.report.files.values import Touch
from steno.store.folder import ConfigFolder

__all__ = ["Backups"]

_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"


class Backups:
    """The backups of one file in one session, each taken once, when it was made."""

    def __init__(self, transcript: str, session: str, path: str) -> None:
        self._folder = ConfigFolder.around(transcript)
        self._session = session
        self._path = path
        self._mark = file_history_name(path, 1).partition("@")[0]
        self._seen: set[str] = set()

    def in_record(self, record: Record) -> Iterator[Touch]:
        """Yield what a record of backups says about the file."""
        fields = record.fields
        if record.type == "file-history-delta":
            named = {str(fields.get("trackingPath")): fields.get("backup")}
        else:
            snapshot = as_object(fields.get("snapshot")) or {}
            named = as_object(snapshot.get("trackedFileBackups")) or {}
        for tracked, value in named.items():
            backup = as_object(value) or {}
            touch = self._touch(tracked, backup)
            if touch is not None:
                yield touch

    def _touch(self, tracked: str, backup: dict[str, Any]) -> Touch | None:
        name, time = backup.get("backupFileName"), backup.get("backupTime")
        when = millis(time) if isinstance(time, str | int | float) else None
        if name is None:
            mine = tracked == self._path or self._path.endswith(f"/{tracked}")
            version = f"-{backup.get('version')}"
            if not mine or version in self._seen or "backupFileName" not in backup:
                return None
            self._seen.add(version)
            return Touch(tool="kept", result={"missing": True}, time=when)
        if not isinstance(name, str) or not name.startswith(f"{self._mark}@") or name in self._seen:
            return None
        self._seen.add(name)
        text = self._text(name)
        return None if text is None else Touch(tool="kept", words=text, time=when)

    def _text(self, name: str) -> str | None:
        if self._folder is None:
            return None
        path = self._folder.backup_path(self._session, name)
        text = self._folder.text(path) if path is not None else None
        return None if text is None or _UNREADABLE in text else text
