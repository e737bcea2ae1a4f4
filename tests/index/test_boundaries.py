"""What holds at the boundaries of a sync: other time zones, other files, other processes."""

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any, Self

import pytest
from tests.index.dump import dump
from tests.index.homes import NAME, as_if_at_once, home
from tests.index.searching import Searched, prompts
from tests.index.transcripts import Script

from steno.errors import StenoError, Unwritable
from steno.format.encode import encode_line
from steno.index import recovery
from steno.index.database import DATABASE_NAME, IndexDamaged, IndexLocation
from steno.index.sync import extract, updater
from steno.index.sync.batch_writer import BatchWriter
from steno.index.sync.scan import ScanPlan, scan_changes
from steno.index.text_index import TEXT_FOLDER, TextIndex
from steno.store.discovery import Problem


def _answer(name: str, stamp: str, output: int = 5) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": output}
    message = {"id": name, "role": "assistant", "model": "m", "content": [], "usage": usage}
    record = {"type": "assistant", "uuid": name, "timestamp": stamp, "message": message}
    return encode_line(record)


def _apart(data: bytes) -> bytes:
    """Put blank lines between the records, so that they are not decoded together."""
    return data.replace(b"\n", b"\n\n")


# Files


def test_a_copy_of_which_only_the_middle_differs_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Another file under the name, with the same first and last 4,096 bytes, and more behind."""
    texts = [f"same {'a' * 5000}", "first middle", f"same {'b' * 5000}"]
    made = Searched(tmp_path, [prompts(*texts)])
    (path,) = made.root.rglob("*.jsonl")
    before = path.read_bytes()
    other = before.replace(b"first middle", b"other middle") + prompts("more", seed="m").bytes()
    assert (other[:4096], other[len(before) - 4096 : len(before)]) == (before[:4096], before[-4096:])
    copy = path.with_suffix(".copy")
    copy.write_bytes(other)
    copy.replace(path)
    made.open()
    found = {word: len(made.found(word).messages) for word in ("first", "other", "middle", "more")}
    assert found == {"first": 0, "other": 1, "middle": 1, "more": 1}


def test_a_file_that_is_read_anew_in_several_stretches_keeps_all_of_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "STRETCH_SIZE", 900)
    path = root / NAME.format(1)
    path.write_bytes(_apart(prompts("one", "two", "three").bytes()))
    updater.sync(home(root))
    path.write_bytes(_apart(prompts("four", "five", "six", "seven", seed="other").bytes()))
    os.utime(path, (1_794_700_000, 1_794_700_000))
    report = updater.sync(home(root))
    assert (report.read, report.size) == (1, path.stat().st_size)
    assert dump(home(root)) == as_if_at_once(root)


def test_a_file_that_became_a_dangling_link_is_gone(root: Path) -> None:
    path = root / NAME.format(1)
    path.write_bytes(prompts("one").bytes())
    updater.sync(home(root))
    path.unlink()
    path.symlink_to(root / "nowhere")
    report = updater.sync(home(root))
    assert (report.files, report.read, report.gone) == (0, 0, 1)


def test_a_file_that_vanishes_before_it_is_read_is_reported_as_unreadable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [root / NAME.format(number) for number in range(2)]
    for path in paths:
        path.write_bytes(prompts("one", seed=path.name).bytes())
    run = BatchWriter.write

    def vanish(self: BatchWriter, plan: ScanPlan, *rest: Any) -> int:
        paths[0].unlink()
        return run(self, plan, *rest)

    monkeypatch.setattr(BatchWriter, "write", vanish)
    report = updater.sync(home(root))
    (problem,) = report.problems
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.path) == ("unreadable", str(paths[0]))
    assert str(paths[0]) in problem.message
    assert report.size == paths[1].stat().st_size


def test_words_reached_through_a_link_are_not_removed(root: Path, tmp_path: Path) -> None:
    """A new database beside a link: what the link leads to is used, and stays."""
    index = home(root)
    (root / NAME.format(1)).write_bytes(prompts("one").bytes())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(index.folder).mkdir()
    link = Path(index.folder, TEXT_FOLDER)
    link.symlink_to(elsewhere)
    updater.sync(index)
    assert link.is_symlink()
    assert any(elsewhere.iterdir())
    assert dump(index) == as_if_at_once(root)


def test_words_without_their_tables_are_removed(root: Path) -> None:
    index = home(root)
    path = root / NAME.format(1)
    path.write_bytes(prompts("one").bytes())
    updater.sync(index)
    for each in Path(index.folder).glob(f"{DATABASE_NAME}*"):
        each.unlink()
    path.write_bytes(prompts("two").bytes())
    updater.sync(index)
    assert dump(index) == as_if_at_once(root)


def test_a_copy_that_counts_in_place_of_one_taken_out_is_summed_on_its_own_day(root: Path) -> None:
    """Both days change: the one of the file that was taken out, and the one of the copy."""
    paths = [root / NAME.format(number) for number in range(3)]
    paths[0].write_bytes(_answer("same", "2026-11-02T12:00:00.000Z", 9))
    paths[1].write_bytes(_answer("same", "2026-11-05T12:00:00.000Z", 3))
    paths[2].write_bytes(_answer("other", "2026-11-08T12:00:00.000Z", 4))
    updater.sync(home(root))
    days = [(row[0], row[8]) for row in dump(home(root))["days"]]
    assert [output for _, output in days] == [9, 4]
    assert updater.remove_paths(home(root), [str(paths[0]), str(root / "unknown")]) == 1
    paths[0].unlink()
    assert dump(home(root)) == as_if_at_once(root)
    assert [row[8] for row in dump(home(root))["days"]] == [3, 4]


def test_sub_agents_of_a_session_that_was_taken_out_are_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "c" / "projects" / "-p"
    path = folder / NAME.format(1)
    agent = folder / path.stem / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    path.write_bytes(Script().user("One", sessionId=path.stem).bytes())
    look = Script().user("Look", sessionId=path.stem, isSidechain=True, agentId="a1")
    agent.write_bytes(look.bytes())
    home = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "c"),))
    updater.sync(home)

    def owners() -> list[tuple[bool, bool]]:
        with sqlite3.connect(Path(home.folder, DATABASE_NAME)) as connection:
            query = "SELECT agent, owner = file FROM sessions ORDER BY agent"
            found = connection.execute(query).fetchall()
        connection.close()
        return [(bool(agent), bool(own)) for agent, own in found]

    assert owners() == [(False, True), (True, False)]
    assert updater.remove_paths(home, [str(path)]) == 1
    assert owners() == [(True, True)]


# Days


def test_days_are_summed_again_in_another_time_zone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / NAME.format(1)).write_bytes(_answer("one", "2026-11-02T23:30:00.000Z"))
    days: list[list[str]] = []
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Kiritimati", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        updater.sync(home(root))
        days.append([row[0] for row in dump(home(root))["days"]])
    assert days == [["2026-11-02"], ["2026-11-03"], ["2026-11-03"], ["2026-11-02"]]


def test_more_than_32_days_are_summed_as_each_by_itself(root: Path) -> None:
    """Response by response over 40 days, in one sync and in two."""
    path = root / NAME.format(1)
    lines = [
        _answer(f"r{number}", f"2026-{1 + number // 28:02}-{1 + number % 28:02}T12:00:00.000Z", number)
        for number in range(40)
    ]
    path.write_bytes(b"".join(lines[:7]))
    updater.sync(home(root))
    with path.open("ab") as file:
        file.write(b"".join(lines[7:]))
    updater.sync(home(root))
    assert [row[8] for row in dump(home(root))["days"]] == list(range(40))


# What is written in which order


def test_a_batch_is_on_the_disk_before_its_words_are(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    opened = updater.open_for_writing

    def traced(folder: str) -> sqlite3.Connection:
        connection = opened(folder)
        connection.set_trace_callback(statements.append)
        return connection

    def commit(self: TextIndex) -> None:
        statements.append("words")
        done(self)

    done = TextIndex.commit
    monkeypatch.setattr(updater, "open_for_writing", traced)
    monkeypatch.setattr(TextIndex, "commit", commit)
    (root / NAME.format(1)).write_bytes(prompts("one").bytes())
    updater.sync(home(root))
    kept = ("PRAGMA", "BEGIN", "COMMIT", "INSERT INTO batches", "INSERT INTO files", "words")
    told = [each for each in statements if each.startswith((*kept, "UPDATE batches"))]
    steps = [next(one for one in (*kept, "UPDATE batches") if each.startswith(one)) for each in told]
    at = steps.index("PRAGMA")
    assert told[at] == "PRAGMA synchronous = FULL"
    assert steps[at + 1 : at + 5] == ["BEGIN", *kept[3:5], "COMMIT"]
    assert told[at + 5] == "PRAGMA synchronous = NORMAL"
    assert steps[at + 6 :] == ["BEGIN", "words", "UPDATE batches", "COMMIT"]


# Other processes


class _Pool:
    """Notes how a pool of processes is used, and does the work here."""

    made: list[Any]

    def __init__(self, *options: Any, **named: Any) -> None:
        self.made.append(("made", options, named))

    def submit(self, act: Callable[..., object], *given: object) -> "futures.Future[object]":
        self.made.append(("asked", act))
        future: futures.Future[object] = futures.Future()
        future.set_result(act(*given))
        return future

    def shutdown(self, **named: bool) -> None:
        self.made.append(("ended", named))


def test_processes_that_read_are_started_at_once_and_ended_with_what_they_were_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(_Pool, "made", made, raising=False)
    monkeypatch.setattr(futures, "ProcessPoolExecutor", _Pool)
    with extract.WorkerPool(0, 3):
        assert [each[0] for each in made] == ["made", "asked"]
    (_, options, named), (_, asked), (_, ended) = made
    assert (options, asked) == ((3,), int)
    assert named["initializer"] is vars(extract)["_ignore_interrupts"]
    assert named["mp_context"].get_start_method() in ("fork", "spawn")
    assert ended == {"wait": True, "cancel_futures": True}
    made.clear()
    with extract.WorkerPool(0, 0):
        pass
    with extract.WorkerPool(0):
        pass
    assert made == []


def test_work_is_given_out_a_little_ahead_and_every_stretch_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes each has a job, and one waits; what is left of a file comes next."""
    monkeypatch.setattr(extract, "STRETCH_SIZE", 900)
    monkeypatch.setattr(extract, "_MAX_JOB_FILES", 1)
    made: list[Any] = []
    monkeypatch.setattr(_Pool, "made", made, raising=False)
    paths = [root / NAME.format(number) for number in range(5)]
    for path in paths:
        path.write_bytes(_apart(prompts("one", "two", "three", seed=path.name).bytes()))
    updater.sync(home(root))
    with sqlite3.connect(Path(home(root).folder, DATABASE_NAME)) as connection:
        connection.execute("UPDATE files SET size = -1, mark = x''")
    tasks = scan_changes(connection, home(root).roots).tasks
    connection.close()
    work = vars(extract)["_JobQueue"](tasks)
    given = vars(work)["_submitted"]
    read: list[tuple[int, int, int]] = []
    most = 0
    for reaped in work.run_in_pool(_Pool(), 2):
        most = max(most, len(given))
        read.append((reaped.task, reaped.extraction.start, reaped.extraction.end))
    assert (most, given) == (3, {})
    for number, path in enumerate(paths):
        places = [(start, done) for task, start, done in read if task == number]
        assert len(places) > 2
        assert [start for start, _ in places] == [0, *(done for _, done in places[:-1])]
        assert places[-1][1] == path.stat().st_size
    assert len([each for each in made if each[0] == "asked"]) == len(read)


