"""The lock of a session: one steno process writes it at a time.

with SessionLock.take(path):    # raises Busy at once when another process has it
    ...

The lock file is in steno's own folder, never among the sessions. The kernel holds the lock on an
open descriptor, so it ends with the process, however that ends; a file left by a killed process is
taken over at once. What is in the file (process, host, time) is for the message only. A file system
without locks is refused rather than trusted. Claude Code does not know this lock: its own notes are
looked at as well, and a write of its is noticed by `steno.store.append`.
"""

import os
import time
import weakref
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Self

import msgspec

from steno.errors import Busy, Unwritable
from steno.format.paths import transcript_place
from steno.store.busy import is_running, writer_of
from steno.store.clock import now
from steno.store.disk import FOLDER, open_private
from steno.store.lock import take
from steno.store.places import steno_home
from steno.store.presence import process_start
from steno.store.scratch import unwritable
from steno.store.walk import folder_names

__all__ = ["Holder", "SessionLock", "lock_path", "refuse_if_locked"]

_FOLDER: Final = "locks"
_MOST: Final = 1 << 16
_READS: Final = 50
_PAUSE: Final = 0.01
"""A holder writes its name right after it has locked; whoever comes between looks again."""
_TRIES: Final = 1000
HINT: Final = (
    "wait for it to end, or continue in a copy with --fork-session (in the console: /fork)"
)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that has a session's lock."""

    pid: int
    start: str = ""
    """When the process began, as Linux counts: tells it from a later one with its number."""
    host: str = ""
    time: float = 0.0
    """When the session was opened, in seconds since 1970."""
    path: str = ""

    def words(self) -> str:
        """Return who it is, in words for the user."""
        if self.pid == os.getpid() and self.host == _host():
            return "this process"
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.time))
        host = f" on {self.host}" if self.host != _host() else ""
        return f"process {self.pid}{host}, since {began}"


class SessionLock:
    """The lock of one session, held until `release`, or until the process ends."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._end = weakref.finalize(self, _release, path, descriptor, os.getpid())

    @classmethod
    def take(cls, session: str, *, live: bool = True, env: Mapping[str, str] | None = None) -> Self:
        """Take the lock of a session file, or of the session that a sub-agent's file belongs to.

        `live=False` does not ask whether a client that has no lock says it works on the session.

        Raises:
            Busy: another process works on the session.
            Unwritable: the lock file cannot be written, or its file system has no locks.
        """
        path = lock_path(session, env=env)
        lock = cls(path, _locked(path, session))
        process = writer_of(session) if live else None
        if process is not None and process.pid != os.getpid():
            lock.release()
            name = os.path.basename(session)
            raise Busy(f"{name} is in use by process {process.pid}", hint=HINT)
        return lock

    def release(self) -> None:
        """Let others have it; may be repeated."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def refuse_if_locked(session: str) -> None:
    """Raise `Busy` if another process has the lock of a session; leaves nothing behind."""
    if os.path.exists(lock_path(session)):
        SessionLock.take(session, live=False).release()


def lock_path(session: str, *, env: Mapping[str, str] | None = None) -> str:
    """Return the lock file of a session."""
    name = sha256(os.fsencode(_session_file(session))).hexdigest()[:32]
    return os.path.join(steno_home(env), _FOLDER, f"{name}.lock")


def _session_file(path: str) -> str:
    """Return the real path of the session that a file belongs to: a sub-agent has no lock."""
    path = os.path.realpath(path)
    place = transcript_place(folder_names(path))
    above = f"{os.sep}{place.session_id}{os.sep}"
    if place.role == "session" or not place.session_id or above not in path:
        return path
    return f"{path[: path.rindex(above)]}{os.sep}{place.session_id}.jsonl"


def _locked(path: str, session: str) -> int:
    # Made before it is locked: whoever is refused waits for the name for a short time only.
    name = _signature(session)
    for _ in range(_TRIES):
        try:
            os.makedirs(os.path.dirname(path), FOLDER, exist_ok=True)
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            taken = take(descriptor, wait=False)
            if not taken:
                raise _refused(path, session)
            if _is_named(descriptor, path):
                _sign(descriptor, name)
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
    raise _refused(path, session)


def _is_named(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _signature(session: str) -> bytes:
    holder = Holder(
        pid=os.getpid(),
        start=process_start(os.getpid()),
        host=_host(),
        time=now(),
        path=os.path.realpath(session).encode("utf-8", "replace").decode(),
    )
    return msgspec.json.encode(holder)


def _sign(descriptor: int, name: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, name)


def _refused(path: str, session: str) -> Busy:
    holder = _holder(path)
    who = holder.words() if holder is not None else "another process"
    return Busy(f"{os.path.basename(session)} is in use by {who}", hint=HINT)


def _holder(path: str) -> Holder | None:
    """Return who has a lock; None when it does not say so in time."""
    before: Holder | None = None
    for attempt in range(_READS):
        if attempt:
            time.sleep(_PAUSE)
        holder = _read_holder(path)
        if holder is None:
            continue
        # Of another host's process nobody knows here whether it runs: it is named if it stays.
        if _is_at_work(holder) if holder.host == _host() else holder == before:
            return holder
        before = holder
    return None


def _read_holder(path: str) -> Holder | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MOST), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_at_work(holder: Holder) -> bool:
    """Say whether a holder still runs, rather than being one that was killed before ours."""
    from steno.format.sidecars import LiveProcess

    return is_running(LiveProcess(pid=holder.pid, proc_start=holder.start))


def _host() -> str:
    import platform

    return platform.node()


def _release(path: str, descriptor: int, pid: int) -> None:
    if os.getpid() != pid:
        # A forked child has a copy of the descriptor; the lock is its parent's.
        os.close(descriptor)
        return
    # Removed while it is locked: whoever has opened it meanwhile sees that it has no name any more.
    try:
        if _is_named(descriptor, path):
            os.unlink(path)
    except OSError:
        # It stays, unlocked: the next process takes it over.
        pass
    finally:
        os.close(descriptor)
