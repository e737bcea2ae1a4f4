"""Finds out how programs can be confined on this machine, by confining one."""

import os
import select
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from steno.guard.confinement.helper_process import (
    MOST_REPLY,
    Command,
    Mechanisms,
    check_greeting,
    decode_reply,
    send_command,
    start_helper,
)
from steno.guard.confinement.policy import Confinement, ConfinementError

_VARIABLE: Final = "STENO_CONFINEMENT"
_PATIENCE: Final = 20
_NEWEST: Final = 99
# Exit codes say which promise does not hold.
_TRIAL: Final = """
(read -r line < "$1/inside/open") 2>/dev/null || exit 11
(read -r line < "$1/inside/denied") 2>/dev/null && exit 12
(read -r line < "$1/outside") 2>/dev/null && exit 13
(: > "$1/inside/new") 2>/dev/null && exit 14
(: > "$1/outside") 2>/dev/null && exit 15
(: > "$1/scratch/new") 2>/dev/null || exit 16
(: > /dev/null) 2>/dev/null || exit 17
exit 0
"""


class Support(msgspec.Struct, frozen=True):
    """How programs can be confined on this machine."""

    kind: Literal["none", "linux", "macos"]
    layers: tuple[str, ...]
    """Of landlock-N, seccomp, user, mount, pid, net, ipc, seatbelt."""
    summary: str
    """One sentence for people."""
    usable: bool
    """Whether everything that is promised about confined programs holds."""


_tried: dict[str, tuple[Support, Mechanisms | None]] = {}


def probe_confinement(env: Mapping[str, str] = os.environ) -> Support:
    """Return how programs can be confined here; tried once per process.

    `STENO_CONFINEMENT` restricts it: `off`, `landlock` (or `landlock-4` for an older version of
    its interface) or `namespaces`.
    """
    return _try(env.get(_VARIABLE, ""))[0]


def find_mechanisms(env: Mapping[str, str] = os.environ) -> Mechanisms | None:
    """Return what the helper has to use here; None where programs cannot be confined."""
    return _try(env.get(_VARIABLE, ""))[1]


def _try(choice: str) -> tuple[Support, Mechanisms | None]:
    if choice not in _tried:
        _tried[choice] = _probe(choice)
    return _tried[choice]


def _probe(choice: str) -> tuple[Support, Mechanisms | None]:
    if choice == "off":
        return _none(f"Agent commands cannot be confined: {_VARIABLE} is off."), None
    if sys.platform == "darwin":
        from steno.guard.confinement.seatbelt import probe_seatbelt

        return probe_seatbelt(), None
    if not sys.platform.startswith("linux"):
        return _none("Agent commands cannot be confined on this system."), None
    reason = f"{_VARIABLE}={choice} names no mechanism"
    for mechanisms in _candidates(choice):
        try:
            found = _confine_once(mechanisms)
        except (ConfinementError, OSError) as error:
            reason = str(error)
        else:
            return _support(found), found
    return _none(f"Agent commands cannot be confined: {reason}."), None


def _none(summary: str) -> Support:
    return Support("none", (), summary, usable=False)


def _candidates(choice: str) -> Iterator[Mechanisms]:
    if not choice:
        yield Mechanisms(_NEWEST, namespaces=True)
    if choice in {"", "namespaces"}:
        yield Mechanisms(0, namespaces=True)
    name, _, version = choice.partition("-")
    if not choice or name == "landlock":
        yield Mechanisms(int(version) if version.isdecimal() else _NEWEST, namespaces=False)


def _support(mechanisms: Mechanisms) -> Support:
    layers = (f"landlock-{mechanisms.landlock}",) if mechanisms.landlock else ()
    layers += ("seccomp",)
    if mechanisms.namespaces:
        layers += ("user", "mount", "pid", "net", "ipc")
        how = "namespaces and seccomp"
        how = f"Landlock {mechanisms.landlock}, {how}" if mechanisms.landlock else how
        rest = ""
    else:
        how = f"Landlock {mechanisms.landlock} and seccomp"
        rest = (
            "; names and sizes of other files stay visible, and folders that contain protected"
            " files cannot get new files"
        )
    summary = f"Agent commands without approval are confined by {how}: no network, no writes outside the scratch folder{rest}."
    return Support("linux", layers, summary, usable=True)


def _confine_once(mechanisms: Mechanisms) -> Mechanisms:
    """Run a program that tries what it must not be able to do.

    Raises:
        ConfinementError: it could, or was not run.
    """
    shell = shutil.which("sh", path="/bin:/usr/bin")
    if shell is None:
        raise ConfinementError("there is no sh to try it with")
    with tempfile.TemporaryDirectory(prefix="steno-probe-") as folder:
        for name in ("inside", "scratch"):
            os.mkdir(f"{folder}/{name}")
        for name in ("inside/open", "inside/denied", "outside"):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write("x\n")
        policy = Confinement(
            cwd=f"{folder}/inside",
            readable=(f"{folder}/inside",),
            scratch=f"{folder}/scratch",
            denied=(f"{folder}/inside/denied",),
        )
        process, control = start_helper(mechanisms)
        try:
            return _run_trial(control, [shell, "-c", _TRIAL, "sh", folder], policy, mechanisms)
        finally:
            control.close()
            process.wait()


def _run_trial(
    control: socket.socket, argv: list[str], policy: Confinement, mechanisms: Mechanisms
) -> Mechanisms:
    greeting = _reply(control)
    check_greeting(greeting)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        send_command(
            control, 1, Command(argv=argv, policy=policy, env={}, stdout=null, stderr=null)
        )
    finally:
        os.close(null)
    while True:
        reply = _reply(control)
        if "status" in reply:
            break
        if "pid" not in reply:
            raise ConfinementError(reply.get("error", "the helper ended"))
    if reply["status"]:
        raise ConfinementError(f"a trial program was not confined ({reply['status']})")
    return Mechanisms(greeting["landlock"], namespaces=mechanisms.namespaces)


def _reply(control: socket.socket) -> dict[str, Any]:
    ready, _, _ = select.select([control], [], [], _PATIENCE)
    if not ready:
        raise ConfinementError("the helper does not answer")
    return decode_reply(control.recv(MOST_REPLY))
