"""What happens to a prompt that begins with a slash: commands, skills, and a few things of our own.

    /compact [what matters]   a summary takes the place of the conversation
    /context, /cost           how full the window is, and what was spent
    /NAME [ARGUMENTS]         a command or a skill of the user's or the project's

What has no such name goes to the model as it is, with a word on which names there are: it may well
be a path.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from steno.agent.accounts import context_of, cost_of
from steno.agent.calls import Caller
from steno.agent.commands import Command, Expanded, called, expand, find_command, invocation
from steno.agent.compact import Compactor
from steno.agent.events import Ended, Noticed, Reason
from steno.agent.gates import Kept
from steno.agent.lending import Lending
from steno.agent.loop import Agent
from steno.agent.recorder import new_id
from steno.agent.said import Companion, Said, permissions
from steno.agent.sizes import text_of
from steno.agent.skills import Skill, open_skill
from steno.format.tool_catalogue import SHELL
from steno.model.wire import Block

__all__ = ["CLEAR", "Slash", "local_call", "shell_of", "told"]

CLEAR: Final = "clear"
"""The one that whoever runs the agent has to see to: it begins another session."""
_ALIASES: Final = {"cost": "usage", "reset": CLEAR, "new": CLEAR}
_CAVEAT: Final = (
    "<local-command-caveat>The user ran what follows here, without you; it asks nothing of you. "
    "It is kept so that later messages can be understood.</local-command-caveat>"
)
_CALL: Final = (
    "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n"
    "            <command-args>{arguments}</command-args>"
)
_PRINTED: Final = "<local-command-stdout>{}</local-command-stdout>"
_UNKNOWN: Final = (
    "The message begins with /{name}, but there is no command or skill of that name here. Unless "
    "it means something else, such as a path, tell the user so. There are: {names}."
)
_MOST_NAMES: Final = 50


def told(prompt: str | list[Block]) -> tuple[str, str] | None:
    """Return the name and the arguments of a prompt that calls something; None for any other."""
    words = prompt if isinstance(prompt, str) else text_of(prompt) if len(prompt) == 1 else ""
    call = called(words)
    return None if call is None else (_ALIASES.get(call[0], call[0]), call[1])


def local_call(agent: Agent, name: str, arguments: str) -> None:
    """Take down that the user ran something that the model has no part in."""
    agent.talk.prompt(_CAVEAT, meta=True)
    call = _CALL.format(name=name, arguments=arguments)
    agent.talk.prompt(call, typed=agent.talk.last_prompt)


def shell_of(caller: Caller) -> Callable[[str], Awaitable[str]]:
    """Return what runs the commands in a text: as calls of Bash, judged like any other."""

    async def run(line: str) -> str:
        call = {"name": SHELL, "id": f"toolu_{new_id()}", "input": {"command": line}}
        outcome, _ = await caller.make(call)
        content = outcome.content
        words = content if isinstance(content, str) else text_of(content)
        return f"[`{line}` failed: {words}]" if outcome.is_error else words

    return run


class Slash:
    """Hears prompts in an agent's place, and sees to those that begin with a slash."""

    def __init__(
        self,
        agent: Agent,
        compactor: Compactor,
        lending: Lending,
        commands: Iterable[Command],
        skills: Iterable[Skill],
    ) -> None:
        self._agent = agent
        self._compactor = compactor
        self._lending = lending
        self._commands = tuple(commands)
        self._skills = {skill.name: skill for skill in skills}
        self._own = {"compact": self._compact, "context": self._context, "usage": self._usage}

    @property
    def skills(self) -> list[str]:
        """The names of the skills that there are."""
        return list(self._skills)

    @property
    def names(self) -> list[str]:
        """Everything that can be called."""
        named = {command.name for command in self._commands if command.user_may_call}
        named |= {name for name, skill in self._skills.items() if skill.user_may_call}
        return [*sorted(named), *sorted({*self._own, "cost", CLEAR})]

    @property
    def offers(self) -> list[tuple[str, str]]:
        """The commands and skills that can be called, with a word on each."""
        known: list[Command | Skill] = [*self._commands, *self._skills.values()]
        return sorted((each.name, each.description) for each in known if each.user_may_call)

    async def hear(self, prompt: str | list[Block]) -> Ended:
        """Take a prompt to its answer, whatever it calls."""
        call = told(prompt)
        if call is None:
            return await self._agent.turn(prompt)
        name, arguments = call
        own = self._own.get(name)
        if own is not None:
            return await self._agent.work(own(arguments))
        text = text_of(prompt)
        found = self._find(name)
        if found is None:
            return await self._agent.turn(self._unknown(prompt, name))
        return await self._agent.turn(lambda: self._said(found, text, arguments))

    async def cleared(self) -> Ended:
        """Take down that this session begins because the user left another."""
        return await self._agent.work(self._clear())

    # Commands and skills

    def _find(self, name: str) -> Command | Skill | None:
        found = self._skills.get(name) or find_command(self._commands, name)
        return found if found is not None and found.user_may_call else None

    async def _said(self, found: Command | Skill, typed: str, arguments: str) -> Said:
        """Fill in what was called; what it may use it may use from now on."""
        agent = self._agent
        facts = {
            "expansion_type": "slash_command",
            "command_name": found.name,
            "command_args": arguments,
            "command_source": f"{found.scope}Settings",
            "prompt": typed,
        }
        gate = await agent.caller.gates("UserPromptExpansion", facts)
        if gate.blocked or gate.ends:
            refusal = gate.reason or "A hook kept the command out."
            return Said(content=typed, refusal=refusal, kept=gate.kept)
        self._lending.lend(found.allowed_tools, found.model)
        filled = await self._filled(found, arguments)
        if filled is None:
            return Said(content=typed, refusal=f"/{found.name} cannot be read: {found.path}")
        return Said(
            content=invocation(found.name, arguments),
            typed=typed,
            companion=Companion(text=filled.text, mentions=filled.mentions),
            kept=(permissions(found.allowed_tools), *gate.kept),
        )

    async def _filled(self, found: Command | Skill, arguments: str) -> Expanded | None:
        caller = self._agent.caller
        shell = shell_of(caller)
        names = {"CLAUDE_SESSION_ID": caller.context.session_id}
        if isinstance(found, Skill):
            return await open_skill(found, arguments, shell=shell, names=names)
        return await expand(found, arguments, shell=shell, names=names)

    def _unknown(self, prompt: str | list[Block], name: str) -> Said:
        names = self.names
        body: dict[str, Any] = {
            "type": "unknown_command_fallback",
            "commandName": name,
            "availableCommandNames": names[:_MOST_NAMES],
            "availableCommandCount": len(names),
        }
        words = _UNKNOWN.format(name=name, names=", ".join(names[:_MOST_NAMES]))
        self._agent.emit(Noticed(f"There is no command /{name}; the model is asked.", "warning"))
        return Said(content=prompt, kept=(Kept(body=body, words=words, role="user"),))

    # Our own

    async def _compact(self, arguments: str) -> tuple[Reason, str]:
        agent = self._agent

        def take_down() -> None:
            local_call(agent, "compact", arguments)
            agent.talk.prompt(_PRINTED.format("Compacted"), typed=agent.talk.last_prompt)

        if await self._compactor.compact(agent, "manual", arguments, take_down):
            return "done", "Compacted"
        return "refused", "There was nothing to compact, or a hook kept it from being done."

    async def _context(self, arguments: str) -> tuple[Reason, str]:
        words, usage = context_of(self._agent, self._compactor.window(self._agent))
        return self._local("context", arguments, words, contextUsage=usage)

    async def _usage(self, arguments: str) -> tuple[Reason, str]:
        return self._local("usage", arguments, cost_of(self._agent))

    async def _clear(self) -> tuple[Reason, str]:
        return self._local(CLEAR, "", "")

    def _local(self, name: str, arguments: str, words: str, **fields: Any) -> tuple[Reason, str]:
        local_call(self._agent, name, arguments)
        run = {"command": name, "args": arguments}
        self._agent.talk.local(_PRINTED.format(words), **fields, commandRun=run)
        return "done", words
