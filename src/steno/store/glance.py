"""What a listing needs to know of a session, from the two ends of its file.

The client re-appends titles and states near the end of a file, so both ends together nearly always
say everything. Nothing here raises on what a file holds.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.format.dialects.names import OWN_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect
from steno.format.slugs import project_of_folder
from steno.format.source import Source
from steno.session.liveness import (
    Ending,
    LastMessage,
    SessionStatus,
    activity_age,
    ending_of,
    status_at,
)
from steno.session.story.prompts import typed_command
from steno.session.story.titles import cut_title, own_summary
from steno.store.archive.opened import opened
from steno.store.found import Found
from steno.store.titles import given_title
from steno.store.uuids import uuids_in

__all__ = ["Glance", "ending_in", "glance", "shown_project"]

END: Final = 1 << 16
_FURTHEST: Final = 1 << 20
# A pasted picture makes a first line of megabytes.
_LONGEST: Final = 8 << 20
_COMMAND: Final = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>|<bash-input>([^<]*)<")
_INTERRUPTED: Final = "[Request interrupted by user"
_MACHINE: Final = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-|bash-|task-notification|system-reminder"
    r"|user-memory-input|teammate-message|tick|session-start-hook|user-prompt-submit-hook"
    r"|pre-tool-use-hook|post-tool-use-hook)"
)
_REMINDERS: Final = re.compile(r"(?:\s*+<system-reminder>.*?</system-reminder>)++\s*+", re.DOTALL)
_NOTHING: Final = msgspec.Raw()


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: msgspec.Raw = _NOTHING
    model: str | None = None
    stop_reason: str | None = None


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class _Line(msgspec.Struct, rename="camel", gc=False):
    """The few fields a listing looks at."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | int | float | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    last_prompt: str | None = None
    message: msgspec.Raw = _NOTHING


class Glance(msgspec.Struct, frozen=True):
    """A session at a glance. Empty, None or False where the file does not say."""

    id: str
    title: str = ""
    named: bool = False
    """Whether somebody or something gave it a title; else the title is a prompt."""
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
    """Whether all its messages belong to a sub-agent."""
    last_uuid: str = ""
    dialect: Dialect = "claude"
    """The published dialect that the file is written in; nearly always the real client's own."""
    lent: tuple[tuple[str, str], ...] = ()
    """Titles that old clients wrote here for other sessions: (record id, title)."""

    @property
    def started(self) -> float | None:
        """When its first record was written, in seconds."""
        return _epoch(self.first_time)

    @property
    def ended(self) -> float | None:
        """When its last record was written, in seconds."""
        return _epoch(self.last_time)

    @property
    def hidden(self) -> bool:
        """Whether a listing leaves it out: nobody asked anything, or a sub-agent's file."""
        return self.sidechain or not self.prompted


_DECODE: Final = msgspec.json.Decoder(_Line).decode
_MESSAGE: Final = msgspec.json.Decoder(_Message).decode
_BLOCKS: Final = msgspec.json.Decoder(list[_Block]).decode
_STRING: Final = msgspec.json.Decoder(str).decode
_BAD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def glance(found: Found, now: float) -> Glance:
    """Look at a session's head and tail.

    Raises:
        Unreadable: the file cannot be read any more.
    """
    with opened(found) as source:
        look = _look_at(source)
        if look.in_dialect:
            from steno.format.dialects.detection import convert_source

            made = convert_source(source)
            look = _look_at(made, made.hidden())
            look.dialect = made.dialect
    stem = os.path.basename(found.path).removesuffix(".jsonl")
    return look.result(found.place.session_id or look.session_id or stem, found, now)


def shown_project(found: Found) -> str | None:
    """Return the project of a session that a listing shows, from as little of it as tells that.

    Raises:
        Unreadable: the file cannot be read any more.
    """
    with opened(found) as source:
        head = source.read(0, min(source.size, END))
        look = _Look()
        for line in _lines(head[: head.rfind(b"\n") + 1]):
            look.take((line,))
            if look.settled:
                return look.project
    whole = glance(found, 0.0)
    return None if whole.hidden else whole.project


def ending_in(source: Source) -> tuple[Ending, float | None]:
    """Return what an open transcript ends with, and the time of its last record in seconds.

    As `glance` has it; a file in a published dialect is to be converted first.
    """
    from steno.format.dialects.detection import hidden_in

    look = _look_at(source, hidden_in(source))
    return look.ending(), _epoch(look.ended)


def _look_at(source: Source, hidden: frozenset[str] = frozenset()) -> "_Look":
    look = _Look(hidden)
    if source.size <= 2 * END:
        look.take(_lines(source.read(0, source.size)))
    else:
        _look_at_ends(source, look)
    return look


