"""How much a test of the campaign tries, and where it reports what it found.

`make faults` runs these tests at their smoke size; `make campaign` gives each of them a size that
fits its share of the time:

    STENO_SIZE      1 is the full size, 0.05 (the default) the smoke size
    STENO_SECONDS   how long a test that can go on for ever goes on; without it, a fixed number
    STENO_FIGURES   a file that figures are appended to, one JSON object in a line
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

SIZE: Final = float(os.environ.get("STENO_SIZE", "0.05"))
SECONDS: Final = float(os.environ.get("STENO_SECONDS", "0"))

_T = TypeVar("_T")


def sized(full: int, *, least: int = 1) -> int:
    """Return how many of a full number to try."""
    return max(min(least, full), round(full * min(SIZE, 1.0)))


def spread(items: Sequence[_T], *, least: int = 1) -> list[_T]:
    """Return items spread evenly over all, as many as the size says, always with the last."""
    number = sized(len(items), least=least)
    if number >= len(items):
        return list(items)
    step = (len(items) - 1) / number
    return [items[round(step * (at + 1))] for at in range(number)]


def stride(most: int = 9) -> int:
    """Return how many steps to go on by, where not every step is tried."""
    return max(1, min(most, round(1 / SIZE)))


def rounds(*, least: int = 1, share: float = 1.0) -> Iterator[int]:
    """Count up until the time is over, at least so far."""
    end = time.monotonic() + SECONDS * share
    number = 0
    while number < least or time.monotonic() < end:
        yield number
        number += 1


def report(item: str, text: str) -> None:
    """Report a figure of an item of the campaign, where somebody collects them."""
    name = os.environ.get("STENO_FIGURES")
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"item": item, "text": text}) + "\n")
