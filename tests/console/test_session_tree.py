"""A session as a small tree: its last prompts, and what was left beside them."""

from tests.console.recording_screen import words

from steno.console.commands.session_commands import session_tree_lines
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import load


def record(name: str, parent: str | None, said: str) -> bytes:
    """Return one prompt and its answer as two records, named after it."""
    shared = {"sessionId": "s", "isSidechain": False, "timestamp": "2026-01-02T03:04:05.000Z"}
    user = {"role": "user", "content": said}
    answer = {"role": "assistant", "id": f"m{name}", "content": [{"type": "text", "text": "Yes."}]}
    first = {**shared, "type": "user", "uuid": name, "parentUuid": parent, "message": user}
    second = {"type": "assistant", "uuid": f"{name}'", "parentUuid": name, "message": answer}
    return b"".join(encode_line(each) for each in (first, {**shared, **second}))


def test_branches_stand_behind_the_prompt_that_they_leave() -> None:
    data = record("a", None, "first") + record("b", "a'", "second, taken back")
    data += record("c", "b'", "on from there") + record("d", "b'", "and otherwise")
    data += record("e", "a'", "second") + record("f", "e'", "third")
    session = Session(load(BytesSource(data)))
    told = words(session_tree_lines(session, 80, max_prompts=3))
    assert told == [
        "  3 prompts, 2 abandoned branches:",
        "  │ first",
        "  │ └ second, taken back  2 turns, abandoned",
        "  │   └ on from there  1 turn, abandoned",
        "  │ second",
        "  │ third",
    ]
    short = words(session_tree_lines(session, 80, max_prompts=1))
    assert short == ["  3 prompts, 2 abandoned branches (2 above); last:", "  │ third"]


def test_a_session_in_which_nobody_said_anything_says_so() -> None:
    told = words(session_tree_lines(Session(load(BytesSource(b""))), 80))
    assert told == ["  Empty session"]
