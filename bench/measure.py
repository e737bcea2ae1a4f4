"""Run a program and measure it: wall time, CPU seconds and the memory of all its processes."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

MB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
PAUSE = 0.02
NEW = 5


class Failed(Exception):
    """A measured program failed."""


class Run(NamedTuple):
    """Measurements of one run."""

    wall: float
    cpu: float
    peak: float
    output: str

    def __str__(self) -> str:
        return f"{self.wall:.2f} s wall, {self.cpu:.2f} s CPU"


def run(command: list[str], env: Mapping[str, str], *, memory: bool = False) -> Run:
    """Run a program with only the given environment.

    CPU time includes all child processes that were waited for. With `memory`, the processes are sampled every 20 ms,
    new ones are detected every 100 ms, and the peak is that of their sum; otherwise it is 0.

    Raises:
        Failed: The exit code is not 0.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        watch = _Watch(process.pid) if memory else None
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            # The process is in a separate session, so an interrupt does not reach it.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        wall = time.perf_counter() - begun
        peak = watch.end() if watch else 0.0
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            lines = err.read().decode(errors="replace").split("\n")
            said = "; ".join(line.strip() for line in lines if line.strip())[-200:]
            raise Failed(f"exit code {process.returncode}: {said or 'no error output'}")
        output = out.read().decode(errors="replace")
    return Run(wall, used.ru_utime + used.ru_stime, peak, output)


class _Watch:
    """Samples the memory of a session of processes."""

    def __init__(self, session: int) -> None:
        self.session = session
        self.peak = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        pids, looked = list[int](), 0
        while not self.over.wait(PAUSE):
            # Finding processes is more expensive than reading their memory.
            if looked % NEW == 0:
                pids = members(self.session)
            looked += 1
            # The proportional share never exceeds the resident size, so the expensive figure is read only if it can be
            # a new peak.
            if sum(map(_resident, pids)) > self.peak:
                self.peak = max(self.peak, sum(map(_share, pids)))

    def end(self) -> float:
        """Stop sampling; return the peak in MB."""
        self.over.set()
        self.thread.join()
        return self.peak / MB


def members(session: int) -> list[int]:
    """Return the processes of a session."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = _read(f"/proc/{name}/stat")
        # The program name is in parentheses and may contain any character.
        after = stat[stat.rfind(b")") + 2 :].split()
        if after and int(after[3]) == session:
            found.append(int(name))
    return found


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE if fields else 0


def _share(pid: int) -> int:
    """Return the proportional memory of a process, in which shared pages count in part."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the process has ended
        return b""
