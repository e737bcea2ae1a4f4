"""The database of the index: made, opened, migrated, and found by the folders it is for."""

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.index.searching import prompts, write

from steno.errors import Busy, NotFound, Unwritable
from steno.index import database
from steno.index.database import (
    DATABASE_NAME,
    SCHEMA_VERSION,
    IndexDamaged,
    IndexLocation,
    database_stamp,
    last_opened_folder,
    locate_index,
    open_for_reading,
    open_for_writing,
    open_index,
    transaction,
)
from steno.index.sync.updater import sync
from steno.store.file_lock import FileLock


def _sql(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]


# The database


def test_a_new_database_has_its_version_and_is_ready_to_write(tmp_path: Path) -> None:
    connection = open_for_writing(str(tmp_path / "i"))
    settings = {
        name: _sql(connection, f"PRAGMA {name}")
        for name in ("user_version", "journal_mode", "synchronous", "cache_size", "foreign_keys",
                     "busy_timeout")
    }  # fmt: skip
    assert settings == {
        "user_version": SCHEMA_VERSION,
        "journal_mode": "wal",
        "synchronous": 1,
        "cache_size": -65_536,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }
    assert last_opened_folder == [str(tmp_path / "i")]
    assert connection.isolation_level is None
    assert (tmp_path / "i" / DATABASE_NAME).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "i").stat().st_mode & 0o777 == 0o700
    # Other threads read with it too.
    thread = threading.Thread(target=lambda: connection.execute("SELECT 1"))
    thread.start()
    thread.join()
    connection.close()


def test_a_database_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME
    folder = Path(database.__file__).parent
    for scripts in (["schema.sql"], ["schema.sql", "schema-2.sql"], ["schema.sql", "schema-2.sql", "schema-3.sql"]):
        path.unlink(missing_ok=True)
        old = sqlite3.connect(path)
        for script in scripts:
            old.executescript((folder / script).read_text())
        old.execute(f"PRAGMA user_version = {len(scripts)}")
        old.commit()
        old.close()
        assert open_for_reading(str(tmp_path)) is None
        connection = open_for_writing(str(tmp_path))
        assert database.has_schema(connection)
        assert _sql(connection, "PRAGMA user_version") == SCHEMA_VERSION
        connection.close()


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    connection = open_for_writing(str(tmp_path))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(Unwritable) as refused:
        open_for_writing(str(tmp_path))
    assert str(refused.value) == f"{tmp_path / DATABASE_NAME} was written by a newer version of steno"
    assert refused.value.hint == "Update steno."
    assert open_for_reading(str(tmp_path)) is None


def test_a_folder_or_garbage_in_place_of_the_database_is_damage(tmp_path: Path) -> None:
    cure = "Run `steno sync --rebuild` to rebuild it."
    path = tmp_path / DATABASE_NAME
    path.mkdir()
    for act, said in ((open_for_writing, f"{path} is a directory"), (open_for_reading, f"{path} is not a file")):
        with pytest.raises(IndexDamaged) as refused:
            act(str(tmp_path))
        assert (str(refused.value), refused.value.hint) == (said, cure)
        assert last_opened_folder == [str(tmp_path)]
    path.rmdir()
    path.write_bytes(b"x" * 2000)
    for act in (open_for_writing, open_for_reading):
        with pytest.raises(IndexDamaged) as refused:
            act(str(tmp_path))
        assert str(refused.value) == (f"the index in {tmp_path} is damaged: file is not a database")
        assert refused.value.hint == cure


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable) as refused:
        open_for_writing(str(tmp_path / "file" / "i"))
    said = f"cannot write the index in {tmp_path / 'file' / 'i'}: not a directory"
    assert str(refused.value) == said


def test_a_locked_database_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_TIMEOUT_MS", 1)
    holder = open_for_writing(str(tmp_path))
    holder.execute("PRAGMA user_version = 1")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Unwritable) as refused:
        open_for_writing(str(tmp_path))
    assert str(refused.value) == f"cannot write the index in {tmp_path}: database is locked"
    holder.execute("ROLLBACK")
    holder.close()


def test_what_is_opened_to_read_cannot_be_written(tmp_path: Path) -> None:
    assert open_for_reading(str(tmp_path)) is None
    open_for_writing(str(tmp_path)).close()
    connection = open_for_reading(str(tmp_path))
    assert connection is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO facts VALUES ('a', 'b')")
    connection.close()


