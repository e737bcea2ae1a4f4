"""Executes the tool calls of a response: hooks, permission, approval, execution, result."""

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
    """Keeps files, so that they can be put back."""

    async def begin(self, prompt: str) -> None:
        """Note how the files are that are known so far: a prompt was said."""
        ...

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch what a call changes."""
        ...


class NullCheckpointer:
    """Keeps nothing."""

    async def begin(self, prompt: str) -> None:
        """Note nothing."""
        del prompt

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch nothing."""
        del tool, background
        return nullcontext()


class SubagentCheckpointer:
    """What a sub-agent has of the keeping of its session: calls count, its prompts do not."""

    def __init__(self, session_checkpointer: Checkpointer) -> None:
        self._session_checkpointer = session_checkpointer

    async def begin(self, prompt: str) -> None:
        """Note nothing: nobody goes back to the prompt of a sub-agent."""
        del prompt

    def track_call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch what a call changes."""
        return self._session_checkpointer.track_call(tool, background=background)


_MAX_EXCERPT: Final = 200
"""The modes in which the user is asked to let a command run unconfined."""
_NOBODY_TO_APPROVE: Final = "Nobody is there to ask, so it was not done."


RuleScope: TypeAlias = Literal["session", "local", "project", "user"]
"""Where a rule is kept, and so how long: until the end of the session, or in a settings file."""


class Approval(msgspec.Struct, frozen=True):
    """What the user says when asked."""

    granted: bool
    message: str = ""
    """What to tell the model when it is not."""
    tool_input: dict[str, Any] | None = None
    """Another input for the call."""
    records: tuple[AttachmentRecord, ...] = ()
    """What the session keeps of who has answered."""
    rules: tuple[str, ...] = ()
    """Rules that allow its like from now on: of the decision's offers, or the user's own."""
    scope: RuleScope = "session"
    """Where they are kept; without rules it is allowed this once."""


AddRules: TypeAlias = Callable[[tuple[str, ...], RuleScope], None]
"""Takes up rules that the user has granted, and keeps them where they said."""
RequestApproval: TypeAlias = Callable[[Block, Decision], Awaitable[Approval]]


class CallPermissionChecker(Protocol):
    """The guard, as far as calls are concerned."""

    @property
    def mode(self) -> str:
        """The permission mode it is in."""
        ...

    def judge(self, tool: str, tool_input: dict[str, Any], /, *, cwd: str) -> Decision:
        """Say whether a call may be made."""
        ...


def _no_turn_end() -> None:
    pass


def _no_result_fields(_call: str) -> dict[str, Any]:
    return {}


async def _deny_without_user(_tool_call: Block, _decision: Decision) -> Approval:
    return Approval(granted=False, message=_NOBODY_TO_APPROVE)


class ToolExecutor(msgspec.Struct, kw_only=True, eq=False):
    """Makes calls."""

    tools: ToolRegistry
    context: ToolContext
    permission_checker: CallPermissionChecker
    emit: Callable[[Event], None]
    hooks: Hooks = NullHooks()
    request_approval: RequestApproval = _deny_without_user
    add_rules: AddRules = lambda _rules, _place: None
    checkpointer: Checkpointer = msgspec.field(default_factory=NullCheckpointer)
    take_companions: Callable[[], list[CompanionMessage]] = list
    """What calls have left for the model to read behind their results."""
    result_fields: Callable[[str], dict[str, Any]] = _no_result_fields
    """What else a call has left for the record of its result."""
    end_turn: Callable[[], None] = _no_turn_end
    """Takes back what was lent for a turn."""
    _approval_lock: asyncio.Lock | None = None

    async def execute(self, call: Block, invalid_input: str | None = None) -> tuple[ToolResult, HookOutcome]:
        """Make one call, if it may be made; whatever goes wrong becomes its outcome."""
        name, tool_input = str(call.get("name")), dict(call.get("input") or {})
        tool = self.tools.find(name)
        if tool is None:
            return _error_result(f"There is no tool {name}."), HookOutcome()
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
        """Pass on what a call prints while it runs."""
        self.emit(ToolOutput(call_id, text))

    async def _authorize(self, call: Block, hook_outcome: HookOutcome) -> Approval:
        decision = self._decide(call, hook_outcome)
        approval = Approval(granted=decision.verdict == "allow")
        if decision.verdict == "ask":
            approval, decision = await self._obtain_approval(call, hook_outcome)
        if approval.granted:
            # What is opened now must be what was judged, wherever its path leads by then.
            self.context.approved_paths[str(call.get("id"))] = decision.paths
            self.context.executions[str(call.get("id"))] = _execution_for(decision)
            return approval
        if decision.verdict != "deny":
            decision = Decision("deny", approval.message or decision.reason)
        self.emit(CallDenied(call, decision))
        return Approval(granted=False, message=decision.reason, records=approval.records)

    async def _retry_unconfined(self, tool: Tool, call: Block, result: ToolResult) -> tuple[ToolResult, Approval]:
        """Ask whether a command that failed because it was confined may run unconfined."""
        approval = Approval(granted=False, message=f"not in the mode {self.permission_checker.mode}")
        if self.permission_checker.mode in ASKING_MODES:
            if self._approval_lock is None:
                self._approval_lock = asyncio.Lock()
            decision = Decision("ask", f"it failed because it was confined: needs {result.needs}")
            async with self._approval_lock:
                approval = await self._ask_user(call, decision)
        if not approval.granted:
            reason = f"needs {result.needs}: {approval.message}"
            self.emit(CallDenied(call, Decision("deny", reason)))
            content = f"{result.content}\n[Running it unconfined was denied: {approval.message}]"
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
        """Return what the guard says, and those who stepped in; a deny of either stands."""
        decision = self.permission_checker.judge(str(call["name"]), call["input"], cwd=self.context.cwd)
        if hook_outcome.blocked or hook_outcome.ends_turn or hook_outcome.verdict == "deny":
            decision = Decision("deny", hook_outcome.reason or "A hook refused it.")
        elif hook_outcome.verdict == "ask" and decision.verdict == "allow":
            reason = hook_outcome.reason or "A hook wants it asked about."
            decision = Decision("ask", reason, paths=decision.paths)
        elif hook_outcome.verdict == "allow" and decision.verdict == "ask":
            reason = hook_outcome.reason or "A hook allowed it."
            decision = Decision("allow", reason, paths=decision.paths, exact=True)
        return decision

    async def _obtain_approval(self, call: Block, hook_outcome: HookOutcome) -> tuple[Approval, Decision]:
        """Ask the user, one thing at a time; return what they said, and what was decided on it."""
        if self._approval_lock is None:
            self._approval_lock = asyncio.Lock()
        async with self._approval_lock:
            # What was granted while others were asked about may allow this as well.
            decision = self._decide(call, hook_outcome)
            if decision.verdict != "ask":
                return Approval(granted=decision.verdict == "allow"), decision
            approval = await self._ask_user(call, decision)
            if not approval.granted:
                return approval, decision
            if approval.tool_input is not None:
                # Nobody was asked about what a rule forbids.
                decision = self._decide({**call, "input": approval.tool_input}, hook_outcome)
                if decision.verdict == "deny":
                    return Approval(granted=False, records=approval.records), decision
            if approval.rules:
                self.add_rules(approval.rules, approval.scope)
            return approval, decision

    async def _ask_user(self, call: Block, decision: Decision) -> Approval:
        """Return what the user says, or a hook in their place."""
        name, tool_input = str(call["name"]), call["input"]
        fields = {"tool_name": name, "tool_input": tool_input, "tool_use_id": call.get("id")}
        hook_outcome = await self.hooks.dispatch(HookEvent("PermissionRequest", fields))
        if hook_outcome.blocked or hook_outcome.ends_turn or hook_outcome.verdict == "deny":
            message = hook_outcome.reason or "A hook refused it."
            return Approval(granted=False, message=message, records=hook_outcome.records)
        if hook_outcome.verdict == "allow":
            return Approval(granted=True, tool_input=hook_outcome.tool_input, records=hook_outcome.records)
        if self.request_approval is not _deny_without_user:
            message = f"Your permission is needed to use {name}"
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
    """Return how a command runs: confined as was decided, or as the user would run it."""
    if decision.verdict == "allow":
        return Execution(decision.isolation, decision.exact)
    return Execution()


def _error_result(message: str) -> ToolResult:
    return ToolResult(message, is_error=True, detail=f"Error: {message}")


def _hook_output_content(output: Any) -> str | list[dict[str, Any]]:
    """Return what a hook puts in the place of a tool's output, as a result holds it."""
    if isinstance(output, str):
        return output
    blocks = as_list(output)
    if blocks and all((as_object(block) or {}).get("type") in ("text", "image") for block in blocks):
        return blocks
    return msgspec.json.encode(output).decode()


def _invalid_input_message(text: str) -> str:
    excerpt = text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}…"
    return f"The input of the call is no JSON object, so it was not made. It read: {excerpt}"


def group_calls(calls: Sequence[Block], tools: ToolRegistry) -> Iterator[list[Block]]:
    """Yield calls that may run side by side: neighbours that only read; any other stands alone."""
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
