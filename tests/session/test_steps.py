"""The small parts of a step."""

from tests.builders import redacted_thinking, server_tool, session, thinking, tool
from tests.session.open_sessions import opened

from steno.session.turns.steps import one_line


def test_one_line_says_that_there_is_more() -> None:
    assert one_line("  a  ") == "a"
    assert one_line("\n\n a \n b") == "a …"
    assert one_line("x" * 30, 10) == "x" * 9 + "…"
    assert one_line("") == ""


def test_a_step_lasts_from_its_call_to_its_result() -> None:
    made = session().user("go").assistant(tool("Bash", command="a")).wait(7).result("x")
    step = opened(made.assistant("done")).turns()[0].steps[0]
    assert step.duration is not None
    assert step.duration >= 7
    assert step.call is not None
    assert step.result is not None
    assert step.call.index < step.result.index


def test_thoughts_are_steps_read_or_not() -> None:
    made = session().user("go").assistant(thinking("Why?\nBecause."), redacted_thinking(), "done")
    thoughts = [step.subject for step in opened(made).turns()[0].steps if step.kind == "thought"]
    assert thoughts == ["Why? …", ""]


def test_a_call_the_api_carries_out_itself_is_never_open() -> None:
    made = session().user("go").assistant(server_tool("web_search", query="tides"), "done")
    (step,) = opened(made).turns()[0].steps
    assert (step.verb, step.subject, step.state) == ("web_search", "tides", "ok")


def test_hooks_are_steps_with_their_exit_code() -> None:
    made = session().user("go").attach("hook_success", hookName="Stop", hookEvent="Stop", command="./x.sh", exitCode=0)
    made.attach("hook_blocking_error", hookName="PreToolUse:Bash", hookEvent="PreToolUse")
    made.attach("hook_non_blocking_error", hookName="Stop", exitCode=3, command="./y.sh")
    steps = [step for step in opened(made).turns()[0].steps if step.kind == "hook"]
    assert [(step.verb, step.subject, step.outcome, step.state) for step in steps] == [
        ("Stop", "./x.sh", "", "ok"),
        ("PreToolUse:Bash", "", "blocked", "failed"),
        ("Stop", "./y.sh", "exit 3", "failed"),
    ]


def test_the_summary_of_stop_hooks_adds_to_the_hook_before_it() -> None:
    made = session().user("go").assistant("done")
    made.attach("hook_success", hookName="Stop", command="./x.sh", exitCode=0)
    made.stop_hook_summary("./x.sh", errors=("it broke",))
    (step,) = (step for step in opened(made).turns()[0].steps if step.kind == "hook")
    assert (step.outcome, step.state) == ("it broke", "failed")


def test_local_commands_are_notes_with_their_output() -> None:
    made = session().turn("go", "done").command("context", says="10k tokens", local=True)
    note = next(step for step in opened(made).turns()[0].steps if step.verb == "/context")
    assert (note.kind, note.outcome) == ("note", "10k tokens")
