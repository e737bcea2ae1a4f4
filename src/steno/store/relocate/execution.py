"""Carries out a relocation so that it can be interrupted at any write, then resumed or undone.

First every file is written to its new path, sessions last; then the files that name all projects are rewritten; then
the old files are removed, sessions first. So every session is complete at one of its two paths at every instant. The
receipt is a folder below `moves/`: `receipt.json` has the steps and the progress, `kept/` the originals of files whose
rewriting is not reversible, `staged/` unpacked files that are not in place yet. Finished steps are skipped, so
repeating a relocation resumes it.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from shutil import rmtree
from typing import Any, Final, Literal

import msgspec

from steno._version import __version__
from steno.errors import BadRequest, Busy, NotFound, Unreadable
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.path_rewriter import PathRewriter
from steno.store.archive.catalogue import MovedSession, record_moves
from steno.store.atomic import (
    FileIdentity,
    TempFile,
    file_identity,
    make_private_folder,
    read_all,
    remove_stale_in_folder,
    sync_folder,
    unwritable_error,
    writing,
)
from steno.store.discovery import peek
from steno.store.environment import now, steno_home
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource
from steno.store.relocate.plan import (
    FileSum,
    ProgressCallback,
    RelocationPlan,
    RelocationState,
    RelocationStep,
    compute_sum,
    file_sum,
    line_mark,
    refuse_if_active,
    rewrite_paths,
    rewrite_units,
)
from steno.store.replace import exchange, place_new
from steno.store.session_lock import SessionLock, current_identity, lock_path

RECEIPTS_FOLDER: Final = "moves"
_RECEIPT_FILE: Final = "receipt.json"
_COPIES_FOLDER: Final = "kept"
_LOCK_FILE: Final = "lock"
_FINISHED_PREFIXES: Final = (b'{"state":"done"', b'{"state":"undone"')
_STATE_PREFIX_SIZE: Final = 32


class RelocationReceipt(msgspec.Struct, frozen=True):
    """A move: how far it got, and what it is made of."""

    state: RelocationState
    """First, so that the first bytes of the file tell it."""
    kind: Literal["move", "unpack"]
    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    steps: tuple[RelocationStep, ...]
    folders: tuple[str, ...] = ()
    folder: str = ""
    """Where the receipt lies."""
    version: str = ""
    time: float = 0.0

    @property
    def id(self) -> str:
        """What it goes by."""
        return os.path.basename(self.folder)

    @property
    def paths(self) -> PathRewriter:
        """What the paths are from now on."""
        return PathRewriter(self.pairs)

    @property
    def staging_folder(self) -> str:
        """Where what was unpacked waits."""
        return os.path.join(self.folder, "staged")

    def copy_path(self, step: RelocationStep) -> str:
        """Return where the file is kept as it was."""
        return os.path.join(self.folder, _COPIES_FOLDER, f"{self.steps.index(step)}.zst")


def relocation_lock() -> FileLock:
    """Return the lock of whoever moves something. Raises Unwritable if steno's folder cannot be written."""
    folder = os.path.join(steno_home(), RECEIPTS_FOLDER)
    with writing(folder):
        make_private_folder(folder)
    return FileLock(os.path.join(folder, _LOCK_FILE), wait=False)


def new_receipt_folder() -> str:
    """Return a folder for a receipt that is not there yet. Raises Unwritable if it cannot be made."""
    from time import gmtime, strftime

    stamp = strftime("%Y%m%dT%H%M%S", gmtime(now()))
    folder = os.path.join(steno_home(), RECEIPTS_FOLDER, f"{stamp}-{os.urandom(3).hex()}")
    with writing(folder):
        make_private_folder(folder)
    return folder


