"""What `--output-format stream-json` prints, in the shapes of Claude Code."""

from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.agent.context.token_usage import TurnLimits
from steno.llm.testserver.responders import ErrorReply, refusal_reply, text, thinking, tool

ONE_ANSWER = ("message_start", "message_delta", "message_stop")


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.write("a.txt", "hello\n")
    house.partial = True
    return house


def parts(house: House) -> list[dict[str, Any]]:
    return [line["event"] for line in house.printed("stream_event")]


def test_every_event_of_an_answer_is_passed_on_in_its_order(house: House) -> None:
    read = tool("Read", file_path=str(house.project / "a.txt"))
    house.script.on("go", [thinking("hm"), text("I look."), read]).then("Done.")
    house.say("go")
    events = parts(house)
    ends = [each["type"] for each in events if each["type"] in ONE_ANSWER]
    assert ends == [*ONE_ANSWER, *ONE_ANSWER]
    blocks = [
        (each["type"].removeprefix("content_block_"), each["index"])
        for each in events[: next(at for at, e in enumerate(events) if e["type"] == "message_stop")]
        if each["type"].startswith("content_block_")
    ]
    assert list(dict.fromkeys(blocks)) == [(step, index) for index in range(3) for step in ("start", "delta", "stop")]
    begun = [e["content_block"]["type"] for e in events if e["type"] == "content_block_start"]
    assert begun == ["thinking", "text", "tool_use", "text"]
    grown = {e["delta"]["type"] for e in events if e["type"] == "content_block_delta"}
    assert grown == {"thinking_delta", "signature_delta", "text_delta", "input_json_delta"}
    house.check()


def test_the_parts_of_an_answer_make_the_answer_that_follows_them(house: House) -> None:
    house.script.on("go", "A few words that come in several parts, one after the other.")
    house.say("go")
    words = [e["delta"]["text"] for e in parts(house) if e["type"] == "content_block_delta"]
    (answer,) = house.printed("assistant")
    assert "".join(words) == answer["message"]["content"][0]["text"]
    assert len(words) > 1
    names = {each["api_message_id"] for each in house.printed("stream_event")}
    assert names == {answer["message"]["id"]}
    assert {each["parent_tool_use_id"] for each in house.printed("stream_event")} == {None}
    assert len(house.printed("system", "status")) == 1


def test_nothing_comes_in_parts_unless_it_is_asked_for(house: House) -> None:
    house.partial = False
    house.script.on("go", "Done.")
    house.say("go")
    assert [line["type"] for line in house.lines] == ["system", "assistant", "result"]


def test_a_sub_agent_is_told_of_with_the_call_it_works_for(house: House) -> None:
    task = {"description": "find it", "prompt": "look below", "subagent_type": "general-purpose"}
    house.script.on("go", tool("Agent", "toolu_sub", **task)).then("Done.")
    read = tool("Read", file_path=str(house.project / "a.txt"))
    house.script.on("look below", [text("I look."), read]).then("It says hello.")
    house.say("go")
    inner = [each for each in house.lines if each.get("parent_tool_use_id") == "toolu_sub"]
    assert [each["type"] for each in inner] == ["user", "assistant", "assistant", "user", "assistant"]
    assert {each["subagent_type"] for each in inner} == {"general-purpose"}
    assert {each["task_description"] for each in inner} == {"find it"}
    (name,) = {each["agent_id"] for each in inner}
    assert inner[0]["message"]["content"][0]["text"] == "look below"
    assert "tool_use_result" not in inner[3]
    (begun,) = house.printed("system", "task_started")
    assert (begun["task_id"], begun["prompt"], begun["is_backgrounded"]) == (name, "look below", False)
    (way,) = house.printed("system", "task_progress")
    assert (way["last_tool_name"], way["usage"]["tool_uses"]) == ("Read", 1)
    (done,) = house.printed("system", "task_notification")
    assert (done["status"], done["summary"]) == ("completed", "It says hello.")
    assert done["usage"]["tool_uses"] == 1


