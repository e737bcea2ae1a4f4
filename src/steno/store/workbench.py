"""Where a file is worked on before anybody sees it, never beside the session.

In memory while it is small, else in a temporary folder that only its owner can look into.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Final, Self

from steno.format.source import CHUNK, BytesSource, Source
from steno.store.scratch import Scratch, unwritable

__all__ = ["IN_MEMORY", "Workbench", "owned"]

IN_MEMORY: Final = 64 << 20
"""What is larger goes to the disk."""


class Workbench:
    """Takes bytes and gives them back as a source; everything on it vanishes when it is left.

    What is put on it may be made from what was put there before, which is then no longer there.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._file: Scratch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def put(self, chunks: Iterable[bytes]) -> Source:
        """Return what was given as one source.

        Raises:
            Unwritable: there is no room for it.
        """
        rest = iter(chunks)
        held = BytesIO()
        for chunk in rest:
            held.write(chunk)
            if held.tell() > IN_MEMORY:
                return self._spill(held, rest)
        self._clear()
        return BytesSource(held.getvalue())

    def _spill(self, held: BytesIO, rest: Iterable[bytes]) -> Source:
        scratch = Scratch(os.path.join(self._place(), "work"))
        scratch.write(_joined(held, rest))
        self._clear()
        self._file = scratch
        return scratch.source()

    def _place(self) -> str:
        if self._folder is None:
            try:
                self._folder = TemporaryDirectory(prefix="steno-")
            except OSError as error:
                raise unwritable("a temporary file", error) from error
        return self._folder.name

    def _clear(self) -> None:
        if self._file is not None:
            self._file.remove()
            self._file = None


def _joined(held: BytesIO, rest: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is held and the rest, in pieces that are worth a write of their own."""
    yield held.getvalue()
    held.close()
    few: list[bytes] = []
    size = 0
    for chunk in rest:
        few.append(chunk)
        size += len(chunk)
        if size >= CHUNK:
            yield b"".join(few)
            few.clear()
            size = 0
    yield b"".join(few)


def owned(path: str) -> str:
    """Let its owner write to a new file, whatever the one it was made from allowed."""
    try:
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        raise unwritable(path, error) from error
    return path
