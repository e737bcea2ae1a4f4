"""Takes secrets out of the environment that the system shows of this process.

Programs that the agent starts are not given the key. They could still look at the environment of
the process that started them, which Linux shows to every program of the same user as it was at the
start (`/proc/PID/environ`), whatever was changed since. So it is overwritten where it lies.
"""

import os
from collections.abc import Iterable
from typing import Final

__all__ = ["forget"]

_STAT: Final = "/proc/self/stat"
_START: Final = 50 - 3
_END: Final = 51 - 3
"""Where the environment begins and ends: fields 50 and 51, of which the first two are cut off."""


def forget(names: Iterable[str]) -> None:
    """Take variables out of the environment of this process; whoever needs them has read them."""
    wanted = [name for name in names if os.environ.pop(name, None) is not None]
    start, end = _place() if wanted else (0, 0)
    if not start:
        return
    import ctypes

    block = ctypes.string_at(start, end - start)
    for name in map(os.fsencode, wanted):
        at = 0
        for entry in block.split(b"\0"):
            if entry.startswith(name + b"="):
                begins = at + len(name) + 1
                ctypes.memset(start + begins, ord("-"), len(entry) - len(name) - 1)
            at += len(entry) + 1


def _place() -> tuple[int, int]:
    """Return where the environment lies in memory; zeros where the system does not say."""
    try:
        with open(_STAT, "rb") as file:
            # The second field is a name in brackets, which may hold blanks and brackets itself.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[_START]), int(fields[_END])
    except (OSError, ValueError, IndexError):
        return 0, 0
