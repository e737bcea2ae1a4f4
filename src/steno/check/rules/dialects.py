"""Files in a published dialect, by the rules of the document that describes it.

No client writes or reads such files, so the rules about what clients need say nothing about them.
The documents have rules of their own; each one has an id here. What is read into the rest of steno
is the converted file (`steno.format.dialects`); findings name places in the file as it is.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from steno.check.findings import Findings, Place, Rule
from steno.check.published import PAGE
from steno.check.rules.dialect_types import UNKNOWN, unknown_type
from steno.check.rules.fields import DIALECT
from steno.format.dialects.converted import ConvertedSource
from steno.format.dialects.names import OPERATIONS, ROLES, Dialect
from steno.format.lines import LINE_CAP, read_pieces
from steno.format.records import Gap, read_time
from steno.format.source import Source
from steno.format.spans import Span

__all__ = ["RULES", "check_dialect"]

REQUIRED: Final = Rule(
    "dialect.required-field",
    "error",
    "a required field is missing",
    "the description requires it of every record of this type",
    "000 requires `type`, `uuid`, `timestamp` and `sessionId`, and `message` of a "
    "`compact_system`; 004 requires `uuid`, `parentUuid`, `sessionId`, `type`, `timestamp` and "
    "`message`.",
    docs=PAGE,
)
NO_MESSAGE: Final = Rule(
    "dialect.no-message",
    "warning",
    "a message says nothing",
    "the record is read, and nothing of it is sent",
    "000 requires `message` of a user record unless it is a command, of a system record, and of an "
    "answer that is no tool call.",
)
DUPLICATE: Final = Rule(
    "dialect.duplicate-uuid",
    "error",
    "two records have the same uuid",
    "the last one counts",
    "Rule 1 of 000 and rule 2 of 004: uuids are unique within a session.",
    docs=PAGE,
)
TIMESTAMP: Final = Rule(
    "dialect.timestamp",
    "error",
    "a timestamp is not of the form that the description gives",
    "the order of the file counts instead",
    "Rule 2 of 000 wants ISO 8601 text; 004 wants a number of milliseconds.",
    docs=PAGE,
)
PARENT: Final = Rule(
    "dialect.missing-parent",
    "error",
    "a parentUuid names no record of the file",
    "the record begins a branch of its own",
    "Rule 3 of 000 and of 004: a parent is a record of the same session, or null.",
    docs=PAGE,
)
CYCLE: Final = Rule(
    "dialect.cycle",
    "error",
    "a record is its own ancestor",
    "the first record of the circle in the file begins the conversation",
    "Rule 3 of 004: parents form a graph without circles; in 000 a message follows an earlier one.",
    docs=PAGE,
)
SHAPE: Final = Rule(
    "dialect.message-shape",
    "error",
    "a record is not built as its type asks",
    "what can be read of it is read",
    "Rule 4 of 000: `message` is text, `toolArguments` and `metadata` are objects, flags are "
    "booleans. In 004, too, ids are text and flags are booleans.",
    docs=PAGE,
)
TOOL: Final = Rule(
    "dialect.tool-fields",
    "error",
    "a tool call lacks toolName or toolArguments",
    "the call is read with what it has",
    "Rule 5 of 000.",
    docs=PAGE,
)
SIDECHAIN: Final = Rule(
    "dialect.sidechain",
    "error",
    "a record among a sub-agent's records lacks isSidechain",
    "it is taken for a part of the main conversation",
    "Rule 6 of 000 and rule 5 of 004: a prompt and its answer, and what stands between records of a "
    "sub-agent, are of one conversation.",
    docs=PAGE,
)
OPERATION: Final = Rule(
    "dialect.operation",
    "error",
    "a compact_system record names no known operation",
    "it is read as a note",
    "000 has four: conversation_compacting, conversation_compacted, conversation_restoring and "
    "conversation_restored.",
    docs=PAGE,
)
METADATA: Final = Rule(
    "dialect.metadata",
    "warning",
    "a conversation_compacted record has no metadata",
    "nothing says how many messages were kept, so all are",
    "000 lists `metadata` as the conditional field of `conversation_compacted`.",
    docs=PAGE,
)
RESULT: Final = Rule(
    "dialect.unmatched-result",
    "error",
    "a tool result answers no call before it",
    "it is left out of what is sent",
    "Rule 4 of 004: `tool_use_id` names an earlier `tool_use`. In 000 a result follows its call.",
    docs=PAGE,
)
CONTENT: Final = Rule(
    "dialect.content",
    "error",
    "message.content is neither text nor a list of content objects",
    "what can be read of it is read",
    "Rule 6 of 004: a content object has a type, and what the description shows of that type: a "
    "text its `text`, a call its `id`, `name` and `input`.",
    docs=PAGE,
)
IMAGE: Final = Rule(
    "dialect.image",
    "error",
    "an image is not base64 with a media type",
    "the API refuses it; it is left out of what is sent",
    "Rule 7 of 004.",
    docs=PAGE,
)
MIXED: Final = Rule(
    "dialect.mixed",
    "warning",
    "a message is of another form than most of the file",
    "each message is read by its own form; more than one tool wrote the file",
    "The descriptions know one form each. A file of a dialect with messages of another dialect, or "
    "of the real client, follows neither.",
    docs=PAGE,
)
RULES: Final = (
    MIXED,
    UNKNOWN,
    REQUIRED,
    NO_MESSAGE,
    DUPLICATE,
    TIMESTAMP,
    PARENT,
    CYCLE,
    SHAPE,
    TOOL,
    SIDECHAIN,
    OPERATION,
    METADATA,
    RESULT,
    CONTENT,
    IMAGE,
)

Json = dict[str, Any]
_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "spec-000": ("type", "uuid", "timestamp", "sessionId"),
    "spec-004": ("uuid", "parentUuid", "sessionId", "type", "timestamp", "message"),
}
_FLAGS: Final = ("isSidechain", "isDeleted", "isAborted", "isMeta", "isError", "is_active")
_ISO: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}T\d{2}")
_SECONDS: Final = range(10**9, 10**11)
"""Numbers that are times of this century in seconds, and of 1970 to 1973 in milliseconds."""
_LONGEST: Final = 80
_BLOCKS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""What blocks must have, and of which type."""
_MEDIA: Final = re.compile(r"image/[\w.+-]+\Z")


