"""Syntax highlighting of code as lines of HTML in five colours."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Final

from steno.sanitize.html import SafeHtml, escape_text, visible_text

if TYPE_CHECKING:
    from pygments.lexer import Lexer


_MAX_HIGHLIGHTED: Final = 120_000
"""Maximum characters of a highlighted text."""
_MAX_LINE: Final = 2_000
"""Maximum characters of a line; texts with longer lines are usually generated and slow to highlight."""
_MAX_SECONDS: Final = 0.25
"""Seconds to highlight one text, as some lexers are very slow; the rest is not highlighted."""
_CHECK_EVERY: Final = 64
_TOKEN_CLASSES: Final = (
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


_highlighting_disabled: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def without_highlighting(*, enabled: bool = True) -> Generator[None]:
    """Leave highlighting to the browser, as it takes most of the time of rendering a page."""
    token = _highlighting_disabled.set(enabled)
    try:
        yield
    finally:
        _highlighting_disabled.reset(token)


_REGION_ATTRIBUTES: Final = ' tabindex="0" role="region" aria-label="code"><pre'
_FAMILIES: Final = {
    "py": "py python python3 pyi",
    "sh": "sh bash shell zsh console yaml yml toml ini make makefile dockerfile rb ruby r perl pl",
    "js": "js javascript ts typescript jsx tsx mjs json jsonc go golang rs rust java kt kotlin c h "
    "cc cpp c++ hpp cs csharp swift php scala css scss dart zig",
    "sql": "sql lua haskell hs",
    "ml": "html xml svg vue htm",
}
"""Aliases of languages by highlighter family."""
_LANGUAGE_FAMILY: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def code_block(text: str, language: str = "", *, start: int | None = None) -> SafeHtml:
    """Return code as a block, with line numbers from `start` if given."""
    text = text.rstrip("\n")
    html = "\n".join(_highlight(text, language)) if _should_highlight(language) else escape_text(text)
    opening = f'<div class="code{client_highlight_class(language)}"{_REGION_ATTRIBUTES}'
    if start is None:
        return SafeHtml(f'{opening}><span class="l">{html}</span></pre></div>')
    # One element holds all line numbers: an element per line is slow.
    numbers = _line_numbers(start, html.count("\n") + 1)
    return SafeHtml(f'{opening} class="n">{numbers}<span class="l">{html}</span></pre></div>')


@lru_cache(maxsize=512)
def _line_numbers(first: int, count: int) -> str:
    numbers = "\n".join(map(str, range(first, first + count)))
    return f'<span class="no">{numbers}</span>'


def highlighted_lines(text: str, language: str = "") -> list[str]:
    """Return the lines of a text as HTML, highlighted if the language is known."""
    return _highlight(text, language) if _should_highlight(language) else escape_text(text).split("\n")


def client_highlight_class(language: str) -> str:
    """Return a class for highlighting in the browser, if the code was not highlighted here."""
    family = _LANGUAGE_FAMILY.get(language.lower(), "") if language and _highlighting_disabled.get() else ""
    return f" l-{family}" if family else ""


def _should_highlight(language: str) -> bool:
    return bool(language) and not _highlighting_disabled.get()


def _highlight(text: str, language: str) -> list[str]:
    # Replace control characters first: a lexer would treat some of them as line ends.
    text = visible_text(text)
    lexer = None
    if len(text) <= _MAX_HIGHLIGHTED and max(map(len, text.split("\n"))) <= _MAX_LINE:
        lexer = _lexer(language)
    plain_lines = escape_text(text).split("\n")
    if lexer is None:
        return plain_lines
    rows = _lex_lines(lexer, text)
    # A lexer may add a final line end, or be stopped early.
    return [*rows[: len(plain_lines)], *plain_lines[len(rows) :]]


def _lex_lines(lexer: "Lexer", text: str) -> list[str]:
    """Return the lines highlighted within the time limit."""
    rows: list[str] = []
    row: list[str] = []
    end = thread_time() + _MAX_SECONDS
    for count, (kind, value) in enumerate(lexer.get_tokens(text)):
        name = _token_class(kind)
        for position, piece in enumerate(escape_text(value).split("\n")):
            if position:
                rows.append("".join(row))
                row = []
            if piece:
                row.append(f'<span class="{name}">{piece}</span>' if name else piece)
        if count % _CHECK_EVERY == 0 and thread_time() > end:
            # The last line is incomplete.
            return rows
    rows.append("".join(row))
    return rows


@lru_cache(maxsize=512)
def _token_class(kind: object) -> str:
    token_name = str(kind).removeprefix("Token.")
    return next((name for prefix, name in _TOKEN_CLASSES if token_name.startswith(prefix)), "")


@lru_cache(maxsize=128)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return find_lexer_class_by_name(language)(stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def language_of(path: str) -> str:
    """Return the language of a file by its name; empty if unknown."""
    return path.rpartition(".")[2] if _highlighting_disabled.get() else _language_of(path)


@lru_cache(maxsize=1024)
def _language_of(path: str) -> str:
    from pygments.lexers import find_lexer_class_for_filename

    name = path.replace("\\", "/").rpartition("/")[2]
    lexer_class = find_lexer_class_for_filename(name) if name else None
    aliases: Sequence[str] = lexer_class.aliases if lexer_class is not None else ()
    return aliases[0] if aliases else ""
