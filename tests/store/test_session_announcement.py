"""A process that works on a session says so, and others find it."""

import os
from pathlib import Path

from steno.store.session_lock import SessionAnnouncement, live_writer

SID = "11111111-2222-4333-8444-555555555555"


def session(folder: Path) -> str:
    path = folder / "projects" / "-proj" / f"{SID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n", encoding="utf-8")
    return str(path)


def test_whoever_works_on_a_session_is_found_until_they_are_done(tmp_path: Path) -> None:
    path = session(tmp_path)
    assert live_writer(path) is None
    with SessionAnnouncement(str(tmp_path), SID, "/proj", "2.1.0") as presence:
        found = live_writer(path)
        assert found is not None
        assert (found.pid, found.cwd, found.entrypoint) == (os.getpid(), "/proj", "steno")
        assert Path(presence.path).stat().st_mode & 0o777 == 0o600
    assert live_writer(path) is None
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_session_that_was_left_for_another_does_not_take_the_others_note(tmp_path: Path) -> None:
    path = session(tmp_path)
    first = SessionAnnouncement(str(tmp_path), "00000000-2222-4333-8444-555555555555", "/proj", "2.1.0")
    first.open()
    with SessionAnnouncement(str(tmp_path), SID, "/proj", "2.1.0"):
        first.close()
        assert live_writer(path) is not None


def test_a_process_tells_of_every_session_that_it_works_on(tmp_path: Path) -> None:
    path = session(tmp_path)
    other = SessionAnnouncement(str(tmp_path), "00000000-2222-4333-8444-555555555555", "/proj", "2.1.0")
    with SessionAnnouncement(str(tmp_path), SID, "/proj", "2.1.0"):
        with other:
            found = live_writer(path)
            assert found is not None
            assert found.session_id == SID
            assert live_writer(path.replace(SID, "00000000-2222-4333-8444-555555555555")) is not None
        assert live_writer(path) is not None
    assert list((tmp_path / "sessions").iterdir()) == []


def test_where_nothing_can_be_told_the_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("no folder", encoding="utf-8")
    with SessionAnnouncement(str(tmp_path), SID, "/proj", "2.1.0"):
        pass
    assert (tmp_path / "sessions").read_text(encoding="utf-8") == "no folder"
