"""Runs the hooks of an event and combines their outcomes.

    outcome = await hooks.dispatch(HookEvent("PreToolUse", fields))      # a HookOutcome

All matching hooks of an event run in parallel, with the fields as JSON on standard input. A hook returns an
exit code (0 success, 2 block, others an error that does not block) or, with 0, JSON on standard output. Hooks
of a project run only if its directory is trusted. Some hooks get an environment file: lines such as
`export NODE_ENV=test` that they append to it set variables for later commands.

Hooks that run before a call are recorded at the call, outside the main chain; all others are part of the
chain, with the text for the model. Hooks at the end of a turn are summarized.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from steno.agent.child_process import run_program
from steno.agent.config.project_files import truncate
from steno.agent.events import Event, HookEnded, HookStarted
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.recorder import AttachmentRecord, new_uuid
from steno.format.client_settings import PROJECT_LAYERS, HookCommand
from steno.format.lenient_json import as_object, get_object, get_text
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.permissions.permission_rules import Verdict

PermissionChoice: TypeAlias = Literal["", "allow", "ask", "defer", "deny"]
HookStatus: TypeAlias = Literal["success", "blocked", "failed", "timeout"]

_PROMPT_EVENTS: Final = frozenset({"UserPromptSubmit", "UserPromptExpansion"})
_STRICTNESS_ORDER: Final[tuple[PermissionChoice, ...]] = ("deny", "defer", "ask", "allow", "")
_MAX_CONTEXT_CHARACTERS: Final = 10_000
_STOP_FEEDBACK: Final = "Stop hook feedback:\n{}"


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that ran, with the decisions from its exit code and JSON output."""

    event: HookEvent
    command: str
    status: HookStatus
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    stdout_text: str = ""
    """Plain text output."""
    context: str = ""
    """Additional context for the model from its JSON output."""
    objection: str = ""
    """The reason why the hook blocks; empty if it does not block."""
    decision: PermissionChoice = ""
    decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: Any = None
    message: str = ""
    """Message for the user."""
    stop_reason: str | None = None
    """The reason why the turn must end (`continue` is false); None if the turn continues."""

    @property
    def name(self) -> str:
        """The name in session records, for example `PreToolUse:Read`."""
        return self.event.label

    @property
    def block_reason(self) -> str:
        """The reason why the hook blocks or denies; empty if it does neither."""
        denial = self.decision_reason or "denied" if self.decision == "deny" else ""
        return self.objection or denial

    @property
    def model_text(self) -> str:
        """The text for the model: additional context, or at some events plain text output."""
        return self.context or (self.stdout_text if self.event.spec.reads_stdout else "")

    @property
    def reminder(self) -> str:
        """The recorded text for the model, including the hook's name; empty for none."""
        if self.context:
            return f"{self._context_name} hook additional context: {self.context}"
        return f"{self.name} hook success: {self.stdout_text}" if self.model_text else ""

    @property
    def _context_name(self) -> str:
        return self.name if self.event.spec.labels_context else self.event.name

    def attachments(self, call_id: str) -> list[dict[str, Any]]:
        """Return the attachments for the run; `call_id` is the ID of the call, or a new one."""
        location = {"hookName": self.name, "toolUseID": call_id, "hookEvent": self.event.name}
        records = self._end_records(location)
        if self.message and self.status == "success":
            records.append({"type": "hook_system_message", "content": self.message, **location})
        if self.context:
            location["hookName"] = self._context_name
            records.append({"type": "hook_additional_context", "content": [self.context], **location})
        return records

    def _end_records(self, location: dict[str, str]) -> list[dict[str, Any]]:
        """Return the attachment for the exit status; none for a success without output."""
        exit_fields = {"exitCode": self.exit_code, "command": self.command, "durationMs": self.duration_ms}
        event = self.event
        if self.block_reason and event.name in {"PostToolUse", "PostToolUseFailure"}:
            error = {"blockingError": self.block_reason, "command": self.command}
            return [{"type": "hook_blocking_error", **location, "blockingError": error}]
        if self.block_reason and event.name == "PostToolBatch":
            return [{"type": "hook_stopped_continuation", "message": self.block_reason, **location}]
        if self.block_reason and event.spec.can_block:
            # The denied call or blocked prompt is recorded elsewhere.
            return []
        if self.status != "success":
            streams = {"stderr": self.stderr, "stdout": self.stdout}
            return [{"type": "hook_non_blocking_error", **location, **streams, **exit_fields}]
        if not self.stdout_text and (not self.stdout.strip() or event.name in _PROMPT_EVENTS):
            return []
        streams = {"content": self.stdout_text, "stdout": self.stdout, "stderr": self.stderr}
        return [{"type": "hook_success", **location, **streams, **exit_fields}]


