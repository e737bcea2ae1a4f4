"""The console in a real terminal: prompts, answers, steps, breaking in, queueing, going on."""

import json
import signal
from collections.abc import Callable

import pytest
from tests.console.kill_points import killed
from tests.console.terminal import DOWN, ENTER, ESC, UP, Terminal
from tests.published import protocol_examples

from steno.llm.testserver.responders import ReleaseEvent, Reply, ReplyBlock, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.store.session_lock import SessionLock

Make = Callable[..., Terminal]


def streamed(*pieces: str | ReleaseEvent) -> ReplyBlock:
    """Return an answer that comes in pieces, with gates between them."""
    words = "".join(piece for piece in pieces if isinstance(piece, str))
    return ReplyBlock({"type": "text", "text": words}, tuple(pieces))


def test_a_conversation(terminal: Make) -> None:
    script = ScriptedResponder().on("hello", "Good **day**.\n\n```python\nprint(1)\n```")
    script.on("look", [thinking("First I look."), text("I look."), tool("Glob", pattern="*")])
    script.then("There is nothing.")
    console = terminal(script)
    console.open()
    console.told("steno chat  project", "opus-4-5", "session")
    console.say("hello")
    console.told("› hello", "Good day.", "print(1)", "out")
    console.say("please look")
    console.told("▸ Thought  First I look.", "I look.", "▸ Glob     *", "There is nothing.", "1 step")
    console.idle()
    console.send("\x04")
    console.sees("Press again to exit")
    console.send("x")
    console.loses("Press again to exit")
    console.send("\x7f\x04")
    console.sees("Press again to exit")
    console.send("\x04")
    assert console.ends() == 0
    console.told("Resume this session: steno chat --resume")
    assert "**" not in console.everything
    console.proves()
    (path,) = console.files
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [each.get("subtype") for each in records].count("turn_duration") == 2
    assert {each["entrypoint"] for each in records if "uuid" in each} == {"cli"}
    assert b"\x1b[?2026h" in console.raw
    assert b"steno: hello" in console.raw


def test_an_answer_is_seen_as_it_comes_and_stays_when_it_is_broken_into(terminal: Make) -> None:
    gate = ReleaseEvent()
    script = ScriptedResponder().on("tell", Reply(content=(streamed("First part.\n\n", "Second p", gate, "art."),)))
    script.on("what", "Nothing.")
    console = terminal(script)
    console.open()
    console.say("tell me")
    console.sees("First part.", "Second p", "working", "esc to interrupt · enter to queue a message")
    console.say("and then this")
    console.sees("queued  and then this")
    console.send(ESC)
    console.sees("Interrupted · type what to do instead")
    console.loses("esc to interrupt")
    gate.release()
    console.idle()
    assert "Second p" in console.everything
    console.sees("› and then this")
    assert len(console.prompts()) == 1
    console.send("\x15")
    console.say("what was it?")
    console.told("Nothing.")
    console.idle()
    console.proves()
    assert "[Request interrupted by user]" in console.prompts()[-1] or len(console.prompts()) == 2


def test_what_is_said_meanwhile_waits_can_be_edited_and_is_heard_at_the_next_chance(terminal: Make) -> None:
    gate = ReleaseEvent()
    script = ScriptedResponder().on("work", tool("Glob", pattern="*.none"), after=gate)
    script.on("also this", "Both done.")
    script.on("later", "Much later.")
    console = terminal(script)
    console.open()
    console.say("work")
    gate.wait_reached()
    console.say("also that")
    console.sees("queued  also that")
    console.send(UP)
    console.loses("queued")
    console.send("\x7f" * 4 + "this" + ENTER)
    console.sees("queued  also this")
    console.say("/todos")
    console.told("› /todos", "No open to-do items")
    gate.release()
    console.told("› also this", "Both done.")
    console.idle()
    assert len([each for each in console.prompts() if "also this" in each]) == 1
    assert "tool_result" in console.prompts()[1]
    assert "also this" in console.prompts()[1]
    console.proves()


def test_sub_agents_are_seen_at_work(terminal: Make) -> None:
    gate = ReleaseEvent()
    task = tool("Agent", description="count files", prompt="Count the files.", subagent_type="Explore")
    script = ScriptedResponder().on("Count the files", tool("Glob", pattern="*.none"))
    script.then("None.", after=gate).on("ask somebody", task).then("There are none.")
    console = terminal(script)
    console.open()
    console.say("ask somebody")
    gate.wait_reached()
    console.sees("Explore  count files  1 step", "└ Glob *.none")
    gate.release()
    console.told("▸ Explore  count files  1 step", "There are none.")
    console.idle()
    console.proves()


def test_text_of_model_and_tools_never_acts_on_the_terminal(terminal: Make) -> None:
    bad = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
    script = ScriptedResponder().on("bad", [text(f"Look: {bad}"), tool("Bash", command=f"printf '{bad}'; false")])
    script.then(f"End {bad}.")
    console = terminal(script)
    console.open("--dangerously-skip-permissions")
    console.say("bad")
    console.told("Look: ␛[2J␛]0;owned␇", "End")
    console.idle()
    sent = console.raw
    assert b"\x1b[2J" not in sent
    assert b"\x1b]0;owned" not in sent
    assert "\u202e".encode() not in sent
    assert b"\xc2\x9b" not in sent


@pytest.mark.parametrize("moment", ["answering", "asking", pytest.param("running", marks=pytest.mark.faults)])
def test_a_session_goes_on_where_it_was_killed(terminal: Make, moment: str) -> None:
    console = killed(terminal, moment)
    console.open("-c")
    console.told("first thing", "Noted.", "second thing")
    console.say("third thing")
    console.told("All is there.")
    console.idle()
    said = json.dumps(console.server.requests[-1].body["messages"])
    assert "first thing" in said
    assert "second thing" in said
    assert said.count('"tool_use"') == said.count('"tool_result"') > 0
    assert not (console.project / "never").exists()
    console.proves()


