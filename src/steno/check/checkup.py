"""One file against all the rules."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from steno.check.evidence import AgentNote, Evidence, Watchers, gather_evidence
from steno.check.findings import Rule
from steno.check.rules import (
    chain,
    compaction,
    fields,
    ids,
    line,
    message,
    sidechain,
    time,
    tools,
    usage,
)
from steno.format.lines import LINE_CAP
from steno.format.source import Source

__all__ = ["FAMILIES", "RULES", "check"]

FAMILIES: Final[tuple[ModuleType, ...]] = (
    line,
    ids,
    chain,
    tools,
    message,
    sidechain,
    time,
    compaction,
    usage,
    fields,
)
"""The modules of rules. Each has RULES, and any of

    on_record(seen, findings)        for every record, or those whose type is in `TYPES`
    on_odd(seen, findings)           for records on lines that may have a flaw
    on_gap(gap, place, findings)     for bytes that are no record
    look(evidence)                   once, when all was read

Rules that remember what they saw of a file have these as methods of a class `Watch`, made anew for
every file."""
RULES: Final[dict[str, Rule]] = {rule.id: rule for family in FAMILIES for rule in family.RULES}
"""Every rule by its id."""


def check(
    source: Source,
    *,
    name: str = "",
    agents: Sequence[AgentNote] | None = None,
    cap: int = LINE_CAP,
) -> Evidence:
    """Look at one file with every rule; the result's `findings` say what is wrong."""
    watching = [_watch(family) for family in FAMILIES]
    watchers = Watchers(
        tuple((each.on_record, types) for each, types in _reading(watching)),
        _having(watching, "on_odd"),
        _having(watching, "on_gap"),
    )
    evidence = gather_evidence(source, name=name, agents=agents, watchers=watchers, cap=cap)
    for look in _having(watching, "look"):
        look(evidence)
    evidence.settle()
    return evidence


def _watch(family: ModuleType) -> object:
    """Return what looks at one file for a family: its watch, or the module itself."""
    return family.Watch() if hasattr(family, "Watch") else family


def _reading(watching: Sequence[object]) -> list[tuple[Any, frozenset[str] | None]]:
    """Return those that look at single records, with the types they look at."""
    return [(each, getattr(each, "TYPES", None)) for each in watching if hasattr(each, "on_record")]


def _having(watching: Sequence[object], name: str) -> tuple[Callable[..., Any], ...]:
    return tuple(getattr(each, name) for each in watching if hasattr(each, name))
