"""The client's own backups of a file, made before a turn changes it."""

from collections.abc import Iterator
from typing import Final

from steno.format.file_backups import (
    BackupEntry,
    absolute_path,
    backups_in,
    fingerprint,
    snapshot_time,
)
from steno.format.paths import file_history_name
from steno.format.records import Record
from steno.index.moments import millis
from steno.report.files.values import Touch
from steno.store.folder import ConfigFolder

__all__ = ["Backups"]

_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"


class Backups:
    """The backups of one file in one session, each taken once, when it was made."""

    def __init__(self, transcript: str, session: str, path: str, project: str = "") -> None:
        self._folder = ConfigFolder.around(transcript)
        self._session = session
        self._path = path
        self._project = project
        self._mark = file_history_name(path, 1).partition("@")[0]
        self._seen: set[str] = set()

    def in_record(self, record: Record) -> Iterator[Touch]:
        """Yield what a record of backups says about the file."""
        fields = record.fields
        for entry in backups_in(fields):
            mark = fingerprint(entry)
            if mark in self._seen or not self._is_meant(entry):
                continue
            self._seen.add(mark)
            stamp = snapshot_time(fields) if entry.time is None else entry.time
            yield self._touch(entry, millis(stamp))

    def _is_meant(self, entry: BackupEntry) -> bool:
        """Whether a backup is one of the file; its name is made from the whole path."""
        if entry.file_name.startswith(f"{self._mark}@"):
            return True
        if absolute_path(entry, self._project) == self._path:
            return True
        return entry.missing and self._path.endswith(f"/{entry.path}")

    def _touch(self, entry: BackupEntry, time: int | None) -> Touch:
        if entry.missing:
            return Touch(tool="kept", result={"missing": True}, time=time)
        text = entry.content if entry.content is not None else self._text(entry.file_name)
        if text is None:
            return Touch(tool="kept", result={"lost": True}, time=time)
        return Touch(tool="kept", words=text, time=time)

    def _text(self, name: str) -> str | None:
        if self._folder is None:
            return None
        path = self._folder.backup_path(self._session, name)
        text = self._folder.text(path) if path is not None else None
        return None if text is None or _UNREADABLE in text else text