class HookOutcome(msgspec.Struct, frozen=True):
    """The combined outcome of the hooks of an event."""

    blocked: bool = False
    """Whether a hook blocks. After a tool call, this only adds the reason for the model."""
    reason: str = ""
    verdict: Verdict | None = None
    """The strictest decision about a call; deny rules still apply."""
    tool_input: dict[str, Any] | None = None
    """Changed input of the call."""
    output: Any = None
    """Changed output of the call."""
    context: tuple[str, ...] = ()
    """Context for the model that is not in `records`."""
    records: tuple[AttachmentRecord, ...] = ()
    """Records about the hooks for the session."""
    notices: tuple[str, ...] = ()
    """Messages for the user."""
    ends_turn: bool = False
    """Whether the turn must end."""
    runs: tuple[HookRun, ...] = ()


class Hooks(Protocol):
    """Runs the hooks of events."""

    async def dispatch(self, event: HookEvent, /) -> HookOutcome:
        """Run the hooks of an event and return their combined outcome."""
        ...


class NullHooks:
    """A dispatcher without hooks."""

    async def dispatch(self, event: HookEvent, /) -> HookOutcome:
        """Return an empty outcome."""
        del event
        return HookOutcome()


def parse_run(run: HookRun) -> HookRun:
    """Return a run with the decisions from its exit code and output."""
    if run.status == "blocked":
        return msgspec.structs.replace(run, objection=run.stderr.strip() or f"[{run.command}] blocked the operation")
    if run.status != "success":
        return msgspec.structs.replace(run, message=_failure_message(run))
    stdout_text = run.stdout.strip()
    value = _decode_object(stdout_text)
    if value is None:
        return msgspec.structs.replace(run, stdout_text=truncate(stdout_text, _MAX_CONTEXT_CHARACTERS))
    error_message = _answer_error(value, run.event.name)
    if error_message:
        failed = msgspec.structs.replace(run, status="failed", exit_code=1, stderr=f"{run.stderr}{error_message}")
        return msgspec.structs.replace(failed, message=_failure_message(failed))
    specific = get_object(value, "hookSpecificOutput")
    fields: dict[str, Any] = {
        "context": truncate(get_text(specific, "additionalContext"), _MAX_CONTEXT_CHARACTERS),
        "message": get_text(value, "systemMessage"),
        "updated_output": specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput")),
        "stop_reason": get_text(value, "stopReason") if value.get("continue") is False else None,
    }
    return msgspec.structs.replace(run, **{**fields, **_decision_fields(run, value, specific)})


def _decision_fields(run: HookRun, value: dict[str, Any], specific: dict[str, Any]) -> dict[str, Any]:
    legacy_decision, reason = get_text(value, "decision"), get_text(value, "reason")
    if run.event.name == "PreToolUse":
        mapped_decision = {"approve": "allow", "block": "deny"}.get(legacy_decision, "")
        return {
            "decision": _strictest((specific.get("permissionDecision") or mapped_decision,)),
            "decision_reason": get_text(specific, "permissionDecisionReason") or reason,
            "updated_input": get_object(specific, "updatedInput") or None,
        }
    if run.event.name == "PermissionRequest":
        request_decision = get_object(specific, "decision")
        message = get_text(request_decision, "message")
        return {
            "decision": _strictest((request_decision.get("behavior"),)),
            "decision_reason": message,
            "updated_input": get_object(request_decision, "updatedInput") or None,
            **({"stop_reason": message} if request_decision.get("interrupt") is True else {}),
        }
    return {"objection": reason or f"[{run.command}] blocked the operation"} if legacy_decision == "block" else {}


