"""What hooks answer: each with its exit code or its JSON, and all those of an event together."""

from collections.abc import Container
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import cut, object_in, text_in
from steno.format.values import as_object

__all__ = ["Choice", "Ran", "Status", "Verdict", "verdict_of"]

Choice: TypeAlias = Literal["", "allow", "ask", "defer", "deny"]
Status: TypeAlias = Literal["success", "blocked", "failed", "timeout"]

_SPOKEN: Final = frozenset({"SessionStart", "Setup", "UserPromptSubmit", "UserPromptExpansion"})
# A no at these is heard by nobody: the thing has happened, or happens anyway.
_DEAF: Final = frozenset(
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
_AFTER_CALL: Final = frozenset({"PostToolUse", "PostToolUseFailure"})
_AT_PROMPT: Final = frozenset({"UserPromptSubmit", "UserPromptExpansion"})
_BARE: Final = frozenset({"SessionStart", "SubagentStart", "Setup"})
_DECIDES: Final = frozenset({"PreToolUse", "PermissionRequest"})
_STRICTEST: Final[tuple[Choice, ...]] = ("deny", "defer", "ask", "allow", "")
_MOST_CONTEXT: Final = 10_000


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook did."""

    event: str
    name: str
    """As sessions name it: `PreToolUse:Read`."""
    command: str
    status: Status
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    said: str = ""
    """Plain words on its standard output."""
    context: str = ""
    """What its JSON adds for the model to read."""
    refusal: str = ""
    """Why it said no, in its exit code or its JSON."""
    message: str = ""
    """What its JSON has to tell the user."""

    @property
    def heard(self) -> str:
        """What of it the model reads: the added context, and at some events its plain words."""
        return self.context or (self.said if self.event in _SPOKEN else "")

    def attachments(self, about: str) -> list[dict[str, Any]]:
        """Return what a session keeps of it; `about` is the id of the call, or one of its own."""
        place = {"hookName": self.name, "toolUseID": about, "hookEvent": self.event}
        kept = self._ended(place)
        if self.message:
            kept.append({"type": "hook_system_message", "content": self.message, **place})
        if self.context:
            place["hookName"] = self._speaker
            kept.append({"type": "hook_additional_context", "content": [self.context], **place})
        return kept

    def _ended(self, place: dict[str, str]) -> list[dict[str, Any]]:
        """Return what a session keeps of how it ended: of a silent success nothing."""
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        end = {
            "exitCode": self.exit_code,
            "command": self.command,
            "durationMs": self.duration_ms,
        }
        if self.refusal and self.event in _AFTER_CALL:
            error = {"blockingError": self.refusal, "command": self.command}
            return [{"type": "hook_blocking_error", **place, "blockingError": error}]
        if self.refusal and self.event == "PostToolBatch":
            return [{"type": "hook_stopped_continuation", "message": self.refusal, **place}]
        if self.refusal and self.event not in _DEAF:
            # What it kept from being done says so itself.
            return []
        if self.status != "success":
            told = {"stderr": self.stderr, "stdout": self.stdout}
            return [{"type": "hook_non_blocking_error", **place, **told, **end}]
        spoke = self.said or (self.stdout.strip() and self.event not in _AT_PROMPT)
        if not spoke:
            return []
        return [{"type": "hook_success", **place, "content": self.said, **streams, **end}]

    @property
    def _speaker(self) -> str:
        """Its name where it adds context: at some events without what the event is about."""
        return self.event if self.event in _BARE else self.name

    @property
    def reminder(self) -> str:
        """What the model reads beside it, in the words of sessions; empty for nothing."""
        if self.context:
            return f"{self._speaker} hook additional context: {self.context}"
        return f"{self.name} hook success: {self.said}" if self.heard else ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the hooks of one event said together."""

    blocked: bool = False
    """A hook said no. After a tool has run it can only mean that the model is told the reason."""
    reason: str = ""
    decision: Choice = ""
    """About a tool call; the strictest of them all."""
    decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: Any = None
    contexts: tuple[str, ...] = ()
    """For the model."""
    messages: tuple[str, ...] = ()
    """For the user."""
    stops: bool = False
    """`continue` was false: everything ends here."""
    stop_reason: str = ""
    ran: tuple[Ran, ...] = ()


class _Answer(msgspec.Struct, kw_only=True):
    """What one hook said, in its exit code and its JSON."""

    ran: Ran
    reason: str | None = None
    """A no, and why."""
    decision: Choice = ""
    decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: Any = None
    message: str = ""
    stop_reason: str | None = None

    def kept(self) -> Ran:
        """Return what ran, with what it said."""
        denied = self.decision_reason or "denied" if self.decision == "deny" else ""
        refusal = denied if self.reason is None else self.reason
        told = self.message if self.ran.status == "success" else ""
        return msgspec.structs.replace(self.ran, refusal=refusal, message=told)


def _answer(ran: Ran) -> _Answer:
    if ran.status == "blocked":
        return _Answer(ran=ran, reason=ran.stderr.strip() or f"[{ran.command}] said no")
    if ran.status != "success":
        return _Answer(ran=ran, message=_fault(ran))
    said = ran.stdout.strip()
    value = _json(said)
    if value is None:
        return _Answer(ran=msgspec.structs.replace(ran, said=cut(said, _MOST_CONTEXT)))
    flaw = _flaw(value, ran.event)
    if flaw:
        failed = msgspec.structs.replace(
            ran, status="failed", exit_code=1, stderr=f"{ran.stderr}{flaw}"
        )
        return _Answer(ran=failed, message=_fault(failed))
    return _of_json(ran, value)


def _of_json(ran: Ran, value: dict[str, Any]) -> _Answer:
    own = object_in(value, "hookSpecificOutput")
    answer = _Answer(
        ran=msgspec.structs.replace(
            ran, context=cut(text_in(own, "additionalContext"), _MOST_CONTEXT)
        ),
        message=text_in(value, "systemMessage"),
        updated_output=own.get("updatedToolOutput", own.get("updatedMCPToolOutput")),
    )
    if value.get("continue") is False:
        answer.stop_reason = text_in(value, "stopReason")
    said = text_in(value, "decision")
    reason = text_in(value, "reason")
    if ran.event == "PreToolUse":
        older = {"approve": "allow", "block": "deny"}.get(said, "")
        answer.decision = _strictest((own.get("permissionDecision") or older,))
        answer.decision_reason = text_in(own, "permissionDecisionReason") or reason
        answer.updated_input = object_in(own, "updatedInput") or None
    elif ran.event == "PermissionRequest":
        chosen = object_in(own, "decision")
        answer.decision = _strictest((chosen.get("behavior"),))
        answer.decision_reason = text_in(chosen, "message")
        answer.updated_input = object_in(chosen, "updatedInput") or None
        if chosen.get("interrupt") is True:
            answer.stop_reason = answer.decision_reason
    elif said == "block":
        answer.reason = reason or f"[{ran.command}] said no"
    return answer


def verdict_of(event: str, all_ran: list[Ran]) -> Verdict:
    """Put together what the hooks of one event said."""
    answers = [_answer(ran) for ran in all_ran]
    noes = [answer.reason for answer in answers if answer.reason is not None]
    strictest = _strictest({answer.decision for answer in answers})
    stops = [answer.stop_reason for answer in answers if answer.stop_reason is not None]
    messages = [answer.message for answer in answers if answer.message]
    deaf = event in _DEAF
    denied = strictest == "deny" or bool(noes)
    inputs = [answer.updated_input for answer in answers if answer.updated_input is not None]
    outputs = [answer.updated_output for answer in answers if answer.updated_output is not None]
    return Verdict(
        blocked=bool(noes) and not deaf,
        reason="" if deaf else "\n".join(noes),
        decision="deny" if denied and event in _DECIDES else strictest,
        decision_reason="\n".join(
            answer.decision_reason
            for answer in answers
            if answer.decision == strictest and answer.decision_reason
        ),
        updated_input=inputs[-1] if inputs and not denied else None,
        updated_output=outputs[-1] if outputs else None,
        contexts=tuple(answer.ran.heard for answer in answers if answer.ran.heard),
        messages=(*messages, *(noes if deaf else ())),
        stops=bool(stops),
        stop_reason="\n".join(reason for reason in stops if reason),
        ran=tuple(answer.kept() for answer in answers),
    )


def _json(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        return as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _flaw(value: dict[str, Any], event: str) -> str:
    """Return what is wrong with a hook's JSON; a wrong answer must not pass for none."""
    own = as_object(value.get("hookSpecificOutput", {}))
    if own is None:
        return "`hookSpecificOutput` must be an object"
    named = own.get("hookEventName", event)
    if named != event:
        return f"`hookEventName` is {named}, the event is {event}"
    if value.get("decision") not in {None, "approve", "block"}:
        return "`decision` must be `approve` or `block`"
    if own.get("permissionDecision") not in {None, "allow", "deny", "ask", "defer"}:
        return "`permissionDecision` must be `allow`, `deny`, `ask` or `defer`"
    return ""


def _strictest(said: Container[object]) -> Choice:
    for choice in _STRICTEST:
        if choice in said:
            return choice
    return ""


def _fault(ran: Ran) -> str:
    why = ran.stderr.strip().split("\n", 1)[0] or f"exit code {ran.exit_code}"
    return f"{ran.name} hook [{ran.command}] failed: {why[:500]}"
