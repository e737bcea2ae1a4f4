"""Prompts, answers, outputs and file contents of the PostgreSQL session."""

from typing import Final

from tests.builders.stories.postgres_files import API, ROOT, STORES

_NAMES: Final = [each.name for each in STORES]


def passed(count: int, seconds: float) -> str:
    """Return what pytest prints when all tests pass."""
    rows: list[str] = []
    done = 0
    while done < count:
        step = min(count - done, 72)
        done += step
        rows.append(f"{'.' * step:<72} [{done * 100 // count:3d}%]")
    return "\n".join([*rows, f"{count} passed in {seconds}s"])


def failed(name: str, test: str, code: str, error: str) -> str:
    """Return what pytest prints when one test fails."""
    title = f" {test} ".center(80, "_")
    count = next(2 + len(each.columns) for each in STORES if each.name == name)
    return (
        f"{'F' + '.' * count:<72} [100%]\n{' FAILURES '.center(80, '=')}\n{title}\n\n{code}\n\n"
        f"tests/store/test_{name}.py:18: {error.split(':', maxsplit=1)[0]}\n"
        f"{' short test summary info '.center(80, '=')}\n"
        f"FAILED tests/store/test_{name}.py::{test} - {error}\n1 failed, {count} passed in 0.84s"
    )


TASK: Final = """\
The ledger service should move from SQLite to PostgreSQL. We will soon have two hosts, and the nightly import locks \
the file for minutes.

What I need:
- all stores in ledger/store/ on PostgreSQL, with real column types
- migrations that can be applied and rolled back, no create-if-missing at start
- tests that run against a real database, in parallel as they do now
- a script that copies the existing data (about 48,000 entries) and proves that nothing was lost
- CI, README, deployment notes

Keep the HTTP API as it is. We stay on the branch `postgres`. Start with a plan and do not change anything yet."""

_MODULES: Final = (
    "app",
    "config",
    "importer",
    "model",
    "parse",
    *(f"api/{name}" for name in ("deps", *API)),
    *(f"store/{name}" for name in (*_NAMES, "schema")),
)

PYTHON_FILES: Final = "\n".join(
    [f"{ROOT}/ledger/{name}.py" for name in _MODULES]
    + [f"{ROOT}/tests/store/test_{name}.py" for name in _NAMES]
    + [f"{ROOT}/tests/api/test_{name}.py" for name in API]
    + [f"{ROOT}/tests/make.py", f"{ROOT}/tests/test_importer.py"]
)

GREP_SQLITE: Final = "\n".join(
    ["ledger/importer.py:4:import sqlite3", "ledger/importer.py:20:        except sqlite3.IntegrityError:"]
    + ["ledger/api/deps.py:3:import sqlite3", "ledger/store/schema.py:3:import sqlite3"]
    + [f"ledger/api/{name}.py:3:import sqlite3" for name in API]
    + [f"ledger/store/{name}.py:3:import sqlite3" for name in _NAMES]
)

GIT_LOG: Final = """\
b71f0ce Import card statements
90c2d11 Round balances once, at the end
4f6a8e3 Rules have a priority
c35b7d0 Show budgets by month
7a1e94f Serve payees
e80d2b6 Store the checksum of imported files
1d94c7a Amounts are decimals
52fe3a9 First version of the service"""

TASKS: Final = (
    ("Local database and connection pool", "compose.yaml, psycopg pool, settings"),
    ("Schema as migrations", "yoyo, real types, rollback"),
    ("Port the six stores", "accounts, entries, rules, imports, budgets, payees"),
    ("Test fixtures", "Parallel tests on a real database"),
    ("Copy the data", "Repeatable, with a comparison"),
    ("API and importer", "Dependency, routers, health check"),
    ("CI", "PostgreSQL service, migrations up and down"),
    ("Documentation", "README, deployment, backup, checklist for the move"),
)

PLAN: Final = """\
The database is used in 14 files, but all SQL is in `ledger/store/`. I suggest eight steps, each of them a commit:

| # | Step | Files |
|---|------|-------|
| 1 | Local database in Docker, connection pool | `compose.yaml`, `ledger/db.py` |
| 2 | Schema as migrations, with real types | `migrations/` |
| 3 | Port the stores, one at a time | `ledger/store/*.py` |
| 4 | Fixtures for parallel tests | `tests/conftest.py` |
| 5 | Copy the data and compare | `scripts/` |
| 6 | API, importer, health check | `ledger/api/`, `ledger/importer.py` |
| 7 | CI | `.github/workflows/test.yml` |
| 8 | Documentation | `README.md`, `docs/` |

Two things may be difficult: SQLite stores dates and amounts as text and never checked them, so the data can hold \
values that PostgreSQL rejects. And `importer.py` continues after a constraint error, which aborts a transaction in \
PostgreSQL."""

GREP_EXECUTE: Final = "\n".join(
    f"ledger/store/{name}.py:{line}:    {'row = ' if line == 10 else 'cursor = ' if line == 19 else 'rows = '}db.execute("
    for name in _NAMES
    for line in (10, 19, 28)
)

GREP_FUNCTIONS: Final = """\
ledger/store/accounts.py:29:        "SELECT id, name, iban, opened FROM accounts WHERE name = ? COLLATE NOCASE",
ledger/store/entries.py:30:        " WHERE strftime('%Y-%m', day) = ? ORDER BY day",
ledger/store/payees.py:30:        " WHERE julianday('now') - julianday(last_seen) > ?",
ledger/store/schema.py:8:  name TEXT NOT NULL COLLATE NOCASE UNIQUE,"""

GREP_DIALECT: Final = """\
ledger/store/accounts.py:29:COLLATE NOCASE
ledger/store/schema.py:7:  id INTEGER PRIMARY KEY AUTOINCREMENT,
ledger/store/schema.py:8:  name TEXT NOT NULL COLLATE NOCASE UNIQUE,
ledger/store/schema.py:13:  id INTEGER PRIMARY KEY AUTOINCREMENT,
ledger/store/schema.py:51:    db.execute("PRAGMA foreign_keys = ON")"""

GREP_SCRIPTS: Final = """\
.gitignore:4:*.sqlite3
README.md:10:The data is in `ledger.sqlite3` in the working directory.
README.md:18:Stop the server and copy `ledger.sqlite3`.
docs/deploy.md:8:The unit file sets `LEDGER_DATABASE=/var/lib/ledger/ledger.sqlite3`.
ledger/config.py:11:    database: str = "ledger.sqlite3\""""

GREP_MEMORY: Final = "\n".join(f'tests/store/test_{name}.py:11:    db = sqlite3.connect(":memory:")' for name in _NAMES)

CRON: Final = """\
30 2 * * * cp /var/lib/ledger/ledger.sqlite3 /backup/ledger/$(date +\\%F).sqlite3
0 3 * * * /srv/ledger/.venv/bin/python -m ledger.importer /srv/ledger/inbox"""

SQL_REPORT: Final = """\
32 statements in six modules. PostgreSQL rejects:

- `?` as placeholder, in all of them
- `COLLATE NOCASE` (accounts), `strftime` (entries), `julianday` (payees), `hex` (imports), `date(..., 'start of month')` (budgets)
- `AUTOINCREMENT` and `PRAGMA` (schema)

`cursor.lastrowid` is always None. `LIKE` is case-sensitive in PostgreSQL; `rules` relies on the opposite."""