def _decode_object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        return as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _answer_error(value: dict[str, Any], event_name: str) -> str:
    """Return the error in a hook's JSON output; invalid output must not be ignored."""
    specific = as_object(value.get("hookSpecificOutput", {}))
    if specific is None:
        return "`hookSpecificOutput` must be an object"
    named_event = specific.get("hookEventName", event_name)
    if named_event != event_name:
        return f"`hookEventName` is {named_event}, the event is {event_name}"
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


def combine_runs(event: HookEvent, runs: Sequence[HookRun]) -> HookOutcome:
    """Return the combined outcome of the hooks of an event, with their records."""
    spec = event.spec
    objections = [run.objection for run in runs if run.objection]
    strictest = _strictest({run.decision for run in runs})
    denied = strictest == "deny" or bool(objections)
    decision_reason = "\n".join(
        run.decision_reason for run in runs if run.decision == strictest and run.decision_reason
    )
    blocked = bool(objections) and spec.can_block
    reason = ("\n".join(objections) if spec.can_block else "") or decision_reason or _stop_reason(runs)
    decision = "deny" if denied and spec.decides else strictest
    inputs = [run.updated_input for run in runs if run.updated_input is not None and not denied]
    outputs = [run.updated_output for run in runs if run.updated_output is not None]
    messages = [run.message for run in runs if run.message]
    outcome = HookOutcome(
        blocked=blocked,
        reason=_STOP_FEEDBACK.format(reason) if blocked and event.name in {"Stop", "SubagentStop"} else reason,
        # Deferring is not supported: the user is asked now.
        verdict="ask" if decision == "defer" else decision or None,
        tool_input=inputs[-1] if inputs else None,
        output=outputs[-1] if outputs else None,
        context=() if spec.is_recorded else tuple(run.model_text for run in runs if run.model_text),
        notices=(*messages, *(() if spec.can_block else objections)),
        ends_turn=any(run.stop_reason is not None for run in runs),
        runs=tuple(runs),
    )
    if not (spec.is_recorded and runs):
        return outcome
    return msgspec.structs.replace(outcome, records=_build_records(event, outcome))


def _stop_reason(runs: Sequence[HookRun]) -> str:
    return "\n".join(run.stop_reason for run in runs if run.stop_reason)


def _build_records(event: HookEvent, outcome: HookOutcome) -> tuple[AttachmentRecord, ...]:
    call_id = event.call_id
    if event.name == "PermissionRequest":
        if outcome.verdict not in {"allow", "deny"}:
            return ()
        location = {"toolUseID": call_id, "hookEvent": event.name}
        fields = {"type": "hook_permission_decision", "decision": outcome.verdict, **location}
        return (AttachmentRecord(fields=fields, call_id=call_id),)
    if event.name in _PROMPT_EVENTS and (outcome.blocked or outcome.ends_turn):
        return (_blocked_prompt_record(event, outcome),)
    record_id = call_id or new_uuid()
    records = [
        _attachment_record(run, fields, call_id if event.name == "PreToolUse" else "")
        for run in outcome.runs
        for fields in run.attachments(record_id)
    ]
    if event.name == "Stop":
        records.append(AttachmentRecord(fields=_stop_summary(outcome, record_id), subtype="stop_hook_summary"))
    return tuple(records)


def _blocked_prompt_record(event: HookEvent, outcome: HookOutcome) -> AttachmentRecord:
    if outcome.ends_turn:
        ending, reason = "stopped_by_hook", _stop_reason(outcome.runs)
        text = f"Operation stopped by hook{reason and f': {reason}'}"
    else:
        run = next(run for run in outcome.runs if run.block_reason)
        ending, reason = "blocked_by_hook", run.block_reason
        reason_text = f"[{run.command}]: {run.stderr}" if run.status == "blocked" else reason
        prompt = event.fields.get("prompt", "")
        text = f"{event.name} operation blocked by hook:\n{reason_text}\n\nOriginal prompt: {prompt}"
    fields: dict[str, Any] = {"content": text, "isMeta": False, "level": "warning", "preventContinuation": True}
    if event.name == "UserPromptSubmit":
        ending_fields = {"kind": ending, **({"reason": reason} if reason else {})}
        fields["promptSubmitEnding"] = {"ending": ending_fields, "promptKept": outcome.ends_turn}
    return AttachmentRecord(fields=fields, subtype="informational")


