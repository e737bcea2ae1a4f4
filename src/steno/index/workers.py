"""Reading in two processes while a third writes; or in this one, where there is little to read.

A job is some files, or a stretch of one: whatever is given out is bounded, and comes back as bytes.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.index.scan import Task
from steno.index.state import Harvest, decode_state, encode_state

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

__all__ = ["Reaped", "reap"]

STRETCH: Final = 16 << 20
"""How much of one file is read in one go."""
_JOB: Final = 4 << 20
_LITTLE: Final = 48 << 20
_WORKERS: Final = 2


class Job(msgspec.Struct, array_like=True):
    """A stretch of a file to be read."""

    task: int
    file: int
    path: str
    start: int
    state: bytes


class Reaped(msgspec.Struct, array_like=True):
    """What came of a job: a harvest, or why there is none."""

    task: int
    harvest: Harvest | None
    problem: str = ""


_RESULTS: Final = msgspec.msgpack.Decoder(list[Reaped])


def reap(tasks: Sequence[Task], *, workers: int | None = None) -> Iterator[tuple[Task, Reaped]]:
    """Yield what is in the files, stretch by stretch; those of one file in order."""
    if workers is None:
        much = sum(task.size - task.start for task in tasks) > _LITTLE
        workers = _WORKERS if much and (os.cpu_count() or 1) > 1 else 0
    reaper = _Reaper(tasks)
    for reaped in reaper.with_workers(workers) if workers else reaper.alone():
        yield tasks[reaped.task], reaped


class _Reaper:
    """Gives out jobs, and takes back what came of them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._jobs = deque(
            Job(number, task.file, task.path, task.start, task.state)
            for number, task in enumerate(tasks)
        )

    def alone(self) -> Iterator[Reaped]:
        """Do all the work here."""
        while self._jobs:
            reaped = _read(self._jobs.popleft())
            yield reaped
            self._go_on(reaped)

    def with_workers(self, number: int) -> Iterator[Reaped]:
        """Have the work done by other processes."""
        from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

        pool = ProcessPoolExecutor(number, mp_context=_context(), initializer=_leave_interrupts)
        under_way: set[Future[bytes]] = set()
        try:
            while self._jobs or under_way:
                # A little more than they can do: none waits, and little is held in memory.
                while self._jobs and len(under_way) <= number:
                    under_way.add(pool.submit(_work, self._bundle()))
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    for reaped in _RESULTS.decode(future.result()):
                        yield reaped
                        self._go_on(reaped)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _bundle(self) -> list[Job]:
        """Take some jobs off the list: several small files, or one big one."""
        some: list[Job] = []
        size = 0
        while self._jobs and size < _JOB:
            job = self._jobs.popleft()
            some.append(job)
            size += self._tasks[job.task].size - job.start
        return some

    def _go_on(self, reaped: Reaped) -> None:
        """Put what is left of a file at the head of the list."""
        found = reaped.harvest
        # A stretch that brought nothing would bring nothing again.
        if found is not None and found.more and found.done > found.start:
            path = self._tasks[reaped.task].path
            state = encode_state(found.state)
            self._jobs.appendleft(Job(reaped.task, found.file, path, found.done, state))


def _context() -> "BaseContext":
    from multiprocessing import get_context
    from threading import active_count

    # Forking is quick, but not safe beside other threads.
    return get_context("fork" if hasattr(os, "fork") and active_count() == 1 else "spawn")


def _leave_interrupts() -> None:
    """Let the process that gives out the work decide what Ctrl-C means."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(jobs: list[Job]) -> bytes:
    return msgspec.msgpack.encode([_read(job) for job in jobs])


def _read(job: Job) -> Reaped:
    from steno.index.harvest import harvest
    from steno.store.read import FileSource

    try:
        with FileSource(job.path) as source:
            state = decode_state(job.state)
            return Reaped(job.task, harvest(source, job.file, job.start, state, limit=STRETCH))
    except Unreadable as error:
        return Reaped(job.task, None, str(error))
