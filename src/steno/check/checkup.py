"""One file against all the rules."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from steno.check.evidence import AgentNote, Evidence, OnRecord, Watchers, gather_evidence
from steno.check.findings import Findings, Place, Rule
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
from steno.check.seen import Seen
from steno.format.dialects.converted import ConvertedSource
from steno.format.dialects.detection import begins_in_dialect, convert_source
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
    if begins_in_dialect(source, cap=cap):
        return _check_converted(source, name, agents, cap)
    watching = _watches()
    watchers = Watchers(
        tuple((watching[at].on_record, wants) for at, wants in _ON_RECORD),
        tuple(watching[at].on_odd for at in _ON_ODD),
        tuple(watching[at].on_gap for at in _ON_GAP),
    )
    evidence = gather_evidence(source, name=name, agents=agents, watchers=watchers, cap=cap)
    if evidence.transcript.has_dialect:
        return _check_converted(source, name, agents, cap)
    for at in _LOOKING:
        watching[at].look(evidence)
    evidence.settle()
    return evidence


def _watches() -> list[Any]:
    return [each() if isinstance(each, type) else each for each in _WATCHES]


def _check_converted(
    source: Source, name: str, agents: Sequence[AgentNote] | None, cap: int
) -> Evidence:
    """Look at a file with records that no client wrote.

    Lines are judged as they are, records in a dialect by the rules of its description. In a file of
    the real client all else is judged by the client's rules, on the converted file. The result has
    the converted file as its transcript, and places in the file as it is.
    """
    watch = line.Watch()
    watchers = Watchers((), (watch.on_odd,), (watch.on_gap,))
    original = gather_evidence(source, name=name, watchers=watchers, cap=cap)
    watch.look(original)
    made = convert_source(source, cap=cap)
    dialects.check_dialect(made, original.findings, cap=cap)
    watching = _watches()
    own = made.dialect == "claude"
    rules = (
        tuple((_of_client(made, watching[at].on_record), wants) for at, wants in _ON_RECORD)
        if own
        else ()
    )
    evidence = gather_evidence(made, name=name, agents=agents, watchers=Watchers(rules), cap=cap)
    numbers = {
        node.offset: number
        for node, number in zip(original.transcript.nodes, original.lines, strict=True)
    }
    for node in evidence.transcript.nodes:
        at = made.original_span(node.offset).offset
        evidence.lines[node.index] = numbers.get(at, 0)
    if own:
        for at in _LOOKING:
            if not isinstance(watching[at], line.Watch):
                watching[at].look(evidence)
        evidence.settle()

    def place_of(place: Place) -> Place:
        span = made.original_span(place.span.offset)
        return Place(numbers.get(span.offset, place.line), span, place.uuid)

    original.findings.take_over(evidence.findings, place_of)
    evidence.findings = original.findings
    evidence.as_written = original
    return evidence


def _of_client(made: ConvertedSource, look: OnRecord) -> OnRecord:
    """Return what looks at records of the real client only."""

    def on_record(seen: Seen, findings: Findings) -> None:
        if made.is_client(seen.node.offset):
            look(seen, findings)

    return on_record
