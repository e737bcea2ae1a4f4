"""A stage for agents: the strict server with a script, the real client, a session in a folder."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from steno.agent.context.token_usage import TurnLimits, UsageMeter
from steno.agent.conversation import Conversation
from steno.agent.events import Event, TurnEnded
from steno.agent.hooks.dispatcher import Hooks, NullHooks
from steno.agent.loop import Agent, Compactor, RequestConfig
from steno.agent.tool_executor import Approval, RequestApproval, ToolExecutor
from steno.agent.writable_session import WritableSession, new_session, resume_session
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import Responder
from steno.llm.testserver.server import Server
from steno.permissions.permission_rules import Decision
from steno.session.resume.replay import valid_messages
from steno.session.transcript import load
from steno.tools.context import ToolContext
from steno.tools.protocol import Tool, ToolFailure, ToolResult, ToolSpec
from steno.tools.registry import ToolRegistry

MODEL = "claude-opus-4-5-20251101"


class Says:
    """A guard with one opinion."""

    mode = "default"

    def __init__(self, verdict: Any = "allow") -> None:
        self.decision = Decision(verdict, f"It is the rule to {verdict}.")

    def judge(self, tool: str, given: dict[str, Any], *, cwd: str) -> Decision:
        assert tool
        assert cwd
        assert given is not None
        return self.decision


class Does:
    """A tool that does what a function does."""

    def __init__(
        self, name: str, work: Callable[[dict[str, Any]], Awaitable[str]], *, reads_only: bool = False
    ) -> None:
        self._work = work
        self.spec = ToolSpec(
            name=name,
            description=f"Does {name}.",
            schema={"type": "object", "properties": {"what": {"type": "string"}}},
            reads_only=reads_only,
        )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        assert context.cwd
        assert call
        return ToolResult(await self._work(tool_input), {"ran": tool_input})


async def shout(given: dict[str, Any]) -> str:
    return str(given.get("what", "")).upper()


async def fail(given: dict[str, Any]) -> str:
    raise ToolFailure(f"cannot do {given.get('what')}")


class Stage:
    """Everything an agent needs, for one test."""

    def __init__(self, folder: Path, mind: Responder, **settings: Any) -> None:
        self.config = str(folder / "config")
        self.cwd = str(folder)
        self.mind = mind
        self.server = Server(mind, **settings)
        self.events: list[Event] = []
        self.tools: list[Tool] = [Does("Shout", shout), Does("Look", shout, reads_only=True), Does("Fail", fail)]
        self.guard = Says()
        self.hooks: Hooks = NullHooks()
        self.consent: RequestApproval = self._agree
        self.limits = TurnLimits()
        self.fit: Compactor | None = None
        self.work: WritableSession | None = None
        self.interactive = False
        """Whether it is as at a terminal."""
        self.asked: list[tuple[Block, Decision]] = []
        self.pauses: list[float] = []

    async def _agree(self, call: Block, decision: Decision) -> Approval:
        self.asked.append((call, decision))
        return Approval(granted=True)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def agent(self, api: ApiClient) -> Agent:
        if self.work is None:
            self.work = new_session(self.config, self.cwd)
        talk = self.work.conversation
        context = ToolContext(
            cwd=self.cwd, project=self.cwd, session_id=self.work.id, folder=talk.recorder.folder, env={}
        )
        caller = ToolExecutor(
            tools=ToolRegistry(self.tools),
            context=context,
            permission_checker=self.guard,
            emit=self.events.append,
            hooks=self.hooks,
            request_approval=self.consent,
        )
        meter = UsageMeter(self.limits, price=lambda _model, _usage: 1000, clock=lambda: 0.0)
        course = RequestConfig(model=MODEL, max_tokens=1000)
        agent = Agent(api, talk, caller, course, meter, compactor=self.fit)
        agent.interactive = self.interactive
        return agent

    def play(self, act: Callable[[Agent], Awaitable[Any]]) -> Any:
        """Let something happen between an agent and the server."""

        async def together() -> Any:
            async with self.server, self.api() as api:
                return await act(self.agent(api))

        return asyncio.run(together())

    def api(self) -> ApiClient:
        endpoint = Endpoint(self.server.url, api_key="canary-key")
        return ApiClient(endpoint, sleep=self._pause, random=lambda: 0.5)

    def say(self, *prompts: str) -> list[TurnEnded]:
        """Say things in turn; return how each turn ended."""

        async def talk(agent: Agent) -> list[TurnEnded]:
            return [await agent.run_turn(prompt) for prompt in prompts]

        return self.play(talk)

    def resume(self) -> None:
        """Go on with the session as a new process would."""
        assert self.work is not None
        self.work.conversation.recorder.close()
        self.work = resume_session(self.path, self.cwd)

    @property
    def path(self) -> str:
        assert self.work is not None
        return self.work.conversation.recorder.path

    @property
    def data(self) -> bytes:
        return Path(self.path).read_bytes()

    @property
    def talk(self) -> Conversation:
        assert self.work is not None
        return self.work.conversation

    def check(self, *, allowed: tuple[str, ...] = ()) -> None:
        """Everything an agent promises about its file, whatever happened."""
        assert list(self.server.refused) == []
        evidence = check(BytesSource(self.data), name=Path(self.path).stem)
        bad = [each for each in evidence.findings if each.severity != "info"]
        assert [(each.id, each.message) for each in bad if each.id not in allowed] == []
        assert valid_messages(load(BytesSource(self.data))) == self.talk.messages()
        assert b"canary-key" not in self.data
