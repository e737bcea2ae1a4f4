"""Outcomes of hooks: what each returned, the combined outcome of an event, the records.

What ran before a call is recorded beside the main chain, at the call; everything else is a link
of the chain, with what the model reads of it; what ran at the end of a turn is summarized.
"""

from collections.abc import Awaitable, Callable, Container
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.agent.config.project_files import get_object, get_text, truncate
from steno.agent.recorder import new_uuid
from steno.format.lenient_json import as_object
from steno.llm.messages_api import ApiError, Block
from steno.permissions.permission_rules import Verdict
from steno.tools.protocol import ToolResult

_HOOK_ERROR_NAMES: Final = {
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication_failed",
    "permission_error": "authentication_failed",
    "billing_error": "billing_error",
    "invalid_request_error": "invalid_request",
    "request_too_large": "invalid_request",
    "not_found_error": "invalid_request",
    "api_error": "server_error",
    "overloaded_error": "server_error",
    "timeout_error": "server_error",
}
_REJECTED_STATUSES: Final = (400, 413)
_OVERFLOW_MESSAGES: Final = ("prompt is too long", "exceed context limit", "exceeds the maximum size")


class AttachmentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record beside the conversation: what was done around it, and what the model reads of it."""

    fields: dict[str, Any]
    """The attachment, or the fields of a note."""
    text: str = ""
    """What the model reads in its place; nothing for nothing."""
    parts: tuple[str, ...] = ()
    """The same where it has several parts, which are the user's."""
    image: Block | None = None
    """A picture that the model sees behind them."""
    role: str = "system"
    """Whose words they are, to clients that tell."""
    subtype: str = ""
    """Where given, it is not an attachment but a note of that kind."""
    call_id: str = ""
    """The call that it hangs on, with nothing hanging on it; else it is a link of the way."""


class HookOutcome(msgspec.Struct, frozen=True):
    """What those who stepped in said."""

    blocked: bool = False
    reason: str = ""
    verdict: Verdict | None = None
    """A decision about a call, in place of the guard's; a deny rule still stands."""
    tool_input: dict[str, Any] | None = None
    """Another input for a call."""
    output: Any = None
    """Another output of a call."""
    context: tuple[str, ...] = ()
    """What the model should read, as far as it does not stand in what is kept."""
    records: tuple[AttachmentRecord, ...] = ()
    """What the session keeps of it."""
    notices: tuple[str, ...] = ()
    """What the user should read."""
    ends_turn: bool = False
    """The whole turn is to end."""


DispatchHooks: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[HookOutcome]]
"""Asked at each event, by the names and facts of Claude Code's hooks: `PreToolUse`, …"""


async def dispatch_no_hooks(_event: str, _facts: dict[str, Any]) -> HookOutcome:
    """Let everything pass."""
    return HookOutcome()


class TurnEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The events at which the turns of a conversation begin and end: a session's, a sub-agent's."""

    agent_facts: dict[str, str] = {}
    """What is known of the sub-agent; nothing for the session itself."""

    def start_event(self, prompt: str) -> tuple[str, dict[str, Any]]:
        """Return the event before a prompt is heard, and its facts."""
        if not self.agent_facts:
            return "UserPromptSubmit", {"prompt": prompt}
        return "SubagentStart", {key: self.agent_facts[key] for key in ("agent_id", "agent_type")}

    def end_event(self, answer: str, *, already_blocked: bool) -> tuple[str, dict[str, Any]]:
        """Return the event before a turn ends, and its facts."""
        facts = {"stop_hook_active": already_blocked, "last_assistant_message": answer}
        return ("SubagentStop" if self.agent_facts else "Stop"), {**facts, **self.agent_facts}


def is_context_overflow(error: ApiError) -> bool:
    """Whether the API has refused a request because it does not fit into the window."""
    message = str(error).lower()
    return error.status in _REJECTED_STATUSES and any(pattern in message for pattern in _OVERFLOW_MESSAGES)


def hook_error_name(error: ApiError) -> str:
    """Return how hooks know a failure of the API."""
    return _HOOK_ERROR_NAMES.get(error.kind, "unknown")


def hook_call_facts(call: Block, result: ToolResult) -> dict[str, Any]:
    """Return a call and what came of it as hooks are told of it."""
    return {
        "tool_name": call.get("name"),
        "tool_input": call.get("input"),
        "tool_use_id": call.get("id"),
        "tool_response": result.content,
    }


PermissionChoice: TypeAlias = Literal["", "allow", "ask", "defer", "deny"]
HookStatus: TypeAlias = Literal["success", "blocked", "failed", "timeout"]

_STDOUT_CONTEXT_EVENTS: Final = frozenset({"SessionStart", "Setup", "UserPromptSubmit", "UserPromptExpansion"})
# A no at these is heard by nobody: the thing has happened, or happens anyway.
_NON_BLOCKING_EVENTS: Final = frozenset(
    {
        "SessionStart",
        "SessionEnd",
        "Setup",
        "Notification",
        "SubagentStart",
        "PostCompact",
        "StopFailure",
        "PermissionDenied",
        "InstructionsLoaded",
        "CwdChanged",
        "WorktreeRemove",
    }
)
_AFTER_CALL_EVENTS: Final = frozenset({"PostToolUse", "PostToolUseFailure"})
_PROMPT_EVENTS: Final = frozenset({"UserPromptSubmit", "UserPromptExpansion"})
_EVENT_NAMED_CONTEXT: Final = frozenset({"SessionStart", "SubagentStart", "Setup"})
_DECISION_EVENTS: Final = frozenset({"PreToolUse", "PermissionRequest"})
_STRICTNESS_ORDER: Final[tuple[PermissionChoice, ...]] = ("deny", "defer", "ask", "allow", "")
_MAX_CONTEXT_CHARACTERS: Final = 10_000


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook did."""

    event: str
    name: str
    """As sessions name it: `PreToolUse:Read`."""
    command: str
    status: HookStatus
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    stdout_text: str = ""
    """Plain words on its standard output."""
    context: str = ""
    """What its JSON adds for the model to read."""
    block_reason: str = ""
    """Why it said no, in its exit code or its JSON."""
    user_message: str = ""
    """What its JSON has to tell the user."""

    @property
    def model_text(self) -> str:
        """What of it the model reads: the added context, and at some events its plain words."""
        return self.context or (self.stdout_text if self.event in _STDOUT_CONTEXT_EVENTS else "")

    def attachments(self, call_id: str) -> list[dict[str, Any]]:
        """Return what a session keeps of it; `call_id` is the id of the call, or one of its own."""
        location = {"hookName": self.name, "toolUseID": call_id, "hookEvent": self.event}
        records = self._end_records(location)
        if self.user_message:
            records.append({"type": "hook_system_message", "content": self.user_message, **location})
        if self.context:
            location["hookName"] = self._context_name
            records.append({"type": "hook_additional_context", "content": [self.context], **location})
        return records

    def _end_records(self, location: dict[str, str]) -> list[dict[str, Any]]:
        """Return what a session keeps of how it ended: of a silent success nothing."""
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        exit_fields = {"exitCode": self.exit_code, "command": self.command, "durationMs": self.duration_ms}
        if self.block_reason and self.event in _AFTER_CALL_EVENTS:
            error = {"blockingError": self.block_reason, "command": self.command}
            return [{"type": "hook_blocking_error", **location, "blockingError": error}]
        if self.block_reason and self.event == "PostToolBatch":
            return [{"type": "hook_stopped_continuation", "message": self.block_reason, **location}]
        if self.block_reason and self.event not in _NON_BLOCKING_EVENTS:
            # What it kept from being done says so itself.
            return []
        if self.status != "success":
            output_streams = {"stderr": self.stderr, "stdout": self.stdout}
            return [{"type": "hook_non_blocking_error", **location, **output_streams, **exit_fields}]
        has_output = self.stdout_text or (self.stdout.strip() and self.event not in _PROMPT_EVENTS)
        if not has_output:
            return []
        return [{"type": "hook_success", **location, "content": self.stdout_text, **streams, **exit_fields}]

    @property
    def _context_name(self) -> str:
        """Its name where it adds context: at some events without what the event is about."""
        return self.event if self.event in _EVENT_NAMED_CONTEXT else self.name

    @property
    def reminder(self) -> str:
        """What the model reads beside it, in the words of sessions; empty for nothing."""
        if self.context:
            return f"{self._context_name} hook additional context: {self.context}"
        return f"{self.name} hook success: {self.stdout_text}" if self.model_text else ""


class CombinedHookResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the hooks of one event said together."""

    blocked: bool = False
    """A hook said no. After a tool has run it can only mean that the model is told the reason."""
    reason: str = ""
    decision: PermissionChoice = ""
    """About a tool call; the strictest of them all."""
    decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: Any = None
    contexts: tuple[str, ...] = ()
    """For the model."""
    messages: tuple[str, ...] = ()
    """For the user."""
    ends_session: bool = False
    """`continue` was false: everything ends here."""
    stop_reason: str = ""
    runs: tuple[HookRun, ...] = ()


class _HookAnswer(msgspec.Struct, kw_only=True):
    """What one hook said, in its exit code and its JSON."""

    run: HookRun
    reason: str | None = None
    """A no, and why."""
    decision: PermissionChoice = ""
    decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: Any = None
    message: str = ""
    stop_reason: str | None = None

    def completed_run(self) -> HookRun:
        """Return what ran, with what it said."""
        denial = self.decision_reason or "denied" if self.decision == "deny" else ""
        block_reason = denial if self.reason is None else self.reason
        user_message = self.message if self.run.status == "success" else ""
        return msgspec.structs.replace(self.run, block_reason=block_reason, user_message=user_message)


def _parse_answer(run: HookRun) -> _HookAnswer:
    if run.status == "blocked":
        return _HookAnswer(run=run, reason=run.stderr.strip() or f"[{run.command}] said no")
    if run.status != "success":
        return _HookAnswer(run=run, message=_failure_message(run))
    stdout_text = run.stdout.strip()
    value = _decode_object(stdout_text)
    if value is None:
        return _HookAnswer(run=msgspec.structs.replace(run, stdout_text=truncate(stdout_text, _MAX_CONTEXT_CHARACTERS)))
    error_message = _answer_error(value, run.event)
    if error_message:
        failed_run = msgspec.structs.replace(run, status="failed", exit_code=1, stderr=f"{run.stderr}{error_message}")
        return _HookAnswer(run=failed_run, message=_failure_message(failed_run))
    return _parse_json_answer(run, value)


def _parse_json_answer(run: HookRun, value: dict[str, Any]) -> _HookAnswer:
    specific = get_object(value, "hookSpecificOutput")
    answer = _HookAnswer(
        run=msgspec.structs.replace(
            run, context=truncate(get_text(specific, "additionalContext"), _MAX_CONTEXT_CHARACTERS)
        ),
        message=get_text(value, "systemMessage"),
        updated_output=specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput")),
    )
    if value.get("continue") is False:
        answer.stop_reason = get_text(value, "stopReason")
    legacy_decision = get_text(value, "decision")
    reason = get_text(value, "reason")
    if run.event == "PreToolUse":
        mapped_decision = {"approve": "allow", "block": "deny"}.get(legacy_decision, "")
        answer.decision = _strictest((specific.get("permissionDecision") or mapped_decision,))
        answer.decision_reason = get_text(specific, "permissionDecisionReason") or reason
        answer.updated_input = get_object(specific, "updatedInput") or None
    elif run.event == "PermissionRequest":
        request_decision = get_object(specific, "decision")
        answer.decision = _strictest((request_decision.get("behavior"),))
        answer.decision_reason = get_text(request_decision, "message")
        answer.updated_input = get_object(request_decision, "updatedInput") or None
        if request_decision.get("interrupt") is True:
            answer.stop_reason = answer.decision_reason
    elif legacy_decision == "block":
        answer.reason = reason or f"[{run.command}] said no"
    return answer


def combine_runs(event: str, runs: list[HookRun]) -> CombinedHookResult:
    """Put together what the hooks of one event said."""
    answers = [_parse_answer(run) for run in runs]
    block_reasons = [answer.reason for answer in answers if answer.reason is not None]
    strictest = _strictest({answer.decision for answer in answers})
    stop_reasons = [answer.stop_reason for answer in answers if answer.stop_reason is not None]
    messages = [answer.message for answer in answers if answer.message]
    non_blocking = event in _NON_BLOCKING_EVENTS
    denied = strictest == "deny" or bool(block_reasons)
    inputs = [answer.updated_input for answer in answers if answer.updated_input is not None]
    outputs = [answer.updated_output for answer in answers if answer.updated_output is not None]
    return CombinedHookResult(
        blocked=bool(block_reasons) and not non_blocking,
        reason="" if non_blocking else "\n".join(block_reasons),
        decision="deny" if denied and event in _DECISION_EVENTS else strictest,
        decision_reason="\n".join(
            answer.decision_reason for answer in answers if answer.decision == strictest and answer.decision_reason
        ),
        updated_input=inputs[-1] if inputs and not denied else None,
        updated_output=outputs[-1] if outputs else None,
        contexts=tuple(answer.run.model_text for answer in answers if answer.run.model_text),
        messages=(*messages, *(block_reasons if non_blocking else ())),
        ends_session=bool(stop_reasons),
        stop_reason="\n".join(reason for reason in stop_reasons if reason),
        runs=tuple(answer.completed_run() for answer in answers),
    )


def _decode_object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        return as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _answer_error(value: dict[str, Any], event: str) -> str:
    """Return what is wrong with a hook's JSON; a wrong answer must not pass for none."""
    specific = as_object(value.get("hookSpecificOutput", {}))
    if specific is None:
        return "`hookSpecificOutput` must be an object"
    event_name = specific.get("hookEventName", event)
    if event_name != event:
        return f"`hookEventName` is {event_name}, the event is {event}"
    if value.get("decision") not in {None, "approve", "block"}:
        return "`decision` must be `approve` or `block`"
    if specific.get("permissionDecision") not in {None, "allow", "deny", "ask", "defer"}:
        return "`permissionDecision` must be `allow`, `deny`, `ask` or `defer`"
    return ""


