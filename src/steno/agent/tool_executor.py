"""Executes the tool calls of a response: hooks, permissions, approval, execution, result."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from steno.agent.events import CallDenied, Event, ToolOutput, ToolStarted
from steno.agent.hooks.dispatcher import HookOutcome, Hooks, NullHooks
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.recorder import AttachmentRecord
from steno.agent.user_input import CompanionMessage
from steno.errors import StenoError
from steno.format.lenient_json import as_list, as_object
from steno.llm.messages_api import Block
from steno.permissions.permission_rules import ASKING_MODES, Decision
from steno.tools.context import ToolContext
from steno.tools.protocol import Execution, Tool, ToolResult
from steno.tools.registry import ToolRegistry, find_input_error


class Checkpointer(Protocol):
    """Saves file versions, so that they can be restored."""

    async def begin(self, prompt: str) -> None:
        """Create a checkpoint of the known files for a prompt."""
        ...

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context that records the changes of a call."""
        ...


class NullCheckpointer:
    """A checkpointer that saves nothing."""

    async def begin(self, prompt: str) -> None:
        """Do nothing."""
        del prompt

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Return an empty context."""
        del tool, background
        return nullcontext()


class SubagentCheckpointer:
    """The checkpointer of a sub-agent: its calls are recorded, but its prompts create no checkpoint."""

    def __init__(self, session_checkpointer: Checkpointer) -> None:
        self._session_checkpointer = session_checkpointer

    async def begin(self, prompt: str) -> None:
        """Do nothing: a session cannot be rewound to the prompt of a sub-agent."""
        del prompt

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context that records the changes of a call."""
        return self._session_checkpointer.track_call(tool, background=background)


_MAX_EXCERPT: Final = 200
"""Maximum number of characters of invalid input quoted in an error."""
_NOBODY_TO_APPROVE: Final = "Denied: the call needs approval and no user is available."


RuleScope: TypeAlias = Literal["session", "local", "project", "user"]
"""The storage of a rule: the session, or one of the settings files."""


class Approval(msgspec.Struct, frozen=True):
    """The user's decision on a call."""

    granted: bool
    message: str = ""
    """Message for the model if the call is denied."""
    tool_input: dict[str, Any] | None = None
    """Changed input for the call."""
    records: tuple[AttachmentRecord, ...] = ()
    """Records about the hooks that decided."""
    rules: tuple[str, ...] = ()
    """Allow rules to add: from the suggestions of the decision, or the user's own."""
    scope: RuleScope = "session"
    """The storage of the rules; without rules, only this call is approved."""


AddRules: TypeAlias = Callable[[tuple[str, ...], RuleScope], None]
"""Adds rules that the user granted, and saves them in their scope."""
RequestApproval: TypeAlias = Callable[[Block, Decision], Awaitable[Approval]]


class CallPermissionChecker(Protocol):
    """The permission checks that the executor needs."""

    @property
    def mode(self) -> str:
        """The current permission mode."""
        ...

    def judge(self, tool: str, tool_input: dict[str, Any], /, *, cwd: str) -> Decision:
        """Decide whether a call is allowed."""
        ...


def _no_turn_end() -> None:
    pass


def _no_result_fields(_call: str) -> dict[str, Any]:
    return {}


async def _deny_without_user(_tool_call: Block, _decision: Decision) -> Approval:
    return Approval(granted=False, message=_NOBODY_TO_APPROVE)


