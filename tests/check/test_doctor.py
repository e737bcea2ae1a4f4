"""The doctor: what is broken, what is about to go, what lies about."""

import json
import os
from pathlib import Path

import pytest
from tests.builders import Session, session
from tests.conftest import NOW, WriteConfig

from steno.check import doctor
from steno.check.doctor import Diagnosis, collect_files, inspect_files
from steno.store.client_folders import cleanup_days
from steno.store.discovery import Problem
from steno.store.environment import parse_time

DAY = 86_400
GONE = "99999999-0000-4000-8000-000000000000"


def now() -> float:
    seconds = parse_time(NOW)
    assert seconds is not None
    return seconds


def talk(seed: str, turns: int = 2) -> Session:
    made = session(seed=seed)
    for number in range(turns):
        made.turn(f"Question {number} of {seed}.", f"Answer {number}.")
    return made


def at(folder: Path, made: Session) -> Path:
    (path,) = folder.rglob(f"{made.session_id}.jsonl")
    return path


def age(path: Path, days: float) -> None:
    os.utime(path, (now() - days * DAY, now() - days * DAY))


def look(folder: Path, problems: list[Problem] | None = None) -> Diagnosis:
    problems = [] if problems is None else problems
    return inspect_files(collect_files([str(folder)], problems), now(), problems=problems)


@pytest.fixture
def home(config: WriteConfig) -> Path:
    """Make a config folder with one sound session, written today."""
    made = talk("sound")
    folder = config(made)
    age(at(folder, made), 0)
    return folder


def put(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_sound_folder_is_healthy(home: Path) -> None:
    found = look(home)
    assert found.healthy
    assert (found.sessions, found.sound) == (1, 1)


def test_what_is_lost_most_comes_first(config: WriteConfig) -> None:
    lightly, gravely = talk("lightly", 4).torn_tail(), talk("gravely", 4)
    folder = config(lightly, gravely)
    heavy = at(folder, gravely)
    lines = heavy.read_bytes().split(b"\n")
    heavy.write_bytes(b"\n".join(line[: len(line) // 2] for line in lines))
    broken = look(folder).broken
    assert [each.found.path for each in broken] == [str(heavy), str(at(folder, lightly))]
    assert all(each.errors for each in broken)


@pytest.mark.parametrize(("days", "due"), [(0, 0), (22, 0), (24, 1), (29.5, 1), (45, 1)])
def test_the_cleanup_goes_by_the_day_of_the_last_write(home: Path, days: float, due: int) -> None:
    (path,) = home.rglob("*.jsonl")
    age(path, days)
    found = look(home)
    assert len(found.due) == due
    assert all(each.days == pytest.approx(30 - days) for each in found.due)


def test_the_settings_say_how_long_files_are_kept(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    age(path, 24)
    put(home / "settings.json", json.dumps({"cleanupPeriodDays": 365}).encode())
    assert look(home).due == []
    assert look(home).cleanup_days == 365


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"cleanupPeriodDays":"long"}', b'{"cleanupPeriodDays":-1}', b"\xff"]
)
def test_settings_that_say_nothing_of_use_leave_thirty_days(home: Path, data: bytes) -> None:
    put(home / "settings.json", data)
    assert cleanup_days(str(home)) == 30


def test_big_files_and_long_lines_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = home.rglob("*.jsonl")
    assert look(home).large == []
    monkeypatch.setattr(doctor, "LARGE_FILE", path.stat().st_size - 1)
    (large,) = look(home).large
    assert large.found.path == str(path)
    monkeypatch.setattr(doctor, "LARGE_FILE", 1 << 40)
    monkeypatch.setattr(doctor, "LARGE_LINE", 100)
    (large,) = look(home).large
    lines = path.read_bytes().split(b"\n")
    assert large.longest == max(map(len, lines)) + len(b"\n")


def test_what_gone_sessions_left_is_found(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    put(path.parent / GONE / "tool-results" / "toolu_1.txt", b"12345")
    put(home / "file-history" / GONE / "0123456789abcdef@v1")
    put(home / "tasks" / GONE / "1.json")
    put(home / "todos" / f"{GONE}-agent-{GONE}.json", b"[1]")
    left = look(home).leftovers
    assert {each.kind for each in left} == {"session", "file-history", "tasks", "todos"}
    assert {each.session_id for each in left} == {GONE}
    assert left[0].size == 5


def test_a_list_without_items_is_no_leftover(home: Path) -> None:
    put(home / "todos" / f"{GONE}-agent-{GONE}.json", b"[]")
    assert look(home).leftovers == []


def test_a_file_without_a_conversation_is_not_broken(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    title = put(path.with_name(f"{GONE}.jsonl"), b'{"type":"summary","summary":"S","leafUuid":""}\n')
    age(title, 0)
    found = look(home)
    assert [each.path for each in found.empty] == [str(title)]
    assert found.broken == []
    assert found.healthy
    assert (found.sessions, found.sound) == (1, 1)


def test_a_conversation_that_was_torn_to_pieces_is_broken_beyond_repair(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    path.write_bytes(path.read_bytes()[:100])
    found = look(home)
    assert found.empty == []
    (broken,) = found.broken
    assert not broken.mendable


def test_what_belongs_to_a_session_is_no_leftover(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    put(path.parent / path.stem / "tool-results" / "toolu_1.txt")
    put(home / "file-history" / path.stem / "0123456789abcdef@v1")
    put(home / "tasks" / path.stem / "1.json")
    put(home / "todos" / f"{path.stem}-agent-{path.stem}.json")
    put(path.parent / "memory" / "MEMORY.md")
    assert look(home).leftovers == []


def test_the_same_bytes_twice_are_found(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    copy = put(home / "projects" / "-other" / path.name, path.read_bytes())
    age(copy, 0)
    (group,) = look(home).copies
    assert {each.path for each in group} == {str(path), str(copy)}


def test_the_same_size_is_not_enough(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    data = path.read_bytes()
    middle = data.index(b"Question")
    other = data[:middle] + b"question" + data[middle + 8 :]
    age(put(home / "projects" / "-other" / path.name, other), 0)
    assert look(home).copies == []


def test_one_file_with_two_names_is_no_copy(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    other = home / "projects" / "-other" / path.name
    other.parent.mkdir()
    other.hardlink_to(path)
    assert look(home).copies == []


def test_what_cannot_be_read_is_a_problem(home: Path) -> None:
    (path,) = home.rglob("*.jsonl")
    problems: list[Problem] = []
    patient = collect_files([str(home)], problems)
    path.unlink()
    found = inspect_files(patient, now(), problems=problems)
    assert found.sessions == 0
    assert str(path) in {problem.path for problem in problems}


def test_a_folder_that_is_no_config_folder_has_no_cleanup(tmp_path: Path) -> None:
    path = put(tmp_path / f"{GONE}.jsonl", talk("alone").bytes())
    age(path, 400)
    found = look(tmp_path)
    assert found.sessions == 1
    assert found.due == []
