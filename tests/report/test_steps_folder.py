"""002, sync: a folder of steps holds what an export into an empty one would write, and no more is written."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.builders.step_files import OVER, RUNNING, session_file, session_id, step_lines
from tests.published.files import FILES, FLAT

from steno.errors import BadRequest, Unreadable, Unwritable
from steno.report.export import steps_folder
from steno.report.export.steps_folder import StepsJob, StepsReport, sync_steps
from steno.report.export.steps_format import SYNC_VERSION, Source
from steno.sanitize.secret_masker import Masker
from steno.store.discovery import discover_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "claude"
    for number in (1, 2, 3):
        session_file(folder, number, 12)
    return folder


def run(root: Path, out: Path, **options: Any) -> StepsReport:
    return sync_steps(StepsJob(str(out), (str(root),), Masker(), **options))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def inodes(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what tells whether a file was written again."""
    stats = {str(path): path.stat() for path in folder.rglob("*")}
    return {name: (each.st_ino, each.st_mtime_ns) for name, each in stats.items()}


def assert_fresh(root: Path, out: Path, **options: Any) -> None:
    fresh = out.with_name(f"{out.name}-fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    run(root, fresh, **options)
    assert tree(out) == tree(fresh)


def path_of(root: Path, number: int) -> Path:
    return root / "projects" / "-home-ada-tide" / f"{session_id(number)}.jsonl"


def test_002_sync_a_second_run_writes_nothing(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(root, out)
    assert (len(first.written), first.unchanged, first.removed) == (3, [], [])
    before = inodes(out)
    second = run(root, out)
    assert (second.written, len(second.unchanged), second.removed) == ([], 3, [])
    assert inodes(out) == before
    assert {path.name for path in out.iterdir()} == {session_id(number) for number in (1, 2, 3)}


def test_002_sync_metadata_says_what_the_steps_were_made_from(root: Path, tmp_path: Path) -> None:
    run(root, tmp_path / "out")
    source = path_of(root, 1).read_bytes()
    about = json.loads((tmp_path / "out" / session_id(1) / "metadata.json").read_bytes())
    assert about["status"] == "COMPLETED"
    assert (about["step_count"], about["session_id"]) == (12, session_id(1))
    sync = about["sync"]
    assert (sync["writer"], sync["version"], sync["redacted"]) == ("steno", SYNC_VERSION, True)
    assert sync["source"]["size"] == len(source)
    assert sync["source"]["path"].endswith(f"{session_id(1)}.jsonl")
    assert sync["last_step"] == {"step_id": 12, "raw_uuid": f"00000000-0000-0000-0000-{12:012x}"}
    # Nothing of the home folder is told, the id of the source aside.
    assert b"home-ada" not in b"".join(tree(tmp_path / "out").values())


def test_002_sync_a_copy_with_another_time_is_unchanged(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    before = inodes(out)
    for path in root.rglob("*.jsonl"):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        os.utime(path, (1_800_000_000, 1_800_000_000))
    report = run(root, out)
    assert (report.written, len(report.unchanged)) == ([], 3)
    assert inodes(out) == before


def test_002_sync_a_file_rewritten_with_the_same_size_and_time_is_written(root: Path, tmp_path: Path) -> None:
    out, path = tmp_path / "out", path_of(root, 2)
    run(root, out)
    run(root, out)
    before = path.stat()
    # Far from both ends.
    data = path.read_bytes().replace(b"Go on 7", b"Go in 7")
    assert len(data) == before.st_size
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(root, out).written == [session_id(2)]
    assert_fresh(root, out)


def test_002_sync_what_is_cached_is_read_again_after_any_change(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, path = tmp_path / "out", path_of(root, 2)
    monkeypatch.setattr("steno.report.export.steps_folder._SETTLED_NANOS", 0)
    run(root, out)
    with monkeypatch.context() as reading:
        # What is not read is not missed.
        reading.delattr("steno.report.export.steps_folder._hash_file")
        reading.delattr("steno.report.export.steps_folder.read_steps")
        assert len(run(root, out).unchanged) == 3
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Go on 7", b"Go in 7"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(root, out).written == [session_id(2)]


@pytest.mark.parametrize("part", ["whole", "torn"])
def test_002_sync_appended_records_give_what_a_fresh_export_gives(root: Path, tmp_path: Path, part: str) -> None:
    out, path = tmp_path / "out", path_of(root, 3)
    run(root, out)
    more = step_lines(session_id(3), 2, word="More")
    with path.open("ab") as file:
        file.write(more if part == "whole" else more[:-40])
    report = run(root, out)
    assert (report.written, len(report.unchanged)) == ([session_id(3)], 2)
    assert_fresh(root, out)
    with path.open("ab") as file:
        file.write(b"" if part == "whole" else more[-40:])
    run(root, out)
    about = json.loads((out / session_id(3) / "metadata.json").read_bytes())
    assert about["step_count"] == 14
    assert_fresh(root, out)


def test_002_sync_a_session_that_is_gone_is_removed(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    path_of(root, 1).unlink()
    report = run(root, out)
    assert (report.written, len(report.unchanged), report.removed) == ([], 2, [session_id(1)])
    assert not (out / session_id(1)).exists()
    assert_fresh(root, out)


def test_002_sync_a_session_that_has_no_steps_any_more_is_removed(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    path_of(root, 1).write_bytes(b"")
    path_of(root, 2).write_bytes(b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    report = run(root, out)
    assert report.removed == [session_id(1), session_id(2)]
    assert {each.reason for each in report.skipped} == {"empty file", "no user or assistant records"}
    assert_fresh(root, out)


def test_002_sync_nothing_is_removed_while_a_folder_cannot_be_read(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    root.rename(tmp_path / "away")
    report = run(root, out)
    assert (report.removed, [each.kind for each in report.problems]) == ([], ["missing"])
    assert len(tree(out)) == 6


def test_002_sync_sessions_of_other_folders_stay(root: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    session_file(other, 9, 12)
    run(root, out)
    report = run(other, out)
    assert (report.written, report.removed) == ([session_id(9)], [])
    assert len(list(out.iterdir())) == 4


def test_002_sync_a_selection_leaves_other_sessions_and_removes_gone_ones(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    path_of(root, 1).unlink()
    (path_of(root, 2).parent / "agent-a318043.jsonl").write_bytes(step_lines(session_id(2), 4))
    job = StepsJob(str(out), (str(root),), Masker())
    report = sync_steps(job, [discover_file(str(path_of(root, 2)))])
    assert report.skipped == []
    assert (report.written, report.unchanged, report.removed) == ([], [session_id(2)], [session_id(1)])
    assert_fresh(root, out)


# What is not steno's own


def test_002_sync_what_something_else_wrote_is_left_alone(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    foreign = {
        "notes.txt": "mine",
        "folder/steps.jsonl": "mine",
        f"{session_id(7)}/metadata.json": '{"session_id": "x"}',
        f"{session_id(8)}/steps.jsonl": "mine",
        f"{session_id(1)}/metadata.json": '{"writer": "frago"}',
    }
    for name, text in foreign.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    report = run(root, out)
    assert report.written == [session_id(2), session_id(3)]
    (failed,) = report.failed
    assert "was not written by steno" in failed.reason
    assert {name: (out / name).read_text() for name in foreign} == foreign
    assert run(root, out, force=True).written == [session_id(1)]
    assert (out / "notes.txt").read_text() == "mine"


def test_002_sync_a_copy_of_a_folder_under_another_name_is_left_alone(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    shutil.copytree(out / session_id(1), out / f"{session_id(1)}.bak")
    path_of(root, 1).unlink()
    assert run(root, out).removed == [session_id(1)]
    assert (out / f"{session_id(1)}.bak" / "steps.jsonl").is_file()


def test_002_sync_other_files_in_a_session_that_is_gone_stay(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    (out / session_id(1) / "notes.txt").write_text("mine")
    path_of(root, 1).unlink()
    report = run(root, out)
    assert report.removed == [session_id(1)]
    assert [each.reason for each in report.skipped] == ["kept other files in the directory"]
    assert [path.name for path in (out / session_id(1)).iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("place", ["folder", "steps.jsonl", "metadata.json"])
def test_002_sync_links_lead_the_writer_nowhere(root: Path, tmp_path: Path, place: str) -> None:
    out, far = tmp_path / "out", tmp_path / "far"
    run(root, out)
    own = out / session_id(1)
    far.mkdir()
    if place == "folder":
        own.rename(far / "kept")
        own.symlink_to(far / "kept")
    else:
        (own / place).rename(far / place)
        (own / place).symlink_to(far / place)
    before = tree(far)
    path_of(root, 1).write_bytes(step_lines(session_id(1), 14))
    report = run(root, out)
    assert tree(far) == before
    if place == "steps.jsonl":
        # The folder is steno's own, so the link is replaced by the file.
        assert report.written == [session_id(1)]
        assert not (own / place).is_symlink()
        assert_fresh(root, out)
    else:
        assert [each.failed for each in report.skipped] == [True]
        path_of(root, 1).unlink()
        assert run(root, out).removed == []
        assert tree(far) == before


def test_002_sync_a_folder_inside_a_session_root_is_refused(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    client = Path(os.environ["CLAUDE_CONFIG_DIR"])
    for out in (root, root / "steps", link / "projects" / "x", client / "steps"):
        with pytest.raises(BadRequest, match="inside the session directory"):
            run(root, out)
    assert not (root / "steps").exists()


def test_002_sync_steps_that_somebody_changed_are_written_again(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    steps = out / session_id(1) / "steps.jsonl"
    steps.write_bytes(steps.read_bytes()[:-20])
    (out / session_id(2) / "steps.jsonl").unlink()
    (out / session_id(3) / "metadata.json").write_bytes(b"[" * 100_000)
    report = run(root, out)
    assert report.written == [session_id(1), session_id(2)]
    # Metadata that cannot be read does not say that the folder is steno's own.
    assert len(report.failed) == 1
    run(root, out, force=True)
    assert_fresh(root, out)


# frago's filters, copies and dialects


@pytest.mark.parametrize(
    ("old", "new"), [(b'"tool_call_count": ', b'"tool_call_count": 9'), (b"  ", b" "), (b"{", b"{ ")]
)
def test_002_sync_metadata_that_somebody_changed_is_written_again(
    root: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    out = tmp_path / "out"
    run(root, out)
    path = out / session_id(2) / "metadata.json"
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    report = run(root, out)
    assert (report.written, len(report.unchanged)) == ([session_id(2)], 2)
    assert_fresh(root, out)


def test_002_sync_a_session_folder_that_cannot_be_written_does_not_stop_the_others(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    steps = out / session_id(1) / "steps.jsonl"
    steps.unlink()
    (steps / "mine").mkdir(parents=True)
    for number in (1, 2):
        with path_of(root, number).open("ab") as file:
            file.write(step_lines(session_id(number), 3, word="More"))
    report = run(root, out)
    assert (report.written, report.unchanged) == ([session_id(2)], [session_id(3)])
    (failed,) = report.failed
    assert session_id(1) in failed.reason
    assert (steps / "mine").is_dir()
    shutil.rmtree(steps)
    assert run(root, out).written == [session_id(1)]
    assert_fresh(root, out)


def test_002_sync_a_full_disk_ends_the_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    run(root, out)
    path_of(root, 1).write_bytes(step_lines(session_id(1), 4))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("steno.store.dirfd.Directory.replace_file", full)
    with pytest.raises(Unwritable):
        run(root, out)


def test_002_sync_a_copy_does_not_take_the_folder_of_a_session_that_cannot_be_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    copy = root / "projects" / "-home-ada-z" / f"{session_id(1)}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(step_lines(session_id(1), 5))
    run(root, out)
    before = tree(out)
    with path_of(root, 1).open("ab") as file:
        file.write(b"\n")
    real = steps_folder.read_steps

    def refused(source: Source, masker: Masker | None) -> Any:
        if source.path == str(path_of(root, 1)):
            raise Unreadable("no")
        return real(source, masker)

    monkeypatch.setattr(steps_folder, "read_steps", refused)
    report = run(root, out)
    assert (report.written, report.removed, len(report.failed)) == ([], [], 1)
    assert tree(out) == before


def test_002_sync_a_time_in_milliseconds_is_written_as_a_time(root: Path, tmp_path: Path) -> None:
    path = path_of(root, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = lines[0].replace(f'"{OVER}"'.encode(), b"1794724111819")
    lines[1] = lines[1].replace(f'"{OVER}"'.encode(), b'"at noon"')
    path.write_bytes(b"".join(lines))
    run(root, tmp_path / "out")
    out = tmp_path / "out" / session_id(1)
    steps = (out / "steps.jsonl").read_bytes().splitlines()
    times = [json.loads(line)["timestamp"] for line in steps]
    assert times[:3] == ["2026-11-15T06:28:31.819Z", "at noon", OVER]
    about = json.loads((out / "metadata.json").read_bytes())
    assert about["started_at"] == "2026-11-15T06:28:31.819Z"


def test_002_sync_files_that_are_no_sessions_are_skipped_with_a_reason(root: Path, tmp_path: Path) -> None:
    folder = path_of(root, 1).parent
    data = step_lines(session_id(1), 4)
    (folder / "agent-a318043.jsonl").write_bytes(data)
    (folder / "notes.jsonl").write_bytes(data)
    path_of(root, 4).write_bytes(b"")
    side = data.replace(b'"isSidechain": false', b'"isSidechain": true')
    path_of(root, 5).write_bytes(side)
    mixed = data + side + b'{"type":"queue-operation","operation":"dequeue"}\n'
    path_of(root, 6).write_bytes(mixed + b'{"type":"system","subtype":"error"}\n')
    report = run(root, tmp_path / "out")
    assert {(Path(each.path).stem, each.reason) for each in report.skipped} == {
        ("agent-a318043", "transcript of a sub-agent"),
        ("notes", "file name is not a session ID"),
        (session_id(4), "empty file"),
        (session_id(5), "no user or assistant records"),
    }
    assert report.failed == []
    steps = (tmp_path / "out" / session_id(6) / "steps.jsonl").read_bytes()
    assert steps.count(b"\n") == 4
    again = run(root, tmp_path / "out")
    assert (again.written, again.skipped) == ([], report.skipped)


def test_002_sync_copies_with_one_id_have_folders_that_do_not_depend_on_time(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    copy = root / "projects" / "-home-ada-sea" / f"{session_id(2)}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(step_lines(session_id(2), 14))
    report = run(root, out)
    assert f"{session_id(2)}_2" in report.written
    os.utime(copy, (1, 1))
    assert run(root, out).written == []
    copy.unlink()
    report = run(root, out)
    assert (report.written, report.removed) == ([session_id(2)], [f"{session_id(2)}_2"])
    assert_fresh(root, out)


@pytest.mark.parametrize("case", sorted(FILES))
def test_002_sync_files_in_a_dialect_are_converted(tmp_path: Path, case: str) -> None:
    known = FILES[case]()
    flat = case in {each.__name__ for each in FLAT}
    place = "projects/-home-ada-work" if flat else "conversations/_home_ada_work"
    name = session_id(1) if flat else "2025-01-29T14-15-30"
    path = tmp_path / "claude" / place / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(known.data)
    (folder,) = run(tmp_path / "claude", tmp_path / "out").written
    lines = (tmp_path / "out" / folder / "steps.jsonl").read_bytes().splitlines()
    steps = [json.loads(line) for line in lines]
    about = json.loads((tmp_path / "out" / folder / "metadata.json").read_bytes())
    assert about["step_count"] == len(steps) > 0
    assert about["sync"]["source"]["dialect"] == ("spec-000" if flat else "spec-004")
    assert about["project_path"] == "~/work"
    summaries = "\n".join(step["content_summary"] for step in steps)
    assert all(prompt[:200] in summaries for prompt in known.prompts)
    assert {step["session_id"] for step in steps} == {about["session_id"]}
    assert run(tmp_path / "claude", tmp_path / "out").written == []


def test_002_sync_an_id_in_a_dialect_names_no_folder_elsewhere(tmp_path: Path) -> None:
    data = FILES["development"]().data
    folder = tmp_path / "claude" / "conversations" / "_home_ada_work"
    folder.mkdir(parents=True)
    for number, name in enumerate(("../../../up", "..", "/srv/x", ".hidden", "a/b")):
        hostile = data.replace(b"session_123", name.encode())
        (folder / f"2025-01-29T14-15-3{number}.jsonl").write_bytes(hostile)
    written = run(tmp_path / "claude", tmp_path / "deep" / "out").written
    assert written == [f"2025-01-29T14-15-3{number}" for number in range(5)]
    assert {path.name for path in tmp_path.iterdir()} == {"claude", "deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"out"}
    assert run(tmp_path / "claude", tmp_path / "deep" / "out").written == []


# Status and the list rule


def test_002_metadata_the_status_follows_the_time_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    session_file(root, 4, 6, time=RUNNING)
    report = run(root, out)
    about = json.loads((out / session_id(4) / "metadata.json").read_bytes())
    assert (about["status"], about["ended_at"], about["last_activity"]) == ("RUNNING", None, RUNNING)
    assert run(root, out).written == []
    assert report.status_changes_at is not None
    monkeypatch.setenv("STENO_NOW", "2026-11-15T12:10:00Z")
    steps = (out / session_id(4) / "steps.jsonl").stat()
    report = run(root, out)
    assert (report.written, report.status_changes_at) == ([session_id(4)], None)
    about = json.loads((out / session_id(4) / "metadata.json").read_bytes())
    assert (about["status"], about["ended_at"]) == ("COMPLETED", RUNNING)
    assert (out / session_id(4) / "steps.jsonl").stat().st_ino == steps.st_ino
    assert_fresh(root, out)


def test_002_list_rule_short_sessions_leave_a_listed_folder_when_they_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = tmp_path / "claude", tmp_path / "out"
    session_file(root, 1, 4, time=RUNNING)
    session_file(root, 2, 4, time=OVER)
    session_file(root, 3, 5, time=OVER)
    report = run(root, out, listed=True)
    assert report.written == [session_id(1), session_id(3)]
    assert [each.reason for each in report.skipped] == ["short session (--listed)"]
    monkeypatch.setenv("STENO_NOW", "2026-11-15T12:10:00Z")
    assert run(root, out, listed=True).removed == [session_id(1)]
    assert_fresh(root, out, listed=True)


def test_002_sync_masked_and_unmasked_are_told_apart(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(root, out)
    job = StepsJob(str(out), (str(root),), None)
    assert len(sync_steps(job).written) == 3
    about = json.loads((out / session_id(1) / "metadata.json").read_bytes())
    assert about["project_path"] == "/home/ada/tide"
    assert about["sync"]["source"]["path"] == str(path_of(root, 1))
    assert len(run(root, out).written) == 3
    assert_fresh(root, out)
