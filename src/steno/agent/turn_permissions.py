"""The permissions of a turn: the session's, and what a command or a skill grants in addition."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.agent.command_sandbox import CommandSandbox
from steno.agent.config.skills import take_opened_skills
from steno.agent.loop import Agent
from steno.agent.permission_store import GrantedRules
from steno.agent.user_input import CompanionMessage, permissions_record
from steno.format.tool_catalogue import SHELL
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import PERMISSION_MODES, Decision, PermissionMode
from steno.tools.context import ToolContext

_OVERRIDABLE_MODES: Final = ("default", "acceptEdits")
"""The modes in which a sub-agent may have another."""


class TurnPermissions:
    """A guard that follows the mode which tools ask for, what is lent and granted, the sandbox."""

    def __init__(
        self,
        guard: PermissionChecker,
        context: ToolContext,
        sandbox: CommandSandbox | None = None,
        granted: GrantedRules | None = None,
        *,
        own_mode: str = "",
        can_confine: Callable[[], bool] | None = None,
    ) -> None:
        """Take the guard and what it follows; `own_mode` is a sub-agent's mode, if it has one.

        `can_confine` says whether commands can be confined; it is asked at the first command.
        """
        self._can_confine = can_confine
        self._own_mode = own_mode
        self._sandbox = sandbox
        self._granted = granted
        self._session_mode: PermissionMode = guard.mode
        self._base_guard: PermissionChecker = guard
        self._guard: PermissionChecker = guard
        self._context = context
        self._turn_rules: tuple[str, ...] = ()
        self._applied_rules: tuple[str, ...] = ()
        """The rules that are in it now besides its own."""

    @property
    def mode(self) -> PermissionMode:
        """The mode it is in now."""
        mode = _parse_mode(self._context.plan.permission_mode) or self._session_mode
        # A session that plans, asks nobody or asks about nothing is not left by who works in it.
        return (_parse_mode(self._own_mode) or mode) if mode in _OVERRIDABLE_MODES else mode

    def add_rules(self, rules: tuple[str, ...]) -> None:
        """Allow more for a while; rules that deny or ask still stand."""
        self._turn_rules = (*self._turn_rules, *rules)

    def clear_rules(self) -> None:
        """Allow no more than before, but for what the user has granted meanwhile."""
        self._turn_rules = ()

    def judge(self, tool: str, tool_input: dict[str, Any], /, *, cwd: str) -> Decision:
        """Say whether a call may be made."""
        if tool == SHELL and self._can_confine is not None:
            self._base_guard = self._base_guard.with_sandbox(can_sandbox=self._can_confine())
            self._guard = self._base_guard.with_rules(*self._applied_rules) if self._applied_rules else self._base_guard
            self._can_confine = None
        user_rules = self._granted.rules if self._granted is not None else ()
        extra_rules = (*user_rules, *self._turn_rules)
        if self.mode != self._base_guard.mode or extra_rules != self._applied_rules:
            self._base_guard = self._base_guard.with_mode(self.mode)
            self._guard = self._base_guard.with_rules(*extra_rules) if extra_rules else self._base_guard
            self._applied_rules = extra_rules
        decision = self._guard.judge(tool, tool_input, cwd=cwd)
        if self._sandbox is None:
            return decision
        return self._sandbox.allows(tool, tool_input, decision, self.mode)


def _parse_mode(name: str) -> PermissionMode | None:
    return next((mode for mode in PERMISSION_MODES if mode == name), None)


class TurnGrants:
    """Lends to an agent, until its turn is over."""

    def __init__(self, agent: Agent, permissions: TurnPermissions, resolve_model: Callable[[str], str]) -> None:
        self._agent = agent
        self.permissions = permissions
        self._resolve_model = resolve_model
        self._original_model = ""
        agent.executor.end_turn = self.revoke

    def grant(self, allowed_tools: tuple[str, ...], model: str = "") -> None:
        """Let tools be used unasked, and another model be asked."""
        self.permissions.add_rules(allowed_tools)
        agent, resolved_model = self._agent, self._resolve_model(model)
        if resolved_model:
            self._original_model = self._original_model or agent.request_config.model
            agent.request_config = msgspec.structs.replace(agent.request_config, model=resolved_model)

    def revoke(self) -> None:
        """Take everything back."""
        self.permissions.clear_rules()
        if self._original_model:
            agent, model = self._agent, self._original_model
            agent.request_config = msgspec.structs.replace(agent.request_config, model=model)
            self._original_model = ""


def take_skill_messages(context: ToolContext, grants: TurnGrants) -> list[CompanionMessage]:
    """Return the skills that calls have opened; what each may use it may use from now on."""
    opened = take_opened_skills(context)
    for skill in opened:
        grants.grant(skill.allowed_tools, skill.model)
    return [
        CompanionMessage(
            text=each.text,
            fields={"sourceToolUseID": each.call},
            mentions=each.mentions,
            records=(permissions_record(each.allowed_tools),),
        )
        for each in opened
    ]
