"""The recorder: times that rise, turns that are on the disk, a guard that follows the mode."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Stage

from steno.agent.events import Event, TurnEnded
from steno.agent.permission_store import TurnPermissions
from steno.agent.recorder import increasing_clock
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import parse_rules
from steno.store import append
from steno.tools.context import ToolContext


def test_times_rise_even_where_the_clock_stands_or_goes_back() -> None:
    now = increasing_clock("2026-01-05T09:00:00.000Z", clock=lambda: 0.0)
    assert [now(), now()] == ["2026-01-05T09:00:00.001Z", "2026-01-05T09:00:00.002Z"]


def test_a_turn_is_on_the_disk_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def sync(file: append.Appender) -> None:
        synced.append(Path(file.path).stat().st_size)

    monkeypatch.setattr(append.Appender, "sync", sync)
    stage = Stage(tmp_path, ScriptedResponder().otherwise("Yes."))
    stage.say("one")
    assert synced == [len(stage.data)]


def test_the_guard_follows_the_mode_that_a_plan_asks_for(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    guard = PermissionChecker(parse_rules([], root=cwd, cwd=cwd, home=cwd), "acceptEdits", cwd, (cwd,))
    context = ToolContext(cwd=cwd, project=cwd, session_id="s", folder=cwd, env={})
    followed = TurnPermissions(guard, context)
    given = {"file_path": f"{cwd}/a.py", "content": "x"}
    assert followed.judge("Write", given, cwd=cwd).verdict == "allow"
    context.plan.permission_mode = "plan"
    assert followed.judge("Write", given, cwd=cwd).verdict == "deny"


def test_everything_acknowledged_by_the_end_of_a_turn_was_flushed_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Recorded:
        """The module `os` for `store.append`: tells what was written and what was flushed."""

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def write(self, descriptor: int, data: bytes) -> int:
            done.append("write")
            return os.write(descriptor, data)

        def fsync(self, descriptor: int) -> None:
            os.fsync(descriptor)
            done.append("fsync")

    class Told(list[Event]):
        def append(self, event: Event) -> None:
            if isinstance(event, TurnEnded):
                done.append("ended")
            super().append(event)

    monkeypatch.setattr(append, "os", Recorded())
    stage = Stage(tmp_path, ScriptedResponder().otherwise("Yes."))
    stage.events = Told()
    stage.say("one", "two")
    told = [at for at, step in enumerate(done) if step == "ended"]
    assert len(told) == 2
    for at in told:
        last_write = max(place for place, step in enumerate(done[:at]) if step == "write")
        assert "fsync" in done[last_write:at], done
