"""Files in a published dialect, checked by the rules of the document that describes it.

No client writes or reads such files, so the rules about what clients need do not apply to them. The documents have
rules of their own; each one has an id here. The rest of steno reads the converted file (`steno.format.dialects`);
findings give positions in the original file.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from steno.check.evidence import RuleFamily
from steno.check.findings import Findings, Location, Rule, error_rule, info_rule, rules_in, warning_rule
from steno.check.rules.record_format import DIALECT
from steno.format.catalogue import catalogue
from steno.format.dialects.converted_source import ConvertedSource
from steno.format.lines import LINE_CAP, read_pieces
from steno.format.records import COMPACTION_OPERATIONS, PUBLISHED_DESCRIPTIONS_PAGE, ROLES, Dialect, Gap, read_time
from steno.format.source import Source, Span

MIXED: Final = warning_rule(
    "dialect.mixed",
    "a message is of another form than most of the file",
    "each message is read by its own form; more than one tool wrote the file",
    "The descriptions know one form each. A file of a dialect with messages of another dialect, or "
    "of the real client, follows neither.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
UNKNOWN: Final = info_rule(
    "dialect.unknown-type",
    "a record has a type or subtype that the description does not give",
    "a record of an unknown type is left as it is, and one of an unknown subtype read by its type",
    "000 has the types user, assistant, system and compact_system, subtypes of assistant (response, "
    "tool_use, thinking, command, error) and of system (tool_result, error, meta); 004 has the "
    "types human, assistant, tool_result, compact_prelude and compact_recap, and subtypes of any "
    "name. Types and subtypes of the real client are known, too. It is said once per name.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
_KINDS: Final[dict[str, dict[str, frozenset[str] | None]]] = {
    "spec-000": {
        "user": frozenset(),
        "assistant": frozenset(("response", "tool_use", "thinking", "command", "error")),
        "system": frozenset(("tool_result", "error", "meta")),
        "compact_system": frozenset(),
    },
    "spec-004": dict.fromkeys(("human", "assistant", "tool_result", "compact_prelude", "compact_recap"), None),
}
"""The types of each description with their subtypes; None where it gives no names of subtypes."""


def unknown_type(fields: dict[str, Any], form: Dialect) -> str:
    """Return the type or subtype of a record that neither its description nor the client has."""
    kind: Any = fields.get("type")
    subtype: Any = fields.get("subtype") or ""
    if form == "claude" or not isinstance(kind, str) or not kind:
        return ""
    types = _KINDS[form]
    description = f"type {kind!r}"
    if kind in types and isinstance(subtype, str):
        known = types[kind]
        if not subtype or known is None or subtype in known:
            return ""
        description = f"subtype {subtype!r} of {kind}"
    return "" if _is_client_type(kind, subtype) else description


def _is_client_type(kind: str, subtype: Any) -> bool:
    """Whether the real client writes records of a type and subtype."""
    known = catalogue().records["claude"]
    if kind in known:
        return not subtype
    if not subtype:
        return any(name.startswith(f"{kind}/") for name in known)
    return f"{kind}/{subtype}" in known


REQUIRED: Final = error_rule(
    "dialect.required-field",
    "a required field is missing",
    "the description requires it of every record of this type",
    "000 requires `type`, `uuid`, `timestamp` and `sessionId`, and `message` of a `compact_system`; 004 requires "
    "`uuid`, `parentUuid`, `sessionId`, `type`, `timestamp` and `message`.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
NO_MESSAGE: Final = warning_rule(
    "dialect.no-message",
    "a message says nothing",
    "the record is read, and nothing of it is sent",
    "000 requires `message` of a user record unless it is a command, of a system record, and of an "
    "answer that is no tool call.",
)
DUPLICATE: Final = error_rule(
    "dialect.duplicate-uuid",
    "two records have the same uuid",
    "the last one counts",
    "Rule 1 of 000 and rule 2 of 004: uuids are unique within a session.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
TIMESTAMP: Final = error_rule(
    "dialect.timestamp",
    "a timestamp is not of the form that the description gives",
    "the order of the file counts instead",
    "Rule 2 of 000 wants ISO 8601 text; 004 wants a number of milliseconds.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
PARENT: Final = error_rule(
    "dialect.missing-parent",
    "a parentUuid names no record of the file",
    "the record begins a branch of its own",
    "Rule 3 of 000 and of 004: a parent is a record of the same session, or null.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
CYCLE: Final = error_rule(
    "dialect.cycle",
    "a record is its own ancestor",
    "the first record of the circle in the file begins the conversation",
    "Rule 3 of 004: parents form a graph without circles; in 000 a message follows an earlier one.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
SHAPE: Final = error_rule(
    "dialect.message-shape",
    "a record is not built as its type asks",
    "what can be read of it is read",
    "Rule 4 of 000: `message` is text, `toolArguments` and `metadata` are objects, flags are "
    "booleans. In 004, too, ids are text and flags are booleans.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
TOOL: Final = error_rule(
    "dialect.tool-fields",
    "a tool call lacks toolName or toolArguments",
    "the call is read with what it has",
    "Rule 5 of 000.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
SIDECHAIN: Final = error_rule(
    "dialect.sidechain",
    "a record among a sub-agent's records lacks isSidechain",
    "it is taken for a part of the main conversation",
    "Rule 6 of 000 and rule 5 of 004: a prompt and its answer, and what stands between records of a "
    "sub-agent, are of one conversation.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
OPERATION: Final = error_rule(
    "dialect.operation",
    "a compact_system record names no known operation",
    "it is read as a note",
    "000 has four: conversation_compacting, conversation_compacted, conversation_restoring and conversation_restored.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
METADATA: Final = warning_rule(
    "dialect.metadata",
    "a conversation_compacted record has no metadata",
    "nothing says how many messages were kept, so all are",
    "000 lists `metadata` as the conditional field of `conversation_compacted`.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
RESULT: Final = error_rule(
    "dialect.unmatched-result",
    "a tool result answers no call before it",
    "it is left out of what is sent",
    "Rule 4 of 004: `tool_use_id` names an earlier `tool_use`. In 000 a result follows its call.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
CONTENT: Final = error_rule(
    "dialect.content",
    "message.content is neither text nor a list of content objects",
    "what can be read of it is read",
    "Rule 6 of 004: a content object has a type, and what the description shows of that type: a "
    "text its `text`, a call its `id`, `name` and `input`.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
IMAGE: Final = error_rule(
    "dialect.image",
    "an image is not base64 with a media type",
    "the API refuses it; it is left out of what is sent",
    "Rule 7 of 004.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)


class DialectRules(RuleFamily):
    """Files in a published dialect, checked by the rules of the document that describes it."""

    rules = rules_in(globals(), "dialect")


Json = dict[str, Any]
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "spec-000": ("type", "uuid", "timestamp", "sessionId"),
    "spec-004": ("uuid", "parentUuid", "sessionId", "type", "timestamp", "message"),
}
_FLAGS: Final = ("isSidechain", "isDeleted", "isAborted", "isMeta", "isError", "is_active")
_ISO: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}T\d{2}")
_SECONDS_RANGE: Final = range(10**9, 10**11)
"""Numbers that are times of this century in seconds, and of 1970 to 1973 in milliseconds."""
_MAX_NAME_LENGTH: Final = 80
_BLOCKS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""What blocks must have, and of which type."""
_MEDIA: Final = re.compile(r"image/[\w.+-]+\Z")


