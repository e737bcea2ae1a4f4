"""Sessions written by the engine, resumed by the real client: it sends what the engine would.

Run by `make interop`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.agent.loop_harness import Does, Stage
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.notation import notation

from steno.agent.context.compaction import ContextCompactor
from steno.agent.loop import Agent
from steno.agent.writable_session import fork_session, list_prompts, resume_session, rewind_session
from steno.llm.testserver.responders import ErrorReply, cut_reply, invalid_tool_call, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST = "2.1.325"
OLDER = ("2.0.76", "2.1.42")
BUSY = ErrorReply(status=529, kind="overloaded_error", message="Overloaded")


def plain(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("hello", "Good day."))
    stage.say("hello")
    return stage


def several(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().otherwise("Yes."))
    stage.say("one", "two", "three")
    return stage


def at_terminal(folder: Path) -> Stage:
    """Turns that end with how long they took, a plan that names the session, a compaction."""
    script = ScriptedResponder().on("Summarize", "In short.").on("go", tool("Look", what="a"))
    stage = Stage(folder, script.then("Done.").otherwise("Yes."))
    stage.interactive = True
    stage.guard.mode = "plan"
    stage.say("one", "go")
    stage.guard.mode = "default"

    async def act(agent: Agent) -> None:
        await ContextCompactor().compact(agent, "manual")
        await agent.run_turn("three")

    stage.play(act)
    stage.resume()
    stage.say("four")
    assert stage.data.count(b'"turn_duration"') == 4
    assert stage.data.count(b'"slug"') == stage.data.count(b'"uuid"')
    return stage


def calls(folder: Path) -> Stage:
    script = ScriptedResponder().on("go", [text("I look."), tool("Look", what="a")]).then(tool("Fail", what="b"))
    stage = Stage(folder, script.then("Done."))
    stage.say("go", "and")
    return stage


def parallel(folder: Path) -> Stage:
    many = [tool("Look", what=str(number)) for number in range(4)]
    stage = Stage(folder, ScriptedResponder().on("go", [text("All."), *many]).then("Done."))
    stage.say("go")
    return stage


def thought(folder: Path) -> Stage:
    script = ScriptedResponder().on("go", [thinking("hm"), tool("Look", what="a")]).then([thinking("so"), "Done."])
    stage = Stage(folder, script)
    stage.say("go")
    return stage


def resumed(folder: Path) -> Stage:
    stage = several(folder)
    stage.resume()
    stage.say("four")
    return stage


def forked(folder: Path) -> Stage:
    stage = calls(folder)
    stage.work = fork_session(stage.config, stage.path, stage.cwd)
    stage.say("on the fork")
    return stage


def rewound(folder: Path) -> Stage:
    stage = several(folder)
    stage.talk.recorder.close()
    stage.work = rewind_session(stage.path, stage.cwd, list_prompts(stage.path)[1][0])
    stage.say("otherwise")
    return stage


def compacted(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))

    async def act(agent: Agent) -> None:
        await agent.run_turn("one")
        await agent.run_turn("two")
        await ContextCompactor().compact(agent, "manual")
        await agent.run_turn("three")

    stage.play(act)
    return stage


def compacted_twice(folder: Path) -> Stage:
    script = ScriptedResponder().on("Summarize", "In short.").on("go", tool("Look", what="a")).then("Yes.")
    stage = Stage(folder, script.otherwise("Well."))

    async def act(agent: Agent) -> None:
        for prompt in ("go", "two", "go on"):
            await agent.run_turn(prompt)
            await ContextCompactor().compact(agent, "manual")
        await agent.run_turn("end")

    stage.play(act)
    return stage


def compacted_alone(folder: Path) -> Stage:
    script = ScriptedResponder().on("Summarize", "In short.").on("Write one", "In short.")
    stage = Stage(folder, script.otherwise(tool("Look", what="x " * 300)))
    stage.fit = ContextCompactor(window=4_000)
    stage.limits = type(stage.limits)(requests=14)
    stage.say("look for it")
    return stage


def retried(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("go", "Done.", first=[BUSY, BUSY]))
    stage.say("go")
    return stage


def failed(folder: Path) -> Stage:
    bad = ErrorReply(status=401, kind="authentication_error", message="no")
    stage = Stage(folder, ScriptedResponder().on("two", "Two.").on("one", bad))
    stage.say("one", "two")
    return stage


def broken_json(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("go", invalid_tool_call("Look", '{"wh')).then("Sorry."))
    stage.say("go")
    return stage


def cut_off(folder: Path) -> Stage:
    blocks = [text("The beginning."), text("More of it.")]
    script = (
        ScriptedResponder()
        .on("cut off by a connection error", "The end.")
        .on("go", "Done.", first=[cut_reply(blocks, 900)])
    )
    stage = Stage(folder, script)
    stage.say("go")
    return stage


def too_long(folder: Path) -> Stage:
    script = ScriptedResponder().on("limit of", "and the last.").on("go", "The first", stop_reason="max_tokens")
    stage = Stage(folder, script)
    stage.say("go")
    return stage


def empty(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("again", "Here.").on("go", []))
    stage.say("go", "again")
    return stage


def limited(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().otherwise(tool("Look", what="more")))
    stage.limits = type(stage.limits)(requests=3)
    stage.say("go")
    return stage


def refused(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().on("go", tool("Shout", what="a")).then("I see."))
    stage.guard.decision = type(stage.guard.decision)("deny", "Not here.")
    stage.say("go")
    return stage


def unicode(folder: Path) -> Stage:
    stage = Stage(folder, ScriptedResponder().otherwise('日本語 \u2028 \u0007 🙂 \\ "'))
    stage.say("ünïcödé \u2029 \x00 🙃")
    return stage


SCENES: Final[tuple[Callable[[Path], Stage], ...]] = (
    plain,
    at_terminal,
    several,
    calls,
    parallel,
    thought,
    resumed,
    forked,
    rewound,
    compacted,
    compacted_twice,
    compacted_alone,
    retried,
    failed,
    broken_json,
    cut_off,
    too_long,
    empty,
    limited,
    refused,
    unicode,
)
PLAIN: Final = (plain, at_terminal, several, calls, parallel, resumed, compacted)


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
def test_the_real_client_sends_what_the_engine_would(version: str, tmp_path: Path) -> None:
    scenes = (SCENES if version == NEWEST else PLAIN)[: 8 if QUICK else None]
    stages: dict[str, Stage] = {}
    for scene in scenes:
        folder = tmp_path / scene.__name__
        folder.mkdir()
        stages[scene.__name__] = scene(folder)
    answers = resume_all(version, [Job(stage.data) for stage in stages.values()])
    got = {name: sent(answer) for name, answer in zip(stages, answers, strict=True)}
    assert got == {name: ours(stage, version) for name, stage in stages.items()}


def ours(stage: Stage, version: str) -> list[str]:
    """Return what the engine would send; to an open end the newest client says something itself."""
    said = notation(stage.talk.messages())
    is_open = said[-1].startswith("u:") and version == NEWEST
    return [*said, "a:No response requested."] if is_open else said


def trimmed(folder: Path) -> Stage:
    async def much(given: dict[str, Any]) -> str:
        return f"{given['what']} " * 500

    stage = Stage(folder, ScriptedResponder().on("look", tool("Much", what="word")).then("Done."))
    stage.tools.append(Does("Much", much))
    stage.fit = ContextCompactor(window=8_000)
    stage.say(*(f"look {number}" for number in range(10)))
    assert b'"microcompact_boundary"' in stage.data
    assert b'"compact_boundary"' not in stage.data
    stage.check()
    return stage


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
def test_what_the_engine_leaves_out_the_real_client_sends(version: str, tmp_path: Path) -> None:
    stage = trimmed(tmp_path)
    (answer,) = resume_all(version, [Job(stage.data)])
    assert sent(answer) == predicted(stage.data, version)
    assert str(sent(answer)).count("was left out") == 0


# Of the scenes with a screen, some hold words of the client's own that are not predicted.
REAL: Final = (
    *("plain", "multi", "thinking", "thinktool", "todo", "bigout", "compact", "autocompact"),
    *("hooks", "maxtok", "apierr", "refusal", "tui_worktree", "cutstream", "mcp", "slash"),
)


def test_sessions_of_the_real_client_go_on_here_and_there_again(tmp_path: Path, shared: Path) -> None:
    stages: dict[str, Stage] = {}
    for scene in REAL[: 4 if QUICK else None]:
        found = (shared / "corpus" / "real-client" / NEWEST / scene / "projects").glob("*/*.jsonl")
        for path in sorted(each for each in found if each.stat().st_size)[:1]:
            folder = tmp_path / scene
            folder.mkdir()
            copy = folder / path.name
            copy.write_bytes(path.read_bytes())
            stage = Stage(folder, ScriptedResponder().otherwise("Yes."), signed=False)
            stage.work = resume_session(str(copy), stage.cwd)
            (ended,) = stage.say("go on")
            assert (ended.reason, list(stage.server.refused)) == ("done", []), scene
            stages[scene] = stage
    answers = resume_all(NEWEST, [Job(stage.data) for stage in stages.values()])
    got = {name: sent(answer) for name, answer in zip(stages, answers, strict=True)}
    want = {name: predicted(stage.data, NEWEST) for name, stage in stages.items()}
    assert {name: bare(said) for name, said in got.items()} == {name: bare(said) for name, said in want.items()}
    assert all("go on" in said[-2] and said[-1] == "a:Yes." for said in got.values())


def bare(said: list[str]) -> list[str]:
    """Leave out the filler that stands in the corpus for the client's own words."""
    parts = ([part for part in each.split(" + ") if "lorem" not in part] for each in said)
    return [" + ".join(each) for each in parts]
