"""Lines followed through versions: each has one origin, and it is the one that wrote it."""

from random import Random
from typing import Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import session
from tests.report.file_history_cases import PATH, edit, read, transcript_of, write

from steno.report.blame import (
    AFTER_LAST_VERSION,
    BEFORE_FIRST_VERSION,
    NamedHistory,
    attribute_lines,
    merge_origins,
    split_lines,
)
from steno.report.file_history.file_versions import Version, VersionEvent
from steno.report.file_history.touch_finder import touches_in
from steno.report.file_history.version_builder import build_versions

_LINES: Final = st.lists(st.sampled_from(["", "a", "b", "}", "\tc", "é"]), max_size=10)


def _version(place: int, verb: VersionEvent, text: str | None, before: str | None = None) -> Version:
    known = "unknown" if text is None else "exact"
    return Version(name=f"1.{place}.0", verb=verb, tool="Edit", known=known, text=text, before=before)


@given(st.lists(st.tuples(st.sampled_from(["read", "edit", "write", "outside"]), _LINES)), _LINES)
def test_every_line_has_one_origin(steps: list[tuple[VersionEvent, list[str]]], now: list[str]) -> None:
    before: str | None = None
    versions: list[Version] = []
    for place, (verb, lines) in enumerate(steps):
        text = "".join(f"{line}\n" for line in lines)
        was = before if verb in ("edit", "write") else None
        versions.append(_version(place, verb, text if place % 5 != 4 else None, was))
        before = text
    text = "".join(f"{line}\n" for line in now)
    woven = attribute_lines(versions, text)
    assert len(woven.marks) == len(now)
    assert all(mark in (AFTER_LAST_VERSION, BEFORE_FIRST_VERSION) or 0 <= mark < len(versions) for mark in woven.marks)
    chain = NamedHistory("/a", versions, woven.marks)
    blamed, origins = merge_origins(now, [chain], [None] * len(now), range(len(now)))
    assert [line.number for line in blamed] == list(range(1, len(now) + 1))
    assert [line.text for line in blamed] == now
    assert sum(origin.lines for origin in origins) == len(now)


class _Simulated:
    """A file whose lines are told apart by their numbers, and who wrote each of them."""

    def __init__(self, luck: Random) -> None:
        self.luck = luck
        self.made = session().user("Take notes.")
        self.lines: list[tuple[str, int]] = []
        self.written = 0
        self.count = 0

    def fresh(self, who: int) -> list[tuple[str, int]]:
        number = self.luck.randrange(1, 4)
        self.count += number
        return [(f"line {self.count - each}", who) for each in range(number)]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self.lines)

    def spliced(self, who: int) -> list[tuple[str, int]]:
        start = self.luck.randrange(len(self.lines) + 1)
        end = min(len(self.lines), start + self.luck.randrange(3))
        return [*self.lines[:start], *self.fresh(who), *self.lines[end:]]

    def step(self) -> None:
        what = self.luck.choice(["write", "edit", "edit", "edit", "read", "outside"])
        if not self.lines or what == "write":
            self.written += 1
            self.lines = self.spliced(self.written)
            write(self.made, self.text)
        elif what == "edit":
            self.written += 1
            old, new = self.text, self.spliced(self.written)
            self.lines = new
            edit(self.made, old, self.text)
        elif what == "read":
            read(self.made)
        else:
            # What is changed outside is of nobody.
            self.lines = self.spliced(0)
            self.made.have(PATH, self.text)


@given(st.randoms(use_true_random=False), st.integers(1, 14))
def test_a_chain_of_changes_is_attributed_as_a_plain_simulation_says(luck: Random, steps: int) -> None:
    told = _Simulated(luck)
    for _ in range(steps):
        told.step()
    versions = build_versions(touches_in(transcript_of(told.made)).get(PATH, []))
    changes = [at for at, each in enumerate(versions) if each.verb in ("write", "edit")]
    assert len(changes) == told.written
    marks = attribute_lines(versions, told.text).marks
    mine = [changes.index(mark) + 1 if mark in changes else 0 for mark in marks]
    assert mine == [who for _, who in told.lines]


def test_what_was_put_back_is_of_those_who_wrote_it_first() -> None:
    versions = [
        _version(0, "write", "a\nb\n", ""),
        _version(1, "edit", "a\nc\n", "a\nb\n"),
        msgspec.structs.replace(_version(2, "outside", "a\nb\n"), back="1.0.0"),
        _version(3, "edit", "a\nb\nd\n", "a\nb\n"),
    ]
    assert attribute_lines(versions, "a\nb\nd\n").marks == (0, 0, 3)


def test_a_file_that_is_an_earlier_text_again_is_of_those_who_wrote_that() -> None:
    versions = [_version(0, "write", "a\nb\n", ""), _version(1, "write", "x\n", "a\nb\n")]
    assert attribute_lines(versions, "a\r\nb\r\n").marks == (0, 0)
    assert attribute_lines(versions, "a\nx\n").marks == (AFTER_LAST_VERSION, 1)


def test_what_was_there_before_any_session_is_nobodys() -> None:
    versions = [_version(0, "read", "a\nb\n"), _version(1, "edit", "a\nb\nc\n", "a\nb\n")]
    assert attribute_lines(versions, "\ufeffa\nb\nc\nd\n").marks == (
        BEFORE_FIRST_VERSION,
        BEFORE_FIRST_VERSION,
        1,
        AFTER_LAST_VERSION,
    )


def test_an_edit_of_an_unknown_text_still_has_its_lines() -> None:
    lost = msgspec.structs.replace(_version(1, "edit", None), wrote=("mine", ""))
    versions = [_version(0, "read", "a\n"), lost, _version(2, "read", "a\nmine\nx\n\n")]
    woven = attribute_lines(versions, "a\nmine\nx\n\n")
    assert woven.marks == (BEFORE_FIRST_VERSION, 1, 2, 2)
    assert woven.doubts == 1
    assert attribute_lines(versions[:2], "mine\na\n").marks == (1, BEFORE_FIRST_VERSION)


def test_a_command_that_changed_nothing_is_no_doubt() -> None:
    idle = msgspec.structs.replace(_version(1, "command", None), settled=True)
    assert attribute_lines([_version(0, "write", "a\n", ""), idle], "a\n").doubts == 0
    assert attribute_lines([_version(0, "write", "a\n", ""), _version(1, "command", None)], "a\n").doubts == 1


def test_lines_are_those_of_an_editor() -> None:
    assert split_lines("") == []
    assert split_lines("\n") == [""]
    assert split_lines("a\r\nb") == ["a", "b"]


def test_a_huge_file_that_changed_everywhere_is_still_told() -> None:
    old = "".join(f"{number}\nsame\n" for number in range(6_000))
    new = "".join(f"{number + 1}\nsame\n" for number in range(6_000))
    woven = attribute_lines([_version(0, "read", old), _version(1, "write", new, old)], new)
    assert len(woven.marks) == 12_000
    assert sum(mark == 1 for mark in woven.marks) <= 4