def test_a_terminal_that_goes_away_leaves_nothing_behind(terminal: Make) -> None:
    script = ScriptedResponder().on("run", tool("Bash", command="touch began; sleep 60; touch ended"))
    console = terminal(script)
    console.open("--dangerously-skip-permissions")
    console.say("run it")
    console.waits((console.project / "began").exists)
    console.kill(signal.SIGTERM)
    assert not (console.project / "ended").exists()
    sessions = list((console.config / "sessions").glob("*.json"))
    assert sessions == []
    console.proves()


def test_sessions_are_picked_forked_named_and_taken_back(terminal: Make) -> None:
    script = ScriptedResponder().on("make it", tool("Write", file_path="made.txt", content="one\n"))
    script.then("Made.").otherwise("Yes.")
    console = terminal(script, rows=40)
    console.open("--permission-mode", "acceptEdits")
    console.say("the first prompt")
    console.told("Yes.")
    console.idle()
    console.say("make it now")
    console.told("Made.", "▾ Write    made.txt  +1")
    console.idle()
    console.say("/diff")
    console.told("made.txt", "1 + one")
    console.say("/rename The first one")
    console.told("Renamed to 'The first one'")
    console.say("/tag kept")
    console.told("Tagged 'kept'")
    console.say("/rewind")
    console.sees("Rewind to a prompt", "make it now", "made.txt")
    console.send(ENTER)
    console.sees("Restore:")
    console.send("b")
    console.told("Restored 1 file", "kept as an abandoned branch")
    console.waits(lambda: not (console.project / "made.txt").exists())
    console.sees("› make it now")
    console.send("\x15again" + ENTER)
    console.waits(lambda: console.everything.count("Yes.") == 2)
    console.idle()
    assert "make it now" not in json.dumps(console.server.requests[-1].body["messages"])
    console.say("/undo")
    console.sees("Restore these files?")
    console.send("y")
    console.waits((console.project / "made.txt").exists)
    console.say("/fork")
    console.told("Forked to")
    console.say("/clear")
    console.told("New session. /resume")
    console.say("/resume")
    console.sees("Resume a session", "The first one", "2 prompts, 1 abandoned branch:")
    console.sees("│ the first prompt", "│ └ make it now", "1 turn, abandoned", "│ again")
    console.send("first one")
    console.waits(lambda: "type to search" in console.text and " of 2 ·" in console.text)
    console.send(DOWN + UP + ENTER)
    console.loses("Resume a session")
    console.sees("│ again")
    console.say("/resume nowhere at all")
    console.told("nowhere at all")
    console.send("\x04\x04")
    assert console.ends() == 0
    console.proves()


def test_the_demonstration_leads_through(terminal: Make) -> None:
    console = terminal(ScriptedResponder(), rows=45)
    console.more["TMPDIR"] = str(console.project)
    console.open("--demo")
    console.sees("Press enter", "› The test of the temperature table")
    console.send(ENTER)
    console.sees("Permission", "change this file?", "celsius * 9 / 5 + 32")
    console.send("y")
    console.told("Fixed:")
    console.sees("› /diff", "Press enter to see")
    console.send(ENTER)
    console.told("+     return celsius * 9 / 5 + 32")
    console.sees("› /rewind")
    console.send(ENTER)
    console.sees("Rewind to a prompt")
    console.send(ESC)
    console.sees("› /help")
    console.send(ENTER)
    console.told("Type a prompt", "/rewind", "!command")
    console.send("\x04\x04")
    assert console.ends() == 0
    console.told("Set ANTHROPIC_API_KEY and run")
    assert "--resume" not in console.text
    assert list(console.project.glob("steno-demo-*")) == []


def test_a_session_that_another_has_is_refused_and_a_changed_one_is_loaded_again(terminal: Make) -> None:
    console = terminal(ScriptedResponder().otherwise("Yes."))
    console.open()
    console.say("the first prompt")
    console.told("Yes.")
    console.idle()
    (first,) = (console.config / "projects").glob("*/*.jsonl")
    console.say("/clear")
    console.told("New session. /resume")
    with SessionLock.acquire(str(first), check_clients=False, env=console.env):
        console.say(f"/resume {first.stem}")
        console.told("is in use by process", "/fork")
    console.say(f"/resume {first.stem}")
    console.sees("│ the first prompt")
    with first.open("ab") as file:
        file.write(b'{"type":"custom-title","customTitle":"x","sessionId":"y"}\n')
    console.say("the second prompt")
    console.told("another program changed", "/resume")
    assert b"the second prompt" not in first.read_bytes()
    console.say(f"/resume {first.stem}")
    console.say("the third prompt")
    console.waits(lambda: b"the third prompt" in first.read_bytes())
    console.idle()
    console.send("\x04\x04")
    assert console.ends() == 0


def test_a_summary_that_is_not_sent_is_told_on_resume(terminal: Make) -> None:
    console = terminal(ScriptedResponder().otherwise("Yes."))
    console.open()
    console.say("the first prompt")
    console.told("Yes.")
    console.idle()
    (first,) = (console.config / "projects").glob("*/*.jsonl")
    made = protocol_examples.compacted()
    first.with_name(f"{made.name}.jsonl").write_bytes(made.data)
    console.say(f"/resume {made.name}")
    console.sees("the compaction summary is not sent")
    console.send("\x04\x04")
    assert console.ends() == 0
