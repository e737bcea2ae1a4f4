"""A config folder part by part, and names from session text that try to lead out of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.builders.paths import agent_path, todo_name

from steno.format.paths import file_history_name, meta_path, session_path
from steno.store.client_folders import ConfigFolder, tool_result_path
from steno.store.discovery import discover_file

ONE = "11111111-2222-4333-8444-555555555555"
OUT = ["", ".", "..", "../x", "a/b", "nul\0byte"]


def put(path: Path, value: Any = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a config folder with something in every part."""
    folder = tmp_path / ".claude"
    put(folder / session_path("-p", ONE), b'{"parentUuid":null}\n')
    agent = agent_path("-p", ONE, "a1111111111111111")
    put(folder / agent, b"{}\n")
    put(folder / meta_path(agent), {"agentType": "Explore"})
    put(folder / f"projects/-p/{ONE}/custom-title.json", {"customTitle": "my title"})
    put(folder / f"projects/-p/{ONE}/tool-results/toolu_01.txt", b"big")
    put(folder / "projects/-p/memory/MEMORY.md", b"remember")
    put(folder / "projects/-p/sessions-index.json", {"version": 1, "entries": []})
    put(folder / "history.jsonl", b'{"display":"one"}\n{torn')
    put(folder / "todos" / todo_name(ONE), [{"content": "do"}])
    for number in (1, 2, 10):
        put(folder / f"tasks/{ONE}/{number}.json", {"id": str(number)})
    put(folder / f"tasks/{ONE}/.lock", b"")
    put(folder / f"file-history/{ONE}/{file_history_name('/x', 2)}", b"old")
    put(folder / f"file-history/{ONE}/stray", b"?")
    put(folder / "sessions/4711.json", {"pid": 4711, "sessionId": ONE})
    put(folder / "sessions/4711.key", b"secret")
    put(folder / "settings.json", {"env": {"A": "b"}})
    put(folder / "CLAUDE.md", b"be kind")
    put(folder / "plans/calm-fox.md", b"# plan")
    put(folder / "agents/review.md", b"")
    put(folder / "commands/git/commit.md", b"")
    put(folder / "skills/pdf/SKILL.md", b"")
    put(folder / "skills/pdf/more.md", b"")
    put(folder / "hooks/stop.sh", b"")
    put(folder / "jobs/j1/state.json", b"{}")
    put(folder / "paste-cache/0123456789abcdef.txt", b"pasted")
    put(folder / "shell-snapshots/snapshot.sh", b"")
    return folder


def test_every_part_of_a_config_folder_is_listed(home: Path) -> None:
    folder = ConfigFolder(str(home))
    assert folder.projects() == ["-p"]
    assert [one.place.session_id for one in folder.sessions()] == [ONE]
    assert [entry.display for entry in folder.history()] == ["one"]
    assert [[item.content for item in todo.items] for todo in folder.todos()] == [["do"]]
    assert [item.id for item in folder.tasks(ONE)] == ["1", "2", "10"]
    assert [backup.name.version for backup in folder.backups(ONE)] == [2]
    assert [process.pid for process in folder.live_processes()] == [4711]
    assert [one.place.name for one in folder.memory("-p")] == ["MEMORY.md"]
    assert [one.place.name for one in folder.plans()] == ["calm-fox"]
    assert [one.place.name for one in folder.agent_defs()] == ["review"]
    assert [one.place.name for one in folder.commands()] == ["git/commit"]
    assert [one.place.name for one in folder.skills()] == ["pdf"]
    assert [one.place.name for one in folder.hooks()] == ["stop.sh"]
    assert [one.place.name for one in folder.jobs()] == ["j1/state.json"]
    assert [one.place.name for one in folder.pastes()] == ["0123456789abcdef.txt"]
    assert folder.instructions() == "be kind"
    assert folder.text(folder.plans()[0].path) == "# plan"
    assert folder.problems == []


