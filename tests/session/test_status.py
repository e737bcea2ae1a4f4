"""How a session stands, by what it ends with and how old the file is."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders import Session, session, tool
from tests.session.open_sessions import opened, sessions_below

from steno.session.session_status import MODEL_SECONDS, TOOL_SECONDS, WAITING_SECONDS, status_of

BASH = tool("Bash", command="make")
ASK = tool("AskUserQuestion", questions=[{"question": "Which?"}])


def standing(made: Session, age: float | None = None) -> str:
    return str(opened(made).status(age))


def test_an_answered_session_waits_while_it_is_fresh() -> None:
    made = session("2.1.42").turn("go", "done")
    assert standing(made, 1) == "waiting"
    assert standing(made, WAITING_SECONDS + 1) == "finished"
    assert standing(made) == "finished"


def test_a_session_that_was_closed_is_finished_at_once() -> None:
    made = session(full=True).turn("go", "done").exit()
    found = opened(made).status(1)
    assert (found.standing, found.reason) == ("finished", "Claude Code was closed")
    assert standing(made.user("more"), 1) == "running"


def test_an_open_call_is_running_until_it_is_too_old() -> None:
    made = session("2.1.42").user("go").assistant(BASH)
    assert opened(made).status(1).reason == "Bash make"
    assert standing(made, 1) == "running"
    assert standing(made, TOOL_SECONDS + 1) == "interrupted"
    assert standing(made) == "interrupted"


def test_an_open_question_waits_for_the_user_however_old() -> None:
    made = session("2.1.42").user("go").assistant(ASK)
    assert standing(made, 1) == "waiting"
    assert standing(made) == "waiting"


def test_a_prompt_or_a_result_without_an_answer() -> None:
    for made in (
        session("2.1.42").user("go"),
        session("2.1.42").user("go").assistant(BASH).result("x"),
        session("2.1.325").user("go").assistant("Let me", stop="tool_use"),
    ):
        assert standing(made, 1) == "running"
        assert standing(made, MODEL_SECONDS + 1) == "interrupted"


def test_an_interruption_and_a_failure_are_what_they_are() -> None:
    assert standing(session().user("go").assistant(BASH).interrupt(), 1) == "interrupted"
    found = opened(session().user("go").fatal("API Error: 400 too long", status=400)).status(1)
    assert (found.standing, found.reason) == ("failed", "API Error: 400 too long")


def test_local_commands_leave_the_standing_alone() -> None:
    assert standing(session("2.1.42").turn("go", "done").command("cost", says="$1")) == "finished"
    assert standing(session("2.1.42").command("cost", says="$1")) == "finished"
    assert standing(session("2.1.42").shell("ls", "x")) == "finished"


def test_an_answer_behind_a_call_without_a_result_finishes_the_session() -> None:
    made = session("2.1.42").user("go").assistant(BASH).assistant("done")
    assert standing(made) == "finished"
    assert standing(made, 1) == "waiting"


def test_an_empty_session_is_finished() -> None:
    assert opened(session()).status().reason == "no messages"


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("2.1.325/plain", "finished"),
        ("2.1.325/apifatal", "failed"),
        ("2.1.29/apifatal", "failed"),
        ("2.1.42/tui_interrupt", "finished"),
    ],
)
def test_real_sessions_stand_as_they_should(shared: Path, place: str, expected: str) -> None:
    found = sessions_below(shared / "corpus" / "real-client" / place)
    assert {str(each.status()) for each in found if each.turns()} == {expected}


@pytest.mark.parametrize("call", [BASH, ASK])
@pytest.mark.parametrize("age", [1, TOOL_SECONDS + 1, None])
def test_a_call_is_not_open_any_more_when_the_client_was_closed(call: Any, age: float | None) -> None:
    turns = opened(session("2.1.42").user("go").assistant(call)).turns()
    found = status_of(turns, seconds_since_write=age, left=True)
    assert found.standing == "interrupted"
    assert "returned no result" in found.reason


def test_a_model_is_not_at_work_any_more_when_the_client_was_closed() -> None:
    turns = opened(session("2.1.42").user("go")).turns()
    assert str(status_of(turns, seconds_since_write=1, left=True)) == "interrupted"
    assert str(status_of(turns, seconds_since_write=1, left=False)) == "running"
