"""What git knows of a file, asked so that a repository cannot make us run anything."""

import os
import shutil
from pathlib import Path

import pytest
from tests.gitting import Repo

from steno.store import git
from steno.store.git import find_repository, is_in_work_tree

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def test_lines_say_their_commits_and_renames_are_followed(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("one.py", "a\nb\nc\n")
    first = repo.commit("Begin", when="2026-01-01T10:00:00Z", who="Ada")
    repo.run("mv", "one.py", "two words.py")
    repo.commit("Rename", when="2026-01-02T10:00:00Z")
    path = repo.write("two words.py", "a\nb2\nc\n")
    second = repo.commit("Change é", when="2026-01-03T10:00:00Z", who="Bob")
    found = find_repository(str(path))
    assert found is not None
    name = found.name_of(str(path))
    rows = found.annotate(name)
    assert [(row.text, row.commit.hash, row.commit.author) for row in rows] == [
        ("a", first, "Ada"),
        ("b2", second, "Bob"),
        ("c", first, "Ada"),
    ]
    assert rows[1].commit.summary == "Change é"
    assert rows[1].commit.time == 1767434400
    assert [(was.name, was.until) for was in found.former_names(name)] == [("one.py", 1767348000)]


def test_a_rename_that_is_not_committed_is_known(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.write("old.py", "a\nb\n")
    repo.commit("Begin")
    repo.run("mv", "old.py", "new.py")
    found = find_repository(str(tmp_path / "new.py"))
    assert found is not None
    assert [(was.name, was.until) for was in found.former_names("new.py")] == [("old.py", None)]
    assert found.annotate("new.py") == []


def test_other_work_trees_are_told(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    repo.commit("Begin")
    repo.run("worktree", "add", "-q", str(tmp_path / "other"))
    found = find_repository(str(path))
    assert found is not None
    assert found.work_trees() == [str(tmp_path / "other")]


def test_where_there_is_no_repository_or_no_git_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_repository(str(tmp_path / "a.py")) is None
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    found = find_repository(str(path))
    assert found is not None
    assert found.annotate("a.py") == []
    assert found.former_names("a.py") == []
    monkeypatch.setenv("PATH", "")
    assert find_repository(str(path)) is None


def test_variables_that_point_git_elsewhere_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    repo.commit("Begin")
    Repo(tmp_path / "evil")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "evil" / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "touch " + str(tmp_path / "ran"))
    found = find_repository(str(path))
    assert found is not None
    assert len(found.annotate("a.py")) == 1
    assert not (tmp_path / "ran").exists()


_COMMANDS = {
    "core.fsmonitor": "{}",
    "core.pager": "{}",
    "core.editor": "{}",
    "core.sshCommand": "{}",
    "core.askPass": "{}",
    "diff.external": "{}",
    "diff.evil.command": "{}",
    "diff.evil.textconv": "{}",
    "filter.evil.clean": "{}",
    "filter.evil.smudge": "{}",
    "filter.evil.process": "{}",
    "gpg.program": "{}",
    "log.showSignature": "true",
    "pager.blame": "{}",
    "pager.log": "{}",
    "alias.blame": "!{}",
    "alias.log": "!{}",
    "credential.helper": "!{}",
    "uploadpack.packObjectsHook": "{}",
    "remote.origin.url": "ext::{}",
    "remote.origin.uploadpack": "{}",
    "remote.origin.promisor": "true",
    "remote.origin.vcs": "evil",
    "protocol.ext.allow": "always",
}


def test_nothing_that_a_repository_names_is_run(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\nb\n")
    repo.write(".gitattributes", "*.py diff=evil filter=evil\n")
    repo.commit("Begin")
    repo.run("mv", "a.py", "b.py")
    repo.sign(repo.commit("Rename"))
    ran = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    for name, value in _COMMANDS.items():
        repo.run("config", name, value.format(script))
    for hook in ("post-index-change", "pre-auto-gc", "reference-transaction", "post-checkout"):
        (repo.folder / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(script, repo.folder / ".git" / "hooks" / hook)
    (repo.folder / ".git" / "info").mkdir(exist_ok=True)
    (repo.folder / ".git" / "info" / "attributes").write_text("*.py diff=evil filter=evil\n")
    path = repo.folder / "b.py"
    # Touched since, so that whoever looks at the work tree has to look into it.
    path.write_text("a\nb\nc\n")
    os.utime(path, (1, 1))
    found = find_repository(str(path))
    assert found is not None
    assert [row.text for row in found.annotate("b.py")] == ["a", "b"]
    assert [was.name for was in found.former_names("b.py")] == ["a.py"]
    found.work_trees()
    assert not ran.exists()


def test_what_is_missing_is_not_fetched(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\nb\n")
    repo.commit("Begin")
    blob = repo.run("rev-parse", "HEAD:a.py").strip()
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    ran = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    for name, value in {
        "remote.origin.url": f"ext::{script}",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
        "core.sshCommand": str(script),
    }.items():
        repo.run("config", name, value)
    found = find_repository(str(path))
    assert found is not None
    assert found.annotate("a.py") == []
    assert not ran.exists()


def test_git_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "a\n")
    repo.commit("Begin")
    found = find_repository(str(path))
    assert found is not None
    assert not found.timed_out
    monkeypatch.setattr(git, "_MAX_OUTPUT", 1)
    assert found.annotate("a.py") == []
    assert found.timed_out
    monkeypatch.setattr(git, "_TIMEOUT", 1e-6)
    assert find_repository(str(path)) is None
    assert is_in_work_tree(str(path))
    assert not is_in_work_tree(str(tmp_path / "a.py"))
