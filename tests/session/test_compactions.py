"""The seams of a conversation."""

from pathlib import Path

import pytest
from tests.builders import VERSIONS, Json, session, text, tool
from tests.session.open_sessions import check_sound, opened, sessions_below

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.session.turns.compactions import summary_text


@pytest.mark.parametrize("version", VERSIONS)
def test_the_story_goes_on_behind_a_compaction(version: str) -> None:
    made = session(version).turn("one", "1").turn("two", "2").compact("So far: two things.")
    found = opened(made.turn("three", "3"))
    check_sound(found)
    assert [turn.answer for turn in found.turns()] == ["1", "2", "3"]
    (seam,) = found.compactions
    assert [turn.compaction for turn in found.turns()] == [None, None, seam]
    assert (seam.kind, seam.trigger) == ("full", "manual")
    assert seam.summary is not None
    assert found.transcript.record(seam.summary).text.endswith("So far: two things.")
    assert seam.pre_tokens is not None
    assert seam.logical_parent is not None
    assert found.branches == []


def test_a_dangling_logical_parent_is_bridged_by_the_order_of_the_file() -> None:
    made = session("2.1.42").turn("one", "1").compact("Summary.").turn("two", "2")
    boundary = next(line for line in made.records() if line.get("subtype") == "compact_boundary")
    named = f'"logicalParentUuid":"{boundary["logicalParentUuid"]}"'.encode()
    data = made.bytes().replace(named, b'"logicalParentUuid":"gone"')
    assert data != made.bytes()
    found = Opened(load(BytesSource(data)), name="x")
    check_sound(found)
    assert [turn.answer for turn in found.turns()] == ["1", "2"]


def test_a_turn_goes_on_behind_a_compaction_inside_it() -> None:
    made = session().user("go").assistant(tool("Bash", command="a")).result("x")
    made.compact("So far: a.", trigger="auto").assistant("done")
    found = opened(made)
    check_sound(found)
    (turn,) = found.turns()
    assert turn.prompt is not None
    assert (turn.prompt.text, turn.answer, turn.closing) == ("go", "done", None)
    assert turn.compaction is not None
    assert turn.compaction.trigger == "auto"
    assert len(opened(made.turn("next", "yes")).turns()) == 2


def test_a_compaction_at_the_end_closes_the_last_turn_until_something_is_asked() -> None:
    made = session().turn("one", "1").compact("So far: one.")
    found = opened(made)
    (turn,) = found.turns()
    (seam,) = found.compactions
    assert (turn.answer, turn.compaction, turn.closing) == ("1", None, seam)
    first, second = opened(made.turn("two", "2")).turns()
    assert (first.closing, second.answer) == (None, "2")
    assert second.compaction is not None


def test_two_compactions_in_a_row_are_no_turn() -> None:
    made = session().turn("one", "1").compact("So far.").compact("So far again.").turn("two", "2")
    first, second = opened(made).turns()
    assert first.closing is not None
    assert second.compaction is not None
    assert first.closing is not second.compaction


def test_messages_that_were_kept_are_named() -> None:
    made = session().turn("one", "1").turn("two", "2").compact("Summary.", keep=2)
    (seam,) = opened(made.turn("three", "3")).compactions
    assert len(seam.kept) == 2
    assert seam.post_tokens is not None


def test_a_seam_says_what_the_model_had_before_it_when_it_next_answered() -> None:
    made = session().turn("one", "1").much(40_000).turn("two", "2").compact("Summary.")
    waiting = made.user("three")
    (seam,) = opened(waiting).compactions
    assert seam.context is None
    found = opened(waiting.assistant("3").turn("four", "4"))
    (seam,) = found.compactions
    turn = found.turns()[-2]
    assert seam.context == turn.usage.context
    # The client's own figure leaves out what every request begins with.
    assert seam.pre_tokens is not None
    assert seam.post_tokens is not None
    assert seam.context is not None
    assert seam.post_tokens < seam.context < seam.pre_tokens


def test_two_compactions_are_two_seams() -> None:
    made = session().turn("one", "1").compact("A.").turn("two", "2").compact("B.").turn("three", "3")
    found = opened(made)
    check_sound(found)
    assert len(found.compactions) == 2
    assert [turn.compaction is not None for turn in found.turns()] == [False, True, True]


def test_a_micro_compaction_is_no_seam() -> None:
    made = session("2.1.42").user("go").assistant(tool("Bash", command="a")).result("x")
    found = opened(made.microcompact(saved=900).assistant(text("done")))
    (turn,) = found.turns()
    assert turn.compaction is None
    (micro,) = found.compactions
    assert micro.kind == "micro"
    assert micro.pre_tokens is not None
    assert micro.post_tokens == micro.pre_tokens - 900


