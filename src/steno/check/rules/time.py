"""Timestamps of records."""

import re
from datetime import timedelta
from typing import Final

from steno.check.evidence import Evidence, RecordShape, RecordView, are_usual_times
from steno.check.findings import Findings, Rule
from steno.format.records import ROLES, read_time
from steno.session.transcript import Node

_MISSING: Final = Rule(
    "time.missing",
    "error",
    "a message has no timestamp",
    "2.1.200 and newer leave the message out; `steno repair` gives it a time between its neighbours",
    "A message needs its `timestamp` as ISO text. 2.1.200 and 2.1.325 leave out every message "
    "without one, and refuse the file when none is left. 2.1.42 loads only the first prompt, and "
    "2.0.76 crashes. Repair writes a time between those of the neighbours.",
)
_NUMBER: Final = Rule(
    "time.number",
    "error",
    "a timestamp is a number",
    "2.1.200 and newer leave the message out; `steno repair` writes it as ISO text",
    "Some descriptions of the format have milliseconds here; no client writes them. 2.0.76 and "
    "2.1.42 load such a message, 2.1.200 and 2.1.325 leave it out, and refuse the file when no "
    "other message is left. Repair writes the same moment as ISO text.",
)
_NOT_ISO: Final = Rule(
    "time.not-iso",
    "warning",
    "a timestamp is not ISO 8601 with a time zone",
    "readers guess the moment or take none; write it like 2026-11-15T05:00:01.000Z",
    "Every client writes UTC with milliseconds and a `Z`; an offset such as `+00:00` is read too. "
    "Text of another form is taken for local time, or for no time at all. A client that looks for "
    "a lost parent by time, or goes on from the latest record, then goes astray.",
)
_BACKWARDS: Final = Rule(
    "time.backwards",
    "info",
    "the clock went back by more than a minute",
    "the order of the file and of its timestamps differ; clients up to 2.1.42 go by the latter",
    "Records are appended as they happen, so times rise along the file; a few milliseconds back "
    "are common where hooks run. More than a minute means a clock that was set, or records that "
    "were copied or moved. Clients up to 2.1.42 go on from the record with the latest time, newer "
    "ones by the order of the file.",
)
RULES: Final[tuple[Rule, ...]] = (_MISSING, _NUMBER, _NOT_ISO, _BACKWARDS)

_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
).fullmatch
_TOLERANCE: Final = timedelta(seconds=60)


def applies_to(kind: str, shape: RecordShape | None) -> bool:
    """Say whether the time of such a record is no text; texts are looked at all together."""
    return shape is None or (kind in ROLES and not shape.has("timestamp", str))


def on_record(view: RecordView, findings: Findings) -> None:
    """Judge the time of a message that has none, or one that is no text."""
    node = view.node
    stamp = node.timestamp
    if node.is_message and not isinstance(stamp, str):
        rule = _MISSING if stamp is None else _NUMBER
        message = rule.title if stamp is None else f"{rule.title}: {stamp}"
        findings.defer(rule, view.location, message, node.index)


def on_end(evidence: Evidence) -> None:
    """Judge all times that are texts, alone and against the record before."""
    nodes = evidence.transcript.nodes
    stamps = [node.timestamp for node in nodes if isinstance(node.timestamp, str)]
    usual = are_usual_times(stamps)
    if usual and stamps == sorted(stamps):
        return
    before = ""
    for node in nodes:
        stamp = node.timestamp
        if not isinstance(stamp, str):
            continue
        if stamp < before or not (usual or are_usual_times((stamp,))):
            before = _check_time(stamp, before, node, evidence)
        elif node.uuid is not None:
            before = stamp


def _check_time(stamp: str, before: str, node: Node, evidence: Evidence) -> str:
    """Look closer at a time, and return what the next is to be held against."""
    time = read_time(stamp)
    if time is None or not _ISO(stamp):
        message = f"{_NOT_ISO.title}: {stamp:.40}"
        evidence.findings.defer(_NOT_ISO, evidence.location(node), message, node.index)
    if time is None or node.uuid is None:
        return before
    earlier = read_time(before)
    if earlier is not None and earlier - time > _TOLERANCE:
        back = int((earlier - time).total_seconds())
        evidence.add_finding(_BACKWARDS, node, f"the clock went back by {back:,} seconds")
    return time.isoformat(timespec="milliseconds")[:-6] + "Z"
