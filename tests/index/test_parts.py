"""The smaller parts of the index: its folder, its files, its readers and its interrupts."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.index.searching import Searched, harbour, prompts, write
from tests.index.transcripts import TRANSCRIPTS, Script, call, result

from steno.errors import Unreadable, Unwritable
from steno.format.paths import PathInfo
from steno.index.database import IndexDamaged, IndexLocation, open_for_reading, open_for_writing
from steno.index.price_tiers import TIER_STARTS, price_tier_of
from steno.index.search.finder import ignored_reason, open_finder
from steno.index.search.hit_text import HitReader, message_offset
from steno.index.session_stats import FILE_ID_SHIFT, ExtractionState, LastMessageState, decode_state, encode_state
from steno.index.sync import extract
from steno.index.sync.batch_writer import DeferredInterrupt, session_ids_of, update_owners
from steno.index.sync.extract import WorkerPool
from steno.index.sync.scan import ScanPlan, ScanTask, file_fingerprint, is_below_roots, path_from_column, path_to_column
from steno.index.sync.updater import mark_all_unread, sync
from steno.index.text_index import MAX_TOKEN_SIZE, TextIndexDamaged, open_text_index
from steno.index.usage_rows import MAX_TOKENS, copy_rank, time_zone_id

# Words


def test_words_are_cut_made_small_and_dropped_when_endless(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts("Ab-Cd_ef.9 " + "x" * 511 + " " + "y" * 512 + " Ünï")])
    cut = made.finder.tokenize
    assert [each[0] for each in cut("Ab-Cd_ef.9 Ünï")] == ["ab", "cd", "ef", "9", "ünï"]
    assert [each[0][:1] for each in cut("x" * (MAX_TOKEN_SIZE - 1) + " " + "y" * MAX_TOKEN_SIZE)] == ["x"]
    assert len(made.found("x" * 511).messages) == 1
    assert made.found("ünï").messages == made.found('"ab cd ef 9"').messages != []


def test_what_stands_in_place_of_the_words_is_damage(tmp_path: Path) -> None:
    hint = "Run `steno sync --rebuild` to rebuild it."
    path = tmp_path / "words"
    path.write_text("x")
    with pytest.raises(TextIndexDamaged) as refused:
        open_text_index(str(tmp_path))
    assert (str(refused.value), refused.value.hint) == (f"{path} is not a directory", hint)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(TextIndexDamaged):
        open_text_index(str(tmp_path))
    path.unlink()
    path.mkdir()
    (path / "meta.json").write_text("{")
    with pytest.raises(TextIndexDamaged) as refused:
        open_text_index(str(tmp_path))
    assert str(refused.value) == f"the full-text index in {path} is damaged"
    assert refused.value.hint == hint
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable):
        open_text_index(str(tmp_path / "file"))


def test_nothing_is_written_before_the_beginning_or_after_the_end(tmp_path: Path) -> None:
    texts = open_text_index(str(tmp_path))
    for act in (texts.commit, lambda: texts.remove_file(1), lambda: texts.add_document(1, 1, 1, 0, (), "x")):
        with pytest.raises(RuntimeError, match="start_writing"):
            act()
    texts.start_writing(is_large=False)
    texts.start_writing(is_large=True)
    texts.add_document(1, 7, 7 << FILE_ID_SHIFT, 5, (2,), "alpha")
    texts.commit()
    texts.add_document(1, 8, 8 << FILE_ID_SHIFT, 5, (2,), "beta")
    texts.close()
    texts.close()
    texts.index.reload()
    assert texts.index.searcher().num_docs == 1
    texts.start_writing(is_large=True)
    texts.remove_batch(2)
    texts.remove_file(8)
    texts.commit()
    texts.index.reload()
    assert texts.index.searcher().num_docs == 1
    texts.remove_file(7)
    texts.commit()
    texts.close()
    texts.index.reload()
    assert texts.index.searcher().num_docs == 0


def test_words_that_are_gone_are_missed(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts("alpha")])
    assert not open_finder(made.index, lambda _: (0, 0)).is_text_missing
    words = Path(made.home.folder, "words")
    for path in words.iterdir():
        path.unlink()
    made.index.__dict__.pop("texts")
    with pytest.raises(TextIndexDamaged) as refused:
        open_finder(made.index, lambda _: (0, 0))
    assert str(refused.value) == f"the full-text index in {words} is missing"
    assert refused.value.hint == f"Remove {words}, then run `steno sync --rebuild`."


def test_why_a_word_is_ignored_is_said() -> None:
    assert ignored_reason("->") == "no letter or digit in '->'"
    assert ignored_reason("a" * 30) == f"'{'a' * 20}'… is longer than any word in the index"


# Reading again


def test_messages_are_read_again_with_the_tools_of_their_results(tmp_path: Path) -> None:
    made = Searched(tmp_path, [harbour()])
    rows = made.index.connection.execute("SELECT id, length, turn, time FROM messages").fetchall()
    with HitReader(made.index.connection) as reader:
        texts = list(reader.read_texts([row[0] for row in rows]))
        assert list(reader.read_texts([7])) == []
    assert [(t.message, t.length, t.turn, t.time) for t in texts] == rows
    assert not any(text.loss_reason or text.archived for text in texts)
    tools = [part.tool for text in texts for part in text.parts if part.kind in ("input", "output")]
    assert tools == ["Read", "Read", "Bash", "Bash"]
    assert all(text.uuid for text in texts if text.parts[0].kind not in ("title", "note"))
    assert message_offset((5 << FILE_ID_SHIFT) + 9) == 9


def test_a_result_beside_other_words_is_read_again_with_its_tool(tmp_path: Path) -> None:
    script = Script().user("One").bot(call("Bash", 1, command="x"), call("Read", 2))
    script.user([result(1, "first"), {"type": "text", "text": "by the way"}, result(2, "second")])
    made = Searched(tmp_path, ())
    folder = made.root / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / "00000000-0000-4000-8000-000000000001.jsonl").write_bytes(script.bytes())
    made.open()
    (hit,) = made.hits("second")
    assert [(part.kind, part.tool, part.call) for part in hit.text.parts] == [
        ("output", "Bash", "call-1"),
        ("prompt", "", ""),
        ("output", "Read", "call-2"),
    ]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_at_most_eight_files_are_held_open(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts(f"word{n}", seed=f"s{n}") for n in range(10)])
    first = "SELECT min(id) FROM messages GROUP BY id >> 40"
    ids = [row[0] for row in made.index.connection.execute(first)]
    folder = Path("/proc/self/fd")

    def held() -> int:
        return sum(str(path.resolve()).startswith(str(made.root)) for path in folder.iterdir())

    assert held() == 0
    with HitReader(made.index.connection) as reader:
        for number, message in enumerate(ids, 1):
            (text,) = reader.read_texts([message])
            assert text.parts[0].text.startswith("word")
            assert held() == min(number, 8)
    assert held() == 0


def test_a_record_that_is_no_longer_there_is_said_to_have_changed(tmp_path: Path) -> None:
    made = Searched(tmp_path, [prompts("alpha")])
    (path,) = made.root.rglob("*.jsonl")
    ((first, length),) = made.index.connection.execute("SELECT id, length FROM messages ORDER BY id LIMIT 1").fetchall()
    data = path.read_bytes()
    for changed in (data[: length - 1], b"\n" * len(data), b"x" * len(data)):
        path.write_bytes(changed)
        with HitReader(made.index.connection) as reader:
            (text,) = reader.read_texts([first])
        assert (text.loss_reason, text.parts, text.uuid) == ("changed", [], "")
    path.unlink()
    with HitReader(made.index.connection) as reader:
        (text,) = reader.read_texts([first])
    assert (text.loss_reason, text.archived) == ("gone", False)


# Interrupts, workers, plans


def test_the_first_interrupt_is_noted_and_the_second_passed_on() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    try:
        with DeferredInterrupt() as interrupts:
            assert not interrupts.interrupted
            signal.raise_signal(signal.SIGINT)
            assert interrupts.interrupted
            assert calls == []
            signal.raise_signal(signal.SIGINT)
            assert calls == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
        assert calls == [signal.SIGINT] * 2
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with DeferredInterrupt() as interrupts:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert interrupts.interrupted
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_signals_stay_as_they_are() -> None:
    seen: list[object] = []

    def run() -> None:
        with DeferredInterrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def _task(path: Path, **fields: Any) -> ScanTask:
    status = path.stat()
    return ScanTask(str(path), str(path.parent), PathInfo("session"), status.st_size, 0, 0, 0, **fields)


@pytest.mark.parametrize("number", [0, 1])
def test_files_are_read_stretch_by_stretch_whoever_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(extract, "STRETCH_SIZE", 300)
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for path, name in zip(paths, ("call", "two turns", "edit"), strict=True):
        path.write_bytes(TRANSCRIPTS[name]().bytes() * 150)
    tasks = [_task(path, file=at + 1) for at, path in enumerate(paths)]
    missing = _task(paths[0], file=9)
    missing.path = str(tmp_path / "none")
    with WorkerPool(0, number) as some:
        done: dict[int, list[tuple[int, int, bool]]] = {}
        problems: list[str] = []
        for task, reaped in some.extract_files([*tasks, missing]):
            if reaped.extraction is None:
                problems.append(reaped.problem)
                continue
            assert reaped.extraction.file == task.file
            made = (reaped.extraction.start, reaped.extraction.end, reaped.extraction.has_more)
            done.setdefault(task.file, []).append(made)
    assert problems == [f"cannot read {tmp_path / 'none'}: no such file or directory"]
    for task in tasks:
        stretches = done[task.file]
        assert len(stretches) > 1
        assert [start for start, _, _ in stretches] == [0, *(end for _, end, _ in stretches[:-1])]
        assert stretches[-1][1:] == (task.size, False)
        assert all(more for _, _, more in stretches[:-1])


def test_jobs_are_bundled_by_size_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one process is given: several small files, or one big one; and what comes back."""
    monkeypatch.setattr(extract, "_JOB_SIZE", 100)
    monkeypatch.setattr(extract, "_MAX_JOB_FILES", 3)
    path = tmp_path / "a.jsonl"
    path.write_bytes(TRANSCRIPTS["call"]().bytes())
    tasks = [_task(path, file=number + 1) for number in range(9)]
    for task, size in zip(tasks, (10, 10, 10, 10, 90, 10, 100, 500, 1), strict=True):
        task.size = size
    work: Any = vars(extract)["_JobQueue"](tasks)
    bundles: list[list[int]] = []
    while bundle := vars(type(work))["_next_jobs"](work):
        bundles.append([job.task for job in bundle])
    assert bundles == [[0, 1, 2], [3, 4], [5, 6], [7], [8]]
    job = extract.ExtractionJob(0, 1, str(path), 0, b"")
    lost = extract.ExtractionJob(1, 2, str(tmp_path / "none"), 0, b"")
    packed = vars(extract)["_run_jobs"]([job, lost])
    made, missing = msgspec.msgpack.decode(packed, type=list[extract.JobResult])
    assert made.extraction is not None
    assert (made.task, made.extraction.end, made.problem) == (0, path.stat().st_size, "")
    assert (missing.task, missing.extraction) == (1, None)
    assert missing.problem == f"cannot read {tmp_path / 'none'}: no such file or directory"


