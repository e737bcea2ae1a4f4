"""Encoding writes what the real client, a JavaScript program, would write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format.encode import encode, encode_line

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(-1e15, 1e15, allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.00001, "0.00001"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (2.0, "2"),
        (-0.5, "-0.5"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (123456789012345680000.0, "123456789012345680000"),
        (float("nan"), "null"),
        ("ü\u2028/", '"ü\u2028/"'),
        ("\ud800", '"\\ud800"'),
        ("\x00number:7", '"\\u0000number:7"'),
        (["\x00number:7", 2.0], '["\\u0000number:7",2]'),
    ],
)
def test_values_are_written_as_javascript_writes_them(value: object, expected: str) -> None:
    assert encode(value).decode() == expected


def test_a_line_ends_in_one_newline() -> None:
    assert encode_line({"b": 1, "a": 2}) == b'{"b":1,"a":2}\n'


@given(VALUES)
def test_what_is_written_reads_back_equal(value: object) -> None:
    assert json.loads(encode(value)) == value


@given(VALUES)
def test_writing_is_stable(value: object) -> None:
    assert encode(json.loads(encode(value))) == encode(value)
