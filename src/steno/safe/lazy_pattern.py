"""A regular expression that is compiled when it is used for the first time.

Most patterns of secrets are never used: their needles do not occur. Compiling all of them would cost
every start of a command that may mask something.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["LazyPattern"]

_METHODS: Final = ("match", "search", "fullmatch", "finditer", "findall", "sub")


class LazyPattern:
    """Has the methods of a compiled pattern of bytes that are used here."""

    match: Callable[..., re.Match[bytes] | None]
    search: Callable[..., re.Match[bytes] | None]
    fullmatch: Callable[..., re.Match[bytes] | None]
    finditer: Callable[..., Iterator[re.Match[bytes]]]
    findall: Callable[[bytes], list[bytes]]
    sub: Callable[..., bytes]

    def __init__(self, pattern: bytes, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        # Reached once: from then on the methods are attributes of the instance.
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return self.__dict__[name]
