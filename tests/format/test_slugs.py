"""The names of project folders, letter by letter as the client makes them."""

import pytest

from steno.format.paths import (
    SLUG_LIMIT,
    dialect_slug,
    guess_project,
    slug_by_same_rule,
    slug_candidates,
    slug_for_path,
)


def javascript_hash(path: str) -> str:
    """Compute the client's hash step by step, with signed 32-bit numbers as JavaScript has them."""
    total = 0
    units = path.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        total = (total << 5) - total + int.from_bytes(units[at : at + 2], "little")
        total = (total + 2**31) % 2**32 - 2**31
    number, digits = abs(total), ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"


LONG = [
    *(f"/home/ada/{'deep/' * 45}{number}" for number in range(40)),
    "/" + "a" * 200,
    "/home/" + "ü" * 250,
    "/home/" + "\U0001f600" * 120,
    "/home/" + "\ud800" * 250,
]


@pytest.mark.parametrize("path", LONG)
def test_a_long_path_ends_in_the_hash_that_javascript_computes(path: str) -> None:
    made = slug_for_path(path)
    assert made[200] == "-"
    assert made[201:] == javascript_hash(path)
    assert len(made[:200]) == SLUG_LIMIT


def test_both_signs_of_the_hash_are_among_the_examples() -> None:
    # An unsigned hash would differ for about half of all paths.
    signs = {int(javascript_hash(path), 36) < 2**30 for path in LONG}
    assert signs == {True, False}


def test_up_to_two_hundred_characters_nothing_is_cut() -> None:
    assert slug_for_path("/" + "a" * 199) == "-" + "a" * 199
    assert len(slug_for_path("/" + "a" * 200)) > 201
    assert slug_for_path("/" + "\U0001f600" * 99) == "-" + "--" * 99


def test_every_rule_gives_its_candidate_once_and_the_likeliest_first() -> None:
    assert slug_candidates("/srv/a.b_c") == ("-srv-a-b-c", "-srv-a.b_c", "srv-a-b-c", "srv-a.b_c", "_srv_a.b_c")
    assert slug_candidates("") == ()
    assert dialect_slug("/a/b") == "_a_b"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("-srv-a-b", "-x-y-z"),
        ("-srv-a.b", "-x-y.z"),
        ("srv-a-b", "x-y-z"),
        ("srv-a.b", "x-y.z"),
        ("_srv_a.b", "_x_y.z"),
        ("another", "-x-y-z"),
    ],
)
def test_the_rule_that_gave_a_name_gives_the_next(name: str, other: str) -> None:
    assert slug_by_same_rule(name, "/srv/a.b", "/x/y.z") == other


def test_a_rule_gives_way_where_its_name_would_be_too_long_for_a_folder() -> None:
    fits, too_long = "/" + "y" * 254, "/" + "y" * 255
    assert slug_by_same_rule("_srv", "/srv", fits) == "_" + "y" * 254
    assert slug_by_same_rule("_srv", "/srv", too_long) == slug_for_path(too_long)
    assert slug_by_same_rule("_srv", "/srv", "/" + "ü" * 128) == slug_for_path("/" + "ü" * 128)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("-home-ada", "/home/ada"),
        ("-home--claude", "/home/.claude"),
        ("_home_ada", "/home/ada"),
        ("home-ada", "/home/ada"),
        ("Users-ada", f"/{'Users'}/ada"),
        ("homeward", "homeward"),
        ("D--work-x--git", "D:\\work\\x\\.git"),
        ("C-work", "C-work"),
        ("x", "x"),
        ("", ""),
        ("-" + "a" * 199, "/" + "a" * 199),
        ("-" + "a" * 199 + "-1abc", "/" + "a" * 199 + "…"),
        ("-" + "a" * 200, "/" + "a" * 200),
        ("_" + "a" * 199 + "-1", "/" + "a" * 199 + "…"),
        ("C--" + "a" * 197 + "-1", "C:\\" + "a" * 197 + "…"),
    ],
)
def test_a_name_is_guessed_back(name: str, path: str) -> None:
    assert guess_project(name) == path
