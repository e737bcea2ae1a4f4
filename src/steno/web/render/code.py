"""Code → lines of HTML in five colours, and no more."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Final

from steno.safe.html import Html, escaped_text, inert

if TYPE_CHECKING:
    from pygments.lexer import Lexer

__all__ = ["code_block", "language_of", "lines_of", "plain_class", "plainly"]

_LONGEST: Final = 120_000
"""Letters; what is longer has no colours."""
_LONGEST_LINE: Final = 2_000
"""Letters; a file with a longer line was not written by people, and costs lexers dear."""
_SECONDS: Final = 0.25
"""Work for one text; what is left then has no colours. Some lexers can be led astray."""
_OFTEN: Final = 64
_CLASSES: Final = (
    ("Keyword", "k"),
    ("Literal.String", "s"),
    ("Literal.Number", "m"),
    ("Comment", "c"),
    ("Name.Function", "nf"),
    ("Name.Class", "nf"),
    ("Name.Decorator", "nf"),
    ("Name.Tag", "k"),
    ("Name.Attribute", "nf"),
    ("Operator.Word", "k"),
)


_plain: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def plainly(*, wanted: bool = True) -> Generator[None]:
    """Leave it to the page to paint code meanwhile: that costs more than all else together."""
    token = _plain.set(wanted)
    try:
        yield
    finally:
        _plain.reset(token)


_BEGIN: Final = ' tabindex="0" role="region" aria-label="code"><pre'
_FAMILIES: Final = {
    "py": "py python python3 pyi",
    "sh": "sh bash shell zsh console yaml yml toml ini make makefile dockerfile rb ruby r perl pl",
    "js": "js javascript ts typescript jsx tsx mjs json jsonc go golang rs rust java kt kotlin c h "
    "cc cpp c++ hpp cs csharp swift php scala css scss dart zig",
    "sql": "sql lua haskell hs",
    "ml": "html xml svg vue htm",
}
"""Languages that look alike, as far as five colours go."""
_ALIKE: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def code_block(text: str, language: str = "", *, start: int | None = None) -> Html:
    """Return code as a block; with `start`, its lines have numbers from there on."""
    text = text.rstrip("\n")
    shown = "\n".join(_rows(text, language)) if _wanted(language) else escaped_text(text)
    begin = f'<div class="code{plain_class(language)}"{_BEGIN}'
    if start is None:
        return Html(f'{begin}><span class="l">{shown}</span></pre></div>')
    # All numbers stand in one column, beside all lines: an element for each line costs dear.
    numbers = _numbers(start, shown.count("\n") + 1)
    return Html(f'{begin} class="n">{numbers}<span class="l">{shown}</span></pre></div>')


@lru_cache(maxsize=512)
def _numbers(first: int, count: int) -> str:
    numbers = "\n".join(map(str, range(first, first + count)))
    return f'<span class="no">{numbers}</span>'


def lines_of(text: str, language: str = "") -> list[str]:
    """Return the lines of a text as HTML, coloured where the language is known."""
    return _rows(text, language) if _wanted(language) else escaped_text(text).split("\n")


def plain_class(language: str) -> str:
    """Return what tells a page to paint code by itself, where it was not painted here."""
    family = _ALIKE.get(language.lower(), "") if language and _plain.get() else ""
    return f" l-{family}" if family else ""


def _wanted(language: str) -> bool:
    return bool(language) and not _plain.get()


def _rows(text: str, language: str) -> list[str]:
    # Before it is taken apart: a lexer would make line ends of what is none.
    text = inert(text)
    lexer = None
    if len(text) <= _LONGEST and max(map(len, text.split("\n"))) <= _LONGEST_LINE:
        lexer = _lexer(language)
    plain = escaped_text(text).split("\n")
    if lexer is None:
        return plain
    rows = _coloured(lexer, text)
    # A lexer may end what it is given with a line of its own, or be stopped before its end.
    return [*rows[: len(plain)], *plain[len(rows) :]]


def _coloured(lexer: "Lexer", text: str) -> list[str]:
    """Return as many lines as there is time for."""
    rows: list[str] = []
    row: list[str] = []
    end = thread_time() + _SECONDS
    for count, (kind, value) in enumerate(lexer.get_tokens(text)):
        name = _class_of(kind)
        for place, piece in enumerate(escaped_text(value).split("\n")):
            if place:
                rows.append("".join(row))
                row = []
            if piece:
                row.append(f'<span class="{name}">{piece}</span>' if name else piece)
        if count % _OFTEN == 0 and thread_time() > end:
            # The line it was stopped in is not whole.
            return rows
    rows.append("".join(row))
    return rows


@lru_cache(maxsize=512)
def _class_of(kind: object) -> str:
    told = str(kind).removeprefix("Token.")
    return next((name for begin, name in _CLASSES if told.startswith(begin)), "")


@lru_cache(maxsize=128)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return find_lexer_class_by_name(language)(stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def language_of(path: str) -> str:
    """Return the language that a file's name gives away, or nothing."""
    return path.rpartition(".")[2] if _plain.get() else _language_of(path)


@lru_cache(maxsize=1024)
def _language_of(path: str) -> str:
    from pygments.lexers import find_lexer_class_for_filename

    name = path.replace("\\", "/").rpartition("/")[2]
    found = find_lexer_class_for_filename(name) if name else None
    aliases: Sequence[str] = found.aliases if found is not None else ()
    return aliases[0] if aliases else ""
