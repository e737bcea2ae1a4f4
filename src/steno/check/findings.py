"""Findings: rules with stable names, and the breaches of them that a check finds."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from steno.format.source import Span

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Worst first. Error: something is lost or refused. Warning: a client has to guess, or an older one fails. Info: odd
and harmless."""
_MAX_PER_RULE: Final = 100


class Rule(msgspec.Struct, frozen=True):
    """One thing that can be wrong, under a name that does not change: `family.name`."""

    id: str
    severity: Severity
    title: str
    """What is wrong, as a short clause."""
    hint: str
    """What it means and what to do, in one sentence."""
    why: str = ""
    """More about it, for the reference."""
    docs: str = ""
    """The page of the documentation that explains it, where one does."""

    @property
    def family(self) -> str:
        """The part of the name before the dot."""
        return self.id.partition(".")[0]


def error_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule whose breaches are errors."""
    return Rule(name, "error", title, hint, why, docs)


def warning_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule whose breaches are warnings."""
    return Rule(name, "warning", title, hint, why, docs)


def info_rule(name: str, title: str, hint: str, why: str = "", docs: str = "") -> Rule:
    """Return a rule whose breaches are only information."""
    return Rule(name, "info", title, hint, why, docs)


def rules_in(namespace: Mapping[str, object], family: str) -> tuple[Rule, ...]:
    """Return the rules of a family among the values of a module, in the order of their definitions."""
    return tuple(value for value in namespace.values() if isinstance(value, Rule) and value.family == family)


class Location(msgspec.Struct, frozen=True):
    """Where a finding lies: a line, counted from one, its bytes, and the record's id."""

    line: int
    span: Span
    uuid: str = ""


class Finding(msgspec.Struct, frozen=True):
    """One breach of a rule. The message may quote the session: clean it before it is shown."""

    id: str
    severity: Severity
    location: Location
    message: str
    hint: str


class Findings:
    """The findings of one file: of each rule the first ones, and how often it was met."""

    def __init__(self, *, max_per_rule: int = _MAX_PER_RULE) -> None:
        self._max_per_rule = max_per_rule
        self._findings: list[Finding] = []
        self._deferred: list[tuple[Rule, Location, str, int]] = []
        self.counts: Counter[tuple[str, Severity]] = Counter()

    def add(self, rule: Rule, location: Location, message: str = "", *, mild: bool = False) -> None:
        """Note a breach; of very many of one kind only the first are kept, all are counted.

        A `mild` one does no harm where it stands: in what was compacted or abandoned.
        """
        severity = "info" if mild else rule.severity
        self.counts[rule.id, severity] += 1
        if self.counts[rule.id, severity] <= self._max_per_rule:
            finding = Finding(rule.id, severity, location, message or rule.title, rule.hint)
            self._findings.append(finding)

    def defer(self, rule: Rule, location: Location, message: str, node: int) -> None:
        """Note a breach that only matters if the record is sent: known once all was read."""
        self._deferred.append((rule, location, message, node))

    @property
    def has_deferred(self) -> bool:
        """Whether anything was deferred."""
        return bool(self._deferred)

    def resolve_deferred(self, sent_nodes: Container[int]) -> None:
        """Add what was deferred; it is mild on records that are not sent."""
        for rule, location, message, node in self._deferred:
            self.add(rule, location, message, mild=node not in sent_nodes)
        self._deferred.clear()

    def merge(self, others: "Findings", location_of: Callable[[Location], Location]) -> None:
        """Add the findings of the same file in another form, each at its place in this one."""
        for finding in others:
            key = finding.id, finding.severity
            if self.counts[key] < self._max_per_rule:
                location = location_of(finding.location)
                self._findings.append(msgspec.structs.replace(finding, location=location))
        self.counts.update(others.counts)

    def __iter__(self) -> Iterator[Finding]:
        """Yield the kept findings by where they lie."""
        return iter(sorted(self._findings, key=lambda finding: (finding.location.span.offset, finding.id)))

    def __len__(self) -> int:
        """How often any rule was met."""
        return self.counts.total()
