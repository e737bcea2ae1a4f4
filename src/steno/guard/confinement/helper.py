"""The long-lived process that starts confined commands. Imports only the standard library.

It is started isolated (`python -I -S`), with an empty environment, and told what to do through a
socket: one message for each command, with descriptors; the command itself is in a memory file.
"""

import gc
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

from steno.guard.confinement import kernel, landlock_rules, private_root
from steno.guard.confinement.supervisor import Mechanisms, Request, Supervisor, end_children
from steno.guard.confinement.trees import CannotConfine

_HEADER: Final = struct.Struct("=QQ")
_MOST_BYTES: Final = 16 << 20
_MOST_DESCRIPTORS: Final = 128
_MOST_COMMANDS: Final = 64


class Helper:
    """Receives requests, starts a supervisor for each, and reports which of them ended."""

    def __init__(self, control: socket.socket, mechanisms: Mechanisms) -> None:
        self._control = control
        self._mechanisms = mechanisms
        self._commands: dict[int, int] = {}
        """Supervisor process to request number."""

    def serve(self) -> None:
        """Serve until the other end of the socket is closed, then end everything."""
        wakeup, wake = socket.socketpair()
        wakeup.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            if wakeup.fileno() in ready:
                with suppress(BlockingIOError):
                    wakeup.recv(4096)
            self._reap()
            if self._control.fileno() in ready and not self._receive():
                break
        signal.set_wakeup_fd(-1)
        self._end()

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to the process that started this one; it may have ended."""
        with suppress(OSError):
            self._control.send(json.dumps(message).encode())

    def _receive(self) -> bool:
        try:
            header, descriptors, _, _ = socket.recv_fds(
                self._control, _HEADER.size, _MOST_DESCRIPTORS
            )
        except OSError:
            return False
        if len(header) != _HEADER.size or not descriptors:
            return False
        number, length = _HEADER.unpack(header)
        try:
            self._fork(_read_request(number, length, descriptors))
        except (CannotConfine, OSError, ValueError, KeyError, TypeError) as error:
            self.tell({"id": number, "error": str(error) or type(error).__name__})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, request: Request) -> None:
        if len(self._commands) >= _MOST_COMMANDS:
            raise CannotConfine(f"{_MOST_COMMANDS} confined commands are running already")
        pid = os.fork()
        if pid:
            self._commands[pid] = request.number
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        Supervisor(request, self._mechanisms, self.tell).run()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            number = self._commands.pop(pid, None)
            if number is not None:
                if os.WIFSIGNALED(status):
                    # A killed supervisor leaves its command's processes to this one.
                    end_children(set(self._commands))
                self.tell({"id": number, "ended": True})

    def _end(self) -> None:
        """End all commands, and wait for them."""
        for pid in self._commands:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            self._commands.pop(pid, None)
            if os.WIFSIGNALED(status):
                end_children(set(self._commands))


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Only wake the loop: an ignored signal would not."""


def _read_request(number: int, length: int, descriptors: list[int]) -> Request:
    if length > _MOST_BYTES:
        raise CannotConfine("the request is too long")
    body = b""
    while len(body) < length:
        part = os.pread(descriptors[0], length - len(body), len(body))
        if not part:
            raise CannotConfine("the request is incomplete")
        body += part
    for descriptor in descriptors[1:]:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise CannotConfine("a folder cannot be passed as a descriptor")
    fields = json.loads(body)
    fields["id"] = number
    return Request(fields, descriptors[1:])


def _accounts() -> dict[str, str]:
    """Return the short files of a private /etc."""
    user, group = os.geteuid(), os.getegid()
    name = _name("/etc/passwd", user) or "user"
    group_name = _name("/etc/group", group) or name
    passwd = ["root:x:0:0:root:/:/bin/sh"]
    groups = ["root:x:0:"]
    if user:
        passwd.append(f"{name}:x:{user}:{group}::/:/bin/sh")
    if group:
        groups.append(f"{group_name}:x:{group}:")
    return {
        "passwd": "\n".join(passwd) + "\n",
        "group": "\n".join(groups) + "\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }


def _name(path: str, number: int) -> str:
    with suppress(OSError), open(path, "rb") as file:
        for line in file:
            match line.split(b":"):
                case [name, _, found, *_] if found.strip() == str(number).encode():
                    return name.decode("ascii", "replace")
                case _:
                    continue
    return ""


def _prepare(landlock: int, *, namespaces: bool) -> Mechanisms:
    abi = min(landlock_rules.version(), landlock)
    if landlock and not abi:
        raise CannotConfine("this kernel has no Landlock")
    accounts = _accounts()
    if namespaces:
        private_root.enter_namespaces()
    if not landlock and not namespaces:
        raise CannotConfine("no mechanism was chosen")
    return Mechanisms(landlock=abi, namespaces=namespaces, accounts=accounts)


def main(arguments: list[str]) -> NoReturn:
    """Serve on a descriptor: DESCRIPTOR LANDLOCK-VERSION NAMESPACES."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    os.chdir("/")
    gc.disable()
    gc.freeze()
    try:
        mechanisms = _prepare(int(arguments[1]), namespaces=arguments[2] == "1")
    except (CannotConfine, OSError) as error:
        control.send(json.dumps({"error": str(error)}).encode())
        sys.exit(1)
    control.send(json.dumps({"landlock": mechanisms.landlock}).encode())
    Helper(control, mechanisms).serve()
    os._exit(0)
