"""Steps, and what all pages have, laid aside while a page is drawn.

They are most of a page, and finished: to hand them from one template to the next, and to write them
as bytes together with letters of every alphabet, takes longer than to draw them. A mark stands for
each meanwhile, around a character that no text of a session has on a page.
"""

from typing import Final

from steno.safe.html import Html

__all__ = ["Aside"]

_MARK: Final = "\0"


class Aside:
    """Pieces of pages as bytes, by number."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def lay(self, begin: Html, inside: Html, end: Html) -> Html:
        """Lay a step aside, and return what stands for it."""
        piece = b"".join(self.parts(inside)) if _MARK in inside else _bytes(inside)
        self._length += len(piece)
        return self.put(b"".join((_bytes(begin), piece, _bytes(end))))

    def put(self, piece: bytes) -> Html:
        """Take a piece that is bytes already, and return what stands for it."""
        self._pieces.append(piece)
        return Html(f"{_MARK}{len(self._pieces) - 1}{_MARK}")

    def taken(self) -> int:
        """Return how many bytes were inside of steps since this was asked last."""
        length, self._length = self._length, 0
        return length

    def parts(self, html: str) -> list[bytes]:
        """Return a text as bytes, piece by piece."""
        parts = html.split(_MARK)
        made = [b""] * len(parts)
        made[::2] = map(_bytes, parts[::2])
        made[1::2] = [self._pieces[int(number)] for number in parts[1::2]]
        return made


def _bytes(html: str) -> bytes:
    return html.encode("utf-8", "replace")
