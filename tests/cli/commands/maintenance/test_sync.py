"""`steno sync`: what it says, and that it stays when it is told to."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

import steno as package
from steno.index.database import locate_index
from steno.store.archive.archive import Archive


def test_it_says_what_it_read_and_then_that_nothing_is_new(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="one").user("Why?").assistant("So."), session(seed="two").user("Who?"))
    ran = steno("sync")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Indexed 2 changed files of 2: ")
    assert steno("sync").out == "No changes in 2 files\n"


def test_a_sync_of_little_imports_nothing_it_does_not_need(steno: Steno, config: WriteConfig) -> None:
    folder = config(session(seed="one").user("Why?"))
    steno("sync")
    file = next(folder.glob("projects/*/*.jsonl"))
    file.write_bytes(session(seed="one").user("Why?").assistant("So.").bytes())
    code = (
        "import sys\nfrom steno.cli.main import run\n"
        "try:\n    run(['sync'])\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    ran = [subprocess.run(command, env=env, check=True, capture_output=True) for _ in range(2)]
    assert ran[0].stdout.startswith(b"Indexed 1 changed file of 1: ")
    assert ran[1].stdout == b"No changes in 1 file\n"
    appended, looked = (set(each.stderr.decode().split()) for each in ran)
    assert "tantivy" in appended
    assert not {"rich", "_hashlib", "json"} & (appended | looked)
    assert not {"tantivy", "steno.index.sync.batch_writer", "steno.index.text_index"} & looked


@pytest.mark.parametrize("more", [(), ("--color", "auto"), ("--color=auto",)])
def test_it_says_the_same_whoever_reads_its_options(steno: Steno, tmp_path: Path, more: tuple[str, ...]) -> None:
    nowhere = tmp_path / "nowhere"
    ran = steno("sync", "--root", nowhere, *more)
    assert (ran.code, ran.out, ran.err) == (3, "", f"steno: no such directory: {nowhere}\n")
    (tmp_path / "empty").mkdir()
    ran = steno("sync", "--root", tmp_path / "empty", *more)
    assert (ran.code, ran.out, ran.err) == (0, "No changes in 0 files\n", "")


@pytest.mark.parametrize("odd", [("--root",), ("--root", "--demo"), ("--rot", "x"), ("x",)])
def test_wrong_arguments_of_a_sync_are_refused(steno: Steno, odd: tuple[str, ...]) -> None:
    ran = steno("sync", *odd)
    assert ran.code in {2, 3}
    assert ran.err.startswith("steno: ")


def test_programs_get_figures(steno: Steno, config: WriteConfig) -> None:
    folder = config(session(seed="one").user("Why?"))
    said = json.loads(steno("sync", "--json").out)
    assert (said["files"], said["read"], said["gone"], said["problems"]) == (1, 1, 0, [])
    assert said["roots"] == [str(folder)]
    assert said["folder"] == locate_index().folder


def test_a_deleted_session_is_said_to_stay(steno: Steno, config: WriteConfig) -> None:
    folder = config(session(seed="one").user("Why?"))
    steno("sync")
    next(folder.glob("projects/*/*.jsonl")).unlink()
    assert "1 deleted (still in the index)" in steno("sync").out


def test_folders_in_the_config_file_are_read_too(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    config(session(seed="one").user("Why?"))
    other = tmp_path / "laptop" / "projects" / "-home-ada"
    other.mkdir(parents=True)
    made = session(seed="two").user("Who?")
    (other / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f'[index]\nroots = ["{tmp_path}/laptop"]\n')
    assert steno("sync").out.startswith("Indexed 2 changed files of 2")


@pytest.mark.parametrize("roots", ["7", '"here"', "[7]"])
def test_folders_that_are_no_list_are_refused(steno: Steno, roots: str) -> None:
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"[index]\nroots = {roots}\n")
    ran = steno("sync")
    assert ran.code == 2
    assert "line 2: roots must be a list of directories" in ran.err


def test_named_folders_have_an_index_of_their_own(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    config(session(seed="one").user("Why?"))
    steno("sync")
    assert steno("sync", "--root", tmp_path).out == "No changes in 0 files\n"
    assert steno("sync").out == "No changes in 1 file\n"


def test_a_rebuild_reads_everything_again(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="one").user("Why?"))
    steno("sync")
    assert steno("sync", "--rebuild").out.startswith("Indexed 1 changed file of 1")


def test_a_sync_archives_when_it_is_told_to(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="one").user("Why?").assistant(tool("Bash", command="ls")))
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("[archive]\non = true\n")
    assert "archived" in steno("sync").out
    assert len(Archive().entries()) == 1


def test_an_index_that_is_none_is_set_aside_and_said_in_one_line(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="one").user("Why?"))
    folder = Path(locate_index().folder)
    folder.mkdir(parents=True)
    (folder / "index.sqlite").write_bytes(b"no database at all" * 100)
    ran = steno("sync")
    assert ran.code == 0
    assert ran.err.count("\n") == 1
    assert f"{folder}/index.sqlite.damaged-" in ran.err
    assert steno("sync").err == ""


def test_it_stays_and_reads_what_is_written(config: WriteConfig) -> None:
    folder = config(session(seed="one").user("Why?"))
    process = subprocess.Popen(
        [sys.executable, "-m", "steno", "sync", "--watch", "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    stream = process.stdout
    assert stream is not None

    def report() -> dict[str, object]:
        return json.loads(stream.readline())

    try:
        assert report()["read"] == 1
        # The watch begins with a look at everything.
        assert report()["read"] == 0
        made = session(seed="two").user("Who?")
        path = next(folder.glob("projects/*/*.jsonl"))
        (path.parent / f"{made.session_id}.jsonl").write_bytes(made.bytes())
        while not report()["read"]:
            pass
    finally:
        process.send_signal(signal.SIGINT)
        stream.close()
    assert process.wait() == 0


def test_a_folder_of_the_config_file_that_is_not_there_is_said(steno: Steno) -> None:
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[index]\nroots = ["/not/here"]\n')
    ran = steno("sync")
    assert (ran.code, "cannot read /not/here" in ran.err) == (0, True)
