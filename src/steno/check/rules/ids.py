"""Ids: of records, of the session, and of the file that should bear the session's."""

from typing import Final

from steno.check.alike import are_uuids
from steno.check.copies import collides, says_the_same
from steno.check.evidence import Evidence
from steno.check.findings import Place, Rule
from steno.format.paths import is_uuid
from steno.format.spans import Span
from steno.session.nodes import Node

__all__ = ["RULES", "is_agent_file", "look", "misnamed"]

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


def look(evidence: Evidence) -> None:
    """Compare ids within the file, and with its name."""
    _look_at_repeats(evidence)
    if not are_uuids(list(evidence.graph.by_uuid)):
        odd = [node for node in evidence.graph.members if not is_uuid(node.uuid or "")]
        many = f" and {len(odd) - 1:,} more are no UUIDs" if len(odd) > 1 else " is no UUID"
        evidence.note(BAD_UUID, odd[0], f"the id {odd[0].uuid!r}{many}")
    if misnamed(evidence):
        words = f"{evidence.name!r} is the session's id, but no UUID"
        evidence.findings.add(FILE_NAME, Place(1, Span(0, 0)), words)
    _look_at_sessions(evidence)


def is_agent_file(evidence: Evidence) -> bool:
    """Whether the file is a sub-agent's own, by its name."""
    return evidence.name.startswith("agent-")


def misnamed(evidence: Evidence) -> bool:
    """Whether the file bears a session id that no client accepts."""
    if not evidence.name or is_uuid(evidence.name) or is_agent_file(evidence):
        return False
    return evidence.name == _recorded_id(evidence)


def _recorded_id(evidence: Evidence) -> str:
    return next((node.session for node in evidence.transcript.nodes if node.session), "")


# Records


def _look_at_repeats(evidence: Evidence) -> None:
    record = evidence.transcript.record
    for earlier, last in evidence.graph.repeats:
        line = evidence.lines[last.index]
        mild = not evidence.graph.matters(last) and not evidence.graph.matters(earlier)
        if collides(earlier, last):
            rule, words = SNAPSHOT_COLLISION, f"a {last.type} on line {line} has the same id"
        elif says_the_same(record(earlier).fields, record(last).fields):
            moved = "" if earlier.parent == last.parent else ", with another parent"
            rule, words = DUPLICATE, f"the same record is on line {line} again{moved}"
        else:
            rule, words = CONFLICT, f"another record with this id is on line {line}"
        evidence.findings.add(rule, evidence.place(earlier), words, mild=mild)


# Sessions


def _look_at_sessions(evidence: Evidence) -> None:
    members = evidence.graph.members
    names = {node.session for node in members} - {""}
    if len(names) > 1:
        first, second, *more = _first_of_each(members)
        others = f" and {len(more):,} more" if more else ""
        joint = "," if more else " and"
        words = f"records name {first.session!r}{joint} {second.session!r}{others}"
        evidence.note(SEVERAL_SESSIONS, second, words)
    if names and is_uuid(evidence.name) and evidence.name not in names:
        first = next(node for node in members if node.session)
        evidence.note(SESSION_MISMATCH, first, f"records name {first.session!r}")


def _first_of_each(members: list[Node]) -> list[Node]:
    """Return the first record of each session that is named."""
    found: dict[str, Node] = {}
    for node in members:
        if node.session:
            found.setdefault(node.session, node)
    return list(found.values())
