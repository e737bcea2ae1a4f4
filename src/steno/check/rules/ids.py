"""Ids of records, of the session and of its file; copies of records."""

from typing import Any, Final

from steno.check.evidence import Evidence, are_uuids
from steno.check.findings import Location, Rule
from steno.format.paths import is_uuid
from steno.format.source import Span
from steno.session.transcript import Node

_SNAPSHOT: Final = "file-history-snapshot"
_CONTENT_FIELDS: Final = ("type", "subtype", "message", "content", "attachment", "data")


def has_same_content(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two records say the same, whatever else differs: their place, their time, ….

    >>> has_same_content({"type": "user", "message": 1, "uuid": "a"}, {"type": "user", "message": 1})
    True
    """
    return [first.get(name) for name in _CONTENT_FIELDS] == [second.get(name) for name in _CONTENT_FIELDS]


def colliding_snapshots(earlier: Node, last: Node) -> list[Node]:
    """Return the snapshot of two records with one id, if the other is none."""
    if earlier.type == last.type:
        return []
    return [node for node in (earlier, last) if node.type == _SNAPSHOT]


DUPLICATE: Final = Rule(
    "ids.duplicate",
    "warning",
    "two records have one id, and say the same",
    "clients keep the last of them in the place of the first; `steno repair` leaves one",
    "Copying a session, merging two copies of it, or a client that wrote a line again leaves a "
    "record twice. Clients keep records by id: the last one in the file wins and takes the place "
    "of the first, so nothing is lost. 2.1.200 goes on from the last record of the file though, "
    "and sends only what leads up to it when that is a late copy. Repair keeps the first copy, whose "
    "place and time fit its neighbours, and leaves the others out.",
)
CONFLICT: Final = Rule(
    "ids.conflict",
    "error",
    "two records have one id, and say different things",
    "clients keep the last one only, the other is lost; `steno repair` sets the other aside",
    "An id names one record of a file. When two different records share one, every client keeps "
    "the last in the file, in the place of the first; what the first said is gone, and records "
    "that hung on it hang on the other. Tools that edit sessions without renaming the copies "
    "cause it. Repair sets the earlier record aside: it stays in the file, under a type that no client "
    "takes in, and the last keeps the id.",
)
BAD_UUID: Final = Rule(
    "ids.bad-uuid",
    "info",
    "ids are no UUIDs",
    "clients take any text as a record's id, other tools may not",
    "The real client writes a random UUID (version 4) as the id of each record. Clients that "
    "resume a file compare ids as text and take any. Files made by hand or by converters have "
    "been seen with other ids.",
)
FILE_NAME: Final = Rule(
    "ids.file-name",
    "error",
    "the file is named by a session id that is no UUID",
    "no client resumes it by that name; `steno repair` names it by a UUID",
    "A session is resumed by the name of its file, and every client refuses a name that is no "
    "UUID: 2.1.42 and older say that a valid session id is required, newer ones look for a "
    "session of that title besides. The ids inside the records do not matter. Renaming the file "
    "to any UUID is enough, which is what repair does.",
)
SESSION_MISMATCH: Final = Rule(
    "ids.session-mismatch",
    "info",
    "the records name another session than the file",
    "clients go by the name of the file; nothing is lost",
    "Each record names its session. In a file that was renamed or copied this differs from the "
    "name of the file. Clients go by the name, and write it into the records they append. Tools "
    "that group by the id in the records will put the session elsewhere.",
)
SEVERAL_SESSIONS: Final = Rule(
    "ids.several-sessions",
    "info",
    "the records name several sessions",
    "it holds records of another session: resumed by an old client, forked, or joined",
    "Clients of 1.0 copied a session's records into a new file when they resumed it, and kept the "
    "old id in the copies. Forks and joined files look alike. Clients do not look at the id when "
    "they resume.",
)
SNAPSHOT_COLLISION: Final = Rule(
    "ids.snapshot-collision",
    "warning",
    "a file snapshot has the id of another record",
    "readers that keep all records by id lose the other one; `steno repair` takes the id away",
    "A file-history snapshot names the message it belongs to in `messageId`, and has no id of its "
    "own. One with a `uuid` that a message has as well hides that message from readers that put "
    "every record into one table. The studied clients only look at messages, system records and "
    "attachments, and are not misled. Repair takes the `uuid` off the snapshot.",
)
RULES: Final[tuple[Rule, ...]] = (
    DUPLICATE,
    CONFLICT,
    BAD_UUID,
    FILE_NAME,
    SESSION_MISMATCH,
    SEVERAL_SESSIONS,
    SNAPSHOT_COLLISION,
)


def on_end(evidence: Evidence) -> None:
    """Compare ids within the file, and with its name."""
    _check_duplicates(evidence)
    if not are_uuids(list(evidence.graph.by_uuid)):
        not_uuids = [node for node in evidence.graph.members if not is_uuid(node.uuid or "")]
        rest = f" and {len(not_uuids) - 1:,} more are no UUIDs" if len(not_uuids) > 1 else " is no UUID"
        evidence.add_finding(BAD_UUID, not_uuids[0], f"the id {not_uuids[0].uuid!r}{rest}")
    if has_invalid_name(evidence):
        message = f"{evidence.name!r} is the session's id, but no UUID"
        evidence.findings.add(FILE_NAME, Location(1, Span(0, 0)), message)
    _check_sessions(evidence)


def is_agent_file(evidence: Evidence) -> bool:
    """Whether the file is a sub-agent's own, by its name."""
    return evidence.name.startswith("agent-")


def has_invalid_name(evidence: Evidence) -> bool:
    """Whether the file bears a session id that no client accepts."""
    if not evidence.name or is_uuid(evidence.name) or is_agent_file(evidence):
        return False
    return evidence.name == _recorded_id(evidence)


def _recorded_id(evidence: Evidence) -> str:
    return next((node.session for node in evidence.transcript.nodes if node.session), "")


# Records


def _check_duplicates(evidence: Evidence) -> None:
    record = evidence.transcript.record
    for earlier, last in evidence.graph.duplicates:
        line = evidence.lines[last.index]
        mild = not evidence.graph.is_relevant(last) and not evidence.graph.is_relevant(earlier)
        if colliding_snapshots(earlier, last):
            rule, message = SNAPSHOT_COLLISION, f"a {last.type} on line {line} has the same id"
        elif has_same_content(record(earlier).fields, record(last).fields):
            moved = "" if earlier.parent == last.parent else ", with another parent"
            rule, message = DUPLICATE, f"the same record is on line {line} again{moved}"
        else:
            rule, message = CONFLICT, f"another record with this id is on line {line}"
        evidence.findings.add(rule, evidence.location(earlier), message, mild=mild)


# Sessions


def _check_sessions(evidence: Evidence) -> None:
    members = evidence.graph.members
    names = {node.session for node in members} - {""}
    if len(names) > 1:
        first, second, *more = _first_per_session(members)
        more_text = f" and {len(more):,} more" if more else ""
        separator = "," if more else " and"
        message = f"records name {first.session!r}{separator} {second.session!r}{more_text}"
        evidence.add_finding(SEVERAL_SESSIONS, second, message)
    if names and is_uuid(evidence.name) and evidence.name not in names:
        first = next(node for node in members if node.session)
        evidence.add_finding(SESSION_MISMATCH, first, f"records name {first.session!r}")


def _first_per_session(members: list[Node]) -> list[Node]:
    """Return the first record of each session that is named."""
    first_nodes: dict[str, Node] = {}
    for node in members:
        if node.session:
            first_nodes.setdefault(node.session, node)
    return list(first_nodes.values())
