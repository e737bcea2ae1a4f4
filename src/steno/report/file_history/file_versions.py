"""Data model of a file history, and references to one of its versions.

A reference specifies a version by number, turn, session or time.
"""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest, NotFound
from steno.report.clock import parse_time_range
from steno.report.humanize import MS_PER_SECOND

Certainty: TypeAlias = Literal["exact", "derived", "partial", "unknown"]
"""exact    written or read as a whole
derived  the previous version with an edit applied
partial  only some lines are known
unknown  the content is not recorded
"""
VersionEvent: TypeAlias = Literal["write", "edit", "read", "outside", "command"]
"""outside  not written by a session; detected by a later touch
command  a shell command that names the file ran and may have changed it
"""


class KnownLines(msgspec.Struct, frozen=True):
    """Consecutive lines of a file, and the number of the first line."""

    start: int
    lines: tuple[str, ...]


class FileTouch(msgspec.Struct, frozen=True, kw_only=True):
    """One access of a session to the file. Times are in milliseconds."""

    tool: str
    """Tool name, or `attached`, `noticed` or `kept` for an entry that Claude Code itself recorded."""
    tool_input: dict[str, Any] = {}
    """Input of the tool call."""
    result: dict[str, Any] = {}
    """The `toolUseResult` that Claude Code recorded."""
    model_text: str = ""
    """Tool result shown to the model."""
    file: int = 0
    session: str = ""
    agent: str = ""
    turn: int = 0
    offset: int = 0
    place: int = 0
    time: int | None = None
    order: int = 0
    """Offset of the tool result in its file."""
    abandoned: bool = False
    copies: int = 0
    """Number of other sessions with a copy of the touch."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A version of the file, and the event that produced it."""

    name: str
    """Stable identifier in URLs: it does not change when versions are added."""
    verb: VersionEvent
    tool: str
    known: Certainty
    text: str | None = None
    before: str | None = None
    """Text before a change, if known."""
    pieces: tuple[KnownLines, ...] = ()
    """Known lines of a partially known version."""
    total: int | None = None
    """Number of lines of a partially known version, if known."""
    added: int = 0
    removed: int = 0
    wrote: tuple[str, ...] = ()
    """Lines that a change added to a file that is not fully known."""
    note: str = ""
    """Reason why the version is uncertain or unknown."""
    back: str = ""
    """Name of the earlier version that an outside change restored."""
    command: str = ""
    settled: bool = False
    """Whether a later touch shows that the command changed nothing."""
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
    """Title of the session."""
    prompt: str = ""

    @property
    def changes(self) -> bool:
        """Whether the event changes the file or may change it."""
        return self.verb != "read"


class History(msgspec.Struct, frozen=True, kw_only=True):
    """History of one file, oldest version first."""

    path: str
    project: str
    versions: tuple[Version, ...]
    lost: int = 0
    """Number of touches that cannot be read, because their sessions are deleted and not archived."""

    def version_named(self, name: str) -> Version | None:
        """Return the version with a name."""
        return next((version for version in self.versions if version.name == name), None)

    def version_before(self, version: Version) -> Version | None:
        """Return the last earlier version whose text is at least partially known."""
        index = self.versions.index(version)
        earlier = reversed(self.versions[:index])
        return next((earlier_version for earlier_version in earlier if earlier_version.known != "unknown"), None)


VERSION_HINT: Final = "Use a version (3, v3, first, last), SESSION:TURN, SESSION, :TURN, or @TIME."
_VERSION_NUMBER: Final = re.compile(r"v?(\d{1,9})")
_VERSION_NAME: Final = re.compile(r"\d+\.\d+\.\d+b?")
_TURN_REFERENCE: Final = re.compile(r"([^:]*):(\d{1,9})")
_MIN_ID_LENGTH: Final = 4


def version_number(history: History, version: Version) -> int:
    """Return the number of a version, from 1; 0 if it is not in the history."""
    # Compare identities: comparing texts would be slow.
    numbered = enumerate(history.versions, 1)
    return next((number for number, candidate in numbered if candidate is version), 0)


def find_version(history: History, text: str, now: float) -> Version:
    """Return the version that a reference specifies.

    `7c1f:4` is the file after turn 4 of that session, `:4` of the session that touched the file last; `@yesterday` is
    the last version before the end of yesterday.

    Raises:
        BadRequest: The text is not a version reference.
        NotFound: The version does not exist.
    """
    reference = text.strip()
    if not history.versions:
        raise NotFound("no version of this file can be read")
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
    raise BadRequest(f"not a version: {text!r}", hint=VERSION_HINT)


def _version_by_number(history: History, number: int) -> Version:
    if not 1 <= number <= len(history.versions):
        raise NotFound(f"no version {number}", hint=f"The versions are 1 to {len(history.versions)}.")
    return history.versions[number - 1]


def _version_before(history: History, text: str, now: float) -> Version:
    end = parse_time_range(text, now)[1] * MS_PER_SECOND
    earlier = [version for version in history.versions if version.time is not None and version.time < end]
    if not earlier:
        raise NotFound(f"no session accessed this file up to {text!r}")
    return earlier[-1]


def _version_after_turn(history: History, session: str, turn: int | None) -> Version:
    session_prefix = session.lower() or history.versions[-1].session
    session_versions = [version for version in history.versions if version.session.lower().startswith(session_prefix)]
    names = {each.session for each in session_versions}
    if not session_versions:
        raise NotFound(f"no session that matches {session!r} accessed this file", hint=VERSION_HINT)
    if len(names) > 1:
        raise BadRequest(f"{session!r} matches several sessions", hint=", ".join(sorted(names)))
    # A change detected in a turn was made before it.
    earlier = [each for each in session_versions if turn is None or each.turn <= turn]
    if not earlier:
        raise NotFound(f"the session did not access this file up to turn {turn}")
    return earlier[-1]


def version_bytes(version: Version) -> bytes:
    """Return a version as file content, with the newlines as far as known.

    Raises:
        NotFound: The text is not fully known.
        BadRequest: The text cannot be encoded as UTF-8.
    """
    if version.text is None:
        known_lines = sum(len(piece.lines) for piece in version.pieces)
        reason = f"only {known_lines:,} of its lines are known" if known_lines else "its content was not recorded"
        raise NotFound(f"cannot rebuild this version: {reason}", hint=version.note)
    try:
        return version.text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("this version contains lone surrogates, which cannot be encoded as UTF-8") from error
