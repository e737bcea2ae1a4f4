"""New records in the one shape that every studied client resumes exactly.

The rules: one line per content block, all lines of a response under one `message.id` with the
final stop reason and usage on each; every record hangs on the one before it, parallel results too;
times rise; compaction is a boundary and a summary below it; each turn ends with `last-prompt`.
Ids and times come in from outside, so that composing is pure.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

__all__ = ["SYNTHETIC", "Composer", "Place"]

SYNTHETIC: Final = "<synthetic>"
"""The model of what a client wrote in place of an answer."""
_MOST_SHOWN: Final = 200
_MADE_BY: Final = "model"
_ASKED: Final = {"madeBy": _MADE_BY, "promptCacheRequested": "5m"}
"""How every response was asked for."""
_SUMMARY: Final = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where and by whom a session is written; stands on every record."""

    session_id: str
    cwd: str
    version: str
    git_branch: str = ""
    agent_id: str = ""
    """The sub-agent that writes; empty for the session itself."""

    def envelope(self) -> dict[str, Any]:
        """Return the fields that are the same on every record."""
        return {
            "isSidechain": bool(self.agent_id),
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.git_branch,
            **({"agentId": self.agent_id} if self.agent_id else {}),
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
        """Return a model's response, one record per block; `more` are fields of each of them."""
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
                "usage": usage,
            }
            record = self._link("assistant", message=message, apiBlockIndex=index, **extra)
            records.append(record)
            if block.get("type") == "tool_use":
                self._calls[str(block.get("id"))] = records[-1]["uuid"]
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

    def compaction(self, summary: str, *, trigger: str, tokens: int) -> list[dict[str, Any]]:
        """Return a boundary and the summary that takes the place of everything before it."""
        before, self.leaf = self.leaf, None
        boundary = self._link(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=before,
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata={"trigger": trigger, "preTokens": tokens},
        )
        return [boundary, self.prompt(summary, **_SUMMARY)]

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

    def failure(self, words: str, *, status: int = 0) -> dict[str, Any]:
        """Return what stands in place of an answer that never came; it is not sent back."""
        message = {
            "model": SYNTHETIC,
            "id": self._new_uuid(),
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": words}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        extra: dict[str, Any] = {"apiErrorStatus": status} if status else {}
        extra["madeBy"] = _MADE_BY
        return self._link("assistant", message=message, isApiErrorMessage=True, **extra)

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
