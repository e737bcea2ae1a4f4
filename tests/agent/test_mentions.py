"""Files that a prompt names with `@`."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.agent.user_input import Mention, parse_mentions
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.write("src/x.py", "a = 1\nb = 2\nc = 3\nd = 4\n")
    house.write("src/sub/y.txt", "y\n")
    house.write("x.md", "no newline")
    return house


def seen(house: House, request: int = -1) -> list[str]:
    """Return the words of the last message of the user's that was sent."""
    blocks = house.sent(request)[-1]["content"]
    return [str(block.get("text", block["type"])).strip() for block in blocks]


def bodies(house: House) -> list[dict[str, Any]]:
    kinds = {"file", "directory", "at_mention_reference", "agent_mention"}
    found = [each.get("attachment", {}) for each in house.records()]
    return [each for each in found if each.get("type") in kinds]


def test_names_are_found_in_words() -> None:
    text = 'see @a.py, (@b) @"c d#L2-3" @e#L7 @f#L3-L9. me@g.org `@h` @@i\n@j'
    assert parse_mentions(text) == [
        Mention("a.py,"),
        Mention("b)"),
        Mention("c d", 2, 3),
        Mention("e", 7, 7),
        Mention("f", 3, 9),
        Mention("@i"),
        Mention("j"),
    ]


def test_a_file_that_is_named_is_told_as_if_it_had_been_read(house: House) -> None:
    house.say("look at @src/x.py please")
    path = str(house.project / "src/x.py")
    file = {"filePath": path, "content": "a = 1\nb = 2\nc = 3\nd = 4\n", "numLines": 5, "startLine": 1, "totalLines": 5}
    assert bodies(house) == [
        {
            "type": "file",
            "filename": path,
            "content": {"type": "text", "file": file},
            "displayPath": "src/x.py",
            "savedCopyFraming": {"enveloped": False},
        }
    ]
    (record,) = house.attached("file")
    assert record["renderedRole"] == "user"
    called = json.dumps({"file_path": path}, separators=(",", ":"))
    assert [each["content"] for each in record["rendered"]] == [
        (f"<system-reminder>\nCalled the Read tool with the following input: {called}\n</system-reminder>"),
        (
            "<system-reminder>\nResult of calling the Read tool:\n"
            "1\ta = 1\n2\tb = 2\n3\tc = 3\n4\td = 4\n5\t\n</system-reminder>"
        ),
    ]
    prompts = [each for each in house.records() if each["type"] == "user"]
    assert record["parentUuid"] == prompts[0]["uuid"]
    assert seen(house) == [*(each["content"] for each in record["rendered"]), "look at @src/x.py please"]
    house.check()


@pytest.mark.parametrize(
    ("prompt", "content", "first"),
    [
        ("@src/x.py#L2-3", "b = 2\nc = 3", 2),
        ("@src/x.py#L2", "b = 2", 2),
        ("@src/x.py#L20-30", "", 20),
        ('@"src/x.py#L4-4".', "d = 4", 4),
    ],
)
def test_lines_can_be_named(house: House, prompt: str, content: str, first: int) -> None:
    house.say(prompt)
    (body,) = bodies(house)
    assert body["content"]["file"]["content"] == content
    assert body["content"]["file"]["startLine"] == first
    assert "truncated" not in body
    house.check()


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("@x.md, @x.md. (@x.md) and @src/x.py", ["x.md", "src/x.py"]),
        ("@nope.md and a@x.md or `@x.md`", []),
        ('@"a b.txt" @ü.txt @"quo\'te.txt"', ["a b.txt", "ü.txt", "quo'te.txt"]),
        ("@src/*.py @", []),
        ("@./x.md", ["x.md"]),
        ("@end.", ["end."]),
    ],
)
def test_what_is_no_name_of_a_file_stays_a_word(house: House, prompt: str, names: list[str]) -> None:
    for name in ("a b.txt", "ü.txt", "quo'te.txt", "end."):
        house.write(name, "here")
    house.say(prompt)
    assert [each["displayPath"] for each in bodies(house)] == names
    house.check()


def test_a_folder_that_is_named_is_listed(house: House) -> None:
    house.say("look at @src/ and @src")
    (body,) = bodies(house)
    path = str(house.project / "src")
    assert body == {"type": "directory", "path": path, "content": "sub\nx.py", "displayPath": "src"}
    assert "Result of calling the Bash tool:\nsub\nx.py" in seen(house)[1]
    house.check()


def test_what_a_rule_denies_is_not_shown(house: House) -> None:
    house.write("secret.txt", "the key is 4711")
    house.write("src/hidden.txt", "4711")
    house.options.disallowed = ("Read(./secret.txt)", "Read(./src/hidden.txt)")
    house.say("@secret.txt @src/hidden.txt @src @x.md")
    assert [each["displayPath"] for each in bodies(house)] == ["src", "x.md"]
    assert bodies(house)[0]["content"] == "sub\nx.py"
    assert "4711" not in str(house.sent())
    house.check()


