"""002: exports, `ls` and the index count the same step records, and decide the same by them."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.step_files import OVER, RUNNING, session_file, session_id
from tests.corpus import transcripts
from tests.published.files import FILES, FLAT

from steno.format.dialects.detection import convert_if_dialect, convert_source
from steno.format.source import BytesSource
from steno.index import database
from steno.index.database import DATABASE_NAME, SCHEMA_VERSION, IndexLocation, open_for_writing
from steno.index.sync.extract import extract_rows
from steno.index.sync.updater import sync
from steno.report.session_list import SessionFilter, count_by_feature, count_by_step_records, list_sessions
from steno.session.session_status import StepCounts, count_record
from steno.session.transcript import load
from steno.store.discovery import discover_file
from steno.store.environment import now
from steno.store.session_counts import count_step_records

KINDS: list[Any] = [
    {"type": "user", "message": {"role": "user", "content": "Go"}},
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}]}},
    {"type": "assistant", "message": {"content": "Done"}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done"}]}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": " "}]}},
    {"type": "assistant", "message": {"content": [{"type": "new"}, {"type": "text", "text": "x"}]}},
    {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t", "name": "B"}]}},
    {"type": "assistant", "message": 7},
    {"type": "user", "isSidechain": True, "message": {"role": "user", "content": "Go"}},
    {"type": "human", "message": "Go"},
    {"type": "progress", "data": {"message": {"type": "user"}}},
    {"type": "summary", "summary": "user"},
]


def _counts(data: bytes, path: Path) -> list[StepCounts | None]:
    path.write_bytes(data)
    source = convert_if_dialect(BytesSource(data))
    if extract_rows(source, 1).in_dialect:
        source = convert_source(source)
    transcript = load(source)
    exported = StepCounts()
    for node in transcript.nodes:
        exported = count_record(exported, transcript.record(node))
    gathered = extract_rows(source, 1)
    if gathered.in_dialect:
        gathered = extract_rows(convert_source(source), 1)
    return [exported, gathered.state.step_counts, count_step_records(discover_file(str(path)))]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.sampled_from(("\n", "", "\r\n", "\n\n\0\0")),
            st.sampled_from((None, (",", ":"))),
            st.integers(0, 30),
        ),
        max_size=8,
    )
)
def test_any_records_are_counted_alike(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[Any, str, Any, int]]
) -> None:
    data = b""
    for number, (record, end, separators, cut) in enumerate(records):
        line = json.dumps({"uuid": str(number), **record}, separators=separators)
        data += (line[:-cut] if cut > 20 else line).encode() + end.encode()
    one, *others = _counts(data, tmp_path_factory.getbasetemp() / f"{session_id(1)}.jsonl")
    assert others == [one, one], data


@pytest.mark.parametrize("case", sorted(FILES))
def test_converted_files_are_counted_alike(tmp_path: Path, case: str) -> None:
    one, *others = _counts(FILES[case]().data, tmp_path / f"{session_id(1)}.jsonl")
    assert others == [one, one]
    assert one is not None
    assert one.records


def test_real_files_are_counted_alike(shared: Path, tmp_path: Path) -> None:
    for path in transcripts(shared)[::7]:
        data = path.read_bytes()
        one, *others = _counts(data, tmp_path / f"{session_id(1)}.jsonl")
        assert others == [one, one], path


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    """An index of sessions at every limit of the list rule, numbered by what they have."""
    folder = tmp_path_factory.mktemp("listed")
    for records in (4, 5, 9, 10):
        for answered in (False, True):
            for running in (False, True):
                number = records * 100 + answered * 10 + running
                time = RUNNING if running else OVER
                session_file(folder / "claude", number, records, answered=answered, time=time)
    home = IndexLocation(str(folder / "index"), (str(folder / "claude"),))
    sync(home)
    return open_for_writing(home.folder)


def _choice(**options: Any) -> SessionFilter:
    return SessionFilter(now=int(now() * 1000), **options)


def _numbers(connection: sqlite3.Connection, choice: SessionFilter) -> set[int]:
    rows = list_sessions(connection, choice, limit=99).rows
    return {int(row.id.replace("-", "")[-8:], 16) for row in rows}


def test_002_list_rule_in_the_index_is_the_one_of_exports(connection: sqlite3.Connection) -> None:
    shown = {401, 411, 501, 511, 901, 911, 1001, 1011, 510, 910, 1000, 1010}
    assert _numbers(connection, _choice(listed=True)) == shown
    assert _numbers(connection, _choice(min_steps=9)) == {900, 901, 910, 911, 1000, 1001, 1010, 1011}
    assert {number // 10 % 10 for number in _numbers(connection, _choice(has=("answered",)))} == {1}
    both = _choice(min_steps=5, has=("answered",), listed=True)
    assert _numbers(connection, both) == {510, 511, 910, 911, 1010, 1011}


def test_002_list_rule_counts_do_not_depend_on_rows(connection: sqlite3.Connection) -> None:
    assert count_by_step_records(connection, _choice(min_steps=7)) == ({5: 12, 7: 8, 10: 4}, 7)
    assert count_by_step_records(connection, _choice(listed=True)) == ({5: 10, 10: 4}, 12)
    assert count_by_feature(connection, _choice(listed=True), ())[0]["answered"] == 7
    assert list_sessions(connection, _choice(listed=True), limit=1).total == 12


def test_an_archived_session_does_not_run(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("BEGIN")
        connection.execute("UPDATE sessions SET gone = 1 WHERE step_records = 4")
        assert 401 not in _numbers(connection, _choice(listed=True))
        connection.execute("ROLLBACK")


def test_an_index_of_the_version_before_is_upgraded_and_read_again(tmp_path: Path) -> None:
    root = tmp_path / "claude"
    session_file(root, 1, 9)
    flat = root / "projects" / "-home-ada-tide" / f"{session_id(2)}.jsonl"
    flat.write_bytes(FLAT[0]().data)
    home = IndexLocation(str(tmp_path / "index"), (str(root),))
    Path(home.folder).mkdir()
    old = sqlite3.connect(Path(home.folder) / DATABASE_NAME)
    for script in ("schema.sql", "schema-2.sql", "schema-3.sql"):
        old.executescript((Path(database.__file__).parent / script).read_text())
    old.execute("PRAGMA user_version = 3")
    old.execute("INSERT INTO facts VALUES ('rules', '5')")
    old.execute(
        "INSERT INTO files (id, root, path, size, mtime, device, inode) "
        "VALUES (1, ?, ?, 1, 1, 1, 1)", (str(root), str(tmp_path / "gone.jsonl"))
    )  # fmt: skip
    old.execute(
        "INSERT INTO sessions (file, id, agent, project, branch, title, named, version, model, "
        "turns, messages, calls, failed, hidden, rewound, last_uuid) "
        "VALUES (1, 'old', '', '', '', 'Old', 0, '', '', 1, 2, 0, 0, 0, 0, '')"
    )
    old.commit()
    old.close()
    sync(home)
    connection = open_for_writing(home.folder)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert database.has_schema(connection)
    rows = connection.execute("SELECT id, step_records, answered, dialect FROM sessions").fetchall()
    assert sorted(rows) == [(session_id(1), 9, 1, "claude"), (session_id(2), 4, 1, "spec-000"), ("old", 0, 0, "claude")]
    connection.close()
    shutil.rmtree(home.folder)
