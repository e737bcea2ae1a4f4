"""Tables of recorded answers: many inputs, each with the whole answer, in readable files.

    python -m tests.safe.recording

writes every file anew and prints what differs. Read what it prints: an answer that is wrong is a
bug to fix, not to record.

An input may hold letters that are drawn: `‹36 alnum›` is thirty-six of them, the same ones every
time; `‹36 count›` is `0123456789012…`, `‹36 poor›` is `aaabaaab…`. An answer shows those that are left in the same way, so that no file holds anything that looks
like a live secret. `⏎ ⇥ ␛ ␍` stand for a line end, a tab, an escape and a return.
"""

import difflib
import re
import string
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.safe.secret_cases import drawing

FOLDER: Final = Path(__file__).parent / "recorded"
LETTERS: Final = {
    "alnum": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lower": string.ascii_lowercase + string.digits,
    "small": string.ascii_lowercase,
    "upper": string.ascii_uppercase + string.digits,
    "capital": string.ascii_uppercase,
    "url": string.ascii_letters + string.digits + "-_",
    "base64": string.ascii_letters + string.digits + "+/",
    "base32": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "digits": "123456789",
    "signs": string.ascii_letters + string.digits + "!#%+*?",
    "keyboard": string.ascii_letters + string.digits + "!#$%&()*+-=@^_",
}
_FIXED: Final = {
    "count": "0123456789",
    "poor": "aaab",
    "words": "ConfigurationOfTheSettings",
    "five": "ABCDE",
    "six": "ABCDEF",
}
_DRAWN: Final = re.compile(r"‹([0-9]+) ([A-Za-z0-9]+)›")
_MARKS: Final = str.maketrans({"⏎": "\n", "⇥": "\t", "␛": "\x1b", "␍": "\r"})
_SHOWN: Final = str.maketrans({"\n": "⏎", "\t": "⇥", "\x1b": "␛", "\r": "␍"})
SAME: Final = "unchanged"

Answers = list[tuple[str, str]]
"""Labels of inputs, each with the answer."""


class Text:
    """An input: its letters, and which of them were drawn."""

    def __init__(self, notation: str) -> None:
        draw = drawing(notation)
        parts: list[str] = []
        self.drawn: set[int] = set()
        self._size = 0
        end = 0
        for found in _DRAWN.finditer(notation):
            self._add(parts, notation[end : found.start()].translate(_MARKS), drawn=False)
            size = int(found[1])
            fixed = _FIXED.get(found[2], "")
            letters = (fixed * size)[:size] if fixed else draw(LETTERS[found[2]], size)
            self._add(parts, letters, drawn=True)
            end = found.end()
        self._add(parts, notation[end:].translate(_MARKS), drawn=False)
        self.text = "".join(parts)

    def _add(self, parts: list[str], text: str, *, drawn: bool) -> None:
        size = len(text.encode())
        if drawn:
            self.drawn.update(range(self._size, self._size + size))
        self._size += size
        parts.append(text)

    def shown(self, begin: int, end: int) -> str:
        """Return a stretch of it (in bytes) with the drawn letters counted instead of shown."""
        data = self.text.encode()
        made: list[str] = []
        while begin < end:
            stop = begin
            drawn = begin in self.drawn
            while stop < end and (stop in self.drawn) == drawn:
                stop += 1
            part = data[begin:stop].decode("utf-8", "replace")
            made.append(f"‹{stop - begin}›" if drawn else part.translate(_SHOWN))
            begin = stop
        return "".join(made)


def visible(text: str) -> str:
    """Return a text on one line."""
    return text.translate(_SHOWN)


def read(name: str) -> Answers:
    """Return what is recorded."""
    path = FOLDER / f"{name}.txt"
    lines = path.read_text().split("\n") if path.exists() else []
    made: Answers = []
    for line in lines:
        if line.startswith("= ") and made:
            made[-1] = (made[-1][0], line[2:])
        elif line.strip():
            made.append((line, ""))
    return made


def written(answers: Answers) -> str:
    """Return the text of a file."""
    return "".join(f"{label}\n= {answer}\n" if answer else f"{label}\n" for label, answer in answers)


def in_file(name: str, answer: Callable[[str], str]) -> Callable[[], Answers]:
    """Return what answers the inputs that stand in the file itself; lines with # are comments."""

    def answers() -> Answers:
        return [
            (label, "" if label.startswith("# ") else answer(label)) for label, _ in read(name)
        ]

    return answers


def made_of(labels: Iterable[str], answer: Callable[[str], str]) -> Callable[[], Answers]:
    """Return what answers inputs that a test makes."""
    return lambda: [(label, answer(label)) for label in labels]


def main() -> None:
    """Write every table, and print what differs."""
    from tests.safe.tables import TABLES

    for name, answers in TABLES.items():
        before = written(read(name))
        after = written(answers())
        (FOLDER / f"{name}.txt").write_text(after)
        for line in difflib.unified_diff(
            before.split("\n"), after.split("\n"), name, name, lineterm="", n=1
        ):
            print(line)


if __name__ == "__main__":
    main()