def check_dialect(converted: ConvertedSource, findings: Findings, *, cap: int = LINE_CAP) -> None:
    """Look at the records of a dialect by the rules of the document that describes them."""
    checker = _DialectChecker(converted.dialect, findings, converted.unmatched_results())
    for fields, location in _records(converted.original, cap):
        checker.check_record(fields, location, converted.form_at(location.span.offset))
    checker.finish()


def _records(source: Source, cap: int) -> Iterator[tuple[Json, Location]]:
    line = 1
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Gap):
            line += piece.ends_line(source)
            continue
        yield piece.fields, Location(line, Span(piece.offset, piece.length), piece.uuid or "")
        line += piece.ending.endswith(b"\n")


class _DialectChecker:
    """One file, record by record."""

    def __init__(self, dialect: Dialect, findings: Findings, unmatched: frozenset[int]) -> None:
        self._main_form: Dialect = dialect
        """The form of most messages of the file."""
        self._form = dialect
        """The form of the record that is looked at."""
        self._reported_forms: set[Dialect] = set()
        self._unknown: set[str] = set()
        """The types and subtypes that no description gives, as far as they were met."""
        self._unmatched = unmatched
        """Where results lie that no call could be found for."""
        self._findings = findings
        self._seen: dict[str, Location] = {}
        self._sidechain_by_uuid: dict[str, bool] = {}
        self._calls: dict[str, bool] = {}
        """Whether each call was a sub-agent's."""
        self._parents: list[tuple[str, Location, bool]] = []
        self._parent_of: dict[str, str] = {}
        """The parent of each record, by their uuids."""
        self._unflagged: dict[str, Location] = {}
        """Records of the main conversation that hang on those of a sub-agent."""
        self._prompts: dict[str, Location | None] = {}
        """What is answered: of the main conversation, where it lies; of a sub-agent, None."""

    def check_record(self, fields: Json, location: Location, form: Dialect) -> None:
        """Look at the next record, which is written in a form."""
        kind = fields.get("type")
        if self._main_form not in (form, "claude") and (form != "claude" or kind in ROLES):
            self._add_finding(MIXED, location, form if form != "claude" else "the real client's")
        self._form = form
        self._check_kind(fields, location, self._main_form if form == "claude" else form)
        if form == "claude":
            self._remember(fields, location)
            return
        if form not in self._reported_forms:
            self._reported_forms.add(form)
            mild = self._main_form != "claude"
            self._findings.add(DIALECT, location, f"{DIALECT.title}: {form}", mild=mild)
        self._check_required(fields, location)
        self._check_identity(fields, location)
        self._check_time(fields, location)
        self._check_shapes(fields, location)
        if self._form == "spec-000":
            self._check_flat(fields, location)
        else:
            self._check_nested(fields, location)

    def _check_kind(self, fields: Json, location: Location, form: Dialect) -> None:
        name = unknown_type(fields, form)
        if name and name not in self._unknown:
            self._unknown.add(name)
            self._add_finding(UNKNOWN, location, name[:_MAX_NAME_LENGTH])

    def _remember(self, fields: Json, location: Location) -> None:
        """Remember what records of a dialect may name of one of the client's."""
        uuid, is_sidechain = fields.get("uuid"), fields.get("isSidechain") is True
        if isinstance(uuid, str):
            self._seen.setdefault(uuid, location)
            self._sidechain_by_uuid[uuid] = is_sidechain
            self._remember_parent(uuid, fields.get("parentUuid"))
        message = fields.get("message")
        content = cast("Json", message).get("content") if isinstance(message, dict) else None
        for block in cast("list[Any]", content) if isinstance(content, list) else ():
            block_fields = cast("Json", block) if isinstance(block, dict) else {}
            if block_fields.get("type") == "tool_use":
                self._calls[str(block_fields.get("id"))] = is_sidechain

    def finish(self) -> None:
        """Look at what can be said only when all was read."""
        for parent, location, _ in self._parents:
            if parent not in self._seen:
                self._add_finding(PARENT, location, f"no record has the uuid {parent!r}")
        for cycle in _cycles(self._parent_of):
            self._add_finding(CYCLE, min((self._seen[uuid] for uuid in cycle), key=lambda at: at.line))
        # A record behind a sub-agent's may be the main conversation going on; one that sub-agent's
        # records follow is in the midst of theirs.
        for parent, _, sidechain in self._parents:
            unmarked = self._unflagged.get(parent)
            if sidechain and unmarked is not None:
                self._add_finding(SIDECHAIN, unmarked)
                del self._unflagged[parent]

    def _add_finding(self, rule: Rule, location: Location, message: str = "") -> None:
        self._findings.add(rule, location, f"{rule.title}: {message}" if message else "")

    def _check_required(self, fields: Json, location: Location) -> None:
        required = _REQUIRED[self._form]
        if fields.get("type") == "compact_system":
            required = (*required, "message")
        for name in required:
            is_nothing = fields.get(name) in (None, "") and name != "parentUuid"
            if name not in fields or is_nothing:
                self._add_finding(REQUIRED, location, name)

    def _check_identity(self, fields: Json, location: Location) -> None:
        uuid, parent = fields.get("uuid"), fields.get("parentUuid")
        is_sidechain = fields.get("isSidechain") is True
        if isinstance(parent, str):
            self._parents.append((parent, location, is_sidechain))
            if not is_sidechain and self._sidechain_by_uuid.get(parent) and isinstance(uuid, str):
                self._unflagged[uuid] = location
        elif parent is not None:
            self._add_finding(SHAPE, location, "parentUuid is no text")
        if fields.get("type") == "assistant" and isinstance(parent, str):
            self._check_conversation(parent, location, sidechain=is_sidechain)
        if not isinstance(uuid, str) or not uuid:
            if uuid:
                self._add_finding(SHAPE, location, "uuid is no text")
            return
        if fields.get("type") in ("user", "human"):
            self._prompts[uuid] = None if is_sidechain else location
        elif fields.get("type") == "tool_result" and is_sidechain:
            self._prompts[uuid] = None
        if uuid in self._seen:
            self._add_finding(DUPLICATE, location, f"{uuid!r} stands on line {self._seen[uuid].line} too")
        self._seen.setdefault(uuid, location)
        self._sidechain_by_uuid[uuid] = is_sidechain
        self._remember_parent(uuid, parent)

    def _check_shapes(self, fields: Json, location: Location) -> None:
        for name in _FLAGS:
            if not isinstance(fields.get(name), bool | None):
                self._add_finding(SHAPE, location, f"{name} is no boolean")
        for name in ("sessionId", "subtype"):
            if not isinstance(fields.get(name), str | None):
                self._add_finding(SHAPE, location, f"{name} is no text")

    def _check_conversation(self, parent: str, location: Location, *, sidechain: bool) -> None:
        """Look whether an answer is in the conversation of what it answers.

        In the examples of 000 the main conversation goes on right behind a sub-agent's prompt.
        """
        if parent not in self._prompts:
            # A sub-agent's records begin with a prompt; one that is told of already is not told again.
            if sidechain and self._sidechain_by_uuid.get(parent) is False and parent not in self._unflagged:
                self._add_finding(SIDECHAIN, location, "the one that this one follows")
            return
        prompt = self._prompts[parent]
        if prompt is None and not sidechain and self._form == "spec-004":
            self._add_finding(SIDECHAIN, location)
        elif prompt is not None and sidechain:
            self._unflagged.pop(parent, None)
            self._add_finding(SIDECHAIN, prompt)
            self._prompts[parent] = None  # it is told once

    def _remember_parent(self, uuid: str, parent: Any) -> None:
        # A uuid that stands twice is a fault of its own, and no circle.
        self._parent_of.setdefault(uuid, parent if isinstance(parent, str) else "")

    def _check_time(self, fields: Json, location: Location) -> None:
        stamp = fields.get("timestamp")
        if stamp is None:
            return
        if self._form == "spec-000":
            is_valid = isinstance(stamp, str) and _ISO.match(stamp) and read_time(stamp) is not None
        else:
            number = isinstance(stamp, int | float) and not isinstance(stamp, bool)
            is_valid = number and read_time(stamp) is not None and int(stamp) not in _SECONDS_RANGE
        if not is_valid:
            self._add_finding(TIMESTAMP, location, repr(stamp)[:60])

    # 000

    def _check_flat(self, fields: Json, location: Location) -> None:
        kind, subtype, message = fields.get("type"), fields.get("subtype"), fields.get("message")
        if message is not None and not isinstance(message, str):
            self._add_finding(SHAPE, location, "message is no text")
        if kind == "compact_system":
            self._check_operation(fields, location)
            return
        if kind == "assistant" and subtype == "tool_use":
            self._check_call(fields, location)
        elif not message and not (kind == "user" and "command" in fields):
            self._add_finding(NO_MESSAGE, location)
        if location.span.offset in self._unmatched:
            self._add_finding(RESULT, location)

    def _check_call(self, fields: Json, location: Location) -> None:
        missing = [name for name in ("toolName", "toolArguments") if fields.get(name) in (None, "")]
        if missing:
            self._add_finding(TOOL, location, ", ".join(missing))
        if not isinstance(fields.get("toolName", ""), str | None):
            self._add_finding(SHAPE, location, "toolName is no text")
        arguments = fields.get("toolArguments")
        if arguments != "" and not isinstance(arguments, dict | None):
            self._add_finding(SHAPE, location, "toolArguments is no object")

    def _check_operation(self, fields: Json, location: Location) -> None:
        message, metadata = fields.get("message"), fields.get("metadata")
        if isinstance(message, str) and message and message not in COMPACTION_OPERATIONS:
            self._add_finding(OPERATION, location, repr(message)[:60])
        if message == "conversation_compacted" and metadata in (None, {}):
            self._add_finding(METADATA, location)
        if metadata is not None and not isinstance(metadata, dict):
            self._add_finding(SHAPE, location, "metadata is no object")

    # 004

    def _check_nested(self, fields: Json, location: Location) -> None:
        message = fields.get("message")
        if message is None:
            return
        if not isinstance(message, dict):
            self._add_finding(CONTENT, location, "message is no object")
            return
        content = cast("Json", message).get("content")
        if isinstance(content, str):
            if fields.get("type") == "tool_result":
                self._add_finding(RESULT, location, "it names no call")
            return
        blocks = cast("list[Any]", content) if isinstance(content, list) else [None]
        side = fields.get("isSidechain") is True
        answers = 0
        for block in blocks:
            answers += self._check_block(block, location, sidechain=side)
        if fields.get("type") == "tool_result" and not answers:
            self._add_finding(RESULT, location, "it names no call")

    def _check_block(self, value: Any, location: Location, *, sidechain: bool) -> bool:
        """Look at one block; return whether it is a tool result."""
        block = cast("Json", value) if isinstance(value, dict) else {}
        kind: Any = block.get("type")
        if not isinstance(kind, str):
            self._add_finding(CONTENT, location)
            return False
        expected = _BLOCKS.get(kind, {})
        wrong_fields = [name for name, shape in expected.items() if not isinstance(block.get(name), shape)]
        if wrong_fields:
            self._add_finding(CONTENT, location, f"a block of type {kind} without {', '.join(wrong_fields)}")
        match kind:
            case "tool_use" if isinstance(block.get("id"), str):
                self._calls[block["id"]] = sidechain
            case "tool_result":
                self._check_result(block, location, sidechain=sidechain)
                return True
            case "image" if not _is_image(block.get("source")):
                self._add_finding(IMAGE, location)
            case _:
                pass
        return False

    def _check_result(self, block: Json, location: Location, *, sidechain: bool) -> None:
        name, content = block.get("tool_use_id"), block.get("content")
        if not isinstance(name, str) or name not in self._calls:
            self._add_finding(RESULT, location, repr(name)[:60])
        elif self._calls[name] and not sidechain:
            self._add_finding(SIDECHAIN, location)
        if isinstance(content, list):
            for part in cast("list[Any]", content):
                self._check_block(part, location, sidechain=sidechain)
        elif not isinstance(content, str | None):
            self._add_finding(CONTENT, location, "the content of a result is neither text nor a list")


def _cycles(parent_of: dict[str, str]) -> Iterator[list[str]]:
    """Yield the uuids of each circle of parents."""
    done: set[str] = set()
    for start in parent_of:
        path: dict[str, int] = {}
        at: str | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = parent_of.get(at)
        if at is not None and at in path:
            yield list(path)[path[at] :]
        done.update(path)


def _is_image(source: Any) -> bool:
    fields = cast("Json", source) if isinstance(source, dict) else {}
    kind, media, data = (fields.get(name) for name in ("type", "media_type", "data"))
    if kind != "base64" or not isinstance(media, str) or not _MEDIA.match(media):
        return False
    if not isinstance(data, str) or not data:
        return False
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
