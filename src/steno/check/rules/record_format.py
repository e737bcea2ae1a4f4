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
            "Truncated record",
            "The content of the record is lost. Run `steno repair SESSION` to remove the fragment.",
            "The writer was stopped inside a line by a crash, a full disk or a killed process. Claude Code "
            "cannot read the fragment and skips it. If it is the last line, versions before 2.1.325 append "
            "their next record directly to it and lose that record too. Repair removes the fragment; its "
            "missing part cannot be recovered.",
        ),
        error_rule(
            "line.glued",
            "Two records on one line",
            "Claude Code loses at least one of them. Run `steno repair SESSION` to insert the missing newline.",
            "A newline is missing between two records. Claude Code 2.1.200 and older cause this when they "
            "continue a file that does not end in a newline, and so do tools that join files. Claude Code "
            "reads line by line: 2.1.325 reads the first record of such a line, older versions neither. Repair "
            "inserts the newline, so that both are read again.",
        ),
        error_rule(
            "line.spliced",
            "Complete record after a truncated one",
            "Claude Code skips both. Run `steno repair SESSION` to move the complete record to its own line.",
            "A record was cut off and the next one was written directly after the fragment. The line as a "
            "whole is not valid JSON, so Claude Code skips it and the complete record is lost as well. Repair "
            "removes the fragment and keeps the record.",
        ),
        error_rule(
            "line.nul-run",
            "Zero bytes in the file",
            "Claude Code loses the record after the zero bytes. Run `steno repair SESSION` to remove the bytes.",
            "The file system lost data written shortly before a crash and left zeros instead. If a record "
            "follows on the same line, Claude Code cannot read that line. Repair removes the zeros and keeps "
            "the record; the replaced data cannot be recovered.",
        ),
        error_rule(
            "line.not-json",
            "Line is not JSON",
            "Claude Code skips the line. Run `steno repair SESSION` to remove it.",
            "The line is not a record: it is the end of a record whose start is lost, or output of another "
            "program. Claude Code skips it without a message. If the line was a record, its children refer to "
            "a parent that is not in the file.",
        ),
        error_rule(
            "line.control",
            "Unescaped control character in a string",
            "Claude Code skips the line. Run `steno repair SESSION` to escape the character.",
            "JSON requires control characters in strings to be escaped. Python can write and read them "
            "unescaped, but Claude Code skips the whole line, and the record is lost. Repair rewrites the "
            "record with the character escaped.",
        ),
        error_rule(
            "line.number",
            "Number that JSON does not allow",
            "Claude Code skips the line. Run `steno repair SESSION` to replace the number with null.",
            "Some libraries write `NaN` and `Infinity`, which are not valid JSON. Claude Code skips the whole "
            "line, and the record is lost. Repair writes null, as JavaScript does.",
        ),
        warning_rule(
            "line.utf8",
            "Invalid UTF-8",
            "Readers show a replacement character or reject the line. Run `steno repair SESSION` to replace "
            "the invalid bytes.",
            "The bytes were cut inside a character or written in another encoding. Claude Code reads a "
            "replacement character for each; strict readers reject the line. The original characters cannot be "
            "recovered from the file.",
        ),
        warning_rule(
            "line.surrogate",
            "Unpaired surrogate in a string",
            "Claude Code reads the line; other readers and the API may reject it. Run `steno repair SESSION` "
            "to replace the surrogate.",
            "A character beyond U+FFFF was split, usually by truncating a text by its length in JavaScript. "
            "JavaScript can represent an unpaired surrogate, UTF-8 cannot: the API may reject a request that "
            "contains it, and strict readers reject the line.",
        ),
        warning_rule(
            "line.oversize",
            "Line longer than 64 MiB",
            "The line is not read, so records after it may appear to have no parent. Repair keeps the line.",
            "Memory use grows with the length of a line, so lines longer than 64 MiB are skipped and not "
            "checked further. The record may be valid, and its children appear to have no parent. Claude Code "
            "has no such limit. Repair keeps the line and does not relink its children.",
        ),
        warning_rule(
            "line.depth",
            "Excessive nesting",
            "Claude Code does not write such lines, and readers may fail on them. Check where the file comes from.",
            "Many decoders recurse for each level and fail or crash beyond some depth. Claude Code does not "
            "write such lines, so the line was written by hand or with malicious intent.",
        ),
        warning_rule(
            "line.duplicate-key",
            "Duplicate key in an object",
            "Claude Code uses the last value; other readers may use another. No action is needed.",
            "JSON does not define the meaning of duplicate keys. JavaScript and Python use the last value, "
            "some readers use the first, and some reject the line. Claude Code does not write such lines.",
        ),
        warning_rule(
            "line.not-object",
            "Line is JSON but not an object",
            "Claude Code skips the line. No action is needed.",
            "Every record is an object. Claude Code does not write lines with a list, a string or a number, "
            "and skips them.",
        ),
        info_rule(
            "line.bom",
            "Byte order mark",
            "Claude Code ignores the mark. No action is needed.",
            "Some editors on Windows insert a byte order mark. Claude Code ignores it; other tools may fail to decode the first line.",
        ),
        info_rule(
            "line.crlf",
            "Windows line endings",
            "Claude Code accepts these line endings. No action is needed.",
            "An editor or tool changed the line endings of the file. Claude Code reads such lines. Reported "
            "once per file.",
        ),
        info_rule(
            "line.bigint",
            "Integer too large for JavaScript",
            "Claude Code reads an approximate number. No action is needed.",
            "JavaScript represents integers exactly up to 9,007,199,254,740,992. A larger one loses its last "
            "digits when Claude Code reads it and writes it back.",
        ),
        info_rule(
            "line.no-newline",
            "No newline at the end of the file",
            "Claude Code before 2.1.325 appends its next record to the last line. Resume with a newer version.",
            "The last record is complete and readable. Claude Code 2.1.325 writes a newline before it "
            "continues; 2.0.76, 2.1.42 and 2.1.200 do not, so their first new record is on the same line, and "
            "older versions lose both. The file is not damaged yet: repair leaves it unchanged, and splits the "
            "records if they are on one line.",
        ),
    )
}
_ONCE_PER_FILE: Final = frozenset(("line.crlf",))
# The gap of the zero bytes has this finding already.
_GAP_RULES: Final = frozenset(("line.nul-run",))

