"""Puts an agent together from what surrounds it: settings, memory, tools, rules, hooks, servers."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from steno.agent import gathering
from steno.agent.asides import consult
from steno.agent.calls import Caller
from steno.agent.checkpoints import Checkpoints
from steno.agent.command_runner import ConfiningRunner
from steno.agent.commands import Command, discover_commands
from steno.agent.compact import Compactor
from steno.agent.confined import Confined, Setting, confine
from steno.agent.conversation import Conversation
from steno.agent.definitions import Definition
from steno.agent.events import Event, Noticed
from steno.agent.gates import Bounds
from steno.agent.guarding import guard_for
from steno.agent.hooks import Hooks, Scene
from steno.agent.keeping import WithinKeeping
from steno.agent.keys import without_keys
from steno.agent.lending import Followed, Lending, opened_skills
from steno.agent.loop import Agent, Course, Model
from steno.agent.mcp import Connections
from steno.agent.mcp_results import record_fields
from steno.agent.memory import Memory, load_memory
from steno.agent.meter import Meter, Price
from steno.agent.models import DEFAULT_MODEL, bare_model, model_named
from steno.agent.options import Options, People
from steno.agent.prompt import BASE, language_words, system_prompt
from steno.agent.recorder import VERSION, Recorder
from steno.agent.rules_kept import Granted, Where
from steno.agent.searching import Searching
from steno.agent.sessions import Work
from steno.agent.skills import Skill, SkillTool, discover_skills, listing, skill_text
from steno.agent.slash import Slash, shell_of
from steno.agent.slugs import session_slug
from steno.agent.started import Started
from steno.agent.styles import discover_styles, pick_style
from steno.agent.subagents import AgentTool, Kind
from steno.errors import StenoError
from steno.format.paths import plan_path
from steno.format.tool_catalogue import ASKING_TOOLS
from steno.session.transcript import load
from steno.store.places import steno_home
from steno.store.presence import Presence
from steno.store.read import FileSource
from steno.tools.base import Tool
from steno.tools.context import ToolContext
from steno.tools.registry import ToolRegistry, file_tools, other_tools

__all__ = ["Options", "People", "Started", "points_of", "start"]

_WHOLE: Final = Bounds()


def start(options: Options, work: Work, model: Model, people: People, price: Price) -> Started:
    """Return an agent for a session. Servers connect in the background.

    Raises:
        BadRequest: a mode, a style or a tool is asked for that does not exist.
    """
    return _Making(options, work, model, people, price).done()


def points_of(work: Work, options: Options) -> Checkpoints:
    """Return the files of a session as they were at its prompts."""
    recorder = work.talk.recorder
    points = Checkpoints(options.config, recorder, options.cwd, home=steno_home(options.env))
    if os.path.exists(recorder.path):
        points.resume(load(FileSource(recorder.path)), origin=work.origin)
    return points


class _Making:
    """One agent in the making."""

    def __init__(
        self, options: Options, work: Work, model: Model, people: People, price: Price
    ) -> None:
        self.options = options
        self.work = work
        self.model = model
        self.people = people
        self.price = price
        work.talk.recorder.enter_by(options.entrypoint)
        self.source = "resume" if os.path.exists(work.talk.recorder.path) else "startup"
        self.notes: list[str] = []
        # Made with the tools and the system prompt, which tell of them.
        self.listing = ""
        self.meter: Meter | None = None
        self.commands: tuple[Command, ...] = ()
        self.skills: tuple[Skill, ...] = ()
        self.memory = Memory()
        # Each of these needs those before it.
        self.env_file = gathering.env_file(options, work.id)
        self.settings = gathering.settings(options, self.notes)
        self.thinking = gathering.thinking(options, self.settings)
        self.effort = gathering.effort(options, self.settings)
        self.guard = guard_for(options, self.settings.permissions, self._environment())
        self.granted = Granted(options.cwd, options.env)
        self.confined = self._confined()
        self.runner = self._runner()
        self.points = points_of(work, options)
        self.hooks = Hooks(
            self.settings.hooks, trusted=options.trusted, fitting=self.guard.is_named_by
        )
        found = gathering.servers(options, self.settings, self.notes)
        self.hooks.emit = self.people.emit
        self.servers = Connections(found, cwd=options.cwd, env=self._environment())
        self.definitions = gathering.definitions(options, self.notes)
        self.main = self._tool_context()

    def done(self) -> Started:
        """Return what has become of it."""
        work = self.work
        context = self.main
        self.points.notice = lambda words: self.people.emit(Noticed(words, "warning"))
        self.points.at_large = lambda: any(
            task.status == "running" for task in context.background.tasks.values()
        )
        agents = self._agent_tool(self.people.emit, 0)
        tools = self._registry(agents)
        self.servers.start()
        agent, lending = self._agent(work.talk, tools, context, self._system(), self._model())
        agent.caller.keeping = self.points
        agent.meter.context = work.context
        agent.piped = self.options.piped
        work.talk.recorder.on_name = self._name_plan
        agent.interactive = self.options.entrypoint == "cli"
        agent.pending_agents = lambda: agents.pending
        agent.kinds = tuple(agents.kinds)
        context.notify = lambda words: agent.inbox.append((words, True))
        agent.fit = compactor = self._compactor()
        for words in (*self.notes, *self.guard.rules.problems):
            self.people.emit(Noticed(words, "warning"))
        return Started(
            agent=agent,
            settings=self.settings,
            compactor=compactor,
            hooks=self.hooks,
            servers=self.servers,
            agents=agents,
            confined=self.confined,
            runner=self.runner,
            slash=Slash(agent, compactor, lending, self.commands, self.skills),
            source=self.source,
            memory=self.memory,
            env_file=self.env_file,
            mode=lambda: lending.guard.mode,
            granted=self.granted,
            presence=Presence(self.options.config, work.id, self.options.cwd, VERSION),
        )

    # Parts

    def _compactor(self) -> Compactor:
        return Compactor(window=self.options.window, automatic=self.settings.auto_compact)

    def _agent(
        self,
        talk: Conversation,
        tools: ToolRegistry,
        context: ToolContext,
        system: list[str],
        model: str,
        bounds: Bounds = _WHOLE,
        mode: str = "",
    ) -> tuple[Agent, Lending]:
        # Whoever works in a session does so in the mode that it is in.
        guard = Followed(
            self.guard,
            self.main,
            self.confined,
            self.granted,
            of_its_own=mode,
            confinable=self.runner.confinable,
        )
        caller = self._caller(tools, context, guard, bounds)
        # Whatever sub-agents cost is part of what the session costs, and of its limit.
        meter = Meter(self.options.limits, price=self.price, clock=time.monotonic, above=self.meter)
        self.meter = self.meter or meter
        if self.confined is not None:
            system = [*system, self.confined.told()]
        course = Course(
            model=model,
            max_tokens=self.options.max_tokens,
            system=system_prompt(system, cwd=context.cwd),
            thinking=self.thinking,
            effort=self.effort,
        )
        agent = Agent(self.model, talk, caller, course, meter)
        agent.bounds = bounds
        lending = Lending(agent, guard, model_named)
        caller.said = lambda: opened_skills(context, lending)
        context.ask_model = partial(consult, agent)
        context.search_web = Searching(agent)
        context.run_shell_line = shell_of(caller)
        return agent, lending

    def _caller(
        self, tools: ToolRegistry, context: ToolContext, guard: Followed, bounds: Bounds
    ) -> Caller:
        told = {key: bounds.agent[key] for key in ("agent_id", "agent_type") if bounds.agent}
        caller = Caller(
            tools=tools,
            context=context,
            guard=guard,
            emit=self.people.emit,
            gates=self.hooks.gates(lambda: self._scene(context, guard, told)),
            beside=lambda call: record_fields(context, call),
            learn=self._learn,
        )
        if self.people.consent is not None:
            caller.consent = self.people.consent
        context.progress = caller.grow
        return caller

    def _learn(self, rules: tuple[str, ...], place: Where) -> None:
        """Take up what the user has granted; that it cannot be kept does not take it back."""
        try:
            self.granted.learn(rules, place)
        except StenoError as error:
            self.people.emit(Noticed(str(error), "warning"))

    def _confined(self) -> Confined | None:
        options = self.options
        setting = Setting(
            cwd=options.cwd,
            config=options.config,
            env=dict(options.env),
            folders=options.folders,
            wanted=options.sandbox,
        )
        confined = confine(setting, self.settings, self.guard.rules, self.notes)
        if confined is not None:
            confined.notice = lambda words: self.people.emit(Noticed(words))
        return confined

    def _runner(self) -> ConfiningRunner:
        runner = ConfiningRunner(
            self.guard.rules, self.guard.folders, self.options.env, self.settings.env
        )
        runner.notice = lambda words: self.people.emit(Noticed(words, "warning"))
        return runner

    def _registry(self, agents: AgentTool) -> ToolRegistry:
        options = self.options
        found, notes = discover_skills(options.cwd, trusted=options.trusted, env=options.env)
        self.skills = found
        self.notes += map(str, notes)
        self.commands, notes = discover_commands(
            options.cwd, trusted=options.trusted, env=options.env
        )
        self.notes += map(str, notes)
        self.listing = listing(self.skills, self.commands)
        tools: list[Tool] = [*file_tools(), *other_tools(), agents, *options.extra_tools]
        if self.listing:
            tools.append(SkillTool(self.skills, self.commands))
        return self._offered(tools)

    def _agent_tool(self, emit: Callable[[Event], None], depth: int) -> AgentTool:
        kinds = tuple(
            Kind(each.name, each.description, each.origin == "built-in", each.background)
            for each in self.definitions
        )

        def spawn(agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
            return self._sub_agent(agent_id, kind, model, context, depth + 1)

        return AgentTool(spawn, kinds, emit, depth=depth)

    def _sub_agent(
        self, agent_id: str, kind: str, model: str, context: ToolContext, depth: int
    ) -> Agent:
        definition = next(each for each in self.definitions if each.name == kind)
        own = self.work.talk.recorder
        path = os.path.join(own.folder, "subagents", f"agent-{agent_id}.jsonl")
        place = msgspec.structs.replace(own.compose.place, cwd=context.cwd, agent_id=agent_id)
        recorder = Recorder(path, place)
        inner = self._tool_context()
        inner.cwd = context.cwd
        tools = self._tools_for(definition, depth)
        asked = model or definition.model
        named = model_named(asked) or self._model()
        bounds = Bounds(
            agent={"agent_id": agent_id, "agent_type": kind, "agent_transcript_path": path}
        )
        agent, _ = self._agent(
            Conversation(recorder),
            tools,
            inner,
            [definition.prompt, *self._taught(definition)],
            named,
            bounds,
            self._mode_of(definition),
        )
        agent.caller.keeping = WithinKeeping(self.points)
        agent.meter.limits = msgspec.structs.replace(
            self.options.limits, requests=definition.max_turns or None
        )
        inner.notify = lambda words: agent.inbox.append((words, True))
        agent.fit = self._compactor()
        return agent

    def _taught(self, definition: Definition) -> Iterator[str]:
        """Yield the skills that a sub-agent has from the beginning."""
        known = {each.name: each for each in self.skills}
        for name in definition.skills:
            words = skill_text(known[name]) if name in known else ""
            if words:
                yield words
            else:
                told = (
                    f"the agent {definition.name} is to have the skill {name}, which is not there"
                )
                self.people.emit(Noticed(told, "warning"))

    def _mode_of(self, definition: Definition) -> str:
        mode = definition.permission_mode
        free = mode == "bypassPermissions"
        return "" if free and self.settings.permissions.bypass_disabled else mode

    def _tools_for(self, definition: Definition, depth: int) -> ToolRegistry:
        inner = self._agent_tool(self.people.emit, depth)
        registry = self._offered([*file_tools(), *other_tools(), inner])
        # Nobody talks to a sub-agent.
        return registry.only(lambda name: name not in ASKING_TOOLS and definition.may_use(name))

    def _offered(self, tools: list[Tool]) -> ToolRegistry:
        """Return the tools that may be there at all, in the session as in its sub-agents."""
        registry = ToolRegistry(tools, more=self.servers.tools)
        wanted = self.options.tools
        # The tool for an answer in a shape was asked for by another option.
        extra = {tool.spec.name for tool in self.options.extra_tools}
        return registry if wanted is None else registry.only({*wanted, *extra}.__contains__)

    def _tool_context(self) -> ToolContext:
        session = self.work.id
        context = ToolContext(
            cwd=self.options.cwd,
            project=self.options.cwd,
            session_id=session,
            folder=self.work.talk.recorder.folder,
            env=self._environment(),
            ask=self.people.ask,
            before_change=self.points.before_change,
            folders=self.guard.folders,
            runner=self.runner,
            shown_in=self.guard.shown_in,
        )
        context.tasks.folder = os.path.join(self.options.config, "tasks", session)
        slug = self.work.talk.recorder.slug or session_slug(session)
        context.plan.file = self._plan_file(slug)
        if self.confined is not None:
            context.sandbox = self.confined
            context.env["TMPDIR"] = self.confined.policy.tmp
        return context

    def _name_plan(self, slug: str) -> None:
        """Name the file of the plan after the session."""
        self.main.plan.file = self._plan_file(slug)

    def _plan_file(self, slug: str) -> str:
        return os.path.join(self.options.config, plan_path(slug))

    def _environment(self) -> dict[str, str]:
        """Return what programs see: without the key, which is nobody's business."""
        return without_keys({**self.options.env, **self.settings.env, **self.env_file.found})

    def _scene(self, context: ToolContext, guard: Followed, agent: dict[str, str]) -> Scene:
        return Scene(
            session_id=self.work.id,
            transcript_path=self.work.talk.recorder.path,
            cwd=context.cwd,
            project=self.options.cwd,
            permission_mode=guard.mode,
            env=self._environment(),
            env_file=self.env_file.path,
            agent=agent,
        )

    def _model(self) -> str:
        # The large window has to be asked for before settings are read; without it is safe.
        asked = self.options.model or bare_model(self.work.model or self.settings.model)
        return model_named(asked) or DEFAULT_MODEL

    def _system(self) -> list[str]:
        options = self.options
        memory = load_memory(options.cwd, trusted=options.trusted, env=options.env)
        self.memory = memory
        self.notes += map(str, memory.notes)
        styles, notes = discover_styles(options.cwd, trusted=options.trusted, env=options.env)
        self.notes += map(str, notes)
        style = pick_style(styles, self.settings.output_style)
        if style is None:
            self.notes.append(f"there is no output style {self.settings.output_style!r}")
        base = BASE if style is None or style.keeps_coding else ""
        words = style.prompt if style is not None else ""
        return [
            options.system or base,
            words,
            language_words(self.settings.language),
            self.listing,
            memory.text,
            options.more_system,
        ]
