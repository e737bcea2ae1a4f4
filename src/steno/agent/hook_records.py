"""What a session keeps of its hooks, in the shape and at the places where Claude Code keeps it.

What ran before a call hangs on the call, beside the way of the conversation; everything else is a
link of the way, with what the model reads of it; what ran at the end of a turn is summed up.
"""

from typing import Any, Final

from steno.agent.gates import Gate, Kept
from steno.agent.hook_answers import Ran, Verdict
from steno.agent.recorder import new_id

__all__ = ["RECORDED", "gate_of"]

RECORDED: Final = frozenset(
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
_AT_PROMPT: Final = frozenset({"UserPromptSubmit", "UserPromptExpansion"})
_FEEDBACK: Final = "Stop hook feedback:\n{}"


def gate_of(event: str, facts: dict[str, Any], verdict: Verdict) -> Gate:
    """Return what hooks said as the loop wants it, with what the session keeps of them."""
    # Nobody can be asked later by this loop, so what is put off is asked now.
    decision = "ask" if verdict.decision == "defer" else verdict.decision
    recorded = event in RECORDED
    reason = verdict.reason or verdict.decision_reason or verdict.stop_reason
    if verdict.blocked and event in {"Stop", "SubagentStop"}:
        reason = _FEEDBACK.format(reason)
    return Gate(
        blocked=verdict.blocked,
        reason=reason,
        verdict=decision or None,
        given=verdict.updated_input,
        output=verdict.updated_output,
        context=() if recorded else verdict.contexts,
        kept=_kept(event, facts, verdict) if recorded else (),
        words=verdict.messages,
        ends=verdict.stops,
    )


def _kept(event: str, facts: dict[str, Any], verdict: Verdict) -> tuple[Kept, ...]:
    if not verdict.ran:
        return ()
    if event == "PermissionRequest":
        return _decided(facts, verdict)
    if event in _AT_PROMPT and (verdict.blocked or verdict.stops):
        return (_kept_out(event, str(facts.get("prompt", "")), verdict),)
    call = str(facts.get("tool_use_id") or "")
    about = call or new_id()
    kept = [
        _one(ran, body, call if event == "PreToolUse" else "")
        for ran in verdict.ran
        for body in ran.attachments(about)
    ]
    if event == "Stop":
        kept.append(Kept(body=_summary(verdict, about), subtype="stop_hook_summary"))
    return tuple(kept)


def _decided(facts: dict[str, Any], verdict: Verdict) -> tuple[Kept, ...]:
    """Return what is kept of a decision in the user's place."""
    if verdict.decision not in {"allow", "deny"}:
        return ()
    call = str(facts.get("tool_use_id") or "")
    place = {"toolUseID": call, "hookEvent": "PermissionRequest"}
    body = {"type": "hook_permission_decision", "decision": verdict.decision, **place}
    return (Kept(body=body, beside=call),)


def _kept_out(event: str, prompt: str, verdict: Verdict) -> Kept:
    """Return what is kept of a prompt that is not answered, and why."""
    if verdict.stops:
        ending, reason = "stopped_by_hook", verdict.stop_reason
        words = f"Operation stopped by hook{reason and f': {reason}'}"
    else:
        first = next(ran for ran in verdict.ran if ran.refusal)
        ending, reason = "blocked_by_hook", first.refusal
        told = f"[{first.command}]: {first.stderr}" if first.status == "blocked" else reason
        words = f"{event} operation blocked by hook:\n{told}\n\nOriginal prompt: {prompt}"
    body: dict[str, Any] = {
        "content": words,
        "isMeta": False,
        "level": "warning",
        "preventContinuation": True,
    }
    if event == "UserPromptSubmit":
        why = {"kind": ending, **({"reason": reason} if reason else {})}
        body["promptSubmitEnding"] = {"ending": why, "promptKept": verdict.stops}
    return Kept(body=body, subtype="informational")


def _one(ran: Ran, body: dict[str, Any], call: str) -> Kept:
    """Return an attachment with what the model reads of it.

    What the model reads is always on the way, so that it reads the same in a session that goes on.
    """
    kind = body["type"]
    words = ""
    if kind == "hook_additional_context" or (kind == "hook_success" and not ran.context):
        words = ran.reminder
    elif kind == "hook_blocking_error":
        words = f'{ran.name} hook blocking error from command: "{ran.command}": {ran.refusal}'
    elif kind == "hook_stopped_continuation":
        words = f"{ran.name} hook stopped continuation: {ran.refusal}"
    return Kept(body=body, words=words, beside="" if words else call)


def _summary(verdict: Verdict, about: str) -> dict[str, Any]:
    faults = [ran.refusal or ran.stderr for ran in verdict.ran if ran.status != "success"]
    return {
        "hookCount": len(verdict.ran),
        "hookInfos": [
            {"command": ran.command, "durationMs": ran.duration_ms} for ran in verdict.ran
        ],
        "hookErrors": faults,
        "hookAdditionalContext": [ran.context for ran in verdict.ran if ran.context],
        "preventedContinuation": verdict.stops,
        "stopReason": verdict.stop_reason,
        "hasOutput": any(ran.stdout or ran.stderr for ran in verdict.ran),
        "level": "suggestion",
        "toolUseID": about,
    }
