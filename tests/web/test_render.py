"""Rendering of text as HTML: hostile, very long and unusual input."""

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import count
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format.line_diff import Hunk
from steno.web.render.ansi import ansi_to_html, render_screen
from steno.web.render.code import code_block, highlighted_lines, language_of
from steno.web.render.diff import (
    ChangeMarker,
    count_changes,
    diff_rows,
    diff_table,
    diff_texts,
    paired_rows,
    slice_hunks,
)
from steno.web.render.markdown import markdown_markup

LARGE = 200_000
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "[a](javascript:alert(1))",
    "[a](data:text/html;base64,PHN2Zz4=)",
    "![a](http://evil.example/x.png)",
    "<http://evil.example/>",
    "[a]: javascript:alert(1)\n\n[a]",
    "```<b>\n</code></pre><script>\n```",
    "| <i> |\n|-|\n| <script> |",
    "&lt;script&gt; &#60;script&#62;",
    "\x1b]0;<b>\x07\x1b[31m<i>",
    "\u202e\u2066\u200b",
    "&#8238;&#x200b;",
)


class Tags(HTMLParser):
    """Every tag of some HTML, with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


# Markdown


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_makes_nothing_that_acts(text: str) -> None:
    for tag, attributes in Tags(markdown_markup(text)).found:
        assert tag not in {"script", "img", "svg", "iframe", "style", "object", "form"}
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "id"}]
        assert (attributes.get("href") or "https:").startswith(("http:", "https:", "mailto:"))


def test_a_link_to_a_place_here_is_only_named() -> None:
    made = Tags(markdown_markup("[chart](src/chart.py) and [other](/enter?code=x) and [site](https://a.b)"))
    assert [attributes.get("href") for tag, attributes in made.found if tag == "a"] == ["https://a.b"]
    assert ("span", {"class": "way", "title": "src/chart.py"}) in made.found


def test_what_turns_text_around_is_seen_even_as_an_entity() -> None:
    assert "\\u{202e}" in markdown_markup("a &#8238; b")
    assert "\\u{202e}" in markdown_markup("`\u202e`")


def test_ordinary_markdown_looks_ordinary() -> None:
    made = markdown_markup("# A\n\n*b* **c** `d`\n\n1. e\n\n> f\n\n```python\nx = 1\n```\n\n| g |\n|---|\n| h |")
    tags = [tag for tag, _ in Tags(made).found]
    for wanted in ("h3", "em", "strong", "code", "ol", "li", "blockquote", "pre", "table", "td"):
        assert wanted in tags
    assert '<span class="m">1</span>' in made


def test_a_text_too_long_for_prose_is_still_all_there() -> None:
    text = "*a* " * 50_000
    assert Tags(markdown_markup(text)).text == text


GROWING: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * n,
    "pictures": lambda n: "![" * (n // 2),
    "half links": lambda n: "[a](" * (n // 4),
    "stars": lambda n: "*" * n,
    "stars and words": lambda n: "a**b" * (n // 4),
    "both kinds": lambda n: "*a _b " * (n // 6),
    "ticks": lambda n: " ".join("`" * k for k in range(1, int((2 * n) ** 0.5))),
    "quotes": lambda n: ">" * n,
    "lists": lambda n: "- " * (n // 2),
    "steps": lambda n: "\n".join("  " * k + "- x" for k in range(int(n**0.5))),
    "links": lambda n: "[a](b) " * (n // 7),
    "fences": lambda n: "```c\n/*\n```\n" * (n // 12),
    "open tags": lambda n: "<a " * (n // 3),
    "cells": lambda n: "|a" * (n // 2) + "\n" + "|-" * (n // 2) + "\n",
}


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_markdown_takes_about_twice_the_work(name: str) -> None:
    """Four times the length may take eight times as many steps, and never sixteen."""
    markdown_markup(GROWING[name](100))  # what is only made at first use is not of this text
    small, big = (_steps(lambda n=n: markdown_markup(GROWING[name](n))) for n in (1_500, 6_000))
    assert big < small * 8, (small, big)


def _steps(run: Callable[[], object]) -> int:
    """Return how many lines of Python ran: the same number on every machine."""
    lines = 0

    def seen(_frame: FrameType, event: str, _given: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


# Code


def test_lines_of_code_have_their_numbers() -> None:
    made = code_block("a = 1\n\nb = 2\n", "python", start=41)
    (numbers,) = re.findall(r'class="no">([\d\n]+)<', made)
    lines = re.sub("<[^>]*>", "", made.partition('<span class="l">')[2])
    assert (numbers.split("\n"), lines.split("\n")) == (["41", "42", "43"], ["a = 1", "", "b = 2"])


@pytest.mark.parametrize("language", ["", "nothing-like-it", "<b>", "python", "json", "bash", "html"])
@pytest.mark.parametrize("text", HOSTILE)
def test_code_shows_just_its_text(text: str, language: str) -> None:
    made = Tags(code_block(text, language))
    assert {tag for tag, _ in made.found} <= {"div", "pre", "span"}


@given(st.text(), st.sampled_from(["", "python", "javascript", "html", "yaml", "diff"]))
def test_code_has_as_many_lines_as_its_text(text: str, language: str) -> None:
    assert len(highlighted_lines(text, language)) == text.replace("\r\n", "\n").count("\n") + 1


def test_a_return_in_code_is_no_line_end() -> None:
    assert [str(line) for line in highlighted_lines("a\rb", "python")] == ["a␍b"]


@pytest.mark.parametrize(
    ("text", "language"), [("/*" * 55_000, "javascript"), ('"""' * 600 + "\n", "python"), ("<" * 1_900 + "\n", "html")]
)
def test_a_lexer_that_is_led_astray_is_stopped(text: str, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(text[at : at + 1_900] for at in range(0, len(text), 1_900)) * 3
    clock = count(step=0.1)
    monkeypatch.setattr("steno.web.render.code.thread_time", lambda: next(clock))
    drawn = highlighted_lines(text[:110_000], language)
    assert [Tags(line).text for line in drawn] == text[:110_000].split("\n")
    assert next(clock) == pytest.approx(0.4)  # it looked at the clock until the time was over
    assert "<span" not in drawn[-1]


def test_endless_lines_have_no_colours_but_all_their_letters() -> None:
    line = "x = [" + "1, " * 50_000 + "]"
    assert [str(each) for each in highlighted_lines(line, "python")] == [line]


def test_names_give_languages_away() -> None:
    assert language_of("/a/b/chart.py") == "python"
    assert language_of("C:\\a\\Makefile") in {"make", "basemake"}
    assert language_of("/a/[!.zzz") == ""
    assert language_of("") == ""


# A terminal


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("\x1b[31mx", "x-red"),
        ("\x1b[91mx", "x-red"),
        ("\x1b[1;4mx", "x-bold x-under"),
        ("\x1b[38;5;196mx", "x-red"),
        ("\x1b[38;5;34mx", "x-green"),
        ("\x1b[38;5;240mx", "x-black"),
        ("\x1b[38;2;10;20;250mx", "x-blue"),
        ("\x1b[38:2:250:250:10mx", "x-yellow"),
        ("\x1b[48;5;196;32mx", "x-green"),
    ],
)
def test_colours_become_the_inks_of_the_page(printed: str, name: str) -> None:
    assert str(ansi_to_html(printed)) == f'<span class="{name}">x</span>'