_encode: Final = msgspec.json.Encoder().encode
_MANY_DIGITS: Final = b"0" * 16
# Translates bytes for two checks at once: digits to 0, opening brackets to "(".
_SHAPE: Final = bytes(
    ord("0") if byte in b"0123456789" else ord("(") if byte in b"[{" else ord(" ") for byte in range(256)
)


class LineRules(RuleFamily):
    """Lines that are not valid JSON records, and flaws inside valid lines."""

    rules = tuple(_LINE_RULES.values())

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def on_gap(self, gap: Gap, location: Location, findings: Findings) -> None:
        """Report the damage of bytes that are not a record."""
        for note in gap.damage:
            self._add(note, location, findings)

    def on_irregular(self, view: RecordView, findings: Findings) -> None:
        """Report the notes on a record, and flaws inside its line."""
        record = view.record
        for note in record.notes:
            if note.id not in _GAP_RULES:
                self._add(note, view.location, findings)
        if not _is_sound(view):
            for note in find_flaws(record.line, record.offset):
                self._add(note, view.location, findings)

    def on_end(self, evidence: Evidence) -> None:
        """Report a missing newline at the end of the file, unless the last line is truncated."""
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
    """Return whether a line certainly has no flaw: a fast check before the full one.

    A line that encodes to the same bytes has no duplicate keys and no unusual escapes.
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
    "Missing record type",
    "Claude Code skips the record. Run `steno repair SESSION` to restore the type or to set the record aside.",
    "`type` defines the kind of a record. Claude Code skips a record without it; if it was part of the "
    "conversation, its children have no parent. A record that has neither an ID nor a message is not part of "
    "the conversation, and harmless.",
)
_NO_UUID: Final = error_rule(
    "fields.no-uuid",
    "Message without an ID",
    "Claude Code skips the message. Run `steno repair SESSION` to give it an ID.",
    "Records refer to messages by `uuid`. A message without one cannot be a parent, and Claude Code skips it. "
    "Repair gives it an ID and relinks the next record to it.",
)
_NO_PARENT: Final = error_rule(
    "fields.no-parent",
    "Message without a parentUuid field",
    "Claude Code drops everything before this message. Run `steno repair SESSION` to relink it to the previous "
    "message.",
    "`parentUuid` names the previous record, and is null for the first. Claude Code starts the conversation at "
    "a message without the field, and does not send anything before it. Repair relinks the message to the "
    "previous one in the file.",
)
_NO_MESSAGE: Final = error_rule(
    "fields.no-message",
    "Conversation record without a message",
    "Claude Code skips the record. Run `steno repair SESSION` to remove it from the chain.",
    "A user or assistant record contains its content under `message`. Claude Code 2.1.325 skips a record without it.",
)
DIALECT: Final = error_rule(
    "fields.dialect",
    "Records in a format that Claude Code does not read",
    "Claude Code does not resume these records. Run `steno repair SESSION` to convert them.",
    "Two published descriptions of the format differ from Claude Code: one has messages as plain strings and "
    "`toolName`, the other has the types `human` and `tool_result` and times in milliseconds. Some tools "
    "follow them. Claude Code does not resume such a file: 2.1.325 reports that there is no conversation, "
    "2.1.42 crashes. steno converts such records for display and checks them against their description. If "
    "a file contains only such records, this finding has severity info; in a Claude Code file, it is an error. "
    "Reported once per file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_BACKUP_TEXT: Final = info_rule(
    "fields.backup-text",
    "File content instead of a backup name",
    "Claude Code does not use the text as a backup, so `/rewind` does not restore the file.",
    "`snapshot.trackedFileBackups` names a backup under `file-history` for each file: `{backupFileName, "
    "version, backupTime}`. One published description has the content of the file instead. Reported once per "
    "file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_MISSING: Final = info_rule(
    "fields.missing",
    "Missing field",
    "Claude Code does not need the field to resume; other tools may. No action is needed.",
    "The catalogue lists the fields that every record of a kind has in each version. Claude Code resumes "
    "without them, but other readers may depend on them. Reported once per kind and field.",
)
_TYPE: Final = info_rule(
    "fields.type",
    "Unexpected field type",
    "No effect on Claude Code is known; other tools may fail. No action is needed.",
    "The catalogue lists the JSON types of each field. Another type means a newer version of Claude Code, "
    "another writer, or a manual change. Reported once per kind and field.",
)

# These fields have rules with a higher severity.
_CHECKED_ELSEWHERE: Final = frozenset(("type", "uuid", "parentUuid", "message", "timestamp"))
_EXAMPLES: Final[tuple[Any, ...]] = (None, True, 0, 0.0, "", {}, [])
_JSON_TYPES: Final[dict[type, JsonType]] = {type(each): json_type(each) for each in _EXAMPLES}
_MAX_VARIANTS: Final = 10_000


_OddField: TypeAlias = tuple[str, JsonType, tuple[JsonType, ...]]
"""Field name, type of its value, and types in the catalogue."""


class FieldRules(RuleFamily):
    """Missing required fields, and fields that differ from the catalogue."""

    rules = rules_in(globals(), "fields")

    def __init__(self) -> None:
        self._seen_variants: set[tuple[Any, ...]] = set()
        self._reported: set[tuple[str, str, str]] = set()
        self._version = ""
        self._has_message = False
        self._has_backup_text = False

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Check one record; records of a known variant only cost a set lookup."""
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
    """Return whether a snapshot contains file content, as in one published description."""
    backups: Any = (as_object(fields.get("snapshot")) or {}).get("trackedFileBackups")
    return any(isinstance(backup, str) for backup in (as_object(backups) or {}).values())


