"""Repairs that somebody asked something of: up to a record, one session, smaller, for a client."""

from typing import Any

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    SESSION,
    Records,
    boundary,
    call,
    calls,
    data_of,
    marker,
    note,
    output,
    outputs,
    prompt,
    reply,
    snapshot,
    summary,
    uuid,
    when,
    words,
)

__all__ = ["cases"]


def _talk() -> Records:
    return [prompt(1), reply(2), prompt(3), reply(4), prompt(5), reply(6)]


def _branches() -> Records:
    return [prompt(1), reply(2), prompt(3), reply(4), prompt(5, on=2), reply(6)]


def _parallel() -> Records:
    return [prompt(1), call(2, "a", of="m"), call(3, "b", of="m"), output(4, "a", on=2), output(5, "b", on=3), reply(6)]


def _read(text: Any, detail: Any, *, before: Records | None = None) -> Records:
    """Return a call whose result says something, with the client's own copy of it."""
    block = {**outputs("a")[0], "content": text}
    asked = before or [prompt(1), call(2, "a")]
    return [*asked, prompt(3, [block], toolUseResult=detail), reply(4)]


def _slim(name: str, records: Records) -> Case:
    return Case(name, records, wish={"slim": True})


def cases() -> dict[str, list[Case]]:
    """Return the files by what is asked for."""
    other = "5e551017-0000-4000-8000-000000000002"
    joined = [*_talk()[:2], *[each | {"sessionId": other} for each in _talk()[2:4]], *_talk()[4:]]
    junk = b"".join([data_of(joined[:2]), b"x\n", data_of(joined[2:4]), b"y\n", data_of(joined[4:])])
    long, longer = "x" * 1000, "x" * 1001
    numbered = "".join(f"{n:6d}→line {n}\n" for n in range(200))
    plain = "".join(f"line {n}\n" for n in range(200))
    return {
        "until": [
            *(Case(f"record {n}", _talk(), wish={"until": uuid(n)}) for n in (1, 2, 5, 6)),
            Case("a beginning", [prompt(1, uuid="abc"), reply(2, uuid="xyz", parentUuid="abc")], wish={"until": "ab"}),
            Case(
                "one that another begins with",
                [prompt(1, uuid="ab"), reply(2, uuid="abc", parentUuid="ab")],
                wish={"until": "ab"},
            ),
            *(Case(f"branch {n}", _branches(), wish={"until": uuid(n)}) for n in (3, 4, 5)),
            Case("branch 4, marked", [*_branches(), marker(6)], wish={"until": uuid(4)}),
            Case("a call", _parallel(), wish={"until": uuid(3)}),
            Case("a result", _parallel(), wish={"until": uuid(4)}),
            Case("a note", [*_talk()[:2], note(7, on=2), *_talk()[2:]], wish={"until": uuid(7)}),
            Case("a compaction", [*_talk()[:2], boundary(3), summary(4), reply(5)], wish={"until": uuid(3)}),
            Case("a summary", [*_talk()[:2], boundary(3), summary(4), reply(5)], wish={"until": uuid(4)}),
            Case("in an agent's file", _talk(), "agent-x", wish={"until": uuid(2)}),
            Case("an agent's", [*_talk(), prompt(7, on=0, isSidechain=True), reply(8, on=6)], wish={"until": uuid(7)}),
            Case("abandoned, for 2.1.42", _branches(), wish={"until": uuid(4), "client": "2.1.42"}),
        ],
        "a session": [
            Case("the first", joined, wish={"session": SESSION}),
            Case("the other", joined, wish={"session": other}),
            Case("no such", joined, wish={"session": "x"}),
            Case("the only one", _talk(), wish={"session": SESSION}),
            Case("with gaps, the first", junk, wish={"session": SESSION}),
            Case("with gaps, the other", junk, wish={"session": other}),
            Case("a gap first", b"z\n" + junk, wish={"session": other}),
            Case("nameless first", [{"type": "x"}, *joined], wish={"session": SESSION}),
            Case("nameless between", [*joined[:2], {"type": "x"}, *joined[2:]], wish={"session": other}),
        ],
        "smaller": [
            _slim("nothing to leave out", _talk()),
            _slim("progress", [*_talk(), note(7, "progress"), note(8, "progress"), prompt(9)]),
            _slim("progress without an id", [*_talk(), {"type": "progress"}]),
            _slim("snapshots", [snapshot(1), *_talk(), snapshot(1), snapshot(3)]),
            _slim("a copy of 1000", _read(long, {"stdout": long})),
            _slim("a copy of 1001", _read(longer, {"stdout": longer})),
            _slim("a copy in a list", _read(longer, {"files": [longer, "y"], "n": 5})),
            _slim("a copy as text", _read(longer, longer)),
            _slim("more than the copy", _read(longer, {"stdout": longer + "y"})),
            _slim("a part of it", _read(longer + "y" * 300, {"stdout": longer})),
            _slim("newlines behind it", _read(longer, {"stdout": longer + "\n\n"})),
            _slim("numbered lines", _read(numbered, {"file": {"content": plain}})),
            _slim("twice in the details", _read("short", {"a": longer, "b": longer})),
            _slim(
                "what was asked",
                _read(
                    "ok",
                    {"content": longer},
                    before=[prompt(1), reply(2, [{**calls("a")[0], "input": {"content": longer}}])],
                ),
            ),
            _slim("what was said before", _read("ok", {"x": longer}, before=[prompt(1, longer), call(2, "a")])),
            _slim("details of no result", [prompt(1, longer, toolUseResult={"a": longer}), reply(2)]),
            _slim("blocks", _read([words(longer)], {"stdout": longer})),
        ],
        "a leaf": [
            Case(
                "2.1.42, the latest elsewhere",
                [*_talk(), prompt(7, on=1, timestamp=when(99)), marker(6)],
                wish={"client": "2.1.42"},
            ),
            Case("2.1.200, the last elsewhere", [*_branches(), prompt(7, on=1)], wish={"client": "2.1.200"}),
            Case("2.1.325, marked elsewhere", [*_branches(), marker(4)], wish={"client": "2.1.325"}),
            Case("a note at the end", [*_talk(), note(7)], wish={"client": "2.1.200"}),
            Case("a progress at the end", [*_talk(), note(7, "progress")], wish={"client": "2.1.200"}),
            Case("an agent at the end", [*_talk(), prompt(7, on=0, isSidechain=True)], wish={"client": "2.1.200"}),
            Case(
                "marked as an agent's",
                [*_talk(), prompt(7, on=0, isSidechain=True), marker(7)],
                wish={"client": "2.1.325"},
            ),
            *(
                Case(f"parallel for {client}", _parallel(), wish={"client": client})
                for client in ("1.0.128", "2.0.76", "2.1.42", "2.1.200")
            ),
            *(
                Case(f"an open call for {client}", _parallel()[:4], wish={"client": client})
                for client in ("2.0.76", "2.1.200")
            ),
            *(Case(f"branches for {client}", _branches(), wish={"client": client}) for client in ("2.0.76", "2.1.200")),
        ],
    }
