"""What programs are told: with what a session begins, what a turn took, where an answer was cut."""

import json
from pathlib import Path

from tests.agent.headless_harness import MODEL, House
from tests.agent.loop_harness import Stage

from steno.llm.testserver.responders import Reply, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder


def test_a_session_tells_with_what_it_begins(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.options.mode = "acceptEdits"
    head = "---\nname: spades\ndescription: about spades\n---\n"
    house.write("~/skills/spades/SKILL.md", f"{head}Hold it.")
    house.write("~/agents/digger.md", "---\nname: digger\ndescription: digs\n---\nDig.")
    house.say("one")
    begun = house.lines[0]
    assert (begun["type"], begun["subtype"]) == ("system", "init")
    assert begun["permissionMode"] == "acceptEdits"
    assert begun["skills"] == ["spades"]
    assert "digger" in begun["agents"]
    assert begun["output_style"] == "default"


def test_the_model_is_told_in_which_language_to_answer(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Oui."))
    house.write("~/settings.json", json.dumps({"language": "French"}))
    house.say("one")
    assert "French" in str(house.server.requests[0].body["system"])


def test_a_result_tells_what_each_model_took(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    script = ScriptedResponder().on("dig", Reply(content=(text("Dug."),), usage=usage))
    given = {"description": "a task", "prompt": "dig", "model": "haiku"}
    script.on("go", tool("Agent", **given)).then("Done.")
    house = House(tmp_path, script)
    house.say("go")
    result = house.lines[-1]
    assert set(result["modelUsage"]) == {MODEL, "claude-haiku-4-5-20251001"}
    below = result["modelUsage"]["claude-haiku-4-5-20251001"]
    assert (below["inputTokens"], below["outputTokens"]) == (10, 5)
    assert sum(each["costUSD"] for each in result["modelUsage"].values()) == (result["total_cost_usd"])
    assert 0 <= result["duration_api_ms"] <= result["duration_ms"]


def test_why_an_answer_stopped_is_kept_as_it_was_told(tmp_path: Path) -> None:
    stopped = Reply(content=(text("Yes"),), stop_reason="stop_sequence", stop_sequence="END")
    stage = Stage(tmp_path, ScriptedResponder().on("one", stopped))
    stage.say("one")
    (answer,) = [
        record["message"] for record in map(json.loads, stage.data.splitlines()) if record["type"] == "assistant"
    ]
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "END")
    stage.check()
