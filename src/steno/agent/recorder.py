"""Writes down what is said and done, in the shape that every client resumes.

Each record is on its way to the disk before anything hangs on it, and everything is on the disk
when a turn ends. The session's lock is held from the beginning to the end. After a record could not
be saved nothing more is written until the conversation is loaded from the file again.
"""

import errno
import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from steno.errors import Busy, StenoError, Unwritable
from steno.format.compose import Composer, Place
from steno.format.encode import encode_line
from steno.format.records import read_time
from steno.session.resume.clients import LATEST
from steno.store.append import Appender, FileState
from steno.store.session_lock import SessionLock

__all__ = ["VERSION", "Recorder", "new_id", "rising", "save_problem"]

VERSION: Final = LATEST.version
"""The version of the format that is written: that of the newest client studied."""
_CAUSES: Final = {
    getattr(errno, "EDQUOT", 0): ("Disk quota exceeded", "free space and continue"),
    errno.ENOSPC: ("Disk full", "free space and continue"),
    errno.EFBIG: ("File size limit reached", "raise the limit (ulimit -f) and continue"),
    errno.EIO: ("Disk error", "check the disk and continue"),
    errno.EROFS: ("Read-only file system", "make it writable and continue"),
}


def save_problem(error: StenoError) -> str:
    """Return in one line why a message was not saved, and what to do about it."""
    if isinstance(error, Busy) or not isinstance(error, Unwritable):
        return f"{error}; {error.hint}" if error.hint else str(error)
    cause, step = _CAUSES.get(error.errno or -1, (str(error), "check the folder and continue"))
    return f"{cause}: the last message was not saved; {step}"


def new_id() -> str:
    """Return a new random id."""
    return str(uuid.uuid4())


def rising(after: str | None = None, clock: Callable[[], float] = time.time) -> Callable[[], str]:
    """Return a clock whose times rise, by a millisecond at least; older clients go by that."""
    last = _milliseconds(after)

    def now() -> str:
        nonlocal last
        last = max(last + 1, int(clock() * 1000))
        moment = datetime.fromtimestamp(last // 1000, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{last % 1000:03d}Z"

    return now


def _milliseconds(stamp: str | None) -> int:
    moment = read_time(stamp)
    return int(moment.timestamp() * 1000) if moment is not None else 0


class Recorder:
    """One session file, or one sub-agent's, being written."""

    def __init__(
        self,
        path: str,
        place: Place,
        *,
        leaf: str | None = None,
        now: Callable[[], str] | None = None,
        lock: SessionLock | None = None,
        expected: FileState | None = None,
        message_count: int = 0,
    ) -> None:
        """Take where to write; `expected` is what the file was when it was read.

        `message_count` is the number of records of the conversation there are already. Without a
        lock one is taken with the first record; a sub-agent's file is under its session's.
        """
        self.path = path
        self.compose = Composer(place, new_uuid=new_id, now=now or rising(), leaf=leaf)
        self.message_count = message_count
        """How many records of the conversation were read and written, as `turn_duration` says."""
        self.on_name: Callable[[str], None] = lambda _slug: None
        """Hears the session's name in words when it gets one."""
        self.problem: StenoError | None = None
        """Why the last record was not saved; nothing more is written before `reset`."""
        self._file: Appender | None = None
        self._lock = lock
        self._expected = expected
        self._recreated = False
        self._ahead: list[dict[str, Any]] = []

    @property
    def leaf(self) -> str | None:
        """The record that the next one hangs on."""
        return self.compose.leaf

    @property
    def session_id(self) -> str:
        """The session that is written."""
        return self.compose.place.session_id

    @property
    def folder(self) -> str:
        """The session's own folder, beside its file."""
        return os.path.splitext(self.path)[0]

    def move(self, cwd: str, branch: str) -> None:
        """Note that the work goes on in another folder, or on another branch."""
        place = self.compose.place
        if (cwd, branch) != (place.cwd, place.git_branch):
            self.compose.place = msgspec.structs.replace(place, cwd=cwd, git_branch=branch)

    def enter_by(self, entrypoint: str) -> None:
        """Note by which way in the session is worked on, also for records not yet written."""
        self.compose.place = msgspec.structs.replace(self.compose.place, entrypoint=entrypoint)
        for record in self._ahead:
            record["entrypoint"] = entrypoint

    @property
    def slug(self) -> str:
        """The session's name in words; empty as long as it has none."""
        return self.compose.place.slug

    def name(self, slug: str) -> None:
        """Give the session a name in words, unless it has one."""
        if not self.slug:
            self.compose.place = msgspec.structs.replace(self.compose.place, slug=slug)
            self.on_name(slug)

    def write(self, *records: dict[str, Any]) -> tuple[str, ...]:
        """Append records, one write each; return the ids of those that have one.

        Raises:
            Busy: another program has changed the file, or another process has the session.
            Unwritable: none of the records is in the file.
        """
        if self.problem is not None:
            raise self.problem
        try:
            self._opened().append(*map(encode_line, (*self._ahead, *records)))
        except StenoError as error:
            self.problem = error
            raise
        self.message_count += sum("uuid" in record for record in (*self._ahead, *records))
        self._ahead.clear()
        return tuple(str(record["uuid"]) for record in records if "uuid" in record)

    def _opened(self) -> Appender:
        if self._file is None:
            if self._lock is None and not self.compose.place.agent_id:
                self._lock = SessionLock.take(self.path)
            self._file = Appender(self.path, expected=self._expected)
        return self._file

    def reset(
        self,
        leaf: str | None,
        now: Callable[[], str],
        expected: FileState | None = None,
        message_count: int = 0,
    ) -> None:
        """Begin again behind a record, after the conversation was loaded from the file."""
        self.message_count = message_count
        place = self.compose.place
        self.compose = Composer(place, new_uuid=new_id, now=now, leaf=leaf)
        self.problem = None
        self._ahead = []
        if self._file is not None:
            self._file.close()
            self._file = None
        self._expected = expected

    def write_ahead(self, record: dict[str, Any]) -> None:
        """Write a record before the next one: whoever only looks at a session changes nothing."""
        self._ahead.append(record)

    def was_recreated(self) -> bool:
        """Whether the file was deleted and created again since this was last asked."""
        found = self._file is not None and self._file.recreated
        new, self._recreated = found and not self._recreated, found
        return new

    def end_turn(self, prompt: str) -> None:
        """Say where the session stands, and wait until all of it is on the disk."""
        # A prompt that was kept out leaves nothing that a session could be resumed from.
        if self.leaf is not None and not self.compose.place.agent_id:
            self.write(self.compose.turn_end(prompt))
        self.sync()

    def sync(self) -> None:
        """Wait until everything written is on the disk.

        Raises:
            Unwritable: that cannot be promised.
        """
        if self._file is None:
            return
        try:
            self._file.sync()
        except StenoError as error:
            self.problem = self.problem or error
            raise

    def close(self) -> None:
        """Close the file and let other processes have the session."""
        if self._file is not None:
            if self.problem is None:
                self._expected = self._file.state()
            self._file.close()
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
