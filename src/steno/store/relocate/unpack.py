"""Sessions from another machine: proven first, then put below this one's config folder.

Nothing is taken from the archive but the bytes of files that its manifest names, each at its place,
as long as it says and with the hash it says. Names that lead anywhere else, links, anything more or
less, and archives that unpack to a thousand times their size, are refused before a file is placed.
"""

import os
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from shutil import disk_usage, rmtree
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import BadRequest, Unreadable, Unwritable
from steno.format.reroot import Reroot
from steno.store.disk import make_folder
from steno.store.found import is_folder, listed
from steno.store.places import steno_home
from steno.store.read import FileSource
from steno.store.relocate.belongs import belongings, mode_of
from steno.store.relocate.manifest import (
    HISTORY,
    MANIFEST,
    MOST,
    Manifest,
    Packed,
    member,
    read_manifest,
)
from steno.store.relocate.plan import checked, refuse_if_live, refuse_root, steps_of, turned
from steno.store.relocate.receipt import MOVES, moves_lock
from steno.store.relocate.rewrite import mark_of, rewritten
from steno.store.relocate.values import Move, Plan, Step
from steno.store.scratch import Scratch, unwritable

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionReader

__all__ = ["STAGED", "forget_staged", "plan_unpack"]

STAGED: Final = "staged"
_BLOCK: Final = tarfile.BLOCKSIZE
_PIECE: Final = 1 << 20
_WINDOW: Final = 128 << 20
_TIMES: Final = 1000
_SMALL: Final = 64 << 20
_ROOM: Final = 2.2
"""How much of the disk is needed: once staged, once in place, and a little."""


def plan_unpack(
    path: str, new: str, config: str, folder: str, done: Callable[[int], None] | None = None
) -> Plan:
    """Unpack an archive beside the receipt in `folder`, prove it, and plan where it all goes.

    Raises:
        BadRequest: it is no such archive, is damaged or hostile, or a session is here already.
        Unreadable: it cannot be read.
        Unwritable: there is no room for it.
    """
    refuse_root(new)
    config = os.path.realpath(config)
    new = os.path.realpath(new)
    staged = os.path.join(folder, STAGED)
    with moves_lock():
        _forget_left(folder)
        manifest = _Archive(path).unpack(staged, done)
    have = belongings(staged, manifest.project, new)
    moves = [
        msgspec.structs.replace(move, target=config + move.target[len(staged) :], action="add")
        for move in have.moves
    ]
    moves += _elsewhere(staged, config)
    folders = [
        (_joined(manifest.config, source, staged), config + target[len(staged) :])
        for source, target in have.folders
    ]
    pairs = turned(manifest.project, new, config, folders)
    plan = Plan(manifest.project, new, config, tuple(pairs), notes=tuple(have.notes))
    steps = [*steps_of(moves, Reroot(pairs)), *_typed(staged, config, Reroot(pairs))]
    plan = checked(plan, steps)
    refuse_if_live(msgspec.structs.replace(plan, old=plan.new, steps=()))
    return plan


def _joined(config: str, source: str, staged: str) -> str:
    """Return where a folder lay on the other machine, as that machine writes paths."""
    below = source[len(staged) :].replace(os.sep, "/")
    windows = "\\" in config and not config.startswith("/")
    return config + (below.replace("/", "\\") if windows else below)


def _elsewhere(staged: str, config: str) -> Iterator[Move]:
    for top in ("file-history", "tasks", "todos"):
        for source in _files(os.path.join(staged, top)):
            yield Move(source, config + source[len(staged) :], "bytes", "add")


def _files(folder: str) -> Iterator[str]:
    if not os.path.isdir(folder):
        return
    for entry in listed(folder, []):
        if is_folder(entry, links=False):
            yield from _files(entry.path)
        else:
            yield entry.path


def _typed(staged: str, config: str, paths: Reroot) -> Iterator[Step]:
    """Yield the step that has typed prompts join those that were typed here."""
    source, target = os.path.join(staged, HISTORY), os.path.join(config, HISTORY)
    if not os.path.isfile(source):
        return
    (step,) = steps_of([Move(source, target, mode_of(source), "merge")], paths)
    with FileSource(source) as file:
        marks = [mark_of(each) for each in rewritten(file.chunks(), paths, "lines")]
    yield msgspec.structs.replace(step, lines=tuple(marks))


