"""Events at which hooks run, and how each event is handled.

    outcome = await hooks.dispatch(HookEvent("PreToolUse", {"tool_name": "Bash", ...}))

A new event needs a row in `HOOK_EVENTS` and a `dispatch` where it happens.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec


class EventSpec(msgspec.Struct, frozen=True):
    """Properties of an event."""

    match_field: str = ""
    """The field that matchers are compared with; empty if all hooks of the event run."""
    is_labelled: bool = True
    """Whether records name its hooks with the matched value, as in `PreToolUse:Read`."""
    has_mode: bool = True
    """Whether hooks get the permission mode, which is not available at some events."""
    has_env_file: bool = False
    """Whether hooks may set environment variables for later commands."""
    can_block: bool = True
    """Whether exit code 2 blocks; some events cannot be prevented."""
    decides: bool = False
    """Whether hooks decide about a tool call."""
    is_recorded: bool = False
    """Whether its hooks are recorded in the session."""
    reads_stdout: bool = False
    """Whether plain text on standard output is context for the model."""
    labels_context: bool = True
    """Whether additional context is also named with the matched value."""


HOOK_EVENTS: Final[Mapping[str, EventSpec]] = {
    "SessionStart": EventSpec(
        "source",
        has_mode=False,
        has_env_file=True,
        can_block=False,
        is_recorded=True,
        reads_stdout=True,
        labels_context=False,
    ),
    "SessionEnd": EventSpec("reason", has_mode=False, can_block=False),
    "Setup": EventSpec("trigger", has_env_file=True, can_block=False, reads_stdout=True, labels_context=False),
    "UserPromptSubmit": EventSpec(is_recorded=True, reads_stdout=True),
    "UserPromptExpansion": EventSpec("command_name", is_labelled=False, is_recorded=True, reads_stdout=True),
    "PreToolUse": EventSpec("tool_name", decides=True, is_recorded=True),
    "PermissionRequest": EventSpec("tool_name", decides=True, is_recorded=True),
    "PermissionDenied": EventSpec("tool_name", can_block=False),
    "PostToolUse": EventSpec("tool_name", is_recorded=True),
    "PostToolUseFailure": EventSpec("tool_name", is_recorded=True),
    "PostToolBatch": EventSpec(is_recorded=True),
    "Stop": EventSpec(is_recorded=True),
    "StopFailure": EventSpec("error", can_block=False),
    "SubagentStart": EventSpec("agent_type", has_mode=False, can_block=False, is_recorded=True, labels_context=False),
    "SubagentStop": EventSpec("agent_type", is_labelled=False, is_recorded=True),
    "PreCompact": EventSpec("trigger", has_mode=False),
    "PostCompact": EventSpec("trigger", has_mode=False, can_block=False),
    "Notification": EventSpec("notification_type", can_block=False),
    "ConfigChange": EventSpec("source"),
    "InstructionsLoaded": EventSpec("load_reason", has_mode=False, can_block=False),
    "CwdChanged": EventSpec(has_env_file=True, can_block=False),
    "TaskCreated": EventSpec(),
    "TaskCompleted": EventSpec(),
    "TeammateIdle": EventSpec(),
    "WorktreeCreate": EventSpec(),
    "WorktreeRemove": EventSpec(can_block=False),
}
_UNKNOWN_EVENT: Final = EventSpec()


class HookEvent(msgspec.Struct, frozen=True):
    """An event with the fields that hooks get as JSON."""

    name: str
    fields: Mapping[str, Any] = {}

    @property
    def spec(self) -> EventSpec:
        """The properties of the event."""
        return HOOK_EVENTS.get(self.name, _UNKNOWN_EVENT)

    @property
    def matched_value(self) -> str:
        """The value that matchers are compared with."""
        return str(self.fields.get(self.spec.match_field) or "")

    @property
    def label(self) -> str:
        """The name of the event's hooks in records, for example `PreToolUse:Read`."""
        value = self.matched_value if self.spec.is_labelled else ""
        return f"{self.name}:{value}" if value else self.name

    @property
    def call_id(self) -> str:
        """The ID of the tool call; empty for an event without one."""
        return str(self.fields.get("tool_use_id") or "")


class TurnEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The events at the start and end of turns of the session or a sub-agent."""

    agent_facts: dict[str, str] = {}
    """ID, type and transcript path of the sub-agent; empty for the session."""

    def start_event(self, prompt: str) -> HookEvent:
        """Return the event that precedes a prompt."""
        if not self.agent_facts:
            return HookEvent("UserPromptSubmit", {"prompt": prompt})
        return HookEvent("SubagentStart", {key: self.agent_facts[key] for key in ("agent_id", "agent_type")})

    def end_event(self, answer: str, *, already_blocked: bool) -> HookEvent:
        """Return the event that precedes the end of a turn."""
        fields = {"stop_hook_active": already_blocked, "last_assistant_message": answer}
        return HookEvent("SubagentStop" if self.agent_facts else "Stop", {**fields, **self.agent_facts})
