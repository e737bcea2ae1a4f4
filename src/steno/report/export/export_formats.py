"""Export formats of a session: Markdown, plain text, lossless JSON, API messages.

HTML is in `steno.web.export`.

Lossless JSON contains every record unchanged, with its position; bytes that are not a record are base64. Unless masked,
the parts joined in order are the original file. With masking, deleted records of a file in a dialect are omitted; only
their position is given.

In API messages, a masked thinking block is omitted: it no longer matches its signature, and the API would reject it.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steno.errors import StenoError
from steno.format.dialects.detection import is_converted
from steno.format.dialects.dialect_record import without_results
from steno.format.encode import encode
from steno.format.lenient_json import decode_lenient
from steno.format.message import Thinking
from steno.format.paths import JSONL_SUFFIX
from steno.format.records import Gap, Piece
from steno.format.source import BytesSource
from steno.report import humanize
from steno.report.export.export_options import ExportLevel
from steno.report.export.session_masking import MaskedSession, MaskedSpans, find_masked_spans, read_bytes_of
from steno.sanitize.markdown import escape_markdown, fence_for
from steno.sanitize.secret_masker import Masker
from steno.sanitize.terminal import clean
from steno.session.resume.api_rules import NO_CONTENT, find_breaches
from steno.session.resume.replay import ApiMessage
from steno.session.session import Session
from steno.session.transcript import Transcript, load
from steno.session.turns.steps import Step, one_line
from steno.session.turns.turn_builder import Turn
from steno.store.discovery import DiscoveredFile, discover_agents
from steno.store.session_lookup import open_file_session

_QUIET_STEP_KINDS: Final = frozenset(("note", "hook"))
_TEXT_STEP_KINDS: Final = frozenset(("words", "queued", "note", "error", "unknown"))
_MAX_DEPTH: Final = 4


class ExportedStep(msgspec.Struct, frozen=True):
    """A step with its input and result."""

    step: Step
    depth: int
    """Nesting depth of sub-agents."""
    input_text: str = ""
    result_text: str = ""


def includes_steps(level: ExportLevel) -> bool:
    """Return whether a level includes steps."""
    return level in ("full", "high", "low")


def exported_steps(turn: Turn, transcript: Transcript, level: ExportLevel) -> Iterator[ExportedStep]:
    """Yield the steps of a turn and of its sub-agents that a level includes."""
    yield from _export_steps(turn.steps, transcript, level, 0)


def _export_steps(
    steps: tuple[Step, ...], transcript: Transcript, level: ExportLevel, depth: int
) -> Iterator[ExportedStep]:
    with_content = level in ("full", "high")
    for step in steps:
        is_quiet = step.kind in _QUIET_STEP_KINDS and step.state == "ok" and step.seam is None
        if is_quiet and level != "full":
            continue
        if not with_content:
            yield ExportedStep(step, depth)
            continue
        yield ExportedStep(step, depth, input_text_of(step, transcript), result_text_of(step, transcript))
        thread = step.agent
        if thread is not None and depth < _MAX_DEPTH:
            for turn in thread.turns:
                yield from _export_steps(turn.steps, thread.transcript, level, depth + 1)


def input_text_of(step: Step, transcript: Transcript) -> str:
    """Return the input of a tool call, or the text of another step."""
    if step.call is None:
        return ""
    record = transcript.record(step.call)
    if step.kind == "thought":
        return record.thinking
    if step.kind in _TEXT_STEP_KINDS:
        return record.text
    if step.command:
        return step.command
    for use in record.tool_uses:
        if use.id == step.call_id and use.input:
            return msgspec.json.format(encode(use.input), indent=2).decode("utf-8", "replace")
    return ""


def result_text_of(step: Step, transcript: Transcript) -> str:
    """Return the result of a tool call."""
    if step.result is None:
        return ""
    for result in transcript.record(step.result).tool_results:
        if result.tool_use_id == step.call_id:
            return result.text
    return ""


def session_facts(session: Session) -> list[tuple[str, str]]:
    """Return the facts of a session as pairs of name and value."""
    started, ended = session.started, session.ended
    usage = session.usage
    facts = [
        ("session", session.id),
        ("project", session.project),
        ("branch", session.branch),
        ("model", ", ".join(model for model in session.models if not model.startswith("<"))),
        ("version", ", ".join(session.versions)),
        ("started", humanize.local_minute(started)),
        ("ended", humanize.local_minute(ended)),
        ("turns", str(len(session.turns()))),
        ("tokens", f"{usage.context:,} input, {usage.output:,} output" if usage.messages else ""),
    ]
    return [(name, value) for name, value in facts if value]


_MARKDOWN_COMPACTED: Final = "\n---\n\n*Compaction: the conversation above was replaced by a summary.*\n"
_SPECIAL_CHARACTERS: Final = re.compile(r"([\\`*_\[\]<>#])")


def render_markdown(session: Session, level: ExportLevel) -> Iterator[str]:
    """Yield a session as Markdown, in parts."""
    yield f"# {_escape_inline(session.title.text or session.id)}\n\n"
    for name, value in session_facts(session):
        yield f"- {name}: {_escape_inline(value)}\n"
    for turn in session.turns():
        yield from _markdown_turn(session, turn, level)


def _markdown_turn(session: Session, turn: Turn, level: ExportLevel) -> Iterator[str]:
    if turn.opening is not None:
        yield _MARKDOWN_COMPACTED
    clock = humanize.time_of_day(turn.started.timestamp()) if turn.started else ""
    yield f"\n## Turn {turn.number}{f' · {clock}' if clock else ''}\n\n"
    if turn.prompt is not None:
        yield _markdown_quote(turn.prompt.text)
    if includes_steps(level):
        for exported in exported_steps(turn, session.transcript, level):
            yield _markdown_step(exported)
    if level != "prompts" and turn.answer:
        # Below the headings of turns, so that the turns remain the outline.
        yield "\n" + escape_markdown(clean(turn.answer, newlines=True), heading_offset=2) + "\n"
    if turn.closing is not None:
        yield _MARKDOWN_COMPACTED


def _markdown_step(exported: ExportedStep) -> str:
    step = exported.step
    if step.seam is not None:
        return f"{_MARKDOWN_COMPACTED}\n"
    indent = "  " * exported.depth
    subject = f" {_markdown_code(step.subject)}" if step.subject and step.kind in ("tool", "agent") else ""
    if step.subject and not subject:
        subject = f" {_escape_inline(one_line(step.subject))}"
    outcome = f" — {_escape_inline(step.outcome)}" if step.outcome else ""
    state = f" **({step.state})**" if step.state not in ("ok", "open", "unknown") else ""
    text_ = f"{indent}- **{_escape_inline(step.verb)}**{subject}{outcome}{state}\n"
    for text in (exported.input_text, exported.result_text):
        if text.strip():
            text_ += _markdown_fence(text, f"{indent}  ")
    return text_


def _markdown_fence(text: str, indent: str) -> str:
    """Return a text in a fence that its content cannot close."""
    cleaned = clean(text.strip("\n"), newlines=True)
    fence = fence_for(cleaned)
    lines = "\n".join(f"{indent}{line}" for line in (f"{fence}text", *cleaned.split("\n"), fence))
    return f"\n{lines}\n\n"


def _markdown_quote(text: str) -> str:
    lines = escape_markdown(clean(text.strip("\n"), newlines=True)).split("\n")
    return "".join(f"> {line}\n" for line in lines) + "\n"


def _escape_inline(text: str) -> str:
    return _SPECIAL_CHARACTERS.sub(r"\\\1", clean(text).replace("\n", " "))


def _markdown_code(text: str) -> str:
    cleaned = clean(text).replace("\n", " ").replace("`", "'")
    return f"`{cleaned}`"


_SEPARATOR: Final = "-" * 72
_PLAIN_COMPACTED: Final = "Compaction\n"


def render_plain_text(session: Session, level: ExportLevel) -> Iterator[str]:
    """Yield a session as plain text, in parts."""
    yield f"{clean(session.title.text or session.id)}\n"
    for name, value in session_facts(session):
        yield f"{name:>10}  {clean(value)}\n"
    for turn in session.turns():
        yield from _plain_turn(session, turn, level)


def _plain_turn(session: Session, turn: Turn, level: ExportLevel) -> Iterator[str]:
    clock = humanize.time_of_day(turn.started.timestamp()) if turn.started else ""
    compaction_mark = _PLAIN_COMPACTED if turn.opening is not None else ""
    yield f"\n{_SEPARATOR}\n{compaction_mark}Turn {turn.number}{f'  {clock}' if clock else ''}\n\n"
    if turn.prompt is not None:
        yield _indent_lines(turn.prompt.text, "> ") + "\n"
    if includes_steps(level):
        for exported in exported_steps(turn, session.transcript, level):
            yield _plain_step(exported)
    if level != "prompts" and turn.answer:
        yield f"\n{clean(turn.answer, newlines=True)}\n"
    if turn.closing is not None:
        yield f"\n{_SEPARATOR}\n{_PLAIN_COMPACTED}"


def _plain_step(exported: ExportedStep) -> str:
    step = exported.step
    if step.seam is not None:
        return f"\n{_SEPARATOR}\n{_PLAIN_COMPACTED}\n"
    indent = "  " * (exported.depth + 1)
    parts = (clean(step.verb), clean(step.subject), clean(step.outcome))
    state = "" if step.state in ("ok", "open", "unknown") else f"  ({step.state})"
    text_ = indent + "  ".join(part for part in parts if part) + state + "\n"
    for text in (exported.input_text, exported.result_text):
        if text.strip():
            text_ += _indent_lines(text, f"{indent}    ")
    return text_


def _indent_lines(text: str, indent: str) -> str:
    cleaned = clean(text.strip("\n"), newlines=True)
    return "".join(f"{indent}{line}\n" for line in cleaned.split("\n"))


_VERSION: Final = 1
_DELETED: Final = b'"isDeleted"'


def lossless_json(session_file: DiscoveredFile, masker: Masker | None) -> Iterator[bytes]:
    """Yield a session as one JSON object, in parts.

    Raises:
        Unreadable: The session cannot be read.
    """
    with open_file_session(session_file) as session:
        facts: dict[str, Any] = {
            "steno": _VERSION,
            "session": session.id,
            "title": _masked_text(session.title.text, masker),
            "project": _masked_text(session.project, masker),
            "models": list(session.models),
            "versions": list(session.versions),
            "started": session.started,
            "ended": session.ended,
            "masked": masker is not None,
        }
    yield msgspec.json.encode(facts)[:-1] + b',"files":['
    for number, transcript_file in enumerate((session_file, *discover_agents(session_file))):
        yield b"," if number else b""
        yield from _file_json(transcript_file, masker)
    yield b"]}\n"


def _masked_text(text: str, masker: Masker | None) -> str:
    return masker.mask_text(text) if masker is not None else text


def _file_json(session_file: DiscoveredFile, masker: Masker | None) -> Iterator[bytes]:
    data = read_bytes_of(session_file)
    name = os.path.basename(session_file.path)
    mask = find_masked_spans(data, masker, name.removesuffix(JSONL_SUFFIX))
    header = {"name": name, "agent": session_file.place.agent_id, "size": len(data)}
    yield msgspec.json.encode(header)[:-1] + b',"pieces":[\n'
    deleted = _deleted_records(data) if masker is not None else {}
    for number, piece in enumerate(_pieces_of(data)):
        yield b",\n" if number else b""
        yield _piece_json(piece, data, mask, deleted)
    yield b"\n]}"


def _deleted_records(data: bytes) -> dict[int, tuple[str, ...]]:
    """Return the offsets of deleted records; for partly deleted records, the calls whose results are deleted."""
    if _DELETED not in data:
        return {}
    source = load(BytesSource(data)).source
    return source.deleted_records() if is_converted(source) else {}


def _pieces_of(data: bytes) -> Iterator[Piece]:
    from steno.format.lines import read_bytes

    return read_bytes(data)


def _piece_json(piece: Piece, data: bytes, mask: MaskedSpans, deleted: dict[int, tuple[str, ...]]) -> bytes:
    entry: dict[str, Any] = {"offset": piece.offset, "length": piece.length}
    end = piece.offset + piece.length
    if isinstance(piece, Gap):
        entry["damage"] = [damage.id for damage in piece.damage]
        entry["base64"] = b64encode(mask.masked_bytes_between(data, piece.offset, end)).decode()
        return msgspec.json.encode(entry)
    line = mask.masked_bytes_between(data, piece.offset, end - len(piece.ending))
    entry["kind"] = piece.kind
    entry["ending"] = piece.ending.decode("latin-1")
    if piece.offset in deleted:
        entry["deleted"] = True
        calls = deleted[piece.offset]
        fields = decode_lenient(line) if calls else None
        if isinstance(fields, dict):
            entry["record"] = without_results(cast("dict[str, Any]", fields), calls)
        return encode(entry)
    if not _is_json(line):
        entry["base64"] = b64encode(line).decode()
        return msgspec.json.encode(entry)
    return msgspec.json.encode(entry)[:-1] + b',"record":' + line.strip() + b"}"


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
        line.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return b"\n" not in line and line == line.strip()


def api_messages(masked_session: MaskedSession, *, masked: bool) -> list[ApiMessage]:
    """Return the conversation as API messages.

    Raises:
        StenoError: The messages violate the rules of the API, which is a bug in steno.
    """
    message_list = masked_session.session.messages()
    if masked:
        with open_file_session(masked_session.found) as unmasked:
            signed = _thinking_by_signature(unmasked)
        message_list = [_without_broken_thinking(message, signed) for message in message_list]
    violations = find_breaches(message_list)
    if violations:
        raise StenoError(f"the exported messages violate the Messages API: {violations[0]}")
    return message_list


def _thinking_by_signature(session: Session) -> dict[str, str]:
    """Return the unmasked thinking texts by signature."""
    return {
        block.signature: block.thinking
        for node in session.transcript.nodes
        if node.type == "assistant"
        for block in session.transcript.record(node).blocks
        if isinstance(block, Thinking) and block.signature
    }


def _without_broken_thinking(message: ApiMessage, signed: dict[str, str]) -> ApiMessage:
    content = message["content"]
    if isinstance(content, str):
        return message
    valid_blocks = [block for block in content if not _is_broken_thinking(block, signed)]
    return {**message, "content": valid_blocks or [{"type": "text", "text": NO_CONTENT}]}


def _is_broken_thinking(block: dict[str, Any], signed: dict[str, str]) -> bool:
    if block.get("type") != "thinking":
        return False
    return signed.get(str(block.get("signature"))) != block.get("thinking")
