"""Any JSON value → tidy lines, with big values folded. What is too much is counted, not hidden."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from markupsafe import Markup

from steno.format.encode import encode
from steno.report import words as say
from steno.safe.html import Html, escaped
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
    shown = _Writer(_FULL if full else 1).value("", value, "", 0)
    return Html(f'<div class="tidy" tabindex="0" role="region" aria-label="JSON">{shown}</div>')


class _Writer:
    """Writes values; names before them and what ends them are HTML already."""

    def __init__(self, times: int) -> None:
        self._room = _ROOM * times
        self._entries = _ENTRIES * times
        self._text = _TEXT * times
        self._letters = _LETTERS * times

    def value(self, name: str, value: Any, end: str, depth: int) -> str:
        """Return a value behind its name."""
        self._room -= 1
        if isinstance(value, str) and (len(value) > _LONG or "\n" in value):
            return self._long(name, value, end)
        if isinstance(value, dict | list) and value:
            return self._many(name, cast("dict[str, Any] | list[Any]", value), end, depth)
        return _line(f"{name}{_scalar(value)}{end}")

    def _long(self, name: str, value: str, end: str) -> str:
        first = escaped(value.lstrip().split("\n", 1)[0][:_SHORT])
        head = f'{name}<span class="s">"{first}…"</span>{end}'
        room = max(0, min(self._text, self._letters))
        self._letters -= min(room, len(value))
        cut = len(value) - room
        rest = _more(f"{cut:,} more letters, see the line itself") if cut > 0 else ""
        lines = value.count("\n") + 1
        size = say.count(lines, "line") if lines > 1 else f"{len(value):,} letters"
        return _folded(head, size, f'<pre class="s">{escaped(value[:room])}</pre>{rest}')

    def _many(self, name: str, value: dict[str, Any] | list[Any], end: str, depth: int) -> str:
        flat = _flat(value)
        if flat is not None:
            return _line(f"{name}{flat}{end}")
        begin, close = ("{", "}") if isinstance(value, dict) else ("[", "]")
        if depth >= _DEEP or self._room <= 0:
            size = say.count(len(value), "entry", "entries")
            return _line(f"{name}{begin}… {size} …{close}{end}")
        shown = "".join(self._entries_of(value, depth + 1))
        body = f'<div class="in">{shown}</div>{_line(f"{close}{end}")}'
        noun = ("field", "fields") if isinstance(value, dict) else ("item", "items")
        head = f"{name}{begin}"
        if depth and (len(value) > _MANY or depth > _MANY):
            return _folded(head, say.count(len(value), *noun), body)
        return f"{_line(head)}{body}"

    def _entries_of(self, value: dict[str, Any] | list[Any], depth: int) -> Iterator[str]:
        last = len(value) - 1
        for place, (name, item) in enumerate(_named(value)):
            if place == self._entries or self._room <= 0:
                yield _more(f"{len(value) - place:,} more")
                return
            yield self.value(name, item, "" if place == last else ",", depth)


def _named(value: dict[str, Any] | list[Any]) -> Iterable[tuple[str, Any]]:
    if isinstance(value, list):
        return (("", item) for item in value)
    return ((f'<span class="nf">"{escaped(name)}"</span>: ', item) for name, item in value.items())


def _flat(value: dict[str, Any] | list[Any]) -> str | None:
    """Return a small value in one line, if it is one."""
    items: list[Any] = [*as_fields(value).values(), *as_items(value)]
    if len(items) > _MANY or any(as_fields(item) or as_items(item) for item in items):
        return None
    parts = [
        f"{name}{_scalar(item)}"
        for name, item in _named(value)
        if not (isinstance(item, str) and len(item) > _SHORT)
    ]
    if len(parts) < len(items) or sum(len(Markup(part).striptags()) for part in parts) > _SHORT:
        return None
    begin, close = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{begin}{', '.join(parts)}{close}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return f'<span class="s">{escaped(_json(value))}</span>'
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    kind = "k" if value is None or isinstance(value, bool) else "m"
    return f'<span class="{kind}">{escaped(_json(value))}</span>'


def _json(value: Any) -> str:
    return encode(value).decode("utf-8", "replace")


def _line(shown: str) -> str:
    return f'<div class="l">{shown}</div>'


def _more(said: str) -> str:
    return f'<div class="l dim">… {said}</div>'


def _folded(head: str, size: str, body: str) -> str:
    return f'<details><summary>{head} <span class="dim">{size}</span></summary>{body}</details>'
