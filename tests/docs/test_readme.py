"""The README: its length, and the commands in it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, fences, read

from steno.demo.recording import write_demo

README = ROOT / "README.md"
MAX_WORDS = 900


def shell_lines() -> list[str]:
    blocks = (body for language, body, _ in fences(read(README)) if language == "sh")
    return [line.partition("  #")[0].strip() for body in blocks for line in body.splitlines() if line.strip()]


STENO_COMMANDS = [line.removeprefix("steno ") for line in shell_lines() if line.startswith("steno ")]


def test_it_is_short() -> None:
    assert len(read(README).split()) < MAX_WORDS


def test_every_line_of_shell_is_known_to_these_tests() -> None:
    others = [line for line in shell_lines() if not line.startswith(("steno ", "make "))]
    assert others == ["pipx install dist/stenolog-*.whl", "uvx --from dist/stenolog-*.whl steno --version"]


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*?## ", read(ROOT / "Makefile"), re.MULTILINE))
    named = {line.split()[1] for line in shell_lines() if line.startswith("make ")}
    assert {"run", "install", "dist"} <= named <= targets


def test_there_is_a_command_for_each_job() -> None:
    assert {command.split()[0] for command in STENO_COMMANDS} >= {"search", "usage", "show", "export", "repair"}


@pytest.mark.parametrize("command", STENO_COMMANDS)
def test_every_command_runs(command: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env = {**os.environ, "CLAUDE_CONFIG_DIR": write_demo(str(tmp_path / "demo")).root}
    ran = subprocess.run(
        [sys.executable, "-m", "steno", *shlex.split(command)],
        check=False,
        capture_output=True,
        cwd=work,
        env=env,
        text=True,
        timeout=60,
    )
    assert ran.returncode in (0, 1), ran.stderr
    assert "internal error" not in ran.stderr
    assert ran.stdout or list(work.iterdir())
