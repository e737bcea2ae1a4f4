"""What was abandoned, and what only looks so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import VERSIONS, Json, Session, session, tool
from tests.session.open_sessions import check_sound, opened

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.session.turns.branches import Branch


def branches(made: Session) -> list[Branch]:
    found = opened(made)
    check_sound(found)
    return found.branches


@pytest.mark.parametrize("version", VERSIONS)
def test_parallel_calls_are_no_branches(version: str) -> None:
    made = session(version, full=True).user("go")
    made.assistant(*(tool("Bash", command=name) for name in "abcd"))
    for place in (3, 1, 0, 2):
        made.result("x", of=place)
    assert branches(made.assistant("done").done()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rewind_leaves_a_branch(version: str) -> None:
    made = session(version).turn("one", "ok").user("two").assistant(tool("Bash", command="a"))
    made.result("x").assistant("wrong", output=8).rewind(1).turn("three", "right")
    (branch,) = branches(made)
    assert (branch.why, branch.turns, len(branch.nodes)) == ("rewind", 1, 4)
    assert branch.fork is not None
    assert branch.usage.messages == 2
    found = opened(made)
    assert [turn.answer for turn in found.turns()] == ["ok", "right"]
    other = found.branches[0].leaf
    assert [turn.answer for turn in found.turns(other)] == ["ok", "wrong"]


def test_a_prompt_taken_back_unanswered_was_edited() -> None:
    made = session().turn("one", "ok").user("two").rewind(1).turn("three", "ok")
    (branch,) = branches(made)
    assert branch.why == "edited"


def test_a_branch_of_a_branch_is_told_apart() -> None:
    made = session().turn("one", "1").turn("two", "2").turn("three", "3")
    made.rewind(2).turn("other three", "3b").rewind(1).turn("other two", "2b")
    found = branches(made)
    assert [len(branch.nodes) for branch in found] == [4, 2]
    assert [branch.turns for branch in found] == [2, 1]


def test_a_second_root_and_a_lost_parent_are_named() -> None:
    made = session("2.1.42").turn("one", "1")
    made.tip = None
    (branch,) = branches(made.turn("two", "2"))
    assert (branch.why, branch.fork) == ("second root", None)
    made = session("2.1.42").turn("one", "1").turn("two", "2").turn("three", "3")
    made.rewind(1).turn("other two", "2b")
    lost = next(place for place, line in enumerate(made.lines()) if b'"two"' in line)
    (branch,) = branches(made.drop(lost))
    assert (branch.why, branch.fork, len(branch.nodes)) == ("dangling", None, 3)


def test_hook_output_beside_a_call_belongs_to_its_turn() -> None:
    made = session("2.1.42").user("go").assistant(tool("Bash", command="a"))
    call = made.tip
    made.record("progress", data={"type": "bash_progress", "output": "1"}, toolUseID="x")
    made.tip = call
    found = opened(made.result("x").assistant("done"))
    check_sound(found)
    assert found.branches == []
    assert [node.type for node in found.turns()[0].nodes].count("progress") == 1


@st.composite
def graphs(draw: st.DrawFn) -> list[Json]:
    """Records with any parents: missing, their own, in rings, behind them, twice the same id."""
    size = draw(st.integers(1, 14))
    names = [*(f"n{number}" for number in range(size)), "gone", None]
    records: list[Json] = []
    for number in range(size):
        kind = draw(st.sampled_from(("user", "assistant", "system", "attachment", "progress", "odd")))
        record: Json = {
            "type": kind,
            "uuid": draw(st.sampled_from((f"n{number}", f"n{number}", "n0", None))),
            "parentUuid": draw(st.sampled_from(names)),
            "timestamp": f"2026-11-15T05:00:{draw(st.integers(0, 59)):02}.000Z",
            "isSidechain": draw(st.sampled_from((False, False, False, True))),
        }
        if kind == "system":
            subtypes = ("turn_duration", "compact_boundary", "api_error", "local_command")
            record["subtype"] = draw(st.sampled_from(subtypes))
            record["logicalParentUuid"] = draw(st.sampled_from(names))
        if kind in ("user", "assistant"):
            record["message"] = draw(messages(kind))
        records.append(record)
    return records


def use(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def result(name: str) -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": "x"}


def messages(role: str) -> st.SearchStrategy[Json]:
    calls = st.sampled_from(("t1", "t2", "t3")).map(use if role == "assistant" else result)
    said = st.just({"type": "text", "text": "words"})
    content = st.lists(calls | said, max_size=3) | st.just("words")
    ids = st.sampled_from(("m1", "m2", None))
    fixed = {"role": st.just(role), "model": st.just("x")}
    return st.fixed_dictionaries({**fixed, "content": content, "id": ids})


@given(graphs())
def test_no_graph_raises_or_loses_a_record(records: list[Json]) -> None:
    data = b"".join(encode_line(record) for record in records)
    found = Opened(load(BytesSource(data)), name="x")
    check_sound(found)
    for branch in found.branches:
        assert branch.turns >= 0
        assert branch.leaf in branch.nodes
        found.turns(branch.leaf)
    assert found.status(1.0).standing
    assert found.usage.messages >= 0
    assert len(found.agents) + len(found.loose_agents) <= len(found.all_agents)


def test_a_long_chain_with_many_branches_is_no_burden() -> None:
    records: list[Json] = []
    for number in range(6000):
        parent = f"u{number - (1 if number % 3 else 3)}" if number else None
        role = "assistant" if number % 3 == 2 else "user"
        message = {"role": role, "content": "x", "id": f"m{number}", "model": "x"}
        stamp = "2026-11-15T05:00:00.000Z"
        record = {"type": role, "uuid": f"u{number}", "parentUuid": parent, "timestamp": stamp}
        records.append({**record, "message": message})
    found = Opened(load(BytesSource(b"".join(map(encode_line, records)))), name="x")
    check_sound(found)
    assert len(found.branches) == 1999
