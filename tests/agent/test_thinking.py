"""Thinking, effort, forced calls, and how full a window is that nobody has measured yet."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.session_harness import KEY, Whole

from steno.agent.config.models import can_enable_thinking, thinking_parameter
from steno.agent.context.compaction import ContextCompactor
from steno.agent.headless import StructuredOutputTool, run_headless
from steno.agent.headless_output import HeadlessPrinter
from steno.errors import BadRequest
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.testserver.responders import error_reply, redacted_thinking, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server

_BUDGET = {"MAX_THINKING_TOKENS": "2048"}
_ENABLED = {"type": "enabled", "budget_tokens": 2048}


# What a request says of thinking


@pytest.mark.parametrize(
    ("asked", "said", "always", "wanted"),
    [
        ("", None, False, None),
        ("", None, True, {"type": "enabled", "budget_tokens": 16_000}),
        ("", "2048", False, _ENABLED),
        ("", "0", True, None),
        ("", "5", False, {"type": "enabled", "budget_tokens": 1024}),
        ("", "999999", False, {"type": "enabled", "budget_tokens": 32_000 - 1024}),
        ("enabled", None, False, {"type": "enabled", "budget_tokens": 16_000}),
        ("enabled", "2048", False, _ENABLED),
        ("adaptive", "2048", False, {"type": "adaptive"}),
        ("disabled", "2048", True, None),
    ],
)
def test_thinking_is_what_is_asked_for(
    asked: str, said: str | None, *, always: bool, wanted: dict[str, Any] | None
) -> None:
    env = {} if said is None else {"MAX_THINKING_TOKENS": said}
    assert thinking_parameter(asked, env, by_default=always, max_tokens=32_000) == wanted


def test_thinking_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadRequest):
        thinking_parameter("", {"MAX_THINKING_TOKENS": "much"}, by_default=False, max_tokens=32_000)
    with pytest.raises(BadRequest):
        thinking_parameter("deep", {}, by_default=False, max_tokens=32_000)
    assert thinking_parameter("enabled", {}, by_default=False, max_tokens=1500) is None


# Sent and sent back


def _thinker() -> ScriptedResponder:
    script = ScriptedResponder().on("work", [thinking("First I look."), redacted_thinking(), tool("Glob", pattern="*")])
    script.then([thinking("Now I know."), text("Nothing there.")])
    return script.on("and now", [thinking("Hm."), text("Still nothing.")])


def test_thinking_goes_back_with_its_signature_untouched(tmp_path: Path) -> None:
    whole = Whole(tmp_path, _thinker(), env=_BUDGET)
    whole.say("work", "and now")
    assert [each["thinking"] for each in whole.bodies] == [_ENABLED] * 3
    sent = whole.bodies[2]["messages"]
    thoughts = [block for each in sent for block in each["content"] if "thinking" in str(block["type"])]
    assert [each.get("thinking") for each in thoughts] == ["First I look.", None, "Now I know."]
    assert all(each.get("signature") or each.get("data") for each in thoughts)
    whole.check()
    whole.resume()
    whole.say("and now")
    again = whole.bodies[-1]["messages"]
    assert again[: len(sent) - 1] == [
        {**each, "content": [_unmarked(block) for block in each["content"]]} for each in sent[:-1]
    ]
    whole.check()


def _unmarked(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def test_effort_and_thinking_of_ones_own_measure_are_sent(tmp_path: Path) -> None:
    whole = Whole(tmp_path, _thinker(), thinking="adaptive", effort="high")
    whole.say("work")
    assert whole.bodies[0]["thinking"] == {"type": "adaptive"}
    assert whole.bodies[0]["output_config"] == {"effort": "high"}
    whole.check()
    plain = Whole(tmp_path, ScriptedResponder("Yes."))
    plain.say("work")
    assert not {"thinking", "output_config", "tool_choice"} & plain.bodies[0].keys()
    with pytest.raises(BadRequest, match="effort"):
        Whole(tmp_path, ScriptedResponder(), effort="some").say("work")


def test_settings_may_want_thinking_and_effort(tmp_path: Path) -> None:
    whole = Whole(tmp_path, _thinker())
    whole.settings(alwaysThinkingEnabled=True, effortLevel="low")
    whole.say("work")
    assert whole.bodies[0]["thinking"]["type"] == "enabled"
    assert whole.bodies[0]["output_config"] == {"effort": "low"}


def test_a_turn_that_began_without_thinking_goes_on_without(tmp_path: Path) -> None:
    # It breaks off in the middle of a turn with calls, and goes on with thinking switched on.
    script = ScriptedResponder().on("work", tool("Glob", pattern="*")).then(error_reply(400, "no more"))
    script.on("go on", tool("Glob", pattern="*.py")).then("Nothing.")
    script.on("and now", [thinking("Hm."), text("Still nothing.")])
    whole = Whole(tmp_path, script)
    whole.say("work")
    whole.resume()
    whole.options.env = {**whole.options.env, **_BUDGET}
    whole.server = Server(script, seed="another")
    whole.say("go on", "and now")
    assert [each.get("thinking") for each in whole.bodies] == [None, None, _ENABLED]
    whole.check()


def test_a_model_that_did_not_think_although_it_might_is_not_kept_from_it(tmp_path: Path) -> None:
    script = ScriptedResponder().on("work", tool("Glob", pattern="*")).then([thinking("Hm."), text("Done.")])
    whole = Whole(tmp_path, script, env=_BUDGET)
    whole.say("work")
    assert [each.get("thinking") for each in whole.bodies] == [_ENABLED, _ENABLED]
    whole.check()


def test_where_a_turn_begins_decides() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Glob", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    words = {"type": "text", "text": "Hi."}
    prompt, answered = _message("user", words), _message("user", result)
    assert can_enable_thinking([prompt], set())
    assert not can_enable_thinking([prompt, _message("assistant", call), answered], set())
    assert can_enable_thinking([prompt, _message("assistant", call), answered], {"t1"})
    assert can_enable_thinking([prompt, _message("assistant", call), answered, prompt], set())
    assert not can_enable_thinking([prompt, _message("assistant", call), _message("user", result, words)], set())
    assert can_enable_thinking([prompt, _message("assistant", {"type": "thinking"}, call), answered], set())
    assert can_enable_thinking([prompt, _message("assistant", words), prompt], set())


def _message(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


# Forced calls


def _answers(whole: Whole, shape: StructuredOutputTool) -> list[dict[str, Any]]:
    lines: list[Any] = []
    printer = HeadlessPrinter("json", whole.work.id, lines.append)

    async def prompts() -> AsyncIterator[str]:
        yield "tell me"

    async def together() -> None:
        async with whole.server, ApiClient(Endpoint(whole.server.url, api_key=KEY)) as api:
            await run_headless(whole.options, whole.work, api, prompts(), printer, price=whole.price, output_tool=shape)

    asyncio.run(together())
    return lines


@pytest.mark.parametrize("env", [{}, _BUDGET])
def test_an_answer_of_a_shape_is_forced_where_the_model_forgets_it(tmp_path: Path, env: dict[str, str]) -> None:
    script = ScriptedResponder().on("tell me", [thinking("Hm."), text("Four.")] if env else "Four.")
    script.on("No other form of answer", tool("StructuredOutput", number=4)).then("Done.")
    whole = Whole(tmp_path, script, env=env)
    shape = StructuredOutputTool({"type": "object", "properties": {"number": {"type": "integer"}}})
    (result,) = _answers(whole, shape)
    assert result["structured_output"] == {"number": 4}
    forced = {"type": "tool", "name": "StructuredOutput"}
    assert [each.get("tool_choice") for each in whole.bodies] == [None, forced, None]
    # The API takes no thinking with it, and the turn goes on as it can.
    assert whole.bodies[1].get("thinking") is None
    assert bool(whole.bodies[0].get("thinking")) == bool(env)
    assert list(whole.server.refused) == []


# How full the window is


def test_a_session_without_figures_is_counted_before_it_overflows(tmp_path: Path) -> None:
    window, long = 6_000, "word " * 4_400
    script = ScriptedResponder().on("<session>", "They said words.").on("first", "Yes.").on("more", "Fine.")
    whole = Whole(tmp_path, script, max_tokens=100, tools=())
    whole.say(f"first {long}")
    _forget_usage(Path(whole.path))
    whole.resume()
    whole.server = Server(script, window=window)
    whole.options.window = window
    (ended,) = whole.say("more")
    assert ended.reason == "done"
    paths = [each.path for each in whole.server.requests]
    assert paths[0] == "/v1/messages/count_tokens"
    assert paths.count("/v1/messages/count_tokens") == 1
    assert list(whole.server.refused) == []
    assert "They said words." in json.dumps(whole.bodies[-1])


def test_a_session_that_is_short_or_has_figures_is_not_counted(tmp_path: Path) -> None:
    script = ScriptedResponder().on("first", "Yes.", usage={"input_tokens": 50_000}).on("more", "Fine.")
    whole = Whole(tmp_path, script)
    whole.say("first")
    whole.resume()
    assert whole.work.context_size > 50_000
    whole.say("more")
    assert all(each.path == "/v1/messages" for each in whole.server.requests)


def test_figures_of_a_resumed_session_lead_to_compaction_at_once(tmp_path: Path) -> None:
    script = ScriptedResponder().on("first", "Yes.", usage={"input_tokens": 180_000})
    script.on("Summarize", "They said yes.").on("more", "Fine.")
    whole = Whole(tmp_path, script)
    whole.say("first")
    whole.resume()
    whole.say("more")
    assert "Summarize this session" in json.dumps(whole.bodies[1])
    whole.check()


def test_an_endpoint_that_cannot_count_is_done_without(tmp_path: Path) -> None:
    class Deaf:
        """A model that answers, and does no more."""

        def __init__(self, api: ApiClient) -> None:
            self.stream = api.stream

    script = ScriptedResponder().on("first", "Yes.").on("Summarize", "They did.")
    whole = Whole(tmp_path, script, max_tokens=100, tools=())

    async def act(started: Any) -> int:
        started.agent.model = Deaf(started.agent.model)
        started.agent.conversation.add_prompt("first " + "word " * 2_600)
        started.agent.meter.context_size = 0
        await ContextCompactor(window=6_000)(started.agent)
        return started.agent.meter.context_size

    assert whole.play(act) > 0
    assert [each.path for each in whole.server.requests] == []


def _forget_usage(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        message = line.get("message")
        if line["type"] == "assistant" and isinstance(message, dict):
            message["usage"] = {}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
