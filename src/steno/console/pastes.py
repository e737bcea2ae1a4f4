"""Pastes of any size: a large one, or a picture, stands in the prompt as one word; it is sent whole."""

import os
import re
from typing import Final
from urllib.parse import unquote, urlsplit

__all__ = ["Pastes", "picture_in"]

_LINES: Final = 8
_LETTERS: Final = 1200
_MARK: Final = re.compile(r"\[(?:paste|image) (\d+): [^\]\n]*\]")
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Pastes:
    """What was pasted into the prompt that is being typed."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, text: str, cwd: str = "") -> str:
        """Return what to put into the prompt for a paste: itself, or a word that stands for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        path = picture_in(text, cwd)
        if path:
            return self.picture(path)
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _LINES and len(text) <= _LETTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} letters"
        return f"[paste {number}: {size}]"

    def picture(self, path: str) -> str:
        """Return the word that stands for a picture; where it is, is said when it is sent."""
        number = len(self._texts) + 1
        self._texts[number] = f'"{path}"'
        name = re.sub(r"[\[\]\n]", "_", os.path.basename(path))
        return f"[image {number}: {name}]"

    def whole(self, typed: str) -> str:
        """Return what was typed with every paste in its place."""

        def put(match: re.Match[str]) -> str:
            text = self._texts.get(int(match[1]), match[0])
            if not match[0].startswith("[image"):
                return text
            # A path is a word of its own, whatever stands beside it.
            before = typed[: match.start()][-1:].strip() and " "
            after = typed[match.end() :][:1].strip() and " "
            return f"{before}{text}{after}"

        return _MARK.sub(put, typed)

    def lost(self, typed: str) -> str:
        """Return the first word that stands for a paste which is not known here."""
        marks = (found for found in _MARK.finditer(typed) if int(found[1]) not in self._texts)
        return next((found[0] for found in marks), "")

    def forget(self) -> None:
        """Begin anew: the prompt was sent."""
        self._texts = {}


def picture_in(text: str, cwd: str) -> str:
    """Return the path of the picture that a paste is, as terminals paste a file that is dropped.

    Nothing where it is anything else: several lines, another file, a name of nothing.
    """
    given = text.strip()
    if not given or "\n" in given or len(given) > _LETTERS or '"' in given[1:-1]:
        return ""
    if given[0] in "'\"" and given[-1] == given[0]:
        given = given[1:-1]
    elif given.startswith("file://"):
        given = unquote(urlsplit(given).path)
    else:
        given = re.sub(r"\\(.)", r"\1", given)
    path = os.path.join(cwd, os.path.expanduser(given))
    return path if path.lower().endswith(_PICTURES) and os.path.isfile(path) else ""
