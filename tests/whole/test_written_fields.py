"""Everything the engine writes has the fields that the client it claims to be writes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.whole.written import Written

from steno.check.drift import Observer
from steno.format.catalogue import catalogue
from steno.format.lines import read_pieces
from steno.format.message import ToolUse
from steno.format.records import Record
from steno.report.drift_report import observe_files
from steno.session.resume.clients import LATEST
from steno.store.discovery import discover_file
from steno.store.file_source import FileSource

LEFT_OUT: Final = {
    "requestRef": "names an `api-request` record; the engine does not record requests",
    "effort": "only where an effort was asked for; the client always asks for one",
    "perTurnEffort": "only where an effort was asked for",
    "requestId": "an answer that is said again behind a compaction was not asked for",
    "thinkingDisplay": "only where requests say how thoughts are to be shown",
    "compactMetadata.preservedMessages": "what stays in view is said again behind the summary",
    "compactMetadata.preservedSegment": "so that clients that do not know these fields have it too",
}
"""Fields that the client always writes in the corpus and the engine does not, and why."""
INSIDE: Final = frozenset(
    (
        "attachment",
        "backup",
        "cache_creation",
        "compactMetadata",
        "error",
        "message",
        "output_tokens_details",
        "server_tool_use",
        "snapshot",
        "turnPosition",
        "usage",
    )
)
"""Fields whose own fields are compared too."""


def records_of(paths: Iterable[Path]) -> Iterator[Record]:
    """Yield the records of some files that the newest client wrote, or has to."""
    for path in paths:
        with FileSource(str(path)) as source:
            for piece in read_pieces(source):
                if isinstance(piece, Record) and piece.envelope.version in (None, LATEST.version):
                    yield piece


def names_in(fields: dict[str, Any], before: str = "") -> Iterator[str]:
    """Yield the names of all fields."""
    for name, value in fields.items():
        yield f"{before}{name}"
        if name in INSIDE and isinstance(value, dict):
            yield from names_in(value, f"{before}{name}.")


def always_in(records: Iterable[Record]) -> dict[str, tuple[int, set[str], set[str]]]:
    """Return for each kind how many there are, the fields of all of them, and of any."""
    counts: Counter[str] = Counter()
    fields: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record.kind] += 1
        fields[record.kind].update(set(names_in(record.fields)))
    return {
        kind: (number, {name for name, n in fields[kind].items() if n == number}, {*fields[kind]})
        for kind, number in counts.items()
    }


@pytest.mark.corpus
def test_what_the_client_always_writes_is_always_written(written: Written, shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / LATEST.version
    real = always_in(records_of(path for path in folder.rglob("*.jsonl") if path.name != "history.jsonl"))
    # A fork begins without a slug, like those of the client.
    own = always_in(records_of(path for path in written.files if path != written.forked))
    missing = {(kind, name) for kind, (_, always, _) in own.items() if kind in real for name in real[kind][1] - always}
    assert {each for each in missing if each[1] not in LEFT_OUT} == set()
    assert set(LEFT_OUT) - {name for _, name in missing} == set(), "left out for no reason"
    assert len(set(own) & set(real)) >= 15


def results_in(records: Iterable[Record]) -> dict[str, tuple[set[str], set[str]]]:
    """Return for each tool the fields of all results that are objects, and of any of them."""
    names: dict[str, str] = {}
    found: dict[str, list[set[str]]] = {}
    for record in records:
        for block in record.blocks:
            if isinstance(block, ToolUse):
                names[block.id] = block.name
        detail = record.fields.get("toolUseResult")
        if isinstance(detail, dict) and record.tool_results:
            name = names.get(record.tool_results[0].tool_use_id, "")
            kind = f"{name} {detail.get('status', '')}" if name == "Agent" else name
            # What a tool returns depends on what it was asked for.
            kind += str(detail.get("mode") or detail.get("type") or detail.get("success", ""))
            found.setdefault(kind, []).append(set(detail))
    return {kind: (set.intersection(*sets), set.union(*sets)) for kind, sets in found.items()}


@pytest.mark.corpus
def test_results_have_the_fields_that_the_client_always_keeps(written: Written, shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / LATEST.version
    paths = (path for path in folder.rglob("*.jsonl") if path.name != "history.jsonl")
    real, own = results_in(records_of(paths)), results_in(records_of(written.files))
    both = set(real) & set(own)
    missing = {kind: real[kind][0] - own[kind][0] for kind in both}
    assert {kind: names for kind, names in missing.items() if names} == {}
    assert len(both) >= 10


def test_sessions_of_the_engine_do_not_drift(written: Written) -> None:
    observer, problems = Observer(catalogue()), []
    observe_files([discover_file(str(path)) for path in written.files], observer, problems=problems)
    assert [(each.code, each.kind, each.path, each.name) for each in observer.drifts()] == []
    assert problems == []
    assert observer.records > 300
    assert observer.versions == {LATEST.version}


def test_the_sessions_hold_every_kind_of_record_that_is_written(written: Written) -> None:
    kinds = {record.kind for record in records_of(written.files)}
    assert kinds >= {
        "assistant/api_error",
        "assistant/text",
        "assistant/thinking",
        "assistant/tool_use",
        "attachment/file",
        "attachment/hook_success",
        "file-history-delta",
        "file-history-snapshot",
        "last-prompt",
        "system/api_error",
        "system/compact_boundary",
        "system/informational",
        "system/local_command",
        "system/stop_hook_summary",
        "system/turn_duration",
        "user/compact_summary",
        "user/meta",
        "user/prompt",
        "user/tool_result",
    }