def begin_receipt(plan: RelocationPlan, kind: Literal["move", "unpack"], folder: str) -> RelocationReceipt:
    """Write down what is about to be done, with copies of what rewriting cannot bring back.

    Raises Unwritable if it cannot be written; nothing was done.
    """
    receipt = RelocationReceipt(
        "begun",
        kind,
        plan.old,
        plan.new,
        plan.config,
        plan.pairs,
        plan.steps,
        plan.folders,
        folder=folder,
        version=__version__,
        time=now(),
    )
    for step in plan.steps:
        if not step.exact and not step.lines and step.action != "add":
            _copy_original(step.source, receipt.copy_path(step))
    return save_receipt(receipt, "begun")


def _copy_original(source: str, path: str) -> None:
    with writing(path):
        make_private_folder(os.path.dirname(path))
    with FileSource(source) as file, TempFile(path) as copy:
        copy.write(compress_chunks(file.chunks()))
        place_new(copy, path)


def compress_chunks(chunks: Iterable[bytes], **options: Any) -> Iterator[bytes]:
    """Yield bytes compressed by zstd; the options are those of its compressor."""
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(**options).compressobj()
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def save_receipt(receipt: RelocationReceipt, state: RelocationState) -> RelocationReceipt:
    """Write down how far it got. Raises Unwritable if it cannot be written."""
    receipt = msgspec.structs.replace(receipt, state=state)
    path = os.path.join(receipt.folder, _RECEIPT_FILE)
    with TempFile(path) as temp_file:
        temp_file.write([msgspec.json.encode(receipt), b"\n"])
        temp_file.replace(path, sync=False)
    return receipt


def find_receipt(name: str) -> RelocationReceipt:
    """Return a receipt by its id, its path, or `last`.

    Raises NotFound if there is none, or Unreadable if it cannot be read.
    """
    if name == "last":
        ids = _receipt_ids()
        if not ids:
            raise NotFound("nothing was moved yet")
        return _read_receipt(os.path.join(steno_home(), RECEIPTS_FOLDER, ids[-1]))
    for folder in (os.path.join(steno_home(), RECEIPTS_FOLDER, name), name, os.path.dirname(name)):
        if folder and os.path.isfile(os.path.join(folder, _RECEIPT_FILE)):
            return _read_receipt(os.path.abspath(folder))
    raise NotFound(f"there is no receipt {name!r}", hint="the move itself said which it wrote")


def find_interrupted() -> RelocationReceipt | None:
    """Return the move that was begun and neither finished nor undone, if there is one."""
    for name in reversed(_receipt_ids()):
        folder = os.path.join(steno_home(), RECEIPTS_FOLDER, name)
        head = peek(os.path.join(folder, _RECEIPT_FILE), _STATE_PREFIX_SIZE, []) or b""
        if not head.startswith(_FINISHED_PREFIXES):
            with suppress(Unreadable, BadRequest):
                return _read_receipt(folder)
    return None


def _receipt_ids() -> list[str]:
    folder = os.path.join(steno_home(), RECEIPTS_FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if os.path.isfile(os.path.join(folder, name, _RECEIPT_FILE)))


def _read_receipt(folder: str) -> RelocationReceipt:
    path = os.path.join(folder, _RECEIPT_FILE)
    try:
        receipt = msgspec.json.decode(read_all(path), type=RelocationReceipt)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {(error.strerror or '').lower()}") from error
    except DECODE_ERRORS as error:
        raise BadRequest(f"{path} is no receipt") from error
    return msgspec.structs.replace(receipt, folder=folder)


_UNFINISHED_STATES: Final = frozenset(("begun", "placed"))
_RELOCATED_FOLDERS: Final = ("projects", "conversations", "file-history", "tasks", "todos")
_IN_PLACE_ACTIONS: Final = frozenset(("rewrite", "merge"))


def apply_plan(
    plan: RelocationPlan,
    kind: Literal["move", "unpack"] = "move",
    folder: str = "",
    on_progress: ProgressCallback | None = None,
) -> RelocationReceipt:
    """Do what was planned; return the receipt, which can undo it.

    Raises Busy if another move is at work or was cut off, or a session is being written to, or Unwritable if something
    cannot be written; doing it again goes on from there.
    """
    with relocation_lock():
        interrupted = find_interrupted()
        if interrupted is not None:
            raise Busy(
                f"the move {interrupted.id} of {interrupted.old} was cut off",
                hint=f"`steno relocate --undo {interrupted.id}` takes it back",
            )
        return _complete(begin_receipt(plan, kind, folder or new_receipt_folder()), on_progress)


