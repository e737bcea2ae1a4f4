"""Numbers in addresses: anybody can write an address, and any number into it."""

from typing import Final

__all__ = ["number_in"]

_DIGITS: Final = 17


def number_in(text: str | None, otherwise: int = 0) -> int:
    """Return the number that a part of an address is; one that nothing can have is none.

    >>> number_in("42"), number_in("-1"), number_in("9" * 5000), number_in("x", -1)
    (42, 0, 0, -1)
    """
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        return otherwise
    return int(text)
