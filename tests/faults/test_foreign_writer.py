"""Another program changes the session between any two writes of a turn: ours stops before the next."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Stage
from tests.faults.test_full_disk import script

from steno.agent import events
from steno.agent.events import TurnEnded
from steno.agent.loop import Agent
from steno.agent.writable_session import resume_session
from steno.errors import NotFound
from steno.store import append

PROGRAM = Path(__file__).parent / "foreign_writer.py"
CHANGES = ("append", "append half", "truncate", "truncate in a record", "edit", "replace", "replace with more", "move")
_MOST = 100


class Other:
    """Another program, which does what it is told."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def does(self, how: str, path: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{how}\t{path}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def other() -> Iterator[Other]:
    program = Other()
    yield program
    program.close()


class After:
    """The module `os` for `store.append`: something happens after the N-th write of a file."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self._at = at
        self._act = act
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: bytes) -> int:
        written = os.write(descriptor, data)
        self.count += 1
        if self.count == self._at:
            self._act()
        return written


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interfere(
    folder: Path, at: int, how: str, other: Other, patch: pytest.MonkeyPatch
) -> tuple[Stage, list[TurnEnded], list[dict[str, bytes]], int]:
    """Let something happen after a write of a turn; return what came of it and how many there were."""
    folder.mkdir()
    stage = Stage(folder, script())
    left: list[dict[str, bytes]] = []

    def act() -> None:
        other.does(how, stage.path)
        left.append(contents(folder / "config"))

    async def talk(agent: Agent) -> list[TurnEnded]:
        await agent.run_turn("hello")
        writes = After(at, act)
        patch.setattr(append, "os", writes)
        if not at:
            act()
        ended = [await agent.run_turn("look at it")]
        counts.append(writes.count)
        patch.setattr(append, "os", os)
        return [*ended, await agent.run_turn("and this")]

    counts: list[int] = []
    return stage, stage.play(talk), left, counts[0]


def check_stopped(tmp_path: Path, at: int, how: str, other: Other, patch: Any) -> bool:
    """Assert that a change stops the turn and is left alone; False when the turn was over before."""
    folder = tmp_path / f"{how}{at}"
    stage, ended, left, writes = interfere(folder, at, how, other, patch)
    if not left:
        return False
    # The change after the very last write is met by the next turn.
    assert [each.reason for each in ended] == [
        "done" if at == writes and ended[0].reason == "done" else "not_saved",
        "not_saved",
    ], (at, how)
    assert writes == at
    assert stage.path in ended[-1].problem
    assert "--fork-session" in ended[-1].problem
    assert contents(folder / "config") == left[0]
    stage.talk.recorder.close()
    if how != "move":
        try:
            stage.work = resume_session(stage.path, stage.cwd)
        except NotFound:
            assert b'"role":"user"' not in stage.data
        else:
            (last,) = stage.say("and on")
            assert last.reason == "done"
            assert stage.data.startswith(left[0][stage.path])
            stage.talk.recorder.close()
    shutil.rmtree(folder)
    return True


@pytest.mark.parametrize("how", ["append", "truncate"])
def test_a_change_at_any_write_of_a_turn_stops_it_and_is_left_alone(
    tmp_path: Path, how: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = 0
    while check_stopped(tmp_path, places, how, other, monkeypatch):
        places += 1
        assert places < _MOST
    assert places >= 15


@pytest.mark.parametrize("how", CHANGES)
def test_any_change_in_the_middle_of_a_turn_stops_it(
    tmp_path: Path, how: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in (0, 1, 4, 8):
        assert check_stopped(tmp_path, at, how, other, monkeypatch)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", CHANGES)
def test_any_change_at_any_write_stops_the_turn(
    tmp_path: Path, how: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = 0
    while check_stopped(tmp_path, places, how, other, monkeypatch):
        places += 1
    assert places >= 15


def test_a_file_deleted_at_any_write_is_there_again_and_said(
    tmp_path: Path, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(_MOST):
        folder = tmp_path / f"{at}"
        stage, ended, left, _ = interfere(folder, at, "delete", other, monkeypatch)
        if not left:
            assert at >= 15
            return
        assert [each.reason for each in ended] == ["done", "done"]
        told = [each.text for each in stage.events if isinstance(each, events.Notice)]
        assert told == [f"{stage.path} was deleted; its records were written again"]
        stage.check()
        stage.talk.recorder.close()
        shutil.rmtree(folder)


def test_a_change_between_loading_and_the_first_write_stops_the_turn(tmp_path: Path, other: Other) -> None:
    stage = Stage(tmp_path, script())
    stage.say("hello")
    stage.resume()
    other.does("append", stage.path)
    before = stage.data
    (ended,) = stage.say("look at it")
    assert ended.reason == "not_saved"
    assert ended.requests == 0
    assert stage.data == before
