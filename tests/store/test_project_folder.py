"""A project's own folder: a few files by their names, and never what lies outside."""

import os
from pathlib import Path

import pytest

from steno.store.client_folders import ProjectFolder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".claude/agents/deep").mkdir(parents=True)
    (folder / "CLAUDE.md").write_text("hello")
    (folder / ".claude/agents/one.md").write_text("1")
    (folder / ".claude/agents/deep/two.md").write_text("2")
    (tmp_path / "outside.md").write_text("private")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/three.md").write_text("private")
    return folder


def test_a_text_is_read_and_what_is_not_there_is_none(project: Path) -> None:
    folder = ProjectFolder(str(project))
    found = folder.text("CLAUDE.md")
    assert folder.exists
    assert found is not None
    assert (found.text, found.size, found.is_cut) == ("hello", 5, False)
    assert folder.text("AGENTS.md") is None
    assert folder.list_names(".claude/agents", ".md") == [".claude/agents/deep/two.md", ".claude/agents/one.md"]
    assert folder.refused_names == []


def test_a_link_inside_is_followed_and_one_that_leads_out_is_not(project: Path) -> None:
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    (project / "CLAUDE.local.md").symlink_to(project.parent / "outside.md")
    folder = ProjectFolder(str(project))
    inside = folder.text("AGENTS.md")
    assert inside is not None
    assert inside.text == "hello"
    assert folder.text("CLAUDE.local.md") is None
    assert folder.refused_names == ["CLAUDE.local.md"]


@pytest.mark.parametrize("name", ["../outside.md", "x/../../outside.md", "..", "a\0b"])
def test_no_name_leads_out(project: Path, name: str) -> None:
    assert ProjectFolder(str(project)).read(name) is None


def test_a_folder_that_is_a_link_out_is_not_listed(project: Path) -> None:
    (project / ".claude/commands").symlink_to(project.parent / "outside")
    (project / ".claude/agents/more").symlink_to(project.parent / "outside")
    folder = ProjectFolder(str(project))
    assert folder.list_names(".claude/commands", ".md") == []
    assert not any("three" in name for name in folder.list_names(".claude/agents", ".md"))


def test_a_project_that_is_a_link_is_read_where_it_lies(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other-name").symlink_to(project)
    assert ProjectFolder(str(tmp_path / "other-name")).text("CLAUDE.md") is not None


def test_a_neighbour_whose_name_begins_alike_is_outside(project: Path) -> None:
    beside = project.parent / "work-too"
    beside.mkdir()
    (beside / "note.md").write_text("private")
    (project / "CLAUDE.local.md").symlink_to(beside / "note.md")
    assert ProjectFolder(str(project)).text("CLAUDE.local.md") is None


def test_a_huge_file_is_cut_and_a_pipe_is_passed_over(project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"x" * 600_000)
    os.mkfifo(project / "CLAUDE.local.md")
    folder = ProjectFolder(str(project))
    found = folder.text("AGENTS.md")
    assert found is not None
    assert found.is_cut
    assert len(found.text) < found.size
    assert folder.text("CLAUDE.local.md") is None


@pytest.mark.parametrize("path", ["", "work", "/", "//server/share", "\\\\server\\share", "/no/where", "/\0"])
def test_what_is_no_folder_of_this_machine_is_not_there(path: str) -> None:
    folder = ProjectFolder(path)
    assert not folder.exists
    assert folder.text("CLAUDE.md") is None
    assert folder.list_names(".claude/agents", ".md") == []
