"""Every command of the console, in a real terminal."""

import base64
import json
import os
import re
import tomllib
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

from tests.console.terminal import ENTER, ESC, F2, Terminal

from steno.console.commands import CommandTable
from steno.llm.testserver.responders import text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

Make = Callable[..., Terminal]
TRIED_ELSEWHERE = {"rewind", "undo", "diff", "fork", "rename", "tag", "resume", "vim", "paste"}
"""In test_talking and test_typing."""


def test_every_command_is_tried_somewhere() -> None:
    tried = Path(__file__).read_text()
    names = {command.name for command in CommandTable().commands}
    assert names >= TRIED_ELSEWHERE
    assert [name for name in names - TRIED_ELSEWHERE if f'"/{name}' not in tried] == []


def test_commands_that_tell(terminal: Make) -> None:
    todos = [{"content": "Look", "status": "in_progress", "activeForm": "Looking"}]
    run = tool("Bash", command="sleep 60", description="Sleeps", run_in_background=True)
    script = ScriptedResponder().on("begin", [tool("TodoWrite", todos=todos), run]).then("Started.")
    script.on("CLAUDE.md", "I wrote one.")
    console = terminal(script, rows=50)
    (console.config / "agents").mkdir(parents=True)
    agent = "---\nname: tester\ndescription: Tests things\n---\nTest."
    (console.config / "agents" / "tester.md").write_text(agent)
    settings = {
        "permissions": {"allow": ["Bash(sleep:*)"], "deny": ["Read(secret)"]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true # quiet"}]}]},
    }
    (console.config / "settings.json").write_text(json.dumps(settings))
    console.open()
    console.say("begin")
    console.told("Started.", "1 task running")
    console.sees("▸ Look")
    console.idle()
    for command, *words in (
        ("/help", "Type a prompt", "!command", "/export [FILE]", "? for shortcuts"),
        ("/keys", "ctrl-x p"),
        ("/status", "opus-4-5", "default", "project"),
        ("/cost", "total", "$", "opus-4-5"),
        ("/context", "System prompt", "Tools", "Messages", "Free", "Use /compact"),
        ("/todos", "▸ Look"),
        ("/tasks", "running", "Sleeps", "/tasks stop ID to stop a task"),
        ("/bug", "It contains no session content"),
        ("/agents", "tester", "Tests things"),
        ("/mcp", "No MCP servers"),
        ("/hooks", "Stop", "true # quiet", "user"),
        ("/permissions", "deny", "Read(secret)", "allow", "Bash(sleep:*)"),
        ("/memory", "No memory files"),
        ("/doctor", "No problems found"),
        ("/init", "I wrote one."),
    ):
        console.say(command)
        console.told(*words)
        console.idle()
    console.proves()


def test_commands_that_change_something(terminal: Make) -> None:
    key = "ghp_" + "a1B2c3D4" * 4
    script = ScriptedResponder().on("Summarize this session", "They greeted each other.")
    script.on("hello", [text(f"Good day, {key}.")])
    console = terminal(script, rows=40)
    console.open()
    console.say("hello")
    console.told("Good day")
    console.idle()
    console.say("/copy")
    console.told("to the clipboard")
    assert base64.b64encode(f"Good day, {key}.".encode()) in console.raw
    console.say("/export")
    console.told("Written to")
    (made,) = console.project.glob("session-*.md")
    assert "hello" in made.read_text()
    assert key in made.read_text()
    console.say("/export")
    console.told("Use another file name")
    console.say("/share")
    console.told("Masked 1 value. Review the file")
    (shared,) = console.project.glob("session-*-redacted.md")
    assert key not in shared.read_text()
    assert "Good day" in shared.read_text()
    console.say("/compact the greeting")
    console.told("compacted (manual)")
    console.idle()
    console.proves()


def test_commands_that_go_another_way(terminal: Make) -> None:
    console = terminal(ScriptedResponder().otherwise("Yes."), rows=40)
    console.open()
    console.say("/model")
    console.sees("Model (now opus-4-5)")
    console.send("h")
    console.told("Model: claude-haiku-4-5-20251001")
    console.say("one more")
    console.told("Yes.")
    console.idle()
    assert console.server.requests[-1].body["model"] == "claude-haiku-4-5-20251001"
    console.say("/mode plan")
    console.sees("plan")
    console.say("/mode bypassPermissions")
    console.told("unknown mode 'bypassPermissions'")
    console.say("/mode")
    console.sees("Permission mode (now plan)", "accept file edits without asking")
    console.send(ESC)
    console.loses("Permission mode (now")
    console.say("/theme plain")
    console.told("Theme: plain")
    at = len(console.raw)
    console.say("/transcript")
    console.waits(lambda: b"one more" in console.raw[at:])
    # The line at the bottom comes back when the program has ended.
    console.waits(lambda: console.raw.rfind(b"? for shortcuts") > console.raw.find(b"one more", at))
    assert b"\x1b[1m" not in console.raw[at:]
    console.say("/clear")
    console.told("New session. /resume")
    console.sees("plan")
    console.send(F2)
    console.told("Explorer: http://127.0.0.1:")
    console.idle()
    shown = re.search(r"http://127.0.0.1:(\d+)(/enter\S+)\s?(\S*)", console.everything)
    assert shown is not None
    name = console.files[-1].stem
    assert (shown[2] + shown[3]).endswith(f"&to=/s/{name}")
    line = HTTPConnection("127.0.0.1", int(shown[1]), timeout=30)
    line.request("GET", shown[2] + shown[3])
    assert name in line.getresponse().read().decode()
    line.close()
    console.say("/explorer")
    console.waits(lambda: console.everything.count("Explorer:") == 2)
    console.say("/exit")
    assert console.ends() == 0
    console.proves()


def test_what_was_chosen_lasts_and_stands_in_stenos_own_file(terminal: Make) -> None:
    console = terminal(ScriptedResponder().otherwise("Yes."))
    own = console.home / "steno" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text("# mine\n[archive]\nlevel = 5  # packs\n")
    console.open()
    console.say("/model haiku")
    console.told("Model: claude-haiku-4-5-20251001")
    console.say("/theme plain")
    console.told("Theme: plain")
    console.say("/vim")
    console.told("Keys: vi")
    console.say("/exit")
    assert console.ends() == 0
    assert own.read_text().startswith("# mine\n[archive]\nlevel = 5  # packs\n")
    assert tomllib.loads(own.read_text())["console"] == {"model": "haiku", "theme": "plain", "keys": "vi"}
    assert not (console.config / "settings.json").exists()
    console.raw = b""
    console.open()
    console.sees("haiku-4-5")
    console.send("abc" + ESC)
    console.send("0xA!")
    console.sees("› bc!")
    assert b"\x1b[1m" not in console.raw
    console.send(ENTER)
    console.told("Yes.")
    console.idle()
    assert console.server.requests[-1].body["model"] == "claude-haiku-4-5-20251001"
    console.proves()


def test_the_end_of_a_task_is_told_when_it_comes(terminal: Make) -> None:
    run = tool("Bash", command="cat go", description="Waits", run_in_background=True)
    script = ScriptedResponder().on("begin", run).then("Started.").otherwise("Yes.")
    console = terminal(script)
    os.mkfifo(console.project / "go")
    console.open("--dangerously-skip-permissions")
    console.say("begin")
    console.told("Started.", "1 task running")
    console.idle()
    at = len(console.raw)
    (console.project / "go").write_text("done\n")
    console.sees('Background command "Waits" completed (exit code 0) · /tasks to list tasks')
    console.waits(lambda: b"\a" in console.raw[at:], "the bell")
    assert len(console.server.requests) == 2
    console.say("and?")
    console.told("Yes.")
    console.idle()
    assert "completed (exit code 0)" in json.dumps(console.server.requests[-1].body["messages"])
    console.proves()


def test_a_command_is_not_lost_while_another_question_is_open(terminal: Make) -> None:
    script = ScriptedResponder().on("go", tool("Bash", command="touch made")).then("Done.")
    console = terminal(script)
    console.open()
    console.say("go")
    console.sees("Permission")
    console.send("\x1b[200~ignored\x1b[201~")
    console.send("zq")
    console.sees("Permission")
    console.send(ENTER)
    console.told("Done.")
    console.waits((console.project / "made").exists)
    console.proves()
