"""The stretch of a text that is shown for a hit, to the letter; and what the engine refuses."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.recorded_answers import assert_recorded

from steno.errors import StenoError
from steno.index import text_index
from steno.index.search import finder
from steno.index.search.finder import QueryForms
from steno.index.search.hit_text import HitText, best_excerpt, cut_excerpt
from steno.index.search.query_parser import Word
from steno.index.search.scope import SearchScope
from steno.index.search.terms import TermForm, make_tokenizer, term_forms
from steno.index.searchable_text import TextPart

ANSWERS: Final = Path(__file__).with_name("answers")


def _shown(text: str, *found: list[tuple[int, int]]) -> object:
    made = cut_excerpt(TextPart("answer", text), [list(each) for each in found])
    return [made.start, len(made.text), made.marks, made.is_at_start, made.is_at_end]


def test_stretches_of_long_texts_are_as_recorded() -> None:
    """Where the stretch begins, how long it is, and which letters of it are marked."""
    words = " ".join(f"word{number:04}" for number in range(200))
    solid = "x" * 2000
    lines = "\n".join("y" * 30 for _ in range(60))
    answers: dict[str, object] = {}
    for name, text in (("words", words), ("solid", solid), ("lines", lines)):
        for at in (0, 1, 23, 24, 25, 47, 48, 49, 72, 73, 120, 500, 1700, 1780):
            answers[f"{name} at {at}"] = _shown(text, [(at, at + 5)])
    for end in (239, 240, 241, 288, 289):
        answers[f"text of {end}"] = [_shown("z" * end, [(0, 3)]), _shown("z" * end, [(100, 103)])]
    for start in ("\n", " ", "\n\n", "a\n", " a", "\n "):
        answers[f"{start!r} before it"] = [
            _shown(start + "x" * length + "match" + solid, [(at, at + 5)])
            for length in (0, 1, 20, 47, 48)
            if (at := len(start) + length)
        ]
    answers["nothing found"] = _shown(words)
    answers["nothing found in an empty text"] = _shown("")
    answers["a mark over the end"] = _shown(solid, [(500, 900)])
    answers["marks that touch and overlap"] = _shown(
        words, [(100, 110), (110, 112), (111, 120)], [(105, 108), (130, 131)]
    )
    answers["one inside another"] = _shown(words, [(100, 130)], [(105, 108), (128, 140)])
    answers["many in the first, one near in the second"] = _shown(
        solid, [(at, at + 2) for at in (10, 400, 800, 1200)], [(1_210, 1_212)]
    )
    for apart in (119, 120, 121):
        answers[f"two {apart} apart"] = _shown(solid, [(300, 302), (900, 902)], [(900 + apart, 902 + apart)])
    answers["the rare one counts more"] = _shown(
        solid, [(at, at + 2) for at in range(100, 1900, 100)], [(1_500, 1_502)], [(40, 42)]
    )
    answers["equal ones: the first"] = _shown(solid, [(700, 702), (1_500, 1_502)])
    answers["just before and behind the stretch"] = _shown(
        solid, [(400, 402), (351, 353), (352, 354), (591, 593), (592, 594), (593, 595)]
    )
    assert_recorded(ANSWERS / "stretches.json", answers)


def _forms(*words: str) -> list[tuple[TermForm, ...]]:
    cut = make_tokenizer()
    return [term_forms(Word(word), cut) for word in words]


def test_the_part_that_has_most_of_what_was_asked_is_shown() -> None:
    cut = make_tokenizer()
    parts = [TextPart("prompt", "alpha"), TextPart("answer", "alpha beta"), TextPart("output", "beta gamma", "Bash")]
    text = HitText(1, 2, 3, None, parts=parts)
    answers: dict[str, Any] = {}
    for words in ((), ("alpha",), ("beta",), ("alpha", "beta"), ("alpha", "gamma"), ("delta",), ("alpha", "delta")):
        for name, scope in (("all", SearchScope()), ("outputs", SearchScope(kinds=frozenset({"output"})))):
            for pattern in (None, "amm", "zzz"):

                def spans(said: str, pattern: str | None = pattern) -> list[tuple[int, int]]:
                    at = said.find(pattern or "")
                    return [(at, at + 3)] if at >= 0 else []

                wanted = QueryForms(_forms(*words), [], [])
                made = best_excerpt(text, wanted, scope, cut, spans if pattern else None)
                shown = [made.part.kind, made.marks] if made else None
                answers[f"{' '.join(words)} in {name}, pattern {pattern}"] = shown
    assert_recorded(ANSWERS / "excerpts.json", answers)
    assert best_excerpt(HitText(1, 2, 3, None), QueryForms([], [], []), SearchScope(), cut) is None


def test_complaints_of_the_engine_are_said_in_our_words() -> None:
    """Each sign of damage, a full disk, and whatever else the engine may say."""
    answers: dict[str, object] = {}
    for said in (
        *("Index Corrupted", "file does not exist", "No such file", "Is a directory", "incompatible"),
        *("footer", "unexpected end", "UnexpectedEof", "malformed", "expected value", "EOF while"),
        *("invalid", "too many expansions", "No space left on device", "anything else"),
    ):  # fmt: skip
        made: dict[str, object] = {"writing": vars(text_index)["_engine_error"](ValueError(said))}
        for name, guard in (
            ("asking", vars(finder)["_convert_engine_errors"]),
            ("committing", vars(text_index)["_convert_engine_errors"]),
        ):
            with pytest.raises(StenoError) as refused, guard():
                raise ValueError(said)
            made[name] = refused.value
        answers[said] = made
    assert_recorded(ANSWERS / "engine_errors.json", answers)