@pytest.mark.parametrize("code", ["0", "", "39", "38;5", "38", "48;2;1;2;3", "999999999999"])
def test_what_takes_a_colour_back_takes_it_back(code: str) -> None:
    assert "x-red" not in ansi_to_html(f"\x1b[31m\x1b[0m\x1b[{code}mx")


def test_a_progress_bar_is_what_it_was_in_the_end() -> None:
    bar = "".join(f"\r{n}% {'#' * (n // 10)}" for n in range(0, 101, 10))
    made = render_screen(f"begin{bar}\nready\n")
    assert str(made.html) == "100% ##########\nready\n"
    assert made.overwritten_lines == 1


def test_a_shorter_text_leaves_the_end_of_a_longer_one() -> None:
    assert str(ansi_to_html("abcdef\rxy")) == "xycdef"
    assert str(ansi_to_html("abcdef\r\x1b[Kxy")) == "xy"


def test_lines_that_were_drawn_anew_are_there_once() -> None:
    assert str(ansi_to_html("one\ntwo\n\x1b[2A\x1b[2Kthree\n\x1b[2Kfour\n")) == "three\nfour\n"
    assert str(ansi_to_html("a\nb\nc\x1b[2A\x1b[0Jx")) == "ax"


def test_windows_line_ends_are_line_ends() -> None:
    assert str(ansi_to_html("a\r\nb\r\n")) == "a\nb\n"
    assert str(ansi_to_html("a\r\r\nb")) == "a\nb"


def test_a_link_says_where_it_leads() -> None:
    made = str(ansi_to_html("\x1b]8;;http://evil.example\x1b\\https://good.example\x1b]8;;\x1b\\!"))
    assert made == 'https://good.example<span class="x-faint"> &lt;http://evil.example&gt;</span>!'


