"""Renders Markdown as styled terminal lines, complete or while it streams in.

Rich does the layout; its output is sanitized. A streamed text is committed block by block. A block longer than the
available height is committed from its top, except tables, whose columns may still change; code is committed line by
line.
"""

import re
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from steno.sanitize.terminal import StyledLine, StyledText, clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.console import JustifyMethod
    from rich.markdown import Markdown, MarkdownElement
    from rich.style import Style


_COLOUR_NAMES: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_BRIGHT_OFFSET: Final = 8
_STANDARD_COLOURS: Final = 16


def markdown_lines(text: str, width: int, *, unicode: bool = True) -> Iterator[StyledLine]:
    """Yield Markdown as lines of at most `width` columns."""
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
    document = copy(_empty_document())
    document.parsed = markdown_parser().parse(clean(text, newlines=True))
    options = console.options
    options.encoding = "utf-8" if unicode else "ascii"
    was_blank = True
    for segments in console.render_lines(document, options, pad=False):
        segments_with_text = [segment for segment in segments if segment.text and not segment.control]
        is_empty = not any(segment.text.strip() for segment in segments_with_text)
        if not is_empty:
            yield [_styled_text(segment.text, segment.style) for segment in segments_with_text]
        elif not was_blank:
            yield []
        was_blank = is_empty


def preload_renderer() -> None:
    """Import the renderer before the first answer arrives."""
    list(markdown_lines("```python\npass\n```", 40))


@cache
def _empty_document() -> "Markdown":
    """Return a cached Rich document, as creating one is slower than rendering."""
    from rich.markdown import Heading, Markdown

    class FlushLeft(Heading):
        # Left-align headings.
        LEVEL_ALIGN: ClassVar[dict[str, "JustifyMethod"]] = {}

    class Layout(Markdown):
        elements: ClassVar[dict[str, "type[MarkdownElement]"]] = {**Markdown.elements, "heading_open": FlushLeft}

    # Write URLs out: a terminal must not receive hidden links.
    return Layout("", code_theme="ansi_dark", hyperlinks=False)


@cache
def markdown_parser() -> "MarkdownIt":
    """Return the Markdown parser.

    HTML and images are shown as source text; Rich's default parser would drop them.
    """
    from markdown_it import MarkdownIt

    markdown_it = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    return markdown_it.disable("image")


def _styled_text(text: str, style: "Style | None") -> StyledText:
    if style is None:
        return text
    names = [
        name
        for name, is_set in (
            ("bold", style.bold),
            ("dim", style.dim),
            ("italic", style.italic),
            ("underline", style.underline),
            ("strike", style.strike),
        )
        if is_set
    ]
    number = style.color.number if style.color else None
    if number is not None and number < _STANDARD_COLOURS and _COLOUR_NAMES[number % _BRIGHT_OFFSET]:
        names.append(_COLOUR_NAMES[number % _BRIGHT_OFFSET])
    return text, " ".join(names)


RenderMarkdown: TypeAlias = Callable[[str], list[StyledLine]]
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """A Markdown text that is received in parts."""

    def __init__(self, render: RenderMarkdown) -> None:
        self._render = render
        self._open_text = ""
        """Text that is not committed yet."""
        self._emitted_lines = 0
        """Number of lines of this text that are already emitted."""
        self._has_block_before = False
        self._render_cache: tuple[str, list[StyledLine]] = ("", [])

    def feed(self, text: str) -> None:
        """Append text."""
        self._open_text += text

    def take_settled(self, room: int) -> list[StyledLine]:
        """Return the lines that can be committed and were not returned before."""
        settled_lines: list[StyledLine] = []
        block_start, kind, in_list = _last_block(self._open_text)
        if block_start:
            settled_lines += self._take_block(self._open_text[:block_start])
            self._open_text = self._open_text[block_start:]
            # No blank line between the items of a list.
            self._has_block_before = not in_list
        if kind == "fence":
            settled_lines += self._take_code(room)
        elif kind != "table_open":
            lines = self._open_lines()
            excess = len(lines) - max(room, 1)
            if excess > self._emitted_lines:
                settled_lines += self._with_separator(lines[self._emitted_lines : excess])
                self._emitted_lines = excess
        return settled_lines

    def open_tail(self, room: int) -> list[StyledLine]:
        """Return the last `room` uncommitted lines."""
        return self._open_lines()[self._emitted_lines :][-room:] if room > 0 else []

    @property
    def needs_separator(self) -> bool:
        """Whether a blank line separates the uncommitted text from the last committed block."""
        return self._has_block_before and not self._emitted_lines

    def finish(self) -> list[StyledLine]:
        """Return the remaining lines at the end of the text."""
        remaining = self._take_block(self._open_text)
        self._open_text = ""
        return remaining

    def _take_block(self, text: str) -> list[StyledLine]:
        lines = (self._open_lines() if text == self._open_text else self._render(text))[self._emitted_lines :]
        is_new_block = not self._emitted_lines
        self._emitted_lines = 0
        return self._with_separator(lines, is_new_block=is_new_block) if lines else []

    def _with_separator(self, lines: list[StyledLine], *, is_new_block: bool | None = None) -> list[StyledLine]:
        """Return the lines, with a blank line before them if another block precedes."""
        is_first = self._emitted_lines == 0 if is_new_block is None else is_new_block
        had_block, self._has_block_before = self._has_block_before, True
        return [[], *lines] if had_block and is_first else lines

    def _open_lines(self) -> list[StyledLine]:
        if self._render_cache[0] != self._open_text:
            self._render_cache = (self._open_text, self._render(self._open_text))
        return self._render_cache[1]

    def _take_code(self, room: int) -> list[StyledLine]:
        """Commit the lines of code beyond the available height, and keep the rest as an open code block."""
        opening, _, body = self._open_text.partition("\n")
        lines = body.split("\n")
        line_count = len(lines) - 1 - room
        while line_count > 0 and not lines[line_count - 1].strip():
            line_count -= 1
        if line_count <= 0 or _is_fence_closed(opening, lines):
            return []
        fence = _FENCE.match(opening)
        closing = fence[1] if fence else "```"
        chunk = "\n".join((opening, *lines[:line_count], closing))
        settled_lines = self._with_separator(self._render(chunk), is_new_block=not self._emitted_lines)
        remaining = lines[line_count:]
        if remaining and not remaining[0].strip():
            settled_lines.append([])
        self._open_text = "\n".join((opening, *remaining))
        # The rest continues a block that is already started.
        self._emitted_lines = 0
        self._has_block_before = False
        return settled_lines


def _is_fence_closed(opening: str, lines: list[str]) -> bool:
    fence = _FENCE.match(opening)
    return fence is not None and any(
        line.strip().startswith(fence[1]) and not line.strip().strip(fence[1][0]) for line in lines
    )


def _last_block(text: str) -> tuple[int, str, bool]:
    """Return the offset of the last block, its type, and whether it is a later item of a list."""
    if "\n" not in text:
        return 0, "fence" if _FENCE.match(text) else "", False
    tokens = [token for token in markdown_parser().parse(text) if token.map and token.level <= 1]
    blocks = [token for token in tokens if token.level == 0]
    if not blocks:
        return 0, "", False
    last = blocks[-1]
    start = first = last.map[0] if last.map else 0
    if last.type in ("bullet_list_open", "ordered_list_open"):
        items = [token.map[0] for token in tokens if token.type == "list_item_open" and token.map]
        start = max(items, default=first)
    offset = 0
    for _ in range(start):
        offset = text.index("\n", offset) + 1
    return offset, last.type, start > first
