"""Runs the hooks of an event and combines their outcomes.

    outcome = await hooks.dispatch(HookEvent("PreToolUse", fields))      # a HookOutcome

At an event every matching hook runs, all at once, with the fields as JSON on its standard input.
It returns an exit code (0 success, 2 block, anything else an error that blocks nothing) or, with
0, JSON on its standard output. Hooks of a project run only if the directory is trusted. Some
hooks get an environment file: lines such as `export NODE_ENV=test` that they append set variables
for later commands.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from copy import copy
from typing import Any, Final

import msgspec

from steno.agent.child_process import run_program
from steno.agent.events import Event, HookEnded, HookStarted
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.hooks.outcomes import HookOutcome, HookRun, HookStatus, combine_runs, parse_run
from steno.format.client_settings import PROJECT_LAYERS, HookCommand
from steno.format.lenient_json import as_object
from steno.format.tool_catalogue import AGENT_TOOLS

_READ_SCRIPT: Final = '. "$0" > /dev/null 2>&1; env -0'
_TIMEOUT_SECONDS: Final = 10.0
# What every shell sets for itself.
_BASH_VARIABLES: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_PRIVATE_MODE: Final = 0o700


class HookEnvironmentFile(msgspec.Struct):
    """The environment file of a session, and the variables read from it."""

    path: str
    variables: dict[str, str] = {}

    def prepare(self) -> None:
        """Create the directory of the file; hooks create the file."""
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=_PRIVATE_MODE, exist_ok=True)

    async def read(self, cwd: str, env: Mapping[str, str]) -> None:
        """Read the variables that hooks have exported."""
        bash = shutil.which("bash", path=env.get("PATH"))
        if bash is None or not self._exists():
            return
        command = (bash, "-c", _READ_SCRIPT, self.path)
        finished = await run_program(command, b"", cwd=cwd, env=dict(env), time_limit=_TIMEOUT_SECONDS)
        for pair in finished.stdout.split("\0"):
            name, separator, value = pair.partition("=")
            if separator and name not in _BASH_VARIABLES and env.get(name) != value:
                self.variables[name] = value

    def _exists(self) -> bool:
        return os.path.isfile(self.path)

    def remove(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            os.unlink(self.path)


_PLAIN_MATCHER: Final = re.compile(r"[\w\- ,|]*")
_BLOCK_EXIT_CODE: Final = 2


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hook runs: the same for every event."""

    session_id: str
    transcript_path: str
    cwd: str
    project: str
    permission_mode: str = "default"
    env: Mapping[str, str] = {}
    env_file: str = ""
    """A file that a hook may write `export` lines to, for later commands."""
    agent: dict[str, str] = {}
    """In a sub-agent: its `agent_id` and `agent_type`."""


