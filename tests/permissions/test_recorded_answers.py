"""What the guard makes of thousands of command lines is what was recorded and looked over."""

import os
import sys
from pathlib import Path

import pytest
from tests.permissions.recorded_answers import answered, make_project, recorded, tables

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folders of the system are those of Linux")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(Path(os.path.realpath(tmp_path_factory.mktemp("tables"))))


@pytest.mark.parametrize("name", tables())
def test_answers_are_as_recorded(name: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To record a change that is meant: `python -m tests.permissions.recorded_answers`."""
    home = project.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    monkeypatch.setenv("STENO_HOME", str(home / ".steno"))
    before = recorded(name).split("\n")
    now = answered(name, recorded(name), project).split("\n")
    differing = [f"{old!r} is now {new!r}" for old, new in zip(before, now, strict=False) if old != new]
    assert not differing[:5]
    assert len(before) == len(now)
