"""`system` records: durations, hooks, retries, notices, compaction."""

from typing import Final, Self

from tests.builders.blocks import Json
from tests.builders.core import BASE
from tests.builders.shapes import synthetic
from tests.builders.sides import Sides

__all__ = ["COMPACTED", "Systems"]

COMPACTED: Final = "This session is being continued from a previous conversation"
_RETRIES: Final = 10
_LEFT: Final = 2_600
"""What a compaction leaves of the talk."""


class Systems(Sides):
    """What the client says for itself."""

    def turn_duration(self, ms: int | None = None, *, pending_agents: int = 0) -> Self:
        """Write how long the turn took."""
        took = max(self.clock.ms - self.turn_began, 40) if ms is None else ms
        body: Json = {"type": "system", "subtype": "turn_duration", "durationMs": took}
        if self.gen.tail:
            body["messageCount"] = sum(1 for record in self._records if "uuid" in record)
        if pending_agents:
            body["pendingBackgroundAgentCount"] = pending_agents
        self.link({**body, "timestamp": "", "uuid": "", "isMeta": False})
        return self

    def stop_hook_summary(self, command: str, *, errors: tuple[str, ...] = ()) -> Self:
        """Write what the stop hooks did."""
        more: Json = {"hookAdditionalContext": []} if self.gen.tail else {}
        took = {"durationMs": 21} if self.gen.tail else {}
        self.link(
            {
                "type": "system",
                "subtype": "stop_hook_summary",
                "hookCount": 1,
                "hookInfos": [{"command": command, **took}],
                "hookErrors": list(errors),
                **more,
                "preventedContinuation": False,
                "stopReason": "",
                "hasOutput": True,
                "level": "suggestion",
                "timestamp": "",
                "uuid": "",
                "toolUseID": self.ids.uuid("hook"),
            }
        )
        return self

    def api_error(self, status: int, words: str, attempt: int = 1) -> Self:
        """Write that a request failed and will be tried again."""
        request = self.ids.request()
        wait = 500 * 2**attempt
        error: Json = {"message": f"{status} {words}", "status": status, "requestId": request}
        if self.gen.latest:
            error |= {
                "formatted": f"{status} {words}",
                "connection": None,
                "isNetworkDown": False,
                "rateLimits": None,
                "noResponse": None,
            }
        retry: Json = {"retryInMs": wait, "retryAttempt": attempt, "maxRetries": _RETRIES}
        source = {"source": "request_retry"} if self.gen.latest else {}
        start = {"type": "system", "subtype": "api_error", "level": "error"}
        self.link({**start, "error": error, **retry, **source, "timestamp": "", "uuid": ""})
        return self.wait(wait / 1000)

    def fatal(self, words: str, *, status: int = 0, kind: str = "unknown") -> Self:
        """Write the client's own answer when the model gave none."""
        body: Json = {"type": "assistant", "uuid": "", "timestamp": ""}
        body["message"] = synthetic(self.gen, self.ids.uuid("synthetic"), words)
        if self.gen.latest and status:
            body["requestId"] = self.ids.request()
        if self.gen.version != "1.0.128":
            body["error"] = kind
        body["isApiErrorMessage"] = True
        if self.gen.latest and status:
            body |= {"apiErrorStatus": status, "apiErrorType": "invalid_request_error"}
        if self.gen.latest:
            body |= {"failedResponseHadNoToolCall": True, "madeBy": "model"}
        self.link(body)
        return self

    def informational(self, words: str, level: str = "notice") -> Self:
        """Write a notice to the user."""
        start = {"type": "system", "subtype": "informational", "content": words, "isMeta": False}
        self.link({**start, "timestamp": "", "uuid": "", "level": level})
        return self

    def local_command(self, words: str, *, run: tuple[str, str] | None = None) -> Self:
        """Write one half of a command that never went to the model."""
        start = {"type": "system", "subtype": "local_command", "content": words, "level": "info"}
        done = {}
        if run and self.gen.latest:
            done = {"commandRun": {"command": run[0], "args": run[1]}}
        self.link({**start, "timestamp": "", "uuid": "", "isMeta": False, **done})
        return self

    def microcompact(self, saved: int = 21_000) -> Self:
        """Write that old tool results were left out of the context."""
        names = [call.id for call in self.calls]
        start = {
            "type": "system",
            "subtype": "microcompact_boundary",
            "content": "Context microcompacted",
            "isMeta": False,
        }
        data = {
            "trigger": "auto",
            "preTokens": self.context,
            "tokensSaved": saved,
            "compactedToolIds": names,
            "clearedAttachmentUUIDs": [],
        }
        end = {"level": "info", "microcompactMetadata": data}
        self.link({**start, "timestamp": "", "uuid": "", **end})
        return self

    def compact(self, summary: str, *, trigger: str = "manual", keep: int = 0) -> Self:
        """Compact the conversation; `keep` names that many last chain records as kept, or more.

        A result is not kept without its call.
        """
        before = self.tip
        kept = self._last(keep)
        if self.gen.version != "1.0.128":
            self.slug = self.slug or self.ids.words()
        anchor = self.ids.uuid()
        data = self._compact_metadata(trigger, anchor, kept)
        start = {"type": "system", "subtype": "compact_boundary"}
        start |= {"content": "Conversation compacted"}
        rest = {"isMeta": False, "timestamp": "", "uuid": "", "level": "info"}
        self.link({**start, **rest, "compactMetadata": data}, parent=None, logicalParentUuid=before)
        self.context, self.compacted = BASE + _LEFT, True
        position = {}
        if self.gen.latest:
            position = {"turnPosition": {"promptIndex": len(self.prompts), "turnIndex": self.turns}}
        flags = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        said = {"role": "user", "content": f"{COMPACTED}.\n\n{summary}"}
        body = {"type": "user", "message": said, **flags, "uuid": anchor, "timestamp": ""}
        self.link({**body, **position}, **self._prompted())
        return self

    def _last(self, number: int) -> list[str]:
        """Return the ids of so many last chain records, and of the call that a first result needs."""
        chain = [record for record in self._records if "uuid" in record]
        first = len(chain) - number
        while 0 < first < len(chain) and "toolUseResult" in chain[first]:
            first -= 1
        return [str(record["uuid"]) for record in chain[first:]]

    def _compact_metadata(self, trigger: str, anchor: str, kept: list[str]) -> Json:
        data: Json = {"trigger": trigger, "preTokens": self.context}
        if not self.gen.tail:
            return data
        data["durationMs"] = 8200
        if kept:
            segment = {"headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1]}
            data["preservedSegment"] = segment
            messages = {"anchorUuid": anchor, "uuids": kept, "allUuids": kept}
            data["preservedMessages"] = messages
        return {**data, "postTokens": _LEFT, "cumulativeDroppedTokens": self.context - _LEFT}
