"""Each query means exactly what is recorded: its words, its filters, the forms of each word."""

from pathlib import Path
from typing import Final

import pytest
from tests.recorded_answers import assert_recorded

from steno.errors import BadRequest
from steno.index.search.query_parser import FILTERS, MAX_QUERY_LENGTH, Word, parse_query
from steno.index.search.terms import (
    TermForm,
    find_spans,
    form_query,
    infix_strings,
    is_slow_form,
    make_tokenizer,
    shortest_length,
    term_forms,
)
from steno.index.text_index import open_text_index

ANSWERS: Final = Path(__file__).with_name("answers")

QUERIES: Final = (
    *("", " ", "a", "a b", " a  b ", "a\tb\nc", "\u3000a\u3000"),
    *('"a b"', '"a b" c', 'x"a b"y', '"', '""', '"a', 'a "', "“a b”", "“a b", '“a b"', '"a b”'),
    *("-a", "- a", "--a", "->", "-", "a-b", "a -b", "-1", '-"a b"', "-“a b”", "-*a", "-_x", "-.py"),
    *("-/etc", "-#1", "-@ada", "-$HOME", "-(a)", "-:a", "-'a'", "-\u00e9", "--", "-\u2460"),
    *("a OR b", "a OR b OR c", "a OR b c OR d", "OR", "OR a", "a OR", "OR OR", "a OR OR b"),
    *("a OR OR", "OR OR a", "a or b", '"a" OR "b c"', 'a "OR" b', "-OR a", "a OR OR OR b"),
    *("x OR y -z", "-z x OR y", "a OR -b", "-a OR b", "-a OR -b", "tool:a OR b", "a OR tool:b"),
    *("tool:a OR tool:b", "tool:a OR in:b", "-tool:a OR tool:b", "tool:a OR -tool:b"),
    *("tool:OR a", "a tool:OR b", "tool:Bash", "TOOL:Bash", "-tool:Bash", "--tool:Bash"),
    *('tool:"a b"', "tool:“a b” c", 'tool:"a', 'tool:""', "tool:", "tool: x", "tool:x:y"),
    *('tool:a"b c"', "tool:a b", "x:tool:a", "tool:tool:a", "-tool:-a", "in:/etc", "in://etc"),
    *("file:/a", "file://a", "file:///a", "http://a", "key:value", "std::vector", "unknown:x"),
    *("a* b", "*", "**", "***", "* a", "a*b*c", "has:error x", "since:7d until:today x"),
    *("\ud800", "a\udfffb", "\ue000 \ud7ff", "1:2", "é:x", "_:x"),
    *(f"{name}:v" for name in FILTERS),
    *("x*" * 8, "x*" * 9, "x**" * 8, " ".join(["x*"] * 32), " ".join(["x*"] * 33)),
    *("tool:" + "x*" * 9, "-" + "x*" * 9, '"' + "x*" * 9 + '"'),
)


def _answer(query: str) -> object:
    try:
        found = parse_query(query)
    except BadRequest as error:
        return error
    wanted = [["Q:" * word.quoted + word.text for word in group] for group in found.required]
    answer: dict[str, object] = {"wanted": wanted}
    if found.excluded:
        answer["unwanted"] = ["Q:" * word.quoted + word.text for word in found.excluded]
    if found.filters:
        answer["filters"] = [(each.name, each.value, each.negated) for each in found.filters]
    return answer


def test_every_query_is_parsed_as_recorded() -> None:
    answers = {query: _answer(query) for query in QUERIES}
    assert_recorded(ANSWERS / "queries.json", answers)


def test_a_query_may_have_so_many_letters_and_no_more() -> None:
    assert parse_query("x" * MAX_QUERY_LENGTH).required == ((Word("x" * 4_000),),)
    with pytest.raises(BadRequest) as refused:
        parse_query("x" * (MAX_QUERY_LENGTH + 1))
    assert str(refused.value) == "the query is too long: 4,001 characters of at most 4,000"


# The first and the last letter of each script that is written without spaces, and their neighbours.
_RUNS: Final = (
    *(0x0E00, 0x0EFF, 0x1000, 0x109F, 0x1100, 0x11FF, 0x1780, 0x17FF, 0x2E80, 0x2FDF, 0x3005),
    *(0x318F, 0x31A0, 0x31BF, 0x31F0, 0x31FF, 0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xAC00, 0xD7FF),
    *(0xF900, 0xFAFF, 0xFF66, 0xFFDC, 0x1B000, 0x1B16F, 0x20000, 0x3FFFF),
)


def _fixed(text: str) -> list[tuple[str, int, int, int]]:
    """Take the whole text for one word, whatever its letters are."""
    return [(text, 0, 0, len(text))]


def test_scripts_without_spaces_are_found_inside_of_runs_and_no_others_are() -> None:
    """A run is opened on both sides from the first to the last letter of each range."""
    opened: list[int] = []
    for letter in sorted({near for code in _RUNS for near in (code - 1, code, code + 1)}):
        (form, *_) = term_forms(Word(chr(letter)), _fixed)
        if form.tokens != ((0, (chr(letter),)),):
            assert form.tokens == ((0, ("", chr(letter), "")),)
            opened.append(letter)
    inside = [(_RUNS[at], _RUNS[at + 1]) for at in range(0, len(_RUNS), 2)]
    expected = {near for code in _RUNS for near in (code - 1, code, code + 1)}
    assert opened == sorted(code for code in expected if any(first <= code <= last for first, last in inside))


