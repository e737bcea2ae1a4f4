"""What the figures do not tell: windows that are smaller, agents that are not done, names of models."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.headless_harness import House

from steno.agent.config.models import beta_headers, resolve_model
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server

_LONG = "word " * 9_000


def _errors(house: House) -> list[str]:
    return [str(each.refusal) for each in house.server.refused]


def test_what_the_api_finds_too_long_is_compacted_and_asked_again(tmp_path: Path) -> None:
    script = ScriptedResponder().on("<session>", "They said words.").on("last", "Done.").otherwise("Yes.")
    house = House(tmp_path, script, window=40_000)
    code = house.say(*(f"{number} {_LONG}" for number in range(3)), f"the last {_LONG}")
    assert (code, house.results()[-1]) == (0, "Done.")
    # Once because it did not fit, once because not even what was to be summed up did.
    assert all("too long" in each for each in _errors(house))
    assert len(_errors(house)) >= 1
    assert b'"compact_boundary"' in house.path.read_bytes()
    assert "They said words." in json.dumps(house.sent())


def test_what_is_too_long_even_then_ends_the_turn(tmp_path: Path) -> None:
    script = ScriptedResponder().on("<session>", "They said words.").otherwise("Yes.")
    house = House(tmp_path, script, window=100)
    assert house.say(f"one {_LONG}") == 1
    assert "too long" in house.results()[-1]


def test_who_compacts_nothing_by_itself_does_not_when_it_is_too_long(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."), window=40_000)
    house.write("~/settings.json", '{"autoCompactEnabled": false}')
    assert house.say(*(f"{number} {_LONG}" for number in range(5))) == 1
    assert b'"compact_boundary"' not in house.path.read_bytes()


def _task(prompt: str, **more: Any) -> Any:
    given = {"description": "a task", "prompt": prompt, "subagent_type": "general-purpose"}
    return tool("Agent", **given, **more)


def test_what_works_in_the_background_is_waited_for(tmp_path: Path) -> None:
    script = ScriptedResponder().on("task-notification", "It was found.")
    script.on("dig", tool("Bash", command="until test -e begun; do sleep 0.01; done"))
    script.then("Here it is.")
    script.on("start", _task("dig", run_in_background=True))
    script.then(tool("Bash", command="touch begun")).then("It has begun.")
    house = House(tmp_path, script)
    house.options.mode = "bypassPermissions"
    assert house.say("start") == 0
    assert house.results() == ["It was found."]
    assert "Here it is." in json.dumps(house.sent())
    (file,) = (house.path.with_suffix("") / "subagents").glob("*.jsonl")
    assert b"interrupted by user" not in file.read_bytes()
    house.check()


def test_nobody_waits_longer_than_the_turn_may_take(tmp_path: Path) -> None:
    script = ScriptedResponder().on("dig", tool("Bash", command="sleep 600"))
    script.on("start", _task("dig", run_in_background=True)).then("It has begun.")
    house = House(tmp_path, script)
    house.options.mode = "bypassPermissions"
    house.options.limits = type(house.options.limits)(seconds=3)
    house.say("start")
    assert len(house.results()) == 1
    house.check()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("sonnet", "claude-sonnet-4-5-20250929"),
        ("sonnet[1m]", "claude-sonnet-4-5-20250929[1m]"),
        ("Opus[1M]", "claude-opus-4-5-20251101[1m]"),
        ("some-model", "some-model"),
        ("inherit", ""),
        ("inherit[1m]", ""),
    ],
)
def test_a_model_is_known_by_its_short_name(given: str, wanted: str) -> None:
    assert resolve_model(given) == wanted


def test_the_large_window_is_asked_for_beside_the_name(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.options.model = "sonnet[1m]"
    house.say("one")
    assert house.server.requests[0].body["model"] == "claude-sonnet-4-5-20250929"
    assert beta_headers("", "", {}, "sonnet[1m]") == ("context-1m-2025-08-07",)
    assert beta_headers("", "", {}, "sonnet") == ()


def test_what_is_summed_up_is_cut_into_pieces_that_fit(tmp_path: Path) -> None:
    script = ScriptedResponder().on("<session>", "They said words.").on("last", "Done.").otherwise("Yes.")
    house = House(tmp_path, script)
    house.say(*(f"{number} {_LONG}" for number in range(4)))
    house.resume()
    house.server = Server(script, window=30_000)
    assert house.say("the last") == 0
    assert house.results()[-1] == "Done."
    # The conversation, and what was to be summed up of it.
    assert len(_errors(house)) == 2
