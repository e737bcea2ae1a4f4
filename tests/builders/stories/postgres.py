"""One long session: the ledger service moves from SQLite to PostgreSQL."""

from collections.abc import Callable
from typing import Final, Self

import msgspec
from tests.builders.blocks import Json, thinking, tool
from tests.builders.builder import Session
from tests.builders.stories import postgres_files as files
from tests.builders.stories import postgres_texts as texts
from tests.builders.stories.kit import bash, begin, edit, grep, read, write
from tests.builders.stories.postgres_files import ROOT, STORES, Store

__all__ = ["stories"]

_TEST: Final = "uv run pytest -q -p no:xdist"
_HIDDEN: Final = 1_900
"""Output tokens of a response that are not in its records, such as omitted thinking."""


class Do(msgspec.Struct, frozen=True):
    """A tool call and its result; without `output` the builder computes the result."""

    call: Json
    output: str | None = None
    error: bool = False
    seconds: float = 0.0


def stories() -> list[Session]:
    """Return the session of this story."""
    work = Work()
    for part in (_survey, _database, _migrations, _ported, _fixtures, _copied, _served, _checked, _published):
        part(work)
    return [work.made.title("Move the ledger to PostgreSQL").exit()]


def sh(command: str, description: str, output: str, *, seconds: float = 2) -> Do:
    """Run a command that succeeds."""
    return Do(bash(command, description), output, seconds=seconds)


def bad(command: str, description: str, output: str, *, seconds: float = 2, status: int = 1) -> Do:
    """Run a command that fails."""
    return Do(bash(command, description), f"Exit code {status}\n{output}", error=True, seconds=seconds)


def look(path: str) -> Do:
    """Read a file."""
    return Do(read(f"{ROOT}/{path}"))


def find(pattern: str, output: str, path: str = "ledger") -> Do:
    """Search for a pattern."""
    return Do(grep(pattern, f"{ROOT}/{path}"), output)


def names(pattern: str, output: str) -> Do:
    """List files."""
    return Do(tool("Glob", pattern=pattern, path=ROOT), output)


def put(path: str, content: str) -> Do:
    """Write a file."""
    return Do(write(f"{ROOT}/{path}", content))


def change(path: str, old: str, new: str) -> Do:
    """Change a file at one place."""
    return Do(edit(f"{ROOT}/{path}", old, new))


def change_all(path: str, old: str, new: str) -> Do:
    """Change a file wherever a text occurs."""
    return Do(tool("Edit", replace_all=True, file_path=f"{ROOT}/{path}", old_string=old, new_string=new))


def task(subject: str, description: str) -> Do:
    """Create a task."""
    return Do(tool("TaskCreate", subject=subject, description=description, activeForm=subject))


def state(number: int, status: str = "completed") -> Do:
    """Change the status of a task."""
    return Do(tool("TaskUpdate", taskId=str(number), status=status))


def agent(description: str, prompt: str, kind: str = "Explore") -> Json:
    """Return a call that starts a sub-agent."""
    return tool("Agent", description=description, subagent_type=kind, prompt=prompt)


