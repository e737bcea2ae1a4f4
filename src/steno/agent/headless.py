"""An agent without a screen: what it does as text, as one JSON object, or as a line per event.

The shapes are those of Claude Code's `--output-format json` and `stream-json`; there is always a
last `result`, whatever happened.
"""

import uuid
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from steno.agent import events
from steno.agent.events import Event, Reason

__all__ = ["EXIT_CODES", "Output", "Printer"]

Output: TypeAlias = Literal["text", "json", "stream-json"]
_SUBTYPES: Final[dict[Reason, str]] = {
    "done": "success",
    "empty": "success",
    "refused": "success",
    "interrupted": "error_during_execution",
    "error": "error_during_execution",
    "max_turns": "error_max_turns",
    "max_budget": "error_max_budget_usd",
    "max_time": "error_max_time",
}
EXIT_CODES: Final[dict[Reason, int]] = {
    "done": 0,
    "empty": 0,
    "refused": 1,
    "interrupted": 130,
    "error": 1,
    "max_turns": 1,
    "max_budget": 1,
    "max_time": 1,
}
_ENDINGS: Final[dict[Reason, str]] = {
    "empty": "the model answered nothing",
    "interrupted": "it was interrupted",
    "max_turns": "it was not done after as many requests as --max-turns allows",
    "max_budget": "it was not done for as much as --max-budget-usd allows",
    "max_time": "it was not done in the time there was",
}
"""What is said to people where the answer does not say it."""
_MICRO: Final = 1_000_000


class Printer:
    """Turns events into what is printed; `write` gets whole lines."""

    def __init__(
        self,
        output: Output,
        session_id: str,
        write: Callable[[str | dict[str, Any]], None],
        *,
        partial: bool = False,
        warn: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._output: Output = output
        self._session = session_id
        self._write = write
        self._partial = partial
        self._warn = warn
        self._refused: list[dict[str, Any]] = []
        self._structured: Any = None
        self._shapeless = False
        """Whether an answer in a shape was asked for and never came."""
        self._sandbox: Any = None
        """Whether commands were confined: who gets one object only, is told there."""
        self._parent: str | None = None
        """The call that a sub-agent works for, while it is heard."""

    def begin(self, facts: dict[str, Any], session_id: str = "") -> None:
        """Say what a session begins with: its tools, its model, its folder."""
        self._sandbox = facts.get("sandbox")
        self._session = session_id or self._session
        if self._output == "stream-json":
            self._line({"type": "system", "subtype": "init", **facts})

    def take(self, event: Event) -> None:
        """Take one event."""
        match event:
            case events.Refused(call, _):
                given = {"tool_name": call.get("name"), "tool_use_id": call.get("id")}
                self._refused.append({**given, "tool_input": call.get("input")})
            case events.Within(call, inner):
                outer, self._parent = self._parent, call
                self.take(inner)
                self._parent = outer
            case events.Noticed(words, _):
                self._warn(words)
            case events.Retrying(attempt, of, delay, error):
                self._warn(f"{error}; try {attempt} of {of} in {delay:.1f} s")
            case _ if self._output == "stream-json":
                self._stream(event)
            case _:
                pass

    def structured(self, value: Any) -> None:
        """Take the answer in the shape that was asked for; None where there is none."""
        self._structured = value
        self._shapeless = value is None

    def _stream(self, event: Event) -> None:
        match event:
            case events.Answered(response, uuids):
                for block, name in zip(response.blocks, uuids, strict=False):
                    message = {
                        "model": response.model,
                        "id": response.id,
                        "type": "message",
                        "role": "assistant",
                        "content": [block],
                        "stop_reason": response.stop_reason,
                        "stop_sequence": response.stop_sequence,
                        "usage": response.usage,
                    }
                    self._said("assistant", message, name)
            case events.ToolEnded(call, outcome, _, name):
                block: dict[str, Any] = {
                    "tool_use_id": call.get("id"),
                    "type": "tool_result",
                    "content": outcome.content,
                }
                if outcome.is_error:
                    block["is_error"] = True
                message = {"role": "user", "content": [block]}
                self._said("user", message, name, tool_use_result=outcome.detail)
            case events.Compacted(trigger, before, _, _):
                facts = {"trigger": trigger, "pre_tokens": before}
                boundary = {"type": "system", "subtype": "compact_boundary"}
                self._line({**boundary, "compact_metadata": facts})
            case events.Grew() if self._partial:
                self._line({"type": "stream_event", "event": _delta(event)})
            case _:
                pass

    def _said(self, kind: str, message: dict[str, Any], name: str, **extra: Any) -> None:
        said = {"type": kind, "message": message, "parent_tool_use_id": self._parent, **extra}
        self._line(said, name)

    def _line(self, fields: dict[str, Any], name: str = "") -> None:
        self._write({**fields, "session_id": self._session, "uuid": name or str(uuid.uuid4())})

    def fail(self, ended: events.Ended) -> None:
        """Take the end of everything; to people it is told as any other error is."""
        if self._output != "text":
            self.end(ended)

    def end(self, ended: events.Ended) -> int:
        """Take the end of a turn: the last thing that is printed, whatever happened.

        Returns the exit code that goes with it.
        """
        code, subtype = EXIT_CODES[ended.reason], _SUBTYPES[ended.reason]
        if self._shapeless and not code:
            code, subtype = 1, "error_max_structured_output_retries"
            self._warn("the model gave no answer in the shape that was asked for")
        if self._output == "text":
            if ended.text:
                self._write(ended.text)
            if ended.reason in _ENDINGS:
                self._warn(_ENDINGS[ended.reason])
            return code
        result: dict[str, Any] = {
            "type": "result",
            "subtype": subtype,
            "is_error": code != 0,
            "duration_ms": round(ended.seconds * 1000),
            "duration_api_ms": round(ended.asking * 1000),
            "num_turns": ended.requests,
            "result": ended.text,
            "total_cost_usd": ended.cost / _MICRO,
            "usage": ended.usage,
            "modelUsage": {name: _by_model(each) for name, each in ended.models.items()},
            "permission_denials": self._refused,
        }
        if self._sandbox is not None and self._output == "json":
            result["sandbox"] = self._sandbox
        if self._structured is not None:
            result["structured_output"] = self._structured
        self._line(result)
        return code


def _by_model(counted: dict[str, int]) -> dict[str, Any]:
    return {
        "inputTokens": counted["input_tokens"],
        "outputTokens": counted["output_tokens"],
        "cacheReadInputTokens": counted["cache_read_input_tokens"],
        "cacheCreationInputTokens": counted["cache_creation_input_tokens"],
        "costUSD": counted["cost"] / _MICRO,
    }


def _delta(event: events.Grew) -> dict[str, Any]:
    kinds = {"text": "text_delta", "thinking": "thinking_delta", "input": "input_json_delta"}
    names = {"text": "text", "thinking": "thinking", "input": "partial_json"}
    delta = {"type": kinds[event.kind], names[event.kind]: event.text}
    return {"type": "content_block_delta", "index": event.index, "delta": delta}
