"""Session summaries for lists, read from the two ends of a file.

Claude Code repeats titles and state records near the end of a file, so the two ends nearly always contain everything.
The content of a file never raises an error.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.format.lenient_json import DECODE_ERRORS
from steno.format.lines import LineBatch, read_line, read_line_batches
from steno.format.message import EMPTY_RAW, SYNTHETIC, RecordFields, projection
from steno.format.paths import project_from_slug
from steno.format.records import DIALECT_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect, Record
from steno.format.source import Source
from steno.session.session_status import Ending, LastMessage, SessionStatus, activity_age, ending_of, status_at
from steno.session.turns.prompts import shorten_title, summary_for, typed_command
from steno.store.archive.file_access import open_file
from steno.store.discovery import ArchivedFile, DiscoveredFile, peek

_MAX_TITLE_SIZE: Final = 1 << 16


class _CustomTitle(msgspec.Struct, rename="camel"):
    custom_title: str | None = None


def read_custom_title(file: DiscoveredFile) -> str:
    """Return the title that recent versions of Claude Code store next to the session."""
    path = os.path.join(file.path.removesuffix(".jsonl"), "custom-title.json")
    if isinstance(file, ArchivedFile):
        from steno.store.archive.catalogue import archived_sidecar

        raw = archived_sidecar(file, path, _MAX_TITLE_SIZE)
    else:
        raw = peek(path, _MAX_TITLE_SIZE, [])
    try:
        return (msgspec.json.decode(raw, type=_CustomTitle).custom_title or "") if raw else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


@projection("uuid")
class _UuidRecord(RecordFields):
    pass


_decode_uuid: Final = msgspec.json.Decoder(_UuidRecord).decode


def find_uuids(source: Source, candidates: set[str], stop: int) -> set[str]:
    """Return which of the candidate IDs occur in records that start before the offset `stop`."""
    escaped = [re.escape(uuid.encode("utf-8", "surrogatepass")) for uuid in sorted(candidates) if uuid]
    if not escaped:
        return set()
    pattern = re.compile(b"|".join(escaped))
    present: set[str] = set()
    for stretch in read_line_batches(source):
        if stretch.offset >= stop or len(present) == len(escaped):
            break
        if isinstance(stretch, LineBatch) and pattern.search(stretch.data):
            present.update(candidates.intersection(_stretch_uuids(stretch, pattern, stop)))
    return present


def _stretch_uuids(stretch: LineBatch, pattern: "re.Pattern[bytes]", stop: int) -> Iterator[str]:
    for line in stretch.lines():
        if line.offset >= stop:
            return
        if not pattern.search(line.data):
            continue
        try:
            yield _decode_uuid(line.data).uuid or ""
        except DECODE_ERRORS:
            yield from (piece.uuid or "" for piece in read_line(line) if isinstance(piece, Record))


END_SIZE: Final = 1 << 16
_MAX_END_SIZE: Final = 1 << 20
# A pasted image can make the first line several megabytes long.
_MAX_FIRST_LINE: Final = 8 << 20
_COMMAND_PATTERN: Final = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>|<bash-input>([^<]*)<")
_INTERRUPT_TEXT: Final = "[Request interrupted by user"
_GENERATED_TEXT: Final = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-|bash-|task-notification|system-reminder"
    r"|user-memory-input|teammate-message|tick|session-start-hook|user-prompt-submit-hook"
    r"|pre-tool-use-hook|post-tool-use-hook)"
)
_LEADING_REMINDERS: Final = re.compile(r"(?:\s*+<system-reminder>.*?</system-reminder>)++\s*+", re.DOTALL)


class _SummaryMessage(msgspec.Struct, gc=False):
    role: str | None = None
    content: msgspec.Raw = EMPTY_RAW
    model: str | None = None
    stop_reason: str | None = None


class _SummaryBlock(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


@projection(
    "type subtype uuid parent_uuid session_id timestamp cwd version git_branch entrypoint is_sidechain is_meta "
    "is_compact_summary is_api_error_message custom_title ai_title summary leaf_uuid last_prompt"
)
class _SummaryRecord(RecordFields):
    """The fields that a summary needs."""

    message: msgspec.Raw = EMPTY_RAW


class SessionSummary(msgspec.Struct, frozen=True):
    """The summary of a session. Fields are empty, None or False if the file does not contain them."""

    id: str
    title: str = ""
    has_title: bool = False
    """Whether the title was set by the user or Claude Code; otherwise it is a prompt."""
    project: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    entrypoint: str = ""
    first_time: str | int | float | None = None
    last_time: str | int | float | None = None
    ending: Ending = ""
    status: SessionStatus = "empty"
    prompted: bool = False
    answered: bool = False
    sidechain: bool = False
    """Whether all messages belong to a sub-agent."""
    last_uuid: str = ""
    dialect: Dialect = "claude"
    """The dialect of the file; nearly always Claude Code's own."""
    foreign_titles: tuple[tuple[str, str], ...] = ()
    """Titles that old versions of Claude Code wrote here for other sessions: (record ID, title)."""

    @property
    def started(self) -> float | None:
        """Time of the first record, in seconds since 1970."""
        return _to_seconds(self.first_time)

    @property
    def ended(self) -> float | None:
        """Time of the last record, in seconds since 1970."""
        return _to_seconds(self.last_time)

    @property
    def hidden(self) -> bool:
        """Whether lists omit the session: it has no prompt, or is a sub-agent's file."""
        return self.sidechain or not self.prompted


