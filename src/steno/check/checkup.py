"""Run all rules on a file, and apply a policy of silenced rules and changed severities."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from steno.check.evidence import (
    Evidence,
    OnRecord,
    RecordView,
    RuleFamily,
    RuleHooks,
    SubagentFileInfo,
    gather_evidence,
)
from steno.check.findings import SEVERITIES, Finding, Findings, Location, Rule, Severity
from steno.check.rules.chain import ChainRules, IdRules, SidechainRules
from steno.check.rules.compaction import CompactionRules
from steno.check.rules.dialects import DialectRules, check_dialect
from steno.check.rules.message import MessageRules, ToolRules, UsageRules
from steno.check.rules.record_format import FieldRules, LineRules, TimeRules
from steno.errors import BadRequest
from steno.format.dialects.converted_source import ConvertedSource
from steno.format.dialects.detection import begins_in_dialect, convert_source
from steno.format.lines import LINE_CAP
from steno.format.source import Source

FAMILIES: Final[tuple[type[RuleFamily], ...]] = (
    LineRules,
    IdRules,
    ChainRules,
    ToolRules,
    MessageRules,
    SidechainRules,
    TimeRules,
    CompactionRules,
    UsageRules,
    FieldRules,
    DialectRules,
)
RULES: Final[dict[str, Rule]] = {rule.id: rule for family in FAMILIES for rule in family.rules}
"""All rules by ID."""


def _families_with(name: str) -> tuple[int, ...]:
    """Return the indexes of the families that define a method, computed once at import."""
    return tuple(index for index, family in enumerate(FAMILIES) if hasattr(family, name))


_ON_RECORD: Final = tuple((at, getattr(FAMILIES[at], "applies_to", None)) for at in _families_with("on_record"))
_ON_IRREGULAR: Final = _families_with("on_irregular")
_ON_GAP: Final = _families_with("on_gap")
_ON_END: Final = _families_with("on_end")


def check(
    source: Source, *, name: str = "", agents: Sequence[SubagentFileInfo] | None = None, cap: int = LINE_CAP
) -> Evidence:
    """Check one file with every rule and return the evidence, including its `findings`."""
    if begins_in_dialect(source, cap=cap):
        return _check_converted(source, name, agents, cap)
    checkers = _new_checkers()
    hooks = RuleHooks(
        tuple((checkers[index].on_record, wants) for index, wants in _ON_RECORD),
        tuple(checkers[at].on_irregular for at in _ON_IRREGULAR),
        tuple(checkers[at].on_gap for at in _ON_GAP),
    )
    evidence = gather_evidence(source, name=name, agents=agents, hooks=hooks, cap=cap)
    if evidence.transcript.has_dialect:
        return _check_converted(source, name, agents, cap)
    for at in _ON_END:
        checkers[at].on_end(evidence)
    evidence.resolve_deferred()
    return evidence


def _new_checkers() -> list[Any]:
    return [family() for family in FAMILIES]


def _check_converted(source: Source, name: str, agents: Sequence[SubagentFileInfo] | None, cap: int) -> Evidence:
    """Check a file that contains records in a published dialect.

    Lines are checked as written, and dialect records by the rules of their dialect. In a Claude Code file, the
    converted records are also checked by all other rules. The result has the converted transcript, with locations in
    the original file.
    """
    line_checker = LineRules()
    hooks = RuleHooks((), (line_checker.on_irregular,), (line_checker.on_gap,))
    original = gather_evidence(source, name=name, hooks=hooks, cap=cap)
    line_checker.on_end(original)
    converted = convert_source(source, cap=cap)
    check_dialect(converted, original.findings, cap=cap)
    checkers = _new_checkers()
    is_client_dialect = converted.dialect == "claude"
    rules = (
        tuple((_for_client_records(converted, checkers[index].on_record), wants) for index, wants in _ON_RECORD)
        if is_client_dialect
        else ()
    )
    evidence = gather_evidence(converted, name=name, agents=agents, hooks=RuleHooks(rules), cap=cap)
    numbers = {node.offset: number for node, number in zip(original.transcript.nodes, original.lines, strict=True)}
    for node in evidence.transcript.nodes:
        at = converted.original_span(node.offset).offset
        evidence.lines[node.index] = numbers.get(at, 0)
    if is_client_dialect:
        for at in _ON_END:
            if not isinstance(checkers[at], LineRules):
                checkers[at].on_end(evidence)
        evidence.resolve_deferred()

    def location_of(location: Location) -> Location:
        span = converted.original_span(location.span.offset)
        return Location(numbers.get(span.offset, location.line), span, location.uuid)

    original.findings.merge(evidence.findings, location_of)
    evidence.findings = original.findings
    evidence.as_written = original
    return evidence


def _for_client_records(converted: ConvertedSource, rule: OnRecord) -> OnRecord:
    """Wrap a hook so that it receives only records written by Claude Code."""

    def on_record(view: RecordView, findings: Findings) -> None:
        if converted.is_client(view.node.offset):
            rule(view, findings)

    return on_record


Counts = dict[tuple[str, Severity], int]
"""Number of findings by rule ID and effective severity."""
_MAX_SUGGESTIONS: Final = 3
_FAMILY_SUFFIX: Final = ".*"


class Policy(msgspec.Struct, frozen=True):
    """Silenced rules and changed severities, created by `make_policy`."""

    silence: frozenset[str] = frozenset()
    severity: dict[str, Severity] = {}

    def severity_of(self, rule_id: str, severity: Severity) -> Severity | None:
        """Return the effective severity of a finding, or None if its rule is silenced.

        A finding that was already downgraded to info stays info.
        """
        if rule_id in self.silence:
            return None
        rule = RULES.get(rule_id)
        if rule is not None and severity != rule.severity:
            return severity
        return self.severity.get(rule_id, severity)

    def apply(self, findings: Findings) -> tuple[tuple[Finding, ...], Counts]:
        """Return the findings that remain, with effective severities, and their counts."""
        remaining: list[Finding] = []
        for finding in findings:
            severity = self.severity_of(finding.id, finding.severity)
            if severity is not None:
                remaining.append(msgspec.structs.replace(finding, severity=severity))
        counts: Counter[tuple[str, Severity]] = Counter()
        for (rule_id, level), number in findings.counts.items():
            severity = self.severity_of(rule_id, level)
            if severity is not None:
                counts[rule_id, severity] += number
        return tuple(remaining), dict(counts)


def make_policy(silence: Iterable[str] = (), severity: Mapping[str, str] | None = None) -> Policy:
    """Return a policy for rule IDs as users write them; `family.*` selects a whole family.

    Raises BadRequest for an unknown rule or severity.
    """
    weights: dict[str, Severity] = {}
    # A rule ID overrides the setting of its family.
    for name, level in sorted((severity or {}).items(), key=lambda each: not _is_family(each[0])):
        weights.update(dict.fromkeys(_rule_ids(name), _parse_severity(name, level)))
    return Policy(frozenset(rule_id for name in silence for rule_id in _rule_ids(name)), weights)


def _is_family(name: str) -> bool:
    return name.endswith(_FAMILY_SUFFIX)


def _rule_ids(name: str) -> list[str]:
    if name in RULES:
        return [name]
    if _is_family(name):
        family = name.removesuffix(_FAMILY_SUFFIX)
        if ids := [rule.id for rule in RULES.values() if rule.family == family]:
            return ids
    raise BadRequest(f"unknown rule {name!r}", hint=_suggestion(name))


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    families = dict.fromkeys(rule.family + _FAMILY_SUFFIX for rule in RULES.values())
    matches = get_close_matches(name, [*RULES, *families], _MAX_SUGGESTIONS)
    same_name = [rule for rule in RULES if rule.partition(".")[2] == name.rpartition(".")[2]]
    names = list(dict.fromkeys([*same_name, *matches]))[:_MAX_SUGGESTIONS]
    return f"Did you mean {' or '.join(names)}?" if names else "Run `steno check --rules` to list all rules."


def _parse_severity(name: str, level: str) -> Severity:
    for severity in SEVERITIES:
        if level == severity:
            return severity
    raise BadRequest(f"invalid severity for {name}: {level!r}", hint=f"Use one of {', '.join(SEVERITIES)}.")
