"""The archive keeps every byte it ever saw, and reads it back."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import Session, session, tool
from tests.conftest import WriteConfig

import steno
from steno.errors import BadRequest, NotFound
from steno.format.source import BytesSource, Source
from steno.session.transcript import load
from steno.store.archive import copies
from steno.store.archive.archive import Archive, ArchivedSession, archive_all
from steno.store.archive.journal import FileGeneration, Journal
from steno.store.config import CONFIG_FILE, read_config
from steno.store.discovery import Discovery, discover_file
from steno.store.environment import steno_home

NAME = "5f0e1d2c-0000-4000-8000-000000000001.jsonl"


def talk(seed: str = "archive", turns: int = 3) -> Session:
    made = session(seed=seed).title("Tide tables")
    for number in range(turns):
        made.user(f"Question {number}").assistant(tool("Bash", command="ls"))
        made.result("a.py\n" * 200).assistant(f"Answer {number}")
    return made


def with_agent(seed: str = "agent") -> Session:
    made = session(seed=seed).user("Look.").assistant(tool("Agent", prompt="p", description="d"))
    return made.agent(lambda agent: agent.assistant("It was looked at.")).assistant("Done.")


def kept_at(path: Path, *, full: bool = False) -> ArchivedSession:
    return Archive().keep(discover_file(str(path)), full=full)


def index_of(path: Path) -> Journal:
    archive = Archive()
    return archive.journal(archive.entry(str(path)))


def bytes_of(index: Journal, file: FileGeneration) -> bytes:
    archive = Archive()
    return b"".join(archive.source(archive.entry(index.path), file).chunks())


def unpacked(copy: Path) -> bytes:
    """Return what `zstd -d` would: the library alone, all frames one behind the other."""
    with copy.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def written(config: WriteConfig, made: Session) -> Path:
    return next(config(made).rglob(f"{made.session_id}.jsonl"))


# What is kept


def test_every_file_that_goes_with_a_session_is_kept(config: WriteConfig) -> None:
    made = with_agent()
    folder = config(made)
    path = next(folder.rglob(f"{made.session_id}.jsonl"))
    beside = path.with_suffix("")
    extra = {
        beside / "tool-results" / "one.txt": b"much output\n" * 999,
        folder / "todos" / f"{made.session_id}-agent-{made.session_id}.json": b"[]",
        folder / "file-history" / made.session_id / "0123456789abcdef@v1": b"\0\xffold file",
        folder / "tasks" / made.session_id / "1.json": b"{}",
        folder / "debug" / f"{made.session_id}.txt": b"log",
    }
    for each, data in extra.items():
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(data)
    assert archive_all().sessions == 1
    index = index_of(path)
    discovery = Discovery(str(folder))
    found = discover_file(str(path))
    wanted = [found, *discovery.agents(found), *discovery.sidecars(found)]
    assert sorted(file.path for file in index.latest_generations()) == sorted(each.path for each in wanted)
    assert {str(each) for each in extra} < {each.path for each in wanted}
    for file in index.latest_generations():
        assert bytes_of(index, file) == Path(file.path).read_bytes()
        assert unpacked(Path(index.copy_path(file))) == Path(file.path).read_bytes()


def test_a_copy_is_an_ordinary_zstd_file(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"one\n" * 700_000)
    kept_at(path)
    with path.open("ab") as file:
        file.write(b"two\n" * 10)
    kept_at(path)
    (file,) = index_of(path).files.values()
    assert len(file.frames) == 4
    assert unpacked(Path(index_of(path).copy_path(file))) == path.read_bytes()


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"one\n" * 500)
    first = kept_at(path)
    assert (first.added, len(first.changes)) == (2000, 1)
    assert kept_at(path).changes == ()
    with path.open("ab") as file:
        file.write(b"two\n")
    second = kept_at(path)
    assert second.added == 4
    assert second.rewritten == 0
    index = index_of(path)
    assert [(frame.offset, frame.length) for frame in index.files[1].frames] == [(0, 2000), (2000, 4)]


def test_a_file_that_was_rewritten_gets_a_generation_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / NAME
    contents = [b"one\n" * 500, b"two\n" * 600, b"two\n" * 10, b"three\n", b""]
    for content in contents:
        path.write_bytes(content)
        kept_at(path)
    index = index_of(path)
    there = index.generations(str(path))
    assert [bytes_of(index, file) for file in there] == contents
    assert [file.generation for file in there] == [1, 2, 3, 4, 5]
    assert Archive().entry(str(path)).generations == 5


def test_a_file_exchanged_for_one_that_goes_on_is_the_same_generation(tmp_path: Path) -> None:
    path, other = tmp_path / NAME, tmp_path / "other"
    path.write_bytes(b"one\n" * 500)
    kept_at(path)
    other.write_bytes(b"one\n" * 501)
    other.replace(path)
    assert kept_at(path).added == 4
    assert len(index_of(path).files) == 1


def test_a_change_in_the_middle_is_found_by_a_full_comparison_and_by_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "FRAME_SIZE", 100)
    monkeypatch.setattr(copies, "_COMPARED_TAIL_SIZE", 100)
    path = tmp_path / NAME
    before = b"".join(b"line %04d\n" % number for number in range(100))
    path.write_bytes(before)
    kept_at(path)
    after = before.replace(b"line 0050", b"LINE 0050") + b"more\n"
    with path.open("r+b") as file:
        file.write(after)
    assert kept_at(path).rewritten == 0
    (failure,) = Archive().verify()
    assert "differs from byte 500" in failure.message
    assert kept_at(path, full=True).rewritten == 1
    assert list(Archive().verify()) == []
    index = index_of(path)
    assert bytes_of(index, index.generations(str(path))[-1]) == after
    with path.open("r+b") as file:
        file.write(after.replace(b"line 0040", b"LINE 0040") + b"still more\n")
    assert kept_at(path, full=True).rewritten == 1


@pytest.mark.parametrize("said", ["on = 1", "level = 0", "level = 20", "level = true", "lever = 3"])
def test_a_setting_that_means_nothing_is_refused(said: str) -> None:
    home = Path(steno_home())
    home.mkdir(parents=True)
    (home / CONFIG_FILE).write_text(f"[archive]\n{said}\n")
    with pytest.raises(BadRequest, match="line 2"):
        read_config()


def test_sync_is_told_whether_to_archive() -> None:
    home = Path(steno_home())
    home.mkdir(parents=True)
    assert not read_config().archive_on
    (home / CONFIG_FILE).write_text("[archive]\non = true\n")
    assert read_config().archive_on


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "cut", "cut and append", "replace", "rewrite", "again", "touch", "full"]),
        st.integers(0, 300),
    ),
    max_size=12,
)


class Schedule:
    """A file that things happen to; what is written never repeats what stood there before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0
        self.path.write_bytes(self.fresh(50))

    def fresh(self, size: int) -> bytes:
        self._count += 1
        return (b"%d." % self._count * size)[:size]

    def step(self, kind: str, size: int) -> None:
        there = self.path.stat().st_size
        if kind in ("cut", "cut and append"):
            os.truncate(self.path, size % (there + 1))
        if kind in ("append", "cut and append"):
            with self.path.open("ab") as file:
                file.write(self.fresh(size))
        elif kind == "replace":
            other = self.path.with_name("other")
            other.write_bytes(self.fresh(size))
            other.replace(self.path)
        elif kind == "rewrite":
            self.path.write_bytes(self.fresh(size))
        elif kind == "again":
            data = self.path.read_bytes()
            self.path.unlink()
            self.path.write_bytes(data + self.fresh(size))
        elif kind == "touch":
            os.utime(self.path, ns=(0, self._count * 10**9))


