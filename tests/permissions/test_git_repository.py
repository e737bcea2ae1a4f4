"""Which folders outside the working folder git may read."""

import subprocess
from pathlib import Path

from steno.permissions.git_repository import git_folders


def _git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(
        ["git", *name, "-c", "protocol.file.allow=always", *words], cwd=folder, check=True, capture_output=True
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


def _linked(folder: Path, text: str, back: str, common: str = "") -> list[str]:
    """Make a work tree by hand, and return the folders that are read for it."""
    own = folder / "shared" / "worktrees" / "own"
    own.mkdir(parents=True)
    for name in ("HEAD", "objects", "refs"):
        (folder / "shared" / name).mkdir()
    (folder / "tree").mkdir()
    (folder / "tree" / ".git").write_text(text, encoding="utf-8")
    (own / "gitdir").write_text(back, encoding="utf-8")
    if common:
        (own / "commondir").write_text(common, encoding="utf-8")
    return [str(Path(path).relative_to(folder)) for path in git_folders(str(folder / "tree"))]


def test_only_the_first_line_of_gits_files_counts(tmp_path: Path) -> None:
    found = _linked(
        tmp_path,
        "gitdir: ../shared/worktrees/own\nsecond\ngitdir: /etc\n",
        "../../../tree/.git\nsecond\nthird\n",
        "  ../..  \n/etc\n/\n",
    )
    assert found == ["shared/worktrees/own", "shared"]


def test_lines_of_other_forms_name_nothing(tmp_path: Path) -> None:
    for number, (text, back) in enumerate(
        [
            ("../shared/worktrees/own\n", "../../../tree/.git\n"),
            ("x gitdir: ../shared/worktrees/own\n", "../../../tree/.git\n"),
            ("gitdir: ../shared/worktrees/own\n", ""),
            ("gitdir: ../shared/worktrees/own\n", "../../../tree\n"),
            ("gitdir: ../shared/none\n", "../../../tree/.git\n"),
            ("\ngitdir: ../shared/worktrees/own\n", "../../../tree/.git\n"),
        ]
    ):
        assert _linked(tmp_path / str(number), text, back, "../..\n") == [], text


def test_a_shared_folder_must_be_a_repository(tmp_path: Path) -> None:
    given = ("gitdir: ../shared/worktrees/own", "../../../tree/.git", "../..")
    for name in ("HEAD", "objects", "refs"):
        folder = tmp_path / name
        _linked(folder, *given)
        (folder / "shared" / name).rmdir()
        own = str(folder / "shared" / "worktrees" / "own")
        assert list(git_folders(str(folder / "tree"))) == [own]


def test_a_submodule_is_known_by_its_work_tree(tmp_path: Path) -> None:
    own, tree = tmp_path / "own", tmp_path / "tree"
    own.mkdir()
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../own", encoding="utf-8")
    for text, found in (
        ("[core]\n\tworktree = ../tree\n", True),
        ("[core]\n  WorkTree=../tree\n", True),
        ("worktree = ../tree = x\n", False),
        ("other = ../tree\n", False),
        ("worktree\n", False),
        ("", False),
    ):
        (own / "config").write_text(text, encoding="utf-8")
        assert list(git_folders(str(tree))) == ([str(own)] if found else []), text
