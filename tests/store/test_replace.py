"""Session files are exchanged whole, the old one is kept, and nobody else's writing is lost."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from steno.errors import Busy, NotFound, StenoError, Unreadable, Unwritable
from steno.store.atomic import FileIdentity, TempFile, file_identity, is_process_alive, remove_stale_temp_files
from steno.store.discovery import discover
from steno.store.file_source import FileSource
from steno.store.replace import list_backups, place_new, swap, undo
from steno.store.session_lock import is_being_written, live_writer

SID = "5f0e1d2c-0000-4000-8000-000000000001"
OLD = b'{"type":"user"}\n{"type":"assi'
NEW = b'{"type":"user"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / f"{SID}.jsonl"
    made.write_bytes(OLD)
    made.chmod(0o640)
    return made


def exchange(path: Path, data: bytes = NEW) -> str:
    seen = file_identity(str(path))
    with TempFile(str(path)) as scratch:
        return swap(scratch.write([data]), str(path), seen).backup


def beside(path: Path) -> list[str]:
    """Return the names in a file's folder, without what they have in common."""
    return sorted(entry.name.replace(SID, "S") for entry in path.parent.iterdir())


# Scratch files


def test_a_scratch_file_is_private_beside_its_target_and_gone_afterwards(path: Path) -> None:
    with TempFile(str(path)) as scratch:
        scratch.write([b"one\n", b"", b"two\n"])
        made = Path(scratch.path)
        assert made.parent == path.parent
        assert not made.name.endswith(".jsonl")
        assert stat.S_IMODE(made.stat().st_mode) == 0o600
        assert b"".join(scratch.source().chunks()) == b"one\ntwo\n"
        assert (scratch.size, len(scratch.digest)) == (8, 64)
        assert [found.path for found in discover(str(path.parent))] == [str(path)]
    assert beside(path) == ["S.jsonl"]


def test_a_scratch_file_is_gone_when_what_fills_it_fails(path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), TempFile(str(path)) as scratch:
        scratch.write(chunks())
    assert beside(path) == ["S.jsonl"]


def test_short_writes_are_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def short(descriptor: int, data: bytes) -> int:
        return real(descriptor, bytes(data)[:3])

    monkeypatch.setattr(os, "write", short)
    with TempFile(str(path)) as scratch:
        scratch.write([b"one long line\n", b"another\n"])
        assert scratch.source().read(0, 99) == b"one long line\nanother\n"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT])
def test_a_full_disk_is_said_in_words_and_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "write", failing(code))
    with TempFile(str(path)) as scratch, pytest.raises(Unwritable, match=r"cannot write .*jsonl: "):
        scratch.write([NEW])
    assert beside(path) == ["S.jsonl"]
    assert path.read_bytes() == OLD


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_folder_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with TempFile(str(tmp_path / "none" / "a.jsonl")) as scratch, pytest.raises(Unwritable):
        scratch.write([NEW])


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_name_no_file_can_have_is_said_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(StenoError):
        file_identity(str(tmp_path / name))
    if "\0" not in name:
        with TempFile(str(tmp_path / name)) as scratch, pytest.raises(Unwritable):
            scratch.write([NEW])


# Leftovers


def dead_pid() -> int:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return int(ended.stdout)


def test_what_a_killed_run_left_is_swept_and_what_a_live_one_holds_is_not(path: Path) -> None:
    dead = path.with_name(f".{path.name}.{dead_pid()}-0123456789ab.steno-tmp")
    live = path.with_name(f".{path.name}.{os.getpid()}-0123456789ab.steno-tmp")
    other = path.with_name(f".other.jsonl.{dead_pid()}-0123456789ab.steno-tmp")
    for each in (dead, live, other):
        each.write_bytes(b"half")
    assert remove_stale_temp_files(str(path)) == [str(dead)]
    assert live.exists()
    assert other.exists()


def test_an_exchange_sweeps_first(path: Path) -> None:
    dead = path.with_name(f".{path.name}.{dead_pid()}-0123456789ab.steno-tmp")
    dead.write_bytes(b"half")
    exchange(path)
    assert not dead.exists()


# New files


