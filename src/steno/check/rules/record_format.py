"""Rules on single records: lines, fields and times."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from steno.check.evidence import INNER_FIELDS, Evidence, RecordShape, RecordView, RuleFamily, are_usual_times
from steno.check.findings import Findings, Location, error_rule, info_rule, rules_in, warning_rule
from steno.format.catalogue import Field, Fields, JsonType, catalogue, json_type
from steno.format.lenient_json import MAX_DEPTH, as_object
from steno.format.records import PUBLISHED_DESCRIPTIONS_PAGE, ROLES, Gap, read_time
from steno.format.salvage import find_flaws
from steno.format.source import Damage
from steno.session.transcript import Node

_LINE_RULES: Final = {
    rule.id: rule
    for rule in (
        error_rule(
            "line.torn",
            "a record was cut off",
            "what it said is lost; `steno repair` takes the fragment out",
            "The writer was stopped inside a line: a crash, a full disk, a killed process. No client "
            "can read the fragment, and all pass over it. When it is the last line, clients before "
            "2.1.325 write their next record right behind it and lose that one too. Repair takes the "
            "fragment out; what was never written cannot be brought back.",
        ),
        error_rule(
            "line.glued",
            "two records stand on one line",
            "clients lose at least one of them; `steno repair` puts the newline back",
            "A newline is missing between two records. Clients up to 2.1.200 write so when they go on "
            "with a file that did not end in a newline, and so do tools that join files. The clients "
            "read line by line: 2.1.325 takes the first record of such a line, older ones neither. "
            "Repair puts the newline back, and both are read again.",
        ),
        error_rule(
            "line.spliced",
            "a whole record stands behind a cut-off one on the same line",
            "no client reads it; `steno repair` gives it a line of its own",
            "A record was cut off and the next was written right behind the fragment. The line as a "
            "whole is no JSON, so every client passes over it and the sound record is lost with the "
            "broken one. Repair takes the fragment out and keeps the record.",
        ),
        error_rule(
            "line.nul-run",
            "zero bytes stand in the file",
            "clients lose the record behind them; `steno repair` takes them out",
            "The file system lost what was written shortly before a crash and left zeros in its place. "
            "Where a record follows on the same line, no client can read that line. Repair takes the "
            "zeros out and keeps the record; what the zeros replaced is gone.",
        ),
        error_rule(
            "line.not-json",
            "a line is not JSON",
            "every client passes over it; `steno repair` takes it out",
            "The line holds something that no reader takes for a record: the end of a record whose "
            "beginning is lost, or text of another program. Clients pass over it in silence. If a "
            "record stood there once, its children name a parent that is not in the file.",
        ),
        error_rule(
            "line.control",
            "a string holds a raw control character",
            "the real client skips this line; `steno repair` escapes the character",
            "JSON wants control characters inside strings to be escaped. Python can write and read "
            "them raw, the real client cannot: it passes over the whole line, and the record is lost. "
            "Repair writes the record again with the character escaped.",
        ),
        error_rule(
            "line.number",
            "a number is one that JSON does not have",
            "the real client skips this line; `steno repair` writes null in its place",
            "`NaN` and `Infinity` are written by some libraries, but they are not JSON. The real client passes over "
            "the whole line, and the record is lost. Repair writes null, as JavaScript itself would have done.",
        ),
        warning_rule(
            "line.utf8",
            "bytes are not UTF-8",
            "readers show a replacement character or refuse the line",
            "The bytes were cut inside a character, or written in another encoding. The real client "
            "reads a replacement character instead of each; strict readers refuse the line. What stood "
            "there cannot be told from the file.",
        ),
        warning_rule(
            "line.surrogate",
            "a string holds half of a surrogate pair",
            "the real client reads it, other readers and the API may refuse it",
            "A character beyond the first 65,536 was cut in two, mostly by shortening a text by its "
            "length in JavaScript. JavaScript can hold the half, UTF-8 cannot: a request with it in it "
            "may be refused, and strict readers refuse the line.",
        ),
        warning_rule(
            "line.oversize",
            "a line is longer than 64 MiB and was not read",
            "nothing is known of what it holds, and it is kept as it is; records that hang on it seem to have no parent",
            "Reading a line takes memory in proportion to its length, so lines beyond 64 MiB are passed over. Nothing "
            "else is said about such a line; its record may be sound, and records that hang on it seem to have no "
            "parent. Clients have no such limit. Repair keeps the line, and does not bridge over it.",
        ),
        warning_rule(
            "line.depth",
            "a line nests deeper than readers can be expected to follow",
            "no client writes this; readers may fail on it",
            "Many decoders go down one call for each level and give up, or crash, beyond some depth. "
            "No client writes anything of the kind, so the line was made by hand or to do harm.",
        ),
        warning_rule(
            "line.duplicate-key",
            "a key stands twice in one object",
            "readers differ in which value they take; the real client takes the last",
            "JSON does not say what a repeated key means. JavaScript and Python take the last value, "
            "some readers the first, and some refuse the line. No client writes it.",
        ),
        warning_rule(
            "line.not-object",
            "a line is JSON, but not an object",
            "every client passes over it",
            "Every record is an object. A line that holds a list, a string or a number was not written "
            "by a client; all of them pass over it.",
        ),
        info_rule(
            "line.bom",
            "the file begins with a byte order mark",
            "harmless: the clients read past it",
            "Some editors on Windows put it there. The clients read past it; tools that decode the "
            "first line as it is may not.",
        ),
        info_rule(
            "line.crlf",
            "lines end as on Windows",
            "harmless: the clients read past it",
            "The file went through an editor or a tool that changes line endings. The clients read "
            "such lines. It is said once per file.",
        ),
        info_rule(
            "line.bigint",
            "an integer is too big for JavaScript",
            "the real client reads a number near it",
            "JavaScript holds integers exactly up to 9,007,199,254,740,992. A bigger one loses its last "
            "digits when the real client reads it, and when it writes the value back.",
        ),
        info_rule(
            "line.no-newline",
            "the file does not end in a newline",
            "clients before 2.1.325 glue their next record onto the last line; go on with a newer one",
            "The last record is whole and every client reads it. 2.1.325 writes a newline before it "
            "goes on; 2.0.76, 2.1.42 and 2.1.200 do not, so their first new record ends up on the same "
            "line, and both are lost to older clients. Nothing is damaged yet: repair leaves such a file as "
            "it is, and parts the records once they are glued.",
        ),
    )
}
_ONCE_PER_FILE: Final = frozenset(("line.crlf",))
# The zeros have a gap of their own, which was noted already.
_GAP_RULES: Final = frozenset(("line.nul-run",))

_encode: Final = msgspec.json.Encoder().encode
_MANY_DIGITS: Final = b"0" * 16
# One pass over the bytes for two questions: digits become 0, opening brackets become (.
_SHAPE: Final = bytes(
    ord("0") if byte in b"0123456789" else ord("(") if byte in b"[{" else ord(" ") for byte in range(256)
)


class LineRules(RuleFamily):
    """Lines: bytes that are not a sound line of JSON, and flaws inside lines that are."""

    rules = tuple(_LINE_RULES.values())

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def on_gap(self, gap: Gap, location: Location, findings: Findings) -> None:
        """Turn what is wrong with bytes that are no record into findings."""
        for note in gap.damage:
            self._add(note, location, findings)

    def on_irregular(self, view: RecordView, findings: Findings) -> None:
        """Turn what was noted about a record, or is odd inside its line, into findings."""
        record = view.record
        for note in record.notes:
            if note.id not in _GAP_RULES:
                self._add(note, view.location, findings)
        if not _is_sound(view):
            for note in find_flaws(record.line, record.offset):
                self._add(note, view.location, findings)

    def on_end(self, evidence: Evidence) -> None:
        """Say whether the last line was left open; a cut-off one was noted already."""
        nodes, gaps = evidence.transcript.nodes, evidence.transcript.gaps
        source = evidence.transcript.source
        if not nodes or source.read(source.size - 1, 1) == b"\n":
            return
        if gaps and gaps[-1].damage and gaps[-1].offset > nodes[-1].offset:
            return
        evidence.add_finding(_LINE_RULES["line.no-newline"], nodes[-1])

    def _add(self, note: Damage, location: Location, findings: Findings) -> None:
        rule = _LINE_RULES[note.id]
        if rule.id in _ONCE_PER_FILE:
            if rule.id in self._reported:
                return
            self._reported.add(rule.id)
        message = f"{rule.title}: {note.message}" if note.message else rule.title
        findings.add(rule, Location(location.line, note.span, location.uuid), message)


def _is_sound(view: RecordView) -> bool:
    """Whether a line certainly has no flaw; far cheaper than looking for one.

    A line that is the same when it is written again has no key twice and no odd escape.
    """
    line = view.record.line
    try:
        if _encode(view.fields) != line:
            return False
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return False
    shape = line.translate(_SHAPE)
    return _MANY_DIGITS not in shape and shape.count(b"(") <= MAX_DEPTH


_NO_TYPE: Final = error_rule(
    "fields.no-type",
    "a record has no type",
    "every client passes over it",
    "Every record says by its `type` what it is. A record without one is passed over by every "
    "client; when it was part of the conversation, what hangs on it has no parent. One that has "
    "neither an id nor a message is no part of it, and harmless.",
)
_NO_UUID: Final = error_rule(
    "fields.no-uuid",
    "a message has no id",
    "no client takes it in; `steno repair` gives it one",
    "Messages are found by their `uuid`. One without it cannot be reached from any other, and "
    "every client leaves it out. Repair gives it an id and hangs its successor on it.",
)
_NO_PARENT: Final = error_rule(
    "fields.no-parent",
    "a message does not say what it follows",
    "clients begin the conversation here; `steno repair` hangs it on the message before",
    "`parentUuid` names the record before, and is null on the first. Clients take a message without the field for a "
    "beginning, and all that stands before it is not sent. Repair hangs the message on the one before it in the file.",
)
_NO_MESSAGE: Final = error_rule(
    "fields.no-message",
    "a record of the conversation has no message",
    "no client takes it in; `steno repair` takes it out of the chain",
    "The record of a user or an assistant holds what was said under `message`. 2.1.325 leaves out a record without it.",
)
DIALECT: Final = error_rule(
    "fields.dialect",
    "records are in a form that no client writes or resumes",
    "no client resumes them; `steno repair` writes them in the real client's form",
    "Two published descriptions of the format differ from what clients write: one has messages as plain strings and "
    "`toolName`, the other the types `human` and `tool_result` and times in milliseconds. Tools were built from them. "
    "No client resumes such a file: 2.1.325 says that there is no conversation, 2.1.42 crashes. A file of such "
    "records is converted for everything that steno shows, checked by the rules of its own description, and this is "
    "an info; in a file of the real client it is an error. It is said once per file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_BACKUP_TEXT: Final = info_rule(
    "fields.backup-text",
    "a file-history-snapshot holds text where the client names a backup",
    "clients do not take the text for a backup, so /rewind does not restore the file",
    "`snapshot.trackedFileBackups` names for each file a backup under `file-history`: `{backupFileName, version, "
    "backupTime}`. One published description has the content of the file there. It is said once per file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_MISSING: Final = info_rule(
    "fields.missing",
    "a field is missing that this kind of record always had",
    "no client needs it to resume; tools may",
    "The catalogue knows which fields stood on every record of a kind, in each version. The client resumes without "
    "them, but tools that read sessions may count on them. It is said once per kind and field.",
)
_TYPE: Final = info_rule(
    "fields.type",
    "a field holds another type of value than it always did",
    "no client minds as far as is known; tools may",
    "The catalogue knows the JSON types each field was seen with. Another one means a newer "
    "client, another writer, or a change by hand. It is said once per kind and field.",
)

# Other rules speak of these, where they matter more.
_CHECKED_ELSEWHERE: Final = frozenset(("type", "uuid", "parentUuid", "message", "timestamp"))
_EXAMPLES: Final[tuple[Any, ...]] = (None, True, 0, 0.0, "", {}, [])
_JSON_TYPES: Final[dict[type, JsonType]] = {type(each): json_type(each) for each in _EXAMPLES}
_MAX_VARIANTS: Final = 10_000


_OddField: TypeAlias = tuple[str, JsonType, tuple[JsonType, ...]]
"""The name of a field, the type of its value, and the types that the catalogue knows."""


class FieldRules(RuleFamily):
    """Fields: those that records need, and those that differ from the catalogue."""

    rules = rules_in(globals(), "fields")

    def __init__(self) -> None:
        self._seen_variants: set[tuple[Any, ...]] = set()
        self._reported: set[tuple[str, str, str]] = set()
        self._version = ""
        self._has_message = False
        self._has_backup_text = False

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Judge one record; one that looks like an earlier one costs a look into a set."""
        node = view.node
        version = self._version = node.version or self._version
        if node.type in ROLES:
            if node.uuid is None or not view.shape.is_linked:
                self._check_message(view, findings)
            self._has_message = True
        elif node.type == "file-history-snapshot" and not self._has_backup_text:
            self._has_backup_text = _has_backup_text(view.fields)
            if self._has_backup_text:
                findings.add(_BACKUP_TEXT, view.location)
        variant = (view.shape, version, _variant(view))
        if variant in self._seen_variants:
            return
        if len(self._seen_variants) >= _MAX_VARIANTS:
            self._seen_variants.clear()
        self._check_against_catalogue(view, findings)
        if node.type:
            self._seen_variants.add(variant)

    def _check_message(self, view: RecordView, findings: Findings) -> None:
        node, fields = view.node, view.fields
        mild = node.sidechain
        if node.uuid is None:
            findings.add(_NO_UUID, view.location, mild=mild)
        if "parentUuid" not in fields and self._has_message:
            findings.add(_NO_PARENT, view.location, mild=mild)
        if "message" not in fields:
            findings.add(_NO_MESSAGE, view.location, mild=mild)

    def _check_against_catalogue(self, view: RecordView, findings: Findings) -> None:
        fields = view.fields
        if not view.node.type:
            findings.add(_NO_TYPE, view.location, mild=not ("uuid" in fields or "message" in fields))
            return
        kind = view.kind
        missing, odd = _compare_with_catalogue(kind, self._version, view.shape)
        for name in missing:
            if self._is_new("missing", kind, name):
                findings.add(_MISSING, view.location, f"{kind} without {name}")
        for name, actual_type, known in odd:
            if self._is_new("type", kind, name):
                message = f"{name} of {kind} is {actual_type}, not {' or '.join(known)}"
                findings.add(_TYPE, view.location, message)

    def _is_new(self, topic: str, kind: str, name: str) -> bool:
        key = (topic, kind, name)
        if key in self._reported:
            return False
        self._reported.add(key)
        return True


