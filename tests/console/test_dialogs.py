"""What the console asks: permission, trust, plans, questions, each in a real terminal."""

import json
from collections.abc import Callable
from typing import Any

from tests.console.terminal import DOWN, ENTER, ESC, TAB, Terminal

from steno.llm.testserver.responders import ReleaseEvent, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

Make = Callable[..., Terminal]


def results(console: Terminal) -> str:
    """Return what the model was told last."""
    return str(console.server.requests[-1].body["messages"][-1]["content"])


def test_a_permission_question_explains_and_is_answered_once(terminal: Make) -> None:
    command = "mkdir -p a && PAGER=x git status | tee log.txt && date > date"
    script = ScriptedResponder().on("go", tool("Bash", command=command))
    script.then("Done.")
    console = terminal(script)
    console.open()
    console.say("go on")
    console.sees(
        "Permission",
        "Bash: run this command?",
        "Commands:",
        "! mkdir -p a",
        "! PAGER=x git status",
        "! tee log.txt",
        "! > date",
        "Needs approval:",
        "waiting for input",
    )
    console.send("?")
    console.told("Order of precedence: deny, ask, allow")
    console.sees("Yes")
    console.send("y")
    console.told("Done.")
    console.idle()
    assert (console.project / "a").is_dir()
    assert b"\a" in console.raw
    console.proves()


def test_a_refusal_is_told_to_the_model_in_the_users_words(terminal: Make) -> None:
    script = ScriptedResponder().on("one", tool("Bash", command="touch one")).then("Pity.")
    script.on("two", tool("Bash", command="touch two")).then("Well.")
    script.on("three", tool("Bash", command="touch three")).then("Never.")
    console = terminal(script)
    console.open()
    console.say("one")
    console.sees("Permission")
    console.send("n")
    console.sees("What should be done instead?")
    console.send("use mkdir" + ENTER)
    console.told("› use mkdir", "denied", "Pity.")
    console.idle()
    assert "Feedback: use mkdir" in results(console)
    console.say("two")
    console.sees("Permission")
    console.send(TAB)
    console.sees("enter to reject with feedback")
    console.send("not now" + ENTER)
    console.told("Well.")
    console.idle()
    assert "Feedback: not now" in results(console)
    console.say("three")
    console.sees("Permission")
    console.send(ESC)
    console.sees("Interrupted")
    console.idle()
    assert "Never." not in console.everything
    assert list(console.project.iterdir()) == []
    console.proves()