def test_other_processes_read_only_what_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    little = 48 << 20
    numbers = {size: vars(WorkerPool(size))["_worker_count"] for size in (0, little, little + 1)}
    assert numbers == {0: 0, little: 0, little + 1: 2}
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert vars(WorkerPool(little + 1))["_worker_count"] == 0
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert vars(WorkerPool(little + 1))["_worker_count"] == 0


def test_a_plan_says_how_much_there_is_to_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 10)
    task = _task(path)
    assert ScanPlan([], [], [], 3, []).is_empty
    assert not ScanPlan([task], [], [], 3, []).is_empty
    assert not ScanPlan([], [task], [], 3, []).is_empty
    assert not ScanPlan([], [], [4], 3, []).is_empty
    assert ScanPlan([task, _task(path, start=4)], [task], [], 3, []).size == 16
    found = task.discovered_file
    assert (found.path, found.size, found.mtime_ns, found.root) == (str(path), 10, 0, str(tmp_path))


def test_a_mark_is_of_the_length_and_of_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = bytes(range(256)) * 40
    path.write_bytes(data)
    mark = file_fingerprint(str(path), len(data))
    assert mark is not None
    assert len(mark) == 16
    assert file_fingerprint(str(path), len(data) + 1) is None
    assert file_fingerprint(str(path), 0) is not None
    assert len({file_fingerprint(str(path), done) for done in (0, 1, 2, 4095, 4096, 4097, 9000)}) == 7
    for at, differs in ((0, True), (4095, True), (4096, False), (len(data) - 4097, False),
                        (len(data) - 4096, True), (len(data) - 1, True)):  # fmt: skip
        path.write_bytes(data[:at] + b"\xff\xff"[:1].replace(b"\xff", b"?") + data[at + 1 :])
        assert (file_fingerprint(str(path), len(data)) != mark) is differs, at
    with pytest.raises(Unreadable):
        file_fingerprint(str(tmp_path / "none"), 0)


