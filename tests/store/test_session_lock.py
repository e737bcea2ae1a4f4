"""The lock of a session: one process at a time, free at once when that is killed."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

import steno
from steno.errors import Busy, Unwritable
from steno.store import session_lock
from steno.store.atomic import TempFile, file_identity
from steno.store.file_lock import lock_descriptor
from steno.store.replace import exchange, swap, undo
from steno.store.session_lock import SessionLock, lock_path, refuse_if_locked

ROOT = Path(__file__).parent.parent.parent
SID = "0f0e0d0c-0000-4000-8000-000000000000"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "projects" / "-p" / f"{SID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{}\n")
    return path


@contextmanager
def held(session: Path) -> Generator["subprocess.Popen[str]"]:
    """Let another process have the lock."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "store" / "locking.py"), str(session)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(steno.__file__).parent.parent)},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"taken {process.pid}\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_lock_is_no_file_among_the_sessions_and_leaves_nothing(session: Path) -> None:
    before = sorted(session.parent.parent.parent.rglob("*"))
    lock = SessionLock.acquire(str(session))
    path = Path(lock_path(str(session)))
    assert path.is_relative_to(os.environ["STENO_HOME"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(session.parent.parent.parent.rglob("*")) == before
    lock.release()
    lock.release()
    assert not path.exists()


def test_a_second_one_is_refused_at_once_and_told_who_has_it(session: Path) -> None:
    with held(session) as process:
        with pytest.raises(Busy) as raised:
            SessionLock.acquire(str(session))
        words = str(raised.value)
        assert f"{SID}.jsonl is in use by process {process.pid}, since 2026-11-15 12:00:00" in words
        assert "--fork-session" in raised.value.hint
        with pytest.raises(Busy):
            refuse_if_locked(str(session))
    SessionLock.acquire(str(session)).release()
    refuse_if_locked(str(session))


def test_a_killed_holder_is_followed_at_once(session: Path) -> None:
    with held(session) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert Path(lock_path(str(session))).exists()
        with SessionLock.acquire(str(session)) as lock:
            assert json.loads(Path(lock.path).read_bytes())["pid"] == os.getpid()
    assert not Path(lock_path(str(session))).exists()


@pytest.mark.parametrize("how", ["link to the file", "link to the folder", "sub-agent", "dots"])
def test_one_session_has_one_lock_whatever_it_is_called_by(session: Path, how: str) -> None:
    other = session.parent / ".." / session.parent.name / session.name
    if how == "link to the file":
        other = session.parent / "link.jsonl"
        other.symlink_to(session)
    elif how == "link to the folder":
        (session.parent.parent / "other").symlink_to(session.parent)
        other = session.parent.parent / "other" / session.name
    elif how == "sub-agent":
        other = session.with_suffix("") / "subagents" / "agent-a1b2c3.jsonl"
    with SessionLock.acquire(str(session)), pytest.raises(Busy, match="this process"):
        SessionLock.acquire(str(other))
    assert lock_path(str(session)) != lock_path(str(session.with_name("other.jsonl")))


def test_what_a_dead_process_left_is_not_told_as_the_holder(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(lock_path(str(session)))
    path.parent.mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    # A number that is used again: another process, which began at another time.
    for pid, start in ((gone.pid, ""), (os.getppid(), "1")):
        path.write_text(json.dumps({"pid": pid, "start": start, "host": os.uname().nodename}))
        descriptor = os.open(path, os.O_RDWR)
        assert lock_descriptor(descriptor, wait=False)
        monkeypatch.setattr(session_lock, "_READ_PAUSE", 0)
        with pytest.raises(Busy, match="in use by another process"):
            SessionLock.acquire(str(session))
        os.close(descriptor)
        SessionLock.acquire(str(session)).release()


def test_a_holder_on_another_host_is_named_with_it(session: Path) -> None:
    path = Path(lock_path(str(session)))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"pid": 7, "host": "elsewhere", "time": 0.0}))
    descriptor = os.open(path, os.O_RDWR)
    assert lock_descriptor(descriptor, wait=False)
    with pytest.raises(Busy, match="process 7 on elsewhere, since 1970"):
        SessionLock.acquire(str(session))
    os.close(descriptor)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 100, b'{"pid":"x"}', b"x" * 100_000])
