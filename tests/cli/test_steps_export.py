"""002: `export --format steps`, `sync --steps` and the list rule in `ls`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders.step_files import OVER, RUNNING, session_file, session_id, step_lines
from tests.cli.conftest import Steno
from tests.report.test_steps_folder import tree

import steno as package


@pytest.fixture
def root() -> Path:
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"])
    for number in (1, 2, 3):
        session_file(folder, number, 12)
    return folder


def path_of(root: Path, number: int) -> Path:
    return root / "projects" / "-home-ada-tide" / f"{session_id(number)}.jsonl"


def test_002_sync_says_in_one_line_what_it_did(steno: Steno, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = steno("sync", "--steps", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Wrote 3 sessions, 0 unchanged, 0 removed\n"
    path_of(root, 1).unlink()
    with path_of(root, 2).open("ab") as file:
        file.write(step_lines(session_id(2), 1, word="More"))
    (path_of(root, 2).parent / "agent-a318043.jsonl").write_bytes(step_lines(session_id(2), 1))
    ran = steno("sync", "--steps", out)
    assert ran.out == ("Wrote 1 session, 1 unchanged, 1 removed; skipped 1 file: transcript of a sub-agent (1)\n")
    # The index is another matter.
    assert not (Path(os.environ["STENO_HOME"]) / "index").exists()


def test_002_sync_tells_programs_what_it_did(steno: Steno, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    steno("sync", "--steps", out)
    path_of(root, 1).unlink()
    path_of(root, 3).write_bytes(b"")
    ran = steno("sync", "--steps", out, "--json")
    assert ran.json == {
        "folder": str(out),
        "written": [],
        "unchanged": [str(out / session_id(2))],
        "removed": [str(out / session_id(1)), str(out / session_id(3))],
        "skipped": [{"path": str(path_of(root, 3)), "reason": "empty file", "failed": False}],
        "problems": [],
    }


def test_002_export_and_sync_write_the_same(steno: Steno, root: Path, tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("a", "b", "c", "d")]
    calls: list[tuple[object, ...]] = [
        ("sync", "--steps", outs[0]),
        ("export", "--format", "steps", f"{outs[1]}/"),
        ("export", "--format", "steps", "-o", outs[2]),
        ("export", *(path_of(root, n) for n in (3, 1, 2)), "--format", "steps", "-o", outs[3]),
    ]
    for call in calls:
        ran = steno(*call)
        assert (ran.code, ran.lines[0]) == (0, "Wrote 3 sessions, 0 unchanged, 0 removed")
    assert tree(outs[0]) == tree(outs[1]) == tree(outs[2]) == tree(outs[3])
    for call in calls:
        assert steno(*call).lines[0] == "Wrote 0 sessions, 3 unchanged, 0 removed"
        assert steno(*call).err == ""


@pytest.mark.usefixtures("root")
def test_002_export_of_a_folder_that_is_there_needs_no_option(steno: Steno, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ran = steno("export", session_id(2), "--format", "steps", out, "--json")
    assert (ran.json["sessions"], ran.json["written"]) == (1, [str(out / session_id(2))])
    assert ran.json["masked"]["home"] > 0
    assert steno("export", "--format", "steps", out).lines[0] == ("Wrote 2 sessions, 1 unchanged, 0 removed")
    ran = steno("export", "--project", "tide", "--format", "steps", out)
    assert ran.lines[0] == "Wrote 0 sessions, 3 unchanged, 0 removed"
    assert steno("export", "--project", "sea", "--format", "steps", out).code == 1
    assert "needs a directory" in steno("export", "--format", "steps").err


@pytest.mark.usefixtures("root")
def test_002_sync_what_something_else_wrote_is_said_and_the_rest_is_done(steno: Steno, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / session_id(2)).mkdir(parents=True)
    (out / session_id(2) / "steps.jsonl").write_text("mine")
    ran = steno("sync", "--steps", out)
    assert ran.code == 1
    assert ran.err == (
        f"steno: {out / session_id(2)} was not written by steno\n"
        "       Move it away, or run `steno export --format steps --force`.\n"
    )
    assert ran.out == ("Wrote 2 sessions, 0 unchanged, 0 removed; skipped 1 file: not written (see above) (1)\n")
    assert steno("export", "--format", "steps", "-o", out, "--force").code == 0
    assert (out / session_id(2) / "steps.jsonl").read_text() != "mine"


@pytest.mark.usefixtures("root")
def test_002_sync_a_link_in_the_way_stays_even_with_force(steno: Steno, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    (out / session_id(2)).symlink_to(other)
    ran = steno("export", "--format", "steps", "-o", out, "--force")
    assert ran.code == 1
    said = f"steno: {out / session_id(2)} is not a readable directory\n       Move it away.\n"
    assert said in ran.err
    assert not list(other.iterdir())


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (("--steps", "CONFIG/projects/steps"), "inside the session directory", 2),
        (("--steps", ""), "needs a directory", 2),
        (("--steps", "x", "--rebuild"), "cannot be combined", 2),
        (("--steps", "x", "--forget-gone"), "cannot be combined", 2),
        (("--listed",), "require --steps", 2),
        (("--no-redact",), "require --steps", 2),
        (("--steps", "file"), "cannot write", 3),
        (("--steps", "file/below"), "cannot write", 3),
    ],
)
def test_002_sync_refuses_what_makes_no_sense(
    steno: Steno, root: Path, options: tuple[str, ...], said: str, code: int
) -> None:
    Path("file").write_text("mine")
    ran = steno("sync", *(option.replace("CONFIG", str(root)) for option in options))
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert Path("file").read_text() == "mine"


def test_002_sync_keeps_what_it_has_when_the_sessions_cannot_be_read(steno: Steno, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    steno("sync", "--steps", out)
    root.rename(tmp_path / "away")
    ran = steno("sync", "--steps", out)
    assert ran.out == "Wrote 0 sessions, 0 unchanged, 0 removed\n"
    assert f"cannot read {root}" in ran.err
    assert len(list(out.iterdir())) == 3


def test_002_sync_watches_and_follows_changes_and_deletions(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    env = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    command = [sys.executable, "-m", "steno", "sync", "--steps", str(out), "--watch", "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None

        def report() -> dict[str, list[str]]:
            assert running.stdout is not None
            return json.loads(running.stdout.readline())

        assert len(report()["written"]) == 3
        session_file(root, 4, 6)
        assert report()["written"] == [str(out / session_id(4))]
        path_of(root, 1).unlink()
        assert report()["removed"] == [str(out / session_id(1))]
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 0


# The list rule


def _listed(steno: Steno, *options: object) -> set[int]:
    ran = steno("ls", "--json", "--limit", 0, *options)
    assert ran.code in (0, 1)
    return {int(each["id"].replace("-", "")[-8:], 16) for each in ran.json}


def test_002_list_rule_of_ls_at_every_limit(steno: Steno) -> None:
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"])
    for records in (4, 5, 9, 10):
        for answered in (False, True):
            for running in (False, True):
                number = records * 100 + answered * 10 + running
                time = RUNNING if running else OVER
                session_file(folder, number, records, answered=answered, time=time)
    every = {records * 100 + rest for records in (4, 5, 9, 10) for rest in (0, 1, 10, 11)}
    shown = {401, 411, 501, 511, 901, 911, 1001, 1011, 510, 910, 1000, 1010}
    assert _listed(steno) == every
    assert _listed(steno, "--listed") == shown
    assert _listed(steno, "--answered") == {number for number in every if number // 10 % 10}
    for records in (4, 5, 9, 10):
        assert _listed(steno, "--min-steps", records) == {n for n in every if n >= records * 100}
    assert _listed(steno, "--min-steps", 5, "--answered", "--listed", "--status", "running") == {
        511, 911, 1011,
    }  # fmt: skip
    assert _listed(steno, "--min-steps", 11) == set()
    assert steno("ls", "--min-steps", 11).code == 1
    # An export with the same option writes the same sessions.
    out = Path("out")
    assert steno("sync", "--steps", out, "--listed").code == 0
    assert {int(path.name.replace("-", "")[-8:], 16) for path in out.iterdir()} == shown


def test_002_ls_gives_programs_step_records_and_answers(steno: Steno) -> None:
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"])
    session_file(folder, 1, 7, answered=False)
    (row,) = steno("ls", "--json").json
    assert (row["step_records"], row["answered"]) == (7, False)
