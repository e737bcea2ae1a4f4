"""Transcripts that are written to while somebody reads them: only what was added is read."""

from typing import TYPE_CHECKING, Final

from steno.session.transcript import Transcript, grown, load
from steno.store.read import PathSource

if TYPE_CHECKING:
    from steno.format.source import Source

__all__ = ["read_on"]

_EDGE: Final = 1 << 12


def read_on(before: Transcript | None, source: "Source") -> Transcript:
    """Return what is in a file by now; it is read as a whole unless it was only added to.

    Raises:
        Unreadable: it cannot be read.
    """
    known = before is not None and _only_added(before.source, source)
    made = grown(before, source) if before is not None and known else load(source)
    if isinstance(source, PathSource):
        source.mark = _mark(source, source.size)
    return made


def _only_added(old: "Source", new: "Source") -> bool:
    """Whether a file is the one that was read before, its beginning and former end unchanged."""
    if not isinstance(old, PathSource) or not isinstance(new, PathSource) or not old.mark:
        return False
    same = old.identity == new.identity and old.size <= new.size
    return same and _mark(new, old.size) == old.mark


def _mark(source: PathSource, size: int) -> bytes:
    """Return what tells whether a file is the same up to a place."""
    edge = min(_EDGE, size)
    return b"%d:" % size + source.read(0, edge) + source.read(size - edge, edge)
