"""The same figures without an index: all files are read, by as many processes as are of use.

Every process reads its share and sorts out copies of a response within it. Then they compare
notes: those that stand in several shares go to the first process, which chooses, and the rest is
summed up where it was read.
"""

import os
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.paths import is_uuid, transcript_place
from steno.index.scan import path_to
from steno.index.state import Row
from steno.index.tally import rank
from steno.report.usage.cells import Cell, Cells, Heap, add
from steno.report.usage.scan import Found, Scanner
from steno.report.usage.sort import Belonging, sorted_out
from steno.report.usage.wanted import Wanted
from steno.store.found import Problem
from steno.store.walk import Walk, folder_names

__all__ = ["Share", "count_files", "transcripts_below"]

_MUCH: Final = 24 << 20
"""From here on a second process is worth its start."""
_MOST: Final = 4
_SUFFIX: Final = ".jsonl"
_LAST: Final = "\U0010ffff"
_SIZE: Final = struct.Struct("<Q")

File = tuple[str, int]
"""A path and a size."""


class _Answer(msgspec.Struct, array_like=True):
    cells: list[tuple[Cell, Heap]]
    claims: list[tuple[str, list[object], list[object]]]
    problems: list[Problem]
    begins: list[tuple[int, Belonging]]


def transcripts_below(roots: Sequence[str], problems: list[Problem]) -> list[File]:
    """Return every transcript below some folders, with its size."""
    files: dict[str, int] = {}

    def taken(entry: os.DirEntry[str]) -> bool:
        """Take a file whose name says what it is; the others are looked into."""
        name = entry.name
        if not (name.startswith("agent-") or is_uuid(name[: -len(_SUFFIX)])):
            return False
        try:
            if not entry.is_file(follow_symlinks=False):
                return False
            files.setdefault(entry.path, entry.stat().st_size)
        except OSError:
            return False
        return True

    for root in roots:
        for found in Walk(os.path.abspath(root), problems, agents=True, known=taken).run():
            files.setdefault(found.path, found.size)
    return list(files.items())


class Share:
    """Some of the files, and what counts in them."""

    def __init__(self, files: Sequence[tuple[int, str]]) -> None:
        self._files = files
        self.rows: dict[str, Row] = {}
        self.copies: list[Row] = []
        """Those that stand in several files, and count in another one."""
        self.problems: list[Problem] = []
        self._found: dict[int, Found] = {}
        self._places: dict[int, Belonging] = {}

    def read(self) -> None:
        """Read all of them."""
        scanner = Scanner()
        for number, path in self._files:
            try:
                found = scanner.scan(path, number)
            except Unreadable as error:
                self.problems.append(Problem("unreadable", path, str(error)))
                continue
            rows, found.rows = found.rows, {}
            self._found[number] = found
            for key in self.rows.keys() & rows.keys():
                self._settle(key, rows)
            self.rows.update(rows)

    def _settle(self, key: str, rows: dict[str, Row]) -> None:
        """Leave, of a response that stands in two files, the one that counts."""
        before, found = self.rows[key], rows[key]
        if self.rank(before) < self.rank(found):
            rows[key], before = before, found
        self.copies.append(before)

    def rank(self, row: Row) -> tuple[int, int, int, str, str, str]:
        """Return what copies of a response are ordered by."""
        found = self._found[row[0]]
        session, agent, _ = self.place(row[0])
        # As in SQL, bytes come after all text.
        kept = path_to(found.path)
        path = kept if isinstance(kept, str) else _LAST + kept.decode("latin-1")
        return rank(row, found.started, session, agent, path)

    def place(self, number: int) -> Belonging:
        """Return the session, sub-agent and project that a file is of."""
        known = self._places.get(number)
        if known is None:
            found = self._found[number]
            folder, name = os.path.split(found.path)
            place = transcript_place((*folder_names(folder), name))
            agent = (place.agent_id or found.agent) if place.role == "agent" else ""
            known = (place.session_id or found.session, agent, found.project)
            self._places[number] = known
        return known

    def skipping(self, wanted: Wanted) -> list[int]:
        """Return the files with lines that the client made up."""
        return [
            number
            for number, found in self._found.items()
            if found.skips and wanted.has_project(found.project)
        ]

    def sums(self, wanted: Wanted) -> Cells:
        """Sum up what is left."""
        return sorted_out(self.rows.values(), wanted, self.place)


def count_files(
    roots: Sequence[str], wanted: Wanted, problems: list[Problem], *, processes: int | None = None
) -> Cells:
    """Return the sums of all the files below some folders."""
    import gc

    # What is made from here on stays to the end: looking for what does not would only cost time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        files = transcripts_below(roots, problems)
        if processes is None:
            much = sum(size for _, size in files) > _MUCH
            processes = min(_processors(), _MOST) if much else 1
        first, *others = (Share(hand) for hand in _dealt(files, processes))
        helpers = [_Helper(share, wanted) for share in others]
        first.read()
        return _together(first, helpers, _shared(first, helpers), wanted, problems)
    finally:
        if collecting:
            gc.enable()


