"""The shapes of Claude Code's `--output-format stream-json`: what each event is as a line.

What a line says of the session it belongs to, and its id, is laid over it by whoever prints it.
"""

from datetime import UTC, datetime
from typing import Any, Final

from steno.agent import events
from steno.agent.gates import failure_name
from steno.agent.meter import window_of
from steno.agent.recorder import VERSION
from steno.format.compose import SYNTHETIC
from steno.format.tool_catalogue import AGENT, older_names
from steno.model.wire import Block, Response
from steno.store.clock import now

__all__ = [
    "answer_lines",
    "by_model",
    "compacted_line",
    "denied_line",
    "failed_line",
    "init_line",
    "kept_out_line",
    "launched_line",
    "partial_line",
    "progress_line",
    "prompt_line",
    "result_line",
    "status_line",
    "task_line",
]

_MICRO: Final = 1_000_000
_OURS: Final[dict[str, Any]] = {
    "claude_code_version": VERSION,
    "plugins": [],
    "capabilities": [],
    "terminal_slash_commands": [],
    "analytics_disabled": True,
    "product_feedback_disabled": True,
    "fast_mode_state": "off",
}
"""What every session here begins with; the version is that of the format that is written."""
_CALLED_BEFORE: Final = {AGENT: older_names(AGENT)[0]}
"""The tools that are told under the names they had, as others look for these."""


def init_line(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a session begins with."""
    names = [_CALLED_BEFORE.get(name, name) for name in facts["tools"]]
    return {**_system("init"), **facts, "tools": names, **_OURS}


def status_line() -> dict[str, Any]:
    """Return that a request goes out."""
    return {**_system("status"), "status": "requesting"}


def partial_line(event: dict[str, Any], message: str) -> dict[str, Any]:
    """Return an event of the API as it came."""
    line = {"type": "stream_event", "event": event, "parent_tool_use_id": None}
    return {**line, "api_message_id": message}


def answer_lines(response: Response) -> list[dict[str, Any]]:
    """Return a response, a line for each of its blocks."""
    whole: dict[str, Any] = {
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
        {"type": "assistant", "message": {**whole, "content": [block]}, **_stamp(), **request}
        for block in response.blocks
    ]


def failed_line(failed: events.Failed) -> dict[str, Any]:
    """Return what stands in the place of an answer."""
    error = failed.error
    response = Response(
        id=failed.uuid,
        model=SYNTHETIC,
        blocks=[{"type": "text", "text": failed.words}],
        stop_reason="stop_sequence",
        stop_sequence="",
        usage={"input_tokens": 0, "output_tokens": 0},
        request_id=error.request_id,
    )
    (line,) = answer_lines(response)
    told = {"is_api_error_message": True, "error": failure_name(error)}
    if error.status:
        told |= {"api_error_status": error.status, "api_error_type": error.kind}
    return {**line, **told}


def prompt_line(words: str) -> dict[str, Any]:
    """Return what a sub-agent is told."""
    content = [{"type": "text", "text": words}]
    return {"type": "user", "message": {"role": "user", "content": content}, **_stamp()}


def result_line(ended: events.ToolEnded, *, refused: bool) -> dict[str, Any]:
    """Return what a call came to."""
    call, outcome = ended.call.get("id"), ended.outcome
    block: Block = {"tool_use_id": call, "type": "tool_result", "content": outcome.content}
    if outcome.is_error:
        block["is_error"] = True
    decision = {"decision": "reject" if refused else "accept", "source": "config"}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        **_stamp(),
        "tool_use_result": outcome.detail,
        "tool_result_meta": [{"id": call, "permission_decision": decision}],
    }


def denied_line(refused: events.Refused) -> dict[str, Any]:
    """Return that a call was not allowed."""
    call = {"tool_name": refused.call.get("name"), "tool_use_id": refused.call.get("id")}
    return {**_system("permission_denied"), **call, "message": refused.decision.reason}


def kept_out_line(kept: events.KeptOut) -> dict[str, Any]:
    """Return that a hook kept a prompt from being answered."""
    body = kept.body
    line = {**_system("informational"), "content": body["content"], "level": body["level"]}
    line["prevent_continuation"] = True
    submitted = body.get("promptSubmitEnding")
    if submitted is not None:
        outcome = {**submitted["ending"], "prompt_kept": submitted["promptKept"]}
        line["prompt_submit_outcome"] = outcome
    return line


def compacted_line(compacted: events.Compacted) -> dict[str, Any]:
    """Return that a summary took the place of the conversation."""
    facts = {"trigger": compacted.trigger, "pre_tokens": compacted.before}
    return {**_system("compact_boundary"), "compact_metadata": facts}


# Sub-agents


def launched_line(launched: events.Launched) -> dict[str, Any]:
    """Return that a sub-agent begins to work."""
    return {
        **_system("task_started"),
        "task_id": launched.agent_id,
        "tool_use_id": launched.call,
        "description": launched.description,
        "subagent_type": launched.kind,
        "is_backgrounded": launched.background,
        "spawn_depth": launched.depth,
        "task_type": "local_agent",
        "prompt": launched.prompt,
    }


def progress_line(launched: events.Launched, tool: str, usage: dict[str, int]) -> dict[str, Any]:
    """Return that a sub-agent has used a tool, and what it took so far."""
    return {
        **_system("task_progress"),
        "task_id": launched.agent_id,
        "tool_use_id": launched.call,
        "description": launched.description,
        "subagent_type": launched.kind,
        "usage": usage,
        "last_tool_name": tool,
    }


def task_line(landed: events.Landed) -> dict[str, Any]:
    """Return that a sub-agent is done."""
    return {
        **_system("task_notification"),
        "task_id": landed.agent_id,
        "tool_use_id": landed.call,
        "status": landed.status,
        "output_file": landed.path,
        "summary": landed.text,
        "usage": {
            "total_tokens": landed.tokens,
            "tool_uses": landed.tool_uses,
            "duration_ms": round(landed.seconds * 1000),
        },
    }


# The end


def by_model(models: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    """Return what each model took."""
    return {
        name: {
            "inputTokens": counted["input_tokens"],
            "outputTokens": counted["output_tokens"],
            "cacheReadInputTokens": counted["cache_read_input_tokens"],
            "cacheCreationInputTokens": counted["cache_creation_input_tokens"],
            "costUSD": counted["cost"] / _MICRO,
            "contextWindow": window_of(name),
        }
        for name, counted in models.items()
    }


def _system(subtype: str) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype}


def _stamp() -> dict[str, str]:
    moment = datetime.fromtimestamp(now(), UTC)
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"}
