"""Typing into the console: lines, pastes, history, completion, shell, memory, images, editor."""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.terminal import DOWN, ENTER, ESC, SHIFT_TAB, TAB, UP, Terminal
from tests.console.test_components import DOT

from steno.console.external_programs import save_clipboard_image
from steno.errors import NotFound
from steno.llm.testserver.scripted_responder import ScriptedResponder

Make = Callable[..., Terminal]


def said(console: Terminal) -> str:
    return json.dumps(console.server.requests[-1].body["messages"][-1]["content"])


def test_lines_pastes_and_history(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script)
    console.open()
    console.idle()
    console.send("one\\" + ENTER + "two" + "\n" + "three" + ESC + ENTER + "four")
    console.sees("› one", "  two", "  three", "  four")
    console.send(ENTER)
    console.told("Yes.")
    console.idle()
    assert "one\\ntwo\\nthree\\nfour" in said(console)
    lines = "\r".join(f"pasted {number}" for number in range(2000))
    console.send("See: ")
    console.paste(lines)
    console.sees("See: [paste 1: 2,000 lines]")
    console.send(ENTER)
    console.waits(lambda: len(console.server.requests) == 2)
    console.idle()
    assert "pasted 0\\npasted 1\\n" in said(console)
    assert "pasted 1999" in said(console)
    console.paste("red \x1b[31m, \u202ebackwards\u202c, \u200bnothing\x07")
    console.sees("red ^[[31m, \ufffdbackwards\ufffd, \ufffdnothing^G")
    assert "\u202e".encode() not in console.raw
    console.send("\x03")
    console.paste("short\rpaste")
    console.sees("› short", "  paste")
    console.send("\x03")
    console.loses("› short")
    console.paste("\r".join(f"in full {number}" for number in range(10)))
    console.sees("[paste 1: 10 lines]")
    console.send("\x18p")
    console.sees("in full 0", "in full 9")
    console.send("\x03")
    console.loses("in full 0")
    console.send("\x04\x04")
    console.ends()
    console.open()
    console.idle()
    console.send(UP)
    console.sees("› See: [paste 1")
    asked = len(console.server.requests)
    console.send(ENTER)
    console.sees("The content of [paste 1: 2,000 lines] is lost. Press enter again to send the placeholder.")
    assert len(console.server.requests) == asked
    console.send("\x03\x12")
    console.sees("search:")
    console.send("two")
    console.sees("› one", "search: two")
    console.send(ENTER + "\x03")
    console.idle()
    console.proves()


def test_completion_of_commands_and_files(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script)
    (console.project / "deep" / "er").mkdir(parents=True)
    (console.project / "deep" / "er" / "station.py").write_text("x")
    (console.project / "ignored.log").write_text("x")
    (console.config / "commands").mkdir(parents=True)
    words = "---\ndescription: Greets somebody\n---\nGreet $ARGUMENTS warmly."
    (console.config / "commands" / "greet.md").write_text(words)
    console.open()
    console.idle()
    console.send("/re")
    console.sees("/resume", "Resume a session", "/rewind", "tab and arrows to select")
    console.send(TAB)
    console.sees("› /rename")
    console.send(TAB)
    console.sees("› /resume", "▸ /resume")
    # What is pressed at once is heard in order.
    console.send("\x15/cos" + TAB + ENTER)
    console.told("› /cost", "no requests yet")
    console.send("\x15/gree")
    console.sees("/greet", "Greets somebody")
    console.send(TAB)
    console.sees("› /greet")
    console.send(" Ada" + ENTER)
    console.told("› /greet Ada", "Yes.")
    console.idle()
    assert "Greet Ada warmly." in json.dumps(console.server.requests[-1].body["messages"])
    console.send("look at @stat")
    console.sees("deep/er/station.py")
    console.send(TAB)
    console.sees("look at @deep/er/station.py")
    console.send("\x15look at @stat")
    console.sees("  deep/er/station.py", "tab and arrows to select")
    console.send(DOWN)
    console.sees("▸ deep/er/station.py")
    console.send(ENTER + "closely")
    console.sees("› look at @deep/er/station.py closely")
    asked = len(console.server.requests)
    for typed, meant in (("/nothing-like-this", "/help"), ("/hepl", "/help?")):
        console.send("\x15" + typed + ENTER)
        console.told(f"Unknown command: {typed}. ", meant)
        console.sees(f"› {typed}")
    assert len(console.server.requests) == asked
    console.proves()


