"""The child processes of a test run, those that ended and were not waited for among them."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["children"]


def children() -> set[int]:
    """Return the numbers of all child processes of this one."""
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[1]) == os.getpid():
                    found.add(int(folder.name))
    return found