SCRIPTS_REPORT: Final = """\
Six test modules open `:memory:`; `tests/api` overrides the dependency `database`. The CI job needs no service today. \
Outside the repository, two cron jobs of the user `ledger` depend on the file: the backup at 02:30 copies it, and the \
import at 03:00 writes to it. The copy is not consistent while the service writes."""

SURVEYED: Final = """\
PostgreSQL rejects five functions and one collation. Everything else is a change of the placeholder and of `lastrowid`.

Worth knowing before we start:

1. `LIKE` in `rules` ignores case today. It has to become `ILIKE`, or about a third of the rules stop matching.
2. The nightly backup copies the file while it is in use. `pg_dump` will fix that.
3. `payees.last_seen` is text in local time. As `timestamptz` it needs a time zone; I assume Europe/Berlin.

Tell me if the third assumption is wrong."""

RESOLVED: Final = """\
# This file was autogenerated by uv
psycopg==3.2.10
psycopg-binary==3.2.10
psycopg-pool==3.2.6
typing-extensions==4.15.0"""

DRIVER: Final = """\
psycopg 3 directly. All 32 statements are static, none is assembled from parts, and the rows are mapped in one line \
each. SQLAlchemy would add a second way to write every query.

For migrations I suggest **yoyo**: plain SQL files with a rollback file next to each. Alembic wants SQLAlchemy models."""

COMPOSE: Final = """\
services:
  db:
    image: postgres:17
    environment:
      POSTGRES_USER: ledger
      POSTGRES_DB: ledger
      POSTGRES_HOST_AUTH_METHOD: trust
    ports:
      - "127.0.0.1:5432:5432"
    healthcheck:
      test: ["CMD", "pg_isready", "-U", "ledger"]
      interval: 1s
      retries: 30
    tmpfs:
      - /var/lib/postgresql/data
"""

PORT_TAKEN: Final = """\
 Network ledger-import_default  Created
 Container ledger-db-1  Created
Error response from daemon: failed to set up container networking: driver failed programming external connectivity on \
endpoint ledger-db-1: Bind for 127.0.0.1:5432 failed: port is already allocated"""

LISTENER: Final = """\
State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process
LISTEN 0      4096       127.0.0.1:5432      0.0.0.0:*    users:(("docker-proxy",pid=2210,fd=7))"""

STARTED: Final = " Container ledger-db-1  Recreated\n Container ledger-db-1  Started\n Container ledger-db-1  Healthy"
VERSION: Final = " PostgreSQL 17.6 (Debian 17.6-1.pgdg13+1) on x86_64-pc-linux-gnu\n(1 row)"

SYNCED: Final = """\
Resolved 34 packages in 212ms
Installed 7 packages in 48ms
 + psycopg==3.2.10
 + psycopg-binary==3.2.10
 + psycopg-pool==3.2.6
 + sqlparse==0.5.3
 + tabulate==0.9.0
 + typing-extensions==4.15.0
 + yoyo-migrations==9.0.0"""

CONFIG_FIELDS: Final = """\
    database: str = "ledger.sqlite3"
    database_url: str = "postgresql://ledger@127.0.0.1:5433/ledger"
    pool_size: int = 8
"""

CONFIG_LOAD: Final = """\
        database=os.environ.get("LEDGER_DATABASE", "ledger.sqlite3"),
        database_url=os.environ.get("LEDGER_DATABASE_URL", Settings.database_url),
        pool_size=int(os.environ.get("LEDGER_POOL_SIZE", Settings.pool_size)),
"""

DATABASE_DONE: Final = """\
PostgreSQL 17 runs in Docker on port **5433**, in memory, so that tests are fast and nothing is left behind. \
`ledger/db.py` has a pool with at most 8 connections:

```python
with connection() as db:
    db.execute("SELECT 1")
```

The old setting `LEDGER_DATABASE` still works until all stores are ported."""

LIFESPAN_IMPORT: Final = (
    "from fastapi import FastAPI\n\nfrom ledger.api import accounts, budgets, entries, payees, rules\n",
    (
        "from collections.abc import AsyncIterator\nfrom contextlib import asynccontextmanager\n\n"
        "from fastapi import FastAPI\n\nfrom ledger.api import accounts, budgets, entries, payees, rules\n"
        "from ledger.db import close, pool\n"
    ),
)

LIFESPAN: Final = (
    'app = FastAPI(title="ledger")\n',
    (
        "\n@asynccontextmanager\nasync def lifespan(app: FastAPI) -> AsyncIterator[None]:\n"
        '    """Open the pool before the first request and close it after the last."""\n'
        "    pool().wait(timeout=10)\n    yield\n    close()\n\n\n"
        'app = FastAPI(title="ledger", lifespan=lifespan)\n'
    ),
)

POOL_OPEN: Final = (
    '    """Return the pool of this process; open it on first use."""\n',
    '    """Return the pool of this process. The server opens it at start, the importer on first use."""\n',
)

POOL_ANSWER: Final = """\
Mostly, and now it does: the lifespan of the app opens the pool, waits for the first connection and closes it. The \
module-level variable stays because `ledger.importer` runs from cron, without the app. One process has one pool \
either way."""

MIGRATION: Final = """\
CREATE TABLE entries (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  account_id integer NOT NULL REFERENCES accounts (id),
  day date NOT NULL,
  amount numeric(12, 2) NOT NULL,
  purpose text NOT NULL DEFAULT ""
);

CREATE TABLE accounts (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  iban text,
  opened date NOT NULL,
  UNIQUE (lower(name))
);

CREATE TABLE rules (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  pattern text NOT NULL,
  account_id integer NOT NULL REFERENCES accounts (id),
  priority integer NOT NULL DEFAULT 100
);

CREATE TABLE imports (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  file_name text NOT NULL,
  sha256 bytea NOT NULL UNIQUE,
  started timestamptz NOT NULL,
  row_count integer NOT NULL
);

CREATE TABLE budgets (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  account_id integer NOT NULL REFERENCES accounts (id),
  month date NOT NULL,
  amount numeric(12, 2) NOT NULL,
  UNIQUE (account_id, month)
);

CREATE TABLE payees (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  iban text,
  last_seen timestamptz NOT NULL
);
"""

ROLLBACK: Final = "".join(
    f"DROP TABLE {name};\n" for name in ("payees", "budgets", "imports", "rules", "entries", "accounts")
)
YOYO: Final = (
    "[DEFAULT]\nsources = migrations\ndatabase = postgresql+psycopg://ledger@127.0.0.1:5433/ledger\nbatch_mode = on\n"
)

APPLY_QUOTES: Final = """\
psycopg.errors.SyntaxError: zero-length delimited identifier at or near \"""\"
LINE 6:   purpose text NOT NULL DEFAULT ""
                                        ^"""
APPLY_ORDER: Final = 'psycopg.errors.UndefinedTable: relation "accounts" does not exist'
APPLY_UNIQUE: Final = """\
psycopg.errors.SyntaxError: syntax error at or near "("
LINE 6:   UNIQUE (lower(name))
                       ^"""

