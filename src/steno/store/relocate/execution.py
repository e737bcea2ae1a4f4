"""Executes a relocation so that it can be interrupted at any write, then resumed or undone.

First every file is written to its new path, sessions last; then files shared by all projects are rewritten; then the
old files are removed, sessions first. So every session is complete at one of its two paths at all times. The receipt is
a directory below `moves/`: `receipt.json` has the steps and the progress, `kept/` the originals of files whose
rewriting cannot be reversed, `staged/` unpacked files that are not in place yet. Finished steps are skipped, so
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
    """The record of a move: its state, paths and steps."""

    state: RelocationState
    """First field, so that the first bytes of the file show the state."""
    kind: Literal["move", "unpack"]
    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    steps: tuple[RelocationStep, ...]
    folders: tuple[str, ...] = ()
    folder: str = ""
    """Directory of the receipt."""
    version: str = ""
    time: float = 0.0

    @property
    def id(self) -> str:
        """ID of the move: the name of the receipt directory."""
        return os.path.basename(self.folder)

    @property
    def paths(self) -> PathRewriter:
        """Rewriter from old to new paths."""
        return PathRewriter(self.pairs)

    @property
    def staging_folder(self) -> str:
        """Directory of unpacked files that are not in place yet."""
        return os.path.join(self.folder, "staged")

    def copy_path(self, step: RelocationStep) -> str:
        """Return the path of the copy of a step's original file."""
        return os.path.join(self.folder, _COPIES_FOLDER, f"{self.steps.index(step)}.zst")


def relocation_lock() -> FileLock:
    """Return the lock for moves. Raises Unwritable if steno's home directory cannot be written."""
    folder = os.path.join(steno_home(), RECEIPTS_FOLDER)
    with writing(folder):
        make_private_folder(folder)
    return FileLock(os.path.join(folder, _LOCK_FILE), wait=False)


def new_receipt_folder() -> str:
    """Create a receipt directory and return its path. Raises Unwritable if it cannot be created."""
    from time import gmtime, strftime

    stamp = strftime("%Y%m%dT%H%M%S", gmtime(now()))
    folder = os.path.join(steno_home(), RECEIPTS_FOLDER, f"{stamp}-{os.urandom(3).hex()}")
    with writing(folder):
        make_private_folder(folder)
    return folder


