"""One batch of a sync: words first, then rows, and nothing counts until both are there."""

import sqlite3
import time
from collections.abc import Callable
from typing import Final

import msgspec

from steno.index.database import transaction
from steno.index.scan import Plan, Task, make_mark
from steno.index.state import State, decode_state
from steno.index.sums import days_of, lend_titles, recount, sum_days
from steno.index.tables import Tables
from steno.index.texts import open_texts
from steno.index.workers import Reaped, reap
from steno.session.story.titles import choose_title
from steno.store.found import Problem
from steno.store.glance import given_title

__all__ = ["Batch"]

_BIG: Final = 32 << 20


class _Progress(msgspec.Struct):
    """How far a file was read."""

    task: Task
    done: int
    state: State
    cut_off: bool = False
    """Whether an interrupt left some of it unread."""


class Batch:
    """Writes what some files hold into the tables and the words."""

    def __init__(self, connection: sqlite3.Connection, folder: str, number: int) -> None:
        self._connection = connection
        self._number = number
        self._texts = open_texts(folder)
        self._tables = Tables(connection, self._texts, number)
        self._files: dict[int, _Progress] = {}

    def run(
        self,
        plan: Plan,
        step: Callable[[int], None],
        *,
        broken: list[int],
        workers: int | None = None,
    ) -> int:
        """Do it all; return how many bytes were read.

        An interrupt ends the reading; what was read by then is kept, and the interrupt passed on.
        """
        interrupt: KeyboardInterrupt | None = None
        try:
            with transaction(self._connection):
                try:
                    read = self._read(plan, step, broken, workers)
                except KeyboardInterrupt as error:
                    interrupt, read = error, 0
                self._settle(plan)
                self._sum_up()
                self._texts.commit()
                self._close()
        finally:
            self._texts.close()
        if interrupt is not None:
            raise interrupt
        return read

    def _read(
        self, plan: Plan, step: Callable[[int], None], broken: list[int], workers: int | None
    ) -> int:
        harvests = reap(plan.tasks, workers=workers)
        # The workers have to be started before the words start threads of their own.
        item = next(harvests, None)
        self._texts.begin(big=plan.size > _BIG)
        for batch in broken:
            self._texts.drop_batch(batch)
        for task in plan.tasks:
            if task.anew:
                self._tables.forget(task.file)
        read = 0
        while item is not None:
            task, reaped = item
            size = self._take(task, reaped, plan.problems)
            read += size
            step(size)
            item = next(harvests, None)
        return read

    def _take(self, task: Task, reaped: Reaped, problems: list[Problem]) -> int:
        found = reaped.harvest
        if found is None:
            problems.append(Problem("unreadable", task.path, reaped.problem))
            return 0
        self._tables.take(found)
        # A stretch that brought nothing is the last, whatever lies behind it.
        cut_off = found.more and found.done > found.start
        self._files[task.file] = _Progress(task, found.done, found.state, cut_off)
        return found.done - found.start

    def _settle(self, plan: Plan) -> None:
        for task in plan.touched:
            self._files[task.file] = _Progress(task, task.start, decode_state(task.state))
        for progress in self._files.values():
            task, state = progress.task, progress.state
            if progress.cut_off:
                # So that the next sync sees that there is more.
                task.size = progress.done
            title = choose_title(
                custom=state.custom or given_title(task.found),
                ai=state.ai,
                last_prompt=state.last_prompt,
                first=state.first_prompt,
            )
            mark = make_mark(task.path, progress.done) or b""
            self._tables.settle(task, progress.done, mark, state, title.text)
        now = round(time.time())
        self._connection.executemany(
            "UPDATE files SET gone = ? WHERE id = ?", [(now, file) for file in plan.gone]
        )

    def _sum_up(self) -> None:
        tables, connection = self._tables, self._connection
        recount(connection, tables.keys)
        sum_days(connection, tables.days | days_of(connection, tables.keys))
        lend_titles(connection, self._files)

    def _close(self) -> None:
        """Say that the batch is done, and with it any that was cut off before."""
        self._connection.execute("DELETE FROM batches WHERE id != ?", (self._number,))
        self._connection.execute("UPDATE batches SET open = 0")
