"""What a command or a skill is lent for the rest of a turn: tools to use unasked, another model."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.agent.confined import Confined
from steno.agent.loop import Agent
from steno.agent.rules_kept import Granted
from steno.agent.said import Companion, permissions
from steno.agent.skills import take_loaded
from steno.format.tool_catalogue import SHELL
from steno.guard.decision import MODES, Decision, Mode
from steno.guard.judge import Guard
from steno.tools.context import ToolContext

__all__ = ["Followed", "Lending", "opened_skills"]

_OPEN: Final = ("default", "acceptEdits")
"""The modes in which a sub-agent may have another."""


class Followed:
    """A guard that follows the mode which tools ask for, what is lent and granted, the sandbox."""

    def __init__(
        self,
        guard: Guard,
        context: ToolContext,
        confined: Confined | None = None,
        granted: Granted | None = None,
        *,
        of_its_own: str = "",
        confinable: Callable[[], bool] | None = None,
    ) -> None:
        """Take the guard and what it follows; `of_its_own` is a sub-agent's mode, if it has one.

        `confinable` says whether commands can be confined; it is asked at the first command.
        """
        self._confinable = confinable
        self._of_its_own = of_its_own
        self._confined = confined
        self._granted = granted
        self._session: Mode = guard.mode
        self._own: Guard = guard
        self._guard: Guard = guard
        self._context = context
        self._lent: tuple[str, ...] = ()
        self._more: tuple[str, ...] = ()
        """The rules that are in it now besides its own."""

    @property
    def mode(self) -> Mode:
        """The mode it is in now."""
        mode = _mode_named(self._context.plan.permission_mode) or self._session
        # A session that plans, asks nobody or asks about nothing is not left by who works in it.
        return (_mode_named(self._of_its_own) or mode) if mode in _OPEN else mode

    def lend(self, rules: tuple[str, ...]) -> None:
        """Allow more for a while; rules that deny or ask still stand."""
        self._lent = (*self._lent, *rules)

    def take_back(self) -> None:
        """Allow no more than before, but for what the user has granted meanwhile."""
        self._lent = ()

    def judge(self, tool: str, given: dict[str, Any], /, *, cwd: str) -> Decision:
        """Say whether a call may be made."""
        if tool == SHELL and self._confinable is not None:
            self._own = self._own.with_confinement(confinable=self._confinable())
            self._guard = self._own.with_rules(*self._more) if self._more else self._own
            self._confinable = None
        granted = self._granted.rules if self._granted is not None else ()
        more = (*granted, *self._lent)
        if self.mode != self._own.mode or more != self._more:
            self._own = self._own.with_mode(self.mode)
            self._guard = self._own.with_rules(*more) if more else self._own
            self._more = more
        said = self._guard.judge(tool, given, cwd=cwd)
        if self._confined is None:
            return said
        return self._confined.allows(tool, given, said, self.mode)


def _mode_named(name: str) -> Mode | None:
    return next((mode for mode in MODES if mode == name), None)


class Lending:
    """Lends to an agent, until its turn is over."""

    def __init__(self, agent: Agent, guard: Followed, named: Callable[[str], str]) -> None:
        self._agent = agent
        self.guard = guard
        self._named = named
        self._model = ""
        agent.caller.over = self.over

    def lend(self, allowed: tuple[str, ...], model: str = "") -> None:
        """Let tools be used unasked, and another model be asked."""
        self.guard.lend(allowed)
        agent, wanted = self._agent, self._named(model)
        if wanted:
            self._model = self._model or agent.course.model
            agent.course = msgspec.structs.replace(agent.course, model=wanted)

    def over(self) -> None:
        """Take everything back."""
        self.guard.take_back()
        if self._model:
            agent, model = self._agent, self._model
            agent.course = msgspec.structs.replace(agent.course, model=model)
            self._model = ""


def opened_skills(context: ToolContext, lending: Lending) -> list[Companion]:
    """Return the skills that calls have opened; what each may use it may use from now on."""
    opened = take_loaded(context)
    for each in opened:
        lending.lend(each.allowed_tools, each.model)
    return [
        Companion(
            text=each.text,
            fields={"sourceToolUseID": each.call},
            mentions=each.mentions,
            kept=(permissions(each.allowed_tools),),
        )
        for each in opened
    ]
