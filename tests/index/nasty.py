"""Queries that nobody types by accident, made from a seed."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from steno.index.search.query_parser import FILTERS

_ATOMS: Final = (
    *('"', "“", "”", "'", "`", "-", "--", "*", "**", "?", ":", "::", "/", "\\", "(", ")", "[", "]"),
    *("{", "}", ".*", "^", "$", "|", "+", "{1000}{1000}", "(?i)", "\\Q", "\\u0000", "%", "_", ";"),
    *("'; DROP TABLE messages; --", '" OR 1=1', "NOT", "OR", "AND", "NEAR(", "text:", "batch:1"),
    *("\0", "\x1b[31m", "\u202e", "\ud800", "\udcff", "\ufeff", "\u200d", "e\u0301", "ß", "İ", "\u017f"),
    *("连接", "数据库", "한국어", "ไทย", "हिन्दी", "😀", "👩‍💻", "Ⅷ", "²", "①", "\U0001d4b3", "\U000e0041"),
    *("getUserName", "relay", "v2.1.42", "4f9d2c1", "src/auth/login.py", "a", "the", "0", "9" * 30),
    *("2026-11-07", "7d", "yesterday", "9" * 20 + "w", "-1d", "last", ".", "error", "prompt", "Bash"),
    *("\n", "\t", " ", "  ", "\u3000", "\x85", "x" * 600, "é" * 300, "中" * 200),
)
_NAMES: Final = (*FILTERS, *(name.upper() for name in FILTERS), "unknown", "http", "")


_T = TypeVar("_T")


class Chance:
    """Numbers that look like chance."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def randrange(self, first: int, end: int | None = None) -> int:
        start, stop = (0, first) if end is None else (first, end)
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return start + (self._state >> 33) % (stop - start)

    def choice(self, some: Sequence[_T]) -> _T:
        return some[self.randrange(len(some))]


def queries(seed: int, number: int) -> Iterator[str]:
    """Yield some, always the same for a seed."""
    chance = Chance(seed)
    for _ in range(number):
        yield "".join(_piece(chance) for _ in range(chance.randrange(1, 9)))


def _piece(chance: Chance) -> str:
    atom = chance.choice(_ATOMS)
    match chance.randrange(8):
        case 0:
            return f" {chance.choice(('', '-'))}{chance.choice(_NAMES)}:{atom}"
        case 1:
            return f' {chance.choice(_NAMES)}:"{atom} {chance.choice(_ATOMS)}"'
        case 2:
            return f"{atom}*"
        case 3:
            return f" *{atom}*"
        case 4:
            return f" OR {atom}"
        case 5:
            return "".join(chr(chance.randrange(0x250)) for _ in range(chance.randrange(12)))
        case 6:
            return f" {atom} "
        case _:
            return atom
