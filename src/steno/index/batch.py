"""One batch of a sync: words first, then rows, and nothing counts until both are there."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.index.database import transaction
from steno.index.interrupts import Interrupts
from steno.index.owners import find_owners, names_of
from steno.index.scan import Plan, Task, make_mark
from steno.index.state import State, decode_state
from steno.index.sums import days_of, lend_titles, recount, sum_days
from steno.index.tables import Tables
from steno.index.texts import open_texts
from steno.index.workers import Reaped, Workers
from steno.session.story.titles import Title, choose_title
from steno.store.found import Problem
from steno.store.titles import given_title

__all__ = ["Batch", "take_out"]

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
        self, plan: Plan, workers: Workers, step: Callable[[int], None], broken: list[int]
    ) -> int:
        """Do it all; return how many bytes were read.

        The first Ctrl-C ends the reading; what was read by then is kept, and then it is passed on.
        """
        with Interrupts() as interrupts:
            try:
                with transaction(self._connection):
                    read = self._read(plan, workers, step, broken, interrupts)
                    self._settle(plan)
                    self._sum_up()
                    self._texts.commit()
                    self._close()
            finally:
                self._texts.close()
            if interrupts.seen:
                raise KeyboardInterrupt
        return read

    def _read(
        self,
        plan: Plan,
        workers: Workers,
        step: Callable[[int], None],
        broken: list[int],
        interrupts: Interrupts,
    ) -> int:
        self._texts.begin(big=plan.size > _BIG)
        for batch in broken:
            self._texts.drop_batch(batch)
        read = 0
        for task, reaped in workers.reap(plan.tasks):
            size = self._take(task, reaped, plan.problems)
            read += size
            step(size)
            if interrupts.seen:
                break
        return read

    def _take(self, task: Task, reaped: Reaped, problems: list[Problem]) -> int:
        found = reaped.harvest
        if found is None:
            problems.append(Problem("unreadable", task.path, reaped.problem))
            return 0
        if reaped.anew or (task.anew and task.file not in self._files):
            # Not before there is something in its place.
            self._tables.forget(task.file)
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
            # What is added to a file in a dialect may change what the records before it are.
            mark = b"" if state.converted else _mark(task.path, progress.done)
            title = _title(state, given_title(task.found))
            self._tables.settle(task, progress.done, mark, state, title)
        now = round(time.time())
        self._connection.executemany(
            "UPDATE files SET gone = ? WHERE id = ?", [(now, file) for file in plan.gone]
        )

    def _sum_up(self) -> None:
        tables, connection = self._tables, self._connection
        find_owners(connection, names_of(connection, self._files))
        recount(connection, tables.keys)
        sum_days(connection, tables.days | days_of(connection, tables.keys))
        lend_titles(connection, {*self._files, *self._take_titles_back()})

    def _take_titles_back(self) -> Iterator[int]:
        """Give sessions whose title stood in a file that was forgotten their own; yield them."""
        for leaf in self._tables.unlent:
            rows = self._connection.execute(
                "SELECT s.file, f.state FROM sessions s JOIN files f ON f.id = s.file "
                "WHERE s.last_uuid = ?",
                (leaf,),
            ).fetchall()
            for file, kept in rows:
                state = decode_state(kept)
                title = _title(state)
                if file not in self._files and not title.is_given:
                    self._connection.execute(
                        "UPDATE sessions SET named = 0, title = ? WHERE file = ?",
                        (title.text, file),
                    )
                yield file

    def _close(self) -> None:
        """Say that the batch is done, and with it any that was cut off before."""
        self._connection.execute("DELETE FROM batches WHERE id != ?", (self._number,))
        self._connection.execute("UPDATE batches SET open = 0")


def take_out(connection: sqlite3.Connection, folder: str, files: list[int]) -> None:
    """Take files out of an index as if they had never been in it."""
    texts = open_texts(folder)
    texts.begin(big=False)
    try:
        with transaction(connection):
            tables = Tables(connection, texts, 0)
            names = names_of(connection, files)
            for file in files:
                tables.forget(file)
                connection.execute("DELETE FROM files WHERE id = ?", (file,))
            find_owners(connection, names)
            recount(connection, tables.keys)
            sum_days(connection, tables.days | days_of(connection, tables.keys))
            texts.commit()
    finally:
        texts.close()


def _title(state: State, given: str = "") -> Title:
    return choose_title(
        custom=state.custom or given,
        ai=state.ai,
        summary=state.summary,
        last_prompt=state.last_prompt,
        first=state.first_prompt,
        command=state.first_command,
    )


def _mark(path: str, done: int) -> bytes:
    """Return the fingerprint of a file; nothing, which fits no file, where it cannot be read."""
    try:
        return make_mark(path, done) or b""
    except Unreadable:
        return b""
