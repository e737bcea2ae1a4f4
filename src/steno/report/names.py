"""What to call a session in the next command: as few letters of its id as will do."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from steno.safe.terminal import clean

if TYPE_CHECKING:
    from steno.store.found import Found

__all__ = ["Names", "argument", "encodable", "stem_of", "text_of", "title_of"]

_SHORTEST: Final = 4
_SUFFIX: Final = ".jsonl"


class Names:
    """Short names for files that lie beside others."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._stems = sorted(stem_of(path) for path in paths)

    def short(self, path: str) -> str:
        """Return the shortest beginning of an id that no other session has."""
        stem = stem_of(path)
        at = bisect_left(self._stems, stem)
        near = [each for each in self._stems[max(at - 1, 0) : at + 2] if each != stem]
        shared = max((_shared(stem, other) for other in near), default=0)
        return stem[: max(_SHORTEST, shared + 1)]

    def again(self, path: str) -> str:
        """Return what names the file in another command: the short id, or its path."""
        stem = stem_of(path)
        at = bisect_left(self._stems, stem)
        short = self.short(path)
        plain = short[:1].isalnum() and short.isascii() and short.replace("-", "").isalnum()
        found = self._stems[at : at + 1] == [stem]
        alone = found and self._stems[at + 1 : at + 2] != [stem]
        return short if alone and plain and len(short) >= _SHORTEST else path


def argument(name: str) -> str | None:
    """Return a name for a shell; None when what is shown would not be what is meant."""
    from shlex import quote

    if clean(name) != name:
        return None
    return quote(f"./{name}" if name.startswith("-") else name)


def title_of(found: "Found") -> str:
    """Return what a session is about; nothing when it cannot be read."""
    from steno.errors import Unreadable
    from steno.report import clock
    from steno.store.glance import glance

    try:
        return glance(found, clock.now()).title
    except Unreadable:
        return ""


def text_of(path: str) -> str:
    """Return a path as text, whatever bytes it is made of."""
    return path.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encodable(value: Any) -> Any:
    """Return a value for JSON in which every text is one, even where it quotes a file's name."""
    if isinstance(value, str):
        return value if value.isascii() else text_of(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: encodable(each) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in cast("list[Any]", value)]
    return value


def stem_of(path: str) -> str:
    """Return the name of a file without its ending."""
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(_SUFFIX)


def _shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