def test_of_a_folder_that_a_rule_denies_not_even_names_are_shown(house: House) -> None:
    house.options.disallowed = ("Read(./src/**)",)
    house.say("@src/ and @src/x.py")
    assert bodies(house) == []


def test_the_user_may_name_a_file_anywhere_but_what_is_piped_in_may_not(house: House, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("4711\n")
    piped = f"by @{outside} and @x.md"
    house.options.piped = piped
    house.say(f"What is this?\n\n{piped}")
    assert [each["displayPath"] for each in bodies(house)] == ["x.md"]
    house.options.piped = ""
    house.say(f"look at @{outside}")
    assert bodies(house)[-1]["filename"] == str(outside)
    house.check()


def test_a_file_in_a_command_is_read_where_it_may_be(house: House, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("4711\n")
    house.write("~/commands/hi.md", f"Say $ARGUMENTS and @src/x.py and @{outside}")
    house.say("/hi @x.md")
    assert [each["displayPath"] for each in bodies(house)] == ["x.md", "src/x.py"]
    house.check()


def test_a_file_in_a_skill_that_the_model_opens_is_read(house: House) -> None:
    house.write("~/skills/demo/SKILL.md", "---\ndescription: x\n---\nKnow @x.md.")
    house.script.on("go", tool("Skill", skill="demo"))
    house.say("go")
    assert [each["displayPath"] for each in bodies(house)] == ["x.md"]
    house.check()


def test_a_large_file_is_only_told_of(house: House) -> None:
    house.write("huge.txt", "y" * 300_000)
    house.say("@huge.txt")
    (body,) = bodies(house)
    assert (body["type"], body["unread"]) == ("at_mention_reference", "too_large")
    assert body["fileSize"] == 300_000
    assert "huge.txt" in seen(house)[0]
    assert "yyyy" not in str(house.sent())
    house.check()


def test_of_a_long_file_the_first_lines_are_told(house: House) -> None:
    house.write("long.txt", "line\n" * 5000)
    house.say("@long.txt")
    (body,) = bodies(house)
    assert body["truncated"] is True
    assert body["content"]["file"]["numLines"] == 2000
    assert "truncated to the first 2000 lines" in seen(house)[2]
    house.check()


def test_a_picture_that_is_named_is_seen(house: House) -> None:
    (house.project / "pic.png").write_bytes(PIXEL)
    house.say("@pic.png and @x.md", "next")
    body = bodies(house)[0]
    assert body["content"]["type"] == "image"
    assert base64.b64decode(body["content"]["file"]["base64"]) == PIXEL
    assert seen(house, 0)[1] == "image"
    house.check()
    house.resume()
    house.say("and")
    house.check()


def test_pictures_stay_in_their_place_in_a_session_that_goes_on_without_an_answer(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.options.limits = type(house.options.limits)(requests=0)
    (house.project / "pic.png").write_bytes(PIXEL)
    house.write("x.md", "words")
    house.say("@pic.png and more")
    house.resume()
    house.options.limits = type(house.options.limits)()
    house.say("@x.md too")
    house.check()


@pytest.mark.parametrize("content", [b"\0\1\2" * 1000, b"%PDF-1.4\nnot really"])
def test_what_is_no_text_does_not_stop_the_prompt(house: House, content: bytes) -> None:
    (house.project / "some.bin").write_bytes(content)
    assert house.say("@some.bin") == 0
    assert [each["type"] for each in bodies(house) if each["type"] == "file"] == []
    house.check()


def test_a_notebook_is_told_cell_by_cell(house: House) -> None:
    cell = {"cell_type": "code", "source": ["print(1)"], "metadata": {}, "outputs": []}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    house.write("nb.ipynb", json.dumps(book))
    house.say("@nb.ipynb")
    (body,) = bodies(house)
    assert body["content"]["type"] == "notebook"
    assert "print(1)" in seen(house)[1]
    house.check()


def test_a_kind_of_agent_can_be_named(house: House) -> None:
    house.say("@agent-general-purpose, look")
    assert bodies(house) == [{"type": "agent_mention", "agentType": "general-purpose"}]
    assert "general-purpose" in seen(house)[0]
    house.check()


def test_a_file_that_was_named_may_be_edited(house: House) -> None:
    path = str(house.project / "x.md")
    house.options.mode = "acceptEdits"
    house.script.on("change", tool("Edit", file_path=path, old_string="no", new_string="a"))
    house.script.then("Done.")
    house.say("change @x.md")
    assert Path(path).read_text() == "a newline"


def test_sub_agents_are_not_read_to(house: House) -> None:
    task = {"description": "d", "prompt": "below @x.md", "subagent_type": "general-purpose"}
    house.script.on("go", tool("Agent", **task)).then("Done.").on("below", "Well.")
    house.say("go")
    assert "no newline" not in str([each.body["messages"] for each in house.server.requests])
