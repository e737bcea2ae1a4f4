"""The picture in the clipboard, by whichever program of the system knows it."""

import asyncio
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from steno.agent.recorder import new_id
from steno.errors import NotFound, Unwritable
from steno.store.kept import write_private
from steno.store.places import steno_home
from steno.tools.images import media_type_of

__all__ = ["pasted_picture"]

_PROGRAMS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
"""What asks for it, and the variable without which there is no use in asking."""
_SECONDS: Final = 5.0
_LARGEST: Final = 20 << 20
_FOLDER: Final = "pasted"
_DAY: Final = 86_400


async def pasted_picture(env: Mapping[str, str]) -> str:
    """Return the path of the picture that is in the clipboard, written down for this prompt.

    Raises:
        NotFound: there is none, or no program that could tell.
        Unwritable: it cannot be written down.
    """
    programs = [
        command
        for variable, command in _PROGRAMS
        if (not variable or env.get(variable)) and shutil.which(command[0])
    ]
    if not programs:
        raise NotFound(
            "nothing here can read a picture from the clipboard",
            hint="install wl-paste, xclip or pngpaste, or name the file of a picture",
        )
    for command in programs:
        data = await _printed(command)
        if media_type_of(data[: 1 << 16]):
            return await asyncio.to_thread(_written, data)
    raise NotFound("there is no picture in the clipboard", hint="name the file of one instead")


async def _printed(command: tuple[str, ...]) -> bytes:
    """Return what a program prints; nothing where it fails or does not end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        data, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return data if process.returncode == 0 and len(data) <= _LARGEST else b""


def _written(data: bytes) -> str:
    """Write a picture down; those of other days are in their sessions, and go."""
    folder = os.path.join(steno_home(), _FOLDER)
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if time.time() - os.path.getmtime(path) > _DAY:
                os.remove(path)
    kind = media_type_of(data[: 1 << 16]).rpartition("/")[2]
    name = f"{new_id()[:8]}.{kind}"
    if not write_private(os.path.join(_FOLDER, name), data):
        raise Unwritable("the picture cannot be written down", hint="is the disk full?")
    return os.path.join(folder, name)
