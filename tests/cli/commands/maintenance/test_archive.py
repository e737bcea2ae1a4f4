"""`steno archive`: what it keeps, proves and puts back; `ls` and `show` of what is only there."""

import os
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.store.test_archive import talk, with_agent

from steno.demo.recording import DemoReport
from steno.store.archive.archive import Archive


def copy_of(path: Path) -> Path:
    """Return where the archive has the copy of a session's own file."""
    archive = Archive()
    index = archive.journal(archive.entry(str(path)))
    session = index.session_file
    assert session is not None
    return Path(index.copy_path(session))


def only(folder: Path) -> Path:
    (path,) = folder.glob("projects/*/*.jsonl")
    return path


def test_everything_below_the_roots_is_kept_once(steno: Steno, config: WriteConfig) -> None:
    config(talk("one"), with_agent("two"))
    ran = steno("archive")
    assert ran.code == 0
    assert "Archived 2 of 2 sessions: 5 files" in ran.out
    ran = steno("archive")
    assert ran.code == 0
    assert "No changes: 2 sessions" in ran.out


def test_one_session_can_be_named(steno: Steno, config: WriteConfig) -> None:
    one, two = talk("one"), talk("two")
    config(one, two)
    assert "Archived 1 of 1 session" in steno("archive", one.session_id).out
    assert [each["id"] for each in steno("archive", "--list", "--json").json] == [one.session_id]
    assert steno("archive", "no such").code == 1