@settings(max_examples=60)
@given(steps=STEPS)
def test_whatever_happens_to_a_file_all_that_was_ever_kept_is_read_back(
    steps: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    schedule = Schedule(home / NAME)
    archive = Archive(str(home))
    history: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "FRAME_SIZE", 64)
        patch.setattr(copies, "_COMPARED_TAIL_SIZE", 64)
        for kind, size in [("", 0), *steps]:
            schedule.step(kind, size)
            archive.keep(discover_file(str(schedule.path)), full=kind == "full")
            history.append(schedule.path.read_bytes())
    entry = archive.entry(str(schedule.path))
    index = archive.journal(entry)
    there = [b"".join(archive.source(entry, f).chunks()) for f in index.files.values()]
    assert there[-1] == history[-1]
    for content in history:
        assert any(each.startswith(content) for each in there)
    for file, data in zip(index.files.values(), there, strict=True):
        assert unpacked(Path(index.copy_path(file))) == data
    assert list(archive.verify()) == []


# Reading


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=8),
    spans=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=10),
)
def test_any_span_is_read_as_from_the_file(
    sizes: list[int], spans: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = home / NAME
    archive = Archive(str(home))
    path.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "FRAME_SIZE", 64)
        for number, size in enumerate(sizes):
            with path.open("ab") as file:
                file.write(bytes([number]) * size)
            archive.keep(discover_file(str(path)))
    there: Source = archive.source(archive.entry(str(path)))
    wanted = BytesSource(path.read_bytes())
    assert there.size == wanted.size
    for offset, length in spans:
        assert there.read(offset, length) == wanted.read(offset, length)
        assert b"".join(there.chunks(offset)) == b"".join(wanted.chunks(offset))


