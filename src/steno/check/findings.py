"""Rules with stable IDs, and the findings that a check reports."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from steno.format.source import Span

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Highest severity first. Error: content is lost or rejected. Warning: Claude Code has to guess, or an older version
fails. Info: unusual but harmless."""
_MAX_PER_RULE: Final = 100


class Rule(msgspec.Struct, frozen=True):
    """A check for one problem, with a stable ID of the form `family.name`."""

    id: str
    severity: Severity
    title: str
    """The problem as a noun phrase."""
    hint: str
    """Effect of the problem, and the next step."""
    why: str = ""
    """Details for the reference documentation."""
    docs: str = ""
    """URL of the documentation page, if any."""

    @property
    def family(self) -> str:
        """The part of the ID before the dot."""
        return self.id.partition(".")[0]


def error_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule with severity error."""
    return Rule(name, "error", title, hint, why, docs)


def warning_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule with severity warning."""
    return Rule(name, "warning", title, hint, why, docs)


def info_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule with severity info."""
    return Rule(name, "info", title, hint, why, docs)


def rules_in(namespace: Mapping[str, object], family: str) -> tuple[Rule, ...]:
    """Return the rules of a family among the values of a module, in definition order."""
    return tuple(value for value in namespace.values() if isinstance(value, Rule) and value.family == family)


class Location(msgspec.Struct, frozen=True):
    """Location of a finding: line number from 1, byte span and record ID."""

    line: int
    span: Span
    uuid: str = ""


class Finding(msgspec.Struct, frozen=True):
    """One problem found by a rule. The message may quote the session: sanitize it before display."""

    id: str
    severity: Severity
    location: Location
    message: str
    hint: str


class Findings:
    """Findings of one file: the first ones of each rule, and counts of all."""

    def __init__(self, *, max_per_rule: int = _MAX_PER_RULE) -> None:
        self._max_per_rule = max_per_rule
        self._findings: list[Finding] = []
        self._deferred: list[tuple[Rule, Location, str, int]] = []
        self.counts: Counter[tuple[str, Severity]] = Counter()

    def add(self, rule: Rule, location: Location, message: str = "", *, mild: bool = False) -> None:
        """Add a finding. Beyond a limit per rule, findings are only counted.

        A `mild` finding becomes info, because its record is compacted away or abandoned.
        """
        severity = "info" if mild else rule.severity
        self.counts[rule.id, severity] += 1
        if self.counts[rule.id, severity] <= self._max_per_rule:
            finding = Finding(rule.id, severity, location, message or rule.title, rule.hint)
            self._findings.append(finding)

    def defer(self, rule: Rule, location: Location, message: str, node: int) -> None:
        """Add a finding whose severity depends on whether the record is sent."""
        self._deferred.append((rule, location, message, node))

    @property
    def has_deferred(self) -> bool:
        """Whether deferred findings are pending."""
        return bool(self._deferred)

    def resolve_deferred(self, sent_nodes: Container[int]) -> None:
        """Add the deferred findings; those on records that are not sent become info."""
        for rule, location, message, node in self._deferred:
            self.add(rule, location, message, mild=node not in sent_nodes)
        self._deferred.clear()

    def merge(self, others: "Findings", location_of: Callable[[Location], Location]) -> None:
        """Add the findings of the converted file, with locations mapped to this file."""
        for finding in others:
            key = finding.id, finding.severity
            if self.counts[key] < self._max_per_rule:
                location = location_of(finding.location)
                self._findings.append(msgspec.structs.replace(finding, location=location))
        self.counts.update(others.counts)

    def __iter__(self) -> Iterator[Finding]:
        """Yield the recorded findings in file order."""
        return iter(sorted(self._findings, key=lambda finding: (finding.location.span.offset, finding.id)))

    def __len__(self) -> int:
        """Number of all findings."""
        return self.counts.total()