def resume(receipt: RelocationReceipt, on_progress: ProgressCallback | None = None) -> RelocationReceipt:
    """Go on with a move that was cut off.

    Raises BadRequest if it was finished, or is being undone, or Busy if a session was written to since, at both places,
    or Unwritable if something cannot be written.
    """
    if receipt.state not in _UNFINISHED_STATES:
        raise BadRequest(f"the move {receipt.id} is {receipt.state}", hint="there is nothing to do")
    with relocation_lock():
        return _complete(receipt, on_progress)


def _complete(receipt: RelocationReceipt, on_progress: ProgressCallback | None) -> RelocationReceipt:
    executor = _StepExecutor(receipt, on_progress)
    if receipt.state == "begun":
        for step in sorted(receipt.steps, key=_sessions_last):
            with _session_locked(step):
                executor.write_target(step)
        for step in receipt.steps:
            executor.rewrite_in_place(step)
        receipt = save_receipt(receipt, "placed")
    for step in sorted(receipt.steps, key=_sessions_last, reverse=True):
        with _session_locked(step):
            executor.remove_source(step)
    _remove_leftovers(receipt)
    record_moves(MovedSession(s.source, s.target, s.before.size) for s in _moved_sessions(receipt))
    rmtree(receipt.staging_folder, ignore_errors=True)
    return save_receipt(receipt, "done")


def undo_relocation(
    receipt: RelocationReceipt, on_progress: ProgressCallback | None = None
) -> tuple[RelocationReceipt, list[str]]:
    """Undo a move, also one that was cut off; return what could not be as it was.

    What was written to sessions since comes along, its paths rewritten too. Raises BadRequest if it was undone already,
    or Busy if a client is at work on one of its sessions, or Unwritable if something cannot be written; undoing it
    again goes on from there.
    """
    if receipt.state == "undone":
        raise BadRequest(f"the move {receipt.id} was undone already")
    inverse_steps = [_inverse(step) for step in receipt.steps]
    refuse_if_active(RelocationPlan(receipt.new, receipt.old, receipt.config, (), steps=tuple(inverse_steps)))
    with relocation_lock():
        receipt = save_receipt(receipt, "undoing")
        executor = _StepExecutor(receipt, on_progress)
        for step in sorted(receipt.steps, key=_sessions_last):
            with _session_locked(step):
                executor.restore_source(step)
        for step in receipt.steps:
            executor.rewrite_back(step)
        for step in sorted(receipt.steps, key=_sessions_last, reverse=True):
            with _session_locked(step):
                executor.remove_target(step)
        _remove_leftovers(receipt)
        record_moves(MovedSession(s.target, s.source, s.after.size) for s in _moved_sessions(receipt))
        return save_receipt(receipt, "undone"), executor.notes


@contextmanager
def _session_locked(step: RelocationStep) -> Generator[None]:
    """Hold the lock of a session, at both of its places, while its file is written or removed."""
    with ExitStack() as stack:
        if step.session:
            # Both places may have one lock.
            for file in {lock_path(file): file for file in (step.source, step.target)}.values():
                stack.enter_context(SessionLock.acquire(file, check_clients=False))
        yield


def _sessions_last(step: RelocationStep) -> tuple[bool, bool]:
    return step.session, "agent-" not in os.path.basename(step.source)


def _inverse(step: RelocationStep) -> RelocationStep:
    return msgspec.structs.replace(step, source=step.target, target=step.source)


def _moved_sessions(receipt: RelocationReceipt) -> Iterator[RelocationStep]:
    return (step for step in receipt.steps if step.session and step.action == "move")