WORDS: Final = (
    *("plain", "Plain", "a/b", "a b", "a/b/c", "x", "pre*", "*part*", "***end", "get*Name", "a*b*c"),
    *("*a*b*", "a*b*", "*b*c", "src/*/x.py", "src/**/x.py", "*/a", "a/*", "a*/b", "a/*b", "a/b*c/d", "a*b/c*d"),
    *("a/*/b/*/c", "*a/b*", "a.*.b", "a * b", "*", "**", "* *", "->", "", "a*.", ".*a"),
    *("UserName", "userName", "username", "HTTPServer", "HTTP", "aB", "AB", "ABc", "a1B", "1B"),
    *("get_userName", "getName.py", "x.getName", "4f9d2c", "4f9d2", "4F9D2C", "123456", "abcdef"),
    *("4f9d2c1a-77", "4f9d2c1a-7g", "4f9d2c-", "a1b2c3 d", "v4f9d2c", "2.1.42", "2.1", "2", "2."),
    *("v2.1", "2.1.x", "1.2.3.4", "连接", "a连接", "连接b", "a/连接", "连接/a", "连接*", "*连接"),
    *("한", "ไทย", "caf\u00e9", "cafe\u0301", "\u00e9t\u00e9", "\u00e9", "e\u0301", "İ", "ß*"),
    *("\u00e9*", "*\u00e9t", "x/\u00e9", "x" * 400, "x" * 401, "y/" + "z" * 400, "é" * 200),
    *("é" * 201, "x" * 511, "x" * 512, "x" * 400 + "Y", "x" * 398 + "aB", "连" * 133, "连" * 134),
)


def _written(form: TermForm) -> str:
    """Write a form on one line: the place of each word, and its parts with `|` between."""
    words = [f"{at}:{'|'.join(map(_shortened, piece))}" for at, piece in form.tokens]
    return " ".join(words) if len(words) < 9 else f"{words[0]} … {words[-1]}"


def _shortened(text: str) -> str:
    return text if len(text) < 60 else f"{text[0]}…{len(text)}…{text[-1]}"


def test_every_word_has_the_recorded_forms() -> None:
    """As typed, in quotes, and inside of longer words; with what a finder asks of the forms."""
    cut = make_tokenizer()
    answers: dict[str, object] = {}
    for text in WORDS:
        answer: dict[str, object] = {}
        for way, word, wide in (
            ("typed", Word(text), False),
            ("quoted", Word(text, quoted=True), False),
            ("wide", Word(text), True),
            ("quoted, wide", Word(text, quoted=True), True),
        ):
            forms = term_forms(word, cut, widen=wide)
            made: list[object] = ["  ".join(map(_written, forms))]
            if forms:
                slow = "".join("-s"[is_slow_form(form)] for form in forms)
                made += [shortest_length(forms), slow, {_shortened(each) for each in infix_strings(forms)}]
            if made != answer.get("typed"):
                answer[way] = made
        answers[_shortened(text)] = answer
    assert_recorded(ANSWERS / "forms.json", answers)


TEXTS: Final = (
    "a b c",
    "a a b a b c",
    "prefix pre get getName getUserName name",
    "src/auth/x.py src/x.py src/a/b/x.py",
    "数据库连接失败了 连接 a连接b",
    "4f9d2c1ab7 4f9d2c 2.1.42 v2.1.42 12.1.42 2.1.4",
    "abcbcb abab ba b",
    "İstanbul caf\u00e9 cafe\u0301 \u00e9t\u00e9",
    "",
)
FOUND: Final = (
    *("a", "a/b", "a b", "a*", "*a", "*b*", "a*b", "b*b", "*b*b", "b*b*", "a*a", "ab*ba", "*ab*ab"),
    *("pre*", "get*Name", "getName", "UserName", "name", "src/*/x.py", "src/x.py", "x.py", "a/*/b"),
    *("连接", "4f9d2c", "2.1.42", "i*", "İ*", "caf\u00e9", "\u00e9t\u00e9", "*tanb*", "c*", "bcb*"),
)


def test_every_form_is_found_in_texts_at_the_recorded_places() -> None:
    cut = make_tokenizer()
    answers: dict[str, object] = {}
    for query in FOUND:
        forms = term_forms(Word(query), cut)
        spans = {text: find_spans(forms, cut(text)) for text in TEXTS}
        answers[query] = {text: found for text, found in spans.items() if found}
    assert_recorded(ANSWERS / "spans.json", answers)


def test_no_more_than_two_hundred_matches_of_a_form_are_looked_for() -> None:
    cut = make_tokenizer()
    (form,) = term_forms(Word("a"), cut)
    for number, found in ((199, 199), (200, 200), (201, 200)):
        assert len(find_spans((form,), cut("a " * number))) == found


def test_the_engine_is_asked_for_each_form_in_its_own_way(tmp_path: Path) -> None:
    schema = open_text_index(str(tmp_path)).schema
    asked = {
        _written(form): repr(form_query(form, schema)).split("\n", 1)[0]
        for form in (
            TermForm(((0, ("a",)),)),
            TermForm(((0, ("a", "")),)),
            TermForm(((0, ("a.b", "c")),)),
            TermForm(((3, ("a",)), (4, ("b",)), (6, ("c",)))),
            TermForm(((3, ("a", "")), (5, ("b+",)))),
        )
    }
    assert_recorded(ANSWERS / "engine_queries.json", asked)
