"""The loop against the strict server: what is sent, what is recorded, how turns end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Does, Says, Stage
from tests.notation import notation

from steno.agent import events
from steno.agent.context.token_usage import TurnLimits
from steno.agent.hooks.dispatcher import HookOutcome
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.loop import Agent
from steno.agent.tool_executor import Approval
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import ErrorReply, invalid_tool_call, text, thinking, tool
from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_rules import Decision


def test_a_prompt_gets_its_answer(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("hello", "Good day."))
    (ended,) = stage.say("hello")
    assert (ended.reason, ended.text, ended.requests) == ("done", "Good day.", 1)
    assert notation(stage.talk.messages()) == ["u:hello", "a:Good day."]
    stage.check()


def test_calls_are_made_and_their_results_sent_back(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [text("I do."), tool("Shout", what="a"), tool("Fail", what="b")])
    stage = Stage(tmp_path, script.then("Done."))
    (ended,) = stage.say("go")
    assert ended.requests == 2
    (last,) = [each.body["messages"][-1]["content"] for each in list(stage.server.requests)[-1:]]
    assert [block["content"] for block in last] == ["A", "cannot do b"]
    assert [block.get("is_error") for block in last] == [None, True]
    stage.check()


def test_calls_that_only_read_run_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(given: dict[str, Any]) -> str:
        await both.wait()
        return str(given["what"])

    script = ScriptedResponder().on("go", [tool("Meet", what="1"), tool("Meet", what="2")]).then("Met.")
    stage = Stage(tmp_path, script)
    stage.tools.append(Does("Meet", meet, reads_only=True))
    assert stage.say("go")[0].text == "Met."
    stage.check()


def test_what_is_resumed_begins_with_the_very_bytes_sent_before(tmp_path: Path) -> None:
    script = ScriptedResponder().on("one", [thinking("hm"), tool("Look", what="x")]).then("One.")
    stage = Stage(tmp_path, script.on("two", "Two."))
    stage.say("one")
    sent = stage.server.requests[-1].body["messages"]
    stage.resume()
    stage.say("two")
    again = stage.server.requests[-1].body["messages"]
    del sent[-1]["content"][-1]["cache_control"]
    assert again[: len(sent)] == sent
    assert notation(again)[-1] == "u:two"
    stage.check()


@pytest.mark.parametrize("mode", ["deny", "ask"])
def test_what_is_not_allowed_is_not_done(tmp_path: Path, mode: str) -> None:
    async def refuse(call: Block, decision: Decision) -> Approval:
        assert call["name"] == "Shout"
        assert decision.verdict == "ask"
        return Approval(granted=False, message="Rather not.")

    stage = Stage(tmp_path, ScriptedResponder().on("go", tool("Shout", what="a")).then("I see."))
    stage.guard, stage.consent = Says(mode), refuse
    stage.say("go")
    assert not [each for each in stage.events if isinstance(each, events.ToolStarted)]
    assert [each for each in stage.events if isinstance(each, events.CallDenied)]
    stage.check()


def test_a_hook_may_change_refuse_and_add(tmp_path: Path) -> None:
    class Gates:
        async def dispatch(self, event: HookEvent, /) -> HookOutcome:
            if event.name == "PreToolUse" and event.fields["tool_input"]["what"] == "a":
                return HookOutcome(tool_input={"what": "changed"}, context=("Mind the gap.",))
            if event.name == "PreToolUse":
                return HookOutcome(blocked=True, reason="Not that.")
            return HookOutcome()

    script = ScriptedResponder().on("go", [tool("Shout", what="a"), tool("Shout", what="b")]).then("Done.")
    stage = Stage(tmp_path, script)
    stage.hooks = Gates()
    stage.say("go")
    sent = notation(stage.server.requests[-1].body["messages"])[-1]
    assert "CHANGED" in sent
    assert "Not that." in sent
    assert "Mind the gap." in sent
    stage.check()


def test_a_stop_hook_makes_it_go_on(tmp_path: Path) -> None:
    asked: list[bool] = []

    class Gates:
        async def dispatch(self, event: HookEvent, /) -> HookOutcome:
            if event.name != "Stop":
                return HookOutcome()
            asked.append(event.fields["stop_hook_active"])
            return HookOutcome(blocked=not event.fields["stop_hook_active"], reason="Run the tests.")

    stage = Stage(tmp_path, ScriptedResponder().on("go", "Done.").on("Run the tests", "They pass."))
    stage.hooks = Gates()
    assert stage.say("go")[0].text == "They pass."
    assert asked == [False, True]
    stage.check()


def test_input_that_is_no_json_is_told_to_the_model(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", invalid_tool_call("Shout", '{"what": "a')).then("Sorry.")
    stage = Stage(tmp_path, script)
    stage.say("go")
    (result,) = stage.server.requests[-1].body["messages"][-1]["content"]
    assert '{"what": "a' in result["content"]
    stage.check()


def test_a_tool_that_is_not_there_is_told_to_the_model(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("go", tool("Nowhere", what="a")).then("Sorry."))
    stage.say("go")
    assert "Unknown tool: Nowhere." in notation(stage.server.requests[-1].body["messages"])[-1]
    stage.check()


def test_an_answer_that_is_too_long_goes_on(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", "The first", stop_reason="max_tokens").on("length limit", "and the last.")
    stage = Stage(tmp_path, script)
    (ended,) = stage.say("go")
    assert (ended.text, ended.requests) == ("and the last.", 2)
    stage.check()


def test_errors_that_pass_are_waited_out_and_recorded(tmp_path: Path) -> None:
    busy = ErrorReply(status=529, kind="overloaded_error", message="Overloaded")
    stage = Stage(tmp_path, ScriptedResponder().on("go", "Done.", first=[busy, busy]))
    assert stage.say("go")[0].reason == "done"
    assert len(stage.pauses) == 2
    assert stage.data.count(b'"subtype":"api_error"') == 2
    stage.check()


def test_errors_that_stay_end_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    bad = ErrorReply(status=401, kind="authentication_error", message="invalid x-api-key")
    stage = Stage(tmp_path, ScriptedResponder().on("two", "Two.").on("one", bad))
    first, second = stage.say("one", "two")
    assert (first.reason, second.reason) == ("error", "done")
    assert "invalid x-api-key" in first.text
    stage.check()


def test_an_empty_answer_ends_the_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("again", "Here.").on("go", []))
    first, second = stage.say("go", "again")
    assert (first.reason, second.text) == ("empty", "Here.")
    stage.check()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(TurnLimits(requests=2), "max_turns"), (TurnLimits(cost=2000), "max_budget"), (TurnLimits(seconds=0), "max_time")],
)
def test_limits_end_a_turn(tmp_path: Path, limits: TurnLimits, reason: str) -> None:
    stage = Stage(tmp_path, ScriptedResponder().otherwise(tool("Look", what="more")))
    stage.limits = limits
    assert stage.say("go")[0].reason == reason
    stage.check(allowed=("tools.interrupted",))


def test_breaking_in_keeps_what_was_said(tmp_path: Path) -> None:
    door = Door()
    script = ScriptedResponder().on("go", [text("Half of ", door, "it.")]).on("on", "Going on.")
    stage = Stage(tmp_path, script)

    async def act(agent: Agent) -> events.TurnEnded:
        grown = asyncio.Event()

        def emit(event: events.Event) -> None:
            if isinstance(event, events.ContentDelta):
                grown.set()

        agent.executor.emit = emit
        turn = asyncio.create_task(agent.run_turn("go"))
        await grown.wait()
        agent.interrupt()
        ended = await turn
        door.release()
        await agent.run_turn("on")
        return ended

    assert stage.play(act).reason == "interrupted"
    assert notation(stage.talk.messages())[:2] == ["u:go", "a:Half of "]
    stage.check()


def test_breaking_into_a_call_answers_it(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def hang(_given: dict[str, Any]) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    stage = Stage(tmp_path, ScriptedResponder().on("go", [tool("Hang"), tool("Look", what="x")]).on("on", "Yes."))
    stage.tools.append(Does("Hang", hang))

    async def act(agent: Agent) -> events.TurnEnded:
        turn = asyncio.create_task(agent.run_turn("go"))
        await started.wait()
        agent.interrupt()
        ended = await turn
        await agent.run_turn("on")
        return ended

    assert stage.play(act).reason == "interrupted"
    stage.check()


def test_what_comes_in_meanwhile_is_said_at_the_next_chance(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("go", tool("Wait")).then("Never."))

    async def act(agent: Agent) -> events.TurnEnded:
        async def wait(_given: dict[str, Any]) -> str:
            agent.inbox.append(("Stop that.", False))
            return "waited"

        agent.executor.tools = type(agent.executor.tools)([Does("Wait", wait)])
        return await agent.run_turn("go")

    stage.play(act)
    assert "Stop that." in notation(stage.server.requests[-1].body["messages"])[-1]
    stage.check()