_decode_record: Final = msgspec.json.Decoder(_SummaryRecord).decode
_decode_message: Final = msgspec.json.Decoder(_SummaryMessage).decode
_decode_blocks: Final = msgspec.json.Decoder(list[_SummaryBlock]).decode
_decode_string: Final = msgspec.json.Decoder(str).decode


def summarize(file: DiscoveredFile, now: float) -> SessionSummary:
    """Summarize a session from the start and end of its file.

    Raises:
        Unreadable: the file can no longer be read.
    """
    with open_file(file) as source:
        scan = _scan_source(source)
        if scan.in_dialect:
            from steno.format.dialects.detection import convert_source

            converted = convert_source(source)
            scan = _scan_source(converted, converted.hidden_ids())
            scan.dialect = converted.dialect
    stem = os.path.basename(file.path).removesuffix(".jsonl")
    return scan.build_summary(file.place.session_id or scan.session_id or stem, file, now)


def project_in_listing(file: DiscoveredFile) -> str | None:
    """Return the project of a session that lists include, reading as little as possible; None for a hidden session.

    Raises:
        Unreadable: the file can no longer be read.
    """
    with open_file(file) as source:
        head = source.read(0, min(source.size, END_SIZE))
        scan = _SummaryScan()
        for record in _decode_lines(head[: head.rfind(b"\n") + 1]):
            scan.add_records((record,))
            if scan.is_settled:
                return scan.project
    summary = summarize(file, 0.0)
    return None if summary.hidden else summary.project


def find_ending(source: Source) -> tuple[Ending, float | None]:
    """Return the ending of an open transcript, and the time of its last record in seconds.

    Equivalent to `summarize`; a file in a published dialect must be converted first.
    """
    from steno.format.dialects.detection import hidden_ids

    scan = _scan_source(source, hidden_ids(source))
    return scan.ending(), _to_seconds(scan.ended)


def _scan_source(source: Source, inactive: frozenset[str] = frozenset()) -> "_SummaryScan":
    scan = _SummaryScan(inactive)
    if source.size <= 2 * END_SIZE:
        scan.add_records(_decode_lines(source.read(0, source.size)))
    else:
        _scan_ends(source, scan)
    return scan


