"""Files, written whole or not at all; nothing that is there is written over unless that is wanted."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from steno.errors import BadRequest, Unwritable

__all__ = ["make_folder", "put_file"]

_BUFFER: Final = 1 << 18
_HINT: Final = "--force writes over it"


def make_folder(path: str, *, force: bool) -> None:
    """Make a folder, or take an empty one.

    Raises:
        BadRequest: something is in it, and nobody said that it may be written over.
        Unwritable: it cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
        with os.scandir(path) as entries:
            empty = next(entries, None) is None
    except OSError as error:
        raise Unwritable(f"cannot make {path}: {_why(error)}") from error
    if not empty and not force:
        raise BadRequest(f"{path} is not empty", hint="--force writes into it all the same")


def put_file(path: str, parts: Iterable[bytes], *, force: bool) -> int:
    """Write a file; return how many bytes it has.

    Raises:
        BadRequest: it is there already, and nobody said that it may be written over.
        Unwritable: it cannot be written.
    """
    if not force and os.path.lexists(path):
        raise BadRequest(f"{path} is there already", hint=_HINT)
    beside = f"{path}.{os.getpid()}.part"
    size = 0
    try:
        with open(beside, "xb", buffering=_BUFFER) as file:
            for part in parts:
                size += file.write(part)
        os.replace(beside, path)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {_why(error)}") from error
    finally:
        with suppress(OSError):
            os.unlink(beside)
    return size


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
