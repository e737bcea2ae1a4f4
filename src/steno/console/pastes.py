"""Pastes of any size: a large one stands in the prompt as one word, and is sent whole."""

import re
from typing import Final

__all__ = ["Pastes"]

_LINES: Final = 8
_LETTERS: Final = 1200
_MARK: Final = re.compile(r"\[paste (\d+): [^\]\n]*\]")


class Pastes:
    """What was pasted into the prompt that is being typed."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, text: str) -> str:
        """Return what to put into the prompt for a paste: itself, or a word that stands for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _LINES and len(text) <= _LETTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} letters"
        return f"[paste {number}: {size}]"

    def whole(self, typed: str) -> str:
        """Return what was typed with every paste in its place."""

        def put(match: re.Match[str]) -> str:
            return self._texts.get(int(match[1]), match[0])

        return _MARK.sub(put, typed)

    def lost(self, typed: str) -> str:
        """Return the first word that stands for a paste which is not known here."""
        marks = (found for found in _MARK.finditer(typed) if int(found[1]) not in self._texts)
        return next((found[0] for found in marks), "")

    def forget(self) -> None:
        """Begin anew: the prompt was sent."""
        self._texts = {}
