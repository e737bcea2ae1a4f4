"""Streams that break off at any byte: the turn comes to an end, the session stays whole."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Does, Stage
from tests.campaign.size import spread

from steno.agent import events
from steno.agent.loop import Agent
from steno.llm.testserver.responders import ReplyItem, cut_reply, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

ANSWER: tuple[ReplyItem, ...] = (
    thinking("Let me see."),
    text("I will ", "look at it."),
    tool("Look", what="here"),
    tool("Shout", what="there"),
)


def whole(tmp_path: Path) -> int:
    """Return how many bytes the answer takes on the wire."""
    stage = Stage(tmp_path / "whole", ScriptedResponder().on("go", list(ANSWER)).then("Done."))
    stage.say("go")
    return max(each.sent for each in stage.server.requests)


def cut_at(folder: Path, places: range) -> None:
    """Let a session have its answers cut at these bytes, one per turn."""
    script = ScriptedResponder().on("cut off on its way", "I go on.")
    for byte in places:
        script.on(f"go {byte}.", list(ANSWER), first=[cut_reply(ANSWER, byte)]).then("Done.")
    folder.mkdir()
    stage = Stage(folder, script)
    ended = stage.say(*(f"go {byte}." for byte in places))
    assert {each.reason for each in ended} == {"done"}
    stage.check()


def test_an_answer_cut_anywhere_is_taken_as_far_as_it_came(tmp_path: Path) -> None:
    cut_at(tmp_path / "some", range(0, whole(tmp_path), 97))


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_an_answer_cut_at_any_byte_is_taken_as_far_as_it_came(tmp_path: Path) -> None:
    size = whole(tmp_path)
    for start in spread(range(0, size, 40), least=2):
        cut_at(tmp_path / str(start), range(start, min(start + 40, size)))


def test_a_turn_that_is_cancelled_from_outside_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def hang(_given: dict[str, Any]) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    stage = Stage(tmp_path, ScriptedResponder().on("on", "Yes.").on("go", tool("Hang")))
    stage.tools.append(Does("Hang", hang))

    async def act(agent: Agent) -> None:
        turn = asyncio.create_task(agent.run_turn("go"))
        await started.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await agent.run_turn("on")

    stage.play(act)
    ended = [each.reason for each in stage.events if isinstance(each, events.TurnEnded)]
    assert ended == ["interrupted", "done"]
    stage.check()
