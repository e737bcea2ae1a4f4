"""Conversion of Markdown to HTML. Raw HTML is escaped, and no external content is loaded."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from steno.sanitize.html import SafeHtml, escape_text, sanitize_html, trusted_markup, visible_text
from steno.web.render.code import code_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token


_MAX_LENGTH: Final = 100_000
"""Maximum characters of a converted text; longer texts are shown as plain text."""
_MAX_HIGHLIGHTED: Final = 60_000
"""Maximum characters of highlighted code per text."""
_MARKDOWN_CHARACTERS: Final = re.compile(r"[`*_#<>\[\]|~\\&\x00-\x09\x0b-\x1f\x7f-\x9f\ufffd]")
"""Characters that may be markup or that are escaped on a page."""
_MARKDOWN_LINE_START: Final = re.compile(r"[ \t]|[-+=:]|\d+[.)]")
_MARKDOWN_LINE: Final = re.compile(rf"\n(?:{_MARKDOWN_LINE_START.pattern})")
_PLAIN_BYTES: Final = bytes(c for c in (0x0A, *range(0x20, 0x7F)) if not _MARKDOWN_CHARACTERS.match(chr(c)))
_BLANK_LINES: Final = re.compile(r"\n\n+")
_HIGHLIGHT_BUDGET: Final = "room"
_LINK_SCHEMES: Final = ("http://", "https://", "mailto:")


def markdown_markup(text: str) -> Markup:
    """Return Markdown as HTML, for a template."""
    return trusted_markup(markdown_to_html(text))


def markdown_to_html(text: str) -> SafeHtml:
    """Return Markdown as HTML."""
    if len(text) > _MAX_LENGTH:
        return SafeHtml(f'<pre class="out">{escape_text(text)}</pre>')
    # Skip parsing of plain text with fast byte operations.
    special_bytes = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN_BYTES)
    if (
        special_bytes and _MARKDOWN_CHARACTERS.search(special_bytes.decode("utf-8", "surrogatepass"))
    ) or _has_markdown_line(text):
        # Replace invisible characters again: the parser decodes entities such as `&#8238;`.
        return SafeHtml(
            sanitize_html(visible_text(_renderer().render(visible_text(text), {_HIGHLIGHT_BUDGET: _MAX_HIGHLIGHTED})))
        )
    return _plain_paragraphs(text)


def _has_markdown_line(text: str) -> bool:
    if "\n" not in text:
        return text[-1:] == " " or _MARKDOWN_LINE_START.match(text) is not None
    lines = f"\n{text}\n"
    return " \n" in lines or _MARKDOWN_LINE.search(lines) is not None


def _plain_paragraphs(text: str) -> SafeHtml:
    """Return text without markup as paragraphs, as the parser would."""
    html = escape_text(text).strip("\n")
    if not html:
        return SafeHtml("")
    if "\n\n" in html:
        html = "</p>\n<p>".join(_BLANK_LINES.split(html))
    return SafeHtml(f"<p>{html}</p>\n")


@lru_cache(maxsize=1)
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    renderer.add_render_rule("fence", _fence)
    renderer.add_render_rule("code_block", _fence)
    renderer.add_render_rule("image", _image)
    renderer.add_render_rule("link_open", _link_open)
    renderer.add_render_rule("link_close", _link_close)
    renderer.add_render_rule("table_open", _table_open)
    renderer.add_render_rule("table_close", _table_close)
    renderer.add_render_rule("heading_open", _heading_open)
    renderer.add_render_rule("heading_close", _heading_close)
    return renderer


def _fence(_self: "RendererHTML", tokens: "Sequence[Token]", position: int, _options: Any, env: Any) -> str:
    token = tokens[position]
    language = token.info.split()[0] if token.info.strip() else ""
    env[_HIGHLIGHT_BUDGET] -= len(token.content)
    html = code_block(token.content, language if env[_HIGHLIGHT_BUDGET] >= 0 else "")
    return f'<div class="box">{html}</div>'


def _link_open(self: "RendererHTML", tokens: "Sequence[Token]", position: int, options: Any, env: Any) -> str:
    """Open a link; for a target that is not a web address, show the target only."""
    token = tokens[position]
    address = str(token.attrs.get("href", ""))
    if address.lower().startswith(_LINK_SCHEMES):
        return self.renderToken(tokens, position, options, env)
    return str(Markup('<span class="way" title="{}">').format(address))


def _link_close(self: "RendererHTML", tokens: "Sequence[Token]", position: int, options: Any, env: Any) -> str:
    """Close a link or its replacement. Links do not nest, so the end belongs to the last opened link."""
    opening = next(tokens[back] for back in range(position - 1, -1, -1) if tokens[back].type == "link_open")
    if str(opening.attrs.get("href", "")).lower().startswith(_LINK_SCHEMES):
        return self.renderToken(tokens, position, options, env)
    return "</span>"


def _image(_self: "RendererHTML", tokens: "Sequence[Token]", position: int, _options: Any, _env: Any) -> str:
    """Show the description and address of an image. Do not load it, as a request would reveal the reader."""
    token = tokens[position]
    address = str(token.attrs.get("src", ""))
    return str(Markup('<span class="dim">[image: {} <code>{}</code>]</span>').format(token.content, address))


def _table_open(*_: Any) -> str:
    return '<div class="scroll-x"><table class="tbl">'


def _table_close(*_: Any) -> str:
    return "</table></div>"


def _heading_open(_self: "RendererHTML", tokens: "Sequence[Token]", position: int, _options: Any, _env: Any) -> str:
    return f"<h{_level(tokens[position])}>"


def _heading_close(_self: "RendererHTML", tokens: "Sequence[Token]", position: int, _options: Any, _env: Any) -> str:
    return f"</h{_level(tokens[position])}>"


def _level(token: "Token") -> int:
    """Return the level of a heading, below the headings of the page."""
    return min(6, int(token.tag[1:]) + 2)
