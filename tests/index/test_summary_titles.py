"""A summary may name any record of its session: `steno ls` and the index agree on the title."""

from pathlib import Path

import pytest
from tests.builders import Session, session

from steno.format.source import BytesSource
from steno.index.database import IndexLocation, open_for_writing
from steno.index.session_stats import ExtractionState
from steno.index.sync.extract import extract_rows
from steno.index.sync.updater import sync
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session
from steno.store.summary import END_SIZE, summarize


def titles(tmp_path: Path, path: Path) -> set[str]:
    """Return the titles that are shown of one session: by `ls`, by `search`, and when it is open."""
    home = IndexLocation(str(tmp_path / "index"), (str(path.parent.parent.parent),))
    sync(home)
    connection = open_for_writing(home.folder)
    ((indexed,),) = connection.execute("SELECT title FROM sessions")
    connection.close()
    found = discover_file(str(path))
    with open_file_session(found) as opened:
        return {indexed, summarize(found, 0.0).title, opened.title.text}


def talk(turns: int, words: str = "word") -> Session:
    built = session(full=True)
    for number in range(turns):
        built.turn(f"Prompt {number}", words)
    return built


@pytest.mark.parametrize("place", [0, 1, 30])
@pytest.mark.parametrize("words", ["word", "word " * (END_SIZE // 30)], ids=["small", "large"])
def test_a_summary_names_a_record_far_before_it(root: Path, tmp_path: Path, place: int, words: str) -> None:
    built = talk(60, words)
    leaf = built.uuids()[place]
    built.summary("Summed up", leaf).turn("On", "Yes.")
    path = root / f"{built.session_id}.jsonl"
    path.write_bytes(built.bytes())
    assert titles(tmp_path, path) == {"Summed up"}


def test_a_leaf_that_a_record_only_speaks_of_is_none(root: Path, tmp_path: Path) -> None:
    gone = "0c9be80c-c704-4d9f-928e-000000000000"
    built = talk(20, f'See "uuid":"{gone}".').summary("Elsewhere", gone).turn("On", "Yes.")
    path = root / f"{built.session_id}.jsonl"
    path.write_bytes(built.bytes())
    assert titles(tmp_path, path) == {"On"}


def test_the_last_summary_counts_whichever_leaf_is_met_first(root: Path, tmp_path: Path) -> None:
    built = talk(20)
    early, late = built.uuids()[1], built.uuids()[-1]
    lines = built.summary("Near", late).summary("Far", early).bytes().splitlines(keepends=True)
    path = root / f"{built.session_id}.jsonl"
    path.write_bytes(b"".join(lines))
    assert titles(tmp_path, path) == {"Far"}
    # Both stand before what they name.
    path.write_bytes(b"".join([lines[-1], lines[-2], *lines[:-2]]))
    assert titles(tmp_path, path) == {"Near"}


def test_in_any_stretches_the_title_is_the_same() -> None:
    built = talk(40)
    built.summary("Far", built.uuids()[0]).turn("On", "Yes.")
    data = built.summary("Elsewhere", "no-such-record").bytes()
    lines = data.splitlines(keepends=True)
    lines.insert(0, lines[-1].replace(b"no-such-record", built.uuids()[5].encode()))
    source = BytesSource(b"".join(lines))
    whole = extract_rows(source, 1).state
    assert whole.summary == "Far"
    state, at = ExtractionState(), 0
    while at < source.size:
        part = extract_rows(source, 1, at, state, limit=300)
        state, at = part.state, part.end
    assert (state.summary, state.summary_at) == (whole.summary, whole.summary_at)
    assert state.far_summaries == whole.far_summaries
    assert set(state.far_summaries) == {"no-such-record"}