def test_reading_a_span_unpacks_only_its_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "FRAME_SIZE", 1000)
    path = tmp_path / NAME
    path.write_bytes(bytes(range(250)) * 40)
    kept_at(path)
    archive = Archive()
    source = archive.source(archive.entry(str(path)))
    asked: list[int] = []
    unpack = source._reader.read_frame

    def watched(frame: copies.FrameLine) -> bytes:
        asked.append(frame.offset)
        return unpack(frame)

    monkeypatch.setattr(source._reader, "read_frame", watched)
    assert source.read(2990, 20) == path.read_bytes()[2990:3010]
    assert asked == [2000, 3000]


def test_an_archived_session_loads_as_the_file_does(config: WriteConfig) -> None:
    path = written(config, talk())
    kept_at(path)
    archive = Archive()
    there = load(archive.source(archive.entry(str(path))))
    data = path.read_bytes()
    assert [node.uuid for node in there.nodes] == [node.uuid for node in load(BytesSource(data)).nodes]
    assert sum(piece.length for piece in there.pieces()) == len(data)
    assert there.source.read(0, len(data)) == data


# Sessions that are gone


def told(name: str) -> tuple[list[str], list[str]]:
    """Return what a session says, its own words and those of its sub-agents."""
    opened = steno.open(name)
    agents = [f"{file.agent_id} {len(file.transcript.nodes)} {file.meta}" for file in opened.agent_files]
    return [str(message) for message in opened.messages()], agents


def test_a_session_that_is_gone_is_found_opened_and_listed(config: WriteConfig) -> None:
    made = with_agent()
    path = written(config, made)
    data = path.read_bytes()
    archive_all()
    wanted = told(made.session_id)
    assert len(wanted[1]) == 1
    for each in path.parent.rglob("*.json*"):
        each.unlink()
    for name in (made.session_id, made.session_id[:8], str(path), "last"):
        assert told(name) == wanted
    assert [each.id for each in steno.sessions()] == [made.session_id]
    assert sum(piece.length for piece in steno.read(path)) == len(data)


def test_a_sub_agent_that_is_gone_is_found_by_its_id(config: WriteConfig) -> None:
    made = with_agent()
    path = written(config, made)
    agent = Discovery("").agents(discover_file(str(path)))[0]
    archive_all()
    for each in path.parent.rglob("*.jsonl"):
        each.unlink()
    found = steno.find(agent.place.agent_id)
    assert found.path == agent.path
    assert found.place.role == "agent"
    assert steno.find(agent.path).size == agent.size


def test_a_session_that_was_moved_is_not_there_twice(config: WriteConfig) -> None:
    path = written(config, talk())
    archive_all()
    other = path.parent.with_name("-elsewhere")
    other.mkdir()
    path.rename(other / path.name)
    (only,) = steno.sessions()
    assert only.path == str(other / path.name)
    archive_all()
    (other / path.name).unlink()
    assert len(list(steno.sessions())) == 1


def test_only_sessions_from_below_the_root_are_found(config: WriteConfig, tmp_path: Path) -> None:
    path = written(config, talk())
    archive_all()
    path.unlink()
    assert list(steno.sessions(str(tmp_path))) == []
    with pytest.raises(NotFound):
        steno.find(path.stem, str(tmp_path))


def test_without_an_archive_nothing_of_it_is_imported(config: WriteConfig) -> None:
    config(talk())
    script = (
        "import sys; from steno.store.session_lookup import sessions_newest_first\n"
        "assert len(sessions_newest_first(archived=True)) == 1\n"
        "print(sorted(name for name in sys.modules if 'store.archive.' in name))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['steno.store.archive.file_access']"


# How it is kept


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_nobody_else_may_look_into_the_archive(config: WriteConfig) -> None:
    config(with_agent())
    before = os.umask(0)
    try:
        archive_all()
    finally:
        os.umask(before)
    there = [Path(Archive().folder), *Path(Archive().folder).rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in there}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_nothing_below_the_roots_is_changed(config: WriteConfig) -> None:
    folder = config(with_agent(), talk())

    def look() -> dict[str, tuple[int, int, bytes]]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.read_bytes()) for path in files}

    before = look()
    archive_all()
    assert list(Archive().verify()) == []
    assert look() == before


