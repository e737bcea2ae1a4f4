"""Sessions with hooks and commands, written by the engine and resumed by the real client.

Run by `make interop`.
"""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.agent.headless_harness import House
from tests.interop.client import LIMIT, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.notation import notation

from steno.llm.testserver.responders import ErrorReply, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST: Final = "2.1.325"
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EVENTS: Final = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")


def context(event: str) -> str:
    value = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": f"of {event}"}}
    return f"echo '{json.dumps(value)}'"


def reads(folder: Path) -> House:
    house = House(folder)
    for name in "ab":
        house.write(f"{name}.txt", name)
    calls = [tool("Read", file_path=str(house.project / f"{name}.txt")) for name in "ab"]
    house.script.on("go", calls).then("Done.").otherwise("Yes.")
    return house


def hooks_that_speak(folder: Path) -> House:
    house = reads(folder)
    for event in EVENTS:
        house.hook(event, context(event))
    house.say("go", "and")
    return house


def hooks_that_print(folder: Path) -> House:
    house = reads(folder)
    for event in EVENTS:
        house.hook(event, "echo hi")
    house.say("go", "and")
    return house


def hooks_that_object(folder: Path) -> House:
    house = reads(folder)
    mark = folder / "mark"
    house.hook("PostToolUse", "echo look again >&2; exit 2")
    house.hook("Stop", f"[ -e {mark} ] && exit 0; touch {mark}; echo go on >&2; exit 2")
    house.say("go")
    return house


def hooks_around_a_failure(folder: Path) -> House:
    bad = ErrorReply(status=401, kind="authentication_error", message="no")
    house = House(folder, ScriptedResponder().on("two", "Two.").on("one", bad))
    house.hook("UserPromptSubmit", context("UserPromptSubmit"))
    house.say("one", "two")
    return house


def a_command(folder: Path) -> House:
    house = House(folder, ScriptedResponder().otherwise("Yes."))
    house.write("~/commands/hello.md", "Say hello to $ARGUMENTS.")
    house.say("/hello you", "/nosuch", "on")
    return house


def a_skill(folder: Path) -> House:
    house = House(folder, ScriptedResponder().on("Base directory", "Done."))
    house.write("~/skills/demo/SKILL.md", "---\ndescription: x\n---\nDo it.")
    house.script.on("go", tool("Skill", skill="demo", args="one"))
    house.say("go", "/demo two")
    return house


def without_the_model(folder: Path) -> House:
    house = House(folder, ScriptedResponder().otherwise("Yes."))
    house.say("one", "/cost", "/context", "two")
    return house


def compacted(folder: Path) -> House:
    house = House(folder, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.hook("SessionStart", "echo anew", matcher="compact")
    house.say("one", "two", "/compact keep it", "three")
    return house


def hooks_that_keep_prompts_out(folder: Path) -> House:
    house = House(folder, ScriptedResponder().otherwise("Yes."))
    log = house.scripts / "UserPromptSubmit.log"
    stop = '{"continue":false,"stopReason":"halt"}'
    house.hook("UserPromptSubmit", f"tail -n 1 {log} | grep -q secret && exit 2; exit 0")
    house.hook("UserPromptSubmit", f"tail -n 1 {log} | grep -q halt && echo '{stop}'; exit 0")
    house.say("one", "the secret", "two", "halt here", "three")
    return house


SCENES: Final[tuple[Callable[[Path], House], ...]] = (
    hooks_that_speak,
    hooks_that_print,
    hooks_that_object,
    hooks_around_a_failure,
    a_command,
    a_skill,
    without_the_model,
    compacted,
    hooks_that_keep_prompts_out,
)


def test_the_real_client_sends_what_the_engine_would(tmp_path: Path) -> None:
    houses: dict[str, House] = {}
    for scene in SCENES:
        folder = tmp_path / scene.__name__
        folder.mkdir()
        houses[scene.__name__] = scene(folder)
    answers = resume_all(NEWEST, [Job(house.path.read_bytes()) for house in houses.values()])
    got = {name: sent(answer) for name, answer in zip(houses, answers, strict=True)}
    want = {name: ours(house) for name, house in houses.items()}
    assert got == want
    for name, answer in zip(houses, answers, strict=True):
        theirs = reminders(answer.messages or [])
        assert reminders(houses[name].work.conversation.messages()) <= theirs, name


def test_files_that_were_named_are_sent_again_by_the_real_client(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.write("src/x.py", "a = 1\nb = 2\n")
    house.write("ü.md", "words")
    (house.project / "pic.png").write_bytes(base64.b64decode(PIXEL))
    house.say("hello", "@src/x.py", "@src/", "one", "@ü.md @src/x.py#L2", "@pic.png", "end")
    house.check()
    data = house.path.read_bytes()
    (answer,) = resume_all(NEWEST, [Job(data)])
    assert sent(answer) == predicted(data, NEWEST)
    assert reminders(house.work.conversation.messages()) <= reminders(answer.messages or [])
    assert PIXEL in json.dumps(answer.messages)


def ours(house: House) -> list[str]:
    """Return what the engine would send, but for reminders that the next prompt takes in."""
    said = notation(house.work.conversation.messages())
    return said[:-1] if said[-1] == "u:" else said


def blocks(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def reminders(messages: list[dict[str, Any]]) -> set[str]:
    """Return what stands in messages for the model to be reminded of."""
    return {
        str(block["text"]).strip()
        for message in messages
        for block in blocks(message["content"])
        if str(block.get("text", "")).startswith("<system-reminder>")
    }
