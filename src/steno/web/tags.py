"""Short names for paths, so that addresses never hold one."""

from collections.abc import Iterable
from hashlib import blake2b

from steno.errors import NotFound

__all__ = ["tag_of", "tagged"]


def tag_of(path: str) -> str:
    """Return the name that stands for a path."""
    return blake2b(path.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def tagged(tag: str, paths: Iterable[str]) -> str:
    """Return the path that a name stands for.

    Raises:
        NotFound: it stands for none of them.
    """
    for path in paths:
        if tag_of(path) == tag:
            return path
    raise NotFound(f"nothing goes by {tag!r}", hint="it may not be indexed yet")
