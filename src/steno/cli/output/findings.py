"""Findings of `steno check` as lines and JSON: problems by rule, the rules, secrets."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.check.checkup import FAMILIES, RULES, Policy, make_policy
from steno.check.file_reports import FileReport
from steno.check.findings import SEVERITIES, Finding, Rule, Severity
from steno.check.verdict import Verdict
from steno.cli.command_arguments import program_name
from steno.cli.output.record_views import record_excerpt
from steno.cli.output.table_layout import session_heading, wrap_line
from steno.errors import BadRequest, Unreadable
from steno.format.lines import read_pieces
from steno.format.paths import JSONL_SUFFIX
from steno.format.records import Record
from steno.format.source import BytesSource
from steno.report import humanize
from steno.report.session_references import json_encodable, session_title
from steno.sanitize.terminal import StyledLine, one_line, pad, truncate, wrap
from steno.store.discovery import Problem
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from steno.report.export.session_masking import FileSecrets, SecretFinding


SEVERITY_MARKS: Final[dict[Severity, tuple[str, str]]] = {
    "error": ("✗", "red"),
    "warning": ("!", "yellow"),
    "info": ("·", "dim"),
}
_MAX_FINDINGS: Final = 3
_MAX_LINE_NUMBERS: Final = 8
_MAX_DECODED_SIZE: Final = 1 << 18
_MAX_RAW_SIZE: Final = 1 << 12


def report_lines(
    report: FileReport, severities: Sequence[Severity], columns: int, *, short_id: str = "", title: str = ""
) -> Iterator[StyledLine]:
    """Yield the report of a session: verdicts per Claude Code version, and findings."""
    yield from session_heading(one_line(short_id or report.name, 40), title, columns)
    yield from verdict_lines(report, columns)
    for file in report.files:
        groups = _group_findings(file, severities)
        if groups and file is not report:
            yield [("  sub-agent ", "dim"), one_line(file.name.removeprefix("agent-"), 60)]
        for group in groups:
            yield from _finding_group_lines(file, group, columns)


def verdict_lines(report: FileReport, columns: int) -> Iterator[StyledLine]:
    """Yield the verdicts: one line if all versions agree, else one per range of versions."""
    verdicts = report.verdicts
    if not verdicts:
        return
    agreed = _group_equal_verdicts(verdicts)
    if len(agreed) == 1:
        verdict = verdicts[-1]
        is_general = not verdict.words.startswith(verdict.client)
        text = verdict.words if is_general else f"every version {_verdict_text(verdict)}"
        for line in wrap(text, columns - 2):
            yield ["  ", (line, _verdict_style(verdicts[-1]))]
        return
    labels = [_client_range(verdict) for verdict in agreed]
    available = max(map(len, labels))
    for label, (*_, last) in zip(labels, agreed, strict=True):
        for index, line in enumerate(wrap(_verdict_text(last), columns - available - 4)):
            label_text = pad("" if index else label, available)
            yield ["  ", (label_text, "dim"), "  ", (line, _verdict_style(last))]


def _group_equal_verdicts(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Group consecutive verdicts with the same text."""
    groups: list[list[Verdict]] = []
    for verdict in verdicts:
        if groups and _verdict_text(groups[-1][-1]) == _verdict_text(verdict):
            groups[-1].append(verdict)
        else:
            groups.append([verdict])
    return groups


def _client_range(verdicts: Sequence[Verdict]) -> str:
    first, last = verdicts[0].clients[0], verdicts[-1].clients[-1]
    return last if first == last else f"{first} to {last}"


def _verdict_text(verdict: Verdict) -> str:
    """Return the sentence of a verdict without the version at its start."""
    return verdict.words.removeprefix(verdict.client).strip()


def _verdict_style(verdict: Verdict) -> str:
    if verdict.outcome == "not at all" or verdict.rejected:
        return "red"
    return "yellow" if verdict.outcome == "partly" else ""


def _group_findings(file: FileReport, severities: Sequence[Severity]) -> list[list[Finding]]:
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in file.findings:
        if finding.severity in severities:
            groups.setdefault((SEVERITIES.index(finding.severity), finding.id), []).append(finding)
    order = sorted(groups, key=lambda key: (key[0], groups[key][0].location.span.offset))
    return [groups[key] for key in order]


