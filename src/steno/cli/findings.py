"""Findings for people: by session, by rule, with the lines they are about."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.check.checkup import FAMILIES, RULES
from steno.check.files import FileReport
from steno.check.findings import SEVERITIES, Finding, Rule, Severity
from steno.check.policy import Policy, make_policy
from steno.check.verdict import Verdict
from steno.cli.fit import heading
from steno.cli.names import encodable
from steno.cli.options import program
from steno.cli.records import excerpt
from steno.errors import BadRequest, Unreadable
from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.format.source import BytesSource
from steno.safe.terminal import Line, cut, one_line, pad, wrap
from steno.store.found import Problem
from steno.store.read import FileSource

__all__ = [
    "MARKS",
    "explain_lines",
    "problem_json",
    "report_json",
    "report_lines",
    "rules_json",
    "rules_lines",
    "verdict_lines",
]

MARKS: Final[dict[Severity, tuple[str, str]]] = {
    "error": ("✗", "red"),
    "warning": ("!", "yellow"),
    "info": ("·", "dim"),
}
_NONE: Final = "no client"
_SHOWN: Final = 3
_LISTED: Final = 8
_DECODED: Final = 1 << 18
_RAW: Final = 1 << 12


def report_lines(
    report: FileReport, shown: Sequence[Severity], columns: int, *, short: str = "", title: str = ""
) -> Iterator[Line]:
    """Yield what there is to say of a session: what clients resume of it, and its findings."""
    yield from heading(one_line(short or report.name, 40), title, columns)
    yield from verdict_lines(report, columns)
    for file in report.files:
        groups = _groups(file, shown)
        if groups and file is not report:
            yield [("  sub-agent ", "dim"), one_line(file.name.removeprefix("agent-"), 60)]
        for group in groups:
            yield from _group_lines(file, group, columns)


def verdict_lines(report: FileReport, columns: int) -> Iterator[Line]:
    """Yield what clients would resume: one line if they agree, else one for each that differs."""
    verdicts = report.verdicts
    if not verdicts:
        return
    agreed = _agreed(verdicts)
    if len(agreed) == 1:
        said = _words(verdicts[-1])
        said = said if said.startswith(_NONE) else f"every client {said}"
        for line in wrap(said, columns - 2):
            yield ["  ", (line, _style(verdicts[-1]))]
        return
    labels = [_label(each) for each in agreed]
    room = max(map(len, labels))
    for label, (*_, last) in zip(labels, agreed, strict=True):
        for place, line in enumerate(wrap(_words(last), columns - room - 4)):
            told = pad("" if place else label, room)
            yield ["  ", (told, "dim"), "  ", (line, _style(last))]


def _agreed(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Return neighbours that come to the same together."""
    groups: list[list[Verdict]] = []
    for each in verdicts:
        if groups and _words(groups[-1][-1]) == _words(each):
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _label(verdicts: Sequence[Verdict]) -> str:
    first, last = verdicts[0].clients[0], verdicts[-1].clients[-1]
    return last if first == last else f"{first} to {last}"


def _words(verdict: Verdict) -> str:
    """Return a verdict's sentence without the client that it begins with."""
    return verdict.words.removeprefix(verdict.client).strip()


def _style(verdict: Verdict) -> str:
    if verdict.outcome == "not at all" or verdict.rejected:
        return "red"
    return "yellow" if verdict.outcome == "partly" else ""


def _groups(file: FileReport, shown: Sequence[Severity]) -> list[list[Finding]]:
    """Return the findings of a file by rule, the gravest first."""
    groups: dict[tuple[int, str], list[Finding]] = {}
    for found in file.findings:
        if found.severity in shown:
            groups.setdefault((SEVERITIES.index(found.severity), found.id), []).append(found)
    order = sorted(groups, key=lambda key: (key[0], groups[key][0].place.span.offset))
    return [groups[key] for key in order]


def _group_lines(file: FileReport, group: list[Finding], columns: int) -> Iterator[Line]:
    first = group[0]
    number = file.counts.get((first.id, first.severity), len(group))
    mark, style = MARKS[first.severity]
    times = f"  {number:,} times" if number > 1 else ""
    yield ["  ", (mark, style), " ", (first.id, "bold"), (times, "dim")]
    digits = max(len(f"{found.place.line:,}") for found in group[:_SHOWN])
    for found in group[:_SHOWN]:
        where = f"line {found.place.line:>{digits},}"
        room = columns - 6 - len(where)
        for place, line in enumerate(wrap(one_line(found.message), room)):
            yield ["    ", (" " * len(where) if place else where, "dim"), "  ", line]
        if said := _said(file.path, found, room):
            yield [" " * (6 + len(where)), (said, "dim")]
    if number > _SHOWN:
        rest = [f"{found.place.line:,}" for found in group[_SHOWN : _SHOWN + _LISTED]]
        more = ", …" if number > _SHOWN + len(rest) else ""
        said = f"and {number - _SHOWN:,} more: lines {', '.join(rest)}{more}"
        for line in wrap(said, columns - 4):
            yield ["    ", (line, "dim")]
    for line in wrap(_as_called(first.hint), columns - 4):
        yield ["    ", (line, "cyan")]
    if docs := _docs(first):
        yield ["    ", (cut(f"see {docs}", columns - 4), "dim")]


