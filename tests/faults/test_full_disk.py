"""A disk that fails at any write of a turn: nothing torn, nothing lost, and the session goes on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Stage
from tests.faults.failing_writes import CODES, LENGTHS, failing

import steno
from steno.agent import events
from steno.agent.context.compaction import ContextCompactor
from steno.agent.events import EndReason, TurnEnded
from steno.agent.loop import Agent
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.testserver.responders import text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

ROOT = Path(__file__).parent.parent.parent
CAUSES = {
    "ENOSPC": "Disk full: the last message was not saved; free space and continue",
    "EDQUOT": "Disk quota exceeded: the last message was not saved; free space and continue",
    "EFBIG": "File size limit reached: the last message was not saved; raise the limit (ulimit -f) and continue",
    "EIO": "Disk error: the last message was not saved; check the disk and continue",
}
_MOST = 100


def script() -> ScriptedResponder:
    calls = [thinking("Hm."), text("I look."), tool("Look", what="a"), tool("Look", what="b"), tool("Fail", what="c")]
    asked = ScriptedResponder().on("Summarize", "In short.").on("look at it", calls)
    return asked.then([text("And"), tool("Shout", what="x" * 9000)]).then("Seen.").otherwise("Yes.")


def acknowledged(stage: Stage) -> set[str]:
    """Return the ids of the records that the agent has said are recorded."""
    ids: set[str] = set()
    for event in stage.events:
        match event:
            case events.PromptSubmitted(_, uuid) | events.ToolEnded(_, _, _, uuid):
                ids.add(uuid)
            case events.ResponseReceived(_, uuids):
                ids.update(uuids)
            case _:
                pass
    return ids - {""}


def check_file(stage: Stage) -> None:
    """Every line is a whole record, the checker finds nothing, what was acknowledged is there."""
    data = stage.data
    assert data == b"" or data.endswith(b"\n")
    found = {json.loads(line).get("uuid") for line in data.splitlines()}
    assert acknowledged(stage) <= found
    if data:
        evidence = check(BytesSource(data), name=Path(stage.path).stem)
        bad = {each.id for each in evidence.findings if each.severity != "info"}
        # Calls of a turn that ended in the middle get their results with the next prompt.
        open_calls = data.count(b'"type":"tool_use"') > data.count(b'"type":"tool_result"')
        assert bad == ({"tools.interrupted"} if open_calls else set()), bad


async def compacted(agent: Agent) -> tuple[EndReason, str]:
    assert await ContextCompactor().compact(agent, "manual")
    return "done", ""


def strike(folder: Path, at: int, code: str, length: str, *, before: int) -> bool:
    """Let a turn fail at a write; assert everything that is promised. False when none failed."""
    folder.mkdir()
    stage = Stage(folder, script())

    async def talk(agent: Agent) -> tuple[list[TurnEnded], bool]:
        ended = [await agent.run_turn("hello") for _ in range(before)]
        with failing(at, code, length) as writes:
            ended.append(await agent.run_turn("look at it"))
            if before and not writes.struck:
                ended.append(await agent.run_as_turn(compacted(agent)))
        if not writes.struck:
            return ended, False
        check_file(stage)
        assert (ended[-1].reason, ended[-1].problem) == ("not_saved", CAUSES[code])
        assert stage.events[-1] == ended[-1]
        # There is room again: the same process goes on.
        ended += [await agent.run_turn("look at it"), await agent.run_turn("and this")]
        return ended, True

    ended, struck = stage.play(talk)
    if not struck:
        return False
    assert [each.reason for each in ended[-2:]] == ["done", "done"]
    stage.check()
    check_file(stage)
    stage.resume()
    (last,) = stage.say("and on")
    assert last.reason == "done"
    stage.check()
    stage.talk.recorder.close()
    return True


def strike_all(tmp_path: Path, code: str, length: str, *, before: int = 0) -> int:
    for at in range(1, _MOST):
        folder = tmp_path / f"{at}"
        if not strike(folder, at, code, length, before=before):
            return at - 1
        shutil.rmtree(folder)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("length", LENGTHS)
def test_a_disk_that_fills_up_at_any_write_of_a_first_turn(tmp_path: Path, length: str) -> None:
    assert strike_all(tmp_path, "ENOSPC", length) >= 14


def test_a_limit_of_the_system_at_any_write(tmp_path: Path) -> None:
    assert strike_all(tmp_path, "EFBIG", "half") >= 14


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("code", CODES)
def test_any_failure_at_any_write_of_a_later_turn_and_of_a_compaction(tmp_path: Path, code: str, length: str) -> None:
    assert strike_all(tmp_path, code, length, before=1) >= 14


def in_a_small_file_system(folder: Path, pages: str) -> Any:
    """Run the talk of `small_disk.py` in a file system of its own, as far as that is allowed."""
    program = ROOT / "tests" / "faults" / "small_disk.py"
    places = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "-r"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    ran = subprocess.run(
        [*unshare, sys.executable, str(program), str(folder), pages],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode == 77:
        pytest.skip(ran.stderr)
    assert (ran.returncode, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


def test_a_small_file_system_that_is_really_full(tmp_path: Path) -> None:
    reasons = in_a_small_file_system(tmp_path, "0,1,2,5")
    assert reasons["0"] == "not_saved"
    assert set(reasons.values()) <= {"not_saved", "done"}


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_small_file_system_with_any_room_left(tmp_path: Path) -> None:
    reasons = in_a_small_file_system(tmp_path, ",".join(map(str, range(16))))
    assert list(reasons.values()).count("not_saved") >= 6
    assert reasons["15"] == "done"