@pytest.mark.parametrize(
    ("cores", "size", "processes"),
    [(None, 1 << 40, 0), (1, 1 << 40, 0), (2, 1 << 40, 2), (9, 48 << 20, 0), (2, (48 << 20) + 1, 2)],
)
def test_two_processes_read_where_there_is_much_and_more_than_one_core(
    cores: int | None, size: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert vars(extract.WorkerPool(size))["_worker_count"] == processes


def test_processes_are_forked_only_on_linux_and_without_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    context: Callable[[], Any] = vars(extract)["_process_context"]
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    methods: list[str] = []
    for platform, threads in (("linux", 1), ("linux", 2), ("darwin", 1), ("darwin", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", platform)
            patch.setattr(threading, "active_count", lambda threads=threads: threads)
            methods.append(context().get_start_method())
    assert methods == ["fork", "spawn", "spawn", "spawn"]
    thread.start()
    try:
        assert context().get_start_method() == "spawn"
    finally:
        ended.set()
        thread.join()


def test_processes_that_read_leave_interrupts_to_the_one_that_writes() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        vars(extract)["_ignore_interrupts"]()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


# Words and memory


class _Engine:
    """Notes what writers it is asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, int]] = []

    def writer(self, **named: int) -> Self:
        self.asked.append(named)
        return self


def test_a_big_batch_takes_more_memory_and_both_cores() -> None:
    for big, expected in (
        (True, {"heap_size": 128_000_000, "num_threads": 2}),
        (False, {"heap_size": 16_000_000, "num_threads": 1}),
    ):
        engine: Any = _Engine()
        texts = TextIndex(engine)
        texts.start_writing(is_large=big)
        texts.start_writing(is_large=not big)
        assert engine.asked == [expected]


def test_a_batch_is_big_from_32_mib_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is taking files out never."""
    asked: list[bool] = []
    begin = TextIndex.start_writing

    def noted(self: TextIndex, *, is_large: bool) -> None:
        asked.append(is_large)
        begin(self, is_large=is_large)

    monkeypatch.setattr(TextIndex, "start_writing", noted)
    path = root / NAME.format(1)
    path.write_bytes(prompts("one").bytes())
    size = path.stat().st_size
    for number, limit in enumerate((size - 1, size, size + 1)):
        monkeypatch.setattr("steno.index.sync.batch_writer._LARGE_BATCH_SIZE", limit)
        updater.sync(home(root, f"index{number}"))
    monkeypatch.setattr("steno.index.sync.batch_writer._LARGE_BATCH_SIZE", 0)
    updater.remove_paths(home(root, "index0"), [str(path)])
    assert asked == [True, False, False, False]


# Recovering


@pytest.mark.parametrize("error", [OSError("x"), Unwritable("x"), StenoError("x"), sqlite3.OperationalError("x")])
def test_an_index_that_cannot_be_set_aside_is_not_recovered(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> None:
        raise error

    monkeypatch.setattr(recovery, "move_aside", refuse)
    assert not recovery.recover(IndexDamaged("y"), str(tmp_path))


def test_a_stretch_that_brings_nothing_is_not_asked_for_again(root: Path) -> None:
    """Half a line: it is not read over and over, and the file is as long as it is."""
    path = root / NAME.format(1)
    path.write_bytes(prompts("one").bytes() + b'{"type":"us')
    report = updater.sync(home(root))
    assert report.size == path.stat().st_size - len(b'{"type":"us')
    again = updater.sync(home(root))
    assert (again.files, again.read, again.size, again.gone, again.problems) == (1, 0, 0, 0, [])


def test_the_session_of_a_message_that_no_table_knows_has_a_name(tmp_path: Path) -> None:
    from steno.index.search.finder import HitGroup, group_hits
    from steno.index.session_stats import FILE_ID_SHIFT

    made = Searched(tmp_path, [prompts("one")])
    message = (77 << FILE_ID_SHIFT) + 5
    group = HitGroup("@77", has_session_file=False, messages=[message], files={77: ""})
    assert group_hits(made.index.connection, [message]) == [group]
