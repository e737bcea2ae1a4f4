"""A line, where it comes from, and the blame of a whole file."""

from typing import Literal, TypeAlias

import msgspec

from steno.report.files.values import Version
from steno.store.git import Commit

__all__ = ["Blame", "Blamed", "Kind", "Origin"]

Kind: TypeAlias = Literal["session", "commit", "outside", "before", "unknown"]
"""session  a session, or a sub-agent of one, wrote it
commit   no session did; somebody committed it
outside  it was found to have changed between two touches; no session wrote it
before   it was there when a session first saw the file
unknown  it came after all that sessions know of the file
"""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where lines come from."""

    kind: Kind
    version: Version | None = None
    """What wrote it, or what found it."""
    path: str = ""
    """What the file was called in that version."""
    commit: Commit | None = None
    """The commit that has it; of what a session wrote, the one it went into."""
    suspect: Version | None = None
    """A command that names the file and ran before the lines were found: it may have put them in."""
    lines: int = 0
    """How many lines are of it."""


class Blamed(msgspec.Struct, frozen=True):
    """A line of the file, and which of the origins it has."""

    number: int
    text: str
    origin: int


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote what of a file; origins stand in the order of their first lines."""

    path: str
    total: int
    """How many lines the file has."""
    lines: tuple[Blamed, ...]
    origins: tuple[Origin, ...]
    names: tuple[str, ...]
    """What sessions called the file, of all names that were looked for."""
    git: bool
    """Whether a repository was asked."""
    trouble: str = ""
    """Why a repository could not be asked, or not for everything."""
    doubts: int = 0
    """How often a command, or an edit of an unknown text, leaves open what happened in between."""
