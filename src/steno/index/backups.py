"""The files that records of the client's backups name, as rows of `file_backups`."""

from steno.format.file_backups import (
    BackupEntry,
    absolute_path,
    backups_in,
    fingerprint,
    snapshot_time,
)
from steno.format.loose import loose
from steno.format.values import as_object
from steno.index.moments import millis
from steno.index.state import Row, State

__all__ = ["note_backups", "placed_backups"]


def note_backups(state: State, raw: bytes, message: int, time: int | None) -> None:
    """Keep which files a record names for the first time, or with a new backup."""
    fields = as_object(loose(raw)) or {}
    taken = snapshot_time(fields)
    for entry in backups_in(fields):
        if not entry.path or state.backups.get(entry.path) == fingerprint(entry):
            continue
        state.backups[entry.path] = fingerprint(entry)
        made = millis(taken if entry.time is None else entry.time)
        when = time if made is None else made
        state.unplaced.append(
            (message, entry.path, entry.folder, state.turn.number, entry.version, when)
        )


def placed_backups(state: State) -> list[Row]:
    """Return the rows of backups whose files have a known place, and keep the others for later."""
    rows: dict[tuple[int, str], Row] = {}
    waiting: list[Row] = []
    for row in state.unplaced:
        message, path, folder, turn, version, time = row
        entry = BackupEntry(path=path, folder=folder)
        if state.project or entry.is_placed:
            whole = absolute_path(entry, state.project)
            rows[message, whole] = (message, whole, turn, version, time)
        else:
            waiting.append(row)
    state.unplaced = waiting
    return list(rows.values())
