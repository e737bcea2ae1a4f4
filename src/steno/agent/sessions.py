"""Sessions to work in: a new one, one that goes on, a fork, one taken back to an earlier prompt."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from steno.agent.branch import git_branch
from steno.agent.conversation import BROKEN_OFF, Conversation, Figures
from steno.agent.meter import tokens_of
from steno.agent.recorder import VERSION, Recorder, new_id, rising
from steno.agent.slugs import is_slug
from steno.errors import BadRequest, InDialect, NotFound
from steno.format.compose import Place
from steno.format.dialects.detection import is_converted
from steno.format.encode import encode_line
from steno.format.paths import is_uuid, session_path
from steno.format.records import Record
from steno.format.slugs import slug
from steno.format.values import as_list, as_object
from steno.session.nodes import Node
from steno.session.resume.clients import STENO
from steno.session.resume.mend import INTERRUPTED
from steno.session.resume.replay import resumed_chain, valid_messages
from steno.session.resume.rules import fixed_block
from steno.session.resume.trims import TRIM
from steno.session.story.prompts import BY_PEOPLE, origin_of, prompt_of
from steno.session.transcript import Transcript, load
from steno.store.append import Appender, FileState
from steno.store.read import FileSource
from steno.store.session_lock import SessionLock
from steno.tools.base import ToolResult

__all__ = ["Work", "fork", "go_on", "new", "prompts", "reload", "rewind"]

_PROMPT: Final = "user/prompt"
_AGENTS: Final = "subagents"
_META: Final = ".meta.json"


class Work(msgspec.Struct, eq=False):
    """A session to work in."""

    talk: Conversation
    model: str = ""
    """The model that was asked last; nothing in a new session."""
    context: int = 0
    """How many tokens its last request and the answer took; 0 where nothing says so."""
    origin: str = ""
    """The session that this one was forked from, if it was just now."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.talk.recorder.session_id


def new(config: str, cwd: str, *, session_id: str = "") -> Work:
    """Return a new session. Its file is there with its first record.

    Raises:
        BadRequest: the id is no UUID, or a session has it.
    """
    name, path = _named(config, cwd, session_id)
    lock = _new_lock(path)
    return Work(Conversation(Recorder(path, _place(name, cwd), lock=lock, expected=FileState())))


def go_on(path: str, cwd: str) -> Work:
    """Return a session that goes on where it stopped.

    Calls that were cut off get a result that says so; the file is healed as it is appended to.

    Raises:
        Busy: another process works on the session.
        InDialect: the file has records in a published dialect.
        NotFound: there is no conversation in it.
    """
    return _locked(path, lambda lock: _resumed(path, cwd, lock))


def _resumed(path: str, cwd: str, lock: SessionLock) -> Work:
    state = FileState.of(path)
    transcript = load(FileSource(path))
    _refuse_dialect(transcript, path)
    return _at(transcript, path, cwd, _chain(transcript, path), lock, state)


def _refuse_dialect(transcript: Transcript, path: str) -> None:
    """Refuse to append to a file with records that no client reads.

    Raises:
        InDialect: the file has records in a published dialect.
    """
    source = transcript.source
    if is_converted(source):
        raise InDialect(
            f"{os.path.basename(path)} {source.description}, which no client reads",
            hint="--fork-session goes on in a converted copy",
        )


def rewind(path: str, cwd: str, prompt: str) -> Work:
    """Return a session that goes on from before a prompt; what came after it stays, as a branch.

    Raises:
        Busy: another process works on the session.
        NotFound: no prompt of the conversation has that id.
    """
    return _locked(path, lambda lock: _rewound(path, cwd, prompt, lock))


def _rewound(path: str, cwd: str, prompt: str, lock: SessionLock) -> Work:
    state = FileState.of(path)
    transcript = load(FileSource(path))
    _refuse_dialect(transcript, path)
    chain = _chain(transcript, path)
    places = [place for place, node in enumerate(chain) if node.uuid == prompt]
    if not places or chain[places[0]] not in _prompted(transcript, chain):
        raise NotFound(f"no prompt {prompt!r} in the conversation", hint="see `steno show --json`")
    return _at(transcript, path, cwd, chain[: places[0]], lock, state)


def _locked(path: str, work: Callable[[SessionLock], Work]) -> Work:
    """Return what works on a session under its lock, which is taken before anything is read."""
    lock = SessionLock.take(path)
    try:
        return work(lock)
    except BaseException:
        lock.release()
        raise


