"""Whether many texts are of one form: to ask of all at once costs a fraction."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["are_usual_times", "are_uuids"]

_AT_ONCE: Final = 4_096
_TIME_LENGTH: Final = 24
_UUID_LENGTH: Final = 36
# Possessive: nothing is remembered to go back to.
_TIMES: Final = re.compile(
    r"(?:[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z\n)*+"
)
_UUIDS: Final = re.compile(r"(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\n)*+")


def are_usual_times(texts: Sequence[str]) -> bool:
    """Say whether all are times as clients write them, which compare like the moments they name.

    >>> are_usual_times(["2025-11-15T12:00:00.000Z"]), are_usual_times(["2025-11-15"])
    (True, False)
    """
    return _are_all(_TIMES, _TIME_LENGTH, texts)


def are_uuids(texts: Sequence[str]) -> bool:
    """Say whether each is what `is_uuid` takes for one."""
    return _are_all(_UUIDS, _UUID_LENGTH, texts)


def _are_all(lines: re.Pattern[str], length: int, texts: Sequence[str]) -> bool:
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        joined = "\n".join((*some, ""))
        # One with a newline in it could pass for two, but then there is more than there should be.
        if len(joined) != len(some) * (length + 1) or lines.fullmatch(joined) is None:
            return False
    return True
