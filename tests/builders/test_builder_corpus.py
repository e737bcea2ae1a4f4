"""The builder's records beside the real client's: no kind, field or field order of its own."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests.builders import VERSIONS
from tests.builders.everything import everything

pytestmark = pytest.mark.corpus

# Fields any record of the chain may carry in the versions that know them.
_EVERYWHERE: Final = {"slug", "forkedFrom"}


def kind_of(record: dict[str, Any]) -> str:
    outer = record["type"]
    content = record.get("message", {}).get("content")
    if outer == "user":
        if record.get("isCompactSummary"):
            return "user/compact_summary"
        if record.get("isMeta"):
            return "user/meta"
        answers = isinstance(content, list) and any(b["type"] == "tool_result" for b in content)
        return "user/tool_result" if answers else "user/prompt"
    if outer == "assistant":
        return "assistant/" + ("api_error" if record.get("isApiErrorMessage") else _first(content))
    inner = {
        "system": record.get("subtype"),
        "attachment": record.get("attachment", {}).get("type"),
        "progress": record.get("data", {}).get("type"),
        "queue-operation": record.get("operation"),
    }.get(outer)
    return f"{outer}/{inner}" if inner else outer


def _first(content: Any) -> str:
    return content[0]["type"] if content else "empty"


@cache
def described(shared: Path) -> dict[tuple[str, str], set[str]]:
    """Return the fields that the description of the format lists, by version and kind."""
    fields: dict[tuple[str, str], set[str]] = {}
    kind = ""
    for line in (shared / "format" / "ground-truth.md").read_text().splitlines():
        if title := re.match(r"#### `([^`]+)`", line):
            kind = title.group(1)
        elif line.startswith("###"):
            kind = ""
        elif kind and (row := re.match(r"- \*\*([\w.]+)\*\* \(n=[^)]*\): (.*)", line)):
            version = row.group(1).replace("latest", "2.1.325")
            names = {part.split(":")[0].rstrip("?") for part in row.group(2).strip().split(", ")}
            fields[version, kind] = names
    return fields


@cache
def observed(shared: Path, version: str) -> dict[str, list[list[str]]]:
    """Return the fields of every real record of a version, in order, by kind."""
    seen: dict[str, dict[str, list[str]]] = {}
    folder = shared / "corpus" / "real-client" / version
    for path in folder.rglob("projects/**/*.jsonl"):
        if path.relative_to(folder).parts[0].startswith("picker"):
            continue
        for line in path.read_bytes().split(b"\n"):
            record = json.loads(line) if line.strip() else {}
            if "type" in record:
                names = list(record)
                seen.setdefault(kind_of(record), {})[",".join(names)] = names
    return {kind: list(rows.values()) for kind, rows in seen.items()}


@cache
def built(version: str) -> dict[str, dict[str, list[str]]]:
    """Return the fields of every built record of a version, in order, by kind."""
    seen: dict[str, dict[str, list[str]]] = {}
    for made in everything(version):
        of_agents = [record for each in made.transcripts for record in each.records]
        for record in made.records() + of_agents:
            names = list(record)
            seen.setdefault(kind_of(record), {})[",".join(names)] = names
    return seen


@pytest.mark.parametrize("version", VERSIONS)
def test_kinds_and_fields_are_the_real_clients_own(shared: Path, version: str) -> None:
    real = observed(shared, version)
    for kind, rows in built(version).items():
        known = set(described(shared).get((version, kind), set()))
        known = known.union(*real.get(kind, []))
        assert known, f"{version} never writes {kind}"
        for names in rows.values():
            assert set(names) - known - _EVERYWHERE == set(), f"{version} {kind}"


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_stand_in_the_real_clients_order(shared: Path, version: str) -> None:
    if not (shared / "corpus" / "real-client" / version).is_dir():
        pytest.skip(f"the shared corpus has no files of {version}")
    for kind, rows in observed(shared, version).items():
        before = {(a, b) for row in rows for i, a in enumerate(row) for b in row[i + 1 :]}
        for names in built(version).get(kind, {}).values():
            pairs = {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
            wrong = {(a, b) for a, b in pairs - before if (b, a) in before}
            assert wrong == set(), f"{version} {kind}"
