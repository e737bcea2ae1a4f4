"""A conversation as turns."""

import pytest
from tests.builders import VERSIONS, Session, answer, session, text, thinking, tool
from tests.builders.stories import stories
from tests.session.open_sessions import check_sound, opened

from steno.session.session import Session as Opened
from steno.session.turns.turn_builder import Turn


def turns(made: Session) -> list[Turn]:
    found = opened(made)
    check_sound(found)
    return found.turns()


def origins(made: Session) -> list[str]:
    return [turn.prompt.origin if turn.prompt else "" for turn in turns(made)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_turn_is_a_prompt_its_steps_and_the_answer(version: str) -> None:
    made = session(version, full=True).user("Mend it.")
    made.assistant(thinking("Hm."), text("Let me look."), tool("Read", file_path="/a")).result("x")
    made.assistant(text("Mended."), text("Enjoy.")).done().turn("Thanks.", "Welcome.")
    first, second = turns(made)
    assert first.prompt is not None
    assert first.prompt.text == "Mend it."
    shown = [step.kind for step in first.steps if step.kind not in ("note", "hook")]
    assert shown == ["thought", "words", "tool"]
    assert first.answer == "Mended.\n\nEnjoy."
    assert first.done
    assert (second.number, second.answer) == (2, "Welcome.")


@pytest.mark.parametrize("version", VERSIONS)
def test_parallel_calls_find_their_results_in_any_order(version: str) -> None:
    made = session(version).user("go")
    made.assistant(*(tool("Bash", command=name) for name in "abc"))
    for place in (2, 0, 1):
        made.result("\n".join("x" * (place + 2)), of=place)
    (turn,) = turns(made.assistant("done"))
    assert [(step.subject, step.outcome) for step in turn.steps] == [
        ("a", "2 lines"),
        ("b", "3 lines"),
        ("c", "4 lines"),
    ]
    assert turn.commands == ("a", "b", "c")


def test_a_result_inside_a_streaming_response_finds_its_call() -> None:
    made = session().user("go")
    made.assistant(tool("Bash", command="a"), answer("1"), tool("Bash", command="b"))
    (turn,) = turns(made.result("1\n2").assistant("done"))
    assert [step.outcome for step in turn.steps] == ["1 line", "2 lines"]


def test_a_command_that_leads_to_nothing_is_a_note_of_the_turn_before() -> None:
    made = session().turn("one", "ok").command("model", "small", says="Set.").turn("two", "ok")
    first, second = turns(made)
    note = next(step for step in first.steps if step.verb == "/model")
    assert (note.kind, note.subject, note.outcome) == ("note", "small", "Set.")
    assert second.prompt is not None
    assert second.prompt.text == "two"


def test_a_command_before_anything_else_belongs_to_the_first_prompt() -> None:
    (turn,) = turns(session().command("clear").turn("one", "ok"))
    assert turn.prompt is not None
    assert turn.prompt.text == "one"
    assert any(step.verb == "/clear" for step in turn.steps)


def test_a_session_of_nothing_but_a_command_has_one_turn() -> None:
    (turn,) = turns(session().command("cost", says="$1"))
    assert turn.prompt is not None
    assert (turn.prompt.text, turn.done) == ("/cost", True)


def test_a_command_that_is_answered_is_a_turn() -> None:
    made = session().turn("one", "ok")
    made.words("<command-message>demo</command-message>\n<command-name>/demo</command-name>")
    assert origins(made.meta("Do the demo.").assistant("done")) == ["human", "command"]


def test_a_shell_escape_is_a_turn_answered_or_not() -> None:
    made = session("2.0.76").shell("ls", "a\nb").turn("one", "ok")
    first, _ = turns(made)
    assert first.prompt is not None
    assert (first.prompt.origin, first.prompt.text, first.done) == ("shell", "ls", True)
    assert [(step.verb, step.subject) for step in first.steps] == [("Output", "a …")]


def test_a_queued_prompt_is_a_step_of_the_running_turn_in_every_version() -> None:
    for version in VERSIONS:
        made = session(version).user("go").assistant(tool("Bash", command="a"))
        made.enqueue("hurry").result("x").absorb()
        (turn,) = turns(made.assistant("done"))
        queued = [step.subject for step in turn.steps if step.kind == "queued"]
        assert queued == ["hurry"], version
        assert turn.answer == "done"


def test_a_queued_prompt_that_had_to_wait_is_a_turn() -> None:
    made = session().user("go").enqueue("next").assistant("done").dequeue().assistant("ok")
    assert origins(made) == ["human", "human"]


def test_an_old_clients_queue_is_the_only_record_of_what_was_absorbed() -> None:
    made = session("2.0.76").user("go").assistant(tool("Bash", command="a"))
    made.queue_operation("enqueue", "hurry").result("x").queue_operation("remove")
    (turn,) = turns(made.assistant("done"))
    assert [step.subject for step in turn.steps if step.kind == "queued"] == ["hurry"]


def test_a_notification_that_wakes_the_agent_begins_a_turn() -> None:
    made = session().user("go").assistant(tool("Agent", prompt="p", description="d"))
    made.agent(lambda agent: agent.assistant("seen"), background=True)
    made.assistant("started").notify().assistant("all done")
    assert origins(made) == ["human", "notification"]


def test_a_notification_taken_up_inside_a_turn_is_a_step() -> None:
    made = session().user("go").assistant(tool("Agent", prompt="p", description="d"))
    made.agent(lambda agent: agent.assistant("seen"), background=True)
    made.assistant(tool("Bash", command="a")).result("x").notify(absorbed=True)
    found = opened(made.assistant("done"))
    check_sound(found)
    (turn,) = found.turns()
    steps = [step for step in turn.steps if step.verb == "Notification"]
    assert [step.agent for step in steps] == [found.agents[0]]


def test_words_beside_a_result_are_kept() -> None:
    made = session().user("go").assistant(tool("Bash", command="a"))
    made.words(
        [
            {"type": "tool_result", "tool_use_id": made.calls[0].id, "content": "x"},
            {"type": "text", "text": "But gently."},
        ]
    )
    (turn,) = turns(made.assistant("done"))
    assert [(step.kind, step.subject) for step in turn.steps] == [("tool", "a"), ("queued", "But gently.")]


def test_a_result_without_a_call_and_a_call_without_a_result_are_steps() -> None:
    made = session("2.1.42").user("go").assistant(tool("Bash", command="a")).result("x")
    lost = made.assistant(tool("Bash", command="b"))
    places = [place for place, line in enumerate(lost.lines()) if b'"tool_use"' in line]
    (turn,) = turns(lost.drop(places[0]))
    assert [(step.verb, step.state) for step in turn.steps] == [("Result", "ok"), ("Bash", "open")]
    assert not turn.done


def test_an_open_call_that_the_conversation_left_behind_was_interrupted() -> None:
    made = session("2.1.42").user("go").assistant(tool("Bash", command="a")).turn("next", "ok")
    first, _ = turns(made)
    assert first.steps[0].state == "interrupted"


def test_retries_are_folded_into_one_step_that_tells_how_it_ended() -> None:
    made = session().user("go").api_error(529, "Overloaded", 1).api_error(529, "Overloaded", 2)
    (turn,) = turns(made.assistant("done"))
    (step,) = (step for step in turn.steps if step.kind == "error")
    assert (step.outcome, step.state, turn.errors) == ("2 retries", "ok", 0)
    made = session().user("go").api_error(529, "Overloaded").fatal("API Error: gave up")
    (turn,) = turns(made)
    assert turn.failure is not None
    assert (turn.failure.subject, turn.errors) == ("API Error: gave up", 1)


def test_the_clients_own_measure_of_time_counts() -> None:
    made = session().user("go").wait(5).assistant("done").turn_duration(1500)
    assert turns(made)[0].duration == 1.5
    made = session().user("go").wait(5).assistant("done").wait(3600).command("cost", says="$1")
    seconds = turns(made)[0].duration
    assert seconds is not None
    assert 5 <= seconds < 60


def test_files_and_commands_of_a_turn_are_listed() -> None:
    edit = tool("Edit", file_path="/a", old_string="x", new_string="y\nz")
    made = session().user("go").assistant(edit).result(detail=None, content="ok")
    made.assistant(edit).result(detail=None, content="ok")
    made.assistant(tool("Bash", command="make\ntest")).result("x", error=True)
    (turn,) = turns(made.assistant("done"))
    assert [(touch.path, touch.verb, touch.added) for touch in turn.files] == [("/a", "Edit", 4)]
    assert turn.commands == ("make\ntest",)
    assert turn.errors == 1


def test_only_the_first_step_of_a_response_carries_its_tokens() -> None:
    made = session().user("go").assistant(text("a"), tool("Bash", command="b"), output=9)
    (turn,) = turns(made.result("x").assistant("done", output=4))
    assert [step.tokens for step in turn.steps] == [9, None]
    assert turn.usage.output == 13


def test_what_nobody_has_seen_yet_is_an_ordinary_step() -> None:
    made = session().user("go").record("zebra", stripes=4).attach("quagga", stripes=2)
    made.assistant({"type": "okapi"}, "done")
    (turn,) = turns(made)
    assert [(step.kind, step.verb) for step in turn.steps] == [
        ("unknown", "zebra"),
        ("note", "quagga"),
        ("unknown", "okapi"),
    ]


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_the_published_dialects_have_turns_as_well(dialect: str) -> None:
    made = session(dialect=dialect).user("go").assistant("look", tool("Bash", command="a"))
    made.result("x").assistant("done").turn("next", "ok")
    first, second = turns(made)
    assert first.prompt is not None
    assert (first.prompt.text, first.answer, second.answer) == ("go", "done", "ok")
    (step,) = (step for step in first.steps if step.kind == "tool")
    assert (step.verb, step.subject, step.state) == ("Bash", "a", "ok")


def test_damaged_files_keep_what_could_be_read() -> None:
    made = session("2.1.42").turn("one", "first").turn("two", "second")
    texts = [turn.answer for turn in turns(made.glue(1).nul_run(3))]
    assert texts == ["first", "second"]


def test_records_without_an_id_stay_where_the_file_has_them() -> None:
    made = session("2.1.42").turn("one", "ok")
    made.side({"type": "user", "message": {"role": "user", "content": "lost"}})
    found = turns(made.turn("two", "ok"))
    assert [turn.prompt.text for turn in found if turn.prompt] == ["one", "lost", "two"]


def test_every_story_of_the_demo_is_told() -> None:
    for made in stories():
        found = opened(made)
        check_sound(found)
        assert found.turns()


def test_a_sub_agents_file_can_be_opened_by_itself() -> None:
    made = session().user("go").assistant(tool("Agent", prompt="look", description="d"))
    made.agent(lambda agent: agent.assistant("seen"))
    (turn,) = Opened(opened(made).agents[0].transcript, name="agent-x").turns()
    assert (turn.prompt.origin if turn.prompt else "", turn.answer) == ("agent", "seen")
