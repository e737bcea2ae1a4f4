"""Tables for spreadsheets."""

import csv

import pytest

from steno.sanitize.csv import csv_row


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "|calc", "%x", "\r=1"])
def test_a_cell_that_begins_like_a_formula_is_none(text: str) -> None:
    (cell,) = next(csv.reader([csv_row([text])]))
    assert cell.startswith("'")


def test_cells_come_back_as_they_were() -> None:
    cells = ["a, b", 'say "hi"', "plain", "ö", ""]
    assert next(csv.reader([csv_row(cells)])) == cells
    assert csv_row([1, -2.5, None, 0]) == "1,-2.5,,0\r\n"


def test_what_acts_on_a_terminal_is_made_visible() -> None:
    assert "\x1b" not in csv_row(["\x1b[31mred\nnext"])
    assert csv_row(["a\nb"]).count("\n") == 1
