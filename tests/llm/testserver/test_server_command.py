"""`steno replay`: says where it is, tells drift, and ends when it is told to."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from tests.builders import session
from tests.conftest import WriteConfig
from tests.llm.testserver.asking import body, send, user

_RUN = "from steno.cli.main import run; run()"
_SCRIPT = '[[scene]]\non = "high"\nanswer = [{ text = "3 m." }]\n'


class Running:
    """A `steno replay` that runs; every wait is bounded by the timeout of the test alone."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RUN, "replay", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line, self.process.communicate()[1].decode()
        return line.rstrip("\n")

    def event(self, kind: str) -> dict[str, Any]:
        event = json.loads(self.line())
        assert event["event"] == kind
        return event

    def interrupt(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate()
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def name(config: WriteConfig) -> str:
    made = session().user("How high?").assistant("3 m.").user("And low?").assistant("1 m.").done()
    config(made)
    return made.session_id


def test_it_says_where_it_is_and_what_to_set(name: str) -> None:
    with Running(name) as running:
        first = running.line()
        url = first.rpartition(" ")[2]
        assert first.startswith("2 recorded responses on http://127.0.0.1:")
        lines = [running.line() for _ in range(5)]
        assert f"  export ANTHROPIC_BASE_URL={url}" in lines
        assert "  export ANTHROPIC_API_KEY=steno" in lines
        assert send(url, body(user("How high?"))).json["content"][0]["text"] == "3 m."
        assert running.line().endswith("POST /v1/messages  200")
        code, out, err = running.interrupt()
    assert (code, err) == (0, "")
    assert "1 request, 1 recorded response unused" in out


def test_drift_and_refusals_are_told_and_make_it_fail(name: str) -> None:
    with Running(name, "--json", "--limit", 2) as running:
        listening = running.event("listening")
        url = listening["url"]
        assert listening["env"] == {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "steno"}
        assert listening["answers"] == 2
        send(url, body(user("How deep?")))
        assert running.event("drift")["what"] == "unknown"
        assert running.event("request")["status"] == 200
        send(url, body(max_tokens=0))
        assert running.event("request")["refused"].startswith("max_tokens: ")
        assert running.event("ended") == {
            "event": "ended",
            "requests": 2,
            "refused": 1,
            "drifts": 1,
            "unused_responses": 2,
        }
        assert running.ended()[0] == 1


def test_people_are_told_of_drift_and_refusals_in_words(name: str) -> None:
    with Running(name, "--limit", 2, "--key", "k") as running:
        url = running.line().rpartition(" ")[2]
        headers = {"anthropic-version": "2023-06-01", "x-api-key": "k"}
        send(url, body(user("And low?")), headers=headers)
        send(url, body(max_tokens=0), headers=headers)
        code, out, _ = running.ended()
    assert code == 1
    assert "drift  different order" in out
    assert "recorded  answer 1" in out
    assert "rejected  max_tokens: Input should be greater than or equal to 1" in out
    assert "2 requests, 1 recorded response unused, 1 rejected, 1 drifted" in out


def test_a_script_answers_instead(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(_SCRIPT)
    with Running("--script", path, "--json", "--limit", 1) as running:
        url = running.event("listening")["url"]
        assert send(url, body(user("How high?"))).json["content"][0]["text"] == "3 m."
        assert running.event("request")["finished"]
        assert running.event("ended")["unused_responses"] is None
        assert running.ended()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "about"),
    [
        ((), 2, "exactly one of SESSION and --script is required"),
        (("--script", "nowhere.toml"), 3, "cannot read nowhere.toml"),
        (("--script", "bad.toml"), 2, "bad.toml is not a valid script"),
        (("no-such-session",), 1, "no-such-session"),
        (("empty.jsonl",), 1, "these sessions contain no responses"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(
    tmp_path: Path, arguments: tuple[str, ...], code: int, about: str
) -> None:
    (tmp_path / "bad.toml").write_text("scene = 4")
    (tmp_path / "empty.jsonl").write_text('{"type":"summary","summary":"x"}\n')
    with Running(*arguments) as running:
        left, _, err = running.ended()
    assert left == code
    assert about in err
