"""An agent killed at any write leaves a session that checks clean and goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.agent.loop_harness import Stage
from tests.campaign.size import spread

import steno
from steno.agent.writable_session import resume_session
from steno.llm.testserver.responders import text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])


def script() -> ScriptedResponder:
    calls = [text("I look."), tool("Look", what="a"), tool("Look", what="b"), tool("Fail", what="c")]
    asked = ScriptedResponder().on("Summarize", "In short.").on("look at it", calls).then("Seen.")
    return asked.otherwise("Yes.")


def struck(folder: Path, url: str, at: int, how: str) -> int:
    """Let an agent be killed at a write; return how it ended."""
    program = ROOT / "tests" / "faults" / "talking.py"
    ran = subprocess.run(
        [sys.executable, program, url, folder, str(at), how],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        check=False,
    )
    assert not ran.stderr, ran.stderr.decode()
    return ran.returncode


def check_goes_on(folder: Path) -> None:
    """The session checks clean as it is, goes on, and checks clean again."""
    files = list((folder / "config" / "projects").glob("*/*.jsonl"))
    if not files or not files[0].stat().st_size:
        return
    stage = Stage(folder, script())
    try:
        stage.work = resume_session(str(files[0]), stage.cwd)
    except LookupError:
        assert b'"type":"user"' not in files[0].read_bytes().split(b"\n")[0] + b"\n"
        return
    (ended,) = stage.say("and on")
    assert ended.reason == "done"
    stage.check(allowed=("line.torn",))


def strike(tmp_path: Path, places: range, how: str) -> int:
    """Strike at these writes; return how often an agent was killed."""
    killed = 0
    with run_server_in_thread(script()) as server:
        for at in places:
            folder = tmp_path / f"{how}{at}"
            folder.mkdir()
            if struck(folder, server.url, at, how) == 0:
                break
            killed += 1
            check_goes_on(folder)
    return killed


def test_killed_in_a_response_and_in_its_results_the_session_goes_on(tmp_path: Path) -> None:
    assert strike(tmp_path, range(2, 14, 4), "half") == 3


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", spread(["before", "half", "behind"]))
def test_killed_at_any_write_the_session_goes_on(tmp_path: Path, how: str) -> None:
    assert strike(tmp_path, range(1, 1000), how) > 15