def test_a_yes_for_the_session_and_one_for_good_and_a_command_that_is_edited(terminal: Make) -> None:
    script = ScriptedResponder()
    for number in range(4):
        script.on(f"run {number}", tool("Bash", command=f"make step{number}")).then(f"Ran {number}.")
    script.on("again", tool("Bash", command="make step0")).then("Again.")
    console = terminal(script)
    (console.project / "Makefile").write_text("%:\n\t@touch $@\n")
    console.open()
    console.say("run 0")
    console.sees("this session: Bash(make step0)")
    console.send("s")
    console.told("Ran 0.")
    console.idle()
    console.say("again")
    console.told("Again.")
    console.idle()
    console.say("run 1")
    console.sees("Permission", "make step1")
    console.send("e")
    console.sees("Edit command", "make step1")
    console.send("\x7f2" + ENTER)
    console.told("Ran 1.")
    console.idle()
    assert sorted(path.name for path in console.project.glob("step*")) == ["step0", "step2"]
    console.say("run 3")
    console.sees("Permission", "make step3")
    console.send("a")
    console.sees("Choose a rule", "Bash(make step3)")
    console.send(ENTER)
    console.sees("Save this rule in", "Bash(make step3)", "settings.local.json")
    assert not (console.project / ".claude").exists()
    console.send("p")
    console.told("Ran 3.")
    console.idle()
    kept = json.loads((console.project / ".claude" / "settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(make step3)"]
    console.say("/permissions")
    console.told("granted", "Bash(make step0)")
    console.proves()


def test_a_command_of_several_parts_is_allowed_by_a_rule_for_each(terminal: Make) -> None:
    script = ScriptedResponder()
    for number in range(2):
        command = tool("Bash", command=f"make a{number} && git status && make b{number}")
        script.on(f"run {number}", command).then(f"Ran {number}.")
        script.on(f"again {number}", command).then(f"Ran {number} again.")
    console = terminal(script)
    (console.project / "Makefile").write_text("%:\n\t@touch $@\n")
    console.open()
    console.say("run 0")
    console.sees("this session: Bash(make a0), Bash(git status), Bash(make b0)")
    console.send("s")
    console.told("Ran 0.")
    console.idle()
    console.say("run 1")
    console.sees("Permission")
    console.send("a")
    console.sees("Save this rule in", "  Bash(make a1)", "  Bash(make b1)")
    console.send("p")
    console.told("Ran 1.")
    console.idle()
    kept = json.loads((console.project / ".claude" / "settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(make a1)", "Bash(make b1)"]
    for number in range(2):
        console.say(f"again {number}")
        console.told(f"Ran {number} again.")
        console.idle()
    console.proves()


def test_an_edit_is_seen_before_it_is_made(terminal: Make) -> None:
    script = ScriptedResponder().on("mend", tool("Read", file_path="a.py"))
    script.then(tool("Edit", file_path="a.py", old_string="x = 1", new_string="x = 2"))
    script.then("Mended.")
    console = terminal(script)
    (console.project / "a.py").write_text("".join(f"y{at} = 0\n" for at in range(40)) + "x = 1\n")
    console.open()
    console.say("mend it")
    console.sees("Edit: change this file?", "Needs approval: changes a.py", "41 \N{MINUS SIGN} x = 1", "41 + x = 2")
    assert str(console.project) not in console.text
    assert "x = 1" in (console.project / "a.py").read_text()
    console.send("d")
    console.waits(lambda: console.everything.count("41 + x = 2") == 2)
    console.send("y")
    console.told("▾ Edit     a.py  +1 \N{MINUS SIGN}1", "Mended.")
    console.idle()
    console.proves()


def test_nothing_of_what_is_agreed_to_is_left_out(terminal: Make) -> None:
    lines = "\n".join(f"echo {number} >> made" for number in range(30))
    change = {"old_string": "x = 1", "new_string": "x = " + "1 + " * 30 + "Ω"}
    script = ScriptedResponder().on("run", tool("Bash", command=lines)).then("Ran.")
    script.on("mend", tool("Read", file_path="a.py"))
    script.then(tool("Edit", file_path="a.py", **change)).then("Mended.")
    console = terminal(script, columns=80)
    (console.project / "a.py").write_text("x = 1\n")
    console.open()
    console.say("run it")
    console.sees("echo 11 >> made", "… 18 more lines · d to show all", "Needs approval:", "! echo 0 > made")
    assert "echo 29 >> made" not in console.everything
    console.send("d")
    console.told("echo 12 >> made", "echo 29 >> made")
    console.sees("Permission")
    console.send("n")
    console.sees("What should be done instead?")
    console.send(ENTER)
    console.told("Ran.")
    console.idle()
    console.say("mend it")
    console.sees("Permission", "Ω", "this session: Edit(/a.py)")
    console.resize(40, 30)
    console.sees("Ω", "esc to")
    console.send("y")
    console.told("Mended.")
    console.say("/diff")
    console.waits(lambda: console.text.count("Ω") == 1)
    console.proves()


def test_whoever_types_does_not_answer_by_accident(terminal: Make) -> None:
    gate = ReleaseEvent()
    script = ScriptedResponder().on("go", tool("Bash", command="touch made"), after=gate).then("Done.")
    script.otherwise("Heard.")
    console = terminal(script)
    console.open()
    console.say("go")
    console.send("wh")
    console.sees("› wh")
    gate.release()
    console.sees("Permission", "tab to answer the dialog")
    console.send("y not")
    console.sees("› why not")
    assert not (console.project / "made").exists()
    console.send(TAB)
    console.loses("tab to answer")
    console.send("y")
    console.told("Done.")
    console.waits((console.project / "made").exists)
    console.sees("› why not")
    console.proves()


def test_a_folder_is_trusted_only_when_the_user_says_so(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script)
    (console.project / "CLAUDE.md").write_text("Always say please.\n")
    console.open(wait="Trust this directory?")
    console.sees("CLAUDE.md", "ignored until you trust")
    console.send("n")
    console.say("hello")
    console.told("Yes.")
    console.idle()
    assert "say please" not in json.dumps(console.server.requests[-1].body)
    console.send("\x04\x04")
    console.ends()
    console.open(wait="Trust this directory?")
    console.send("y")
    console.say("hello again")
    console.told("Yes.")
    console.idle()
    assert "say please" in json.dumps(console.server.requests[-1].body)
    console.send("\x04\x04")
    console.ends()
    console.open()
    console.idle()
    assert "Trust this" not in console.text
    console.proves()


def test_a_plan_is_shown_whole_and_agreed_to(terminal: Make) -> None:
    plan = "# The plan\n\n" + "\n".join(f"{at}. step {at}" for at in range(1, 31))
    script = ScriptedResponder().on("plan", tool("ExitPlanMode", plan=plan))
    script.then(tool("ExitPlanMode", plan="# Shorter"))
    script.then(tool("Write", file_path="made.txt", content="x\n")).then("Built.")
    console = terminal(script)
    console.open("--permission-mode", "plan")
    console.sees("plan")
    console.say("plan it")
    console.sees("Approve this plan?")
    console.told("The plan", "1 step 1", "30 step 30")
    console.send("n")
    console.sees("What should change?")
    console.send("make it shorter" + ENTER)
    console.told("Shorter")
    console.sees("Approve this plan?")
    assert "make it shorter" in results(console)
    console.send("y")
    console.told("Built.")
    console.sees("accept edits")
    console.idle()
    assert (console.project / "made.txt").exists()
    console.proves()


def test_questions_are_answered_by_choice_by_several_and_in_words(terminal: Make) -> None:
    def question(words: str, *, many: bool = False) -> dict[str, Any]:
        labels = ("Red", "Green", "Blue")
        options = [{"label": each, "description": f"all {each.lower()}"} for each in labels]
        return {"question": words, "header": "Colour", "options": options, "multiSelect": many}

    asked = [question("Which?"), question("Which ones?", many=True), question("And?")]
    script = ScriptedResponder().on("ask", tool("AskUserQuestion", questions=asked)).then("Noted.")
    console = terminal(script)
    console.open()
    console.say("ask me")
    console.sees("Which?", "Red", "all green", "tab to type an answer")
    console.send(DOWN + ENTER)
    console.sees("Which ones?", "◻  1  Red")
    console.send("1" + "3")
    console.sees("✓  1  Red", "✓  3  Blue")
    console.send(ENTER)
    console.sees("And?")
    console.send(TAB + "none of these" + ENTER)
    console.told("Noted.", "Which ones? Red, Blue")
    console.idle()
    said = results(console)
    assert '"Which?"="Green"' in said
    assert '"Which ones?"="Red, Blue"' in said
    assert '"And?"="none of these"' in said
    console.proves()
