"""Small files of steno's own, in its folder: what was worked out once and is true until it is not.

Nobody else may read them, and losing one costs only the time to make it again. Each begins with a
checksum: one that is damaged is set aside and counts as missing.
"""

import os
from typing import Final

from steno.store.damaged_state import set_aside
from steno.store.disk import make_folder
from steno.store.places import steno_home

__all__ = ["keep", "kept"]

_MOST: Final = 64 << 20
_MAGIC: Final = b"steno-cache 1 "
_DIGEST: Final = 16
_HEAD: Final = len(_MAGIC) + 2 * _DIGEST + 1


def kept(name: str) -> bytes | None:
    """Return what was kept under a name; None where there is nothing, or nothing readable."""
    path = os.path.join(steno_home(), name)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY), "rb") as file:
            data = file.read(_MOST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return _lost(path, name)
    if data[:_HEAD] == _head(data[_HEAD:]):
        return data[_HEAD:]
    # Earlier releases wrote plain JSON; it is replaced.
    return None if data.startswith(b"{") else _lost(path, name)


def _lost(path: str, name: str) -> None:
    try:
        set_aside(path, f"the cache {name}")
    except OSError:
        # It is made again in any case, and kept where that is possible.
        return


def _head(data: bytes) -> bytes:
    from hashlib import blake2b

    return _MAGIC + blake2b(data, digest_size=_DIGEST).hexdigest().encode() + b"\n"


def keep(name: str, data: bytes) -> bool:
    """Keep something under a name, in one step; whether it could be kept."""
    path = os.path.join(steno_home(), name)
    beside = f"{path}.{os.getpid()}"
    try:
        make_folder(os.path.dirname(path))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
            file.write(_head(data) + data)
        os.replace(beside, path)
    except OSError:
        return False
    return True
