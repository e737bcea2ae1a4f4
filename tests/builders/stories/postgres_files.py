"""Files of the ledger service before its move from SQLite to PostgreSQL, and their changes."""

from typing import Final

import msgspec

__all__ = ["API", "DB_CODE", "FILES", "FIXTURE", "ROOT", "STORES", "Store", "insert_new", "insert_old"]

ROOT: Final = "/home/ada/ledger-import"


class Store(msgspec.Struct, frozen=True):
    """A table of the ledger, and the query of its module that works only with SQLite."""

    name: str
    one: str
    model: str
    columns: tuple[str, ...]
    special: str
    old: str
    new: str


STORES: Final = (
    Store(
        "accounts",
        "account",
        "Account",
        ("name", "iban", "opened"),
        "by_name",
        '"SELECT id, name, iban, opened FROM accounts WHERE name = ? COLLATE NOCASE"',
        '"SELECT id, name, iban, opened FROM accounts WHERE lower(name) = lower(%s)"',
    ),
    Store(
        "entries",
        "entry",
        "Entry",
        ("account_id", "day", "amount", "purpose"),
        "of_month",
        '"SELECT id, account_id, day, amount, purpose FROM entries"\n'
        "        \" WHERE strftime('%Y-%m', day) = ? ORDER BY day\"",
        '"SELECT id, account_id, day, amount, purpose FROM entries"\n'
        "        \" WHERE to_char(day, 'YYYY-MM') = %s ORDER BY day\"",
    ),
    Store(
        "rules",
        "rule",
        "Rule",
        ("pattern", "account_id", "priority"),
        "matching",
        '"SELECT id, pattern, account_id, priority FROM rules"\n        " WHERE ? LIKE pattern ORDER BY priority"',
        '"SELECT id, pattern, account_id, priority FROM rules"\n        " WHERE %s ILIKE pattern ORDER BY priority"',
    ),
    Store(
        "imports",
        "import_run",
        "ImportRun",
        ("file_name", "sha256", "started", "row_count"),
        "by_checksum",
        '"SELECT id, file_name, sha256, started, row_count FROM imports"\n        " WHERE hex(sha256) = upper(?)"',
        '"SELECT id, file_name, sha256, started, row_count FROM imports"\n'
        "        \" WHERE encode(sha256, 'hex') = lower(%s)\"",
    ),
    Store(
        "budgets",
        "budget",
        "Budget",
        ("account_id", "month", "amount"),
        "since",
        '"SELECT id, account_id, month, amount FROM budgets"\n'
        "        \" WHERE month >= date(?, 'start of month') ORDER BY month\"",
        '"SELECT id, account_id, month, amount FROM budgets"\n'
        "        \" WHERE month >= date_trunc('month', %s::date) ORDER BY month\"",
    ),
    Store(
        "payees",
        "payee",
        "Payee",
        ("name", "iban", "last_seen"),
        "unseen_for",
        '"SELECT id, name, iban, last_seen FROM payees"\n'
        "        \" WHERE julianday('now') - julianday(last_seen) > ?\"",
        '"SELECT id, name, iban, last_seen FROM payees"\n'
        '        " WHERE last_seen < now() - make_interval(days => %s)"',
    ),
)

API: Final = ("accounts", "entries", "rules", "budgets", "payees")

DB_CODE: Final = '''"""Connections to the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import Connection
from psycopg_pool import ConnectionPool

from ledger.config import settings

_pool: ConnectionPool | None = None


def pool() -> ConnectionPool:
    """Return the pool of this process; open it on first use."""
    global _pool
    if _pool is None:
        _pool = ConnectionPool(
            settings.database_url,
            min_size=1,
            max_size=settings.pool_size,
            open=True,
        )
    return _pool


@contextmanager
def connection() -> Iterator[Connection]:
    """Yield a connection: commit at the end, roll back on an error."""
    with pool().connection() as db:
        yield db


def close() -> None:
    """Close the pool when the server stops."""
    global _pool
    if _pool is not None:
        _pool.close()
        _pool = None
'''


