"""Questions to the user: something to read, answers by one key, words of their own, or a search.

reply = await prompt.ask(Dialog("Permission", body, choices=(Choice("y", "yes, once", "once"),)))
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from steno.safe.terminal import Bit, Line, cut, one_line, width

__all__ = ["Choice", "Dialog", "Reply"]

_SHOWN: Final = 8
_PREVIEW: Final = 6
_FRAME: Final = 110


class Choice(msgspec.Struct, frozen=True):
    """One answer to choose."""

    key: str
    """The key that chooses it; nothing where it is chosen with the arrows."""
    label: str
    value: str
    detail: str = ""


class Reply(msgspec.Struct, frozen=True):
    """What was answered."""

    value: str
    words: str = ""
    """What was typed with it."""
    values: tuple[str, ...] = ()
    """Where several can be chosen: all of them."""


class Dialog:
    """One question."""

    def __init__(
        self,
        title: str,
        body: Sequence[Line] = (),
        choices: Sequence[Choice] = (),
        *,
        words: str = "",
        framed: bool = False,
        search: bool = False,
    ) -> None:
        """Take what to ask; `words` is what typing an answer is for, where that is possible."""
        self.title = title
        self.body = list(body)
        self.choices = tuple(choices)
        self.words = words
        self.framed = framed
        self.search = search
        self.many = False
        """Whether several can be chosen."""
        self.preview: Callable[[str], list[Line]] | None = None
        """Returns what is told of what is pointed at."""
        self.at = 0
        self.ticked: set[str] = set()
        self.typing = not choices and bool(words)
        self.initial = ""
        """What stands there to be edited."""
        self.answer: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()

    # What is chosen

    def shown(self, typed: str) -> list[Choice]:
        """Return the choices that fit what was typed in a search."""
        if not self.search or not typed.strip():
            return list(self.choices)
        wanted = typed.lower().split()
        return [
            each
            for each in self.choices
            if all(word in f"{each.label} {each.detail}".lower() for word in wanted)
        ]

    def move(self, by: int, typed: str) -> None:
        """Go up or down in the list."""
        most = len(self.shown(typed)) - 1
        self.at = max(0, min(self.at + by, most))

    def key(self, key: str) -> bool:
        """Choose by a key; whether one is meant."""
        for number, each in enumerate(self.choices):
            if each.key and each.key == key:
                self.at = number
                if self.many:
                    self.tick()
                else:
                    self.choose("")
                return True
        return False

    def tick(self) -> None:
        """Choose one of several, or take it back."""
        self.ticked ^= {self.choices[self.at].value}

    def choose(self, typed: str) -> None:
        """Answer with what is pointed at."""
        shown = self.shown(typed)
        if not shown:
            return
        each = shown[min(self.at, len(shown) - 1)]
        values = tuple(item.value for item in self.choices if item.value in self.ticked)
        self.reply(Reply(each.value, values=values or (each.value,)))

    def say(self, words: str) -> None:
        """Answer in words."""
        self.reply(Reply("words", words))

    def reply(self, reply: Reply | None) -> None:
        """Answer; None leaves the question open."""
        if not self.answer.done():
            self.answer.set_result(reply)

    # What is seen

    def lines(self, columns: int, rows: int, typed: str) -> list[Line]:
        """Return the question as lines, at most so many."""
        inner = min(columns - 1, _FRAME) - 4 if self.framed else columns - 2
        foot = list(self._choices(inner, typed))
        body = self.body
        room = max(rows - len(foot) - (3 if self.framed else 2), 1)
        if len(body) > room:
            left = len(body) - room + 1
            more: Line = [(f"… {left} more lines: d shows all", "dim")]
            body = [*body[: room - 1], more]
        if self.framed:
            return _framed(self.title, [*body, [], *foot], inner)
        head: Line = [(one_line(self.title, columns), "bold")]
        return [head, *body, *foot]

    def _choices(self, columns: int, typed: str) -> Iterator[Line]:
        if self.typing:
            yield [(one_line(self.words, columns), "dim")]
            return
        if self.search:
            yield from self._list(columns, typed)
            return
        if any(each.detail for each in self.choices) or self.many:
            yield from self._rows(columns)
        else:
            yield from self._keys(columns)

    def _keys(self, columns: int) -> Iterator[Line]:
        """Yield the answers beside each other, as many on a line as fit."""
        line: Line = []
        used = 0
        for number, each in enumerate(self.choices):
            label = one_line(each.label, columns - 5)
            room = width(label) + len(each.key) + 6
            if line and used + room > columns:
                yield line
                line, used = [], 0
            here = number == self.at
            line += [(f" {each.key} ", "reverse"), " ", (label, "bold" if here else ""), "   "]
            used += room
        yield line
        if self.words:
            yield [(cut(f"tab: {self.words}; esc stops", columns), "dim")]

    def _rows(self, columns: int) -> Iterator[Line]:
        """Yield the answers below each other, with what they mean."""
        for number, each in enumerate(self.choices):
            here = number == self.at
            tick = ("✓ " if each.value in self.ticked else "◻ ") if self.many else ""
            key = f"{each.key} " if each.key else ""
            label = one_line(f"{tick}{key}{each.label}", columns - 2)
            left = columns - 4 - width(label)
            detail = cut(one_line(each.detail), left) if left > 0 else ""
            yield [
                ("▸ " if here else "  ", "blue"),
                (label, "bold" if here else ""),
                (f"  {detail}", "dim"),
            ]
        how = "space chooses, enter sends" if self.many else "enter chooses"
        typing = f", tab: {self.words}" if self.words else ""
        yield [(cut(f"{how}{typing}, esc leaves", columns), "dim")]

    def _list(self, columns: int, typed: str) -> Iterator[Line]:
        """Yield the part of a long list that is around what is pointed at."""
        shown = self.shown(typed)
        self.at = max(0, min(self.at, len(shown) - 1))
        start = max(0, min(self.at - _SHOWN // 2, len(shown) - _SHOWN))
        for number, each in enumerate(shown[start : start + _SHOWN], start):
            here = number == self.at
            detail = one_line(each.detail, columns // 3)
            label = one_line(each.label, columns - 5 - width(detail))
            space = " " * max(columns - 2 - width(label) - width(detail), 2)
            yield [
                ("▸ " if here else "  ", "blue"),
                (label, "bold" if here else ""),
                (f"{space}{detail}", "dim"),
            ]
        told = f"{len(shown)} of {len(self.choices)}" if typed else f"{len(self.choices)}"
        yield [(cut(f"{told}; type to search, enter chooses, esc leaves", columns), "dim")]
        if self.preview is not None and shown:
            yield from self.preview(shown[self.at].value)[:_PREVIEW]


def _framed(title: str, lines: list[Line], inner: int) -> list[Line]:
    """Return lines in the one frame there is."""
    head = f"┌ {title} " + "─" * max(inner - width(title) - 1, 0) + "─┐"
    framed: list[Line] = [[(head, "yellow")]]
    for line in lines:
        fitting, used = _fitted(line, inner)
        fill: Bit = " " * (inner - used)
        framed.append([("│ ", "yellow"), *fitting, fill, (" │", "yellow")])
    framed.append([("└" + "─" * (inner + 2) + "┘", "yellow")])
    return framed


def _fitted(line: Line, columns: int) -> tuple[Line, int]:
    """Return as much of a line as fits, and how many columns that takes."""
    fitting: Line = []
    used = 0
    for bit in line:
        text, style = bit if isinstance(bit, tuple) else (bit, "")
        text = cut(text, columns - used)
        fitting.append((text, style))
        used += width(text)
    return fitting, used
