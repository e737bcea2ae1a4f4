"""Sessions of the real client have one title, one number of turns and one of steps everywhere."""

from pathlib import Path

import pytest
from tests.builders import Session, session, tool
from tests.conftest import NOW
from tests.published.forms import Flat
from tests.published.surfaces import differences, every_surface, listed_by
from tests.web.explorer import explorer

KNOWN = {
    "6c84cf07": "a title for a record in the middle: only what reads the whole file can give it",
    "e0baec80": "the file with its title is older, and ls looks at newer ones",
    "aaaaaaaa": "written by hand: the title's client is older than the one the session names",
}
"""Sessions that surfaces know otherwise, by the beginning of their id."""


@pytest.mark.corpus
def test_every_surface_says_the_same_of_real_sessions(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    root = str(shared / "corpus" / "real-client")
    with explorer(str(tmp_path / "index"), root) as found:
        assert len(listed_by(found)) > 100
        odd = differences(found)
    unknown = {path: what for path, what in odd.items() if Path(path).name[:8] not in KNOWN}
    assert unknown == {}


BASH = tool("Bash", command="make")


def without_result() -> bytes:
    file = Flat()
    file.user("go")
    file.calls("Bash", arguments={"command": "make"})
    file.result("made", isDeleted=True)
    file.says("Done.")
    return file.data()


ENDINGS: dict[str, tuple[str, Session | bytes]] = {
    "a command behind an interruption": (
        "interrupted",
        session("2.1.42").user("go").assistant(BASH).interrupt().command("cost", says="$1"),
    ),
    "an exit behind an interruption": (
        "interrupted",
        session("2.1.42").user("go").assistant(BASH).interrupt().command("exit"),
    ),
    "a skill behind a result": (
        "interrupted",
        session("2.1.42").user("go").assistant(BASH).result("x").meta("# Skill"),
    ),
    "a command behind an answer": ("finished", session("2.1.42").turn("go", "done").command("cost", says="$1")),
    "an answer behind a call whose result is deleted": ("finished", without_result()),
}


def test_every_surface_says_the_same_of_how_sessions_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    folder = tmp_path / "projects" / "-home-ada-work"
    folder.mkdir(parents=True)
    statuses = {}
    for number, (status, made) in enumerate(ENDINGS.values(), 1):
        path = folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        path.write_bytes(made if isinstance(made, bytes) else made.bytes())
        statuses[str(path)] = {status}
    with explorer(str(tmp_path / "index"), str(tmp_path)) as found:
        said = every_surface(found.refresh())
    found_statuses = {path: {each.status for each in surfaces.values()} - {None} for path, surfaces in said.items()}
    assert found_statuses == statuses