class Work:
    """Writes the session, with token counts that grow with what the tools return."""

    def __init__(self, made: Session | None = None) -> None:
        self.made = made or begin(
            seed="ledger-4", cwd=ROOT, branch="postgres", start="2026-11-12T08:21:00.000Z", permission="acceptEdits"
        )
        if made is None:
            # Checkpoints are turned off, as they would triple the number of files of the demo.
            self.made.gen = msgspec.structs.replace(self.made.gen, snapshots=False)
            for path, content in files.FILES.items():
                self.made.have(f"{ROOT}/{path}", content)

    def ask(self, words: str, after: float = 40) -> Self:
        """Write the next prompt, after the seconds it takes to read the answer."""
        self.made.wait(after * 1.7).user(words)
        return self

    def say(self, words: str, *dos: Do, think: str = "", more: int = 0) -> Self:
        """Write a response with thinking, text and tool calls, and the results of the calls."""
        if not dos and not think and not self.made.depth:
            think = texts.BEFORE_ANSWERS.get(len(self.made.prompts), "")
        parts: list[str | Json] = [thinking(think)] if think else []
        parts += [words] if words else []
        calls = [do.call for do in dos]
        self.made.assistant(*parts, *calls, output=_output(words, think, calls) + _HIDDEN)
        # Thinking is billed once and not sent again.
        self.made.context -= _HIDDEN
        for do in dos:
            self._answer(do)
        self.made.much(more)
        return self

    def agents(self, words: str, *works: tuple[Json, Callable[[Session], object]], think: str = "") -> Self:
        """Write a response that starts sub-agents, and their reports."""
        calls = [call for call, _ in works]
        parts: list[str | Json] = [thinking(think)] if think else []
        self.made.assistant(*parts, words, *calls, output=_output(words, think, calls))
        for _, work in works:
            self.made.agent(work)
        self.made.much(1_900 * len(works))
        return self

    def _answer(self, do: Do) -> None:
        self._check(do.call)
        self.made.wait(do.seconds)
        before = len(self.made.taken())
        self.made.result(do.output, error=do.error)
        self.made.much(190 + sum(len(str(each.get("message", ""))) for each in self.made.taken()[before:]) // 3)

    def _check(self, call: Json) -> None:
        """Assert that the old text of an edit is in the file."""
        if call["name"] != "Edit":
            return
        held = self.made.room.files[call["input"]["file_path"]]
        assert call["input"]["old_string"] in held, call["input"]


def _output(words: str, think: str, calls: list[Json]) -> int:
    return 480 + (len(words) + 5 * len(think) + len(str(calls))) // 3


def _survey(work: Work) -> None:
    work.ask(texts.TASK)
    work.say(
        "I will first get an overview of the places that touch the database.",
        names("**/*.py", texts.PYTHON_FILES),
        find("sqlite3", texts.GREP_SQLITE),
        look("pyproject.toml"),
        sh("git log --oneline -8 && git status --short", "Show recent commits", texts.GIT_LOG),
        think="The service is small, but SQLite may leak into more places than the store package. "
        "Explore first, then plan.",
    )
    work.say(
        "",
        look("ledger/store/schema.py"),
        look("ledger/api/deps.py"),
        look("ledger/config.py"),
        look("ledger/importer.py"),
        look("docs/deploy.md"),
        more=2_400,
    )
    work.say(
        "",
        look("ledger/store/entries.py"),
        look("ledger/store/rules.py"),
        look("tests/store/test_entries.py"),
        sh("wc -l ledger/*.py ledger/*/*.py tests/*/*.py | tail -1", "Count lines", "  2318 total"),
        sh(
            "sqlite3 ledger.sqlite3 'select count(*) from entries; select count(*) from accounts'",
            "Count the rows",
            "48211\n37",
        ),
        more=1_800,
    )
    work.say("", *(task(subject, about) for subject, about in texts.TASKS))
    work.say(texts.PLAN)
    work.made.ai_title("Move the ledger service to PostgreSQL")

    work.ask(
        "Before you start, go through every query and list what PostgreSQL will not accept. "
        "Same for the tests and the scripts around the repo (cron, CI).",
        95,
    )
    work.agents(
        "Two surveys in parallel: the queries, and everything around the code.",
        (
            agent("Survey the SQL", "List every SQL statement in ledger/ and name each part PostgreSQL rejects."),
            _survey_sql,
        ),
        (
            agent("Survey tests and scripts", "Which tests, scripts and CI jobs assume a SQLite file? Give paths."),
            _survey_scripts,
        ),
        think="Both are independent and only read. Run them at the same time.",
    )
    work.say("Both reports are consistent. Checking two claims before I rely on them.", *texts_checks())
    work.say(texts.SURVEYED)

    work.ask("psycopg 3 directly or SQLAlchemy? I would like to keep plain SQL.", 120)
    work.say(
        "",
        find("execute\\(", texts.GREP_EXECUTE),
        sh("uv pip list | grep -i -E 'sql|psycopg|alembic'", "List database packages", ""),
        sh("uv pip compile - <<< 'psycopg[binary,pool]' | head", "Resolve psycopg", texts.RESOLVED, seconds=3),
        think="32 statements, no dynamic queries. An ORM would add more than it removes.",
    )
    work.say(texts.DRIVER)


def texts_checks() -> tuple[Do, ...]:
    """Check two claims of the surveys."""
    return (
        find("strftime|julianday|NOCASE", texts.GREP_FUNCTIONS),
        sh("crontab -l -u ledger", "Show the cron jobs", texts.CRON, seconds=1),
        look("ledger/store/payees.py"),
    )


def _survey_sql(agent_: Session) -> None:
    work = Work(agent_)
    work.say("I will list the statements first.", find("execute\\(", texts.GREP_EXECUTE), names("**/*.sql", ""))
    work.say("", *(look(f"ledger/store/{each.name}.py") for each in STORES), more=1_500)
    work.say("", find("INSERT OR|PRAGMA|AUTOINCREMENT|NOCASE", texts.GREP_DIALECT), look("ledger/store/schema.py"))
    work.say(texts.SQL_REPORT)


def _survey_scripts(agent_: Session) -> None:
    work = Work(agent_)
    work.say("", find("sqlite", texts.GREP_SCRIPTS, "."), names(".github/**", f"{ROOT}/.github/workflows/test.yml"))
    work.say("", look(".github/workflows/test.yml"), look("tests/store/test_imports.py"), look("docs/deploy.md"))
    work.say("", find(":memory:", texts.GREP_MEMORY, "tests"), look("README.md"), more=900)
    work.say(texts.SCRIPTS_REPORT)


def _database(work: Work) -> None:
    work.ask("ok, psycopg 3 with a pool. start with a local database", 60)
    work.say("", state(1, "in_progress"), put("compose.yaml", texts.COMPOSE))
    work.say(
        "",
        bad("docker compose up -d --wait", "Start PostgreSQL", texts.PORT_TAKEN, seconds=14),
        think="A compose file with a health check, so that `--wait` means ready.",
    )
    work.say(
        "Port 5432 is taken. Checking which process uses it before I change anything.",
        sh("ss -ltnp 'sport = :5432'", "Show the listener", texts.LISTENER),
        sh("docker ps --format '{{.Names}} {{.Ports}}'", "List containers", "tidegauge-db-1 127.0.0.1:5432->5432/tcp"),
    )
    work.say(
        "That is the database of tidegauge. The ledger gets port 5433.",
        change("compose.yaml", '      - "127.0.0.1:5432:5432"\n', '      - "127.0.0.1:5433:5432"\n'),
        sh("docker compose up -d --wait", "Start PostgreSQL", texts.STARTED, seconds=9),
        sh("docker compose exec db psql -U ledger -c 'select version()'", "Ask for the version", texts.VERSION),
    )
    work.say(
        "",
        change(
            "pyproject.toml",
            '  "fastapi>=0.115",\n',
            '  "fastapi>=0.115",\n  "psycopg[binary,pool]>=3.2",\n  "yoyo-migrations>=9.0",\n',
        ),
        sh("uv sync", "Install the dependencies", texts.SYNCED, seconds=6),
        change("ledger/config.py", '    database: str = "ledger.sqlite3"\n', texts.CONFIG_FIELDS),
        change(
            "ledger/config.py",
            '        database=os.environ.get("LEDGER_DATABASE", "ledger.sqlite3"),\n',
            texts.CONFIG_LOAD,
        ),
        put("ledger/db.py", files.DB_CODE),
    )
    work.say(
        "",
        sh(
            "uv run python -c 'from ledger.db import connection\nwith connection() as db: "
            'print(db.execute("select 1").fetchone())\'',
            "Try the pool",
            "(1,)",
        ),
        sh("uv run ruff check ledger", "Run the linter", "All checks passed!"),
        state(1),
    )
    work.say(texts.DATABASE_DONE)

    work.ask("Why a global for the pool? Could the app own it?", 45)
    work.say(
        "", look("ledger/app.py"), find("db\\.connection|pool\\(", "ledger/db.py:14:def pool() -> ConnectionPool:")
    )
    work.say(
        "",
        change("ledger/app.py", *texts.LIFESPAN_IMPORT),
        change("ledger/app.py", *texts.LIFESPAN),
        change("ledger/db.py", *texts.POOL_OPEN),
        think="The importer runs outside the app and needs the pool, too. Keep the function, let the app "
        "open and close it.",
    )
    work.say("", sh("uv run python -c 'import ledger.app'", "Import the app", ""))
    work.say(texts.POOL_ANSWER)


def _migrations(work: Work) -> None:
    work.ask(
        "Good. Now the schema as migrations. Use real types this time: date, timestamptz, bytea, and numeric "
        "for money. Ids stay integers, the exports contain them.",
        80,
    )
    work.say(
        "",
        state(2, "in_progress"),
        put("migrations/0001_tables.sql", texts.MIGRATION),
        put("migrations/0001_tables.rollback.sql", texts.ROLLBACK),
        put("yoyo.ini", texts.YOYO),
        think="Identity columns instead of AUTOINCREMENT. NOCASE becomes a unique index on lower(name).",
    )
    work.say("", bad("uv run yoyo apply --batch", "Apply the migrations", texts.APPLY_QUOTES, seconds=3))
    work.say(
        "PostgreSQL reads `\"\"` as an empty identifier. The default has to be `''`.",
        change("migrations/0001_tables.sql", 'purpose text NOT NULL DEFAULT ""', "purpose text NOT NULL DEFAULT ''"),
        bad("uv run yoyo apply --batch", "Apply the migrations", texts.APPLY_ORDER, seconds=3),
    )
    work.say(
        "`entries` refers to `accounts` before it exists; SQLite does not check that.",
        change("migrations/0001_tables.sql", *texts.ORDER),
        bad("uv run yoyo apply --batch", "Apply the migrations", texts.APPLY_UNIQUE, seconds=3),
        think="The order is right now. An expression is not allowed in a table constraint, only in an index.",
    )
    work.say(
        "",
        change(
            "migrations/0001_tables.sql",
            "  opened date NOT NULL,\n  UNIQUE (lower(name))\n",
            "  opened date NOT NULL\n",
        ),
        change("migrations/0001_tables.sql", *texts.NAME_INDEX),
        sh("uv run yoyo apply --batch", "Apply the migrations", texts.APPLIED, seconds=3),
        sh("docker compose exec db psql -U ledger -c '\\d entries'", "Show the table", texts.TABLE),
    )
    work.say(
        "",
        sh(
            "uv run yoyo rollback --all --batch && uv run yoyo apply --batch",
            "Roll back and apply",
            texts.ROLLED,
            seconds=5,
        ),
        state(2),
    )
    work.say(texts.MIGRATED)

    work.ask("Is there an index for account + day? The month view is slow already.", 70)
    work.say(
        "",
        put("migrations/0002_entries_account_day.sql", texts.INDEX),
        sh("uv run yoyo apply --batch", "Apply the migrations", texts.APPLIED_2, seconds=3),
        find("of_month", texts.GREP_MONTH),
        sh(
            'docker compose exec db psql -U ledger -c "$(cat scripts/explain_month.sql)"',
            "Explain the query",
            texts.EXPLAIN,
        ),
        think="of_month filters by to_char(day), which cannot use an index on day. A range can.",
    )
    work.say(texts.INDEXED)
    work.ask("yes please, range", 25)
    work.say("", state(3, "in_progress"), find("class Entry", "ledger/model.py:21:class Entry:"))
    work.say("Noted for the port of `entries`: `day >= %s AND day < %s`, computed in `Month.bounds()`.")


def _ported(work: Work) -> None:
    """Port the stores, one turn each."""
    for store, prompt, wait in zip(STORES, texts.PORT_PROMPTS, (50, 35, 90, 30, 140, 40), strict=True):
        work.ask(prompt, wait)
        _port(work, store)
    work.ask("is anything left that imports sqlite3?", 30)
    work.say(
        "",
        find("sqlite3", texts.GREP_LEFT),
        sh("git diff --stat", "Show the size of the change", texts.DIFF_STAT),
        sh(f"{_TEST} tests/store", "Run the store tests", texts.passed(41, 2.7), seconds=4),
        state(3),
    )
    work.say(texts.LEFT)
    work.ask("run the whole suite", 20)
    work.made.assistant(
        "All tests, in parallel as `pyproject.toml` has it.", bash("uv run pytest -q", "Run all tests"), output=310
    ).wait(170)
    work.made.interrupt()
    work.ask(
        "It has been hanging for two minutes: -n auto starts 16 workers on one database. No xdist until the fixtures are done.",
        15,
    )
    work.say(
        "",
        change("pyproject.toml", 'addopts = ["-ra", "-n", "auto"]', 'addopts = ["-ra"]'),
        sh(
            'docker compose exec db psql -U ledger -c "select pid, state, wait_event_type, left(query, 40) from '
            "pg_stat_activity where datname = 'ledger'\"",
            "Show waiting connections",
            texts.ACTIVITY,
        ),
        sh("docker compose restart db", "Drop the stuck connections", " Container ledger-db-1  Started", seconds=6),
        sh(f"{_TEST} tests/store", "Run the store tests", texts.passed(41, 2.6), seconds=4),
        think="16 workers truncate the same tables and wait for each other's locks. The user is right.",
    )
    work.say(texts.HANG)


def _port(work: Work, store: Store) -> None:
    path, tests = f"ledger/store/{store.name}.py", f"tests/store/test_{store.name}.py"
    old_insert, new_insert = files.insert_old(store), files.insert_new(store)
    lead, think = texts.PORTS[store.name]
    work.say("", look(path), look(tests), think=think)
    work.say(
        lead,
        change(path, "import sqlite3\n", "from psycopg import Connection\n"),
        change_all(path, "db: sqlite3.Connection", "db: Connection"),
        change_all(path, "WHERE id = ?", "WHERE id = %s"),
        change(path, old_insert, new_insert),
        change(path, store.old, store.new),
        change(tests, files.FIXTURE, ""),
        change(tests, "import sqlite3\n\nimport pytest\n\n", ""),
    )
    run = f"{_TEST} {tests}"
    if store.name == "accounts":
        work.say("", put("tests/conftest.py", texts.CONFTEST))
    if store.name == "budgets":
        work.say(
            "A `CHECK` constraint costs next to nothing here.",
            change("migrations/0001_tables.sql", *texts.MONTH_CHECK),
            sh(
                "uv run yoyo rollback --all --batch && uv run yoyo apply --batch",
                "Apply again",
                texts.ROLLED,
                seconds=5,
            ),
            sh(
                "docker compose exec db psql -U ledger -c '\\d budgets' | grep CHECK",
                "Show the check",
                texts.MONTH_SHOWN,
            ),
        )
    for output, words, fix in texts.FAILURES.get(store.name, ()):
        work.say("", bad(run, f"Test {store.name}", output, seconds=3))
        work.say(words, change(*fix))
    work.say(
        "",
        sh(run, f"Test {store.name}", texts.passed(3 + len(store.columns), 0.7), seconds=3),
        sh(f"uv run ruff check {path} {tests}", "Run the linter", "All checks passed!"),
        sh(
            f"git diff --shortstat -- {path}",
            "Measure the change",
            " 1 file changed, 13 insertions(+), 12 deletions(-)",
        ),
    )
    work.say(texts.PORTED[store.name])


def _fixtures(work: Work) -> None:
    made = work.made
    work.ask("Now fixtures, so that tests can run in parallel again.", 110)
    work.say(
        "", state(4, "in_progress"), look("tests/conftest.py"), find("def db", "tests/conftest.py:9:def db():", "tests")
    )
    work.say(
        texts.FIXTURE_CHOICE, think="Three ways: a container per worker, a schema per worker, a transaction per test."
    )
    made.done()
    prompts = len(made.prompts)
    work.ask("A container per worker, with testcontainers.", 30)
    work.say(
        "",
        sh("uv add --dev testcontainers[postgres]", "Add testcontainers", texts.TESTCONTAINERS, seconds=5),
        put("tests/conftest.py", texts.CONFTEST_CONTAINER),
        sh("uv run pytest -q -n 4 tests/store", "Run the store tests", texts.passed(41, 38.4), seconds=41),
    )
    work.say("It works, but 38 s instead of 3 s: every worker starts a container of its own, and each takes 9 s.")
    made.rewind(prompts)
    made.have(f"{ROOT}/tests/conftest.py", texts.CONFTEST)
    work.ask(
        "Use one template database: create it once per run, then CREATE DATABASE ... TEMPLATE per worker, and a transaction per test.",
        75,
    )
    work.say(
        "",
        put("tests/conftest.py", texts.CONFTEST_TEMPLATE),
        sh("uv run pytest -q -n 4 tests/store", "Run the store tests", texts.passed(41, 1.9), seconds=4),
        think="Copying a template takes about 60 ms. The migrations run once, as a by-product they are tested.",
    )
    work.say(
        "",
        change("pyproject.toml", 'addopts = ["-ra"]', 'addopts = ["-ra", "-n", "auto"]'),
        sh("uv run pytest -q", "Run all tests", texts.passed(118, 6.2), seconds=9),
    )
    # The compaction keeps the last two records, which have to be a call and its result.
    work.say("", state(4))
    work.say(texts.FIXTURES_DONE)
    made.compact(texts.SUMMARY, trigger="auto", keep=2)


def _copied(work: Work) -> None:
    work.ask(
        "Next: copy the data. It has to be repeatable, I want to rehearse it with last night's backup before the real move.",
        180,
    )
    work.say(
        "",
        state(5, "in_progress"),
        look("ledger/store/schema.py"),
        look("migrations/0001_tables.sql"),
        sh("ls -la /var/backups/ledger | tail -3", "List the backups", texts.BACKUPS),
        think="Read with sqlite3, write with COPY, in the order of the foreign keys, one transaction. "
        "Then set the identity sequences.",
    )
    work.say("", put("scripts/copy_sqlite.py", texts.COPY), sh("createdb -p 5433 rehearsal", "Create a database", ""))
    run = "uv run python scripts/copy_sqlite.py /var/backups/ledger/2026-11-12.sqlite3 rehearsal"
    work.say("", bad(run, "Rehearse the copy", texts.COPY_DATE, seconds=4))
    work.say(
        "A German date in a column that SQLite never checked. How many of them are there?",
        sh(f'sqlite3 $BACKUP "{texts.COUNT_DATES}"', "Count other date forms", "212|2019-03-04|2019-05-31"),
        find("strptime", texts.GREP_STRPTIME),
    )
    work.say(
        "212 rows of spring 2019, written by an old importer. I will convert this one form and stop at any other.",
        change("scripts/copy_sqlite.py", *texts.COPY_DAY),
        change("scripts/copy_sqlite.py", *texts.COPY_DAY_USE),
    )
    work.say("", bad(run, "Rehearse the copy", texts.COPY_ORPHANS, seconds=11))
    work.made.enqueue("orphans: put them on a new account 'Unassigned', do not drop any row")
    work.say(
        "Four entries refer to an account that was deleted.",
        sh(f'sqlite3 $BACKUP "{texts.FIND_ORPHANS}"', "Show the orphans", texts.ORPHANS),
    )
    work.made.absorb()
    work.say(
        "",
        change("scripts/copy_sqlite.py", *texts.COPY_UNASSIGNED),
        bad(run, "Rehearse the copy", texts.COPY_SEQUENCE, seconds=19),
        think="The user decided on the orphans while I looked: a new account, nothing is dropped.",
    )
    work.say(
        "All rows are copied, but the sequences still start at 1. `setval` after each table.",
        change("scripts/copy_sqlite.py", *texts.COPY_SETVAL),
        sh("dropdb -p 5433 rehearsal && createdb -p 5433 rehearsal", "Recreate the database", ""),
        sh(run, "Rehearse the copy", texts.COPIED, seconds=21),
    )
    work.say(texts.COPY_DONE)

    work.ask("How do we know the data is the same? counts are not enough for me", 120)
    work.say(
        "",
        put("scripts/compare_databases.py", texts.COMPARE),
        sh(
            "uv run python scripts/compare_databases.py $BACKUP rehearsal",
            "Compare both databases",
            texts.COMPARED,
            seconds=8,
        ),
        think="Sum of amounts by account and month, and a hash over all rows in order of their id.",
    )
    work.say(
        "",
        sh(
            "git diff --stat HEAD -- scripts",
            "Show the scripts",
            " scripts/compare_databases.py | 38 ++\n scripts/copy_sqlite.py | 71 ++",
        ),
        state(5),
    )
    work.say(texts.COMPARE_DONE)
    work.ask("nice. commit what we have, in sensible pieces", 60)
    work.say(
        "",
        sh("git status --short", "Show changed files", texts.STATUS),
        *(
            sh(f"git add {what} && git commit -q -m '{message}'", f"Commit {name}", "")
            for what, message, name in texts.COMMITS
        ),
        sh("git log --oneline -5", "Show the commits", texts.COMMITTED),
    )
    work.say("Five commits, each of them passes the tests on its own: I ran the suite with `git rebase --exec`.")


def _served(work: Work) -> None:
    work.ask("Now the API. Routers and the importer.", 150)
    work.say("", state(6, "in_progress"), *(look(f"ledger/api/{name}.py") for name in files.API))
    work.say("", look("ledger/api/deps.py"), look("ledger/importer.py"), look("ledger/app.py"))
    work.say(
        "The dependency lends a pooled connection; the routers lose their `commit()`, since the pool commits.",
        put("ledger/api/deps.py", texts.DEPS_NEW),
        think="with pool.connection() commits at the end of the request, after the response is computed. Good.",
    )
    for name in files.API:
        path = f"ledger/api/{name}.py"
        work.say(
            "",
            change(path, "import sqlite3\n\nfrom fastapi import APIRouter, Depends, HTTPException\n", texts.API_IMPORT),
            change_all(path, "db: sqlite3.Connection", "db: Connection"),
            change(path, "\n    db.commit()\n", "\n"),
        )
    work.say(
        "",
        change(
            "ledger/importer.py",
            "import sqlite3\nfrom pathlib import Path\n",
            "from pathlib import Path\n\nfrom psycopg import Connection\nfrom psycopg.errors import UniqueViolation\n",
        ),
        change("ledger/importer.py", "db: sqlite3.Connection", "db: Connection"),
        change("ledger/importer.py", *texts.IMPORT_SAVEPOINT),
        change("ledger/importer.py", "    db.commit()\n", ""),
        think="After an IntegrityError PostgreSQL aborts the whole transaction. Each row needs a savepoint.",
    )
    work.say(
        "",
        sh(
            "uv run pytest -q tests/api tests/test_importer.py",
            "Test API and importer",
            texts.passed(52, 3.8),
            seconds=6,
        ),
    )
    work.say(texts.API_DONE)

    work.ask("The API tests override the dependency, do they still do what they should?", 60)
    work.say(
        "",
        find("dependency_overrides", texts.GREP_OVERRIDE, "tests/api"),
        look("tests/conftest.py"),
        look("ledger/api/deps.py"),
    )
    work.say(
        "",
        put("tests/api/conftest.py", texts.API_CONFTEST),
        sh("sed -i '/^@pytest.fixture/,/^$/d' tests/api/test_*.py", "Remove the old fixtures", ""),
        sh("git diff --stat -- tests/api", "Show the change", " 5 files changed, 5 insertions(+), 60 deletions(-)"),
        sh("uv run pytest -q tests/api", "Test the API", texts.passed(46, 2.9), seconds=5),
        think="Five copies of one fixture. A shared one is in the transaction of `db`.",
    )
    work.say(texts.OVERRIDES)

    work.ask("The nightly import takes long with many rows. Where does the time go, and is it better now?", 75)
    work.say(
        "",
        sh(
            "uv run python scripts/load.py --import inbox/2026-09.csv",
            "Measure an import",
            texts.IMPORT_TIMES,
            seconds=43,
        ),
        find("rules\\.", "ledger/importer.py:21:            with db.transaction():", "ledger/importer.py"),
        look("ledger/store/rules.py"),
        think="Three statements per row: the match, the savepoint, the insert. The match is the slow one.",
    )
    work.say(
        "Every row asks the database for its rule. There are 164 rules, so they can be read once.",
        change("ledger/store/rules.py", *texts.RULES_IMPORT),
        change("ledger/store/rules.py", *texts.RULES_ALL),
        change("ledger/importer.py", *texts.IMPORT_RULES),
        change("ledger/importer.py", *texts.IMPORT_MATCH),
        change("tests/store/test_rules.py", *texts.RULES_TEST),
        sh(
            "uv run pytest -q tests/store/test_rules.py tests/test_importer.py",
            "Test rules and importer",
            texts.passed(13, 1.4),
            seconds=3,
        ),
        sh(
            "uv run python scripts/load.py --import inbox/2026-09.csv", "Measure again", texts.IMPORT_FASTER, seconds=11
        ),
    )
    work.say(texts.IMPORT_DONE)

    work.ask("With two hosts both will run the import from cron. Make sure only one does.", 50)
    work.say(
        "",
        look("ledger/importer.py"),
        change("ledger/importer.py", *texts.IMPORT_LOCK),
        change("ledger/importer.py", *texts.IMPORT_LOCK_NAME),
        put("tests/test_two_hosts.py", texts.LOCK_TEST),
        think="An advisory lock for the transaction. It needs no table and cannot be left behind.",
    )
    work.say(
        "",
        sh(
            "uv run pytest -q tests/test_two_hosts.py --count 50", "Repeat the test", texts.passed(50, 21.6), seconds=24
        ),
        sh(
            "uv run ruff check . && uv run ruff format --check .",
            "Run the linter",
            "All checks passed!\n61 files already formatted",
        ),
        sh(
            "git commit -qam 'Import a file once, from whichever host' && git log --oneline -1",
            "Commit",
            "91e4c2d Import a file once, from whichever host",
        ),
    )
    work.say(texts.LOCKED)

    work.ask("Any other slow queries?", 30)
    work.say(
        "",
        sh("docker compose exec db psql -U ledger -Atf scripts/slow.sql", "Show pg_stat_statements", texts.SLOW),
        put("migrations/0003_budgets_month.sql", texts.BUDGET_INDEX),
        put("migrations/0003_budgets_month.rollback.sql", "DROP INDEX budgets_month;\n"),
        sh("uv run yoyo apply --batch", "Apply the migrations", "[0003_budgets_month]\n1 migration applied", seconds=3),
        change("compose.yaml", "    ports:\n", "    command: -c log_min_duration_statement=250\n    ports:\n"),
        sh("uv run pytest -q", "Run all tests", texts.passed(124, 6.6), seconds=9),
    )
    work.say(texts.SLOW_DONE)

    work.ask("/health should notice when the database is gone", 40)
    work.say("", change("ledger/app.py", *texts.HEALTH), put("tests/api/test_health.py", texts.HEALTH_TEST))
    work.say(
        "", sh("uv run pytest -q tests/api/test_health.py", "Test the health check", texts.passed(2, 0.9), seconds=3)
    )
    work.say("`/health` asks the database with a timeout of 2 s and answers 503 without it.")
    work.ask("How long does a request wait when the pool is empty?", 55)
    work.say(
        "", find("timeout", "ledger/app.py:31:        with pool().connection(timeout=2) as db:"), look("ledger/db.py")
    )
    work.say(
        "",
        change(
            "ledger/db.py",
            "            open=True,\n",
            "            open=True,\n            timeout=5,\n            max_idle=300,\n",
        ),
        put("scripts/load.py", texts.LOAD),
        sh("uv run python scripts/load.py --clients 40 --seconds 20", "Measure under load", texts.LOADED, seconds=24),
        think="The default is 30 s. A client has given up by then.",
    )
    work.say(texts.POOL_TIMEOUT)
    work.ask("what happens to running requests when the database restarts?", 40)
    restart = "(sleep 8; docker compose restart db) & uv run python scripts/load.py --clients 4 --seconds 20"
    work.say("", sh(restart, "Restart under load", texts.RESTART_1, seconds=24), look("ledger/db.py"))
    work.say(
        "",
        change("ledger/db.py", *texts.POOL_CHECK),
        sh(restart, "Restart under load again", texts.RESTART_2, seconds=24),
        sh("uv run pytest -q tests/api", "Test the API", texts.passed(48, 3.0), seconds=5),
    )
    work.say(texts.RESTARTED)

    work.ask("Is the month view faster now?", 35)
    work.say(
        "",
        sh(
            "uv run python scripts/load.py --path /entries?month=2026-10 --clients 4",
            "Measure the month view",
            texts.MONTH,
            seconds=22,
        ),
        sh(
            'docker compose exec db psql -U ledger -c "$(cat scripts/explain_month.sql)"',
            "Explain the query",
            texts.EXPLAINED,
        ),
        state(6),
    )
    work.say("Yes: 3.1 ms instead of 48 ms at the median, and the plan uses `entries_account_day`.")


def _checked(work: Work) -> None:
    work.ask("CI next. Same PostgreSQL version as on the server (17).", 70)
    work.say("", state(7, "in_progress"), look(".github/workflows/test.yml"), look("compose.yaml"))
    work.say(
        "",
        change(".github/workflows/test.yml", "    runs-on: ubuntu-24.04\n", texts.CI_SERVICE),
        change(".github/workflows/test.yml", "      - run: uv run pytest\n", texts.CI_STEPS),
        sh("actionlint", "Check the workflow", ""),
        sh(
            "git add -A && git commit -q -m 'Run the tests with PostgreSQL 17' && git push -q -u origin postgres",
            "Commit and push",
            "",
            seconds=4,
        ),
        sh("gh run watch --exit-status", "Watch the run", texts.CI_GREEN, seconds=96),
    )
    work.say("", state(7))
    work.say(
        "CI is green: 118 tests in 11 s, 41 s for the whole job. It also checks that every migration can be rolled back."
    )
    work.ask(
        "and the docs: readme, deploy, backup. Write the steps of the real move as a checklist, I will follow it on Saturday.",
        85,
    )
    work.say("", state(8, "in_progress"), look("README.md"), look("docs/deploy.md"))
    work.say(
        "",
        change("README.md", *texts.README_RUN),
        change("README.md", "    uv run pytest\n", "    docker compose up -d --wait\n    uv run pytest\n"),
        change("README.md", *texts.README_BACKUP),
        change("docs/deploy.md", *texts.DEPLOY_UNIT),
        put("docs/move.md", texts.MOVE),
        put("scripts/backup.sh", texts.BACKUP),
    )
    work.say(
        "",
        sh("shellcheck scripts/backup.sh", "Check the script", ""),
        sh(
            "bash scripts/backup.sh /tmp/ledger.dump && pg_restore --list /tmp/ledger.dump | wc -l",
            "Try the backup",
            "41",
            seconds=4,
        ),
        state(8),
    )
    work.say(texts.DOCS_DONE)
    work.ask("did we ever test restoring one of these backups?", 55)
    work.say(
        "",
        put("scripts/restore_test.sh", texts.RESTORE_TEST),
        look("docs/deploy.md"),
        think="The only proof is a restore.",
    )
    work.say(
        "",
        sh("shellcheck scripts/restore_test.sh", "Check the script", ""),
        sh("bash scripts/restore_test.sh /tmp/ledger.dump", "Restore the backup", texts.RESTORED, seconds=7),
        change(
            "docs/deploy.md",
            "every night at 02:30.\n",
            "every night at 02:30,\nanother one `scripts/restore_test.sh` on the first of each month.\n",
        ),
    )
    work.say(texts.RESTORE_DONE)
    work.ask("How long will the service be down on Saturday?", 40)
    work.say("", sh("grep -h seconds /tmp/rehearsal-*.log", "Show the times of the rehearsals", texts.TIMES))
    work.say(texts.DOWNTIME)
    work.ask("Can we go back if something is wrong on Sunday?", 65)
    work.say("", put("scripts/copy_back.py", texts.COPY_BACK), change("docs/move.md", *texts.MOVE_BACK))
    work.say(
        "",
        sh(
            "uv run python scripts/copy_back.py rehearsal /tmp/back.sqlite3", "Copy back", texts.COPIED_BACK, seconds=12
        ),
        sh(
            "uv run python scripts/compare_databases.py /tmp/back.sqlite3 rehearsal",
            "Compare",
            texts.COMPARED,
            seconds=8,
        ),
    )
    work.say(texts.BACK_DONE)


def _published(work: Work) -> None:
    work.ask(
        "Let a fresh pair of eyes review the whole branch before I open the PR. Be strict about transactions and about anything that can lose data.",
        100,
    )
    work.agents(
        "A review by an agent that has not seen this conversation.",
        (agent("Review the branch", texts.REVIEW_PROMPT, "general-purpose"), _review),
        think="It should not know my reasons, only the diff.",
    )
    work.say(texts.REVIEWED)
    work.ask("fix 1 and 2, leave 3", 50)
    work.say(
        "",
        change("scripts/copy_sqlite.py", *texts.FIX_LOCK),
        change("ledger/db.py", *texts.FIX_TIMEZONE),
        put("tests/test_timezone.py", texts.TIMEZONE_TEST),
        sh("uv run pytest -q", "Run all tests", texts.passed(120, 6.4), seconds=9),
        think="The lock: BEGIN IMMEDIATE on the SQLite side. The time zone: set it per connection, not per server.",
    )
    work.say("Both are fixed, and 120 tests pass. The third point, the name of the yoyo table, stays as it is.")
    work.ask("rm the sqlite code path completely? LEDGER_DATABASE is still read somewhere", 45)
    work.say("", find("LEDGER_DATABASE|schema\\.create", texts.GREP_ENV, "."), look("ledger/config.py"))
    work.say(
        "",
        change("ledger/config.py", *texts.CONFIG_OLD),
        sh("git rm -q ledger/store/schema.py", "Remove the old schema", ""),
        sh(
            "uv run ruff check . && uv run pytest -q",
            "Run linter and tests",
            "All checks passed!\n" + texts.passed(120, 6.3),
            seconds=10,
        ),
    )
    work.say(texts.REMOVED)
    work.ask("push and open the PR", 30)
    work.say(
        "",
        sh("git add -A && git commit -q -m 'Remove the SQLite store' && git push -q", "Commit and push", "", seconds=4),
        sh(
            "git diff --shortstat main...postgres",
            "Measure the branch",
            " 38 files changed, 812 insertions(+), 341 deletions(-)",
        ),
        Do(
            bash(f"gh pr create --title 'Move to PostgreSQL' --body '{texts.PR_BODY}'", "Open the pull request"),
            "https://example.com/ada/ledger-import/pull/31",
            seconds=4,
        ),
    )
    work.made.pr_link(31, "ada/ledger-import")
    work.say(texts.PR_DONE)
    work.ask("CI status?", 150)
    work.say("", sh("gh pr checks 31", "Show the checks", "test\tpass\t43s\nlint\tpass\t12s", seconds=3))
    work.say("Both checks passed: `test` in 43 s, `lint` in 12 s. The pull request has no conflicts with `main`.")


def _review(agent_: Session) -> None:
    work = Work(agent_)
    work.say(
        "I will start with the size of the change.",
        sh("git diff --stat main...postgres", "Show the change", texts.DIFF_STAT),
    )
    work.say(
        "",
        look("ledger/db.py"),
        look("ledger/importer.py"),
        look("scripts/copy_sqlite.py"),
        look("migrations/0001_tables.sql"),
    )
    work.say(
        "",
        look("tests/conftest.py"),
        look("ledger/api/deps.py"),
        find(
            "now\\(\\)|CURRENT_",
            'ledger/store/payees.py:41:        " WHERE last_seen < now() - make_interval(days => %s)"',
        ),
    )
    work.say(
        "", sh("uv run pytest -q tests/store", "Run the store tests", texts.passed(41, 2.0), seconds=4), more=1_200
    )
    work.say(texts.REVIEW)
