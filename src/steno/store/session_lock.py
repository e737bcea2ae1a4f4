"""Who writes to a session: process announcements, detection of live writers, and the session lock.

with SessionLock.acquire(path):    # raises Busy at once when another process holds it
    ...

The lock file is in steno's own folder, never among the sessions. The kernel holds the lock on an open descriptor, so it
ends with the process; a file left by a killed process is taken over at once. The file's content (process, host, time)
is for messages only. A file system without locks is refused. Claude Code does not know this lock: its own
`sessions/PID.json` files are checked as well, and its writes are noticed by `steno.store.append`. `SessionAnnouncement`
writes such a file for this process.
"""

import os
import stat
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from types import TracebackType
from typing import Final, Self

import msgspec

from steno.errors import Busy, Unwritable
from steno.format.paths import classify_transcript
from steno.format.sidecars import LiveProcess
from steno.store.atomic import (
    PRIVATE_FOLDER_MODE,
    FileIdentity,
    is_process_alive,
    open_private,
    process_start_time,
    real_path,
    write_atomic,
    writing,
)
from steno.store.client_folders import ConfigFolder
from steno.store.discovery import path_context
from steno.store.environment import now, steno_home
from steno.store.file_lock import lock_descriptor


class SessionAnnouncement:
    """The note of one process that it works on a session; gone when it is closed."""

    def __init__(self, config_folder: str, session_id: str, cwd: str, version: str) -> None:
        pid, time_ms = os.getpid(), int(now() * 1000)
        self.path = os.path.join(config_folder, "sessions", f"{pid}.json")
        # A process that works on several sessions tells of each; others look into every note.
        self._session_path = os.path.join(config_folder, "sessions", f"{pid}-{session_id[:8]}.json")
        self._content = msgspec.json.encode(
            LiveProcess(
                pid=pid,
                session_id=session_id,
                cwd=cwd,
                started_at=time_ms,
                updated_at=time_ms,
                proc_start=process_start_time(pid),
                version=version,
                entrypoint="steno",
                status="busy",
            )
        )

    def open(self) -> None:
        """Tell it. Where it cannot be told the work goes on: it is a courtesy."""
        if self._is_other_session():
            self.path = self._session_path
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=PRIVATE_FOLDER_MODE, exist_ok=True)
            write_atomic(self.path, (self._content,), sync=False)

    def _is_other_session(self) -> bool:
        """Whether another session of this very process is told of already."""
        try:
            with open(self.path, "rb") as file:
                other = msgspec.json.decode(file.read(), type=LiveProcess)
        except (OSError, msgspec.MsgspecError):
            return False
        own_process = msgspec.json.decode(self._content, type=LiveProcess)
        return other.session_id != own_process.session_id and other.proc_start == own_process.proc_start

    def close(self) -> None:
        """Take it back, unless another session of this process stands there by now."""
        with suppress(OSError):
            with open(self.path, "rb") as file:
                is_own = file.read() == self._content
            if is_own:
                os.unlink(self.path)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_RECENT_SECONDS: Final = 3
"""For how many seconds after the last write more may come: a client writes as it thinks."""


def is_being_written(path: str, identity: FileIdentity) -> bool:
    """Say whether more may be written to a file.

    It is not what it was when it was read, it was written a moment ago, or a live client has it open.
    """
    if current_identity(real_path(path)) != identity or live_writer(path) is not None:
        return True
    return is_recently_written(identity.mtime_ns)


def is_recently_written(mtime_ns: int) -> bool:
    """Say whether a file was written to so lately that more may come."""
    return abs(now() - mtime_ns / 1e9) < _RECENT_SECONDS


def live_writer(path: str) -> LiveProcess | None:
    """Return the live client that says it is at work on the session of a file, if there is one."""
    for candidate in dict.fromkeys((path, real_path(path))):
        folder = ConfigFolder.containing(candidate)
        if folder is None:
            continue
        stem = os.path.basename(candidate).removesuffix(".jsonl")
        ids = {stem, classify_transcript(path_context(candidate)).session_id} - {""}
        for process in folder.live_processes():
            if process.session_id in ids and is_running(process):
                return process
    return None


def is_running(process: LiveProcess) -> bool:
    """Say whether a client still runs: its number may be another process's by now."""
    if not is_process_alive(process.pid):
        return False
    if not process.proc_start.isdecimal():
        return True
    return process_start_time(process.pid) in {"", process.proc_start}


def current_identity(path: str) -> FileIdentity | None:
    """Return what a file is at this moment; None when it is no file."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return FileIdentity.from_status(status) if stat.S_ISREG(status.st_mode) else None


def refuse_if_written(path: str, expected: FileIdentity, *, check_clients: bool) -> None:
    """Let nobody exchange a file that is not what was read, or, if asked, that a client has open.

    Raises Busy if it is one.
    """
    if current_identity(real_path(path)) != expected:
        raise Busy(f"{path} changed since it was read", hint="nothing was changed; try again")
    process = live_writer(path) if check_clients else None
    if process is not None:
        raise Busy(
            f"{path} is in use: a client is at work on it (process {process.pid})",
            hint="nothing was changed; leave that session first",
        )


_LOCKS_FOLDER: Final = "locks"
_MAX_HOLDER_SIZE: Final = 1 << 16
_MAX_READS: Final = 50
_READ_PAUSE: Final = 0.01
"""A holder writes its name right after it has locked; whoever comes between looks again."""
_MAX_ATTEMPTS: Final = 1000
BUSY_HINT: Final = "wait for it to end, or continue in a copy with --fork-session (in the console: /fork)"


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that has a session's lock."""

    pid: int
    start: str = ""
    """When the process began, as Linux counts: tells it from a later one with its number."""
    host: str = ""
    time: float = 0.0
    """When the session was opened, in seconds since 1970."""
    path: str = ""

    def describe(self) -> str:
        """Return who it is, in words for the user."""
        if self.pid == os.getpid() and self.host == _host_name():
            return "this process"
        start_time = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.time))
        host = f" on {self.host}" if self.host != _host_name() else ""
        return f"process {self.pid}{host}, since {start_time}"