def _strictest(choices: Container[object]) -> PermissionChoice:
    for choice in _STRICTNESS_ORDER:
        if choice in choices:
            return choice
    return ""


def _failure_message(run: HookRun) -> str:
    reason = run.stderr.strip().split("\n", 1)[0] or f"exit code {run.exit_code}"
    return f"{run.name} hook [{run.command}] failed: {reason[:500]}"


RECORDED_EVENTS: Final = frozenset(
    {
        "SessionStart",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "Stop",
        "SubagentStart",
        "SubagentStop",
    }
)
"""The events whose hooks leave records."""
_STOP_FEEDBACK: Final = "Stop hook feedback:\n{}"


def build_outcome(event: str, facts: dict[str, Any], combined: CombinedHookResult) -> HookOutcome:
    """Return what hooks said as the loop wants it, with what the session keeps of them."""
    # Nobody can be asked later by this loop, so what is put off is asked now.
    decision = "ask" if combined.decision == "defer" else combined.decision
    recorded = event in RECORDED_EVENTS
    reason = combined.reason or combined.decision_reason or combined.stop_reason
    if combined.blocked and event in {"Stop", "SubagentStop"}:
        reason = _STOP_FEEDBACK.format(reason)
    return HookOutcome(
        blocked=combined.blocked,
        reason=reason,
        verdict=decision or None,
        tool_input=combined.updated_input,
        output=combined.updated_output,
        context=() if recorded else combined.contexts,
        records=_build_records(event, facts, combined) if recorded else (),
        notices=combined.messages,
        ends_turn=combined.ends_session,
    )