def test_a_session_says_whose_key_it_uses_and_what_it_writes(house: House) -> None:
    house.options.key_source = "ANTHROPIC_API_KEY"
    house.script.on("go", "Done.")
    house.say("go")
    (init,) = house.printed("system", "init")
    assert init["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert init["claude_code_version"] == house.records()[0]["version"]
    assert init["cwd"] == init["original_cwd"] == str(house.project)
    assert "Task" in init["tools"]


def test_what_was_said_bears_its_time_and_its_request(house: House) -> None:
    house.script.on("go", tool("Glob", pattern="*")).then("Done.")
    house.say("go")
    for line in (*house.printed("assistant"), *house.printed("user")):
        assert line["timestamp"].endswith("Z")
    assert all(each["request_id"].startswith("req_") for each in house.printed("assistant"))


def test_a_call_that_is_not_allowed_is_told_of_at_once(house: House) -> None:
    house.script.on("go", tool("Bash", "toolu_no", command="touch made")).then("A pity.")
    house.say("go")
    (denied,) = house.printed("system", "permission_denied")
    assert (denied["tool_name"], denied["tool_use_id"]) == ("Bash", "toolu_no")
    (result,) = house.printed("user")
    (meta,) = result["tool_result_meta"]
    assert meta["permission_decision"]["decision"] == "reject"


def test_a_refusal_of_the_api_stands_where_the_answer_would(house: House) -> None:
    house.script.on("go", ErrorReply(status=403, kind="permission_error", message="not for you"))
    assert house.say("go") == 1
    (answer,) = house.printed("assistant")
    assert (answer["is_api_error_message"], answer["api_error_status"]) == (True, 403)
    assert answer["uuid"] in [each.get("uuid") for each in house.records()]
    (result,) = house.printed("result")
    assert (result["subtype"], result["is_error"]) == ("success", True)
    assert (result["api_error_status"], result["terminal_reason"]) == (403, "api_error")
    assert result["result"] == answer["message"]["content"][0]["text"]


def test_what_a_limit_ends_has_errors_and_no_result(house: House) -> None:
    house.options.limits = TurnLimits(requests=1)
    house.script.otherwise(tool("Glob", pattern="*"))
    assert house.say("go") == 1
    (result,) = house.printed("result")
    assert (result["subtype"], result["terminal_reason"]) == ("error_max_turns", "max_turns")
    assert "result" not in result
    assert "--max-turns" in result["errors"][0]
    assert result["stop_reason"] == "tool_use"


def test_results_are_counted_and_say_why_the_model_stopped(house: House) -> None:
    house.script.on("no", refusal_reply("I will not.")).otherwise("Yes.")
    house.say("one", "no", "two")
    results = house.printed("result")
    assert [each["result_index"] for each in results] == [0, 1, 2]
    assert [each["stop_reason"] for each in results] == ["end_turn", "refusal", "end_turn"]
    assert [each["is_error"] for each in results] == [False, True, False]


# Prompts that hooks keep from being answered


def test_a_prompt_that_a_hook_blocks_leaves_a_note_and_nothing_else(house: House) -> None:
    house.hook("UserPromptSubmit", "echo not this >&2; exit 2")
    assert house.say("go") == 1
    note, last = house.records()
    assert (note["type"], note["subtype"], note["level"]) == ("system", "informational", "warning")
    command = f"[{house.scripts / 'UserPromptSubmit-0.sh'}]"
    assert note["content"] == (
        f"UserPromptSubmit operation blocked by hook:\n{command}: not this\n\n\nOriginal prompt: go"
    )
    assert (note["isMeta"], note["preventContinuation"]) == (False, True)
    ending = {"kind": "blocked_by_hook", "reason": "not this"}
    assert note["promptSubmitEnding"] == {"ending": ending, "promptKept": False}
    assert (last["type"], last["leafUuid"]) == ("last-prompt", note["uuid"])
    assert "lastPrompt" not in last
    (line,) = house.printed("system", "informational")
    assert line["uuid"] == note["uuid"]
    assert line["prompt_submit_outcome"] == {**ending, "prompt_kept": False}
    assert house.results() == [note["content"]]
    assert len(house.server.requests) == 0


def test_a_blocked_prompt_is_never_sent_later(house: House) -> None:
    block = '{"decision":"block","reason":"hush"}'
    log = house.scripts / "UserPromptSubmit.log"
    house.hook("UserPromptSubmit", f"tail -n 1 '{log}' | grep -q secret && echo '{block}'; exit 0")
    house.script.otherwise("Yes.")
    house.say("one", "the secret", "two")
    assert "secret" not in str(house.sent())
    notes = [each for each in house.records() if each.get("subtype") == "informational"]
    assert [each["content"] for each in notes] == [
        "UserPromptSubmit operation blocked by hook:\nhush\n\nOriginal prompt: the secret"
    ]
    house.check()


def test_a_turn_that_a_hook_ends_keeps_its_prompt(house: House) -> None:
    stop = '{"continue":false,"stopReason":"halt","decision":"block","reason":"nope"}'
    house.hook("UserPromptSubmit", f"echo '{stop}'")
    house.say("go")
    prompt, meta, note, last = (each for each in house.records() if "sessionId" in each)
    assert prompt["message"]["content"] == "go"
    assert (meta["isMeta"], meta["message"]["content"]) == (True, "Operation stopped by hook: halt")
    assert note["content"] == meta["message"]["content"]
    ending = {"kind": "stopped_by_hook", "reason": "halt"}
    assert note["promptSubmitEnding"] == {"ending": ending, "promptKept": True}
    assert (last["lastPrompt"], last["leafUuid"]) == ("go", note["uuid"])
    house.check()


def test_a_command_that_a_hook_blocks_leaves_the_same_note(house: House) -> None:
    house.write("~/commands/hi.md", "Say $ARGUMENTS")
    house.hook("UserPromptExpansion", "echo not this >&2; exit 2")
    house.say("/hi you")
    note, _ = house.records()
    assert note["content"].startswith("UserPromptExpansion operation blocked by hook:\n[")
    assert note["content"].endswith("\n\nOriginal prompt: /hi you")
    assert "promptSubmitEnding" not in note
