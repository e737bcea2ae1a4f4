"""Carries out a move, so that it can be cut off at any write and then be finished or undone.

First every file gets its new place, sessions last; then the files in which all projects are named
are rewritten; then what lies at the old place is removed, sessions first. So every session is whole
at one of its two places at every instant, and where both have it they say the same. How far it got
is in the receipt; each step is skipped where it was done already, so doing all again is finishing.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from shutil import rmtree
from typing import Final, Literal

import msgspec

from steno.errors import BadRequest, Busy, Unreadable
from steno.store.busy import look_now
from steno.store.disk import flush_folder, make_folder
from steno.store.read import FileSource
from steno.store.relocate.moved import Moved, note_moved
from steno.store.relocate.plan import refuse_if_live
from steno.store.relocate.receipt import Receipt, begun, cut_off, moves_lock, new_folder, saved
from steno.store.relocate.rewrite import mark_of, pieces, rewritten, sum_of
from steno.store.relocate.values import Plan, Step, Sum
from steno.store.replace import exchange, keep_new
from steno.store.scratch import Identity, Scratch, identify, sweep_folder, unwritable
from steno.store.session_lock import SessionLock, lock_path

__all__ = ["apply", "finish", "take_back"]

Done = Callable[[int], None]
_JOURNAL: Final = frozenset(("begun", "placed"))
_TOPS: Final = ("projects", "conversations", "file-history", "tasks", "todos")
_IN_PLACE: Final = frozenset(("rewrite", "merge"))


def apply(
    plan: Plan, kind: Literal["move", "unpack"] = "move", folder: str = "", done: Done | None = None
) -> Receipt:
    """Do what was planned; return the receipt, which can undo it.

    Raises:
        Busy: another move is at work or was cut off, or a session is being written to.
        Unwritable: something cannot be written; doing it again goes on from there.
    """
    with moves_lock():
        left = cut_off()
        if left is not None:
            raise Busy(
                f"the move {left.id} of {left.old} was cut off",
                hint=f"`steno relocate --undo {left.id}` takes it back",
            )
        return _finish(begun(plan, kind, folder or new_folder()), done)


def finish(receipt: Receipt, done: Done | None = None) -> Receipt:
    """Go on with a move that was cut off.

    Raises:
        BadRequest: it was finished, or is being undone.
        Busy: a session was written to since, at both places.
        Unwritable: something cannot be written.
    """
    if receipt.state not in _JOURNAL:
        raise BadRequest(f"the move {receipt.id} is {receipt.state}", hint="there is nothing to do")
    with moves_lock():
        return _finish(receipt, done)


def _finish(receipt: Receipt, done: Done | None) -> Receipt:
    carrier = _Carrier(receipt, done)
    if receipt.state == "begun":
        for step in sorted(receipt.steps, key=_sessions_last):
            with _locked(step):
                carrier.place(step)
        for step in receipt.steps:
            carrier.rewrite(step)
        receipt = saved(receipt, "placed")
    for step in sorted(receipt.steps, key=_sessions_last, reverse=True):
        with _locked(step):
            carrier.remove_source(step)
    _tidy(receipt)
    note_moved(Moved(s.source, s.target, s.before.size) for s in _moved(receipt))
    rmtree(receipt.staged, ignore_errors=True)
    return saved(receipt, "done")


def take_back(receipt: Receipt, done: Done | None = None) -> tuple[Receipt, list[str]]:
    """Undo a move, also one that was cut off; return what could not be as it was.

    What was written to sessions since comes along, its paths rewritten too.

    Raises:
        BadRequest: it was undone already.
        Busy: a client is at work on one of its sessions.
        Unwritable: something cannot be written; undoing it again goes on from there.
    """
    if receipt.state == "undone":
        raise BadRequest(f"the move {receipt.id} was undone already")
    back = [_inverse(step) for step in receipt.steps]
    refuse_if_live(Plan(receipt.new, receipt.old, receipt.config, (), steps=tuple(back)))
    with moves_lock():
        receipt = saved(receipt, "undoing")
        carrier = _Carrier(receipt, done)
        for step in sorted(receipt.steps, key=_sessions_last):
            with _locked(step):
                carrier.place_back(step)
        for step in receipt.steps:
            carrier.rewrite_back(step)
        for step in sorted(receipt.steps, key=_sessions_last, reverse=True):
            with _locked(step):
                carrier.remove_target(step)
        _tidy(receipt)
        note_moved(Moved(s.target, s.source, s.after.size) for s in _moved(receipt))
        return saved(receipt, "undone"), carrier.notes


@contextmanager
def _locked(step: Step) -> Generator[None]:
    """Hold the lock of a session, at both of its places, while its file is written or removed."""
    with ExitStack() as stack:
        if step.session:
            # Both places may have one lock.
            for file in {lock_path(file): file for file in (step.source, step.target)}.values():
                stack.enter_context(SessionLock.take(file, live=False))
        yield


def _sessions_last(step: Step) -> tuple[bool, bool]:
    return step.session, "agent-" not in os.path.basename(step.source)


def _inverse(step: Step) -> Step:
    return msgspec.structs.replace(step, source=step.target, target=step.source)


def _moved(receipt: Receipt) -> Iterator[Step]:
    return (step for step in receipt.steps if step.session and step.action == "move")


class _Carrier:
    """Does the steps of one receipt, either way."""

    def __init__(self, receipt: Receipt, done: Done | None) -> None:
        self._receipt = receipt
        self._done = done
        self._paths = receipt.paths
        self._back = self._paths.back()
        self._read: dict[str, Identity] = {}
        self.notes: list[str] = []

    # There

    def place(self, step: Step) -> None:
        """Write a file at its new place; its old one stays."""
        if step.action in _IN_PLACE:
            return
        if os.path.lexists(step.target):
            if _sum(step.target) != step.after:
                raise Busy(f"{step.target} is there, with other content", hint=self._way_out())
            return
        seen = identify(step.source)
        self._write(step.source, step.target, self._forth(step))
        if _sum(step.target) != step.after:
            os.unlink(step.target)
            raise Busy(f"{step.source} changed since it was read", hint=self._way_out())
        self._read[step.source] = seen

    def rewrite(self, step: Step) -> None:
        """Rewrite a file where it lies, unless that was done already."""
        if step.action == "merge":
            self._merge(step)
            return
        if step.action != "rewrite" or not os.path.isfile(step.source):
            return
        found = _sum(step.source)
        if found == step.after:
            return
        if step.lines and self._has_mark(step):
            return
        if not step.lines and found != step.before:
            raise Busy(f"{step.source} changed since it was read", hint=self._way_out())
        self._exchange(step.source, self._forth(step))

    def _merge(self, step: Step) -> None:
        """Put lines before those of a file that all projects share: they are older."""
        if not os.path.exists(step.target):
            self._write(step.source, step.target, self._forth(step))
            return
        if self._has_mark(step):
            return
        own = self._chunks(step.target)
        self._exchange(step.target, (each for some in (self._forth(step), own) for each in some))

    def remove_source(self, step: Step) -> None:
        """Remove what has a new place, if it is still what was read."""
        if step.action == "rewrite" or not os.path.lexists(step.source):
            return
        if step.action == "merge":
            _unlink(step.source)
            return
        seen = self._read.get(step.source)
        if seen is None or look_now(step.source) != seen:
            new = sum_of(self._forth(step))
            if new != _sum(step.target):
                raise Busy(f"{step.source} was written to since", hint=self._way_out())
        _unlink(step.source)

    def _forth(self, step: Step) -> Iterator[bytes]:
        return rewritten(self._chunks(step.source), self._paths, step.mode)

    # And back

    def place_back(self, step: Step) -> None:
        """Write a file at its old place again, with whatever was added to it since."""
        if step.action != "move" or os.path.lexists(step.source):
            return
        if not os.path.isfile(step.target):
            self.notes.append(f"{step.target} is gone")
            return
        self._write(step.target, step.source, self._as_before(step))

    def rewrite_back(self, step: Step) -> None:
        """Rewrite a file that stayed."""
        if step.action == "merge":
            if os.path.isfile(step.target) and self._has_mark(step):
                self._exchange(step.target, self._without_marks(step))
                if not os.path.getsize(step.target):
                    _unlink(step.target)
            return
        if step.action != "rewrite" or not os.path.isfile(step.source):
            return
        found = _sum(step.source)
        if found == step.before:
            return
        if found != step.after and step.lines:
            if self._has_mark(step):
                self._exchange(step.source, self._by_marks(step))
            return
        self._exchange(step.source, self._as_before(step))

    def remove_target(self, step: Step) -> None:
        """Remove what is at its old place again."""
        if step.action in _IN_PLACE or not os.path.isfile(step.target):
            return
        if step.action == "add":
            if _sum(step.target) != step.after:
                self.notes.append(f"{step.target} was written to since; it is left")
                return
        elif sum_of(self._as_before(step)) != _sum(step.source) and not self._is_untouched(step):
            self.notes.append(f"{step.source} and {step.target} differ; both are left")
            return
        _unlink(step.target)

    def _is_untouched(self, step: Step) -> bool:
        """Say whether both are what they were when the move was cut off."""
        return _sum(step.target) == step.after and _sum(step.source) == step.before

    def _as_before(self, step: Step) -> Iterator[bytes]:
        """Yield a file as it was before the move, and what was added to it since."""
        kept = self._receipt.kept(step)
        if step.exact or not os.path.exists(kept) or not _begins_with(step.target, step.after):
            yield from rewritten(self._chunks(step.target), self._back, step.mode)
            return
        yield from _unpacked(kept)
        with FileSource(step.target) as file:
            yield from rewritten(file.chunks(step.after.size), self._back, step.mode)

    def _by_marks(self, step: Step) -> Iterator[bytes]:
        """Yield a file that others wrote to since, the lines that we rewrote as they were."""
        marks = set(step.lines)
        for line in pieces(self._chunks(step.source), "lines"):
            yield self._back.apply(line)[0] if mark_of(line) in marks else line

    def _without_marks(self, step: Step) -> Iterator[bytes]:
        """Yield a file without the lines that joined it."""
        marks = set(step.lines)
        lines = pieces(self._chunks(step.target), "lines")
        return (line for line in lines if mark_of(line) not in marks)

    def _has_mark(self, step: Step) -> bool:
        marks = set(step.lines)
        return any(mark_of(each) in marks for each in pieces(self._chunks(step.target), "lines"))

    # Both ways

    def _chunks(self, path: str) -> Iterator[bytes]:
        with FileSource(path) as file:
            for chunk in file.chunks():
                if self._done is not None:
                    self._done(len(chunk))
                yield chunk

    def _write(self, source: str, target: str, chunks: Iterable[bytes]) -> None:
        try:
            make_folder(os.path.dirname(target))
            like = os.stat(source)
        except OSError as error:
            raise unwritable(target, error) from error
        with Scratch(target) as scratch:
            scratch.write(chunks)
            # The client deletes by age, and lists by it.
            scratch.dress(like)
            keep_new(scratch, target)

    def _exchange(self, path: str, chunks: Iterable[bytes]) -> None:
        seen = identify(path)
        with Scratch(path) as scratch:
            scratch.write(chunks)
            exchange(scratch, path, seen)

    def _way_out(self) -> str:
        return f"the same again goes on; `steno relocate --undo {self._receipt.id}` takes it back"


def _sum(path: str) -> Sum | None:
    try:
        with FileSource(path) as file:
            return sum_of(file.chunks())
    except Unreadable:
        return None


def _begins_with(path: str, wanted: Sum) -> bool:
    with FileSource(path) as file:
        if file.size < wanted.size:
            return False
        file.size = wanted.size
        return sum_of(file.chunks()) == wanted


def _unpacked(path: str) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor

    with open(path, "rb") as file:
        yield from ZstdDecompressor().read_to_iter(file)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(path, error) from error


def _tidy(receipt: Receipt) -> None:
    """Remove what killed runs left, folders that files moved out of, and those above them."""
    tops = {os.path.join(receipt.config, top) for top in _TOPS}
    ends = {end for step in receipt.steps for end in (step.source, step.target)}
    folders = {*map(os.path.dirname, ends)}
    for folder in receipt.folders:
        # Clients make some that stay empty.
        folders.update(found for found, _, _ in os.walk(folder))
    for folder in sorted(folders, key=len, reverse=True):
        sweep_folder(folder)
        _remove_empty(folder, tops)
    for top in tops:
        with suppress(OSError):
            flush_folder(top)


def _remove_empty(folder: str, tops: set[str]) -> None:
    while any(folder.startswith(top + os.sep) for top in tops):
        try:
            os.rmdir(folder)
        except OSError:
            # Something is left in it, or it was removed with another.
            return
        folder = os.path.dirname(folder)
