"""Usage of abandoned branches: turns that the user rewound and replaced.

Only sessions with a prompt whose parent is not the previous record can have abandoned branches. Finding them requires
reading the whole session, so the result is cached until the file changes.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.index.sync.scan import path_from_column
from steno.report.pricing import PriceTable
from steno.report.usage.usage_query import (
    Buckets,
    UsageQuery,
    add_counts,
    counts_of_row,
    day_of_slot,
    response_time,
    slot_of_row,
    tier_of_row,
)
from steno.report.usage.usage_report import UsageFigures, sum_usage
from steno.store.atomic import read_cache, write_cache

_ABANDONED_CACHE_FILE: Final = "abandoned.json"
_MAX_UNREQUESTED_BYTES: Final = 24 << 20
"""Maximum bytes to read unless `thorough` is set."""


class _CachedKeys(msgspec.Struct, array_like=True):
    size: int
    mtime: int
    keys: list[str]


def count_abandoned_usage(
    connection: sqlite3.Connection,
    query: UsageQuery,
    prices: PriceTable,
    *,
    thorough: bool = False,
    update_cache: bool = True,
    progress: Callable[[int], None] | None = None,
) -> tuple[UsageFigures, int]:
    """Return the usage of abandoned branches, and the number of sessions not read.

    Uncached sessions are read all or not at all: not at all if they are large, unless `thorough` is set. With
    `update_cache=False` nothing is written.
    """
    candidates = connection.execute(
        "SELECT f.id, f.path, f.size, f.mtime, s.project FROM sessions s "
        "JOIN files f ON f.id = s.file WHERE s.rewound ORDER BY f.mtime DESC"
    ).fetchall()
    candidates = [candidate for candidate in candidates if query.matches_project(candidate[4])]
    cached = _read_abandoned_cache() if candidates else {}
    uncached = [each for each in candidates if not _is_cached(cached, each)]
    if not thorough and sum(size for _, _, size, _, _ in uncached) > _MAX_UNREQUESTED_BYTES:
        candidates = [each for each in candidates if _is_cached(cached, each)]
    buckets: Buckets = {}
    for each in candidates:
        file, stored_path, size, mtime, _ = each
        path = path_from_column(stored_path)
        if not _is_cached(cached, each):
            cached[_cache_key(stored_path)] = _CachedKeys(size, mtime, sorted(abandoned_response_keys(path)))
            if progress is not None:
                progress(size)
        _add_responses(connection, buckets, file, cached[_cache_key(stored_path)].keys, query)
    skipped = sum(not _is_cached(cached, each) for each in uncached)
    if update_cache and len(uncached) > skipped:
        write_cache(_ABANDONED_CACHE_FILE, msgspec.json.encode(cached))
    return sum_usage(buckets.items(), prices), skipped


def _is_cached(cached: dict[str, _CachedKeys], candidate: tuple[Any, ...]) -> bool:
    _, path, size, mtime, _ = candidate
    entry = cached.get(_cache_key(path))
    return entry is not None and (entry.size, entry.mtime) == (size, mtime)


def _cache_key(path: str | bytes) -> str:
    """Return the cache key of a path: JSON has no bytes, and a path cannot contain NUL."""
    return path if isinstance(path, str) else f"\0{path.hex()}"


def _add_responses(
    connection: sqlite3.Connection, buckets: Buckets, file: int, keys: list[str], query: UsageQuery
) -> None:
    for key in keys:
        row = connection.execute(
            "SELECT file, key, message, lines, turn, time, model, branch, agent, input, output, "
            "cache_5m, cache_1h, cache_read, searches, fast, estimated, copied FROM usage "
            "WHERE file = ? AND key = ? AND counts",
            (file, key),
        ).fetchone()
        if row is not None and query.matches_time(response_time(row)):
            day = day_of_slot(slot_of_row(row))
            add_counts(buckets, ((), day, row[6], row[15], tier_of_row(row)), counts_of_row(row))


def abandoned_response_keys(path: str) -> set[str]:
    """Return the keys of responses that occur only on abandoned branches."""
    from steno.session.session import Session
    from steno.session.transcript import load
    from steno.session.turns.session_facts import ABANDONED_REASONS
    from steno.store.archive.file_access import open_transcript

    try:
        source = open_transcript(path)
    except Unreadable:
        return set()
    with source:
        session = Session(load(source))
        keys: set[str] = set()
        for branch in session.branches:
            if branch.why not in ABANDONED_REASONS:
                continue
            for node in branch.nodes:
                if node.type == "assistant":
                    request = session.transcript.record(node).envelope.request_id
                    keys.add(node.message_id or request or node.uuid or "")
        return keys - {""}


def _read_abandoned_cache() -> dict[str, _CachedKeys]:
    raw = read_cache(_ABANDONED_CACHE_FILE)
    if raw is None:
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, _CachedKeys])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
