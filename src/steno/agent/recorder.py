"""Writes down what is said and done, in the shape that every client resumes.

Each record is on its way to the disk before anything hangs on it, and everything is on the disk
when a turn ends.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from steno.format.compose import Composer, Place
from steno.format.encode import encode_line
from steno.format.records import read_time
from steno.session.resume.clients import LATEST
from steno.store.append import Appender

__all__ = ["VERSION", "Recorder", "new_id", "rising"]

VERSION: Final = LATEST.version
"""The version of the format that is written: that of the newest client studied."""


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
    ) -> None:
        self.path = path
        self.compose = Composer(place, new_uuid=new_id, now=now or rising(), leaf=leaf)
        self._file: Appender | None = None
        self._strangers = 0
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

    def write(self, *records: dict[str, Any]) -> tuple[str, ...]:
        """Append records, one write each; return the ids of those that have one."""
        if self._file is None:
            self._file = Appender(self.path)
        ahead, self._ahead = self._ahead, []
        for record in (*ahead, *records):
            self._file.append(encode_line(record))
        return tuple(str(record["uuid"]) for record in records if "uuid" in record)

    def write_ahead(self, record: dict[str, Any]) -> None:
        """Write a record before the next one: whoever only looks at a session changes nothing."""
        self._ahead.append(record)

    def strangers(self) -> bool:
        """Whether somebody else has appended to the file since this was last asked."""
        seen = self._file.strangers if self._file is not None else 0
        new, self._strangers = seen > self._strangers, seen
        return new

    def end_turn(self, prompt: str) -> None:
        """Say where the session stands, and wait until all of it is on the disk."""
        # A prompt that was kept out leaves nothing that a session could be resumed from.
        if self.leaf is not None and not self.compose.place.agent_id:
            self.write(self.compose.turn_end(prompt))
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def copy(self, lines: Iterable[bytes]) -> None:
        """Append lines as they are: what a fork takes along."""
        if self._file is None:
            self._file = Appender(self.path)
        for line in lines:
            self._file.append(line)