_ENTRIES: Final = """\
CREATE TABLE entries (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  account_id integer NOT NULL REFERENCES accounts (id),
  day date NOT NULL,
  amount numeric(12, 2) NOT NULL,
  purpose text NOT NULL DEFAULT ''
);
"""
_ACCOUNTS: Final = """\
CREATE TABLE accounts (
  id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  iban text,
  opened date NOT NULL,
  UNIQUE (lower(name))
);
"""
ORDER: Final = (f"{_ENTRIES}\n{_ACCOUNTS}", f"{_ACCOUNTS}\n{_ENTRIES}")
NAME_INDEX: Final = (
    "  opened date NOT NULL\n);\n",
    "  opened date NOT NULL\n);\nCREATE UNIQUE INDEX accounts_name ON accounts (lower(name));\n",
)

APPLIED: Final = "[0001_tables]\n1 migration applied"
APPLIED_2: Final = "[0002_entries_account_day]\n1 migration applied"
ROLLED: Final = "[0001_tables]\n1 migration rolled back\n[0001_tables]\n1 migration applied"

TABLE: Final = """\
                              Table "public.entries"
   Column   |     Type      | Nullable |             Default
------------+---------------+----------+----------------------------------
 id         | integer       | not null | generated by default as identity
 account_id | integer       | not null |
 day        | date          | not null |
 amount     | numeric(12,2) | not null |
 purpose    | text          | not null | ''::text
Indexes:
    "entries_pkey" PRIMARY KEY, btree (id)
Foreign-key constraints:
    "entries_account_id_fkey" FOREIGN KEY (account_id) REFERENCES accounts(id)"""

MIGRATED: Final = """\
The schema is a migration now, and it can be rolled back. Three things SQLite had accepted silently:

1. `DEFAULT ""` was read as a string
2. `entries` referred to a table that did not exist yet
3. names were unique without regard to case by a collation; that is the unique index `accounts_name` on `lower(name)` now

Ids are `GENERATED BY DEFAULT`, so the copy can keep the existing ones."""

INDEX: Final = "CREATE INDEX entries_account_day ON entries (account_id, day);\n"
GREP_MONTH: Final = "ledger/store/entries.py:26:def of_month(db, value)\nledger/api/entries.py:31:    return entries.of_month(db, month)"
EXPLAIN: Final = """\
 Sort  (cost=1322.18..1322.78 rows=241 width=54)
   Sort Key: day
   ->  Seq Scan on entries  (cost=0.00..1312.64 rows=241 width=54)
         Filter: (to_char((day)::timestamp, 'YYYY-MM'::text) = '2026-08'::text)"""
INDEXED: Final = """\
There was none; `0002_entries_account_day` adds it. But the month view would not use it: `to_char(day, 'YYYY-MM')` hides \
the column from the planner. Shall I turn the condition into a range when I port `entries`?"""

PORT_PROMPTS: Final = (
    "ok. Now the stores. Start with accounts and show me the result before you go on",
    "looks good, entries next",
    "go on with rules",
    "imports",
    "Budgets. The month there is always the first day, please let the database check that as well if it is cheap.",
    "payees, then we are done with this part?",
)

PORTS: Final = {
    "accounts": (
        "Five edits in the module, two in its tests.",
        "The smallest store. Use it to settle the pattern: Connection, %s, RETURNING id.",
    ),
    "entries": (
        "Same pattern, and the month condition.",
        "strftime becomes to_char first; the range comes after the tests are green.",
    ),
    "rules": ("`LIKE` becomes `ILIKE` here, the rest is the pattern.", ""),
    "imports": ("The checksum is `bytea`; `hex()` becomes `encode(..., 'hex')`.", ""),
    "budgets": (
        "`date_trunc` replaces `date(?, 'start of month')`.",
        "A check constraint on the month is cheap: extract(day from month) = 1.",
    ),
    "payees": ("The last one.", "julianday differences become an interval."),
}

CONFTEST: Final = '''"""Fixtures for all tests."""

import pytest
from psycopg import connect

from ledger.config import settings


@pytest.fixture
def db():
    """Return a connection to empty tables."""
    with connect(settings.database_url) as db:
        db.execute("TRUNCATE accounts, entries, rules, imports, budgets, payees RESTART IDENTITY CASCADE")
        yield db
'''

FAILURES: Final = {
    "entries": (
        (
            failed(
                "entries",
                "test_of_month_returns_matching_rows",
                "    entries.add(db, wanted)\n>   entries.add(db, other)\nE   psycopg.errors.ForeignKeyViolation: insert or update on "
                'table "entries" violates\nE   foreign key constraint "entries_account_id_fkey"\n'
                'E   DETAIL:  Key (account_id)=(1) is not present in table "accounts".',
                'psycopg.errors.ForeignKeyViolation: insert or update on table "entries" violates foreign key constraint',
            ),
            "The test never created an account; SQLite checks foreign keys only with the pragma, which the fixture did not set.",
            (
                "tests/store/test_entries.py",
                "from ledger.store import entries, schema\nfrom tests.make import entry\n",
                (
                    "import pytest\n\nfrom ledger.store import accounts, entries\nfrom tests.make import account, entry\n\n\n"
                    "@pytest.fixture(autouse=True)\ndef _accounts(db):\n    for number in (1, 2):\n        accounts.add(db, account(number=number))\n"
                ),
            ),
        ),
        (
            failed(
                "entries",
                "test_entry_is_found_again",
                "    made = entry()\n>   assert entries.get(db, entries.add(db, made)) == made\n"
                "E   AssertionError: assert Entry(id=1, account_id=1, day=datetime.date(2026, 8, 3), ...)\n"
                "E                    == Entry(id=1, account_id=1, day='2026-08-03', ...)",
                "AssertionError: assert Entry(id=1, account_id=1, day=datetime.date(2026, 8, 3)) == Entry(...)",
            ),
            "Real types reach the model: `day` is a `date` and no longer a string. The sample data has to follow.",
            (
                "tests/make.py",
                'def entry(number=1):\n    return Entry(number, number, "2026-08-03", Decimal("12.50"), "FAEHRE")\n',
                'def entry(number=1):\n    return Entry(number, number, date(2026, 8, 3), Decimal("12.50"), "FAEHRE")\n',
            ),
        ),
        (
            failed(
                "entries",
                "test_of_month_returns_matching_rows",
                "    wanted, other = entry(), entry(number=2)\n>   assert entries.of_month(db, wanted.key) == [wanted]\n"
                "E   AssertionError: assert [Entry(id=1, ...), Entry(id=2, ...)] == [Entry(id=1, ...)]\n"
                "E     Left contains one more item",
                "AssertionError: assert [Entry(id=1), Entry(id=2)] == [Entry(id=1)]",
            ),
            "Both samples lie in August now. With the range in place of `to_char` I can also test the last day of a month.",
            (
                "ledger/store/entries.py",
                "        \" WHERE to_char(day, 'YYYY-MM') = %s ORDER BY day\",\n        (value,),\n",
                '        " WHERE day >= %s AND day < %s ORDER BY day, id",\n        value.bounds(),\n',
            ),
        ),
    ),
    "imports": (
        (
            failed(
                "imports",
                "test_by_checksum_returns_matching_rows",
                "    imports.add(db, wanted)\n>   imports.add(db, other)\nE   psycopg.errors.UniqueViolation: duplicate key value "
                'violates unique constraint "imports_sha256_key"',
                "psycopg.errors.UniqueViolation: duplicate key value violates unique constraint",
            ),
            "Both sample rows have the same checksum.",
            (
                "tests/store/test_imports.py",
                "    wanted, other = import_run(), import_run(number=2)\n",
                "    wanted, other = import_run(), import_run(number=2, sha256=b'\\x02' * 32)\n",
            ),
        ),
    ),
    "payees": (
        (
            failed(
                "payees",
                "test_unseen_for_returns_matching_rows",
                ">   assert payees.unseen_for(db, wanted.key) == [wanted]\nE   psycopg.errors.InvalidTextRepresentation: "
                'invalid input syntax for type integer: "90.5"',
                'psycopg.errors.InvalidTextRepresentation: invalid input syntax for type integer: "90.5"',
            ),
            "Days may be fractions here. `make_interval(secs => ...)` takes them.",
            ("ledger/store/payees.py", "make_interval(days => %s)", "make_interval(secs => %s * 86400)"),
        ),
    ),
}

