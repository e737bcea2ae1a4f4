"""The sandbox as the settings ask for it: applied to every command, or said plainly."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.agent.hostile import KEY, Chat

from steno.agent.confining import Confining
from steno.errors import BadRequest
from steno.guard import sandbox
from steno.guard.sandbox import Sandbox, find_sandbox
from steno.model.server.app import serving
from steno.model.server.minds import tool
from steno.model.server.script import Script
from steno.tools.base import Around, Outcome
from steno.tools.bash import Bash

needs_sandbox = pytest.mark.skipif(find_sandbox().kind is None, reason="there is no sandbox here")
ASKED = {"enabled": True}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # What is in the folder for temporary files may be written.
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    for name in ("proj", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path / "proj"


def run(confining: Confining, project: Path, *commands: str) -> list[Outcome]:
    around = Around(
        cwd=str(project),
        project=str(project),
        session_id="s",
        folder=str(project.parent / "own"),
        env={"PATH": os.environ["PATH"]},
    )
    confining.apply(around)

    async def play() -> list[Outcome]:
        return [await Bash().run({"command": each}, around, "c") for each in commands]

    return asyncio.run(play())


@needs_sandbox
def test_commands_write_in_the_project_and_nowhere_else(project: Path) -> None:
    confining = Confining(ASKED, (str(project),))
    assert confining.words
    (project / "sub").mkdir()
    outside = project.parent / "outside"
    inside, moved, refused, asked = run(
        confining, project, "echo x > in", "cd sub; echo y > in", f"echo z > {outside}", "pwd"
    )
    assert not inside.is_error
    assert not moved.is_error
    assert refused.is_error
    assert not outside.exists()
    assert (project / "sub" / "in").read_text(encoding="utf-8") == "y\n"
    assert asked.content == str(project / "sub")


@needs_sandbox
def test_a_confined_command_is_ended_like_any_other(project: Path) -> None:
    confining = Confining(ASKED, (str(project),))
    around = Around(
        cwd=str(project),
        project=str(project),
        session_id="s",
        folder=str(project),
        env={"PATH": os.environ["PATH"]},
    )
    confining.apply(around)
    given = {"command": "(setsid sleep 1000 &) ; sleep 1000", "timeout": 300}
    outcome = asyncio.run(Bash().run(given, around, "c"))
    assert "timed out" in str(outcome.content)


def test_what_nobody_asked_for_changes_nothing(project: Path) -> None:
    for said in (None, {}, {"enabled": False}, {"enabled": 1}, [], "x"):
        confining = Confining(said, (str(project),))
        assert not confining.words
        assert run(confining, project, "pwd")[0].content == str(project)


def test_nothing_starts_where_there_is_none_unless_that_is_said_to_be_fine(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "find_sandbox", lambda: Sandbox(None, "there is no sandbox here"))
    with pytest.raises(BadRequest, match="no sandbox"):
        Confining(ASKED, (str(project),))
    fine = Confining({**ASKED, "failIfUnavailable": False}, (str(project),))
    assert "no sandbox" in fine.words


@needs_sandbox
def test_the_settings_of_the_user_confine_a_whole_session(tmp_path: Path) -> None:
    outside = Path.home() / "outside"
    script = Script().on("go", tool("Bash", command=f"echo x > {outside}; echo x > in"))
    with serving(script.then("Done."), key=KEY) as server:
        chat = Chat(tmp_path, server)
        settings = chat.home / ".claude" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"sandbox": ASKED}), encoding="utf-8")
        # A project does not let itself out.
        chat.file(".claude/settings.json", {"sandbox": {"enabled": False}})
        env = {"TMPDIR": str(tmp_path / "project")}
        chat("-p", "go", "--trust", "--dangerously-skip-permissions", env=env)
        assert not outside.exists()
        assert (chat.project / "in").exists()
