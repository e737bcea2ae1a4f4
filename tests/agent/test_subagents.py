"""Sub-agents: their own files, their totals on the result, nested, side by side, in the background."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
from tests.agent.loop_harness import Does, Stage

from steno.agent import events
from steno.agent.conversation import Conversation
from steno.agent.loop import Agent
from steno.agent.recorder import Recorder
from steno.agent.subagents import AgentTool, SubagentDefinition
from steno.agent.tool_executor import ToolExecutor
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.store.session_lookup import sessions
from steno.tools.context import ToolContext
from steno.tools.registry import ToolRegistry

KINDS = (
    SubagentDefinition(name="helper", description="Helps.", prompt="", origin="built-in"),
    SubagentDefinition(name="looker", description="Looks.", prompt=""),
)


def with_agents(stage: Stage, agent: Agent, depth: int = 0) -> AgentTool:
    """Give an agent the tool that makes others like it."""

    def spawn(agent_id: str, kind: str, model: str, context: ToolContext) -> Agent:
        assert kind in {"helper", "looker"}
        own = stage.talk.recorder
        path = Path(own.folder) / "subagents" / f"agent-{agent_id}.jsonl"
        place = msgspec.structs.replace(own.composer.context, agent_id=agent_id)
        inner = ToolContext(
            cwd=context.cwd,
            project=context.project,
            session_id=context.session_id,
            folder=context.folder,
            env=context.env,
        )
        caller = ToolExecutor(
            tools=ToolRegistry(stage.tools), context=inner, permission_checker=stage.guard, emit=stage.events.append
        )
        talk = Conversation(Recorder(str(path), place))
        course = msgspec.structs.replace(agent.request_config, model=model or agent.request_config.model)
        made = Agent(agent.model, talk, caller, course, agent.meter)
        with_agents(stage, made, depth + 1)
        return made

    made = AgentTool(spawn, KINDS, agent.executor.emit, depth=depth)
    agent.executor.tools = ToolRegistry([*stage.tools, made])
    agent.executor.context.notify = lambda words: agent.inbox.append((words, True))
    return made


def played(stage: Stage, *prompts: str) -> AgentTool:
    async def act(agent: Agent) -> AgentTool:
        made = with_agents(stage, agent)
        for prompt in prompts:
            await agent.run_turn(prompt)
        await made.close()
        return made

    return stage.play(act)


def agent_files(stage: Stage) -> list[Path]:
    return sorted((Path(stage.talk.recorder.folder) / "subagents").glob("agent-*.jsonl"))


def details(stage: Stage) -> list[dict[str, Any]]:
    records = map(json.loads, stage.data.splitlines())
    found = [each["toolUseResult"] for each in records if "toolUseResult" in each]
    return [each for each in found if isinstance(each, dict) and "agentId" in each]


def task(prompt: str, **more: Any) -> Any:
    return tool("Agent", description="a task", prompt=prompt, **more)


def test_a_task_is_done_in_a_file_of_its_own(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("count apples")).then("Three, it says.")
    script.on("count apples", tool("Look", what="x")).then("Three apples.")
    stage = Stage(tmp_path, script)
    played(stage, "go")
    (path,) = agent_files(stage)
    (detail,) = details(stage)
    assert detail["status"] == "completed"
    assert detail["content"] == [{"type": "text", "text": "Three apples."}]
    assert detail["totalToolUseCount"] == 1
    assert detail["totalTokens"] > 0
    assert path.name == f"agent-{detail['agentId']}.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert all(each["isSidechain"] and each["agentId"] == detail["agentId"] for each in records)
    assert {each["sessionId"] for each in records} == {stage.talk.recorder.session_id}
    meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    assert (meta["agentType"], meta["spawnDepth"]) == ("helper", 1)
    evidence = check(BytesSource(path.read_bytes()), name=path.stem)
    assert [each for each in evidence.findings if each.severity == "error"] == []
    stage.check()


def test_the_reader_finds_the_sub_agent_with_its_call(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("count apples", subagent_type="looker")).then("Done.")
    stage = Stage(tmp_path, script.on("count apples", "Three."))
    played(stage, "go")
    (found,) = sessions(stage.config)
    with found.open() as session:
        (thread,) = session.agents
        assert thread.kind == "looker"


def test_agents_of_one_response_work_side_by_side_and_below_each_other(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [task("first task"), task("second task")]).then("Both done.")
    script.on("first task", task("inner task")).then("First.")
    stage = Stage(tmp_path, script.on("inner task", "Inner.").on("second task", "Second."))
    played(stage, "go")
    assert len(agent_files(stage)) == 3
    depths = [json.loads(path.with_suffix(".meta.json").read_bytes())["spawnDepth"] for path in agent_files(stage)]
    assert sorted(depths) == [1, 1, 2]
    assert [each["content"][0]["text"] for each in details(stage)] == ["First.", "Second."]
    within = [each for each in stage.events if isinstance(each, events.SubagentEvent)]
    assert {type(each.event) for each in within} >= {events.ResponseReceived, events.TurnEnded}
    stage.check()


def test_agents_of_one_response_do_not_wait_for_each_other(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(_given: dict[str, Any]) -> str:
        await both.wait()
        return "met"

    script = ScriptedResponder().on("go", [task("first"), task("second")]).then("Done.")
    script.on("first", tool("Meet")).then("One.").on("second", tool("Meet")).then("Two.")
    stage = Stage(tmp_path, script)
    stage.tools.append(Does("Meet", meet))
    played(stage, "go")
    assert [each["status"] for each in details(stage)] == ["completed"] * 2


def test_one_in_the_background_tells_when_it_is_done(tmp_path: Path) -> None:
    script = ScriptedResponder().on("is done", "I have heard.")
    script.on("go", task("long work", run_in_background=True)).then("It works on.")
    stage = Stage(tmp_path, script.on("long work", "Finished."))

    async def act(agent: Agent) -> None:
        made = with_agents(stage, agent)
        told = asyncio.Event()

        def notify(words: str) -> None:
            agent.inbox.append((words, True))
            told.set()

        agent.executor.context.notify = notify
        await agent.run_turn("go")
        await told.wait()
        await agent.run_turn("and now?")
        await made.close()

    stage.play(act)
    (detail,) = details(stage)
    assert detail["status"] == "async_launched"
    assert "Finished." in str(stage.talk.messages())
    stage.check()


def test_an_unknown_kind_and_too_deep_a_call_are_told_to_the_model(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", task("x", subagent_type="nobody")).then("I see.")
    script.on("deeper", task("deeper")).then("Up again.")
    stage = Stage(tmp_path, script)
    played(stage, "go", "deeper")
    assert "Unknown sub-agent type: 'nobody'" in str(stage.talk.messages())
    assert len(agent_files(stage)) == 5
    stage.check()


def test_a_sub_agent_that_fails_is_an_error_its_caller_reads(tmp_path: Path) -> None:
    from steno.llm.testserver.responders import ErrorReply

    bad = ErrorReply(status=400, kind="invalid_request_error", message="no")
    script = ScriptedResponder().on("go", task("doomed")).then("A pity.").on("doomed", bad)
    stage = Stage(tmp_path, script)
    played(stage, "go")
    (detail,) = details(stage)
    assert detail["status"] == "error"
    assert stage.talk.messages()[2]["content"][0]["is_error"]
    stage.check()