PORTED: Final = {
    "accounts": '`accounts` is ported, 6 tests pass. The pattern for the others:\n\n```diff\n-    cursor = db.execute("INSERT ... VALUES (?, ?, ?)", ...)\n'
    '-    return cursor.lastrowid\n+    row = db.execute("INSERT ... VALUES (%s, %s, %s) RETURNING id", ...).fetchone()\n+    return row[0]\n```\n\n'
    "The fixture `db` is in `tests/conftest.py` now and empties the tables before each test.",
    "entries": "`entries` is ported, with the range instead of `to_char`. Three tests failed on the way, none of them because of the "
    "query: the tests had no accounts, dates were strings, and both samples were in the same month.",
    "rules": "Done, 6 tests pass. `ILIKE` keeps the present behaviour: rules ignore case.",
    "imports": "Done. The unique constraint on `sha256` was never tested before: both samples had the same checksum.",
    "budgets": "Done. The check is part of `0001_tables`, since nothing is deployed yet:\n\n```sql\nCHECK (extract(day FROM month) = 1)\n```",
    "payees": "Yes, that was the last store. `unseen_for` accepts fractions of a day as before.",
}

GREP_LEFT: Final = "\n".join(
    ["ledger/importer.py:4:import sqlite3", "ledger/api/deps.py:3:import sqlite3"]
    + [f"ledger/api/{name}.py:3:import sqlite3" for name in API]
    + ["ledger/store/schema.py:3:import sqlite3"]
)

DIFF_STAT: Final = "\n".join(
    [
        " compose.yaml                    | 16 ++++",
        " ledger/app.py                   | 14 +++-",
        " ledger/config.py                |  4 +",
    ]
    + [" ledger/db.py                    | 41 +++++++++"]
    + [f" {f'ledger/store/{name}.py':<31} | {22 + len(name)} +++++---" for name in _NAMES]
    + [" migrations/0001_tables.sql      | 47 ++++++++++"]
    + [f" {f'tests/store/test_{name}.py':<31} | 12 +---" for name in _NAMES]
    + [" 21 files changed, 318 insertions(+), 164 deletions(-)"]
)

LEFT: Final = "Only the API, the importer and the old schema. They are step 6; the six stores no longer know SQLite."

ACTIVITY: Final = """\
 pid | state  | wait_event_type |                  left
-----+--------+-----------------+------------------------------------------
 211 | active | Lock            | TRUNCATE accounts, entries, rules, impor
 214 | active | Lock            | TRUNCATE accounts, entries, rules, impor
 215 | active | Lock            | TRUNCATE accounts, entries, rules, impor
 219 | idle in transaction | Client | SELECT id, name, iban, opened FROM accou
(4 rows)"""

HANG: Final = """\
You are right: 16 workers truncated the same tables and waited for each other. Parallel runs are off for now, and the \
41 store tests pass one after another in 2.6 s."""

FIXTURE_CHOICE: Final = """\
Three ways to isolate parallel tests:

| | start per worker | per test |
|---|---|---|
| A container per worker | about 9 s | truncate, 12 ms |
| A database per worker, copied from a template | about 60 ms | roll back, 1 ms |
| A schema per worker | about 200 ms | truncate, 12 ms |

Which one do you prefer?"""

TESTCONTAINERS: Final = "Resolved 41 packages in 340ms\nInstalled 4 packages in 31ms\n + docker==7.1.0\n + testcontainers==4.13.0\n + urllib3==2.5.0\n + wrapt==1.17.3"

CONFTEST_CONTAINER: Final = '''"""Fixtures for all tests."""

import pytest
from psycopg import connect
from testcontainers.postgres import PostgresContainer


@pytest.fixture(scope="session")
def database_url():
    """Start a container for this worker."""
    with PostgresContainer("postgres:17", driver=None) as container:
        yield container.get_connection_url()
'''

CONFTEST_TEMPLATE: Final = '''"""Fixtures for all tests."""

import os

import pytest
from filelock import FileLock
from psycopg import connect, sql
from yoyo import get_backend, read_migrations

from ledger.config import settings

TEMPLATE = "ledger_template"


@pytest.fixture(scope="session")
def database_url(tmp_path_factory):
    """Copy the template database for this worker and drop the copy at the end."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with FileLock(tmp_path_factory.getbasetemp().parent / "template.lock"):
        _make_template()
    name = sql.Identifier(f"ledger_{worker}")
    with connect(settings.database_url, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(TEMPLATE)))
        yield settings.database_url.rsplit("/", 1)[0] + f"/ledger_{worker}"
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture
def db(database_url):
    """Return a connection whose changes are rolled back after the test."""
    with connect(database_url) as db, db.transaction(force_rollback=True):
        yield db


def _make_template():
    """Apply all migrations to the template, once per run."""
    with connect(settings.database_url, autocommit=True) as admin:
        found = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,)).fetchone()
        if not found:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    backend = get_backend(settings.database_url.rsplit("/", 1)[0] + f"/{TEMPLATE}")
    with backend.lock():
        backend.apply_migrations(backend.to_apply(read_migrations("migrations")))
'''

FIXTURES_DONE: Final = """\
118 tests pass in 6.2 s with 16 workers; with SQLite it was 5.1 s.

- The first worker applies the migrations to `ledger_template`, under a file lock.
- Each worker gets a copy of it, which takes 60 ms.
- Each test runs in a transaction that is rolled back."""

SUMMARY: Final = """\
The user moves the ledger service (FastAPI, plain SQL) from SQLite to PostgreSQL 17 on the branch `postgres`.

Done so far:
1. `compose.yaml` runs PostgreSQL on port 5433; `ledger/db.py` has a psycopg pool, opened by the lifespan of the app.
2. `migrations/0001_tables.sql` and `0002_entries_account_day.sql`, applied by yoyo, both with rollback.
3. All six stores use `psycopg.Connection`, `%s` and `RETURNING id`. `entries.of_month` uses a range, `rules` uses `ILIKE`.
4. `tests/conftest.py` copies a template database per worker; every test is rolled back. 118 tests pass in parallel.

Decisions of the user: plain SQL, no SQLAlchemy; ids stay integers; a template database and not a container per worker.

Open: copy the data (repeatable, with a comparison), API and importer, CI, documentation, review, pull request. `ledger/api`, \
`ledger/importer.py` and `ledger/store/schema.py` still use sqlite3. The user wants commits in sensible pieces."""

