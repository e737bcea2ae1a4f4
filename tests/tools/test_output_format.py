"""Words for the model and the record."""

import pytest

from steno.tools.output import format_size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0KB"),
        (108_894, "106.3KB"),
        (5 << 20, "5.0MB"),
        (3 << 40, "3072.0GB"),
    ],
)
def test_sizes_are_said_in_words(size: int, words: str) -> None:
    assert format_size(size) == words
