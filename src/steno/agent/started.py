"""An agent that is put together: it is opened, talked to and closed."""

from collections.abc import Callable

import msgspec

from steno.agent.command_runner import ConfiningRunner
from steno.agent.compact import Compactor
from steno.agent.confined import Confined
from steno.agent.events import Ended, Noticed
from steno.agent.hook_env import EnvFile
from steno.agent.hooks import Hooks
from steno.agent.loop import Agent
from steno.agent.mcp import Connections
from steno.agent.memory import Memory
from steno.agent.rules_kept import Granted
from steno.agent.settings import Settings
from steno.agent.slash import Slash
from steno.agent.subagents import AgentTool
from steno.guard.decision import Mode
from steno.model.wire import Block
from steno.store.presence import Presence

__all__ = ["Started"]


class Started(msgspec.Struct, kw_only=True, eq=False):
    """An agent that is ready, and what has to be closed behind it."""

    agent: Agent
    settings: Settings
    compactor: Compactor
    hooks: Hooks
    servers: Connections
    agents: AgentTool
    slash: Slash
    source: str = "startup"
    """What the session began with, as hooks are told it."""
    memory: Memory = Memory()
    env_file: EnvFile
    confined: Confined | None = None
    """The sandbox that commands run in; None when there is none."""
    runner: ConfiningRunner
    """Runs commands, confined unless they are approved."""
    mode: Callable[[], Mode]
    """Says which permission mode it is in."""
    granted: Granted
    """The rules that the user has granted since it began."""
    presence: Presence
    """What tells others that somebody works on the session."""

    async def open(self) -> None:
        """Let hooks know that the session begins; what they say stands before the first prompt."""
        agent = self.agent
        self.presence.open()
        for part in self.memory.parts:
            await agent.caller.gates("InstructionsLoaded", part.facts())
        facts = {"source": self.source, "model": agent.course.model}
        context = agent.caller.context
        if self.hooks.of("SessionStart", facts):
            self.env_file.offer()
        gate = await agent.caller.gates("SessionStart", facts)
        await self.env_file.read(context.cwd, context.env)
        context.env.update(self.env_file.found)
        self.runner.given.update(self.env_file.found)
        for words in gate.words:
            agent.emit(Noticed(words))
        agent.ahead += gate.kept

    async def hear(self, prompt: str | list[Block]) -> Ended:
        """Take a prompt to its answer; one that begins with a slash may be a command."""
        return await self.slash.hear(prompt)

    async def close(self, reason: str = "other") -> None:
        """End everything that still runs, and let the session's file go."""
        await self.agent.caller.gates("SessionEnd", {"reason": reason})
        await self.agents.close()
        await self.agent.caller.context.background.close()
        await self.runner.close()
        if self.confined is not None:
            self.confined.close()
        await self.hooks.close()
        await self.servers.close()
        self.env_file.drop()
        self.presence.close()
        # Last: whoever gets the session now finds nobody at work on it.
        self.agent.talk.recorder.close()