BACKUPS: Final = """\
-rw-r--r-- 1 ledger ledger 11841536 Nov 10 02:30 2026-11-10.sqlite3
-rw-r--r-- 1 ledger ledger 11849728 Nov 11 02:30 2026-11-11.sqlite3
-rw-r--r-- 1 ledger ledger 11857920 Nov 12 02:30 2026-11-12.sqlite3"""

COPY: Final = '''"""Copy the data of a SQLite file into an empty PostgreSQL database."""

import sqlite3
import sys
import time

from psycopg import connect, sql

TABLES = ("accounts", "entries", "rules", "imports", "budgets", "payees")


def main() -> int:
    """Copy all tables in one transaction."""
    source_path, target = sys.argv[1:]
    source = sqlite3.connect(f"file:{source_path}?mode=ro", uri=True)
    started = time.monotonic()
    with connect(port=5433, user="ledger", dbname=target) as db:
        for table in TABLES:
            count = copy(source, db, table)
            print(f"{table:<10} {count:>7,} rows")
    print(f"{time.monotonic() - started:.1f} seconds")
    return 0


def copy(source, db, table: str) -> int:
    """Copy one table and return the number of its rows."""
    rows = source.execute(f"SELECT * FROM {table} ORDER BY id")
    columns = [each[0] for each in rows.description]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    count = 0
    with db.cursor().copy(statement) as target:
        for row in rows:
            target.write_row(row)
            count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
'''

COPY_DATE: Final = """\
accounts        37 rows
Traceback (most recent call last):
  File "/home/ada/ledger-import/scripts/copy_sqlite.py", line 43, in <module>
    sys.exit(main())
  File "/home/ada/ledger-import/scripts/copy_sqlite.py", line 19, in main
    count = copy(source, db, table)
psycopg.errors.DatetimeFieldOverflow: date/time field value out of range: "31.05.2019"
CONTEXT:  COPY entries, line 1204, column day: "31.05.2019\""""

COUNT_DATES: Final = "select count(*), min(imported), max(imported) from entries where day glob '??.??.????'"
GREP_STRPTIME: Final = "ledger/parse.py:31:    return datetime.strptime(text, '%d.%m.%Y').date().isoformat()"

COPY_DAY: Final = (
    "def copy(source, db, table: str) -> int:\n",
    (
        'def day(value: str) -> str:\n    """Return a date as ISO 8601; the importer of 2019 wrote `31.05.2019`."""\n'
        '    if len(value) == 10 and value[2] == value[5] == ".":\n        return f"{value[6:]}-{value[3:5]}-{value[:2]}"\n'
        "    return value\n\n\ndef copy(source, db, table: str) -> int:\n"
    ),
)
COPY_DAY_USE: Final = (
    "        for row in rows:\n            target.write_row(row)\n",
    (
        '        for row in rows:\n            named = dict(zip(columns, row, strict=True))\n            if "day" in named:\n'
        '                named["day"] = day(named["day"])\n            target.write_row(tuple(named.values()))\n'
    ),
)

COPY_ORPHANS: Final = """\
accounts        37 rows
Traceback (most recent call last):
  File "/home/ada/ledger-import/scripts/copy_sqlite.py", line 51, in <module>
    sys.exit(main())
psycopg.errors.ForeignKeyViolation: insert or update on table "entries" violates foreign key constraint "entries_account_id_fkey"
DETAIL:  Key (account_id)=(12) is not present in table "accounts"."""

FIND_ORPHANS: Final = (
    "select id, account_id, day, amount from entries where account_id not in (select id from accounts)"
)
ORPHANS: Final = (
    "7719|12|2020-02-03|-18.40\n7720|12|2020-02-03|-6.00\n7902|12|2020-02-21|-44.90\n8011|12|2020-03-02|120.00"
)

COPY_UNASSIGNED: Final = (
    '                named["day"] = day(named["day"])\n',
    (
        '                named["day"] = day(named["day"])\n            if named.get("account_id") not in accounts:\n'
        '                named["account_id"] = unassigned(db)\n                moved.append(named["id"])\n'
    ),
)

COPY_SEQUENCE: Final = """\
accounts        38 rows
entries     48,211 rows
rules          164 rows
imports        902 rows
budgets        311 rows
payees       1,077 rows
check: INSERT INTO accounts
psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "accounts_pkey"
DETAIL:  Key (id)=(1) already exists."""

COPY_SETVAL: Final = (
    "            count += 1\n    return count\n",
    (
        "            count += 1\n    db.execute(\n"
        "        sql.SQL(\"SELECT setval(pg_get_serial_sequence(%s, 'id'), coalesce(max(id), 1)) FROM {}\").format(sql.Identifier(table)),\n"
        "        (table,),\n    )\n    return count\n"
    ),
)

COPIED: Final = """\
accounts        38 rows   1 new: Unassigned
entries     48,211 rows   212 dates converted, 4 entries moved to Unassigned
rules          164 rows
imports        902 rows
budgets        311 rows
payees       1,077 rows
check: INSERT INTO accounts, rolled back
19.4 seconds"""

COPY_DONE: Final = """\
The rehearsal copies all 50,703 rows of last night's backup in 19 s, in one transaction:

- 212 dates of 2019 are converted from `31.05.2019`; any other form stops the copy
- 4 entries without an account are on the new account **Unassigned**, as you asked
- the sequences continue after the highest id

Run it as often as you like; it refuses a database that has rows."""

COMPARE: Final = '''"""Compare a SQLite file with the PostgreSQL database that was made from it."""

import hashlib
import sqlite3
import sys

from psycopg import connect

SUMS = """
SELECT account_id, {month}, count(*), sum({amount})
FROM entries GROUP BY 1, 2 ORDER BY 1, 2
"""


def main() -> int:
    """Compare sums by account and month, then a hash over all rows."""
    old = sqlite3.connect(sys.argv[1])
    new = connect(port=5433, user="ledger", dbname=sys.argv[2])
    left = old.execute(SUMS.format(month="substr(iso(day), 1, 7)", amount="cents(amount)")).fetchall()
    right = new.execute(SUMS.format(month="to_char(day, 'YYYY-MM')", amount="amount * 100")).fetchall()
    different = [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]]
    for pair in different:
        print("differs:", *pair)
    print(f"{len(left):,} sums compared, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
'''

COMPARED: Final = """\
2,214 sums compared, 0 differ
accounts   3f1c5e0a  3f1c5e0a  equal
entries    b8809d17  b8809d17  equal
rules      5d20aa91  5d20aa91  equal
imports    07e4f3bc  07e4f3bc  equal
budgets    91b6c248  91b6c248  equal
payees     c0a87f6e  c0a87f6e  equal"""

COMPARE_DONE: Final = """\
The new script compares two things: the count and the sum of amounts for each account and month (2,214 pairs), and a hash \
over all rows of each table. Both are equal. The four moved entries and the converted dates are normalised on both sides \
and listed separately."""