def _look_at_ends(source: Source, look: "_Look") -> None:
    done, size = 0, END
    while True:
        head = source.read(done, size)
        at_end = done + len(head) >= source.size
        whole = len(head) if at_end else head.rfind(b"\n") + 1
        look.take(_lines(head[:whole]))
        done += whole
        furthest = _FURTHEST if whole or look.first_prompt else _LONGEST
        if at_end or look.complete or done + size >= furthest:
            break
        size = min(size * 4, _LONGEST)
    size = END
    while True:
        tail = source.read(source.size - size, size)
        first = tail.find(b"\n") + 1
        if (first and tail[first:].strip()) or size >= min(_FURTHEST, source.size):
            break
        size = min(size * 4, source.size)
    look.take(_lines(tail[first:]))
    far = look.far_leaves()
    if far:
        look.uuids |= uuids_in(source, far, source.size)


def _lines(data: bytes) -> Iterator[_Line]:
    for line in data.split(b"\n"):
        if line:
            try:
                yield _DECODE(line)
            except _BAD:
                yield from _read_odd(line)


def _read_odd(line: bytes) -> list[_Line]:
    """Read what the fast decoder refuses: a field of another type, a damaged line, no record."""
    if b"{" not in line:
        return []
    from steno.format.lines import read_bytes
    from steno.format.loose import fill
    from steno.format.records import Record

    records = (piece for piece in read_bytes(line) if isinstance(piece, Record))
    return [fill(_Line, record.fields) for record in records]


class _Look:
    """Gathers from lines in file order; state records and answers overwrite earlier ones."""

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        self.hidden = hidden
        self.session_id = self.project = self.branch = self.version = self.entrypoint = ""
        self.model = self.custom = self.ai = self.last_prompt = self.first_prompt = ""
        self.command = ""
        self.prompted = False
        self.dialect: Dialect = "claude"
        self.in_dialect = False
        """Whether a record is written as in a published dialect."""
        self.summaries: list[tuple[str, str]] = []
        self.behind: set[str] = set()
        """The leaves of summaries that stand behind a record: those of others stand first."""
        self.uuids: set[str] = set()
        self.last_uuid = ""
        self.started: str | int | float | None = None
        self.ended: str | int | float | None = None
        self.main = self.side = self.answered = self.left = self.refused = False
        self.last: _Line | None = None
        self.open: dict[str, str] = {}

    @property
    def complete(self) -> bool:
        return bool(self.first_prompt and self.answered)

    @property
    def settled(self) -> bool:
        """Whether nothing further down can hide it, or change its project."""
        return bool(self.project and (self.first_prompt or (self.command and self.answered)))

    def far_leaves(self) -> set[str]:
        """Return the leaves that the title depends on, and that may be where nobody looked."""
        return set() if self.custom or self.ai else self.behind - self.uuids

    def take(self, lines: Iterable[_Line]) -> None:
        for line in lines:
            self.in_dialect = self.in_dialect or _is_in_dialect(line)
            self._line(line)

    def _line(self, line: _Line) -> None:
        match line.type:
            case "user" | "assistant":
                self._message(line)
            case "custom-title":
                self.custom = line.custom_title or self.custom
            case "ai-title":
                self.ai = line.ai_title or self.ai
            case "summary" if line.summary:
                self._summary(line.leaf_uuid or "", line.summary)
            case "last-prompt":
                if line.last_prompt and not _MACHINE.match(line.last_prompt):
                    self.last_prompt = line.last_prompt
            case "system" if line.subtype == "api_error":
                self.refused = True
            case "cost-state":
                # The newest clients write the bill when they are closed.
                self.left = True
            case _:
                pass
        self.session_id = self.session_id or line.session_id or ""
        if line.uuid:
            self._place(line)

    def _summary(self, leaf: str, title: str) -> None:
        self.summaries.append((leaf, title))
        if leaf and self.uuids:
            self.behind.add(leaf)

    def _place(self, line: _Line) -> None:
        self.uuids.add(line.uuid or "")
        if not line.is_sidechain:
            self.last_uuid = line.uuid or ""
        self.project = self.project or line.cwd or ""
        self.branch = line.git_branch or self.branch
        self.version = line.version or self.version
        self.entrypoint = line.entrypoint or self.entrypoint
        if line.timestamp is not None:
            self.started = line.timestamp if self.started is None else self.started
            self.ended = line.timestamp

    def _message(self, line: _Line) -> None:
        if line.is_sidechain:
            self.side = True
            return
        if line.uuid in self.hidden:
            # A session does not end with what is on a branch that is not active.
            self._prompt(line)
            return
        self.main = True
        if self.last is None or not _is_aside(line):
            self.refused = False
            self.last = line
        self.left = False
        if line.type == "assistant":
            self.answered = True
            message = _message(line)
            if message.model and message.model != "<synthetic>":
                self.model = message.model
            for block in _blocks(message):
                if block.type == "tool_use" and block.id:
                    self.open[block.id] = block.name or ""
        else:
            for block in _blocks(_message(line)):
                if block.type == "tool_result":
                    self.open.pop(block.tool_use_id or "", None)
            self._prompt(line)

    def _prompt(self, line: _Line) -> None:
        words = _words(_message(line))
        if command := _COMMAND.search(words[:2000]):
            self.command = self.command or typed_command(words[:2000])
            self.left = command[1] in ("/exit", "/quit")
        if not self.first_prompt and _is_human(line):
            self.first_prompt = words if words.strip() else ""
            self.prompted = True

    def result(self, name: str, found: Found, now: float) -> Glance:
        names = (
            self.custom or given_title(found),
            self.ai,
            own_summary(self.uuids, self.summaries),
        )
        given = next((name for name in names if name.strip()), "")
        asked = self.last_prompt if self.last_prompt.strip() else self.first_prompt
        ending = self.ending()
        return Glance(
            id=name,
            title=cut_title(given or asked or self.command),
            named=bool(given),
            project=self._project(found),
            branch="" if self.branch == "HEAD" else self.branch,
            model=self.model,
            version=self.version,
            entrypoint=self.entrypoint,
            first_time=self.started,
            last_time=self.ended,
            ending=ending,
            status=status_at(ending, activity_age(now, _epoch(self.ended))),
            # A command alone, such as `/exit`, asks the model nothing.
            prompted=bool(self.prompted or (self.command and self.answered)),
            answered=self.answered,
            sidechain=self.side and not self.main,
            last_uuid=self.last_uuid,
            dialect=self.dialect,
            lent=tuple(
                (leaf, cut_title(title))
                for leaf, title in self.summaries
                if leaf not in self.uuids and title.strip()
            ),
        )

    def _project(self, found: Found) -> str:
        """Return where the session ran; a dialect says it by the name of the folder alone."""
        if self.project or self.dialect == "claude":
            return self.project
        return project_of_folder(os.path.basename(os.path.dirname(found.path)))

    def ending(self) -> Ending:
        """Return what the session ends with; a file does not say whether its client still runs."""
        line = self.last
        if line is None:
            return ""
        blocks = _blocks(_message(line))
        open_tools = [self.open[block.id] for block in blocks if block.id in self.open]
        return ending_of(_kind(line, blocks), open_tools, left=self.left, refused=self.refused)


