"""Runs the hooks of an event and combines their outcomes.

    dispatch = dispatcher.bind(get_context)
    outcome = await dispatch("PreToolUse", facts)      # a HookOutcome

At an event every matching hook runs, all at once, with the facts as JSON on its standard input.
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
from typing import Any, Final

import msgspec

from steno.agent.child_process import run_program
from steno.agent.config.settings import PROJECT_LAYERS, Hook
from steno.agent.events import Event, HookEnded, HookStarted
from steno.agent.hooks.outcomes import (
    CombinedHookResult,
    DispatchHooks,
    HookOutcome,
    HookRun,
    HookStatus,
    build_outcome,
    combine_runs,
)
from steno.format.lenient_json import as_object
from steno.format.tool_catalogue import AGENT_TOOLS

_READ_SCRIPT: Final = '. "$0" > /dev/null 2>&1; env -0'
_TIMEOUT_SECONDS: Final = 10.0
# What every shell sets for itself.
_BASH_VARIABLES: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_PRIVATE_MODE: Final = 0o700


class HookEnvironmentFile(msgspec.Struct):
    """The file, and what was found in it."""

    path: str
    variables: dict[str, str] = {}

    def prepare(self) -> None:
        """Make room for the file, which hooks make themselves."""
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=_PRIVATE_MODE, exist_ok=True)

    async def read(self, cwd: str, env: Mapping[str, str]) -> None:
        """Take what hooks have left."""
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
        """Take the file away."""
        with suppress(OSError):
            os.unlink(self.path)


EVENT_MATCH_FACTS: Final[Mapping[str, str]] = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "Setup": "trigger",
    "UserPromptSubmit": "",
    "UserPromptExpansion": "command_name",
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PermissionDenied": "tool_name",
    "PostToolUse": "tool_name",
    "PostToolUseFailure": "tool_name",
    "PostToolBatch": "",
    "Stop": "",
    "StopFailure": "error",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "Notification": "notification_type",
    "ConfigChange": "source",
    "InstructionsLoaded": "load_reason",
    "CwdChanged": "",
    "TaskCreated": "",
    "TaskCompleted": "",
    "TeammateIdle": "",
    "WorktreeCreate": "",
    "WorktreeRemove": "",
}
"""Every event, and which of its facts a matcher is compared with."""

_ENV_FILE_EVENTS: Final = frozenset({"SessionStart", "Setup", "CwdChanged"})
# The events with something to match that sessions do not name them by.
_UNQUALIFIED_EVENTS: Final = frozenset({"SubagentStop", "UserPromptExpansion"})
# At these no mode is told: the session has not begun, is over, or is about to be summed up.
_MODELESS_EVENTS: Final = frozenset(
    {"SessionStart", "SessionEnd", "InstructionsLoaded", "PreCompact", "PostCompact", "SubagentStart"}
)
_TOOL_EVENTS: Final = frozenset(name for name, fact in EVENT_MATCH_FACTS.items() if fact == "tool_name")
_PLAIN_MATCHER: Final = re.compile(r"[\w\- ,|]*")
_BLOCK_EXIT_CODE: Final = 2


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hook runs: what every hook is told, whatever the event."""

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
        trusted: whether the project may run its own.
        matches_rule: says whether the call at hand fits a permission rule; without it a hook with a
            condition always runs.
    """

    def __init__(
        self,
        hooks: tuple[Hook, ...],
        *,
        trusted: bool,
        matches_rule: Callable[[str, str, dict[str, Any]], bool] | None = None,
    ) -> None:
        self._hooks = tuple(hook for hook in hooks if trusted or hook.layer not in PROJECT_LAYERS)
        self._matches_rule = matches_rule
        self._background: set[asyncio.Task[HookRun]] = set()
        self.emit: Callable[[Event], None] = lambda _event: None
        """Hears when a hook begins and ends."""

    def matching_hooks(self, event: str, facts: Mapping[str, Any]) -> tuple[Hook, ...]:
        """Return the hooks that an event concerns, each command once."""
        value = str(facts.get(EVENT_MATCH_FACTS.get(event, "")) or "")
        hooks_by_command: dict[tuple[str, tuple[str, ...] | None], Hook] = {}
        for hook in self._hooks:
            if hook.event != event or not self._applies(hook, value, facts):
                continue
            hooks_by_command.setdefault((hook.command, hook.args), hook)
        return tuple(hooks_by_command.values())

    def _applies(self, hook: Hook, value: str, facts: Mapping[str, Any]) -> bool:
        if EVENT_MATCH_FACTS.get(hook.event) and not matches(hook.matcher, value):
            return False
        if not hook.condition:
            return True
        if hook.event not in _TOOL_EVENTS:
            return False
        if self._matches_rule is None:
            return True
        tool_input = as_object(facts.get("tool_input")) or {}
        return self._matches_rule(hook.condition, str(facts.get("tool_name")), tool_input)

    async def run_hooks(self, event: str, facts: Mapping[str, Any], context: HookContext) -> CombinedHookResult:
        """Run the hooks of an event and return what they said."""
        hooks = self.matching_hooks(event, facts)
        if not hooks:
            return CombinedHookResult()
        hook_input = _hook_input(event, facts, context)
        match_fact = EVENT_MATCH_FACTS.get(event, "")
        name = f"{event}:{facts[match_fact]}" if facts.get(match_fact) and event not in _UNQUALIFIED_EVENTS else event
        foreground: list[Hook] = []
        for hook in hooks:
            if hook.background:
                task = asyncio.create_task(self._run_and_emit(hook, name, hook_input, context))
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            else:
                foreground.append(hook)
        ran = await _run_all([self._run_and_emit(hook, name, hook_input, context) for hook in foreground])
        return combine_runs(event, ran)

    async def _run_and_emit(self, hook: Hook, name: str, hook_input: bytes, context: HookContext) -> HookRun:
        """Run one hook, and let those who watch know."""
        self.emit(HookStarted(name, hook.command))
        try:
            return await _run_hook(hook, name, hook_input, context)
        finally:
            self.emit(HookEnded(name, hook.command))

    def bind(
        self, get_context: Callable[[], HookContext], on_result: Callable[[str, CombinedHookResult], None] | None = None
    ) -> DispatchHooks:
        """Return them as the loop asks them; `on_result` gets every verdict, for the record."""

        async def dispatch(event: str, facts: dict[str, Any]) -> HookOutcome:
            combined = await self.run_hooks(event, facts, get_context())
            if on_result is not None:
                on_result(event, combined)
            return build_outcome(event, facts, combined)

        return dispatch

    async def close(self) -> None:
        """End the hooks that nobody waited for."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def matches(matcher: str, value: str) -> bool:
    """Return whether a matcher names a value.

    Nothing and `*` name all; letters, digits, `_`, `-`, spaces, `,` and `|` are names, one or a
    list; anything else is a regular expression that may match anywhere.
    """
    if matcher in {"", "*"}:
        return True
    # Both names of one tool fit, whichever version the settings were written for.
    values = AGENT_TOOLS if value in AGENT_TOOLS else {value}
    if _PLAIN_MATCHER.fullmatch(matcher):
        return bool(values & {name.strip() for name in re.split(r"[|,]", matcher)})
    try:
        return any(re.search(matcher, candidate) for candidate in values)
    except (re.error, RecursionError, OverflowError):
        return matcher in values


