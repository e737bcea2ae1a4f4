r"""Makes untrusted text safe for a page.

`escape_markup` escapes text and makes hidden and bidirectional characters visible; templates apply it to all their
input. HTML from our renderers is filtered again: `sanitize_html` keeps only the few tags and attributes that they use.
HTML concatenated by hand, for speed, escapes its texts with `escape_html` or, between tags only, `escape_text`; it is
`SafeHtml` until it is passed to a template, which accepts `trusted_markup`.

>>> str(escape_markup("<b>\u202e</b>"))
'&lt;b&gt;\\u{202e}&lt;/b&gt;'
>>> str(sanitize_html('<p class="x" onclick="run()">hi<script>no</script></p>'))
'<p class="x">hi</p>'
"""

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from steno.sanitize.terminal import clean, clean_text_lines

_ALLOWED_TAGS: Final = frozenset(
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
_ALLOWED_ATTRIBUTES: Final = {
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
_ALLOWED_SCHEMES: Final = frozenset(("http", "https", "mailto"))


if TYPE_CHECKING:

    class SafeHtml(str):
        """HTML that contains only our own markup and escaped text."""

        __slots__ = ()

else:
    # A page has very many pieces: only the type checker distinguishes them from other strings.
    SafeHtml = str


def visible_text(text: str) -> str:
    """Return a text with control, invisible and bidirectional characters made visible; line ends are kept."""
    return clean(text, newlines=True)


def escape_markup(text: str) -> Markup:
    """Return a text escaped as HTML."""
    return str.__new__(Markup, escape_html(text))


def escape_html(text: str) -> str:
    """Return a text escaped as HTML for any position, as a plain string."""
    text = escape_text(text)
    if '"' in text:
        text = text.replace('"', "&#34;")
    if "'" in text:
        text = text.replace("'", "&#39;")
    return text


def escape_text(text: str) -> str:
    """Return a text escaped as HTML for use between tags only: quotes are kept."""
    if not (text.isascii() and text.isprintable()):
        text = clean_text_lines(text)
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text


def trusted_markup(html: str) -> Markup:
    """Return HTML that contains only our own markup and escaped text, for a template."""
    # Equivalent to `Markup(html)`, at a third of the cost.
    return str.__new__(Markup, html)


def sanitize_html(html: str) -> Markup:
    """Return HTML from our renderers, reduced to the tags and attributes that they use."""
    import nh3

    # Relative URLs are kept: they are our own, and pages load nothing from other hosts.
    return Markup(
        nh3.clean(
            html,
            tags=set(_ALLOWED_TAGS),
            attributes={name: set(values) for name, values in _ALLOWED_ATTRIBUTES.items()},
            url_schemes=set(_ALLOWED_SCHEMES),
            link_rel="noopener noreferrer nofollow",
        )
    )
