"""Tells which transcripts below some roots changed: appeared, grew, were replaced, went away.

    with Watch(["/home/ada/.claude"]) as watch:
        for changes in watch:
            changes.paths, changes.rescan

The system is asked (inotify and its like), so that waiting costs nothing. It may fail, lose news or
run out of watches: any such doubt leads to a look at everything, and so does time.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Final, Self

import msgspec

from steno.store.discover import Discovery
from steno.store.walk import NEVER
from steno.store.watch.ears import CannotListen, Ear, Heard, Lost, Quiet, Said
from steno.store.watch.plan import Plan, plan_for

__all__ = ["Changes", "Watch"]

RECONCILE: Final = 300.0
_DEAF: Final = 2.0
"""Seconds between looks while the system cannot be asked."""
_RETRY: Final = 30.0
_OFTEN: Final = 5.0
"""Seconds: a system that fails again so soon is not asked for a while."""
_MANY: Final = 4096
"""So many changes at once that some may have been lost; the library does not say so."""
_GONE: Final = 3
_SUFFIX: Final = ".jsonl"
# Elsewhere a wait ends when a signal comes.
_PATIENCE: Final = 0.5 if sys.platform == "win32" else 86_400.0
_State = tuple[int, int]


class Changes(msgspec.Struct, frozen=True):
    """What changed. With `rescan`, more may have: look at everything."""

    paths: frozenset[str] = frozenset()
    rescan: bool = False


class Watch:
    """Watches roots: folders or files, there or still to come.

    Iterating blocks until something changed. The first answer always comes at once, when the watch
    stands, and is a `rescan`: whoever then looks at everything misses nothing. Paths are spelled
    as discovery spells them.
    """

    def __init__(self, roots: Sequence[str], reconcile: float = RECONCILE) -> None:
        self._given = tuple(dict.fromkeys(roots))
        self._roots = tuple(os.path.abspath(root) for root in self._given)
        self._spelled = _spellings(self._given)
        self._every = reconcile
        self._said: SimpleQueue[Said] = SimpleQueue()
        self._ears: list[Ear] = []
        self._plan = Plan()
        self._known: dict[str, _State] = {}
        self._active: set[str] = set()
        self._stopped = False
        self._failed = self._looked = float("-inf")
        self.deaf = ""
        """Why the system cannot be asked, so that files are looked at every other second."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the iteration; may be called from any thread, or from a signal's handler."""
        self._stopped = True
        self._said.put(None)

    def close(self) -> None:
        """Give everything back."""
        ears, self._ears = self._ears, []
        for ear in ears:
            ear.close()

    def __iter__(self) -> Iterator[Changes]:
        try:
            self._listen()
            self._known = self._look()
            if not self._stopped:
                yield Changes(rescan=True)
            while not self._stopped:
                changes = self._next()
                if changes.paths or changes.rescan:
                    yield changes
        finally:
            self.close()

    # Waiting

    def _next(self) -> Changes:
        every = min(self._every, _DEAF) if self.deaf else self._every
        try:
            said = self._wait(self._looked + every)
        except Empty:
            return self._reconcile()
        match said:
            case Heard():
                return self._heard(said)
            case Quiet():
                return self._settled()
            case Lost():
                return self._lost(said)
            case None:
                return Changes()

    def _wait(self, until: float) -> Said:
        """Wait for news; when it is time for a look at everything, that comes first."""
        while (left := until - time.monotonic()) > 0:
            try:
                return self._said.get(timeout=min(left, _PATIENCE))
            except Empty:
                continue
        raise Empty

    # Listening

    def _listen(self) -> None:
        """Listen where it is to be listened now; a system that refuses makes us deaf."""
        self.close()
        self._plan = plan_for(self._roots)
        self.deaf = ""
        try:
            for folders, deep in ((self._plan.deep, True), (self._plan.shallow, False)):
                if folders:
                    self._ears.append(Ear(folders, self._said, deep=deep))
        except CannotListen as error:
            self.close()
            self._failed = time.monotonic()
            self.deaf = str(error) or "refused"

    def _lost(self, said: Lost) -> Changes:
        now = time.monotonic()
        often, self._failed = now - self._failed < _OFTEN, now
        if often:
            self.close()
            self.deaf = said.message
        else:
            self._listen()
        return self._doubt()

    def _doubt(self) -> Changes:
        return Changes(self._compare(), rescan=True)

    def _reconcile(self) -> Changes:
        """Look whether anything happened unheard."""
        if self.deaf and time.monotonic() - self._failed >= _RETRY:
            self._listen()
        elif not self.deaf and plan_for(self._roots) != self._plan:
            self._listen()
            return self._doubt()
        return Changes(self._compare())

    # What changed

    def _heard(self, said: Heard) -> Changes:
        paths: set[str] = set()
        doubt = len(said.changes) >= _MANY
        for kind, path in said.changes:
            doubt = doubt or self._moves_a_root(path)
            shown = self._spell(path)
            if shown is not None:
                paths |= self._touched(kind, shown)
        if doubt:
            self._listen()
            return Changes(frozenset(paths) | self._compare(), rescan=True)
        self._active |= paths
        self._note(paths)
        return Changes(frozenset(paths))

    def _moves_a_root(self, path: str) -> bool:
        """Whether a root, or a folder on the way to one, came or went; or where it looks into."""
        if path.endswith(_SUFFIX) and path not in self._plan.deep:
            return False
        ways = (*self._roots, *self._plan.deep)
        if any(way == path or way.startswith(path + os.sep) for way in ways):
            return plan_for(self._roots) != self._plan
        return False

    def _spell(self, path: str) -> str | None:
        """Return a path below a root as discovery spells it; None for what lies elsewhere."""
        for real, given in self._spelled:
            if path == real:
                return given
            if path.startswith(real + os.sep):
                return os.path.join(given, path[len(real) + 1 :])
        return None

    def _touched(self, kind: int, path: str) -> set[str]:
        if path.endswith(_SUFFIX):
            return set() if NEVER.intersection(path.split(os.sep)) else {path}
        if kind == _GONE:
            below = path + os.sep
            return {known for known in self._known if known.startswith(below)}
        if os.path.isdir(path) and os.path.basename(path) not in NEVER:
            # What was written into a new folder before it was listened to was not heard of.
            found = {each.path for each in Discovery(path).transcripts()}
            return {each for each in found if self._known.get(each) != _state(each)}
        return set()

    def _settled(self) -> Changes:
        """Look once more at what was written to, now that it is quiet."""
        active, self._active = self._active, set()
        changed = {path for path in active if self._known.get(path) != _state(path)}
        self._note(changed)
        return Changes(frozenset(changed))

    def _note(self, paths: Iterable[str]) -> None:
        """Remember what files are like before anybody is told of them."""
        for path in paths:
            state = _state(path)
            if state is None:
                self._known.pop(path, None)
            else:
                self._known[path] = state

    def _compare(self) -> frozenset[str]:
        before, self._known = self._known, self._look()
        gone = before.keys() - self._known.keys()
        changed = {path for path, state in self._known.items() if before.get(path) != state}
        # A transcript that cannot be told by its name was heard of, and is no news.
        gone = {path for path in gone if _state(path) != before[path]}
        self._known |= {path: before[path] for path in before.keys() - self._known.keys() - gone}
        return frozenset(changed | gone)

    def _look(self) -> dict[str, _State]:
        self._looked = time.monotonic()
        return {
            found.path: (found.size, found.mtime_ns)
            for root in self._given
            for found in Discovery(root).transcripts()
        }


def _state(path: str) -> _State | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _spellings(given: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return what the system may call the roots, and what we call them; the longest first."""
    pairs = {os.path.abspath(root): root for root in given}
    for root in given:
        # Some systems answer with the real path, whatever was asked for.
        pairs.setdefault(os.path.realpath(root), root)
    return sorted(pairs.items(), key=_length, reverse=True)


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0])
