"""What the supervisor and the launcher do around a command, in parts that confine nothing."""

import asyncio
import fcntl
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steno.permissions.sandbox import helper, launcher
from steno.permissions.sandbox.path_plan import PathPlan, SandboxSetupError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor is for Linux")
_NONE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "made"),
    [
        (_NONE, _NONE, (100, 100)),
        (50, _NONE, (100, 100)),
        (100, 200, (100, 100)),
        (101, 200, (100, 100)),
        (100, 100, None),
        (99, 100, None),
        (50, 60, None),
        (60, 60, None),
    ],
)
def test_limits_are_lowered_and_never_raised_above_the_hard_one(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, made: tuple[int, int] | None
) -> None:
    calls: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_CORE: (soft, hard)}.__getitem__)

    def noted(limit: int, pair: tuple[int, int]) -> None:
        calls.append((limit, pair))

    monkeypatch.setattr(resource, "setrlimit", noted)
    helper._lower_limit(resource.RLIMIT_CORE, 100)
    assert calls == ([] if made is None else [(resource.RLIMIT_CORE, made)])


@pytest.mark.parametrize("namespaces", [False, True])
def test_each_limit_has_its_value(monkeypatch: pytest.MonkeyPatch, *, namespaces: bool) -> None:
    found: dict[int, int] = {}
    monkeypatch.setattr(helper, "_lower_limit", found.__setitem__)
    _leader(namespaces=namespaces)._set_limits()
    processes = {resource.RLIMIT_NPROC: 4096} if namespaces else {}
    assert found == {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 4 * 1024**3, **processes}


def _parts(*, namespaces: bool) -> tuple[helper.CommandRequest, helper.ActiveMechanisms]:
    fields: dict[str, Any] = {"id": 1, "argv": [], "env": {}, "policy": {}, "fds": []}
    found = helper.ActiveMechanisms(landlock=0, namespaces=namespaces, accounts={"a": "b"})
    return helper.CommandRequest(fields, [1, 2]), found


def _leader(*, namespaces: bool) -> helper.CommandProcess:
    return helper.CommandProcess(*_parts(namespaces=namespaces), PathPlan())


def _supervisor() -> helper.Supervisor:
    return helper.Supervisor(*_parts(namespaces=True), lambda _: None)


def test_placeholders_stand_where_nothing_may_be_created_and_are_removed(tmp_path: Path) -> None:
    wanted = PathPlan()
    path, kept = tmp_path / "missing", tmp_path / "kept"
    kept.mkdir()
    wanted.missing, wanted.read_only = {str(path)}, {str(kept)}
    made = _supervisor()
    made._make_placeholders(wanted)
    assert wanted.missing == set()
    assert wanted.read_only == {str(path), str(kept)}
    status = path.stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o555, 1)
    made._remove_placeholders()
    assert not path.exists()
    assert kept.exists()


def test_a_placeholder_in_use_is_left_to_the_last_user(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    first, second = _supervisor(), _supervisor()
    for each in (first, second):
        wanted = PathPlan()
        wanted.missing = {str(path)}
        each._make_placeholders(wanted)
    first._remove_placeholders()
    assert path.exists()
    second._remove_placeholders()
    assert not path.exists()


@pytest.mark.parametrize(("when", "content", "left"), [(1, False, False), (1, True, True), (2, False, True)])
def test_only_an_empty_placeholder_that_was_left_behind_is_removed(
    tmp_path: Path, when: int, *, content: bool, left: bool
) -> None:
    path = tmp_path / "old"
    path.mkdir()
    if content:
        (path / "file").touch()
    os.utime(path, (when, when))
    wanted = PathPlan()
    wanted.read_only = {str(path), str(tmp_path / "none")}
    made = _supervisor()
    made._make_placeholders(wanted)
    made._remove_placeholders()
    assert path.exists() is left


def test_a_placeholder_that_changes_meanwhile_stops_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old"
    path.mkdir()
    os.utime(path, (1, 1))

    def move(_lock: int, kind: int) -> None:
        assert kind == fcntl.LOCK_SH
        path.rename(tmp_path / "moved")

    monkeypatch.setattr(fcntl, "flock", move)
    wanted = PathPlan()
    wanted.read_only = {str(path)}
    with pytest.raises(SandboxSetupError, match="changed during setup"):
        _supervisor()._make_placeholders(wanted)


def test_ignored_and_blocked_signals_are_undone() -> None:
    code = (
        "import signal\n"
        "from steno.permissions.sandbox.helper import _reset_signals\n"
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
        "_reset_signals()\n"
        "kept = [each for each in signal.valid_signals()"
        " if signal.getsignal(each) == signal.SIG_IGN]\n"
        "print(kept, signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[] set()\n"


# The launcher


def test_a_helper_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launcher._EXIT_TIMEOUT == 10
    monkeypatch.setattr(launcher, "_EXIT_TIMEOUT", 0)
    with subprocess.Popen(["sleep", "60"]) as process:
        launcher._wait_for_helper(process)
        assert process.returncode == -signal.SIGKILL


def test_a_command_that_nobody_owns_is_killed() -> None:
    async def main(pid: int) -> None:
        loop = asyncio.get_running_loop()
        started: asyncio.Future[int] = loop.create_future()
        started.set_result(pid)
        launcher._kill_started(started)
        # What was never started is no error.
        failed: asyncio.Future[int] = loop.create_future()
        failed.set_exception(OSError())
        launcher._kill_started(failed)
        cancelled: asyncio.Future[int] = loop.create_future()
        cancelled.cancel()
        launcher._kill_started(cancelled)

    with subprocess.Popen(["sleep", "60"]) as process:
        asyncio.run(main(process.pid))
        assert process.wait() == -signal.SIGKILL


def test_the_mounts_are_those_of_this_process() -> None:
    assert launcher._read_mounts() == Path("/proc/self/mountinfo").read_bytes()
