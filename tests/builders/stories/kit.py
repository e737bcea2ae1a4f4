"""Short names for the calls that stories make all the time."""

from typing import Final, Unpack

from tests.builders.blocks import Json, tool
from tests.builders.builder import VERSION, Session, session
from tests.builders.core import Options

__all__ = ["bash", "begin", "edit", "grep", "read", "write"]

_PACE: Final = 11


def begin(version: str = VERSION, **options: Unpack[Options]) -> Session:
    """Begin a session at a human pace, with all that the real client writes around it."""
    full: Options = {"full": True, "pace": _PACE}
    return session(version, **{**full, **options})


def read(path: str) -> Json:
    """Return a call that reads a file."""
    return tool("Read", file_path=path)


def write(path: str, content: str) -> Json:
    """Return a call that writes a file."""
    return tool("Write", file_path=path, content=content)


def edit(path: str, old: str, new: str) -> Json:
    """Return a call that changes a file."""
    return tool("Edit", replace_all=False, file_path=path, old_string=old, new_string=new)


def bash(command: str, description: str) -> Json:
    """Return a call that runs a command."""
    return tool("Bash", command=command, description=description)


def grep(pattern: str, path: str = "") -> Json:
    """Return a call that searches for a pattern and shows the lines."""
    where = {"path": path} if path else {}
    return tool("Grep", pattern=pattern, **where, output_mode="content")
