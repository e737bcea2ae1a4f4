"""An agent without a screen: what it does as text, as one JSON object, or as a line per event.

The shapes are those of Claude Code's `--output-format json` and `stream-json`; there is always a
last `result`, whatever happened.
"""

import uuid
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from steno.agent import events, stream_lines
from steno.agent.events import Event, Reason
from steno.agent.meter import tokens_of

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
    "not_saved": "error_during_execution",
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
    "not_saved": 3,
}
_ENDINGS: Final[dict[Reason, str]] = {
    "empty": "the model answered nothing",
    "interrupted": "it was interrupted",
    "max_turns": "it was not done after as many requests as --max-turns allows",
    "max_budget": "it was not done for as much as --max-budget-usd allows",
    "max_time": "it was not done in as many seconds as --max-time allows",
}
"""What is said to people where the answer does not say it."""
_TERMINAL: Final[dict[Reason, str]] = {
    "done": "completed",
    "empty": "completed",
    "max_turns": "max_turns",
    "max_budget": "budget_exhausted",
}
"""Why a turn was the last thing that happened, where others have a name for it."""
_SHAPELESS: Final = "the model gave no answer in the shape that was asked for"
_NEXT: Final = "the next message is taken; break in again while there is none, and it ends"
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
        more: bool = False,
    ) -> None:
        """Take where to print to; with `more` another prompt may always come."""
        self._output: Output = output
        self._session = session_id
        self._write = write
        self._partial = partial
        self._warn = warn
        self._more = more
        self._refused: list[dict[str, Any]] = []
        self._structured: Any = None
        self._shapeless = False
        """Whether an answer in a shape was asked for and never came."""
        self._sandbox: Any = None
        """Whether commands were confined: who gets one object only, is told there."""
        self._parent: str | None = None
        """The call that a sub-agent works for, while it is heard."""
        self._tasks: dict[str, _Task] = {}
        """What sub-agents work on, by the call."""
        self._message = ""
        """The answer that comes in."""
        self._stop_reason: str | None = None
        self._failed: events.Failed | None = None
        self._results = 0

    def begin(self, facts: dict[str, Any], session_id: str = "") -> None:
        """Say what a session begins with: its tools, its model, its folder."""
        self._sandbox = facts.get("sandbox")
        self._session = session_id or self._session
        if self._output == "stream-json":
            self._line(stream_lines.init_line(facts))

    def take(self, event: Event) -> None:
        """Take one event."""
        match event:
            case events.Within(call, inner):
                outer, self._parent = self._parent, call
                self.take(inner)
                self._parent = outer
            case events.Noticed(words, _):
                self._warn(words)
            case events.Retrying(attempt, of, delay, error):
                self._warn(f"{error}; try {attempt} of {of} in {delay:.1f} s")
            case _:
                self._note(event)
                if self._output == "stream-json":
                    self._stream(event)

    def structured(self, value: Any) -> None:
        """Take the answer in the shape that was asked for; None where there is none."""
        self._structured = value
        self._shapeless = value is None

    def _note(self, event: Event) -> None:
        """Remember what the end has to tell."""
        match event:
            case events.Refused(call, _):
                given = {"tool_name": call.get("name"), "tool_use_id": call.get("id")}
                self._refused.append({**given, "tool_input": call.get("input")})
            case events.Prompted() if self._parent is None:
                self._stop_reason = self._failed = None
            case events.Answered(response, _) if self._parent is None:
                self._stop_reason = response.stop_reason
            case events.Failed() if self._parent is None:
                self._stop_reason, self._failed = "stop_sequence", event
            case _:
                pass

    # A line per event

    def _stream(self, event: Event) -> None:
        match event:
            case events.Answered(response, uuids):
                lines = stream_lines.answer_lines(response)
                for line, name in zip(lines, uuids, strict=False):
                    self._said(line, name)
            case events.Failed(_, _, name):
                self._said(stream_lines.failed_line(event), name)
            case events.ToolEnded(call, _, _, name):
                refused = any(each["tool_use_id"] == call.get("id") for each in self._refused)
                self._said(stream_lines.result_line(event, refused=refused), name)
            case events.Refused():
                self._line(stream_lines.denied_line(event))
            case events.KeptOut(_, name):
                self._line(stream_lines.kept_out_line(event), name)
            case events.Compacted():
                self._line(stream_lines.compacted_line(event))
            case events.Asked() | events.Streamed() if self._partial and self._parent is None:
                self._stream_part(event)
            case _:
                self._stream_task(event)

    def _stream_part(self, event: events.Asked | events.Streamed) -> None:
        """Tell of an answer while it comes in; those of sub-agents are told when they are whole."""
        if isinstance(event, events.Asked):
            self._line(stream_lines.status_line())
            return
        if event.event.get("type") == "message_start":
            self._message = str(event.event["message"].get("id", ""))
        self._line(stream_lines.partial_line(event.event, self._message))

    def _stream_task(self, event: Event) -> None:
        task = self._tasks.get(self._parent or "")
        match event:
            case events.Launched():
                self._tasks[event.call] = _Task(event)
                self._line(stream_lines.launched_line(event))
            case events.Landed():
                self._line(stream_lines.task_line(event))
            case events.Prompted(words, name) if task is not None:
                self._said(stream_lines.prompt_line(words), name)
            case _:
                pass

    def _said(self, line: dict[str, Any], name: str) -> None:
        """Print what somebody said: the model, the user, or a tool."""
        task = self._tasks.get(self._parent or "")
        line["parent_tool_use_id"] = self._parent
        if task is not None:
            line.pop("tool_use_result", None)
            line |= task.facts()
        self._line(line, name)
        if task is not None:
            for progress in task.progress(line):
                self._line(progress)

    def _line(self, fields: dict[str, Any], name: str = "") -> None:
        self._write({**fields, "session_id": self._session, "uuid": name or str(uuid.uuid4())})

    # The end

    def fail(self, ended: events.Ended) -> None:
        """Take the end of everything; to people it is told as any other error is."""
        if self._output != "text":
            self.end(ended)

    def end(self, ended: events.Ended) -> int:
        """Take the end of a turn: the last thing that is printed, whatever happened.

        Returns the exit code that goes with it.
        """
        code = EXIT_CODES[ended.reason]
        shapeless = self._shapeless and not code
        if shapeless:
            code = 1
            self._warn(_SHAPELESS)
        if self._output == "text":
            if ended.text:
                self._write(ended.text)
            if ended.problem or ended.reason in _ENDINGS:
                self._warn(ended.problem or _ENDINGS[ended.reason])
        else:
            self._line(self._result(ended, code, shapeless=shapeless))
            self._results += 1
        if self._more and ended.reason == "interrupted":
            self._warn(_NEXT)
        return code

    def _result(self, ended: events.Ended, code: int, *, shapeless: bool) -> dict[str, Any]:
        subtype = "error_max_structured_output_retries" if shapeless else _SUBTYPES[ended.reason]
        failed = self._failed if ended.reason == "error" else None
        terminal = _TERMINAL.get(ended.reason, "")
        if failed is not None or self._stop_reason == "refusal":
            # What the API says in place of an answer is told as one.
            subtype, terminal = "success", "api_error"
        result: dict[str, Any] = {
            "type": "result",
            "subtype": subtype,
            "is_error": code != 0,
            "duration_ms": round(ended.seconds * 1000),
            "duration_api_ms": round(ended.asking * 1000),
            "num_turns": ended.requests,
            "stop_reason": self._stop_reason,
            "total_cost_usd": ended.cost / _MICRO,
            "usage": ended.usage,
            "modelUsage": stream_lines.by_model(ended.models),
            "permission_denials": self._refused,
            "fast_mode_state": "off",
            "queued_turn_count": 0,
            "result_index": self._results,
        }
        if terminal:
            result["terminal_reason"] = terminal
        if subtype == "success":
            result["result"] = ended.text
            result["api_error_status"] = failed.error.status or None if failed else None
        else:
            told = ended.problem or ended.text or _ENDINGS.get(ended.reason, "")
            told = _SHAPELESS if shapeless else told
            result["errors"] = [told]
        if self._sandbox is not None and self._output == "json":
            result["sandbox"] = self._sandbox
        if self._structured is not None:
            result["structured_output"] = self._structured
        return result


class _Task:
    """What a sub-agent works on, and what it took so far."""

    def __init__(self, launched: events.Launched) -> None:
        self._launched = launched
        self._tool_uses = 0
        self._tokens = 0

    def facts(self) -> dict[str, Any]:
        """Return what stands on every line of it."""
        launched = self._launched
        return {
            "agent_id": launched.agent_id,
            "subagent_type": launched.kind,
            "task_description": launched.description,
        }

    def progress(self, line: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the lines that tell of calls in an answer of the sub-agent's."""
        message = line["message"]
        if line["type"] != "assistant" or message["content"][0].get("type") != "tool_use":
            return []
        self._tool_uses += 1
        self._tokens = tokens_of(message["usage"])
        usage = {"total_tokens": self._tokens, "tool_uses": self._tool_uses}
        tool = str(message["content"][0].get("name"))
        return [stream_lines.progress_line(self._launched, tool, usage)]