def _has_backup_text(fields: dict[str, Any]) -> bool:
    """Whether a snapshot has the content of a file, as one published description has it."""
    backups: Any = (as_object(fields.get("snapshot")) or {}).get("trackedFileBackups")
    return any(isinstance(backup, str) for backup in (as_object(backups) or {}).values())


def _variant(view: RecordView) -> Any:
    """Return what tells kinds of one type apart beside their top level, as cheaply as can be."""
    node = view.node
    kind = node.type
    if kind == "assistant":
        content = view.message.get("content") if view.message else None
        return _inner_type(content[0]) if content and content.__class__ is list else None
    if kind == "user":
        return (1 if node.results else 0) + (2 if node.meta else 0)
    if kind in INNER_FIELDS:
        return _inner_type(view.fields.get(INNER_FIELDS[kind]))
    operation = view.fields.get("operation")
    return operation if isinstance(operation, str) else None


def _inner_type(value: Any) -> str | None:
    kind = value.get("type") if value.__class__ is dict else None
    return kind if kind.__class__ is str else None


@lru_cache(maxsize=4_096)
def _compare_with_catalogue(
    kind: str, version: str, shape: RecordShape
) -> tuple[tuple[str, ...], tuple[_OddField, ...]]:
    """Return the fields that are missing at the top level of a record, and those with a type that is not known."""
    known = _known_fields(kind)
    if known is None:
        return (), ()
    passed_over = _CHECKED_ELSEWHERE
    if not kind.startswith(("user/", "assistant/")):
        passed_over -= {"uuid", "parentUuid", "timestamp"}
    missing = tuple(
        name
        for name, field in known.items()
        if name not in shape.names and name not in passed_over and _is_required(field, version)
    )
    return missing, tuple(_unexpected_types(known, shape, passed_over))


