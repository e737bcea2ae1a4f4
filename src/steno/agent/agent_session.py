"""Builds an agent from options and settings; opens it, submits prompts, and closes it."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import msgspec

from steno.agent.checkpoints.checkpointer import FileCheckpointer
from steno.agent.child_process import remove_keys
from steno.agent.command_sandbox import CommandSandbox, ConfinedCommandRunner, SandboxRequest, create_sandbox
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.config.models import DEFAULT_MODEL, EFFORT_LEVELS, api_model_name, resolve_model, thinking_parameter
from steno.agent.config.settings import PermissionSettings, Settings, load_settings
from steno.agent.config.skills import (
    Skill,
    SkillTool,
    SlashCommand,
    discover_commands,
    discover_skills,
    list_skills,
    read_skill_text,
)
from steno.agent.context.compaction import ContextCompactor
from steno.agent.context.system_prompt import (
    BASE_PROMPT,
    Memory,
    discover_output_styles,
    find_output_style,
    language_instruction,
    load_memory,
    system_prompt,
)
from steno.agent.context.token_usage import PriceResponse, UsageMeter
from steno.agent.conversation import Conversation
from steno.agent.events import Event, Notice, TurnEnded
from steno.agent.hooks.dispatcher import HookContext, HookDispatcher, HookEnvironmentFile
from steno.agent.hooks.hook_events import HookEvent, TurnEvents
from steno.agent.loop import Agent, ModelClient, RequestConfig
from steno.agent.mcp.connections import McpConnections, find_servers, mcp_record_fields
from steno.agent.permission_store import GrantedRules, TurnGrants, TurnPermissions, take_skill_messages
from steno.agent.recorder import VERSION, Recorder, session_slug
from steno.agent.side_query import ask_model_text, search_web
from steno.agent.slash_dispatch import SlashDispatcher, shell_for
from steno.agent.subagents import AgentTool, SubagentDefinition, discover_definitions
from steno.agent.tool_executor import RuleScope, SubagentCheckpointer, ToolExecutor
from steno.agent.writable_session import WritableSession
from steno.errors import BadRequest, StenoError
from steno.format.paths import plan_path
from steno.format.tool_catalogue import ASKING_TOOLS
from steno.llm.messages_api import Block
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import PERMISSION_MODES, PermissionMode, RuleSource, parse_rules
from steno.session.transcript import load
from steno.store.environment import steno_home
from steno.store.file_source import FileSource
from steno.store.session_lock import SessionAnnouncement
from steno.tools.context import ToolContext
from steno.tools.protocol import Tool
from steno.tools.registry import ToolRegistry, builtin_tools


class AgentSession(msgspec.Struct, kw_only=True, eq=False):
    """An agent with everything that must be opened and closed with it."""

    agent: Agent
    settings: Settings
    compactor: ContextCompactor
    hook_dispatcher: HookDispatcher
    mcp_connections: McpConnections
    agent_tool: AgentTool
    slash_dispatcher: SlashDispatcher
    start_source: str = "startup"
    """Value of the `source` field of SessionStart hooks."""
    memory: Memory = Memory()
    env_file: HookEnvironmentFile
    sandbox: CommandSandbox | None = None
    """The sandbox for commands; None if it is disabled."""
    command_runner: ConfinedCommandRunner
    """Runs commands, sandboxed unless they are approved."""
    permission_mode: Callable[[], PermissionMode]
    """Returns the current permission mode."""
    granted_rules: GrantedRules
    """The rules that the user added during the session."""
    presence: SessionAnnouncement
    """Announces to other processes that the session is in use."""

    async def open(self) -> None:
        """Announce the session and run SessionStart hooks; their output precedes the first prompt."""
        agent, hooks = self.agent, self.agent.executor.hooks
        self.presence.open()
        for memory_file in self.memory.files:
            await hooks.dispatch(HookEvent("InstructionsLoaded", memory_file.hook_fields()))
        start = HookEvent("SessionStart", {"source": self.start_source, "model": agent.request_config.model})
        context = agent.executor.context
        if self.hook_dispatcher.matching_hooks(start):
            self.env_file.prepare()
        outcome = await hooks.dispatch(start)
        await self.env_file.read(context.cwd, context.env)
        context.env.update(self.env_file.variables)
        self.command_runner.extra_variables.update(self.env_file.variables)
        agent.emit_notices(outcome)
        agent.pending_attachments += outcome.records

    async def submit(self, prompt: str | list[Block]) -> TurnEnded:
        """Run a turn for a prompt; a prompt that begins with a slash may be a command."""
        return await self.slash_dispatcher.submit(prompt)

    async def close(self, reason: str = "other") -> None:
        """Stop everything that still runs and release the session file."""
        await self.agent.executor.hooks.dispatch(HookEvent("SessionEnd", {"reason": reason}))
        await self.agent_tool.close()
        await self.agent.executor.context.background.close()
        await self.command_runner.close()
        if self.sandbox is not None:
            self.sandbox.close()
        await self.hook_dispatcher.close()
        await self.mcp_connections.close()
        self.env_file.remove()
        self.presence.close()
        # Last: when another process can open the session, nothing may still be running here.
        self.agent.conversation.recorder.close()


def build_permissions(
    options: AgentOptions, permissions: PermissionSettings, env: Mapping[str, str]
) -> PermissionChecker:
    """Build the permission checker; `env` is the environment of the tools.

    Raises:
        BadRequest: The permission mode does not exist or is disabled.
    """
    layers = [
        RuleSource(allow=options.allowed, deny=options.disallowed),
        RuleSource(
            allow=tuple(rule.text for rule in permissions.allow),
            ask=tuple(rule.text for rule in permissions.ask),
            deny=tuple(rule.text for rule in permissions.deny),
        ),
    ]
    home = env.get("HOME", "")
    rules = parse_rules(layers, root=options.cwd, cwd=options.cwd, home=home)
    extra_folders = (*options.folders, *(rule.text for rule in permissions.directories))
    folders = (options.cwd, *(os.path.join(options.cwd, os.path.expanduser(folder)) for folder in extra_folders))
    return PermissionChecker(rules, _mode(options, permissions), options.cwd, folders, home=home)


def _mode(options: AgentOptions, permissions: PermissionSettings) -> PermissionMode:
    mode = options.mode or permissions.default_mode or "default"
    if mode not in PERMISSION_MODES:
        source_text = "" if options.mode else " in `permissions.defaultMode` of the settings"
        raise BadRequest(
            f"unknown permission mode{source_text}: {mode!r}", hint=f"Use one of {', '.join(PERMISSION_MODES)}."
        )
    if mode == "bypassPermissions" and permissions.bypass_disabled:
        raise BadRequest("bypassPermissions is disabled by managed settings")
    return mode


_SESSION_EVENTS: Final = TurnEvents()


def build_session(
    options: AgentOptions,
    writable_session: WritableSession,
    model: ModelClient,
    callbacks: AgentCallbacks,
    price: PriceResponse,
) -> AgentSession:
    """Build the agent of a session. MCP servers connect in the background.

    Raises:
        BadRequest: A mode, effort level or tool in the options does not exist.
    """
    return _SessionBuilder(options, writable_session, model, callbacks, price).build()


def open_checkpointer(writable_session: WritableSession, options: AgentOptions) -> FileCheckpointer:
    """Return the checkpointer of a session, with the checkpoints that it already has."""
    recorder = writable_session.conversation.recorder
    checkpointer = FileCheckpointer(options.config, recorder, options.cwd, home=steno_home(options.env))
    if os.path.exists(recorder.path):
        checkpointer.resume(load(FileSource(recorder.path)), origin=writable_session.forked_from)
    return checkpointer


class _SessionBuilder:
    """Builds one `AgentSession`."""

    def __init__(
        self,
        options: AgentOptions,
        writable_session: WritableSession,
        model: ModelClient,
        callbacks: AgentCallbacks,
        price: PriceResponse,
    ) -> None:
        self.options = options
        self.writable_session = writable_session
        self.model = model
        self.callbacks = callbacks
        self.price_response = price
        writable_session.conversation.recorder.set_entrypoint(options.entrypoint)
        self.source = "resume" if os.path.exists(writable_session.conversation.recorder.path) else "startup"
        self.notes: list[str] = []
        # Set while the tools and the system prompt are built.
        self.skill_listing = ""
        self.meter: UsageMeter | None = None
        self.commands: tuple[SlashCommand, ...] = ()
        self.skills: tuple[Skill, ...] = ()
        self.memory = Memory()
        # Order matters: each of the following uses the previous ones.
        env_file = os.path.join(steno_home(options.env), "hook-env", f"{writable_session.id}.sh")
        self.env_file = HookEnvironmentFile(env_file)
        self.settings = settings = load_settings(
            options.cwd, trusted=options.trusted, flags=options.settings, env=options.env
        )
        self.notes += map(str, settings.notes)
        self.thinking = thinking_parameter(
            options.thinking,
            {**options.env, **settings.env},
            by_default=settings.always_thinking,
            max_tokens=options.max_tokens,
        )
        self.effort = options.effort or settings.effort
        if self.effort and self.effort not in EFFORT_LEVELS:
            raise BadRequest(f"unknown effort level: {self.effort!r}", hint=f"Use one of {', '.join(EFFORT_LEVELS)}.")
        self.permissions = build_permissions(options, self.settings.permissions, self._environment())
        self.granted_rules = GrantedRules(options.cwd, options.env)
        self.sandbox = self._build_sandbox()
        self.command_runner = self._build_runner()
        self.checkpointer = open_checkpointer(writable_session, options)
        self.hook_dispatcher = HookDispatcher(
            self.settings.hooks,
            lambda: self._hook_context(self.main_context, self.permissions.mode, {}),
            trusted=options.trusted,
            matches_rule=self.permissions.matches_rule,
            emit=callbacks.emit,
        )
        servers, notes = find_servers(
            options.cwd,
            settings,
            trusted=options.trusted,
            flags=options.mcp_config,
            strict=options.strict_mcp,
            env=options.env,
        )
        self.notes += map(str, notes)
        self.mcp_connections = McpConnections(servers, cwd=options.cwd, env=self._environment())
        self.definitions, notes = discover_definitions(
            options.cwd, trusted=options.trusted, agents_json=options.agents, env=options.env
        )
        self.notes += map(str, notes)
        self.main_context = self._build_tool_context()

    def build(self) -> AgentSession:
        """Return the session."""
        writable_session = self.writable_session
        context = self.main_context
        self.checkpointer.notice = lambda words: self.callbacks.emit(Notice(words, "warning"))
        self.checkpointer.has_background_commands = lambda: any(
            task.status == "running" for task in context.background.tasks.values()
        )
        agent_tool = self._build_agent_tool(self.callbacks.emit, 0)
        tools = self._build_registry(agent_tool)
        self.mcp_connections.start()
        agent, grants = self._build_agent(
            writable_session.conversation, tools, context, self._system_parts(), self._choose_model()
        )
        agent.executor.checkpointer = self.checkpointer
        agent.meter.context_size = writable_session.context_size
        agent.piped_input = self.options.piped
        writable_session.conversation.recorder.on_slug = self._set_plan_file
        agent.interactive = self.options.entrypoint == "cli"
        agent.count_pending_agents = lambda: agent_tool.background_count
        agent.subagent_types = tuple(agent_tool.type_names)
        context.notify = lambda words: agent.inbox.append((words, True))
        agent.compactor = compactor = self._build_compactor()
        for note in (*self.notes, *self.permissions.rules.problems):
            self.callbacks.emit(Notice(note, "warning"))
        return AgentSession(
            agent=agent,
            settings=self.settings,
            compactor=compactor,
            hook_dispatcher=self.hook_dispatcher,
            mcp_connections=self.mcp_connections,
            agent_tool=agent_tool,
            sandbox=self.sandbox,
            command_runner=self.command_runner,
            slash_dispatcher=SlashDispatcher(agent, compactor, grants, self.commands, self.skills),
            start_source=self.source,
            memory=self.memory,
            env_file=self.env_file,
            permission_mode=lambda: grants.permissions.mode,
            granted_rules=self.granted_rules,
            presence=SessionAnnouncement(self.options.config, writable_session.id, self.options.cwd, VERSION),
        )

    # Parts

    def _build_compactor(self) -> ContextCompactor:
        return ContextCompactor(window=self.options.window, automatic=self.settings.auto_compact)

    def _build_agent(
        self,
        conversation: Conversation,
        tools: ToolRegistry,
        context: ToolContext,
        system_parts: list[str],
        model: str,
        turn_events: TurnEvents = _SESSION_EVENTS,
        mode: str = "",
    ) -> tuple[Agent, TurnGrants]:
        # A sub-agent uses the permission mode of the session unless it has its own.
        permissions = TurnPermissions(
            self.permissions,
            self.main_context,
            self.sandbox,
            self.granted_rules,
            own_mode=mode,
            can_confine=self.command_runner.can_confine,
        )
        executor = self._build_executor(tools, context, permissions, turn_events)
        # The usage of sub-agents counts towards the usage and limits of the session.
        meter = UsageMeter(self.options.limits, price=self.price_response, clock=time.monotonic, parent=self.meter)
        self.meter = self.meter or meter
        if self.sandbox is not None:
            system_parts = [*system_parts, self.sandbox.prompt_text()]
        config = RequestConfig(
            model=model,
            max_tokens=self.options.max_tokens,
            system=system_prompt(system_parts, cwd=context.cwd),
            thinking=self.thinking,
            effort=self.effort,
        )
        agent = Agent(self.model, conversation, executor, config, meter)
        agent.turn_events = turn_events
        grants = TurnGrants(agent, permissions, resolve_model)
        executor.take_companions = lambda: take_skill_messages(context, grants)
        context.ask_model = partial(ask_model_text, agent)
        context.search_web = partial(search_web, agent)
        context.run_shell_line = shell_for(executor)
        return agent, grants

    def _build_executor(
        self, tools: ToolRegistry, context: ToolContext, permissions: TurnPermissions, turn_events: TurnEvents
    ) -> ToolExecutor:
        agent_facts = {
            key: turn_events.agent_facts[key] for key in ("agent_id", "agent_type") if turn_events.agent_facts
        }
        executor = ToolExecutor(
            tools=tools,
            context=context,
            permission_checker=permissions,
            emit=self.callbacks.emit,
            hooks=self.hook_dispatcher.for_agent(lambda: self._hook_context(context, permissions.mode, agent_facts)),
            result_fields=lambda call: mcp_record_fields(context, call),
            add_rules=self._add_rules,
        )
        if self.callbacks.request_approval is not None:
            executor.request_approval = self.callbacks.request_approval
        context.on_progress = executor.report_output
        return executor

    def _add_rules(self, rules: tuple[str, ...], scope: RuleScope) -> None:
        """Add granted rules; if they cannot be saved, they still apply to this session."""
        try:
            self.granted_rules.add(rules, scope)
        except StenoError as error:
            self.callbacks.emit(Notice(str(error), "warning"))

    def _build_sandbox(self) -> CommandSandbox | None:
        options = self.options
        request = SandboxRequest(
            cwd=options.cwd,
            config=options.config,
            env=dict(options.env),
            folders=options.folders,
            requested=options.sandbox,
        )
        sandbox = create_sandbox(request, self.settings, self.permissions.rules, self.notes)
        if sandbox is not None:
            sandbox.on_notice = lambda message: self.callbacks.emit(Notice(message))
        return sandbox

    def _build_runner(self) -> ConfinedCommandRunner:
        runner = ConfinedCommandRunner(
            self.permissions.rules, self.permissions.folders, self.options.env, self.settings.env
        )
        runner.notice = lambda message: self.callbacks.emit(Notice(message, "warning"))
        return runner

    def _build_registry(self, agent_tool: AgentTool) -> ToolRegistry:
        options = self.options
        skills, notes = discover_skills(options.cwd, trusted=options.trusted, env=options.env)
        self.skills = skills
        self.notes += map(str, notes)
        self.commands, notes = discover_commands(options.cwd, trusted=options.trusted, env=options.env)
        self.notes += map(str, notes)
        self.skill_listing = list_skills(self.skills, self.commands)
        tools: list[Tool] = [*builtin_tools(), agent_tool, *options.extra_tools]
        if self.skill_listing:
            tools.append(SkillTool(self.skills, self.commands))
        return self._available_tools(tools)

    def _build_agent_tool(self, emit: Callable[[Event], None], depth: int) -> AgentTool:
        def spawn(agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
            return self._build_subagent(agent_id, kind, model, context, depth + 1)

        return AgentTool(spawn, self.definitions, emit, depth=depth)

    def _build_subagent(self, agent_id: str, agent_type: str, model: str, context: ToolContext, depth: int) -> Agent:
        definition = next(candidate for candidate in self.definitions if candidate.name == agent_type)
        session_recorder = self.writable_session.conversation.recorder
        path = os.path.join(session_recorder.folder, "subagents", f"agent-{agent_id}.jsonl")
        place = msgspec.structs.replace(session_recorder.composer.context, cwd=context.cwd, agent_id=agent_id)
        recorder = Recorder(path, place)
        subagent_context = self._build_tool_context()
        subagent_context.cwd = context.cwd
        tools = self._subagent_tools(definition, depth)
        requested_model = model or definition.model
        resolved_model = resolve_model(requested_model) or self._choose_model()
        turn_events = TurnEvents(
            agent_facts={"agent_id": agent_id, "agent_type": agent_type, "agent_transcript_path": path}
        )
        agent, _ = self._build_agent(
            Conversation(recorder),
            tools,
            subagent_context,
            [definition.prompt, *self._preloaded_skills(definition)],
            resolved_model,
            turn_events,
            self._subagent_mode(definition),
        )
        agent.executor.checkpointer = SubagentCheckpointer(self.checkpointer)
        agent.meter.limits = msgspec.structs.replace(self.options.limits, requests=definition.max_turns or None)
        subagent_context.notify = lambda text: agent.inbox.append((text, True))
        agent.compactor = self._build_compactor()
        return agent

    def _preloaded_skills(self, definition: SubagentDefinition) -> Iterator[str]:
        skills_by_name = {skill.name: skill for skill in self.skills}
        for name in definition.skills:
            skill_prompt = read_skill_text(skills_by_name[name]) if name in skills_by_name else ""
            if skill_prompt:
                yield skill_prompt
            else:
                message = f"agent {definition.name}: skill {name} not found"
                self.callbacks.emit(Notice(message, "warning"))

    def _subagent_mode(self, definition: SubagentDefinition) -> str:
        mode = definition.permission_mode
        is_bypass = mode == "bypassPermissions"
        return "" if is_bypass and self.settings.permissions.bypass_disabled else mode

    def _subagent_tools(self, definition: SubagentDefinition, depth: int) -> ToolRegistry:
        agent_tool = self._build_agent_tool(self.callbacks.emit, depth)
        registry = self._available_tools([*builtin_tools(), agent_tool])
        # Sub-agents cannot ask the user.
        return registry.filtered(lambda name: name not in ASKING_TOOLS and definition.may_use(name))

    def _available_tools(self, tools: list[Tool]) -> ToolRegistry:
        """Filter the tools by the options, for the session and its sub-agents."""
        registry = ToolRegistry(tools, additional_tools=self.mcp_connections.tools)
        requested = self.options.tools
        # Structured output is requested by another option and does not depend on --tools.
        extra_names = {tool.spec.name for tool in self.options.extra_tools}
        return registry if requested is None else registry.filtered({*requested, *extra_names}.__contains__)

    def _build_tool_context(self) -> ToolContext:
        session_id = self.writable_session.id
        context = ToolContext(
            cwd=self.options.cwd,
            project=self.options.cwd,
            session_id=session_id,
            folder=self.writable_session.conversation.recorder.folder,
            env=self._environment(),
            ask=self.callbacks.ask_user,
            before_change=self.checkpointer.before_change,
            folders=self.permissions.folders,
            runner=self.command_runner,
            visibility_filter=self.permissions.visibility_filter,
        )
        context.tasks.folder = os.path.join(self.options.config, "tasks", session_id)
        slug = self.writable_session.conversation.recorder.slug or session_slug(session_id)
        context.plan.file = self._plan_path(slug)
        if self.sandbox is not None:
            context.sandbox = self.sandbox
            context.env["TMPDIR"] = self.sandbox.policy.tmp
        return context

    def _set_plan_file(self, slug: str) -> None:
        self.main_context.plan.file = self._plan_path(slug)

    def _plan_path(self, slug: str) -> str:
        return os.path.join(self.options.config, plan_path(slug))

    def _environment(self) -> dict[str, str]:
        """Return the environment for child processes, without API keys."""
        return remove_keys({**self.options.env, **self.settings.env, **self.env_file.variables})

    def _hook_context(self, context: ToolContext, mode: str, agent_facts: dict[str, str]) -> HookContext:
        return HookContext(
            session_id=self.writable_session.id,
            transcript_path=self.writable_session.conversation.recorder.path,
            cwd=context.cwd,
            project=self.options.cwd,
            permission_mode=mode,
            env=self._environment(),
            env_file=self.env_file.path,
            agent=agent_facts,
        )

    def _choose_model(self) -> str:
        # The 1M context window needs a beta header, which is chosen before settings are read.
        requested = self.options.model or api_model_name(self.writable_session.last_model or self.settings.model)
        return resolve_model(requested) or DEFAULT_MODEL

    def _system_parts(self) -> list[str]:
        options = self.options
        memory = load_memory(options.cwd, trusted=options.trusted, env=options.env)
        self.memory = memory
        self.notes += map(str, memory.notes)
        styles, notes = discover_output_styles(options.cwd, trusted=options.trusted, env=options.env)
        self.notes += map(str, notes)
        style = find_output_style(styles, self.settings.output_style)
        if style is None:
            self.notes.append(f"output style not found: {self.settings.output_style!r}")
        base_prompt = BASE_PROMPT if style is None or style.keeps_base_prompt else ""
        style_prompt = style.prompt if style is not None else ""
        return [
            options.system or base_prompt,
            style_prompt,
            language_instruction(self.settings.language),
            self.skill_listing,
            memory.text,
            options.more_system,
        ]
