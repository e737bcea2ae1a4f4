"""What of each record can be searched, and what becomes of all its other bytes."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.index.searching import Searched, harbour, write
from tests.index.transcripts import TRANSCRIPTS, Script, call, result
from tests.recorded_answers import assert_recorded, plain

from steno.format.records import Gap, Record
from steno.format.source import BytesSource
from steno.index.line_decoder import IndexedLine, count_changed_lines, count_patch_lines, line_from_record, to_millis
from steno.index.search.audit import audit_index, classify_strings, unsearched_reason
from steno.index.searchable_text import is_binary, is_result_copy, text_parts
from steno.index.sync.extract import decoded_lines

ANSWERS: Final = Path(__file__).with_name("answers")
_BLOCKS: Final[dict[str, Any]] = {
    "text": {"type": "text", "text": "some words", "citations": [{"c": "cited"}]},
    "empty text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "hm hm", "signature": "c2ln"},
    "redacted": {"type": "redacted_thinking", "data": "cmVk"},
    "image": {"type": "image", "source": {"type": "base64", "data": "aW1n"}},
    "document": {"type": "document", "title": "Tides", "source": {"data": "cGRm"}},
    "call": {**call("Bash", command="ls -l", deep={"a": ["b", {"c": "d"}], "n": 1, "e": "f"})},
    "call of text": {"type": "tool_use", "id": "x", "name": "N", "input": "plain input"},
    "call of nothing": {"type": "tool_use", "id": "x", "name": "N", "cache_control": {"a": "b"}},
    "server call": {"type": "server_tool_use", "id": "s", "name": "web", "input": {"query": "q r"}},
    "result": result(content="out put"),
    "failed result": result(content="no", is_error=True),
    "result of blocks": result(
        content=[
            {"type": "text", "text": "one"},
            {"type": "image", "source": {"data": "aW1n"}},
            {"type": "text", "text": "two", "note": "three"},
            "bare",
        ]
    ),
    "result of nothing": result(content=None),
    "odd": {"type": "odd", "note": "a note", "id": "n"},
    "odd with input": {"type": "odd", "input": {"a": "an input"}},
    "reference": {"type": "tool_reference", "tool_name": "Grep"},
}
_LONG: Final = "x" * 4_097
_RECORDS: Final[dict[str, dict[str, Any]]] = {
    "note": {"type": "system", "content": "a note", "uuid": "u", "level": "info", "cwd": "/p"},
    "note with deep values": {"type": "x", "a": {"b": ["c d", {"e": "f"}]}, "g": None, "h": 3},
    "note of data": {"type": "x", "a": _LONG, "b": "words"},
    "custom title": {"type": "custom-title", "customTitle": "Mine", "other": "state"},
    "ai title": {"type": "ai-title", "aiTitle": "Its"},
    "summary": {"type": "summary", "summary": "Sum", "leafUuid": "z"},
    "tag": {"type": "tag", "tag": "ship it"},
    "agent name": {"type": "agent-name", "agentName": "Ada"},
    "empty title": {"type": "custom-title", "customTitle": "", "note": "noted"},
    "progress": {"type": "progress", "data": "on the way"},
    "last prompt": {"type": "last-prompt", "lastPrompt": "again"},
    "snapshot": {"type": "file-history-snapshot", "snapshot": {"a": "b"}},
    "mode": {"type": "mode", "mode": "plan"},
    "no type": {"text": "words"},
    "summary prompt": {
        "type": "user", "isCompactSummary": True, "message": {"content": "All that was"},
    },
    "meta prompt": {"type": "user", "isMeta": True, "message": {"content": "Caveat"}},
    "error answer": {"type": "assistant", "isApiErrorMessage": True, "message": {"content": "Err"}},
    "text answer": {"type": "assistant", "message": {"content": "Aye"}, "extra": {"a": "state"}},
    "empty prompt": {"type": "user", "message": {"content": ""}},
    "no content": {"type": "user", "message": {}},
    "odd message": {"type": "user", "message": "bare"},
    "long word": {"type": "user", "message": {"content": "a " + "y" * 512 + " b " + "z" * 511}},
    "long wide word": {"type": "user", "message": {"content": "é" * 256 + " " + "é" * 255}},
    "long line": {"type": "user", "message": {"content": "word " * 120 + "q" * 600}},
    "surrogate": {"type": "user", "message": {"content": "a \ud800 b"}},
    "copy": {
        "type": "user", "message": {"content": [result(content="out put")]},
        "toolUseResult": {"stdout": "out put"},
    },
    "copy as text": {
        "type": "user", "message": {"content": [result(content="x")]}, "toolUseResult": "Error: x",
    },
    "own words": {
        "type": "user", "message": {"content": [result(content="out put")]},
        "toolUseResult": {"unseen": ["out", "more words", {"and": "these"}], "n": _LONG},
    },
    "own words twice": {
        "type": "user", "message": {"content": [result(1, "one"), result(2, "two")]},
        "toolUseResult": {"unseen": ["one", "two", "three"]},
    },
    "own words said elsewhere": {
        "type": "user",
        "message": {"content": [result(1, "one"), {"type": "text", "text": "two"}]},
        "toolUseResult": {"unseen": ["one", "two", "three"]},
    },
    "own words, no result says them": {
        "type": "user", "message": {"content": [{"type": "text", "text": "x"}, result(1, [])]},
        "toolUseResult": {"unseen": ["", "x"]},
    },
    "own words without a result": {
        "type": "user", "message": {"content": "hello"}, "toolUseResult": {"unseen": "words"},
    },
    "own words of blocks": {
        "type": "user",
        "message": {"content": [result(content=[{"type": "text", "text": "in side"}])]},
        "toolUseResult": {"unseen": ["side", "out"]},
    },
    **{
        f"answer: {name}": {"type": "assistant", "message": {"content": [block]}}
        for name, block in _BLOCKS.items()
    },
    "all blocks": {"type": "user", "message": {"content": list(_BLOCKS.values())}},
}  # fmt: skip


def _line(raw: bytes) -> tuple[IndexedLine, bytes]:
    (piece,) = decoded_lines(BytesSource(raw))
    if isinstance(piece, Record):
        return line_from_record(piece), piece.line
    assert not isinstance(piece, Gap)
    return piece[0], piece[1]


def test_the_words_of_every_record_are_as_recorded() -> None:
    """What is searched, by kind and tool; and what becomes of every string of the record."""
    answers: dict[str, object] = {}
    for name, record in _RECORDS.items():
        line, raw = _line(json.dumps(record).encode())
        parts = text_parts(line, raw)
        said = "\n".join(part.text for part in parts)
        leaves = classify_strings(line, raw, said)
        answers[name] = {
            "parts": [_part(part) for part in parts],
            "silence": unsearched_reason(line),
            "leaves": dict(sorted(leaves.sizes.items())),
            "odd": leaves.is_mismatched,
        }
    assert_recorded(ANSWERS / "words.json", answers)


def _part(part: msgspec.Struct) -> list[Any]:
    values = list(msgspec.structs.astuple(part))
    return [f"{v[:9]}…{len(v)}" if isinstance(v, str) and len(v) > 99 else v for v in values]


def test_words_that_the_index_was_not_given_are_noticed() -> None:
    """An audit counts what was said, and says where the index holds another length."""
    answers: dict[str, object] = {}
    for name in ("note", "text answer", "answer: call", "copy", "own words", "all blocks", "no type"):
        line, raw = _line(json.dumps(_RECORDS[name]).encode())
        for said in ("", "out put", "some other words that are longer " * 9, "a note", "Aye\n"):
            leaves = classify_strings(line, raw, said)
            answers[f"{name} / {said[:12]!r}"] = [dict(sorted(leaves.sizes.items())), leaves.is_mismatched]
    assert_recorded(ANSWERS / "other_words.json", answers)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("x" * 4_096, False),
        ("x" * 4_097, True),
        ("x" * 4_095 + " " + "x" * 9, False),
        ("x" * 4_096 + " " + "x" * 9, True),
        (" " + "x" * 5_000, False),
        ("x\n" * 3_000, False),
    ],
)
def test_data_is_long_and_has_no_space_at_its_beginning(text: str, *, data: bool) -> None:
    assert is_binary(text) is data


def test_the_shapes_of_the_clients_own_copies_are_known() -> None:
    first = (
        *("stdout", "type", "file", "filePath", "filenames", "mode", "oldTodos", "newTodos"),
        *("status", "bytes", "query", "content", "agentId", "isAgent", "success", "commandName"),
        *("message", "plan", "questions", "matches", "results"),
    )
    assert all(is_result_copy(json.dumps({name: 1}).encode()) for name in first)
    assert is_result_copy(b'"Error"')
    for other in (b'{"stdoutx":1}', b'{"other":1,"stdout":2}', b"[]", b"7", b"", b"{}"):
        assert not is_result_copy(other)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """An index of files with something for each reason."""
    found = Searched(tmp_path_factory.mktemp("audit"), [harbour()])
    folder = found.root / "projects" / "-p"
    folder.mkdir()
    names = ("call", "torn line", "blank lines", "two on a line", "odd field", "silent records")
    for number, name in enumerate(names):
        path = folder / f"00000000-0000-4000-8000-00000000000{number}.jsonl"
        path.write_bytes(TRANSCRIPTS[name]().bytes())
    rest = Script()
    for record in _RECORDS.values():
        rest.raw(record)
    (folder / "00000000-0000-4000-8000-000000000010.jsonl").write_bytes(rest.bytes())
    grown = folder / "00000000-0000-4000-8000-000000000011.jsonl"
    grown.write_bytes(TRANSCRIPTS["two turns"]().bytes())
    gone = folder / "00000000-0000-4000-8000-000000000012.jsonl"
    gone.write_bytes(TRANSCRIPTS["two turns"]().bytes())
    found.open()
    with grown.open("ab") as file:
        file.write(TRANSCRIPTS["call"]().bytes())
    gone.unlink()
    return found


def test_every_byte_of_every_file_is_counted_as_recorded(audited: Searched) -> None:
    answers: dict[str, object] = {}
    steps: list[int] = []
    for account in audit_index(audited.index.connection, audited.index.texts, steps.append):
        fields = plain(account)
        fields["path"] = Path(account.path).name
        fields["problem"] = account.problem.replace(str(audited.root), "")
        fields["bytes"], fields["records"] = dict(account.bytes), dict(account.records)
        fields["whole"] = account.is_complete
        answers[fields["path"]] = fields
        assert steps[-1] == account.size
    assert_recorded(ANSWERS / "audit.json", answers)


def test_records_that_the_tables_do_not_know_are_missing(audited: Searched, tmp_path: Path) -> None:
    """A message without its row is counted as missing, with all its bytes."""
    made = Searched(tmp_path, ())
    path = write(made.root, harbour())
    made.open()
    connection = made.index.connection
    connection.execute("PRAGMA query_only = OFF")
    kept = connection.execute("SELECT id, length FROM messages ORDER BY id").fetchall()
    connection.execute("DELETE FROM messages WHERE id = ?", (kept[3][0],))
    (account,) = audit_index(connection, made.index.texts, lambda _: None)
    assert account.bytes["missing"] == kept[3][1] + 1
    assert (account.records["missing"], account.is_complete) == (1, False)
    assert account.size == path.stat().st_size
    assert audited.root != made.root


def test_of_records_without_a_row_those_with_words_or_a_role_are_missing(tmp_path: Path) -> None:
    script = Script()
    records: list[tuple[str, dict[str, Any]]] = [
        ("words", {"type": "user", "uuid": "a", "message": {"role": "user", "content": "one"}}),
        ("words", {"type": "ai-title", "aiTitle": "two"}),
        ("role", {"type": "user", "uuid": "b", "message": {"role": "user", "content": ""}}),
        ("role", {"type": "assistant", "uuid": "c", "message": {"id": "m", "content": []}}),
        ("neither", {"type": "system", "subtype": "x", "uuid": "d"}),
    ]
    for _, record in records:
        script.raw(record)
    made = Searched(tmp_path, ())
    folder = made.root / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / "00000000-0000-4000-8000-000000000001.jsonl").write_bytes(script.bytes())
    made.open()
    connection = made.index.connection
    (before,) = audit_index(connection, made.index.texts, lambda _: None)
    assert (before.records, before.is_complete) == ({"words": 2, "form": 3}, True)
    connection.execute("PRAGMA query_only = OFF")
    connection.execute("DELETE FROM messages")
    (account,) = audit_index(connection, made.index.texts, lambda _: None)
    lengths = [len(line) + 1 for line in script.lines]
    assert account.records == {"missing": 4, "form": 1}
    assert account.bytes["missing"] == sum(lengths[:4])
    assert (account.documents, account.indexed, account.is_complete) == (0, 2, False)


def test_lines_of_changes_are_as_recorded() -> None:
    calls: dict[str, dict[str, Any]] = {
        "nothing": {},
        "same": {"old_string": "a\nb", "new_string": "a\nb"},
        "replaced": {"old_string": "a\nb\nc", "new_string": "a\nx\nc"},
        "put in front": {"old_string": "b", "new_string": "a\nb"},
        "put behind": {"old_string": "a", "new_string": "a\nb"},
        "repeated": {"old_string": "a\na", "new_string": "a\na\na"},
        "shorter": {"old_string": "a\na\na", "new_string": "a"},
        "all gone": {"old_string": "a\nb\n", "new_string": ""},
        "written": {"content": "a\nb\n"},
        "written without an end": {"content": "a\nb"},
        "one blank line": {"content": "\n"},
        "cell": {"new_source": "x"},
        "both": {"new_string": "x", "content": "a\nb"},
        "odd": {"old_string": 7, "new_string": ["x"]},
        "edits": {"edits": [{"old_string": "a", "new_string": "b"}, 3, {"new_string": "c\nd"}]},
        "no edits": {"edits": [], "content": "x"},
        "odd edits": {"edits": "x", "content": "y"},
    }
    answers: dict[str, object] = {name: count_changed_lines(given) for name, given in calls.items()}
    for text in (
        *(b"", b"{}", b"[]", b'"x"', b'{"structuredPatch":null}', b'{"structuredPatch":[]}'),
        *(b'{"type":"create","structuredPatch":[]}', b'{"type":"update","structuredPatch":[]}'),
        b'{"type":"create","structuredPatch":[{"lines":["+a"]}]}',
        b'{"structuredPatch":[{"lines":["+a","-b"," c","","+"]},{"lines":["--d"]},{}]}',
        b'{"structuredPatch":[{"lines":"x"}]}',
    ):
        answers[text.decode()] = count_patch_lines(msgspec.Raw(text))
    assert_recorded(ANSWERS / "changes.json", answers)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T00:00:00.001+", None),
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T00:00:00,250Z", 250),
        ("1970-13-01T00:00:00.000Z", None),
        ("1970-01-01T00:00:60.000Z", None),
        ("1970-01-01T01:00:00+01:00", 0),
        ("", None),
        ("soon", None),
        (None, None),
    ],
)
def test_times_in_other_forms_are_read_or_left_out(stamp: str | None, expected: int | None) -> None:
    assert to_millis(stamp) == expected
