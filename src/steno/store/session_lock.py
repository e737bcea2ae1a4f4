"""Writers of a session: process announcements, detection of live writers, and the session lock.

with SessionLock.acquire(path):    # raises Busy at once when another process holds it
    ...

The lock file is in steno's home directory, never among the sessions. The kernel holds the lock on an open descriptor,
so it ends with the process; the lock file of a killed process is reused at once. The content of the file (process,
host, time) is used for messages only. File systems without locks are refused. Claude Code does not use this lock: its
`sessions/PID.json` files are checked as well, and `steno.store.append` detects its writes. `SessionAnnouncement` writes
such a file for this process.
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
    """A `sessions/PID.json` file that announces that this process uses a session."""

    def __init__(self, config_folder: str, session_id: str, cwd: str, version: str) -> None:
        pid, time_ms = os.getpid(), int(now() * 1000)
        self.path = os.path.join(config_folder, "sessions", f"{pid}.json")
        # A process that uses several sessions writes one file for each; other processes read all files.
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
        """Write the file. Errors are ignored because the announcement is optional."""
        if self._is_other_session():
            self.path = self._session_path
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=PRIVATE_FOLDER_MODE, exist_ok=True)
            write_atomic(self.path, (self._content,), sync=False)

    def _is_other_session(self) -> bool:
        """Return whether this process has already announced another session."""
        try:
            with open(self.path, "rb") as file:
                other = msgspec.json.decode(file.read(), type=LiveProcess)
        except (OSError, msgspec.MsgspecError):
            return False
        own_process = msgspec.json.decode(self._content, type=LiveProcess)
        return other.session_id != own_process.session_id and other.proc_start == own_process.proc_start

    def close(self) -> None:
        """Remove the file, unless this process has since announced another session in it."""
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
"""Seconds after the last write within which more writes are expected."""


def is_being_written(path: str, identity: FileIdentity) -> bool:
    """Return whether a file is still being written.

    True if it has changed since `identity` was taken, was written seconds ago, or belongs to a live session.
    """
    if current_identity(real_path(path)) != identity or live_writer(path) is not None:
        return True
    return is_recently_written(identity.mtime_ns)


def is_recently_written(mtime_ns: int) -> bool:
    """Return whether a file was modified within the last few seconds."""
    return abs(now() - mtime_ns / 1e9) < _RECENT_SECONDS


def live_writer(path: str) -> LiveProcess | None:
    """Return the running client that has announced the session of a file, if any."""
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
    """Return whether a client is still running; its PID may have been reused."""
    if not is_process_alive(process.pid):
        return False
    if not process.proc_start.isdecimal():
        return True
    return process_start_time(process.pid) in {"", process.proc_start}


def current_identity(path: str) -> FileIdentity | None:
    """Return the identity of a file now; None if it is not a regular file."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return FileIdentity.from_status(status) if stat.S_ISREG(status.st_mode) else None


def refuse_if_written(path: str, expected: FileIdentity, *, check_clients: bool) -> None:
    """Raise Busy if a file has changed since `expected`, or with `check_clients` if a live client uses it."""
    if current_identity(real_path(path)) != expected:
        raise Busy(f"{path} changed since it was read", hint="Nothing was written. Run the command again.")
    process = live_writer(path) if check_clients else None
    if process is not None:
        raise Busy(f"{path} is in use by process {process.pid}", hint="Nothing was written. Close that session first.")


_LOCKS_FOLDER: Final = "locks"
_MAX_HOLDER_SIZE: Final = 1 << 16
_MAX_READS: Final = 50
_READ_PAUSE: Final = 0.01
"""Seconds between reads of the holder, which is written shortly after the lock is taken."""
_MAX_ATTEMPTS: Final = 1000
BUSY_HINT: Final = "Wait until it ends, or continue in a fork: --fork-session (in the console: /fork)."


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a session's lock."""

    pid: int
    start: str = ""
    """Start time of the process as reported by Linux, to detect reuse of the PID."""
    host: str = ""
    time: float = 0.0
    """Time the lock was taken, in seconds since 1970."""
    path: str = ""

    def describe(self) -> str:
        """Describe the process for an error message."""
        if self.pid == os.getpid() and self.host == _host_name():
            return "this process"
        start_time = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.time))
        host = f" on {self.host}" if self.host != _host_name() else ""
        return f"process {self.pid}{host}, since {start_time}"


class SessionLock:
    """The lock of one session, held until `release` or until the process ends."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._finalizer = weakref.finalize(self, _release_lock, path, descriptor, os.getpid())

    @classmethod
    def acquire(cls, session: str, *, check_clients: bool = True, env: Mapping[str, str] | None = None) -> Self:
        """Lock a session; for a sub-agent's file, the session it belongs to.

        `check_clients=False` skips the check for running clients that do not use the lock. Raises Busy if another
        process uses the session, or Unwritable if the lock file cannot be written or its file system has no locks.
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
        """Release the lock; can be called repeatedly."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def refuse_if_locked(session: str) -> None:
    """Raise `Busy` if another process holds the lock of a session; no lock file is left."""
    if os.path.exists(lock_path(session)):
        SessionLock.acquire(session, check_clients=False).release()


def lock_path(session: str, *, env: Mapping[str, str] | None = None) -> str:
    """Return the path of a session's lock file."""
    name = sha256(os.fsencode(_owning_session(session))).hexdigest()[:32]
    return os.path.join(steno_home(env), _LOCKS_FOLDER, f"{name}.lock")


def _owning_session(path: str) -> str:
    """Return the real path of the session that a file belongs to; sub-agents share its lock."""
    path = os.path.realpath(path)
    location = classify_transcript(path_context(path))
    folder_part = f"{os.sep}{location.session_id}{os.sep}"
    if location.role == "session" or not location.session_id or folder_part not in path:
        return path
    return f"{path[: path.rindex(folder_part)]}{os.sep}{location.session_id}.jsonl"


def _acquire(path: str, session: str) -> int:
    # Built before the lock is taken, so that the holder can be written immediately afterwards.
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
                hint="Set STENO_HOME to a directory on a local disk.",
            ) from error
        # The previous holder removed the file after it was opened and before it was locked.
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
    """Return the holder of a lock; None if it is not written in time."""
    previous: LockHolder | None = None
    for attempt in range(_MAX_READS):
        if attempt:
            time.sleep(_READ_PAUSE)
        holder = _read_holder(path)
        if holder is None:
            continue
        # Whether a process on another host is running cannot be checked, so it is reported if two reads agree. A
        # process on this host may have been killed before this process took the lock.
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
        # A forked child has a copy of the descriptor; the lock belongs to its parent.
        os.close(descriptor)
        return
    # Removed while still locked: a process that has opened it meanwhile detects the removal.
    try:
        if _is_current_file(descriptor, path):
            os.unlink(path)
    except OSError:
        # The file stays, unlocked, and is reused by the next process.
        pass
    finally:
        os.close(descriptor)
