"""Calls side by side, sub-agents, and breaking in wherever an agent may be."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.whole.house import House

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import Event
from steno.agent.tool_executor import Approval
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import ErrorReply, ReplyBlock, cut_reply, text, thinking, tool
from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_rules import Decision
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolResult, ToolSpec


class Slow:
    """A tool that says when it is at work, and does not end."""

    spec = ToolSpec(
        name="Slow", description="Takes its time.", schema={"type": "object", "properties": {}}, reads_only=True
    )

    def __init__(self, behind: "Quick | None" = None) -> None:
        self.behind = behind

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        del tool_input
        if self.behind is not None:
            await self.behind.done.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            context.on_progress(call, "The other one is done.")
        await asyncio.Event().wait()
        return ToolResult("never")


class Quick:
    """A tool that is done at once."""

    spec = ToolSpec(name="Quick", description="Is quick.", schema={"type": "object", "properties": {}}, reads_only=True)

    def __init__(self) -> None:
        self.done = asyncio.Event()

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        del tool_input, context, call
        self.done.set()
        return ToolResult("quickly done")


def task(prompt: str, **more: Any) -> ReplyBlock:
    return tool("Agent", description="a task", prompt=prompt, **more)


def started(name: str) -> Callable[[Event], bool]:
    """Return what waits until a tool is at work, also in a sub-agent."""
    return lambda event: isinstance(event, events.ToolStarted) and event.call["name"] == name


def grew(kind: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, events.ContentDelta) and event.kind == kind


async def there(path: Path) -> None:
    """Wait until another program has made a file."""

    def wait() -> None:
        while not path.exists():
            time.sleep(0.01)

    await asyncio.to_thread(wait)


# Side by side


def test_calls_of_all_kinds_in_one_response(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script, mode="acceptEdits", disallowed=("Bash(rm:*)",))
    house.file("a.txt", "one\n")
    calls = [
        tool("Read", file_path="a.txt"),
        tool("Glob", pattern="*"),
        tool("Read", file_path="nowhere"),
        tool("Write", file_path="b.txt", content="b"),
        tool("Bash", command="rm a.txt"),
        tool("Bash", command="ls"),
        tool("Grep", pattern="one"),
        tool("Zebra"),
        task("count"),
        tool("TodoWrite", todos=[]),
    ]
    script.on("count", "Three.").on("go", [thinking("All at once."), text("Now."), *calls])
    script.then("Done.")
    house.say("go")
    failed = [each.get("is_error", False) for each in house.results]
    assert failed == [False, False, True, False, True, False, False, True, False, False]
    assert (house.project / "a.txt").exists()
    assert [each["tool_use_id"] for each in house.results] == [
        block["id"] for block in house.live[1]["content"] if block["type"] == "tool_use"
    ]
    house.proves()


def test_what_was_done_before_somebody_broke_in_stays_done(tmp_path: Path) -> None:
    script = ScriptedResponder()
    quick = Quick()
    house = House(tmp_path, script, extra_tools=(quick, Slow(behind=quick)))
    house.file("a.txt", "one\n")
    script.on("go", [tool("Write", file_path="b", content="b"), tool("Read", file_path="a.txt")])
    script.then([tool("Quick"), tool("Slow"), tool("Write", file_path="c", content="c")])
    ended = house.broken_off("go", lambda event: isinstance(event, events.ToolOutput))
    assert ended.reason == "interrupted"
    assert [each.get("is_error", False) for each in house.results] == [False, False, False, True, True]
    assert house.results[2]["content"] == "quickly done"
    assert not (house.project / "c").exists()
    house.proves()


def test_questions_of_calls_side_by_side_come_one_by_one(tmp_path: Path) -> None:
    asked: list[str] = []
    open_now = 0

    async def consent(call: Block, _decision: Decision) -> Approval:
        nonlocal open_now
        open_now += 1
        assert open_now == 1
        asked.append(str(call["input"]["file_path"]))
        await asyncio.sleep(0)
        open_now -= 1
        return Approval(granted=len(asked) != 2, message="Not that one.")

    script = ScriptedResponder()
    house = House(tmp_path / "house", script, mode="default")
    house.consent = consent
    for name in "abc":
        (tmp_path / name).write_text(name)
    script.on("go", [tool("Read", file_path=str(tmp_path / name)) for name in "abc"]).then("Done.")
    house.say("go")
    assert [each.get("is_error", False) for each in house.results] == [False, True, False]
    assert "Not that one." in str(house.results)
    house.proves()


# Sub-agents


def agents_of(house: House) -> list[dict[str, Any]]:
    return [each for each in house.details if isinstance(each, dict) and "agentId" in each]


def test_below_each_other_and_side_by_side_with_totals_that_are_right(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script)
    house.file("a.txt", "one\n")
    script.on("go", [task("first task"), task("second task")]).then("Both done.")
    script.on("first task", [tool("Glob", pattern="*"), tool("Read", file_path="a.txt")])
    script.then(task("inner task")).then("First.")
    script.on("inner task", tool("Grep", pattern="one")).then("Inner.").on("second task", "Second.")
    (ended,) = house.say("go")
    assert len(house.agents) == 3
    first, second = agents_of(house)
    assert (first["totalToolUseCount"], second["totalToolUseCount"]) == (3, 0)
    own = {path.stem: path for path in house.agents}
    for each in (first, second):
        usage = _usage_in(own[f"agent-{each['agentId']}"])
        assert {name: each["usage"][name] for name in usage} == usage
        assert each["totalTokens"] == sum(usage.values())
    # Eight responses: two of the session, four of the first, its inner ones included, and so on.
    assert ended.cost == 8 * house.price
    house.proves()


def _usage_in(path: Path) -> dict[str, int]:
    seen: dict[str, dict[str, int]] = {}
    for line in path.read_bytes().splitlines():
        message = json.loads(line).get("message") or {}
        if "usage" in message:
            seen[message["id"]] = message["usage"]
    names = next(iter(seen.values())).keys() & {
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    }
    return {name: sum(each[name] for each in seen.values()) for name in names}


def test_a_definition_says_which_tools_and_which_model(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script)
    (house.config / "agents").mkdir()
    (house.config / "agents" / "looker.md").write_text(
        "---\nname: looker\ndescription: Looks.\ntools: Read, Grep\nmodel: haiku\nmaxTurns: 2\n---\nYou only look."
    )
    script.on("go", task("look at it", subagent_type="looker")).then("I see.")
    script.on("look at it", tool("Write", file_path="b", content="b")).then(tool("Grep", pattern="x")).then(
        "Never said."
    )
    house.say("go")
    below = [each.body for each in house.server.requests if "You only look." in str(each.body["system"])]
    assert [each["name"] for each in below[0]["tools"]] == ["Grep", "Read"]
    assert {each["model"] for each in below} == {"claude-haiku-4-5-20251001"}
    assert len(below) == 2
    assert not (house.project / "b").exists()
    assert agents_of(house)[0]["status"] == "max_turns"
    house.proves()


def test_without_a_kind_the_usual_one_works(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("write it")).then("Done.")
    house = House(tmp_path, script)
    script.on("write it", tool("Write", file_path="b", content="b")).then("Written.")
    house.say("go")
    assert (house.project / "b").exists()
    house.proves()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ErrorReply(status=400, kind="invalid_request_error", message="no"), "error"),
        (ErrorReply(status=529, kind="overloaded_error", message="busy"), "error"),
        ([], "completed"),
        (cut_reply([text("Half of it.")], 120), "error"),
    ],
)
def test_one_that_fails_says_so_and_the_others_go_on(tmp_path: Path, answer: Any, status: str) -> None:
    script = ScriptedResponder().on("go", [task("doomed"), task("fine")]).then("A pity.")
    house = House(tmp_path, script.on("doomed", answer).on("fine", "Fine."))
    assert house.say("go")[0].text == "A pity."
    assert [each["status"] for each in agents_of(house)] == [status, "completed"]
    house.proves()


def test_broken_off_a_sub_agent_leaves_both_files_sound(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [task("slow one"), task("quick one"), task("slow too")])
    house = House(tmp_path, script, extra_tools=())
    script.on("slow one", task("slow below"))
    script.on("slow below", tool("Bash", command="sleep 600")).on("quick one", "Quick.")
    script.on("slow too", [text("Half", Door())])
    assert house.broken_off("go", started("Bash")).reason == "interrupted"
    assert len(house.agents) == 4
    house.proves()


def test_what_a_sub_agent_left_running_ends_with_it(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("start it")).then("Done.")
    house = House(tmp_path, script)
    command = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    script.on("start it", tool("Bash", command=command, run_in_background=True))
    script.then(tool("Bash", command=f"until test -s {tmp_path}/pid; do sleep 0.01; done"))
    script.then(task("linger", run_in_background=True)).then("Started.")
    script.on("linger", [text("For ever", Door())])
    house.say("go")
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()
    house.proves()


def test_in_the_background_it_tells_when_it_is_done(tmp_path: Path) -> None:
    script = ScriptedResponder().on("is done", "I heard.")
    script.on("go", task("long work", run_in_background=True)).then("It works.")
    script.on("long work", tool("Glob", pattern="*")).then("Finished.").on("and", "Yes.")
    house = House(tmp_path, script)

    async def act(begun: AgentSession) -> None:
        told = asyncio.Event()
        context = begun.agent.executor.context
        notify = context.notify
        context.notify = lambda words: (notify(words), told.set())[0]
        await begun.agent.run_turn("go")
        await told.wait()
        await begun.agent.run_turn("and now?")

    house.play(act)
    assert agents_of(house)[0]["status"] == "async_launched"
    assert "Finished." in str(house.live)
    house.proves()


def test_in_the_background_it_is_ended_with_the_session(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("long work", run_in_background=True)).then("It works.")
    script.on("long work", [text("I ", Door())])
    house = House(tmp_path, script)
    house.say("go")
    house.proves()


def test_sub_agents_spend_what_the_session_may_spend(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("dear work")).then("Done.")
    house = House(tmp_path, script, limits=TurnLimits(cost=5000))
    script.on("dear work", tool("Glob", pattern="*"))
    for _ in range(20):
        script.then(tool("Glob", pattern="*"))
    (ended,) = house.say("go")
    assert (ended.reason, ended.cost) == ("max_budget", 5000)
    assert agents_of(house)[0]["status"] == "max_budget"
    house.proves()


# Breaking in


def test_before_the_answer_begins(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", "Never.", after=Door()))
    ended = house.broken_off("go", lambda event: isinstance(event, events.RequestSent))
    assert ended.reason == "interrupted"
    house.proves()


@pytest.mark.parametrize("kind", ["thinking", "text", "input"])
def test_in_the_middle_of_every_kind_of_block(tmp_path: Path, kind: str) -> None:
    blocks: dict[str, list[Any]] = {
        "thinking": [thinking("Let me ", Door(), "see.")],
        "text": [thinking("Hm."), text("I will ", Door(), "look.")],
        "input": [
            thinking("Hm."),
            text("I look."),
            tool("Glob", pattern="*"),
            ReplyBlock({"type": "tool_use", "id": "", "name": "Glob", "input": {}}, ('{"pat', Door())),
        ],
    }
    house = House(tmp_path, ScriptedResponder().on("go", blocks[kind]))
    house.broken_off("go", grew(kind))
    assert ("I will " in str(house.live)) == (kind == "text")
    assert "tool_use" not in str(house.live)
    house.proves()


def test_while_a_tool_works(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [text("I wait."), tool("Bash", command="sleep 600"), tool("Slow")])
    house = House(tmp_path, script, extra_tools=(Slow(),))
    house.broken_off("go", started("Bash"))
    assert [each.get("is_error") for each in house.results] == [True, True]
    house.proves()


@pytest.mark.parametrize("kind", ["consent", "question", "hook"])
def test_while_a_question_is_open(tmp_path: Path, kind: str) -> None:
    open_now = asyncio.Event()

    async def ask(*_given: Any) -> Any:
        open_now.set()
        await asyncio.Event().wait()

    question = {
        "question": "Which?",
        "header": "h",
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        "multiSelect": False,
    }
    call = {
        "consent": tool("Bash", command="touch x"),
        "question": tool("AskUserQuestion", questions=[question]),
        "hook": tool("Glob", pattern="*"),
    }
    house = House(tmp_path, ScriptedResponder().on("go", call[kind]), mode="default")
    house.consent = house.ask = ask
    if kind == "hook":
        run = [{"type": "command", "command": f"touch {tmp_path}/ran; sleep 600"}]
        house.settings(hooks={"PreToolUse": [{"hooks": run}]})

    async def act(begun: AgentSession) -> events.TurnEnded:
        turn = asyncio.create_task(begun.agent.run_turn("go"))
        if kind == "hook":
            await there(tmp_path / "ran")
        else:
            await open_now.wait()
        begun.agent.interrupt()
        return await turn

    assert house.play(act).reason == "interrupted"
    house.consent = house.ask = None
    house.settings()
    house.proves()


def test_while_a_prompt_is_looked_at(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("second", "Yes.").on("first", "Yes."))
    house.say("first")
    run = [{"type": "command", "command": f"touch {tmp_path}/ran; sleep 600"}]
    house.settings(hooks={"UserPromptSubmit": [{"hooks": run}]})

    async def act(begun: AgentSession) -> events.TurnEnded:
        turn = asyncio.create_task(begun.agent.run_turn("second"))
        await there(tmp_path / "ran")
        begun.agent.interrupt()
        return await turn

    house.resume()
    assert house.play(act).reason == "interrupted"
    house.settings()
    house.proves()


def test_while_it_is_compacted(tmp_path: Path) -> None:
    door = Door()
    script = ScriptedResponder().on("Summarize", "Never.", after=door).otherwise("Yes. " * 500)
    house = House(tmp_path, script, window=4_000, max_tokens=1_000)

    async def act(begun: AgentSession) -> events.TurnEnded:
        for number in range(20):
            turn = asyncio.create_task(begun.agent.run_turn(f"{number} {'word ' * 300}"))
            reached = asyncio.create_task(door.wait_until_reached())
            await asyncio.wait([turn, reached], return_when=asyncio.FIRST_COMPLETED)
            if reached.done():
                begun.agent.interrupt()
                return await turn
            reached.cancel()
        raise AssertionError

    assert house.play(act).reason == "interrupted"
    assert house.happened(events.Compacted) == []
    house.options["window"] = None
    house.proves()


def test_again_and_again(tmp_path: Path) -> None:
    script = ScriptedResponder().on("talk", [text("I talk ", Door())]).on("done", "Done.")
    script.on("work", tool("Slow"))
    house = House(tmp_path, script, extra_tools=(Slow(),))
    for _ in range(3):
        house.broken_off("talk", grew("text"))
        house.resume()
        house.broken_off("work", started("Slow"))
        house.resume()
    house.say("done")
    house.proves()
