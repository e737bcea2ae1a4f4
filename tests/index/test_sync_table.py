"""After each change on disk, a sync changes exactly the recorded rows of the tables."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pytest
from tests.index.transcripts import TRANSCRIPTS, Script, call, result
from tests.recorded_answers import assert_recorded

from steno.index.database import DATABASE_NAME, IndexLocation
from steno.index.sync.scan import path_from_column
from steno.index.sync.updater import remove_gone, remove_paths, reset_index, sync
from steno.store.archive.archive import archive_all

ANSWERS: Final = Path(__file__).with_name("answers")
_TABLES: Final = (
    *("files", "sessions", "turns", "messages", "tool_calls", "file_edits", "usage", "days"),
    *("links", "names", "batches", "facts"),
)
_SECOND: Final = 10**9


class Steps:
    """A folder of sessions that changes, and an index that follows."""

    def __init__(self, folder: Path, top: Path | None = None) -> None:
        self.top = top or folder
        self.root = folder / "config"
        self.folder = self.root / "projects" / "-p"
        self.folder.mkdir(parents=True)
        self.home = IndexLocation(str(folder / "index"), (str(self.root), str(folder / "more")))
        (folder / "more").mkdir()
        self.more = folder / "more"
        self.answers: dict[str, object] = {}
        self._before: dict[str, set[Any]] = {name: set() for name in _TABLES}
        self._clock = 1_794_700_000

    def path(self, number: int) -> Path:
        return self.folder / f"0000000{number}-0000-4000-8000-000000000000.jsonl"

    def write(self, path: Path, data: bytes) -> None:
        """Write a file, a minute later than the one before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.touch(path)

    def touch(self, path: Path) -> None:
        self._clock += 60
        os.utime(path, ns=(self._clock * _SECOND, self._clock * _SECOND))

    def step(self, name: str, act: Callable[[], object] = lambda: None, **options: Any) -> None:
        """Do something, sync, and keep what the sync said and which rows changed."""
        done = act()
        planned: list[int] = []

        def plan(size: int) -> Callable[[int], None]:
            planned.append(size)
            return planned.append

        report = sync(self.home, start_progress=plan, **options)
        problems = [[each.kind, self._plain(each.path)] for each in report.problems]
        said = [report.files, report.read, report.size, report.gone, problems]
        answer: dict[str, Any] = {"report": said, "planned": planned, **self._changes()}
        if done is not None:
            answer["done"] = done
        assert report.seconds >= 0
        self.answers[name] = answer

    def _changes(self) -> dict[str, Any]:
        connection = sqlite3.connect(Path(self.home.folder, DATABASE_NAME))
        changes: dict[str, Any] = {}
        for table in _TABLES:
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            rows = {self._row(table, names, row) for row in cursor}
            before = self._before[table]
            for sign, some in (("-", before - rows), ("+", rows - before)):
                if some:
                    changes[f"{sign} {table}"] = sorted(some, key=repr)
            self._before[table] = rows
        connection.close()
        return changes

    def _row(self, table: str, names: list[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for name, value in zip(names, row, strict=True):
            if name in ("device", "inode"):
                # Of a file that is only in the archive there is none.
                found.append(min(value, 2))
                continue
            if name == "gone":
                found.append(value is not None)
            elif name in ("state", "mark"):
                found.append(crc32(value))
            elif table == "facts" and name == "value":
                found.append(value if row[0] == "rules" else bool(value))
            elif isinstance(value, int) and value >= 1 << 40 and value < 99 << 40 and self._is_id(name):
                found.append(f"{value >> 40}@{value & ((1 << 40) - 1)}")
            else:
                is_path = name in ("root", "path")
                found.append(self._plain(path_from_column(row[names.index(name)])) if is_path else value)
        return tuple(found)

    @staticmethod
    def _is_id(name: str) -> bool:
        return name in ("id", "message", "result")

    def _plain(self, value: str) -> str:
        return value.replace(str(self.top), "").encode("ascii", "backslashreplace").decode()


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("TZ", "UTC")
    return Steps(tmp_path)


def _data(name: str) -> bytes:
    return TRANSCRIPTS[name]().bytes()


def test_a_file_that_grows_shrinks_moves_and_goes(steps: Steps) -> None:
    one, two = steps.path(1), steps.path(2)
    data = _data("call")
    lines = data.splitlines(keepends=True)
    steps.step("nothing there")
    steps.step("a new file", lambda: steps.write(one, b"".join(lines[:2])))
    steps.step("no change")
    steps.step("half a line more", lambda: steps.write(one, b"".join(lines[:3])[:-9]))
    steps.step("the other half", lambda: steps.write(one, b"".join(lines[:3])))
    steps.step("the rest", lambda: steps.write(one, data))
    steps.step("only another time", lambda: steps.touch(one))
    steps.step("another name", lambda: one.rename(two) and None)
    steps.step("the same size, other words", lambda: steps.write(two, data.replace(b"One", b"Odd")))
    steps.step("shorter", lambda: steps.write(two, b"".join(lines[:2])))
    steps.step("gone", two.unlink)
    steps.step("still gone")
    steps.step("back again", lambda: steps.write(two, b"".join(lines[:2])))
    steps.step("empty", lambda: steps.write(two, b""))
    steps.step("blank", lambda: steps.write(two, b"\n\n"))
    assert_recorded(ANSWERS / "sync_one_file.json", steps.answers)


def test_copies_sub_agents_titles_and_days(steps: Steps) -> None:
    """Of copies of a response one counts; owners, titles and sums follow what is there."""
    one, two, three = steps.path(1), steps.path(2), steps.path(3)
    plain = Script().user("One").bot("a", name="m1").user("Two").bot("b", name="m2")
    agent = Script().user("Look", isSidechain=True, agentId="a1").bot("c", name="m3", isSidechain=True, agentId="a1")
    fork = Script().user("One", forkedFrom={"sessionId": "s"}).bot("a", name="m1", forkedFrom={"sessionId": "s"})
    fork.user("Three").bot("d", name="m4", timestamp="2026-11-16T00:30:00.000Z")
    higher = Script().user("One").bot("a", name="m1", usage={"input_tokens": 150_000, "output_tokens": 9})
    lent = Script().raw({"type": "summary", "summary": "Lent title", "leafUuid": "u4"})
    steps.step("a session", lambda: steps.write(one, plain.bytes()))
    steps.step("a fork", lambda: steps.write(two, fork.bytes()))
    steps.step("a copy with higher figures", lambda: steps.write(three, higher.bytes()))
    steps.step("a sub-agent", lambda: steps.write(
        one.with_suffix("") / "subagents" / "agent-a1.jsonl", agent.bytes()))  # fmt: skip
    steps.step("a sub-agent beside", lambda: steps.write(
        steps.folder / "agent-b2.jsonl", agent.bytes().replace(b"a1", b"b2")))  # fmt: skip
    steps.step("a title", lambda: steps.write(steps.path(5), _data("ai title")))
    steps.step("a lent title", lambda: steps.write(steps.path(4), lent.bytes() + plain.bytes()))
    steps.step("the lender says otherwise", lambda: steps.write(
        steps.path(4), lent.bytes().replace(b"Lent", b"Late") + fork.bytes()))  # fmt: skip
    steps.step("the lender says nothing", lambda: steps.write(steps.path(4), fork.bytes()))
    steps.step("the highest copy goes", three.unlink)
    steps.step("gone ones are forgotten", lambda: remove_gone(steps.home))
    steps.step("one is forgotten", lambda: remove_paths(steps.home, [str(two), "/nowhere"]))
    steps.step("none is forgotten", lambda: remove_paths(steps.home, ["/nowhere"]))
    steps.step("everything is read again", lambda: reset_index(steps.home))
    steps.step("nothing is gone", lambda: remove_gone(steps.home))
    assert_recorded(ANSWERS / "sync_copies.json", steps.answers)


def test_figures_in_every_band_and_without_a_day(steps: Steps) -> None:
    made = Script().user("One")
    for number, tokens in enumerate((100_000, 100_001, 200_000, 200_001)):
        made.bot("x", name=f"b{number}", usage={"input_tokens": tokens, "output_tokens": 1})
    made.bot("y", name="u", timestamp=..., usage={"output_tokens": 2, "speed": "fast"})
    made.bot("z", name="e", stop=None, version="2.1.20")
    steps.step("one day", lambda: steps.write(steps.path(1), made.bytes()))
    many = Script().user("Days")
    for day in range(1, 29):
        many.bot("x", name=f"d{day}", timestamp=f"2026-10-{day:02}T12:00:00.000Z")
    for day in range(1, 9):
        many.bot("x", name=f"e{day}", timestamp=f"2026-09-{day:02}T12:00:00.000Z")
    steps.step("many days", lambda: steps.write(steps.path(2), many.bytes()))
    steps.step("one of them more", lambda: steps.write(
        steps.path(3), Script().bot("x", name="d1", timestamp="2026-10-01T13:00:00.000Z").bytes()))  # fmt: skip
    steps.step("many go", lambda: steps.path(2).unlink())
    steps.step("forgotten", lambda: remove_gone(steps.home))
    assert_recorded(ANSWERS / "sync_days.json", steps.answers)


def test_two_roots_odd_names_and_what_is_only_archived(steps: Steps) -> None:
    one, two = steps.path(1), steps.path(2)
    steps.write(one, _data("call"))
    steps.write(two, _data("two turns"))
    elsewhere = steps.more / "projects" / "-q" / one.name
    steps.write(elsewhere, _data("edit with a patch"))
    steps.write(steps.more / "projects" / "-q" / "notes.jsonl", _data("titles"))
    steps.step("two roots")
    archive_all((str(steps.root),))
    steps.step("archived")
    two.unlink()
    steps.step("one of them gone")
    fresh = Steps(steps.root.parent / "other", steps.top)
    fresh.home = IndexLocation(fresh.home.folder, (str(steps.root),))
    fresh.step("a new index knows it from the archive")
    fresh.step("and does not read it again")
    (steps.root.parent / "link.jsonl").symlink_to(one)
    odd = os.fsencode(steps.folder) + b"/\xff.jsonl"
    Path(os.fsdecode(odd)).write_bytes(_data("two turns"))
    os.utime(odd, ns=(0, 0))
    steps.step("a name that is not UTF-8")
    assert_recorded(ANSWERS / "sync_archive.json", {**steps.answers, **fresh.answers})


def test_results_and_patches_that_come_later(steps: Steps) -> None:
    edit = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    made = (
        Script()
        .user("One")
        .bot(call("Edit", 1, **edit), call("Bash", 2, command="ls"), call("Task", 3, subagent_type="Plan"))
    )
    steps.step("calls", lambda: steps.write(steps.path(1), made.bytes()))
    made.user([result(1)], toolUseResult={"structuredPatch": [{"lines": ["+a", "+b", "-c"]}]})
    steps.step("a patch", lambda: steps.write(steps.path(1), made.bytes()))
    made.user([result(2, is_error=True)])
    steps.step("a failure", lambda: steps.write(steps.path(1), made.bytes()))
    made.user([result(3)], toolUseResult={"agentId": "a9"})
    steps.step("a sub-agent's end", lambda: steps.write(steps.path(1), made.bytes()))

    def usage(output: int) -> dict[str, int]:
        return {"input_tokens": output + 1, "output_tokens": output}

    long = Script().user("One").bot("a", name="m", usage=usage(5))
    steps.step("a response", lambda: steps.write(steps.path(3), long.bytes()))
    for name, output in (("higher", 9), ("lower", 3), ("equal", 9)):
        long.bot("b", name="m", usage=usage(output), model=f"claude-{name}", gitBranch=name)
        steps.step(f"{name} figures later", lambda: steps.write(steps.path(3), long.bytes()))
    steps.step("with workers", lambda: steps.write(steps.path(2), made.bytes()), workers=1)
    assert_recorded(ANSWERS / "sync_later.json", steps.answers)
