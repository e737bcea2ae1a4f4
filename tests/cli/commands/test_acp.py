"""`steno acp`: what it says of itself; the server has tests of its own."""

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Steno


def test_how_an_editor_starts_it_is_told(steno: Steno) -> None:
    ran = steno("acp", "--editor")
    assert ran.code == 0
    assert "agent_servers" in ran.out
    assert "ANTHROPIC_API_KEY" in ran.out


def test_how_an_editor_starts_it_is_told_to_programs(steno: Steno) -> None:
    told = steno("acp", "--editor", "--json").json
    assert told["args"][-1] == "acp"
    assert Path(told["command"]).is_absolute()


def test_json_says_nothing_about_serving(steno: Steno) -> None:
    assert steno("acp", "--json").code == 2


def test_what_is_no_pipe_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"")
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as printed:
        ran = subprocess.run(
            [sys.executable, "-m", "steno", "acp"], stdin=given, stdout=printed, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == 2
    assert b"must be started by an editor" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert (tmp_path / "out").read_bytes() == b""
