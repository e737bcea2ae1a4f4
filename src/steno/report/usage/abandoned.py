"""What went into branches that were given up: the user went back and went on differently.

Only sessions in which a prompt hangs on something else than what came before can have any. Looking
into one means reading all of it, so what was found is kept until the file changes.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.index.scan import path_from
from steno.report.prices import Prices
from steno.report.usage.cells import Cells, add, band_of, day_of_slot, heap_of
from steno.report.usage.sort import moment_of, slot_of
from steno.report.usage.totals import Figures, summed
from steno.report.usage.wanted import Wanted
from steno.store.kept import keep, kept

__all__ = ["abandoned_keys", "count_abandoned"]

_KEPT: Final = "abandoned.json"
_LITTLE: Final = 24 << 20
"""How many bytes are read without being asked to."""


class _Known(msgspec.Struct, array_like=True):
    size: int
    mtime: int
    keys: list[str]


def count_abandoned(
    connection: sqlite3.Connection,
    wanted: Wanted,
    prices: Prices,
    *,
    thorough: bool = False,
    keeps: bool = True,
    step: Callable[[int], None] | None = None,
) -> tuple[Figures, int]:
    """Return what was spent on them, and how many sessions were not looked into.

    Those that were never looked into are now, all of them or none: none when that
    would take a while, unless it is to be `thorough`. Without `keeps`, nothing is written.
    """
    candidates = connection.execute(
        "SELECT f.id, f.path, f.size, f.mtime, s.project FROM sessions s "
        "JOIN files f ON f.id = s.file WHERE s.rewound ORDER BY f.mtime DESC"
    ).fetchall()
    candidates = [each for each in candidates if wanted.has_project(each[4])]
    known = _read_kept() if candidates else {}
    new = [each for each in candidates if not _is_known(known, each)]
    if not thorough and sum(size for _, _, size, _, _ in new) > _LITTLE:
        candidates = [each for each in candidates if _is_known(known, each)]
    cells: Cells = {}
    for each in candidates:
        file, kept_path, size, mtime, _ = each
        path = path_from(kept_path)
        if not _is_known(known, each):
            known[_name(kept_path)] = _Known(size, mtime, sorted(abandoned_keys(path)))
            if step is not None:
                step(size)
        _add_rows(connection, cells, file, known[_name(kept_path)].keys, wanted)
    unseen = sum(not _is_known(known, each) for each in new)
    if keeps and len(new) > unseen:
        keep(_KEPT, msgspec.json.encode(known))
    return summed(cells.items(), prices), unseen


def _is_known(known: dict[str, _Known], candidate: tuple[Any, ...]) -> bool:
    _, path, size, mtime, _ = candidate
    seen = known.get(_name(path))
    return seen is not None and (seen.size, seen.mtime) == (size, mtime)


def _name(path: str | bytes) -> str:
    """Return what a path is kept under: JSON has no bytes, and no path has a NUL in it."""
    return path if isinstance(path, str) else f"\0{path.hex()}"


def _add_rows(
    connection: sqlite3.Connection, cells: Cells, file: int, keys: list[str], wanted: Wanted
) -> None:
    for key in keys:
        row = connection.execute(
            "SELECT file, key, message, lines, turn, time, model, branch, agent, input, output, "
            "cache_5m, cache_1h, cache_read, searches, fast, estimated, copied FROM usage "
            "WHERE file = ? AND key = ? AND counts",
            (file, key),
        ).fetchone()
        if row is not None and wanted.has_time(moment_of(row)):
            day = day_of_slot(slot_of(row))
            add(cells, ((), day, row[6], row[15], band_of(row)), heap_of(row))


def abandoned_keys(path: str) -> set[str]:
    """Return the responses of a session that only stand on branches that were given up."""
    from steno.session.session import Session
    from steno.session.story.figures import GIVEN_UP
    from steno.session.transcript import load
    from steno.store.archive.opened import open_anywhere

    try:
        source = open_anywhere(path)
    except Unreadable:
        return set()
    with source:
        session = Session(load(source))
        keys: set[str] = set()
        for branch in session.branches:
            if branch.why not in GIVEN_UP:
                continue
            for node in branch.nodes:
                if node.type == "assistant":
                    request = session.transcript.record(node).envelope.request_id
                    keys.add(node.message_id or request or node.uuid or "")
        return keys - {""}


def _read_kept() -> dict[str, _Known]:
    raw = kept(_KEPT)
    if raw is None:
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, _Known])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