def test_paths_below_some_folders() -> None:
    roots = ("/a/b", "/c/")
    inside = {"/a/b": True, "/a/b/c": True, "/a/bc": False, "/a": False, "/c/d": True, "/c": False}
    inside["/c/"] = True
    assert {path: is_below_roots(path, roots) for path in inside} == inside
    assert is_below_roots("/x", ("/",))
    assert not is_below_roots("/x", ())
    for path in ("/a/b", "/é", os.fsdecode(b"/\xff")):
        assert path_from_column(path_to_column(path)) == path
    assert path_to_column(os.fsdecode(b"/\xff")) == b"/\xff"


def test_states_survive_being_kept_and_damage_is_said() -> None:
    state = ExtractionState(session="s", messages=3, last=LastMessageState("answer", ["c"]))
    assert decode_state(encode_state(state)) == state
    assert decode_state(b"") == ExtractionState()
    for raw in (b"x", encode_state(state)[:-1], msgspec.msgpack.encode({"session": 7})):
        with pytest.raises(IndexDamaged, match="the index is damaged: "):
            decode_state(raw)


def test_bands_and_ranks() -> None:
    assert TIER_STARTS == (100_000, 200_000)
    found = [price_tier_of(at) for at in (0, 99_999, 100_000, 100_001, 200_000, 200_001, 10**9)]
    assert found == [0, 0, 0, 1, 1, 2, 2]
    assert MAX_TOKENS == 10**12
    row = (1, "k", 2, 3, 4, 5, "m", "b", "a", 10, 20, 0, 0, 0, 0, 0, 0, 1)
    assert copy_rank(row, 7, "s", "a", "/p") == (-20, 1, 7, "s", "a", "/p")
    assert copy_rank(row, None, "s", "a", "/p")[2] == -(1 << 62)


