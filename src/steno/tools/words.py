"""Words for the model and the record: names, sizes, and what the system says went wrong."""

from steno.tools.base import ToolFailure

__all__ = ["failed", "shown", "size_words", "spoken", "worded"]


def shown(name: str) -> str:
    r"""Return a name for a message: one that could play tricks is quoted and escaped.

    >>> print(shown("a.py"), shown("a\nb"))
    a.py "a\nb"
    """
    if name.isprintable():
        return name
    return '"' + "".join(_escaped(sign) for sign in name) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")


def spoken(name: str) -> str:
    """Return a name that can be written as JSON; bytes that are no text are lost."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def size_words(size: int) -> str:
    """Return a size for people.

    >>> size_words(900), size_words(280_883)
    ('900 bytes', '274.3KB')
    """
    if size < 1 << 10:
        return f"{size} bytes"
    units = (("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30))
    unit, step = next((u for u in units if size < u[1] << 10), units[-1])
    return f"{size / step:.1f}{unit}"


def worded(error: OSError) -> str:
    """Return what went wrong, in the system's words."""
    return (error.strerror or str(error)).lower()


def failed(doing: str, path: str, error: OSError) -> ToolFailure:
    """Return what to raise when the system does not let a file be read or written."""
    return ToolFailure(f"cannot {doing} {shown(path)}: {worded(error)}")
