"""After each change on disk, the archive says, holds and gives back exactly what is recorded."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.index.transcripts import TRANSCRIPTS
from tests.recorded_answers import assert_recorded, plain

from steno.errors import NotFound, StenoError
from steno.store.archive import copies
from steno.store.archive.archive import Archive, archive_all, session_groups
from steno.store.archive.catalogue import (
    CatalogueEntry,
    PathResolver,
    archived_agents,
    archived_at,
    archived_count,
    archived_only_below,
    archived_sidecar,
    catalogue_entry,
    folder_name,
    is_archived,
    is_archived_as,
    read_entries,
)
from steno.store.archive.file_access import archive_exists, lazy_source, open_file, open_transcript
from steno.store.archive.journal import (
    ArchiveSource,
    FileLine,
    FrameLine,
    Journal,
    RepairLine,
    SessionLine,
    StateLine,
    chain_digest,
    decode_line,
    decode_path,
    encode_line,
    encode_path,
    read_journal,
)  # fmt: skip
from steno.store.discovery import discover, discover_file
from steno.store.environment import archive_stamp, steno_home

ANSWERS: Final = Path(__file__).with_name("answers")
ONE: Final = "11111111-0000-4000-8000-000000000001"
TWO: Final = "22222222-0000-4000-8000-000000000002"
_HEX: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{24}")


class Steps:
    """A config folder that changes, and an archive that follows."""

    def __init__(self, folder: Path) -> None:
        self.top = folder
        self.root = folder / "config"
        self.project = self.root / "projects" / "-p"
        self.project.mkdir(parents=True)
        self.answers: dict[str, object] = {}
        self.clock = 1_790_000_000

    def write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o640)
        self.clock += 60
        os.utime(path, (self.clock, self.clock))

    def session(self, name: str = ONE) -> Path:
        return self.project / f"{name}.jsonl"

    def step(self, name: str, act: Callable[[], object] = lambda: None, **options: Any) -> None:
        """Do something, archive all, and keep what is said and what the journals hold."""
        act()
        planned: list[int] = []

        def plan(size: int) -> Callable[[int], None]:
            planned.append(size)
            return planned.append

        made = archive_all((str(self.root),), start_progress=plan, **options)
        totals = [made.sessions, made.files, made.added, made.packed > 0, made.rewritten, made.healed]
        self.note(name, {"totals": totals, "kept": made.archived, "problems": made.problems,
                         "planned": planned, "archive": self.held()})  # fmt: skip

    def held(self) -> dict[str, Any]:
        """Return what the catalogue and the journals say, without what differs in each run."""
        archive = Archive()
        found: dict[str, Any] = {"entries": archive.entries()}
        for entry in archive.entries():
            index = archive.journal(entry)
            files = [[file.number, file.path, file.role, file.generation, file.size, file.known_size, file.copy_name,
                      file.mtime_ns, file.break_reason, index.is_replaced(file), len(file.frames), len(file.detached_frames)]
                     for file in index.files.values()]  # fmt: skip
            latest = [file.number for file in index.latest_generations()]
            generations = [file.number for file in index.generations(index.path)]
            found[entry.path] = {"files": files, "latest": latest, "generations": generations,
                                 "damage": index.damage_messages, "standing": len(index.valid_generations()),
                                 "copies": sorted(each.name for each in Path(index.folder).iterdir())}  # fmt: skip
        return found

    def note(self, name: str, value: object) -> None:
        self.answers[name] = self._without(plain(value))

    def _without(self, value: Any) -> Any:
        if isinstance(value, dict):
            value = {k: v for k, v in value.items() if k not in ("packed", "inode", "time")}
            return {self._without(k): self._without(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._without(each) for each in value]
        if isinstance(value, str):
            text = value.replace(str(self.top), "").replace(steno_home(), "HOME")
            # How small a frame is, and what the library says of a damaged one, is not ours.
            text = re.sub(r"(byte) [1-9][0-9,]*", r"\1 N", text)
            text = re.sub(r"(damaged at byte \w+): (?!truncated|wrong size).*", r"\1: …", text)
            return _HEX.sub("#", re.sub(r"-[0-9a-f]{12}\b", "-#", text))
        return value


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


def _data(name: str) -> bytes:
    return TRANSCRIPTS[name]().bytes()


def test_a_session_that_grows_is_rewritten_and_goes(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "FRAME_SIZE", 500)
    path, data = steps.session(), _data("call")
    lines = data.splitlines(keepends=True)
    agent = path.with_suffix("") / "subagents" / "agent-aaaa1111.jsonl"
    steps.step("nothing there")
    steps.step("a new one", lambda: steps.write(path, b"".join(lines[:2])))
    steps.step("no change")
    steps.step("longer", lambda: steps.write(path, data))
    steps.step("a sub-agent and a title", lambda: (
        steps.write(agent, _data("agent's own file")),
        steps.write(path.with_suffix("") / "custom-title.json", b'{"customTitle":"T"}')))  # fmt: skip
    steps.step("only another time", lambda: os.utime(path, (1_790_100_000, 1_790_100_000)))
    steps.step("shorter", lambda: steps.write(path, b"".join(lines[:2])))
    steps.step("other words of that size", lambda: steps.write(path, b"".join(lines[:2]).replace(b"One", b"Odd")))
    steps.step("longer, with another beginning", lambda: steps.write(path, b"x" + data))
    steps.step("another session", lambda: steps.write(steps.session(TWO), data + data))
    steps.step("gone", path.unlink)
    archive = Archive()
    for entry in archive.entries():
        for file in archive.journal(entry).files.values():
            read = b"".join(archive.source(entry, file).chunks())
            assert len(read) == file.size
    entry = archive.entry(str(path))
    steps.note("put back", archive.restore(entry))
    assert path.read_bytes() == b"x" + data
    assert (path.stat().st_mode & 0o777, path.stat().st_mtime) == (0o640, steps.clock - 60)
    steps.note("put back again", archive.restore(entry))
    path.write_bytes(b"other")
    steps.note("not over another", archive.restore(entry))
    steps.note("elsewhere", archive.restore(entry, str(steps.top / "to")))
    steps.note("first generation", archive.restore(entry, str(steps.top / "to1"), 1))
    assert (steps.top / "to1/projects/-p" / path.name).read_bytes() == data
    with pytest.raises(NotFound) as missing:
        archive.restore(entry, None, 9)
    assert (str(missing.value), missing.value.hint) == ("generation 9 does not exist", "The file has 4 generations.")
    assert list(archive.verify()) == []
    archive.forget(entry)
    steps.note("forgotten", steps.held())
    with pytest.raises(NotFound) as gone:
        archive.entry(str(path))
    assert str(gone.value) == f"{path} is not in the archive"
    assert_recorded(ANSWERS / "archive_steps.json", steps.answers)


def test_damage_is_said_healed_and_never_restored(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of damage to a copy or a journal: what is said of it, and what `full` makes of it."""
    monkeypatch.setattr(copies, "FRAME_SIZE", 400)
    path = steps.session()

    def copy(folder: Path) -> Path:
        return next(each for each in sorted(folder.iterdir()) if each.suffix == ".zst")

    def flip(file: Path, at: int) -> None:
        data = bytearray(file.read_bytes())
        data[at] ^= 0xFF
        file.write_bytes(data)

    damages: dict[str, Callable[[Path], object]] = {
        "a byte of a frame": lambda folder: flip(copy(folder), 20),
        "the head of a frame": lambda folder: flip(copy(folder), 4),
        "a copy cut short": lambda folder: copy(folder).write_bytes(copy(folder).read_bytes()[:-3]),
        "a copy too long": lambda folder: copy(folder).write_bytes(copy(folder).read_bytes() + b"more"),
        "a copy gone": lambda folder: copy(folder).unlink(),
        "the first line of the journal": lambda folder: flip(folder / "index.jsonl", 5),
        "the last line of the journal": lambda folder: flip(folder / "index.jsonl", -5),
        "a line in the middle": lambda folder: flip(folder / "index.jsonl", 700),
        "the line of the file": lambda folder: flip(folder / "index.jsonl", 250),
        "a line cut short": lambda folder: (folder / "index.jsonl").write_bytes(
            (folder / "index.jsonl").read_bytes()[:-9]),
        "no journal": lambda folder: (folder / "index.jsonl").unlink(),
        "no folder": shutil.rmtree,
    }  # fmt: skip
    for name, damage in damages.items():
        shutil.rmtree(Path(steno_home()) / "archive", ignore_errors=True)
        steps.write(path, _data("two turns"))
        archive_all((str(steps.root),))
        (entry,) = Archive().entries()
        damage(Path(Archive().folder_of(entry)))
        said: dict[str, Any] = {"failures": list(Archive().verify())}
        said["failures of one"] = len(list(Archive().verify([entry])))
        try:
            said["restored"] = Archive().restore(entry, str(steps.top / name))
        except StenoError as error:
            said["restored"] = error
        said["full"] = Archive().keep(discover_file(str(path)), full=True)
        said["after"] = list(Archive().verify())
        said["held"] = steps.held()
        steps.note(name, said)
    assert_recorded(ANSWERS / "archive_damage.json", steps.answers)


