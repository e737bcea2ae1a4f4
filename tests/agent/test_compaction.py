"""Compaction: a summary for what was said, the last turn word for word, and nothing lost on disk."""

from pathlib import Path

import pytest
from tests.agent.loop_harness import Stage
from tests.notation import notation

from steno.agent import events
from steno.agent.context.compaction import ContextCompactor
from steno.agent.context.token_usage import estimate_messages
from steno.agent.hooks.dispatcher import HookOutcome
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.loop import Agent
from steno.llm.testserver.responders import Reply, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

SUMMARY = "They spoke of apples."


def talkative() -> ScriptedResponder:
    return (
        ScriptedResponder()
        .on("Summarize", SUMMARY)
        .on("Write one summary", f"{SUMMARY} And pears.")
        .on("apples", [text("I look."), tool("Look", what="apple")])
        .then("Apples it is.")
        .otherwise("Yes.")
    )


def test_by_hand_everything_but_the_last_turn_becomes_a_summary(tmp_path: Path) -> None:
    stage = Stage(tmp_path, talkative())
    compactor = ContextCompactor()

    async def act(agent: Agent) -> None:
        await agent.run_turn("Tell me of apples.")
        await agent.run_turn("And now?")
        assert await compactor.compact(agent, "manual", "Mind the apples.")
        await agent.run_turn("Go on.")

    stage.play(act)
    said = notation(stage.talk.messages())
    assert SUMMARY in stage.talk.messages()[0]["content"][0]["text"]
    assert "And now?" in said[0]
    assert said[1:] == ["a:Yes.", "u:Go on.", "a:Yes."]
    (asked,) = [each.body for each in stage.server.requests if "Summarize" in str(each.body["messages"])]
    assert "Focus on: Mind the apples." in str(asked["messages"])
    assert "tools" not in asked
    stage.check()
    sent = stage.server.requests[-1].body["messages"]
    stage.resume()
    stage.say("More.")
    again = stage.server.requests[-1].body["messages"]
    del sent[-1]["content"][-1]["cache_control"]
    assert again[: len(sent)] == sent


def test_twice_the_second_summary_stands_for_the_first(tmp_path: Path) -> None:
    stage = Stage(tmp_path, talkative())
    compactor = ContextCompactor()

    async def act(agent: Agent) -> None:
        for prompt in ("One.", "Two.", "Three."):
            await agent.run_turn(prompt)
            await compactor.compact(agent, "manual")

    stage.play(act)
    assert stage.data.count(b'"compact_boundary"') == 3
    assert str(stage.talk.messages()).count(SUMMARY) == 1
    stage.check()


def test_a_window_that_fills_up_is_made_room_in_by_itself(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("Summarize", SUMMARY).otherwise("Yes. " * 400))
    stage.fit = ContextCompactor(window=4_000)
    ended = stage.say(*(f"Prompt {number}: {'word ' * 200}" for number in range(12)))
    assert {each.reason for each in ended} == {"done"}
    compacted = [each for each in stage.events if isinstance(each, events.Compacted)]
    assert len(compacted) >= 2
    assert all(each.tokens_after < each.tokens_before for each in compacted)
    stage.check()


def test_one_turn_that_fills_the_window_keeps_the_users_words(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", SUMMARY).on("Write one", SUMMARY)
    script.otherwise(tool("Look", what="x " * 300))
    stage = Stage(tmp_path, script)
    stage.fit = ContextCompactor(window=4_000)
    stage.limits = type(stage.limits)(requests=20)
    assert stage.say("Look for it, please.")[0].reason == "max_turns"
    assert "Look for it, please." in str(stage.talk.messages()[0])
    stage.check(allowed=("tools.interrupted",))


def test_a_conversation_far_longer_than_the_window_is_summed_up_in_pieces(tmp_path: Path) -> None:
    stage = Stage(tmp_path, talkative())
    small = ContextCompactor(window=1_000)

    async def act(agent: Agent) -> None:
        for number in range(5):
            await agent.run_turn(f"{number}: {'word ' * 500}")
        await small.compact(agent, "manual")

    stage.play(act)
    asked = [each.body["messages"] for each in stage.server.requests if "<session>" in str(each.body)]
    assert len(asked) > 3
    assert all(estimate_messages(messages) < 1_000 for messages in asked)
    stage.check()


@pytest.mark.parametrize("said", [(), ("Hello.",)])
def test_what_a_hook_forbids_or_nobody_said_is_not_compacted(tmp_path: Path, said: tuple[str, ...]) -> None:
    class Gates:
        async def dispatch(self, event: HookEvent, /) -> HookOutcome:
            return HookOutcome(blocked=event.name == "PreCompact")

    stage = Stage(tmp_path, talkative())
    stage.hooks = Gates()

    async def act(agent: Agent) -> None:
        for prompt in said:
            await agent.run_turn(prompt)
        assert not await ContextCompactor().compact(agent, "manual")

    stage.play(act)


def test_a_summary_that_is_refused_takes_the_place_of_nothing(tmp_path: Path) -> None:
    declined = Reply(content=(text("I would rather not say."),), stop_reason="refusal")
    stage = Stage(tmp_path, ScriptedResponder().on("Summarize", declined).otherwise("Yes."))

    async def act(agent: Agent) -> None:
        await agent.run_turn("Tell me of apples.")
        await agent.run_turn("And now?")
        before = agent.conversation.messages()
        assert not await ContextCompactor().compact(agent, "manual")
        assert agent.conversation.messages() == before

    stage.play(act)
    assert b"compact_boundary" not in stage.data
    assert [each for each in stage.events if isinstance(each, events.Compacted)] == []
    stage.check()