def test_the_small_files_of_a_session_are_read(home: Path) -> None:
    folder = ConfigFolder(str(home))
    session = discover_file(str(home / session_path("-p", ONE)))
    meta = folder.agent_meta(discover_file(str(home / agent_path("-p", ONE, "a1111111111111111"))))
    assert folder.custom_title(session) == "my title"
    assert meta is not None
    assert meta.agent_type == "Explore"
    index = folder.sessions_index("-p")
    assert index is not None
    assert index.version == 1


def test_settings_come_out_masked(home: Path) -> None:
    read = ConfigFolder(str(home)).settings()
    assert read is not None
    assert read.env_names == ("A",)
    assert '"b"' not in read.masked
    assert ConfigFolder(str(home)).settings(local=True) is None


def test_damage_is_gathered_with_the_file_it_was_met_in(home: Path) -> None:
    folder = ConfigFolder(str(home))
    folder.history()
    assert [(note.path, note.damage.id) for note in folder.damage] == [
        (str(home / "history.jsonl"), "sidecar.not-json")
    ]


def test_a_folder_without_anything_gives_nothing_and_no_problem(tmp_path: Path) -> None:
    folder = ConfigFolder(str(tmp_path))
    session = discover_file(str(put(tmp_path / "x.jsonl", b"{}")))
    assert (folder.projects(), folder.history(), folder.todos(), folder.live_processes()) == ([], (), [], [])
    assert (folder.settings(), folder.instructions(), folder.skills()) == (None, "", [])
    assert (folder.custom_title(session), folder.agent_meta(session)) == ("", None)
    assert folder.file_history_dir(ONE) is None
    assert folder.problems == []


def test_the_folder_around_a_transcript_is_found(home: Path) -> None:
    around = ConfigFolder.containing(str(home / session_path("-p", ONE)))
    assert around is not None
    assert around.path == str(home)
    assert ConfigFolder.containing(str(home.parent / "x.jsonl")) is None


@pytest.mark.parametrize(
    "recorded",
    [
        "toolu_01.txt",
        "/home/ada/.claude/projects/-p/x/tool-results/toolu_01.txt",
        "C:\\Users\\ada\\.claude\\tool-results\\toolu_01.txt",
        "../../../toolu_01.txt",
    ],
)
def test_a_saved_result_is_found_in_the_sessions_own_folder_only(home: Path, recorded: str) -> None:
    session = home / session_path("-p", ONE)
    expected = session.with_suffix("") / "tool-results" / "toolu_01.txt"
    assert tool_result_path(str(session), recorded) == str(expected)


@pytest.mark.parametrize("recorded", ["", "..", "/etc/passwd", "x/..", "nul\0", "gone.txt"])
def test_a_saved_result_that_is_not_there_is_none(home: Path, recorded: str) -> None:
    assert tool_result_path(str(home / session_path("-p", ONE)), recorded) is None


@pytest.mark.parametrize("name", OUT)
def test_names_from_session_text_do_not_lead_out_of_the_folder(home: Path, name: str) -> None:
    put(home / "x" / "1.json", {"id": "outside"})
    put(home / "file-history" / file_history_name("/x", 1), b"")
    folder = ConfigFolder(str(home))
    assert folder.tasks(name) == []
    assert folder.backups(name) == []
    assert folder.memory(name) == []
    assert folder.file_history_dir(name) is None
    assert folder.backup_path(name, file_history_name("/x", 1)) is None
    assert folder.backup_path(ONE, name) is None
    assert folder.sessions_index(name) is None


def test_a_backup_is_found_by_its_name(home: Path) -> None:
    name = file_history_name("/x", 2)
    expected = home / "file-history" / ONE / name
    assert ConfigFolder(str(home)).backup_path(ONE, name) == str(expected)
    assert ConfigFolder(str(home)).backup_path(ONE, "stray") is None


@pytest.mark.skipif(os.name == "nt", reason="needs pipes and links of POSIX")
def test_a_pipe_in_place_of_a_small_file_is_reported(home: Path) -> None:
    (home / "settings.json").unlink()
    os.mkfifo(home / "settings.json")
    (home / "skills" / "loop").symlink_to("loop")
    folder = ConfigFolder(str(home))
    assert folder.settings() is None
    assert [one.place.name for one in folder.skills()] == ["pdf"]
    assert [problem.kind for problem in folder.problems] == ["special"]
