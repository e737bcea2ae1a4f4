"""Opens sessions for writing: new, resumed, forked, or rewound to an earlier prompt."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from steno.agent.context.token_usage import context_tokens
from steno.agent.conversation import INTERRUPTION_TEXTS, Conversation, SessionCounters
from steno.agent.recorder import VERSION, Recorder, increasing_clock, is_slug, new_uuid
from steno.errors import BadRequest, InDialect, NotFound
from steno.format.dialects.detection import is_converted
from steno.format.encode import SessionContext, encode_line
from steno.format.lenient_json import as_list, as_object
from steno.format.paths import is_uuid, session_path, slug_for_path
from steno.format.records import Record
from steno.session.resume.api_rules import fix_block
from steno.session.resume.clients import STENO
from steno.session.resume.entries import INTERRUPTED_CALL
from steno.session.resume.replay import MICROCOMPACT_SUBTYPE, resumed_chain, valid_messages
from steno.session.transcript import Node, Transcript, load
from steno.session.turns.prompts import PERSON_ORIGINS, origin_of, read_prompt
from steno.store.append import Appender, FileState
from steno.store.file_source import FileSource
from steno.store.session_lock import SessionLock
from steno.tools.protocol import ToolResult

_BRANCH_PREFIX = "ref: refs/heads/"


def git_branch(folder: str) -> str:
    """Return the name of the git branch; `HEAD` if detached, empty outside a repository."""
    head = _read_first_line(os.path.join(_git_folder(folder), "HEAD"))
    if not head:
        return ""
    return head.removeprefix(_BRANCH_PREFIX) if head.startswith(_BRANCH_PREFIX) else "HEAD"


def _git_folder(folder: str) -> str:
    """Return the git directory of a repository; in a worktree, `.git` is a file with its path."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return git
        gitdir = _read_first_line(git).removeprefix("gitdir: ")
        if gitdir:
            return os.path.join(folder, gitdir)
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _read_first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


_PROMPT_KIND: Final = "user/prompt"
_AGENTS_FOLDER: Final = "subagents"
_META_SUFFIX: Final = ".meta.json"


class WritableSession(msgspec.Struct, eq=False):
    """A session opened for writing."""

    conversation: Conversation
    last_model: str = ""
    """The model of the last response; empty in a new session."""
    context_size: int = 0
    """Context size of the last request and response in tokens; 0 if unknown."""
    forked_from: str = ""
    """ID of the session that this one was just forked from; else empty."""

    @property
    def id(self) -> str:
        """The session ID."""
        return self.conversation.recorder.session_id


def new_session(config: str, cwd: str, *, session_id: str = "") -> WritableSession:
    """Return a new session. Its file is created with the first record.

    Raises:
        BadRequest: The ID is not a UUID, or a session with it exists.
    """
    session_name, path = _new_session_path(config, cwd, session_id)
    lock = _lock_new_session(path)
    return WritableSession(
        Conversation(Recorder(path, _record_place(session_name, cwd), lock=lock, expected=FileState()))
    )


def resume_session(path: str, cwd: str) -> WritableSession:
    """Open a session to continue it.

    Unanswered tool calls get a result that reports the interruption; damage at the end of the file is repaired.

    Raises:
        Busy: Another process holds the session.
        InDialect: The file has records in a published dialect.
        NotFound: The file contains no conversation.
    """
    return _with_lock(path, lambda lock: _resume_locked(path, cwd, lock))


def _resume_locked(path: str, cwd: str, lock: SessionLock) -> WritableSession:
    state = FileState.of(path)
    transcript = load(FileSource(path))
    _refuse_dialect(transcript, path)
    return _session_at(transcript, path, cwd, _resumed_chain(transcript, path), lock, state)


def _refuse_dialect(transcript: Transcript, path: str) -> None:
    """Reject a file with records that Claude Code cannot read.

    Raises:
        InDialect: The file has records in a published dialect.
    """
    source = transcript.source
    if is_converted(source):
        raise InDialect(
            f"{os.path.basename(path)} {source.description}, which Claude Code cannot read",
            hint="Use --fork-session to continue in a converted copy.",
        )


