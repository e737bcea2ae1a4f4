"""Looking at a working tree: what is seen, what is left out, what has changed."""

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.agent.checkpoints import backup_store, working_tree
from steno.agent.checkpoints import working_tree as trees
from steno.agent.checkpoints.backup_store import content_state, read_chunks
from steno.agent.checkpoints.working_tree import (
    TreeLimits,
    TreeSnapshot,
    WorkingTree,
    changes_between,
    tree_store_folder,
)
from steno.errors import Unreadable


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "steno")


def scan(tree: WorkingTree) -> TreeSnapshot:
    found = tree.scan()
    assert found is not None
    return found


def kinds(before: TreeSnapshot, after: TreeSnapshot) -> dict[str, str]:
    return {change.path: change.kind for change in changes_between(before, after)}


def old(path: Path) -> None:
    """Make a file look as if it had been written long ago."""
    os.utime(path, ns=(10**18, 10**18))


def test_what_was_created_modified_and_deleted_is_found(project: Path, home: str) -> None:
    tree = WorkingTree(str(project), home=home)
    (project / "sub").mkdir()
    for name in ("same", "changes", "goes", "sub/moves"):
        (project / name).write_text(name)
    before = scan(tree)
    (project / "changes").write_text("CHANGES")
    (project / "goes").unlink()
    (project / "new").write_bytes(b"\0\xff")
    (project / "sub/moves").rename(project / "moved")
    (project / "same").touch()
    after = scan(tree)
    assert kinds(before, after) == {
        "changes": "modified",
        "goes": "deleted",
        "moved": "created",
        "new": "created",
        "sub/moves": "deleted",
    }
    assert tree.content(before.files["changes"].digest) == b"changes"
    assert tree.content(after.files["new"].digest) == b"\0\xff"


