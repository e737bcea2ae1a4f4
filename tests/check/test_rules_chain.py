"""Rules about parents."""

import re

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.builders.everything import everything
from tests.check.rule_findings import bad, ids, joined, look, messages

from steno.session.resume.clients import LATEST

GHOST = "99999999-0000-4000-8000-000000000009"


def plain() -> Session:
    return session().user("Q1").assistant("A1").user("Q2").assistant("A2")


def late() -> Session:
    return session().user("Q1").assistant("A1").wait(60).user("Q2").assistant("A2")


def chain(made: Session | bytes, name: str = "") -> list[tuple[str, str, int]]:
    return [each for each in ids(look(made, name), "chain") if each[0] != "leaf"]


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_every_version_hang_together(version: str) -> None:
    for made in everything(version):
        assert [each for each in chain(made) if each[1] != "info"] == []


@pytest.mark.parametrize("data", [b"", b'{"type":"summary","summary":"S","leafUuid":"x"}\n'])
def test_a_file_without_a_message_is_empty(data: bytes) -> None:
    assert chain(data) == [("empty", "error", 1)]


def test_a_sub_agents_file_is_never_empty() -> None:
    assert chain(b"", "agent-a1") == []


def test_a_missing_parent_is_a_warning() -> None:
    assert chain(plain().retarget(2, GHOST)) == [("dangling", "warning", 3)]


def test_a_missing_parent_that_the_newest_client_cannot_bridge_is_an_error_too() -> None:
    found = look(late().retarget(2, GHOST))
    assert ids(found, "chain")[:2] == [("unreachable", "error", 1), ("dangling", "warning", 3)]
    assert messages(found, "chain.unreachable") == [
        "2 of 4 messages are unreachable; Claude Code 2.1.325 would load 2 (50 %)"
    ]


def test_a_note_without_its_parent_is_harmless() -> None:
    made = plain()
    made.record("progress", parentUuid=GHOST, move=False)
    assert [each[:2] for each in chain(made)] == [("dangling-note", "info")]


def test_a_missing_parent_before_a_compaction_is_mild() -> None:
    made = plain().compact("All of it.").user("Q3").assistant("A3").retarget(2, GHOST)
    assert ("dangling", "info", 3) in chain(made)


def test_a_record_that_is_its_own_parent_is_an_error() -> None:
    made = plain()
    made.retarget(2, made.uuids()[2])
    assert chain(made) == [("self-parent", "error", 3)]


def test_parents_in_a_circle_are_an_error_on_the_first_of_them() -> None:
    found = look(plain().cycle())
    assert ("cycle", "error", 1) in ids(found, "chain")
    assert messages(found, "chain.cycle") == ["The parents of 4 records form a cycle"]


def test_a_circle_beside_the_conversation_cuts_messages_off() -> None:
    made = plain()
    made.retarget(0, made.uuids()[1])
    assert ("cycle", "error", 1) in chain(made)


def test_records_before_their_parents_are_told_once() -> None:
    made = plain()
    found = look(joined(*reversed(made.lines())), made.session_id)
    assert messages(found, "chain.forward") == ["3 of 4 records come before their parents"]


def test_a_second_beginning_is_told() -> None:
    made = plain().rewind(0).user("Another.").assistant("Fine.")
    assert ("several-roots", "info", 5) in chain(made)


def test_a_compaction_is_no_second_beginning() -> None:
    made = plain().compact("All of it.").user("Q3").assistant("A3")
    assert chain(made) == []


def test_an_answer_without_a_parent_was_cut_off() -> None:
    found = look(plain().retarget(3, None))
    assert ids(found, "chain") == [("unreachable", "error", 1), ("lost-parent", "error", 4)]
    assert messages(found, "chain.unreachable") == [
        "3 of 4 messages are unreachable; Claude Code 2.1.325 would load 1 (25 %)"
    ]


def test_a_result_without_a_parent_was_cut_off() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a")).result("R").assistant("A")
    assert ("lost-parent", "error", 3) in chain(made.retarget(2, None))


def test_a_branch_is_not_lost() -> None:
    made = plain().rewind(1).user("Q3").assistant("A3")
    assert chain(made) == []


def test_clients_that_go_on_from_different_messages_are_told() -> None:
    made = session().user("Q1").assistant("A1").user("B1").assistant("B1A")
    made.rewind(1).user("B2").assistant("B2A")
    lines = [line for line in made.lines() if b"last-prompt" not in line]
    found = look(joined(*lines[:2], *lines[4:], *lines[2:4]), made.session_id)
    assert messages(found, "chain.leaf") == ["2.1.325 resumes from line 6, 2.1.42 from line 4"]


def test_a_session_left_at_a_sub_agents_record_cannot_be_reached() -> None:
    made = plain()
    side = {**made.records()[0], "uuid": GHOST, "isSidechain": True}
    made.side(side).side({"type": "last-prompt", "leafUuid": GHOST, "explicit": True})
    found = look(made)
    assert ("unreachable", "error", 1) in ids(found, "chain")
    assert messages(found, "chain.unreachable")[0].endswith("would load 0 (0 %)")


def test_an_unknown_type_in_the_chain_is_told() -> None:
    made = session().user("Q1").assistant("A1").record("zzz").user("Q2").assistant("A2")
    assert chain(made) == [("unknown-link", "info", 3)]


def test_an_unknown_type_beside_the_chain_is_not() -> None:
    made = session().user("Q1").assistant("A1").record("zzz", move=False).user("Q2")
    assert chain(made.assistant("A2")) == []


def test_a_long_chain_is_followed_without_recursion() -> None:
    made = session()
    for number in range(1500):
        made.user(f"Q{number}")
    assert chain(made.retarget(0, GHOST)) == [("dangling", "warning", 1)]


def test_what_the_newest_client_bridges_is_not_out_of_reach() -> None:
    """It takes the nearest record for the parent of a result whose call has no id."""
    made = session().turn("One.", "First.").user("Two.")
    made.assistant(tool("Bash", command="a"), tool("Grep", pattern="b"))
    lines = made.results("R1", "R2").assistant("Second.").lines()
    lines[3] = lines[3].replace(b'"uuid"', b'"formerly"')
    found = look(joined(*lines))
    assert found.graph.unreachable
    assert found.graph.lost_messages(LATEST) == []
    assert messages(found, "chain.unreachable") == []
    assert "fields.no-uuid" in bad(found)


@pytest.mark.parametrize("at", range(1, 8))
def test_what_is_lost_and_what_is_loaded_add_up(at: int) -> None:
    made = session().turn("One.", "First.").wait(60).turn("Two.", "Second.").wait(60)
    made.turn("Three.", "Third.").wait(60).turn("Four.", "Fourth.")
    found = look(made.retarget(at, GHOST))
    for said in messages(found, "chain.unreachable"):
        figures = re.fullmatch(r"(\d+) of (\d+) .* would load (\d+) \(\d+ %\)", said)
        assert figures is not None
        lost, there, loaded = map(int, figures.groups())
        assert lost + loaded == there
