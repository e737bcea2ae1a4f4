"""Markdown of a session → HTML. Raw HTML in it is text, and nothing is loaded from elsewhere."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from steno.safe.html import Html, escaped_text, inert, trusted, washed
from steno.web.render.code import code_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

__all__ = ["markdown", "marked"]

_LONGEST: Final = 100_000
"""Letters; what is longer is shown as it is, because nobody reads it as prose."""
_COLOURED: Final = 60_000
"""Letters of code in one text; what comes behind them has no colours."""
_MARKS: Final = re.compile(r"[`*_#<>\[\]|~\\&\x00-\x09\x0b-\x1f\x7f-\x9f\ufffd]")
"""What may be a mark, or is another character on the page than in the text."""
_MARKED_BEGIN: Final = re.compile(r"[ \t]|[-+=:]|\d+[.)]")
_MARKED_LINE: Final = re.compile(rf"\n(?:{_MARKED_BEGIN.pattern})")
_PLAIN: Final = bytes(c for c in (0x0A, *range(0x20, 0x7F)) if not _MARKS.match(chr(c)))
_BLANK: Final = re.compile(r"\n\n+")
_ROOM: Final = "room"
_LEADS: Final = ("http://", "https://", "mailto:")


def markdown(text: str) -> Markup:
    """Return a text as a page shows it, for a template."""
    return trusted(marked(text))


def marked(text: str) -> Html:
    """Return a text as a page shows it."""
    if len(text) > _LONGEST:
        return Html(f'<pre class="out">{escaped_text(text)}</pre>')
    # Most of a text goes at the speed of memory.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    if (rest and _MARKS.search(rest.decode("utf-8", "surrogatepass"))) or _has_marked_line(text):
        # Once more afterwards: what was written as `&#8238;` is only now what it means.
        return Html(washed(inert(_renderer().render(inert(text), {_ROOM: _COLOURED}))))
    return _paragraphs(text)


def _has_marked_line(text: str) -> bool:
    if "\n" not in text:
        return text[-1:] == " " or _MARKED_BEGIN.match(text) is not None
    lines = f"\n{text}\n"
    return " \n" in lines or _MARKED_LINE.search(lines) is not None


def _paragraphs(text: str) -> Html:
    """Return a text in which nothing is marked: what the parser makes of it, at once."""
    shown = escaped_text(text).strip("\n")
    if not shown:
        return Html("")
    if "\n\n" in shown:
        shown = "</p>\n<p>".join(_BLANK.split(shown))
    return Html(f"<p>{shown}</p>\n")


@lru_cache(maxsize=1)
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    made.add_render_rule("fence", _fence)
    made.add_render_rule("code_block", _fence)
    made.add_render_rule("image", _image)
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("link_close", _link_close)
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    made.add_render_rule("heading_open", _heading_open)
    made.add_render_rule("heading_close", _heading_close)
    return made


def _fence(
    _self: "RendererHTML", tokens: "Sequence[Token]", place: int, _options: Any, env: Any
) -> str:
    token = tokens[place]
    language = token.info.split()[0] if token.info.strip() else ""
    env[_ROOM] -= len(token.content)
    shown = code_block(token.content, language if env[_ROOM] >= 0 else "")
    return f'<div class="box">{shown}</div>'


def _link_open(
    self: "RendererHTML", tokens: "Sequence[Token]", place: int, options: Any, env: Any
) -> str:
    """Begin a link, or only say where it would lead: a path means nothing on this page."""
    token = tokens[place]
    address = str(token.attrs.get("href", ""))
    if address.lower().startswith(_LEADS):
        return self.renderToken(tokens, place, options, env)
    return str(Markup('<span class="way" title="{}">').format(address))


def _link_close(
    self: "RendererHTML", tokens: "Sequence[Token]", place: int, options: Any, env: Any
) -> str:
    """End it in the same way: links do not stand inside links, so it is the last one begun."""
    begun = next(
        tokens[back] for back in range(place - 1, -1, -1) if tokens[back].type == "link_open"
    )
    if str(begun.attrs.get("href", "")).lower().startswith(_LEADS):
        return self.renderToken(tokens, place, options, env)
    return "</span>"


def _image(
    _self: "RendererHTML", tokens: "Sequence[Token]", place: int, _options: Any, _env: Any
) -> str:
    """Name a picture: it lies elsewhere, and loading it would tell who reads."""
    token = tokens[place]
    address = str(token.attrs.get("src", ""))
    return str(
        Markup('<span class="dim">[image: {} <code>{}</code>]</span>').format(
            token.content, address
        )
    )


def _table_open(*_: Any) -> str:
    return '<div class="scroll-x"><table class="tbl">'


def _table_close(*_: Any) -> str:
    return "</table></div>"


def _heading_open(
    _self: "RendererHTML", tokens: "Sequence[Token]", place: int, _options: Any, _env: Any
) -> str:
    return f"<h{_level(tokens[place])}>"


def _heading_close(
    _self: "RendererHTML", tokens: "Sequence[Token]", place: int, _options: Any, _env: Any
) -> str:
    return f"</h{_level(tokens[place])}>"


def _level(token: "Token") -> int:
    """Return a heading's place below those of the page itself."""
    return min(6, int(token.tag[1:]) + 2)
