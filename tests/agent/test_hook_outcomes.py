"""Hooks of every event, as scripts on disk, in a session put together as `steno chat -p` does it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.agent.events import Notice
from steno.agent.tool_executor import Approval
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import ErrorReply, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_rules import Decision
from steno.session.transcript import load
from steno.store.file_source import FileSource


def says(event: str, **own: Any) -> str:
    value = {"hookSpecificOutput": {"hookEventName": event, **own}}
    return f"cat <<'X'\n{json.dumps(value)}\nX"


def texts(message: dict[str, Any]) -> list[str]:
    return [str(block.get("text")) for block in message["content"] if block["type"] == "text"]


def by_uuid(house: House) -> dict[str, dict[str, Any]]:
    return {each["uuid"]: each for each in house.records() if "uuid" in each}


def house_that_reads(folder: Path) -> House:
    house = House(folder)
    house.write("a.txt", "alpha\n")
    house.script.on("go", tool("Read", file_path=str(house.project / "a.txt"))).then("Done.")
    house.script.otherwise("Yes.")
    return house


def common(told: dict[str, Any], house: House) -> None:
    assert told["session_id"] == house.work.id
    assert told["transcript_path"] == str(house.path)
    assert told["cwd"] == str(house.project)
    silent = told["hook_event_name"] in {"SessionStart", "SubagentStart"}
    assert told.get("permission_mode") == (None if silent else "default")


# The beginning


def test_session_start_stands_before_the_first_prompt_and_the_model_reads_it(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("SessionStart", "echo be kind", matcher="startup")
    house.say("hello")
    (told,) = house.told("SessionStart")
    common(told, house)
    assert (told["hook_event_name"], told["source"]) == ("SessionStart", "startup")
    assert told["model"] == "claude-opus-4-5-20251101"
    first, prompt = house.records()[:2]
    assert first["parentUuid"] is None
    assert first["attachment"]["hookName"] == "SessionStart:startup"
    words = "<system-reminder>\nSessionStart:startup hook success: be kind\n</system-reminder>"
    assert first["rendered"] == [{"content": words}]
    assert first["renderedRole"] == "system"
    assert prompt["parentUuid"] == first["uuid"]
    assert texts(house.sent()[0]) == [f"{words}\n", "hello"]
    house.check()


def test_a_session_that_goes_on_starts_with_resume(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("hello")
    house.resume()
    house.hook("SessionStart", matcher="startup|clear", timeout=5)
    house.hook("SessionStart", "echo again", matcher="resume")
    house.say("on")
    assert [told["source"] for told in house.told("SessionStart")] == ["resume"]
    (kept,) = house.attached("hook_success")
    assert kept["attachment"]["hookName"] == "SessionStart:resume"
    house.check()


def test_of_a_session_of_which_no_prompt_was_let_in_a_note_is_left(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hook("SessionStart", "echo hi")
    house.hook("UserPromptSubmit", "echo not today >&2; exit 2")
    assert house.say("hello") == 1
    assert [each["type"] for each in house.records()] == ["system", "last-prompt"]
    assert "not today" in house.records()[0]["content"]


def test_user_prompt_submit_hears_the_prompt_and_adds_to_it(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("UserPromptSubmit", says("UserPromptSubmit", additionalContext="It rains."))
    house.say("one", "two")
    told = house.told("UserPromptSubmit")
    common(told[0], house)
    assert [each["prompt"] for each in told] == ["one", "two"]
    words = "UserPromptSubmit hook additional context: It rains."
    assert texts(house.sent()[-1]) == [f"<system-reminder>\n{words}\n</system-reminder>\n", "two"]
    known = by_uuid(house)
    for record in house.attached("hook_additional_context"):
        assert record["attachment"]["content"] == ["It rains."]
        assert known[record["parentUuid"]]["message"]["content"] in {"one", "two"}
    assert house.attached("hook_success") == []
    house.check()


def test_a_session_with_hooks_is_resumed_with_the_very_same_messages(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"):
        house.hook(event, says(event, additionalContext=f"from {event}"))
    house.say("go")
    before = house.sent()
    house.resume()
    house.say("again")
    after = [each for each in house.sent() if each["role"] != "system"]
    assert plain(after[: len(before)]) == plain(before)
    house.check()


def plain(messages: list[dict[str, Any]]) -> str:
    """Messages without the marks of what may be cached."""
    return json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', "")


def test_what_hooks_leave_in_the_file_for_it_commands_see(tmp_path: Path) -> None:
    house = House(tmp_path)
    command = "echo [$FRUIT] [$TREE]"
    house.script.on("go", tool("Bash", command=command, description="x")).then("Done.")
    body = """echo "export FRUIT='a pear'" >> "$CLAUDE_ENV_FILE"
    echo 'export TREE="$FRUIT tree"' >> "$CLAUDE_ENV_FILE\""""
    house.hook("SessionStart", body)
    house.say("go")
    (block,) = house.sent()[-1]["content"]
    assert block["content"] == "[a pear] [a pear tree]"
    assert list((tmp_path / "steno" / "hook-env").iterdir()) == []