class HookDispatcher:
    """The hooks of a session.

    Args:
        hooks: those of the settings, in order.
        get_context: returns where a hook runs now.
        trusted: whether the project may run its own.
        matches_rule: whether a tool call matches a permission rule; without it a hook with a
            condition always runs.
        emit: receives an event when a hook starts and ends.
    """

    def __init__(
        self,
        hooks: tuple[HookCommand, ...],
        get_context: Callable[[], HookContext],
        *,
        trusted: bool,
        matches_rule: Callable[[str, str, dict[str, Any]], bool] | None = None,
        emit: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._hooks = tuple(hook for hook in hooks if trusted or hook.layer not in PROJECT_LAYERS)
        self._matches_rule = matches_rule
        self._emit = emit
        self.get_context = get_context
        self._background: set[asyncio.Task[HookRun]] = set()

    def for_agent(self, get_context: Callable[[], HookContext]) -> "HookDispatcher":
        """Return the dispatcher of one agent of the session; background hooks are those of the session."""
        dispatcher = copy(self)
        dispatcher.get_context = get_context
        return dispatcher

    def matching_hooks(self, event: HookEvent) -> tuple[HookCommand, ...]:
        """Return the hooks of an event, each command once."""
        hooks_by_command: dict[tuple[str, tuple[str, ...] | None], HookCommand] = {}
        for hook in self._hooks:
            if hook.event == event.name and self._applies(hook, event):
                hooks_by_command.setdefault((hook.command, hook.args), hook)
        return tuple(hooks_by_command.values())

    def _applies(self, hook: HookCommand, event: HookEvent) -> bool:
        match_field = event.spec.match_field
        if match_field and not matches(hook.matcher, event.matched_value):
            return False
        if not hook.condition:
            return True
        if match_field != "tool_name":
            return False
        tool_input = as_object(event.fields.get("tool_input")) or {}
        return self._matches_rule is None or self._matches_rule(hook.condition, event.matched_value, tool_input)

    async def dispatch(self, event: HookEvent, /) -> HookOutcome:
        """Run the hooks of an event and return what they decided."""
        hooks = self.matching_hooks(event)
        if not hooks:
            return HookOutcome()
        context = self.get_context()
        hook_input = _hook_input(event, context)
        foreground: list[Coroutine[None, None, HookRun]] = []
        for hook in hooks:
            run = self._run(hook, event, hook_input, context)
            if hook.background:
                task = asyncio.create_task(run)
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            else:
                foreground.append(run)
        # A cancelled dispatch cancels all of its hooks.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run) for run in foreground]
        return combine_runs(event, [parse_run(task.result()) for task in tasks])

    async def _run(self, hook: HookCommand, event: HookEvent, hook_input: bytes, context: HookContext) -> HookRun:
        self._emit(HookStarted(event.label, hook.command))
        try:
            return await _run_hook(hook, event, hook_input, context)
        finally:
            self._emit(HookEnded(event.label, hook.command))

    async def close(self) -> None:
        """Cancel the hooks that run in the background."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def matches(matcher: str, value: str) -> bool:
    """Whether a matcher matches a value.

    Empty and `*` match all; letters, digits, `_`, `-`, spaces, `,` and `|` are names, one or a
    list; anything else is a regular expression that may match anywhere.
    """
    if matcher in {"", "*"}:
        return True
    # Both names of a renamed tool match, whichever version the settings were written for.
    values = AGENT_TOOLS if value in AGENT_TOOLS else {value}
    if _PLAIN_MATCHER.fullmatch(matcher):
        return bool(values & {name.strip() for name in re.split(r"[|,]", matcher)})
    try:
        return any(re.search(matcher, candidate) for candidate in values)
    except (re.error, RecursionError, OverflowError):
        return matcher in values


def _hook_input(event: HookEvent, context: HookContext) -> bytes:
    fields = {
        "session_id": context.session_id,
        "transcript_path": context.transcript_path,
        "cwd": context.cwd,
        **({"permission_mode": context.permission_mode} if event.spec.has_mode else {}),
        **context.agent,
        "hook_event_name": event.name,
        **event.fields,
    }
    # The text of a model may hold a lone surrogate, which only escapes can encode.
    return json.dumps(fields, default=str).encode() + b"\n"


async def _run_hook(hook: HookCommand, event: HookEvent, hook_input: bytes, context: HookContext) -> HookRun:
    env = {**context.env, "CLAUDE_PROJECT_DIR": context.project}
    if context.env_file and event.spec.has_env_file:
        env["CLAUDE_ENV_FILE"] = context.env_file
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    command = (shell, "-c", hook.command) if hook.args is None else (hook.command, *hook.args)
    finished = await run_program(command, hook_input, cwd=context.cwd, env=env, time_limit=hook.timeout)
    if finished.timed_out:
        status: HookStatus = "timeout"
    else:
        status = "blocked" if finished.code == _BLOCK_EXIT_CODE else "failed" if finished.code else "success"
    return HookRun(
        event=event,
        command=" ".join((hook.command, *(hook.args or ()))),
        status=status,
        exit_code=finished.code,
        stdout=finished.stdout,
        stderr=finished.stderr,
        duration_ms=finished.duration_ms,
    )