def begin_receipt(plan: RelocationPlan, kind: Literal["move", "unpack"], folder: str) -> RelocationReceipt:
    """Write the receipt of a planned move, with copies of files whose rewriting cannot be reversed.

    Raises Unwritable if it cannot be written; nothing else was changed.
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
    """Yield bytes compressed with zstd; `options` are those of its compressor."""
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(**options).compressobj()
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def save_receipt(receipt: RelocationReceipt, state: RelocationState) -> RelocationReceipt:
    """Write the receipt with a new state. Raises Unwritable if it cannot be written."""
    receipt = msgspec.structs.replace(receipt, state=state)
    path = os.path.join(receipt.folder, _RECEIPT_FILE)
    with TempFile(path) as temp_file:
        temp_file.write([msgspec.json.encode(receipt), b"\n"])
        temp_file.replace(path, sync=False)
    return receipt


def find_receipt(name: str) -> RelocationReceipt:
    """Return a receipt by its ID, its path, or `last`.

    Raises NotFound if it does not exist, or Unreadable if it cannot be read.
    """
    if name == "last":
        ids = _receipt_ids()
        if not ids:
            raise NotFound("no moves recorded")
        return _read_receipt(os.path.join(steno_home(), RECEIPTS_FOLDER, ids[-1]))
    for folder in (os.path.join(steno_home(), RECEIPTS_FOLDER, name), name, os.path.dirname(name)):
        if folder and os.path.isfile(os.path.join(folder, _RECEIPT_FILE)):
            return _read_receipt(os.path.abspath(folder))
    raise NotFound(f"no receipt matches {name!r}", hint="Use the ID that `steno relocate` printed, or `last`.")


def find_interrupted() -> RelocationReceipt | None:
    """Return the move that was started but neither finished nor undone, if any."""
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
        raise BadRequest(f"{path} is not a receipt") from error
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
    """Execute a plan; return the receipt, which can undo it.

    Raises Busy if another move is running or was interrupted, or a session is being written, or Unwritable if a file
    cannot be written; repeating the move resumes it.
    """
    with relocation_lock():
        interrupted = find_interrupted()
        if interrupted is not None:
            raise Busy(
                f"the move {interrupted.id} of {interrupted.old} was interrupted",
                hint=f"Run `steno relocate --undo {interrupted.id}` to undo it.",
            )
        return _complete(begin_receipt(plan, kind, folder or new_receipt_folder()), on_progress)


def resume(receipt: RelocationReceipt, on_progress: ProgressCallback | None = None) -> RelocationReceipt:
    """Resume an interrupted move.

    Raises BadRequest if it was finished or is being undone, Busy if a session has changed at both paths, or Unwritable
    if a file cannot be written.
    """
    if receipt.state not in _UNFINISHED_STATES:
        raise BadRequest(f"cannot resume the move {receipt.id}: {receipt.state}")
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
    """Undo a move, even an interrupted one; return the receipt and notes on what could not be restored.

    Content written to sessions since the move is kept, with its paths rewritten. Raises BadRequest if the move was
    undone already, Busy if a client uses one of its sessions, or Unwritable if a file cannot be written; repeating the
    undo resumes it.
    """
    if receipt.state == "undone":
        raise BadRequest(f"the move {receipt.id} was already undone")
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
    """Hold the lock of a session at both of its paths while its file is written or removed."""
    with ExitStack() as stack:
        if step.session:
            # Both paths may have the same lock.
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
    """Executes or undoes the steps of one receipt."""

    def __init__(self, receipt: RelocationReceipt, on_progress: ProgressCallback | None) -> None:
        self._receipt = receipt
        self._on_progress = on_progress
        self._paths = receipt.paths
        self._reverse_paths = self._paths.inverse()
        self._read_identities: dict[str, FileIdentity] = {}
        self.notes: list[str] = []

    # Moving

    def write_target(self, step: RelocationStep) -> None:
        """Write a file to its new path; the old file stays."""
        if step.action in _IN_PLACE_ACTIONS:
            return
        if os.path.lexists(step.target):
            if file_sum(step.target) != step.after:
                raise Busy(f"{step.target} already exists with different content", hint=self._resume_hint())
            return
        identity = file_identity(step.source)
        self._write_file(step.source, step.target, self._rewritten_source(step))
        if file_sum(step.target) != step.after:
            os.unlink(step.target)
            raise Busy(f"{step.source} changed since it was read", hint=self._resume_hint())
        self._read_identities[step.source] = identity

    def rewrite_in_place(self, step: RelocationStep) -> None:
        """Rewrite a file in place, unless this was already done."""
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
        """Insert older lines at the start of a file shared by all projects."""
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
        """Remove a file that has a new path, if it has not changed since it was read."""
        if step.action == "rewrite" or not os.path.lexists(step.source):
            return
        if step.action == "merge":
            _remove_file(step.source)
            return
        identity = self._read_identities.get(step.source)
        if identity is None or current_identity(step.source) != identity:
            rewritten_sum = compute_sum(self._rewritten_source(step))
            if rewritten_sum != file_sum(step.target):
                raise Busy(f"{step.source} was modified", hint=self._resume_hint())
        _remove_file(step.source)

    def _rewritten_source(self, step: RelocationStep) -> Iterator[bytes]:
        return rewrite_paths(self._read_chunks(step.source), self._paths, step.mode)

    # Undoing

    def restore_source(self, step: RelocationStep) -> None:
        """Restore a file at its old path, including later additions."""
        if step.action != "move" or os.path.lexists(step.source):
            return
        if not os.path.isfile(step.target):
            self.notes.append(f"{step.target} no longer exists")
            return
        self._write_file(step.target, step.source, self._original_content(step))

    def rewrite_back(self, step: RelocationStep) -> None:
        """Restore a file that was rewritten in place."""
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
        """Remove a file whose old path was restored."""
        if step.action in _IN_PLACE_ACTIONS or not os.path.isfile(step.target):
            return
        if step.action == "add":
            if file_sum(step.target) != step.after:
                self.notes.append(f"{step.target} was modified; not removed")
                return
        elif compute_sum(self._original_content(step)) != file_sum(step.source) and not self._is_untouched(step):
            self.notes.append(f"{step.source} and {step.target} differ; both were kept")
            return
        _remove_file(step.target)

    def _is_untouched(self, step: RelocationStep) -> bool:
        """Return whether both files are unchanged since the move was interrupted."""
        return file_sum(step.target) == step.after and file_sum(step.source) == step.before

    def _original_content(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file as before the move, followed by later additions."""
        copy_path = self._receipt.copy_path(step)
        if step.exact or not os.path.exists(copy_path) or not _has_prefix(step.target, step.after):
            yield from rewrite_paths(self._read_chunks(step.target), self._reverse_paths, step.mode)
            return
        yield from _decompress_file(copy_path)
        with FileSource(step.target) as file:
            yield from rewrite_paths(file.chunks(step.after.size), self._reverse_paths, step.mode)

    def _restore_marked_lines(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file that other processes have modified, restoring only the lines that were rewritten."""
        marks = set(step.lines)
        for line in rewrite_units(self._read_chunks(step.source), "lines"):
            yield self._reverse_paths.rewrite(line)[0] if line_mark(line) in marks else line

    def _without_added_lines(self, step: RelocationStep) -> Iterator[bytes]:
        """Yield a file without the lines that were added."""
        marks = set(step.lines)
        lines = rewrite_units(self._read_chunks(step.target), "lines")
        return (line for line in lines if line_mark(line) not in marks)

    def _has_marked_line(self, step: RelocationStep) -> bool:
        marks = set(step.lines)
        return any(line_mark(line) in marks for line in rewrite_units(self._read_chunks(step.target), "lines"))

    # Moving and undoing

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
            # Claude Code sorts and deletes sessions by modification time.
            temp_file.copy_metadata(template)
            place_new(temp_file, target)

    def _exchange_content(self, path: str, chunks: Iterable[bytes]) -> None:
        identity = file_identity(path)
        with TempFile(path) as temp_file:
            temp_file.write(chunks)
            exchange(temp_file, path, identity)

    def _resume_hint(self) -> str:
        return f"Run the command again to resume, or `steno relocate --undo {self._receipt.id}` to undo."


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
    """Remove temporary files of killed processes and empty directories."""
    session_folders = {os.path.join(receipt.config, session_folder) for session_folder in _RELOCATED_FOLDERS}
    paths = {path for step in receipt.steps for path in (step.source, step.target)}
    folders = {*map(os.path.dirname, paths)}
    for folder in receipt.folders:
        # Claude Code creates some directories that stay empty.
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
            # The directory is not empty, or was already removed.
            return
        folder = os.path.dirname(folder)
