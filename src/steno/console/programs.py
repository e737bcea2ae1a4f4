"""Programs beside the console: an editor, a pager, other commands of steno, the explorer."""

import asyncio
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.safe.terminal import one_line

if TYPE_CHECKING:
    from steno.console.talk import Talk

__all__ = ["editor", "open_explorer", "own", "run_program"]

_EXPLORER: Final = "explorer"


def own(*arguments: str) -> list[str]:
    """Return how another command of steno is run."""
    return [sys.executable, "-m", "steno", *arguments]


def editor() -> list[str]:
    """Return the user's editor."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


async def run_program(talk: "Talk", command: list[str], env: dict[str, str] | None = None) -> int:
    """Lend the terminal to a program until it ends."""
    async with talk.screen.lent():
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **(env or {})}
            )
        except OSError as error:
            talk.stream.note(f"{command[0]}: {error.strerror or error}", "red")
            return 1
        return await process.wait()


async def open_explorer(talk: "Talk") -> None:
    """Open the explorer on this session, once; it follows what is written here."""
    started = talk.started
    if started is None:
        return
    session = started.agent.talk.recorder.session_id
    if not talk.written():
        talk.stream.note("there is nothing to see yet: say something first", "dim")
        return
    running: Any = talk.kept.get(_EXPLORER)
    if running is None:
        running = talk.kept[_EXPLORER] = await _serve(talk)
    if running is None:
        talk.stream.note("the explorer did not start; `steno explore` says why", "red")
        return
    address = f"{running}&to=/s/{session}"
    # Not broken into lines of our own: a terminal opens what it has wrapped itself.
    talk.stream.block([[("  · this session, live: ", "dim"), address]], "note")
    talk.kept.pop(_EXPLORER, None)
    await asyncio.to_thread(_browse, address)


async def _serve(talk: "Talk") -> str | None:
    """Start an explorer that ends with the console; return its address for a first visit."""
    process = await asyncio.create_subprocess_exec(
        *own("explore", "--no-open", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    talk.programs.append(process)
    data = b""
    while process.stdout is not None and not data.rstrip().endswith(b"}"):
        line = await process.stdout.readline()
        if not line:
            return None
        data += line
    try:
        told = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    return one_line(str(told.get("url", "")))


def _browse(address: str) -> None:
    """Open a browser that has a window of its own; one in this terminal would take it over."""
    import webbrowser

    names = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names):
        webbrowser.open(address)