def _is_in_dialect(line: _Line) -> bool:
    """Whether a record is one of a published dialect; the same as of `dialect_of`."""
    message = line.message
    if line.type in OWN_TYPES:
        return True
    if line.type == "system":
        is_note = (line.subtype or "") in SYSTEM_SUBTYPES and _is_text(message)
        return line.subtype == "tool_result" or is_note
    if line.type not in ROLES:
        return False
    if not message or bytes(message) == b"null":
        return line.type == "assistant" and bool(line.subtype)
    in_millis = line.timestamp.__class__ in (int, float)
    return _is_text(message) or (in_millis and _message(line).role is None)


def _is_text(value: msgspec.Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b'"'


def _kind(line: _Line, blocks: list[_Block]) -> LastMessage:
    if line.is_api_error_message:
        return "error"
    if line.type == "assistant":
        return "answer"
    if _words(_message(line)).startswith(_INTERRUPTED):
        return "interrupt"
    answers = any(block.type == "tool_result" for block in blocks)
    return "prompt" if answers or _is_human(line) else "other"


def _is_aside(line: _Line) -> bool:
    """Whether a record leaves open what came before it: a command, its output, a notice."""
    return _kind(line, _blocks(_message(line))) == "other"


def _message(line: _Line) -> _Message:
    if not line.message:
        return _Message()
    try:
        return _MESSAGE(line.message)
    except _BAD:
        # A dialect writes the words alone.
        return _Message(content=line.message)


def _blocks(message: _Message) -> list[_Block]:
    if not message.content:
        return []
    try:
        return _BLOCKS(message.content)
    except _BAD:
        return []


def _words(message: _Message) -> str:
    """Return the words of a message without the reminders that the client put in."""
    if not message.content:
        return ""
    try:
        return _without_reminders(_STRING(message.content))
    except _BAD:
        texts = (block.text for block in _blocks(message) if block.type == "text" and block.text)
        return "\n\n".join(words for text in texts if (words := _without_reminders(text)).strip())


def _without_reminders(text: str) -> str:
    found = _REMINDERS.match(text) if "<system-reminder>" in text else None
    return text[found.end() :] if found else text


def _is_human(line: _Line) -> bool:
    """Whether a record is a prompt that somebody typed, not a result, notice or command."""
    if line.type != "user" or line.is_meta or line.is_sidechain:
        return False
    if line.is_compact_summary:
        return False
    message = _message(line)
    blocks = _blocks(message)
    if any(block.type == "tool_result" for block in blocks):
        return False
    words = _words(message)
    if not words.strip():
        return any(block.type in ("image", "document") for block in blocks)
    return not words.startswith(_INTERRUPTED) and not _MACHINE.match(words)


def _epoch(stamp: str | float | None) -> float | None:
    if stamp is None:
        return None
    from steno.format.records import read_time

    moment = read_time(stamp)
    return moment.timestamp() if moment else None
