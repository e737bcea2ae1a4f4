"""Sessions of the real client have one title, one number of turns and one of steps everywhere."""

from pathlib import Path

import pytest
from tests.conftest import NOW
from tests.published.surfaces import differences, listed_by
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