def rewind_session(path: str, cwd: str, prompt: str) -> WritableSession:
    """Open a session to continue from before a prompt; later records become an abandoned branch.

    Raises:
        Busy: Another process holds the session.
        NotFound: The conversation has no prompt with this ID.
    """
    return _with_lock(path, lambda lock: _rewind_locked(path, cwd, prompt, lock))


def _rewind_locked(path: str, cwd: str, prompt: str, lock: SessionLock) -> WritableSession:
    state = FileState.of(path)
    transcript = load(FileSource(path))
    _refuse_dialect(transcript, path)
    chain = _resumed_chain(transcript, path)
    matches = [index for index, node in enumerate(chain) if node.uuid == prompt]
    if not matches or chain[matches[0]] not in _prompt_nodes(transcript, chain):
        raise NotFound(f"no prompt {prompt!r} in the conversation", hint="Run `steno show --json` to list prompts.")
    return _session_at(transcript, path, cwd, chain[: matches[0]], lock, state)


def _with_lock(path: str, open_locked: Callable[[SessionLock], WritableSession]) -> WritableSession:
    """Open a session under its lock, which is acquired before the file is read."""
    lock = SessionLock.acquire(path)
    try:
        return open_locked(lock)
    except BaseException:
        lock.release()
        raise


def reload_conversation(conversation: Conversation) -> int:
    """Reload a conversation from its file after a record could not be saved.

    Return the context size of the last request and response in tokens; 0 if unknown.

    Raises:
        Unreadable: The file cannot be read.
    """
    recorder = conversation.recorder
    state = FileState.of(recorder.path)
    chain: list[Node] = []
    messages: list[dict[str, Any]] = []
    clock = increasing_clock()
    last_prompt, context_size, message_count, counters = "", 0, 0, SessionCounters()
    if state.size:
        transcript = load(FileSource(recorder.path))
        chain = resumed_chain(transcript, STENO) or []
        messages = valid_messages(transcript, chain[-1]) if chain else []
        clock = _clock_after(transcript)
        prompt_nodes = _prompt_nodes(transcript, chain)
        last_prompt = transcript.record(prompt_nodes[-1]).text if prompt_nodes else ""
        context_size = _context_size(transcript, chain)
        message_count, counters = (_message_count(transcript, chain), _session_counters(transcript, chain))
    recorder.reset(chain[-1].uuid if chain else None, clock, state, message_count)
    conversation.reset(messages, last_prompt, counters)
    _answer_open_calls(conversation, chain)
    if context_size:
        conversation.count_from_last_answer()
    return context_size


def fork_session(config: str, path: str, cwd: str, *, session_id: str = "") -> WritableSession:
    """Return a new session with a copy of all records of another session.

    Raises:
        BadRequest: The ID is not a UUID, or a session with it exists.
        NotFound: The file contains no conversation.
        Unwritable: The copy cannot be written; its partial files were removed.
    """
    transcript = load(FileSource(path))
    _resumed_chain(transcript, path)
    new_session_id, target = _new_session_path(config, cwd, session_id)
    lock = _lock_new_session(target)
    folder = os.path.splitext(target)[0]
    try:
        with Appender(target, expected=FileState()) as copy:
            for line in _records_for_fork(transcript, new_session_id):
                copy.append(line)
            copy.sync()
        _copy_subagents(os.path.splitext(path)[0], folder, new_session_id)
        forked = _resume_locked(target, cwd, lock)
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        raise
    forked.forked_from = os.path.splitext(os.path.basename(path))[0]
    return forked


def _lock_new_session(path: str) -> SessionLock:
    """Acquire the lock of a session that does not exist yet.

    Raises:
        BadRequest: The session exists.
    """
    lock = SessionLock.acquire(path)
    if os.path.lexists(path):
        lock.release()
        session_name = os.path.splitext(os.path.basename(path))[0]
        raise BadRequest(f"session {session_name} already exists", hint="Use --resume to continue it.")
    return lock


