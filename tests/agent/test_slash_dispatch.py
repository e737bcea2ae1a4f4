"""Prompts that begin with a slash: commands, skills, what there is besides, and what there is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.agent.events import Notice
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

HELLO = """---
description: Says hello
argument-hint: [whom]
{head}
---
Say hello to $ARGUMENTS.
"""


def said(house: House) -> list[dict[str, Any]]:
    return [each for each in house.records() if each["type"] == "user"]


def texts(message: dict[str, Any]) -> list[str]:
    return [str(block.get("text")) for block in message["content"] if block["type"] == "text"]


def test_a_command_becomes_a_prompt_in_the_shape_of_sessions(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Hello."))
    house.write("~/commands/hello.md", HELLO.format(head=""))
    assert house.say("/hello big world") == 0
    call, body = said(house)
    assert call["message"]["content"] == (
        "<command-message>hello</command-message>\n<command-name>/hello</command-name>\n"
        "<command-args>big world</command-args>"
    )
    assert "isMeta" not in call
    assert body["message"]["content"] == [{"type": "text", "text": "Say hello to big world.\n"}]
    assert (body["isMeta"], body["turnCompanion"]) == (True, True)
    assert body["parentUuid"] == call["uuid"]
    (kept,) = house.attached("command_permissions")
    assert kept["attachment"] == {"type": "command_permissions", "allowedTools": []}
    assert kept["parentUuid"] == body["uuid"]
    assert house.records()[-1]["lastPrompt"] == "/hello big world"
    assert texts(house.sent()[0])[-1] == "Say hello to big world.\n"
    house.check()


def test_the_records_of_a_command_are_those_of_the_real_client(tmp_path: Path, shared: Path) -> None:
    real: list[dict[str, Any]] = []
    for path in (shared / "corpus/real-client/2.1.325/slash/projects").glob("*/*.jsonl"):
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        if any("/hello big world" in str(each.get("lastPrompt")) for each in records):
            real = [each for each in records if each["type"] == "user"]
    house = House(tmp_path, ScriptedResponder().otherwise("Hello."))
    house.write("~/commands/hello.md", "SCN:plain Say hello to $ARGUMENTS. Now: !`echo shellout`\n")
    house.say("/hello big world")
    theirs = [(each["message"], each.get("isMeta"), each.get("turnCompanion")) for each in real]
    ours = [(each["message"], each.get("isMeta"), each.get("turnCompanion")) for each in said(house)]
    assert ours == theirs


def test_a_session_with_a_command_goes_on_with_the_very_same_messages(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Hello."))
    house.write("~/commands/hello.md", HELLO.format(head=""))
    house.say("/hello you", "and now")
    house.resume()
    house.say("/hello again")
    house.check()


def test_a_message_of_stream_json_calls_a_command_too(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("to Ada", "Hello Ada.").otherwise("?"))
    house.write("~/commands/hello.md", HELLO.format(head=""))
    house.say([{"type": "text", "text": "/hello Ada"}])
    assert house.results() == ["Hello Ada."]


def test_a_skill_is_called_by_its_name(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Done."))
    house.write("~/skills/demo/SKILL.md", "---\ndescription: Shows\n---\n# Demo\nDo it.\n")
    house.say("/demo args here")
    _, body = said(house)
    (block,) = body["message"]["content"]
    assert block["text"].startswith(f"Base directory for this skill: {house.config}/skills/demo\n")
    assert block["text"].endswith("ARGUMENTS: args here")
    house.check()


def test_a_skill_that_the_model_opens_follows_the_result(tmp_path: Path) -> None:
    house = House(tmp_path)
    target = house.project / "new.txt"
    house.write("~/skills/demo/SKILL.md", "---\ndescription: x\nallowed-tools: Write\n---\nWrite.")
    (
        house.script.on("Base directory", tool("Write", file_path=str(target), content="x"))
        .then("Done.")
        .on("more", tool("Write", file_path=str(house.project / "b.txt"), content="x"))
        .then("No.")
        .on("go", tool("Skill", skill="demo", args="one"))
    )
    house.say("go", "more")
    meta = [each for each in said(house) if each.get("isMeta")]
    (kept,) = house.attached("command_permissions")
    assert kept["attachment"]["allowedTools"] == ["Write"]
    assert kept["parentUuid"] == meta[0]["uuid"]
    calls = [
        block["id"]
        for each in house.records()
        if each["type"] == "assistant"
        for block in each["message"]["content"]
        if block.get("name") == "Skill"
    ]
    assert [meta[0]["sourceToolUseID"]] == calls
    assert target.exists()
    assert not (house.project / "b.txt").exists()
    house.check()


def test_what_a_command_may_use_it_may_use_for_its_turn_alone(tmp_path: Path) -> None:
    house = House(tmp_path)
    for name in "ab":
        path = str(house.project / f"{name}.txt")
        house.script.on(f"write {name}", tool("Write", file_path=path, content="x")).then("Done.")
    house.write("~/commands/put.md", "---\nallowed-tools: Write\n---\nwrite $ARGUMENTS")
    house.say("/put a", "write b")
    assert (house.project / "a.txt").exists()
    assert not (house.project / "b.txt").exists()
    (kept,) = house.attached("command_permissions")
    assert kept["attachment"]["allowedTools"] == ["Write"]
    house.check()


def test_a_rule_that_forbids_stands_whatever_a_command_may_use(tmp_path: Path) -> None:
    house = House(tmp_path)
    path = str(house.project / "a.txt")
    house.script.on("write", tool("Write", file_path=path, content="x")).then("Done.")
    house.write("~/commands/put.md", "---\nallowed-tools: Write\n---\nwrite it")
    house.options.disallowed = ("Write",)
    house.say("/put")
    assert not (house.project / "a.txt").exists()


def test_a_command_asks_its_own_model_for_its_turn_alone(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.write("~/commands/quick.md", "---\nmodel: haiku\n---\nquick")
    house.write("~/commands/same.md", "---\nmodel: inherit\n---\nsame")
    house.say("one", "/quick", "two", "/same")
    models = [request.body["model"] for request in house.server.requests]
    assert models == [models[0], "claude-haiku-4-5-20251001", models[0], models[0]]


@pytest.mark.parametrize(("allowed", "ran"), [("Bash(touch:*)", True), ("Read", False)])
def test_the_commands_in_a_text_are_judged_like_any_other(tmp_path: Path, allowed: str, *, ran: bool) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    mark = house.project / "mark"
    body = f"---\nallowed-tools: {allowed}\n---\nSee: !`touch {mark}` end\n"
    house.write("~/commands/do.md", body)
    house.say("/do")
    assert mark.exists() is ran
    text = said(house)[1]["message"]["content"][0]["text"]
    assert ("failed:" in text) is not ran
    assert text.startswith("See: ")
    assert text.endswith(" end\n")
    house.check()


def test_commands_of_a_project_are_there_only_where_it_is_trusted(tmp_path: Path) -> None:
    for trusted in (False, True):
        folder = tmp_path / str(trusted)
        folder.mkdir()
        house = House(folder, ScriptedResponder().otherwise("Yes."), trusted=trusted)
        house.write(".claude/commands/web/page.md", "Make a page about $1 and $ARGUMENTS[0]")
        house.say("/web:page")
        assert bool(house.attached("unknown_command_fallback")) is not trusted
        assert ("web:page" in house.lines[0]["slash_commands"]) is trusted


def test_what_has_no_such_name_goes_to_the_model_with_the_names_that_there_are(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("There is no such command."))
    house.write("~/commands/hello.md", HELLO.format(head=""))
    house.write("~/commands/hidden.md", HELLO.format(head="user-invocable: false"))
    assert house.say("/nosuchcommand") == 0
    (prompt,) = said(house)
    assert prompt["message"]["content"] == "/nosuchcommand"
    (kept,) = house.attached("unknown_command_fallback")
    assert kept["parentUuid"] == prompt["uuid"]
    names = kept["attachment"]["availableCommandNames"]
    assert kept["attachment"]["commandName"] == "nosuchcommand"
    assert kept["attachment"]["availableCommandCount"] == len(names)
    assert "hello" in names
    assert "hidden" not in names
    assert kept["renderedRole"] == "user"
    reminder, typed = texts(house.sent()[0])
    assert "/nosuchcommand" in reminder
    assert "hello" in reminder
    assert typed == "/nosuchcommand"
    house.check()


def test_the_user_is_told_that_there_is_no_such_command(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("?"))
    house.talk("/nosuch")
    assert any(isinstance(each, Notice) and "/nosuch" in each.text for each in house.events)


@pytest.mark.parametrize("prompt", ["/usr/bin/env is broken", "what is /hello", "1 / 2", "/ "])
def test_a_slash_alone_calls_nothing(tmp_path: Path, prompt: str) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say(prompt)
    assert [each["message"]["content"] for each in said(house)] == [prompt]
    assert not house.attached("unknown_command_fallback")


def test_a_hook_keeps_a_command_out_or_adds_to_it(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.write("~/commands/hello.md", HELLO.format(head=""))
    house.write("~/commands/bye.md", "Say goodbye.")
    house.hook("UserPromptExpansion", "echo not so loud >&2; exit 2", matcher="hello")
    house.hook("UserPromptExpansion", "echo softly", matcher="bye")
    house.say("/hello you", "/bye")
    told = house.told("UserPromptExpansion")
    assert [(each["command_name"], each["command_args"]) for each in told] == [("hello", "you"), ("bye", "")]
    assert told[0]["command_source"] == "userSettings"
    assert "not so loud" in house.results()[0]
    assert "softly" in texts(house.sent()[0])[0]
    house.check()


# What there is besides


def test_compact_puts_a_summary_in_the_place_of_the_conversation(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    assert house.say("one", "two", "/compact keep the tests", "three") == 0
    assert house.results()[2] == "Compacted"
    assert "keep the tests" in str(house.server.requests[2].body["messages"])
    records = house.records()
    start = next(n for n, each in enumerate(records) if each.get("subtype") == "compact_boundary")
    boundary, summary, *after = [each for each in records[start:] if "uuid" in each]
    assert boundary["compactMetadata"]["trigger"] == "manual"
    assert summary["isCompactSummary"]
    told = [
        str(each["message"]["content"])
        for each in after
        if each["type"] == "user" and "command-" in str(each["message"]["content"])
    ]
    assert told[0].startswith("<local-command-caveat>")
    assert told[1] == (
        "<command-name>/compact</command-name>\n            <command-message>compact"
        "</command-message>\n            <command-args>keep the tests</command-args>"
    )
    assert told[2] == "<local-command-stdout>Compacted</local-command-stdout>"
    assert [each["lastPrompt"] for each in records if each["type"] == "last-prompt"] == ["one", "two", "two", "three"]
    house.check()


def test_compact_of_nothing_says_so(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.say("/compact") == 1
    assert len(house.server.requests) == 0
    assert "Nothing to compact" in house.results()[0]


@pytest.mark.parametrize(("prompt", "name", "part"), [("/cost", "usage", "$0.00"), ("/context", "context", "tokens")])
def test_some_answer_without_the_model(tmp_path: Path, prompt: str, name: str, part: str) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    assert house.say(prompt) == 0
    assert len(house.server.requests) == 0
    assert part in house.results()[0]
    caveat, call, printed, end = house.records()
    assert caveat["isMeta"]
    assert caveat["message"]["content"].startswith("<local-command-caveat>")
    assert call["message"]["content"].startswith(f"<command-name>/{name}</command-name>\n")
    assert (printed["type"], printed["subtype"]) == ("system", "local_command")
    assert printed["commandRun"] == {"command": name, "args": ""}
    assert printed["content"] == (f"<local-command-stdout>{house.results()[0]}</local-command-stdout>")
    assert "lastPrompt" not in end
    assert end["leafUuid"] == printed["uuid"]
    house.resume()
    house.say("hello")
    assert house.results()[-1] == "Yes."
    house.check()


def test_the_cost_is_what_was_spent(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("one", "two", "/cost")
    assert "$0.0020" in house.results()[-1]
    house.check()


def test_the_context_is_kept_as_numbers_too(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("one", "/context")
    (kept,) = [each["contextUsage"] for each in house.records() if "contextUsage" in each]
    assert kept["total_tokens"] == sum(each["tokens"] for each in kept["categories"])
    assert {"System prompt", "Tools", "Messages"} <= {each["name"] for each in kept["categories"]}
    assert kept["raw_max_tokens"] == 200_000


def test_clear_leaves_the_session_and_begins_another(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("SessionStart")
    house.hook("SessionEnd")
    house.say("one", "/clear", "two")
    old, fresh = house.files()
    assert [each["source"] for each in house.told("SessionStart")] == ["startup", "clear"]
    assert [each["reason"] for each in house.told("SessionEnd")] == ["clear", "other"]
    assert "two" not in str(house.records(old))
    call = house.records(fresh)[1]
    assert call["message"]["content"].startswith("<command-name>/clear</command-name>")
    inits = [line["session_id"] for line in house.lines if line.get("subtype") == "init"]
    assert inits == [old.stem, fresh.stem]
    assert house.lines[-1]["session_id"] == fresh.stem
    assert "one" not in [text for message in house.sent() for text in texts(message)]
    assert list(house.server.refused) == []
