"""Events of the engine, as lines: what is printed, and what is shown meanwhile."""

from typing import Any

from tests.console.recording_screen import Paper, paper, words

from steno.agent import events
from steno.console.event_renderer import EventRenderer
from steno.console.screen import TerminalScreen
from steno.llm.messages_api import Response
from steno.permissions.permission_rules import Decision
from steno.tools.protocol import ToolResult


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def stream(columns: int = 80) -> tuple[EventRenderer, Paper, Clock, TerminalScreen]:
    screen, output = paper(columns)
    clock = Clock()
    return EventRenderer(screen, "/home/ada/tide", clock), output, clock, screen


def call(name: str, identity: str = "c1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def test_an_answer_is_printed_once_it_is_whole() -> None:
    told, output, _, _ = stream()
    for piece in ("Good", " day", ".\n\n", "And more"):
        told.handle(events.ContentDelta("text", piece, 0))
    assert output.text == "  Good day.\n"
    assert words(told.live(80, 8)) == ["", "  And more"]
    told.handle(events.ResponseReceived(Response(), ()))
    assert output.text == "  Good day.\n\n  And more\n"
    assert told.live(80, 8) == []


def test_a_step_is_one_line_that_turns_and_then_stands() -> None:
    told, output, clock, _ = stream()
    run = call("Bash", command="make test")
    told.handle(events.ToolStarted(run))
    clock.now += 42
    empty, line = words(told.live(80, 8))
    assert empty == ""
    assert line.startswith("  ⠋ Bash     make test") or "Bash     make test" in line
    assert line.endswith("0:42")
    told.handle(events.ToolOutput("c1", "\x1b[32mone\x1b[0m\ntwo \x1b[2J"))
    assert "two ␛[2J" in words(told.live(80, 8))[1]
    told.handle(
        events.ToolEnded(run, ToolResult("== 31 passed in 4s ==", {"stdout": "== 31 passed in 4s =="}), 42.0, "u1")
    )
    assert told.live(80, 8) == []
    assert output.text.startswith("  ▸ Bash     make test  31 passed")
    assert output.text.rstrip().endswith("42 s ✓")
    assert max(map(len, output.text.splitlines())) <= 79


def test_an_edit_shows_its_diff_and_a_failure_its_last_lines() -> None:
    told, output, _, _ = stream()
    hunk = {"oldStart": 3, "newStart": 3, "lines": [" a", "-b", "+c"]}
    edit = call("Edit", file_path="/home/ada/tide/axis.py", old_string="b", new_string="c")
    told.handle(events.ToolEnded(edit, ToolResult("ok", {"structuredPatch": [hunk]}), 0.1, "u1"))
    assert "▾ Edit     axis.py  +1 \N{MINUS SIGN}1" in output.text
    assert "\N{MINUS SIGN} b" in output.text
    assert "+ c" in output.text
    failed = call("Bash", "c2", command="make")
    said = "Exit code 2\n" + "\n".join(f"line {number}" for number in range(20))
    told.handle(events.ToolEnded(failed, ToolResult(said, is_error=True), 0.1, "u2"))
    assert "exit 2" in output.text
    assert "line 19" in output.text
    assert "line 11" not in output.text
    assert "last 8 of 20 lines · ctrl-o to show all" in output.text


def test_what_was_refused_says_so() -> None:
    told, output, _, _ = stream()
    run = call("Bash", command="rm -rf /")
    told.handle(events.CallDenied(run, Decision("deny", "no")))
    told.handle(events.ToolEnded(run, ToolResult("no", is_error=True), 0.0, "u1"))
    assert "rm -rf /  denied" in output.text


def test_thoughts_are_dim_while_they_come_and_one_line_after() -> None:
    told, output, clock, _ = stream()
    told.handle(events.ContentDelta("thinking", "A degree is 9/5 of another.", 0))
    assert words(told.live(80, 8)) == ["  │ A degree is 9/5 of another."]
    clock.now += 9
    told.handle(events.ContentDelta("text", "The fraction is wrong.", 1))
    assert output.text.startswith("  ▸ Thought  A degree is 9/5 of another.")
    assert "9.0 s" in output.text


def test_sub_agents_are_lines_of_their_own() -> None:
    told, output, clock, _ = stream()
    task = call("Agent", description="check the charts", subagent_type="reader", prompt="…")
    told.handle(events.ToolStarted(task))
    inner = call("Read", "i1", file_path="/home/ada/tide/a.py")
    told.handle(events.SubagentEvent("c1", events.ToolStarted(inner)))
    lines = words(told.live(80, 8))[1:]
    assert "reader   check the charts" in lines[0]
    assert lines[1] == "    └ Read /home/ada/tide/a.py"
    told.handle(events.SubagentEvent("c1", events.ToolEnded(inner, ToolResult("x"), 0.1, "u")))
    clock.now += 21
    told.handle(events.ToolEnded(task, ToolResult("done", {"status": "completed"}), 21.0, "u"))
    assert told.live(80, 8) == []
    assert "reader   check the charts  1 step" in output.text


def test_a_sub_agent_in_the_background_is_told_when_it_ends() -> None:
    told, output, _, _ = stream()
    task = call("Agent", description="look", subagent_type="reader", prompt="…")
    told.handle(events.ToolStarted(task))
    told.handle(events.SubagentEvent("c1", events.RequestSent("m", 1)))
    told.handle(events.ToolEnded(task, ToolResult("launched", {"isAsync": True}), 0.0, "u"))
    assert output.text == ""
    assert "reader   look" in words(told.live(80, 8))[1]
    told.handle(events.SubagentEvent("c1", events.TurnEnded("done", "x", 1, 1.0, {}, 0)))
    assert "reader   look  0 steps" in output.text
    assert told.live(80, 8) == []


def test_the_list_of_things_to_do_stays_in_sight_until_it_is_done() -> None:
    told, _, _, _ = stream()

    def write(*states: str) -> None:
        todos = [{"content": f"thing {at}", "status": state} for at, state in enumerate(states)]
        detail = {"oldTodos": [], "newTodos": todos}
        told.handle(events.ToolEnded(call("TodoWrite", todos=todos), ToolResult("ok", detail), 0, "u"))

    write("completed", "in_progress", "pending")
    assert words(told.live(80, 8)) == ["", "  ✓ thing 0", "  ▸ thing 1", "  ◻ thing 2"]
    write(*["completed"] * 3, "in_progress", *["pending"] * 20)
    lines = words(told.live(80, 8))
    assert len(lines) == 6
    assert lines[-1].strip() == "3 of 24 done · /todos to show all"
    write(*["completed"] * 3)
    assert told.live(80, 8) == []


def test_the_region_stays_within_its_rows() -> None:
    told, _, _, _ = stream()
    for number in range(30):
        told.handle(events.ToolStarted(call("Read", f"c{number}", file_path=f"/f{number}")))
    told.handle(events.ContentDelta("text", "word " * 400, 0))
    for rows in (3, 5, 8, 12):
        assert len(told.live(80, rows)) <= rows


def test_the_end_of_a_turn_says_what_it_took() -> None:
    told, output, _, _ = stream()
    usage = {"input_tokens": 200, "output_tokens": 3100, "cache_read_input_tokens": 1800}
    told.handle(events.TurnEnded("done", "x", 2, 108.0, usage, 420_000))
    assert output.text.strip() == "1m48  2.0k in (90% cached)  3.1k out  $0.42"
    more = {"input_tokens": 300, "output_tokens": 3200, "cache_read_input_tokens": 1800}
    told.handle(events.TurnEnded("done", "x", 1, 1.0, more, 430_000))
    assert output.text.strip().endswith("1.0 s  100 in  100 out  $0.01")


def test_what_comes_again_after_a_broken_answer_is_not_told_twice() -> None:
    from steno.llm.messages_api import ApiError

    told, output, _, _ = stream()
    told.handle(events.ContentDelta("text", "Half of an ans", 0))
    for attempt in (1, 2):
        told.handle(events.Retrying(attempt, 3, 2.0, ApiError("overloaded", kind="overloaded_error")))
        assert words(told.live(80, 8)) == ["", f"  ! overloaded; retry {attempt} of 3 in 2 s"]
    assert output.text == ""
    told.handle(events.ContentDelta("text", "A whole answer.", 0))
    told.handle(events.ResponseReceived(Response(), ()))
    assert "Half" not in output.text
    assert output.text == "  · overloaded; retried\n\n  A whole answer.\n"
    assert told.live(80, 8) == []


def test_a_question_has_no_line_beside_itself() -> None:
    told, _, _, _ = stream()
    told.handle(events.ToolStarted(call("AskUserQuestion", questions=[])))
    assert told.live(80, 8) == []


def test_what_was_being_done_is_told_when_it_is_broken_off() -> None:
    told, output, clock, _ = stream()
    told.handle(events.ToolStarted(call("Bash", command="make test")))
    task = call("Agent", "c2", description="look", subagent_type="reader", prompt="…")
    told.handle(events.ToolStarted(task))
    told.handle(events.SubagentEvent("c2", events.RequestSent("m", 1)))
    clock.now += 5
    told.handle(events.Interrupted("tools"))
    first, second, *_ = output.text.splitlines()
    assert first.startswith("  ▸ Bash     make test  interrupted")
    assert first.endswith("5.0 s ◻")
    assert second.startswith("  ▸ reader   look  interrupted")
    assert output.text.endswith("◻ Interrupted · type what to do instead\n")
    assert told.live(80, 8) == []


def test_what_the_model_declines_is_not_said_twice_and_what_a_hook_says_once() -> None:
    told, output, _, _ = stream()
    told.begin_turn()
    told.handle(events.ContentDelta("text", "I cannot.", 0))
    told.handle(events.ResponseReceived(Response(stop_reason="refusal"), ()))
    told.handle(events.TurnEnded("refused", "I cannot.", 1, 1.0, {}, 0))
    assert output.text.count("I cannot.") == 1
    assert "The model declined to answer" in output.text
    told.begin_turn()
    told.handle(events.TurnEnded("refused", "No such words here.", 1, 1.0, {}, 0))
    assert output.text.count("No such words here.") == 1
    assert output.text.count("declined to") == 1


def test_after_an_error_the_next_thing_to_do_is_told() -> None:
    told, output, _, _ = stream()
    told.handle(events.TurnEnded("error", "cannot connect", 1, 1.0, {}, 0))
    assert "! cannot connect\n" in output.text
    assert "· Press up, then enter to retry." in output.text
    told.handle(events.TurnEnded("error", "invalid x-api-key", 1, 1.0, {}, 0))
    assert "set a valid ANTHROPIC_API_KEY" in output.text


def test_a_hook_is_a_line_while_it_runs() -> None:
    told, output, _, _ = stream()
    told.handle(events.HookStarted("PreToolUse:Bash", "lint"))
    told.handle(events.HookStarted("PreToolUse:Bash", "check"))
    assert [line.strip() for line in words(told.live(80, 8)) if line] == ["· hook PreToolUse:Bash"]
    told.handle(events.HookEnded("PreToolUse:Bash", "lint"))
    assert [line.strip() for line in words(told.live(80, 8)) if line] == ["· hook PreToolUse:Bash"]
    told.handle(events.HookEnded("PreToolUse:Bash", "check"))
    assert told.live(80, 8) == []
    assert output.text == ""