def _new_session_path(config: str, cwd: str, session_id: str) -> tuple[str, str]:
    new_session_id = session_id or new_uuid()
    # The ID becomes part of paths, and Claude Code only resumes sessions whose ID is a UUID.
    if not is_uuid(new_session_id):
        raise BadRequest(f"invalid session ID: {new_session_id!r}", hint="Use a UUID.")
    return new_session_id, os.path.join(config, session_path(slug_for_path(os.path.realpath(cwd)), new_session_id))


def list_prompts(path: str) -> list[tuple[str, str]]:
    """Return the prompts of the conversation as (ID, typed text), oldest first."""
    transcript = load(FileSource(path))
    chain = _resumed_chain(transcript, path)
    typed_prompts: list[tuple[str, str]] = []
    for node in _prompt_nodes(transcript, chain):
        record = transcript.record(node)
        origin = origin_of(record)
        if origin in PERSON_ORIGINS:
            text = read_prompt(record, node, origin).text
            typed_prompts.append((node.uuid or "", f"!{text}" if origin == "shell" else text))
    return typed_prompts


def _prompt_nodes(transcript: Transcript, chain: list[Node]) -> list[Node]:
    """Return the prompts of the user, without summaries and interruptions."""
    nodes: list[Node] = []
    for node in chain:
        if node.type != "user" or node.results or node.meta or node.sidechain:
            continue
        record = transcript.record(node)
        if record.kind == _PROMPT_KIND and record.text.strip() not in INTERRUPTION_TEXTS:
            nodes.append(node)
    return nodes


def _resumed_chain(transcript: Transcript, path: str) -> list[Node]:
    chain = resumed_chain(transcript, STENO)
    if not chain:
        raise NotFound(f"{path}: no conversation found", hint="Run `steno check` to see why.")
    return chain


def _session_at(
    transcript: Transcript, path: str, cwd: str, chain: list[Node], lock: SessionLock, state: FileState
) -> WritableSession:
    leaf = chain[-1] if chain else None
    session_name = os.path.splitext(os.path.basename(path))[0]
    recorder = Recorder(
        path,
        _record_place(session_name, cwd),
        leaf=leaf.uuid if leaf is not None else None,
        now=_clock_after(transcript),
        lock=lock,
        expected=state,
        message_count=_message_count(transcript, chain),
    )
    recorder.set_slug(_session_slug(transcript))
    messages = valid_messages(transcript, leaf) if leaf is not None else []
    answering_nodes = [node.model for node in chain if node.type == "assistant" and node.model]
    conversation = Conversation(recorder, messages, _session_counters(transcript, chain))
    prompt_nodes = _prompt_nodes(transcript, chain)
    conversation.last_prompt = transcript.record(prompt_nodes[-1]).text if prompt_nodes else ""
    _answer_open_calls(conversation, chain)
    models = [model for model in answering_nodes if not model.startswith("<")]
    context_size = _context_size(transcript, chain)
    if context_size:
        conversation.count_from_last_answer()
    return WritableSession(conversation, models[-1] if models else "", context_size)


def _session_slug(transcript: Transcript) -> str:
    for node in reversed(transcript.nodes):
        if node.converses and node.uuid is not None:
            slug = transcript.record(node).envelope.slug or ""
            return slug if is_slug(slug) else ""
    return ""


def _session_counters(transcript: Transcript, chain: list[Node]) -> SessionCounters:
    """Return the counters at the end of a conversation.

    Records of older versions and other programs have no position: their prompts are counted.
    """
    boundary = _compact_boundary(transcript, chain)
    fields = transcript.record(boundary).fields if boundary is not None else {}
    metadata = as_object(fields.get("compactMetadata")) or {}
    dropped_tokens = _positive_int(metadata.get("cumulativeDroppedTokens"))
    prompt_count = 0
    for node in reversed(chain):
        if node.type != "user" or node.results or node.meta or node.repeats:
            continue
        record = transcript.record(node)
        position = as_object(record.fields.get("turnPosition"))
        if position is not None:
            turn_index = _positive_int(position.get("turnIndex")) + prompt_count
            return SessionCounters(turn_index, _positive_int(position.get("promptIndex")), dropped_tokens)
        prompt_count += origin_of(record) == "human"
    return SessionCounters(prompt_count, prompt_count, dropped_tokens)