def _finding_group_lines(file: FileReport, group: list[Finding], columns: int) -> Iterator[StyledLine]:
    first = group[0]
    number = file.counts.get((first.id, first.severity), len(group))
    mark, style = SEVERITY_MARKS[first.severity]
    occurrences = f"  {number:,} times" if number > 1 else ""
    yield ["  ", (mark, style), " ", (first.id, "bold"), (occurrences, "dim")]
    digits = max(len(f"{finding.location.line:,}") for finding in group[:_MAX_FINDINGS])
    for found in group[:_MAX_FINDINGS]:
        where = f"line {found.location.line:>{digits},}"
        available = columns - 6 - len(where)
        for index, line in enumerate(wrap(one_line(found.message), available)):
            yield ["    ", (" " * len(where) if index else where, "dim"), "  ", line]
        if text := _record_excerpt(file.path, found, available):
            yield [" " * (6 + len(where)), (text, "dim")]
    if number > _MAX_FINDINGS:
        further_lines = [
            f"{found.location.line:,}" for found in group[_MAX_FINDINGS : _MAX_FINDINGS + _MAX_LINE_NUMBERS]
        ]
        ellipsis = ", …" if number > _MAX_FINDINGS + len(further_lines) else ""
        text = f"… {number - _MAX_FINDINGS:,} more: lines {', '.join(further_lines)}{ellipsis}"
        for line in wrap(text, columns - 4):
            yield ["    ", (line, "dim")]
    for line in wrap(_with_program_name(first.hint), columns - 4):
        yield ["    ", (line, "cyan")]
    if docs := _rule_docs(first):
        yield ["    ", (truncate(f"see {docs}", columns - 4), "dim")]


def _with_program_name(text: str) -> str:
    """Return a text with `steno` replaced by the command that works in this environment."""
    return text.replace("`steno ", f"`{program_name()} ")


def _record_excerpt(path: str, finding: Finding, available: int) -> str:
    """Return the start of the record of a finding; "" if it cannot be read."""
    span = finding.location.span
    if not span.length:
        return ""
    is_complete = span.length <= _MAX_DECODED_SIZE
    try:
        with FileSource(path) as source:
            data = source.read(span.offset, span.length if is_complete else _MAX_RAW_SIZE)
    except Unreadable:
        return ""
    piece = next(read_pieces(BytesSource(data)), None) if is_complete else None
    if isinstance(piece, Record):
        if piece.dialect != "claude" and piece.fields.get("isDeleted") is True:
            return one_line(f"{piece.kind}  deleted", available)
        return one_line(f"{piece.kind}  {record_excerpt(piece, available)}", available)
    return one_line(data[:_MAX_RAW_SIZE].strip(b"\0").decode("utf-8", "replace"), available)


def report_json(report: FileReport, severities: Sequence[Severity]) -> list[dict[str, Any]]:
    """Return the reports of a session and its sub-agents as JSON."""
    return [json_encodable(_file_report_json(file, report, severities)) for file in report.files]


def _file_report_json(file: FileReport, owner: FileReport, severities: Sequence[Severity]) -> dict[str, Any]:
    counts = ((rule, level, number) for (rule, level), number in sorted(file.counts.items()))
    return {
        "path": file.path,
        "name": file.name,
        "role": file.role,
        "session": None if file is owner else owner.name,
        "size": file.size,
        "records": file.records,
        "sound": file.sound,
        "verdicts": [msgspec.to_builtins(verdict) for verdict in file.verdicts],
        "counts": [
            {"id": rule, "severity": level, "count": number} for rule, level, number in counts if level in severities
        ],
        "findings": [_finding_json(finding) for finding in file.findings if finding.severity in severities],
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity,
        "line": finding.location.line,
        "offset": finding.location.span.offset,
        "length": finding.location.span.length,
        "uuid": finding.location.uuid or None,
        "message": finding.message,
        "hint": finding.hint,
        "docs": _rule_docs(finding) or None,
    }