def store_code(store: Store) -> str:
    """Return a store module for SQLite."""
    columns = ", ".join(store.columns)
    marks = ", ".join("?" for _ in store.columns)
    values = ", ".join(f"{store.one}.{column}" for column in store.columns)
    return f'''"""Queries on the table `{store.name}`."""

import sqlite3

from ledger.model import {store.model}


def get(db: sqlite3.Connection, {store.one}_id: int) -> {store.model} | None:
    """Return one {store.one}."""
    row = db.execute(
        "SELECT id, {columns} FROM {store.name} WHERE id = ?",
        ({store.one}_id,),
    ).fetchone()
    return {store.model}(*row) if row else None


def add(db: sqlite3.Connection, {store.one}: {store.model}) -> int:
    """Add a row and return its id."""
    cursor = db.execute(
        "INSERT INTO {store.name} ({columns}) VALUES ({marks})",
        ({values},),
    )
    return cursor.lastrowid


def {store.special}(db: sqlite3.Connection, value: object) -> list[{store.model}]:
    """Return all rows that match."""
    rows = db.execute(
        {store.old},
        (value,),
    )
    return [{store.model}(*row) for row in rows]


def remove(db: sqlite3.Connection, {store.one}_id: int) -> None:
    """Remove a row."""
    db.execute("DELETE FROM {store.name} WHERE id = ?", ({store.one}_id,))
'''


def insert_old(store: Store) -> str:
    """Return the lines of `add` that work only with SQLite."""
    code = store_code(store)
    first = code.index("    cursor = db.execute")
    return code[first : code.index("    return cursor.lastrowid") + len("    return cursor.lastrowid")]


def insert_new(store: Store) -> str:
    """Return the lines of `add` for PostgreSQL."""
    columns = ", ".join(store.columns)
    marks = ", ".join("%s" for _ in store.columns)
    values = ", ".join(f"{store.one}.{column}" for column in store.columns)
    return (
        "    row = db.execute(\n"
        f'        "INSERT INTO {store.name} ({columns})"\n'
        f'        " VALUES ({marks}) RETURNING id",\n'
        f"        ({values},),\n"
        "    ).fetchone()\n"
        "    return row[0]"
    )


FIXTURE: Final = """@pytest.fixture
def db():
    db = sqlite3.connect(":memory:")
    schema.create(db)
    yield db
    db.close()


"""


def test_code(store: Store) -> str:
    """Return the tests of a store module for SQLite."""
    return f"""import sqlite3

import pytest

from ledger.store import {store.name}, schema
from tests.make import {store.one}


{FIXTURE}def test_{store.one}_is_found_again(db):
    made = {store.one}()
    assert {store.name}.get(db, {store.name}.add(db, made)) == made


def test_{store.special}_returns_matching_rows(db):
    wanted, other = {store.one}(), {store.one}(number=2)
    {store.name}.add(db, wanted)
    {store.name}.add(db, other)
    assert {store.name}.{store.special}(db, wanted.key) == [wanted]


def test_removed_{store.one}_is_gone(db):
    number = {store.name}.add(db, {store.one}())
    {store.name}.remove(db, number)
    assert {store.name}.get(db, number) is None
"""


def api_code(name: str) -> str:
    """Return a router for SQLite."""
    return f'''"""The resource `/{name}`."""

import sqlite3

from fastapi import APIRouter, Depends, HTTPException

from ledger.api.deps import database
from ledger.store import {name}

router = APIRouter(prefix="/{name}")


@router.get("/{{number}}")
def show(number: int, db: sqlite3.Connection = Depends(database)) -> dict:
    """Return one row."""
    found = {name}.get(db, number)
    if found is None:
        raise HTTPException(404)
    return found.as_dict()


@router.delete("/{{number}}", status_code=204)
def remove(number: int, db: sqlite3.Connection = Depends(database)) -> None:
    """Remove one row."""
    {name}.remove(db, number)
    db.commit()
'''


_PYPROJECT: Final = """[project]
name = "ledger"
version = "0.9.0"
requires-python = ">=3.12"
dependencies = [
  "fastapi>=0.115",
  "uvicorn>=0.34",
]

[dependency-groups]
dev = ["httpx>=0.28", "pytest>=8.3", "ruff>=0.9"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["-ra", "-n", "auto"]
"""

_CONFIG: Final = '''"""Settings, from the environment."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of one process."""

    database: str = "ledger.sqlite3"
    inbox: str = "inbox"


def load() -> Settings:
    """Read the settings of this process."""
    return Settings(
        database=os.environ.get("LEDGER_DATABASE", "ledger.sqlite3"),
        inbox=os.environ.get("LEDGER_INBOX", "inbox"),
    )


settings = load()
'''

