"""Checks files in a published dialect against the description of that dialect.

Claude Code neither writes nor reads such files, so the rules about Claude Code do not apply. The descriptions define
rules of their own, each with an ID here. The rest of steno reads the converted file (`steno.format.dialects`); findings
have locations in the original file.
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
    "Message in a different dialect",
    "Each message is read in its own dialect. The file was probably written by several tools.",
    "Each description defines one format. A dialect file with messages in another dialect, or in Claude Code's "
    "format, matches none.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
UNKNOWN: Final = info_rule(
    "dialect.unknown-type",
    "Unknown type or subtype",
    "Records of an unknown type are kept unchanged; unknown subtypes are ignored. No action is needed.",
    "spec-000 defines the types user, assistant, system and compact_system, with subtypes of assistant "
    "(response, tool_use, thinking, command, error) and of system (tool_result, error, meta). spec-004 defines "
    "the types human, assistant, tool_result, compact_prelude and compact_recap, with arbitrary subtypes. "
    "Types and subtypes of Claude Code are also known. Reported once per name.",
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
"""Types of each description with their subtypes; None if it allows any subtype."""


def unknown_type(fields: dict[str, Any], form: Dialect) -> str:
    """Return the type or subtype if neither the description nor Claude Code defines it, else an empty string."""
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
    """Return whether Claude Code writes records of a type and subtype."""
    known = catalogue().records["claude"]
    if kind in known:
        return not subtype
    if not subtype:
        return any(name.startswith(f"{kind}/") for name in known)
    return f"{kind}/{subtype}" in known


REQUIRED: Final = error_rule(
    "dialect.required-field",
    "Required field missing",
    "The description requires this field for every record of this type.",
    "spec-000 requires `type`, `uuid`, `timestamp` and `sessionId`, and `message` in `compact_system` records. "
    "spec-004 requires `uuid`, `parentUuid`, `sessionId`, `type`, `timestamp` and `message`.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
NO_MESSAGE: Final = warning_rule(
    "dialect.no-message",
    "Message without text",
    "The record is read, but nothing of it is sent.",
    "spec-000 requires `message` in user records that are not commands, in system records, and in answers that "
    "are not tool calls.",
)
DUPLICATE: Final = error_rule(
    "dialect.duplicate-uuid",
    "Duplicate UUID",
    "The last record with the UUID is used.",
    "Rule 1 of spec-000 and rule 2 of spec-004: UUIDs are unique within a session.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
TIMESTAMP: Final = error_rule(
    "dialect.timestamp",
    "Timestamp not in the format of the description",
    "The file order is used instead.",
    "Rule 2 of spec-000 requires ISO 8601 text; spec-004 requires a number of milliseconds.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
PARENT: Final = error_rule(
    "dialect.missing-parent",
    "Parent record missing",
    "The record starts a separate branch.",
    "Rule 3 of spec-000 and of spec-004: a parent is a record of the same session, or null.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
CYCLE: Final = error_rule(
    "dialect.cycle",
    "Parent cycle",
    "The conversation starts at the first record of the cycle in the file.",
    "Rule 3 of spec-004: parents form an acyclic graph. In spec-000, a message follows an earlier one.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
SHAPE: Final = error_rule(
    "dialect.message-shape",
    "Field of the wrong type",
    "Only the readable parts of the record are used.",
    "Rule 4 of spec-000: `message` is text, `toolArguments` and `metadata` are objects, flags are booleans. In "
    "spec-004, too, IDs are text and flags are booleans.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
TOOL: Final = error_rule(
    "dialect.tool-fields",
    "Tool call without toolName or toolArguments",
    "The call is read with the available fields.",
    "Rule 5 of spec-000.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
SIDECHAIN: Final = error_rule(
    "dialect.sidechain",
    "Sub-agent record without isSidechain",
    "The record is read as part of the main conversation.",
    "Rule 6 of spec-000 and rule 5 of spec-004: a prompt and its answer, and records between records of a "
    "sub-agent, belong to the same conversation.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
OPERATION: Final = error_rule(
    "dialect.operation",
    "Unknown compaction operation",
    "The record is read as a note.",
    "spec-000 defines four: conversation_compacting, conversation_compacted, conversation_restoring and "
    "conversation_restored.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
METADATA: Final = warning_rule(
    "dialect.metadata",
    "Compaction without metadata",
    "The number of kept messages is unknown, so all are kept.",
    "spec-000 lists `metadata` as the conditional field of `conversation_compacted`.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
RESULT: Final = error_rule(
    "dialect.unmatched-result",
    "Tool result without a call",
    "The result is not sent.",
    "Rule 4 of spec-004: `tool_use_id` names an earlier `tool_use`. In spec-000, a result follows its call.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
CONTENT: Final = error_rule(
    "dialect.content",
    "Message content is neither text nor a list of objects",
    "Only the readable parts of the content are used.",
    "Rule 6 of spec-004: a content object has a type and the fields that the description shows for that type: "
    "`text` for a text, `id`, `name` and `input` for a call.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
IMAGE: Final = error_rule(
    "dialect.image",
    "Image is not base64 with a media type",
    "The API rejects the image, so it is not sent.",
    "Rule 7 of spec-004.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)


class DialectRules(RuleFamily):
    """Records in a published dialect, checked against its description."""

    rules = rules_in(globals(), "dialect")


Json = dict[str, Any]
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "spec-000": ("type", "uuid", "timestamp", "sessionId"),
    "spec-004": ("uuid", "parentUuid", "sessionId", "type", "timestamp", "message"),
}
_FLAGS: Final = ("isSidechain", "isDeleted", "isAborted", "isMeta", "isError", "is_active")
_ISO: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}T\d{2}")
_SECONDS_RANGE: Final = range(10**9, 10**11)
"""Invalid timestamps: milliseconds of 1970 to 1973, but more likely seconds of this century."""
_MAX_NAME_LENGTH: Final = 80
_BLOCKS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""Required fields of blocks, with their types."""
_MEDIA: Final = re.compile(r"image/[\w.+-]+\Z")


