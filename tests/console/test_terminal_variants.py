"""Terminals of all kinds: narrow, resized, without colours, read out, without Unicode, own status."""

import json
import re
from collections.abc import Callable

from tests.console.terminal import DOWN, ENTER, Terminal

from steno.llm.testserver.responders import ReleaseEvent, Reply, ReplyBlock, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

Make = Callable[..., Terminal]
LONG = "A rather long answer with **many** words, so that it has to be broken into lines. " * 6


def test_a_narrow_terminal_and_one_that_is_resized(terminal: Make) -> None:
    gate = ReleaseEvent()
    pieces = (LONG, "\n\nThen ", gate, "the end.")
    words = "".join(piece for piece in pieces if isinstance(piece, str))
    script = ScriptedResponder().on("tell", Reply(content=(ReplyBlock({"type": "text", "text": words}, pieces),)))
    script.on("run", tool("Bash", command="touch " + "x" * 60 + "y")).then("Ran.")
    console = terminal(script, columns=40, rows=20)
    console.open(wait="opus-4-5")
    console.say("tell")
    console.sees("Then")
    console.resize(100, 30)
    console.sees("context")
    console.resize(44, 20)
    gate.release()
    console.told("the end.", "137 out")
    console.say("run")
    console.sees("Permission", "Yes", "xxy  ", "Yes, for this session")
    assert max(len(line) for line in console.text.splitlines()) <= 44
    console.send("y")
    console.told("Ran.", "1 step")
    assert console.everything.count("the end.") == 1
    console.proves()


def test_where_lines_are_broken_anew_nothing_of_the_region_is_left_behind(terminal: Make) -> None:
    script = ScriptedResponder().on("run", tool("Bash", command="touch made")).then("Ran.")
    console = terminal(script, columns=100, rows=50, TMUX="somewhere")
    console.open()
    console.say("run it")
    console.sees("Permission", "esc to cancel")
    console.narrow(60)
    once = ("┌ Permission", "┐", "esc to cancel", "› run it", "steno chat", "default")
    console.waits(
        lambda: max(map(len, console.text.splitlines())) < 60 and all(console.text.count(each) == 1 for each in once),
        "one question",
    )
    console.send("y")
    console.told("Ran.")
    console.proves()


def test_a_terminal_that_can_only_print_is_refused_in_a_word(terminal: Make) -> None:
    console = terminal(ScriptedResponder(), TERM="dumb")
    console.open(wait="")
    assert console.ends() == 2
    assert "Run `steno chat -p PROMPT` to print the answer." in console.text
    assert b"\x1b" not in console.raw


def test_without_colours_nothing_is_coloured(terminal: Make) -> None:
    script = ScriptedResponder().on("hello", f"```python\nprint(1)\n```\n\n{LONG}")
    console = terminal(script, NO_COLOR="1")
    console.open()
    console.say("hello")
    console.told("print(1)")
    console.idle()
    codes = set(re.findall(rb"\x1b\[([0-9;]*)m", console.raw))
    assert codes <= {b"", b"0"}
    console.proves()


def test_for_a_screen_reader_there_are_whole_lines_only(terminal: Make) -> None:
    script = ScriptedResponder().on("go", [text("I go."), tool("Bash", command="touch made")]).then("Done.")
    console = terminal(script)
    console.open("--screen-reader", wait="session")
    console.send("go" + ENTER)
    console.told("Permission", "touch made", "Yes")
    console.sees("Permission? Yes")
    console.send(DOWN)
    console.sees("Permission? Yes, this session: Bash(touch made)")
    assert not re.search("[┌─│└]", console.text)
    console.send("y")
    console.told("▸ Bash     touch made", "Done.", "out")
    sent = console.raw.decode()
    assert not re.search("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", sent)
    assert "working" not in sent
    assert "context" not in sent
    console.proves()


def test_without_unicode_marks_have_their_twins(terminal: Make) -> None:
    script = ScriptedResponder().on("go", tool("Glob", pattern="*")).then("Done.")
    console = terminal(script, LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    console.open()
    console.say("go")
    console.told("> Glob", "Done.")
    console.idle()
    assert console.raw.isascii()
    console.proves()


def test_a_command_of_the_users_writes_the_last_line(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script)
    console.config.mkdir(parents=True)
    program = (
        "import json,sys; told = json.load(sys.stdin); "
        "print('\\x1b[32mmine\\x1b[0m', told['model']['display_name'], told['permission_mode'])"
    )
    (console.home / "line.py").write_text(program)
    settings = {"statusLine": {"type": "command", "command": f"python3 {console.home}/line.py"}}
    (console.config / "settings.json").write_text(json.dumps(settings))
    console.open(wait="mine opus-4-5 default")
    console.say("hello")
    console.told("Yes.")
    console.send("\x1b[Z")
    console.sees("mine opus-4-5 acceptEdits")
    console.proves()