def _as_called(text: str) -> str:
    """Return a text with the commands in it as they have to be typed here."""
    return text.replace("`steno ", f"`{program()} ")


def _said(path: str, found: Finding, room: int) -> str:
    """Return the first words of the record a finding is about; nothing if it cannot be read."""
    span = found.place.span
    if not span.length:
        return ""
    whole = span.length <= _DECODED
    try:
        with FileSource(path) as source:
            data = source.read(span.offset, span.length if whole else _RAW)
    except Unreadable:
        return ""
    piece = next(read_pieces(BytesSource(data)), None) if whole else None
    if isinstance(piece, Record):
        if piece.dialect != "claude" and piece.fields.get("isDeleted") is True:
            return one_line(f"{piece.kind}  deleted", room)
        return one_line(f"{piece.kind}  {excerpt(piece, room)}", room)
    return one_line(data[:_RAW].strip(b"\0").decode("utf-8", "replace"), room)


def report_json(report: FileReport, shown: Sequence[Severity]) -> list[dict[str, Any]]:
    """Return a session and its sub-agents' files as objects for programs."""
    return [encodable(_file_json(file, report, shown)) for file in report.files]


def _file_json(file: FileReport, owner: FileReport, shown: Sequence[Severity]) -> dict[str, Any]:
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
            {"id": rule, "severity": level, "count": number}
            for rule, level, number in counts
            if level in shown
        ],
        "findings": [_finding_json(each) for each in file.findings if each.severity in shown],
    }


def _finding_json(found: Finding) -> dict[str, Any]:
    return {
        "id": found.id,
        "severity": found.severity,
        "line": found.place.line,
        "offset": found.place.span.offset,
        "length": found.place.span.length,
        "uuid": found.place.uuid or None,
        "message": found.message,
        "hint": found.hint,
        "docs": _docs(found) or None,
    }


def _docs(found: Finding) -> str:
    rule = RULES.get(found.id)
    return rule.docs if rule is not None else ""


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a path that could not be read, and why."""
    return encodable(msgspec.to_builtins(problem))


# The rules themselves


def rules_lines(policy: Policy, columns: int) -> Iterator[Line]:
    """Yield every rule: its id, what it weighs and what it is about."""
    room = max((len(rule_id) for rule_id in RULES), default=0)
    for family in FAMILIES:
        for rule in family.RULES:
            weight = policy.weigh(rule.id, rule.severity)
            mark, style = MARKS[weight] if weight else (" ", "dim")
            about = one_line(rule.title, max(columns - room - 13, 1))
            yield [
                (mark, style),
                " ",
                (pad(rule.id, room), "bold" if weight else "dim"),
                "  ",
                (pad(weight or "silent", 7), style),
                "  ",
                (about, "" if weight else "dim"),
            ]


def rules_json(policy: Policy) -> list[dict[str, Any]]:
    """Return every rule for programs."""
    return [
        {
            "id": rule.id,
            "severity": policy.weigh(rule.id, rule.severity),
            "default": rule.severity,
            "title": rule.title,
            "hint": rule.hint,
            "why": rule.why,
            "docs": rule.docs or None,
        }
        for rule in RULES.values()
    ]


def rule_named(name: str) -> Rule:
    """Return a rule.

    Raises:
        BadRequest: there is none of that name.
    """
    make_policy([name])
    if name not in RULES:
        raise BadRequest(
            f"{name} is a family of rules", hint=f"`{program()} check --rules` lists them"
        )
    return RULES[name]


def explain_lines(name: str, columns: int) -> Iterator[Line]:
    """Yield all there is to say of one rule."""
    rule = rule_named(name)
    mark, style = MARKS[rule.severity]
    yield [(mark, style), " ", (rule.id, "bold"), "  ", (rule.severity, style)]
    yield ["  ", rule.title]
    for text in (rule.why, rule.hint):
        if text:
            yield []
            for line in wrap(_as_called(text), min(columns, 100) - 2):
                yield ["  ", line]
