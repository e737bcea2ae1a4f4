"""The files that got a new backup version in each turn.

The client backs a file up right before its first change, and every prompt takes a snapshot in which
a file that differs from its last backup gets a new version. So a first backup says that the file was
changed in that turn, and a new version in a prompt's snapshot that it was changed before.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from steno.format.file_backups import (
    BACKUP_TYPES,
    BackupEntry,
    absolute_path,
    backups_in,
    fingerprint,
    is_update,
    message_of,
    snapshot_time,
)
from steno.index.moments import millis
from steno.report.brief.turn_content import BackupChange, FileBackup
from steno.report.brief.turn_positions import TurnPositions
from steno.report.words import below
from steno.session.transcript import Transcript

__all__ = ["backups_by_turn", "only_in_backups"]

_SLACK: Final = 60_000
"""Milliseconds between the time of a snapshot and of the backups made for it."""


def backups_by_turn(
    transcript: Transcript, positions: TurnPositions, project: str, began: float | None
) -> dict[int, list[FileBackup]]:
    """Return the new backups of each turn, by its number, in the order of the file.

    `began` is when the first record was written: what was backed up before is no change here.
    """
    first = None if began is None else round(began * 1000)
    known: dict[str, str] = {}
    found: dict[int, list[FileBackup]] = {}
    for node in transcript.nodes:
        if node.type not in BACKUP_TYPES:
            continue
        fields = transcript.record(node).fields
        number = positions.of_message(message_of(fields), node)
        update, taken = is_update(fields), millis(snapshot_time(fields))
        for entry in backups_in(fields):
            path = below(absolute_path(entry, project), project)
            change = _change(entry, known.get(path), taken, first, update=update)
            if change == "before_turn" and path not in known and number == positions.first:
                change = "earlier"
            known[path] = fingerprint(entry)
            if change is None or number is None:
                continue
            backup = _backup(entry, path, change, taken)
            found.setdefault(number, []).append(backup)
    return found


def _change(
    entry: BackupEntry, before: str | None, taken: int | None, first: int | None, *, update: bool
) -> BackupChange | None:
    """Return when the file was changed; None where the backup is not new."""
    if before is not None:
        if before == fingerprint(entry):
            return None
        return "in_turn" if update else "before_turn"
    if update:
        return "in_turn"
    # A first backup is made at any time in a turn, all others together with the snapshot.
    is_first = (entry.version or 1) <= 1
    made, limit = millis(entry.time), first if is_first else taken
    if made is not None and limit is not None and made < limit - _SLACK:
        return "earlier"
    return "in_turn" if is_first else "before_turn"


def _backup(entry: BackupEntry, path: str, change: BackupChange, taken: int | None) -> FileBackup:
    made = millis(entry.time)
    made = taken if made is None else made
    return FileBackup(
        path=path,
        change=change,
        version=entry.version,
        backup_file=entry.file_name,
        existed=not entry.missing,
        size=None if entry.content is None else len(entry.content),
        time=None if made is None else made / 1000,
    )


def only_in_backups(
    backups: dict[int, list[FileBackup]], changed: Collection[str]
) -> tuple[dict[int, list[FileBackup]], dict[str, None]]:
    """Return the backups with `by_call` set, and the files that no call changed.

    `changed` are the files that file tools changed, named as in the backups.
    """
    marked = {
        number: [msgspec.structs.replace(each, by_call=each.path in changed) for each in some]
        for number, some in backups.items()
    }
    rows: Sequence[FileBackup] = [each for number in sorted(marked) for each in marked[number]]
    alone = {each.path: None for each in rows if not each.by_call and each.change != "earlier"}
    return marked, alone