def test_the_config_file_says_how_hard_to_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(steno_home())
    home.mkdir(parents=True)
    (home / CONFIG_FILE).write_text("[archive]\nlevel = 7\n")
    asked: list[int] = []
    real = zstandard.ZstdCompressor

    def watched(*, level: int, write_checksum: bool) -> zstandard.ZstdCompressor:
        asked.append(level)
        return real(level=level, write_checksum=write_checksum)

    monkeypatch.setattr(zstandard, "ZstdCompressor", watched)
    path = tmp_path / NAME
    path.write_bytes(b"one\n")
    kept_at(path)
    assert asked == [7]


def test_a_name_that_is_no_text_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9 \x1b[31m.jsonl")
    try:
        path.write_bytes(b"one\n")
    except (OSError, ValueError):
        pytest.skip("no file can have such a name here")
    kept_at(path)
    assert Archive().entry(str(path)).path == str(path)
    path.unlink()
    (done,) = Archive().restore(Archive().entry(str(path)))
    assert done.state == "written"
    assert path.read_bytes() == b"one\n"


def test_those_who_come_often_let_small_news_wait(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(config, talk())
    archive_all(defer_active=True)
    with path.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    os.utime(path, (0, 1_800_000_000))
    monkeypatch.setenv("STENO_NOW", "2027-01-15T08:01:00Z")
    assert archive_all(defer_active=True).files == 0
    monkeypatch.setenv("STENO_NOW", "2027-01-15T18:01:00Z")
    assert archive_all(defer_active=True).files == 1


def test_a_file_from_the_future_is_not_waited_for(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(config, talk())
    archive_all(defer_active=True)
    with path.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    os.utime(path, (0, 1_800_000_000))
    monkeypatch.setenv("STENO_NOW", "2026-01-15T08:01:00Z")
    assert archive_all(defer_active=True).files == 1


def test_what_sub_agents_write_counts_too(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = config(with_agent())
    (agent,) = (each for each in folder.rglob("agent-*.jsonl"))
    archive_all(defer_active=True)
    monkeypatch.setenv("STENO_NOW", "2027-01-15T08:01:00Z")

    def grow(number: int) -> None:
        with agent.open("ab") as file:
            file.write(b'{"type":"user"}\n' * number)
        os.utime(agent, (0, 1_800_000_000))

    # The session's own file was last written long ago; its sub-agent is at work.
    grow(1)
    assert archive_all(defer_active=True).files == 0
    grow(5000)
    assert archive_all(defer_active=True).files == 1


def test_whoever_keeps_everything_is_told_how_much_that_is(config: WriteConfig) -> None:
    folder = config(talk("one"), with_agent("two"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    plans: list[int] = []
    done: list[int] = []

    def planned(total: int) -> Callable[[int], None]:
        plans.append(total)
        return done.append

    archive_all(start_progress=planned)
    assert plans == [size]
    assert sum(done) == size
    archive_all(start_progress=planned)
    assert plans == [size]


def test_sessions_that_are_known_to_have_changed_can_be_named(config: WriteConfig) -> None:
    one, two = written(config, talk("one")), written(config, talk("two"))
    assert two != one
    assert archive_all(sessions=[discover_file(str(one))]).sessions == 1
    assert [entry.path for entry in Archive().entries()] == [str(one)]


@pytest.mark.parametrize("middle", ["other", "same"])
def test_a_replaced_file_that_begins_and_ends_alike_is_archived_byte_for_byte(tmp_path: Path, middle: str) -> None:
    path = tmp_path / "config" / "projects" / "-p" / NAME
    path.parent.mkdir(parents=True)
    line = b'{"type":"user","n":%07d,"x":"' + b"y" * 970 + b'"}\n'
    lines = [line % number for number in range(5 * copies.FRAME_SIZE // 1000)]
    path.write_bytes(b"".join(lines))
    kept_at(path)
    # Another file in its place: longer, with other bytes in the middle alone.
    if middle == "other":
        lines[len(lines) // 2] = line % 9_999_999
    data = b"".join([*lines, line % 8_888_888])
    new = path.with_name("new")
    new.write_bytes(data)
    new.replace(path)
    kept = kept_at(path)
    index = index_of(path)
    latest = index.latest(str(path))
    assert latest is not None
    assert bytes_of(index, latest) == data
    assert latest.generation == (2 if middle == "other" else 1)
    assert kept.problems == ()