def test_what_is_gone_is_found_in_the_archive(steps: Steps) -> None:
    one, two = steps.session(), steps.session(TWO)
    agent = one.with_suffix("") / "subagents" / "agent-aaaa1111.jsonl"
    named = steps.project / "talk.jsonl"
    assert (archive_exists(), archive_stamp(), archived_count()) == (False, "", 0)
    steps.write(one, _data("call"))
    steps.write(agent, _data("agent's own file"))
    steps.write(one.with_suffix("") / "custom-title.json", b'{"customTitle":"T"}')
    steps.write(two, _data("two turns"))
    steps.write(named, _data("edit"))
    archive_all((str(steps.root),))
    assert archive_exists()
    catalogue = Path(steno_home()) / "archive" / "sessions.jsonl"
    assert archive_stamp() == f"{catalogue.stat().st_mtime_ns} {catalogue.stat().st_size}"
    assert archived_count() == 3
    found = discover_file(str(one))
    assert is_archived(found)
    assert not is_archived_as(found.path, found.size + 1, found.mtime_ns)
    assert not is_archived_as(found.path, found.size, found.mtime_ns + 1)
    assert not is_archived_as(str(one) + "x", found.size, found.mtime_ns)
    living = list(discover(str(steps.root)))
    assert archived_only_below([str(steps.root)], living) == []
    data = one.read_bytes()
    one.unlink()
    agent.unlink()
    named.unlink()
    living = list(discover(str(steps.root)))
    gone = archived_only_below([str(steps.root)], living)
    assert archived_only_below([str(steps.top / "elsewhere")], living) == []
    assert [each.path for each in archived_only_below([str(one)], living)] == [str(one)]
    (session,) = (each for each in gone if each.path == str(one))
    steps.note("gone", gone)
    steps.note("agents", archived_agents(session))
    assert archived_at(str(one)) == msgspec.structs.replace(session, root=str(one))
    assert archived_at(str(agent)) == msgspec.structs.replace(archived_agents(session)[0], root=str(agent))
    assert archived_at(str(two) + "x") is None
    assert archived_sidecar(session, str(one.with_suffix("") / "custom-title.json"), 5) == b'{"cus'
    assert archived_sidecar(session, str(one) + "x", 5) is None
    with open_transcript(str(one)) as source, open_file(session) as other:
        assert (source.size, source.read(0, 9), other.read(3, 4)) == (len(data), data[:9], data[3:7])
    assert b"".join(lazy_source(session).chunks()) == data
    moved = steps.root / "projects" / "-q" / one.name
    steps.write(moved, data)
    assert [e.path for e in archived_only_below([str(steps.root)], discover(str(steps.root)))] == [str(named)]
    steps.write(moved, data[:-1])
    again = archived_only_below([str(steps.root)], discover(str(steps.root)))
    assert [each.path for each in again] == [str(one), str(named)]
    archive = Archive()
    for name, paths in ((ONE, [one]), (ONE[:4], [one]), (ONE[:3], []), (ONE.upper(), [one]),
                        (str(two), [two]), ("talk", [named]), ("tal", []), ("zzzz", [])):  # fmt: skip
        assert [entry.path for entry in archive.find_entries(name)] == [str(each) for each in paths], name
    assert_recorded(ANSWERS / "archive_gone.json", steps.answers)


