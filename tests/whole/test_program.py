"""`steno chat -p` as a program of its own: signals, chains of runs, and `steno check` afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.whole.house import KEY

from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.responders import ReplyBlock, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server, run_server_in_thread


class Program:
    """A project, a home, and calls of the program in them."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.server = server
        home = folder / "home"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "STENO_HOME": str(home / "steno"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
        }
        self.files = home / ".claude" / "projects"

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "steno", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.project,
            env=self.env,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        with self.start(*arguments) as ran:
            out, err = ran.communicate()
        assert "Traceback" not in err
        assert ran.returncode == code, err
        return out

    def chat(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Return the result that a run ends with."""
        out = self.run("chat", "-p", "--output-format", "json", *arguments, code=code)
        return json.loads(out)

    def proves(self) -> None:
        """Assert that everything checks clean, goes on, and nothing was refused."""
        self.run("check")
        before = [each.body for each in self.server.requests if "agent in a" in str(each.body)][-1]
        assert self.chat("-c", "--fork-session", "And what now?")["result"] == "Yes."
        now = self.server.requests[-1].body
        assert (now["system"], now["tools"]) == (before["system"], before["tools"])
        known = _flat(before["messages"])
        assert _flat(now["messages"])[: len(known) - 1] == known[:-1]
        self.run("check")
        assert list(self.server.refused) == []


def _flat(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"role": each["role"], **{key: block[key] for key in block if key != "cache_control"}}
        for each in messages
        for block in each["content"]
    ]


@pytest.fixture
def script() -> ScriptedResponder:
    return ScriptedResponder().otherwise("Yes.")


@pytest.fixture
def program(tmp_path: Path, script: ScriptedResponder) -> Iterator[Program]:
    with run_server_in_thread(script, key=KEY) as server:
        yield Program(tmp_path, server)


def task(prompt: str) -> ReplyBlock:
    return tool("Agent", description="a task", prompt=prompt)


def test_run_taken_back_forked_and_gone_on_with(program: Program, script: ScriptedResponder) -> None:
    (program.project / "a.txt").write_text("one\n")
    script.on("look", [text("I look."), tool("Read", file_path="a.txt"), task("count")])
    script.then("Seen.").on("count", tool("Glob", pattern="*")).then("Three.")
    assert program.chat("look first")["result"] == "Seen."
    program.chat("-c", "second")
    (path,) = program.files.glob("*/*.jsonl")
    second = next(
        each["uuid"]
        for each in map(json.loads, path.read_bytes().splitlines())
        if each.get("message", {}).get("content") == "second"
    )
    program.chat("-c", "--rewind", second, "another second")
    sent = str(program.server.requests[-1].body["messages"])
    assert "another second" in sent
    assert "'second'" not in sent
    forked = program.chat("-c", "--fork-session", "third")["session_id"]
    assert forked != path.stem
    program.chat("--resume", forked, "look fourth")
    program.proves()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_commands_run_ends_them_all(
    program: Program, script: ScriptedResponder, tmp_path: Path, number: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    script.on("go", [task("work"), task("wait")])
    script.on("wait", [text("I ", Door())])
    script.on("work", tool("Bash", command=f"echo $$ > {pid}; echo begun; sleep 600"))
    ran = program.start("chat", "-p", "go", "--output-format", "stream-json", "--allowedTools=Bash")
    with ran:
        assert ran.stdout is not None
        while not (pid.exists() and pid.read_text().strip()):
            assert ran.poll() is None
        ran.send_signal(number)
        lines = [json.loads(line) for line in ran.stdout]
    assert ran.returncode == 128 + number
    assert (lines[-1]["type"], lines[-1]["subtype"]) == ("result", "error_during_execution")
    assert not Path("/proc", pid.read_text().strip()).exists()
    assert len(list(program.files.glob("*/*/subagents/*.jsonl"))) == 2
    program.proves()


def test_limits_and_errors_have_their_codes_and_go_on(program: Program, script: ScriptedResponder) -> None:
    script.on("more", [text("More."), tool("Glob", pattern="*")])
    for _ in range(9):
        script.then(tool("Glob", pattern="*"))
    ended = program.chat("--max-turns", "2", "more", code=1)
    assert (ended["subtype"], ended["num_turns"]) == ("error_max_turns", 2)
    ended = program.chat("-c", "--max-budget-usd", "0.000001", "more", code=1)
    assert ended["subtype"] == "error_max_budget_usd"
    program.proves()
