"""Which folders outside the working folder git may read."""

import subprocess
from pathlib import Path

from steno.guard.repository import git_folders


def _git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(
        ["git", *name, "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def _repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    _git(folder, "init", "-q")
    _git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_the_repository_above_a_folder(tmp_path: Path) -> None:
    top = _repository(tmp_path / "repo")
    (top / "a" / "b").mkdir(parents=True)
    assert list(git_folders(str(top / "a" / "b"))) == [str(top / ".git")]
    assert list(git_folders(str(tmp_path))) == []


def test_a_linked_work_tree_leads_to_its_repository(tmp_path: Path) -> None:
    top = _repository(tmp_path / "repo")
    _git(top, "worktree", "add", "-q", str(tmp_path / "tree"))
    own = top / ".git" / "worktrees" / "tree"
    assert list(git_folders(str(tmp_path / "tree"))) == [str(own), str(top / ".git")]


def test_a_submodule_leads_to_its_own_folder(tmp_path: Path) -> None:
    inner = _repository(tmp_path / "inner")
    top = _repository(tmp_path / "repo")
    _git(top, "submodule", "add", "-q", str(inner), "sub")
    assert list(git_folders(str(top / "sub"))) == [str(top / ".git" / "modules" / "sub")]


def test_a_file_that_names_a_strangers_repository_is_not_followed(tmp_path: Path) -> None:
    other = _repository(tmp_path / "other")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").write_text(f"gitdir: {other}/.git\n", encoding="utf-8")
    assert list(git_folders(str(project))) == []
    (project / ".git").unlink()
    (project / ".git").symlink_to(other / ".git")
    assert list(git_folders(str(project))) == []


def test_only_the_folder_above_a_work_tree_is_taken_for_shared(tmp_path: Path) -> None:
    project = tmp_path / "project"
    fake = project / "fake"
    fake.mkdir(parents=True)
    (project / ".git").write_text("gitdir: fake\n", encoding="utf-8")
    (fake / "gitdir").write_text(f"{project}/.git\n", encoding="utf-8")
    (fake / "commondir").write_text("/etc\n", encoding="utf-8")
    assert list(git_folders(str(project))) == [str(fake)]
    project = tmp_path / "worktrees" / "project"
    project.mkdir(parents=True)
    (project / ".git").write_text("gitdir: .\n", encoding="utf-8")
    (project / "gitdir").write_text(f"{project}/.git\n", encoding="utf-8")
    (project / "commondir").write_text(f"{tmp_path}\n", encoding="utf-8")
    assert list(git_folders(str(project))) == [str(project)]
