"""`steno check --secrets`: the secrets that masking would hide, as lines and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.cli.fit import heading, wrapped
from steno.cli.names import encodable, title_of
from steno.report import words
from steno.report.secret_scan import FileSecrets, SecretFinding
from steno.safe.terminal import Line, one_line, pad

__all__ = ["secret_lines", "secrets_json", "secrets_summary"]

_MOST: Final = 40
"""Findings of one file that are listed."""


def secret_lines(file: FileSecrets, columns: int) -> Iterator[Line]:
    """Yield the secrets of one file: the place, the family, and what may be shown of each."""
    name = file.found.path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
    title = title_of(file.found) if file.found.place.role != "agent" else ""
    yield from heading(one_line(name, 60), title, columns)
    shown = file.findings[:_MOST]
    places = [_place(each) for each in shown]
    room = max(map(len, places), default=0)
    for finding, place in zip(shown, places, strict=True):
        yield from wrapped(_line(finding, pad(place, room)), columns)
    if len(file.findings) > _MOST:
        rest = words.count(len(file.findings) - _MOST, "finding")
        yield [(f"  and {rest} more; --json lists all", "dim")]


def _place(finding: SecretFinding) -> str:
    parts = [f"line {finding.line}"]
    if finding.turn is not None:
        parts.append(f"turn {finding.turn}")
    if finding.tool:
        parts.append(one_line(finding.tool, 24))
    return ", ".join(parts)


def _line(finding: SecretFinding, place: str) -> Line:
    start = f"{finding.prefix}…, " if finding.prefix else ""
    encoding = f" in {finding.encoding}" if finding.encoding else ""
    about = f"{start}{words.count(finding.length, 'byte')}{encoding}, hash {finding.hash}"
    return ["  ", place, "  ", (finding.family, "yellow"), "  ", (about, "dim")]


def secrets_summary(files: Sequence[FileSecrets], columns: int) -> Iterator[Line]:
    """Yield how many secrets there are, and of which families."""
    counts = Counter(each.family for file in files for each in file.findings)
    if not counts:
        yield [f"{words.count(len(files), 'file')}, no secrets found"]
        return
    families = ", ".join(f"{number:,} {family}" for family, number in counts.most_common())
    total = words.count(counts.total(), "secret")
    touched = sum(1 for file in files if file.findings)
    where = f"{touched:,} of {words.count(len(files), 'file')}"
    yield from wrapped([(f"{total} in {where}", "bold"), f": {families}"], columns)


def secrets_json(files: Sequence[FileSecrets]) -> dict[str, Any]:
    """Return every finding, and how many there are of each family."""
    counts = Counter(each.family for file in files for each in file.findings)
    return {
        "files": len(files),
        "secrets": counts.total(),
        "families": dict(sorted(counts.items())),
        "findings": [
            encodable({"path": file.found.path, **msgspec.to_builtins(finding)})
            for file in files
            for finding in file.findings
        ],
        "problems": [
            encodable({"path": file.found.path, "message": file.error})
            for file in files
            if file.error
        ],
    }