_SCHEMA: Final = '''"""The tables."""

import sqlite3

TABLES = """
CREATE TABLE IF NOT EXISTS accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE,
  iban TEXT,
  opened TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  day TEXT NOT NULL,
  amount TEXT NOT NULL,
  purpose TEXT NOT NULL DEFAULT ""
);
CREATE TABLE IF NOT EXISTS rules (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  pattern TEXT NOT NULL,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  priority INTEGER NOT NULL DEFAULT 100
);
CREATE TABLE IF NOT EXISTS imports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  file_name TEXT NOT NULL,
  sha256 BLOB NOT NULL UNIQUE,
  started TEXT NOT NULL,
  row_count INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS budgets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts (id),
  month TEXT NOT NULL,
  amount TEXT NOT NULL,
  UNIQUE (account_id, month)
);
CREATE TABLE IF NOT EXISTS payees (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  iban TEXT,
  last_seen TEXT NOT NULL
);
"""


def create(db: sqlite3.Connection) -> None:
    """Create the tables that are missing."""
    db.execute("PRAGMA foreign_keys = ON")
    db.executescript(TABLES)
'''

_DEPS: Final = '''"""Dependencies of the routers."""

import sqlite3
from collections.abc import Iterator

from ledger.config import settings
from ledger.store import schema


def database() -> Iterator[sqlite3.Connection]:
    """Open the database for one request."""
    db = sqlite3.connect(settings.database, check_same_thread=False)
    schema.create(db)
    try:
        yield db
    finally:
        db.close()
'''

_APP: Final = '''"""The web service."""

from fastapi import FastAPI

from ledger.api import accounts, budgets, entries, payees, rules

app = FastAPI(title="ledger")
for module in (accounts, budgets, entries, payees, rules):
    app.include_router(module.router)


@app.get("/health")
def health() -> dict:
    """Report that the process runs."""
    return {"status": "ok"}
'''

_CI: Final = """name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - uses: astral-sh/setup-uv@v5
      - run: uv sync
      - run: uv run ruff check .
      - run: uv run pytest
"""

_README: Final = """# ledger

Imports bank files, assigns every row to an account, and serves balances over HTTP.

## Run

    uv sync
    uv run uvicorn ledger.app:app

The data is in `ledger.sqlite3` in the working directory. Set `LEDGER_DATABASE` to use another file.

## Test

    uv run pytest

## Back up

Stop the server and copy `ledger.sqlite3`.
"""

_DEPLOY: Final = """# Deployment

One host, systemd, no containers.

1. `git pull && uv sync --frozen`
2. `systemctl restart ledger`

The unit file sets `LEDGER_DATABASE=/var/lib/ledger/ledger.sqlite3`. A cron job copies that file
to the backup host every night at 02:30.
"""

_IMPORTER: Final = '''"""Import a bank file."""

import hashlib
import sqlite3
from pathlib import Path

from ledger.parse import rows
from ledger.store import entries, imports, rules


def run(db: sqlite3.Connection, path: Path) -> int:
    """Import a file once and return the number of rows."""
    digest = hashlib.sha256(path.read_bytes()).digest()
    if imports.by_checksum(db, digest.hex()):
        return 0
    count = 0
    for row in rows(path):
        try:
            entries.add(db, row.entry(rules.matching(db, row.purpose)))
        except sqlite3.IntegrityError:
            continue
        count += 1
    db.commit()
    return count
'''

_MAKE: Final = '''"""Sample data."""

from datetime import date
from decimal import Decimal

from ledger.model import Account, Entry, Payee, Rule


def entry(number=1):
    return Entry(number, number, "2026-08-03", Decimal("12.50"), "FAEHRE")
'''

FILES: Final = {
    "pyproject.toml": _PYPROJECT,
    "ledger/config.py": _CONFIG,
    "ledger/app.py": _APP,
    "ledger/importer.py": _IMPORTER,
    "ledger/store/schema.py": _SCHEMA,
    "ledger/api/deps.py": _DEPS,
    ".github/workflows/test.yml": _CI,
    "tests/make.py": _MAKE,
    "README.md": _README,
    "docs/deploy.md": _DEPLOY,
    **{f"ledger/store/{each.name}.py": store_code(each) for each in STORES},
    **{f"tests/store/test_{each.name}.py": test_code(each) for each in STORES},
    **{f"ledger/api/{name}.py": api_code(name) for name in API},
}
