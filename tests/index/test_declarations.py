"""What is declared rather than computed: names, patterns, and what a field or option is when left out.

File names and patterns are what other runs and other programs wrote; a default is what callers rely
on when they say nothing. They change only on purpose.
"""

from pathlib import Path
from typing import Final

from tests.declarations import constants_of, fields_of, options_of
from tests.recorded_answers import assert_recorded

import steno.index

ANSWERS: Final = Path(__file__).with_name("answers")


def test_names_and_patterns_are_as_recorded() -> None:
    assert_recorded(ANSWERS / "constants.json", constants_of(steno.index))


def test_fields_that_are_left_out_are_as_recorded() -> None:
    assert_recorded(ANSWERS / "fields.json", fields_of(steno.index))


def test_options_that_are_left_out_are_as_recorded() -> None:
    assert_recorded(ANSWERS / "options.json", options_of(steno.index))