def _hook_input(event: str, facts: Mapping[str, Any], context: HookContext) -> bytes:
    fields = {
        "session_id": context.session_id,
        "transcript_path": context.transcript_path,
        "cwd": context.cwd,
        **({} if event in _MODELESS_EVENTS else {"permission_mode": context.permission_mode}),
        **context.agent,
        "hook_event_name": event,
        **facts,
    }
    # What a model says may hold half a character, which only escapes can spell.
    return json.dumps(fields, default=str).encode() + b"\n"


# Running


async def _run_all(coroutines: list[Coroutine[None, None, HookRun]]) -> list[HookRun]:
    """Run all at once, and end all when one is cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[HookRun]] = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


async def _run_hook(hook: Hook, name: str, hook_input: bytes, context: HookContext) -> HookRun:
    env = {**context.env, "CLAUDE_PROJECT_DIR": context.project}
    if context.env_file and hook.event in _ENV_FILE_EVENTS:
        env["CLAUDE_ENV_FILE"] = context.env_file
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    command = (shell, "-c", hook.command) if hook.args is None else (hook.command, *hook.args)
    finished = await run_program(command, hook_input, cwd=context.cwd, env=env, time_limit=hook.timeout)
    if finished.timed_out:
        status: HookStatus = "timeout"
    else:
        status = "blocked" if finished.code == _BLOCK_EXIT_CODE else "failed" if finished.code else "success"
    return HookRun(
        event=hook.event,
        name=name,
        command=" ".join((hook.command, *(hook.args or ()))),
        status=status,
        exit_code=finished.code,
        stdout=finished.stdout,
        stderr=finished.stderr,
        duration_ms=finished.duration_ms,
    )
