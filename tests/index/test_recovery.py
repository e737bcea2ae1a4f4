"""Recovery from a damaged index."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.index.dump import dump
from tests.index.searching import prompts, write

from steno.errors import Unreadable, Unwritable
from steno.index.database import (
    DATABASE_NAME,
    IndexDamaged,
    IndexLocation,
    has_schema,
    last_opened_folder,
    open_for_reading,
)
from steno.index.recovery import is_damage, recover
from steno.index.sync.updater import sync
from steno.index.text_index import TEXT_FOLDER, TextIndexDamaged

STRONG = ("malformed", "not a database", "could not decode", "unsupported file format")
WEAK = (
    "no such table: x",
    "no such column: y",
    "the database schema has changed",
    "UNIQUE constraint failed: messages.id",
    "datatype mismatch",
)


@pytest.fixture
def home(tmp_path: Path) -> IndexLocation:
    write(tmp_path / "config", prompts("alpha", "beta"))
    made = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "config"),))
    sync(made)
    return made


def _names(home: IndexLocation) -> list[str]:
    return sorted(
        path.name.split("damaged-")[0]
        for path in Path(home.folder).iterdir()
        if not path.name.endswith(("-shm", "-wal"))
    )


def _change(home: IndexLocation, *statements: str) -> None:
    connection = sqlite3.connect(Path(home.folder, DATABASE_NAME))
    for each in statements:
        connection.execute(each)
    connection.commit()
    connection.close()


@pytest.mark.timeout(10)
def test_errors_that_cause_each_other_are_looked_at_once() -> None:
    one, two = Unwritable("one"), Unwritable("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_damage(one)
    assert not recover(one)


@pytest.mark.parametrize("says", STRONG)
def test_what_is_said_only_of_damage_needs_no_proof(home: IndexLocation, says: str) -> None:
    assert is_damage(sqlite3.DatabaseError(f"file is {says.upper()}"), home.folder)
    caused = Unwritable("cannot write")
    caused.__cause__ = sqlite3.OperationalError(says)
    assert is_damage(caused, home.folder)
    assert not is_damage(ValueError(says), home.folder)


@pytest.mark.parametrize("says", WEAK)
def test_a_weak_sign_is_no_damage_while_the_index_is_sound(home: IndexLocation, says: str) -> None:
    """A wrong statement must not cost an index, and with it what it knows of deleted sessions."""
    error = sqlite3.IntegrityError(says)
    before = dump(home)
    assert not is_damage(error, home.folder)
    assert not recover(error, home.folder)
    assert not recover(error)
    assert _names(home) == ["index.sqlite", "sync.lock", "words"]
    assert dump(home) == before


def _overwrite(home: IndexLocation) -> None:
    Path(home.folder, DATABASE_NAME).write_bytes(b"x" * 4096)


DAMAGES: dict[str, Callable[[IndexLocation], None]] = {
    "a table is missing": lambda home: _change(home, "DROP TABLE links"),
    "an index is missing": lambda home: _change(home, "DROP INDEX usage_by_time"),
    "a trigger is missing": lambda home: _change(home, "DROP TRIGGER files_to_sessions"),
    "a column is missing": lambda home: _change(home, "ALTER TABLE facts DROP COLUMN value"),
    "a value is missing": lambda home: _change(
        home,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'open      INTEGER NOT NULL', 'open INTEGER')"
        " WHERE name = 'batches'",
    ),
    "it is not a database": _overwrite,
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("says", [WEAK[0], WEAK[3]])
def test_a_weak_sign_is_damage_where_the_index_shows_it(home: IndexLocation, name: str, says: str) -> None:
    DAMAGES[name](home)
    error = sqlite3.OperationalError(says)
    assert is_damage(error, home.folder)
    assert not is_damage(sqlite3.OperationalError("database is locked"), home.folder)
    assert recover(error, home.folder)
    # The words mean nothing without the tables.
    assert _names(home) == ["index.sqlite.", "sync.lock"]
    sync(home)
    assert len(dump(home)["files"]) == 1


def test_a_check_that_finds_a_fault_confirms_the_damage(home: IndexLocation) -> None:
    """The schema is complete, but the page of a table is not one of a table."""
    path = Path(home.folder, DATABASE_NAME)
    _change(home, "PRAGMA journal_mode = DELETE")
    connection = sqlite3.connect(path)
    find = "SELECT rootpage FROM sqlite_master WHERE name = 'links'"
    (number,) = connection.execute(find).fetchone()
    connection.close()
    pages = bytearray(path.read_bytes())
    pages[(number - 1) * int.from_bytes(pages[16:18], "big")] = 0x07
    path.write_bytes(pages)
    opened = open_for_reading(home.folder)
    assert opened is not None
    assert has_schema(opened)
    opened.close()
    assert is_damage(sqlite3.IntegrityError(WEAK[3]), home.folder)


def test_without_an_index_nothing_is_damaged(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("no such table: files")
    assert not is_damage(error, str(tmp_path / "nowhere"))
    assert not recover(error, str(tmp_path / "nowhere"))
    last_opened_folder.clear()
    assert not is_damage(error)
    assert not recover(IndexDamaged("x"))


def test_an_index_of_another_version_is_left_alone(home: IndexLocation) -> None:
    _change(home, "DROP TABLE links", "PRAGMA user_version = 99")
    assert not is_damage(sqlite3.OperationalError("no such table: links"), home.folder)


def test_damaged_words_are_set_aside_and_read_again(home: IndexLocation) -> None:
    before = dump(home)
    error = Unreadable("x")
    error.__cause__ = TextIndexDamaged("y")
    assert is_damage(error)
    assert recover(error)
    assert _names(home) == ["index.sqlite", "sync.lock", "words."]
    sync(home)
    assert _names(home) == ["index.sqlite", "sync.lock", "words", "words."]
    assert dump(home) == before
    # Without any words there is nothing to set aside.
    (folder,) = (path for path in Path(home.folder).iterdir() if path.name == TEXT_FOLDER)
    folder.rename(Path(home.folder, "elsewhere"))
    assert recover(TextIndexDamaged("z"), home.folder)


def test_what_cannot_be_set_aside_is_said_not_to_be(home: IndexLocation) -> None:
    Path(home.folder, DATABASE_NAME).unlink()
    assert not recover(IndexDamaged("x"), home.folder)


def test_the_journals_of_a_damaged_database_go_with_it(home: IndexLocation) -> None:
    for ending in ("-wal", "-shm", "-journal"):
        Path(home.folder, DATABASE_NAME + ending).write_bytes(b"x")
    assert recover(IndexDamaged("x"), home.folder)
    left = [path.name for path in Path(home.folder).iterdir()]
    assert not any(name.endswith(("-wal", "-shm", "-journal")) for name in left)


def test_a_statement_that_fails_is_said_with_what_to_do(home: IndexLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index stays as it is, and the message names the command that reads everything again."""
    before = dump(home)
    with monkeypatch.context() as patch:
        patch.setattr("steno.index.sync.updater._MARK_UNREAD_SQL", "UPDATE files SET absent = 1")
        patch.setattr("steno.index.sync.updater.EXTRACTION_RULES", "other")
        with pytest.raises(Unwritable) as refused:
            sync(home)
    assert str(refused.value) == (f"cannot write the index in {home.folder}: no such column: absent")
    assert refused.value.hint == "Run `steno sync --rebuild` to read all files again."
    assert dump(home) == before
    assert _names(home) == ["index.sqlite", "sync.lock", "words"]
