"""What lies between two texts, in the form that `patch` reads."""

from collections.abc import Iterator
from typing import Final

from steno.report.files.history import Stretch, diff
from steno.report.files.texts import normal

__all__ = ["unified"]

_BARE: Final = "\0"
"""Stands behind a last line without a newline: no line of a diff ends so otherwise."""
_NO_NEWLINE: Final = "\\ No newline at end of file"
_PLAIN: Final = str.maketrans(
    {
        **{chr(code): f"\\{code:03o}" for code in range(32)},
        "\x7f": r"\177",
        '"': r"\"",
        "\\": r"\\",
        "\n": r"\n",
        "\t": r"\t",
    }
)


def unified(path: str, before: str, after: str) -> str:
    r"""Return the difference with plain newlines; nothing where there is none.

    >>> print(unified("a.txt", "one\ntwo\n", "one\n2"), end="")
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    \ No newline at end of file
    """
    made = "".join(
        f"{line}\n" for each in diff(_marked(before), _marked(after)) for line in _hunk(each)
    )
    if not made:
        return ""
    return f"--- {_named('a', path)}\n+++ {_named('b', path)}\n{made}"


def _marked(text: str) -> str:
    plain = normal(text)
    return plain if not plain or plain.endswith("\n") else f"{plain}{_BARE}"


def _hunk(stretch: Stretch) -> Iterator[str]:
    olds = sum(not line.startswith("+") for line in stretch.lines)
    news = sum(not line.startswith("-") for line in stretch.lines)
    # A side without lines is told by the line before it.
    old, new = stretch.old - (not olds), stretch.new - (not news)
    yield f"@@ -{_span(old, olds)} +{_span(new, news)} @@"
    for line in stretch.lines:
        if line.endswith(_BARE):
            yield line[: -len(_BARE)]
            yield _NO_NEWLINE
        else:
            yield line


def _span(start: int, number: int) -> str:
    return str(start) if number == 1 else f"{start},{number}"


def _named(side: str, path: str) -> str:
    """Return a name for a head line; one with letters that would break it is quoted, as git does."""
    name = f"{side}/{path.lstrip('/')}"
    quoted = name.translate(_PLAIN)
    return name if quoted == name else f'"{quoted}"'
