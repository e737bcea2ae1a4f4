"""The helper process that starts sandboxed commands. Imports only the standard library.

The helper runs isolated (`python -I -S`) with an empty environment and receives requests through a socket: one message
per command, with file descriptors; the command itself is in a memory file. For each command it forks a supervisor,
which starts the command and ends all of its processes.

With namespaces: supervisor → first process of a PID namespace → the command. Without: supervisor → the command; the
supervisor adopts and ends the processes that remain.
"""

import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

from steno.permissions.sandbox import landlock_rules, mount_namespace, path_plan, seccomp, syscalls
from steno.permissions.sandbox.helper_protocol import HEADER, MAX_REQUEST_BYTES
from steno.permissions.sandbox.path_plan import PathPlan, SandboxSetupError

_CREDENTIALS: Final = struct.Struct("iii")
_STATUS: Final = struct.Struct("i")
_MAX_MESSAGE: Final = 4000
_DAC_OVERRIDE: Final = 1
_DAC_READ_SEARCH: Final = 2
_FOWNER: Final = 3
_MAX_PROCESSES: Final = 4096
_MAX_FILE_BYTES: Final = 4 << 30
_AF_INET_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_PLACEHOLDER_MODE: Final = 0o555
_PLACEHOLDER_TIME: Final = 1


class CommandRequest:
    """One command to start, as received."""

    def __init__(self, fields: dict[str, Any], descriptors: list[int]) -> None:
        self.number = int(fields["id"])
        self.argv: list[str] = [str(word) for word in fields["argv"]]
        self.env: dict[str, str] = dict(fields["env"])
        self.policy: dict[str, Any] = fields["policy"]
        targets: list[int] = [1, 2, *fields["fds"]]
        self.descriptors = dict(zip(targets, descriptors, strict=True))


class ActiveMechanisms:
    """The mechanisms that the helper uses."""

    def __init__(self, *, landlock: int, namespaces: bool, accounts: dict[str, str]) -> None:
        self.landlock = landlock
        self.namespaces = namespaces
        self.accounts = accounts
        self.system_plan = path_plan.system_paths(accounts=not namespaces)
        # Assembled and cached here, so that commands start faster.
        for writes in (False, True):
            seccomp.assemble_filter(self.filter_options(writes=writes))

    def filter_options(self, *, writes: bool) -> seccomp.FilterOptions:
        """Return the restrictions that the seccomp filter must add to the other mechanisms."""
        return seccomp.FilterOptions(
            metadata=not self.namespaces,
            touch=writes,
            signals=self.filter_signals,
            processes=not self.namespaces,
            truncation=not self.namespaces and self.landlock < landlock_rules.TRUNCATION_VERSION,
        )

    @property
    def filter_signals(self) -> bool:
        """Whether only the seccomp filter can block signals to other processes."""
        return not self.namespaces and self.landlock < landlock_rules.SCOPES_VERSION


