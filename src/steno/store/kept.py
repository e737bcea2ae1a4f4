"""Small files of steno's own, in its folder: what was worked out once and is true until it is not.

Nobody else may read them, and losing one costs only the time to make it again.
"""

import os
from typing import Final

from steno.store.disk import make_folder
from steno.store.places import steno_home

__all__ = ["keep", "kept"]

_MOST: Final = 64 << 20


def kept(name: str) -> bytes | None:
    """Return what was kept under a name; None where there is nothing, or nothing readable."""
    try:
        descriptor = os.open(os.path.join(steno_home(), name), os.O_RDONLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(_MOST)
        except OSError:
            return None


def keep(name: str, data: bytes) -> bool:
    """Keep something under a name, in one step; whether it could be kept."""
    path = os.path.join(steno_home(), name)
    beside = f"{path}.{os.getpid()}"
    try:
        make_folder(os.path.dirname(path))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except OSError:
        return False
    return True
