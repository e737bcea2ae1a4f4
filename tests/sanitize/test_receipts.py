"""What a receipt says of everything that was masked, and in which order edits come."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import msgspec
import pytest
from tests.sanitize.recording import Text

import steno.sanitize
from steno.sanitize.secret_masker import MaskEdit, Masker, MaskLocation, Receipt, apply_edits, find_edits

_KEY = Text("ghp_«36 alnum»").text
_OTHER = Text("glpat-«20 url»").text
_MOST = 1_000
_CHUNK = 1 << 20


def _records() -> Iterator[type[msgspec.Struct]]:
    for module in pkgutil.iter_modules(steno.sanitize.__path__):
        loaded = importlib.import_module(f"steno.sanitize.{module.name}")
        for _, found in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(found, msgspec.Struct) and found.__module__ == loaded.__name__:
                yield found


def test_no_record_but_the_receipt_can_be_changed() -> None:
    changed = [found.__name__ for found in _records() if not found.__struct_config__.frozen]
    assert changed == ["Receipt"]


def test_edits_sort_by_where_they_begin() -> None:
    one, other = (MaskEdit(begin, 9, "home", "", b"~") for begin in (1, 2))
    assert sorted([other, one]) == [one, other]


def test_every_count_of_a_text_is_told_by_text_and_in_all() -> None:
    masker = Masker()
    first = f"{_KEY} {_KEY} /home/ada ada@lovelace.org {_OTHER}"
    masker.mask_text(first, "one")
    masker.mask_text(f"{_KEY} /home/bob", "two")
    masker.mask_text(f"{_KEY} /home/bob", "one")
    masker.mask_text("nothing here", "three")
    masker.mask_text(_KEY)
    receipt = masker.receipt
    assert receipt.counts == {"github-token": 5, "home": 3, "e-mail": 1, "gitlab-token": 1}
    assert receipt.texts == {
        "one": {"github-token": 3, "home": 2, "e-mail": 1, "gitlab-token": 1},
        "two": {"github-token": 1, "home": 1},
    }
    assert receipt.total == 10
    assert receipt.covers == {}
    # Two of one family in one record are one place, and a home folder is none.
    assert receipt.places == [
        MaskLocation("one", "github-token", "", 0),
        MaskLocation("one", "e-mail", "", 0),
        MaskLocation("one", "gitlab-token", "", 0),
        MaskLocation("two", "github-token", "", 0),
        MaskLocation("one", "github-token", "", 0),
        MaskLocation("", "github-token", "", 0),
    ]


def test_a_place_is_the_byte_where_its_record_begins() -> None:
    lines = ["first", f"a {_KEY}", "", f"{_KEY} b", "/home/ada", f"{_OTHER}", ""]
    masker = Masker()
    masker.mask_bytes("\n".join(lines).encode(), "x")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    assert [(place.family, place.at) for place in masker.receipt.places] == [
        ("github-token", starts[1]),
        ("github-token", starts[3]),
        ("gitlab-token", starts[5]),
    ]


def test_of_covers_each_is_counted() -> None:
    masker = Masker()
    masker.mask_text(Text("⟦hex ghp_«36 alnum»⟧ ⟦base64 ghp_«36 alnum»⟧⏎⟦hex ghp_«36 alnum»⟧").text, "x")
    assert masker.receipt.covers == {"hex": 2, "base64": 1}
    assert [(place.cover, place.at > 0) for place in masker.receipt.places] == [
        ("hex", False),
        ("base64", False),
        ("hex", True),
    ]
    assert masker.receipt.counts == {"github-token": 3}


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_a_receipt_names_a_bounded_number_of_places_and_counts_them_all(more: int) -> None:
    masker = Masker()
    lines = [f"{_KEY} {_OTHER}"] + [_KEY] * (_MOST - 1 + more) + [_OTHER]
    masker.mask_text("\n".join(lines), "x")
    receipt = masker.receipt
    placed = [place.family for place in receipt.places]
    assert receipt.counts == {"github-token": _MOST + more, "gitlab-token": 2}
    assert placed.count("github-token") == min(_MOST, _MOST + more)
    assert placed.count("gitlab-token") == 2


def test_what_only_names_homes_has_no_places() -> None:
    masker = Masker()
    masker.mask_text("/home/ada /Users/bob", "x")
    assert masker.receipt == Receipt(counts={"home": 2}, covers={}, texts={"x": {"home": 2}})


def test_what_somebody_else_masks_is_noted_without_a_text() -> None:
    masker = Masker()
    data = f"{_KEY} x".encode()
    masker.record(data, find_edits(data))
    masker.record(b"", [])
    masker.mask_bytes(data)
    assert masker.receipt.counts == {"github-token": 2}
    assert masker.receipt.texts == {}
    assert {place.where for place in masker.receipt.places} == {""}


def test_edits_replace_just_what_they_name() -> None:
    edits = [MaskEdit(1, 2, "home", "", b"~"), MaskEdit(2, 4, "home", "", b""), MaskEdit(6, 6, "x", "", b"+")]
    assert apply_edits(b"abcdefgh", edits) == b"a~ef+gh"
    assert apply_edits(b"abc", []) == b"abc"


def test_what_needs_no_masking_is_the_same_object() -> None:
    data = b"nothing to see here"
    assert Masker().mask_bytes(data) is data
    assert find_edits(b"") == []


def test_a_text_of_half_surrogates_is_masked_like_any_other() -> None:
    assert Masker().mask_text(f"\ud800 {_KEY} \udfff") == "\ud800 <masked:github-token> \udfff"


@pytest.mark.parametrize("before", [_CHUNK - 8, _CHUNK - 1, _CHUNK, _CHUNK + 1])
def test_a_needle_at_the_end_of_a_chunk_is_found_once(before: int) -> None:
    data = b" " * before + b"/home/ada and " + _KEY.encode() + b" ada@lovelace.org"
    found = [(edit.begin, edit.family) for edit in find_edits(data)]
    assert found == [(before, "home"), (before + 14, "github-token"), (before + 14 + len(_KEY) + 1, "e-mail")]


def test_a_family_is_not_asked_twice_across_chunks() -> None:
    """A run that was looked at in the first chunk is not looked at again in the second."""
    run = Text("«400 alnum»").text.encode()
    data = b" " * (_CHUNK - 100) + b"ghp_" + run + b"ghp_" + run
    begins = [(edit.begin, edit.end - edit.begin) for edit in find_edits(data)]
    assert begins == [(_CHUNK - 100, 4 + 400 + 3)]
