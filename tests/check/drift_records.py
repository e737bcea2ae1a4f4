"""Session records, watched for drift, for the tests of `drift` and `learn`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steno.check.drift import Observer
from steno.check.drift_model import Drift
from steno.format.catalogue import Catalogue, catalogue
from steno.format.lines import read_bytes
from steno.format.records import Record

__all__ = ["corpus", "lines", "seen", "watch"]


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    """Return records as a session file."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def watch(*files: bytes, facts: Catalogue | None = None, since: str = "") -> Observer:
    """Return an observer that has seen some files."""
    observer = Observer(facts or catalogue(), since)
    for data in files:
        for piece in read_bytes(data):
            if isinstance(piece, Record):
                observer.feed(piece)
        observer.end_file()
    return observer


def corpus(shared: Path, folder: str) -> list[bytes]:
    """Return every transcript of one folder of the shared corpus."""
    paths = sorted((shared / "corpus" / folder).rglob("*.jsonl"))
    return [path.read_bytes() for path in paths if path.name != "history.jsonl"]


def seen(drifts: Iterable[Drift]) -> set[tuple[str, str, str]]:
    """Return what was observed, without figures; a new value stands behind its field."""
    return {(drift.code, drift.kind, f"{drift.path}={drift.name}" if drift.name else drift.path) for drift in drifts}
