"""Calls and results that do not pair up, wherever they stand."""

from typing import Any

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    Records,
    boundary,
    call,
    calls,
    note,
    output,
    outputs,
    prompt,
    reply,
    summary,
    words,
)

__all__ = ["cases"]


def _mixed(number: int, *blocks: Any, on: int | None = None) -> dict[str, Any]:
    return prompt(number, list(blocks), on=on)


def _failed(number: int, *ids: str) -> dict[str, Any]:
    """Return what the client wrote in place of an answer, with calls in it."""
    made = call(number, *ids, isApiErrorMessage=True)
    made["message"]["model"] = "<synthetic>"
    return made


def _late() -> Records:
    """Return a result that stands behind another response."""
    return [prompt(1), call(2, "a"), prompt(3), reply(4), output(5, "a"), reply(6)]


def cases() -> dict[str, list[Case]]:
    """Return the files by what does not pair up."""
    return {
        "open": [
            Case("at the end", [prompt(1), call(2, "a")]),
            Case("two at the end", [prompt(1), call(2, "a", "b")]),
            Case("two lines at the end", [prompt(1), call(2, "a", of="m"), call(3, "b", of="m")]),
            Case("words behind it", [prompt(1), call(2, "a", of="m"), reply(3, of="m")]),
            Case("before a prompt", [prompt(1), call(2, "a"), prompt(3), reply(4)]),
            Case("before a response", [prompt(1), call(2, "a"), reply(3), prompt(4), reply(5)]),
            Case("one of two", [prompt(1), call(2, "a", "b"), output(3, "a"), reply(4)]),
            Case("the other of two", [prompt(1), call(2, "a", "b"), output(3, "b"), reply(4)]),
            Case("one of two at the end", [prompt(1), call(2, "a", "b"), output(3, "a")]),
            Case("in each turn", [prompt(1), call(2, "a"), prompt(3), call(4, "b"), prompt(5)]),
            Case("a note behind it", [prompt(1), call(2, "a"), note(3), prompt(4), reply(5)]),
            Case("without a time", [prompt(1), call(2, "a", timestamp=5), prompt(3), reply(4)]),
            Case("compacted", [prompt(1), call(2, "a"), boundary(3), summary(4), prompt(5), reply(6)]),
            Case("in an error", [prompt(1), _failed(2, "a"), prompt(3), reply(4)]),
            Case("beside its result", [prompt(1), call(2, "a"), output(3, "a"), reply(4, on=2)]),
            Case(
                "beside its result, two behind it",
                [prompt(1), call(2, "a"), output(3, "a"), prompt(4, on=2), prompt(5, on=4), reply(6)],
            ),
        ],
        "orphans": [
            Case("before everything", [prompt(1), output(2, "z"), reply(3)]),
            Case("alone in a message", [prompt(1), call(2, "a"), output(3, "z"), reply(4)]),
            Case("beside a result", [prompt(1), call(2, "a"), output(3, "a", "z"), reply(4)]),
            Case("before a result", [prompt(1), call(2, "a"), output(3, "z", "a"), reply(4)]),
            Case("beside words", [prompt(1), reply(2), _mixed(3, *outputs("z"), words("x")), reply(4)]),
            Case("two", [prompt(1), reply(2), output(3, "y", "z"), reply(4)]),
            Case("two lines", [prompt(1), reply(2), output(3, "y"), output(4, "z"), reply(5)]),
            Case("at the end", [prompt(1), reply(2), output(3, "z")]),
            Case("its call compacted", [prompt(1), call(2, "a"), boundary(3), summary(4), output(5, "a"), reply(6)]),
            Case("its call abandoned", [prompt(1), call(2, "a"), prompt(3, on=1), output(4, "a"), reply(5)]),
            Case(
                "its call beside the way",
                [prompt(1), call(2, "a"), output(3, "a", on=1), reply(4), prompt(5), reply(6)],
            ),
            Case(
                "two calls beside the way",
                [
                    prompt(1),
                    call(2, "a", of="m"),
                    call(3, "b", of="n", on=1),
                    output(4, "a", on=1),
                    output(5, "b"),
                    reply(6),
                ],
            ),
            Case(
                "its call hangs on it",
                [prompt(1), output(2, "a"), call(3, "a", on=2), reply(4, on=2), prompt(5), reply(6)],
            ),
        ],
        "repeated": [
            Case("in one message", [prompt(1), call(2, "a"), output(3, "a", "a"), reply(4)]),
            Case("in the next", [prompt(1), call(2, "a"), output(3, "a"), output(4, "a"), reply(5)]),
            Case("later", [prompt(1), call(2, "a"), output(3, "a"), reply(4), output(5, "a"), reply(6)]),
            Case("three times", [prompt(1), call(2, "a"), output(3, "a", "a", "a"), reply(4)]),
            Case("beside", [prompt(1), call(2, "a"), output(3, "a"), output(4, "a", on=2), reply(5)]),
            Case("beside another", [prompt(1), call(2, "a", "b"), output(3, "a"), output(4, "a", "b"), reply(5)]),
            Case("and an orphan", [prompt(1), call(2, "a"), output(3, "a", "z", "a"), reply(4), prompt(5)]),
        ],
        "early": [
            Case("before its call", [prompt(1), output(2, "a"), call(3, "a"), prompt(4), reply(5)]),
            Case("at the very beginning", [output(1, "a"), call(2, "a"), prompt(3), reply(4)]),
            Case("with words", [_mixed(1, *outputs("a"), words("x")), call(2, "a"), prompt(3)]),
            Case(
                "beside one that is in place",
                [prompt(1), call(2, "a"), output(3, "a", "b"), call(4, "b"), prompt(5), reply(6)],
            ),
        ],
        "late": [
            Case("behind another response", _late()),
            Case("two of one response", [prompt(1), call(2, "a", "b"), reply(3), output(4, "a", "b")]),
            Case(
                "two of two responses", [prompt(1), call(2, "a"), call(3, "b"), reply(4), output(5, "a", "b"), reply(6)]
            ),
            Case("one late, one in place", [prompt(1), call(2, "a"), call(3, "b"), output(4, "a", "b"), reply(5)]),
            Case(
                "one late, one in place, one of nobody",
                [prompt(1), call(2, "a"), call(3, "b"), output(4, "a", "b", "z"), reply(5)],
            ),
            Case(
                "each behind the other's",
                [prompt(1), call(2, "a"), call(3, "b"), output(4, "a"), output(5, "b"), reply(6)],
            ),
            Case("with words", [prompt(1), call(2, "a"), call(3, "b"), _mixed(4, *outputs("b", "a"), words("x"))]),
            Case(
                "three responses",
                [
                    prompt(1),
                    call(2, "a", of="l"),
                    call(3, "b", of="m"),
                    call(4, "c", of="n"),
                    output(5, "a", "b", "c"),
                    reply(6),
                ],
            ),
            Case(
                "of two lines of one response",
                [prompt(1), call(2, "a", of="m"), call(3, "b", of="m"), reply(4), output(5, "a", "b"), reply(6)],
            ),
        ],
        "one id": [
            Case("in one line", [prompt(1), call(2, "a", "a"), output(3, "a"), reply(4)]),
            Case("in one line, two results", [prompt(1), call(2, "a", "a"), output(3, "a", "a")]),
            Case(
                "in two lines of a response",
                [prompt(1), call(2, "a", of="m"), call(3, "a", of="m"), output(4, "a"), reply(5)],
            ),
            Case(
                "in two lines of a response, two results",
                [prompt(1), call(2, "a", of="m"), call(3, "a", of="m"), output(4, "a"), output(5, "a"), reply(6)],
            ),
            Case("in two responses", [prompt(1), call(2, "a"), output(3, "a"), call(4, "a"), output(5, "a"), reply(6)]),
            Case(
                "in three responses",
                [prompt(1), call(2, "a"), output(3, "a"), call(4, "a"), output(5, "a"), call(6, "a"), output(7, "a")],
            ),
            Case(
                "in two responses, one result",
                [prompt(1), call(2, "a"), prompt(3), call(4, "a"), output(5, "a"), reply(6)],
            ),
            Case("in two responses, the last open", [prompt(1), call(2, "a"), output(3, "a"), call(4, "a")]),
            Case(
                "before and behind a compaction",
                [
                    prompt(1),
                    call(2, "a"),
                    output(3, "a"),
                    boundary(4),
                    summary(5),
                    call(6, "a"),
                    output(7, "a"),
                    reply(8),
                ],
            ),
            Case(
                "behind a compaction, its result beside",
                [
                    prompt(1),
                    call(2, "a"),
                    output(3, "a"),
                    boundary(4),
                    summary(5),
                    call(6, "a"),
                    output(7, "a"),
                    reply(8, on=6),
                ],
            ),
            Case(
                "behind a compaction, its result beside and gone on",
                [
                    prompt(1),
                    call(2, "a"),
                    boundary(3),
                    summary(4),
                    call(5, "a"),
                    output(6, "a"),
                    prompt(7, on=5),
                    reply(8),
                ],
            ),
            Case(
                "behind a compaction, open",
                [prompt(1), call(2, "a"), output(3, "a"), boundary(4), summary(5), call(6, "a"), prompt(7), reply(8)],
            ),
            Case(
                "with words around", [prompt(1), reply(2, [words("x"), *calls("a", "a"), words("y")]), output(3, "a")]
            ),
        ],
    }