class ToolExecutor(msgspec.Struct, kw_only=True, eq=False):
    """Executes tool calls with hooks and permission checks."""

    tools: ToolRegistry
    context: ToolContext
    permission_checker: CallPermissionChecker
    emit: Callable[[Event], None]
    hooks: Hooks = NullHooks()
    request_approval: RequestApproval = _deny_without_user
    add_rules: AddRules = lambda _rules, _place: None
    checkpointer: Checkpointer = msgspec.field(default_factory=NullCheckpointer)
    take_companions: Callable[[], list[CompanionMessage]] = list
    """Returns messages for the model that follow the results of calls."""
    result_fields: Callable[[str], dict[str, Any]] = _no_result_fields
    """Returns additional fields for the record of a result."""
    end_turn: Callable[[], None] = _no_turn_end
    """Revokes the grants of the turn."""
    _approval_lock: asyncio.Lock | None = None

    async def execute(self, call: Block, invalid_input: str | None = None) -> tuple[ToolResult, HookOutcome]:
        """Execute a call if it is allowed; failures become its result."""
        name, tool_input = str(call.get("name")), dict(call.get("input") or {})
        tool = self.tools.find(name)
        if tool is None:
            return _error_result(f"Unknown tool: {name}."), HookOutcome()
        input_error = (
            _invalid_input_message(invalid_input)
            if invalid_input is not None
            else find_input_error(tool.spec, tool_input)
        )
        if input_error:
            return _error_result(input_error), HookOutcome()
        fields = {"tool_name": name, "tool_input": tool_input, "tool_use_id": call.get("id")}
        hook_outcome = await self.hooks.dispatch(HookEvent("PreToolUse", fields))
        tool_input = hook_outcome.tool_input if hook_outcome.tool_input is not None else tool_input
        approval = await self._authorize({**call, "input": tool_input}, hook_outcome)
        hook_outcome = msgspec.structs.replace(hook_outcome, records=(*hook_outcome.records, *approval.records))
        if not approval.granted:
            return _error_result(approval.message), hook_outcome
        tool_input = approval.tool_input if approval.tool_input is not None else tool_input
        started_at = time.monotonic()
        try:
            result = await self._start_tool(tool, {**call, "input": tool_input})
            if result.needs:
                result, approval = await self._retry_unconfined(tool, {**call, "input": tool_input}, result)
                hook_outcome = msgspec.structs.replace(hook_outcome, records=(*hook_outcome.records, *approval.records))
        finally:
            self.context.approved_paths.pop(str(call.get("id")), None)
            self.context.executions.pop(str(call.get("id")), None)
        timing = {"duration_ms": round((time.monotonic() - started_at) * 1000)}
        after_outcome = await self._run_after_hooks({**fields, "tool_input": tool_input, **timing}, result)
        if after_outcome.output is not None:
            result = msgspec.structs.replace(result, content=_hook_output_content(after_outcome.output))
        return result, msgspec.structs.replace(
            after_outcome,
            context=(*hook_outcome.context, *after_outcome.context),
            records=(*hook_outcome.records, *after_outcome.records),
            notices=(*hook_outcome.notices, *after_outcome.notices),
        )

    async def _run_after_hooks(self, fields: dict[str, Any], result: ToolResult) -> HookOutcome:
        if result.is_error:
            error_text = result.content if isinstance(result.content, str) else result.detail
            fields = {**fields, "error": str(error_text), "is_interrupt": False}
            return await self.hooks.dispatch(HookEvent("PostToolUseFailure", fields))
        fields = {**fields, "tool_response": result.detail or result.content}
        return await self.hooks.dispatch(HookEvent("PostToolUse", fields))

    def report_output(self, call_id: str, text: str) -> None:
        """Emit output of a running call."""
        self.emit(ToolOutput(call_id, text))

    async def _authorize(self, call: Block, hook_outcome: HookOutcome) -> Approval:
        decision = self._decide(call, hook_outcome)
        approval = Approval(granted=decision.verdict == "allow")
        if decision.verdict == "ask":
            approval, decision = await self._obtain_approval(call, hook_outcome)
        if approval.granted:
            # The tool may only open the paths that were checked, even if links change in between.
            self.context.approved_paths[str(call.get("id"))] = decision.paths
            self.context.executions[str(call.get("id"))] = _execution_for(decision)
            return approval
        if decision.verdict != "deny":
            decision = Decision("deny", approval.message or decision.reason)
        self.emit(CallDenied(call, decision))
        return Approval(granted=False, message=decision.reason, records=approval.records)

    async def _retry_unconfined(self, tool: Tool, call: Block, result: ToolResult) -> tuple[ToolResult, Approval]:
        """Ask the user whether a command that failed in the sandbox may run without it."""
        approval = Approval(granted=False, message=f"not available in {self.permission_checker.mode} mode")
        if self.permission_checker.mode in ASKING_MODES:
            if self._approval_lock is None:
                self._approval_lock = asyncio.Lock()
            decision = Decision("ask", f"failed in the sandbox: needs {result.needs}")
            async with self._approval_lock:
                approval = await self._ask_user(call, decision)
        if not approval.granted:
            reason = f"needs {result.needs}: {approval.message}"
            self.emit(CallDenied(call, Decision("deny", reason)))
            content = f"{result.content}\n[Running the command without the sandbox was denied: {approval.message}]"
            return msgspec.structs.replace(result, content=content, needs=""), approval
        if approval.tool_input is not None:
            new_decision = self.permission_checker.judge(str(call["name"]), approval.tool_input, cwd=self.context.cwd)
            if new_decision.verdict == "deny":
                return _error_result(new_decision.reason), approval
            call = {**call, "input": approval.tool_input}
        if approval.rules:
            self.add_rules(approval.rules, approval.scope)
        self.context.executions[str(call.get("id"))] = Execution()
        return await self._run_tool(tool, call), approval

    def _decide(self, call: Block, hook_outcome: HookOutcome) -> Decision:
        """Combine the decisions of the permission checker and of hooks; either can deny the call."""
        decision = self.permission_checker.judge(str(call["name"]), call["input"], cwd=self.context.cwd)
        if hook_outcome.blocked or hook_outcome.ends_turn or hook_outcome.verdict == "deny":
            decision = Decision("deny", hook_outcome.reason or "Denied by a hook.")
        elif hook_outcome.verdict == "ask" and decision.verdict == "allow":
            reason = hook_outcome.reason or "A hook requires approval."
            decision = Decision("ask", reason, paths=decision.paths)
        elif hook_outcome.verdict == "allow" and decision.verdict == "ask":
            reason = hook_outcome.reason or "Approved by a hook."
            decision = Decision("allow", reason, paths=decision.paths, exact=True)
        return decision

    async def _obtain_approval(self, call: Block, hook_outcome: HookOutcome) -> tuple[Approval, Decision]:
        """Ask the user, one call at a time; return the approval and the final decision."""
        if self._approval_lock is None:
            self._approval_lock = asyncio.Lock()
        async with self._approval_lock:
            # Rules granted for another call while this one waited may allow it.
            decision = self._decide(call, hook_outcome)
            if decision.verdict != "ask":
                return Approval(granted=decision.verdict == "allow"), decision
            approval = await self._ask_user(call, decision)
            if not approval.granted:
                return approval, decision
            if approval.tool_input is not None:
                # The changed input must not violate a deny rule.
                decision = self._decide({**call, "input": approval.tool_input}, hook_outcome)
                if decision.verdict == "deny":
                    return Approval(granted=False, records=approval.records), decision
            if approval.rules:
                self.add_rules(approval.rules, approval.scope)
            return approval, decision

    async def _ask_user(self, call: Block, decision: Decision) -> Approval:
        """Return the decision of the user, or of a PermissionRequest hook."""
        name, tool_input = str(call["name"]), call["input"]
        fields = {"tool_name": name, "tool_input": tool_input, "tool_use_id": call.get("id")}
        hook_outcome = await self.hooks.dispatch(HookEvent("PermissionRequest", fields))
        if hook_outcome.blocked or hook_outcome.ends_turn or hook_outcome.verdict == "deny":
            message = hook_outcome.reason or "Denied by a hook."
            return Approval(granted=False, message=message, records=hook_outcome.records)
        if hook_outcome.verdict == "allow":
            return Approval(granted=True, tool_input=hook_outcome.tool_input, records=hook_outcome.records)
        if self.request_approval is not _deny_without_user:
            message = f"{name} needs your approval"
            notification = {"message": message, "notification_type": "permission_prompt"}
            await self.hooks.dispatch(HookEvent("Notification", notification))
        return await self.request_approval(call, decision)

    async def _start_tool(self, tool: Tool, call: Block) -> ToolResult:
        self.emit(ToolStarted(call))
        return await self._run_tool(tool, call)

    async def _run_tool(self, tool: Tool, call: Block) -> ToolResult:
        background = bool(call["input"].get("run_in_background"))
        try:
            async with self.checkpointer.track_call(tool.spec.name, background=background):
                return await tool.run(call["input"], self.context, str(call.get("id")))
        except (StenoError, OSError, ValueError) as error:
            return _error_result(str(error) or type(error).__name__)


