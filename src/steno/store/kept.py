"""Small files of steno's own, in its folder, which nobody else may read.

Caches (`keep`, `kept`) begin with a checksum: one that is damaged is set aside and counts as missing,
since losing it costs only the time to make it again. Everything else (`write_private`,
`read_private`) is written as it is and never set aside.
"""

import os
from typing import Final

from steno.store.damaged_state import set_aside
from steno.store.disk import make_folder
from steno.store.places import steno_home

__all__ = ["keep", "kept", "read_private", "write_private"]

_MOST: Final = 64 << 20
_MAGIC: Final = b"steno-cache 1 "
_DIGEST: Final = 16
_HEAD: Final = len(_MAGIC) + 2 * _DIGEST + 1


def kept(name: str) -> bytes | None:
    """Return what was kept under a name; None where there is nothing, or nothing readable."""
    path = os.path.join(steno_home(), name)
    try:
        data = _read(path)
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
    """Keep something that can be made again under a name, in one step; whether it could be kept."""
    return write_private(name, _head(data) + data)


def read_private(name: str) -> bytes | None:
    """Return the bytes of a file in steno's folder; None where it is missing or unreadable."""
    try:
        return _read(os.path.join(steno_home(), name))
    except OSError:
        return None


def _read(path: str) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY), "rb") as file:
        return file.read(_MOST)


def write_private(name: str, data: bytes) -> bool:
    """Write exactly these bytes to a file in steno's folder, in one step; whether that was done."""
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
