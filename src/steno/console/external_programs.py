"""Programs that the console starts: editor, other steno commands, the explorer, clipboard tools."""

import asyncio
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.agent.recorder import new_uuid
from steno.errors import NotFound, Unwritable
from steno.sanitize.terminal import one_line
from steno.store.atomic import write_private
from steno.store.environment import steno_home
from steno.tools.file_content import detect_image_type

if TYPE_CHECKING:
    from steno.console.chat import Chat


_EXPLORER_KEY: Final = "explorer"


def steno_command(*arguments: str) -> list[str]:
    """Return how another command of steno is run."""
    return [sys.executable, "-m", "steno", *arguments]


def editor_command() -> list[str]:
    """Return the user's editor."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


async def run_program(chat: "Chat", command: list[str], env: dict[str, str] | None = None) -> int:
    """Lend the terminal to a program until it ends."""
    async with chat.screen.release_terminal():
        try:
            process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **(env or {})})
        except OSError as error:
            chat.renderer.print_note(f"{command[0]}: {error.strerror or error}", "red")
            return 1
        return await process.wait()


async def open_explorer(chat: "Chat") -> None:
    """Open the explorer on this session, once; it follows what is written here."""
    session = chat.session
    if session is None:
        return
    session_id = session.agent.conversation.recorder.session_id
    if not chat.session_path():
        chat.renderer.print_note("there is nothing to see yet: say something first", "dim")
        return
    explorer_url: Any = chat.command_state.get(_EXPLORER_KEY)
    if explorer_url is None:
        explorer_url = chat.command_state[_EXPLORER_KEY] = await _start_explorer(chat)
    if explorer_url is None:
        chat.renderer.print_note("the explorer did not start; `steno explore` says why", "red")
        return
    address = f"{explorer_url}&to=/s/{session_id}"
    # Not broken into lines of our own: a terminal opens what it has wrapped itself.
    chat.renderer.print_block([[("  · this session, live: ", "dim"), address]], "note")
    chat.command_state.pop(_EXPLORER_KEY, None)
    await asyncio.to_thread(_open_browser, address)


async def _start_explorer(chat: "Chat") -> str | None:
    """Start an explorer that ends with the console; return its address for a first visit."""
    process = await asyncio.create_subprocess_exec(
        *steno_command("explore", "--no-open", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    chat.child_processes.append(process)
    data = b""
    while process.stdout is not None and not data.rstrip().endswith(b"}"):
        line = await process.stdout.readline()
        if not line:
            return None
        data += line
    try:
        startup = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    return one_line(str(startup.get("url", "")))


def _open_browser(address: str) -> None:
    """Open a browser that has a window of its own; one in this terminal would take it over."""
    import webbrowser

    names = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names):
        webbrowser.open(address)


_CLIPBOARD_PROGRAMS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
"""What asks for it, and the variable without which there is no use in asking."""
_TIMEOUT: Final = 5.0
_MAX_IMAGE_BYTES: Final = 20 << 20
_PASTED_FOLDER: Final = "pasted"
_MAX_AGE_SECONDS: Final = 86_400


async def save_clipboard_image(env: Mapping[str, str]) -> str:
    """Return the path of the picture that is in the clipboard, written down for this prompt.

    Raises:
        NotFound: there is none, or no program that could tell.
        Unwritable: it cannot be written down.
    """
    programs = [
        command
        for variable, command in _CLIPBOARD_PROGRAMS
        if (not variable or env.get(variable)) and shutil.which(command[0])
    ]
    if not programs:
        raise NotFound(
            "nothing here can read a picture from the clipboard",
            hint="install wl-paste, xclip or pngpaste, or name the file of a picture",
        )
    for command in programs:
        data = await _program_output(command)
        if detect_image_type(data[: 1 << 16]):
            return await asyncio.to_thread(_save_image, data)
    raise NotFound("there is no picture in the clipboard", hint="name the file of one instead")


async def _program_output(command: tuple[str, ...]) -> bytes:
    """Return what a program prints; nothing where it fails or does not end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        data, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return data if process.returncode == 0 and len(data) <= _MAX_IMAGE_BYTES else b""


def _save_image(data: bytes) -> str:
    """Write a picture down; those of other days are in their sessions, and go."""
    folder = os.path.join(steno_home(), _PASTED_FOLDER)
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if time.time() - os.path.getmtime(path) > _MAX_AGE_SECONDS:
                os.remove(path)
    extension = detect_image_type(data[: 1 << 16]).rpartition("/")[2]
    name = f"{new_uuid()[:8]}.{extension}"
    if not write_private(os.path.join(_PASTED_FOLDER, name), data):
        raise Unwritable("the picture cannot be written down", hint="is the disk full?")
    return os.path.join(folder, name)
