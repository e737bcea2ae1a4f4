"""A search for Grep: what was asked, and where."""

import re
from typing import Final, Literal, TypeAlias

import msgspec

__all__ = ["LONGEST", "WRONG", "Job", "Mode", "Search"]

Mode: TypeAlias = Literal["content", "files_with_matches", "count"]
LONGEST: Final = 1_000
"""How many characters of a line are shown."""
WRONG: Final = 2
"""The exit code of a search that makes no sense."""
_LIMIT: Final = 250
_MOST_AROUND: Final = 1_000
_SPLIT: Final = re.compile(r"[\s,]+(?![^{]*\})")


class Search(msgspec.Struct, forbid_unknown_fields=True):
    """What was asked, as the call says it."""

    pattern: str
    path: str | None = None
    glob: str | None = None
    output_mode: Mode = "files_with_matches"
    before: int = msgspec.field(default=0, name="-B")
    after: int = msgspec.field(default=0, name="-A")
    both: int = msgspec.field(default=0, name="-C")
    context: int = 0
    numbers: bool = msgspec.field(default=True, name="-n")
    ignore_case: bool = msgspec.field(default=False, name="-i")
    only: bool = msgspec.field(default=False, name="-o")
    type: str | None = None
    head_limit: int = _LIMIT
    offset: int = 0
    multiline: bool = False

    @property
    def around(self) -> tuple[int, int]:
        """How many lines to show before and after a match."""
        both = self.both or self.context
        before, after = (min(max(n or both, 0), _MOST_AROUND) for n in (self.before, self.after))
        return before, after

    @property
    def globs(self) -> list[str]:
        """The patterns that the paths must fit, or with `!` must not."""
        return [one for one in _SPLIT.split(self.glob or "") if one]


class Job(msgspec.Struct, frozen=True):
    """A search, and where."""

    asked: Search
    folder: str
    name: str
    """The one file to search; nothing for all in the folder."""
    real: str
    """Where the folder really is."""
