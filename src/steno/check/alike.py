"""Whether many texts are of one form: to ask of all at once costs a fraction."""

import re
from collections.abc import Sequence
from itertools import chain
from string import hexdigits
from typing import Final

__all__ = ["are_usual_times", "are_uuids"]

_AT_ONCE: Final = 4_096
_TIME_LENGTH: Final = 24
# Possessive: nothing is remembered to go back to.
_TIMES: Final = re.compile(
    r"(?:[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z\n)*+"
)
_UUID: Final = b"00000000-0000-0000-0000-000000000000\n"
_DIGITS_TO_ZERO: Final = bytes(
    ord("0") if chr(byte) in hexdigits else byte for byte in range(1 << 8)
)


def are_usual_times(texts: Sequence[str]) -> bool:
    """Say whether all are times as clients write them, which compare like the moments they name.

    >>> are_usual_times(["2025-11-15T12:00:00.000Z"]), are_usual_times(["2025-11-15"])
    (True, False)
    """
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        lines = "\n".join(chain(some, ("",)))
        # One with a newline in it could pass for two, but then there is more than there should be.
        if len(lines) != len(some) * (_TIME_LENGTH + 1) or _TIMES.fullmatch(lines) is None:
            return False
    return True


def are_uuids(texts: Sequence[str]) -> bool:
    """Say whether all are UUIDs written the usual way, of any version.

    >>> are_uuids(["62ecc684-5437-43ff-95cf-5c331fca7ea1"]), are_uuids(["62ecc684"])
    (True, False)
    """
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        lines = "\n".join(chain(some, ("",)))
        # With zeros for digits all are the same; one with a newline in it makes more lines.
        if not lines.isascii() or lines.encode().translate(_DIGITS_TO_ZERO) != _UUID * len(some):
            return False
    return True
