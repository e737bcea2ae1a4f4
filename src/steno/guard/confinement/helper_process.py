"""Starts the helper and speaks its protocol."""

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from steno.guard.confinement.policy import Confinement, ConfinementError

_HEADER: Final = struct.Struct("=QQ")
_MOST_BYTES: Final = 16 << 20
_STANDARD_ERROR: Final = 2
MOST_REPLY: Final = 65536
# The package is the last place to look for modules, and the folder at hand is none.
_CODE: Final = (
    "import sys; sys.path.append({root!r});"
    "from steno.guard.confinement.helper import main; main(sys.argv[1:])"
)


class HelperGone(ConfinementError):
    """The helper ended before it got the command."""


class Mechanisms(msgspec.Struct, frozen=True):
    """What the helper confines programs with, besides seccomp."""

    landlock: int
    """The highest version of the Landlock interface to use; 0 for none."""
    namespaces: bool


def start_helper(mechanisms: Mechanisms) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the helper; return it and the socket to it.

    Raises:
        ConfinementError: it does not start.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    number = str(theirs.fileno())
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                *("-I", "-S", "-X", "utf8", "-c", _CODE.format(root=root)),
                *(number, str(mechanisms.landlock), str(int(mechanisms.namespaces))),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise ConfinementError(f"The confinement helper did not start: {error}") from error
    finally:
        theirs.close()
    return process, ours


def check_greeting(reply: Mapping[str, Any]) -> None:
    """Check the helper's first message.

    Raises:
        ConfinementError: it cannot confine programs.
    """
    if "landlock" not in reply:
        reason = reply.get("error", "the helper ended")
        raise ConfinementError(f"Programs cannot be confined here: {reason}")


def decode_reply(text: bytes) -> dict[str, Any]:
    """Return a message of the helper; an empty one when it ended."""
    return json.loads(text) if text else {}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command for the helper."""

    argv: Sequence[str]
    policy: Confinement
    env: Mapping[str, str]
    stdout: int
    stderr: int
    pass_fds: Sequence[int] = ()


def send_command(control: socket.socket, number: int, command: Command) -> None:
    """Send a command with its descriptors.

    Raises:
        HelperGone: the helper ended.
        ConfinementError: the command is invalid or too long.
    """
    env = {**command.env, "TMPDIR": command.policy.scratch}
    words = (*command.argv, *env, *env.values())
    if not command.argv or any("\0" in word for word in words):
        raise ConfinementError("The command is empty, or has a NUL character")
    if any(number <= _STANDARD_ERROR for number in command.pass_fds):
        raise ConfinementError("Only descriptors above 2 can be passed")
    body = json.dumps(
        {
            "argv": [_portable(word) for word in command.argv],
            "env": {_portable(name): _portable(env[name]) for name in env},
            "policy": {
                name: _portable_all(value)
                for name, value in msgspec.structs.asdict(command.policy).items()
            },
            "fds": list(command.pass_fds),
        }
    ).encode()
    if len(body) > _MOST_BYTES:
        raise ConfinementError("The command is too long to be confined")
    memory = os.memfd_create("steno-command")
    try:
        view = memoryview(body)
        while view:
            view = view[os.write(memory, view) :]
        descriptors = [memory, command.stdout, command.stderr, *command.pass_fds]
        socket.send_fds(control, [_HEADER.pack(number, len(body))], descriptors)
    except OSError as error:
        raise HelperGone(f"The confinement helper cannot be reached: {error}") from error
    finally:
        os.close(memory)


def _portable(text: str) -> str:
    """Return a file name or argument as a Python in UTF-8 mode decodes its bytes."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def _portable_all(value: object) -> object:
    if isinstance(value, str):
        return _portable(value)
    if isinstance(value, tuple):
        return [_portable(str(item)) for item in cast("tuple[object, ...]", value)]
    return value
