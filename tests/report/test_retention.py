"""What the client's cleanup is about to take and nobody has kept."""

import json
import os
from pathlib import Path

import pytest
from tests.builders import session
from tests.cli.conftest import Steno, steno
from tests.conftest import WriteConfig

from steno.report.retention import Retention, retention_warning
from steno.store.archive.archive import archive_all
from steno.store.environment import now

__all__ = ["steno"]

DAY = 86_400


def set_age(path: Path, days: float) -> None:
    moment = now() - days * DAY
    os.utime(path, (moment, moment))


def aged(config: WriteConfig, *days: float) -> Path:
    """Write sessions that were last written to so many days ago."""
    made = [session(seed=f"r{number}").user("Why?").assistant("So.") for number in range(len(days))]
    folder = config(*made)
    for each, age in zip(made, days, strict=True):
        (path,) = folder.glob(f"projects/*/{each.session_id}.jsonl")
        set_age(path, age)
    return folder


def test_sync_warns_before_something_is_lost(steno: Steno, config: WriteConfig) -> None:
    aged(config, 1, 20, 25.5, 28.5)
    ran = steno("sync", "--color", "never")
    assert "2 sessions that are not archived: Claude Code deletes them within 7 days" in ran.err
    assert "the first in 1 day" in ran.err
    assert "steno archive" in ran.err
    told = steno("sync", "--json").json["retention"]
    assert (told["unarchived"], told["overdue"], told["cleanup_days"]) == (2, 0, 30)
    assert told["first"].startswith("2026-11-17T00:00")


def test_what_is_archived_is_no_cause_for_alarm(steno: Steno, config: WriteConfig) -> None:
    folder = aged(config, 28.5)
    archive_all((str(folder),))
    assert steno("sync", "--color", "never").err == ""
    # What was added since is not in the archive.
    (path,) = folder.glob("projects/*/*.jsonl")
    with path.open("ab") as file:
        file.write(b"{}\n")
    set_age(path, 29)
    assert "1 session that is not archived: Claude Code deletes it in 1 day" in steno("sync", "--color", "never").err


def test_overdue_is_said(steno: Steno, config: WriteConfig) -> None:
    aged(config, 40, 41)
    said = steno("sync", "--color", "never").err
    assert "2 sessions that are not archived: Claude Code deletes them the next time it" in said
    assert steno("sync", "--json").json["retention"]["overdue"] == 2


def test_the_clients_own_setting_counts(steno: Steno, config: WriteConfig) -> None:
    folder = aged(config, 28.5)
    (folder / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 365}))
    assert steno("sync", "--color", "never").err == ""
    (folder / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 7}))
    assert "next time" in steno("sync", "--color", "never").err


def test_folders_that_no_client_cleans_up_are_safe(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    folder = aged(config, 40)
    (folder / "projects").rename(tmp_path / "copies")
    assert steno("sync", "--root", tmp_path / "copies", "--color", "never").err == ""


def test_doctor_says_the_same(steno: Steno, config: WriteConfig) -> None:
    folder = aged(config, 25.5, 28.5)
    archive_all((str(folder),))
    aged(config, 25.5, 28.5, 29.5)
    ran = steno("doctor", "--no-pager")
    assert "3 sessions to be deleted by Claude Code within 7 days, 1 not archived" in ran.out
    told = steno("doctor", "--json").json["retention"]
    assert (told["unarchived"], told["within_days"]) == (1, 7)


@pytest.mark.parametrize(
    ("sessions", "overdue", "left", "said"),
    [
        (0, 0, None, ""),
        (1, 0, 0.5, "1 session that is not archived: Claude Code deletes it today"),
        (1, 1, -1, "1 session that is not archived: Claude Code deletes it the next time it cleans up"),
        (
            3,
            1,
            -1,
            ("3 sessions that are not archived: Claude Code deletes them within 7 days, the first at the next cleanup"),
        ),
    ],
)
def test_the_words(sessions: int, overdue: int, left: float | None, said: str) -> None:
    first = None if left is None else now() + left * DAY
    assert retention_warning(Retention(30, sessions, overdue, 0, first), now()) == said
