"""What a move is made of."""

from typing import Final, Literal

import msgspec

__all__ = ["LINES", "WHOLE", "Action", "Mode", "Move", "Plan", "State", "Step", "Sum"]

Mode = Literal["lines", "whole", "bytes"]
"""How a file is read for paths: line by line, as one piece of JSON, or not at all."""
LINES: Final = "lines"
WHOLE: Final = "whole"
Action = Literal["move", "rewrite", "add", "merge"]
"""A file gets another place; stays and is rewritten; is new here; or its lines join another's."""
State = Literal["begun", "placed", "done", "undoing", "undone"]


class Sum(msgspec.Struct, frozen=True):
    """How long a file is, and the hash of it."""

    size: int
    sha256: str


class Move(msgspec.Struct, frozen=True):
    """A file that is the project's, before anybody looked into it."""

    source: str
    target: str
    mode: Mode
    action: Action = "move"
    session: bool = False
    """Whether it is a transcript, of a session or a sub-agent."""


class Step(msgspec.Struct, frozen=True):
    """What will become of one file, to the byte."""

    source: str
    target: str
    mode: Mode
    action: Action
    before: Sum
    after: Sum
    paths: int = 0
    """How many paths in it are rewritten."""
    exact: bool = True
    """Whether rewriting them back gives the very same bytes; if not, a copy is kept."""
    lines: tuple[str, ...] = ()
    """Of a file that others write too: marks of the lines that were rewritten, or joined it."""
    session: bool = False


class Plan(msgspec.Struct, frozen=True):
    """Everything that will be done."""

    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    """Folders, and what they are in paths from now on."""
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    """What is left as it is, or worth knowing."""
    folders: tuple[str, ...] = ()
    """Folders that may be empty afterwards."""

    @property
    def sessions(self) -> int:
        """How many sessions move, without the files of sub-agents."""
        return sum(step.session and "agent-" not in _name(step.source) for step in self.steps)

    @property
    def size(self) -> int:
        """How many bytes there are in all."""
        return sum(step.before.size for step in self.steps)

    @property
    def paths(self) -> int:
        """How many paths are rewritten."""
        return sum(step.paths for step in self.steps)


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
