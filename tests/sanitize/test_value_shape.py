"""Masking: the shape of a value stays, what it says goes."""

from typing import Any

import pytest

from steno.format.catalogue import catalogue
from steno.sanitize.value_shape import is_plain_name, is_plain_value, mask_content, plain_name, shape_of


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


# Made up, and put together here so that nobody takes them for real ones.
SECRETS = (
    "sk-" + "ant-api03-" + "x",
    "ghp" + "_" + "a" * 20,
    "AKIA" + "X" * 12,
    "eyJ" + "hbGciOi",
    "toolu" + "_01Ab",
    "b2e1c9d0-1111-4222-8333-444455556666",
    "deadbeef42",
    "x7Fq2LmNpR8sT1vW",
    "card-4111111111111111",
    "q" * 33,
)


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_key_or_an_id_is_masked(name: str) -> None:
    assert not is_plain_name(name)
    assert plain_name(name) == mask_content(name)
    assert shape_of({name: 1}, is_known=name.__eq__) == f"{{{mask_content(name)[1:-1]}: 0}}"
    assert not is_plain_value(name)


def test_every_name_of_the_format_is_a_plain_one() -> None:
    facts = catalogue()
    names = [part for kind in facts.records for part in kind.split("/")]
    names += [*facts.blocks, *(tool for tool in facts.tools if "*" not in tool), *facts.usage]
    names += ["ephemeral_5m_input_tokens", "web_search_20250305", "base64EncodedContent"]
    assert [name for name in names if not is_plain_name(name)] == []


@pytest.mark.parametrize("value", ["end_turn", "acceptEdits", "compact-auto", "max_tokens", "v2"])
def test_a_value_in_the_style_of_a_list_is_a_plain_one(value: str) -> None:
    assert is_plain_value(value)


@pytest.mark.parametrize("value", ["Ada", "ADA", "ada lovelace", "_x", "", "a" * 41, "adaL"])
def test_any_other_value_is_none(value: str) -> None:
    assert not is_plain_value(value)


def test_a_list_of_capitals_has_values_with_one() -> None:
    assert is_plain_value("PostToolUse", capital=True)
    assert not is_plain_value("POST", capital=True)
