"""Files with the paths in them rewritten, piece by piece; and what that comes to."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b, sha256

import msgspec

from steno.format.reroot import Reroot
from steno.store.relocate.values import Mode, Sum

__all__ = ["Measured", "mark_of", "measure", "pieces", "rewritten", "sum_of"]


class Measured(msgspec.Struct, frozen=True):
    """What rewriting a file comes to."""

    before: Sum
    after: Sum
    paths: int
    exact: bool
    lines: tuple[str, ...]


class _Summing:
    """A hash that knows how much it has seen."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Take more."""
        self._hash.update(data)
        self._size += len(data)

    def sum(self) -> Sum:
        """Return what it comes to so far."""
        return Sum(self._size, self._hash.hexdigest())


def sum_of(chunks: Iterable[bytes]) -> Sum:
    """Return size and hash of bytes."""
    summing = _Summing()
    for chunk in chunks:
        summing.add(chunk)
    return summing.sum()


def pieces(chunks: Iterable[bytes], mode: Mode) -> Iterator[bytes]:
    """Yield what is looked at as one: a line with its end, a whole file, or whatever comes."""
    if mode == "bytes":
        yield from chunks
        return
    if mode == "whole":
        yield b"".join(chunks)
        return
    rest: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for line in others:
            yield b"".join(rest) + b"\n"
            rest = [line]
    if last := b"".join(rest):
        yield last


def rewritten(chunks: Iterable[bytes], paths: Reroot, mode: Mode) -> Iterator[bytes]:
    """Yield a file with its paths as they are now."""
    for piece in pieces(chunks, mode):
        yield piece if mode == "bytes" else paths.apply(piece)[0]


def measure(
    chunks: Iterable[bytes],
    paths: Reroot,
    mode: Mode,
    *,
    marks: bool = False,
    done: Callable[[int], None] | None = None,
) -> Measured:
    """Return what rewriting comes to; `marks` adds those of the lines that change."""
    before, after = _Summing(), _Summing()
    back = paths.back()
    number, exact, lines = 0, True, list[str]()
    for piece in pieces(chunks, mode):
        new, count = (piece, 0) if mode == "bytes" else paths.apply(piece)
        before.add(piece)
        after.add(new)
        number += count
        if count:
            exact = exact and back.apply(new)[0] == piece
            lines += _changed(piece, new) if marks else ()
        elif exact and mode != "bytes":
            # What names the new folder already would be taken along on the way back.
            exact = back.apply(piece)[1] == 0
        if done is not None:
            done(len(piece))
    return Measured(before.sum(), after.sum(), number, exact, tuple(lines))


def _changed(old: bytes, new: bytes) -> Iterator[str]:
    pairs = zip(old.split(b"\n"), new.split(b"\n"), strict=True)
    return (mark_of(after) for before, after in pairs if before != after)


def mark_of(line: bytes) -> str:
    """Return what a line is known by, without its end."""
    return blake2b(line.rstrip(b"\r\n"), digest_size=12).hexdigest()
