"""Data model of a file history, and references to one of its versions.

A reference names a version by number, turn, session or time.
"""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest, NotFound
from steno.report.clock import parse_time_range
from steno.report.humanize import MS_PER_SECOND

Certainty: TypeAlias = Literal["exact", "derived", "partial", "unknown"]
"""exact    written or read as a whole
derived  what was known before, with an edit carried out
partial  only some lines are known
unknown  nobody noted what it was
"""
VersionEvent: TypeAlias = Literal["write", "edit", "read", "outside", "command"]
"""outside  no session wrote this; a later touch found it
command  a shell command that names the file ran, and may have changed it
"""


class KnownLines(msgspec.Struct, frozen=True):
    """Some lines of a file, and the number of the first of them."""

    start: int
    lines: tuple[str, ...]


class FileTouch(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a session had to do with the file. Times are milliseconds."""

    tool: str
    """A tool's name; `attached`, `noticed` or `kept` where the client itself noted the file."""
    tool_input: dict[str, Any] = {}
    """What the tool was given."""
    result: dict[str, Any] = {}
    """What the client kept of the result."""
    model_text: str = ""
    """What the model was told."""
    file: int = 0
    session: str = ""
    agent: str = ""
    turn: int = 0
    offset: int = 0
    place: int = 0
    time: int | None = None
    order: int = 0
    """Where in its file it took effect: the offset of the result."""
    abandoned: bool = False
    copies: int = 0
    """How many other sessions hold a copy of it."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The file at one time, and how it came to be so."""

    name: str
    """What addresses call it: it stays the same when versions are added."""
    verb: VersionEvent
    tool: str
    known: Certainty
    text: str | None = None
    before: str | None = None
    """Of a change, the text before it, where that is known."""
    pieces: tuple[KnownLines, ...] = ()
    """What is known of one that is known in part."""
    total: int | None = None
    """How many lines it has, where that is known of one that is known in part."""
    added: int = 0
    removed: int = 0
    wrote: tuple[str, ...] = ()
    """Of a change to a file that is not known as a whole, the lines that it put in."""
    note: str = ""
    """What makes it doubtful, or why it is not known."""
    back: str = ""
    """The name of the earlier version that it is the same as, of a change from outside."""
    command: str = ""
    settled: bool = False
    """Of a command: that what came later shows that it changed nothing."""
    file: int = 0
    session: str = ""
    agent: str = ""
    turn: int = 0
    offset: int = 0
    place: int = 0
    time: int | None = None
    abandoned: bool = False
    copies: int = 0
    title: str = ""
    """The session's."""
    prompt: str = ""

    @property
    def changes(self) -> bool:
        """Whether the file is another one from here on, or may be."""
        return self.verb != "read"


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one file, oldest first."""

    path: str
    project: str
    versions: tuple[Version, ...]
    lost: int = 0
    """How many touches cannot be read any more: their sessions are gone, and not archived."""

    def version_named(self, name: str) -> Version | None:
        """Return the version that an address names."""
        return next((version for version in self.versions if version.name == name), None)

    def version_before(self, version: Version) -> Version | None:
        """Return the last version before one whose text, or some of it, is known."""
        index = self.versions.index(version)
        earlier = reversed(self.versions[:index])
        return next((earlier_version for earlier_version in earlier if earlier_version.known != "unknown"), None)


VERSION_HINT: Final = "a version (3, v3, first, last), SESSION:TURN, SESSION, :TURN, or @ and a time"
_VERSION_NUMBER: Final = re.compile(r"v?(\d{1,9})")
_VERSION_NAME: Final = re.compile(r"\d+\.\d+\.\d+b?")
_TURN_REFERENCE: Final = re.compile(r"([^:]*):(\d{1,9})")
_MIN_ID_LENGTH: Final = 4


def version_number(history: History, version: Version) -> int:
    """Return which version it is, from 1; 0 for one that is not of this history."""
    # The very same: to compare texts would take long.
    numbered = enumerate(history.versions, 1)
    return next((number for number, candidate in numbered if candidate is version), 0)


def find_version(history: History, text: str, now: float) -> Version:
    """Return the version that some words mean.

    `7c1f:4` is the file after turn 4 of that session, `:4` that of the last session that touched
    it, `@yesterday` the last version before then.

    Raises:
        BadRequest: the words mean nothing.
        NotFound: there is no such version.
    """
    reference = text.strip()
    if not history.versions:
        raise NotFound("nothing is left of this file's versions")
    if reference in ("first", "last"):
        return history.versions[0 if reference == "first" else -1]
    if number := _VERSION_NUMBER.fullmatch(reference):
        return _version_by_number(history, int(number[1]))
    if _VERSION_NAME.fullmatch(reference) and (named_version := history.version_named(reference)) is not None:
        return named_version
    if reference.startswith("@"):
        return _version_before(history, reference[1:], now)
    if turn := _TURN_REFERENCE.fullmatch(reference):
        return _version_after_turn(history, turn[1], int(turn[2]))
    if len(reference) >= _MIN_ID_LENGTH:
        return _version_after_turn(history, reference, None)
    raise BadRequest(f"{text!r} names no version", hint=VERSION_HINT)


def _version_by_number(history: History, number: int) -> Version:
    if not 1 <= number <= len(history.versions):
        raise NotFound(f"there is no version {number}", hint=f"they go from 1 to {len(history.versions)}")
    return history.versions[number - 1]


def _version_before(history: History, text: str, now: float) -> Version:
    end = parse_time_range(text, now)[1] * MS_PER_SECOND
    earlier = [version for version in history.versions if version.time is not None and version.time < end]
    if not earlier:
        raise NotFound(f"no session had touched it by {text!r}")
    return earlier[-1]


def _version_after_turn(history: History, session: str, turn: int | None) -> Version:
    session_prefix = session.lower() or history.versions[-1].session
    session_versions = [version for version in history.versions if version.session.lower().startswith(session_prefix)]
    names = {each.session for each in session_versions}
    if not session_versions:
        raise NotFound(f"no session that goes by {session!r} touched this file", hint=VERSION_HINT)
    if len(names) > 1:
        raise BadRequest(f"several sessions begin with {session!r}", hint=", ".join(sorted(names)))
    # What was found changed in a turn was changed before it.
    earlier = [each for each in session_versions if turn is None or each.turn <= turn]
    if not earlier:
        raise NotFound(f"the session had not touched it by turn {turn}")
    return earlier[-1]


def version_bytes(version: Version) -> bytes:
    """Return a version as it would lie on the disk, with the line endings that are known of it.

    Raises:
        NotFound: not all of it is known.
        BadRequest: it holds what no text file can hold.
    """
    if version.text is None:
        known_lines = sum(len(piece.lines) for piece in version.pieces)
        reason = f"only {known_lines:,} of its lines are known" if known_lines else "nobody recorded it"
        raise NotFound(f"this version cannot be rebuilt: {reason}", hint=version.note)
    try:
        return version.text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("this version holds half letters, which no file can hold") from error
