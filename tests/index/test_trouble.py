"""What a sync makes of trouble: odd files, faults of the system, impatient people."""

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.builders import session, tool
from tests.index.dump import dump
from tests.index.homes import NAME, as_if_at_once, home

import steno
from steno.errors import Unreadable, Unwritable
from steno.format.encode import encode_line
from steno.index import session_stats, text_index
from steno.index.session_stats import Extraction
from steno.index.sync import batch_writer, extract
from steno.index.sync.batch_writer import TableWriter
from steno.index.sync.updater import sync
from steno.report.brief import as_markdown, build_brief
from steno.store.file_source import FileSource


def talk(seed: str = "talk", turns: int = 3) -> bytes:
    made = session(seed=seed)
    for number in range(turns):
        made.user(f"Ask {number}").assistant(tool("Bash", command="ls")).result("a.py")
        made.assistant("So.")
    return made.bytes()


def answer(name: str, stamp: str) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 5}
    message = {"id": name, "role": "assistant", "model": "m", "content": [], "usage": usage}
    record = {"type": "assistant", "uuid": name, "timestamp": stamp, "message": message}
    return encode_line(record)


def test_a_record_on_two_lines_is_no_record(root: Path) -> None:
    odd = b'{"type":"user",\n"uuid":"u","message":{"role":"user","content":"alpha"}}\n'
    glued = b'{"type":"tag","tag":"gamma"}{"type":"tag","tag":"delta"}\n'
    for number, data in enumerate((odd + talk(), talk() + odd, odd + glued, glued + odd)):
        (root / NAME.format(number)).write_bytes(data)
    sync(home(root))
    said = dump(home(root))
    assert len(said["files"]) == 4
    for path, offset, length, *_ in said["messages"]:
        line = Path(path).read_bytes()[offset : offset + length]
        assert (line[:1], line[-1:]) == (b"{", b"}")
        assert b"\n" not in line


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2040-03-20T04:30:00.000Z"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_any_day_can_be_summed_up(root: Path, stamp: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    path = root / NAME.format(1)
    path.write_bytes(answer("one", stamp))
    sync(home(root))
    with path.open("ab") as file:
        file.write(answer("two", stamp))
    sync(home(root))
    said = dump(home(root))
    assert sum(row[6] for row in said["days"]) == 2
    assert said == as_if_at_once(root)


def test_a_file_that_cannot_be_read_for_a_while_keeps_its_rows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / NAME.format(1)
    path.write_bytes(talk())
    sync(home(root))
    before = dump(home(root))
    with path.open("ab") as file:
        file.write(talk("more"))

    def refuse(self: FileSource, _: str) -> None:
        self._descriptor = -1
        raise Unreadable("not now")

    with monkeypatch.context() as patch:
        patch.setattr(FileSource, "__init__", refuse)
        report = sync(home(root))
    assert [problem.path for problem in report.problems] == [str(path)]
    assert dump(home(root)) == before
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


