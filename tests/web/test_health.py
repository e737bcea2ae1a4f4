"""Health page and health monitor."""

import os
import re
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders import Session, session
from tests.cli.conftest import Steno, steno
from tests.conftest import WriteConfig
from tests.web.explorer import Explorer, explorer

from steno.check.doctor import collect_files, inspect_files
from steno.report import health_report as health_room
from steno.report.health_report import inspect_session
from steno.store.archive.archive import archive_all
from steno.web.state import health_monitor as ward_room

__all__ = ["steno"]

_DAY = 86_400


def _talk(seed: str) -> Session:
    return session(seed=seed).turn("Hello.", "Yes.")


def _ready(of: Explorer) -> Explorer:
    of.house.health_monitor.start_check()
    of.house.health_monitor.wait()
    return of


def test_the_first_answer_comes_at_once_and_says_that_it_looks(demo: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    ward = ward_room.HealthMonitor(demo.house.home.roots, demo.house.now)
    monkeypatch.setattr(demo.house, "health_monitor", ward)
    held = ward_room.threading.Event()

    def slow(*given: Any, **more: Any) -> Any:
        held.wait(20)
        return inspect_session(*given, **more)

    monkeypatch.setattr(ward_room, "inspect_session", slow)
    try:
        text = demo.get("/health").text
        assert 'data-busy="yes"' in text
        assert '<meta http-equiv="refresh"' in text
    finally:
        held.set()
        ward.wait()
    assert 'data-busy=""' in demo.get("/health?part=body").text


def test_it_sees_what_the_doctor_sees(demo: Explorer) -> None:
    problems: list[Any] = []
    patient = collect_files(demo.house.home.roots, problems)
    found = inspect_files(patient, demo.house.now(), problems=problems)
    health = _ready(demo).house.health_monitor.health
    assert health.broken == len(found.broken) > 0
    assert health.due == len(found.due)
    assert health.sessions - health.empty == found.sessions
    text = unescape(demo.get("/health").text)
    for broken in found.broken:
        assert f"{broken.lost} of {broken.total} messages lost" in text
        assert f"steno repair --demo {broken.found.place.session_id[:4]}" in text


def test_it_sees_what_drift_sees(steno: Steno, tmp_path: Path, config: WriteConfig) -> None:
    root = config(_talk("drift"))
    path = next(root.rglob("*.jsonl"))
    with path.open("ab") as file:
        file.write(b'{"type":"context-ledger","sessionId":"x","version":"2.1.325"}\n')
    said = msgspec.json.decode(steno("drift", str(root), "--json").data)
    with explorer(str(tmp_path / "index"), str(root)) as found:
        health = _ready(found).house.health_monitor.health
        text = unescape(found.get("/health?harm=drift").text)
    assert health.unknown == len(said["drift"]) > 0
    assert "context-ledger" in text
    assert "steno drift<" in text


def test_what_did_not_change_is_not_read_again(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    root = config(_talk("a"), _talk("b"))
    ward = ward_room.HealthMonitor((str(root),), lambda: 0.0)
    monkeypatch.setattr(ward_room, "_MIN_INTERVAL", -1.0)
    read: list[str] = []

    def noted(found: Any, *given: Any, **more: Any) -> Any:
        read.append(found.path)
        return inspect_session(found, *given, **more)

    monkeypatch.setattr(ward_room, "inspect_session", noted)
    ward.start_check()
    ward.wait()
    assert len(read) == 2
    with Path(read[0]).open("ab") as file:
        file.write(b"torn")
    ward.start_check()
    ward.wait()
    assert len(read) == 3
    assert read[2] == read[0]
    ward.close()


def test_what_the_client_deletes_soon_is_told_until_it_is_archived(tmp_path: Path, config: WriteConfig) -> None:
    root = config(_talk("old"))
    path = next(root.rglob("*.jsonl"))
    with explorer(str(tmp_path / "index"), str(root)) as found:
        old = found.house.now() - 28 * _DAY
        os.utime(path, (old, old))
        health = _ready(found).house.health_monitor.health
        assert (health.due, health.unkept, health.trouble) == (1, 1, 1)
        assert "deleted by Claude Code within 7 days" in found.get("/health?harm=risk").text
    archive_all((str(root),))
    with explorer(str(tmp_path / "index2"), str(root)) as found:
        health = _ready(found).house.health_monitor.health
        assert (health.due, health.unkept, health.trouble) == (1, 0, 0)


def test_the_bar_of_every_page_tells_how_much_there_is(demo: Explorer) -> None:
    number = _ready(demo).house.health_monitor.problem_count
    found = re.search(r'data-trouble>(\d+)<span class="vh"> problem', demo.get("/").text)
    assert found is not None
    assert int(found[1]) == number


def test_a_folder_without_sessions_is_said_to_be_empty(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "projects").mkdir(parents=True)
    with explorer(str(tmp_path / "index"), str(root)) as found:
        assert "No sessions yet." in _ready(found).get("/health").text


def test_a_sound_folder_is_said_to_be_sound(tmp_path: Path, config: WriteConfig) -> None:
    root = config(_talk("x"))
    with explorer(str(tmp_path / "index"), str(root)) as found:
        assert "No problems found." in _ready(found).get("/health").text


def test_a_config_file_that_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[check]\nsilence = ["no.such"]\n')
    ward = ward_room.HealthMonitor((str(tmp_path),), lambda: 0.0)
    ward.start_check()
    ward.wait()
    assert "no.such" in ward.progress.problem


def test_closing_ends_a_look_in_the_middle_of_a_file(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    ward = ward_room.HealthMonitor((str(config(_talk("x"))),), lambda: 0.0)
    observe = health_room.observe_files

    def closing(*given: Any, **more: Any) -> None:
        ward._stop.set()
        observe(*given, **more)

    monkeypatch.setattr(health_room, "observe_files", closing)
    ward.start_check()
    ward.close()
    assert not ward.progress.running
    assert ward.health.looked == 0
