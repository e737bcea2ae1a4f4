"""The recorder: times that rise, turns that are on the disk, a guard that follows the mode."""

from pathlib import Path

import pytest
from tests.agent.stage import Stage

from steno.agent.lending import Followed
from steno.agent.recorder import rising
from steno.guard.judge import Guard
from steno.guard.rules import gather
from steno.model.server.script import Script
from steno.store import append
from steno.tools.base import Around


def test_times_rise_even_where_the_clock_stands_or_goes_back() -> None:
    now = rising("2026-01-05T09:00:00.000Z", clock=lambda: 0.0)
    assert [now(), now()] == ["2026-01-05T09:00:00.001Z", "2026-01-05T09:00:00.002Z"]


def test_a_turn_is_on_the_disk_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def sync(file: append.Appender) -> None:
        synced.append(Path(file.path).stat().st_size)

    monkeypatch.setattr(append.Appender, "sync", sync)
    stage = Stage(tmp_path, Script().otherwise("Yes."))
    stage.say("one")
    assert synced == [len(stage.data)]


def test_the_guard_follows_the_mode_that_a_plan_asks_for(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    guard = Guard(gather([], root=cwd, cwd=cwd, home=cwd), "acceptEdits", cwd, (cwd,))
    around = Around(cwd=cwd, project=cwd, session_id="s", folder=cwd, env={})
    followed = Followed(guard, around)
    given = {"file_path": f"{cwd}/a.py", "content": "x"}
    assert followed.judge("Write", given, cwd=cwd).verdict == "allow"
    around.kept["mode"] = "plan"
    assert followed.judge("Write", given, cwd=cwd).verdict == "deny"