def reload(talk: Conversation) -> int:
    """Load a conversation from its file again, after a record of it could not be saved.

    Return how many tokens its last request and the answer took; 0 where nothing says so.

    Raises:
        Unreadable: the file cannot be read.
    """
    recorder = talk.recorder
    state = FileState.of(recorder.path)
    chain: list[Node] = []
    messages: list[dict[str, Any]] = []
    now = rising()
    said, context, count, figures = "", 0, 0, Figures()
    if state.size:
        transcript = load(FileSource(recorder.path))
        chain = resumed_chain(transcript, STENO) or []
        messages = valid_messages(transcript, chain[-1]) if chain else []
        now = _later_than(transcript)
        prompted = _prompted(transcript, chain)
        said = transcript.record(prompted[-1]).text if prompted else ""
        context = _context(transcript, chain)
        count, figures = _message_count(transcript, chain), _figures(transcript, chain)
    recorder.reset(chain[-1].uuid if chain else None, now, state, count)
    talk.reset(messages, said, figures)
    _answer_open_calls(talk, chain)
    if context:
        talk.count_from_last_answer()
    return context


def fork(config: str, path: str, cwd: str, *, session_id: str = "") -> Work:
    """Return a new session with everything of another in it, which is left as it is.

    Raises:
        BadRequest: the id is no UUID, or a session has it.
        NotFound: there is no conversation in it.
        Unwritable: the copy cannot be written; nothing is left of it.
    """
    transcript = load(FileSource(path))
    _chain(transcript, path)
    name, target = _named(config, cwd, session_id)
    lock = _new_lock(target)
    folder = os.path.splitext(target)[0]
    try:
        with Appender(target, expected=FileState()) as copy:
            for line in _renamed(transcript, name):
                copy.append(line)
            copy.sync()
        _copy_agents(os.path.splitext(path)[0], folder, name)
        work = _resumed(target, cwd, lock)
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        raise
    work.origin = os.path.splitext(os.path.basename(path))[0]
    return work


def _new_lock(path: str) -> SessionLock:
    """Return the lock of a session that does not exist yet.

    Raises:
        BadRequest: it exists by now.
    """
    lock = SessionLock.take(path)
    if os.path.lexists(path):
        lock.release()
        name = os.path.splitext(os.path.basename(path))[0]
        raise BadRequest(f"there is a session {name} already", hint="go on with it: --resume")
    return lock


def _named(config: str, cwd: str, session_id: str) -> tuple[str, str]:
    """Return the id of a new session and where its file will be."""
    name = session_id or new_id()
    # It becomes a part of paths, and no client resumes another name.
    if not is_uuid(name):
        raise BadRequest(f"{name!r} is no id for a session", hint="it must be a UUID")
    return name, os.path.join(config, session_path(slug(os.path.realpath(cwd)), name))


def prompts(work_path: str) -> list[tuple[str, str]]:
    """Return the prompts of a session's conversation, oldest first: (id, words as typed)."""
    transcript = load(FileSource(work_path))
    chain = _chain(transcript, work_path)
    found: list[tuple[str, str]] = []
    for node in _prompted(transcript, chain):
        record = transcript.record(node)
        origin = origin_of(record)
        if origin in BY_PEOPLE:
            text = prompt_of(record, node, origin).text
            found.append((node.uuid or "", f"!{text}" if origin == "shell" else text))
    return found


def _prompted(transcript: Transcript, chain: list[Node]) -> list[Node]:
    """Return what the user said: no summary, and no note that they broke in."""
    found: list[Node] = []
    for node in chain:
        if node.type != "user" or node.results or node.meta or node.sidechain:
            continue
        record = transcript.record(node)
        if record.kind == _PROMPT and record.text.strip() not in BROKEN_OFF:
            found.append(node)
    return found


def _chain(transcript: Transcript, path: str) -> list[Node]:
    chain = resumed_chain(transcript, STENO)
    if not chain:
        raise NotFound(f"{path}: there is no conversation in it", hint="`steno check` says why")
    return chain


def _at(
    transcript: Transcript,
    path: str,
    cwd: str,
    chain: list[Node],
    lock: SessionLock,
    state: FileState,
) -> Work:
    """Return a session that goes on behind the last record of a chain."""
    leaf = chain[-1] if chain else None
    name = os.path.splitext(os.path.basename(path))[0]
    recorder = Recorder(
        path,
        _place(name, cwd),
        leaf=leaf.uuid if leaf is not None else None,
        now=_later_than(transcript),
        lock=lock,
        expected=state,
        message_count=_message_count(transcript, chain),
    )
    recorder.name(_slug(transcript))
    messages = valid_messages(transcript, leaf) if leaf is not None else []
    asked = [node.model for node in chain if node.type == "assistant" and node.model]
    talk = Conversation(recorder, messages, _figures(transcript, chain))
    said = _prompted(transcript, chain)
    talk.last_prompt = transcript.record(said[-1]).text if said else ""
    _answer_open_calls(talk, chain)
    models = [model for model in asked if not model.startswith("<")]
    context = _context(transcript, chain)
    if context:
        talk.count_from_last_answer()
    return Work(talk, models[-1] if models else "", context)


def _slug(transcript: Transcript) -> str:
    """Return a session's name in words: once it has one, every record carries it."""
    for node in reversed(transcript.nodes):
        if node.converses and node.uuid is not None:
            slug = transcript.record(node).envelope.slug or ""
            return slug if is_slug(slug) else ""
    return ""