STATUS: Final = """\
 M ledger/app.py
 M ledger/config.py
 M ledger/store/accounts.py
 M ledger/store/budgets.py
 M ledger/store/entries.py
 M ledger/store/imports.py
 M ledger/store/payees.py
 M ledger/store/rules.py
 M pyproject.toml
 M uv.lock
?? compose.yaml
?? ledger/db.py
?? migrations/
?? scripts/compare_databases.py
?? scripts/copy_sqlite.py
?? tests/conftest.py
?? yoyo.ini"""

COMMITS: Final = (
    (
        "compose.yaml ledger/db.py ledger/app.py ledger/config.py pyproject.toml uv.lock",
        "Add a connection pool for PostgreSQL",
        "the pool",
    ),
    ("migrations yoyo.ini", "Describe the schema in migrations", "the migrations"),
    ("ledger/store", "Port the stores to PostgreSQL", "the stores"),
    ("tests", "Copy a template database for each test worker", "the fixtures"),
    ("scripts", "Copy the data and compare both databases", "the scripts"),
)

COMMITTED: Final = """\
a3d90f1 Copy the data and compare both databases
64be72c Copy a template database for each test worker
0c17e5d Port the stores to PostgreSQL
d2f8b04 Describe the schema in migrations
7e51a96 Add a connection pool for PostgreSQL"""

DEPS_NEW: Final = '''"""Dependencies of the routers."""

from collections.abc import Iterator

from psycopg import Connection

from ledger.db import connection


def database() -> Iterator[Connection]:
    """Yield a connection for one request: commit at the end, roll back on an error."""
    with connection() as db:
        yield db
'''

API_IMPORT: Final = "from fastapi import APIRouter, Depends, HTTPException\nfrom psycopg import Connection\n"

IMPORT_SAVEPOINT: Final = (
    "        try:\n            entries.add(db, row.entry(rules.matching(db, row.purpose)))\n        except sqlite3.IntegrityError:\n            continue\n",
    (
        "        try:\n            with db.transaction():\n                entries.add(db, row.entry(rules.matching(db, row.purpose)))\n"
        "        except UniqueViolation:\n            continue\n"
    ),
)

API_DONE: Final = """\
API and importer use the pool; 52 tests pass and no response has changed.

One thing is different by design: the importer wraps each row in `db.transaction()`, which is a savepoint inside the \
import. Without it, the first duplicate row would abort the whole import. It also catches only `UniqueViolation` now; \
the old `IntegrityError` hid missing accounts, too."""

HEALTH: Final = (
    '@app.get("/health")\ndef health() -> dict:\n    """Report that the process runs."""\n    return {"status": "ok"}\n',
    (
        '@app.get("/health")\ndef health(response: Response) -> dict:\n    """Report whether the database answers."""\n    try:\n'
        '        with pool().connection(timeout=2) as db:\n            db.execute("SELECT 1")\n    except PoolTimeout:\n'
        '        response.status_code = 503\n        return {"status": "no database"}\n    return {"status": "ok"}\n'
    ),
)

HEALTH_TEST: Final = """from psycopg_pool import PoolTimeout


def test_health_is_ok_with_a_database(client):
    assert client.get("/health").json() == {"status": "ok"}


def test_health_is_503_without_a_database(client, monkeypatch):
    def refuse(*_, **__):
        raise PoolTimeout

    monkeypatch.setattr("psycopg_pool.ConnectionPool.connection", refuse)
    assert client.get("/health").status_code == 503
"""

LOAD: Final = '''"""Measure the service under load."""

import argparse
import asyncio
import statistics
import time

import httpx


async def client(url: str, until: float, times: list[float], failed: list[int]) -> None:
    """Send requests one after another until the time is up."""
    async with httpx.AsyncClient(timeout=10) as http:
        while time.monotonic() < until:
            began = time.monotonic()
            answer = await http.get(url)
            times.append(time.monotonic() - began)
            if answer.status_code >= 500:
                failed.append(answer.status_code)
'''

LOADED: Final = """\
clients   40
requests  61,204
failed    0
median    11.8 ms
p95       24.1 ms
p99       39.6 ms
pool      8 connections, longest wait 31 ms"""

POOL_TIMEOUT: Final = """\
It waited up to 30 s, the default of psycopg. It is 5 s now, then the client gets a 503.

With 40 clients and 8 connections the longest wait was 31 ms, so the limit is far away."""

MONTH: Final = "clients   4\nrequests  24,870\nfailed    0\nmedian    3.1 ms\np95       5.0 ms\np99       7.7 ms"
EXPLAINED: Final = """\
 Index Scan using entries_account_day on entries  (cost=0.29..14.72 rows=236 width=54)
   Index Cond: ((account_id = 4) AND (day >= '2026-08-01'::date) AND (day < '2026-09-01'::date))
 Execution Time: 0.412 ms"""

CI_SERVICE: Final = """\
    runs-on: ubuntu-24.04
    services:
      db:
        image: postgres:17
        env:
          POSTGRES_USER: ledger
          POSTGRES_HOST_AUTH_METHOD: trust
        ports: ["5433:5432"]
        options: --health-cmd pg_isready --health-interval 2s --health-retries 15
"""
CI_STEPS: Final = """\
      - run: uv run yoyo apply --batch
      - run: uv run yoyo rollback --all --batch
      - run: uv run pytest
"""
CI_GREEN: Final = """\
✓ postgres test · 19280411
✓ test in 41s (ID 54811203)
  ✓ Set up job
  ✓ Initialize containers
  ✓ Run uv sync
  ✓ Run uv run ruff check .
  ✓ Run uv run yoyo apply --batch
  ✓ Run uv run yoyo rollback --all --batch
  ✓ Run uv run pytest"""

README_RUN: Final = (
    "    uv sync\n    uv run uvicorn ledger.app:app\n\nThe data is in `ledger.sqlite3` in the working directory. Set `LEDGER_DATABASE` to use another file.\n",
    (
        "    uv sync\n    docker compose up -d --wait\n    uv run yoyo apply --batch\n    uv run uvicorn ledger.app:app\n\n"
        "The data is in PostgreSQL 17. Set `LEDGER_DATABASE_URL` to use another server.\n"
    ),
)
README_BACKUP: Final = (
    "Stop the server and copy `ledger.sqlite3`.\n",
    "    scripts/backup.sh /backup/ledger/today.dump\n\nThe server keeps running. Restore with `pg_restore --clean`.\n",
)
DEPLOY_UNIT: Final = (
    "The unit file sets `LEDGER_DATABASE=/var/lib/ledger/ledger.sqlite3`. A cron job copies that file\nto the backup host every night at 02:30.\n",
    (
        "3. `yoyo apply --batch`, before the restart if there are new migrations\n\n"
        "The unit file sets `LEDGER_DATABASE_URL`. A cron job runs `scripts/backup.sh` every night at 02:30.\n"
    ),
)
MOVE: Final = """\
# Move to PostgreSQL

Saturday, 14 November, from 07:00. About ten minutes of downtime.

- [ ] `systemctl stop ledger` and disable the import in cron
- [ ] Copy `ledger.sqlite3` to the backup host
- [ ] `yoyo apply --batch`
- [ ] `python scripts/copy_sqlite.py /var/lib/ledger/ledger.sqlite3 ledger`
- [ ] `python scripts/compare_databases.py /var/lib/ledger/ledger.sqlite3 ledger`
- [ ] Set `LEDGER_DATABASE_URL` in the unit file
- [ ] `systemctl start ledger`, then `curl -f localhost:8000/health`
- [ ] Import one file by hand and check its rows
- [ ] Enable cron again, with `scripts/backup.sh` in place of `cp`
"""
BACKUP: Final = """\
#!/usr/bin/env bash
# Write a consistent backup while the server runs.
set -euo pipefail
target=${1:?usage: backup.sh FILE}
pg_dump --format=custom --dbname="${LEDGER_DATABASE_URL:-postgresql://ledger@127.0.0.1:5433/ledger}" > "$target.part"
mv "$target.part" "$target"
"""
DOCS_DONE: Final = """\
README, deployment notes and the checklist `docs/move.md` with nine steps. `scripts/backup.sh` replaces the `cp` of the \
cron job; its backup is consistent while the server runs. I tried it and listed its content with `pg_restore`."""