class _StepExecutor:
    """Does the steps of one receipt, either way."""

    def __init__(self, receipt: RelocationReceipt, on_progress: ProgressCallback | None) -> None:
        self._receipt = receipt
        self._on_progress = on_progress
        self._paths = receipt.paths
        self._reverse_paths = self._paths.inverse()
        self._read_identities: dict[str, FileIdentity] = {}
        self.notes: list[str] = []

    # There

    def write_target(self, step: RelocationStep) -> None:
        """Write a file at its new place; its old one stays."""
        if step.action in _IN_PLACE_ACTIONS:
            return
        if os.path.lexists(step.target):
            if file_sum(step.target) != step.after:
                raise Busy(f"{step.target} is there, with other content", hint=self._resume_hint())
            return
        identity = file_identity(step.source)
        self._write_file(step.source, step.target, self._rewritten_source(step))
        if file_sum(step.target) != step.after:
            os.unlink(step.target)
            raise Busy(f"{step.source} changed since it was read", hint=self._resume_hint())
        self._read_identities[step.source] = identity

    def rewrite_in_place(self, step: RelocationStep) -> None:
        """Rewrite a file where it lies, unless that was done already."""
        if step.action == "merge":
            self._prepend_lines(step)
            return
        if step.action != "rewrite" or not os.path.isfile(step.source):
            return
        current = file_sum(step.source)
        if current == step.after:
            return
        if step.lines and self._has_marked_line(step):
            return
        if not step.lines and current != step.before:
            raise Busy(f"{step.source} changed since it was read", hint=self._resume_hint())
        self._exchange_content(step.source, self._rewritten_source(step))

    def _prepend_lines(self, step: RelocationStep) -> None:
        """Put lines before those of a file that all projects share: they are older."""
        if not os.path.exists(step.target):
            self._write_file(step.source, step.target, self._rewritten_source(step))
            return
        if self._has_marked_line(step):
            return
        existing = self._read_chunks(step.target)
        self._exchange_content(
            step.target, (chunk for chunks in (self._rewritten_source(step), existing) for chunk in chunks)
        )

    def remove_source(self, step: RelocationStep) -> None:
        """Remove what has a new place, if it is still what was read."""
        if step.action == "rewrite" or not os.path.lexists(step.source):
            return
        if step.action == "merge":
            _remove_file(step.source)
            return
        identity = self._read_identities.get(step.source)
        if identity is None or current_identity(step.source) != identity:
            rewritten_sum = compute_sum(self._rewritten_source(step))
            if rewritten_sum != file_sum(step.target):
                raise Busy(f"{step.source} was written to since", hint=self._resume_hint())
        _remove_file(step.source)

    def _rewritten_source(self, step: RelocationStep) -> Iterator[bytes]:
        return rewrite_paths(self._read_chunks(step.source), self._paths, step.mode)

    # And back

    def restore_source(self, step: RelocationStep) -> None:
        """Write a file at its old place again, with whatever was added to it since."""
        if step.action != "move" or os.path.lexists(step.source):
            return
        if not os.path.isfile(step.target):
            self.notes.append(f"{step.target} is gone")
            return
        self._write_file(step.target, step.source, self._original_content(step))

    def rewrite_back(self, step: RelocationStep) -> None:
        """Rewrite a file that stayed."""
        if step.action == "merge":
            if os.path.isfile(step.target) and self._has_marked_line(step):
                self._exchange_content(step.target, self._without_added_lines(step))
                if not os.path.getsize(step.target):
                    _remove_file(step.target)
            return
        if step.action != "rewrite" or not os.path.isfile(step.source):
            return
        current = file_sum(step.source)
        if current == step.before:
            return
        if current != step.after and step.lines:
            if self._has_marked_line(step):
                self._exchange_content(step.source, self._restore_marked_lines(step))
            return
        self._exchange_content(step.source, self._original_content(step))

    def remove_target(self, step: RelocationStep) -> None:
        """Remove what is at its old place again."""
        if step.action in _IN_PLACE_ACTIONS or not os.path.isfile(step.target):
            return
        if step.action == "add":
            if file_sum(step.target) != step.after:
                self.notes.append(f"{step.target} was written to since; it is left")
                return
        elif compute_sum(self._original_content(step)) != file_sum(step.source) and not self._is_untouched(step):
            self.notes.append(f"{step.source} and {step.target} differ; both are left")
            return
        _remove_file(step.target)

    def _is_untouched(self, step: RelocationStep) -> bool:
        """Say whether both are what they were when the move was cut off."""
        return file_sum(step.target) == step.after and file_sum(step.source) == step.before

    def _original_content(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file as it was before the move, and what was added to it since."""
        copy_path = self._receipt.copy_path(step)
        if step.exact or not os.path.exists(copy_path) or not _has_prefix(step.target, step.after):
            yield from rewrite_paths(self._read_chunks(step.target), self._reverse_paths, step.mode)
            return
        yield from _decompress_file(copy_path)
        with FileSource(step.target) as file:
            yield from rewrite_paths(file.chunks(step.after.size), self._reverse_paths, step.mode)

    def _restore_marked_lines(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file that others wrote to since, the lines that we rewrote as they were."""
        marks = set(step.lines)
        for line in rewrite_units(self._read_chunks(step.source), "lines"):
            yield self._reverse_paths.rewrite(line)[0] if line_mark(line) in marks else line

    def _without_added_lines(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file without the lines that joined it."""
        marks = set(step.lines)
        lines = rewrite_units(self._read_chunks(step.target), "lines")
        return (line for line in lines if line_mark(line) not in marks)

    def _has_marked_line(self, step: RelocationStep) -> bool:
        marks = set(step.lines)
        return any(line_mark(line) in marks for line in rewrite_units(self._read_chunks(step.target), "lines"))

    # Both ways

    def _read_chunks(self, path: str) -> Iterator[bytes]:
        with FileSource(path) as file:
            for chunk in file.chunks():
                if self._on_progress is not None:
                    self._on_progress(len(chunk))
                yield chunk

    def _write_file(self, source: str, target: str, chunks: Iterable[bytes]) -> None:
        with writing(target):
            make_private_folder(os.path.dirname(target))
            template = os.stat(source)
        with TempFile(target) as temp_file:
            temp_file.write(chunks)
            # The client deletes by age, and lists by it.
            temp_file.copy_metadata(template)
            place_new(temp_file, target)

    def _exchange_content(self, path: str, chunks: Iterable[bytes]) -> None:
        identity = file_identity(path)
        with TempFile(path) as temp_file:
            temp_file.write(chunks)
            exchange(temp_file, path, identity)

    def _resume_hint(self) -> str:
        return f"the same again goes on; `steno relocate --undo {self._receipt.id}` takes it back"


def _has_prefix(path: str, prefix_sum: FileSum) -> bool:
    with FileSource(path) as file:
        if file.size < prefix_sum.size:
            return False
        file.size = prefix_sum.size
        return compute_sum(file.chunks()) == prefix_sum


def _decompress_file(path: str) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor

    with open(path, "rb") as file:
        yield from ZstdDecompressor().read_to_iter(file)


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable_error(path, error) from error


def _remove_leftovers(receipt: RelocationReceipt) -> None:
    """Remove what killed runs left, folders that files moved out of, and those above them."""
    session_folders = {os.path.join(receipt.config, session_folder) for session_folder in _RELOCATED_FOLDERS}
    paths = {path for step in receipt.steps for path in (step.source, step.target)}
    folders = {*map(os.path.dirname, paths)}
    for folder in receipt.folders:
        # Clients make some that stay empty.
        folders.update(subfolder for subfolder, _, _ in os.walk(folder))
    for folder in sorted(folders, key=len, reverse=True):
        remove_stale_in_folder(folder)
        _remove_empty_folders(folder, session_folders)
    for top in session_folders:
        with suppress(OSError):
            sync_folder(top)


def _remove_empty_folders(folder: str, session_folders: set[str]) -> None:
    while any(folder.startswith(session_folder + os.sep) for session_folder in session_folders):
        try:
            os.rmdir(folder)
        except OSError:
            # Something is left in it, or it was removed with another.
            return
        folder = os.path.dirname(folder)
