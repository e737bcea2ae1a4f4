"""Nothing in session text acts on a terminal."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.sanitize.terminal import (
    ColourMode,
    TerminalStyler,
    clean,
    display_width,
    one_line,
    pad,
    shorten_path,
    truncate,
    wants_colour,
    wrap,
)

ANY_TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)
HOSTILE = st.text(alphabet="\x00\x07\x08\t\n\r\x1b\x7f\x80\x9b\u200b\u202e\u2028\ufeff日a👍\u0301[m")
OUR_SGR = re.compile(r"\x1b\[[0-9;]*m")
STYLES = ("", "bold", "dim", "red", "bold magenta")


def acts(text: str) -> list[str]:
    """Return the characters that a terminal would obey or hide, a tab left out."""
    return [
        letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and letter != "\t"
    ]


@given(ANY_TEXT | HOSTILE)
def test_nothing_that_acts_or_hides_gets_through(text: str) -> None:
    assert acts(clean(text)) == []
    assert set(acts(clean(text, newlines=True))) <= {"\n"}
    assert acts(one_line(text, 20)) == []


@given(ANY_TEXT | HOSTILE)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.lists(st.tuples(ANY_TEXT | HOSTILE, st.sampled_from(STYLES))))
def test_the_only_controls_in_painted_lines_are_our_own_colours(bits: list[tuple[str, str]]) -> None:
    for paint in (
        TerminalStyler(colour=True),
        TerminalStyler(colour=False),
        TerminalStyler(colour=True, unicode=False),
    ):
        painted = paint.style_line(bits)
        assert acts(OUR_SGR.sub("", painted)) == []
        assert paint.colour or "\x1b" not in painted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb", "a\tb"),
        ("\x1b[2J", "␛[2J"),
        ("bell\x07", "bell␇"),
        ("a\nb", "a␊b"),
        ("\x7f", "␡"),
        ("\x9b31m", "\\u{9b}31m"),
        ("invoice\u202egnp.exe", "invoice\\u{202e}gnp.exe"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("\ud800", "\\u{d800}"),
        ("\U000e0041", "\\u{e0041}"),
        ("naïve 日本語 ❤\ufe0f \ue000", "naïve 日本語 ❤\ufe0f \ue000"),
    ],
)
def test_what_acts_is_made_visible(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_line_ends_stay_when_asked_for_and_a_lone_return_does_not() -> None:
    assert clean("a\r\nb\nc\rd", newlines=True) == "a\nb\nc␍d"


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("❤\ufe0f", 2), ("␛", 1)]
)
def test_width_is_counted_in_columns(text: str, columns: int) -> None:
    assert display_width(text) == columns


@given(ANY_TEXT, st.integers(0, 30))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    text = clean(text)
    short = truncate(text, columns)
    assert display_width(short) <= columns
    assert short == text or columns == 0 or short.endswith("…")


@given(ANY_TEXT, st.integers(1, 30))
def test_what_is_padded_is_as_wide_as_asked(text: str, columns: int) -> None:
    assert display_width(pad(clean(text), columns)) == columns
    assert display_width(pad(clean(text), columns, right=True)) == columns


def test_a_wide_letter_is_not_cut_in_half() -> None:
    assert truncate("日本語", 4) == "日…"
    assert pad("日本語", 4) == "日… "


def test_one_line_collapses_white_space() -> None:
    assert one_line(" a \r\n\t b\u2028c ") == "a b c"


@pytest.mark.parametrize(
    ("path", "columns", "shown"),
    [
        ("/a/b/c.py", 20, ("/a/b/", "c.py")),
        ("/home/ada/tidegauge/chart.py", 20, ("…/tidegauge/", "chart.py")),
        ("/home/ada/tidegauge/chart.py", 12, ("…/", "chart.py")),
        ("/home/ada/tidegauge/chart.py", 8, ("", "chart.py")),
        ("chart.py", 30, ("", "chart.py")),
        (r"C:\Users\ada\chart.py", 15, ("…\\ada\\", "chart.py")),
    ],
)
def test_a_path_loses_its_folders_before_its_name(path: str, columns: int, shown: tuple[str, str]) -> None:
    assert shorten_path(path, columns) == shown


@given(ANY_TEXT, st.integers(4, 40))
def test_a_short_path_fits(path: str, columns: int) -> None:
    folder, name = shorten_path(path, columns)
    assert display_width(folder + name) <= columns


@given(ANY_TEXT | HOSTILE, st.integers(2, 20))
def test_wrapped_lines_fit_and_lose_no_words(text: str, columns: int) -> None:
    lines = wrap(text, columns)
    assert all(display_width(line) <= columns for line in lines)
    kept = "".join("".join(lines).split())
    assert kept == "".join(clean(text, newlines=True).split())


def test_lines_break_at_spaces_and_keep_their_indent() -> None:
    assert wrap("one two three\n  four", 8) == ["one two", "three", "  four"]


@pytest.mark.parametrize(
    ("mode", "env", "tty", "colour"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_what_was_said_then_the_environment_then_the_terminal(
    mode: ColourMode, env: dict[str, str], *, tty: bool, colour: bool
) -> None:
    assert wants_colour(mode, env, tty=tty) is colour


def test_marks_have_twins_where_there_is_no_unicode() -> None:
    assert TerminalStyler(unicode=False).style_line(["● ✗ ✓ ! ◻ ▪ ▸ ▾"]) == "* x + ! o # > v"
    assert TerminalStyler().style_line([("▸ ", "dim"), "Edit"]) == "▸ Edit"


def test_styles_are_put_around_words_only() -> None:
    paint = TerminalStyler(colour=True)
    assert paint.style_line([("no", "bold red"), ("", "dim"), " go"]) == "\x1b[1;31mno\x1b[0m go"
