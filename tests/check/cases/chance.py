"""Sessions of a few records thrown together: parents, times, types and ids that fit nothing.

Nobody would write these down one by one. They are the same each time: the numbers come from a hash.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    UNKNOWN,
    Records,
    boundary,
    call,
    marker,
    note,
    output,
    prompt,
    reply,
    summary,
    uuid,
    when,
)

__all__ = ["cases"]

_GROUPS: Final = 12
_CASES: Final = 12
_Draw = Callable[[int], int]


def _drawing(name: str) -> _Draw:
    """Return what gives a number below another, the next one each time it is asked."""
    numbers = iter(hashlib.shake_256(name.encode()).digest(4000))
    return lambda below: next(numbers) % below


def _record(number: int, draw: _Draw) -> dict[str, Any]:
    calls = ("a", "b", "c")
    match draw(12):
        case 0 | 1 | 2:
            return prompt(number)
        case 3 | 4:
            return reply(number, of=f"m{draw(3)}")
        case 5 | 6:
            return call(number, calls[draw(3)], of=f"m{draw(3)}")
        case 7 | 8:
            return output(number, calls[draw(3)])
        case 9:
            return note(number, ("system", "attachment", "progress", "zzz")[draw(4)])
        case 10:
            return boundary(number, draw(number + 1))
        case _:
            return summary(number)


def _session(name: str) -> Records:
    draw = _drawing(name)
    count = 4 + draw(5)
    made: Records = []
    for number in range(1, count + 1):
        record = prompt(1) if number == 1 else _record(number, draw)
        match draw(8):
            case 0:
                record["parentUuid"] = uuid(1 + draw(count))
            case 1:
                record["parentUuid"] = (None, UNKNOWN, record["uuid"])[draw(3)]
            case 2:
                record["timestamp"] = when(draw(20))
            case 3 if draw(3) == 0:
                record["isSidechain"] = True
            case _:
                pass
        made.append(record)
    if draw(4) == 0:
        made.insert(draw(count), made.pop(draw(count)))
    if draw(4) == 0:
        made.append(marker(1 + draw(count), explicit=bool(draw(2))))
    return made


def cases() -> dict[str, list[Case]]:
    """Return the files, some at a time."""
    return {
        f"throw {group}": [Case(str(number), _session(f"{group} {number}")) for number in range(_CASES)]
        for group in range(_GROUPS)
    }
