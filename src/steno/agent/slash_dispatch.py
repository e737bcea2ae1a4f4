"""Handles prompts that begin with a slash: custom commands, skills and built-in commands.

        /compact [instructions]   replace the conversation by a summary
        /context, /cost           show context usage and cost
        /NAME [ARGUMENTS]         run a command or skill of the user or the project

An unknown name is sent to the model unchanged, with a list of the available names, because it may be
a path.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from steno.agent.config.skills import (
    ExpandedPrompt,
    Skill,
    SlashCommand,
    expand_prompt,
    expand_skill,
    find_command,
    invocation_text,
    parse_invocation,
)
from steno.agent.context.compaction import ContextCompactor
from steno.agent.context.token_usage import (
    CHARACTERS_PER_TOKEN,
    MICRODOLLARS_PER_DOLLAR,
    estimate_messages,
    message_text,
)
from steno.agent.events import EndReason, Notice, TurnEnded
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.loop import Agent
from steno.agent.permission_store import TurnGrants
from steno.agent.recorder import AttachmentRecord, new_uuid
from steno.agent.tool_executor import ToolExecutor
from steno.agent.user_input import CompanionMessage, UserInput, permissions_record
from steno.format.encode import encode
from steno.format.tool_catalogue import SHELL
from steno.llm.messages_api import Block

_USAGE_LABELS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache read",
    "cache_creation_input_tokens": "cache write",
}


def cost_report(agent: Agent) -> str:
    """Return cost and usage as text."""
    meter = agent.meter
    usage_text = ", ".join(f"{meter.usage.get(key, 0):,} {label}" for key, label in _USAGE_LABELS.items())
    return f"Total cost: ${meter.cost / MICRODOLLARS_PER_DOLLAR:.4f}\nUsage: {usage_text}"


def context_report(agent: Agent, window: int) -> tuple[str, dict[str, Any]]:
    """Return the context usage as text and as recorded in the session."""
    token_counts = _token_counts(agent)
    total = sum(token_counts.values())
    model = agent.request_config.model
    lines = [
        f"{model}: about {total:,} of {window:,} tokens ({_percentage(total, window)}%)",
        *(f"{name}: {count:,} ({_percentage(count, window)}%)" for name, count in token_counts.items()),
        f"Free: {max(window - total, 0):,}",
    ]
    usage: dict[str, Any] = {
        "model": model,
        "total_tokens": total,
        "raw_max_tokens": window,
        "percentage": _percentage(total, window),
        "categories": [{"name": name, "tokens": size, "kind": "used"} for name, size in token_counts.items()],
    }
    return "\n".join(lines), usage


def _token_counts(agent: Agent) -> dict[str, int]:
    """Return the estimated tokens of the parts of the next request."""
    own_tools: list[dict[str, Any]] = []
    mcp_tools: list[dict[str, Any]] = []
    for tool in agent.executor.tools.to_api():
        (mcp_tools if str(tool.get("name")).startswith("mcp__") else own_tools).append(tool)
    system_characters = sum(len(str(block.get("text", ""))) for block in agent.request_config.system)
    counts = {
        "System prompt": system_characters // CHARACTERS_PER_TOKEN,
        "Tools": _tool_tokens(own_tools),
        "MCP tools": _tool_tokens(mcp_tools),
        "Messages": estimate_messages(agent.conversation.messages()),
    }
    return {name: count for name, count in counts.items() if count}


def _tool_tokens(tools: list[dict[str, Any]]) -> int:
    return sum(len(encode(tool)) for tool in tools) // CHARACTERS_PER_TOKEN


def _percentage(part: int, total: int) -> int:
    return round(100 * part / total) if total else 0


CLEAR: Final = "clear"
"""The command that starts a new session; handled by the owner of the agent."""
_ALIASES: Final = {"cost": "usage", "reset": CLEAR, "new": CLEAR}
_LOCAL_COMMAND_CAVEAT: Final = (
    "<local-command-caveat>The user ran the following command locally. Do not respond to it; "
    "it is included as context for later messages.</local-command-caveat>"
)
_LOCAL_COMMAND: Final = (
    "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n"
    "            <command-args>{arguments}</command-args>"
)
_LOCAL_COMMAND_OUTPUT: Final = "<local-command-stdout>{}</local-command-stdout>"
_UNKNOWN_COMMAND: Final = (
    "The message begins with /{name}, but no command or skill has that name. Tell the "
    "user, unless the text is something else, such as a path. Available: {names}."
)
_MAX_NAMES: Final = 50


def parse_slash_prompt(prompt: str | list[Block]) -> tuple[str, str] | None:
    """Return the name and arguments of a slash command; None for other prompts."""
    text = prompt if isinstance(prompt, str) else message_text(prompt) if len(prompt) == 1 else ""
    invocation = parse_invocation(text)
    return None if invocation is None else (_ALIASES.get(invocation[0], invocation[0]), invocation[1])


def record_local_command(agent: Agent, name: str, arguments: str) -> None:
    """Record that the user ran a local command."""
    agent.conversation.add_prompt(_LOCAL_COMMAND_CAVEAT, meta=True)
    command_text = _LOCAL_COMMAND.format(name=name, arguments=arguments)
    agent.conversation.add_prompt(command_text, typed=agent.conversation.last_prompt)


def shell_for(executor: ToolExecutor) -> Callable[[str], Awaitable[str]]:
    """Return a function that runs a shell line as a Bash call with the usual permission checks."""

    async def run(command_line: str) -> str:
        call = {"name": SHELL, "id": f"toolu_{new_uuid()}", "input": {"command": command_line}}
        result, _ = await executor.execute(call)
        content = result.content
        output = content if isinstance(content, str) else message_text(content)
        return f"[`{command_line}` failed: {output}]" if result.is_error else output

    return run


class SlashDispatcher:
    """Submits prompts to an agent and handles those that begin with a slash."""

    def __init__(
        self,
        agent: Agent,
        compactor: ContextCompactor,
        grants: TurnGrants,
        commands: Iterable[SlashCommand],
        skills: Iterable[Skill],
    ) -> None:
        self._agent = agent
        self._compactor = compactor
        self._grants = grants
        self._commands = tuple(commands)
        self._skills = {skill.name: skill for skill in skills}
        self._built_in = {"compact": self._compact, "context": self._context, "usage": self._usage}

    @property
    def skill_names(self) -> list[str]:
        """The names of all skills."""
        return list(self._skills)

    @property
    def command_names(self) -> list[str]:
        """The names of all slash commands, including skills."""
        custom_names = {command.name for command in self._commands if command.user_may_call}
        custom_names |= {name for name, skill in self._skills.items() if skill.user_may_call}
        return [*sorted(custom_names), *sorted({*self._built_in, "cost", CLEAR})]

    @property
    def callable_prompts(self) -> list[tuple[str, str]]:
        """Custom commands and skills that the user can run, with their descriptions."""
        prompts: list[SlashCommand | Skill] = [*self._commands, *self._skills.values()]
        return sorted((prompt.name, prompt.description) for prompt in prompts if prompt.user_may_call)

    async def submit(self, prompt: str | list[Block]) -> TurnEnded:
        """Run the turn for a prompt or slash command."""
        invocation = parse_slash_prompt(prompt)
        if invocation is None:
            return await self._agent.run_turn(prompt)
        name, arguments = invocation
        built_in = self._built_in.get(name)
        if built_in is not None:
            return await self._agent.run_as_turn(built_in(arguments))
        text = message_text(prompt)
        command = self._find(name)
        if command is None:
            return await self._agent.run_turn(self._unknown_command_input(prompt, name))
        return await self._agent.run_turn(lambda: self._expand_input(command, text, arguments))

    async def record_clear(self) -> TurnEnded:
        """Record that this session started with /clear."""
        return await self._agent.run_as_turn(self._clear())

    # Commands and skills

    def _find(self, name: str) -> SlashCommand | Skill | None:
        command = self._skills.get(name) or find_command(self._commands, name)
        return command if command is not None and command.user_may_call else None

    async def _expand_input(self, command: SlashCommand | Skill, typed: str, arguments: str) -> UserInput:
        """Expand a command or skill, and grant the tools that it allows."""
        agent = self._agent
        fields = {
            "expansion_type": "slash_command",
            "command_name": command.name,
            "command_args": arguments,
            "command_source": f"{command.scope}Settings",
            "prompt": typed,
        }
        outcome = await agent.executor.hooks.dispatch(HookEvent("UserPromptExpansion", fields))
        if outcome.blocked or outcome.ends_turn:
            refusal = outcome.reason or "Blocked by a hook."
            return UserInput(content=typed, refusal=refusal, records=outcome.records)
        self._grants.grant(command.allowed_tools, command.model)
        expanded = await self._expand(command, arguments)
        if expanded is None:
            return UserInput(content=typed, refusal=f"Cannot read /{command.name}: {command.path}")
        return UserInput(
            content=invocation_text(command.name, arguments),
            typed=typed,
            companion=CompanionMessage(text=expanded.text, mentions=expanded.mentions),
            records=(permissions_record(command.allowed_tools), *outcome.records),
        )

    async def _expand(self, command: SlashCommand | Skill, arguments: str) -> ExpandedPrompt | None:
        executor = self._agent.executor
        shell = shell_for(executor)
        variables = {"CLAUDE_SESSION_ID": executor.context.session_id}
        if isinstance(command, Skill):
            return await expand_skill(command, arguments, run_shell=shell, variables=variables)
        return await expand_prompt(command, arguments, shell=shell, variables=variables)

    def _unknown_command_input(self, prompt: str | list[Block], name: str) -> UserInput:
        names = self.command_names
        fields: dict[str, Any] = {
            "type": "unknown_command_fallback",
            "commandName": name,
            "availableCommandNames": names[:_MAX_NAMES],
            "availableCommandCount": len(names),
        }
        text = _UNKNOWN_COMMAND.format(name=name, names=", ".join(names[:_MAX_NAMES]))
        self._agent.emit(Notice(f"Unknown command /{name}; sending the message to the model.", "warning"))
        return UserInput(content=prompt, records=(AttachmentRecord(fields=fields, text=text, role="user"),))

    # Built-in commands

    async def _compact(self, arguments: str) -> tuple[EndReason, str]:
        agent = self._agent

        def take_down() -> None:
            record_local_command(agent, "compact", arguments)
            agent.conversation.add_prompt(
                _LOCAL_COMMAND_OUTPUT.format("Compacted"), typed=agent.conversation.last_prompt
            )

        if await self._compactor.compact(agent, "manual", arguments, take_down):
            return "done", "Compacted"
        return "refused", "Nothing to compact, or blocked by a hook."

    async def _context(self, arguments: str) -> tuple[EndReason, str]:
        report, usage = context_report(self._agent, self._compactor.window(self._agent))
        return self._record_output("context", arguments, report, contextUsage=usage)

    async def _usage(self, arguments: str) -> tuple[EndReason, str]:
        return self._record_output("usage", arguments, cost_report(self._agent))

    async def _clear(self) -> tuple[EndReason, str]:
        return self._record_output(CLEAR, "", "")

    def _record_output(self, name: str, arguments: str, output: str, **fields: Any) -> tuple[EndReason, str]:
        record_local_command(self._agent, name, arguments)
        command_run = {"command": name, "args": arguments}
        self._agent.conversation.add_local_command(
            _LOCAL_COMMAND_OUTPUT.format(output), **fields, commandRun=command_run
        )
        return "done", output
