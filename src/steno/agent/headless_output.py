"""The output of headless mode: text, one JSON object, or one JSON line per event.

The formats are those of Claude Code's `--output-format json` and `stream-json`; the last line is
always a `result`.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from steno.agent import events
from steno.agent.context.token_usage import MICRODOLLARS_PER_DOLLAR, context_tokens, context_window
from steno.agent.events import EndReason, Event
from steno.agent.recorder import VERSION
from steno.format.message import SYNTHETIC
from steno.format.tool_catalogue import AGENT, older_names
from steno.llm.messages_api import Block, Response
from steno.store.environment import now

_INIT_FIELDS: Final[dict[str, Any]] = {
    "claude_code_version": VERSION,
    "plugins": [],
    "capabilities": [],
    "terminal_slash_commands": [],
    "analytics_disabled": True,
    "product_feedback_disabled": True,
    "fast_mode_state": "off",
}
"""Constant fields of the `init` event; the version is the version of the session format."""
_OLDER_TOOL_NAMES: Final = {AGENT: older_names(AGENT)[0]}
"""Tools that are listed under their older name, as in the output of Claude Code."""


def response_lines(response: Response) -> list[dict[str, Any]]:
    """Return the lines for a response, one per block."""
    message_fields: dict[str, Any] = {
        "model": response.model,
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": response.stop_reason,
        "stop_sequence": response.stop_sequence,
        "usage": response.usage,
        "context_management": None,
    }
    request = {"request_id": response.request_id} if response.request_id else {}
    return [
        {"type": "assistant", "message": {**message_fields, "content": [block]}, **_timestamp_fields(), **request}
        for block in response.blocks
    ]


def failure_line(failure: events.RequestFailed) -> dict[str, Any]:
    """Return the line for a failed request."""
    error = failure.error
    response = Response(
        id=failure.uuid,
        model=SYNTHETIC,
        blocks=[{"type": "text", "text": failure.text}],
        stop_reason="stop_sequence",
        stop_sequence="",
        usage={"input_tokens": 0, "output_tokens": 0},
        request_id=error.request_id,
    )
    (line,) = response_lines(response)
    error_fields = {"is_api_error_message": True, "error": error.category}
    if error.status:
        error_fields |= {"api_error_status": error.status, "api_error_type": error.kind}
    return {**line, **error_fields}


def tool_result_line(ended: events.ToolEnded, *, denied: bool) -> dict[str, Any]:
    """Return the line for a tool result."""
    call, result = ended.call.get("id"), ended.result
    block: Block = {"tool_use_id": call, "type": "tool_result", "content": result.content}
    if result.is_error:
        block["is_error"] = True
    decision = {"decision": "reject" if denied else "accept", "source": "config"}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        **_timestamp_fields(),
        "tool_use_result": result.detail,
        "tool_result_meta": [{"id": call, "permission_decision": decision}],
    }


def blocked_prompt_line(blocked: events.PromptBlocked) -> dict[str, Any]:
    """Return the line for a prompt that a hook blocked."""
    fields = blocked.fields
    line = {**_system_fields("informational"), "content": fields["content"], "level": fields["level"]}
    line["prevent_continuation"] = True
    submit_ending = fields.get("promptSubmitEnding")
    if submit_ending is not None:
        submit_outcome = {**submit_ending["ending"], "prompt_kept": submit_ending["promptKept"]}
        line["prompt_submit_outcome"] = submit_outcome
    return line


# Sub-agents


def subagent_started_line(started: events.SubagentStarted) -> dict[str, Any]:
    """Return the line for the start of a sub-agent."""
    return {
        **_system_fields("task_started"),
        "task_id": started.agent_id,
        "tool_use_id": started.call_id,
        "description": started.description,
        "subagent_type": started.agent_type,
        "is_backgrounded": started.background,
        "spawn_depth": started.depth,
        "task_type": "local_agent",
        "prompt": started.prompt,
    }


def subagent_progress_line(started: events.SubagentStarted, tool: str, usage: dict[str, int]) -> dict[str, Any]:
    """Return the line for a tool call of a sub-agent, with its usage so far."""
    return {
        **_system_fields("task_progress"),
        "task_id": started.agent_id,
        "tool_use_id": started.call_id,
        "description": started.description,
        "subagent_type": started.agent_type,
        "usage": usage,
        "last_tool_name": tool,
    }


def subagent_ended_line(ended: events.SubagentEnded) -> dict[str, Any]:
    """Return the line for the end of a sub-agent."""
    return {
        **_system_fields("task_notification"),
        "task_id": ended.agent_id,
        "tool_use_id": ended.call_id,
        "status": ended.status,
        "output_file": ended.path,
        "summary": ended.text,
        "usage": {
            "total_tokens": ended.tokens,
            "tool_uses": ended.tool_uses,
            "duration_ms": round(ended.seconds * 1000),
        },
    }


# Result


def usage_by_model(models: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    """Return the usage of each model, as in `modelUsage`."""
    return {
        name: {
            "inputTokens": usage["input_tokens"],
            "outputTokens": usage["output_tokens"],
            "cacheReadInputTokens": usage["cache_read_input_tokens"],
            "cacheCreationInputTokens": usage["cache_creation_input_tokens"],
            "costUSD": usage["cost"] / MICRODOLLARS_PER_DOLLAR,
            "contextWindow": context_window(name),
        }
        for name, usage in models.items()
    }


def _system_fields(subtype: str) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype}


def _timestamp_fields() -> dict[str, str]:
    moment = datetime.fromtimestamp(now(), UTC)
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"}


OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
_RESULT_SUBTYPES: Final[dict[EndReason, str]] = {
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
EXIT_CODES: Final[dict[EndReason, int]] = {
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
_END_MESSAGES: Final[dict[EndReason, str]] = {
    "empty": "the model returned an empty answer",
    "interrupted": "interrupted",
    "max_turns": "reached --max-turns",
    "max_budget": "reached --max-budget-usd",
    "max_time": "reached --max-time",
}
"""Messages for turns that end without an answer or error text."""
_TERMINAL_REASONS: Final[dict[EndReason, str]] = {
    "done": "completed",
    "empty": "completed",
    "max_turns": "max_turns",
    "max_budget": "budget_exhausted",
}
"""Values of `terminal_reason`."""
_NO_STRUCTURED_OUTPUT: Final = "the model returned no structured output"
_INTERRUPTED_HINT: Final = "interrupted; send the next message, or interrupt again to quit"


class HeadlessPrinter:
    """Formats events as output; `write` receives whole lines."""

    def __init__(
        self,
        output_format: OutputFormat,
        session_id: str,
        write: Callable[[str | dict[str, Any]], None],
        *,
        partial: bool = False,
        warn: Callable[[str], None] = lambda _words: None,
        expects_more: bool = False,
    ) -> None:
        """Store the options; `expects_more` is true if more prompts may follow."""
        self._format: OutputFormat = output_format
        self._session_id = session_id
        self._write = write
        self._partial = partial
        self._warn = warn
        self._expects_more = expects_more
        self._denials: list[dict[str, Any]] = []
        self._structured_output: Any = None
        self._structured_output_missing = False
        """Whether structured output was requested but not returned."""
        self._sandbox: Any = None
        """State of the sandbox, included in the JSON object of the `json` format."""
        self._parent_call_id: str | None = None
        """ID of the Agent call whose sub-agent events are being handled."""
        self._tasks: dict[str, _SubagentTask] = {}
        """Running sub-agent tasks, by the ID of their Agent call."""
        self._message_id = ""
        """ID of the message that is being streamed."""
        self._stop_reason: str | None = None
        self._request_failure: events.RequestFailed | None = None
        self._result_count = 0

    def begin(self, facts: dict[str, Any], session_id: str = "") -> None:
        """Print the `init` event."""
        self._sandbox = facts.get("sandbox")
        self._session_id = session_id or self._session_id
        if self._format == "stream-json":
            names = [_OLDER_TOOL_NAMES.get(name, name) for name in facts["tools"]]
            self._write_line({**_system_fields("init"), **facts, "tools": names, **_INIT_FIELDS})

    def handle(self, event: Event) -> None:
        """Print an event."""
        match event:
            case events.SubagentEvent(call, inner):
                outer, self._parent_call_id = self._parent_call_id, call
                self.handle(inner)
                self._parent_call_id = outer
            case events.Notice(text, _):
                self._warn(text)
            case events.Retrying(attempt, max_attempts, delay, error):
                self._warn(f"{error}; attempt {attempt} of {max_attempts} in {delay:.1f} s")
            case _:
                self._update_state(event)
                if self._format == "stream-json":
                    self._write_event(event)

    def set_structured_output(self, value: Any) -> None:
        """Store the structured output of the turn; None if it is missing."""
        self._structured_output = value
        self._structured_output_missing = value is None

    def _update_state(self, event: Event) -> None:
        match event:
            case events.CallDenied(call, _):
                denial = {"tool_name": call.get("name"), "tool_use_id": call.get("id")}
                self._denials.append({**denial, "tool_input": call.get("input")})
            case events.PromptSubmitted() if self._parent_call_id is None:
                self._stop_reason = self._request_failure = None
            case events.ResponseReceived(response, _) if self._parent_call_id is None:
                self._stop_reason = response.stop_reason
            case events.RequestFailed() if self._parent_call_id is None:
                self._stop_reason, self._request_failure = "stop_sequence", event
            case _:
                pass

    # One line per event

    def _write_event(self, event: Event) -> None:
        match event:
            case events.ResponseReceived(response, uuids):
                lines = response_lines(response)
                for line, line_id in zip(lines, uuids, strict=False):
                    self._write_message(line, line_id)
            case events.RequestFailed(_, _, line_id):
                self._write_message(failure_line(event), line_id)
            case events.ToolEnded(call, _, _, line_id):
                denied = any(denial["tool_use_id"] == call.get("id") for denial in self._denials)
                self._write_message(tool_result_line(event, denied=denied), line_id)
            case events.CallDenied():
                call = {"tool_name": event.call.get("name"), "tool_use_id": event.call.get("id")}
                self._write_line({**_system_fields("permission_denied"), **call, "message": event.decision.reason})
            case events.PromptBlocked(_, line_id):
                self._write_line(blocked_prompt_line(event), line_id)
            case events.Compacted():
                metadata = {"trigger": event.trigger, "pre_tokens": event.tokens_before}
                self._write_line({**_system_fields("compact_boundary"), "compact_metadata": metadata})
            case events.RequestSent() | events.RawStreamEvent() if self._partial and self._parent_call_id is None:
                self._write_partial(event)
            case _:
                self._write_task_event(event)

    def _write_partial(self, event: events.RequestSent | events.RawStreamEvent) -> None:
        """Print a streaming event; sub-agents are printed only as complete messages."""
        if isinstance(event, events.RequestSent):
            self._write_line({**_system_fields("status"), "status": "requesting"})
            return
        if event.event.get("type") == "message_start":
            self._message_id = str(event.event["message"].get("id", ""))
        line = {"type": "stream_event", "event": event.event, "parent_tool_use_id": None}
        self._write_line({**line, "api_message_id": self._message_id})

    def _write_task_event(self, event: Event) -> None:
        task = self._tasks.get(self._parent_call_id or "")
        match event:
            case events.SubagentStarted():
                self._tasks[event.call_id] = _SubagentTask(event)
                self._write_line(subagent_started_line(event))
            case events.SubagentEnded():
                self._write_line(subagent_ended_line(event))
            case events.PromptSubmitted(text, line_id) if task is not None:
                message = {"role": "user", "content": [{"type": "text", "text": text}]}
                self._write_message({"type": "user", "message": message, **_timestamp_fields()}, line_id)
            case _:
                pass

    def _write_message(self, line: dict[str, Any], line_id: str) -> None:
        task = self._tasks.get(self._parent_call_id or "")
        line["parent_tool_use_id"] = self._parent_call_id
        if task is not None:
            line.pop("tool_use_result", None)
            line |= task.line_fields()
        self._write_line(line, line_id)
        if task is not None:
            for progress in task.progress_lines(line):
                self._write_line(progress)

    def _write_line(self, fields: dict[str, Any], line_id: str = "") -> None:
        self._write({**fields, "session_id": self._session_id, "uuid": line_id or str(uuid.uuid4())})

    # Result

    def fail(self, ended: events.TurnEnded) -> None:
        """Print the result of a failed run, except in text mode, where the error is printed elsewhere."""
        if self._format != "text":
            self.end(ended)

    def end(self, ended: events.TurnEnded) -> int:
        """Print the result of a turn, always as the last output.

        Returns the exit code.
        """
        code = EXIT_CODES[ended.reason]
        output_missing = self._structured_output_missing and not code
        if output_missing:
            code = 1
            self._warn(_NO_STRUCTURED_OUTPUT)
        if self._format == "text":
            if ended.text:
                self._write(ended.text)
            if ended.problem or ended.reason in _END_MESSAGES:
                self._warn(ended.problem or _END_MESSAGES[ended.reason])
        else:
            self._write_line(self._result_fields(ended, code, output_missing=output_missing))
            self._result_count += 1
        if self._expects_more and ended.reason == "interrupted":
            self._warn(_INTERRUPTED_HINT)
        return code

    def _result_fields(self, ended: events.TurnEnded, code: int, *, output_missing: bool) -> dict[str, Any]:
        subtype = "error_max_structured_output_retries" if output_missing else _RESULT_SUBTYPES[ended.reason]
        failure = self._request_failure if ended.reason == "error" else None
        terminal = _TERMINAL_REASONS.get(ended.reason, "")
        if failure is not None or self._stop_reason == "refusal":
            # An API error or refusal in place of an answer is reported as the result text.
            subtype, terminal = "success", "api_error"
        result: dict[str, Any] = {
            "type": "result",
            "subtype": subtype,
            "is_error": code != 0,
            "duration_ms": round(ended.seconds * 1000),
            "duration_api_ms": round(ended.api_seconds * 1000),
            "num_turns": ended.requests,
            "stop_reason": self._stop_reason,
            "total_cost_usd": ended.cost / MICRODOLLARS_PER_DOLLAR,
            "usage": ended.usage,
            "modelUsage": usage_by_model(ended.models),
            "permission_denials": self._denials,
            "fast_mode_state": "off",
            "queued_turn_count": 0,
            "result_index": self._result_count,
        }
        if terminal:
            result["terminal_reason"] = terminal
        if subtype == "success":
            result["result"] = ended.text
            result["api_error_status"] = failure.error.status or None if failure else None
        else:
            message = ended.problem or ended.text or _END_MESSAGES.get(ended.reason, "")
            message = _NO_STRUCTURED_OUTPUT if output_missing else message
            result["errors"] = [message]
        if self._sandbox is not None and self._format == "json":
            result["sandbox"] = self._sandbox
        if self._structured_output is not None:
            result["structured_output"] = self._structured_output
        return result


class _SubagentTask:
    """The task and usage of a sub-agent."""

    def __init__(self, started: events.SubagentStarted) -> None:
        self._started = started
        self._tool_uses = 0
        self._tokens = 0

    def line_fields(self) -> dict[str, Any]:
        """Return the fields of every line of the sub-agent."""
        started = self._started
        return {
            "agent_id": started.agent_id,
            "subagent_type": started.agent_type,
            "task_description": started.description,
        }

    def progress_lines(self, line: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the progress lines for a line of a sub-agent; empty unless it is a tool call."""
        message = line["message"]
        if line["type"] != "assistant" or message["content"][0].get("type") != "tool_use":
            return []
        self._tool_uses += 1
        self._tokens = context_tokens(message["usage"])
        usage = {"total_tokens": self._tokens, "tool_uses": self._tool_uses}
        tool = str(message["content"][0].get("name"))
        return [subagent_progress_line(self._started, tool, usage)]
