"""What the small files around a session hold, whole and damaged."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format import sidecars
from steno.format.client_settings import MASK, Hook, read_settings
from steno.format.paths import file_history_name
from steno.format.sidecars import FileBackup, HistoryEntry, Paste, ReadResult, TodoItem

SID = "62ecc684-5437-43ff-95cf-5c331fca7ea1"
READERS = (
    sidecars.read_agent_meta,
    sidecars.read_custom_title,
    sidecars.read_history,
    sidecars.read_live_process,
    sidecars.read_sessions_index,
    sidecars.read_task,
    sidecars.read_todos,
    read_settings,
)
FIELD_NAMES = st.sampled_from(
    ["sessionId", "entries", "pastedContents", "timestamp", "blocks", "pid", "env", "hooks", "id"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(FIELD_NAMES | st.text(), inner),
)


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def ids(read: ReadResult[Any]) -> list[str]:
    return [note.id for note in read[1]]


def test_every_field_of_a_meta_file_is_read() -> None:
    meta, damage = sidecars.read_agent_meta(
        as_bytes(
            {
                "agentType": "general-purpose",
                "isBuiltIn": True,
                "launchedWithDefaults": True,
                "description": "Look around",
                "toolUseId": "toolu_01",
                "spawnDepth": 2,
                "requestShape": "background",
                "requestNonInteractive": True,
                "pickedEffortModel": "claude-opus-5-5",
                "finished": True,
                "fromTheFuture": {},
            }
        )
    )
    assert damage == ()
    assert meta == sidecars.AgentMeta(
        agent_type="general-purpose",
        is_built_in=True,
        launched_with_defaults=True,
        description="Look around",
        tool_use_id="toolu_01",
        spawn_depth=2,
        request_shape="background",
        request_non_interactive=True,
        picked_effort_model="claude-opus-5-5",
        finished=True,
    )


def test_a_field_of_the_wrong_type_costs_no_other_field() -> None:
    raw = as_bytes({"agentType": 7, "spawnDepth": "deep", "description": "x", "finished": None})
    meta, damage = sidecars.read_agent_meta(raw)
    assert meta is not None
    assert (meta.agent_type, meta.spawn_depth, meta.description) == ("", 0, "x")
    assert [(note.id, note.message) for note in damage] == [
        ("sidecar.shape", "unexpected agentType"),
        ("sidecar.shape", "unexpected spawnDepth"),
    ]


def test_a_history_line_is_read_with_its_pastes() -> None:
    raw = as_bytes(
        {
            "display": "[Pasted text #1 +39 lines] look",
            "pastedContents": {
                "1": {"id": 1, "type": "text", "content": "line"},
                "2": {"id": 2, "type": "text", "contentHash": "0123456789abcdef"},
            },
            "timestamp": 1794724877359,
            "project": "/home/ada/work",
            "sessionId": SID,
        }
    )
    entries, damage = sidecars.read_history(raw + b"\n")
    assert damage == ()
    assert entries == (
        HistoryEntry(
            display="[Pasted text #1 +39 lines] look",
            timestamp=1794724877359,
            project="/home/ada/work",
            session_id=SID,
            pasted_contents=(
                Paste(id=1, type="text", content="line"),
                Paste(id=2, type="text", content_hash="0123456789abcdef"),
            ),
        ),
    )


def test_a_bad_history_line_is_noted_where_it_lies_and_the_others_are_read() -> None:
    good = as_bytes({"display": "one"})
    entries, damage = sidecars.read_history(good + b"\n\n{torn\n[]\n" + good)
    assert [entry.display for entry in entries] == ["one", "one"]
    at = len(good) + 2
    assert [(note.id, note.span.offset, note.span.length) for note in damage] == [
        ("sidecar.not-json", at, len("{torn")),
        ("sidecar.not-object", at + len("{torn\n"), len("[]")),
    ]


def test_pastes_that_are_no_object_are_noted() -> None:
    entries, damage = sidecars.read_history(as_bytes({"display": "x", "pastedContents": [1]}))
    assert entries[0].pasted_contents == ()
    assert [note.message for note in damage] == ["unexpected pastedContents"]


def test_a_todo_list_is_read_and_an_empty_one_is_no_damage() -> None:
    item = {"content": "First", "status": "in_progress", "activeForm": "Doing it"}
    assert sidecars.read_todos(as_bytes([item])) == (
        (TodoItem(content="First", status="in_progress", active_form="Doing it"),),
        (),
    )
    assert sidecars.read_todos(b"[]") == ((), ())
    assert ids(sidecars.read_todos(b"[1]")) == ["sidecar.shape"]
    assert ids(sidecars.read_todos(b"{}")) == ["sidecar.not-object"]
    assert ids(sidecars.read_todos(b"")) == ["sidecar.not-json"]


def test_a_task_is_read_with_what_it_blocks() -> None:
    item, damage = sidecars.read_task(as_bytes({"id": "1", "blocks": ["2"], "blockedBy": ["3", 4]}))
    assert item is not None
    assert (item.id, item.blocks, item.blocked_by) == ("1", ("2",), ())
    assert [note.message for note in damage] == ["unexpected blockedBy"]


def test_an_index_is_read_entry_by_entry() -> None:
    index, damage = sidecars.read_sessions_index(
        as_bytes(
            {
                "version": 1,
                "originalPath": "/home/ada",
                "entries": [{"sessionId": SID, "fileMtime": 1.5, "isSidechain": False}, "no entry"],
            }
        )
    )
    assert index is not None
    assert (index.version, index.original_path) == (1, "/home/ada")
    assert [(entry.session_id, entry.file_mtime) for entry in index.entries] == [(SID, 1)]
    assert [note.message for note in damage] == ["unexpected entries"]


def test_a_live_process_is_read_in_both_spellings_of_its_session() -> None:
    now, _ = sidecars.read_live_process(as_bytes({"pid": 4711, "sessionId": SID, "status": "busy"}))
    older, _ = sidecars.read_live_process(as_bytes({"session_id": SID, "cwd": "/home/ada"}))
    assert now is not None
    assert older is not None
    assert (now.pid, now.session_id, now.status) == (4711, SID, "busy")
    assert (older.session_id, older.cwd) == (SID, "/home/ada")


def test_a_custom_title_is_read() -> None:
    title, damage = sidecars.read_custom_title(b'{"customTitle":"my title"}')
    assert title == sidecars.CustomTitle("my title")
    assert damage == ()


def test_text_that_is_not_utf8_is_shown_and_noted() -> None:
    assert sidecars.read_text("größe".encode()) == ("größe", ())
    shown, damage = sidecars.read_text(b"ab\xffcd")
    assert shown == "ab\N{REPLACEMENT CHARACTER}cd"
    assert [(note.id, note.span.offset) for note in damage] == [("line.utf8", 2)]


@given(st.text(max_size=50), st.integers(0, 999_999_999))
def test_a_backup_knows_its_file(path: str, version: int) -> None:
    backup = sidecars.parse_backup_name(file_history_name(path, version))
    assert backup is not None
    assert backup.version == version
    assert backup.is_of(path)
    assert not backup.is_of(path + "x")


@pytest.mark.parametrize("name", ["", "x@v1", "094de626321f00d3", "../094de626321f00d3@v1"])
def test_what_is_no_name_of_a_backup_is_none(name: str) -> None:
    assert sidecars.parse_backup_name(name) is None
    assert sidecars.parse_backup_name("094de626321f00d3@v7") == FileBackup("094de626321f00d3", 7)


SECRETS: dict[str, Any] = {
    "env": {"HARMLESS": "env-value"},
    "apiKeyHelper": "helper-value",
    "mcp": {"x": {"headers": {"Authorization": "header-value"}, "args": ["--fine"]}},
    "tokens": ["token-value", {"deep": 123456}],
    "dbPassword": "password-value",
    "clientSecret": None,
}


def test_no_secret_of_a_settings_file_gets_out() -> None:
    read, damage = read_settings(as_bytes({"model": "opus", "cleanupPeriodDays": 30, **SECRETS}))
    assert read is not None
    assert damage == ()
    assert "-value" not in str(read)
    assert "123456" not in str(read)
    shown = json.loads(read.masked)
    assert shown["env"] == {"HARMLESS": MASK}
    assert shown["mcp"]["x"]["args"] == ["--fine"]
    assert shown["cleanupPeriodDays"] == 30
    assert shown["clientSecret"] is None
    assert read.env_names == ("HARMLESS",)


def test_permissions_and_hooks_of_a_settings_file_are_read() -> None:
    read, _ = read_settings(
        as_bytes(
            {
                "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(.env)", 3]},
                "hooks": {
                    "Stop": [{"hooks": [{"type": "command", "command": "echo done"}]}],
                    "PostToolUse": [{"matcher": "Edit", "hooks": [{"command": "fmt"}, None]}],
                },
            }
        )
    )
    assert read is not None
    assert (read.allow, read.deny, read.ask) == (("Bash(ls:*)",), ("Read(.env)",), ())
    assert read.hooks[:2] == (Hook("Stop", "", "echo done"), Hook("PostToolUse", "Edit", "fmt"))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\0",
        b"nul",
        b"7",
        b'"text"',
        b"[[[[",
        b"\xff\xfe{}",
        b'{"a":' * 700 + b'"\\ud800"' + b"}" * 700,
        b"[" * 100_000,
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_bytes_that_are_no_sidecar_give_nothing_and_a_note(read: Any, raw: bytes) -> None:
    value, damage = read(raw)
    assert not value
    assert damage or not raw.strip()


@given(st.sampled_from(READERS), st.binary(max_size=200))
def test_no_reader_raises_on_any_bytes(read: Any, raw: bytes) -> None:
    read(raw)


@given(st.sampled_from(READERS), JSON)
def test_no_reader_raises_on_any_json(read: Any, value: Any) -> None:
    read(as_bytes(value))


@pytest.mark.corpus
def test_every_real_sidecar_is_read_without_a_note(shared: Path) -> None:
    real = shared / "corpus" / "real-client"
    read = 0
    for pattern, reader in (
        ("*/*/projects/*/*/subagents/*.meta.json", sidecars.read_agent_meta),
        ("*/*/projects/*/*/custom-title.json", sidecars.read_custom_title),
        ("*/*/projects/*/sessions-index.json", sidecars.read_sessions_index),
        ("*/*/history.jsonl", sidecars.read_history),
        ("*/*/todos/*.json", sidecars.read_todos),
        ("*/*/tasks/*/*.json", sidecars.read_task),
    ):
        files = list(real.glob(pattern))
        assert files, pattern
        for file in files:
            value, damage = reader(file.read_bytes())
            assert value is not None
            assert damage == (), file
            read += 1
    assert read > 200
