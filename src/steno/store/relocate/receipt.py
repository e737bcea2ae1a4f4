"""What a move did, or was doing when it was cut off: a folder of its own below `moves/`.

`receipt.json` has the steps and how far they got; `kept/` the files whose paths cannot be rewritten
back exactly, as they were; `staged/` what was unpacked and is not in place yet. Beside all of them,
`moved.jsonl` says where sessions lie now (see `moved`).
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, Literal

import msgspec

from steno._version import __version__
from steno.errors import BadRequest, NotFound, Unreadable
from steno.format.loose import REFUSED
from steno.format.reroot import Reroot
from steno.store.clock import now
from steno.store.disk import make_folder, read_all
from steno.store.found import peek
from steno.store.lock import Lock
from steno.store.places import steno_home
from steno.store.read import FileSource
from steno.store.relocate.values import Plan, State, Step
from steno.store.replace import keep_new
from steno.store.scratch import Scratch, unwritable

__all__ = [
    "MOVES",
    "Receipt",
    "begun",
    "cut_off",
    "find_receipt",
    "moves_lock",
    "new_folder",
    "saved",
]

MOVES: Final = "moves"
_FILE: Final = "receipt.json"
_KEPT: Final = "kept"
_LOCK: Final = "lock"
_ENDED: Final = (b'{"state":"done"', b'{"state":"undone"')
_HEAD: Final = 32


class Receipt(msgspec.Struct, frozen=True):
    """A move: how far it got, and what it is made of."""

    state: State
    """First, so that the first bytes of the file tell it."""
    kind: Literal["move", "unpack"]
    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
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
    def paths(self) -> Reroot:
        """What the paths are from now on."""
        return Reroot(self.pairs)

    @property
    def staged(self) -> str:
        """Where what was unpacked waits."""
        return os.path.join(self.folder, "staged")

    def kept(self, step: Step) -> str:
        """Return where the file is kept as it was."""
        return os.path.join(self.folder, _KEPT, f"{self.steps.index(step)}.zst")


def moves_lock() -> Lock:
    """Return the lock of whoever moves something.

    Raises:
        Unwritable: steno's folder cannot be written.
    """
    folder = os.path.join(steno_home(), MOVES)
    try:
        make_folder(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    return Lock(os.path.join(folder, _LOCK), wait=False)


def new_folder() -> str:
    """Return a folder for a receipt that is not there yet.

    Raises:
        Unwritable: it cannot be made.
    """
    from time import gmtime, strftime

    stamp = strftime("%Y%m%dT%H%M%S", gmtime(now()))
    folder = os.path.join(steno_home(), MOVES, f"{stamp}-{os.urandom(3).hex()}")
    try:
        make_folder(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


def begun(plan: Plan, kind: Literal["move", "unpack"], folder: str) -> Receipt:
    """Write down what is about to be done, with copies of what rewriting cannot bring back.

    Raises:
        Unwritable: it cannot be written; nothing was done.
    """
    receipt = Receipt(
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
            _keep(step.source, receipt.kept(step))
    return saved(receipt, "begun")


def _keep(source: str, path: str) -> None:
    try:
        make_folder(os.path.dirname(path))
    except OSError as error:
        raise unwritable(path, error) from error
    with FileSource(source) as file, Scratch(path) as copy:
        copy.write(_packed(file.chunks()))
        keep_new(copy, path)


def _packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    from zstandard import ZstdCompressor

    packer = ZstdCompressor().compressobj()
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


def saved(receipt: Receipt, state: State) -> Receipt:
    """Write down how far it got.

    Raises:
        Unwritable: it cannot be written.
    """
    receipt = msgspec.structs.replace(receipt, state=state)
    path = os.path.join(receipt.folder, _FILE)
    with Scratch(path) as scratch:
        scratch.write([msgspec.json.encode(receipt), b"\n"])
        try:
            os.replace(scratch.path, path)
        except OSError as error:
            raise unwritable(path, error) from error
    return receipt


def find_receipt(name: str) -> Receipt:
    """Return a receipt by its id, its path, or `last`.

    Raises:
        NotFound: there is none.
        Unreadable: it cannot be read.
    """
    if name == "last":
        ids = _ids()
        if not ids:
            raise NotFound("nothing was moved yet")
        return _read(os.path.join(steno_home(), MOVES, ids[-1]))
    for folder in (os.path.join(steno_home(), MOVES, name), name, os.path.dirname(name)):
        if folder and os.path.isfile(os.path.join(folder, _FILE)):
            return _read(os.path.abspath(folder))
    raise NotFound(f"there is no receipt {name!r}", hint="the move itself said which it wrote")


def cut_off() -> Receipt | None:
    """Return the move that was begun and neither finished nor undone, if there is one."""
    for name in reversed(_ids()):
        folder = os.path.join(steno_home(), MOVES, name)
        head = peek(os.path.join(folder, _FILE), _HEAD, []) or b""
        if not head.startswith(_ENDED):
            with suppress(Unreadable, BadRequest):
                return _read(folder)
    return None


def _ids() -> list[str]:
    folder = os.path.join(steno_home(), MOVES)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if os.path.isfile(os.path.join(folder, name, _FILE)))


def _read(folder: str) -> Receipt:
    path = os.path.join(folder, _FILE)
    try:
        receipt = msgspec.json.decode(read_all(path), type=Receipt)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {(error.strerror or '').lower()}") from error
    except REFUSED as error:
        raise BadRequest(f"{path} is no receipt") from error
    return msgspec.structs.replace(receipt, folder=folder)
