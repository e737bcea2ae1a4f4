"""The harness by itself, without the real client: it answers, keeps, and steps aside."""

import json
import os
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.interop import client
from tests.interop.client import SID, Job, client_of, resume_all
from tests.interop.server import ANSWER, Server
from tests.notation import PROMPT


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Forget what was found out about this machine."""
    forget()
    yield
    forget()


def forget() -> None:
    client_of.cache_clear()
    client.namespace.cache_clear()
    client._unreachable.clear()


def ask(server: Server, path: str, body: dict[str, Any]) -> tuple[int, str]:
    connection = HTTPConnection(server.url.removeprefix("http://"))
    connection.request("POST", path, json.dumps(body))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_server_answers_in_both_ways_and_keeps_what_it_got() -> None:
    with Server() as server:
        whole = json.loads(ask(server, "/v1/messages?beta=true", {"model": "m"})[1])
        events = ask(server, "/v1/messages", {"model": "m", "stream": True})[1]
        count = json.loads(ask(server, "/v1/messages/count_tokens", {"messages": []})[1])
        assert ask(server, "/v1/elsewhere", {})[0] == 404
    assert whole["content"] == [{"type": "text", "text": ANSWER}]
    names = [line[7:] for line in events.splitlines() if line.startswith("event: ")]
    assert (names[0], names[-1]) == ("message_start", "message_stop")
    assert count["input_tokens"] > 0
    assert [path for path, _ in server.requests][:2] == ["/v1/messages"] * 2
    assert server.requests[1][1] == {"model": "m", "stream": True}


def test_without_npm_tests_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_REAL_CLIENTS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="needs node and npm"):
        client_of("0.0.0")


def program(path: Path, code: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)


def test_without_a_registry_tests_are_skipped_and_it_is_asked_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clients"
    code = f"open({str(tmp_path / 'asked')!r}, 'a').write('x')\nimport sys\nsys.exit('no way there')"
    program(tmp_path / "bin" / "npm", code)
    program(tmp_path / "bin" / "node", "")
    monkeypatch.setenv("STENO_REAL_CLIENTS", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for version in ("0.0.0", "0.0.1"):
        with pytest.raises(pytest.skip.Exception, match="could not be installed: no way there"):
            client_of(version)
    assert (tmp_path / "asked").read_text() == "x"
    assert list(folder.iterdir()) == []


def test_a_client_that_does_not_start_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_REAL_CLIENTS", str(tmp_path))
    program(tmp_path / "0.0.0" / "node_modules" / ".bin" / "claude", "raise SystemExit(1)")
    with pytest.raises(pytest.skip.Exception, match="cannot be run"):
        client_of("0.0.0")


PRETENDER = """
import glob, json, os, sys, urllib.request
if "--version" in sys.argv: sys.exit()
names = sorted(os.environ)
[path] = glob.glob(os.environ["CLAUDE_CONFIG_DIR"] + "/projects/*/*.jsonl")
assert os.path.basename(path) == sys.argv[-1] + ".jsonl"
messages = [{"role": "user", "content": open(path).read() + " ".join(names) + sys.argv[4]}]
body = json.dumps({"messages": messages, "tools": [{}]}).encode()
urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body).read()
message = {"role": "user", "content": sys.argv[4]}
open(path, "a").write(json.dumps({"type": "user", "parentUuid": "p", "message": message}) + "\\n")
"""


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")
def test_a_client_is_run_in_a_world_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, alone: bool) -> None:
    monkeypatch.setenv("STENO_REAL_CLIENTS", str(tmp_path))
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "x")
    if not alone:
        program(tmp_path / "bin" / "unshare", "raise SystemExit(1)")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    program(tmp_path / "0.0.0" / "node_modules" / ".bin" / "claude", PRETENDER)
    first, second = resume_all("0.0.0", [Job(b"one\n"), Job(b"two\n")])
    assert (first.rc, first.err, first.new_parent) == (0, "", "p")
    assert first.messages is not None
    assert first.messages[0]["content"].startswith("one\n")
    assert "SECRET" not in first.messages[0]["content"]
    assert second.after.startswith(b"two\n")
    assert PROMPT.encode() in second.after
    assert SID not in {entry.name for entry in tmp_path.iterdir()}
