"""What exported files are called: the day, a few words of the title, the beginning of the id."""

import re
import unicodedata
from typing import Final

from steno.session.session import Session

__all__ = ["free_name", "name_of"]

_LONGEST: Final = 48
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def name_of(session: Session, taken: set[str]) -> str:
    """Return a name that is safe on every file system, and add it to those taken."""
    started = session.started
    day = f"{started.astimezone():%Y-%m-%d}" if started is not None else ""
    short = _slug(session.id[:8])
    stem = "-".join(part for part in (day, _slug(session.title.text), short) if part) or "session"
    return free_name(stem, taken)


def free_name(stem: str, taken: set[str]) -> str:
    """Return a name that nobody has yet, and add it to those taken."""
    name, number = stem, 1
    while name in taken or name == "index":
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name


def _slug(text: str) -> str:
    r"""Return letters and digits of a text, with dashes between words.

    >>> _slug("Fix the <b>Überlauf</b>, ../../now!")
    'fix-the-b-uberlauf-b-now'
    """
    plain = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    return _OTHER.sub("-", plain).strip("-")[:_LONGEST].rstrip("-")