def _variant(view: RecordView) -> Any:
    """Return a cheap key that separates kinds with the same type and shape."""
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
    """Return the missing top-level fields of a record, and those with unexpected types."""
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
    """Return whether a version always writes the field; without a version, whether all versions do."""
    if field.optional or field.claimed:
        return False
    if version:
        return field.known_in(version)
    driven = catalogue().client_versions.driven
    return field.known_in(driven[0]) and field.known_in(driven[-1])


_NO_TIME: Final = error_rule(
    "time.missing",
    "Message without a timestamp",
    "Claude Code 2.1.200 and later drop the message. Run `steno repair SESSION` to add a timestamp.",
    "A message needs a `timestamp` as ISO text. Claude Code 2.1.200 and 2.1.325 drop messages without one, and "
    "reject the file if no other message is left. 2.1.42 loads only the first prompt, and 2.0.76 crashes. Repair adds "
    "a time between those of the neighbours.",
)
_NUMBER: Final = error_rule(
    "time.number",
    "Numeric timestamp",
    "Claude Code 2.1.200 and later drop the message. Run `steno repair SESSION` to convert the timestamp.",
    "Some descriptions of the format use milliseconds; Claude Code does not. Claude Code 2.0.76 and 2.1.42 "
    "load such a message; 2.1.200 and 2.1.325 drop it, and reject the file if no other message is left. Repair "
    "converts the timestamp to ISO text.",
)
_NOT_ISO: Final = warning_rule(
    "time.not-iso",
    "Timestamp not in ISO 8601 with a time zone",
    "Readers guess the time or ignore it. Write it like 2026-11-15T05:00:01.000Z.",
    "Claude Code writes UTC with milliseconds and a `Z`; an offset such as `+00:00` is also read. Other text "
    "is read as local time or not at all. Versions that choose a parent or a leaf by time may then choose the "
    "wrong record.",
)
_BACKWARDS: Final = info_rule(
    "time.backwards",
    "Timestamp more than a minute before the previous one",
    "Claude Code 2.1.42 and older resume from the latest timestamp, not from the last record. No action is "
    "needed for newer versions.",
    "Records are appended as they happen, so timestamps increase; a few milliseconds back are common if hooks "
    "run. More than a minute means a changed clock, or copied or moved records. Claude Code 2.1.42 and older "
    "resume from the record with the latest time, newer versions use the file order.",
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
        """Return whether the timestamp may be missing or not text; text timestamps are checked together."""
        return shape is None or (kind in ROLES and not shape.has("timestamp", str))

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Check a timestamp that is missing or not text."""
        node = view.node
        stamp = node.timestamp
        if node.is_message and not isinstance(stamp, str):
            rule = _NO_TIME if stamp is None else _NUMBER
            message = rule.title if stamp is None else f"{rule.title}: {stamp}"
            findings.defer(rule, view.location, message, node.index)

    def on_end(self, evidence: Evidence) -> None:
        """Check all text timestamps, alone and against the previous record."""
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
    """Check one timestamp, and return the one that the next is compared with."""
    time = read_time(stamp)
    if time is None or not _ISO(stamp):
        message = f"{_NOT_ISO.title}: {stamp:.40}"
        evidence.findings.defer(_NOT_ISO, evidence.location(node), message, node.index)
    if time is None or node.uuid is None:
        return before
    earlier = read_time(before)
    if earlier is not None and earlier - time > _TOLERANCE:
        back = int((earlier - time).total_seconds())
        evidence.add_finding(_BACKWARDS, node, f"Timestamp is {back:,} seconds before the previous one")
    return time.isoformat(timespec="milliseconds")[:-6] + "Z"
