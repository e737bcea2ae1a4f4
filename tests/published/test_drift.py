"""`steno drift` on what the published descriptions have, and on the changes that they look for."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.published.files import FILES
from tests.published.forms import Client, Flat, Json

from steno.check.checkup import check
from steno.cli.commands.maintenance.drift import command
from steno.format.source import BytesSource

PAGE = "docs/reference/published-descriptions.md"
TIME = "2026-01-01T10:00:00.000Z"


def drift(path: Path) -> tuple[int, list[Json]]:
    ran = CliRunner().invoke(command, [str(path), "--json"])
    return ran.exit_code, json.loads(ran.stdout)["drift"]


def differences(folder: Path, records: list[Json]) -> list[tuple[str, str, str]]:
    path = folder / "projects" / "p" / "0c9be80c-c704-4d9f-928e-22f500ed824f.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in records))
    for named in (path, path.parent):
        code, found = drift(named)
        assert code == (1 if found else 0)
    return [(each["code"], each["kind"], each["path"]) for each in found]


def client(*more: Json) -> list[Json]:
    file = Client()
    file.user("Question")
    return [*file.records, *more]


def queue(operation: str) -> Json:
    return {"type": "queue-operation", "operation": operation, "timestamp": TIME, "sessionId": "s"}


def snapshot(backups: Json) -> Json:
    inner = {"messageId": "m", "trackedFileBackups": backups, "timestamp": TIME}
    kind = "file-history-snapshot"
    return {"type": kind, "messageId": "m", "snapshot": inner, "isSnapshotUpdate": True}


RETRY = {
    "type": "system",
    "subtype": "error",
    "level": "error",
    "content": "Overloaded",
    "retryAttempt": 1,
    "maxRetries": 3,
    "retryInMs": 1000,
    "uuid": "y",
    "timestamp": TIME,
}


@pytest.mark.parametrize(
    ("record", "kind", "written"),
    [(queue("complete"), "queue-operation/complete", "enqueue"), (RETRY, "system/error", "system/api_error")],
)
def test_a_form_of_a_description_is_told_as_one(record: Json, kind: str, written: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in client(record)))
    _, found = drift(path)
    (told,) = [each for each in found if each["kind"] == kind]
    assert (told["code"], told["docs"]) == ("PUBLISHED_FORM", PAGE)
    assert written in told["sample"]
    assert PAGE in CliRunner().invoke(command, [str(path), "--width", "200"]).stdout


def test_the_four_changes_that_a_description_looks_for_are_told(tmp_path: Path) -> None:
    changed = queue("enqueue") | {"newField": 1, "timestamp": 5}
    del changed["sessionId"]
    found = differences(tmp_path, client({"type": "banana", "sessionId": "s"}, changed))
    assert ("UNKNOWN_TYPE", "banana", "") in found
    assert ("NEW_FIELD", "queue-operation/enqueue", "newField") in found
    assert ("TYPE_MISMATCH", "queue-operation/enqueue", "timestamp") in found
    assert ("MISSING_FIELD", "queue-operation/enqueue", "sessionId") in found


def test_the_content_of_a_file_in_a_snapshot_is_told(tmp_path: Path) -> None:
    records = client(snapshot({"a.md": "the whole text"}))
    found = differences(tmp_path, records)
    path = "snapshot.trackedFileBackups.*"
    assert ("TYPE_MISMATCH", "file-history-snapshot", path) in found
    data = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    noted = [each for each in check(BytesSource(data)).findings if each.id == "fields.backup-text"]
    assert [(each.severity, each.location.line) for each in noted] == [("info", 2)]
    backup = {"backupFileName": "a@v1", "version": 1, "backupTime": TIME}
    data = json.dumps(snapshot({"a.md": backup})).encode() + b"\n"
    found_ids = {each.id for each in check(BytesSource(data)).findings}
    assert "fields.backup-text" not in found_ids


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"message": "conversation_folded"}, ("UNKNOWN_TYPE", "compact_system/conversation_folded", "")),
        ({"message": None}, ("MISSING_FIELD", "compact_system", "message")),
    ],
)
def test_an_operation_that_the_description_does_not_have_is_told(
    change: Json, told: tuple[str, str, str], tmp_path: Path
) -> None:
    file = Flat()
    file.user("Question")
    file.compacts("compacted", metadata={"preservedMessages": 1})
    file.records[-1] |= change
    file.says("Answer.", subtype="musing")
    found = differences(tmp_path, file.records)
    assert told in found
    assert ("UNKNOWN_TYPE", "assistant/musing", "") in found


@pytest.mark.parametrize("case", sorted(FILES))
def test_a_correct_file_of_a_dialect_does_not_drift(case: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(FILES[case]().data)
    _, found = drift(path)
    # What a tool is called with is the model's, not the format's.
    assert [each for each in found if not each["kind"].startswith("tool ")] == []
