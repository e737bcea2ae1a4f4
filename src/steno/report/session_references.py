"""Short IDs, shell arguments, titles and printable paths that refer to sessions."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from steno.format.paths import JSONL_SUFFIX
from steno.sanitize.terminal import clean

if TYPE_CHECKING:
    from steno.store.discovery import DiscoveredFile


_MIN_ID_LENGTH: Final = 4


class SessionReferences:
    """Short IDs that are unique among a set of session files."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._stems = sorted(stem_of(path) for path in paths)

    def short_id(self, path: str) -> str:
        """Return the shortest unique prefix of a session ID."""
        stem = stem_of(path)
        at = bisect_left(self._stems, stem)
        neighbours = [neighbour for neighbour in self._stems[max(at - 1, 0) : at + 2] if neighbour != stem]
        shared_length = max((_common_prefix_length(stem, neighbour_stem) for neighbour_stem in neighbours), default=0)
        return stem[: max(_MIN_ID_LENGTH, shared_length + 1)]

    def argument_for(self, path: str) -> str:
        """Return an argument for other commands: the short ID, or the path if the ID is ambiguous."""
        stem = stem_of(path)
        at = bisect_left(self._stems, stem)
        short = self.short_id(path)
        is_simple = short[:1].isalnum() and short.isascii() and short.replace("-", "").isalnum()
        is_indexed = self._stems[at : at + 1] == [stem]
        is_unique = is_indexed and self._stems[at + 1 : at + 2] != [stem]
        return short if is_unique and is_simple and len(short) >= _MIN_ID_LENGTH else path


def shell_argument(text: str) -> str | None:
    """Return a quoted shell argument; None if the text contains unprintable characters."""
    from shlex import quote

    if clean(text) != text:
        return None
    return quote(f"./{text}" if text.startswith("-") else text)


def session_title(session_file: "DiscoveredFile") -> str:
    """Return the title of a session; empty if its file cannot be read."""
    from steno.errors import Unreadable
    from steno.store import environment
    from steno.store.summary import summarize

    try:
        return summarize(session_file, environment.now()).title
    except Unreadable:
        return ""


def printable_path(path: str) -> str:
    """Return a path as valid Unicode, with undecodable bytes replaced."""
    return path.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_encodable(value: Any) -> Any:
    """Return a value that can be encoded as JSON, with undecodable bytes in strings replaced."""
    if isinstance(value, str):
        return value if value.isascii() else printable_path(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: json_encodable(item) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [json_encodable(each) for each in cast("list[Any]", value)]
    return value


def stem_of(path: str) -> str:
    """Return a file name without its suffix."""
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)


def _common_prefix_length(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
