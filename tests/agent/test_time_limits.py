"""Limits of time: they hold in the middle of things, for a session and all who work in it."""

import asyncio
from pathlib import Path

import pytest
from tests.agent.headless_harness import House

from steno.agent import events
from steno.agent.context.token_usage import TurnLimits, UsageMeter
from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.responders import text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

SOON = 0.3
TASK = {"description": "find it", "prompt": "look below", "subagent_type": "general-purpose"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path, ScriptedResponder().on("then", "Yes."))
    house.options.limits = TurnLimits(seconds=SOON)
    house.options.mode = "bypassPermissions"
    return house


def goes_on(house: House) -> None:
    """The session is sound, and can be taken up again."""
    house.check()
    house.options.limits = TurnLimits()
    house.resume()
    assert house.talk("and then")[0].reason == "done"
    house.check()


def test_the_time_is_up_in_the_middle_of_an_answer(house: House) -> None:
    door = Door()
    house.script.on("go", [text("The beginning", door)])
    (ended,) = house.talk("go")
    door.release()
    assert ended.reason == "max_time"
    assert not [each for each in house.events if isinstance(each, events.Interrupted)]
    assert "interrupted by user" not in house.path.read_text()
    goes_on(house)


def test_the_time_is_up_in_the_middle_of_a_call(house: House) -> None:
    house.script.on("go", tool("Bash", command="echo $$ > pid; exec sleep 600")).then("Never.")
    (ended,) = house.talk("go")
    assert ended.reason == "max_time"
    (result,) = [each for each in house.records() if "The time limit of the turn" in str(each)]
    assert result["message"]["content"][0]["is_error"] is True
    pid = (house.project / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()
    goes_on(house)


def test_the_time_is_up_in_the_middle_of_a_sub_agents_answer(house: House) -> None:
    door = Door()
    house.script.on("go", tool("Agent", **TASK)).then("Never.")
    house.script.on("look below", [text("The beginning", door)])
    (ended,) = house.talk("go")
    door.release()
    assert ended.reason == "max_time"
    goes_on(house)


def test_a_hook_does_not_take_longer_than_there_is_time(house: House) -> None:
    house.hook("UserPromptSubmit", "exec sleep 600")
    assert house.talk("go")[0].reason == "max_time"


def test_a_session_and_its_sub_agents_share_one_clock() -> None:
    time = 100.0
    above = UsageMeter(TurnLimits(seconds=10), price=lambda _m, _u: 0, clock=lambda: time)
    below = UsageMeter(TurnLimits(seconds=10), price=lambda _m, _u: 0, clock=lambda: time, parent=above)
    above.begin_turn()
    time += 8
    below.begin_turn()
    assert below.seconds_left == above.seconds_left == pytest.approx(2)
    time += 2
    assert (below.reached_limit(), above.reached_limit()) == ("max_time", "max_time")


def test_who_is_not_late_hears_nothing_of_it(house: House) -> None:
    house.options.limits = TurnLimits(seconds=60)
    first, second = house.talk("and then", "then again")
    assert (first.reason, second.reason) == ("done", "done")
    house.check()


def test_what_is_ended_from_outside_is_not_late(house: House) -> None:
    """A turn that is cancelled as a whole stays cancelled, however little time was left."""
    door = Door()
    house.script.on("go", [text("The beginning", door)])

    async def together() -> str:
        async with house.server, house._api() as api:
            started = house._started(api)
            turn = asyncio.ensure_future(started.submit("go"))
            await door.wait_until_reached()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            door.release()
            await started.close()
        (ended,) = [each for each in house.events if isinstance(each, events.TurnEnded)]
        return ended.reason

    assert asyncio.run(together()) == "interrupted"