def test_other_controls_are_seen() -> None:
    assert str(ansi_to_html("\x1b]0;title\x07")) == "␛]0;title␇"
    assert str(ansi_to_html("\x1b[5n")) == "␛[5n"
    assert "\x1b" not in ansi_to_html("\x1b[999999999999999999A\x1b[;;;m\x1b\x1b[")


@given(st.text(alphabet=st.sampled_from("ab\r\n\b\x1b[]0123;:mKJAGCD8\\\x07<&\"'é")))
def test_any_output_gives_only_our_own_spans(text: str) -> None:
    made = ansi_to_html(text)
    assert {tag for tag, _ in Tags(made).found} <= {"span"}
    assert not set(made) & set("\x1b\b\r\x07")


@pytest.mark.parametrize("text", ["\x1b[31ma\x1b[0m", "ab\rc\x1b[K\n", "a\x1b[9999C\r", "a\r"])
def test_much_output_takes_little_work(text: str) -> None:
    small, big = (_steps(lambda n=n: ansi_to_html(text * n)) for n in (500, 2_000))
    assert big < small * 8


# Diffs


def _applied(old: list[str], hunks: list[Hunk]) -> list[str]:
    made: list[str] = []
    at = 0
    for hunk in hunks:
        made += old[at : hunk.old - 1]
        at = hunk.old - 1
        assert hunk.new - 1 == len(made)
        for line in hunk.lines:
            if line[0] in " -":
                assert old[at] == line[1:]
                at += 1
            if line[0] in " +":
                made.append(line[1:])
    return made + old[at:]


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")), st.integers(1, 4))
def test_a_diff_leads_from_one_text_to_the_other(old: list[str], new: list[str], context: int) -> None:
    hunks = diff_texts("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new), context=context)
    assert _applied(old, hunks) == new
    assert bool(hunks) == (old != new)


def test_a_diff_says_where_the_last_line_has_no_end() -> None:
    assert diff_texts("a\nb\n", "a\nb")[0].lines == (" a", "-b", "+b", "\\ No newline at end of file")
    assert diff_texts("a", "b")[0].lines == ("-a", "+b")


def test_changed_words_are_marked_in_lines_that_became_each_other() -> None:
    rows = list(diff_rows([Hunk(1, 1, ("-key = f(row.date)", "+n += 1", "+key = f(row.day)"))]))
    assert [str(row.text) for row in rows] == ["key = f(row.<b>date</b>)", "n += 1", "key = f(row.<b>day</b>)"]


def test_lines_with_nothing_in_common_are_not_marked() -> None:
    assert ChangeMarker().mark_changes("alpha beta", "1 + 2") is None


def test_a_part_of_a_diff_keeps_its_numbers() -> None:
    hunk = Hunk(10, 20, (" a", "-b", "+c", "+d", " e"))
    shown, whole = slice_hunks([hunk], 3, 10)
    assert (shown, whole) == ([Hunk(12, 22, ("+d", " e"))], 5)
    assert count_changes([hunk]) == (2, 1)


def test_side_by_side_stands_what_belongs_together() -> None:
    rows = list(diff_rows([Hunk(1, 1, (" a", "-b", "+c", "+d", " e"))]))
    pairs = [(p.old and str(p.old.text), p.new and str(p.new.text)) for p in paired_rows(rows)]
    assert pairs == [("a", "a"), ("b", "c"), (None, "d"), ("e", "e")]


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_diff_shows_just_its_texts(text: str, *, side: bool) -> None:
    made = Tags(diff_table(diff_texts("a\n", f"{text}\n"), "html", side_by_side=side))
    known = {"div", "table", "tbody", "tr", "td", "span", "b", "col", "colgroup"}
    assert {tag for tag, _ in made.found} <= known


def test_huge_texts_are_compared_in_bounds() -> None:
    some = "\n".join("abc"[n * n // 7 % 3] for n in range(60_000))
    other = "\n".join("abc"[n * n // 11 % 3] for n in range(60_000))
    assert _steps(lambda: diff_table(diff_texts(some, other))) < 1_000_000
    dots, commas = "." * 500, ".," * 250
    old, new = f"{dots}\n" * 3_000, f"{commas}\n" * 3_000
    assert _steps(lambda: diff_table(diff_texts(old, new), "python")) < 1_000_000


def test_of_an_endless_line_in_a_diff_the_beginning_is_shown() -> None:
    made = diff_table([Hunk(1, 1, ("+" + "x" * 900_000,))])
    assert len(made) < 4_000
    assert "(900,000 characters)" in made


def test_a_diff_that_is_too_long_says_so() -> None:
    made = diff_table([Hunk(1, 1, tuple(f"+{n}" for n in range(5_000)))])
    assert "1,000 more lines" in made