def test_other_roots_can_be_named(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    folder = config(talk())
    for name in ("a", "b"):
        shutil.copytree(folder, tmp_path / name)
    ran = steno("archive", "--root", tmp_path / "a", "--root", tmp_path / "b", "--json")
    assert ran.json["sessions"] == 2
    assert len(ran.json["kept"]) == 2


def test_what_was_done_for_programs(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    told = steno("archive", "--json").json
    # Its title lies in a file of its own.
    size = sum(each.stat().st_size for each in path.parent.rglob("*.json*"))
    assert (told["sessions"], told["files"], told["added"]) == (1, 2, size)
    assert told["kept"][0]["path"] == str(path)
    assert told["kept"][0]["files"][0]["generation"] == 1
    assert told["archive"]["size"] == size
    assert 0 < told["archive"]["packed"] < size
    path.write_bytes(path.read_bytes()[:-10] + b"x" * 20)
    told = steno("archive", "--json").json
    assert told["rewritten"] == 1
    assert told["kept"][0]["files"][0]["generation"] == 2


def test_a_rewritten_session_is_told_and_both_generations_are_listed(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    steno("archive")
    path.write_bytes(b'{"type":"user"}\n')
    assert "1 file rewritten" in steno("archive").out
    assert "2 generations" in steno("archive", "--list").out
    assert "generation 1 of 2" in steno("archive", "--list", path.stem).out
    (told,) = steno("archive", "--list", path.stem, "--json").json
    assert told["generations"] == 2
    assert [each["generation"] for each in told["contents"]] == [1, 1, 2]


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_told(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    path.chmod(0)
    ran = steno("archive")
    assert ran.code == 3
    assert "could not be read" in ran.err


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(steno: Steno, config: WriteConfig) -> None:
    config(talk())
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(parents=True)
    (home / "archive").write_text("in the way")
    ran = steno("archive")
    assert ran.code == 3
    assert len(ran.err.splitlines()) <= 2


# Proving


def test_a_sound_archive_is_proven(steno: Steno, config: WriteConfig) -> None:
    config(talk(), with_agent())
    steno("archive")
    ran = steno("archive", "--verify")
    assert ran.code == 0
    assert "Verified 2 sessions" in ran.out
    assert steno("archive", "--verify", "--json").json["sound"] is True


def test_damage_is_one_line_for_each_file_and_code_1(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    steno("archive")
    copy = copy_of(path)
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    ran = steno("archive", "--verify")
    assert ran.code == 1
    assert ran.lines[0].startswith(f"✗ {path}: ")
    assert len([line for line in ran.lines if line.startswith("✗")]) == 1
    assert ran.lines[2].startswith("Run `steno archive --full` to archive")
    told = steno("archive", "--verify", path.stem, "--json")
    assert told.code == 1
    assert told.json["failures"][0]["copy"] == str(copy)
    assert "--full" in told.json["failures"][0]["hint"]
    assert "1 file damaged in the archive" in steno("archive", "--full").out
    assert steno("archive", "--verify").code == 0
    assert steno("archive", "--full", "--json").json["healed"] == 0
    assert len(steno("archive", "--list", path.stem, "--json").json[0]["contents"]) == 2


def test_an_empty_archive_is_sound(steno: Steno) -> None:
    assert steno("archive", "--verify").code == 0
    assert steno("archive", "--list").code == 0
    assert steno("archive", "--list", "--json").json == []


# Putting back


def test_a_session_comes_back_with_all_that_goes_with_it(steno: Steno, config: WriteConfig) -> None:
    made = with_agent()
    folder = config(made)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}
    assert len(before) == 3
    steno("archive")
    shutil.rmtree(folder / "projects")
    ran = steno("archive", "--restore", made.session_id)
    assert ran.code == 0
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}
    assert after == before
    ran = steno("archive", "--restore", made.session_id, "--json")
    assert {each["state"] for each in ran.json} == {"same"}


def test_a_file_with_other_bytes_is_left_alone_and_told(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    steno("archive")
    path.write_bytes(b"mine")
    ran = steno("archive", "--restore", path)
    assert ran.code == 1
    assert "a different file exists" in ran.out
    assert path.read_bytes() == b"mine"


def test_below_another_folder_it_lies_as_in_its_own(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    made = with_agent()
    folder = config(made)
    steno("archive")
    there = tmp_path / "there"
    assert steno("archive", "--restore", made.session_id, "--to", there).code == 0
    paths = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert {path.relative_to(there) for path in there.rglob("*") if path.is_file()} == paths
    assert steno("ls", "--root", there, "--json").json[0]["id"] == made.session_id


def test_an_older_generation_can_be_had(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    path = only(config(talk()))
    first = path.read_bytes()
    steno("archive")
    path.write_bytes(b'{"type":"user"}\n')
    steno("archive")
    call = ("archive", "--restore", path.stem, "--generation", 1, "--to", tmp_path / "old")
    assert steno(*call).code == 0
    assert only(tmp_path / "old").read_bytes() == first
    assert steno("archive", "--restore", path.stem, "--generation", 9).code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--restore",),
        ("--to", "x"),
        ("--verify", "--generation", "1"),
        ("--restore", "x", "--to", " "),
        ("--verify", "--full"),
        ("--forget",),
        ("--forget", "--all"),
        ("--restore", "--all", "x"),
        ("--restore", "--all", "--generation", "1"),
        ("--all",),
        ("--force",),
    ],
)
def test_what_makes_no_sense_is_refused(steno: Steno, arguments: tuple[str, ...]) -> None:
    assert steno("archive", *arguments).code == 2


def test_what_was_kept_is_forgotten_only_when_told_to(steno: Steno, config: WriteConfig) -> None:
    path = only(config(talk()))
    steno("archive")
    folder = copy_of(path).parent
    assert steno("archive", "--forget", path.stem).code == 0
    assert not folder.exists()
    assert steno("archive", "--list", "--json").json == []
    assert steno("archive", "--verify").code == 0
    steno("archive")
    path.unlink()
    assert steno("archive", "--forget", path.stem).code == 2
    assert folder.exists()
    assert steno("archive", "--forget", path.stem, "--force").code == 0
    assert not folder.exists()
    assert steno("ls", "--json").json == []


def test_what_was_kept_is_found_when_its_whole_root_is_gone(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    made = with_agent()
    gone = tmp_path / "gone"
    shutil.move(config(made), gone)
    config(talk("another"))
    assert steno("archive", "--root", gone).code == 0
    shutil.rmtree(gone)
    (told,) = steno("archive", "--list", "--json").json
    for number, name in enumerate((told["id"], told["id"][:6], told["path"])):
        there = tmp_path / f"there-{number}"
        assert steno("archive", "--restore", name, "--to", there).code == 0
        assert only(there).name == f"{made.session_id}.jsonl"
    assert steno("archive", "--list", told["id"][:6]).code == 0
    assert steno("archive", "--restore", "no such").code == 1


def test_an_id_that_was_kept_from_two_places_is_told_apart_by_path(
    steno: Steno, config: WriteConfig, tmp_path: Path
) -> None:
    made = talk()
    folder = config(made)
    for name in ("a", "b"):
        shutil.copytree(folder, tmp_path / name)
        steno("archive", "--root", tmp_path / name)
        shutil.rmtree(tmp_path / name)
    shutil.rmtree(folder)
    ran = steno("archive", "--restore", made.session_id)
    assert ran.code == 2
    assert str(tmp_path / "a") in ran.err
    path = next(each["path"] for each in steno("archive", "--list", "--json").json)
    assert steno("archive", "--restore", path).code == 0
    assert Path(path).exists()


def test_all_that_is_gone_comes_back(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    folder = config(talk("one"), talk("two"), talk("three"))
    steno("archive")
    first, second, third = sorted(folder.glob("projects/*/*.jsonl"))
    first.unlink()
    second.unlink()
    with third.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    ran = steno("archive", "--restore")
    assert ran.code == 2
    assert "--all" in ran.err
    assert "steno archive --list" in ran.err
    ran = steno("archive", "--restore", "--all", "--json")
    assert ran.code == 0
    back = {each["path"] for each in ran.json if each["state"] == "written"}
    assert back == {str(first), str(second)}
    assert "Nothing to restore" in steno("archive", "--restore", "--all").out
    assert steno("archive", "--restore", "--all", "--to", tmp_path / "there").code == 0
    assert len(list((tmp_path / "there").glob("projects/*/*.jsonl"))) == 3


# What is only in the archive


def test_ls_marks_what_is_only_in_the_archive(steno: Steno, config: WriteConfig) -> None:
    gone, there = talk("gone"), talk("there")
    folder = config(gone, there)
    steno("archive")
    before = {each["id"]: each for each in steno("ls", "--json").json}
    assert not any(each["archived_only"] for each in before.values())
    next(folder.rglob(f"{gone.session_id}.jsonl")).unlink()
    after = {each["id"]: each for each in steno("ls", "--json").json}
    assert after[gone.session_id] == {**before[gone.session_id], "archived_only": True}
    assert after[there.session_id] == before[there.session_id]
    line = next(line for line in steno("ls").lines if gone.session_id[:4] in line)
    assert line.startswith("▪ ")
    assert line.endswith("archived only")
    assert sum("archived only" in line for line in steno("ls").lines) == 1


def test_show_tells_what_is_only_in_the_archive_as_before(steno: Steno, config: WriteConfig) -> None:
    made = with_agent()
    folder = config(made)
    steno("archive")
    agent = next(folder.rglob("agent-*.jsonl")).stem.removeprefix("agent-")
    calls = [
        ("show", made.session_id),
        ("show", made.session_id, "--json"),
        ("show", made.session_id, "--records", "--json"),
        ("show", made.session_id, "--messages"),
        ("show", made.session_id, "--graph"),
        ("show", made.session_id, "--agent", agent),
        ("show", agent),
        ("show", "last"),
    ]
    before = [steno(*call).out for call in calls]
    shutil.rmtree(folder / "projects")
    assert [steno(*call).out for call in calls] == before
    assert [steno(*call).code for call in calls] == [0] * len(calls)


@pytest.mark.parametrize("command", ["check", "drift", "repair"])
def test_commands_that_need_the_file_say_how_to_get_it_back(steno: Steno, config: WriteConfig, command: str) -> None:
    path = only(config(talk()))
    steno("archive")
    path.unlink()
    for name in (path.stem, path):
        ran = steno(command, name)
        assert ran.code == 1
        assert "only in the archive" in ran.err
        assert "steno archive --restore" in ran.err


def test_a_whole_demo_can_go_and_come_back(steno: Steno, demo: DemoReport) -> None:
    steno("archive", "--demo")
    before = steno("ls", "--demo", "--json", "--limit", 0).json
    shutil.rmtree(Path(demo.root) / "projects")
    after = steno("ls", "--demo", "--json", "--limit", 0).json
    assert [{**each, "archived_only": True} for each in before] == after
    for each in before:
        assert steno("archive", "--demo", "--restore", each["path"]).code == 0
    assert steno("ls", "--demo", "--json", "--limit", 0).json == before
    assert steno("archive", "--verify").code == 0
