"""Every tool, when it succeeds and when it fails, in an agent that is wired as people have it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import image, png
from tests.whole.house import House

from steno.agent.agent_session import AgentSession
from steno.llm.testserver.responders import ReplyBlock, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolResult, ToolSpec

NOTEBOOK = json.dumps(
    {
        "cells": [{"cell_type": "code", "id": "one", "source": "1 + 1", "metadata": {}, "outputs": []}],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)
QUESTION = {
    "question": "Which?",
    "header": "Choice",
    "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
    "multiSelect": False,
}
TODO = {"content": "Do it", "status": "pending", "activeForm": "Doing it"}


def pdf() -> bytes:
    from io import BytesIO

    from pypdf import PdfWriter

    writer, data = PdfWriter(), BytesIO()
    for _ in range(3):
        writer.add_blank_page(10, 10)
    writer.write(data)
    return data.getvalue()


def furnish(house: House) -> None:
    """Put everything into the project that a scene may need."""
    house.file("a.txt", "one\ntwo\nthree\n")
    house.file("crlf.txt", b"one\r\ntwo\r\n")
    house.file("bom.txt", b"\xef\xbb\xbfone\n")
    house.file("empty.txt")
    house.file("binary.dat", b"\x00\x01\x02\xff" * 50)
    house.file("picture.png", png([[(0, 0, 0)]]))
    house.file("broken.png", b"\x89PNG\r\n\x1a\nnothing of the kind")
    house.file("book.ipynb", NOTEBOOK)
    house.file("broken.ipynb", "{")
    house.file("paper.pdf", pdf())
    house.file("sub/deep.py", "def one(): ...\n")
    skills = house.config / "skills"
    (skills / "sewing").mkdir(parents=True)
    (skills / "sewing" / "SKILL.md").write_text("---\ndescription: Sews.\n---\nUse a needle.")


def read(path: str, **more: Any) -> ReplyBlock:
    return tool("Read", file_path=path, **more)


def edit(path: str, old: str, new: str, **more: Any) -> ReplyBlock:
    return tool("Edit", file_path=path, old_string=old, new_string=new, **more)


def multi(path: str, *edits: tuple[str, str]) -> ReplyBlock:
    changes = [{"old_string": old, "new_string": new} for old, new in edits]
    return tool("MultiEdit", file_path=path, edits=changes)


def write(path: str, content: str) -> ReplyBlock:
    return tool("Write", file_path=path, content=content)


def cell(path: str, **more: Any) -> ReplyBlock:
    return tool("NotebookEdit", notebook_path=path, **more)


def bash(command: str, **more: Any) -> ReplyBlock:
    return tool("Bash", command=command, **more)


def grep(**given: Any) -> ReplyBlock:
    return tool("Grep", **given)


FINE: dict[str, tuple[list[ReplyBlock], str]] = {
    "text is read": ([read("a.txt")], "1\tone"),
    "some lines are read": ([read("a.txt", offset=2, limit=1)], "2\ttwo"),
    "an empty file is read": ([read("empty.txt")], "empty"),
    "a file of another encoding is read": ([read("bom.txt")], "one"),
    "an image is read": ([read("picture.png")], '"image"'),
    "a paper is read": ([read("paper.pdf")], "PDF"),
    "some pages are read": ([read("paper.pdf", pages="2")], "PDF"),
    "a notebook is read": ([read("book.ipynb")], "1 + 1"),
    "a file is written": ([write("new/b.txt", "b\n")], "new/b.txt"),
    "a file is written again": ([read("a.txt"), write("a.txt", "new\n")], "a.txt"),
    "a file is emptied": ([read("a.txt"), write("a.txt", "")], "a.txt"),
    "a file is edited": ([read("a.txt"), edit("a.txt", "two", "2")], "a.txt"),
    "a file is edited everywhere": ([read("a.txt"), edit("a.txt", "e", "E", replace_all=True)], "a.txt"),
    "a file of DOS lines is edited": ([read("crlf.txt"), edit("crlf.txt", "one\ntwo", "1\n2")], "crlf.txt"),
    "several edits are made": ([read("a.txt"), multi("a.txt", ("one", "1"), ("1", "I"))], "a.txt"),
    "a cell is replaced": ([read("book.ipynb"), cell("book.ipynb", cell_id="one", new_source="2")], "2"),
    "a cell is added": (
        [read("book.ipynb"), cell("book.ipynb", new_source="# x", cell_type="markdown", edit_mode="insert")],
        "# x",
    ),
    "a cell is deleted": (
        [read("book.ipynb"), cell("book.ipynb", cell_id="one", new_source="", edit_mode="delete")],
        "one",
    ),
    "a command prints": ([bash("echo hello; echo bad >&2")], "hello"),
    "a command prints nothing": ([bash("true")], ""),
    "a command prints no text": ([bash("head -c 3000 /dev/zero; printf '\\377\\376\\033[31m'")], ""),
    "a command moves": ([bash("cd sub"), bash("pwd")], "/sub"),
    "names are found": ([tool("Glob", pattern="**/*.py")], "deep.py"),
    "no names are found": ([tool("Glob", pattern="*.none")], "No files"),
    "lines are found": ([grep(pattern="t", output_mode="content", path="a.txt")], "two"),
    "lines with others around": ([grep(pattern="two", output_mode="content", path="a.txt", **{"-C": 1})], "three"),
    "files are found": ([grep(pattern="one", output_mode="files_with_matches")], "a.txt"),
    "matches are counted": ([grep(pattern="one", output_mode="count")], "a.txt:1"),
    "nothing is found": ([grep(pattern="zebra")], "No "),
    "a list is written": ([tool("TodoWrite", todos=[TODO])], "list"),
    "tasks are kept": (
        [
            tool("TaskCreate", subject="Sew", description="Sew it"),
            tool("TaskUpdate", taskId="1", status="in_progress"),
            tool("TaskList"),
            tool("TaskGet", taskId="1"),
        ],
        "Sew",
    ),
    "a task that is not there": ([tool("TaskGet", taskId="99")], "not found"),
    "a task that cannot be changed": ([tool("TaskUpdate", taskId="99", status="deleted")], "not found"),
    "a skill is opened": ([tool("Skill", skill="sewing")], "sewing"),
    "a command in the background": ([bash("echo in the back", run_in_background=True)], "background"),
    "the older name of a tool": ([tool("Task", description="d", prompt="count the apples")], "Three apples"),
}

BAD: dict[str, tuple[list[ReplyBlock], str]] = {
    "no such file": ([read("nowhere.txt")], "nowhere.txt"),
    "a folder is no file": ([read("sub")], "sub"),
    "what is no text": ([read("binary.dat")], "binary"),
    "what is no image": ([read("broken.png")], "broken.png"),
    "what is no notebook": ([read("broken.ipynb")], "broken.ipynb"),
    "pages that are not there": ([read("paper.pdf", pages="7")], "page"),
    "pages of a text": ([read("a.txt", pages="1")], "not a PDF"),
    "an input that is missing": ([tool("Read")], "input for Read: file_path"),
    "an input of another kind": ([tool("Read", file_path=7)], "must be of type string"),
    "an input that nobody knows": ([tool("Glob", pattern="*", zebra=1)], "zebra"),
    "written without being read": ([write("a.txt", "x")], "read"),
    "edited without being read": ([edit("a.txt", "one", "1")], "read"),
    "changed since it was read": ([read("a.txt"), bash("echo four >> a.txt"), edit("a.txt", "one", "1")], "changed"),
    "text that is not there": ([read("a.txt"), edit("a.txt", "zebra", "1")], "zebra"),
    "text that is there twice": ([read("a.txt"), edit("a.txt", "o", "0")], "2"),
    "one of several edits fails": ([read("a.txt"), multi("a.txt", ("one", "1"), ("zebra", "z"))], "zebra"),
    "a cell that is not there": ([read("book.ipynb"), cell("book.ipynb", cell_id="nine", new_source="2")], "nine"),
    "no notebook to edit": ([cell("a.txt", new_source="2")], "notebook"),
    "a command that fails": ([bash("echo so; exit 3")], "Exit code 3"),
    "a command that is none": ([bash("  ")], "no user is available"),
    "a command that is no bash": ([bash("if then (")], "Exit code"),
    "a command that takes too long": ([bash("echo begun; sleep 60", timeout=100)], "timed out"),
    "a pattern that is none": ([grep(pattern="(")], ""),
    "a page of this machine": ([tool("WebFetch", url="http://127.0.0.1:1/x", prompt="what")], "private"),
    "a page that is no address": ([tool("WebFetch", url="nonsense", prompt="what")], ""),
    "a list that is none": ([tool("TodoWrite", todos=[{"content": "x"}])], ""),
    "a skill that is not there": ([tool("Skill", skill="cooking")], "cooking"),
    "an agent that is not there": ([tool("Agent", description="d", prompt="p", subagent_type="nobody")], "nobody"),
    "output of nothing": ([tool("TaskOutput", task_id="nothing")], "nothing"),
    "an end of nothing": ([tool("KillShell", shell_id="nothing")], "nothing"),
    "nobody to answer": ([tool("AskUserQuestion", questions=[QUESTION])], "No user is available"),
    "nobody to plan with": ([tool("EnterPlanMode")], "No user is available"),
    "nobody to agree to a plan": ([tool("ExitPlanMode", plan="First this.")], "No user is available"),
    "a tool that is none": ([tool("Zebra", stripes=1)], "Unknown tool: Zebra"),
}


def played(tmp_path: Path, calls: list[ReplyBlock]) -> House:
    """Let calls be made one after the other, each in a response of its own."""
    script = ScriptedResponder().on("count the apples", "Three apples.")
    house = House(tmp_path, script)
    furnish(house)
    script.on("go", [text("First."), calls[0]])
    for call in calls[1:]:
        script.then(call)
    script.then("Done.")
    (ended,) = house.say("go")
    assert ended.reason == "done"
    return house


@pytest.mark.parametrize("name", FINE)
def test_it_succeeds(tmp_path: Path, name: str) -> None:
    calls, words = FINE[name]
    house = played(tmp_path, calls)
    assert [each.get("is_error") for each in house.results] == [None] * len(calls)
    assert words in house.result
    house.proves()


@pytest.mark.parametrize("name", BAD)
def test_it_fails_and_the_model_is_told(tmp_path: Path, name: str) -> None:
    calls, words = BAD[name]
    house = played(tmp_path, calls)
    assert house.results[-1]["is_error"] is True
    assert words in house.result
    house.proves()


def test_changes_are_what_they_say_they_are(tmp_path: Path) -> None:
    house = played(
        tmp_path,
        [
            read("crlf.txt"),
            edit("crlf.txt", "one\ntwo", "1\n2\n3"),
            read("a.txt"),
            multi("a.txt", ("one", "1"), ("two", "2")),
            write("new.txt", "new\n"),
        ],
    )
    assert (house.project / "crlf.txt").read_bytes() == b"1\r\n2\r\n3\r\n"
    assert (house.project / "a.txt").read_text() == "1\n2\nthree\n"
    patched = [each for each in house.details if "structuredPatch" in each]
    assert [Path(each["filePath"]).name for each in patched] == ["crlf.txt", "a.txt", "new.txt"]
    house.proves()


def test_what_runs_in_the_background_is_read_and_ended(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script)

    def of_it(name: str, **more: Any) -> Callable[[Any], Any]:
        return lambda _asked: tool(name, task_id=house.details[0]["backgroundTaskId"], **more)

    script.on("go", bash("echo begun; sleep 600", run_in_background=True))
    script.then(of_it("TaskOutput", block=False)).then(of_it("TaskStop"))
    script.then(of_it("TaskOutput")).then(of_it("TaskStop")).then("Done.")
    house.say("go")
    assert [each.get("is_error", False) for each in house.results] == [False] * 4 + [True]
    assert house.details[3]["task"]["status"] == "killed"
    house.proves()


def test_its_end_is_told_as_soon_as_there_is_a_chance(tmp_path: Path) -> None:
    script = ScriptedResponder().on("<task-notification>", "I heard.")
    house = House(tmp_path, script)
    script.on("go", bash("true", run_in_background=True)).then("It runs.").on("now?", "Yes.")

    async def act(started: AgentSession) -> None:
        told = asyncio.Event()
        context = started.agent.executor.context
        notify = context.notify

        def tell(words: str) -> None:
            notify(words)
            told.set()

        context.notify = tell
        await started.agent.run_turn("go")
        await told.wait()
        await started.agent.run_turn("And now?")

    house.play(act)
    assert "completed" in str(house.live)
    house.proves()


def test_what_is_too_much_to_say_is_kept_in_a_file(tmp_path: Path) -> None:
    house = played(tmp_path, [bash("seq 1 100000")])
    (kept,) = (Path(house.path).with_suffix("") / "tool-results").iterdir()
    assert kept.read_text().splitlines()[-1] == "100000"
    assert str(kept) in house.result
    assert len(house.result) < 40_000
    house.proves()


def test_more_images_than_may_be_large_are_made_up_for(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script)
    large = png([[(0, 0, 0)] * 2100])
    paths = [house.file(f"{number}.png", large) for number in range(24)]
    script.on("go", [read(path) for path in paths]).then("Seen.")
    assert house.say("go")[0].text == "Seen."
    house.proves()


def test_somebody_answers(tmp_path: Path) -> None:
    async def ask(kind: str, _what: dict[str, Any]) -> dict[str, Any] | None:
        return {"answers": {"Which?": "B"}} if kind == "question" else None

    script = ScriptedResponder().on("go", tool("AskUserQuestion", questions=[QUESTION])).then("B it is.")
    house = House(tmp_path, script)
    house.ask = ask
    house.say("go")
    assert house.details[0]["answers"] == {"Which?": "B"}
    house.proves()


def test_a_plan_is_made_first_and_then_followed(tmp_path: Path) -> None:
    async def ask(_kind: str, what: dict[str, Any]) -> dict[str, Any]:
        return {"approved": True, "mode": "acceptEdits" if what["step"] == "exit" else None}

    script = ScriptedResponder()
    house = House(tmp_path, script, mode="acceptEdits")
    house.ask = ask
    plan = str(house.config / "plans" / "x.md")
    script.on("go", tool("EnterPlanMode")).then(write("early.txt", "x"))
    script.then(tool("Agent", description="d", prompt="do it for me")).then(tool("ExitPlanMode", plan="First this."))
    script.then(write("late.txt", "x")).then("Done.")
    script.on("do it for me", write("below.txt", "x")).then("I could not.")
    house.say("go")
    assert not (house.project / "early.txt").exists()
    assert not (house.project / "below.txt").exists()
    assert (house.project / "late.txt").exists()
    assert "First this." in str(house.details)
    assert plan
    house.proves()


def test_no_tool_is_forgotten(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    furnish(house)
    house.say("go")
    there = {each["name"] for each in house.sent[0]["tools"]}
    calls = [call for calls, _ in (*FINE.values(), *BAD.values()) for call in calls]
    tried = {str(call.block["name"]) for call in calls}
    older = {"Task": "Agent", "KillShell": "TaskStop"}
    assert there - {"WebSearch"} == {older.get(name, name) for name in tried} - {"Zebra"}
    house.proves()


class Awkward:
    """A tool that returns whatever it was made with, as a server of somebody's might."""

    spec = ToolSpec(name="Awkward", description="Returns.", schema={"type": "object"})

    def __init__(self, outcome: ToolResult) -> None:
        self.outcome = outcome

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        del tool_input, context, call
        return self.outcome