def test_a_rewrite_of_the_same_size_survives_a_crash(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / NAME.format(1)
    path.write_bytes(talk(turns=40))
    sync(home(root))
    data = bytearray(path.read_bytes())
    middle = data.index(b"Ask 20")
    data[middle : middle + 3] = b"Say"
    path.write_bytes(bytes(data))
    os.utime(path, (1, 1))

    def crash(_: batch_writer.BatchWriter) -> None:
        raise RuntimeError("struck")

    with monkeypatch.context() as patch:
        patch.setattr(batch_writer.BatchWriter, "_finish_batch", crash)
        with pytest.raises(RuntimeError, match="struck"):
            sync(home(root))
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


@pytest.mark.parametrize("number", range(1, 30))
def test_an_interrupt_at_any_step_leaves_a_sound_index(
    root: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / NAME.format(1)
    path.write_bytes(talk())
    sync(home(root))
    with path.open("ab") as file:
        file.write(talk("more"))
    (root / NAME.format(2)).write_bytes(talk("two"))
    left = number

    def counting(whole: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGINT)
            return whole(*given, **named)

        return step

    with monkeypatch.context() as patch:
        for owner, name in (
            (text_index.TextIndex, "start_writing"),
            (text_index.TextIndex, "add_document"),
            (text_index.TextIndex, "commit"),
            (TableWriter, "write_extraction"),
            (TableWriter, "update_file"),
            (extract, "_run_job"),
            (batch_writer, "update_counted_copies"),
        ):
            patch.setattr(owner, name, counting(getattr(owner, name)))
        if left > 0:
            try:
                sync(home(root), workers=0)
            except KeyboardInterrupt:
                assert left <= 0
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


def test_a_repeated_call_is_answered_as_if_read_at_once(root: Path) -> None:
    path = root / NAME.format(1)
    whole = talk(turns=2)
    calls = [line for line in whole.splitlines(keepends=True) if b'"tool_use"' in line]
    results = [line for line in whole.splitlines(keepends=True) if b'"tool_result"' in line]
    lines = [calls[0], calls[0], results[0], results[0]]
    path.write_bytes(lines[0])
    sync(home(root))
    with path.open("ab") as file:
        file.writelines(lines[1:])
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


def test_calls_that_are_never_answered_do_not_pile_up(root: Path) -> None:
    path = root / NAME.format(1)
    made = session(seed="calls")
    for _ in range(1_050):
        made.assistant(tool("Bash", command="ls"))
    path.write_bytes(made.bytes())
    sync(home(root))
    kept = extract.extract_rows(FileSource(str(path)), 1).state
    assert len(kept.open) == 1_000


def test_a_title_that_was_lent_goes_with_the_file_that_lent_it(root: Path) -> None:
    owner, lender = root / NAME.format(1), root / NAME.format(2)
    made = session(seed="owner").user("Fix the tide table")
    owner.write_bytes(made.bytes())
    last = made.records()[-1]["uuid"]
    lender.write_text(f'{{"type":"summary","summary":"Tides","leafUuid":"{last}"}}\n')
    sync(home(root))
    titles = {row[6] for row in dump(home(root))["sessions"]}
    assert "Tides" in titles
    lender.write_bytes(talk())
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


def test_a_worker_that_is_killed_is_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (root / NAME.format(number)).write_bytes(talk(str(number)))
    here = os.getpid()
    real = extract.extract_rows

    def fatal(*given: Any, **named: Any) -> Extraction:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(extract, "extract_rows", fatal)
        sync(home(root), workers=2)
    assert dump(home(root)) == as_if_at_once(root)


def test_a_full_disk_is_said_as_such(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / NAME.format(1)).write_bytes(talk())

    class Full:
        def add_document(self, _: object) -> None:
            raise ValueError("An IO error occurred: 'No space left on device'")

        def wait_merging_threads(self) -> None: ...

    def begin(self: text_index.TextIndex, *, is_large: bool) -> None:
        del is_large
        self._writer = cast("Any", Full())

    with monkeypatch.context() as patch:
        patch.setattr(text_index.TextIndex, "start_writing", begin)
        with pytest.raises(Unwritable, match="No space left") as caught:
            sync(home(root))
    assert caught.value.hint == "Free disk space and run the command again."
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


@pytest.mark.parametrize("garbage", [b"nothing at all" * 1000, b"", b"SQLite format 3\0" + b"x" * 5000])
def test_a_damaged_index_is_set_aside_and_made_anew(root: Path, garbage: bytes) -> None:
    (root / NAME.format(1)).write_bytes(talk())
    sync(home(root))
    before = dump(home(root))
    path = Path(home(root).folder) / "index.sqlite"
    path.write_bytes(garbage)
    sync(home(root))
    assert dump(home(root)) == before
    aside = [each.read_bytes() for each in path.parent.glob("index.sqlite.damaged-*")]
    assert aside == ([garbage] if garbage else [])


def test_what_was_read_by_other_rules_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / NAME.format(1)).write_bytes(talk())
    sync(home(root))
    monkeypatch.setattr("steno.index.sync.updater.EXTRACTION_RULES", f"{session_stats.EXTRACTION_RULES}+")
    assert sync(home(root)).read == 1
    assert sync(home(root)).read == 0


def test_an_index_that_cannot_be_written_can_be_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / NAME.format(1)).write_bytes(talk())
    sync(home(root))
    before = dump(home(root))

    class ReadOnly:
        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("unable to open database file")

        def close(self) -> None: ...

    def refused(_: str) -> ReadOnly:
        return ReadOnly()

    monkeypatch.setattr("steno.index.database._connect_database", refused)
    assert dump(home(root)) == before


def rewritten(path: Path) -> bytes:
    """Change a word in the middle of a file, whose size stays; return what it was."""
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Ask 20", b"Say 20"))
    os.utime(path, (1, 1))
    return before