def _scan_ends(source: Source, scan: "_SummaryScan") -> None:
    offset, size = 0, END_SIZE
    while True:
        head = source.read(offset, size)
        at_end = offset + len(head) >= source.size
        complete_size = len(head) if at_end else head.rfind(b"\n") + 1
        scan.add_records(_decode_lines(head[:complete_size]))
        offset += complete_size
        max_offset = _MAX_END_SIZE if complete_size or scan.first_prompt else _MAX_FIRST_LINE
        if at_end or scan.is_complete or offset + size >= max_offset:
            break
        size = min(size * 4, _MAX_FIRST_LINE)
    size = END_SIZE
    while True:
        tail = source.read(source.size - size, size)
        first_line_start = tail.find(b"\n") + 1
        if (first_line_start and tail[first_line_start:].strip()) or size >= min(_MAX_END_SIZE, source.size):
            break
        size = min(size * 4, source.size)
    scan.add_records(_decode_lines(tail[first_line_start:]))
    unseen_leaves = scan.unseen_leaves()
    if unseen_leaves:
        scan.uuids |= find_uuids(source, unseen_leaves, source.size)


def _decode_lines(data: bytes) -> Iterator[_SummaryRecord]:
    for line in data.split(b"\n"):
        if line:
            try:
                yield _decode_record(line)
            except DECODE_ERRORS:
                yield from _decode_loosely(line)


def _decode_loosely(line: bytes) -> list[_SummaryRecord]:
    """Decode a line that the fast decoder rejects: with a field of another type, damaged, or not a record."""
    if b"{" not in line:
        return []
    from steno.format.lenient_json import fill_struct
    from steno.format.lines import read_bytes
    from steno.format.records import Record

    records = (piece for piece in read_bytes(line) if isinstance(piece, Record))
    return [fill_struct(_SummaryRecord, record.fields) for record in records]


