"""Sessions of hours: a turn costs what is new in it, and what is kept in memory does not grow."""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import msgspec
import pytest
from tests.agent.loop_harness import Stage

from steno.agent import conversation, events
from steno.agent.agent_session import build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.context.compaction import ContextCompactor
from steno.agent.loop import Agent, ModelClient
from steno.agent.writable_session import new_session, resume_session
from steno.llm.messages_api import Request
from steno.llm.stream_decoder import StreamEvent
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.session.resume import replay

TURNS = 300
LONG = 100
"""Enough that a cost that grows with the session shows in every turn."""


def looking(folder: Path, **settings: Any) -> Stage:
    script = ScriptedResponder().on("Summarize", "In short.").on("Write one", "In short.")
    script.on("look", tool("Look", what="word " * 20)).then("Done.")
    return Stage(folder, script, keep=1, **settings)


class Counted:
    """Counts the calls of a function, and is that function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        return self.function(*given)


class Watched:
    """A model that counts what of a request is not yet bytes."""

    def __init__(self, model: ModelClient) -> None:
        self.model = model
        self.fresh: set[int] = set()

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.fresh.add(sum(not isinstance(each, msgspec.Raw) for each in request.messages))
        return self.model.stream(request)


def test_a_turn_proves_and_encodes_what_is_new_however_long_the_session_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proving, encoding = Counted(replay.fix_block), Counted(conversation.encode_message)
    monkeypatch.setattr(replay, "fix_block", proving)
    monkeypatch.setattr(conversation, "encode_message", encoding)
    stage = looking(tmp_path, strict=False)
    taken: list[tuple[int, int]] = []

    async def act(agent: Agent) -> set[int]:
        agent.model = watched = Watched(agent.model)
        for number in range(LONG):
            before = proving.calls, encoding.calls
            await agent.run_turn(f"look {number}")
            taken.append((proving.calls - before[0], encoding.calls - before[1]))
        return watched.fresh

    # Of each request only the last message is put together anew.
    assert stage.play(act) == {1}
    assert len(stage.talk.messages()) == 4 * LONG
    # Of each turn: four messages are settled, and two are looked at as they are sent.
    assert set(taken[1:]) == {(6, 4)}


def test_what_is_kept_does_not_grow_with_the_turns(tmp_path: Path) -> None:
    stage = looking(tmp_path)
    stage.fit = ContextCompactor(window=6_000)
    sizes: list[int] = []

    async def act(agent: Agent) -> None:
        agent.executor.emit = lambda _event: None
        for number in range(TURNS):
            await agent.run_turn(f"look {number}")
            if number >= TURNS // 3 and number % 2:
                sizes.append(kept_by(agent.conversation, agent.meter, agent.inbox, agent.executor.context))

    stage.play(act)
    half = len(sizes) // 2
    assert stage.data.count(b'"compact_boundary"') > 5
    assert max(sizes[half:]) <= max(sizes[:half]) * 1.02
    stage.check()


def kept_by(*holders: object) -> int:
    """Return the bytes of everything that hangs on some objects."""
    seen: dict[int, object] = {}
    waiting = list(holders)
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen[id(each)] = each
        waiting += gc.get_referents(each)
    return sum(map(size_of, seen.values()))


def size_of(value: object) -> int:
    # Python does not know how long what another language keeps is.
    return len(memoryview(value)) if isinstance(value, msgspec.Raw) else sys.getsizeof(value)


def test_all_requests_of_a_session_use_one_connection(tmp_path: Path) -> None:
    stage = looking(tmp_path)
    stage.say("look here", "look there", "look again")
    assert stage.server.connections == 1
    stage.check()


def digging(stage: Stage, calls: int) -> AgentOptions:
    """Let the model read a long file many times over, wherever it is asked to dig."""
    file = Path(stage.cwd) / "long.txt"
    file.write_text("One more line of it.\n" * 400)
    step = tool("Read", file_path=str(file))
    script = cast("ScriptedResponder", stage.mind)
    script.on("dig", step)
    for _ in range(calls - 1):
        script.then(step)
    script.then("Found.")
    return AgentOptions(
        cwd=stage.cwd, config=stage.config, env={"HOME": stage.cwd}, window=60_000, max_tokens=1_000, mode="default"
    )


def started(stage: Stage, options: AgentOptions, prompt: str) -> events.TurnEnded:
    """Say something to an agent that has all that surrounds it."""

    async def together() -> events.TurnEnded:
        assert stage.work is not None
        async with stage.server, stage.api() as api:
            people = AgentCallbacks(emit=stage.events.append)
            one = build_session(options, stage.work, api, people, lambda _model, _usage: 0)
            ended = await one.agent.run_turn(prompt)
            await one.close()
            return ended

    return asyncio.run(together())


def test_the_window_of_a_sub_agent_is_made_room_in_as_well(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("Summarize", "In short."))
    options = digging(stage, 30)
    ask = tool("Agent", description="a task", prompt="dig", subagent_type="general-purpose")
    cast("ScriptedResponder", stage.mind).on("go", ask).then("Done.")
    stage.work = new_session(stage.config, stage.cwd)
    assert started(stage, options, "go").text == "Done."
    (file,) = (Path(stage.talk.recorder.folder) / "subagents").glob("*.jsonl")
    assert b'"microcompact_boundary"' in file.read_bytes()
    assert b'"microcompact_boundary"' not in stage.data
    stage.check()


def test_a_session_that_goes_on_knows_how_full_its_window_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    options = digging(stage, 16)
    options.settings = '{"autoCompactEnabled": false}'
    stage.work = new_session(stage.config, stage.cwd)
    started(stage, options, "dig")
    before = len(stage.server.requests[-1].body["messages"])
    assert b'"microcompact_boundary"' not in stage.data
    options.settings = ""
    stage.work = resume_session(stage.path, stage.cwd)
    assert stage.work.context_size > 40_000
    assert stage.talk.tokens > 30_000
    started(stage, options, "And now?")
    # Room is made before the first request, which would be too long otherwise.
    first = stage.server.requests[-1].body["messages"]
    assert len(first) > before
    assert "removed to save context" in str(first)
    stage.check()
