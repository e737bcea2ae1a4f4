r"""Makes untrusted text safe for a CSV cell.

A spreadsheet would run a cell that begins like a formula, so it gets a leading apostrophe. Control characters are made
visible.

>>> csv_row(["=1+1", 12, "a, b"])
'\'=1+1,12,"a, b"\r\n'
"""

from collections.abc import Iterable
from typing import Final

from steno.sanitize.terminal import clean

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
_QUOTED_CHARACTERS: Final = frozenset(',"\n\r')


def csv_row(cells: Iterable[str | float | None]) -> str:
    """Return one line of CSV; numbers are written unchanged, None as an empty cell."""
    return ",".join(_csv_cell(cell) for cell in cells) + "\r\n"


def _csv_cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    # Spreadsheets strip white space before they look for a formula.
    is_formula = cell.lstrip().startswith(_FORMULA_STARTS) or cell.startswith(_FORMULA_STARTS)
    text = clean(cell)
    if is_formula:
        text = f"'{text}"
    if _QUOTED_CHARACTERS.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