class _SummaryScan:
    """Collects fields from records in file order; later state records and answers override earlier ones."""

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        self.inactive = hidden
        self.session_id = self.project = self.branch = self.version = self.entrypoint = ""
        self.model = self.custom_title = self.ai_title = self.last_prompt = self.first_prompt = ""
        self.command = ""
        self.prompted = False
        self.dialect: Dialect = "claude"
        self.in_dialect = False
        """Whether a record is in a published dialect."""
        self.summaries: list[tuple[str, str]] = []
        self.foreign_leaves: set[str] = set()
        """Leaves of summaries that follow another record; summaries of other sessions come first in a file."""
        self.uuids: set[str] = set()
        self.last_uuid = ""
        self.started: str | int | float | None = None
        self.ended: str | int | float | None = None
        self.has_main_messages = self.has_sidechain_messages = self.answered = self.exited = self.api_error = False
        self.last_message: _SummaryRecord | None = None
        self.open_calls: dict[str, str] = {}

    @property
    def is_complete(self) -> bool:
        return bool(self.first_prompt and self.answered)

    @property
    def is_settled(self) -> bool:
        """Whether later records cannot hide the session or change its project."""
        return bool(self.project and (self.first_prompt or (self.command and self.answered)))

    def unseen_leaves(self) -> set[str]:
        """Return the leaves that the title depends on and that may be in the part not read."""
        return set() if self.custom_title or self.ai_title else self.foreign_leaves - self.uuids

    def add_records(self, records: Iterable[_SummaryRecord]) -> None:
        for record in records:
            self.in_dialect = self.in_dialect or _is_in_dialect(record)
            self._add_record(record)

    def _add_record(self, record: _SummaryRecord) -> None:
        match record.type:
            case "user" | "assistant":
                self._add_message(record)
            case "custom-title":
                self.custom_title = record.custom_title or self.custom_title
            case "ai-title":
                self.ai_title = record.ai_title or self.ai_title
            case "summary" if record.summary:
                self._add_summary(record.leaf_uuid or "", record.summary)
            case "last-prompt":
                if record.last_prompt and not _GENERATED_TEXT.match(record.last_prompt):
                    self.last_prompt = record.last_prompt
            case "system" if record.subtype == "api_error":
                self.api_error = True
            case "cost-state":
                # Recent versions of Claude Code write the cost when they exit.
                self.exited = True
            case _:
                pass
        self.session_id = self.session_id or record.session_id or ""
        if record.uuid:
            self._add_graph_record(record)

    def _add_summary(self, leaf: str, title: str) -> None:
        self.summaries.append((leaf, title))
        if leaf and self.uuids:
            self.foreign_leaves.add(leaf)

    def _add_graph_record(self, record: _SummaryRecord) -> None:
        self.uuids.add(record.uuid or "")
        if not record.is_sidechain:
            self.last_uuid = record.uuid or ""
        self.project = self.project or record.cwd or ""
        self.branch = record.git_branch or self.branch
        self.version = record.version or self.version
        self.entrypoint = record.entrypoint or self.entrypoint
        if record.timestamp is not None:
            self.started = record.timestamp if self.started is None else self.started
            self.ended = record.timestamp

    def _add_message(self, record: _SummaryRecord) -> None:
        if record.is_sidechain:
            self.has_sidechain_messages = True
            return
        if record.uuid in self.inactive:
            # The ending of a session does not depend on inactive branches.
            self._add_prompt(record)
            return
        self.has_main_messages = True
        if self.last_message is None or not _is_notice(record):
            self.api_error = False
            self.last_message = record
        self.exited = False
        if record.type == "assistant":
            self.answered = True
            message = _decode_record_message(record)
            if message.model and message.model != SYNTHETIC:
                self.model = message.model
            for block in _content_blocks(message):
                if block.type == "tool_use" and block.id:
                    self.open_calls[block.id] = block.name or ""
        else:
            for block in _content_blocks(_decode_record_message(record)):
                if block.type == "tool_result":
                    self.open_calls.pop(block.tool_use_id or "", None)
            self._add_prompt(record)

    def _add_prompt(self, record: _SummaryRecord) -> None:
        text = _prompt_text(_decode_record_message(record))
        if command := _COMMAND_PATTERN.search(text[:2000]):
            self.command = self.command or typed_command(text[:2000])
            self.exited = command[1] in ("/exit", "/quit")
        if not self.first_prompt and _is_human(record):
            self.first_prompt = text if text.strip() else ""
            self.prompted = True

    def build_summary(self, session_id: str, file: DiscoveredFile, now: float) -> SessionSummary:
        title_candidates = (
            self.custom_title or read_custom_title(file),
            self.ai_title,
            summary_for(self.uuids, self.summaries),
        )
        chosen_title = next((name for name in title_candidates if name.strip()), "")
        prompt = self.last_prompt if self.last_prompt.strip() else self.first_prompt
        ending = self.ending()
        return SessionSummary(
            id=session_id,
            title=shorten_title(chosen_title or prompt or self.command),
            has_title=bool(chosen_title),
            project=self._project_of(file),
            branch="" if self.branch == "HEAD" else self.branch,
            model=self.model,
            version=self.version,
            entrypoint=self.entrypoint,
            first_time=self.started,
            last_time=self.ended,
            ending=ending,
            status=status_at(ending, activity_age(now, _to_seconds(self.ended))),
            # A command alone, such as `/exit`, sends no request to the model.
            prompted=bool(self.prompted or (self.command and self.answered)),
            answered=self.answered,
            sidechain=self.has_sidechain_messages and not self.has_main_messages,
            last_uuid=self.last_uuid,
            dialect=self.dialect,
            foreign_titles=tuple(
                (leaf, shorten_title(title))
                for leaf, title in self.summaries
                if leaf not in self.uuids and title.strip()
            ),
        )

    def _project_of(self, file: DiscoveredFile) -> str:
        """Return the working directory; files in a dialect show it only in the name of their directory."""
        if self.project or self.dialect == "claude":
            return self.project
        return project_from_slug(os.path.basename(os.path.dirname(file.path)))

    def ending(self) -> Ending:
        """Return the ending; the file does not show whether Claude Code is still running."""
        record = self.last_message
        if record is None:
            return ""
        blocks = _content_blocks(_decode_record_message(record))
        open_tools = [self.open_calls[block.id] for block in blocks if block.id in self.open_calls]
        return ending_of(_message_kind(record, blocks), open_tools, left=self.exited, refused=self.api_error)