def test_a_change_of_the_same_size_within_the_same_instant_is_found(project: Path, home: str) -> None:
    tree = WorkingTree(str(project), home=home)
    (project / "a").write_text("one")
    status = (project / "a").stat()
    before = scan(tree)
    with (project / "a").open("r+") as file:
        file.write("two")
    os.utime(project / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert kinds(before, scan(tree)) == {"a": "modified"}


def test_a_changed_mode_is_a_change(project: Path, home: str) -> None:
    tree = WorkingTree(str(project), home=home)
    (project / "a").write_text("one")
    before = scan(tree)
    (project / "a").chmod(0o755)
    after = scan(tree)
    assert kinds(before, after) == {"a": "modified"}
    assert stat.S_IMODE(before.files["a"].mode) != stat.S_IMODE(after.files["a"].mode) == 0o755


def test_links_are_seen_and_never_followed(tmp_path: Path, project: Path, home: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to(project)
    (project / "self").symlink_to("self")
    tree = WorkingTree(str(project), home=home)
    before = scan(tree)
    assert sorted(before.files) == ["loop", "out", "self"]
    (project / "self").unlink()
    (project / "self").symlink_to("elsewhere")
    assert kinds(before, scan(tree)) == {"self": "modified"}
    assert tree.content(before.files["self"].digest) == b"self"


def test_what_git_ignores_is_left_out(project: Path, home: str) -> None:
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("ref")
    (project / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    (project / "sub/build").mkdir(parents=True)
    (project / "sub/.gitignore").write_text("/only-here\n!very.log\n")
    for name in ("a.log", "keep.log", "sub/very.log", "sub/b.log", "sub/build/x", "only-here"):
        (project / name).write_text("x")
    (project / "sub/only-here").write_text("x")
    tree = WorkingTree(str(project), home=home)
    found = [".gitignore", "keep.log", "only-here", "sub/.gitignore", "sub/very.log"]
    assert sorted(scan(tree).files) == found
    assert sorted(scan(tree).files) == found
    (project / ".gitignore").write_text("keep.log\n")
    assert "a.log" in scan(tree).files
    assert "keep.log" not in scan(tree).files


def test_what_a_repository_above_ignores_is_left_out(tmp_path: Path, home: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n/part/secret\n")
    part = tmp_path / "part"
    part.mkdir()
    for name in ("a.log", "secret", "kept"):
        (part / name).write_text("x")
    assert list(scan(WorkingTree(str(part), home=home)).files) == ["kept"]


def test_a_project_that_is_ignored_itself_is_looked_at(tmp_path: Path, home: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("part/\n")
    (tmp_path / "part").mkdir()
    (tmp_path / "part/a").write_text("x")
    assert list(scan(WorkingTree(str(tmp_path / "part"), home=home)).files) == ["a"]


def test_what_is_no_source_is_left_out(project: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (".git", "node_modules", ".venv", "my-env", "src"):
        (project / folder).mkdir()
        (project / folder / "file").write_text("x")
    (project / "my-env/pyvenv.cfg").write_text("home = /usr")
    (project / "half.steno-tmp").write_text("x")
    os.mkfifo(project / "pipe")
    # The name of a socket must be short.
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    (project / os.fsdecode(b"\xff")).write_text("x")
    assert list(scan(WorkingTree(str(project), home=home)).files) == ["src/file"]


def test_own_folders_in_the_project_are_left_out(project: Path) -> None:
    (project / "a").write_text("x")
    (project / "config").mkdir()
    (project / "config/session.jsonl").write_text("x")
    tree = WorkingTree(str(project), home=str(project / "own"), skip=(str(project / "config"),))
    scan(tree)
    assert list(scan(tree).files) == ["a"]


def test_a_big_file_is_seen_but_not_kept(project: Path, home: str) -> None:
    tree = WorkingTree(str(project), home=home, limits=TreeLimits(file_bytes=10))
    (project / "big").write_text("x" * 11)
    (project / "grows").write_text("x")
    before = scan(tree)
    assert before.files["big"].digest == ""
    (project / "big").write_text("y" * 11)
    (project / "grows").write_text("x" * 11)
    assert kinds(before, scan(tree)) == {"big": "modified", "grows": "modified"}


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (TreeLimits(files=2), "more than 2 files"),
        (TreeLimits(total_bytes=2_000_000), "more than 2 MB"),
        (TreeLimits(entries=2), "more than 2 directory entries"),
    ],
)
def test_too_much_is_said_and_not_read(project: Path, home: str, limits: TreeLimits, words: str) -> None:
    for number in range(3):
        (project / str(number)).write_bytes(b"x" * 1_000_000)
    tree = WorkingTree(str(project), home=home, limits=limits)
    assert tree.scan() is None
    assert words in tree.too_big
    assert not Path(tree.folder).exists()
    assert tree.scan() is None


def test_what_has_not_changed_is_not_read_again(project: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (project / name).write_text(name)
        old(project / name)
    read: list[str] = []

    def watched(path: str) -> object:
        read.append(Path(path).name)
        return read_chunks(path)

    monkeypatch.setattr(backup_store, "_TIME_RESOLUTION_NS", -(10**18))
    for module in (trees, working_tree, working_tree):
        monkeypatch.setattr(module, "read_chunks", watched)
    tree = WorkingTree(str(project), home=home)
    first = scan(tree)
    assert sorted(read) == ["a", "b", "index"]
    read.clear()
    second = scan(tree)
    assert read == []
    assert second.files["a"] is first.files["a"]
    # Nor by another process.
    scan(WorkingTree(str(project), home=home))
    assert read == ["index"]


def test_what_is_kept_is_private_and_outside_of_the_project(project: Path, home: str) -> None:
    (project / "a").write_text("secret " * 100)
    tree = WorkingTree(str(project), home=home)
    scan(tree)
    assert tree.folder == tree_store_folder(home, str(project))
    kept = [path for path in Path(home).rglob("*") if path.is_file()]
    assert kept
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    assert {stat.S_IMODE(p.stat().st_mode) for p in Path(home).rglob("*") if p.is_dir()} == {0o700}
    assert not any(b"secret secret" * 20 in path.read_bytes() for path in kept)
    assert [path.name for path in project.iterdir()] == ["a"]


def test_a_damaged_store_is_noticed_and_a_damaged_index_made_anew(project: Path, home: str) -> None:
    (project / "a").write_text("content")
    tree = WorkingTree(str(project), home=home)
    digest = scan(tree).files["a"].digest
    Path(tree.folder, "index").write_bytes(b"nonsense")
    assert scan(WorkingTree(str(project), home=home)).files["a"].digest == digest
    path = Path(tree.folder, "objects", digest[:2], digest[2:])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(Unreadable):
        tree.content(digest)
    path.unlink()
    with pytest.raises(Unreadable):
        tree.content(digest)
    scan(WorkingTree(str(project), home=home))
    assert tree.content(digest) == b"content"


def test_what_nobody_needs_is_removed_after_a_while(project: Path, home: str) -> None:
    (project / "a").write_text("first")
    tree = WorkingTree(str(project), home=home)
    first = scan(tree).files["a"].digest
    (project / "a").write_text("second")
    second = scan(tree).files["a"].digest
    for digest in (first, second):
        old(Path(tree.folder, "objects", digest[:2], digest[2:]))
        os.utime(Path(tree.folder, "objects", digest[:2], digest[2:]), (0, 0))
    scan(WorkingTree(str(project), home=home))
    assert tree.content(second) == b"second"
    with pytest.raises(Unreadable):
        tree.content(first)


def test_a_file_that_cannot_be_read_is_seen(project: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "locked").write_text("x")
    real = os.open

    def refuse(path: str, *rest: int) -> int:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    assert scan(WorkingTree(str(project), home=home)).files["locked"].digest == ""
    with pytest.raises(Unreadable, match="permission denied"):
        content_state(str(project / "locked"))


def test_a_pipe_in_a_files_place_is_not_waited_for(project: Path) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(Unreadable):
        content_state(str(project / "pipe"))
    with pytest.raises(Unreadable):
        list(read_chunks(str(project / "pipe")))


@given(
    before=st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=3)),
    after=st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=3)),
)
def test_the_changes_are_exactly_the_differences(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    project = folder / "project"
    project.mkdir()
    tree = WorkingTree(str(project), home=str(folder / "home"))
    for name, data in before.items():
        (project / name).write_bytes(data)
    first = scan(tree)
    for name in before:
        if name not in after:
            (project / name).unlink()
    for name, data in after.items():
        (project / name).write_bytes(data)
    found = changes_between(first, scan(tree))
    assert [change.path for change in found] == sorted(
        name for name in {*before, *after} if before.get(name) != after.get(name)
    )
    for change in found:
        if change.before is not None:
            assert tree.content(change.before.digest) == before[change.path]