def forget_staged(folder: str) -> None:
    """Remove what was unpacked and is not wanted after all."""
    rmtree(folder, ignore_errors=True)


def _forget_left(folder: str) -> None:
    """Remove what runs left that were killed while they unpacked: folders without a receipt."""
    above = os.path.join(steno_home(), MOVES)
    for entry in listed(above, []):
        if not is_folder(entry, links=False) or entry.path == folder:
            continue
        if not os.path.exists(os.path.join(entry.path, "receipt.json")):
            rmtree(entry.path, ignore_errors=True)


class _Archive:
    """One archive, read from its beginning to its end and no further."""

    def __init__(self, path: str) -> None:
        self._path = path

    def unpack(self, staged: str, done: Callable[[int], None] | None) -> Manifest:
        """Write every file below a folder, each proven; return what they are."""
        from zstandard import ZstdDecompressor, ZstdError

        try:
            with FileSource(self._path) as file, open(self._path, "rb") as raw:
                unpacker = ZstdDecompressor(max_window_size=_WINDOW)
                with unpacker.stream_reader(raw) as stream:
                    manifest = self._manifest(stream, file.size)
                    for number, packed in enumerate(manifest.files):
                        self._file(stream, number, packed, staged)
                        if done is not None:
                            done(packed.size)
                    self._end(stream)
        except ZstdError as error:
            raise BadRequest(f"{self._path} is damaged, or no such archive") from error
        except Unreadable as error:
            hint = "`steno relocate OLD --to-machine FILE` packs one"
            raise Unreadable(str(error), hint=hint) from error
        except OSError as error:
            if isinstance(error, Unwritable):
                raise
            raise unwritable(staged, error) from error
        return manifest

    def _manifest(self, stream: "ZstdDecompressionReader", size: int) -> Manifest:
        length = self._head(stream, MANIFEST)
        if length > MOST:
            raise BadRequest(f"{self._path}: its list of files is too long")
        manifest = read_manifest(self._exactly(stream, length))
        self._exactly(stream, -length % _BLOCK)
        if manifest.size > max(_SMALL, size * _TIMES):
            raise BadRequest(f"{self._path} would unpack to {manifest.size:,} bytes; refused")
        if manifest.size * _ROOM > disk_usage(steno_home()).free:
            raise Unwritable(f"there is no room for the {manifest.size:,} bytes of {self._path}")
        return manifest

    def _head(self, stream: "ZstdDecompressionReader", name: str) -> int:
        """Return how long the next member is, which must be a plain file of that name."""
        block = self._exactly(stream, _BLOCK)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise self._odd(name) from error
        if info.name != name or info.type != tarfile.REGTYPE or info.size < 0:
            raise self._odd(name)
        return info.size

    def _odd(self, name: str) -> BadRequest:
        about = f"{self._path} has something else where {name} should be"
        return BadRequest(about, hint="only what `steno relocate --to-machine` wrote is unpacked")

    def _file(
        self, stream: "ZstdDecompressionReader", number: int, packed: Packed, staged: str
    ) -> None:
        if self._head(stream, member(number)) != packed.size:
            raise BadRequest(f"{packed.name!r} in the archive is not as long as it should be")
        target = os.path.join(staged, *packed.name.split("/"))
        make_folder(os.path.dirname(target))
        digest = sha256()
        with Scratch(target) as scratch:
            scratch.write(self._pieces(stream, packed.size, digest.update))
            if digest.hexdigest() != packed.sha256:
                raise BadRequest(f"{packed.name!r} in the archive is not what was packed")
            os.utime(scratch.path, ns=(packed.mtime_ns, packed.mtime_ns))
            os.replace(scratch.path, target)
        self._exactly(stream, -packed.size % _BLOCK)

    def _pieces(
        self, stream: "ZstdDecompressionReader", size: int, seen: Callable[[bytes], None]
    ) -> Iterator[bytes]:
        while size:
            piece = self._exactly(stream, min(size, _PIECE))
            seen(piece)
            size -= len(piece)
            yield piece

    def _exactly(self, stream: "ZstdDecompressionReader", size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = stream.read(size)
            if not part:
                raise BadRequest(f"{self._path} ends in the middle", hint="copy it once more")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _end(self, stream: "ZstdDecompressionReader") -> None:
        if any(self._exactly(stream, 2 * _BLOCK)) or stream.read(1):
            raise BadRequest(f"{self._path} goes on behind its last file; refused")
