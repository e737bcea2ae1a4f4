"""Lines of responses: without a name, or under the name of another."""

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    Records,
    boundary,
    call,
    calls,
    note,
    output,
    prompt,
    reply,
    summary,
    thought,
    words,
)

__all__ = ["cases"]


def _nameless(records: Records, *lines: int, model: bool = True) -> Records:
    """Take the name off the answers on some lines."""
    for line in lines:
        del records[line - 1]["message"]["id"]
        if not model:
            del records[line - 1]["message"]["model"]
    return records


def _talk() -> Records:
    return [prompt(1), reply(2, of="m"), reply(3, of="m"), prompt(4), reply(5), prompt(6), reply(7)]


def _command(number: int, *, on: int | None = None) -> dict[str, object]:
    return note(number, on=on, subtype="local_command", content="<command-name>/x</command-name>")


def cases() -> dict[str, list[Case]]:
    """Return the files by what is wrong with names."""
    mixed = [prompt(1), reply(2, of="m"), reply(3, of="n"), reply(4, of="m"), prompt(5), reply(6)]
    thinking = [prompt(1), reply(2, of="m"), reply(3, [thought()], of="n"), reply(4, of="m")]
    both = [prompt(1), reply(2, of="m"), reply(3, [thought(), words("x")], of="n")]
    return {
        "no name": [
            Case("one line", _nameless(_talk(), 5)),
            Case("the first of two lines", _nameless(_talk(), 2)),
            Case("the second of two lines", _nameless(_talk(), 3)),
            Case("both lines", _nameless(_talk(), 2, 3)),
            Case("two responses", _nameless(_talk(), 5, 7)),
            Case("all", _nameless(_talk(), 2, 3, 5, 7)),
            Case("two without a model", _nameless(_talk(), 5, 7, model=False)),
            Case("one without a model", _nameless(_talk(), 3, model=False)),
            Case("name null", [prompt(1), reply(2), prompt(3), reply(4, message={"id": None})]),
            Case("abandoned", _nameless([prompt(1), reply(2), reply(3, on=1), prompt(4, on=1), reply(5)], 2, 3)),
            Case("compacted", _nameless([prompt(1), reply(2), boundary(3), summary(4), prompt(5), reply(6)], 2, 6)),
            Case("calls", _nameless([prompt(1), call(2, "a"), output(3, "a"), call(4, "b"), output(5, "b")], 2, 4)),
        ],
        "a wrong name": [
            Case("between two lines", mixed),
            Case("between two lines, twice", [*mixed[:3], reply(4, of="n"), reply(5, of="m")]),
            Case("thinking between two lines", thinking),
            Case("thinking and words between", [*both, reply(4, of="m")]),
            Case("back after another", [*mixed[:3], reply(4, of="m")]),
            Case("back in another turn", [prompt(1), reply(2, of="m"), prompt(3), reply(4, of="m")]),
            Case(
                "back after results",
                [prompt(1), call(2, "a", of="m"), output(3, "a"), reply(4, of="n"), reply(5, of="m")],
            ),
            Case("before its result", [prompt(1), call(2, "a", of="m"), reply(3, of="n"), output(4, "a"), reply(5)]),
            Case(
                "a call before another's result",
                [prompt(1), call(2, "a", of="m"), call(3, "b", of="n"), output(4, "a"), output(5, "b"), reply(6)],
            ),
            Case(
                "the same name before and behind a result",
                [prompt(1), call(2, "a", of="m"), output(3, "a"), reply(4, of="m"), prompt(5), reply(6)],
            ),
            Case(
                "results apart from it",
                [
                    prompt(1),
                    call(2, "a", of="m"),
                    call(3, "b", of="n"),
                    output(4, "a", on=2),
                    output(5, "b", on=3),
                    reply(6),
                ],
            ),
            Case(
                "behind a prompt with results",
                [prompt(1), call(2, "a", of="m"), output(3, "a"), prompt(4), reply(5, of="n"), reply(6, of="m")],
            ),
            Case("behind a command", [prompt(1), reply(2, of="m"), _command(3), reply(4, of="m"), prompt(5), reply(6)]),
            Case(
                "behind a result and a command",
                [prompt(1), call(2, "a", of="m"), output(3, "a"), _command(4), reply(5, of="m"), prompt(6), reply(7)],
            ),
            Case(
                "beside the way",
                [
                    prompt(1),
                    call(2, "a", of="m"),
                    reply(3, [*calls("b")], of="n", on=2),
                    output(4, "a", on=2),
                    output(5, "b", on=3),
                    reply(6, of="m", on=5),
                    prompt(7),
                    reply(8),
                ],
            ),
            Case(
                "three of one response, the middle under another",
                [
                    prompt(1),
                    call(2, "a", of="m"),
                    call(3, "b", of="x"),
                    call(4, "c", of="m"),
                    output(5, "a", on=2),
                    output(6, "b", on=3),
                    output(7, "c", on=4),
                    reply(8, on=7),
                ],
            ),
            Case(
                "a nameless line before its result",
                _nameless([prompt(1), call(2, "a", of="m"), reply(3), output(4, "a"), reply(5, of="m")], 3),
            ),
        ],
    }