def _attachment_record(run: HookRun, fields: dict[str, Any], call_id: str) -> AttachmentRecord:
    """Return an attachment with its text for the model.

    Attachments with such text are always part of the chain, so that a resumed session sends it again.
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


def _stop_summary(outcome: HookOutcome, record_id: str) -> dict[str, Any]:
    runs = outcome.runs
    return {
        "hookCount": len(runs),
        "hookInfos": [{"command": run.command, "durationMs": run.duration_ms} for run in runs],
        "hookErrors": [run.block_reason or run.stderr for run in runs if run.status != "success"],
        "hookAdditionalContext": [run.context for run in runs if run.context],
        "preventedContinuation": outcome.ends_turn,
        "stopReason": _stop_reason(runs),
        "hasOutput": any(run.stdout or run.stderr for run in runs),
        "level": "suggestion",
        "toolUseID": record_id,
    }


_READ_SCRIPT: Final = '. "$0" > /dev/null 2>&1; env -0'
_TIMEOUT_SECONDS: Final = 10.0
# Variables that every shell sets.
_BASH_VARIABLES: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_PRIVATE_MODE: Final = 0o700


class HookEnvironmentFile(msgspec.Struct):
    """The environment file of a session and the variables read from it."""

    path: str
    variables: dict[str, str] = {}

    def prepare(self) -> None:
        """Create the directory of the file; hooks create the file."""
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=_PRIVATE_MODE, exist_ok=True)

    async def read(self, cwd: str, env: Mapping[str, str]) -> None:
        """Read the variables that hooks have exported."""
        bash = shutil.which("bash", path=env.get("PATH"))
        if bash is None or not self._exists():
            return
        command = (bash, "-c", _READ_SCRIPT, self.path)
        finished = await run_program(command, b"", cwd=cwd, env=dict(env), time_limit=_TIMEOUT_SECONDS)
        for pair in finished.stdout.split("\0"):
            name, separator, value = pair.partition("=")
            if separator and name not in _BASH_VARIABLES and env.get(name) != value:
                self.variables[name] = value

    def _exists(self) -> bool:
        return os.path.isfile(self.path)

    def remove(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            os.unlink(self.path)


_PLAIN_MATCHER: Final = re.compile(r"[\w\- ,|]*")
_BLOCK_EXIT_CODE: Final = 2


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of hooks, the same for every event."""

    session_id: str
    transcript_path: str
    cwd: str
    project: str
    permission_mode: str = "default"
    env: Mapping[str, str] = {}
    env_file: str = ""
    """A file to which hooks may write `export` lines for later commands."""
    agent: dict[str, str] = {}
    """`agent_id` and `agent_type` of a sub-agent; else empty."""