def check_dialect(converted: ConvertedSource, findings: Findings, *, cap: int = LINE_CAP) -> None:
    """Check dialect records against the description of their dialect."""
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
    """Checks one file, record by record."""

    def __init__(self, dialect: Dialect, findings: Findings, unmatched: frozenset[int]) -> None:
        self._main_form: Dialect = dialect
        """Dialect of most messages of the file."""
        self._form = dialect
        """Dialect of the current record."""
        self._reported_forms: set[Dialect] = set()
        self._unknown: set[str] = set()
        """Types and subtypes found so far that no description defines."""
        self._unmatched = unmatched
        """Offsets of tool results without a call."""
        self._findings = findings
        self._seen: dict[str, Location] = {}
        self._sidechain_by_uuid: dict[str, bool] = {}
        self._calls: dict[str, bool] = {}
        """Whether each call belongs to a sub-agent."""
        self._parents: list[tuple[str, Location, bool]] = []
        self._parent_of: dict[str, str] = {}
        """Parent of each record, by UUID."""
        self._unflagged: dict[str, Location] = {}
        """Records of the main conversation whose parent is a sub-agent record."""
        self._prompts: dict[str, Location | None] = {}
        """Location of each prompt and each other record with answers, by UUID; None for records of sub-agents."""

    def check_record(self, fields: Json, location: Location, form: Dialect) -> None:
        """Check the next record, in the given dialect."""
        kind = fields.get("type")
        if self._main_form not in (form, "claude") and (form != "claude" or kind in ROLES):
            self._add_finding(MIXED, location, form if form != "claude" else "Claude Code")
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
        """Record the IDs in a Claude Code record that dialect records may refer to."""
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
        """Run the checks that require all records."""
        for parent, location, _ in self._parents:
            if parent not in self._seen:
                self._add_finding(PARENT, location, f"No record has the UUID {parent!r}")
        for cycle in _cycles(self._parent_of):
            self._add_finding(CYCLE, min((self._seen[uuid] for uuid in cycle), key=lambda at: at.line))
        # A record after a sub-agent record may continue the main conversation, unless sub-agent records follow it.
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
            self._add_finding(SHAPE, location, "parentUuid is not text")
        if fields.get("type") == "assistant" and isinstance(parent, str):
            self._check_conversation(parent, location, sidechain=is_sidechain)
        if not isinstance(uuid, str) or not uuid:
            if uuid:
                self._add_finding(SHAPE, location, "uuid is not text")
            return
        if fields.get("type") in ("user", "human"):
            self._prompts[uuid] = None if is_sidechain else location
        elif fields.get("type") == "tool_result" and is_sidechain:
            self._prompts[uuid] = None
        if uuid in self._seen:
            self._add_finding(DUPLICATE, location, f"{uuid!r} is also on line {self._seen[uuid].line}")
        self._seen.setdefault(uuid, location)
        self._sidechain_by_uuid[uuid] = is_sidechain
        self._remember_parent(uuid, parent)

    def _check_shapes(self, fields: Json, location: Location) -> None:
        for name in _FLAGS:
            if not isinstance(fields.get(name), bool | None):
                self._add_finding(SHAPE, location, f"{name} is not a boolean")
        for name in ("sessionId", "subtype"):
            if not isinstance(fields.get(name), str | None):
                self._add_finding(SHAPE, location, f"{name} is not text")

    def _check_conversation(self, parent: str, location: Location, *, sidechain: bool) -> None:
        """Check that an answer is in the same conversation as its prompt.

        In the examples of spec-000, the main conversation continues directly after a sub-agent's prompt.
        """
        if parent not in self._prompts:
            # Sub-agent records start with a prompt; report each one once.
            if sidechain and self._sidechain_by_uuid.get(parent) is False and parent not in self._unflagged:
                self._add_finding(SIDECHAIN, location, "the parent of this record")
            return
        prompt = self._prompts[parent]
        if prompt is None and not sidechain and self._form == "spec-004":
            self._add_finding(SIDECHAIN, location)
        elif prompt is not None and sidechain:
            self._unflagged.pop(parent, None)
            self._add_finding(SIDECHAIN, prompt)
            self._prompts[parent] = None  # report it once

    def _remember_parent(self, uuid: str, parent: Any) -> None:
        # A duplicate UUID is a separate finding, not a cycle.
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
            self._add_finding(SHAPE, location, "message is not text")
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
            self._add_finding(SHAPE, location, "toolName is not text")
        arguments = fields.get("toolArguments")
        if arguments != "" and not isinstance(arguments, dict | None):
            self._add_finding(SHAPE, location, "toolArguments is not an object")

    def _check_operation(self, fields: Json, location: Location) -> None:
        message, metadata = fields.get("message"), fields.get("metadata")
        if isinstance(message, str) and message and message not in COMPACTION_OPERATIONS:
            self._add_finding(OPERATION, location, repr(message)[:60])
        if message == "conversation_compacted" and metadata in (None, {}):
            self._add_finding(METADATA, location)
        if metadata is not None and not isinstance(metadata, dict):
            self._add_finding(SHAPE, location, "metadata is not an object")

    # 004

    def _check_nested(self, fields: Json, location: Location) -> None:
        message = fields.get("message")
        if message is None:
            return
        if not isinstance(message, dict):
            self._add_finding(CONTENT, location, "message is not an object")
            return
        content = cast("Json", message).get("content")
        if isinstance(content, str):
            if fields.get("type") == "tool_result":
                self._add_finding(RESULT, location, "no call ID")
            return
        blocks = cast("list[Any]", content) if isinstance(content, list) else [None]
        side = fields.get("isSidechain") is True
        answers = 0
        for block in blocks:
            answers += self._check_block(block, location, sidechain=side)
        if fields.get("type") == "tool_result" and not answers:
            self._add_finding(RESULT, location, "no call ID")

    def _check_block(self, value: Any, location: Location, *, sidechain: bool) -> bool:
        """Check one block; return whether it is a tool result."""
        block = cast("Json", value) if isinstance(value, dict) else {}
        kind: Any = block.get("type")
        if not isinstance(kind, str):
            self._add_finding(CONTENT, location)
            return False
        expected = _BLOCKS.get(kind, {})
        wrong_fields = [name for name, shape in expected.items() if not isinstance(block.get(name), shape)]
        if wrong_fields:
            self._add_finding(CONTENT, location, f"{kind} block without {', '.join(wrong_fields)}")
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
            self._add_finding(CONTENT, location, "tool result content is neither text nor a list")


def _cycles(parent_of: dict[str, str]) -> Iterator[list[str]]:
    """Yield the UUIDs of each parent cycle."""
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
