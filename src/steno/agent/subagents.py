"""Sub-agents: their definitions, and the `Agent` tool, which runs a task in a sub-agent.

Definitions are read from the command line (JSON) and from `.claude/agents/*.md` of the project and the
user; two are built in. A definition overrides later ones with the same name, in this order.

A sub-agent sees only its task, and the caller only its last message. Its usage is recorded with the result
of the call. A background sub-agent returns at once and notifies the caller when it ends.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from steno.agent import events
from steno.agent.config.project_files import ConfigNote, list_markdown_files, parse_json, read_text, split_front_matter
from steno.agent.loop import Agent
from steno.format.encode import encode, full_usage
from steno.format.lenient_json import as_object, get_text, string_items
from steno.format.tool_catalogue import AGENT, AGENT_TOOLS
from steno.store.environment import config_dir
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult, ToolSpec, builtin_spec

DefinitionOrigin: TypeAlias = Literal["built-in", "flags", "project", "user"]


class SubagentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a sub-agent type."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """The allowed tools; None for all."""
    disallowed_tools: tuple[str, ...] = ()
    """Tools that are not available (`disallowedTools`)."""
    model: str = ""
    """The model; empty or `inherit` for the model of the parent."""
    permission_mode: str = ""
    max_turns: int = 0
    """Maximum number of requests per task; 0 for no limit."""
    background: bool = False
    skills: tuple[str, ...] = ()
    color: str = ""
    origin: DefinitionOrigin = "user"
    path: str = ""

    def may_use(self, tool: str) -> bool:
        """Return whether a tool is available; `mcp__server` matches all tools of a server."""
        if _matches_tool(tool, self.disallowed_tools):
            return False
        return self.tools is None or _matches_tool(tool, self.tools)


def _matches_tool(tool: str, names: tuple[str, ...]) -> bool:
    for name in names:
        base_name = name.split("(", 1)[0].strip()
        if base_name in {tool, "*"} or {base_name, tool} <= AGENT_TOOLS:
            return True
        if base_name.startswith("mcp__") and tool.startswith(f"{base_name.removesuffix('__*')}__"):
            return True
    return False


_GENERAL_PROMPT: Final = """\
Complete the task given to you by another agent. Do everything it asks for and nothing else.

Explore before making changes: search broadly if you do not know the location of the code; otherwise, read the
file. If the first approach finds nothing, try another. Prefer editing existing files to creating new ones. Do
not write documentation unless the task asks for it.

The other agent reads only your last message. Report what you found or did, with absolute paths and short,
relevant code excerpts. Report what you could not do and why.
"""
_EXPLORE_PROMPT: Final = """\
Search a code base for another agent. You have read-only access: never create, change, move or delete
files, neither with tools nor with shell commands, not even in temporary directories.

Start with broad searches for file names and patterns, then read the relevant files. Run independent searches
in parallel. Use the shell only for read-only commands (list, show, log, diff).

