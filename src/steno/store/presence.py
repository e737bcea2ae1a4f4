"""Tells others that a session is being worked on: `sessions/PID.json`, as clients do.

with Presence(config, session_id, cwd, version):
    ...                        # `store.busy.writer_of` finds it meanwhile
"""

import os
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import msgspec

from steno.format.sidecars import LiveProcess
from steno.store.clock import now

__all__ = ["Presence", "process_start"]

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_STARTED: Final = 22 - 3


class Presence:
    """The note of one process that it works on a session; gone when it is closed."""

    def __init__(self, config: str, session_id: str, cwd: str, version: str) -> None:
        pid, moment = os.getpid(), int(now() * 1000)
        self.path = os.path.join(config, "sessions", f"{pid}.json")
        # A process that works on several sessions tells of each; others look into every note.
        self._own_path = os.path.join(config, "sessions", f"{pid}-{session_id[:8]}.json")
        self._words = msgspec.json.encode(
            LiveProcess(
                pid=pid,
                session_id=session_id,
                cwd=cwd,
                started_at=moment,
                updated_at=moment,
                proc_start=process_start(pid),
                version=version,
                entrypoint="steno",
                status="busy",
            )
        )

    def open(self) -> None:
        """Tell it. Where it cannot be told the work goes on: it is a courtesy."""
        if self._is_taken():
            self.path = self._own_path
        scratch = f"{self.path}.{os.urandom(4).hex()}"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=_FOLDER_MODE, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            with os.fdopen(os.open(scratch, flags, _FILE_MODE), "wb") as file:
                file.write(self._words)
            os.replace(scratch, self.path)

    def _is_taken(self) -> bool:
        """Whether another session of this very process is told of already."""
        try:
            with open(self.path, "rb") as file:
                other = msgspec.json.decode(file.read(), type=LiveProcess)
        except (OSError, msgspec.MsgspecError):
            return False
        ours = msgspec.json.decode(self._words, type=LiveProcess)
        return other.session_id != ours.session_id and other.proc_start == ours.proc_start

    def close(self) -> None:
        """Take it back, unless another session of this process stands there by now."""
        with suppress(OSError):
            with open(self.path, "rb") as file:
                ours = file.read() == self._words
            if ours:
                os.unlink(self.path)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def process_start(pid: int) -> str:
    """Return when a process began, as Linux counts; nothing elsewhere."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return fields[_STARTED].decode() if len(fields) > _STARTED else ""
