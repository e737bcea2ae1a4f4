"""Records as Claude Code writes them: new records, and values → bytes.

Encoding: compact, UTF-8 without escapes, keys in the given order. Claude Code is a JavaScript program, so numbers are
written as `JSON.stringify` writes them (`0.00001`, not `1e-05`; `2`, not `2.0`), and lone surrogates are escaped.

Composing: one line per content block, all lines of a response under one `message.id` with the final stop reason and
usage on each; the parent of every record is the record before it, also for parallel results; times increase; a
compaction is a boundary followed by a summary; each turn ends with `last-prompt`. IDs and times are passed in, so
composing has no side effects.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from steno.format.message import SYNTHETIC

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NUMBER_MARK: Final = "\x00number:"
_MAX_EXACT_INTEGER: Final = 2**53
_PLAIN_FROM: Final = 1e-6
_PLAIN_BELOW: Final = 1e21


def encode(value: Any) -> bytes:
    """Return `value` as one line of JSON, without the newline.

    >>> encode({"type": "tag", "tag": "größe", "cost": 0.00001}).decode()
    '{"type":"tag","tag":"größe","cost":0.00001}'
    """
    if not _mark_floats(value, _NUMBER_MARK)[1]:
        return _encode_utf8(value)
    mark = _NUMBER_MARK
    while _escape_mark(mark) in _encode_utf8(value):  # a text in the value contains the mark
        mark = f"\x00{mark}"
    marked, _ = _mark_floats(value, mark)
    return re.sub(b'"' + re.escape(_escape_mark(mark)) + b'([^"]*)"', rb"\1", _encode_utf8(marked))


def encode_line(value: Any) -> bytes:
    """Return `value` as one line of JSON, including the newline."""
    return encode(value) + b"\n"


def _encode_utf8(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def _escape_mark(mark: str) -> bytes:
    return _encode_utf8(mark)[1:-1]


def _mark_floats(value: Any, mark: str) -> tuple[Any, bool]:
    """Replace floats that Python and JavaScript format differently by marked strings."""
    if isinstance(value, float):
        text = _js_number(value)
        return (value, False) if text == repr(value) else (mark + text, True)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        pairs = [(key, *_mark_floats(item, mark)) for key, item in fields.items()]
        changed = any(pair[2] for pair in pairs)
        return ({key: item for key, item, _ in pairs}, True) if changed else (fields, False)
    if isinstance(value, list | tuple):
        sequence = cast("list[Any]", value)
        items = [_mark_floats(item, mark) for item in sequence]
        changed = any(item[1] for item in items)
        return ([item for item, _ in items], True) if changed else (sequence, False)
    return value, False


def _js_number(value: float) -> str:
    if not math.isfinite(value):
        return "null"
    if value == int(value) and abs(value) < _MAX_EXACT_INTEGER:
        return str(int(value))
    text = repr(value).removesuffix(".0")
    if "e" not in text:
        return text
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        from decimal import Decimal

        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


_MAX_PROMPT_LENGTH: Final = 200
_MADE_BY: Final = "model"
_REQUEST_FIELDS: Final = {"madeBy": _MADE_BY, "promptCacheRequested": "5m"}
"""Request settings recorded with every response."""
_SUMMARY_FIELDS: Final = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
_NO_SERVER_TOOLS: Final = {"web_search_requests": 0, "web_fetch_requests": 0}
_NOTHING_CACHED: Final = {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}
_DEFAULT_USAGE: Final[dict[str, Any]] = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
    "output_tokens_details": {"thinking_tokens": 0},
    "server_tool_use": _NO_SERVER_TOOLS,
    "service_tier": "standard",
    "cache_creation": _NOTHING_CACHED,
    "inference_geo": "",
    "iterations": [],
    "speed": "standard",
    "fallback_credit": None,
}
"""Usage as Claude Code records it, before the API's figures are filled in."""
_NO_USAGE: Final[dict[str, Any]] = {
    **_DEFAULT_USAGE,
    "output_tokens_details": None,
    "service_tier": None,
    "inference_geo": None,
    "iterations": None,
    "speed": None,
}
"""Usage of a response that never arrived."""