def test_who_comes_often_waits_for_more(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is being written is left until there is enough of it, or it is quiet."""
    path = steps.session()
    steps.write(path, b"x" * 10)
    archive_all((str(steps.root),))
    small = 1 << 16
    waits: dict[str, bool] = {}
    for name, size, age in (
        ("a little, now", 11, 0), ("a little, an hour ago", 11, 3601), ("a little, nearly", 11, 3599),
        ("a little, to come", 11, -3599), ("a little, far ahead", 11, -3601), ("nothing", 10, 0),
        ("nearly enough", 10 + small - 1, 0), ("enough", 10 + small, 0), ("less", 9, 0),
    ):  # fmt: skip
        steps.write(path, b"x" * size)
        monkeypatch.setattr("steno.store.archive.archive.now", lambda age=age: steps.clock + age)
        (pending,) = Archive().pending(session_groups((str(steps.root),), []), defer_active=True)
        waits[name] = not pending[1]
        (other,) = Archive().pending(session_groups((str(steps.root),), []))
        assert other[1]
    assert waits == {
        "a little, now": True, "a little, an hour ago": False, "a little, nearly": True,
        "a little, to come": True, "a little, far ahead": False, "nothing": True,
        "nearly enough": True, "enough": False, "less": False,
    }  # fmt: skip


def test_spans_of_a_kept_file_are_those_of_the_file(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "FRAME_SIZE", 10)
    path = steps.session()
    data = bytes(range(65, 65 + 47))
    steps.write(path, data)
    archive_all((str(steps.root),))
    (entry,) = Archive().entries()
    source = Archive().source(entry)
    assert (source.size, source.path) == (47, str(path))
    for offset in range(-1, 50):
        expected = data[offset:] if offset >= 0 else b""
        for length in (0, 1, 9, 10, 11, 25, 100):
            assert source.read(offset, length) == expected[:length], (offset, length)
        if offset >= 0:
            assert b"".join(source.chunks(offset)) == expected
    source.close()
    assert source.read(5, 5) == data[5:10]
    with pytest.raises(StenoError, match="does not contain file 99"):
        ArchiveSource(Archive().folder_of(entry), 99)


def test_lines_of_a_journal_are_written_and_read_to_the_letter() -> None:
    lines: list[Any] = [
        SessionLine("/a"), SessionLine("/\ufffd", "2fff", 1), FileLine(1, "/a", role="session", session_id="s", agent_id="g"),
        FrameLine(1, 0, 5, 0, 9, 77, "d" * 64, "c" * 64), StateLine(1, 5, 99, 3, 0o600, 1.5), RepairLine(2.0),
    ]  # fmt: skip
    answers = {repr(line): encode_line(line) for line in lines}
    assert_recorded(ANSWERS / "archive_lines.json", answers)
    decoder = msgspec.json.Decoder(SessionLine | FileLine | FrameLine | StateLine | RepairLine)
    for line in lines:
        raw = encode_line(line)[:-1]
        assert decode_line(raw, decoder) == line
        for at in range(len(raw)):
            assert decode_line(raw[:at] + b"\x01" + raw[at + 1 :], decoder) is None
        assert decode_line(raw[:-1], decoder) is None
    assert decode_line(b"", decoder) is None
    for path in ("/a", "/é", os.fsdecode(b"/\xff")):
        assert decode_path(*encode_path(path)) == path
    assert encode_path(os.fsdecode(b"/\xff")) == ("/\ufffd", "2fff")
    assert decode_path("/a", "zz") == "/a"
    assert chain_digest("", "a") != chain_digest("a", "") or chain_digest("a", "b") == chain_digest("a", "b")


def test_a_journal_says_what_is_missing_of_a_file(tmp_path: Path) -> None:
    def frame(offset: int, at: int, before: str = "", digest: str = "d" * 64, number: int = 1) -> FrameLine:
        return FrameLine(number, offset, 5, at, 3, 0, digest, chain_digest(before, digest))

    first = frame(0, 0)
    answers: dict[str, object] = {}
    for name, lines in {
        "whole": [first, frame(5, 3, first.chain)],
        "a gap": [first, frame(6, 3, first.chain)],
        "a gap in the copy": [first, frame(5, 4, first.chain)],
        "a broken chain": [first, frame(5, 3, "x")],
        "behind a break": [first, frame(6, 3, first.chain), frame(5, 3, first.chain)],
        "a stray": [first, frame(0, 0, number=7), StateLine(8, 1, 1)],
        "seen longer": [first, StateLine(1, 9, 44)],
        "instead": [first, FileLine(2, "/s", instead=1), frame(0, 0, number=2)],
        "instead, but shorter": [first, frame(5, 3, first.chain), FileLine(2, "/s", instead=1), frame(0, 0, number=2)],
        "instead of a later one": [first, FileLine(2, "/s", instead=3)],
        "mended": [first, RepairLine(1.0)],
    }.items():
        index = Journal(str(tmp_path))
        index.damaged_lines = [4]
        for line in (SessionLine("/s"), FileLine(1, "/s", role="session"), *lines):
            index.add_line(line)
        files = [
            [f.size, f.known_size, f.packed, f.mtime_ns, f.break_reason, len(f.detached_frames)]
            for f in index.files.values()
        ]
        session = index.session_file
        answers[name] = [files, index.damage_messages, [f.number for f in index.valid_generations()],
                         session.number if session else None, sorted(index.unnamed_numbers)]  # fmt: skip
    assert_recorded(ANSWERS / "archive_journal.json", answers)
    assert Journal(str(tmp_path)).session_file is None
    assert read_journal(str(tmp_path)).path == ""
    assert catalogue_entry(Journal(str(tmp_path))) is None


def test_names_of_folders_and_lines_of_the_catalogue(tmp_path: Path) -> None:
    assert folder_name("/p/a b:c.jsonl")[:-13] == "a_b_c"
    assert len(folder_name("/p/" + "x" * 100 + ".jsonl")) == 80 + 13
    assert folder_name("/p/a.jsonl") != folder_name("/q/a.jsonl")
    path = tmp_path / "sessions.jsonl"
    assert read_entries(str(path)) == ({}, 0, 0)
    good = [
        CatalogueEntry("/a", folder="a-1", size=3),
        CatalogueEntry("/b", folder="b-1"),
        CatalogueEntry("/a", folder="a-1", size=4),
    ]
    bad = [
        CatalogueEntry("/c", folder="../x"),
        CatalogueEntry("/d", folder=".hidden"),
        CatalogueEntry("/e", folder="a/b"),
    ]
    data = b"".join(map(encode_line, [*good, *bad]))
    path.write_bytes(data + b"torn\n" + b"half")
    entries, whole, lines = read_entries(str(path))
    assert entries == {"/a": good[2], "/b": good[1]}
    assert (whole, lines) == (len(data) + 5, 7)
    assert PathResolver().resolve(str(path)) == str(path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert PathResolver().resolve(str(tmp_path / "link" / "x")) == str(tmp_path / "x")
    assert list(session_groups((str(tmp_path),), [])) == []
