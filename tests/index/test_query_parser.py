"""What people type is taken as they mean it, and never for more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.errors import BadRequest
from steno.index.search.query_parser import FILTERS, MAX_QUERY_LENGTH, Filter, Word, parse_query
from steno.index.search.terms import TermForm, find_spans, make_tokenizer, term_forms

W = Word


@pytest.mark.parametrize(
    ("query", "wanted", "unwanted"),
    [
        ("one two", ((W("one"),), (W("two"),)), ()),
        ('"one two"', ((W("one two", quoted=True),),), ()),
        ("“one two” x", ((W("one two", quoted=True),), (W("x"),)), ()),
        ('"open end', ((W("open end", quoted=True),),), ()),
        ("a -b", ((W("a"),),), (W("b"),)),
        ('a -"b c"', ((W("a"),),), (W("b c", quoted=True),)),
        ("a OR b c", ((W("a"), W("b")), (W("c"),)), ()),
        ("a OR b OR c", ((W("a"), W("b"), W("c")),), ()),
        ("OR a", ((W("OR"),), (W("a"),)), ()),
        ("a OR", ((W("a"),), (W("OR"),)), ()),
        ("a or b", ((W("a"),), (W("or"),), (W("b"),)), ()),
        ('a "OR" b', ((W("a"),), (W("OR", quoted=True),), (W("b"),)), ()),
        ("-> x", ((W("->"),), (W("x"),)), ()),
        ("--no-verify", ((W("--no-verify"),),), ()),
        ("- x", ((W("-"),), (W("x"),)), ()),
        ("std::vector", ((W("std::vector"),),), ()),
        ("http://x.y/z?q=1", ((W("http://x.y/z?q=1"),),), ()),
        ("file:///etc/hosts", ((W("file:///etc/hosts"),),), ()),
        ("key:value", ((W("key:value"),),), ()),
        ("error in: here", ((W("error"),), (W("in:"),), (W("here"),)), ()),
        ('say="a b"', ((W("say="),), (W("a b", quoted=True),)), ()),
        ("  \t\n ", (), ()),
    ],
)
def test_words_phrases_and_what_is_left_out(
    query: str, wanted: tuple[tuple[Word, ...], ...], unwanted: tuple[Word, ...]
) -> None:
    parsed = parse_query(query)
    assert (parsed.required, parsed.excluded, parsed.filters) == (wanted, unwanted, ())


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_takes_a_word_a_phrase_and_a_dash(name: str) -> None:
    assert parse_query(f"{name}:x").filters == (Filter(name, "x"),)
    assert parse_query(f"{name.upper()}:x").filters == (Filter(name, "x"),)
    assert parse_query(f'{name}:"x y" z').filters == (Filter(name, "x y"),)
    assert parse_query(f"-{name}:x").filters == (Filter(name, "x", negated=True),)
    assert parse_query(f'"{name}:x"').filters == ()


def test_or_between_the_same_filter_says_what_is_so_anyway() -> None:
    parsed = parse_query("tool:Bash OR tool:Edit x")
    assert parsed.filters == (Filter("tool", "Bash"), Filter("tool", "Edit"))
    assert parsed.required == ((W("x"),),)


@pytest.mark.parametrize("query", ["tool:Bash OR x", "x OR -y", "a OR in:prompt"])
def test_or_joins_only_words_that_are_wanted(query: str) -> None:
    with pytest.raises(BadRequest, match="OR can only combine"):
        parse_query(query)


def test_a_query_without_end_is_refused() -> None:
    with pytest.raises(BadRequest, match="too long"):
        parse_query("x" * (MAX_QUERY_LENGTH + 1))


@given(st.text(max_size=200))
def test_any_text_is_a_query_and_every_word_of_it_was_typed(text: str) -> None:
    try:
        parsed = parse_query(text)
    except BadRequest:
        return
    typed = "".join("�" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    said = [word.text for group in parsed.required for word in group]
    said += [word.text for word in parsed.excluded] + [each.value for each in parsed.filters]
    assert all(each in typed for each in said)


def pieces(query: str) -> list[tuple[tuple[int, tuple[str, ...]], ...]]:
    (group,) = parse_query(query).required
    return [form.tokens for form in term_forms(group[0], make_tokenizer())]


@pytest.mark.parametrize(
    ("query", "forms"),
    [
        ("Plain", [((0, ("plain",)),)]),
        ("a/b", [((0, ("a",)), (1, ("b",)))]),
        ("pre*", [((0, ("pre", "")),)]),
        ("*part*", [((0, ("", "part", "")),)]),
        ("***end", [((0, ("", "end")),)]),
        ("get*Name", [((0, ("get", "name")),)]),
        ("src/*/x.py", [((0, ("src",)), (2, ("x",)), (3, ("py",)))]),
        ('"conn* reset"', [((0, ("conn", "")), (1, ("reset",)))]),
        ('"SELECT * FROM"', [((0, ("select",)), (1, ("from",)))]),
        ('"2*3"', [((0, ("2",)), (1, ("3",)))]),
        ("UserName", [((0, ("username",)),), ((0, ("", "username", "")),)]),
        ('"UserName"', [((0, ("username",)),)]),
        ("HTTPServer", [((0, ("httpserver",)),), ((0, ("", "httpserver", "")),)]),
        ("4f9d2c1", [((0, ("4f9d2c1", "")),)]),
        ("4f9d2c1a-77", [((0, ("4f9d2c1a",)), (1, ("77", "")))]),
        ("123456", [((0, ("123456",)),)]),
        ("facade", [((0, ("facade",)),)]),
        ("连接", [((0, ("", "连接", "")),)]),
        ('"连接"', [((0, ("", "连接", "")),)]),
        ("caf\u00e9", [((0, ("caf\u00e9",)),)]),
        ("\u00e9t\u00e9", [((0, ("\u00e9t\u00e9",)),), ((0, ("e",)), (1, ("te",)))]),
        ("cafe\u0301", [((0, ("cafe",)),), ((0, ("caf\u00e9",)),)]),
        ("->", []),
        ("*", []),
    ],
)
def test_a_word_has_these_forms(query: str, forms: list[tuple[tuple[int, tuple[str, ...]], ...]]) -> None:
    assert pieces(query) == forms


def test_a_word_that_may_be_anywhere_opens_only_its_ends() -> None:
    (form,) = term_forms(Word("get_user"), make_tokenizer(), widen=True)[1:]
    assert form.tokens == ((0, ("", "get")), (1, ("user", "")))


def test_a_word_too_long_for_the_automaton_stays_shut() -> None:
    long = "x" * 450
    assert term_forms(Word(long), make_tokenizer(), widen=True) == (TermForm(((0, (long,)),)),)


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("UserName", "call getUserName(x)", ["UserName"]),
        ("login.py", "see src/auth/login.py:3", ["login.py"]),
        ("pre*", "prefix", ["pre"]),
        ("a*c", "abc", ["abc"]),
        ("a*c", "abcbc abcb bc", ["abcbc"]),
        ("*b*b", "abcbcb", ["bcbcb"]),
        ("*bc", "abcbc", ["bc"]),
        ("b*b*", "abcb bcbcb", ["bcb"]),
        ("ab*ba", "aba abba", ["abba"]),
        ("İ*", "İstanbul", ["İstanbul"]),
        ("连接", "数据库连接失败了", ["连接"]),
        ("x/*/y", "x a y x y", ["x a y"]),
        ("nothing", "else", []),
    ],
)
def test_the_letters_that_fit_are_known(query: str, text: str, marked: list[str]) -> None:
    cut = make_tokenizer()
    (group,) = parse_query(query).required
    spans = find_spans(term_forms(group[0], cut), cut(text))
    assert sorted({text[start:end] for start, end in spans}) == marked


@pytest.mark.timeout(60)
def test_many_stars_take_no_longer_than_the_word() -> None:
    cut = make_tokenizer()
    # As many as a word may have.
    (group,) = parse_query("*a" * 7 + "*b").required
    forms = term_forms(group[0], cut)
    assert find_spans(forms, cut("a" * 500)) == []
    assert find_spans(forms, cut("a" * 499 + "b")) == [(0, 500)]