def test_nonsense_in_a_lock_file_does_no_harm(session: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(lock_path(str(session)))
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDWR)
    assert lock_descriptor(descriptor, wait=False)
    monkeypatch.setattr(session_lock, "_READ_PAUSE", 0)
    with pytest.raises(Busy, match="another process"):
        SessionLock.acquire(str(session))
    os.close(descriptor)
    SessionLock.acquire(str(session)).release()


def test_a_file_system_without_locks_is_refused_with_a_way_out(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_descriptor: int, *, wait: bool) -> bool:
        raise OSError(37, f"No locks available, wait={wait}")

    monkeypatch.setattr(session_lock, "lock_descriptor", none)
    with pytest.raises(Unwritable, match="no locks available") as raised:
        SessionLock.acquire(str(session))
    assert "STENO_HOME" in raised.value.hint


def test_a_forked_child_that_ends_leaves_the_lock_to_its_parent(session: Path) -> None:
    with SessionLock.acquire(str(session)) as lock:
        child = get_context("fork").Process(target=lock.release)
        child.start()
        child.join()
        assert Path(lock.path).exists()
        with pytest.raises(Busy):
            SessionLock.acquire(str(session))


def test_a_lock_that_nobody_refers_to_is_released(session: Path) -> None:
    SessionLock.acquire(str(session))
    SessionLock.acquire(str(session)).release()


# Everything that writes a session respects it


def test_a_repair_in_place_and_its_undo_respect_the_lock(session: Path) -> None:
    def put(how: Any) -> None:
        with TempFile(str(session)) as scratch:
            how(scratch.write([b"new\n"]), str(session), file_identity(str(session)))

    with held(session):
        for how in (swap, exchange):
            with pytest.raises(Busy, match="in use"):
                put(how)
        assert session.read_bytes() == b"{}\n"
    put(swap)
    with held(session), pytest.raises(Busy, match="in use"):
        undo(str(session))
    assert session.read_bytes() == b"new\n"
    undo(str(session))
    assert session.read_bytes() == b"{}\n"


# Races


def _race(path: str, barrier: Barrier, decided: Barrier, results: Any) -> None:
    barrier.wait()
    try:
        lock = SessionLock.acquire(path)
    except Busy as error:
        results.put(str(error))
        decided.wait()
    else:
        results.put(os.getpid())
        # Until everybody knows: who comes after the end may have it.
        decided.wait()
        lock.release()


@pytest.mark.parametrize("many", [2, 8])
def test_of_those_who_start_together_exactly_one_gets_it(session: Path, many: int) -> None:
    context = get_context("fork")
    for number in range(50):
        if number % 2:
            # What a killed process has left.
            path = Path(lock_path(str(session)))
            path.parent.mkdir(parents=True, exist_ok=True)
            host = os.uname().nodename if number % 4 == 1 else "elsewhere"
            path.write_text(json.dumps({"pid": 4194304, "host": host}))
        results, barrier, decided = context.Queue(), context.Barrier(many), context.Barrier(many)
        racers = [context.Process(target=_race, args=(str(session), barrier, decided, results)) for _ in range(many)]
        for racer in racers:
            racer.start()
        said = [results.get(timeout=60) for _ in racers]
        for racer in racers:
            racer.join()
        (winner,) = [each for each in said if isinstance(each, int)]
        refusals = [each for each in said if isinstance(each, str)]
        assert all(re.search(rf"in use by process {winner}\b", each) for each in refusals), said


def _take_and_leave(path: str, barrier: Barrier, rounds: int, results: Any) -> None:
    """Take and release as often as can be; while it is held a file must be ours alone."""
    barrier.wait()
    mark = Path(f"{path}.mark")
    taken = 0
    for _ in range(rounds):
        try:
            with SessionLock.acquire(path, check_clients=False):
                descriptor = os.open(mark, os.O_CREAT | os.O_EXCL)
                os.close(descriptor)
                mark.unlink()
                taken += 1
        except FileExistsError:
            results.put("two at once")
            return
        except Busy:
            continue
    results.put(taken)


def test_a_lock_that_is_released_and_removed_is_never_two_processes(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lock, "_MAX_READS", 1)
    context = get_context("fork")
    results, barrier = context.Queue(), context.Barrier(4)
    racers = [context.Process(target=_take_and_leave, args=(str(session), barrier, 500, results)) for _ in range(4)]
    for racer in racers:
        racer.start()
    said = [results.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join()
    assert "two at once" not in said
    assert sum(said) > 0