def test_the_zone_of_the_machine_is_told_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    zones: dict[str, str] = {}
    for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"):
        with monkeypatch.context() as patch:
            patch.setenv("TZ", name)
            time.tzset()
            zones[name] = time_zone_id()
    time.tzset()
    assert len(set(zones.values())) == 4
    assert all(len(each.split(" ")[1]) == 8 for each in zones.values())


# Owners


def test_sub_agents_belong_to_the_session_above_or_beside_or_to_the_only_one(tmp_path: Path) -> None:
    connection = open_for_writing(str(tmp_path))
    files = {
        1: ("/r/a/s.jsonl", "s", ""),
        2: ("/r/b/s.jsonl", "s", ""),
        3: ("/r/a/s/subagents/agent-x.jsonl", "s", "x"),
        4: ("/r/b/agent-y.jsonl", "s", "y"),
        5: ("/r/c/agent-z.jsonl", "s", "z"),
        6: ("/r/c/t.jsonl", "t", ""),
        7: ("/r/d/agent-w.jsonl", "t", "w"),
        8: ("/r/d/agent-v.jsonl", "none", "v"),
    }
    columns = """file, id, agent, project, branch, title, named, version, model, turns, messages,
        calls, failed, hidden, rewound, last_uuid"""
    for number, (path, name, agent) in files.items():
        connection.execute(
            "INSERT INTO files (id, root, path, size, mtime, device, inode) VALUES (?, '', ?, 0, 0, 0, 0)",
            (number, path),
        )
        connection.execute(
            f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, '', '', '', 0, '', '', 0, 0, 0, 0, 0, 0, '')",
            (number, name, agent),
        )
    assert session_ids_of(connection, range(1, 600)) == {"s", "t", "none"}
    assert session_ids_of(connection, [3, 7]) == {"s", "t"}
    update_owners(connection, ["s", "none"])
    owners = dict(connection.execute("SELECT file, owner FROM sessions"))
    assert owners == {1: 1, 2: 2, 3: 1, 4: 2, 5: 5, 6: 0, 7: 0, 8: 8}
    update_owners(connection, [f"n{n}" for n in range(600)] + ["t"])
    owners = dict(connection.execute("SELECT file, owner FROM sessions"))
    assert (owners[6], owners[7]) == (6, 6)
    connection.close()


