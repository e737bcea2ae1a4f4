"""Putting files and links in their place, whole or not at all."""

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Final

from steno.errors import Unreadable
from steno.store.disk import append, open_private

__all__ = ["SCRATCH", "put", "put_link"]

SCRATCH: Final = ".steno-tmp"
"""How the names of files end that are about to become others."""


def put(
    path: str,
    chunks: Iterable[bytes],
    mode: int,
    *,
    like: os.stat_result | None = None,
    digest: str = "",
) -> str:
    """Put a content at a path, whole or not at all; return its digest."""
    scratch = _scratch(path)
    found = sha256()
    try:
        descriptor = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            for chunk in chunks:
                found.update(chunk)
                append(descriptor, chunk)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if digest and found.hexdigest() != digest:
            raise Unreadable("its backup is damaged")
        if like is not None and hasattr(os, "chown") and like.st_uid != os.stat(scratch).st_uid:
            with suppress(OSError):
                os.chown(scratch, like.st_uid, like.st_gid)
        os.chmod(scratch, mode)
        os.replace(scratch, path)
    finally:
        with suppress(OSError):
            os.unlink(scratch)
    return found.hexdigest()


def put_link(path: str, target: bytes) -> None:
    """Put a symbolic link at a path."""
    scratch = _scratch(path)
    try:
        os.symlink(os.fsdecode(target), scratch)
        os.replace(scratch, path)
    finally:
        with suppress(OSError):
            os.unlink(scratch)


def _scratch(path: str) -> str:
    return os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}{SCRATCH}")
