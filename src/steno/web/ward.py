"""Looks after the sessions in the background, one after the other, and keeps what it saw.

What did not change is not read again. Pages only ever ask for what is known so far.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from steno.check.doctor import Patient, bytes_of, visit
from steno.errors import StenoError
from steno.report.cases import Look
from steno.report.health import Health, health_of, look_at
from steno.report.policy import policy_of
from steno.store.found import Found, Problem

__all__ = ["Round", "Ward"]

_AGAIN: Final = 5.0
"""Seconds: a round that ended less than that ago still counts."""
_TELL: Final = 0.5
"""Seconds between what is told of a round that is under way."""
_PASSES: Final = 2
"""How often each byte is read: once for damage, once for drift."""

_Sign = tuple[tuple[str, int, int], ...]


class Round(msgspec.Struct, frozen=True):
    """How far a round is."""

    at_work: bool = False
    done: int = 0
    planned: int = 0
    ended: float = 0.0
    """When the last whole round ended; 0 before the first did."""
    problem: str = ""


class _Stopped(StenoError):
    """The explorer is closing."""


class Ward:
    """Knows how every session is, as of the last round."""

    def __init__(self, roots: tuple[str, ...], now: Callable[[], float], where: str = "") -> None:
        self._roots = roots
        self._now = now
        self._where = where
        self._lock = threading.Lock()
        self._known: dict[str, tuple[_Sign, Look]] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._rested = 0.0
        self.round = Round()
        self.health = Health()

    @property
    def trouble(self) -> int:
        """How many cases somebody should do something about, as far as is known."""
        return self.health.trouble

    @property
    def broken(self) -> frozenset[str]:
        """Where sessions lie of which something is lost or refused, as far as is known."""
        return frozenset(
            look.found.path for look in self.looks if look.sight is not None and look.sight.broken
        )

    @property
    def looks(self) -> list[Look]:
        """What was seen in each session so far."""
        return [look for _, look in list(self._known.values())]

    def look(self, most: int | None = None) -> None:
        """Begin a round, unless one is under way or has just ended; not over more than `most`."""
        with self._lock:
            if self.round.at_work or self._stop.is_set():
                return
            if self.round.ended and time.monotonic() - self._rested < _AGAIN:
                return
            self.round = msgspec.structs.replace(self.round, at_work=True, done=0, planned=0)
            self._thread = threading.Thread(target=self._go_round, args=(most,), daemon=True)
            self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the round that is under way has ended."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self.wait()

    def _go_round(self, most: int | None) -> None:
        ended, problem = self.round.ended, ""
        try:
            if self._look_at_all(most):
                ended, self._rested = self._now(), time.monotonic()
        except _Stopped:
            pass
        except StenoError as error:
            problem = str(error)
        finally:
            self.round = msgspec.structs.replace(
                self.round, at_work=False, ended=ended, problem=problem
            )

    def _look_at_all(self, most: int | None) -> bool:
        from steno.format.catalogue import catalogue

        policy, facts = policy_of(), catalogue()
        problems: list[Problem] = []
        patient = visit([root for root in self._roots if os.path.lexists(root)], problems)
        new = sum(bytes_of(found) for found in patient.files if self._kept(found) is None)
        if most is not None and new > most:
            return False
        self.round = msgspec.structs.replace(self.round, planned=new * _PASSES)
        first = not self.round.ended
        told = 0.0
        looks: list[Look] = []
        for found in patient.files:
            look = self._kept(found)
            if look is None:
                look = look_at(found, facts, policy=policy, done=self._add)
                self._known[found.path] = (_sign(found), look)
            looks.append(look)
            if first and time.monotonic() - told >= _TELL:
                self.health = self._told(patient, looks, problems, whole=False)
                told = time.monotonic()
        self._forget(patient)
        self.health = self._told(patient, looks, problems, whole=True)
        return True

    def _told(
        self, patient: Patient, looks: list[Look], problems: list[Problem], *, whole: bool
    ) -> Health:
        from steno.format.catalogue import catalogue

        return health_of(
            patient,
            looks,
            self._now(),
            problems=problems,
            whole=whole,
            newest=catalogue().newest,
            where=self._where,
        )

    def _add(self, number: int) -> None:
        if self._stop.is_set():
            raise _Stopped("the explorer is closing")
        self.round = msgspec.structs.replace(self.round, done=self.round.done + number)

    def _kept(self, found: Found) -> Look | None:
        known = self._known.get(found.path)
        return known[1] if known is not None and known[0] == _sign(found) else None

    def _forget(self, patient: Patient) -> None:
        there = {found.path for found in patient.files}
        for path in self._known.keys() - there:
            del self._known[path]


def _sign(found: Found) -> _Sign:
    """Return what tells whether a session or one of its sub-agents changed."""
    return tuple((each.path, each.size, each.mtime_ns) for each in (found, *found.agents))