def _shared(first: Share, helpers: "list[_Helper]") -> set[str]:
    """Return the responses that stand in several shares."""
    seen = set(first.rows)
    several: set[str] = set()
    for helper in helpers:
        keys = helper.keys()
        several |= seen & keys
        seen |= keys
    return several


def _together(
    first: Share,
    helpers: "list[_Helper]",
    several: set[str],
    wanted: Wanted,
    problems: list[Problem],
) -> Cells:
    claims = _claims(first, several)
    for helper in helpers:
        helper.ask(several)
    cells = first.sums(wanted)
    problems += first.problems
    places: dict[int, Belonging] = {}
    for helper in helpers:
        answer = helper.answer()
        problems += answer.problems
        places.update(answer.begins)
        claims += [(key, list(row), list(ranks)) for key, row, ranks in answer.claims]
        for (names, day, model, fast, band), heap in answer.cells:
            add(cells, (tuple(names), day, model, fast, band), heap)
    best: dict[str, tuple[list[object], list[object]]] = {}
    for key, row, ranks in claims:
        if key not in best or ranks < best[key][1]:
            best[key] = (row, ranks)

    def belongs(number: int) -> Belonging:
        return places[number] if number in places else first.place(number)

    rows = [tuple(row) for row, _ in best.values()]
    for cell, heap in sorted_out(rows, wanted, belongs).items():
        add(cells, cell, heap)
    return cells


def _claims(share: Share, several: set[str]) -> list[tuple[str, list[object], list[object]]]:
    """Take out of a share what also stands in others."""
    claims: list[tuple[str, list[object], list[object]]] = []
    for key in several & share.rows.keys():
        row = share.rows.pop(key)
        claims.append((key, list(row), list(share.rank(row))))
    return claims


def _dealt(files: Sequence[File], number: int) -> list[list[tuple[int, str]]]:
    """Deal out the files so that all have about as much to read."""
    hands: list[list[tuple[int, str]]] = [[] for _ in range(number)]
    loads = [0] * number
    for place, (path, size) in sorted(enumerate(files), key=lambda each: -each[1][1]):
        least = loads.index(min(loads))
        hands[least].append((place, path))
        loads[least] += size
    return hands


def _processors() -> int:
    from threading import active_count

    # Forking is quick, but not safe beside other threads; starting anew costs more than it saves.
    if not hasattr(os, "fork") or active_count() > 1:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Helper:
    """Another process that reads a share."""

    def __init__(self, share: Share, wanted: Wanted) -> None:
        self._share = share
        self._wanted = wanted
        self._several: set[str] = set()
        self._alone = False
        """Whether it died, and this process does its work."""
        theirs, ours = os.pipe(), os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(theirs[0])
            os.close(ours[1])
            _help(share, wanted, ours[0], theirs[1])
        os.close(theirs[1])
        os.close(ours[0])
        self._read, self._write = theirs[0], ours[1]

    def keys(self) -> set[str]:
        """Return the keys of all that it found."""
        raw = _receive(self._read)
        if raw is not None:
            return set(msgspec.msgpack.decode(raw, type=list[str]))
        # It died; its share is read here.
        self._alone = True
        self._share.read()
        return set(self._share.rows)

    def ask(self, several: set[str]) -> None:
        """Tell it which responses stand in other shares too."""
        self._several = several
        if not self._alone:
            try:
                _send(self._write, msgspec.msgpack.encode(sorted(several)))
            except BrokenPipeError:
                self._alone = True
                self._share.read()
        os.close(self._write)

    def answer(self) -> _Answer:
        """Return what it made of its share."""
        raw = None if self._alone else _receive(self._read)
        os.close(self._read)
        os.waitpid(self._process, 0)
        if raw is not None:
            return msgspec.msgpack.decode(raw, type=_Answer)
        if not self._alone:
            self._share.read()
        return _answered(self._share, self._wanted, self._several)


def _help(share: Share, wanted: Wanted, read: int, write: int) -> None:
    """Be the other process; never returns."""
    import signal

    code = 1
    try:
        # The first process decides what Ctrl-C means: it closes the pipe.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        share.read()
        _send(write, msgspec.msgpack.encode(list(share.rows)))
        raw = _receive(read)
        if raw is not None:
            several = set(msgspec.msgpack.decode(raw, type=list[str]))
            _send(write, msgspec.msgpack.encode(_answered(share, wanted, several)))
            code = 0
    finally:
        os._exit(code)


def _answered(share: Share, wanted: Wanted, several: set[str]) -> _Answer:
    claims = _claims(share, several)
    places = [(int(str(row[0])), share.place(int(str(row[0])))) for _, row, _ in claims]
    return _Answer(list(share.sums(wanted).items()), claims, share.problems, places)


def _send(pipe: int, data: bytes) -> None:
    data = _SIZE.pack(len(data)) + data
    while data:
        data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> bytes | None:
    """Return what came; None when the other end is gone."""
    head = _exactly(pipe, _SIZE.size)
    return None if head is None else _exactly(pipe, _SIZE.unpack(head)[0])


def _exactly(pipe: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(pipe, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