class Supervisor:
    """The process that starts one command, waits for it and ends its processes."""

    def __init__(
        self, request: CommandRequest, mechanisms: ActiveMechanisms, send: Callable[[dict[str, Any]], None]
    ) -> None:
        self._request = request
        self._mechanisms = mechanisms
        self._send = send
        self._child = 0
        self._placeholders: list[tuple[str, int]] = []

    def run(self) -> NoReturn:
        """Run the command to its end, then exit."""
        number = self._request.number
        try:
            self._start()
        except (SandboxSetupError, OSError, ValueError, KeyError, TypeError) as error:
            self._end_processes()
            self._remove_placeholders()
            self._send({"id": number, "error": _error_text(error)})
            os._exit(1)
        status = self._wait()
        self._remove_placeholders()
        self._send({"id": number, "status": status})
        os._exit(0)

    def _start(self) -> None:
        signal.signal(signal.SIGTERM, self._on_terminate)
        helper = os.getppid()
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != helper:
            raise SandboxSetupError("the helper ended")
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        _prefer_for_oom_kill()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        report_reader, report_writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        report_reader.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._status, status = os.pipe()
        namespaces = self._mechanisms.namespaces
        plan = path_plan.plan_paths(self._request.policy, self._mechanisms.system_plan)
        if namespaces:
            self._make_placeholders(plan)
            syscalls.unshare(syscalls.CLONE_NEWPID)
        elif self._mechanisms.landlock >= landlock_rules.SCOPES_VERSION:
            landlock_rules.limit_signals()
        self._child = os.fork()
        if not self._child:
            report_reader.close()
            self._become_child(plan, report_writer, status)
        report_writer.close()
        os.close(status)
        self._send({"id": self._request.number, "pid": _receive_pid(report_reader)})
        report_reader.close()
        for descriptor in self._request.descriptors.values():
            os.close(descriptor)

    def _become_child(self, plan: PathPlan, report: socket.socket, status: int) -> NoReturn:
        try:
            command_process = CommandProcess(self._request, self._mechanisms, plan)
            if self._mechanisms.namespaces:
                _run_as_init(command_process, plan, report, status)
            command_process.execute(report)
        except (SandboxSetupError, OSError, ValueError) as error:
            report.send(_error_text(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(127)

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        if self._child:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
        else:
            os._exit(1)

    def _wait(self) -> int:
        """Return the exit status of the command after all its processes have ended."""
        status = os.waitpid(self._child, 0)[1]
        if self._mechanisms.namespaces:
            # The first process ended, so the kernel has ended all others of its namespace.
            status_bytes = os.read(self._status, _STATUS.size)
            killed = -int(signal.SIGKILL)
            return _STATUS.unpack(status_bytes)[0] if len(status_bytes) == _STATUS.size else killed
        self._end_processes()
        return os.waitstatus_to_exitcode(status)

    def _end_processes(self) -> None:
        """End all descendants of this process and wait for them."""
        signals_isolated = self._mechanisms.landlock >= landlock_rules.SCOPES_VERSION
        signals_isolated = signals_isolated and not self._mechanisms.namespaces and _signals_are_isolated()
        while True:
            if signals_isolated:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)
            else:
                end_children(set())
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _make_placeholders(self, plan: PathPlan) -> None:
        """Create empty directories at paths that must not be created, to mount over and remove later.

        They are locked while in use: removing one would also remove the mounts over it.
        """
        for path in plan.missing:
            plan.read_only.add(path)
            while True:
                with suppress(FileExistsError):
                    os.mkdir(path, _PLACEHOLDER_MODE)
                    os.utime(path, (_PLACEHOLDER_TIME, _PLACEHOLDER_TIME))
                try:
                    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                except FileNotFoundError:
                    continue
                fcntl.flock(lock, fcntl.LOCK_SH)
                if _is_same_file(lock, path):
                    self._placeholders.append((path, lock))
                    break
                os.close(lock)
        plan.missing.clear()
        # Left behind by a supervisor that was killed.
        for path in plan.read_only - {path for path, _ in self._placeholders}:
            with suppress(OSError):
                status = os.lstat(path)
                if int(status.st_mtime) == _PLACEHOLDER_TIME and not os.listdir(path):
                    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    fcntl.flock(lock, fcntl.LOCK_SH)
                    if not _is_same_file(lock, path):
                        raise SandboxSetupError(f"{path!r} changed during setup")
                    self._placeholders.append((path, lock))

    def _remove_placeholders(self) -> None:
        for path, lock in self._placeholders:
            # If another supervisor uses it, that one will remove it.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rmdir(path)
            os.close(lock)


def _prefer_for_oom_kill() -> None:
    """Make the kernel kill this process and its children first when memory runs out."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _is_same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _signals_are_isolated() -> bool:
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False


def end_children(keep: set[int]) -> None:
    """Kill the descendants of this process, except the children in `keep`."""
    pairs: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                pairs.append((int(name), int(file.read().rpartition(b")")[2].split()[1])))
    doomed: set[int] = set()
    parents = {os.getpid()}
    while parents:
        parents = {pid for pid, parent in pairs if parent in parents} - keep - doomed
        doomed |= parents
    for pid in doomed:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _receive_pid(report: socket.socket) -> int:
    """Return the process ID of the command after it was executed.

    Raises:
        SandboxSetupError: it was not executed.
    """
    pid = 0
    while True:
        space = socket.CMSG_SPACE(_CREDENTIALS.size)
        text, parts, _, _ = report.recvmsg(_MAX_MESSAGE, space)
        if not text:
            break
        if text != b"\0":
            raise SandboxSetupError(text.decode("utf-8", "replace"))
        for level, kind, data in parts:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
    if not pid:
        raise SandboxSetupError("the process ended during sandbox setup")
    return pid


def _error_text(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[: _MAX_MESSAGE // 4] or type(error).__name__


def _run_as_init(command_process: "CommandProcess", plan: PathPlan, report: socket.socket, status: int) -> NoReturn:
    """Set up the namespaces, start the command, and exit when it ends."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    mount_namespace.enter_private_root(plan, command_process.accounts)
    command = os.fork()
    if not command:
        command_process.execute(report)
    # Other processes of the same user in the namespace could inspect this process.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.close_other_descriptors({status})
    while True:
        pid, ended = os.waitpid(-1, 0)
        if pid == command:
            os.write(status, _STATUS.pack(os.waitstatus_to_exitcode(ended)))
            os._exit(0)


class CommandProcess:
    """The process that turns into the command."""

    def __init__(self, request: CommandRequest, mechanisms: ActiveMechanisms, plan: PathPlan) -> None:
        self._request = request
        self._mechanisms = mechanisms
        self._plan = plan

    @property
    def accounts(self) -> dict[str, str]:
        """The text of files in a private /etc."""
        return self._mechanisms.accounts

    def execute(self, report: socket.socket) -> NoReturn:
        """Restrict this process and execute the command; report an error and exit if that fails."""
        self._report = report
        try:
            self._execute()
        except (SandboxSetupError, OSError, ValueError) as error:
            self._report.send(_error_text(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(127)

    def _execute(self) -> None:
        parent = os.getppid()
        os.setsid()
        os.chdir(self._request.policy["cwd"])
        self._set_limits()
        self._place_descriptors()
        self._apply_restrictions()
        if not self._mechanisms.namespaces:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                raise SandboxSetupError("the supervisor ended")
        _reset_signals()
        self._report.send(b"\0")
        argv = self._request.argv
        try:
            os.execvpe(argv[0], argv, self._request.env)
        except OSError as error:
            raise SandboxSetupError(f"{argv[0]}: {error.strerror}") from error

    def _apply_restrictions(self) -> None:
        mechanisms = self._mechanisms
        rules = None
        if mechanisms.landlock:
            rules = landlock_rules.LandlockRuleset(mechanisms.landlock)
            rules.add_rules(
                self._plan,
                has_mounts=mechanisms.namespaces,
                list_denied=bool(self._request.policy["list_denied_names"]),
            )
        writes = len(self._plan.writable) > 1
        kept_capabilities: set[int] = set()
        if os.geteuid() == 0:
            # Files of other users stay readable for root; mounts and Landlock limit where they may be written.
            kept_capabilities = {_DAC_OVERRIDE, _DAC_READ_SEARCH} | ({_FOWNER} if writes else set())
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        syscalls.drop_capabilities(frozenset(kept_capabilities))
        if rules:
            rules.apply()
        seccomp.install_filter(mechanisms.filter_options(writes=writes))
        if syscalls.syscall(_AF_INET_SOCKET[syscalls.machine()], 2, 1, 0) >= 0:
            raise SandboxSetupError("the seccomp filter has no effect")

    def _set_limits(self) -> None:
        _lower_limit(resource.RLIMIT_CORE, 0)
        _lower_limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
        if self._mechanisms.namespaces:
            # Counted within the user namespace; without one, all processes of the user count.
            _lower_limit(resource.RLIMIT_NPROC, _MAX_PROCESSES)

    def _place_descriptors(self) -> None:
        """Duplicate each descriptor to its requested number, and close all others."""
        descriptors = dict(self._request.descriptors)
        descriptors[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        above = max(descriptors) + 1
        moved = {target: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for target, number in descriptors.items()}
        report = fcntl.fcntl(self._report.fileno(), fcntl.F_DUPFD_CLOEXEC, above)
        self._report.detach()
        self._report = socket.socket(fileno=report)
        for target, number in moved.items():
            os.dup2(number, target, inheritable=True)
        syscalls.close_other_descriptors({*moved, report})


def _lower_limit(limit: int, value: int) -> None:
    soft, hard = resource.getrlimit(limit)
    new_limit = value if hard == resource.RLIM_INFINITY else min(hard, value)
    if soft == resource.RLIM_INFINITY or soft > new_limit or hard != new_limit:
        resource.setrlimit(limit, (new_limit, new_limit))


def _reset_signals() -> None:
    """Reset ignored and blocked signals; handlers are lost on exec."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


_MAX_DESCRIPTORS: Final = 128
_MAX_COMMANDS: Final = 64


class HelperServer:
    """Receives requests, starts a supervisor for each, and reports when they end."""

    def __init__(self, connection: socket.socket, mechanisms: ActiveMechanisms) -> None:
        self._connection = connection
        self._mechanisms = mechanisms
        self._commands: dict[int, int] = {}
        """Request numbers by supervisor process ID."""

    def serve(self) -> None:
        """Serve until the other end closes the socket, then end all commands."""
        wakeup, wake = socket.socketpair()
        wakeup.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            if wakeup.fileno() in ready:
                with suppress(BlockingIOError):
                    wakeup.recv(4096)
            self._reap()
            if self._connection.fileno() in ready and not self._receive():
                break
        signal.set_wakeup_fd(-1)
        self._end_all_commands()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the parent process, which may have ended."""
        with suppress(OSError):
            self._connection.send(json.dumps(message).encode())

    def _receive(self) -> bool:
        try:
            header, descriptors, _, _ = socket.recv_fds(self._connection, HEADER.size, _MAX_DESCRIPTORS)
        except OSError:
            return False
        if len(header) != HEADER.size or not descriptors:
            return False
        number, length = HEADER.unpack(header)
        try:
            self._fork(_read_request(number, length, descriptors))
        except (SandboxSetupError, OSError, ValueError, KeyError, TypeError) as error:
            self.send({"id": number, "error": str(error) or type(error).__name__})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, request: CommandRequest) -> None:
        if len(self._commands) >= _MAX_COMMANDS:
            raise SandboxSetupError(f"{_MAX_COMMANDS} sandboxed commands are already running")
        pid = os.fork()
        if pid:
            self._commands[pid] = request.number
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        Supervisor(request, self._mechanisms, self.send).run()

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
                    # The processes of a killed supervisor's command are now children of this process.
                    end_children(set(self._commands))
                self.send({"id": number, "ended": True})

    def _end_all_commands(self) -> None:
        """End all commands and wait for them."""
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


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Do nothing; a handler is needed to wake the loop."""


def _read_request(number: int, length: int, descriptors: list[int]) -> CommandRequest:
    if length > MAX_REQUEST_BYTES:
        raise SandboxSetupError("the request is too long")
    body = b""
    while len(body) < length:
        part = os.pread(descriptors[0], length - len(body), len(body))
        if not part:
            raise SandboxSetupError("the request is incomplete")
        body += part
    for descriptor in descriptors[1:]:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise SandboxSetupError("a directory cannot be passed as a descriptor")
    fields = json.loads(body)
    fields["id"] = number
    return CommandRequest(fields, descriptors[1:])


def _account_files() -> dict[str, str]:
    """Return the minimal account files of a private /etc."""
    user, group = os.geteuid(), os.getegid()
    name = _account_name("/etc/passwd", user) or "user"
    group_name = _account_name("/etc/group", group) or name
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


def _account_name(path: str, number: int) -> str:
    with suppress(OSError), open(path, "rb") as file:
        for line in file:
            match line.split(b":"):
                case [name, _, account_id, *_] if account_id.strip() == str(number).encode():
                    return name.decode("ascii", "replace")
                case _:
                    continue
    return ""


def _prepare_mechanisms(landlock: int, *, namespaces: bool) -> ActiveMechanisms:
    abi = min(landlock_rules.abi_version(), landlock)
    if landlock and not abi:
        raise SandboxSetupError("this kernel has no Landlock")
    accounts = _account_files()
    if namespaces:
        mount_namespace.enter_namespaces()
    if not landlock and not namespaces:
        raise SandboxSetupError("no mechanism selected")
    return ActiveMechanisms(landlock=abi, namespaces=namespaces, accounts=accounts)


def main(arguments: list[str]) -> NoReturn:
    """Serve on a descriptor; arguments: DESCRIPTOR LANDLOCK-VERSION NAMESPACES."""
    connection = socket.socket(fileno=int(arguments[0]))
    connection.set_inheritable(False)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    os.chdir("/")
    gc.disable()
    gc.freeze()
    try:
        mechanisms = _prepare_mechanisms(int(arguments[1]), namespaces=arguments[2] == "1")
    except (SandboxSetupError, OSError) as error:
        connection.send(json.dumps({"error": str(error)}).encode())
        sys.exit(1)
    connection.send(json.dumps({"landlock": mechanisms.landlock}).encode())
    HelperServer(connection, mechanisms).serve()
    os._exit(0)