def test_shell_memory_and_images(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script)
    (console.project / "dot.png").write_bytes(DOT)
    console.open()
    console.idle()
    console.say("!echo out; touch made")
    console.told("▸ Bash     echo out; touch made", "       out")
    console.idle()
    assert (console.project / "made").exists()
    console.say("!exit 3")
    console.told("exit 3")
    console.idle()
    console.say("!touch began; sleep 60")
    console.waits((console.project / "began").exists)
    console.sees("working")
    console.send("\x03")
    console.told("touch began; sleep 60  interrupted")
    console.idle()
    console.say("#never use tabs")
    console.sees("Save memory in", "CLAUDE.local.md")
    console.send("l")
    console.told("Saved in")
    assert (console.project / "CLAUDE.local.md").read_text() == "- never use tabs\n"
    console.say("what is in dot.png ?")
    console.told("Attached dot.png", "Yes.")
    console.idle()
    console.say("/rewind")
    console.sees("Rewind to a prompt", "▸ what is in dot.png ?", "  !echo out; touch made")
    assert "<bash" not in console.text
    console.send(ESC)
    console.loses("Rewind to")
    sent = json.dumps(console.server.requests[-1].body["messages"])
    assert "<bash-input>echo out; touch made</bash-input>" in sent
    assert "<bash-stdout>out" in sent
    assert "<user-memory-input>never use tabs" in sent
    assert base64.b64encode(DOT).decode() in sent
    console.proves()


def test_pictures_are_pasted_by_their_path_and_from_the_clipboard(terminal: Make, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, prints in (("wl-paste", "exit 1"), ("xclip", f'cat "{tmp_path}/held.png"')):
        (programs / name).write_text(f"#!/bin/sh\n{prints}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    console = terminal(ScriptedResponder().otherwise("Yes."), PATH=path, DISPLAY=":9", WAYLAND_DISPLAY="wayland-9")
    (tmp_path / "my dot.png").write_bytes(DOT)
    console.open()
    console.idle()
    console.paste(f"{tmp_path}/my\\ dot.png ")
    console.sees("› [image 1: my dot.png]")
    console.send("\x16")
    console.told("the clipboard contains no image")
    (tmp_path / "held.png").write_bytes(DOT)
    console.send("\x16")
    console.sees("[image 1: my dot.png][image 2: ")
    console.send(" what are they?" + ENTER)
    console.told("Attached my dot.png", "Yes.")
    console.idle()
    sent = json.dumps(console.server.requests[-1].body["messages"])
    assert sent.count(base64.b64encode(DOT).decode()) == 2
    (kept,) = (console.home / "steno" / "pasted").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    console.proves()


def test_without_a_program_for_it_the_clipboard_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="no program to read an image"):
        asyncio.run(save_clipboard_image({"DISPLAY": ":9"}))


def test_modes_keys_editor_and_vi(terminal: Make) -> None:
    script = ScriptedResponder().otherwise("Yes.")
    console = terminal(script, EDITOR="sh -c 'printf \"written elsewhere\" > $1' sh", rows=40)
    console.open()
    console.idle()
    for words in ("accept edits", "plan", "default"):
        console.send(SHIFT_TAB)
        console.sees(words)
    console.send("?")
    console.told("search the prompts of all sessions", "shift-tab", "with all tool results")
    console.send("\x07")
    console.sees("› written elsewhere")
    console.send(ENTER)
    console.told("Yes.")
    console.idle()
    console.say("/vim")
    console.told("Keys: vi")
    console.send("abc" + ESC)
    console.send("0xA!")
    console.sees("› bc!")
    console.send(ESC + "ddi")
    console.loses("bc!")
    console.say("/vim")
    console.told("Keys: emacs")
    console.send(ESC + ESC)
    console.sees("Rewind to a prompt", "written elsewhere")
    console.send(DOWN + ESC)
    console.loses("Rewind to")
    console.proves()