PICTURE = image(png([[(0, 0, 0)]]))
AWKWARD: dict[str, ToolResult] = {
    "nothing": ToolResult(""),
    "blank": ToolResult(" \n"),
    "no blocks": ToolResult([]),
    "a blank block": ToolResult([{"type": "text", "text": ""}]),
    "blank beside words": ToolResult([{"type": "text", "text": " "}, {"type": "text", "text": "x"}]),
    "an error without words": ToolResult("", is_error=True),
    "an error of no blocks": ToolResult([], is_error=True),
    "an error with a picture": ToolResult([PICTURE, {"type": "text", "text": "x"}], is_error=True),
    "an error that is a picture": ToolResult([PICTURE], is_error=True),
    "half a character": ToolResult("\ud83d and \x00 and \x1b[31m"),
    "half a character in a block": ToolResult([{"type": "text", "text": "\udc00"}], {"x": "\ud83d"}),
    "a picture that is none": ToolResult(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}]
    ),
    "a block nobody knows": ToolResult([{"type": "zebra", "stripes": 3}]),
    "a detail that is large": ToolResult("x", {"number": 1 << 70, "float": 1e308}),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_whatever_a_tool_returns_can_be_said(tmp_path: Path, name: str) -> None:
    script = ScriptedResponder().on("go", [tool("Awkward", n=1), tool("Glob", pattern="*")]).then("Done.")
    house = House(tmp_path, script, extra_tools=(Awkward(AWKWARD[name]),))
    assert house.say("go")[0].text == "Done."
    house.proves()
