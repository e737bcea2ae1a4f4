"""Masking: the shape of a value stays, what it says goes."""

from typing import Any

import pytest

from steno.safe.redact import is_plain_name, plain_name, shape_of


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-8080, "-0000"),
        (3.25, "0.00"),
        (10**4000, "0" * 24),
        ("", '""'),
        ("Ada 1815", '"xxx 0000"'),
        ("naïve Ördög", '"xxxxx xxxxx"'),
        ("\x1b[31m\u202e\u0663\n\ttea", '"?[00x?? xxx"'),
        ("a" * 30, '"' + "x" * 24 + '…"'),
        ([], "[]"),
        ([1, 2], "[0, …]"),
        ({"ada@example.org": 1}, "{xxx@xxxxxxx.xxx: 0}"),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "{x: 0, x: 0, x: 0, x: 0, …}"),
        ([[[["deep"]]]], "[[[[…]]]]"),
    ],
)
def test_a_value_keeps_its_shape_alone(value: Any, shape: str) -> None:
    assert shape_of(value) == shape


def test_only_known_names_stay() -> None:
    known = {"port", "free text"}.__contains__
    assert shape_of({"port": 1, "pier": {"port": 2}}, known) == "{port: 0, xxxx: {port: 0}}"
    assert shape_of({"free text": 1}, known) == "{xxxx xxxx: 0}"


@pytest.mark.parametrize("name", ["stopReason", "cache_read", "-n", "$ref", "mcp-server"])
def test_what_a_programmer_calls_things_is_a_plain_name(name: str) -> None:
    assert is_plain_name(name)
    assert plain_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "src/a.py", "Ördög", "x" * 65, "a\n", "1st", "a.b"])
def test_anything_else_is_masked(name: str) -> None:
    assert not is_plain_name(name)
    assert plain_name(name).startswith('"')
