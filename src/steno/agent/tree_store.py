"""What was seen in a working tree, kept compressed in a folder of our own."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from steno.agent.file_paths import entries_in
from steno.agent.file_putting import SCRATCH
from steno.agent.file_states import Look, digest_of, pieces
from steno.errors import Unreadable
from steno.store.disk import append, make_folder, open_private

__all__ = ["Store"]

_UNUSED: Final = 7 * 24 * 3600


class Store:
    """Contents under their digest, and what the last scan saw. All of it can be made anew."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._objects = os.path.join(folder, "objects")
        self._index = os.path.join(folder, "index")
        self._there: set[str] = set()
        self._pack: Callable[[bytes], bytes] | None = None

    def put(self, digest: str, data: bytes) -> None:
        """Keep a content."""
        if digest in self._there:
            return
        path = self._path(digest)
        if not os.path.exists(path):
            self._write(path, data)
        self._there.add(digest)

    def get(self, digest: str) -> bytes:
        """Return a content.

        Raises:
            Unreadable: it is not there, or not whole.
        """
        from zstandard import ZstdDecompressor, ZstdError

        path = self._path(digest)
        try:
            data = ZstdDecompressor().decompress(b"".join(pieces(path)))
        except (OSError, ZstdError) as error:
            raise Unreadable(f"what was in a file is no longer kept: {path}") from error
        if digest_of(data) != digest:
            raise Unreadable(f"what was in a file is kept, but damaged: {path}")
        return data

    def remembered(self) -> dict[str, Look]:
        """Return what the last scan saw, of which the contents are there; forget what is old."""
        from zstandard import ZstdDecompressor, ZstdError

        try:
            data = ZstdDecompressor().decompress(b"".join(pieces(self._index)))
            files = msgspec.msgpack.decode(data, type=dict[str, Look])
        except (OSError, ZstdError, msgspec.DecodeError):
            files = {}
        wanted = {look.digest for look in files.values()}
        self._there = set(self._swept(wanted))
        return {path: look for path, look in files.items() if look.digest in self._there}

    def remember(self, files: dict[str, Look]) -> None:
        """Note what a scan saw."""
        self._write(self._index, msgspec.msgpack.encode(files))

    def _swept(self, wanted: set[str]) -> Iterator[str]:
        """Yield what is there; what nobody has used for long is removed."""
        old = time.time() - _UNUSED
        for folder in entries_in(self._objects):
            for entry in entries_in(folder.path):
                digest = folder.name + entry.name
                with suppress(OSError):
                    if digest not in wanted and entry.stat().st_mtime < old:
                        os.unlink(entry.path)
                        continue
                    yield digest

    def _path(self, digest: str) -> str:
        return os.path.join(self._objects, digest[:2], digest[2:])

    def _write(self, path: str, data: bytes) -> None:
        if self._pack is None:
            from zstandard import ZstdCompressor

            self._pack = ZstdCompressor(level=1).compress
        make_folder(os.path.dirname(path))
        scratch = f"{path}.{os.urandom(6).hex()}{SCRATCH}"
        try:
            # Not flushed to the disk, for there are many: what is damaged is noticed when it is read.
            descriptor = open_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                append(descriptor, self._pack(data))
            finally:
                os.close(descriptor)
            os.replace(scratch, path)
        finally:
            with suppress(OSError):
                os.unlink(scratch)