# Lots


def test_what_is_read_is_committed_in_lots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lot ends with so many files or so many bytes; an interrupt loses no finished one."""
    for number in range(7):
        write(tmp_path / "c", prompts("alpha", seed=f"s{number}"))
    sizes = sorted(path.stat().st_size for path in (tmp_path / "c").rglob("*.jsonl"))
    assert sizes[0] == sizes[-1]
    for name, value, lots in (
        ("_BATCH_FILES", 3, [3, 3, 1]),
        ("_BATCH_FILES", 7, [7]),
        ("_BATCH_SIZE", 2 * sizes[0], [2, 2, 2, 1]),
        ("_BATCH_SIZE", 2 * sizes[0] + 1, [3, 3, 1]),
        ("_BATCH_SIZE", 1, [1] * 7),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"steno.index.sync.updater.{name}", value)
            home = IndexLocation(str(tmp_path / f"{name}{value}"), (str(tmp_path / "c"),))
            assert _lots(patch, home) == lots, name


def _lots(monkeypatch: pytest.MonkeyPatch, home: IndexLocation) -> list[int]:
    from steno.index.sync.batch_writer import BatchWriter

    lots: list[int] = []
    run = BatchWriter.write

    def watched(self: BatchWriter, plan: ScanPlan, *rest: Any) -> int:
        lots.append(len(plan.tasks))
        return run(self, plan, *rest)

    monkeypatch.setattr(BatchWriter, "write", watched)
    assert sync(home).read == sum(lots)
    return lots


def test_files_on_disk_are_marked_unread_and_others_are_not(tmp_path: Path) -> None:
    made = Script().user("One").bot("Two").bytes()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(made)
    home = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")))
    sync(home)
    (tmp_path / "b.jsonl").unlink()
    sync(home)
    mark_all_unread(home.folder)
    connection = open_for_reading(home.folder)
    assert connection is not None
    rows = connection.execute("SELECT size, mark, gone IS NULL FROM files ORDER BY path").fetchall()
    assert [(size, bool(mark), here) for size, mark, here in rows] == [
        (-1, False, 1), (len(made), True, 0),
    ]  # fmt: skip
    connection.close()
