"""What a page is made of: its elements, and whether all of them are ones that we write."""

from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from typing import Final

__all__ = ["Kind", "kinds_of", "strangers_in"]

Kind = tuple[str, str, str]
"""An element: where it stands, its classes, the names of its attributes."""
_OURS: Final = frozenset(
    {
        *("html", "head", "meta", "title", "link", "script", "noscript", "body", "header", "nav"),
        *("main", "footer", "section", "article", "aside", "div", "span", "p", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "a", "b", "i", "em", "strong", "code", "pre", "kbd", "mark", "small"),
        *("del", "s", "sub", "sup", "q", "abbr", "time", "br", "hr", "wbr", "blockquote", "ul"),
        *("ol", "li", "dl", "dt", "dd", "table", "caption", "colgroup", "col", "thead", "tbody"),
        *("tfoot", "tr", "th", "td", "details", "summary", "figure", "figcaption", "img", "picture"),
        *("button", "input", "label", "select", "option", "form", "output", "dialog", "svg", "g"),
        *("use", "path", "rect", "circle", "line", "polyline", "polygon", "text", "tspan", "symbol"),
        *("defs", "ins", "samp", "var", "u", "meter", "progress", "optgroup", "datalist"),
    }
)
_WAYS: Final = ("href", "src", "action", "formaction", "xlink:href", "data", "poster", "srcset")
_LEAD: Final = ("/", "#", "?", "http://", "https://", "mailto:", "data:image/")
_NEVER: Final = frozenset({"style", "srcdoc", "formaction", "ping", "background", "manifest"})


class _Reader(HTMLParser):
    """Notes the elements of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kinds: set[Kind] = set()
        self.strange: list[str] = []
        self._above = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = " ".join(sorted(given))
        self.kinds.add((f"{self._above}>{tag}", given.get("class") or "", names))
        self._above = tag
        self.strange += _wrong(tag, given)


def _wrong(tag: str, given: dict[str, str | None]) -> Iterator[str]:
    if tag not in _OURS:
        yield f"<{tag}>"
    if tag == "script" and "src" not in given:
        yield "a script of its own"
    for name, value in given.items():
        if name.startswith("on") or name in _NEVER:
            yield f"{tag} {name}={value!r}"
        elif name in _WAYS and value and not value.startswith(_LEAD):
            yield f"{tag} leads to {value[:80]!r}"


def kinds_of(html: str) -> set[Kind]:
    """Return the kinds of elements that a page has."""
    return _read(html).kinds


def strangers_in(html: str) -> list[str]:
    """Return what no page of ours is made of."""
    return _read(html).strange


@lru_cache(maxsize=1_000)
def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    return reader