def _is_in_dialect(record: _SummaryRecord) -> bool:
    """Return whether a record is in a published dialect; equivalent to `dialect_of`."""
    message = record.message
    if record.type in DIALECT_TYPES:
        return True
    if record.type == "system":
        is_note = (record.subtype or "") in SYSTEM_SUBTYPES and _is_json_string(message)
        return record.subtype == "tool_result" or is_note
    if record.type not in ROLES:
        return False
    if not message or bytes(message) == b"null":
        return record.type == "assistant" and bool(record.subtype)
    in_millis = record.timestamp.__class__ in (int, float)
    return _is_json_string(message) or (in_millis and _decode_record_message(record).role is None)


def _is_json_string(value: msgspec.Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b'"'


def _message_kind(record: _SummaryRecord, blocks: list[_SummaryBlock]) -> LastMessage:
    if record.is_api_error_message:
        return "error"
    if record.type == "assistant":
        return "answer"
    if _prompt_text(_decode_record_message(record)).startswith(_INTERRUPT_TEXT):
        return "interrupt"
    has_results = any(block.type == "tool_result" for block in blocks)
    return "prompt" if has_results or _is_human(record) else "other"


def _is_notice(record: _SummaryRecord) -> bool:
    """Return whether a record does not affect the ending: a command, its output, or a notice."""
    return _message_kind(record, _content_blocks(_decode_record_message(record))) == "other"


def _decode_record_message(record: _SummaryRecord) -> _SummaryMessage:
    if not record.message:
        return _SummaryMessage()
    try:
        return _decode_message(record.message)
    except DECODE_ERRORS:
        # In a dialect the content is plain text.
        return _SummaryMessage(content=record.message)


def _content_blocks(message: _SummaryMessage) -> list[_SummaryBlock]:
    if not message.content:
        return []
    try:
        return _decode_blocks(message.content)
    except DECODE_ERRORS:
        return []


def _prompt_text(message: _SummaryMessage) -> str:
    """Return the text of a message without system reminders."""
    if not message.content:
        return ""
    try:
        return _strip_reminders(_decode_string(message.content))
    except DECODE_ERRORS:
        texts = (block.text for block in _content_blocks(message) if block.type == "text" and block.text)
        return "\n\n".join(stripped for text in texts if (stripped := _strip_reminders(text)).strip())


def _strip_reminders(text: str) -> str:
    match = _LEADING_REMINDERS.match(text) if "<system-reminder>" in text else None
    return text[match.end() :] if match else text


def _is_human(record: _SummaryRecord) -> bool:
    """Return whether a record is a typed prompt, not a result, notice or command."""
    if record.type != "user" or record.is_meta or record.is_sidechain:
        return False
    if record.is_compact_summary:
        return False
    message = _decode_record_message(record)
    blocks = _content_blocks(message)
    if any(block.type == "tool_result" for block in blocks):
        return False
    text = _prompt_text(message)
    if not text.strip():
        return any(block.type in ("image", "document") for block in blocks)
    return not text.startswith(_INTERRUPT_TEXT) and not _GENERATED_TEXT.match(text)


def _to_seconds(timestamp: str | float | None) -> float | None:
    if timestamp is None:
        return None
    from steno.format.records import read_time

    time = read_time(timestamp)
    return time.timestamp() if time else None
