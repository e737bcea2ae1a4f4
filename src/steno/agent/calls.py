"""Tool calls of one response: judged, asked about, made, each with its outcome."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from steno.agent.events import Event, Refused, ToolGrew, ToolStarted
from steno.agent.gates import Gate, Gates, Kept, open_gates
from steno.agent.keeping import Keeping, NoKeeping
from steno.agent.rules_kept import Where
from steno.agent.said import Companion
from steno.errors import StenoError
from steno.format.values import as_list, as_object
from steno.guard.decision import Decision
from steno.model.wire import Block
from steno.tools.base import Execution, Tool, ToolResult
from steno.tools.context import ToolContext
from steno.tools.registry import ToolRegistry, input_flaw

__all__ = ["Caller", "Consent", "Judge", "Learn", "Permission", "grouped"]

_SHOWN: Final = 200
_ASKING: Final = frozenset({"default", "acceptEdits"})
"""The modes in which the user is asked to let a command run unconfined."""
_NOBODY: Final = "Nobody is there to ask, so it was not done."


class Permission(msgspec.Struct, frozen=True):
    """What the user says when asked."""

    granted: bool
    words: str = ""
    """What to tell the model when it is not."""
    given: dict[str, Any] | None = None
    """Another input for the call."""
    kept: tuple[Kept, ...] = ()
    """What the session keeps of who has answered."""
    rules: tuple[str, ...] = ()
    """Rules that allow its like from now on: of the decision's offers, or the user's own."""
    place: Where = "session"
    """Where they are kept; without rules it is allowed this once."""


Learn: TypeAlias = Callable[[tuple[str, ...], Where], None]
"""Takes up rules that the user has granted, and keeps them where they said."""
Consent: TypeAlias = Callable[[Block, Decision], Awaitable[Permission]]


class Judge(Protocol):
    """The guard, as far as calls are concerned."""

    @property
    def mode(self) -> str:
        """The permission mode it is in."""
        ...

    def judge(self, tool: str, given: dict[str, Any], /, *, cwd: str) -> Decision:
        """Say whether a call may be made."""
        ...


def _over() -> None:
    pass


def _nothing(_call: str) -> dict[str, Any]:
    return {}


async def _nobody(_call: Block, _decision: Decision) -> Permission:
    return Permission(granted=False, words=_NOBODY)


class Caller(msgspec.Struct, kw_only=True, eq=False):
    """Makes calls."""

    tools: ToolRegistry
    context: ToolContext
    guard: Judge
    emit: Callable[[Event], None]
    gates: Gates = open_gates
    consent: Consent = _nobody
    learn: Learn = lambda _rules, _place: None
    keeping: Keeping = msgspec.field(default_factory=NoKeeping)
    said: Callable[[], list[Companion]] = list
    """What calls have left for the model to read behind their results."""
    beside: Callable[[str], dict[str, Any]] = _nothing
    """What else a call has left for the record of its result."""
    over: Callable[[], None] = _over
    """Takes back what was lent for a turn."""
    _asking: asyncio.Lock | None = None

    async def make(self, call: Block, bad_input: str | None = None) -> tuple[ToolResult, Gate]:
        """Make one call, if it may be made; whatever goes wrong becomes its outcome."""
        name, given = str(call.get("name")), dict(call.get("input") or {})
        tool = self.tools.find(name)
        if tool is None:
            return _error(f"There is no tool {name}."), Gate()
        flaw = _unreadable(bad_input) if bad_input is not None else input_flaw(tool.spec, given)
        if flaw:
            return _error(flaw), Gate()
        facts = {"tool_name": name, "tool_input": given, "tool_use_id": call.get("id")}
        gate = await self.gates("PreToolUse", facts)
        given = gate.given if gate.given is not None else given
        permission = await self._permitted({**call, "input": given}, gate)
        gate = msgspec.structs.replace(gate, kept=(*gate.kept, *permission.kept))
        if not permission.granted:
            return _error(permission.words), gate
        given = permission.given if permission.given is not None else given
        began = time.monotonic()
        try:
            outcome = await self._run(tool, {**call, "input": given})
            if outcome.needs:
                outcome, permission = await self._unconfined(
                    tool, {**call, "input": given}, outcome
                )
                gate = msgspec.structs.replace(gate, kept=(*gate.kept, *permission.kept))
        finally:
            self.context.judged.pop(str(call.get("id")), None)
            self.context.executions.pop(str(call.get("id")), None)
        took = {"duration_ms": round((time.monotonic() - began) * 1000)}
        after = await self._after({**facts, "tool_input": given, **took}, outcome)
        if after.output is not None:
            outcome = msgspec.structs.replace(outcome, content=_as_content(after.output))
        return outcome, msgspec.structs.replace(
            after,
            context=(*gate.context, *after.context),
            kept=(*gate.kept, *after.kept),
            words=(*gate.words, *after.words),
        )

    async def _after(self, facts: dict[str, Any], outcome: ToolResult) -> Gate:
        if outcome.is_error:
            words = outcome.content if isinstance(outcome.content, str) else outcome.detail
            error = {"error": str(words), "is_interrupt": False}
            return await self.gates("PostToolUseFailure", {**facts, **error})
        response = outcome.detail or outcome.content
        return await self.gates("PostToolUse", {**facts, "tool_response": response})

    def grow(self, call: str, text: str) -> None:
        """Pass on what a call prints while it runs."""
        self.emit(ToolGrew(call, text))

    async def _permitted(self, call: Block, gate: Gate) -> Permission:
        decision = self._decided(call, gate)
        permission = Permission(granted=decision.verdict == "allow")
        if decision.verdict == "ask":
            permission, decision = await self._consent(call, gate)
        if permission.granted:
            # What is opened now must be what was judged, wherever its path leads by then.
            self.context.judged[str(call.get("id"))] = decision.paths
            self.context.executions[str(call.get("id"))] = _execution(decision)
            return permission
        if decision.verdict != "deny":
            decision = Decision("deny", permission.words or decision.reason)
        self.emit(Refused(call, decision))
        return Permission(granted=False, words=decision.reason, kept=permission.kept)

    async def _unconfined(
        self, tool: Tool, call: Block, outcome: ToolResult
    ) -> tuple[ToolResult, Permission]:
        """Ask whether a command that failed because it was confined may run unconfined."""
        permission = Permission(granted=False, words=f"not in the mode {self.guard.mode}")
        if self.guard.mode in _ASKING:
            if self._asking is None:
                self._asking = asyncio.Lock()
            decision = Decision("ask", f"it failed because it was confined: needs {outcome.needs}")
            async with self._asking:
                permission = await self._asked(call, decision)
        if not permission.granted:
            reason = f"needs {outcome.needs}: {permission.words}"
            self.emit(Refused(call, Decision("deny", reason)))
            said = f"{outcome.content}\n[Running it unconfined was denied: {permission.words}]"
            return msgspec.structs.replace(outcome, content=said, needs=""), permission
        if permission.given is not None:
            denied = self.guard.judge(str(call["name"]), permission.given, cwd=self.context.cwd)
            if denied.verdict == "deny":
                return _error(denied.reason), permission
            call = {**call, "input": permission.given}
        if permission.rules:
            self.learn(permission.rules, permission.place)
        self.context.executions[str(call.get("id"))] = Execution()
        return await self._execute(tool, call), permission

    def _decided(self, call: Block, gate: Gate) -> Decision:
        """Return what the guard says, and those who stepped in; a deny of either stands."""
        decision = self.guard.judge(str(call["name"]), call["input"], cwd=self.context.cwd)
        if gate.blocked or gate.ends or gate.verdict == "deny":
            decision = Decision("deny", gate.reason or "A hook refused it.")
        elif gate.verdict == "ask" and decision.verdict == "allow":
            reason = gate.reason or "A hook wants it asked about."
            decision = Decision("ask", reason, paths=decision.paths)
        elif gate.verdict == "allow" and decision.verdict == "ask":
            reason = gate.reason or "A hook allowed it."
            decision = Decision("allow", reason, paths=decision.paths, exact=True)
        return decision

    async def _consent(self, call: Block, gate: Gate) -> tuple[Permission, Decision]:
        """Ask the user, one thing at a time; return what they said, and what was decided on it."""
        if self._asking is None:
            self._asking = asyncio.Lock()
        async with self._asking:
            # What was granted while others were asked about may allow this as well.
            decision = self._decided(call, gate)
            if decision.verdict != "ask":
                return Permission(granted=decision.verdict == "allow"), decision
            permission = await self._asked(call, decision)
            if not permission.granted:
                return permission, decision
            if permission.given is not None:
                # Nobody was asked about what a rule forbids.
                decision = self._decided({**call, "input": permission.given}, gate)
                if decision.verdict == "deny":
                    return Permission(granted=False, kept=permission.kept), decision
            if permission.rules:
                self.learn(permission.rules, permission.place)
            return permission, decision

    async def _asked(self, call: Block, decision: Decision) -> Permission:
        """Return what the user says, or a hook in their place."""
        name, given = str(call["name"]), call["input"]
        facts = {"tool_name": name, "tool_input": given, "tool_use_id": call.get("id")}
        gate = await self.gates("PermissionRequest", facts)
        if gate.blocked or gate.ends or gate.verdict == "deny":
            words = gate.reason or "A hook refused it."
            return Permission(granted=False, words=words, kept=gate.kept)
        if gate.verdict == "allow":
            return Permission(granted=True, given=gate.given, kept=gate.kept)
        if self.consent is not _nobody:
            words = f"Your permission is needed to use {name}"
            told = {"message": words, "notification_type": "permission_prompt"}
            await self.gates("Notification", told)
        return await self.consent(call, decision)

    async def _run(self, tool: Tool, call: Block) -> ToolResult:
        self.emit(ToolStarted(call))
        return await self._execute(tool, call)

    async def _execute(self, tool: Tool, call: Block) -> ToolResult:
        background = bool(call["input"].get("run_in_background"))
        try:
            async with self.keeping.call(tool.spec.name, background=background):
                return await tool.run(call["input"], self.context, str(call.get("id")))
        except (StenoError, OSError, ValueError) as error:
            return _error(str(error) or type(error).__name__)


def _execution(decision: Decision) -> Execution:
    """Return how a command runs: confined as was decided, or as the user would run it."""
    if decision.verdict == "allow":
        return Execution(decision.isolation, decision.exact)
    return Execution()


def _error(words: str) -> ToolResult:
    return ToolResult(words, is_error=True, detail=f"Error: {words}")


def _as_content(output: Any) -> str | list[dict[str, Any]]:
    """Return what a hook puts in the place of a tool's output, as a result holds it."""
    if isinstance(output, str):
        return output
    blocks = as_list(output)
    if blocks and all((as_object(each) or {}).get("type") in ("text", "image") for each in blocks):
        return blocks
    return msgspec.json.encode(output).decode()


def _unreadable(text: str) -> str:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"The input of the call is no JSON object, so it was not made. It read: {shown}"


def grouped(calls: Sequence[Block], tools: ToolRegistry) -> Iterator[list[Block]]:
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