TIMES: Final = "copy     19.4 seconds\ncompare   7.2 seconds\ncopy     19.1 seconds\ncompare   7.0 seconds"
DOWNTIME: Final = """\
About **ten minutes** if you follow the checklist. The machine needs less than one: 20 s to copy, 7 s to \
compare, a few seconds for the restart. The import by hand takes the rest."""

COPY_BACK: Final = '''"""Copy a PostgreSQL database back into a SQLite file, to return to v0.9.0."""

import sqlite3
import sys

from psycopg import connect

from ledger.store.schema import create

TABLES = ("accounts", "entries", "rules", "imports", "budgets", "payees")


def main() -> int:
    """Copy all tables in one transaction."""
    source, path = sys.argv[1:]
    with connect(port=5433, user="ledger", dbname=source) as db, sqlite3.connect(path) as target:
        create(target)
        for table in TABLES:
            rows = db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
            marks = ", ".join("?" * len(rows[0])) if rows else ""
            target.executemany(f"INSERT INTO {table} VALUES ({marks})", [tuple(map(str, row)) for row in rows])
            print(f"{table:<10} {len(rows):>7,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
MOVE_BACK: Final = (
    "- [ ] Enable cron again, with `scripts/backup.sh` in place of `cp`\n",
    (
        "- [ ] Enable cron again, with `scripts/backup.sh` in place of `cp`\n\n## Return to SQLite\n\n"
        "1. Stop the service and cron.\n2. `python scripts/copy_back.py ledger /var/lib/ledger/ledger.sqlite3`\n"
        "3. Deploy the tag `v0.9.0` and start the service.\n"
    ),
)
COPIED_BACK: Final = "accounts        38 rows\nentries     48,211 rows\nrules          164 rows\nimports        902 rows\nbudgets        311 rows\npayees       1,077 rows"
BACK_DONE: Final = """\
Yes. `scripts/copy_back.py` writes the present data into a SQLite file that v0.9.0 reads; I compared the result with the \
rehearsal database and all sums are equal. The steps are in `docs/move.md` under "Return to SQLite"."""

REVIEW_PROMPT: Final = """\
Review the branch `postgres` against `main` in /home/ada/ledger-import. It moves a FastAPI service from SQLite to \
PostgreSQL 17. Look for: transactions that are too long, too short or missing; anything that can lose or change data in \
scripts/copy_sqlite.py; behaviour of the HTTP API that changed. Do not change files. Report at most five findings, the \
most serious first, each with path and line, and say how you verified it."""

REVIEW: Final = """\
Three findings, the most serious first.

1. **scripts/copy_sqlite.py:14**: the source is opened read-only but without a lock. If cron imports a file during the copy, \
`entries` and `imports` come from different moments. Take a read transaction before the first table.
2. **ledger/db.py:21**: the time zone of the session is that of the server. `payees.last_seen` is copied as local time, so \
on a server in UTC all values shift by one or two hours. Set `TimeZone` per connection.
3. **yoyo.ini**: the migration table has the default name `_yoyo_migration`. Harmless, but it will appear in dumps.

Transactions in the API are right: one per request, committed after the response is computed. 41 store tests pass."""

REVIEWED: Final = """\
Three findings:

| # | Where | Problem | Severity |
|---|-------|---------|----------|
| 1 | `scripts/copy_sqlite.py:14` | No lock on the source while copying | high |
| 2 | `ledger/db.py:21` | Time zone depends on the server | high |
| 3 | `yoyo.ini` | Default name of the migration table | low |

I checked the first two: both are real. The second one is mine: I had assumed Europe/Berlin and never set it."""

FIX_LOCK: Final = (
    '    source = sqlite3.connect(f"file:{source_path}?mode=ro", uri=True)\n',
    (
        "    source = sqlite3.connect(source_path, isolation_level=None)\n    # Block writers until all tables are copied.\n"
        '    source.execute("BEGIN IMMEDIATE")\n'
    ),
)
FIX_TIMEZONE: Final = (
    "            settings.database_url,\n",
    '            settings.database_url,\n            kwargs={"options": "-c TimeZone=Europe/Berlin"},\n',
)
TIMEZONE_TEST: Final = """from ledger.db import connection


def test_sessions_use_the_time_zone_of_the_data():
    with connection() as db:
        assert db.execute("SHOW TimeZone").fetchone() == ("Europe/Berlin",)
"""

GREP_ENV: Final = 'ledger/config.py:22:        database=os.environ.get("LEDGER_DATABASE", "ledger.sqlite3"),\nscripts/copy_back.py:8:from ledger.store.schema import create'
CONFIG_OLD: Final = ('        database=os.environ.get("LEDGER_DATABASE", "ledger.sqlite3"),\n', "")
REMOVED: Final = """\
Removed: the setting, `ledger/store/schema.py` and with it the last `import sqlite3` below `ledger/`. `copy_back.py` has its \
own copy of the old tables, since it has to keep working without the package."""

PR_BODY: Final = """\
Moves the service from SQLite to PostgreSQL 17. The HTTP API does not change.

- stores, API and importer use psycopg 3 with a pool
- the schema is in migrations that can be rolled back
- tests run in parallel on copies of a template database
- `docs/move.md` is the checklist for Saturday"""

PR_DONE: Final = """\
Opened: [ada/ledger-import#31](https://example.com/ada/ledger-import/pull/31), 38 files, +812 -341, six commits. CI has \
started."""

GREP_OVERRIDE: Final = "\n".join(
    f"tests/api/test_{name}.py:9:    app.dependency_overrides[database] = lambda: db" for name in API
)
API_CONFTEST: Final = '''"""Fixtures for the tests of the API."""

import pytest
from fastapi.testclient import TestClient

from ledger.api.deps import database
from ledger.app import app


@pytest.fixture
def client(db):
    """Return a client whose requests use the connection of the test."""
    app.dependency_overrides[database] = lambda: db
    yield TestClient(app)
    app.dependency_overrides.clear()
