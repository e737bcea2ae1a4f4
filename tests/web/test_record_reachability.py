"""Every record of every real file is reachable from its session page."""

import os
import re
from pathlib import Path

import pytest
from tests.web.explorer import Explorer, explorer

from steno.format.dialects.detection import convert_if_dialect
from steno.format.lines import read_pieces
from steno.format.source import BytesSource

pytestmark = pytest.mark.corpus

_RECORD = re.compile(r'data-raw="(/s/[^"]+/record/(\d+))"')
_LATER = re.compile(r'rel="next" href="([^"]+)"')
_RECORDS = re.compile(r'href="(/s/[^"]+/records)"')


def reached(found: Explorer, way: str) -> set[int]:
    """Return the offsets of all records and gaps that can be come to from a page."""
    page = found.get(way)
    assert page.status == 200, way
    lists = _RECORDS.search(page.text)
    assert lists is not None, way
    offsets: set[int] = set()
    following: str | None = lists[1]
    while following is not None:
        answer = found.get(following.replace("&amp;", "&"))
        assert answer.status == 200, following
        offsets |= {int(offset) for _, offset in _RECORD.findall(answer.text)}
        later = _LATER.search(answer.text)
        following = later[1] if later else None
    return offsets


def ways(found: Explorer) -> list[tuple[str, str]]:
    """Return the page of every file in the index, and where the file lies."""
    with found.house.index() as index:
        rows = index.connection.execute(
            "SELECT s.id, s.agent, f.id, f.path FROM sessions s JOIN files f ON f.id = s.file"
        ).fetchall()
    return [
        (f"/s/{name}~{file}" if not agent else f"/s/{name}/a/{agent}", os.fsdecode(path))
        for name, agent, file, path in rows
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("corpus", ["public", "real-client", "resume-cases"])
def test_every_record_of_every_file_is_reached_from_its_page(shared: Path, tmp_path: Path, corpus: str) -> None:
    counted = 0
    missing: dict[str, set[int]] = {}
    with explorer(str(tmp_path / "index"), str(shared / "corpus" / corpus)) as found:
        for way, path in ways(found):
            # A file in a dialect is shown as it was converted; each record leads to its own.
            source = convert_if_dialect(BytesSource(Path(path).read_bytes()))
            there = {piece.offset for piece in read_pieces(source)}
            lost = there - reached(found, way)
            if lost:
                missing[way] = lost
            counted += len(there)
    assert missing == {}
    assert counted > 500
