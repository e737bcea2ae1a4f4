"""Differences of sequences: what is common, what differs, and how it is grouped."""

from collections.abc import Sequence
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from steno.format.line_diff import (
    Alignment,
    DiffRange,
    Hunk,
    align,
    common_ends,
    make_hunks,
    readable_diff,
    recorded_diff,
)

_ROWS = st.lists(st.sampled_from("abcdef"), max_size=40)


def _assert_whole(found: Alignment, a: Sequence[str], b: Sequence[str]) -> None:
    """Both rows come out again, and what is called common is."""
    assert [place for part in found.parts for place in part.a] == list(range(len(a)))
    assert [place for part in found.parts for place in part.b] == list(range(len(b)))
    for part in found.parts:
        assert part.a or part.b
        if part.common:
            assert [a[place] for place in part.a] == [b[place] for place in part.b]
    kinds = [part.common for part in found.parts]
    assert all(one != other for one, other in pairwise(kinds))


def _longest(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common row, by the textbook."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for one, mine in enumerate(a):
        for other, theirs in enumerate(b):
            best[one + 1][other + 1] = (
                best[one][other] + 1 if mine == theirs else max(best[one][other + 1], best[one + 1][other])
            )
    return best[-1][-1]


def _common(found: Alignment) -> int:
    return sum(len(part.a) for part in found.parts if part.common)


@given(_ROWS, _ROWS)
def test_aligned_parts_give_both_rows_again_and_miss_nothing_common(a: list[str], b: list[str]) -> None:
    found = align(a, b)
    _assert_whole(found, a, b)
    assert _common(found) == _longest(a, b)
    assert found.loose == 0


@given(_ROWS, _ROWS, st.integers(0, 60))
def test_rows_stay_whole_when_there_is_no_time_to_look(a: list[str], b: list[str], cells: int) -> None:
    found = align(a, b, max_pairs=cells)
    _assert_whole(found, a, b)
    both = zip(a, b, strict=False)
    same = next((place for place, (x, y) in enumerate(both) if x != y), min(len(a), len(b)))
    first = found.parts[0] if found.parts else None
    assert (len(first.a) if first is not None and first.common else 0) >= same


@given(_ROWS, _ROWS, st.data())
def test_ties_are_kept_whatever_stands_between(a: list[str], b: list[str], data: st.DataObject) -> None:
    pairs = [(one, other) for one in range(len(a)) for other in range(len(b)) if a[one] == b[other]]
    tie = data.draw(st.sampled_from(pairs)) if pairs else None
    found = align(a, b, anchors=[tie] if tie else [])
    _assert_whole(found, a, b)
    tied = {pair for part in found.parts if part.common for pair in zip(part.a, part.b, strict=True)}
    assert tie is None or tie in tied


def test_rows_of_many_thousands_are_aligned_by_what_they_have_once() -> None:
    a = [f"{place}" if place % 5 == 0 else "again" for place in range(12_000)]
    b = [*a[:3000], *("new" for _ in range(800)), *a[3500:]]
    found = align(a, b)
    _assert_whole(found, a, b)
    assert _common(found) >= 11_500
    assert found.loose == 0


def test_what_has_no_handle_is_left_apart_and_counted() -> None:
    a = [letter for word in product("ab", repeat=8) for letter in word]
    b = a[::-1]
    found = align(["x", *a], ["x", *b])
    _assert_whole(found, ["x", *a], ["x", *b])
    assert found.loose > 4000


@given(_ROWS, _ROWS)
def test_of_several_longest_rows_the_earliest_in_the_second_is_paired(a: list[str], b: list[str]) -> None:
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for one, other in product(reversed(range(len(a))), reversed(range(len(b)))):
        longer = best[one + 1][other + 1] + 1
        best[one][other] = longer if a[one] == b[other] else max(best[one + 1][other], best[one][other + 1])
    pairs: list[tuple[int, int]] = []
    one = other = 0
    while one < len(a) and other < len(b):
        if a[one] == b[other]:
            pairs.append((one, other))
            one, other = one + 1, other + 1
        elif best[one + 1][other] >= best[one][other + 1]:
            one += 1
        else:
            other += 1
    head, tail = common_ends(a, b)
    middle = [(x + head, y + head) for x, y in align(a[head : len(a) - tail], b[head : len(b) - tail]).pairs]
    assert align(a, b).pairs[head : len(pairs) - tail] == middle
    if not head and not tail:
        assert align(a, b).pairs == pairs


@given(_ROWS, _ROWS)
def test_common_pairs_are_common_and_rise(one: list[str], other: list[str]) -> None:
    pairs = align(one, other).pairs
    assert all(one[a] == other[b] for a, b in pairs)
    assert pairs == sorted(set(pairs))
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


@given(_ROWS, _ROWS)
def test_every_difference_gives_both_rows_again(a: list[str], b: list[str]) -> None:
    for ranges in (readable_diff(a, b), readable_diff(a, b, max_pairs=20), recorded_diff(a, b)):
        _assert_whole(Alignment(tuple(ranges)), a, b)
    assert _common(Alignment(tuple(recorded_diff(a, b)))) == _longest(a, b)


def test_with_too_many_pairs_all_between_the_ends_is_one_change() -> None:
    a, b = ["x", "1", "same", "2", "y"], ["x", "3", "same", "4", "y"]
    assert len(readable_diff(a, b, max_equal_pairs=1)) == 5
    change = DiffRange(common=False, a=range(1, 4), b=range(1, 4))
    assert readable_diff(a, b, max_equal_pairs=0)[1] == readable_diff(a, b, max_pairs=8)[1] == change


def test_large_unlike_rows_are_one_change() -> None:
    a, b = [f"old {n}" for n in range(20_000)], [f"new {n}" for n in range(20_000)]
    change = DiffRange(common=False, a=range(20_000), b=range(20_000))
    assert recorded_diff(a, b) == readable_diff(a, b) == [*align(a, b).parts] == [change]


def test_changes_whose_surroundings_touch_share_a_hunk() -> None:
    a = [str(number) for number in range(12)]
    b = ["new" if number in {"2", "5", "9"} else number for number in a]
    hunks = make_hunks(a, b, readable_diff(a, b), 1)
    assert hunks == [
        Hunk(2, 2, (" 1", "-2", "+new", " 3", " 4", "-5", "+new", " 6")),
        Hunk(9, 9, (" 8", "-9", "+new", " 10")),
    ]
    assert [hunk.old for hunk in make_hunks(a, b, readable_diff(a, b), 0)] == [3, 6, 10]
    assert make_hunks(a, a, readable_diff(a, a), 3) == []
