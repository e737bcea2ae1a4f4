"""Sub-agents: their definitions, and the `Agent` tool that runs a task in one.

Definitions are read from `.claude/agents/*.md` of the project and the user and from the command
line (JSON); two are built in. If names are equal the nearest counts: command line, project, user.

A sub-agent sees only its task, and its caller only its last message. Its totals are recorded with
the result of the call. One in the background returns at once, and notifies the caller when it is
done.
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
    """A kind of sub-agent."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """The tools that it may use; None for all that there are."""
    disallowed_tools: tuple[str, ...] = ()
    """Tools that it may not use (`disallowedTools`)."""
    model: str = ""
    """A model's name; empty or `inherit` for that of its parent."""
    permission_mode: str = ""
    max_turns: int = 0
    """0 for no limit."""
    background: bool = False
    skills: tuple[str, ...] = ()
    color: str = ""
    origin: DefinitionOrigin = "user"
    path: str = ""

    def may_use(self, tool: str) -> bool:
        """Return whether a tool is among its own; `mcp__server` stands for all of a server."""
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
You work on one task that another agent gave you. Do all of it and nothing beyond it.

Look before you act: search widely when you do not know where something is, read the file when you
do. Try a second way when the first finds nothing. Change existing files rather than adding new
ones, and write no documents that nobody asked for.

Your last message is all that the other agent will read of your work. Say in it what you found or
did, with absolute paths and the few lines of code that matter, and what you could not do and why.
"""
_EXPLORE_PROMPT: Final = """\
You find things in a code base for another agent. You only look: never create, change, move or
delete anything, neither with a tool nor with a command, not even in a temporary folder.

Start broad with file names and patterns, then read what looks right. Make independent searches at
once, side by side. Use the shell only to look around (list, show, log, diff).

Be as thorough as the task asks for, and quick. Answer with what you found: absolute paths, line
numbers, the lines that matter, and where you looked in vain.
"""

BUILT_IN_SUBAGENTS: Final = (
    SubagentDefinition(
        name="general-purpose",
        description=(
            "Works on a task of several steps by itself: searching when the first look may not"
            " find it, research over many files, changes that can be described completely. It has"
            " all tools."
        ),
        prompt=_GENERAL_PROMPT,
        origin="built-in",
    ),
    SubagentDefinition(
        name="Explore",
        description=(
            "Looks around in a code base and changes nothing: finds files, names and the way"
            " things hang together. Say how thorough it should be: quick, medium or very thorough."
        ),
        prompt=_EXPLORE_PROMPT,
        tools=("Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch"),
        origin="built-in",
    ),
)


def discover_definitions(
    project: str, *, trusted: bool, agents_json: str = "", env: Mapping[str, str] | None = None
) -> tuple[tuple[SubagentDefinition, ...], tuple[ConfigNote, ...]]:
    """Return every kind of sub-agent by name; `agents_json` is what `--agents` gave."""
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
    """Read a sub-agent's file; one without a name or a purpose is noted and left out."""
    head, body = split_front_matter(text)
    notes.extend(ConfigNote(path, message) for message in head.notes)
    name, description = head.text("name").strip(), head.text("description").strip()
    if not name or not description:
        notes.append(ConfigNote(path, "left out: a sub-agent needs a `name` and a `description`"))
        return None
    max_turns = head.text("maxTurns").strip()
    permission_mode = head.text("permissionMode")
    if permission_mode == "bypassPermissions" and origin == "project":
        notes.append(ConfigNote(path, "`permissionMode` is left out: a project cannot lift all limits"))
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
    """Read what `--agents` gives: an object of names, each with description, prompt, tools, model."""
    definitions: list[SubagentDefinition] = []
    for name, value in parse_json(text, "--agents", notes).items():
        fields = as_object(value) or {}
        description, prompt = get_text(fields, "description"), get_text(fields, "prompt")
        if not description or not prompt:
            message = f"`{name}` is left out: it needs a `description` and a `prompt`"
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
"""The kind of agent that works where none is named."""
_MAX_DEPTH: Final = 5
_FILE_MODE: Final = 0o600
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


class SpawnSubagent(Protocol):
    """Makes the agent for a task."""

    def __call__(self, agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
        """Return an agent of that kind that writes its own file; raises for an unknown kind."""
        ...


def new_subagent_id() -> str:
    """Return a new name for a sub-agent, of the form that clients since 2.1.200 give."""
    return f"a{secrets.token_hex(_ID_BYTES)}"


class AgentTool:
    """The tool that gives a task to another agent."""

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
        """The names of the kinds that there are."""
        return list(self._types)

    @property
    def types(self) -> tuple[SubagentDefinition, ...]:
        """The kinds that there are."""
        return tuple(self._types.values())

    @property
    def background_count(self) -> int:
        """How many work in the background."""
        return len(self._running)

    @property
    def spec(self) -> ToolSpec:
        """What it says of itself."""
        descriptions = "\n".join(
            f"- {agent_type.name}: {agent_type.description}" for agent_type in self._types.values()
        )
        return builtin_spec(
            AGENT,
            description=(
                "Give a task of its own to another agent, which works alone and tells you its "
                f"result. It sees only the prompt. Kinds (subagent_type):\n{descriptions}"
            ),
            schema=_SCHEMA,
        )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Let an agent do the task."""
        default_type = _DEFAULT_TYPE if _DEFAULT_TYPE in self._types else next(iter(self._types))
        agent_type = str(tool_input.get("subagent_type") or default_type)
        if agent_type not in self._types:
            raise ToolFailure(f"There is no agent {agent_type!r}. There are: {', '.join(self._types)}.")
        if self._depth >= _MAX_DEPTH:
            raise ToolFailure(f"Agents may call agents {_MAX_DEPTH} deep; this one is as deep.")
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
        """Wait until one of those in the background is done, but not longer than that."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """End what still runs in the background."""
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
            f"<task-notification>\nAgent {task.agent_id} ({task.description}) is done.\n{text}\n</task-notification>"
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
    """One task that an agent works on."""

    def __init__(self, agent: Agent, agent_id: str, agent_type: str, tool_input: dict[str, Any], call_id: str) -> None:
        self.agent = agent
        self.agent_id = agent_id
        self.agent_type = agent_type
        self.call_id = call_id
        self.description = str(tool_input["description"])
        self.prompt = str(tool_input["prompt"])
        self.tool_uses = 0

    async def run(self) -> ToolResult:
        """Do it; return what the caller reads of it."""
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
        """End what it started and left running: nobody is there any more who could be told."""
        for tool in self.agent.executor.tools:
            if isinstance(tool, AgentTool):
                await tool.close()
        await self.agent.executor.context.background.close()
        self.agent.conversation.recorder.close()

    def started_event(self, *, background: bool, depth: int) -> events.SubagentStarted:
        """Return that it begins."""
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
        """Return what came of it."""
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
        """Return what the caller reads while it works."""
        text = f"Agent {self.agent_id} works in the background; you will be told when it is done."
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
