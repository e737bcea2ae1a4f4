"""Markdown as lines of words and styles. Rich lays it out; what it writes passes our own sink."""

from collections.abc import Iterator
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from steno.safe.terminal import Bit, Line, clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.console import JustifyMethod
    from rich.markdown import Markdown, MarkdownElement
    from rich.style import Style

__all__ = ["markdown_lines", "parser", "warm_up"]

_COLOURS: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_BRIGHT: Final = 8
_STANDARD: Final = 16


def markdown_lines(text: str, width: int, *, unicode: bool = True) -> Iterator[Line]:
    """Yield a Markdown text as lines of at most `width` columns."""
    from io import StringIO

    from rich.console import Console

    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    made = copy(_blank())
    made.parsed = parser().parse(clean(text, newlines=True))
    options = console.options
    options.encoding = "utf-8" if unicode else "ascii"
    blank = True
    for segments in console.render_lines(made, options, pad=False):
        words = [segment for segment in segments if segment.text and not segment.control]
        empty = not any(segment.text.strip() for segment in words)
        if not empty:
            yield [_bit(segment.text, segment.style) for segment in words]
        elif not blank:
            yield []
        blank = empty


def warm_up() -> None:
    """Load what the first answer needs, before it is needed."""
    list(markdown_lines("```python\npass\n```", 40))


@cache
def _blank() -> "Markdown":
    """Return what lays it out; to make one takes longer than to use it."""
    from rich.markdown import Heading, Markdown

    class FlushLeft(Heading):
        # A heading begins where everything else does.
        LEVEL_ALIGN: ClassVar[dict[str, "JustifyMethod"]] = {}

    class Layout(Markdown):
        elements: ClassVar[dict[str, "type[MarkdownElement]"]] = {
            **Markdown.elements,
            "heading_open": FlushLeft,
        }

    # Links are written out: a terminal must not be handed a hidden address.
    return Layout("", code_theme="ansi_dark", hyperlinks=False)


@cache
def parser() -> "MarkdownIt":
    """Return what reads Markdown here.

    HTML and pictures are shown as they are written; Rich's own parser would swallow them.
    """
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    return made.disable("image")


def _bit(text: str, style: "Style | None") -> Bit:
    if style is None:
        return text
    names = [
        name
        for name, on in (
            ("bold", style.bold),
            ("dim", style.dim),
            ("italic", style.italic),
            ("underline", style.underline),
            ("strike", style.strike),
        )
        if on
    ]
    number = style.color.number if style.color else None
    if number is not None and number < _STANDARD and _COLOURS[number % _BRIGHT]:
        names.append(_COLOURS[number % _BRIGHT])
    return text, " ".join(names)