def _rule_docs(finding: Finding) -> str:
    rule = RULES.get(finding.id)
    return rule.docs if rule is not None else ""


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return an unreadable path and the reason as JSON."""
    return json_encodable(msgspec.to_builtins(problem))


# Rules


def rules_lines(policy: Policy, columns: int) -> Iterator[StyledLine]:
    """Yield every rule: ID, severity and title."""
    available = max((len(rule_id) for rule_id in RULES), default=0)
    for family in FAMILIES:
        for rule in family.rules:
            weight = policy.severity_of(rule.id, rule.severity)
            mark, style = SEVERITY_MARKS[weight] if weight else (" ", "dim")
            title = one_line(rule.title, max(columns - available - 13, 1))
            yield [
                (mark, style),
                " ",
                (pad(rule.id, available), "bold" if weight else "dim"),
                "  ",
                (pad(weight or "off", 7), style),
                "  ",
                (title, "" if weight else "dim"),
            ]


def rules_json(policy: Policy) -> list[dict[str, Any]]:
    """Return every rule as JSON."""
    return [
        {
            "id": rule.id,
            "severity": policy.severity_of(rule.id, rule.severity),
            "default": rule.severity,
            "title": rule.title,
            "hint": rule.hint,
            "why": rule.why,
            "docs": rule.docs or None,
        }
        for rule in RULES.values()
    ]


def find_rule(name: str) -> Rule:
    """Return a rule.

    Raises:
        BadRequest: no rule has this ID.
    """
    make_policy([name])
    if name not in RULES:
        raise BadRequest(
            f"{name} is a family of rules", hint=f"Run `{program_name()} check --rules` to list its rules."
        )
    return RULES[name]


def explain_lines(name: str, columns: int) -> Iterator[StyledLine]:
    """Yield the explanation of a rule."""
    rule = find_rule(name)
    mark, style = SEVERITY_MARKS[rule.severity]
    yield [(mark, style), " ", (rule.id, "bold"), "  ", (rule.severity, style)]
    yield ["  ", rule.title]
    for text in (rule.why, rule.hint):
        if text:
            yield []
            for line in wrap(_with_program_name(text), min(columns, 100) - 2):
                yield ["  ", line]


_MAX_LISTED_SECRETS: Final = 40
"""Maximum number of listed secrets per file."""


def secret_lines(file: "FileSecrets", columns: int) -> Iterator[StyledLine]:
    """Yield the secrets of a file: position, family, public prefix, length and hash."""
    name = file.session_file.path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)
    title = session_title(file.session_file) if file.session_file.place.role != "agent" else ""
    yield from session_heading(one_line(name, 60), title, columns)
    visible = file.findings[:_MAX_LISTED_SECRETS]
    positions = [_secret_position(item) for item in visible]
    position_width = max(map(len, positions), default=0)
    for finding, position in zip(visible, positions, strict=True):
        yield from wrap_line(_secret_line(finding, pad(position, position_width)), columns)
    if len(file.findings) > _MAX_LISTED_SECRETS:
        remaining = humanize.count(len(file.findings) - _MAX_LISTED_SECRETS, "finding")
        yield [(f"  … {remaining} more; use --json to list all", "dim")]


def _secret_position(finding: "SecretFinding") -> str:
    parts = [f"line {finding.line}"]
    if finding.turn is not None:
        parts.append(f"turn {finding.turn}")
    if finding.tool:
        parts.append(one_line(finding.tool, 24))
    return ", ".join(parts)


def _secret_line(finding: "SecretFinding", position: str) -> StyledLine:
    start = f"{finding.prefix}…, " if finding.prefix else ""
    encoding = f" in {finding.encoding}" if finding.encoding else ""
    details = f"{start}{humanize.count(finding.length, 'byte')}{encoding}, hash {finding.hash}"
    return ["  ", position, "  ", (finding.family, "yellow"), "  ", (details, "dim")]


def secrets_summary(files: "Sequence[FileSecrets]", columns: int) -> Iterator[StyledLine]:
    """Yield the number of secrets per family."""
    counts = Counter(item.family for file in files for item in file.findings)
    if not counts:
        yield [f"{humanize.count(len(files), 'file')}, no secrets found"]
        return
    families = ", ".join(f"{number:,} {family}" for family, number in counts.most_common())
    total = humanize.count(counts.total(), "secret")
    affected = sum(1 for file in files if file.findings)
    where = f"{affected:,} of {humanize.count(len(files), 'file')}"
    yield from wrap_line([(f"{total} in {where}", "bold"), f": {families}"], columns)


def secrets_json(files: "Sequence[FileSecrets]") -> dict[str, Any]:
    """Return all secrets, and their number per family, as JSON."""
    counts = Counter(item.family for file in files for item in file.findings)
    return {
        "files": len(files),
        "secrets": counts.total(),
        "families": dict(sorted(counts.items())),
        "findings": [
            json_encodable({"path": file.session_file.path, **msgspec.to_builtins(finding)})
            for file in files
            for finding in file.findings
        ],
        "problems": [
            json_encodable({"path": file.session_file.path, "message": file.error}) for file in files if file.error
        ],
    }