def _execution_for(decision: Decision) -> Execution:
    """Return the execution settings of a command: those of the decision, or no sandbox if the user approved it."""
    if decision.verdict == "allow":
        return Execution(decision.isolation, decision.exact)
    return Execution()


def _error_result(message: str) -> ToolResult:
    return ToolResult(message, is_error=True, detail=f"Error: {message}")


def _hook_output_content(output: Any) -> str | list[dict[str, Any]]:
    """Convert the output of a hook to the content of a tool result."""
    if isinstance(output, str):
        return output
    blocks = as_list(output)
    if blocks and all((as_object(block) or {}).get("type") in ("text", "image") for block in blocks):
        return blocks
    return msgspec.json.encode(output).decode()


def _invalid_input_message(text: str) -> str:
    excerpt = text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}…"
    return f"Invalid tool input: not a JSON object. Received: {excerpt}"


def group_calls(calls: Sequence[Block], tools: ToolRegistry) -> Iterator[list[Block]]:
    """Group calls that may run in parallel: consecutive read-only calls; each other call is a group."""
    group: list[Block] = []
    for call in calls:
        tool = tools.find(str(call.get("name")))
        if tool is not None and tool.spec.reads_only:
            group.append(call)
            continue
        if group:
            yield group
            group = []
        yield [call]
    if group:
        yield group