def check_dialect(made: ConvertedSource, findings: Findings, *, cap: int = LINE_CAP) -> None:
    """Look at the records of a dialect by the rules of the document that describes them."""
    watch = _Watch(made.dialect, findings, made.unmatched_results())
    for fields, place in _records(made.original, cap):
        watch.take(fields, place, made.form_at(place.span.offset))
    watch.finish()


def _records(source: Source, cap: int) -> Iterator[tuple[Json, Place]]:
    line = 1
    for piece in read_pieces(source, cap=cap):
        if isinstance(piece, Gap):
            line += source.read(piece.offset + piece.length - 1, 1) == b"\n"
            continue
        yield piece.fields, Place(line, Span(piece.offset, piece.length), piece.uuid or "")
        line += piece.ending.endswith(b"\n")


class _Watch:
    """One file, record by record."""

    def __init__(self, dialect: Dialect, findings: Findings, unmatched: frozenset[int]) -> None:
        self._most: Dialect = dialect
        """The form of most messages of the file."""
        self._form = dialect
        """The form of the record that is looked at."""
        self._met: set[Dialect] = set()
        self._unknown: set[str] = set()
        """The types and subtypes that no description gives, as far as they were met."""
        self._unmatched = unmatched
        """Where results lie that no call could be found for."""
        self._findings = findings
        self._seen: dict[str, Place] = {}
        self._side: dict[str, bool] = {}
        self._calls: dict[str, bool] = {}
        """Whether each call was a sub-agent's."""
        self._parents: list[tuple[str, Place, bool]] = []
        self._above: dict[str, str] = {}
        """The parent of each record, by their uuids."""
        self._unflagged: dict[str, Place] = {}
        """Records of the main conversation that hang on those of a sub-agent."""
        self._asked: dict[str, Place | None] = {}
        """What is answered: of the main conversation, where it lies; of a sub-agent, None."""

    def take(self, fields: Json, place: Place, form: Dialect) -> None:
        """Look at the next record, which is written in a form."""
        kind = fields.get("type")
        if self._most not in (form, "claude") and (form != "claude" or kind in ROLES):
            self._note(MIXED, place, form if form != "claude" else "the real client's")
        self._form = form
        self._kind(fields, place, self._most if form == "claude" else form)
        if form == "claude":
            self._remember(fields, place)
            return
        if form not in self._met:
            self._met.add(form)
            mild = self._most != "claude"
            self._findings.add(DIALECT, place, f"{DIALECT.title}: {form}", mild=mild)
        self._required(fields, place)
        self._identity(fields, place)
        self._time(fields, place)
        self._shapes(fields, place)
        if self._form == "spec-000":
            self._flat(fields, place)
        else:
            self._nested(fields, place)

    def _kind(self, fields: Json, place: Place, form: Dialect) -> None:
        name = unknown_type(fields, form)
        if name and name not in self._unknown:
            self._unknown.add(name)
            self._note(UNKNOWN, place, name[:_LONGEST])

    def _remember(self, fields: Json, place: Place) -> None:
        """Remember what records of a dialect may name of one of the client's."""
        uuid, side = fields.get("uuid"), fields.get("isSidechain") is True
        if isinstance(uuid, str):
            self._seen.setdefault(uuid, place)
            self._side[uuid] = side
            self._remember_parent(uuid, fields.get("parentUuid"))
        message = fields.get("message")
        content = cast("Json", message).get("content") if isinstance(message, dict) else None
        for block in cast("list[Any]", content) if isinstance(content, list) else ():
            found = cast("Json", block) if isinstance(block, dict) else {}
            if found.get("type") == "tool_use":
                self._calls[str(found.get("id"))] = side

    def finish(self) -> None:
        """Look at what can be said only when all was read."""
        for parent, place, _ in self._parents:
            if parent not in self._seen:
                self._note(PARENT, place, f"no record has the uuid {parent!r}")
        for cycle in _cycles(self._above):
            self._note(CYCLE, min((self._seen[uuid] for uuid in cycle), key=lambda at: at.line))
        # A record behind a sub-agent's may be the main conversation going on; one that sub-agent's
        # records follow is in the midst of theirs.
        for parent, _, sidechain in self._parents:
            between = self._unflagged.get(parent)
            if sidechain and between is not None:
                self._note(SIDECHAIN, between)
                del self._unflagged[parent]

    def _note(self, rule: Rule, place: Place, message: str = "") -> None:
        self._findings.add(rule, place, f"{rule.title}: {message}" if message else "")

    def _required(self, fields: Json, place: Place) -> None:
        wanted = _REQUIRED[self._form]
        if fields.get("type") == "compact_system":
            wanted = (*wanted, "message")
        for name in wanted:
            is_nothing = fields.get(name) in (None, "") and name != "parentUuid"
            if name not in fields or is_nothing:
                self._note(REQUIRED, place, name)

    def _identity(self, fields: Json, place: Place) -> None:
        uuid, parent = fields.get("uuid"), fields.get("parentUuid")
        side = fields.get("isSidechain") is True
        if isinstance(parent, str):
            self._parents.append((parent, place, side))
            if not side and self._side.get(parent) and isinstance(uuid, str):
                self._unflagged[uuid] = place
        elif parent is not None:
            self._note(SHAPE, place, "parentUuid is no text")
        if fields.get("type") == "assistant" and isinstance(parent, str):
            self._conversation(parent, place, sidechain=side)
        if not isinstance(uuid, str) or not uuid:
            if uuid:
                self._note(SHAPE, place, "uuid is no text")
            return
        if fields.get("type") in ("user", "human"):
            self._asked[uuid] = None if side else place
        elif fields.get("type") == "tool_result" and side:
            self._asked[uuid] = None
        if uuid in self._seen:
            self._note(DUPLICATE, place, f"{uuid!r} stands on line {self._seen[uuid].line} too")
        self._seen.setdefault(uuid, place)
        self._side[uuid] = side
        self._remember_parent(uuid, parent)

    def _shapes(self, fields: Json, place: Place) -> None:
        for name in _FLAGS:
            if not isinstance(fields.get(name), bool | None):
                self._note(SHAPE, place, f"{name} is no boolean")
        for name in ("sessionId", "subtype"):
            if not isinstance(fields.get(name), str | None):
                self._note(SHAPE, place, f"{name} is no text")

    def _conversation(self, parent: str, place: Place, *, sidechain: bool) -> None:
        """Look whether an answer is in the conversation of what it answers.

        In the examples of 000 the main conversation goes on right behind a sub-agent's prompt.
        """
        if parent not in self._asked:
            # A sub-agent's records begin with a prompt; one that is told of already is not told again.
            if sidechain and self._side.get(parent) is False and parent not in self._unflagged:
                self._note(SIDECHAIN, place, "the one that this one follows")
            return
        prompt = self._asked[parent]
        if prompt is None and not sidechain and self._form == "spec-004":
            self._note(SIDECHAIN, place)
        elif prompt is not None and sidechain:
            self._unflagged.pop(parent, None)
            self._note(SIDECHAIN, prompt)
            self._asked[parent] = None  # it is told once

    def _remember_parent(self, uuid: str, parent: Any) -> None:
        # A uuid that stands twice is a fault of its own, and no circle.
        self._above.setdefault(uuid, parent if isinstance(parent, str) else "")

    def _time(self, fields: Json, place: Place) -> None:
        stamp = fields.get("timestamp")
        if stamp is None:
            return
        if self._form == "spec-000":
            fits = isinstance(stamp, str) and _ISO.match(stamp) and read_time(stamp) is not None
        else:
            number = isinstance(stamp, int | float) and not isinstance(stamp, bool)
            fits = number and read_time(stamp) is not None and int(stamp) not in _SECONDS
        if not fits:
            self._note(TIMESTAMP, place, repr(stamp)[:60])

    # 000

    def _flat(self, fields: Json, place: Place) -> None:
        kind, subtype, message = fields.get("type"), fields.get("subtype"), fields.get("message")
        if message is not None and not isinstance(message, str):
            self._note(SHAPE, place, "message is no text")
        if kind == "compact_system":
            self._operation(fields, place)
            return
        if kind == "assistant" and subtype == "tool_use":
            self._call(fields, place)
        elif not message and not (kind == "user" and "command" in fields):
            self._note(NO_MESSAGE, place)
        if place.span.offset in self._unmatched:
            self._note(RESULT, place)

    def _call(self, fields: Json, place: Place) -> None:
        missing = [name for name in ("toolName", "toolArguments") if fields.get(name) in (None, "")]
        if missing:
            self._note(TOOL, place, ", ".join(missing))
        if not isinstance(fields.get("toolName", ""), str | None):
            self._note(SHAPE, place, "toolName is no text")
        arguments = fields.get("toolArguments")
        if arguments != "" and not isinstance(arguments, dict | None):
            self._note(SHAPE, place, "toolArguments is no object")

    def _operation(self, fields: Json, place: Place) -> None:
        message, metadata = fields.get("message"), fields.get("metadata")
        if isinstance(message, str) and message and message not in OPERATIONS:
            self._note(OPERATION, place, repr(message)[:60])
        if message == "conversation_compacted" and metadata in (None, {}):
            self._note(METADATA, place)
        if metadata is not None and not isinstance(metadata, dict):
            self._note(SHAPE, place, "metadata is no object")

    # 004

    def _nested(self, fields: Json, place: Place) -> None:
        message = fields.get("message")
        if message is None:
            return
        if not isinstance(message, dict):
            self._note(CONTENT, place, "message is no object")
            return
        content = cast("Json", message).get("content")
        if isinstance(content, str):
            if fields.get("type") == "tool_result":
                self._note(RESULT, place, "it names no call")
            return
        blocks = cast("list[Any]", content) if isinstance(content, list) else [None]
        side = fields.get("isSidechain") is True
        answers = 0
        for block in blocks:
            answers += self._block(block, place, sidechain=side)
        if fields.get("type") == "tool_result" and not answers:
            self._note(RESULT, place, "it names no call")

    def _block(self, value: Any, place: Place, *, sidechain: bool) -> bool:
        """Look at one block; return whether it is a tool result."""
        block = cast("Json", value) if isinstance(value, dict) else {}
        kind: Any = block.get("type")
        if not isinstance(kind, str):
            self._note(CONTENT, place)
            return False
        wanted = _BLOCKS.get(kind, {})
        odd = [name for name, shape in wanted.items() if not isinstance(block.get(name), shape)]
        if odd:
            self._note(CONTENT, place, f"a block of type {kind} without {', '.join(odd)}")
        match kind:
            case "tool_use" if isinstance(block.get("id"), str):
                self._calls[block["id"]] = sidechain
            case "tool_result":
                self._result(block, place, sidechain=sidechain)
                return True
            case "image" if not _is_image(block.get("source")):
                self._note(IMAGE, place)
            case _:
                pass
        return False

    def _result(self, block: Json, place: Place, *, sidechain: bool) -> None:
        name, content = block.get("tool_use_id"), block.get("content")
        if not isinstance(name, str) or name not in self._calls:
            self._note(RESULT, place, repr(name)[:60])
        elif self._calls[name] and not sidechain:
            self._note(SIDECHAIN, place)
        if isinstance(content, list):
            for part in cast("list[Any]", content):
                self._block(part, place, sidechain=sidechain)
        elif not isinstance(content, str | None):
            self._note(CONTENT, place, "the content of a result is neither text nor a list")


def _cycles(above: dict[str, str]) -> Iterator[list[str]]:
    """Yield the uuids of each circle of parents."""
    done: set[str] = set()
    for start in above:
        path: dict[str, int] = {}
        at: str | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = above.get(at)
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
