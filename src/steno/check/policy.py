"""What somebody made of the rules: which are silent, and which weigh more or less."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from steno.check.checkup import RULES
from steno.check.findings import SEVERITIES, Finding, Findings, Severity
from steno.errors import BadRequest

__all__ = ["Counts", "Policy", "make_policy"]

Counts = dict[tuple[str, Severity], int]
"""How often each rule was met, by its id and how much it weighs there."""
_NEAR: Final = 3
_ALL: Final = ".*"


class Policy(msgspec.Struct, frozen=True):
    """Rules that say nothing, and severities other than the rules' own. Made by `make_policy`."""

    silence: frozenset[str] = frozenset()
    severity: dict[str, Severity] = {}

    def weigh(self, rule_id: str, severity: Severity) -> Severity | None:
        """Return how much a finding weighs; None when nothing is to be said of it.

        Where a rule does no harm and is told as info, it stays so.
        """
        if rule_id in self.silence:
            return None
        rule = RULES.get(rule_id)
        if rule is not None and severity != rule.severity:
            return severity
        return self.severity.get(rule_id, severity)

    def apply(self, findings: Findings) -> tuple[tuple[Finding, ...], Counts]:
        """Return the findings that are left, as they weigh now, and how many there were."""
        kept: list[Finding] = []
        for found in findings:
            severity = self.weigh(found.id, found.severity)
            if severity is not None:
                kept.append(msgspec.structs.replace(found, severity=severity))
        counts: Counter[tuple[str, Severity]] = Counter()
        for (rule_id, said), number in findings.counts.items():
            severity = self.weigh(rule_id, said)
            if severity is not None:
                counts[rule_id, severity] += number
        return tuple(kept), dict(counts)


def make_policy(silence: Iterable[str] = (), severity: Mapping[str, str] | None = None) -> Policy:
    """Return the policy for rule ids as people write them; `family.*` is all of a family.

    Raises:
        BadRequest: there is no such rule, or no such severity.
    """
    weights: dict[str, Severity] = {}
    # The more particular name has the last word.
    for name, level in sorted((severity or {}).items(), key=lambda each: not _is_family(each[0])):
        weights.update(dict.fromkeys(_ids(name), _level(name, level)))
    return Policy(frozenset(each for name in silence for each in _ids(name)), weights)


def _is_family(name: str) -> bool:
    return name.endswith(_ALL)


def _ids(name: str) -> list[str]:
    if name in RULES:
        return [name]
    if _is_family(name):
        family = name.removesuffix(_ALL)
        if ids := [rule.id for rule in RULES.values() if rule.family == family]:
            return ids
    raise BadRequest(f"there is no rule {name!r}", hint=_near(name))


def _near(name: str) -> str:
    from difflib import get_close_matches

    families = dict.fromkeys(rule.family + _ALL for rule in RULES.values())
    near = get_close_matches(name, [*RULES, *families], _NEAR)
    more = [rule for rule in RULES if rule.partition(".")[2] == name.rpartition(".")[2]]
    names = list(dict.fromkeys([*more, *near]))[:_NEAR]
    return f"perhaps {' or '.join(names)}" if names else "`steno check --rules` lists them"


def _level(name: str, level: str) -> Severity:
    for severity in SEVERITIES:
        if level == severity:
            return severity
    raise BadRequest(
        f"{name} cannot be {level!r}", hint=f"a severity is one of {', '.join(SEVERITIES)}"
    )
