"""Where sessions lie now that somebody, such as the archive, knows by another path."""

import os
from collections.abc import Iterable
from typing import Final

import msgspec

from steno.format.loose import REFUSED
from steno.store.disk import append, open_private, read_all
from steno.store.places import steno_home
from steno.store.scratch import unwritable

__all__ = ["Moved", "moved_to", "note_moved"]

_FILE: Final = ("moves", "moved.jsonl")
_FURTHEST: Final = 100


class Moved(msgspec.Struct, frozen=True):
    """A session that got another place, and how big it was then."""

    old: str
    new: str
    size: int


def note_moved(moves: Iterable[Moved]) -> None:
    """Remember moves.

    Raises:
        Unwritable: the note cannot be written.
    """
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in moves)
    if not lines:
        return
    path = os.path.join(steno_home(), *_FILE)
    try:
        if read_all(path)[-1:] not in (b"", b"\n"):
            # A line that was cut off must not take these with it.
            lines = b"\n" + lines
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            append(descriptor, lines)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unwritable(path, error) from error


def moved_to() -> dict[str, Moved]:
    """Return where each session that was moved lies now, by where it lay before."""
    try:
        raw = read_all(os.path.join(steno_home(), *_FILE))
    except OSError:
        return {}
    last: dict[str, Moved] = {}
    for line in raw.split(b"\n"):
        try:
            each = msgspec.json.decode(line, type=Moved)
        except REFUSED:
            continue
        # Whatever lies there now came there by this move: where it went before is history.
        last.pop(each.new, None)
        last[each.old] = each
    return {path: _end(each, last) for path, each in last.items()}


def _end(move: Moved, last: dict[str, Moved]) -> Moved:
    new = move.new
    for _ in range(_FURTHEST):
        if new not in last:
            break
        new = last[new].new
    return Moved(move.old, new, move.size)