def full_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the API's usage with every field that Claude Code records; the API's values are kept."""
    return {**_DEFAULT_USAGE, **usage}


class Timings(msgspec.Struct, frozen=True):
    """Streaming times of parts of a response in milliseconds."""

    inputs: dict[str, int] = {}
    """Times of tool inputs, by call ID."""
    thoughts: list[int] = []
    """Times of thinking blocks, in order."""

    def fields(self, block: dict[str, Any], thought: int) -> dict[str, Any]:
        """Return the timing fields for the record of a block; `thought` is the index of a thinking block."""
        match block.get("type"):
            case "tool_use":
                return {"toolInputStreamMs": self.inputs.get(str(block.get("id")), 0)}
            case "thinking":
                known = thought < len(self.thoughts)
                return {"thinkingDurationMs": self.thoughts[thought] if known else 0}
            case _:
                return {}


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context of a session; part of every record."""

    session_id: str
    cwd: str
    version: str
    git_branch: str = ""
    agent_id: str = ""
    """ID of the sub-agent that writes; empty for the session itself."""
    entrypoint: str = ""
    """Entry point: `cli` for a terminal, `sdk-cli` for a prompt without a terminal; empty if unknown."""
    slug: str = ""
    """Slug of the session once it has one; plan files are named after it."""

    def envelope(self) -> dict[str, Any]:
        """Return the fields that are the same on every record."""
        return {
            "isSidechain": bool(self.agent_id),
            "userType": "external",
            **({"entrypoint": self.entrypoint} if self.entrypoint else {}),
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.git_branch,
            **({"agentId": self.agent_id} if self.agent_id else {}),
            **({"slug": self.slug} if self.slug else {}),
        }