def test_a_new_file_gets_the_mode_of_the_one_it_was_made_from(path: Path) -> None:
    os.utime(path, ns=(1, 2_000_000_000))
    new = path.with_name("new.jsonl")
    with TempFile(str(new)) as scratch:
        place_new(scratch.write([NEW]), str(new), template=str(path))
    assert new.read_bytes() == NEW
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    # Clients delete what is old: a new file must not be.
    assert new.stat().st_mtime_ns > 2_000_000_000
    assert beside(path) == ["S.jsonl", "new.jsonl"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_takes_the_place_of_another(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    with TempFile(str(path)) as scratch, pytest.raises(Unwritable, match="file exists"):
        place_new(scratch.write([NEW]), str(path))
    dangling = path.with_name("dangling.jsonl")
    dangling.symlink_to(path.with_name("elsewhere"))
    with TempFile(str(path)) as scratch, pytest.raises(Unwritable, match="file exists"):
        place_new(scratch.write([NEW]), str(dangling))
    assert path.read_bytes() == OLD
    assert beside(path) == ["S.jsonl", "dangling.jsonl"]


# The exchange


def test_an_exchange_keeps_the_old_file_its_mode_and_its_time(path: Path) -> None:
    os.utime(path, ns=(1, 2_000_000_000))
    inode = path.stat().st_ino
    backup = Path(exchange(path))
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_mtime_ns == 2_000_000_000
    assert backup.name == f"{SID}.jsonl.before-repair"
    assert backup.read_bytes() == OLD
    assert backup.stat().st_ino == inode
    assert beside(path) == ["S.jsonl", "S.jsonl.before-repair", "S.jsonl.before-repair.json"]
    assert [found.path for found in discover(str(path.parent))] == [str(path)]


def named_by(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def test_the_disk_has_every_file_before_it_is_named_and_every_name_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def traced(name: str) -> None:
        real = getattr(os, name)

        def step(*arguments: Any, **named: Any) -> Any:
            what = name
            if name == "fsync":
                what += " folder" if stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else " file"
            # The lock of the session is elsewhere, and nothing that a power cut may not take.
            if not (isinstance(arguments[0], int) and str(path.parent) not in named_by(arguments[0])):
                steps.append(what)
            return real(*arguments, **named)

        monkeypatch.setattr(os, name, step)

    for name in ("write", "fsync", "link", "replace"):
        traced(name)
    exchange(path)
    assert steps == [
        *("write", "fsync file"),
        *("link", "fsync folder"),
        *("write", "write", "fsync file", "replace", "fsync folder"),
        *("replace", "fsync folder"),
    ]


def test_backups_are_numbered_and_never_overwritten(path: Path) -> None:
    made = [Path(exchange(path, b"%d\n" % n)) for n in range(3)]
    assert [each.name.rpartition(".")[2] for each in made] == ["before-repair", "before-repair-2", "before-repair-3"]
    assert [each.read_bytes() for each in made] == [OLD, b"0\n", b"1\n"]
    made[0].unlink()
    assert Path(exchange(path)).name.endswith("-4")


def test_without_links_the_old_file_is_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    backup = Path(exchange(path))
    assert (path.read_bytes(), backup.read_bytes()) == (NEW, OLD)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    undo(str(path))
    assert path.read_bytes() == OLD
    assert path.with_name(f"{SID}.jsonl.undone").read_bytes() == NEW


def test_a_link_to_a_session_stays_a_link(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / path.name
    link.symlink_to(path)
    exchange(link)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert beside(link) == ["S.jsonl"]
    undo(str(link))
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("change", ["grow", "rewrite", "replace", "remove", "folder"])
def test_a_file_that_changed_is_left_alone(path: Path, change: str) -> None:
    seen = file_identity(str(path))
    with TempFile(str(path)) as scratch:
        scratch.write([NEW])
        if change == "grow":
            path.write_bytes(OLD + b"more")
        elif change == "rewrite":
            path.write_bytes(OLD.upper())
            os.utime(path, ns=(5, 5))
        else:
            path.unlink()
        if change == "replace":
            path.with_name("x").write_bytes(OLD)
            path.with_name("x").rename(path)
        elif change == "folder":
            path.mkdir()
        assert is_being_written(str(path), seen)
        with pytest.raises(Busy):
            swap(scratch, str(path), seen)
    assert not path.with_name(f"{SID}.jsonl.before-repair").exists()


@pytest.mark.parametrize("links", [True, False])
def test_what_is_written_during_the_exchange_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    real = os.replace

    def late(source: str, target: str) -> None:
        if target == str(path):
            with path.open("ab") as writer:
                writer.write(b"late\n")
            monkeypatch.setattr(os, "replace", real)
        real(source, target)

    if not links:
        monkeypatch.setattr(os, "link", failing(errno.EOPNOTSUPP))
    monkeypatch.setattr(os, "replace", late)
    with pytest.raises(Busy, match="written while it was replaced"):
        exchange(path)
    assert path.read_bytes() == OLD + b"late\n"
    with pytest.raises(NotFound):
        undo(str(path))


def test_a_writer_on_both_sides_of_the_exchange_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def late(source: str, target: str) -> None:
        if target == str(path):
            with path.open("ab") as writer:
                writer.write(b"late\n")
            real(source, target)
            with path.open("ab") as writer:
                writer.write(b"later\n")
        else:
            real(source, target)

    monkeypatch.setattr(os, "replace", late)
    with pytest.raises(Busy):
        exchange(path)
    assert path.read_bytes() == NEW + b"later\n"
    assert path.with_name(f"{SID}.jsonl.before-repair").read_bytes() == OLD + b"late\n"


def test_a_read_only_folder_is_said_in_words(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def guarded(name: str, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(name, flags, *more)

    monkeypatch.setattr(os, "open", guarded)
    with TempFile(str(path)) as scratch, pytest.raises(Unwritable) as said:
        scratch.write([NEW])
    assert "read-only" in str(said.value)
    assert "Nothing was changed" in said.value.hint
    assert path.read_bytes() == OLD


# Undoing


def test_undo_brings_the_old_file_back_and_keeps_the_repaired_one(path: Path) -> None:
    inode = path.stat().st_ino
    exchange(path)
    done = undo(str(path))
    assert path.read_bytes() == OLD
    assert path.stat().st_ino == inode
    assert Path(done.repaired).read_bytes() == NEW
    assert beside(path) == ["S.jsonl", "S.jsonl.undone"]


def test_repairs_are_undone_one_by_one(path: Path) -> None:
    exchange(path, b"first\n")
    exchange(path, b"second\n")
    undo(str(path))
    assert path.read_bytes() == b"first\n"
    undo(str(path))
    assert path.read_bytes() == OLD
    assert path.with_name(f"{SID}.jsonl.undone").read_bytes() == b"second\n"
    assert path.with_name(f"{SID}.jsonl.undone-2").read_bytes() == b"first\n"
    with pytest.raises(NotFound):
        undo(str(path))


def test_undo_leaves_a_session_alone_that_has_gone_on(path: Path) -> None:
    backup = exchange(path)
    path.write_bytes(NEW + b"more\n")
    with pytest.raises(Busy, match="has changed since the repair") as said:
        undo(str(path))
    assert backup in said.value.hint
    assert path.read_bytes() == NEW + b"more\n"
    done = undo(str(path), force=True)
    assert path.read_bytes() == OLD
    assert Path(done.repaired).read_bytes() == NEW + b"more\n"


@pytest.mark.parametrize("receipt", [None, b"", b"{}", b"[]", b'{"size":"x","sha256":1}'])
def test_undo_wants_a_receipt(path: Path, receipt: bytes | None) -> None:
    there = Path(exchange(path) + ".json")
    if receipt is None:
        there.unlink()
    else:
        there.write_bytes(receipt)
    with pytest.raises(Busy):
        undo(str(path))
    undo(str(path), force=True)
    assert path.read_bytes() == OLD


def test_a_file_that_is_gone_cannot_be_undone(path: Path) -> None:
    exchange(path)
    path.unlink()
    with pytest.raises(Unreadable):
        undo(str(path))


def test_the_second_name_a_killed_run_gave_the_file_is_no_backup(path: Path) -> None:
    path.with_name(f"{SID}.jsonl.before-repair").hardlink_to(path)
    assert list_backups(str(path)) == []
    with pytest.raises(NotFound):
        undo(str(path))
    assert exchange(path).endswith(".before-repair")
    assert list_backups(str(path)) == [f"{path}.before-repair"]


# Writers that say nothing


@pytest.mark.parametrize(
    ("moment", "growing"),
    [
        ("2026-11-15T12:00:00Z", True),
        ("2026-11-15T12:00:02.900Z", True),
        ("2026-11-15T12:00:03.100Z", False),
        ("2026-11-15T11:59:58Z", True),
        ("2026-11-15T11:00:00Z", False),
    ],
)
def test_a_file_that_was_written_a_moment_ago_may_still_grow(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, *, growing: bool
) -> None:
    """A clock that goes wrong by hours says nothing; one that is a little late does."""
    at = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp())
    os.utime(path, (at, at))
    monkeypatch.setenv("STENO_NOW", moment)
    assert is_being_written(str(path), file_identity(str(path))) is growing


# Live clients


def live_session(home: Path, pid: int) -> Path:
    folder = home / "projects" / "-home-ada"
    folder.mkdir(parents=True)
    made = folder / f"{SID}.jsonl"
    made.write_bytes(OLD)
    (home / "sessions").mkdir()
    (home / "sessions" / f"{pid}.json").write_text(f'{{"pid":{pid},"sessionId":"{SID}"}}')
    return made


def test_a_session_that_a_live_client_has_open_is_left_alone(tmp_path: Path) -> None:
    made = live_session(tmp_path / "c", os.getpid())
    seen = file_identity(str(made))
    found = live_writer(str(made))
    assert found is not None
    assert found.pid == os.getpid()
    assert is_being_written(str(made), seen)
    with pytest.raises(Busy, match=rf"process {os.getpid()}"):
        exchange(made)
    assert made.read_bytes() == OLD
    with TempFile(str(made)) as scratch:
        swap(scratch.write([NEW]), str(made), seen, check_clients=False)
    with pytest.raises(Busy):
        undo(str(made))
    undo(str(made), check_clients=False)


def test_a_sub_agent_of_a_live_session_is_left_alone(tmp_path: Path) -> None:
    made = live_session(tmp_path / "c", os.getpid())
    agent = made.with_suffix("") / "subagents" / "agent-abc.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(OLD)
    assert live_writer(str(agent)) is not None


def test_the_remains_of_a_dead_client_or_of_another_session_do_not_matter(tmp_path: Path) -> None:
    made = live_session(tmp_path / "c", dead_pid())
    (tmp_path / "c" / "sessions" / "1.json").write_text('{"pid":1,"sessionId":"other"}')
    (tmp_path / "c" / "sessions" / "2.json").write_text(f'{{"pid":-1,"sessionId":"{SID}"}}')
    assert live_writer(str(made)) is None
    os.utime(made, (1_000_000_000, 1_000_000_000))
    assert not is_being_written(str(made), file_identity(str(made)))
    exchange(made)
    assert made.read_bytes() == NEW


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_that_only_has_the_number_of_a_dead_client_does_not_matter(tmp_path: Path) -> None:
    made = live_session(tmp_path / "c", os.getpid())
    entry = tmp_path / "c" / "sessions" / f"{os.getpid()}.json"
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    told = f'{{"pid":{os.getpid()},"sessionId":"{SID}","procStart":"%s"}}'
    entry.write_text(told % began)
    assert live_writer(str(made)) is not None
    entry.write_text(told % (int(began) + 1))
    assert live_writer(str(made)) is None
    entry.write_text(told % "Sun Nov 15 2026")
    assert live_writer(str(made)) is not None


def test_an_identity_is_of_the_file_behind_a_link(path: Path) -> None:
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    assert file_identity(str(link)) == file_identity(str(path)) == FileIdentity.from_status(path.stat())
    with FileSource(str(path)) as source:
        assert source.identity == (path.stat().st_dev, path.stat().st_ino)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")
def test_a_process_that_has_ended_is_not_alive_although_nobody_has_heard_of_it() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not is_process_alive(child)
    os.waitpid(child, 0)
    assert is_process_alive(os.getpid())


def test_another_file_of_the_same_size_is_not_what_the_repair_wrote(path: Path) -> None:
    exchange(path)
    changed = NEW.replace(b"new", b"mew") if b"new" in NEW else bytes(reversed(NEW))
    assert len(changed) == len(NEW)
    assert changed != NEW
    path.write_bytes(changed)
    with pytest.raises(Busy, match="has changed since the repair"):
        undo(str(path))
    assert path.read_bytes() == changed
    undo(str(path), force=True)
    assert path.read_bytes() == OLD
