"""`steno doctor`: calm when all is well, and the right command when not."""

import os
import sys
from pathlib import Path

import pytest
from tests.builders import Session, session
from tests.cli.conftest import Steno
from tests.cli.test_error_messages import complains
from tests.conftest import NOW, WriteConfig

from steno.sanitize.terminal import display_width
from steno.store.environment import parse_time

GONE = "99999999-0000-4000-8000-000000000000"
EVIL = "\x1b]0;pwned\x07\x1b[2J\u202egnp.exe"


def talk(seed: str = "one") -> Session:
    return session(seed=seed).turn(f"Ask {seed}.", "First.").turn("Two.", "Second.")


def touch(folder: Path, days: float = 0) -> None:
    seconds = (parse_time(NOW) or 0) - days * 86_400
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (seconds, seconds))


def test_all_is_well(steno: Steno, config: WriteConfig) -> None:
    touch(config(talk("one"), talk("two")))
    ran = steno("doctor")
    assert ran.code == 0
    line, confinement, *_ = ran.lines
    assert "Agent commands " in confinement
    assert line.startswith("✓ No problems found: 2 sessions")


def test_nothing_to_look_after(steno: Steno) -> None:
    ran = steno("doctor")
    assert ran.code == 0
    assert "No sessions to check" in ran.out


def test_a_broken_session_comes_with_what_mends_it(steno: Steno, config: WriteConfig) -> None:
    made = talk().torn_tail()
    touch(config(made, talk("two")))
    ran = steno("doctor")
    assert ran.code == 1
    assert ran.lines[0] == "✗ 1 damaged session, most messages lost first"
    assert "Ask one." in ran.lines[1]
    assert ran.lines[2].strip() == f"steno repair {made.session_id[:4]}"
    assert any(line.startswith("2 sessions, 1 without problems") for line in ran.lines)


def test_the_same_folder_is_named_in_what_mends_it(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk().torn_tail())
    touch(folder)
    assert f"steno repair --root {folder} " in steno("doctor", "--root", folder).out


def test_what_will_be_deleted_is_told_before(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    touch(folder, 27.5)
    ran = steno("doctor")
    assert ran.code == 1
    assert "1 session to be deleted by Claude Code within 7 days" in ran.lines[0]
    assert ran.lines[1].endswith("in 2 days")
    assert "cleanupPeriodDays" in ran.lines[2]
    touch(folder, 40)
    ran = steno("doctor")
    assert "1 overdue" in ran.lines[0]
    assert ran.lines[1].endswith("overdue")


def test_leftovers_and_copies_are_listed(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    (path,) = folder.rglob("*.jsonl")
    copy = folder / "projects" / "-other" / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    left = folder / "file-history" / GONE / "0123456789abcdef@v1"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"old")
    touch(folder)
    ran = steno("doctor", "--width", 300)
    assert "1 leftover of deleted sessions" in ran.out
    assert f"rm -r {left.parent}" in ran.out
    assert "1 duplicate session" in ran.out
    assert str(copy) in ran.out
    assert f"rm {path}" not in ran.out
    assert f"rm {copy}" not in ran.out


def test_of_copies_only_the_one_that_no_client_resumes_may_go(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    (path,) = folder.rglob("*.jsonl")
    for name in ("aaa", "zzz"):
        copy = folder / "projects" / path.parent.name / name / path.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(path.read_bytes())
        touch(folder)
        out = steno("doctor", "--width", 300).out
        assert f"rm {copy}" in out
        assert f"rm {path}" not in out
        copy.unlink()


def test_several_leftovers_are_not_one_command(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    touch(folder)
    for top in ("tasks", "file-history"):
        (folder / top / GONE).mkdir(parents=True)
    out = steno("doctor", "--width", 300).out
    assert "2 leftovers" in out
    assert "All of these can be deleted. To delete the first, run: rm -r " in out


def test_files_without_a_conversation_are_no_reason_to_act(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    (path,) = folder.rglob("*.jsonl")
    path.with_name(f"{GONE}.jsonl").write_bytes(b"")
    touch(folder)
    ran = steno("doctor")
    assert ran.code == 0
    assert ran.lines[0].startswith("✓ No problems found: 1 session")
    assert ran.lines[1] == "1 file without a conversation"
    assert len(steno("doctor", "--json").json["empty"]) == 1


def test_a_narrow_screen_holds_every_line(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk().torn_tail())
    touch(folder, 40)
    (folder / "file-history" / GONE).mkdir(parents=True)
    ran = steno("doctor", "--width", 40)
    # Commands stay in one piece.
    assert all(display_width(line) <= 40 for line in ran.lines if "rm -r" not in line)
    assert "messages lost" in ran.out or "1 error" in ran.out


def test_json_has_every_section(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk().torn_tail())
    touch(folder, 29)
    ran = steno("doctor", "--json")
    assert ran.code == 1
    said = ran.json
    assert set(said) >= {"broken", "due", "large", "leftovers", "copies", "problems"}
    (broken,) = said["broken"]
    assert broken["errors"] >= 1
    assert said["due"][0]["days"] == pytest.approx(1)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
def test_what_cannot_be_read_ends_in_3(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    touch(folder)
    os.mkfifo(folder / "projects" / "00000000-0000-4000-8000-00000000000f.jsonl")
    ran = steno("doctor")
    complains(ran, 3, "0000000f.jsonl")
    assert "No problems found: 1 session" in ran.out


def test_a_root_that_is_not_there_is_said(steno: Steno, tmp_path: Path) -> None:
    complains(steno("doctor", "--root", tmp_path / "gone"), 3, "gone")


@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_hostile_names_are_inert(steno: Steno, config: WriteConfig, tmp_path: Path, mode: list[str]) -> None:
    folder = tmp_path / f"home{EVIL}"
    evil = session(seed="evil").turn(f"Ask {EVIL}", "First.").torn_tail()
    config(evil).rename(folder)
    (folder / "file-history" / GONE / f"x{EVIL}").mkdir(parents=True)
    ran = steno("doctor", "--root", folder, *mode)
    assert ran.code == 1
    for letter in ("\x1b", "\x07", "\u202e"):
        assert letter not in ran.out
        assert letter not in ran.err