def test_the_published_dialects_have_compactions_as_well() -> None:
    head = {"sessionId": "s", "timestamp": "2025-01-27T10:00:00Z"}
    flat = [
        {"type": "user", "uuid": "1", "message": "go", **head},
        {"type": "assistant", "subtype": "response", "uuid": "2", "parentUuid": "1"} | head,
        {"type": "compact_system", "uuid": "3", "parentUuid": "2", **head},
        {"type": "compact_system", "uuid": "4", "parentUuid": "3", **head},
        {"type": "user", "uuid": "5", "parentUuid": "4", "message": "next", **head},
    ]
    flat[1]["message"] = "done"
    flat[2]["message"] = "conversation_compacting"
    flat[3]["message"] = "conversation_compacted"
    spoken: list[Json] = [
        {"type": "human", "uuid": "1", "timestamp": 1, "message": {"content": "go"}},
        {"type": "compact_prelude", "uuid": "2", "parentUuid": "1", "timestamp": 2},
        {"type": "compact_recap", "uuid": "3", "parentUuid": "2", "timestamp": 3},
        {"type": "human", "uuid": "4", "parentUuid": "3", "timestamp": 4},
    ]
    spoken[2]["message"] = {"content": "So far."}
    spoken[3]["message"] = {"content": "next"}
    for records, boundary, summary in ((flat, "4", None), (spoken, None, "3")):
        data = b"".join(encode_line(record) for record in records)
        found = Opened(load(BytesSource(data)), name="x")
        check_sound(found)
        (seam,) = found.compactions
        if boundary:
            assert seam.boundary.uuid == boundary
        else:
            assert seam.boundary.is_boundary
            assert seam.boundary.logical_parent == "1"
        assert (seam.summary.uuid if seam.summary else None) == summary
        assert found.turns()[-1].compaction is seam
        prompt = found.turns()[-1].prompt
        assert prompt is not None
        assert prompt.text == "next"


@pytest.mark.corpus
@pytest.mark.parametrize("version", ["1.0.128", "2.0.76", "2.1.29", "2.1.42", "2.1.325"])
def test_real_compactions_are_seams(shared: Path, version: str) -> None:
    folder = shared / "corpus" / "real-client" / version / "compact"
    found = [each for each in sessions_below(folder) if each.compactions]
    assert len(found) == 1
    turns = found[0].turns()
    assert [turn.compaction is not None for turn in turns] == [False, True, False]
    assert [turn.by_person for turn in turns] == [True] * 3
    assert found[0].compactions[0].trigger == "manual"
    assert found[0].compactions[0].summary is not None


@pytest.mark.corpus
def test_a_real_compaction_inside_a_turn(shared: Path) -> None:
    (found,) = sessions_below(shared / "corpus" / "real-client" / "2.1.325" / "autocompact")
    origins = [turn.prompt.origin for turn in found.turns() if turn.prompt]
    assert origins == ["human", "human", "human"]
    assert found.turns()[1].compaction is found.compactions[0]
    assert found.compactions[0].trigger == "auto"


BOUNDARY: Json = {"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}


def test_the_first_prompt_behind_a_documented_compaction_may_be_edited() -> None:
    made = session("2.1.42").turn("one", "1").summary("So far: one.")
    made.link(BOUNDARY, parent=None)
    for asked, answer in (("two", "2"), ("two, edited", "3")):
        made.tip = None
        made.turn(asked, answer)
    found = opened(made)
    assert [turn.answer for turn in found.turns()] == ["1", "3"]
    assert [seam.summary is not None for seam in found.compactions] == [True]
    assert [(branch.why, branch.turns) for branch in found.branches] == [("second root", 1)]


def test_a_record_that_goes_on_from_before_a_boundary_parts_it_from_a_later_root() -> None:
    made = session("2.1.42").turn("one", "1")
    before = made.tip
    made.link(BOUNDARY, parent=None)
    made.tip = before
    made.turn("two", "2")
    made.tip = None
    assert [turn.answer for turn in opened(made.turn("three", "3")).turns()] == ["3"]


@pytest.mark.parametrize("place", ["before", "behind", "named"])
def test_the_summary_of_a_documented_compaction_stands_beside_it_or_names_its_end(place: str) -> None:
    made = session("2.1.42").turn("one", "1")
    last = made.tip or ""
    if place == "before":
        made.summary("So far: one.")
    made.link({**BOUNDARY, "logicalParentUuid": last}, parent=None)
    if place == "behind":
        made.summary("So far: one.", leaf=last)
    made.tip = None
    made.turn("two", "2")
    if place == "named":
        made.summary("So far: one.", leaf=last)
    found = opened(made)
    (seam,) = found.compactions
    assert summary_text(found.transcript, seam) == "So far: one."


def test_the_title_of_another_session_beside_a_boundary_is_no_summary() -> None:
    made = session("2.1.42").turn("one", "1").summary("Elsewhere", leaf="elsewhere")
    made.link(BOUNDARY, parent=None)
    made.tip = None
    found = opened(made.turn("two", "2"))
    (seam,) = found.compactions
    assert summary_text(found.transcript, seam) == ""


def test_every_compaction_inside_a_turn_is_told_once_and_where_it_was() -> None:
    made = session("2.1.42").turn("one", "1").compact("First.").user("go")
    for number, summary in enumerate(("Second.", "Third.", "Fourth.")):
        made.assistant(tool("Bash", command=f"make {number}")).result("x")
        made.compact(summary, trigger="auto")
    made.compact("Fifth.", trigger="auto").assistant("done").compact("Sixth.").compact("Seventh.")
    found = opened(made)
    check_sound(found)
    _, turn = found.turns()
    assert turn.opening is found.compactions[0]
    assert turn.closing is found.compactions[-1]
    assert [*turn.seams, turn.closing] == found.compactions
    seen = [step.seam is not None for step in turn.steps]
    assert seen == [False, True, False, True, False, True, True, True]
    assert turn.before == len(turn.steps) - 1