class HookDispatcher:
    """Runs the hooks of a session.

    Args:
        hooks: The hooks of the settings, in order.
        get_context: Returns the current context.
        trusted: Whether hooks of the project may run.
        matches_rule: Whether a tool call matches a permission rule; without it, hooks with a
            condition always run.
        emit: Receives an event when a hook starts and ends.
    """

    def __init__(
        self,
        hooks: tuple[HookCommand, ...],
        get_context: Callable[[], HookContext],
        *,
        trusted: bool,
        matches_rule: Callable[[str, str, dict[str, Any]], bool] | None = None,
        emit: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._hooks = tuple(hook for hook in hooks if trusted or hook.layer not in PROJECT_LAYERS)
        self._matches_rule = matches_rule
        self._emit = emit
        self.get_context = get_context
        self._background: set[asyncio.Task[HookRun]] = set()

    def for_agent(self, get_context: Callable[[], HookContext]) -> "HookDispatcher":
        """Return a dispatcher for one agent of the session, sharing its background hooks."""
        dispatcher = copy(self)
        dispatcher.get_context = get_context
        return dispatcher

    def matching_hooks(self, event: HookEvent) -> tuple[HookCommand, ...]:
        """Return the matching hooks of an event, without duplicate commands."""
        hooks_by_command: dict[tuple[str, tuple[str, ...] | None], HookCommand] = {}
        for hook in self._hooks:
            if hook.event == event.name and self._applies(hook, event):
                hooks_by_command.setdefault((hook.command, hook.args), hook)
        return tuple(hooks_by_command.values())

    def _applies(self, hook: HookCommand, event: HookEvent) -> bool:
        match_field = event.spec.match_field
        if match_field and not matches(hook.matcher, event.matched_value):
            return False
        if not hook.condition:
            return True
        if match_field != "tool_name":
            return False
        tool_input = as_object(event.fields.get("tool_input")) or {}
        return self._matches_rule is None or self._matches_rule(hook.condition, event.matched_value, tool_input)

    async def dispatch(self, event: HookEvent, /) -> HookOutcome:
        """Run the hooks of an event and return their combined outcome."""
        hooks = self.matching_hooks(event)
        if not hooks:
            return HookOutcome()
        context = self.get_context()
        hook_input = _hook_input(event, context)
        foreground: list[Coroutine[None, None, HookRun]] = []
        for hook in hooks:
            run = self._run(hook, event, hook_input, context)
            if hook.background:
                task = asyncio.create_task(run)
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            else:
                foreground.append(run)
        # Cancelling the dispatch cancels all hooks.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run) for run in foreground]
        return combine_runs(event, [parse_run(task.result()) for task in tasks])

    async def _run(self, hook: HookCommand, event: HookEvent, hook_input: bytes, context: HookContext) -> HookRun:
        self._emit(HookStarted(event.label, hook.command))
        try:
            return await _run_hook(hook, event, hook_input, context)
        finally:
            self._emit(HookEnded(event.label, hook.command))

    async def close(self) -> None:
        """Cancel background hooks."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def matches(matcher: str, value: str) -> bool:
    """Return whether a matcher matches a value.

    Empty and `*` match everything; letters, digits, `_`, `-`, spaces, `,` and `|` form a name or a list of
    names; anything else is a regular expression that may match anywhere.
    """
    if matcher in {"", "*"}:
        return True
    # Both names of a renamed tool match, because settings may use either.
    values = AGENT_TOOLS if value in AGENT_TOOLS else {value}
    if _PLAIN_MATCHER.fullmatch(matcher):
        return bool(values & {name.strip() for name in re.split(r"[|,]", matcher)})
    try:
        return any(re.search(matcher, candidate) for candidate in values)
    except (re.error, RecursionError, OverflowError):
        return matcher in values


def _hook_input(event: HookEvent, context: HookContext) -> bytes:
    fields = {
        "session_id": context.session_id,
        "transcript_path": context.transcript_path,
        "cwd": context.cwd,
        **({"permission_mode": context.permission_mode} if event.spec.has_mode else {}),
        **context.agent,
        "hook_event_name": event.name,
        **event.fields,
    }
    # Text of a model may contain a lone surrogate, which only JSON escapes can encode.
    return json.dumps(fields, default=str).encode() + b"\n"


async def _run_hook(hook: HookCommand, event: HookEvent, hook_input: bytes, context: HookContext) -> HookRun:
    env = {**context.env, "CLAUDE_PROJECT_DIR": context.project}
    if context.env_file and event.spec.has_env_file:
        env["CLAUDE_ENV_FILE"] = context.env_file
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    command = (shell, "-c", hook.command) if hook.args is None else (hook.command, *hook.args)
    finished = await run_program(command, hook_input, cwd=context.cwd, env=env, time_limit=hook.timeout)
    if finished.timed_out:
        status: HookStatus = "timeout"
    else:
        status = "blocked" if finished.code == _BLOCK_EXIT_CODE else "failed" if finished.code else "success"
    return HookRun(
        event=event,
        command=" ".join((hook.command, *(hook.args or ()))),
        status=status,
        exit_code=finished.code,
        stdout=finished.stdout,
        stderr=finished.stderr,
        duration_ms=finished.duration_ms,
    )
