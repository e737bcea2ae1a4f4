"""Fields: those that records need, and those that differ from the catalogue."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from steno.check.evidence import INNER_FIELDS, RecordShape, RecordView
from steno.check.findings import Findings, Rule
from steno.format.catalogue import Field, Fields, JsonType, catalogue, json_type
from steno.format.lenient_json import as_object
from steno.format.records import PUBLISHED_DESCRIPTIONS_PAGE, ROLES

_NO_TYPE: Final = Rule(
    "fields.no-type",
    "error",
    "a record has no type",
    "every client passes over it",
    "Every record says by its `type` what it is. A record without one is passed over by every "
    "client; when it was part of the conversation, what hangs on it has no parent. One that has "
    "neither an id nor a message is no part of it, and harmless.",
)
_NO_UUID: Final = Rule(
    "fields.no-uuid",
    "error",
    "a message has no id",
    "no client takes it in; `steno repair` gives it one",
    "Messages are found by their `uuid`. One without it cannot be reached from any other, and "
    "every client leaves it out. Repair gives it an id and hangs its successor on it.",
)
_NO_PARENT: Final = Rule(
    "fields.no-parent",
    "error",
    "a message does not say what it follows",
    "clients begin the conversation here; `steno repair` hangs it on the message before",
    "`parentUuid` names the record before, and is null on the first. Clients take a message "
    "without the field for a beginning, and all that stands before it is not sent. Repair hangs "
    "the message on the one before it in the file.",
)
_NO_MESSAGE: Final = Rule(
    "fields.no-message",
    "error",
    "a record of the conversation has no message",
    "no client takes it in; `steno repair` takes it out of the chain",
    "The record of a user or an assistant holds what was said under `message`. 2.1.325 leaves out a record without it.",
)
DIALECT: Final = Rule(
    "fields.dialect",
    "error",
    "records are in a form that no client writes or resumes",
    "no client resumes them; `steno repair` writes them in the real client's form",
    "Two published descriptions of the format differ from what clients write: one has messages as "
    "plain strings and `toolName`, the other the types `human` and `tool_result` and times in "
    "milliseconds. Tools were built from them. No client resumes such a file: 2.1.325 says that "
    "there is no conversation, 2.1.42 crashes. A file of such records is converted for everything "
    "that steno shows, checked by the rules of its own description, and this is an info; in a file "
    "of the real client it is an error. It is said once per file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_BACKUP_TEXT: Final = Rule(
    "fields.backup-text",
    "info",
    "a file-history-snapshot holds text where the client names a backup",
    "clients do not take the text for a backup, so /rewind does not restore the file",
    "`snapshot.trackedFileBackups` names for each file a backup under `file-history`: "
    "`{backupFileName, version, backupTime}`. One published description has the content of the "
    "file there. It is said once per file.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_MISSING: Final = Rule(
    "fields.missing",
    "info",
    "a field is missing that this kind of record always had",
    "no client needs it to resume; tools may",
    "The catalogue knows which fields stood on every record of a kind, in each version. The client "
    "resumes without them, but tools that read sessions may count on them. It is said once per "
    "kind and field.",
)
_TYPE: Final = Rule(
    "fields.type",
    "info",
    "a field holds another type of value than it always did",
    "no client minds as far as is known; tools may",
    "The catalogue knows the JSON types each field was seen with. Another one means a newer "
    "client, another writer, or a change by hand. It is said once per kind and field.",
)
RULES: Final[tuple[Rule, ...]] = (_NO_TYPE, _NO_UUID, _NO_PARENT, _NO_MESSAGE, DIALECT, _BACKUP_TEXT, _MISSING, _TYPE)

# Other rules speak of these, where they matter more.
_CHECKED_ELSEWHERE: Final = frozenset(("type", "uuid", "parentUuid", "message", "timestamp"))
_EXAMPLES: Final[tuple[Any, ...]] = (None, True, 0, 0.0, "", {}, [])
_JSON_TYPES: Final[dict[type, JsonType]] = {type(each): json_type(each) for each in _EXAMPLES}
_MAX_VARIANTS: Final = 10_000


class _FieldVerdict(msgspec.Struct, frozen=True):
    """What the catalogue says against the top level of a record."""

    kind: str
    missing: tuple[str, ...]
    odd: tuple[tuple[str, JsonType, tuple[JsonType, ...]], ...]


class FileChecker:
    """Holds the top level of every record of one file against the catalogue."""

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
        verdict = _field_verdict(view.kind, self._version, view.shape)
        for name in verdict.missing:
            if self._is_new("missing", verdict.kind, name):
                findings.add(_MISSING, view.location, f"{verdict.kind} without {name}")
        for name, actual_type, known in verdict.odd:
            if self._is_new("type", verdict.kind, name):
                message = f"{name} of {verdict.kind} is {actual_type}, not {' or '.join(known)}"
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
    return _text(view.fields.get("operation"))


def _inner_type(value: Any) -> str | None:
    kind = value.get("type") if value.__class__ is dict else None
    return kind if kind.__class__ is str else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@lru_cache(maxsize=4_096)
def _field_verdict(kind: str, version: str, shape: RecordShape) -> _FieldVerdict:
    known = _known_fields(kind)
    if known is None:
        return _FieldVerdict(kind, (), ())
    passed_over = _CHECKED_ELSEWHERE
    if not kind.startswith(("user/", "assistant/")):
        passed_over -= {"uuid", "parentUuid", "timestamp"}
    missing = tuple(
        name
        for name, field in known.items()
        if name not in shape.names and name not in passed_over and _is_required(field, version)
    )
    return _FieldVerdict(kind, missing, tuple(_unexpected_types(known, shape, passed_over)))


def _unexpected_types(
    known: Fields, shape: RecordShape, passed_over: frozenset[str]
) -> Iterator[tuple[str, JsonType, tuple[JsonType, ...]]]:
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
