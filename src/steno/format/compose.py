"""New records in the one shape that every studied client resumes exactly.

The rules: one line per content block, all lines of a response under one `message.id` with the
final stop reason and usage on each; every record hangs on the one before it, parallel results too;
times rise; compaction is a boundary and a summary below it; each turn ends with `last-prompt`.
Ids and times come in from outside, so that composing is pure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = ["SYNTHETIC", "Composer", "Place", "Timings", "full_usage"]

SYNTHETIC: Final = "<synthetic>"
"""The model of what a client wrote in place of an answer."""
_MOST_SHOWN: Final = 200
_MADE_BY: Final = "model"
_ASKED: Final = {"madeBy": _MADE_BY, "promptCacheRequested": "5m"}
"""How every response was asked for."""
_SUMMARY: Final = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
_NO_TOOLS_OF_THE_SERVER: Final = {"web_search_requests": 0, "web_fetch_requests": 0}
_NOTHING_CACHED: Final = {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}
_USAGE: Final[dict[str, Any]] = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
    "output_tokens_details": {"thinking_tokens": 0},
    "server_tool_use": _NO_TOOLS_OF_THE_SERVER,
    "service_tier": "standard",
    "cache_creation": _NOTHING_CACHED,
    "inference_geo": "",
    "iterations": [],
    "speed": "standard",
    "fallback_credit": None,
}
"""The usage of a response as the client records it, before the API's figures are filled in."""
_NO_USAGE: Final[dict[str, Any]] = {
    **_USAGE,
    "output_tokens_details": None,
    "service_tier": None,
    "inference_geo": None,
    "iterations": None,
    "speed": None,
}
"""The usage of an answer that never came."""


def full_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the API's usage with every field that the client records; the API's values stay."""
    return {**_USAGE, **usage}


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


class Place(msgspec.Struct, frozen=True, kw_only=True):
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
        self,
        place: Place,
        *,
        new_uuid: Callable[[], str],
        now: Callable[[], str],
        leaf: str | None = None,
    ) -> None:
        self.place = place
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
        return self._said(message={"role": "user", "content": body}, **extra)

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
        extra = {**({"requestId": request_id} if request_id else {}), **_ASKED, **more}
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
            timed = timings.fields(block, thoughts)
            thoughts += block.get("type") == "thinking"
            record = self._link("assistant", message=message, **timed, apiBlockIndex=index, **extra)
            records.append(record)
            if block.get("type") == "tool_use":
                self._calls[str(block.get("id"))] = record["uuid"]
        return records

    def result(
        self,
        call_id: str,
        content: Any,
        *,
        is_error: bool = False,
        detail: Any = None,
        **more: Any,
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
        return self._said(message={"role": "user", "content": [block]}, **extra)

    def compaction(
        self,
        summary: str,
        *,
        metadata: Mapping[str, Any],
        position: Mapping[str, int] | None = None,
    ) -> list[dict[str, Any]]:
        """Return a boundary and the summary that takes the place of everything before it.

        `metadata` are the figures of the compaction: `trigger`, `preTokens` and others.
        """
        before, self.leaf = self.leaf, None
        boundary = self._link(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=before,
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=dict(metadata),
        )
        where = {"turnPosition": dict(position)} if position is not None else {}
        return [boundary, self.prompt(summary, **_SUMMARY, **where)]

    def turn_duration(
        self, milliseconds: int, *, messages: int, pending_agents: int = 0
    ) -> dict[str, Any]:
        """Return the record that ends a turn in a terminal: how long it took.

        `messages` is the number of records of the conversation before it, `pending_agents` that of
        sub-agents which still work in the background.
        """
        pending = {"pendingBackgroundAgentCount": pending_agents} if pending_agents else {}
        figures = {"durationMs": milliseconds, "messageCount": messages, **pending}
        return self.note("turn_duration", **figures, isMeta=False)

    def note(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """Return a note of the client's own: a failed request, how long a turn took."""
        return self._link("system", subtype=subtype, **fields)

    def attachment(
        self, body: dict[str, Any], *words: str, role: str = "system", beside: str = ""
    ) -> dict[str, Any]:
        """Return what was done around the conversation; `words` are what the model reads of it.

        With `beside` it hangs on that call, and nothing will hang on it.
        """
        rendered: dict[str, Any] = {"renderedRole": role} if words or role == "user" else {}
        if words:
            rendered = {"rendered": [{"content": each} for each in words], **rendered}
        leaf, aside = self.leaf, beside in self._calls
        if aside:
            self.leaf = self._calls[beside]
        record = self._link("attachment", attachment=body, **rendered)
        if aside:
            self.leaf = leaf
        return record

    def failure(
        self, words: str, *, kind: str = "unknown", status: int = 0, error_type: str = ""
    ) -> dict[str, Any]:
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
            "content": [{"type": "text", "text": words}],
            "context_management": None,
        }
        extra: dict[str, Any] = {"error": kind, "isApiErrorMessage": True}
        extra.update({"apiErrorStatus": status} if status else {})
        extra.update({"apiErrorType": error_type} if error_type else {})
        return self._link("assistant", message=message, **extra, madeBy=_MADE_BY)

    def turn_end(self, last_prompt: str) -> dict[str, Any]:
        """Return the record that says where the session stands; written after every turn."""
        return {
            "type": "last-prompt",
            **({"lastPrompt": _shortened(last_prompt)} if last_prompt else {}),
            "leafUuid": self.leaf,
            "sessionId": self.place.session_id,
        }

    def title(self, words: str) -> dict[str, Any]:
        """Return a title chosen by the user."""
        return {
            "type": "custom-title",
            "customTitle": words,
            "sessionId": self.place.session_id,
        }

    def rewind(self, leaf: str | None) -> None:
        """Go on from an earlier record; the next prompt starts a branch there."""
        self.leaf = leaf

    def _said(self, **fields: Any) -> dict[str, Any]:
        """Return a record of the user's side."""
        self._prompt_id = self._prompt_id or self._new_uuid()
        return self._link("user", promptId=self._prompt_id, **fields)

    def _link(self, kind: str, **fields: Any) -> dict[str, Any]:
        uuid = self._new_uuid()
        record = {
            "parentUuid": self.leaf,
            **self.place.envelope(),
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": self._now(),
        }
        self.leaf = uuid
        return record


def _shortened(prompt: str) -> str:
    """Return a prompt as lists of sessions show it: on one line, and not all of a long one."""
    line = prompt.replace("\n", " ").strip()
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN].rstrip()}…"
