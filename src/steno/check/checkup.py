"""One file against all the rules."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from steno.check.evidence import AgentNote, Evidence, Watchers, gather_evidence
from steno.check.findings import Rule
from steno.check.rules import (
    chain,
    compaction,
    dialects,
    fields,
    ids,
    line,
    message,
    sidechain,
    time,
    tools,
    usage,
)
from steno.format.dialects.converted import ConvertedSource
from steno.format.dialects.detection import dialect_of_file
from steno.format.dialects.names import Dialect
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
    dialects,
)
"""The modules of rules. Each has RULES, and any of

    on_record(seen, findings)        for every record, or those that the module `wants`
    wants(kind, shape)               whether it does; the shape is known of plain lines only
    on_odd(seen, findings)           for records on lines that may have a flaw
    on_gap(gap, place, findings)     for bytes that are no record
    look(evidence)                   once, when all was read

Rules that remember what they saw of a file have these as methods of a class `Watch`, made anew for
every file."""
RULES: Final[dict[str, Rule]] = {rule.id: rule for family in FAMILIES for rule in family.RULES}
"""Every rule by its id."""


def _having(name: str) -> tuple[int, ...]:
    """Return the places of the families that do such a thing: asked once, not for every file."""
    return tuple(at for at, each in enumerate(_WATCHES) if hasattr(each, name))


_WATCHES: Final[tuple[Any, ...]] = tuple(getattr(each, "Watch", each) for each in FAMILIES)
"""What looks at one file for each family: its watch, or the module itself."""
_ON_RECORD: Final = tuple((at, getattr(FAMILIES[at], "wants", None)) for at in _having("on_record"))
_ON_ODD: Final = _having("on_odd")
_ON_GAP: Final = _having("on_gap")
_LOOKING: Final = _having("look")


def check(
    source: Source,
    *,
    name: str = "",
    agents: Sequence[AgentNote] | None = None,
    cap: int = LINE_CAP,
) -> Evidence:
    """Look at one file with every rule; the result's `findings` say what is wrong."""
    dialect = dialect_of_file(source, cap=cap)
    if dialect != "claude":
        return _check_dialect(source, dialect, name, cap)
    watching = [each() if isinstance(each, type) else each for each in _WATCHES]
    watchers = Watchers(
        tuple((watching[at].on_record, wants) for at, wants in _ON_RECORD),
        tuple(watching[at].on_odd for at in _ON_ODD),
        tuple(watching[at].on_gap for at in _ON_GAP),
    )
    evidence = gather_evidence(source, name=name, agents=agents, watchers=watchers, cap=cap)
    for at in _LOOKING:
        watching[at].look(evidence)
    evidence.settle()
    return evidence


def _check_dialect(source: Source, dialect: Dialect, name: str, cap: int) -> Evidence:
    """Look at a file that no client wrote, by the rules of lines and of its own description.

    The result has the converted file as its transcript, and places in the file as it is.
    """
    watch = line.Watch()
    watchers = Watchers((), (watch.on_odd,), (watch.on_gap,))
    original = gather_evidence(source, name=name, watchers=watchers, cap=cap)
    watch.look(original)
    if original.transcript.nodes:
        place = original.place(original.transcript.nodes[0])
        said = f"{fields.DIALECT.title}: {dialect}"
        original.findings.add(fields.DIALECT, place, said, mild=True)
    made = ConvertedSource(source, dialect, cap=cap)
    dialects.check_dialect(made, original.findings, cap=cap)
    evidence = gather_evidence(made, name=name, cap=cap)
    evidence.findings = original.findings
    evidence.as_written = original
    numbers = {
        node.offset: number
        for node, number in zip(original.transcript.nodes, original.lines, strict=True)
    }
    for node in evidence.transcript.nodes:
        place = made.original_span(node.offset).offset
        evidence.lines[node.index] = numbers.get(place, 0)
    return evidence
