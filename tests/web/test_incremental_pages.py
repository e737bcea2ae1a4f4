"""The page of a session that has grown equals that of a newly opened session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import Session, session, tool
from tests.builders.everything import everything
from tests.web.explorer import Explorer, explorer
from tests.web.sessions import exploring

from steno.format.records import Piece
from steno.format.source import Source
from steno.session import transcript

_KEPT = 6
"""As many as stay open."""
WAYS = ("?detail=everything", "/panel", "/records", "/turns?detail=everything", "/sides")


def pages(found: Explorer, made: Session) -> list[str]:
    return [found.get(f"/s/{made.session_id}{way}").text for way in WAYS]


def cut(path: Path, share: float) -> bytes:
    """Leave only the beginning of a file, and return the rest."""
    data = path.read_bytes()
    at = round(len(data) * share)
    path.write_bytes(data[:at])
    return data[at:]


@pytest.mark.parametrize("share", [0.3, 0.77])
def test_any_two_reads_give_the_page_of_one(tmp_path: Path, share: float) -> None:
    every = everything("2.1.325")[::3]
    config = tmp_path / "config"
    with exploring(tmp_path, *every) as (found, _):
        rests = [(path, cut(path, share)) for path in config.rglob("*.jsonl")]
        found.refresh()
        for made in every[:_KEPT]:
            pages(found, made)
        for path, rest in rests:
            with path.open("ab") as file:
                file.write(rest)
        found.refresh()
        later = [pages(found, made) for made in every[:_KEPT]]
        with explorer(str(tmp_path / "fresh"), str(config)) as other:
            assert later == [pages(other, made) for made in every[:_KEPT]]


def test_a_sub_agent_that_goes_on_alone_is_seen(tmp_path: Path) -> None:
    every = everything("2.1.325")
    made = next(each for each in every if any("/subagents/" in name for name in each.files()))
    with exploring(tmp_path, made) as (found, _):
        path = next((tmp_path / "config").rglob("subagents/agent-*.jsonl"))
        way = f"/s/{made.session_id}/a/{path.stem.removeprefix('agent-')}?detail=everything"
        whole = found.get(way).text
        rest = cut(path, 0.4)
        found.refresh()
        short = found.get(way).text
        assert short != whole
        with path.open("ab") as file:
            file.write(rest)
        found.refresh()
        assert found.get(way).text == whole


def many() -> Session:
    made = session(full=True)
    for number in range(12):
        made.user(f"ask {number}").assistant(tool("Bash", command="ls")).result("x").assistant("ok")
    return made


def test_a_session_that_is_written_over_is_read_as_a_whole(tmp_path: Path) -> None:
    made = many()
    with exploring(tmp_path, made) as (found, paths):
        pages(found, made)
        data = paths[0].read_bytes()
        paths[0].write_bytes(data.replace(b"ask 3", b"ask me") + data.splitlines()[-1] + b"\n")
        found.refresh()
        assert "ask me" in pages(found, made)[0]


def test_a_session_that_is_replaced_is_read_as_a_whole(tmp_path: Path) -> None:
    made = many()
    with exploring(tmp_path, made) as (found, paths):
        pages(found, made)
        other = paths[0].with_suffix(".new")
        other.write_bytes(paths[0].read_bytes().replace(b"ask 3", b"say 3") + b"\n")
        other.replace(paths[0])
        found.refresh()
        assert "say 3" in pages(found, made)[0]


def test_a_page_is_made_without_reading_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = many()
    with exploring(tmp_path, made) as (found, paths):
        pages(found, made)
        starts: list[int] = []
        once = transcript.read_pieces

        def noted(source: Source, start: int = 0, *, cap: int) -> Iterator[Piece]:
            starts.append(start)
            return once(source, start, cap=cap)

        size = paths[0].stat().st_size
        made.turn("and more", "yes")
        paths[0].write_bytes(made.bytes())
        found.refresh()
        monkeypatch.setattr(transcript, "read_pieces", noted)
        with found.house.session_cache.open(str(paths[0])) as opened:
            assert len(opened.turns()) == 13
        assert starts == [size]
