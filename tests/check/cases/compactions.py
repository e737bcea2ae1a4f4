"""Compactions: with a summary, without one, and with one where no client looks for it."""

from typing import Any

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    UNKNOWN,
    Records,
    boundary,
    call,
    marker,
    note,
    output,
    prompt,
    reply,
    summary,
    title,
    uuid,
)

__all__ = ["cases"]


def _old() -> Records:
    return [prompt(1), reply(2)]


def _kept(number: int, head: int, anchor: int, tail: int) -> dict[str, Any]:
    """Return a boundary that keeps some records from before it."""
    segment = {"headUuid": uuid(head), "anchorUuid": uuid(anchor), "tailUuid": uuid(tail)}
    return boundary(number, compactMetadata={"preservedSegment": segment})


def cases() -> dict[str, list[Case]]:
    """Return the files by what stands behind the boundary."""
    new: Records = [prompt(5, on=3), reply(6)]
    anew: Records = [prompt(5, on=0), reply(6)]
    titled = title("What was.", 2)
    return {
        "a summary": [
            Case("below", [*_old(), boundary(3), summary(4), prompt(5), reply(6)]),
            Case("unmarked", [*_old(), boundary(3), prompt(4), prompt(5), reply(6)]),
            Case("behind a note", [*_old(), boundary(3), note(4), summary(5), prompt(6), reply(7)]),
            Case("behind two notes", [*_old(), boundary(3), note(4), note(5), summary(6), reply(7)]),
            Case("as the last record", [*_old(), boundary(3), summary(4)]),
            Case("below, the boundary hung", [*_old(), boundary(3, on=2), summary(4), reply(5)]),
            Case("twice", [*_old(), boundary(3), summary(4), boundary(5), summary(6), reply(7)]),
            Case("of the last one missing", [*_old(), boundary(3), summary(4), reply(5), boundary(6), reply(7, on=6)]),
            Case("of the first one missing", [*_old(), boundary(3), reply(4), boundary(5), summary(6), reply(7)]),
            Case("follows nothing", [*_old(), boundary(3, 0), summary(4), prompt(5), reply(6)]),
            Case(
                "follows a record that is not there",
                [*_old(), boundary(3, logicalParentUuid=UNKNOWN), summary(4), reply(5)],
            ),
            Case("of records kept", [*_old(), _kept(3, 1, 4, 2), summary(4), prompt(5), reply(6)]),
            Case("of records kept, wrongly", [*_old(), _kept(3, 9, 4, 2), summary(4), reply(5)]),
        ],
        "none": [
            Case("a prompt below", [*_old(), boundary(3), *new]),
            Case("an answer below", [*_old(), boundary(3), reply(4), prompt(5), reply(6)]),
            Case("a result below", [*_old(), boundary(3), output(4, "a"), reply(5)]),
            Case("nothing below", [*_old(), boundary(3)]),
            Case("a note below", [*_old(), boundary(3), note(4)]),
            Case("a prompt that begins anew", [*_old(), boundary(3), *anew]),
            Case("an answer that begins anew", [*_old(), boundary(3), reply(4, on=0), prompt(5)]),
            Case("on what came before", [*_old(), boundary(3), prompt(4, on=2), reply(5)]),
            Case("the boundary hung, an answer", [*_old(), boundary(3, on=2), reply(4), prompt(5)]),
            Case("the boundary follows nothing", [*_old(), boundary(3, 0), reply(4, on=3), prompt(5), reply(6)]),
            Case("nothing before", [boundary(1, 0), reply(2), prompt(3), reply(4)]),
            Case("by an agent", [*_old(), boundary(3, isSidechain=True), reply(4, on=2)]),
            Case("two answers below", [*_old(), boundary(3), reply(4), reply(5, on=3), prompt(6)]),
        ],
        "a title": [
            Case("before it", [*_old(), titled, boundary(3), *anew]),
            Case("two before it", [*_old(), titled, note(7, on=2), boundary(3), *anew]),
            Case("three before it", [*_old(), titled, *[note(n, on=2) for n in (7, 8)], boundary(3), *anew]),
            Case("behind it", [*_old(), boundary(3), titled, *anew]),
            Case("two behind it", [*_old(), boundary(3), note(7, on=2), titled, *anew]),
            Case("three behind it", [*_old(), boundary(3), *[note(n, on=2) for n in (7, 8)], title("x", 9), *anew]),
            Case("at the beginning", [titled, *_old(), prompt(7), reply(8), boundary(3), *anew]),
            Case("of another leaf", [title("Else.", 1), *_old(), prompt(7), reply(8), boundary(3), *anew]),
            Case("of an answer below", [*_old(), titled, boundary(3), reply(4), prompt(5), reply(6)]),
            Case("blank", [*_old(), title(" "), boundary(3), *anew]),
            Case("no text", [*_old(), title(5), boundary(3), *anew]),
            Case("of a boundary that hangs", [*_old(), titled, boundary(3, on=2), reply(4), prompt(5)]),
            Case("of an old boundary", [*_old(), titled, boundary(3), reply(4), boundary(5), summary(6)]),
            Case("that nothing follows", [*_old(), titled, boundary(3)]),
        ],
        "order": [
            Case(
                "the boundary hangs on what follows", [*_old(), boundary(3, 2, on=5), summary(4), prompt(5), reply(6)]
            ),
            Case(
                "the boundary hangs on what follows, and follows nothing",
                [*_old(), boundary(3, 0, on=5), summary(4), prompt(5), reply(6)],
            ),
            Case(
                "a result of a call before",
                [prompt(1), call(2, "a"), boundary(3), summary(4), output(5, "a", on=0), reply(6)],
            ),
            Case(
                "a lost result of a call behind",
                [*_old(), boundary(3), summary(4), call(5, "a"), output(6, "a", parentUuid=UNKNOWN), reply(7)],
            ),
            Case("go on from before", [*_old(), boundary(3), summary(4), prompt(5), marker(2)]),
        ],
    }