Match the thoroughness that the task asks for, and finish quickly. Report your findings with absolute paths,
line numbers and relevant lines, and name the places that you searched without success.
"""

BUILT_IN_SUBAGENTS: Final = (
    SubagentDefinition(
        name="general-purpose",
        description=(
            "Works on multi-step tasks independently: open-ended searches, research across many files,"
            " and changes that can be specified completely. Has access to all tools."
        ),
        prompt=_GENERAL_PROMPT,
        origin="built-in",
    ),
    SubagentDefinition(
        name="Explore",
        description=(
            "Explores a code base without changing anything: finds files and symbols, and explains how"
            " code works. Specify the thoroughness: quick, medium or very thorough."
        ),
        prompt=_EXPLORE_PROMPT,
        tools=("Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch"),
        origin="built-in",
    ),
)


def discover_definitions(
    project: str, *, trusted: bool, agents_json: str = "", env: Mapping[str, str] | None = None
) -> tuple[tuple[SubagentDefinition, ...], tuple[ConfigNote, ...]]:
    """Return all sub-agent definitions, sorted by name; `agents_json` is the value of `--agents`."""
    notes: list[ConfigNote] = []
    definitions: dict[str, SubagentDefinition] = {}
    layers: list[Iterable[SubagentDefinition]] = [parse_definitions_json(agents_json, notes)]
    if trusted:
        layers.append(_read_folder(Path(project, ".claude", "agents"), "project", notes))
    layers.append(_read_folder(Path(config_dir(env), "agents"), "user", notes))
    layers.append(BUILT_IN_SUBAGENTS)
    for layer in layers:
        for definition in layer:
            definitions.setdefault(definition.name, definition)
    return tuple(definitions[name] for name in sorted(definitions)), tuple(notes)


def _read_folder(folder: Path, origin: DefinitionOrigin, notes: list[ConfigNote]) -> list[SubagentDefinition]:
    definitions: list[SubagentDefinition] = []
    for path in list_markdown_files(folder):
        text = read_text(path, notes)
        definition = parse_definition(text, str(path), origin, notes) if text else None
        if definition is not None:
            definitions.append(definition)
    return definitions


def parse_definition(
    text: str, path: str, origin: DefinitionOrigin, notes: list[ConfigNote]
) -> SubagentDefinition | None:
    """Parse the file of a sub-agent; add a note and return None if it lacks a name or description."""
    head, body = split_front_matter(text)
    notes.extend(ConfigNote(path, message) for message in head.notes)
    name, description = head.text("name").strip(), head.text("description").strip()
    if not name or not description:
        notes.append(ConfigNote(path, "ignored: a sub-agent requires a `name` and a `description`"))
        return None
    max_turns = head.text("maxTurns").strip()
    permission_mode = head.text("permissionMode")
    if permission_mode == "bypassPermissions" and origin == "project":
        notes.append(ConfigNote(path, "`permissionMode` ignored: a project cannot set bypassPermissions"))
        permission_mode = ""
    return SubagentDefinition(
        name=name,
        description=description,
        prompt=body.strip(),
        tools=head.items("tools"),
        disallowed_tools=head.items("disallowedTools") or (),
        model=head.text("model").strip(),
        permission_mode=permission_mode,
        max_turns=int(max_turns) if max_turns.isdecimal() and max_turns.isascii() else 0,
        background=head.boolean("background"),
        skills=head.items("skills") or (),
        color=head.text("color"),
        origin=origin,
        path=path,
    )


def parse_definitions_json(text: str, notes: list[ConfigNote]) -> list[SubagentDefinition]:
    """Parse the value of `--agents`: an object of definitions by name."""
    definitions: list[SubagentDefinition] = []
    for name, value in parse_json(text, "--agents", notes).items():
        fields = as_object(value) or {}
        description, prompt = get_text(fields, "description"), get_text(fields, "prompt")
        if not description or not prompt:
            message = f"`{name}` ignored: it requires a `description` and a `prompt`"
            notes.append(ConfigNote("--agents", message))
            continue
        max_turns = fields.get("maxTurns")
        definitions.append(
            SubagentDefinition(
                name=name,
                description=description,
                prompt=prompt,
                tools=string_items(fields["tools"]) if "tools" in fields else None,
                disallowed_tools=string_items(fields.get("disallowedTools")),
                model=get_text(fields, "model"),
                permission_mode=get_text(fields, "permissionMode"),
                max_turns=max_turns if isinstance(max_turns, int) and max_turns > 0 else 0,
                background=fields.get("background") is True,
                skills=string_items(fields.get("skills")),
                origin="flags",
            )
        )
    return definitions


_ID_BYTES: Final = 8
_DEFAULT_TYPE: Final = "general-purpose"
"""The sub-agent type that is used if the call names none."""
_MAX_DEPTH: Final = 5
_FILE_MODE: Final = 0o600
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "description": "Short description of the task, three to five words"},
        "prompt": {"type": "string", "description": "The complete task; the sub-agent has no other context"},
        "subagent_type": {"type": "string", "description": "The sub-agent type"},
        "model": {"type": "string", "description": "Model to use instead of the sub-agent's default"},
        "run_in_background": {"type": "boolean", "description": "Return at once and run in the background"},
    },
    "required": ["description", "prompt"],
}


class SpawnSubagent(Protocol):
    """Creates the agent for a task."""

    def __call__(self, agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
        """Return an agent of this type, with its own session file; raises an error for an unknown type."""
        ...


def new_subagent_id() -> str:
    """Return a random sub-agent ID, in the format of Claude Code since 2.1.200."""
    return f"a{secrets.token_hex(_ID_BYTES)}"


class AgentTool:
    """The Agent tool: runs a task in a sub-agent."""

    def __init__(
        self,
        spawn: SpawnSubagent,
        types: tuple[SubagentDefinition, ...],
        emit: Callable[[events.Event], None],
        *,
        depth: int = 0,
    ) -> None:
        self._spawn = spawn
        self._types = {agent_type.name: agent_type for agent_type in types}
        self._emit = emit
        self._depth = depth
        self._running: set[asyncio.Task[None]] = set()

    @property
    def type_names(self) -> list[str]:
        """The names of all sub-agent types."""
        return list(self._types)

    @property
    def types(self) -> tuple[SubagentDefinition, ...]:
        """All sub-agent types."""
        return tuple(self._types.values())

    @property
    def background_count(self) -> int:
        """Number of sub-agents running in the background."""
        return len(self._running)

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool."""
        descriptions = "\n".join(
            f"- {agent_type.name}: {agent_type.description}" for agent_type in self._types.values()
        )
        return builtin_spec(
            AGENT,
            description=(
                "Runs a task in a sub-agent, which works independently and returns its result. "
                f"It sees only the prompt. Available types (subagent_type):\n{descriptions}"
            ),
            schema=_SCHEMA,
        )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Run the task, or start it in the background."""
        default_type = _DEFAULT_TYPE if _DEFAULT_TYPE in self._types else next(iter(self._types))
        agent_type = str(tool_input.get("subagent_type") or default_type)
        if agent_type not in self._types:
            raise ToolFailure(f"Unknown sub-agent type: {agent_type!r}. Available: {', '.join(self._types)}.")
        if self._depth >= _MAX_DEPTH:
            raise ToolFailure(f"Sub-agents can be nested at most {_MAX_DEPTH} levels deep.")
        agent_id = new_subagent_id()
        agent = self._spawn(agent_id, agent_type, str(tool_input.get("model") or ""), context)
        task = _SubagentTask(agent, agent_id, agent_type, tool_input, call)
        self._write_meta(task)
        agent.executor.emit = lambda event: self._forward_event(task, event)
        background = bool(tool_input.get("run_in_background", self._types[agent_type].background))
        self._emit(task.started_event(background=background, depth=self._depth + 1))
        if not background:
            return await self._finish(task)
        background_task = asyncio.create_task(self._finish_in_background(task, context))
        self._running.add(background_task)
        background_task.add_done_callback(self._running.discard)
        return task.background_result()

    async def wait(self, seconds: float | None) -> None:
        """Wait until a background sub-agent ends, at most `seconds`."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Stop all background sub-agents."""
        for background_task in list(self._running):
            background_task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _finish(self, task: "_SubagentTask") -> ToolResult:
        result = await task.run()
        self._emit(task.ended_event(result))
        return result

    async def _finish_in_background(self, task: "_SubagentTask", context: ToolContext) -> None:
        result = await self._finish(task)
        text = result.content if isinstance(result.content, str) else _content_text(result.content)
        context.notify(
            f"<task-notification>\nAgent {task.agent_id} ({task.description}) has ended.\n{text}\n</task-notification>"
        )

    def _forward_event(self, task: "_SubagentTask", event: events.Event) -> None:
        if isinstance(event, events.ToolEnded):
            task.tool_uses += 1
        self._emit(events.SubagentEvent(task.call_id, event))

    def _write_meta(self, task: "_SubagentTask") -> None:
        agent_type = self._types[task.agent_type]
        meta = {
            "agentType": agent_type.name,
            "isBuiltIn": agent_type.origin == "built-in",
            "description": task.description,
            "toolUseId": task.call_id,
            "spawnDepth": self._depth + 1,
        }
        path = f"{os.path.splitext(task.agent.conversation.recorder.path)[0]}.meta.json"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
        with os.fdopen(file, "wb") as output:
            output.write(encode(meta))