def _unexpected_types(known: Fields, shape: RecordShape, passed_over: frozenset[str]) -> Iterator[_OddField]:
    for name, kind in zip(shape.names, shape.types, strict=True):
        field = known.get(name)
        actual = _JSON_TYPES[kind]
        if field and field.types and actual not in field.types and name not in passed_over:
            yield name, actual, field.types


@lru_cache(maxsize=1_024)
def _known_fields(kind: str) -> Fields | None:
    entry = catalogue().kind(kind, "claude")
    return catalogue().fields(entry) if entry else None


def _is_required(field: Field, version: str) -> bool:
    """Whether the version is known to write the field always; of no version, all must."""
    if field.optional or field.claimed:
        return False
    if version:
        return field.known_in(version)
    driven = catalogue().client_versions.driven
    return field.known_in(driven[0]) and field.known_in(driven[-1])


_NO_TIME: Final = error_rule(
    "time.missing",
    "a message has no timestamp",
    "2.1.200 and newer leave the message out; `steno repair` gives it a time between its neighbours",
    "A message needs its `timestamp` as ISO text. 2.1.200 and 2.1.325 leave out every message "
    "without one, and refuse the file when none is left. 2.1.42 loads only the first prompt, and "
    "2.0.76 crashes. Repair writes a time between those of the neighbours.",
)
_NUMBER: Final = error_rule(
    "time.number",
    "a timestamp is a number",
    "2.1.200 and newer leave the message out; `steno repair` writes it as ISO text",
    "Some descriptions of the format have milliseconds here; no client writes them. 2.0.76 and "
    "2.1.42 load such a message, 2.1.200 and 2.1.325 leave it out, and refuse the file when no "
    "other message is left. Repair writes the same moment as ISO text.",
)
_NOT_ISO: Final = warning_rule(
    "time.not-iso",
    "a timestamp is not ISO 8601 with a time zone",
    "readers guess the moment or take none; write it like 2026-11-15T05:00:01.000Z",
    "Every client writes UTC with milliseconds and a `Z`; an offset such as `+00:00` is read too. "
    "Text of another form is taken for local time, or for no time at all. A client that looks for "
    "a lost parent by time, or goes on from the latest record, then goes astray.",
)
_BACKWARDS: Final = info_rule(
    "time.backwards",
    "the clock went back by more than a minute",
    "the order of the file and of its timestamps differ; clients up to 2.1.42 go by the latter",
    "Records are appended as they happen, so times rise along the file; a few milliseconds back are common where "
    "hooks run. More than a minute means a clock that was set, or records that were copied or moved. Clients up to "
    "2.1.42 go on from the record with the latest time, newer ones by the order of the file.",
)

_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
).fullmatch
_TOLERANCE: Final = timedelta(seconds=60)


class TimeRules(RuleFamily):
    """Timestamps of records."""

    rules = rules_in(globals(), "time")

    @staticmethod
    def applies_to(kind: str, shape: RecordShape | None) -> bool:
        """Say whether the time of such a record is no text; texts are looked at all together."""
        return shape is None or (kind in ROLES and not shape.has("timestamp", str))

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Judge the time of a message that has none, or one that is no text."""
        node = view.node
        stamp = node.timestamp
        if node.is_message and not isinstance(stamp, str):
            rule = _NO_TIME if stamp is None else _NUMBER
            message = rule.title if stamp is None else f"{rule.title}: {stamp}"
            findings.defer(rule, view.location, message, node.index)

    def on_end(self, evidence: Evidence) -> None:
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
