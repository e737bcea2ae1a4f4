"""Reading in two processes while a third writes; or in this one, where there is little to read.

A job is some files, or a stretch of one: whatever is given out is bounded, and comes back as bytes.
"""

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self

import msgspec

from steno.errors import Unreadable
from steno.index.scan import Task
from steno.index.state import Harvest, State, decode_state, encode_state

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

__all__ = ["Reaped", "Workers"]

STRETCH: Final = 16 << 20
"""How much of one file is read in one go."""
_JOB: Final = 4 << 20
_JOB_FILES: Final = 64
"""Files in one job: decoding its result blocks all other threads of the process."""
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
    anew: bool = False
    """Whether what was read of the file before counts no more: it has records in a dialect."""


class Workers:
    """Those who read. Started before anything else starts threads; used for all of a sync.

    with Workers(size) as workers:
        for task, reaped in workers.reap(tasks): …
    """

    def __init__(self, size: int, number: int | None = None) -> None:
        """Take how many bytes there are to read in all."""
        if number is None:
            number = _WORKERS if size > _LITTLE and (os.cpu_count() or 1) > 1 else 0
        self._number = number
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._number:
            from concurrent.futures import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                self._number, mp_context=_context(), initializer=_leave_interrupts
            )
            # They are started by the first work they get.
            self._pool.submit(int).result()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def reap(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Reaped]]:
        """Yield what is in the files, stretch by stretch; those of one file in order."""
        work = _Work(tasks)
        if self._pool is not None:
            from concurrent.futures.process import BrokenProcessPool

            try:
                for reaped in work.given_to(self._pool, self._number):
                    yield tasks[reaped.task], reaped
            except BrokenProcessPool:
                # One of them was killed, for want of memory perhaps. The rest is done here.
                self._pool = None
                work.take_back()
        for reaped in work.done_here():
            yield tasks[reaped.task], reaped


class _Work:
    """The stretches that are still to be read."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._jobs = deque(
            Job(number, task.file, task.path, task.start, task.state)
            for number, task in enumerate(tasks)
        )
        self._given: dict[Future[bytes], list[Job]] = {}

    def done_here(self) -> Iterator[Reaped]:
        """Read all of it."""
        while self._jobs:
            reaped = _read(self._jobs.popleft())
            yield reaped
            self._go_on(reaped)

    def given_to(self, pool: "ProcessPoolExecutor", number: int) -> Iterator[Reaped]:
        """Have it read by other processes."""
        from concurrent.futures import FIRST_COMPLETED, wait

        results = msgspec.msgpack.Decoder(list[Reaped])
        while self._jobs or self._given:
            # A little more than they can do: none waits, and little is held in memory.
            while self._jobs and len(self._given) <= number:
                jobs = self._bundle()
                self._given[pool.submit(_work, jobs)] = jobs
            done, _ = wait(self._given, return_when=FIRST_COMPLETED)
            for future in done:
                for reaped in results.decode(future.result()):
                    yield reaped
                    self._go_on(reaped)
                del self._given[future]

    def take_back(self) -> None:
        """Take back what was given out and will not be done."""
        for jobs in self._given.values():
            self._jobs.extendleft(reversed(jobs))

    def _bundle(self) -> list[Job]:
        """Take some jobs off the list: several small files, or one big one."""
        some: list[Job] = []
        size = 0
        while self._jobs and size < _JOB and len(some) < _JOB_FILES:
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

    # Forking is quick, but not safe beside other threads, nor at all on macOS.
    forks = sys.platform == "linux" and active_count() == 1
    return get_context("fork" if forks else "spawn")


def _leave_interrupts() -> None:
    """Let the process that gives out the work decide what Ctrl-C means."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(jobs: list[Job]) -> bytes:
    return msgspec.msgpack.encode([_read(job) for job in jobs])


def _read(job: Job) -> Reaped:
    try:
        state = decode_state(job.state)
        found = _stretch(job, job.start, state, converted=state.converted if job.start else None)
        if found.in_dialect:
            again = _stretch(job, 0, State(), converted=True)
            return Reaped(job.task, again, anew=bool(job.start))
        return Reaped(job.task, found)
    except Unreadable as error:
        return Reaped(job.task, None, str(error))


def _stretch(job: Job, start: int, state: State, *, converted: bool | None) -> Harvest:
    """Read a stretch of a file; whether it has records in a dialect its beginning may tell."""
    from steno.format.dialects.detection import is_converted
    from steno.format.slugs import project_of_folder
    from steno.index.harvest import harvest
    from steno.store.archive.opened import open_anywhere

    with open_anywhere(job.path, converted=converted) as source:
        if is_converted(source) and not start:
            state.converted, state.dialect = True, source.dialect
            if state.dialect != "claude":
                # Only the folder's name says where such a session ran.
                state.project = project_of_folder(os.path.basename(os.path.dirname(job.path)))
        return harvest(source, job.file, start, state, limit=STRETCH)
