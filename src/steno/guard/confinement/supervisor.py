"""Starts one confined command and ends all of it. Imports nothing outside the standard library.

With namespaces: supervisor → first process of a PID namespace → the command. Without: supervisor
→ the command, and the supervisor adopts and ends what the command leaves behind.
"""

import fcntl
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn

from steno.guard.confinement import kernel, landlock_rules, private_root, seccomp, trees
from steno.guard.confinement.trees import CannotConfine, Trees

_CREDENTIALS: Final = struct.Struct("iii")
_STATUS: Final = struct.Struct("i")
_MOST_TEXT: Final = 4000
_DAC_OVERRIDE: Final = 1
_DAC_READ_SEARCH: Final = 2
_FOWNER: Final = 3
_MOST_PROCESSES: Final = 4096
_MOST_FILE_BYTES: Final = 4 << 30
_AF_INET_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_PLACEHOLDER_MODE: Final = 0o555
_PLACEHOLDER_TIME: Final = 1


class Request:
    """One command to start, as the helper received it."""

    def __init__(self, fields: dict[str, Any], descriptors: list[int]) -> None:
        self.number = int(fields["id"])
        self.argv: list[str] = [str(word) for word in fields["argv"]]
        self.env: dict[str, str] = dict(fields["env"])
        self.policy: dict[str, Any] = fields["policy"]
        targets: list[int] = [1, 2, *fields["fds"]]
        self.descriptors = dict(zip(targets, descriptors, strict=True))


class Mechanisms:
    """What the helper may use."""

    def __init__(self, *, landlock: int, namespaces: bool, accounts: dict[str, str]) -> None:
        self.landlock = landlock
        self.namespaces = namespaces
        self.accounts = accounts
        self.system = trees.system_trees(accounts=not namespaces)
        # Assembled here, so that it is not done again for each command.
        for writes in (False, True):
            seccomp.assemble(self.filter_options(writes=writes))

    def filter_options(self, *, writes: bool) -> seccomp.Options:
        """Return what the seccomp filter has to do besides the other mechanisms."""
        return seccomp.Options(
            metadata=not self.namespaces,
            touch=writes,
            signals=self.filter_signals,
            processes=not self.namespaces,
            truncation=not self.namespaces and self.landlock < landlock_rules.TRUNCATION_FROM,
        )

    @property
    def filter_signals(self) -> bool:
        """Whether only the seccomp filter can keep signals from other processes."""
        return not self.namespaces and self.landlock < landlock_rules.SCOPES_FROM


