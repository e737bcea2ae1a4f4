"""`steno chat` and those who work beside it: nobody takes another's work for broken off."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands.test_chat import KEY, Chat

from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread


@pytest.fixture
def script() -> ScriptedResponder:
    return ScriptedResponder()


@pytest.fixture
def chat(tmp_path: Path, script: ScriptedResponder) -> Iterator[Chat]:
    with run_server_in_thread(script, key=KEY) as server:
        yield Chat(tmp_path, server)


def test_a_session_that_somebody_works_on_is_not_gone_on_with(chat: Chat, script: ScriptedResponder) -> None:
    script.on("one", "Yes.").on("copy", "Fine.").on("again", "Good.")
    gate = chat.project / "gate"
    subprocess.run(["mkfifo", str(gate)], check=True)
    script.on("wait", tool("Bash", command="cat gate")).then("Waited.")
    chat("-p", "one")
    (path,) = chat.files
    form = ["--output-format", "stream-json", "--dangerously-skip-permissions"]
    ran = subprocess.Popen(
        chat.command("-p", "wait", "--continue", *form),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=chat.project,
        env=chat.env,
    )
    with ran:
        assert ran.stdout is not None
        for line in ran.stdout:
            if json.loads(line)["type"] == "assistant":
                break
        before = path.read_bytes()
        chat("-p", "again", "--resume", path.stem, code=3)
        assert str(ran.pid) in chat.said
        chat("-p", "copy", "--resume", path.stem, "--fork-session")
        assert path.read_bytes() == before
        gate.write_text("go\n", encoding="utf-8")
        assert "Waited." in ran.stdout.read()
        assert ran.wait(30) == 0
    chat("-p", "again", "--resume", path.stem)
    chat.check()
    assert list((chat.home / ".claude" / "sessions").iterdir()) == []