def _compact_boundary(transcript: Transcript, chain: list[Node]) -> Node | None:
    """Return the compaction that immediately precedes the conversation, if any."""
    before = transcript.by_uuid.get(chain[0].parent or "") if chain else None
    return before if before is not None and before.is_boundary else None


def _message_count(transcript: Transcript, chain: list[Node]) -> int:
    """Return the number of records of a conversation, as Claude Code counts them."""
    return len(chain) + (_compact_boundary(transcript, chain) is not None)


def _positive_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _context_size(transcript: Transcript, chain: list[Node]) -> int:
    """Return the context size of a conversation; 0 if it was compacted since the last response."""
    for node in reversed(chain):
        if node.subtype in ("compact_boundary", MICROCOMPACT_SUBTYPE):
            return 0
        if node.type == "assistant" and node.model and not node.model.startswith("<"):
            usage = transcript.record(node).usage
            return context_tokens(msgspec.structs.asdict(usage)) if usage is not None else 0
    return 0


def _answer_open_calls(conversation: Conversation, chain: list[Node]) -> None:
    """Queue results for calls at the end of the conversation that never got one."""
    answered_calls = {call for node in chain for call in node.results}
    last_answer = next((node for node in reversed(chain) if node.type == "assistant"), None)
    if last_answer is None or (chain[-1].type == "user" and not chain[-1].results):
        return
    answer_nodes = [node for node in chain if node.type == "assistant" and node.message_id == last_answer.message_id]
    for node in answer_nodes:
        for call in node.uses:
            if call not in answered_calls:
                conversation.add_pending_result(call, ToolResult(INTERRUPTED_CALL, is_error=True), source=node.uuid)


def _clock_after(transcript: Transcript) -> Callable[[], str]:
    timestamps = [node.timestamp for node in transcript.nodes if isinstance(node.timestamp, str)]
    return increasing_clock(max(timestamps, default=None))


def _record_place(session_id: str, cwd: str) -> SessionContext:
    return SessionContext(session_id=session_id, cwd=cwd, version=VERSION, git_branch=git_branch(cwd))


def _copy_subagents(source: str, target: str, session_id: str) -> None:
    """Copy the sub-agents of a session, to which results in the copy refer."""
    folder = os.path.join(source, _AGENTS_FOLDER)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        stem, extension = os.path.splitext(os.path.join(folder, name))
        if extension != ".jsonl":
            continue
        target_stem = os.path.join(target, _AGENTS_FOLDER, os.path.basename(stem))
        with Appender(f"{target_stem}{extension}", expected=FileState()) as copy:
            for line in _records_for_fork(load(FileSource(f"{stem}{extension}")), session_id):
                copy.append(line)
            copy.sync()
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{stem}{_META_SUFFIX}", f"{target_stem}{_META_SUFFIX}")


def _sendable(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield records without blocks that the API rejects, such as unsigned thinking."""
    above: dict[Any, Any] = {}
    """Parents of records that were dropped completely."""
    for fields in records:
        parent = fields.get("parentUuid")
        named = {**fields, "parentUuid": above[parent]} if parent in above else fields
        kind, message = fields.get("type"), as_object(fields.get("message")) or {}
        blocks = as_list(message.get("content"))
        if blocks and kind in ("user", "assistant"):
            fixed = (fix_block(as_object(block) or {}, kind) for block in blocks)
            kept = [block for block in fixed if block is not None]
            if not kept and kind == "assistant":
                above[fields.get("uuid")] = named.get("parentUuid")
                continue
            named = {**named, "message": {**message, "content": kept or blocks}}
        yield named


def _records_for_fork(transcript: Transcript, session_id: str) -> Iterator[bytes]:
    """Yield the records of a session with another session ID; dialect records are converted."""
    source = transcript.source
    if is_converted(source):
        records = _sendable(source.records_to_resume())
    else:
        records = (piece.fields for piece in transcript.pieces() if isinstance(piece, Record))
    for fields in records:
        # Like Claude Code, which creates a new slug for a fork when it needs one.
        copied_fields = {name: value for name, value in fields.items() if name != "slug"}
        yield encode_line({**copied_fields, "sessionId": session_id} if "sessionId" in copied_fields else copied_fields)