def test_a_transaction_happens_or_does_not(tmp_path: Path) -> None:
    connection = open_for_writing(str(tmp_path))
    with transaction(connection):
        connection.execute("INSERT INTO facts VALUES ('a', '1')")
    with pytest.raises(sqlite3.IntegrityError), transaction(connection):
        connection.executemany("INSERT INTO facts VALUES (?, ?)", [("b", "2"), ("c", None)])
    assert connection.execute("SELECT * FROM facts").fetchall() == [("a", "1")]
    assert not connection.in_transaction
    connection.close()


def test_a_stamp_changes_with_the_database_and_its_journal(tmp_path: Path) -> None:
    path, wal = tmp_path / DATABASE_NAME, tmp_path / f"{DATABASE_NAME}-wal"
    assert database_stamp(str(tmp_path)) == ()
    path.write_bytes(b"abc")
    own = path.stat()
    assert database_stamp(str(tmp_path)) == (own.st_ino, 3, own.st_mtime_ns)
    wal.write_bytes(b"")
    assert database_stamp(str(tmp_path)) == (own.st_ino, 3, own.st_mtime_ns)
    wal.write_bytes(b"x")
    more = wal.stat()
    assert database_stamp(str(tmp_path)) == (
        own.st_ino, 3, own.st_mtime_ns, more.st_ino, 1, more.st_mtime_ns,
    )  # fmt: skip
    path.unlink()
    assert database_stamp(str(tmp_path)) == (more.st_ino, 1, more.st_mtime_ns)


# Which index it is


def test_each_set_of_folders_has_an_index_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.environ["STENO_HOME"]
    monkeypatch.chdir(tmp_path)
    one = locate_index("/data/ada/.claude")
    assert one == IndexLocation(f"{home}/index/ada-claude-" + one.folder[-8:], ("/data/ada/.claude",))
    assert locate_index(["/data/ada/.claude"]) == one
    two = locate_index(["/b/x", "/a/y", "/b/x"])
    assert two.roots == ("/b/x", "/a/y")
    assert two.folder.startswith(f"{home}/index/a-y-")
    assert locate_index(["/a/y", "/b/x"]).folder == two.folder
    assert locate_index(["/a/y"]).folder != two.folder
    assert locate_index("sub").roots == (str(tmp_path / "sub"),)
    long = locate_index("/data/" + "w" * 40 + "/" + "v" * 9 + "?_-")
    assert Path(long.folder).name[:-9] == "w" * 24
    assert locate_index("/x?/a_b-c!").folder.startswith(f"{home}/index/x-a_b-c-")


def test_without_a_folder_it_is_the_clients_and_those_of_the_config_file(tmp_path: Path) -> None:
    own = os.environ["CLAUDE_CONFIG_DIR"]
    assert locate_index().roots == (own,)
    alone = locate_index(own)
    assert locate_index() == alone
    config = Path(os.environ["STENO_HOME"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[index]\nroots = ["~/more", "{own}", "{tmp_path}"]\n')
    more = locate_index()
    assert more.folder == alone.folder
    assert more.roots == (own, str(Path("~/more").expanduser()), str(tmp_path))


def test_an_index_that_is_not_there_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as missing:
        open_index(str(tmp_path / "c"), sync_first=False)
    assert str(missing.value) == "the index does not exist yet"
    assert missing.value.hint == "Run `steno sync` to create it."
    write(tmp_path / "c", prompts("alpha"))
    sizes: list[int] = []
    with open_index(str(tmp_path / "c"), start_progress=lambda size: sizes.append(size) or sizes.append) as made:
        assert made.report is not None
        assert (made.report.files, made.report.read) == (1, 1)
        assert made.location == locate_index(str(tmp_path / "c"))
    assert sizes == [made.report.size] * 2
    with pytest.raises(sqlite3.ProgrammingError):
        made.connection.execute("SELECT 1")
    with open_index(str(tmp_path / "c"), sync_first=False) as again:
        assert again.report is None
        assert again.texts is again.texts


def test_while_another_sync_is_at_work_the_index_is_opened_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "c", prompts("alpha"))
    open_index(str(tmp_path / "c")).close()
    home = locate_index(str(tmp_path / "c"))
    with FileLock(str(Path(home.folder) / "sync.lock")):
        with open_index(str(tmp_path / "c")) as made:
            assert made.report is None
        with pytest.raises(Busy):
            sync(home, wait=False)
    assert database.SessionIndex is type(made)
