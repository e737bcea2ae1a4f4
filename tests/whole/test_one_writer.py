"""One writer per session, decided before the first byte: the programs themselves."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.whole.house import KEY
from tests.whole.test_program import Program

from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.responders import text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread
from steno.store.session_lock import lock_path

WAITING = Path(__file__).parent / "waiting.py"


@pytest.fixture
def script() -> ScriptedResponder:
    return ScriptedResponder().otherwise("Yes.")


@pytest.fixture
def program(tmp_path: Path, script: ScriptedResponder) -> Iterator[Program]:
    with run_server_in_thread(script, key=KEY) as server:
        yield Program(tmp_path, server)


@contextmanager
def opened_at_last(door: Door) -> Generator[None]:
    """Open a door also where a test fails, so that nobody waits at it for ever."""
    try:
        yield
    finally:
        door.release()


def begun(program: Program) -> Path:
    """Return the file of a session in which something was said."""
    program.chat("hello")
    (path,) = program.files.glob("*/*.jsonl")
    return path


def refused(program: Program, *arguments: str) -> str:
    """Run the program; return the one line in which it refuses."""
    with program.start(*arguments) as ran:
        out, err = ran.communicate()
    assert "Traceback" not in err
    assert (ran.returncode, out) == (3, ""), err
    return err


def together(program: Program, *commands: list[str]) -> "list[subprocess.Popen[str]]":
    """Start programs that are all ready, at one moment."""
    started = [
        subprocess.Popen(
            [sys.executable, str(WAITING), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=program.project,
            env=program.env,
        )
        for command in commands
    ]
    for each in started:
        assert each.stderr is not None
        assert each.stderr.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        os.write(each.stdin.fileno(), b".")
    return started


def first_to_end(both: "list[subprocess.Popen[str]]") -> "subprocess.Popen[str]":
    while True:
        for each in both:
            if each.poll() is not None:
                return each
        # Whoever waits must not take the processor from those that are waited for.
        time.sleep(0.01)


def race(program: Program, script: ScriptedResponder, path: Path, number: int) -> None:
    """Let two programs go on with one session at once: one does, one is refused."""
    door = Door()
    # A scene is for all prompts with its words: `number 1` would answer number 10 as well, through
    # a door that is open already.
    prompt = f"number {number:02}"
    script.on(prompt, [text("Half", door)])
    before = path.read_bytes()
    how = [["-c"], ["--resume", path.stem]][number % 2]
    both = together(program, ["chat", "-p", "--resume", path.stem, prompt], ["chat", "-p", *how, prompt])
    # Whoever is refused ends at once; the other cannot end before the door is open.
    loser = first_to_end(both)
    (winner,) = [each for each in both if each is not loser]
    out, err = loser.communicate()
    assert loser.returncode == 3, (out, err, path.read_bytes()[len(before) :])
    assert re.search(rf"is in use by process {winner.pid}, since \d{{4}}-", err), err
    assert "--fork-session" in err
    door.wait_reached()
    door.release()
    out, err = winner.communicate()
    assert (winner.returncode, out) == (0, "Half\n"), err
    added = path.read_bytes()
    assert added.startswith(before)
    said = [json.loads(line) for line in added[len(before) :].splitlines()]
    assert len([each for each in said if each["type"] == "user"]) == 1
    assert len([each for each in said if each["type"] == "assistant"]) == 1


def test_of_two_that_go_on_together_one_runs_and_one_is_refused(program: Program, script: ScriptedResponder) -> None:
    path = begun(program)
    for number in range(3):
        race(program, script, path, number)
    program.run("check")


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_of_two_that_go_on_together_fifty_times(program: Program, script: ScriptedResponder) -> None:
    path = begun(program)
    for number in range(50):
        race(program, script, path, number)
    program.run("check")


def test_two_new_sessions_of_one_id_are_one(program: Program, script: ScriptedResponder) -> None:
    door = Door()
    script.on("go", [text("Half", door)])
    name = "0f0e0d0c-0000-4000-8000-00000000000a"
    both = together(program, *[["chat", "-p", "--session-id", name, "go"]] * 2)
    loser = first_to_end(both)
    _, err = loser.communicate()
    assert loser.returncode in (2, 3), err
    assert "in use by process" in err or "already" in err
    door.release()
    for each in both:
        if each is not loser:
            out, err = each.communicate()
            assert (each.returncode, out) == (0, "Half\n"), err
    program.run("check")


def test_while_one_works_others_are_refused_and_nothing_is_written(program: Program, script: ScriptedResponder) -> None:
    path = begun(program)
    (prompt,) = [each["uuid"] for each in map(json.loads, path.read_bytes().splitlines()) if each["type"] == "user"]
    door = Door()
    script.on("in a copy", "Yes.").on("wait", [text("Half", door)])
    with program.start("chat", "-p", "-c", "wait") as first, opened_at_last(door):
        door.wait_reached()
        before = path.read_bytes()
        name = ["--resume", path.stem]
        for arguments in (
            ["chat", "-p", *name, "more"],
            ["chat", "-p", "-c", "more"],
            ["chat", "-p", *name, "--rewind", prompt, "more"],
            ["chat", "-p", *name, "--rewind-files", prompt],
        ):
            said = refused(program, *arguments)
            assert f"in use by process {first.pid}, since" in said, arguments
            assert "--fork-session" in said
        assert path.read_bytes() == before
        # A copy is no other writer.
        program.chat(*name, "--fork-session", "in a copy")
        assert path.read_bytes() == before
        door.release()
        first.communicate()
    assert first.returncode == 0
    program.chat("--resume", path.stem, "more")
    assert not list(Path(program.env["STENO_HOME"], "locks").iterdir())


def test_after_a_kill_the_next_one_goes_on_at_once(program: Program, script: ScriptedResponder) -> None:
    path = begun(program)
    for number in range(3):
        door = Door()
        script.on(f"on {number}", "Yes.").on(f"wait {number}", [text("Half", door)])
        with program.start("chat", "-p", "-c", f"wait {number}") as first:
            door.wait_reached()
            first.send_signal(signal.SIGKILL)
            first.communicate()
        door.release()
        assert Path(lock_path(str(path), env=program.env)).exists()
        assert program.chat("--resume", path.stem, f"on {number}")["result"] == "Yes."
    program.run("check")


def test_a_command_that_outlives_a_killed_agent_does_not_hold_the_session(
    program: Program, script: ScriptedResponder, tmp_path: Path
) -> None:
    path = begun(program)
    pid = tmp_path / "pid"
    script.on("go on", "Yes.").on("run", tool("Bash", command=f"echo $$ > {pid}; exec sleep 600"))
    with program.start("chat", "-p", "-c", "run", "--allowedTools=Bash") as first:
        while not (pid.exists() and pid.read_text().strip()):
            assert first.poll() is None
        first.send_signal(signal.SIGKILL)
        first.wait()
        try:
            assert program.chat("--resume", path.stem, "go on")["result"] == "Yes."
        finally:
            number = int(pid.read_text())
            if Path(f"/proc/{number}").exists():
                os.kill(number, signal.SIGKILL)


def test_a_full_disk_is_told_in_one_line_and_the_session_goes_on(program: Program, script: ScriptedResponder) -> None:
    import resource

    script.on("and on", "Yes.").on("long", [text("word " * 4000)])
    path = begun(program)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = path.stat().st_size + 6000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    ran = subprocess.run(
        [sys.executable, "-m", "steno", "chat", "-p", "-c", "long"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=program.project,
        env={**program.env, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limited,
        check=False,
    )
    assert ran.returncode == 3
    assert ran.stderr == (
        "steno: File size limit reached: the last message was not saved; raise the limit (ulimit -f) and continue\n"
    )
    assert path.read_bytes().endswith(b"\n")
    assert program.chat("-c", "and on")["result"] == "Yes."
    program.run("check")