def _figures(transcript: Transcript, chain: list[Node]) -> Figures:
    """Return the figures that the records of a conversation carry on.

    Older clients and other programs say no position: then prompts are counted.
    """
    boundary = _boundary(transcript, chain)
    fields = transcript.record(boundary).fields if boundary is not None else {}
    metadata = as_object(fields.get("compactMetadata")) or {}
    dropped = _count(metadata.get("cumulativeDroppedTokens"))
    prompts = 0
    for node in reversed(chain):
        if node.type != "user" or node.results or node.meta or node.repeats:
            continue
        record = transcript.record(node)
        position = as_object(record.fields.get("turnPosition"))
        if position is not None:
            turn = _count(position.get("turnIndex")) + prompts
            return Figures(turn, _count(position.get("promptIndex")), dropped)
        prompts += origin_of(record) == "human"
    return Figures(prompts, prompts, dropped)


def _boundary(transcript: Transcript, chain: list[Node]) -> Node | None:
    """Return the compaction that a conversation begins with, if it does."""
    before = transcript.by_uuid.get(chain[0].parent or "") if chain else None
    return before if before is not None and before.is_boundary else None


def _message_count(transcript: Transcript, chain: list[Node]) -> int:
    """Return how many records a conversation has, as the client counts them."""
    return len(chain) + (_boundary(transcript, chain) is not None)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _context(transcript: Transcript, chain: list[Node]) -> int:
    """Return how much of the window a conversation takes; 0 where room was made since it was told."""
    for node in reversed(chain):
        if node.subtype in ("compact_boundary", TRIM):
            return 0
        if node.type == "assistant" and node.model and not node.model.startswith("<"):
            usage = transcript.record(node).usage
            return tokens_of(msgspec.structs.asdict(usage)) if usage is not None else 0
    return 0


def _answer_open_calls(talk: Conversation, chain: list[Node]) -> None:
    """Have it written down what happened to calls at the very end that never got a result."""
    answered = {call for node in chain for call in node.results}
    last = next((node for node in reversed(chain) if node.type == "assistant"), None)
    if last is None or (chain[-1].type == "user" and not chain[-1].results):
        return
    same = [
        node for node in chain if node.type == "assistant" and node.message_id == last.message_id
    ]
    for node in same:
        for call in node.uses:
            if call not in answered:
                talk.settle(call, ToolResult(INTERRUPTED, is_error=True), source=node.uuid)


def _later_than(transcript: Transcript) -> Callable[[], str]:
    stamps = [node.timestamp for node in transcript.nodes if isinstance(node.timestamp, str)]
    return rising(max(stamps, default=None))


def _place(session_id: str, cwd: str) -> Place:
    return Place(session_id=session_id, cwd=cwd, version=VERSION, git_branch=git_branch(cwd))


def _copy_agents(source: str, target: str, session_id: str) -> None:
    """Take the sub-agents of a session along: results in the copy name them."""
    folder = os.path.join(source, _AGENTS)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        stem, ending = os.path.splitext(os.path.join(folder, name))
        if ending != ".jsonl":
            continue
        place = os.path.join(target, _AGENTS, os.path.basename(stem))
        with Appender(f"{place}{ending}", expected=FileState()) as copy:
            for line in _renamed(load(FileSource(f"{stem}{ending}")), session_id):
                copy.append(line)
            copy.sync()
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{stem}{_META}", f"{place}{_META}")


def _sendable(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield records without what the API refuses, such as thinking that nobody signed."""
    above: dict[Any, Any] = {}
    """What stands above records of which nothing is left."""
    for fields in records:
        parent = fields.get("parentUuid")
        named = {**fields, "parentUuid": above[parent]} if parent in above else fields
        kind, message = fields.get("type"), as_object(fields.get("message")) or {}
        blocks = as_list(message.get("content"))
        if blocks and kind in ("user", "assistant"):
            fixed = (fixed_block(as_object(block) or {}, kind) for block in blocks)
            kept = [block for block in fixed if block is not None]
            if not kept and kind == "assistant":
                above[fields.get("uuid")] = named.get("parentUuid")
                continue
            named = {**named, "message": {**message, "content": kept or blocks}}
        yield named


def _renamed(transcript: Transcript, session_id: str) -> Iterator[bytes]:
    """Yield the records of a session under another name; one in a dialect is converted."""
    source = transcript.source
    if is_converted(source):
        records = _sendable(source.records_to_resume())
    else:
        records = (piece.fields for piece in transcript.pieces() if isinstance(piece, Record))
    for fields in records:
        # Like the client, which gives a fork a name of its own when it needs one.
        named = {name: value for name, value in fields.items() if name != "slug"}
        yield encode_line({**named, "sessionId": session_id} if "sessionId" in named else named)
