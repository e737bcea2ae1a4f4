"""A session answers what people ask of it."""

from pathlib import Path

import pytest
from tests.builders import VERSIONS, session, text, tool
from tests.builders.stories import stories
from tests.corpus import transcripts
from tests.session.open_sessions import check_sound, opened, opened_file, sessions_below

from steno.errors import Ambiguous, NotFound
from steno.format.source import BytesSource
from steno.session.session import Session as Opened
from steno.session.transcript import load


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_says_where_when_and_with_what_it_ran(version: str) -> None:
    made = session(version, cwd="/home/ada/tide", full=True).turn("go", "done")
    found = opened(made.exit())
    assert found.project == "/home/ada/tide"
    assert found.branch == "main"
    assert found.versions == (version,)
    assert len(found.models) == 1
    assert found.started is not None
    assert found.ended is not None
    assert found.started <= found.ended
    assert found.human_turns == 1
    assert found.continues == ()


def test_a_session_that_moved_belongs_where_it_began() -> None:
    made = session(cwd="/a").turn("go", "done")
    made.cwd, made.branch = "/b", "other"
    found = opened(made.turn("more", "done"))
    assert (found.cwds, found.project) == (("/a", "/b"), "/a")


def test_a_fork_names_the_session_it_comes_from() -> None:
    made = session().turn("go", "done")
    fork = opened(made.fork(traced=True).turn("more", "done"))
    assert fork.forked_from == made.session_id
    assert fork.continues == (made.session_id,)
    assert len(fork.turns()) == 2


def test_a_cleared_session_names_the_one_before() -> None:
    made = session().turn("go", "done")
    found = opened(made.clear().turn("new", "done"))
    assert found.continues == (made.session_id,)


def test_copied_records_name_the_session_they_come_from() -> None:
    first = session("1.0.128").turn("go", "done")
    second = session("1.0.128", seed="second").turn("more", "done")
    data = first.bytes() + second.bytes()
    found = Opened(load(BytesSource(data)), name=second.session_id)
    assert found.resumed_from == (first.session_id,)


def test_files_and_commands_take_in_the_sub_agents() -> None:
    made = session().user("go").assistant(tool("Agent", prompt="p", description="d"))
    made.agent(lambda agent: agent.assistant(tool("Bash", command="inner")).result("x"))
    made.assistant(tool("Bash", command="outer")).result("x")
    edit = tool("Edit", file_path="/a", old_string="x", new_string="y")
    made.assistant(edit).result("ok", detail=None).assistant("done")
    found = opened(made)
    assert found.commands == ["outer", "inner"]
    assert [(touch.path, touch.verb) for touch in found.files] == [("/a", "Edit")]


def test_a_wake_up_that_is_still_to_come_is_known() -> None:
    call = tool("ScheduleWakeup", delaySeconds=60, reason="poll the build")
    made = session().user("go").assistant(call).result("ok").assistant("Later.")
    found = opened(made)
    assert found.wake is not None
    assert found.wake.subject == "poll the build"
    assert opened(made.turn("more", "done")).wake is None


def test_usage_counts_what_was_abandoned() -> None:
    made = session().turn("one", "1").user("two").assistant(text("2"), output=5).rewind(1)
    found = opened(made.user("three").assistant(text("3"), output=7))
    assert found.usage.messages == 3
    assert sum(turn.usage.messages for turn in found.turns()) == 2


def test_the_stories_of_the_demo_hold_what_they_promise() -> None:
    found = [opened(made) for made in stories()]
    assert {str(each.status()) for each in found} >= {"finished", "waiting", "failed", "interrupted"}
    assert any(each.branches for each in found)
    assert any(each.compactions for each in found)
    assert any(each.forked_from for each in found)
    assert all(each.title.text != "(session)" for each in found)
    assert not any(thread for each in found for thread in each.loose_agents if not thread.warmup)


@pytest.mark.corpus
def test_every_real_file_is_told_without_loss(shared: Path) -> None:
    for path in transcripts(shared):
        found = opened_file(path)
        check_sound(found)
        for turn in found.turns():
            for step in turn.steps:
                assert step.verb, path
                assert "\n" not in step.verb + step.subject + step.outcome, path
        assert found.usage.messages >= 0
        assert found.title.text
        assert found.status(60).reason


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("2.1.325/tui_bang", ["shell", "human", "human"]),
        ("2.1.325/tui_agent", ["human", "notification", "human"]),
        ("2.1.325/tui_rewind_noprompt", ["human", "human", "human"]),
        ("2.0.76/tui_queue", ["human", "human", "human"]),
        ("2.1.42/tui_queue", ["human", "human", "human"]),
        ("2.1.42/tui_interrupt", ["human"] * 4),
        ("2.1.42/subbg", ["human", "notification"]),
    ],
)
def test_real_sessions_have_the_turns_that_were_played(shared: Path, place: str, expected: list[str]) -> None:
    folder = shared / "corpus" / "real-client" / place
    (found,) = (each for each in sessions_below(folder) if each.turns())
    assert [turn.prompt.origin for turn in found.turns() if turn.prompt] == expected
    assert found.branches == []


@pytest.mark.corpus
def test_what_was_queued_in_a_real_session_is_a_step(shared: Path) -> None:
    for version in ("2.0.76", "2.1.42"):
        folder = shared / "corpus" / "real-client" / version / "tui_queue"
        (found,) = (each for each in sessions_below(folder) if each.turns())
        queued = [step.subject for step in found.turns()[0].steps if step.kind == "queued"]
        assert queued == ["SCN:more queued message"]


@pytest.mark.corpus
def test_real_interruptions_are_seen(shared: Path) -> None:
    for version in ("1.0.128", "2.0.76", "2.1.42"):
        folder = shared / "corpus" / "real-client" / version / "tui_interrupt"
        (found,) = (each for each in sessions_below(folder) if each.turns())
        assert [turn.interrupted for turn in found.turns()] == [True, False, True, False]


@pytest.mark.corpus
def test_real_slash_commands_are_turns_only_when_answered(shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / "2.1.325" / "slash"
    asked = {turn.prompt.text: turn.answer for each in sessions_below(folder) for turn in each.turns() if turn.prompt}
    assert asked["/demo args here"]
    assert asked["/hello big world"]
    assert not asked["/context"]


def test_a_record_is_found_by_the_beginning_of_its_id() -> None:
    lines = b"".join(
        b'{"type":"user","uuid":"%s","message":{"role":"user","content":"hi"}}\n' % name
        for name in (b"abc1", b"abc2", b"abc")
    )
    found = Opened(load(BytesSource(lines)))
    assert found.record("abc").uuid == "abc"
    assert found.record("abc2").uuid == "abc2"
    with pytest.raises(Ambiguous) as several:
        found.record("ab")
    assert several.value.candidates == ("abc1", "abc2", "abc")
    for name in ("", "x"):
        with pytest.raises(NotFound):
            found.record(name)
