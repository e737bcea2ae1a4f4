"""Sub-agents: an agent given a task of its own, in a file of its own, by a call of the `Agent` tool.

A sub-agent sees nothing but its task, and its caller nothing but its last words. Its totals stand
on the result of the call. One in the background answers at once, and tells when it is done.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from steno.agent import events
from steno.agent.loop import Agent
from steno.format.compose import full_usage
from steno.format.encode import encode
from steno.format.tool_catalogue import AGENT
from steno.tools.base import Spec, ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext

__all__ = ["AgentTool", "Kind", "Spawn", "new_agent_id"]

_BYTES: Final = 8
_USUAL: Final = "general-purpose"
"""The kind of agent that works where none is named."""
_MOST_DEPTH: Final = 5
_MODE: Final = 0o600
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "description": "The task in three to five words"},
        "prompt": {"type": "string", "description": "The whole task; nothing else is known there"},
        "subagent_type": {"type": "string", "description": "Which kind of agent"},
        "model": {"type": "string", "description": "Another model than its own"},
        "run_in_background": {"type": "boolean", "description": "Go on without waiting for it"},
    },
    "required": ["description", "prompt"],
}


class Kind(msgspec.Struct, frozen=True):
    """A kind of sub-agent that can be asked for."""

    name: str
    description: str
    is_built_in: bool = True
    background: bool = False
    """Whether nobody waits for it unless they say so."""


class Spawn(Protocol):
    """Makes the agent for a task."""

    def __call__(self, agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
        """Return an agent of that kind that writes its own file; raises for an unknown kind."""
        ...


def new_agent_id() -> str:
    """Return a new name for a sub-agent, of the form that clients since 2.1.200 give."""
    return f"a{secrets.token_hex(_BYTES)}"


class AgentTool:
    """The tool that gives a task to another agent."""

    def __init__(
        self,
        spawn: Spawn,
        kinds: tuple[Kind, ...],
        emit: Callable[[events.Event], None],
        *,
        depth: int = 0,
    ) -> None:
        self._spawn = spawn
        self._kinds = {kind.name: kind for kind in kinds}
        self._emit = emit
        self._depth = depth
        self._running: set[asyncio.Task[None]] = set()

    @property
    def kinds(self) -> list[str]:
        """The names of the kinds that there are."""
        return list(self._kinds)

    @property
    def known(self) -> tuple[Kind, ...]:
        """The kinds that there are."""
        return tuple(self._kinds.values())

    @property
    def pending(self) -> int:
        """How many work in the background."""
        return len(self._running)

    @property
    def spec(self) -> Spec:
        """What it says of itself."""
        kinds = "\n".join(f"- {each.name}: {each.description}" for each in self._kinds.values())
        return own_spec(
            AGENT,
            description=(
                "Give a task of its own to another agent, which works alone and tells you its "
                f"result. It sees only the prompt. Kinds (subagent_type):\n{kinds}"
            ),
            schema=_SCHEMA,
        )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Let an agent do the task."""
        usual = _USUAL if _USUAL in self._kinds else next(iter(self._kinds))
        kind = str(tool_input.get("subagent_type") or usual)
        if kind not in self._kinds:
            raise ToolFailure(f"There is no agent {kind!r}. There are: {', '.join(self._kinds)}.")
        if self._depth >= _MOST_DEPTH:
            raise ToolFailure(f"Agents may call agents {_MOST_DEPTH} deep; this one is as deep.")
        agent_id = new_agent_id()
        agent = self._spawn(agent_id, kind, str(tool_input.get("model") or ""), context)
        task = _Task(agent, agent_id, kind, tool_input, call)
        self._write_meta(task)
        agent.caller.emit = lambda event: self._pass_on(task, event)
        background = bool(tool_input.get("run_in_background", self._kinds[kind].background))
        self._emit(task.begun(background=background, depth=self._depth + 1))
        if not background:
            return await self._done(task)
        work = asyncio.create_task(self._in_background(task, context))
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        return task.launched()

    async def wait(self, seconds: float | None) -> None:
        """Wait until one of those in the background is done, but not longer than that."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """End what still runs in the background."""
        for work in list(self._running):
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _done(self, task: "_Task") -> ToolResult:
        outcome = await task.work()
        self._emit(task.ended(outcome))
        return outcome

    async def _in_background(self, task: "_Task", context: ToolContext) -> None:
        outcome = await self._done(task)
        said = outcome.content if isinstance(outcome.content, str) else _words(outcome.content)
        context.notify(
            f"<task-notification>\nAgent {task.agent_id} ({task.description}) is done.\n{said}\n"
            "</task-notification>"
        )

    def _pass_on(self, task: "_Task", event: events.Event) -> None:
        if isinstance(event, events.ToolEnded):
            task.tool_uses += 1
        self._emit(events.Within(task.call, event))

    def _write_meta(self, task: "_Task") -> None:
        kind = self._kinds[task.kind]
        meta = {
            "agentType": kind.name,
            "isBuiltIn": kind.is_built_in,
            "description": task.description,
            "toolUseId": task.call,
            "spawnDepth": self._depth + 1,
        }
        path = f"{os.path.splitext(task.agent.talk.recorder.path)[0]}.meta.json"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
        with os.fdopen(file, "wb") as written:
            written.write(encode(meta))


class _Task:
    """One task that an agent works on."""

    def __init__(
        self, agent: Agent, agent_id: str, kind: str, given: dict[str, Any], call: str
    ) -> None:
        self.agent = agent
        self.agent_id = agent_id
        self.kind = kind
        self.call = call
        self.description = str(given["description"])
        self.prompt = str(given["prompt"])
        self.tool_uses = 0

    async def work(self) -> ToolResult:
        """Do it; return what the caller reads of it."""
        began = time.monotonic()
        try:
            ended = await self.agent.turn(self.prompt)
        finally:
            await self._close()
        content = [
            {"type": "text", "text": ended.text or ended.problem or f"(ended: {ended.reason})"}
        ]
        detail = {
            "status": "completed" if ended.reason in ("done", "empty") else ended.reason,
            "prompt": self.prompt,
            "agentId": self.agent_id,
            "content": content,
            "totalDurationMs": round((time.monotonic() - began) * 1000),
            "totalTokens": sum(ended.usage.values()),
            "totalToolUseCount": self.tool_uses,
            "usage": full_usage(ended.usage),
        }
        return ToolResult(content, detail, is_error=ended.reason in ("error", "not_saved"))

    async def _close(self) -> None:
        """End what it started and left running: nobody is there any more who could be told."""
        for tool in self.agent.caller.tools:
            if isinstance(tool, AgentTool):
                await tool.close()
        await self.agent.caller.context.background.close()
        self.agent.talk.recorder.close()

    def begun(self, *, background: bool, depth: int) -> events.Launched:
        """Return that it begins."""
        return events.Launched(
            call=self.call,
            agent_id=self.agent_id,
            kind=self.kind,
            description=self.description,
            prompt=self.prompt,
            background=background,
            depth=depth,
        )

    def ended(self, outcome: ToolResult) -> events.Landed:
        """Return what came of it."""
        detail = outcome.detail
        return events.Landed(
            call=self.call,
            agent_id=self.agent_id,
            status="completed" if detail["status"] == "completed" else "failed",
            text=_words(detail["content"]),
            tokens=detail["totalTokens"],
            tool_uses=detail["totalToolUseCount"],
            seconds=detail["totalDurationMs"] / 1000,
            path=self.agent.talk.recorder.path,
        )

    def launched(self) -> ToolResult:
        """Return what the caller reads while it works."""
        words = f"Agent {self.agent_id} works in the background; you will be told when it is done."
        detail = {
            "isAsync": True,
            "status": "async_launched",
            "agentId": self.agent_id,
            "description": self.description,
            "resolvedModel": self.agent.course.model,
            "prompt": self.prompt,
            "outputFile": self.agent.talk.recorder.path,
            "canReadOutputFile": True,
            "canContinueAgent": False,
        }
        return ToolResult(words, detail)


def _words(content: list[dict[str, Any]]) -> str:
    return "\n".join(str(block.get("text", "")) for block in content)
