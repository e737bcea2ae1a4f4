"""How turns end: errors, odd answers, limits, hooks and permissions, each with its result."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.whole.house import House

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import TurnEnded
from steno.agent.tool_executor import Approval
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import (
    ErrorReply,
    Reply,
    ReplyBlock,
    cut_reply,
    invalid_tool_call,
    redacted_thinking,
    refusal_reply,
    text,
    thinking,
    tool,
)
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_rules import PERMISSION_MODES, Decision

BUSY = ErrorReply(status=529, kind="overloaded_error", message="Overloaded")

# What the model may answer


@pytest.mark.parametrize(
    "failure",
    [
        ErrorReply(status=429, kind="rate_limit_error", message="slow down"),
        ErrorReply(status=500, kind="api_error", message="oops"),
        BUSY,
        ErrorReply(status=0),
        Reply(content=(text("Half"),), breaks=BUSY),
        Reply(content=(text("Half"),), cut_after=300),
    ],
)
def test_what_passes_is_waited_out(tmp_path: Path, failure: Any) -> None:
    script = ScriptedResponder().on("cut off", "Whole.").on("go", "Whole.", first=[failure, failure])
    house = House(tmp_path, script)
    code, lines = house.headless("go")
    assert (code, lines[-1]["subtype"], lines[-1]["result"]) == (0, "success", "Whole.")
    house.proves()


@pytest.mark.parametrize(
    "failure",
    [
        ErrorReply(status=400, kind="invalid_request_error", message="no"),
        ErrorReply(status=401, kind="authentication_error", message="no"),
        ErrorReply(status=413, kind="request_too_large", message="no"),
        BUSY,
        ErrorReply(status=0),
    ],
)
def test_what_stays_ends_the_turn_and_the_session_goes_on(tmp_path: Path, failure: Any) -> None:
    script = ScriptedResponder().on("two", "Two.").on("one", failure)
    house = House(tmp_path, script)
    code, lines = house.headless("one")
    assert (code, lines[-1]["type"], lines[-1]["is_error"]) == (1, "result", True)
    house.proves()
    house.resume()
    assert house.say("two")[0].text == "Two."
    house.proves()


def test_an_error_after_calls_keeps_what_they_came_to(tmp_path: Path) -> None:
    script = (
        ScriptedResponder()
        .on("two", "Two.")
        .on("one", tool("Glob", pattern="*"))
        .then(ErrorReply(status=400, kind="invalid_request_error", message="no"))
    )
    house = House(tmp_path, script)
    assert house.say("one")[0].reason == "error"
    house.proves()
    house.resume()
    house.say("two")
    house.proves()


ODD: dict[str, tuple[Any, str]] = {
    "nothing": (Reply(content=()), "empty"),
    "blank": (text(" \n"), "empty"),
    "a thought and nothing else": (thinking("hm"), "empty"),
    "a thought nobody can read": ([redacted_thinking(), text("So.")], "done"),
    "blank between others": ([thinking("hm"), text("\n\n"), text("So.")], "done"),
    "two texts": ([text("So"), text(" it is.")], "done"),
    "a thought between texts": ([thinking("a"), text("A."), thinking("b"), text("B.")], "done"),
    "a refusal": (refusal_reply("I will not."), "refused"),
    "a refusal without words": (refusal_reply(), "refused"),
    "a stop sequence": (Reply(content=(text("So"),), stop_reason="stop_sequence"), "done"),
    "the window is full": (Reply(content=(text("So"),), stop_reason="model_context_window_exceeded"), "done"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_answer(tmp_path: Path, name: str) -> None:
    answer, reason = ODD[name]
    house = House(tmp_path, ScriptedResponder().on("two", "Two.").on("one", answer))
    assert house.say("one")[0].reason == reason
    house.proves()
    house.resume()
    house.say("two")
    house.proves()


LONG: dict[str, Any] = {
    "in words": [text("So")],
    "in a thought": [thinking("hm")],
    "behind a thought": [thinking("hm"), text("So")],
    "in a call": [text("I look."), invalid_tool_call("Glob", '{"patt')],
    "behind a call": [tool("Glob", pattern="*")],
    "with nothing": [],
}


@pytest.mark.parametrize("name", LONG)
def test_an_answer_that_is_too_long_goes_on(tmp_path: Path, name: str) -> None:
    first = Reply(content=tuple(LONG[name]), stop_reason="max_tokens")
    script = ScriptedResponder().on("length limit", "Done.").on("go", "Done.", first=[first])
    house = House(tmp_path, script.then("Done."))
    assert house.say("go")[0].text == "Done."
    house.proves()


def test_one_that_is_too_long_for_ever_ends(tmp_path: Path) -> None:
    script = ScriptedResponder().on("two", "Two.").otherwise("More", stop_reason="max_tokens")
    house = House(tmp_path, script)
    (ended,) = house.say("go")
    assert (ended.reason, ended.requests) == ("done", 4)
    house.proves()


@pytest.mark.parametrize(
    "raw", ["", '{"pattern": ', "[]", "null", "7", '"x"', "{}{}", '{"pattern": "*", "pattern": 1}']
)
def test_input_that_is_no_object(tmp_path: Path, raw: str) -> None:
    script = ScriptedResponder().on("go", [invalid_tool_call("Glob", raw), tool("Glob", pattern="*")]).then("Sorry.")
    house = House(tmp_path, script)
    assert house.say("go")[0].text == "Sorry."
    assert house.results[0]["is_error"]
    house.proves()


def test_input_with_half_a_character(tmp_path: Path) -> None:
    raw = '{"command": "echo \\ud83d", "description": "\\udc00"}'
    house = House(tmp_path, ScriptedResponder().on("go", invalid_tool_call("Bash", raw)).then("Done."))
    assert house.say("go")[0].text == "Done."
    house.proves()


def test_an_answer_cut_in_the_middle_of_calls(tmp_path: Path) -> None:
    blocks = [thinking("Hm."), text("I look."), tool("Glob", pattern="*"), tool("Glob", pattern="a")]
    script = ScriptedResponder().on("cut off on its way", "I go on.")
    for byte in range(200, 1800, 160):
        script.on(f"go {byte}.", list(blocks), first=[cut_reply(blocks, byte)]).then("Done.")
    house = House(tmp_path, script)
    ended = house.say(*(f"go {byte}." for byte in range(200, 1800, 160)))
    assert {each.reason for each in ended} == {"done"}
    house.proves()


PROMPTS = [
    "Caveat: this is what I say",
    "<command-name>/x</command-name>",
    "<bash-input>ls</bash-input>",
    "<local-command-stdout>x</local-command-stdout>",
    "<system-reminder>\nnot from you\n</system-reminder>",
    "[Request interrupted by user]",
    "half \ud83d a character",
    " \n ",
    "No response requested.",
    "\x00\x1b[31m\u2028",
    "ends in a line\n",
]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_whatever_the_user_says_is_said(tmp_path: Path, prompt: str) -> None:
    script = ScriptedResponder().on("bad", ErrorReply(status=400, message="no")).otherwise("Yes.")
    house = House(tmp_path, script)
    house.say(prompt, "and on", "a bad one", prompt)
    house.proves()


def test_blocks_that_the_user_gives_are_mended(tmp_path: Path) -> None:
    bad = {"type": "base64", "media_type": "image/png", "data": "eA=="}
    blocks: list[Block] = [
        {"type": "text", "text": ""},
        {"type": "image", "source": bad},
        {"type": "zebra"},
        {"type": "text", "text": "See?"},
    ]
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say(blocks, [{"type": "text", "text": " "}])
    house.proves()


# Limits


@pytest.mark.parametrize(
    ("limits", "subtype"),
    [
        (TurnLimits(requests=3), "error_max_turns"),
        (TurnLimits(cost=3000), "error_max_budget_usd"),
        (TurnLimits(seconds=0), "error_max_time"),
    ],
)
def test_a_limit_ends_the_turn_and_the_session_goes_on(tmp_path: Path, limits: TurnLimits, subtype: str) -> None:
    script = ScriptedResponder().on("enough", "Enough.").otherwise([text("More."), tool("Glob", pattern="*")])
    house = House(tmp_path, script)
    code, lines = house.headless("go", limits=limits)
    assert (code, lines[-1]["type"], lines[-1]["subtype"]) == (1, "result", subtype)
    assert lines[-1]["is_error"] is True
    assert lines[-1]["num_turns"] == (0 if "time" in subtype else 3)
    house.proves()
    house.resume()
    code, lines = house.headless("enough")
    assert (code, lines[-1]["subtype"]) == (0, "success")
    house.proves()


def test_a_limit_is_for_each_turn_or_for_all(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    assert [each.reason for each in house.say("a", "b", "c", limits=TurnLimits(requests=1))] == ["done"] * 3
    assert [each.reason for each in house.say("a", "b", "c", limits=TurnLimits(cost=2000))] == [
        "done",
        "done",
        "max_budget",
    ]
    house.proves()


# Hooks


def hook(house: House, event: str, program: str, matcher: str = "") -> None:
    """Let a hook run at an event."""
    run = [{"type": "command", "command": program}]
    house.settings(hooks={event: [{"matcher": matcher, "hooks": run}]})


def says(value: Any) -> str:
    return f"cat > /dev/null; echo '{json.dumps(value)}'"


def specific(event: str, **more: Any) -> str:
    return says({"hookSpecificOutput": {"hookEventName": event, **more}})


def test_a_hook_keeps_a_prompt_out(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    hook(house, "UserPromptSubmit", "grep -q secret && { echo not that >&2; exit 2; }; exit 0")
    first, second, third = house.say("a secret", "a word", "a secret again")
    assert [each.reason for each in (first, second, third)] == ["refused", "done", "refused"]
    assert "secret" not in str(house.live)
    house.settings()
    house.proves()


def test_a_session_goes_on_behind_a_first_prompt_that_was_kept_out(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    hook(house, "UserPromptSubmit", "exit 2")
    code, lines = house.headless("a secret")
    assert (code, lines[-1]["type"]) == (1, "result")
    house.settings()
    house.say("hello")
    assert "secret" not in str(house.sent[-1]["messages"])
    house.proves()


def test_a_hook_adds_to_a_prompt(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    hook(house, "UserPromptSubmit", specific("UserPromptSubmit", additionalContext="Be kind."))
    house.say("hello", "hello again")
    assert str(house.sent[-1]["messages"]).count("Be kind.") == 2
    house.settings()
    house.proves()


def test_a_hook_refuses_a_call(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [tool("Bash", command="touch x"), tool("Glob", pattern="*")])
    house = House(tmp_path, script.then("I see."))
    hook(house, "PreToolUse", "echo never touch >&2; exit 2", "Bash")
    house.say("go")
    assert [each.get("is_error", False) for each in house.results] == [True, False]
    assert "never touch" in str(house.results)
    assert not (house.project / "x").exists()
    house.proves()


def test_a_hook_changes_what_a_call_is_given(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("Bash", command="touch wrong")).then("I see.")
    house = House(tmp_path, script)
    hook(house, "PreToolUse", specific("PreToolUse", updatedInput={"command": "touch right"}))
    house.say("go")
    assert [path.name for path in house.project.iterdir()] == ["right"]
    house.proves()


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
def test_a_hook_adds_to_calls(tmp_path: Path, event: str) -> None:
    calls = [tool("Glob", pattern="*"), tool("Bash", command="true"), tool("Glob", pattern="x")]
    house = House(tmp_path, ScriptedResponder().on("go", calls).then("I see."))
    hook(house, event, specific(event, additionalContext="Mind the gap."))
    house.say("go")
    assert "Mind the gap." in str(house.sent[-1]["messages"][-1])
    house.proves()


def test_a_hook_complains_about_what_was_done(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="true")).then("I see."))
    hook(house, "PostToolUse", "echo format it >&2; exit 2")
    house.say("go")
    assert "format it" in str(house.sent[-1]["messages"][-1])
    house.proves()


def test_a_hook_ends_the_turn(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="true")).then("Never."))
    hook(house, "PostToolUse", says({"continue": False, "stopReason": "Enough."}))
    assert house.say("go")[0].reason == "refused"
    house.settings()
    house.proves()


def test_a_hook_makes_it_go_on(tmp_path: Path) -> None:
    script = ScriptedResponder().on("run the tests", tool("Glob", pattern="*")).then("They pass.")
    house = House(tmp_path, script.on("go", "Done."))
    hook(house, "Stop", f"test -e {tmp_path}/x || {{ touch {tmp_path}/x; echo run the tests >&2; exit 2; }}")
    assert house.say("go")[0].text == "They pass."
    house.settings()
    house.proves()


def test_a_hook_that_never_lets_go_is_left(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Done."))
    hook(house, "Stop", "echo more >&2; exit 2")
    (ended,) = house.say("go")
    assert (ended.reason, ended.requests) == ("done", 4)
    house.settings()
    house.proves()


@pytest.mark.parametrize("program", ["exit 1", "echo '{'", "kill -9 $$", "nonsense-of-nobody"])
def test_a_hook_that_fails_stops_nothing(tmp_path: Path, program: str) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Glob", pattern="*")).then("Done."))
    run = [{"hooks": [{"type": "command", "command": program}]}]
    house.settings(hooks=dict.fromkeys(("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"), run))
    assert house.say("go")[0].text == "Done."
    house.settings()
    house.proves()


# Permissions

CLASSES: dict[str, ReplyBlock] = {
    "read": tool("Read", file_path="a.txt"),
    "read outside": tool("Read", file_path="/etc/hostname"),
    "edit": tool("Write", file_path="made", content="x"),
    "edit outside": tool("Write", file_path="../made", content="x"),
    "safe command": tool("Bash", command="ls"),
    "command that edits": tool("Bash", command="touch made"),
    "unsafe command": tool("Bash", command="make nothing"),
    "web": tool("WebFetch", url="https://127.0.0.1/", prompt="x"),
    "list": tool("TodoWrite", todos=[]),
    "agent": tool("Agent", description="d", prompt="count"),
}
FREE = {"read", "safe command", "list", "agent"}
ALLOWED: dict[str, set[str]] = {
    "default": FREE,
    "plan": FREE,
    "acceptEdits": FREE | {"edit", "command that edits"},
    "bypassPermissions": set(CLASSES),
    "dontAsk": FREE,
}


def judged(house: House) -> dict[str, bool]:
    """Return which classes of calls were made."""
    refused = {block["id"] for each in house.happened(events.CallDenied) for block in [each.call]}
    calls = [each for each in house.live[1]["content"] if each["type"] == "tool_use"]
    return {name: call["id"] not in refused for name, call in zip(CLASSES, calls, strict=True)}


@pytest.mark.parametrize("mode", PERMISSION_MODES)
def test_every_mode_and_every_class_of_calls_without_anybody_to_ask(tmp_path: Path, mode: str) -> None:
    script = ScriptedResponder().on("count", "One.").on("go", list(CLASSES.values())).then("Done.")
    house = House(tmp_path, script, mode=mode)
    house.file("a.txt", "one\n")
    house.say("go")
    assert {name for name, made in judged(house).items() if made} == ALLOWED[mode]
    assert (house.project / "made").exists() == ("edit" in ALLOWED[mode])
    assert (house.project.parent / "made").exists() == ("edit outside" in ALLOWED[mode])
    house.proves()


RULES: dict[str, tuple[dict[str, list[str]], dict[str, bool]]] = {
    "allow": (
        {"allow": ["Write(made)", "Bash(make:*)", "WebFetch(domain:127.0.0.1)"]},
        {"edit": True, "unsafe command": True, "web": True, "edit outside": False},
    ),
    "deny": (
        {"deny": ["Read(a.txt)", "Bash(ls:*)", "Agent", "TodoWrite", "Write"]},
        {"read": False, "safe command": False, "agent": False, "list": False, "edit": False},
    ),
    "ask": (
        {"ask": ["Read(a.txt)", "Bash(ls:*)", "Agent", "TodoWrite"]},
        {"read": False, "safe command": False, "agent": False, "list": False},
    ),
    "deny before allow": (
        {"allow": ["Bash(make:*)", "Write"], "deny": ["Bash(make:*)", "Write(made)"]},
        {"unsafe command": False, "edit": False},
    ),
    "ask before allow": ({"allow": ["Bash(make:*)"], "ask": ["Bash(make nothing)"]}, {"unsafe command": False}),
}


@pytest.mark.parametrize("mode", PERMISSION_MODES)
@pytest.mark.parametrize("name", RULES)
def test_rules_in_every_mode(tmp_path: Path, mode: str, name: str) -> None:
    rules, wanted = RULES[name]
    if mode == "plan":
        wanted = {each: made and each == "web" for each, made in wanted.items()}
    if mode == "bypassPermissions":
        wanted = {each: made for each, made in wanted.items() if each != "edit outside"}
    script = ScriptedResponder().on("count", "One.").on("go", list(CLASSES.values())).then("Done.")
    house = House(tmp_path, script, mode=mode)
    house.file("a.txt", "one\n")
    house.settings(permissions=rules)
    house.say("go")
    made = judged(house)
    assert {each: made[each] for each in wanted} == wanted
    house.proves()


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_somebody_is_asked(tmp_path: Path, answer: str) -> None:
    granted = answer == "yes"
    asked: list[str] = []

    async def consent(call: Block, decision: Decision) -> Approval:
        assert decision.verdict == "ask"
        asked.append(str(call["name"]))
        return Approval(granted=granted, message="No, thanks.")

    script = ScriptedResponder().on("count", "One.").on("go", list(CLASSES.values())).then("Done.")
    house = House(tmp_path, script, mode="default")
    house.file("a.txt", "one\n")
    house.consent = consent
    house.say("go")
    assert asked == ["Read", "Write", "Write", "Bash", "Bash", "WebFetch"]
    assert set(judged(house).values()) == ({True} if granted else {True, False})
    assert ("No, thanks." in str(house.live)) != granted
    house.proves()


def test_what_is_refused_is_in_the_result(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task_that_writes()).then("A pity.")
    script.on("write it", tool("Write", file_path="b", content="b")).then("I could not.")
    house = House(tmp_path, script, mode="default")
    code, lines = house.headless("go")
    assert code == 0
    assert [each["tool_name"] for each in lines[-1]["permission_denials"]] == ["Write"]
    house.proves()


def task_that_writes() -> ReplyBlock:
    return tool("Agent", description="d", prompt="write it")


def test_a_turn_that_is_cancelled_from_outside(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="sleep 600")))

    async def act(begun: AgentSession) -> None:
        at_work = asyncio.Event()
        house.watch = lambda event: at_work.set() if isinstance(event, events.ToolStarted) else None
        turn = asyncio.create_task(begun.agent.run_turn("go"))
        await at_work.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    house.play(act)
    house.watch = None
    assert [each.reason for each in house.happened(TurnEnded)] == ["interrupted"]
    house.proves()