# Calls


def test_hooks_before_a_call_hang_beside_the_way_and_those_after_it_on_the_way(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PreToolUse", "echo before", matcher="Read")
    house.hook("PostToolUse", "echo after", matcher="Read|Write")
    house.hook("PreToolUse", "exit 2", matcher="Write")
    house.say("go")
    (told,) = house.told("PreToolUse")
    common(told, house)
    assert told["tool_name"] == "Read"
    assert told["tool_input"] == {"file_path": str(house.project / "a.txt")}
    (later,) = house.told("PostToolUse")
    assert later["tool_response"]["file"]["content"] == "alpha\n"
    assert later["tool_use_id"] == told["tool_use_id"]
    assert isinstance(later["duration_ms"], int)
    known = by_uuid(house)
    before, after = house.attached("hook_success")
    assert before["attachment"]["hookName"] == "PreToolUse:Read"
    assert known[before["parentUuid"]]["type"] == "assistant"
    assert all(each.get("parentUuid") != before["uuid"] for each in house.records())
    assert "toolUseResult" in known[after["parentUuid"]]
    assert [each["type"] for each in house.records() if each.get("parentUuid") == after["uuid"]] == ["assistant"]
    assert before["attachment"]["toolUseID"] == told["tool_use_id"]
    house.check()


def test_hooks_of_calls_side_by_side_each_stand_with_their_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    for name in "ab":
        house.write(f"{name}.txt", name)
    (house.script.on("go", [tool("Read", file_path=str(house.project / f"{name}.txt")) for name in "ab"]).then("Done."))
    house.hook("PreToolUse", "echo before")
    house.hook("PostToolUse", says("PostToolUse", additionalContext="read"))
    house.say("go")
    known = by_uuid(house)
    assert len(house.attached("hook_success")) == 4
    for record in house.attached("hook_success"):
        above = known[record["parentUuid"]]
        names = [block.get("id") or block.get("tool_use_id") for block in above["message"]["content"]]
        assert names == [record["attachment"]["toolUseID"]]
    results = house.sent()[-1]["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result"]
    assert all("additional context: read" in str(block["content"]) for block in results)
    house.check()


def test_a_call_that_a_hook_forbids_is_not_made_and_the_model_hears_why(tmp_path: Path) -> None:
    house = House(tmp_path)
    target = house.project / "new.txt"
    (house.script.on("go", tool("Write", file_path=str(target), content="x")).then("I see."))
    house.options.mode = "bypassPermissions"
    house.hook("PreToolUse", "echo hands off >&2; exit 2", matcher="^Wri")
    house.say("go")
    assert not target.exists()
    (block,) = house.sent()[-1]["content"]
    assert block["is_error"]
    assert "hands off" in block["content"]
    assert [each for each in house.records() if each["type"] == "attachment"] == []
    house.check()


def test_a_hook_decides_and_changes_what_a_call_is_given(tmp_path: Path) -> None:
    house = House(tmp_path)
    asked, written = house.project / "asked.txt", house.project / "written.txt"
    (house.script.on("go", tool("Write", file_path=str(asked), content="x")).then("Done."))
    given = {"file_path": str(written), "content": "y"}
    house.hook("PreToolUse", says("PreToolUse", permissionDecision="allow", updatedInput=given))
    house.say("go")
    assert not asked.exists()
    assert written.read_text("utf-8") == "y"
    house.check()


def test_a_hook_with_a_condition_runs_only_for_the_calls_it_names(tmp_path: Path) -> None:
    house = House(tmp_path)
    (
        house.script.on("go", tool("Bash", command="ls", description="x"))
        .then(tool("Bash", command="cd . && git status", description="y"))
        .then("Done.")
    )
    house.hook("PreToolUse", matcher="Bash", **{"if": "Bash(git *)"})
    house.say("go")
    told = [each["tool_input"]["command"] for each in house.told("PreToolUse")]
    assert told == ["cd . && git status"]


def test_after_a_call_a_hook_can_object_and_the_model_reads_it(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PostToolUse", "echo look again >&2; exit 2")
    house.say("go")
    (block,) = house.sent()[-1]["content"]
    assert "look again" in str(block["content"])
    assert not block.get("is_error")
    (kept,) = house.attached("hook_blocking_error")
    assert "look again" in kept["rendered"][0]["content"]
    house.check()


def test_a_hook_puts_something_in_the_place_of_an_output(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PostToolUse", says("PostToolUse", updatedToolOutput="nothing to see"))
    house.say("go")
    (block,) = house.sent()[-1]["content"]
    assert block["content"] == "nothing to see"
    house.check()


def test_a_call_that_fails_has_an_event_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    missing = str(house.project / "none.txt")
    house.script.on("go", tool("Read", file_path=missing)).then("Done.")
    house.hook("PostToolUse")
    house.hook("PostToolUseFailure", "echo oh")
    house.say("go")
    assert house.told("PostToolUse") == []
    (told,) = house.told("PostToolUseFailure")
    assert told["tool_name"] == "Read"
    assert told["error"]
    assert told["is_interrupt"] is False
    (kept,) = house.attached("hook_success")
    assert kept["attachment"]["hookName"] == "PostToolUseFailure:Read"
    house.check()


def test_a_hook_that_wants_no_more_ends_the_turn(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PostToolUse", 'echo \'{"continue": false, "stopReason": "enough"}\'')
    assert house.say("go") == 1
    assert len(house.server.requests) == 1
    house.check()


def test_a_hook_that_wants_no_more_keeps_a_call_from_being_made(tmp_path: Path) -> None:
    house = House(tmp_path)
    asks(house)
    house.options.mode = "acceptEdits"
    house.hook("PreToolUse", 'echo \'{"continue": false, "stopReason": "enough"}\'')
    assert house.say("go") == 1
    assert not (house.project / "new.txt").exists()
    assert len(house.server.requests) == 1
    house.check()


def test_a_broken_hook_stops_nothing_and_is_kept_as_broken(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PostToolUse", "echo oh >&2; exit 1")
    house.hook("PostToolUse", "sleep 60", timeout=0.3)
    assert house.say("go") == 0
    kept = [each["attachment"] for each in house.attached("hook_non_blocking_error")]
    assert [each["exitCode"] == 1 for each in kept] == [True, False]
    house.check()


def test_a_batch_of_calls_has_an_event_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    for name in "ab":
        house.write(f"{name}.txt", name)
    calls = [tool("Read", file_path=str(house.project / f"{name}.txt")) for name in "ab"]
    house.script.on("go", calls).then("Done.")
    house.hook("PostToolBatch", says("PostToolBatch", additionalContext="both"))
    house.say("go")
    (told,) = house.told("PostToolBatch")
    assert [each["tool_name"] for each in told["tool_calls"]] == ["Read", "Read"]
    assert [each["tool_response"] for each in told["tool_calls"]] == ["1\ta", "1\tb"]
    assert "PostToolBatch hook additional context: both" in str(house.sent()[-1])
    house.check()


def test_after_a_batch_a_hook_can_end_the_turn(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    house.hook("PostToolBatch", "echo that will do >&2; exit 2")
    house.say("go")
    assert len(house.server.requests) == 1
    (kept,) = house.attached("hook_stopped_continuation")
    assert kept["attachment"]["message"] == "that will do"
    house.check()
    house.resume()
    house.say("on")
    assert "that will do" in str(house.sent())
    house.check()


def test_of_hooks_that_say_nothing_nothing_is_kept(tmp_path: Path) -> None:
    house = house_that_reads(tmp_path)
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"):
        house.hook(event)
    house.say("go")
    assert len(house.told("PostToolUse")) == 1
    assert [each for each in house.records() if each["type"] == "attachment"] == []


def test_a_no_that_nobody_can_heed_is_kept_as_a_fault(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("SessionStart", "echo no >&2; exit 2")
    assert house.say("go") == 0
    (kept,) = house.attached("hook_non_blocking_error")
    assert (kept["attachment"]["exitCode"], kept["attachment"]["stderr"]) == (2, "no\n")
    house.check()


def test_every_file_of_instructions_is_told(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    own = house.write("CLAUDE.md", "Be nice. See @more.md")
    more = house.write("more.md", "And quick.")
    house.hook("InstructionsLoaded")
    house.say("go")
    told = {each["file_path"]: each for each in house.told("InstructionsLoaded")}
    assert told[str(own)]["memory_type"] == "Project"
    assert told[str(own)]["load_reason"] == "session_start"
    assert told[str(more)]["load_reason"] == "include"
    assert told[str(more)]["parent_file_path"] == str(own)


# Permission


def asks(house: House) -> None:
    target = str(house.project / "new.txt")
    (house.script.on("go", tool("Write", file_path=target, content="x")).then("Done."))


def test_a_hook_answers_in_the_place_of_the_user(tmp_path: Path) -> None:
    house = House(tmp_path)
    asks(house)
    asked: list[Block] = []

    async def consent(call: Block, _decision: Decision) -> Approval:
        asked.append(call)
        return Approval(granted=False)

    house.consent = consent
    house.hook("PermissionRequest", says("PermissionRequest", decision={"behavior": "allow"}))
    house.hook("Notification")
    house.talk("go")
    (told,) = house.told("PermissionRequest")
    assert told["tool_name"] == "Write"
    assert told["tool_input"]["content"] == "x"
    assert (house.project / "new.txt").exists()
    assert asked == []
    assert house.told("Notification") == []
    house.check()


def test_who_is_asked_for_permission_is_notified(tmp_path: Path) -> None:
    house = House(tmp_path)
    asks(house)

    async def consent(_call: Block, _decision: Decision) -> Approval:
        return Approval(granted=True)

    house.consent = consent
    house.hook("Notification", matcher="permission_prompt")
    house.talk("go")
    (told,) = house.told("Notification")
    assert told["notification_type"] == "permission_prompt"
    assert "Write" in told["message"]
    assert (house.project / "new.txt").exists()


@pytest.mark.parametrize("answer", ["allow", "deny", ""])
def test_where_nobody_is_there_a_hook_can_still_answer(tmp_path: Path, answer: str) -> None:
    house = House(tmp_path)
    asks(house)
    house.hook("Notification")
    decision = {"behavior": answer, "message": "not now"} if answer else {}
    house.hook("PermissionRequest", says("PermissionRequest", decision=decision))
    house.say("go")
    assert house.told("Notification") == []
    assert (house.project / "new.txt").exists() is (answer == "allow")
    kept = house.attached("hook_permission_decision")
    assert [each["attachment"]["decision"] for each in kept] == ([answer] if answer else [])
    known = by_uuid(house)
    for each in kept:
        assert known[each["parentUuid"]]["type"] == "assistant"
    house.check()


# The end


def test_stop_is_summed_up_and_says_whether_it_has_held_the_turn_before(tmp_path: Path) -> None:
    script = ScriptedResponder().on("not yet", "Now it is done.").otherwise("Done.")
    house = House(tmp_path, script)
    mark = tmp_path / "mark"
    house.hook("Stop", f"[ -e {mark} ] && exit 0; touch {mark}; echo not yet >&2; exit 2")
    house.say("go")
    told = house.told("Stop")
    common(told[0], house)
    assert [each["stop_hook_active"] for each in told] == [False, True]
    assert [each["last_assistant_message"] for each in told] == ["Done.", "Now it is done."]
    feedback = [each for each in house.records() if each.get("isMeta")]
    assert feedback[0]["message"]["content"] == "Stop hook feedback:\nnot yet"
    notes = [each for each in house.records() if each.get("subtype") == "stop_hook_summary"]
    assert [each["hookErrors"] for each in notes] == [["not yet"], []]
    assert [each["hookCount"] for each in notes] == [1, 1]
    assert [each["hasOutput"] for each in notes] == [True, False]
    assert notes[0]["parentUuid"] == feedback[0]["uuid"]
    assert house.attached("hook_success") == []
    house.check()
    house.resume()
    house.say("on")
    house.check()


def test_the_summary_of_a_stop_hangs_on_what_its_hooks_printed(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("Stop", "echo bye")
    house.say("go")
    (last,) = house.attached("hook_success")
    (note,) = [each for each in house.records() if each.get("subtype") == "stop_hook_summary"]
    assert note["parentUuid"] == last["uuid"]
    assert note["toolUseID"] == last["attachment"]["toolUseID"]
    assert note["hookInfos"][0]["command"] == last["attachment"]["command"]
    house.check()


def test_a_turn_that_fails_says_so_by_the_name_of_the_failure(tmp_path: Path) -> None:
    bad = ErrorReply(status=401, kind="authentication_error", message="no")
    house = House(tmp_path, ScriptedResponder().on("go", bad))
    house.hook("StopFailure", matcher="authentication_failed")
    house.hook("Stop")
    assert house.say("go") == 1
    (told,) = house.told("StopFailure")
    assert told["error"] == "authentication_failed"
    assert house.told("Stop") == []


def test_what_hooks_said_before_a_failure_stays_in_its_place(tmp_path: Path) -> None:
    bad = ErrorReply(status=401, kind="authentication_error", message="no")
    house = House(tmp_path, ScriptedResponder().on("two", "Two.").on("one", bad))
    house.hook("UserPromptSubmit", "echo hi")
    house.say("one", "two")
    reminder = "<system-reminder>\nUserPromptSubmit hook success: hi\n</system-reminder>"
    assert [each.strip() for each in texts(house.sent()[0])] == [reminder, "one", reminder, "two"]
    house.check()


def test_session_end_is_told_last(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("SessionEnd", matcher="other")
    house.say("hello")
    (told,) = house.told("SessionEnd")
    assert told["reason"] == "other"


def test_compaction_is_told_before_and_after_and_the_session_starts_again(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.hook("PreCompact", says("PreCompact", additionalContext="Keep names."), matcher="manual")
    house.hook("PostCompact")
    house.hook("SessionStart", "echo anew", matcher="compact")
    house.say("one", "two", "/compact keep the tests", "three")
    (before,) = house.told("PreCompact")
    assert (before["trigger"], before["custom_instructions"]) == ("manual", "keep the tests")
    (after,) = house.told("PostCompact")
    assert (after["trigger"], after["compact_summary"]) == ("manual", "In short.")
    (again,) = house.told("SessionStart")
    assert again["source"] == "compact"
    (kept,) = house.attached("hook_success")
    assert kept["attachment"]["hookName"] == "SessionStart:compact"
    question = str(house.server.requests[2].body["messages"])
    assert "keep the tests" in question
    assert "Keep names." in question
    house.check()


def test_a_hook_keeps_a_conversation_from_being_compacted(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("PreCompact", "echo no >&2; exit 2")
    house.hook("PostCompact")
    house.say("one", "/compact")
    assert house.told("PostCompact") == []
    assert not any(each.get("subtype") == "compact_boundary" for each in house.records())


# Sub-agents


def test_a_sub_agents_hooks_know_whose_they_are_and_stand_in_its_file(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.write("a.txt", "alpha\n")
    (
        house.script.on("count", tool("Read", file_path=str(house.project / "a.txt")))
        .then("Three.")
        .on("go", tool("Agent", description="x", prompt="count apples"))
        .then("It says three.")
    )
    for event in ("SubagentStart", "SubagentStop", "PreToolUse", "Stop", "UserPromptSubmit"):
        house.hook(event, "echo hi")
    house.say("go")
    (path,) = (house.path.parent / house.path.stem / "subagents").glob("*.jsonl")
    agent_id = path.stem.removeprefix("agent-")
    (start,) = house.told("SubagentStart")
    (stop,) = house.told("SubagentStop")
    for told in (start, stop):
        common(told, house)
        assert (told["agent_id"], told["agent_type"]) == (agent_id, "general-purpose")
    assert stop["agent_transcript_path"] == str(path)
    assert stop["stop_hook_active"] is False
    assert stop["last_assistant_message"] == "Three."
    assert len(house.told("Stop")) == len(house.told("UserPromptSubmit")) == 1
    calls = {each["tool_name"]: each.get("agent_id") for each in house.told("PreToolUse")}
    assert calls == {"Agent": None, "Read": agent_id}
    names = [each["attachment"]["hookName"] for each in house.attached("hook_success", path)]
    assert names == ["SubagentStart:general-purpose", "PreToolUse:Read", "SubagentStop"]
    assert not any(each.get("subtype") for each in house.records(path))
    house.check()
    assert load(FileSource(str(path))).gaps == []


def test_a_sub_agent_is_held_by_its_hook(tmp_path: Path) -> None:
    house = House(tmp_path)
    (
        house.script.on("not yet", "Now three.")
        .on("count", "Two.")
        .on("go", tool("Agent", description="x", prompt="count apples"))
        .then("It says three.")
    )
    mark = tmp_path / "mark"
    body = f"[ -e {mark} ] && exit 0; touch {mark}; echo not yet >&2; exit 2"
    house.hook("SubagentStop", body, matcher="general-purpose")
    house.hook("SubagentStop", "exit 2", matcher="Explore")
    house.say("go")
    told = house.told("SubagentStop")
    assert [each["stop_hook_active"] for each in told] == [False, True]
    (block,) = house.sent()[-1]["content"]
    assert "Now three." in str(block["content"])


# Trust, and being heard


@pytest.mark.parametrize("trusted", [False, True])
def test_hooks_of_a_project_run_only_where_it_is_trusted(tmp_path: Path, *, trusted: bool) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."), trusted=trusted)
    mark = tmp_path / "mark"
    entry = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
    house.write(".claude/settings.json", json.dumps({"hooks": {"SessionStart": [entry]}}))
    house.say("hello")
    assert mark.exists() is trusted


def test_what_a_hook_has_to_tell_the_user_is_told(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.hook("Stop", 'echo \'{"systemMessage": "well done"}\'')
    house.talk("hello")
    assert Notice("well done") in house.events
    (kept,) = house.attached("hook_system_message")
    assert kept["attachment"]["content"] == "well done"
    house.check()