class Composer:
    """Composes the records of one session, each linked to the previous one; `leaf` is the last ID."""

    def __init__(
        self, context: SessionContext, *, new_uuid: Callable[[], str], now: Callable[[], str], leaf: str | None = None
    ) -> None:
        self.context = context
        self.leaf = leaf
        self._new_uuid = new_uuid
        self._now = now
        self._calls: dict[str, str] = {}
        self._prompt_id = ""
        """ID shared by the prompt and all records of its turn."""

    def prompt(self, content: str | Sequence[dict[str, Any]], **extra: Any) -> dict[str, Any]:
        """Return a user prompt: text or blocks."""
        if not extra.get("isMeta"):
            self._prompt_id = self._new_uuid()
        body = content if isinstance(content, str) else list(content)
        return self._user_record(message={"role": "user", "content": body}, **extra)

    def response(
        self,
        blocks: Sequence[dict[str, Any]],
        *,
        message_id: str,
        model: str,
        stop_reason: str | None,
        usage: dict[str, Any],
        stop_sequence: str | None = None,
        request_id: str = "",
        **more: Any,
    ) -> list[dict[str, Any]]:
        """Return a model's response, one record per block; `more` are fields of each record.

        `timings` are distributed to the records of the blocks.
        """
        timings: Timings = more.pop("timings", None) or Timings()
        thoughts = 0
        records: list[dict[str, Any]] = []
        extra = {**({"requestId": request_id} if request_id else {}), **_REQUEST_FIELDS, **more}
        for index, block in enumerate(blocks):
            message = {
                "model": model,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop_reason,
                "stop_sequence": stop_sequence,
                "usage": full_usage(usage),
                "stop_details": None,
            }
            timing_fields = timings.fields(block, thoughts)
            thoughts += block.get("type") == "thinking"
            record = self._linked_record("assistant", message=message, **timing_fields, apiBlockIndex=index, **extra)
            records.append(record)
            if block.get("type") == "tool_use":
                self._calls[str(block.get("id"))] = record["uuid"]
        return records

    def result(
        self, call_id: str, content: Any, *, is_error: bool = False, detail: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Return a tool result; `detail` is its structured copy."""
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if is_error:
            block["is_error"] = True
        extra: dict[str, Any] = {} if detail is None else {"toolUseResult": detail}
        extra.update(more)
        source = self._calls.pop(call_id, None)
        if source is not None:
            extra["sourceToolAssistantUUID"] = source
        return self._user_record(message={"role": "user", "content": [block]}, **extra)

    def compaction(
        self, summary: str, *, metadata: Mapping[str, Any], position: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """Return a boundary and the summary that replaces everything before it.

        `metadata` are the figures of the compaction: `trigger`, `preTokens` and others.
        """
        before, self.leaf = self.leaf, None
        boundary = self._linked_record(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=before,
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=dict(metadata),
        )
        position_fields = {"turnPosition": dict(position)} if position is not None else {}
        return [boundary, self.prompt(summary, **_SUMMARY_FIELDS, **position_fields)]

    def turn_duration(self, milliseconds: int, *, messages: int, pending_agents: int = 0) -> dict[str, Any]:
        """Return the record of a turn's duration, which ends a turn in a terminal.

        `messages` is the number of conversation records before it, `pending_agents` the number of sub-agents still
        running in the background.
        """
        pending = {"pendingBackgroundAgentCount": pending_agents} if pending_agents else {}
        figures = {"durationMs": milliseconds, "messageCount": messages, **pending}
        return self.note("turn_duration", **figures, isMeta=False)

    def note(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """Return a system record, for example for a failed request or the duration of a turn."""
        return self._linked_record("system", subtype=subtype, **fields)

    def attachment(self, body: dict[str, Any], *texts: str, role: str = "system", beside: str = "") -> dict[str, Any]:
        """Return an attachment record; `texts` are the parts that the model reads.

        With `beside`, a call ID, its parent is the record of that call, and no later record is linked to it.
        """
        rendered: dict[str, Any] = {"renderedRole": role} if texts or role == "user" else {}
        if texts:
            rendered = {"rendered": [{"content": text} for text in texts], **rendered}
        leaf, is_side_record = self.leaf, beside in self._calls
        if is_side_record:
            self.leaf = self._calls[beside]
        record = self._linked_record("attachment", attachment=body, **rendered)
        if is_side_record:
            self.leaf = leaf
        return record

    def failure(self, text: str, *, kind: str = "unknown", status: int = 0, error_type: str = "") -> dict[str, Any]:
        """Return a synthetic message for a response that never arrived; it is not sent to the API."""
        message = {
            "diagnostics": None,
            "id": self._new_uuid(),
            "container": None,
            "model": SYNTHETIC,
            "role": "assistant",
            "stop_details": None,
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": dict(_NO_USAGE),
            "content": [{"type": "text", "text": text}],
            "context_management": None,
        }
        extra: dict[str, Any] = {"error": kind, "isApiErrorMessage": True}
        extra.update({"apiErrorStatus": status} if status else {})
        extra.update({"apiErrorType": error_type} if error_type else {})
        return self._linked_record("assistant", message=message, **extra, madeBy=_MADE_BY)

    def turn_end(self, last_prompt: str) -> dict[str, Any]:
        """Return the record of the current leaf, written after every turn."""
        return {
            "type": "last-prompt",
            **({"lastPrompt": _shorten_prompt(last_prompt)} if last_prompt else {}),
            "leafUuid": self.leaf,
            "sessionId": self.context.session_id,
        }

    def title(self, text: str) -> dict[str, Any]:
        """Return a title record set by the user."""
        return {"type": "custom-title", "customTitle": text, "sessionId": self.context.session_id}

    def rewind(self, leaf: str | None) -> None:
        """Continue from an earlier record; the next prompt starts a branch there."""
        self.leaf = leaf

    def _user_record(self, **fields: Any) -> dict[str, Any]:
        self._prompt_id = self._prompt_id or self._new_uuid()
        return self._linked_record("user", promptId=self._prompt_id, **fields)

    def _linked_record(self, kind: str, **fields: Any) -> dict[str, Any]:
        uuid = self._new_uuid()
        record = {
            "parentUuid": self.leaf,
            **self.context.envelope(),
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": self._now(),
        }
        self.leaf = uuid
        return record


def _shorten_prompt(prompt: str) -> str:
    """Return a prompt on one line, truncated for session lists."""
    line = prompt.replace("\n", " ").strip()
    return line if len(line) <= _MAX_PROMPT_LENGTH else f"{line[:_MAX_PROMPT_LENGTH].rstrip()}…"
