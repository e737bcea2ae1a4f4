"""Any JSON value → tidy lines, with big values folded. What is too much is counted, not hidden."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from markupsafe import Markup, escape

from steno.format.encode import encode
from steno.report import words as say
from steno.safe.html import Html, words
from steno.web.bodies.values import as_fields, as_items

__all__ = ["tidy"]

_LONG: Final = 160
"""Letters of a text that stands in its line."""
_TEXT: Final = 20_000
"""Letters of a text that is unfolded."""
_LETTERS: Final = 200_000
"""Letters of unfolded texts in all."""
_SHORT: Final = 60
"""Letters of a small value that stands in one line."""
_MANY: Final = 12
"""Entries, inside of something else, that stand unfolded."""
_ENTRIES: Final = 200
"""Entries of one value that are shown."""
_DEEP: Final = 24
_ROOM: Final = 3_000
"""Lines in all."""
_FULL: Final = 10
"""How many times as much is shown where everything is wanted."""


def tidy(value: Any, *, full: bool = False) -> Html:
    """Return a value as people read it."""
    shown = _Writer(_FULL if full else 1).value(Markup(""), value, Markup(""), 0)
    return Html(f'<div class="tidy" tabindex="0" role="region" aria-label="JSON">{shown}</div>')


class _Writer:
    def __init__(self, times: int) -> None:
        self._room = _ROOM * times
        self._entries = _ENTRIES * times
        self._text = _TEXT * times
        self._letters = _LETTERS * times

    def value(self, name: Markup, value: Any, end: Markup, depth: int) -> Markup:
        """Return a value behind its name."""
        self._room -= 1
        if isinstance(value, str) and (len(value) > _LONG or "\n" in value):
            return self._long(name, value, end)
        if isinstance(value, dict | list) and value:
            return self._many(name, cast("dict[str, Any] | list[Any]", value), end, depth)
        return _line(name + _scalar(value) + end)

    def _long(self, name: Markup, value: str, end: Markup) -> Markup:
        first = value.lstrip().split("\n", 1)[0][:_SHORT]
        head = name + Markup('<span class="s">"{}…"</span>{}').format(words(first), end)
        room = max(0, min(self._text, self._letters))
        self._letters -= min(room, len(value))
        cut = len(value) - room
        rest = _more(f"{cut:,} more letters, see the line itself") if cut > 0 else Markup("")
        body = Markup('<pre class="s">{}</pre>{}').format(words(value[:room]), rest)
        lines = value.count("\n") + 1
        size = say.count(lines, "line") if lines > 1 else f"{len(value):,} letters"
        return _fold(head, size, body, shut=True)

    def _many(
        self, name: Markup, value: dict[str, Any] | list[Any], end: Markup, depth: int
    ) -> Markup:
        flat = _flat(value)
        if flat is not None:
            return _line(name + flat + end)
        begin, close = ("{", "}") if isinstance(value, dict) else ("[", "]")
        if depth >= _DEEP or self._room <= 0:
            size = say.count(len(value), "entry", "entries")
            return _line(name + Markup("{}… {} …{}{}").format(begin, size, close, end))
        shown = Markup("").join(self._entries_of(value, depth + 1))
        body = Markup('<div class="in">{}</div>').format(shown) + _line(Markup(close) + end)
        noun = ("field", "fields") if isinstance(value, dict) else ("item", "items")
        size = say.count(len(value), *noun)
        head = name + Markup(begin)
        if depth and (len(value) > _MANY or depth > _MANY):
            return _fold(head, size, body, shut=True)
        return _line(head) + body

    def _entries_of(self, value: dict[str, Any] | list[Any], depth: int) -> Iterator[Markup]:
        last = len(value) - 1
        for place, (name, item) in enumerate(_named(value)):
            if place == self._entries or self._room <= 0:
                yield _more(f"{len(value) - place:,} more")
                return
            yield self.value(name, item, Markup("" if place == last else ","), depth)


def _named(value: dict[str, Any] | list[Any]) -> Iterable[tuple[Markup, Any]]:
    if isinstance(value, list):
        return ((Markup(""), item) for item in value)
    return (
        (Markup('<span class="nf">"{}"</span>: ').format(words(name)), item)
        for name, item in value.items()
    )


def _flat(value: dict[str, Any] | list[Any]) -> Markup | None:
    """Return a small value in one line, if it is one."""
    items: list[Any] = [*as_fields(value).values(), *as_items(value)]
    if len(items) > _MANY or any(as_fields(item) or as_items(item) for item in items):
        return None
    parts = [
        name + _scalar(item)
        for name, item in _named(value)
        if not (isinstance(item, str) and len(item) > _SHORT)
    ]
    if len(parts) < len(items) or sum(len(part.striptags()) for part in parts) > _SHORT:
        return None
    begin, close = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return Markup(begin) + Markup(", ").join(parts) + Markup(close)


def _scalar(value: Any) -> Markup:
    if isinstance(value, str):
        return Markup('<span class="s">{}</span>').format(words(_json(value)))
    kind = "k" if value is None or isinstance(value, bool) else "m"
    if isinstance(value, dict | list):
        return Markup("{}" if isinstance(value, dict) else "[]")
    return Markup('<span class="{}">{}</span>').format(kind, _json(value))


def _json(value: Any) -> str:
    return encode(value).decode("utf-8", "replace")


def _line(shown: Markup) -> Markup:
    return Markup('<div class="l">{}</div>').format(shown)


def _more(said: str) -> Markup:
    return Markup('<div class="l dim">… {}</div>').format(said)


def _fold(head: Markup, size: str, body: Markup, *, shut: bool) -> Markup:
    made = Markup('<details{}><summary>{} <span class="dim">{}</span></summary>{}</details>')
    return made.format(Markup("") if shut else Markup(" open"), head, escape(size), body)