def test_a_rewrite_of_the_same_size_is_read_anew(root: Path) -> None:
    path = root / NAME.format(1)
    path.write_bytes(talk(turns=40))
    sync(home(root))
    rewritten(path)
    assert sync(home(root)).read == 1


def test_a_file_that_is_itself_again_after_a_crash_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / NAME.format(1)
    path.write_bytes(talk(turns=40))
    seen = path.stat()
    sync(home(root))
    before = dump(home(root))
    data = rewritten(path)

    def crash(_: batch_writer.BatchWriter) -> None:
        raise RuntimeError("struck")

    with monkeypatch.context() as patch:
        patch.setattr(batch_writer.BatchWriter, "_finish_batch", crash)
        with pytest.raises(RuntimeError, match="struck"):
            sync(home(root))
    path.write_bytes(data)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    sync(home(root))
    assert dump(home(root)) == before


def test_an_interrupt_ends_the_reading(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (root / NAME.format(number)).write_bytes(talk(str(number)))
    take = TableWriter.write_extraction

    def interrupted(self: TableWriter, found: Extraction) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        take(self, found)

    with monkeypatch.context() as patch:
        patch.setattr(TableWriter, "write_extraction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sync(home(root), workers=0)
    assert sum(done > 0 for _, done in dump(home(root))["read"]) == 1
    assert sync(home(root)).read == 4


def test_a_rename_may_change_which_copy_counts(root: Path) -> None:
    # Two copies that differ in nothing but where they lie: the first in order counts.
    for folder in ("one", "two"):
        (root / folder).mkdir()
        path = root / folder / NAME.format(1)
        path.write_bytes(answer("same", "2026-11-15T12:00:00.000Z"))
    sync(home(root))
    (root / "one").rename(root / "zero")
    sync(home(root))
    assert dump(home(root)) == as_if_at_once(root)


def test_a_failed_result_with_half_a_surrogate_pair_is_counted(root: Path) -> None:
    made = session().user("Run it").assistant(tool("Bash", command="make"))
    made.result("gives HALF", error=True).assistant("It failed.").done()
    (root / NAME.format(1)).write_bytes(made.bytes().replace(b"HALF", rb"\ud800"))
    sync(home(root))
    said = dump(home(root))
    assert [call[-1] for call in said["tool_calls"]] == [1]


@pytest.mark.parametrize("field", ["userType", "origin", "isMeta", "slug", "permissionMode"])
def test_fields_of_other_types_do_not_stop_the_sync(root: Path, field: str) -> None:
    made = session().user("Run it").assistant(tool("Bash", command="make"))
    made.result("no", error=True).assistant("It failed.").done()
    records = [{**json.loads(line), field: 7} for line in made.bytes().splitlines()]
    (root / NAME.format(1)).write_bytes(b"".join(map(encode_line, records)))
    (root / NAME.format(2)).write_bytes(talk())
    sync(home(root))
    said = dump(home(root))
    assert len(said["sessions"]) == 2
    assert 1 in [call[-1] for call in said["tool_calls"]]


@pytest.mark.parametrize("duration", [b"1e400", b"1e300", b"99999999999999999999999"])
def test_a_turn_that_took_longer_than_any_can_does_not_stop_the_sync(root: Path, duration: bytes) -> None:
    record = {"type": "system", "subtype": "turn_duration", "uuid": "d", "durationMs": 17}
    line = encode_line(record).replace(b"17", duration)
    (root / NAME.format(1)).write_bytes(session().turn("Go", "Done.").bytes() + line)
    sync(home(root))
    assert len(dump(home(root))["sessions"]) == 1
    opened = steno.open(str(root / NAME.format(1)))
    assert "Done." in as_markdown(build_brief(opened))


@pytest.mark.parametrize("figure", ["1e400", "1e300", "-1e300"])
def test_figures_of_a_compaction_that_nobody_can_count_are_left_out(tmp_path: Path, figure: str) -> None:
    data = session().turn("Go", "Done.").compact("So far.").turn("More", "Done again.").bytes()
    odd = re.sub(rb'("(?:preTokens|postTokens)":)\d+', rb"\g<1>" + figure.encode(), data)
    assert odd != data
    path = tmp_path / NAME.format(1)
    path.write_bytes(odd)
    (compaction,) = steno.open(str(path)).compactions
    assert (compaction.pre_tokens, compaction.post_tokens) == (None, None)