'''
OVERRIDES: Final = """\
They override `database` with a connection of their own, five times the same two lines. I moved them into one fixture \
`client` in `tests/api/conftest.py`. Its requests run inside the transaction of the test, so they are rolled back as well."""

IMPORT_TIMES: Final = "rows      6,118\nseconds   41.7\nstatements 18,354\nper row   6.8 ms"
IMPORT_RULES: Final = (
    "    count = 0\n    for row in rows(path):\n",
    "    count = 0\n    known = rules.all(db)\n    for row in rows(path):\n",
)
IMPORT_MATCH: Final = ("rules.matching(db, row.purpose)", "known.match(row.purpose)")
RULES_ALL: Final = (
    "def remove(db: Connection, rule_id: int) -> None:\n",
    (
        "def all(db: Connection) -> RuleSet:\n"
        '    """Return all rules, by priority, for imports that match many rows."""\n'
        '    rows = db.execute("SELECT id, pattern, account_id, priority FROM rules ORDER BY priority, id")\n'
        "    return RuleSet([Rule(*row) for row in rows])\n\n\n"
        "def remove(db: Connection, rule_id: int) -> None:\n"
    ),
)
RULES_IMPORT: Final = ("from ledger.model import Rule\n", "from ledger.model import Rule, RuleSet\n")
RULES_TEST: Final = (
    "def test_removed_rule_is_gone(db):\n",
    (
        'def test_rule_set_matches_like_the_database(db):\n    for pattern in ("%FAEHRE%", "miete%", "%"):\n'
        '        rules.add(db, rule(pattern=pattern))\n    for purpose in ("Faehre 12", "MIETE", "x"):\n'
        "        assert rules.all(db).match(purpose) == rules.matching(db, purpose)[0]\n\n\n"
        "def test_removed_rule_is_gone(db):\n"
    ),
)
IMPORT_FASTER: Final = "rows      6,118\nseconds   9.3\nstatements 6,121\nper row   1.5 ms"
IMPORT_DONE: Final = """\
Three statements per row were two too many. The rules are read once per import now and matched in Python: 9.3 s instead of \
41.7 s for a month of rows. A test compares `RuleSet.match` with the query for every kind of pattern."""

IMPORT_LOCK: Final = (
    "    digest = hashlib.sha256(path.read_bytes()).digest()\n",
    (
        "    # Two hosts run this from cron. The second one waits here and then finds the file imported.\n"
        '    db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))\n'
        "    digest = hashlib.sha256(path.read_bytes()).digest()\n"
    ),
)
IMPORT_LOCK_NAME: Final = ("\n\ndef run(", "\nLOCK = 0x1ED6E7\n\n\ndef run(")
LOCK_TEST: Final = """from concurrent.futures import ThreadPoolExecutor

from ledger import importer


def test_two_hosts_import_a_file_once(database_url, statement):
    with ThreadPoolExecutor(2) as both:
        counts = sorted(both.map(lambda _: importer.main(database_url, statement), range(2)))
    assert counts == [0, 41]
"""
LOCKED: Final = """\
Only one of them imports a file. The import takes an advisory lock that ends with its transaction; the second host waits, \
finds the checksum in `imports` and returns 0. The test runs both in parallel, 50 times without a failure."""

RESTART_1: Final = (
    "requests  8,412\nfailed    11   (500, in the first 0.4 s after the restart)\nmedian    3.4 ms\np99       1,204 ms"
)
RESTART_2: Final = "requests  8,377\nfailed    0\nmedian    3.6 ms\np99       1,188 ms"
POOL_CHECK: Final = (
    "            timeout=5,\n",
    "            timeout=5,\n            check=ConnectionPool.check_connection,\n",
)
RESTARTED: Final = """\
The pool handed out connections that the server had closed: 11 requests failed in the first 0.4 s. It now checks each \
connection before use, which costs 0.2 ms. With that, a restart causes a delay of about a second and no errors."""

SLOW: Final = (
    " 0.41 ms  29,114  SELECT id, account_id, day, amount, purpose FROM entries WHERE account_id = $1 AND day >= $2\n"
    " 0.09 ms  61,204  SELECT id, name, iban, opened FROM accounts WHERE id = $1\n"
    "11.80 ms     311  SELECT id, account_id, month, amount FROM budgets WHERE month >= date_trunc($1, $2)\n"
    " 0.31 ms   6,118  INSERT INTO entries (account_id, day, amount, purpose) VALUES ($1, $2, $3, $4) RETURNING id"
)
BUDGET_INDEX: Final = "CREATE INDEX budgets_month ON budgets (month);\n"
SLOW_DONE: Final = """\
One query stands out: `budgets.since` at 11.8 ms, because `month` has no index. `0003_budgets_month` adds it; the query \
takes 0.2 ms now. `log_min_duration_statement` is 250 ms in `compose.yaml` and in the deployment notes."""

RESTORE_TEST: Final = """\
#!/usr/bin/env bash
# Restore a backup into a scratch database and compare the number of rows.
set -euo pipefail
createdb -p 5433 restore_test
trap 'dropdb -p 5433 restore_test' EXIT
pg_restore --dbname=postgresql://ledger@127.0.0.1:5433/restore_test "$1"
for table in accounts entries rules imports budgets payees; do
  psql -p 5433 -At -c "SELECT '$table', count(*) FROM $table" restore_test
done
"""
RESTORED: Final = "accounts|38\nentries|48211\nrules|164\nimports|902\nbudgets|311\npayees|1077"
RESTORE_DONE: Final = """\
Not that I can see, so I added `scripts/restore_test.sh`. It restores a dump into a \
scratch database and prints the number of rows: all six match. I added it to the deployment notes as a monthly job."""

MONTH_CHECK: Final = (
    "  UNIQUE (account_id, month)\n",
    "  UNIQUE (account_id, month),\n  CHECK (extract(day FROM month) = 1)\n",
)
MONTH_SHOWN: Final = '    "budgets_month_check" CHECK (EXTRACT(day FROM month) = 1::numeric)'

# Thinking before the final answer, by number of the prompt.
BEFORE_ANSWERS: Final = {
    1: "No changes yet. Name the two risks, so that the user can object.",
    2: "The time zone is an assumption. State it as one.",
    3: "Mention the consequence for migrations, since Alembic needs models.",
    4: "The old setting has to keep working for now. Say so.",
    6: "Three differences are worth naming, because the data can have the same problems.",
    7: "The index alone does not help. Ask before changing the query.",
    9: "The user wants to see the pattern before the other stores.",
    10: "None of the failures came from the query. That is the important part.",
    14: "unseen_for with fractions was a hidden behaviour. Mention it.",
    15: "The rest belongs to step 6.",
    17: "The user was right about the workers. Confirm with the lock waits.",
    21: "Compare with the time of the SQLite tests, since they asked for parallel runs.",
    22: "List what was changed in the data: dates, orphans, sequences.",
    23: "Counts are not proof. Sums and hashes together are.",
    25: "The savepoint is a change of behaviour that a reviewer will ask about.",
    27: "Give both times and the reason.",
    28: "Two hosts: the second one must not fail, only wait.",
    32: "0.2 ms per request is a fair price. Name it.",
    35: "Report the time of the whole job, too.",
    37: "This was a real gap. The monthly job keeps it closed.",
    38: "The rehearsals are the best estimate.",
    40: "Do not repeat the report, only what has to be decided.",
}
