r"""The one way of untrusted text into a table for spreadsheets.

A cell that begins like a formula would be run by the program that opens the file, so it gets an
apostrophe in front; control characters are made visible.

>>> row(["=1+1", 12, "a, b"])
'\'=1+1,12,"a, b"\r\n'
"""

from collections.abc import Iterable
from typing import Final

from steno.safe.terminal import clean

__all__ = ["row"]

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
_QUOTED: Final = frozenset(',"\n\r')


def row(cells: Iterable[str | float | None]) -> str:
    """Return one line of CSV; numbers are written as they are, nothing for None."""
    return ",".join(_cell(cell) for cell in cells) + "\r\n"


def _cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    # What a spreadsheet strips before it looks for a formula does not hide one.
    risky = cell.lstrip().startswith(_FORMULAS) or cell.startswith(_FORMULAS)
    text = clean(cell)
    if risky:
        text = f"'{text}"
    if _QUOTED.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
