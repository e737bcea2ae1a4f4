"""A touch, a version, a history: what the time machine deals in."""

from typing import Any, Literal, TypeAlias

import msgspec

__all__ = ["History", "Known", "Piece", "Touch", "Verb", "Version"]

Known: TypeAlias = Literal["exact", "derived", "partial", "unknown"]
"""exact    written or read as a whole
derived  what was known before, with an edit carried out
partial  only some lines are known
unknown  nobody noted what it was
"""
Verb: TypeAlias = Literal["write", "edit", "read", "outside", "command"]
"""outside  no session wrote this; a later touch found it
command  a shell command that names the file ran, and may have changed it
"""


class Piece(msgspec.Struct, frozen=True):
    """Some lines of a file, and the number of the first of them."""

    start: int
    lines: tuple[str, ...]


class Touch(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a session had to do with the file. Times are milliseconds."""

    tool: str
    """A tool's name; `attached`, `noticed` or `kept` where the client itself noted the file."""
    asked: dict[str, Any] = {}
    """What the tool was given."""
    result: dict[str, Any] = {}
    """What the client kept of the result."""
    words: str = ""
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
    verb: Verb
    tool: str
    known: Known
    text: str | None = None
    before: str | None = None
    """Of a change, the text before it, where that is known."""
    pieces: tuple[Piece, ...] = ()
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

    def named(self, name: str) -> Version | None:
        """Return the version that an address names."""
        return next((version for version in self.versions if version.name == name), None)

    def before(self, version: Version) -> Version | None:
        """Return the last version before one whose text, or some of it, is known."""
        place = self.versions.index(version)
        earlier = reversed(self.versions[:place])
        return next((each for each in earlier if each.known != "unknown"), None)