def _build_records(event: str, facts: dict[str, Any], combined: CombinedHookResult) -> tuple[AttachmentRecord, ...]:
    if not combined.runs:
        return ()
    if event == "PermissionRequest":
        return _decision_records(facts, combined)
    if event in _PROMPT_EVENTS and (combined.blocked or combined.ends_session):
        return (_blocked_prompt_record(event, str(facts.get("prompt", "")), combined),)
    call_id = str(facts.get("tool_use_id") or "")
    record_id = call_id or new_uuid()
    records = [
        _attachment_record(run, fields, call_id if event == "PreToolUse" else "")
        for run in combined.runs
        for fields in run.attachments(record_id)
    ]
    if event == "Stop":
        records.append(AttachmentRecord(fields=_stop_summary(combined, record_id), subtype="stop_hook_summary"))
    return tuple(records)


def _decision_records(facts: dict[str, Any], combined: CombinedHookResult) -> tuple[AttachmentRecord, ...]:
    """Return what is kept of a decision in the user's place."""
    if combined.decision not in {"allow", "deny"}:
        return ()
    call_id = str(facts.get("tool_use_id") or "")
    location = {"toolUseID": call_id, "hookEvent": "PermissionRequest"}
    fields = {"type": "hook_permission_decision", "decision": combined.decision, **location}
    return (AttachmentRecord(fields=fields, call_id=call_id),)


def _blocked_prompt_record(event: str, prompt: str, combined: CombinedHookResult) -> AttachmentRecord:
    """Return what is kept of a prompt that is not answered, and why."""
    if combined.ends_session:
        ending, reason = "stopped_by_hook", combined.stop_reason
        text = f"Operation stopped by hook{reason and f': {reason}'}"
    else:
        blocking_run = next(run for run in combined.runs if run.block_reason)
        ending, reason = "blocked_by_hook", blocking_run.block_reason
        reason_text = f"[{blocking_run.command}]: {blocking_run.stderr}" if blocking_run.status == "blocked" else reason
        text = f"{event} operation blocked by hook:\n{reason_text}\n\nOriginal prompt: {prompt}"
    fields: dict[str, Any] = {"content": text, "isMeta": False, "level": "warning", "preventContinuation": True}
    if event == "UserPromptSubmit":
        ending_fields = {"kind": ending, **({"reason": reason} if reason else {})}
        fields["promptSubmitEnding"] = {"ending": ending_fields, "promptKept": combined.ends_session}
    return AttachmentRecord(fields=fields, subtype="informational")


def _attachment_record(run: HookRun, fields: dict[str, Any], call_id: str) -> AttachmentRecord:
    """Return an attachment with what the model reads of it.

    What the model reads is always on the way, so that it reads the same in a session that goes on.
    """
    kind = fields["type"]
    text = ""
    if kind == "hook_additional_context" or (kind == "hook_success" and not run.context):
        text = run.reminder
    elif kind == "hook_blocking_error":
        text = f'{run.name} hook blocking error from command: "{run.command}": {run.block_reason}'
    elif kind == "hook_stopped_continuation":
        text = f"{run.name} hook stopped continuation: {run.block_reason}"
    return AttachmentRecord(fields=fields, text=text, call_id="" if text else call_id)


def _stop_summary(combined: CombinedHookResult, record_id: str) -> dict[str, Any]:
    errors = [run.block_reason or run.stderr for run in combined.runs if run.status != "success"]
    return {
        "hookCount": len(combined.runs),
        "hookInfos": [{"command": ran.command, "durationMs": ran.duration_ms} for ran in combined.runs],
        "hookErrors": errors,
        "hookAdditionalContext": [ran.context for ran in combined.runs if ran.context],
        "preventedContinuation": combined.ends_session,
        "stopReason": combined.stop_reason,
        "hasOutput": any(ran.stdout or ran.stderr for ran in combined.runs),
        "level": "suggestion",
        "toolUseID": record_id,
    }
