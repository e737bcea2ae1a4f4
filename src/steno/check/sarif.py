"""Findings as SARIF 2.1.0, which code hosts and editors read."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from steno._version import __version__
from steno.check.checkup import RULES
from steno.check.files import FileReport
from steno.check.findings import Finding, Rule, Severity
from steno.store.found import Problem

__all__ = ["file_uri", "sarif"]

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_BASE: Final = "%SRCROOT%"
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


def sarif(
    reports: Iterable[FileReport], problems: Sequence[Problem] = (), *, base: str = ""
) -> dict[str, Any]:
    """Return one run as a SARIF log. Paths are absolute; those below `base` become relative."""
    order = {rule_id: at for at, rule_id in enumerate(RULES)}
    results: list[dict[str, Any]] = []
    left_out = 0
    for report in reports:
        for file in report.files:
            place = _artifact(file.path, base)
            results += [_result(found, place, order) for found in file.findings]
            left_out += sum(file.counts.values()) - len(file.findings)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "steno",
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in RULES.values()],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not problems,
                "toolExecutionNotifications": [_notice(each, base) for each in problems],
            }
        ],
        "columnKind": "utf16CodeUnits",
        "results": results,
        # Of very many findings of one kind in one file only the first are listed.
        "properties": {"findingsNotListed": left_out},
    }
    if base:
        run["originalUriBaseIds"] = {_BASE: {"uri": file_uri(base).rstrip("/") + "/"}}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def file_uri(path: str) -> str:
    """Return an absolute path as a `file:` URI, every other byte percent-encoded.

    >>> file_uri("/tmp/my notes.jsonl")
    'file:///tmp/my%20notes.jsonl'
    """
    path = _slashed(path)
    if path.startswith("//"):
        return "file:" + _quoted(path)
    return "file://" + ("" if path.startswith("/") else "/") + _quoted(path)


def _slashed(path: str) -> str:
    """Return a path of Windows with the slashes of a URI; elsewhere a backslash is a letter."""
    windows = _DRIVE.match(path.replace("\\", "/")) or path.startswith("\\\\")
    return path.replace("\\", "/") if windows else path


def _quoted(path: str) -> str:
    drive = _DRIVE.match(path)
    head = drive[0] if drive else ""
    return head + quote(path[len(head) :].encode("utf-8", "surrogateescape"), safe="/~")


def _artifact(path: str, base: str) -> dict[str, Any]:
    above = _slashed(base).rstrip("/") + "/"
    if base and _slashed(path).startswith(above):
        return {"uri": _quoted(_slashed(path)[len(above) :]), "uriBaseId": _BASE}
    return {"uri": file_uri(path)}


def _rule(rule: Rule) -> dict[str, Any]:
    about = rule.why or rule.hint
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": about},
        "help": {"text": f"{about}\n\n{rule.hint}" if rule.why else rule.hint},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family]},
    }


def _result(found: Finding, place: dict[str, Any], order: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.id,
        "level": _LEVELS[found.severity],
        "message": {"text": found.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": place,
                    "region": {
                        "startLine": found.place.line,
                        "byteOffset": found.place.span.offset,
                        "byteLength": found.place.span.length,
                    },
                }
            }
        ],
    }
    if found.id in order:
        result["ruleIndex"] = order[found.id]
    if found.place.uuid:
        result["partialFingerprints"] = {"record/v1": f"{found.id}:{found.place.uuid}"}
    return result


def _notice(problem: Problem, base: str) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": problem.message or problem.kind},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(problem.path, base)}}],
    }
