"""What is inside of steps, laid aside while the page around it is drawn.

It is most of a page, and finished: to hand it from one template to the next, and to write it as
bytes together with letters of every alphabet, takes longer than to draw it. A mark stands for it
meanwhile, around a character that no text of a session has on a page.
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

    def lay(self, html: Html) -> Html:
        """Lay a piece aside, and return what stands for it."""
        piece = self.whole(html)
        self._pieces.append(piece)
        self._length += len(piece)
        return Html(f"{_MARK}{len(self._pieces) - 1}{_MARK}")

    def taken(self) -> int:
        """Return how many bytes came in since this was asked last."""
        length, self._length = self._length, 0
        return length

    def whole(self, html: str) -> bytes:
        """Return a text as bytes, with every piece in its place."""
        if _MARK not in html:
            return html.encode("utf-8", "replace")
        parts = html.split(_MARK)
        made = [part.encode("utf-8", "replace") for part in parts]
        made[1::2] = [self._pieces[int(number)] for number in parts[1::2]]
        return b"".join(made)
