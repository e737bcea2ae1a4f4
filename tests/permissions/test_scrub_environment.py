"""Secrets are taken out of the environment of a process where the system shows it."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steno.permissions import program_environment

_CHILD = """
import os
from steno.permissions.program_environment import scrub_environment
scrub_environment(["SECRET", "MISSING", "EMPTY"])
print(sorted(name for name in os.environ if name in ("SECRET", "KEPT", "SECRETS", "EMPTY")))
names = (b"KEPT=", b"SECRETS=", b"EMPTY=")
parts = open("/proc/self/environ", "rb").read().split(b"\\0")
print([part for part in parts if part.startswith(names) and part.split(b"=")[1]])
print([p for p in open("/proc/self/environ", "rb").read().split(b"\\0") if p[:7] == b"SECRET="])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment so")
def test_the_system_shows_no_secret_any_more() -> None:
    given = {"SECRET": "x-secret", "SECRETS": "x-other", "KEPT": "x-SECRET=1", "EMPTY": ""}
    said = subprocess.run(
        [sys.executable, "-c", _CHILD], env={**os.environ, **given}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0] == "['KEPT', 'SECRETS']"
    assert sorted(_parts(said[1])) == ["KEPT=x-SECRET=1", "SECRETS=x-other"]
    assert said[2] == "[b'SECRET=--------']"


def _parts(text: str) -> list[str]:
    return [part.strip(" []").removeprefix("b'").rstrip("'") for part in text.split(", ")]


def test_values_are_overwritten_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"A=1\0SECRET=abc\0SECRETS=def\0X=SECRET=no\0SECRET=\0SECRET=again\0TWO=2\0END=SECRET"
    block = ctypes.create_string_buffer(text)
    start = ctypes.addressof(block)
    monkeypatch.setattr(program_environment, "_environment_range", lambda: (start, start + len(text)))
    monkeypatch.setenv("SECRET", "abc")
    monkeypatch.setenv("TWO", "")
    monkeypatch.setenv("OTHER", "x")
    program_environment.scrub_environment(["SECRET", "MISSING", "TWO"])
    assert block.raw == text.replace(b"abc", b"---").replace(b"again", b"-----").replace(b"TWO=2", b"TWO=-") + b"\0"
    assert "SECRET" not in os.environ
    assert os.environ["OTHER"] == "x"


def test_nothing_is_looked_up_when_there_is_nothing_to_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> tuple[int, int]:
        raise AssertionError

    monkeypatch.setattr(program_environment, "_environment_range", fails)
    monkeypatch.delenv("MISSING", raising=False)
    program_environment.scrub_environment(["MISSING"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7 (a name) x) S " + " ".join(map(str, range(4, 53))) + "\n", (50, 51)),
        ("7 (a) S 4 5\n", (0, 0)),
        ("7 (a) S " + " ".join("x" for _ in range(4, 53)), (0, 0)),
        ("", (0, 0)),
    ],
)
def test_the_place_is_in_fields_50_and_51(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: tuple[int, int]
) -> None:
    (tmp_path / "stat").write_text(text, encoding="utf-8")
    monkeypatch.setattr(program_environment, "_STAT_FILE", str(tmp_path / "stat"))
    assert program_environment._environment_range() == found
    monkeypatch.setattr(program_environment, "_STAT_FILE", str(tmp_path / "none"))
    assert program_environment._environment_range() == (0, 0)
    monkeypatch.setenv("SECRET", "x")
    program_environment.scrub_environment(["SECRET"])
    assert "SECRET" not in os.environ
