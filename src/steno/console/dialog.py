"""Questions to the user: something to read, answers by one key, words of their own, or a search.

reply = await prompt.ask(Dialog("Permission", body, choices=(Choice("y", "yes, once", "once"),)))
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from steno.safe.terminal import Bit, Line, clean, cut, one_line, pad, width, wrap

__all__ = ["Body", "Choice", "Dialog", "Reply"]

Body: TypeAlias = Sequence[Line] | Callable[[int], Sequence[Line]]
"""Something to read: lines, or what lays them out in so many columns."""
_SHOWN: Final = 8
_PREVIEW: Final = 6
_FRAME: Final = 110
_DETAIL: Final = 24
_ALL: Final = "d"


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
        body: Body = (),
        choices: Sequence[Choice] = (),
        *,
        words: str = "",
        framed: bool = False,
        search: bool = False,
    ) -> None:
        """Take what to ask; `words` is what typing an answer is for, where that is possible."""
        self.title = title
        self.body = body
        self.choices = tuple(choices)
        self.words = words
        self.framed = framed
        self.search = search
        self.many = False
        """Whether several can be chosen."""
        self.preview: Callable[[str], list[Line]] | None = None
        """Returns what is told of what is pointed at."""
        self.all = ""
        """The answer that has everything printed where not all of it fits."""
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
        if key == _ALL and self.all:
            self.reply(Reply(self.all))
        return False

    def pointed(self, typed: str) -> str:
        """Return what is pointed at, in words."""
        shown = self.shown(typed)
        if self.typing or not shown:
            return ""
        each = shown[min(self.at, len(shown) - 1)]
        ticked = ("chosen, " if each.value in self.ticked else "not chosen, ") if self.many else ""
        return f"{ticked}{each.label}"

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

    def lines(self, columns: int, rows: int, typed: str, *, plain: bool = False) -> list[Line]:
        """Return the question as lines, at most so many; `plain` has no frame."""
        framed = self.framed and not plain
        inner = min(columns - 1, _FRAME) - 4 if framed else columns - 2
        foot = list(self._choices(inner, typed))
        body = list(self.body(inner) if callable(self.body) else self.body)
        room = max(rows - len(foot) - (3 if framed else 2), 1)
        if len(body) > room:
            left = len(body) - room + 1
            how = f": {_ALL} shows all" if self.all else ""
            more: Line = [(f"… {left} more lines{how}", "dim")]
            body = [*body[: room - 1], more]
        if framed:
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
            first, *rest = wrap(clean(each.label), columns - 5)
            room = width(first) + len(each.key) + 6
            if line and (rest or used + room > columns):
                yield line
                line, used = [], 0
            style = "bold" if number == self.at else ""
            line += [(f" {each.key} ", "reverse"), " ", (first, style), "   "]
            used += room
            for part in rest:
                yield line
                line, used = [" " * (len(each.key) + 3), (part, style)], columns
        yield line
        if self.words:
            yield from _dim(f"tab: {self.words}; esc stops", columns)

    def _rows(self, columns: int) -> Iterator[Line]:
        """Yield the answers below each other, with what they mean."""
        before = 2 + (2 if self.many else 0) + max(len(each.key) for each in self.choices) + 3
        room = min(max(width(one_line(each.label)) for each in self.choices), columns - before)
        left = columns - before - room - 2
        for number, each in enumerate(self.choices):
            here = number == self.at
            tick = ("✓ " if each.value in self.ticked else "◻ ") if self.many else ""
            key: Line = [(f" {each.key} ", "reverse"), " "] if each.key else []
            label = (pad(one_line(each.label, room), room), "bold" if here else "")
            about = wrap(one_line(each.detail), left) if left >= _DETAIL else [""]
            mark = ("▸ " if here else "  ", "blue")
            yield [mark, tick, *key, label, (f"  {about[0]}", "dim")]
            space = " " * (before + room + 2)
            if left < _DETAIL and each.detail:
                # Too narrow for two columns: what it means stands below it.
                space, about = " " * before, ["", *wrap(one_line(each.detail), columns - before)]
            yield from ([space, (part, "dim")] for part in about[1:])
        how = "space chooses, enter sends" if self.many else "enter chooses"
        typing = f", tab: {self.words}" if self.words else ""
        yield from _dim(f"{how}{typing}, esc leaves", columns)

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


def _dim(words: str, columns: int) -> Iterator[Line]:
    for line in wrap(words, columns):
        yield [(line, "dim")]


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