class _SubagentTask:
    """A task and the agent that works on it."""

    def __init__(self, agent: Agent, agent_id: str, agent_type: str, tool_input: dict[str, Any], call_id: str) -> None:
        self.agent = agent
        self.agent_id = agent_id
        self.agent_type = agent_type
        self.call_id = call_id
        self.description = str(tool_input["description"])
        self.prompt = str(tool_input["prompt"])
        self.tool_uses = 0

    async def run(self) -> ToolResult:
        """Run the task; return the result for the caller."""
        started_at = time.monotonic()
        try:
            ended = await self.agent.run_turn(self.prompt)
        finally:
            await self._close()
        content = [{"type": "text", "text": ended.text or ended.problem or f"(ended: {ended.reason})"}]
        detail = {
            "status": "completed" if ended.reason in ("done", "empty") else ended.reason,
            "prompt": self.prompt,
            "agentId": self.agent_id,
            "content": content,
            "totalDurationMs": round((time.monotonic() - started_at) * 1000),
            "totalTokens": sum(ended.usage.values()),
            "totalToolUseCount": self.tool_uses,
            "usage": full_usage(ended.usage),
        }
        return ToolResult(content, detail, is_error=ended.reason in ("error", "not_saved"))

    async def _close(self) -> None:
        """Stop the background work of the agent, since nothing can receive its notifications."""
        for tool in self.agent.executor.tools:
            if isinstance(tool, AgentTool):
                await tool.close()
        await self.agent.executor.context.background.close()
        self.agent.conversation.recorder.close()

    def started_event(self, *, background: bool, depth: int) -> events.SubagentStarted:
        """Return the event for the start of the task."""
        return events.SubagentStarted(
            call_id=self.call_id,
            agent_id=self.agent_id,
            agent_type=self.agent_type,
            description=self.description,
            prompt=self.prompt,
            background=background,
            depth=depth,
        )

    def ended_event(self, result: ToolResult) -> events.SubagentEnded:
        """Return the event for the end of the task."""
        detail = result.detail
        return events.SubagentEnded(
            call_id=self.call_id,
            agent_id=self.agent_id,
            status="completed" if detail["status"] == "completed" else "failed",
            text=_content_text(detail["content"]),
            tokens=detail["totalTokens"],
            tool_uses=detail["totalToolUseCount"],
            seconds=detail["totalDurationMs"] / 1000,
            path=self.agent.conversation.recorder.path,
        )

    def background_result(self) -> ToolResult:
        """Return the result of a call whose task runs in the background."""
        text = f"Agent {self.agent_id} is running in the background. You are notified when it ends."
        detail = {
            "isAsync": True,
            "status": "async_launched",
            "agentId": self.agent_id,
            "description": self.description,
            "resolvedModel": self.agent.request_config.model,
            "prompt": self.prompt,
            "outputFile": self.agent.conversation.recorder.path,
            "canReadOutputFile": True,
            "canContinueAgent": False,
        }
        return ToolResult(text, detail)


def _content_text(content: list[dict[str, Any]]) -> str:
    return "\n".join(str(block.get("text", "")) for block in content)