class SessionLock:
    """The lock of one session, held until `release`, or until the process ends."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._finalizer = weakref.finalize(self, _release_lock, path, descriptor, os.getpid())

    @classmethod
    def acquire(cls, session: str, *, check_clients: bool = True, env: Mapping[str, str] | None = None) -> Self:
        """Take the lock of a session file, or of the session that a sub-agent's file belongs to.

        `check_clients=False` does not ask whether a client that has no lock says it works on the session. Raises Busy if another
        process works on the session, or Unwritable if the lock file cannot be written, or its file system has no locks.
        """
        path = lock_path(session, env=env)
        lock = cls(path, _acquire(path, session))
        process = live_writer(session) if check_clients else None
        if process is not None and process.pid != os.getpid():
            lock.release()
            name = os.path.basename(session)
            raise Busy(f"{name} is in use by process {process.pid}", hint=BUSY_HINT)
        return lock

    def release(self) -> None:
        """Let others have it; may be repeated."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def refuse_if_locked(session: str) -> None:
    """Raise `Busy` if another process has the lock of a session; leaves nothing behind."""
    if os.path.exists(lock_path(session)):
        SessionLock.acquire(session, check_clients=False).release()


def lock_path(session: str, *, env: Mapping[str, str] | None = None) -> str:
    """Return the lock file of a session."""
    name = sha256(os.fsencode(_owning_session(session))).hexdigest()[:32]
    return os.path.join(steno_home(env), _LOCKS_FOLDER, f"{name}.lock")


def _owning_session(path: str) -> str:
    """Return the real path of the session that a file belongs to: a sub-agent has no lock."""
    path = os.path.realpath(path)
    location = classify_transcript(path_context(path))
    folder_part = f"{os.sep}{location.session_id}{os.sep}"
    if location.role == "session" or not location.session_id or folder_part not in path:
        return path
    return f"{path[: path.rindex(folder_part)]}{os.sep}{location.session_id}.jsonl"


def _acquire(path: str, session: str) -> int:
    # Made before it is locked: whoever is refused waits for the name for a short time only.
    content = _holder_content(session)
    for _ in range(_MAX_ATTEMPTS):
        with writing(path):
            os.makedirs(os.path.dirname(path), PRIVATE_FOLDER_MODE, exist_ok=True)
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            if not lock_descriptor(descriptor, wait=False):
                raise _busy_error(path, session)
            if _is_current_file(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, content)
                return descriptor
        except Busy:
            os.close(descriptor)
            raise
        except OSError as error:
            os.close(descriptor)
            raise Unwritable(
                f"cannot lock {path}: {(error.strerror or str(error)).lower()}",
                hint="set STENO_HOME to a folder on a local disk",
            ) from error
        # The holder before us has removed the file between our opening and our locking it.
        os.close(descriptor)
    raise _busy_error(path, session)


def _is_current_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _holder_content(session: str) -> bytes:
    holder = LockHolder(
        pid=os.getpid(),
        start=process_start_time(os.getpid()),
        host=_host_name(),
        time=now(),
        path=os.path.realpath(session).encode("utf-8", "replace").decode(),
    )
    return msgspec.json.encode(holder)


def _busy_error(path: str, session: str) -> Busy:
    holder = _current_holder(path)
    description = holder.describe() if holder is not None else "another process"
    return Busy(f"{os.path.basename(session)} is in use by {description}", hint=BUSY_HINT)


def _current_holder(path: str) -> LockHolder | None:
    """Return who has a lock; None when it does not say so in time."""
    previous: LockHolder | None = None
    for attempt in range(_MAX_READS):
        if attempt:
            time.sleep(_READ_PAUSE)
        holder = _read_holder(path)
        if holder is None:
            continue
        # Whether a process of another host runs is not known here: it is named if it stays. One of this host may have
        # been killed before ours.
        process = LiveProcess(pid=holder.pid, proc_start=holder.start)
        if is_running(process) if holder.host == _host_name() else holder == previous:
            return holder
        previous = holder
    return None


def _read_holder(path: str) -> LockHolder | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MAX_HOLDER_SIZE), type=LockHolder)
    except (OSError, msgspec.MsgspecError):
        return None


def _host_name() -> str:
    import platform

    return platform.node()


def _release_lock(path: str, descriptor: int, pid: int) -> None:
    if os.getpid() != pid:
        # A forked child has a copy of the descriptor; the lock is its parent's.
        os.close(descriptor)
        return
    # Removed while it is locked: whoever has opened it meanwhile sees that it has no name any more.
    try:
        if _is_current_file(descriptor, path):
            os.unlink(path)
    except OSError:
        # It stays, unlocked: the next process takes it over.
        pass
    finally:
        os.close(descriptor)
