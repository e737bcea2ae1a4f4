"""The last line: model, what goes on, how full the window is, money, branch, mode.

A command of the user's may write it instead (`statusLine` in the settings), as in Claude Code: it
gets the facts as JSON, and its first line is shown.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.console.ticks import clock, spinner
from steno.format.encode import encode
from steno.report import words
from steno.safe.terminal import Line, clean, cut, width

__all__ = ["MODES", "State", "StatusCommand", "status_line"]

MODES: Final = {
    "default": "asks before writing",
    "acceptEdits": "edits freely",
    "plan": "plans only",
    "bypassPermissions": "asks about nothing",
    "dontAsk": "refuses instead of asking",
}
"""What a permission mode means, in a few words."""
_MICRO: Final = 1_000_000
_BAR: Final = 10
_FULL: Final = 80
_ROOMY: Final = 90
_SECONDS: Final = 5.0
_SGR: Final = re.compile(r"\x1b\[([0-9;]*)m")
_CODES: Final = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    **{
        str(30 + at): name
        for at, name in enumerate(("", "red", "green", "yellow", "blue", "magenta", "cyan", ""))
    },
    **{
        str(90 + at): name
        for at, name in enumerate(("", "red", "green", "yellow", "blue", "magenta", "cyan", ""))
    },
}


class State(msgspec.Struct, kw_only=True):
    """What is known of the session at this moment."""

    model: str = ""
    branch: str = ""
    turn: int = 0
    waiting: bool = False
    """Whether it waits for the user's answer."""
    seconds: float | None = None
    """How long the turn has been going on; None when none is."""
    context: int = 0
    window: int = 0
    cost: int = 0
    """In micro-dollars."""
    mode: str = "default"
    tasks: int = 0
    """What runs in the background."""


def status_line(state: State, columns: int, moment: float, *, unicode: bool = True) -> Line:
    """Return the line; where there is little room the less important goes first."""
    if not state.model:
        return [(" starting", "dim")]
    parts: list[tuple[int, Line]] = [(0, [(words.model_name(state.model), "bold")])]
    if state.seconds is not None:
        doing = "waiting for you" if state.waiting else "working"
        mark = "●" if state.waiting else spinner(moment, unicode=unicode)
        style = "yellow" if state.waiting else "green"
        said = f"turn {state.turn}, {doing} {clock(state.seconds)}"
        parts.append((1, [(f"{mark} ", style), said]))
    if state.window:
        share = min(round(100 * state.context / state.window), 100)
        style = "yellow" if share >= _FULL else ""
        full = round(share * _BAR / 100)
        bar: Line = [(" " + "█" * full, "blue"), ("░" * (_BAR - full), "dim")]
        roomy = columns > _ROOMY
        parts.append((2, [(f"context {share}%", style), *(bar if roomy else ())]))
    parts.append((3, [f"${state.cost / _MICRO:.2f}"]))
    if state.branch:
        parts.append((6, [(cut(clean(state.branch), 24), "dim")]))
    parts.append(
        (1, [(MODES.get(state.mode, state.mode), "yellow" if state.mode != "default" else "")])
    )
    if state.tasks:
        parts.append((4, [words.count(state.tasks, "task") + " running"]))
    parts.append((8, [("? keys", "dim")]))
    while len(parts) > 1 and _room(parts) > columns:
        parts.remove(max(parts, key=lambda part: part[0]))
    line: Line = [" "]
    for number, (_, bits) in enumerate(parts):
        line += ["   " if number else "", *bits]
    return line


def _room(parts: list[tuple[int, Line]]) -> int:
    texts = (bit[0] if isinstance(bit, tuple) else bit for _, bits in parts for bit in bits)
    return sum(map(width, texts)) + 3 * (len(parts) - 1) + 1


class StatusCommand:
    """The user's own command for the line: run when something has changed, never twice at once."""

    def __init__(self, command: str, cwd: str, env: dict[str, str]) -> None:
        self._command = command
        self._cwd = cwd
        self._env = env
        self._task: asyncio.Task[None] | None = None
        self._next: dict[str, Any] | None = None
        self.line: Line = []

    def ask(self, facts: dict[str, Any], done: Callable[[], None]) -> None:
        """Have it run, and `done` called when its line is there; once more if it runs just now."""
        self._next = facts
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._keep_up(done))

    async def close(self) -> None:
        """End it if it still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep_up(self, done: Callable[[], None]) -> None:
        while self._next is not None:
            facts, self._next = self._next, None
            await self._run(facts)
            done()

    async def _run(self, facts: dict[str, Any]) -> None:
        try:
            process = await asyncio.create_subprocess_shell(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return
        try:
            out, _ = await asyncio.wait_for(process.communicate(encode(facts)), _SECONDS)
        except TimeoutError:
            out = b""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        self.line = coloured(out.decode("utf-8", "replace").split("\n")[0])


def coloured(text: str) -> Line:
    """Return a line of a program's with the sixteen colours it has; nothing else of it acts."""
    line: Line = []
    style: list[str] = []
    for number, part in enumerate(_SGR.split(text)):
        if number % 2 == 0:
            line.append((clean(part), " ".join(style)))
            continue
        for code in part.split(";"):
            if code in ("", "0"):
                style = []
            elif _CODES.get(code):
                style.append(_CODES[code])
    return [bit for bit in line if bit[0]]
