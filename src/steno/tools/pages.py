r"""Pages of the web as text that can be read.

>>> readable("<title>T</title><h1>Hi</h1><p>A <a href='/b'>link</a><script>x</script>", "http://h/")
'# T\n\n# Hi\n\nA [link](http://h/b)'
"""

import re
import time
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from steno.tools.output import harmless

__all__ = ["decoded", "kind_of", "page_text", "readable"]

LONGEST: Final = 4 << 20
"""How many characters of a page's source are looked at."""
SECONDS: Final = 10.0
"""How long they are looked at."""
_PIECE: Final = 1 << 16
# A tag of that length is none; a page may have pictures in its tags.
_LONGEST_TAG: Final = 1 << 20
_LAST: Final = 4096
_SKIPPED: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "math"}
)
_BLOCKS: Final = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hr",
        "html",
        "legend",
        "main",
        "nav",
        "ol",
        "p",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
    )
)
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_SPACES: Final = re.compile(r"[ \t\n\r\f\v\xa0]+")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Stands for a space that is meant, as in a program's text.
_MEANT: Final = "\0"
_MANY_LINES: Final = re.compile(r"\n{3,}")
_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_ENCODING: Final = re.compile(
    r"utf-?(8|16)(-?[lb]e)?|us-ascii|iso-?8859-?\d{1,2}|latin-?1|windows-?\d{3,4}|cp\d{3,4}"
    r"|shift[_-]jis|euc-(jp|kr)|iso-2022-jp|gb(2312|k|18030)|big5|koi8-[ru]|macintosh",
    re.IGNORECASE,
)
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS: Final = frozenset(
    {
        "application/json",
        "application/xml",
        "application/javascript",
        "application/x-javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-sh",
        "application/sql",
    }
)


def kind_of(content_type: str) -> str:
    """Return `html`, `text`, or nothing for what cannot be read as text."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _HTML:
        return "html"
    if not kind or kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")):
        return "text"
    return ""


def page_text(data: bytes, content_type: str, url: str) -> str:
    """Return the text of what a server sent."""
    kind = kind_of(content_type)
    text = decoded(data, content_type, page=kind == "html")
    return readable(text, url) if kind == "html" else harmless(text)


def decoded(data: bytes, content_type: str, *, page: bool = False) -> str:
    """Return bytes as text, by their mark, the header, or what the page says of itself."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    _, _, given = content_type.lower().partition("charset=")
    name = given.partition(";")[0].strip(" \"'")
    if not name and page and (said := _CHARSET.search(data[:4096])):
        name = said[1].decode()
    # Python knows codecs that are none of texts, and some that are slow on purpose-made input.
    if not _ENCODING.fullmatch(name):
        name = "utf-8-sig"
    try:
        return data.decode(name, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def readable(source: str, url: str) -> str:
    """Return an HTML page as text in the manner of Markdown."""
    reader = _Reader(url)
    # The parser gives up on sections it does not know; as odd comments it passes them by.
    source = _COMMENT.sub("", source[:LONGEST]).replace("<![", "<! [").replace(_MEANT, "")
    deadline = time.monotonic() + SECONDS
    for at in range(0, len(source), _PIECE):
        reader.feed(source[at : at + _PIECE])
        # Pages can be made so that the parser needs the square of their length.
        if len(reader.rawdata) > _LONGEST_TAG or time.monotonic() > deadline:
            break
    reader.rawdata = reader.rawdata[:_LAST]
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    """Gathers the words of a page, with so much of its form as helps to read it."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._parts: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._skip: list[str] = []
        self._pre = 0
        self._link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skip.append(tag)
        if self._skip:
            return
        if tag == "title":
            self._in_title = True
        elif tag in _HEADINGS:
            self._parts.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "a":
            href = next((value for name, value in attrs if name == "href" and value), "")
            self._link = (self._address(href), len(self._parts))
        elif tag == "pre":
            self._pre += 1
            self._parts.append("\n\n```\n")
        else:
            self._start_small(tag, attrs)

    def _start_small(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self._parts.append("\n")
        elif tag == "li":
            self._parts.append("\n- ")
        elif tag in {"td", "th"}:
            self._parts.append(" | ")
        elif tag == "code" and not self._pre:
            self._parts.append("`")
        elif tag == "img":
            alt = next((value for name, value in attrs if name == "alt" and value), "")
            self._parts.append(f"[image: {_SPACES.sub(' ', alt)}]" if alt else "")
        elif tag in _BLOCKS:
            self._parts.append("\n" if tag == "tr" else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        if self._skip:
            if tag == self._skip[-1]:
                self._skip.pop()
            return
        if tag == "title":
            self._in_title = False
        elif tag == "a" and self._link is not None:
            self._end_link(*self._link)
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self._parts.append("\n```\n\n")
        elif tag == "code" and not self._pre:
            self._parts.append("`")
        elif tag in _HEADINGS or (tag in _BLOCKS and tag != "tr"):
            self._parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._skip:
            return
        if self._in_title:
            self._title.append(data)
        else:
            said = data.replace(" ", _MEANT) if self._pre else _SPACES.sub(" ", data)
            self._parts.append(said)

    def _address(self, href: str) -> str:
        try:
            address = urljoin(self._url, href.strip())
        except ValueError:
            return ""
        return address if address.startswith(("http://", "https://")) else ""

    def _end_link(self, address: str, since: int) -> None:
        self._link = None
        words = "".join(self._parts[since:])
        if address and words.strip() and "\n" not in words.strip():
            self._parts[since:] = [f"[{words.strip()}]({address})"]

    def text(self) -> str:
        """Return what was gathered."""
        title = _SPACES.sub(" ", "".join(self._title)).strip()
        lines = [line.strip(" ") for line in "".join(self._parts).split("\n")]
        body = _MANY_LINES.sub("\n\n", "\n".join(lines)).strip()
        body = body.replace(_MEANT, " ")
        return harmless(f"# {title}\n\n{body}".strip() if title else body)
