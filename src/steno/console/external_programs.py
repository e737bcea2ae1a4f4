"""External programs: the editor, other steno commands, the explorer, clipboard tools."""

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
    """Return the command line of another steno command."""
    return [sys.executable, "-m", "steno", *arguments]


def editor_command() -> list[str]:
    """Return the command line of the user's editor."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


async def run_program(chat: "Chat", command: list[str], env: dict[str, str] | None = None) -> int:
    """Run a program in the foreground of the terminal; return its exit code."""
    async with chat.screen.release_terminal():
        try:
            process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **(env or {})})
        except OSError as error:
            chat.renderer.print_note(f"{command[0]}: {error.strerror or error}", "red")
            return 1
        return await process.wait()


async def open_explorer(chat: "Chat") -> None:
    """Open the explorer on this session."""
    session = chat.session
    if session is None:
        return
    session_id = session.agent.conversation.recorder.session_id
    if not chat.session_path():
        chat.renderer.print_note("This session is empty. Send a prompt first.", "dim")
        return
    explorer_url: Any = chat.command_state.get(_EXPLORER_KEY)
    if explorer_url is None:
        explorer_url = chat.command_state[_EXPLORER_KEY] = await _start_explorer(chat)
    if explorer_url is None:
        chat.renderer.print_note("Cannot start the explorer. Run `steno explore` to see the error.", "red")
        return
    address = f"{explorer_url}&to=/s/{session_id}"
    # Printed unwrapped, so that the terminal recognises the whole URL as a link.
    chat.renderer.print_block([[("  · Explorer: ", "dim"), address]], "note")
    chat.command_state.pop(_EXPLORER_KEY, None)
    await asyncio.to_thread(_open_browser, address)


async def _start_explorer(chat: "Chat") -> str | None:
    """Start an explorer that ends with the console; return its URL, or None if it failed."""
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
    """Open a graphical browser; a text browser would take over this terminal."""
    import webbrowser

    names = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names):
        webbrowser.open(address)


_CLIPBOARD_PROGRAMS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
"""Programs that read the clipboard, each with the environment variable that it requires."""
_TIMEOUT: Final = 5.0
_MAX_IMAGE_BYTES: Final = 20 << 20
_PASTED_FOLDER: Final = "pasted"
_MAX_AGE_SECONDS: Final = 86_400


async def save_clipboard_image(env: Mapping[str, str]) -> str:
    """Save the image in the clipboard and return its path.

    Raises:
        NotFound: the clipboard has no image, or no program can read it.
        Unwritable: the image cannot be saved.
    """
    programs = [
        command
        for variable, command in _CLIPBOARD_PROGRAMS
        if (not variable or env.get(variable)) and shutil.which(command[0])
    ]
    if not programs:
        raise NotFound(
            "no program to read an image from the clipboard",
            hint="Install wl-paste, xclip or pngpaste, or type the path of an image.",
        )
    for command in programs:
        data = await _program_output(command)
        if detect_image_type(data[: 1 << 16]):
            return await asyncio.to_thread(_save_image, data)
    raise NotFound("the clipboard contains no image", hint="Type the path of an image instead.")


async def _program_output(command: tuple[str, ...]) -> bytes:
    """Return the output of a program, or nothing if it fails or times out."""
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
    """Save an image in steno's directory; delete images older than a day, which are stored in their sessions."""
    folder = os.path.join(steno_home(), _PASTED_FOLDER)
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if time.time() - os.path.getmtime(path) > _MAX_AGE_SECONDS:
                os.remove(path)
    extension = detect_image_type(data[: 1 << 16]).rpartition("/")[2]
    name = f"{new_uuid()[:8]}.{extension}"
    if not write_private(os.path.join(_PASTED_FOLDER, name), data):
        raise Unwritable("cannot save the image", hint="Check the free disk space.")
    return os.path.join(folder, name)
