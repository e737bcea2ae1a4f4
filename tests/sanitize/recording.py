"""Tables of recorded answers: many inputs, each with the whole answer, in readable files.

    python -m tests.sanitize.recording

writes every file anew and prints what differs. Read what it prints: an answer that is wrong is a
bug to fix, not to record.

An input may hold letters that are drawn: `«36 alnum»` is thirty-six of them, the same ones every
time; `«36 count»` is `0123456789012…`, `«36 poor»` is `aaabaaab…`. An answer shows those that are
left in the same way, so that no file holds anything that looks like a live secret. `⟦base64 text⟧`
is the text encoded so. `⏎ ⇥ ␛ ␍` stand for a line end, a tab, an escape and a return.
"""

import base64
import difflib
import re
import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.sanitize.secret_cases import Draw, drawing

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
_DRAWN: Final = re.compile(r"«([0-9]+) ([A-Za-z0-9]+)»")
_ENCODED: Final = re.compile(r"⟦([A-Za-z0-9-]+) (.*?)⟧")
_MARKS: Final = str.maketrans({"⏎": "\n", "⇥": "\t", "␛": "\x1b", "␍": "\r"})
_SHOWN: Final = str.maketrans({"\n": "⏎", "\t": "⇥", "\x1b": "␛", "\r": "␍"})


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _in_lines(text: str, size: int, end: str) -> str:
    return end.join(text[at : at + size] for at in range(0, len(text), size))


ENCODINGS: Final[dict[str, Callable[[str], str]]] = {
    "base64": _base64,
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64-lines": lambda text: _in_lines(_base64(text), 64, "\n"),
    "base64-short-lines": lambda text: _in_lines(_base64(text), 16, "\n"),
    "base64-shorter-lines": lambda text: _in_lines(_base64(text), 15, "\n"),
    "base64-returns": lambda text: _in_lines(_base64(text), 64, "\r\n"),
    "base64-json": lambda text: _in_lines(_base64(text), 64, "\\n"),
    "base64-json-twice": lambda text: _in_lines(_base64(text), 64, "\\\\n"),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "percent": lambda text: "".join(f"%{ord(each):02X}" for each in text),
    "url": lambda text: quote(text, safe=""),
    "escape": lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
    "escape-twice": lambda text: "".join(f"\\\\u{ord(each):04X}" for each in text),
    "x-escape": lambda text: "".join(f"\\x{ord(each):02x}" for each in text),
    "entity": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "x-entity": lambda text: "".join(f"&#x{ord(each):x};" for each in text),
}
"""What `⟦base64 text⟧` may be written with."""
SAME: Final = "unchanged"

Answers = list[tuple[str, str]]
"""Labels of inputs, each with the answer."""
Answering = Callable[[list[str]], Answers]
"""Answers the inputs with some labels."""


class Text:
    """An input: its letters, and which of them were drawn or encoded."""

    def __init__(self, notation: str) -> None:
        self._parts: list[str] = []
        self.drawn: set[int] = set()
        self.segments: list[str] = []
        self._size = 0
        draw = drawing(notation)
        end = 0
        for found in _ENCODED.finditer(notation):
            self._expand(notation[end : found.start()], draw)
            inner = "".join(text for text, _ in _expanded(found[2], draw))
            self._add(ENCODINGS[found[1]](inner), drawn=True)
            end = found.end()
        self._expand(notation[end:], draw)
        self.text = "".join(self._parts)

    def _expand(self, notation: str, draw: Draw) -> None:
        for text, drawn in _expanded(notation, draw):
            self._add(text, drawn=drawn)

    def _add(self, text: str, *, drawn: bool) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if drawn:
            self.drawn.update(range(self._size, self._size + size))
            self.segments.append(text)
        self._size += size
        self._parts.append(text)

    def shown(self, begin: int, end: int) -> str:
        """Return a stretch of it (in bytes) with the drawn letters counted instead of shown."""
        data = self.text.encode("utf-8", "surrogatepass")
        made: list[str] = []
        while begin < end:
            stop = begin
            drawn = begin in self.drawn
            while stop < end and (stop in self.drawn) == drawn:
                stop += 1
            part = data[begin:stop].decode("utf-8", "replace")
            made.append(f"«{stop - begin}»" if drawn else part.translate(_SHOWN))
            begin = stop
        return "".join(made)


def _expanded(notation: str, draw: Draw) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a notation, and whether they were drawn."""
    end = 0
    for found in _DRAWN.finditer(notation):
        yield notation[end : found.start()].translate(_MARKS), False
        size = int(found[1])
        fixed = _FIXED.get(found[2], "")
        yield (fixed * size)[:size] if fixed else draw(LETTERS[found[2]], size), True
        end = found.end()
    yield notation[end:].translate(_MARKS), False


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


def each(answer: Callable[[str], str]) -> Answering:
    """Return what answers inputs that stand in the file itself; lines with # are comments."""
    return lambda labels: [(label, "" if label.startswith("# ") else answer(label)) for label in labels]


def whole(answers: Callable[[], Answers]) -> Answering:
    """Return what makes a table whose inputs are not in its file."""
    return lambda _labels: answers()


def main() -> None:
    """Write every table, and print what differs."""
    from tests.sanitize.tables import TABLES

    for name, answers in TABLES.items():
        before = written(read(name))
        after = written(answers([label for label, _ in read(name)]))
        (FOLDER / f"{name}.txt").write_text(after)
        for line in difflib.unified_diff(before.split("\n"), after.split("\n"), name, name, lineterm="", n=1):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
