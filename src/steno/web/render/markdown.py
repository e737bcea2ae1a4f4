"""Markdown of a session → HTML. Raw HTML in it is text, and nothing is loaded from elsewhere."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from steno.safe.html import inert, washed, words
from steno.web.render.code import code_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

__all__ = ["markdown"]

_LONGEST: Final = 200_000
"""Letters; what is longer is shown as it is, because nobody reads it as prose."""


def markdown(text: str) -> Markup:
    """Return a text as a page shows it."""
    if len(text) > _LONGEST:
        return Markup('<pre class="out">{}</pre>').format(words(text))
    return washed(_renderer().render(inert(text)))


@lru_cache(maxsize=1)
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    made.add_render_rule("fence", _fence)
    made.add_render_rule("code_block", _fence)
    made.add_render_rule("image", _image)
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    made.add_render_rule("heading_open", _heading_open)
    made.add_render_rule("heading_close", _heading_close)
    return made


def _fence(
    _self: "RendererHTML", tokens: "Sequence[Token]", place: int, _options: Any, _env: Any
) -> str:
    token = tokens[place]
    language = token.info.split()[0] if token.info.strip() else ""
    return f'<div class="box">{code_block(token.content, language)}</div>'


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
