"""Ties and edges: records without a time, equal figures, a batch that was cut off with no news."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.builders import session
from tests.index.dump import dump
from tests.index.searching import Searched, write

from steno.format.lines import read_records
from steno.format.source import BytesSource
from steno.index.database import DATABASE_NAME, IndexLocation
from steno.index.sync.updater import sync
from steno.session.turns.usage import UsageCounter


def test_a_record_without_a_time_is_in_no_time(tmp_path: Path) -> None:
    made = session(seed="timeless").user("lighthouse one").assistant("Aye.").done()
    made.user("lighthouse two").assistant("Aye.").done()
    path = write(tmp_path / "config", made)
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"timestamp"' in lines[0]
    lines[0] = lines[0].replace(b'"timestamp"', b'"timestump"')
    path.write_bytes(b"".join(lines))
    found = Searched(tmp_path, ())
    assert len(found.hits("lighthouse")) == 2
    counts = {
        filters: len(found.hits(f"lighthouse {filters}"))
        for filters in ("since:1970-01-02", "until:2100-01-01", "since:1960-01-01")
    }
    assert counts == dict.fromkeys(counts, 1)


def test_a_batch_that_was_cut_off_is_made_good_even_where_no_file_has_changed(
    tmp_path: Path, make_index: Callable[..., IndexLocation]
) -> None:
    write(tmp_path / "config", session(seed="cut").turn("one", "ok"))
    home = make_index(tmp_path / "config")
    wanted = dump(home)
    database = Path(home.folder) / DATABASE_NAME
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO batches (id, open) VALUES (77, 1)")
        ((broken,),) = connection.execute("SELECT count(*) FROM batches WHERE open")
    connection.close()
    assert broken
    sync(home)
    with sqlite3.connect(database) as connection:
        ((broken,),) = connection.execute("SELECT count(*) FROM batches WHERE open")
    connection.close()
    assert broken == 0
    assert dump(home) == wanted


def test_of_lines_with_equal_output_the_last_one_counts() -> None:
    line = (
        b'{"type":"assistant","uuid":"%d","message":{"id":"m","model":"x","role":"assistant",'
        b'"content":[],"usage":{"input_tokens":%d,"output_tokens":%d}}}\n'
    )
    for figures, wanted in ((((1, 5), (2, 5)), (2, 5)), (((1, 5), (2, 4)), (1, 5)), (((1, 5), (2, 6)), (2, 6))):
        counter = UsageCounter()
        data = b"".join(line % (at, *figure) for at, figure in enumerate(figures))
        for record in read_records(BytesSource(data)):
            counter.add(record)
        ((_, usage, _),) = counter.responses()
        assert (usage.input_tokens, usage.output_tokens) == wanted
