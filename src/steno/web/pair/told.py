"""Sides of comparisons that were told before: swapping two long sessions must not take as long."""

import threading
from weakref import WeakKeyDictionary

import msgspec

from steno.report.compare import Known, Side, side_of
from steno.session.session import Session

__all__ = ["told"]

_lock = threading.Lock()
_sides: WeakKeyDictionary[Session, Side] = WeakKeyDictionary()


def told(session: Session, known: Known) -> Side:
    """Return a session's side. A session that changes is opened anew, so what is kept stays true."""
    with _lock:
        kept = _sides.get(session)
    if kept is not None and kept.known.project == known.project:
        return msgspec.structs.replace(kept, known=known)
    side = side_of(session, known)
    with _lock:
        _sides[session] = side
    return side
