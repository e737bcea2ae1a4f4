"""Hooks: programs of the user's that hear of events and may step in.

At an event every hook that fits runs, all at once, with the facts as JSON on its standard input.
It answers with its exit code (0 fine, 2 no, anything else a fault that stops nothing) or, with 0,
with JSON on its standard output. What they said together is a `Verdict`; what each did is in
`ran`, for the record. Hooks of a project run only where the folder is trusted.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

from steno.agent.events import Event, HookEnded, HookStarted
from steno.agent.gates import Gate, Gates
from steno.agent.hook_answers import Ran, Status, Verdict, verdict_of
from steno.agent.hook_records import gate_of
from steno.agent.hook_settings import Hook
from steno.agent.programs import run_program
from steno.agent.settings_layers import OF_PROJECT
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.format.values import as_object

__all__ = ["EVENTS", "Hooks", "Scene", "fits"]

EVENTS: Final[Mapping[str, str]] = {
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

_WITH_ENV_FILE: Final = frozenset({"SessionStart", "Setup", "CwdChanged"})
# The events with something to match that sessions do not name them by.
_UNNAMED: Final = frozenset({"SubagentStop", "UserPromptExpansion"})
# At these no mode is told: the session has not begun, is over, or is about to be summed up.
_WITHOUT_MODE: Final = frozenset(
    {
        "SessionStart",
        "SessionEnd",
        "InstructionsLoaded",
        "PreCompact",
        "PostCompact",
        "SubagentStart",
    }
)
_TOOL_EVENTS: Final = frozenset(name for name, fact in EVENTS.items() if fact == "tool_name")
_PLAIN: Final = re.compile(r"[\w\- ,|]*")
_BLOCKED: Final = 2


class Scene(msgspec.Struct, frozen=True, kw_only=True):
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


class Hooks:
    """The hooks of a session.

    Args:
        hooks: those of the settings, in order.
        trusted: whether the project may run its own.
        fitting: says whether the call at hand fits a permission rule; without it a hook with a
            condition always runs.
    """

    def __init__(
        self,
        hooks: tuple[Hook, ...],
        *,
        trusted: bool,
        fitting: Callable[[str, str, dict[str, Any]], bool] | None = None,
    ) -> None:
        self._hooks = tuple(hook for hook in hooks if trusted or hook.layer not in OF_PROJECT)
        self._fitting = fitting
        self._background: set[asyncio.Task[Ran]] = set()
        self.emit: Callable[[Event], None] = lambda _event: None
        """Hears when a hook begins and ends."""

    def of(self, event: str, facts: Mapping[str, Any]) -> tuple[Hook, ...]:
        """Return the hooks that an event concerns, each command once."""
        value = str(facts.get(EVENTS.get(event, "")) or "")
        found: dict[tuple[str, tuple[str, ...] | None], Hook] = {}
        for hook in self._hooks:
            if hook.event != event or not self._concerned(hook, value, facts):
                continue
            found.setdefault((hook.command, hook.args), hook)
        return tuple(found.values())

    def _concerned(self, hook: Hook, value: str, facts: Mapping[str, Any]) -> bool:
        if EVENTS.get(hook.event) and not fits(hook.matcher, value):
            return False
        if not hook.condition:
            return True
        if hook.event not in _TOOL_EVENTS:
            return False
        if self._fitting is None:
            return True
        given = as_object(facts.get("tool_input")) or {}
        return self._fitting(hook.condition, str(facts.get("tool_name")), given)

    async def run(self, event: str, facts: Mapping[str, Any], scene: Scene) -> Verdict:
        """Run the hooks of an event and return what they said."""
        hooks = self.of(event, facts)
        if not hooks:
            return Verdict()
        given = _given(event, facts, scene)
        fact = EVENTS.get(event, "")
        name = f"{event}:{facts[fact]}" if facts.get(fact) and event not in _UNNAMED else event
        waited: list[Hook] = []
        for hook in hooks:
            if hook.background:
                task = asyncio.create_task(self._run(hook, name, given, scene))
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            else:
                waited.append(hook)
        ran = await _together([self._run(hook, name, given, scene) for hook in waited])
        return verdict_of(event, ran)

    async def _run(self, hook: Hook, name: str, given: bytes, scene: Scene) -> Ran:
        """Run one hook, and let those who watch know."""
        self.emit(HookStarted(name, hook.command))
        try:
            return await _run(hook, name, given, scene)
        finally:
            self.emit(HookEnded(name, hook.command))

    def gates(
        self, scene: Callable[[], Scene], heard: Callable[[str, Verdict], None] | None = None
    ) -> Gates:
        """Return them as the loop asks them; `heard` gets every verdict, for the record."""

        async def ask(event: str, facts: dict[str, Any]) -> Gate:
            verdict = await self.run(event, facts, scene())
            if heard is not None:
                heard(event, verdict)
            return gate_of(event, facts, verdict)

        return ask

    async def close(self) -> None:
        """End the hooks that nobody waited for."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def fits(matcher: str, value: str) -> bool:
    """Return whether a matcher names a value.

    Nothing and `*` name all; letters, digits, `_`, `-`, spaces, `,` and `|` are names, one or a
    list; anything else is a regular expression that may match anywhere.
    """
    if matcher in {"", "*"}:
        return True
    # Both names of one tool fit, whichever version the settings were written for.
    values = AGENT_TOOLS if value in AGENT_TOOLS else {value}
    if _PLAIN.fullmatch(matcher):
        return bool(values & {name.strip() for name in re.split(r"[|,]", matcher)})
    try:
        return any(re.search(matcher, one) for one in values)
    except (re.error, RecursionError, OverflowError):
        return matcher in values


def _given(event: str, facts: Mapping[str, Any], scene: Scene) -> bytes:
    told = {
        "session_id": scene.session_id,
        "transcript_path": scene.transcript_path,
        "cwd": scene.cwd,
        **({} if event in _WITHOUT_MODE else {"permission_mode": scene.permission_mode}),
        **scene.agent,
        "hook_event_name": event,
        **facts,
    }
    # What a model says may hold half a character, which only escapes can spell.
    return json.dumps(told, default=str).encode() + b"\n"


# Running


async def _together(coroutines: list[Coroutine[None, None, Ran]]) -> list[Ran]:
    """Run all at once, and end all when one is cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Ran]] = [group.create_task(one) for one in coroutines]
    return [task.result() for task in tasks]


async def _run(hook: Hook, name: str, given: bytes, scene: Scene) -> Ran:
    env = {**scene.env, "CLAUDE_PROJECT_DIR": scene.project}
    if scene.env_file and hook.event in _WITH_ENV_FILE:
        env["CLAUDE_ENV_FILE"] = scene.env_file
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    line = (shell, "-c", hook.command) if hook.args is None else (hook.command, *hook.args)
    done = await run_program(line, given, cwd=scene.cwd, env=env, seconds=hook.timeout)
    if done.timed_out:
        status: Status = "timeout"
    else:
        status = "blocked" if done.code == _BLOCKED else "failed" if done.code else "success"
    return Ran(
        event=hook.event,
        name=name,
        command=" ".join((hook.command, *(hook.args or ()))),
        status=status,
        exit_code=done.code,
        stdout=done.out,
        stderr=done.err,
        duration_ms=done.duration_ms,
    )
