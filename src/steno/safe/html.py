r"""The one way of untrusted text to a page.

`words` escapes, and makes visible what hides or turns text around; templates do it to everything
they are given. HTML that a renderer of ours made passes a second wall: `washed` keeps only the few
tags and attributes that our renderers use, whatever came in. What is put together by hand, because
there is much of it, takes its texts from `escaped` or, between tags alone, from `escaped_text`; it
is `Html` until it is handed to a template, which believes `trusted` alone.

>>> str(words("<b>\u202e</b>"))
'&lt;b&gt;\\u{202e}&lt;/b&gt;'
>>> str(washed('<p class="x" onclick="run()">hi<script>no</script></p>'))
'<p class="x">hi</p>'
"""

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from steno.safe.terminal import clean, clean_lines

__all__ = ["Html", "escaped", "escaped_text", "inert", "trusted", "washed", "words"]

_TAGS: Final = frozenset(
    [
        "a",
        "b",
        "blockquote",
        "br",
        "caption",
        "code",
        "col",
        "colgroup",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "input",
        "ins",
        "kbd",
        "li",
        "mark",
        "ol",
        "p",
        "pre",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_ATTRIBUTES: Final = {
    "*": {"class", "title", "lang", "dir"},
    "a": {"href"},
    "img": {"alt", "src", "width", "height", "loading"},
    "input": {"type", "checked", "disabled"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "div": {"tabindex", "role", "aria-label"},
    "pre": {"tabindex"},
}
_SCHEMES: Final = frozenset(("http", "https", "mailto"))


if TYPE_CHECKING:

    class Html(str):
        """HTML that is made of nothing but our own and of what was escaped."""

        __slots__ = ()

else:
    # A page has very many pieces: only the type checker tells them from other strings.
    Html = str


def inert(text: str) -> str:
    """Return a text in which nothing hides, acts or turns other text around; lines stay lines."""
    return clean(text, newlines=True)


def words(text: str) -> Markup:
    """Return a text as HTML that shows just this text."""
    return str.__new__(Markup, escaped(text))


def escaped(text: str) -> str:
    """Return the same as a bare string, to be put into HTML anywhere."""
    text = escaped_text(text)
    if '"' in text:
        text = text.replace('"', "&#34;")
    if "'" in text:
        text = text.replace("'", "&#39;")
    return text


def escaped_text(text: str) -> str:
    """Return a text as HTML that may only stand between tags: quotes stay as they are."""
    if not (text.isascii() and text.isprintable()):
        text = clean_lines(text)
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text


def trusted(html: str) -> Markup:
    """Return HTML that is made of nothing but our own and of what was escaped, for a template."""
    # What `Markup(html)` is, at a third of its price.
    return str.__new__(Markup, html)


def washed(html: str) -> Markup:
    """Return HTML of our own renderers with nothing in it that they never write."""
    import nh3

    # Addresses without a scheme stay; those are our own, and pages load nothing from elsewhere.
    return Markup(
        nh3.clean(
            html,
            tags=set(_TAGS),
            attributes={name: set(values) for name, values in _ATTRIBUTES.items()},
            url_schemes=set(_SCHEMES),
            link_rel="noopener noreferrer nofollow",
        )
    )
