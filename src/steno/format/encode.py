"""Records as the real client writes them: new records, and values → bytes.

Encoding: compact, UTF-8 without escapes, keys in the given order. The real client is a JavaScript
program, so numbers are written as `JSON.stringify` writes them (`0.00001`, not `1e-05`; `2`, not
`2.0`), and lone surrogates are escaped.

Composing: one line per content block, all lines of a response under one `message.id` with the final
stop reason and usage on each; the parent of every record is the record before it, also for parallel
results; times rise; a compaction is a boundary and a summary below it; each turn ends with
`last-prompt`. Ids and times are passed in, so composing is pure.
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
    while _escape_mark(mark) in _encode_utf8(value):  # somebody's text looks like the mark
        mark = f"\x00{mark}"
    marked, _ = _mark_floats(value, mark)
    return re.sub(b'"' + re.escape(_escape_mark(mark)) + b'([^"]*)"', rb"\1", _encode_utf8(marked))


def encode_line(value: Any) -> bytes:
    """Return `value` as one line of JSON, newline included."""
    return encode(value) + b"\n"


def _encode_utf8(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def _escape_mark(mark: str) -> bytes:
    return _encode_utf8(mark)[1:-1]


def _mark_floats(value: Any, mark: str) -> tuple[Any, bool]:
    """Replace floats that Python and JavaScript write differently by marked strings."""
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
"""How every response was asked for."""
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
"""The usage of a response as the client records it, before the API's figures are filled in."""
_NO_USAGE: Final[dict[str, Any]] = {
    **_DEFAULT_USAGE,
    "output_tokens_details": None,
    "service_tier": None,
    "inference_geo": None,
    "iterations": None,
    "speed": None,
}
"""The usage of an answer that never came."""


def full_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the API's usage with every field that the client records; the API's values stay."""
    return {**_DEFAULT_USAGE, **usage}


class Timings(msgspec.Struct, frozen=True):
    """How many milliseconds parts of a response took to stream in."""

    inputs: dict[str, int] = {}
    """Of the inputs of calls, by the call's id."""
    thoughts: list[int] = []
    """Of the thoughts, in their order."""

    def fields(self, block: dict[str, Any], thought: int) -> dict[str, Any]:
        """Return what the record of a block says; `thought` counts the thoughts before it."""
        match block.get("type"):
            case "tool_use":
                return {"toolInputStreamMs": self.inputs.get(str(block.get("id")), 0)}
            case "thinking":
                known = thought < len(self.thoughts)
                return {"thinkingDurationMs": self.thoughts[thought] if known else 0}
            case _:
                return {}


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where and by whom a session is written; stands on every record."""

    session_id: str
    cwd: str
    version: str
    git_branch: str = ""
    agent_id: str = ""
    """The sub-agent that writes; empty for the session itself."""
    entrypoint: str = ""
    """The way in: `cli` for a terminal, `sdk-cli` for a prompt without one; empty for unknown."""
    slug: str = ""
    """The session's name in words, once it has one; plan files are named after it."""

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
    """Makes the records of one session, each hanging on the last; `leaf` says where it stands."""

    def __init__(
        self, context: SessionContext, *, new_uuid: Callable[[], str], now: Callable[[], str], leaf: str | None = None
    ) -> None:
        self.context = context
        self.leaf = leaf
        self._new_uuid = new_uuid
        self._now = now
        self._calls: dict[str, str] = {}
        self._prompt_id = ""
        """What the prompt and everything that is said in its turn has in common."""

    def prompt(self, content: str | Sequence[dict[str, Any]], **extra: Any) -> dict[str, Any]:
        """Return a user's prompt: words, or blocks."""
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
        """Return a model's response, one record per block; `more` are fields of each of them.

        Of `timings`, how long the parts of the response took, each record has its own.
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
        """Return a tool's result; `detail` is what the client itself keeps of it."""
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
        """Return a boundary and the summary that takes the place of everything before it.

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
        """Return the record that ends a turn in a terminal: how long it took.

        `messages` is the number of records of the conversation before it, `pending_agents` that of
        sub-agents which still work in the background.
        """
        pending = {"pendingBackgroundAgentCount": pending_agents} if pending_agents else {}
        figures = {"durationMs": milliseconds, "messageCount": messages, **pending}
        return self.note("turn_duration", **figures, isMeta=False)

    def note(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """Return a note of the client's own: a failed request, how long a turn took."""
        return self._linked_record("system", subtype=subtype, **fields)

    def attachment(self, body: dict[str, Any], *texts: str, role: str = "system", beside: str = "") -> dict[str, Any]:
        """Return what was done around the conversation; `texts` are what the model reads of it.

        With `beside` it hangs on that call, and nothing will hang on it.
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
        """Return what stands in place of an answer that never came; it is not sent back."""
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
        """Return the record that says where the session stands; written after every turn."""
        return {
            "type": "last-prompt",
            **({"lastPrompt": _shorten_prompt(last_prompt)} if last_prompt else {}),
            "leafUuid": self.leaf,
            "sessionId": self.context.session_id,
        }

    def title(self, text: str) -> dict[str, Any]:
        """Return a title chosen by the user."""
        return {"type": "custom-title", "customTitle": text, "sessionId": self.context.session_id}

    def rewind(self, leaf: str | None) -> None:
        """Go on from an earlier record; the next prompt starts a branch there."""
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
    """Return a prompt as lists of sessions show it: on one line, and not all of a long one."""
    line = prompt.replace("\n", " ").strip()
    return line if len(line) <= _MAX_PROMPT_LENGTH else f"{line[:_MAX_PROMPT_LENGTH].rstrip()}…"