class Supervisor:
    """The process that starts one command, waits for it and ends what it started."""

    def __init__(
        self, request: Request, mechanisms: Mechanisms, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self._request = request
        self._mechanisms = mechanisms
        self._tell = tell
        self._child = 0
        self._placeholders: list[tuple[str, int]] = []

    def run(self) -> NoReturn:
        """Run the command to its end, then end this process."""
        number = self._request.number
        try:
            self._start()
        except (CannotConfine, OSError, ValueError, KeyError, TypeError) as error:
            self._end_all()
            self._remove_placeholders()
            self._tell({"id": number, "error": _text(error)})
            os._exit(1)
        status = self._wait()
        self._remove_placeholders()
        self._tell({"id": number, "status": status})
        os._exit(0)

    def _start(self) -> None:
        signal.signal(signal.SIGTERM, self._on_terminate)
        helper = os.getppid()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != helper:
            raise CannotConfine("the helper ended")
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        _end_first_without_memory()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._status, status = os.pipe()
        namespaces = self._mechanisms.namespaces
        wanted = trees.plan(self._request.policy, self._mechanisms.system)
        if namespaces:
            self._make_placeholders(wanted)
            kernel.unshare(kernel.CLONE_NEWPID)
        elif self._mechanisms.landlock >= landlock_rules.SCOPES_FROM:
            landlock_rules.isolate_signals()
        self._child = os.fork()
        if not self._child:
            ours.close()
            self._become_child(wanted, theirs, status)
        theirs.close()
        os.close(status)
        self._tell({"id": self._request.number, "pid": _started(ours)})
        ours.close()
        for descriptor in self._request.descriptors.values():
            os.close(descriptor)

    def _become_child(self, wanted: Trees, report: socket.socket, status: int) -> NoReturn:
        try:
            leader = Leader(self._request, self._mechanisms, wanted)
            if self._mechanisms.namespaces:
                _be_first_process(leader, wanted, report, status)
            leader.execute(report)
        except (CannotConfine, OSError, ValueError) as error:
            report.send(_text(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(127)

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        if self._child:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
        else:
            os._exit(1)

    def _wait(self) -> int:
        """Return the command's exit status when everything that it started has ended."""
        status = os.waitpid(self._child, 0)[1]
        if self._mechanisms.namespaces:
            # The first process ended, so the kernel has ended all others of its namespace.
            sent = os.read(self._status, _STATUS.size)
            killed = -int(signal.SIGKILL)
            return _STATUS.unpack(sent)[0] if len(sent) == _STATUS.size else killed
        self._end_all()
        return os.waitstatus_to_exitcode(status)

    def _end_all(self) -> None:
        """End all processes that descend from this one, and wait for them."""
        scoped = self._mechanisms.landlock >= landlock_rules.SCOPES_FROM
        scoped = scoped and not self._mechanisms.namespaces and _signals_are_isolated()
        while True:
            if scoped:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)
            else:
                end_children(set())
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _make_placeholders(self, wanted: Trees) -> None:
        """Create empty folders where nothing may be created, to mount over and remove later.

        They are locked while in use: removing one would also remove the mounts over it.
        """
        for path in wanted.missing:
            wanted.read_only.add(path)
            while True:
                with suppress(FileExistsError):
                    os.mkdir(path, _PLACEHOLDER_MODE)
                    os.utime(path, (_PLACEHOLDER_TIME, _PLACEHOLDER_TIME))
                try:
                    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                except FileNotFoundError:
                    continue
                fcntl.flock(lock, fcntl.LOCK_SH)
                if _is_at(lock, path):
                    self._placeholders.append((path, lock))
                    break
                os.close(lock)
        wanted.missing.clear()
        # Left behind by a supervisor that was killed.
        for path in wanted.read_only - {path for path, _ in self._placeholders}:
            with suppress(OSError):
                status = os.lstat(path)
                if int(status.st_mtime) == _PLACEHOLDER_TIME and not os.listdir(path):
                    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    fcntl.flock(lock, fcntl.LOCK_SH)
                    if not _is_at(lock, path):
                        raise CannotConfine(f"{path!r} changed meanwhile")
                    self._placeholders.append((path, lock))

    def _remove_placeholders(self) -> None:
        for path, lock in self._placeholders:
            # Somebody else who uses it will remove it.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rmdir(path)
            os.close(lock)


def _end_first_without_memory() -> None:
    """Let the kernel end this process and what it starts before others when memory is used up."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _is_at(descriptor: int, path: str) -> bool:
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


def end_children(spare: set[int]) -> None:
    """Kill the children of this process and their descendants, except some children."""
    pairs: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                pairs.append((int(name), int(file.read().rpartition(b")")[2].split()[1])))
    doomed: set[int] = set()
    above = {os.getpid()}
    while above:
        above = {pid for pid, parent in pairs if parent in above} - spare - doomed
        doomed |= above
    for pid in doomed:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _started(report: socket.socket) -> int:
    """Return the command's process number once it is executed.

    Raises:
        CannotConfine: it was not.
    """
    pid = 0
    while True:
        space = socket.CMSG_SPACE(_CREDENTIALS.size)
        text, parts, _, _ = report.recvmsg(_MOST_TEXT, space)
        if not text:
            break
        if text != b"\0":
            raise CannotConfine(text.decode("utf-8", "replace"))
        for level, kind, data in parts:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
    if not pid:
        raise CannotConfine("the process ended while it was being confined")
    return pid


def _text(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[: _MOST_TEXT // 4] or type(error).__name__


def _be_first_process(
    leader: "Leader", wanted: Trees, report: socket.socket, status: int
) -> NoReturn:
    """Set up the namespaces, start the command, and end with it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    private_root.enter_private_root(wanted, leader.accounts)
    command = os.fork()
    if not command:
        leader.execute(report)
    # Inside, others of the same user could look at what this process holds.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.close_all_but({status})
    while True:
        pid, ended = os.waitpid(-1, 0)
        if pid == command:
            os.write(status, _STATUS.pack(os.waitstatus_to_exitcode(ended)))
            os._exit(0)


class Leader:
    """Becomes the command."""

    def __init__(self, request: Request, mechanisms: Mechanisms, wanted: Trees) -> None:
        self._request = request
        self._mechanisms = mechanisms
        self._wanted = wanted

    @property
    def accounts(self) -> dict[str, str]:
        """The text of files in a private /etc."""
        return self._mechanisms.accounts

    def execute(self, report: socket.socket) -> NoReturn:
        """Confine this process and execute the command; report an error and end if that fails."""
        self._report = report
        try:
            self._execute()
        except (CannotConfine, OSError, ValueError) as error:
            self._report.send(_text(error).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(127)

    def _execute(self) -> None:
        parent = os.getppid()
        os.setsid()
        os.chdir(self._request.policy["cwd"])
        self._set_limits()
        self._place_descriptors()
        self._restrict()
        if not self._mechanisms.namespaces:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                raise CannotConfine("the supervisor ended")
        _reset_signals()
        self._report.send(b"\0")
        argv = self._request.argv
        try:
            os.execvpe(argv[0], argv, self._request.env)
        except OSError as error:
            raise CannotConfine(f"{argv[0]}: {error.strerror}") from error

    def _restrict(self) -> None:
        mechanisms = self._mechanisms
        rules = None
        if mechanisms.landlock:
            rules = landlock_rules.Rules(mechanisms.landlock)
            rules.fill(
                self._wanted,
                mounted=mechanisms.namespaces,
                list_denied=bool(self._request.policy["list_denied_names"]),
            )
        writes = len(self._wanted.writable) > 1
        keep: set[int] = set()
        if os.geteuid() == 0:
            # Files of others stay readable for an administrator; where they may be written is
            # up to mounts and Landlock.
            keep = {_DAC_OVERRIDE, _DAC_READ_SEARCH} | ({_FOWNER} if writes else set())
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.drop_capabilities(frozenset(keep))
        if rules:
            rules.apply()
        seccomp.apply(mechanisms.filter_options(writes=writes))
        if kernel.syscall(_AF_INET_SOCKET[kernel.machine()], 2, 1, 0) >= 0:
            raise CannotConfine("the seccomp filter has no effect")

    def _set_limits(self) -> None:
        _lower(resource.RLIMIT_CORE, 0)
        _lower(resource.RLIMIT_FSIZE, _MOST_FILE_BYTES)
        if self._mechanisms.namespaces:
            # Counted within the user namespace; without one, all processes of the user count.
            _lower(resource.RLIMIT_NPROC, _MOST_PROCESSES)

    def _place_descriptors(self) -> None:
        """Give the descriptors their numbers and close all others."""
        descriptors = dict(self._request.descriptors)
        descriptors[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        above = max(descriptors) + 1
        moved = {
            target: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above)
            for target, number in descriptors.items()
        }
        report = fcntl.fcntl(self._report.fileno(), fcntl.F_DUPFD_CLOEXEC, above)
        self._report.detach()
        self._report = socket.socket(fileno=report)
        for target, number in moved.items():
            os.dup2(number, target, inheritable=True)
        kernel.close_all_but({*moved, report})


def _lower(limit: int, value: int) -> None:
    soft, hard = resource.getrlimit(limit)
    most = value if hard == resource.RLIM_INFINITY else min(hard, value)
    if soft == resource.RLIM_INFINITY or soft > most or hard != most:
        resource.setrlimit(limit, (most, most))


def _reset_signals() -> None:
    """Undo ignored and blocked signals; handlers end with this program."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
