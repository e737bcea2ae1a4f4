"""Names out of a seeded counter: the same on every run, in the form the real client uses."""

import hashlib
from typing import Final

__all__ = ["Ids"]

_LETTERS: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_FIRST: Final = ("amber", "brisk", "calm", "dusky", "early", "fern", "gentle", "hazel")
_SECOND: Final = ("drifting", "humming", "mending", "rowing", "sifting", "weaving")
_THIRD: Final = ("anchor", "beacon", "canal", "delta", "estuary", "harbour", "lantern", "sluice")


class Ids:
    """Hands out ids of every kind, in an order fixed by the seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._counts: dict[str, int] = {}

    def hexa(self, kind: str, length: int) -> str:
        """Return the next `length` hexadecimal digits of this kind."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return hashlib.sha256(f"{self._seed}/{kind}/{count}".encode()).hexdigest()[:length]

    def uuid(self, kind: str = "record") -> str:
        """Return the next UUID of version 4."""
        h = self.hexa(kind, 32)
        variant = "89ab"[int(h[16], 16) % 4]
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{variant}{h[17:20]}-{h[20:32]}"

    def message(self) -> str:
        """Return the next id of an API message."""
        return "msg_01" + self._letters("message", 22)

    def request(self) -> str:
        """Return the next id of an API request."""
        return "req_011C" + self._letters("request", 22)

    def tool(self) -> str:
        """Return the next id of a tool call."""
        return "toolu_01" + self._letters("tool", 22)

    def task(self) -> str:
        """Return the next id of a background task or of a saved output."""
        return "b" + self._letters("task", 8).lower()

    def signature(self) -> str:
        """Return the next signature of a thinking block."""
        halves = (self._letters("signature", 38), self._letters("signature", 38))
        return f"Eq{''.join(halves)}=="

    def words(self) -> str:
        """Return the next plan name: three words joined by hyphens."""
        number = int(self.hexa("words", 8), 16)
        first = _FIRST[number % len(_FIRST)]
        second = _SECOND[number // 8 % len(_SECOND)]
        return f"{first}-{second}-{_THIRD[number // 64 % len(_THIRD)]}"

    def _letters(self, kind: str, length: int) -> str:
        number = int(self.hexa(kind, 64), 16)
        letters: list[str] = []
        for _ in range(length):
            number, rest = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[rest])
        return "".join(letters)
