"""`steno relocate`: a plan first, then the move, its way back, and other machines."""

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Steno
from tests.store.relocate.moving import OLD, aged, project, seen, write

from steno.store.session_lock import SessionAnnouncement


@pytest.fixture
def home() -> Path:
    return write(Path(os.environ["CLAUDE_CONFIG_DIR"]), project())


@pytest.fixture
def new(tmp_path: Path) -> Path:
    folder = tmp_path / "new place"
    folder.mkdir()
    return folder


def test_the_plan_comes_first_and_changes_nothing(steno: Steno, home: Path, new: Path) -> None:
    before = seen(home)
    ran = steno("relocate", OLD, new)
    assert ran.code == 0
    assert "1 session, 2 files" in ran.out
    assert f"relocate {OLD} '{new}' --apply" in ran.out
    assert seen(home) == before
    told = steno("relocate", OLD, new, "--json").json
    assert (told["applied"], told["sessions"], len(told["steps"])) == (False, 1, 2)
    assert seen(home) == before


def test_it_is_done_and_undone(steno: Steno, home: Path, new: Path) -> None:
    before = seen(home)
    ran = steno("relocate", OLD, new, "--apply")
    assert "1 session belongs to" in ran.out
    assert [each["project"] for each in steno("ls", "--json").json] == [str(new)]
    ran = steno("relocate", "--undo", "last")
    assert f"1 session belongs to {OLD} again" in ran.out
    assert seen(home) == before
    assert steno("relocate", "--undo", "last").code == 2


@pytest.mark.usefixtures("home")
def test_the_index_follows(steno: Steno, new: Path) -> None:
    steno("sync")
    told = steno("relocate", OLD, new, "--apply", "--json").json
    found = steno("search", "tide", "--json", "--no-sync").json
    assert {each["project"] for each in found} == {str(new)}
    assert steno("sync", "--json").json["gone"] == 0
    assert steno("relocate", "--undo", told["receipt"], "--json").json["notes"] == []
    found = steno("search", "tide", "--json", "--no-sync").json
    assert {each["project"] for each in found} == {OLD}


def test_a_live_client_is_refused(steno: Steno, home: Path, new: Path) -> None:
    with SessionAnnouncement(str(home), "x", OLD, "2.1.325"):
        ran = steno("relocate", OLD, new, "--apply")
    assert ran.code == 3
    assert "is in use by process" in ran.err


@pytest.mark.usefixtures("home")
def test_sessions_go_to_another_machine(steno: Steno, new: Path, tmp_path: Path) -> None:
    packed = tmp_path / "app.tar.zst"
    ran = steno("relocate", OLD, "--to-machine", packed)
    assert "Packed 1 session into" in ran.out
    assert "unmasked" in ran.out
    assert steno("relocate", OLD, "--to-machine", packed).code == 2
    other = tmp_path / "other"
    other.mkdir()
    ran = steno("relocate", "--from-machine", packed, new, "--root", other)
    assert "1 session, 2 files" in ran.out
    assert seen(other) == {}
    ran = steno("relocate", "--from-machine", packed, new, "--root", other, "--apply")
    assert ran.code == 0
    assert [each["project"] for each in steno("ls", "--json", "--root", other).json] == [str(new)]
    aged(other)
    ran = steno("relocate", "--from-machine", packed, new, "--root", other, "--apply")
    assert (ran.code, "already exist here" in ran.err) == (2, True)
    assert steno("relocate", "--undo", "last", "--root", other).code == 0
    assert seen(other) == {}


@pytest.mark.usefixtures("home")
def test_a_move_that_was_cut_off_is_said_and_finished(steno: Steno, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", stop)
        assert steno("relocate", OLD, new, "--apply").code == 3
    assert "was interrupted" in steno("relocate", OLD, new).err
    assert steno("relocate", OLD, "/elsewhere", "--apply").code == 3
    assert steno("relocate", OLD, new, "--apply").code == 0
    assert [each["project"] for each in steno("ls", "--json").json] == [str(new)]


def test_an_archive_that_is_not_there_is_said_with_how_to_make_one(steno: Steno, new: Path) -> None:
    ran = steno("relocate", "--from-machine", "/nowhere/app.tar.zst", new)
    assert ran.code == 3
    assert "cannot read /nowhere/app.tar.zst: no such file" in ran.err
    assert "--to-machine FILE" in ran.err


def test_a_damaged_archive_is_one_line(steno: Steno, new: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    ran = steno("relocate", "--from-machine", tmp_path / "x", new)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert list(Path(os.environ["STENO_HOME"], "moves").glob("2*")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a",),
        ("a", "b", "c"),
        ("a", "b", "--undo", "last"),
        ("--undo", "last", "--apply"),
        ("a", "--to-machine", "x", "--apply"),
        ("a", "--to-machine", "x", "--from-machine", "y"),
        ("", ""),
        ("/", "/new"),
        ("/old", "/"),
        ("/", "--to-machine", "x"),
        ("/", "--from-machine", "x"),
    ],
)
def test_what_makes_no_sense_is_refused(steno: Steno, arguments: tuple[str, ...]) -> None:
    assert steno("relocate", *arguments).code == 2


@pytest.mark.usefixtures("home")
def test_nothing_there_is_exit_1(steno: Steno) -> None:
    assert steno("relocate", "/no/such", "/new").code == 1
    assert steno("relocate", "--undo", "nothing").code == 1
