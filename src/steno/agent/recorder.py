"""Writes session records that every version of Claude Code can resume, and generates slugs.

Each record is written before another refers to it, and all records are flushed to disk at the end of a
turn. The session lock is held until the recorder is closed. After a failed write, nothing more is written
until the conversation is reloaded.

A session gets a slug when it is compacted (adjective, participle, noun) or when a prompt is submitted
in plan mode (first words of the prompt, adjective or participle, noun). A fork starts without one, as in
Claude Code. Slugs derive from the session ID.
"""

import errno
import os
import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from steno.errors import Busy, StenoError, Unwritable
from steno.format.encode import Composer, SessionContext, encode_line
from steno.format.records import read_time
from steno.llm.messages_api import Block
from steno.session.resume.clients import LATEST
from steno.store.append import Appender, FileState
from steno.store.session_lock import SessionLock


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES: Final = _split_words(
    "amber ample autumn bold brisk bright calm candid clever coastal copper crisp curious dapper "
    "eager early earnest fair fleet frosty gentle gilded golden hardy hazel humble ivory jolly "
    "keen kind lively lofty lucid lunar mellow merry mild mossy nimble noble olive patient placid "
    "plucky polite prime quick quiet rapid rosy rustic sandy serene silver sleek snowy solar "
    "sunny tidy"
)
_PARTICIPLES: Final = _split_words(
    "baking bending blinking bouncing building carving chasing climbing coasting counting "
    "crafting dancing dashing drawing drifting floating flying gliding glowing growing hiking "
    "hopping humming jogging juggling jumping knitting leaping listening marching mending mixing "
    "painting pacing paddling planting playing polishing racing reading resting riding roaming "
    "rolling rowing sailing singing skating sketching sliding soaring sowing spinning strolling "
    "surfing swaying swimming tapping"
)
_NOUNS: Final = _split_words(
    "acorn anchor badger bamboo beacon birch bridge brook canyon cedar cello clover comet coral "
    "cricket daisy delta dolphin ember falcon fern ferry finch fjord forest garden geyser glacier "
    "harbor hazelnut heron hill island juniper kettle lagoon lantern lemur lily maple meadow "
    "meteor orchard otter owl panda pebble pepper pine pond prairie puffin raven reef river robin "
    "spruce summit thistle valley willow"
)
_PLAN_WORDS: Final = 4
"""Number of prompt words in the slug of a plan."""
_MAX_PROMPT_PART: Final = 40
_MAX_SLUG: Final = 120
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")


def is_slug(text: str) -> bool:
    """Return whether a text is a valid slug: it is used in file names, so no other characters are allowed.

    >>> is_slug("eager-riding-garden"), is_slug("../garden")
    (True, False)
    """
    return len(text) <= _MAX_SLUG and _SLUG.fullmatch(text) is not None


def session_slug(session_id: str) -> str:
    """Return a slug for a session: adjective, participle, noun.

    >>> session_slug("aaaaaaaa-0000-4000-8000-000000000001")
    'eager-riding-garden'
    """
    first, second, third, _ = _digest_bytes(session_id)
    return f"{_pick(_ADJECTIVES, first)}-{_pick(_PARTICIPLES, second)}-{_pick(_NOUNS, third)}"


def plan_slug(session_id: str, prompt: str) -> str:
    """Return a slug for a session in plan mode: the first words of the prompt and two more.

    >>> plan_slug("aaaaaaaa-0000-4000-8000-000000000001", "Think: move the tests, then CI")
    'think-move-the-tests-noble-garden'
    """
    prompt_part = _SEPARATORS.sub("-", " ".join(prompt.split()[:_PLAN_WORDS]).lower())[:_MAX_PROMPT_PART].strip("-")
    if not prompt_part:
        return session_slug(session_id)
    _, second, third, kind = _digest_bytes(session_id)
    middle_word = _pick((_PARTICIPLES, _ADJECTIVES)[kind % 2], second)
    return f"{prompt_part}-{middle_word}-{_pick(_NOUNS, third)}"


def _digest_bytes(session_id: str) -> tuple[int, int, int, int]:
    first, second, third, kind = sha256(session_id.encode()).digest()[:4]
    return first, second, third, kind


def _pick(choices: tuple[str, ...], index: int) -> str:
    return choices[index % len(choices)]


class AttachmentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is not a message: an attachment or a note, with the text that the model reads."""

    fields: dict[str, Any]
    """The attachment, or the fields of the note."""
    text: str = ""
    """Text for the model; empty for none."""
    parts: tuple[str, ...] = ()
    """Text for the model in several parts with the role of the user."""
    image: Block | None = None
    """An image for the model, sent after `parts`."""
    role: str = "system"
    """The role of the text, for versions of Claude Code that distinguish it."""
    subtype: str = ""
    """Subtype of the note; empty for an attachment."""
    call_id: str = ""
    """ID of the call that the record is attached to, outside the main chain; empty for a record of the chain."""


VERSION: Final = LATEST.version
"""The version in written records: the newest supported version of Claude Code."""
_ERROR_CAUSES: Final = {
    getattr(errno, "EDQUOT", 0): ("Disk quota exceeded", "free space and continue"),
    errno.ENOSPC: ("Disk full", "free space and continue"),
    errno.EFBIG: ("File size limit reached", "raise the limit (ulimit -f) and continue"),
    errno.EIO: ("Disk error", "check the disk and continue"),
    errno.EROFS: ("Read-only file system", "make it writable and continue"),
}


def save_error_message(error: StenoError) -> str:
    """Return the error message and hint for a message that could not be saved, in one line."""
    if isinstance(error, Busy) or not isinstance(error, Unwritable):
        return f"{error}; {error.hint}" if error.hint else str(error)
    cause, next_step = _ERROR_CAUSES.get(error.errno or -1, (str(error), "check the directory and continue"))
    return f"{cause}: the last message was not saved; {next_step}"


def new_uuid() -> str:
    """Return a random UUID."""
    return str(uuid.uuid4())


def increasing_clock(after_timestamp: str | None = None, clock: Callable[[], float] = time.time) -> Callable[[], str]:
    """Return a clock with strictly increasing timestamps, which older versions of Claude Code require."""
    last = _milliseconds(after_timestamp)

    def now() -> str:
        nonlocal last
        last = max(last + 1, int(clock() * 1000))
        moment = datetime.fromtimestamp(last // 1000, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{last % 1000:03d}Z"

    return now


def _milliseconds(timestamp: str | None) -> int:
    moment = read_time(timestamp)
    return int(moment.timestamp() * 1000) if moment is not None else 0


class Recorder:
    """Writes the file of a session or sub-agent."""

    def __init__(
        self,
        path: str,
        place: SessionContext,
        *,
        leaf: str | None = None,
        now: Callable[[], str] | None = None,
        lock: SessionLock | None = None,
        expected: FileState | None = None,
        message_count: int = 0,
    ) -> None:
        """Store the target; `expected` is the state of the file when it was read.

        `message_count` is the number of existing records of the conversation. Without a lock, one is
        acquired with the first record; a sub-agent's file is covered by the lock of its session.
        """
        self.path = path
        self.composer = Composer(place, new_uuid=new_uuid, now=now or increasing_clock(), leaf=leaf)
        self.message_count = message_count
        """Number of records of the conversation, for `turn_duration`."""
        self.on_slug: Callable[[str], None] = lambda _slug: None
        """Called with the slug when the session gets one."""
        self.save_error: StenoError | None = None
        """The error of the last write; after an error, nothing is written until `reset`."""
        self._file: Appender | None = None
        self._lock = lock
        self._expected = expected
        self._recreated = False
        self._pending_records: list[dict[str, Any]] = []

    @property
    def leaf(self) -> str | None:
        """The parent of the next record."""
        return self.composer.leaf

    @property
    def session_id(self) -> str:
        """ID of the session."""
        return self.composer.context.session_id

    @property
    def folder(self) -> str:
        """The directory of the session, next to its file."""
        return os.path.splitext(self.path)[0]

    def set_place(self, cwd: str, branch: str) -> None:
        """Set the working directory and git branch of later records."""
        place = self.composer.context
        if (cwd, branch) != (place.cwd, place.git_branch):
            self.composer.context = msgspec.structs.replace(place, cwd=cwd, git_branch=branch)

    def set_entrypoint(self, entrypoint: str) -> None:
        """Set the entry point of later records, including pending ones."""
        self.composer.context = msgspec.structs.replace(self.composer.context, entrypoint=entrypoint)
        for record in self._pending_records:
            record["entrypoint"] = entrypoint

    @property
    def slug(self) -> str:
        """The slug of the session; empty if it has none."""
        return self.composer.context.slug

    def set_slug(self, slug: str) -> None:
        """Set the slug of the session, unless it has one."""
        if not self.slug:
            self.composer.context = msgspec.structs.replace(self.composer.context, slug=slug)
            self.on_slug(slug)

    def write(self, *records: dict[str, Any]) -> tuple[str, ...]:
        """Append records, one write each; return their UUIDs.

        Raises:
            Busy: Another program has changed the file, or another process holds the session.
            Unwritable: None of the records was written.
        """
        if self.save_error is not None:
            raise self.save_error
        try:
            self._open_file().append(*map(encode_line, (*self._pending_records, *records)))
        except StenoError as error:
            self.save_error = error
            raise
        self.message_count += sum("uuid" in record for record in (*self._pending_records, *records))
        self._pending_records.clear()
        return tuple(str(record["uuid"]) for record in records if "uuid" in record)

    def _open_file(self) -> Appender:
        if self._file is None:
            if self._lock is None and not self.composer.context.agent_id:
                self._lock = SessionLock.acquire(self.path)
            self._file = Appender(self.path, expected=self._expected)
        return self._file

    def reset(
        self, leaf: str | None, now: Callable[[], str], expected: FileState | None = None, message_count: int = 0
    ) -> None:
        """Continue after the given leaf when the conversation has been reloaded from the file."""
        self.message_count = message_count
        place = self.composer.context
        self.composer = Composer(place, new_uuid=new_uuid, now=now, leaf=leaf)
        self.save_error = None
        self._pending_records = []
        if self._file is not None:
            self._file.close()
            self._file = None
        self._expected = expected

    def write_with_next(self, record: dict[str, Any]) -> None:
        """Write a record together with the next one, so that opening a session does not change it."""
        self._pending_records.append(record)

    def take_recreated(self) -> bool:
        """Return whether the file was deleted and created again since the last call."""
        recreated = self._file is not None and self._file.recreated
        is_new, self._recreated = recreated and not self._recreated, recreated
        return is_new

    def end_turn(self, prompt: str) -> None:
        """Record the end of the turn and flush the file to disk."""
        # A rejected prompt leaves no records, so there is nothing to resume.
        if self.leaf is not None and not self.composer.context.agent_id:
            self.write(self.composer.turn_end(prompt))
        self.sync()

    def sync(self) -> None:
        """Wait until all records are on disk.

        Raises:
            Unwritable: The flush failed.
        """
        if self._file is None:
            return
        try:
            self._file.sync()
        except StenoError as error:
            self.save_error = self.save_error or error
            raise

    def close(self) -> None:
        """Close the file and release the session lock."""
        if self._file is not None:
            if self.save_error is None:
                self._expected = self._file.state()
            self._file.close()
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
