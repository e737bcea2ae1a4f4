"""A project's sessions in one file for another machine: a tar packed by zstd, the manifest first.

Members are called by number; which file each is, how long and with which hash, stands in the
manifest. So nothing in the archive but that one list can say where something goes.
"""

import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import msgspec

from steno._version import __version__
from steno.errors import Busy, NotFound, Unreadable, Unwritable
from steno.format.loose import loose
from steno.format.paths import is_uuid
from steno.store.clock import now
from steno.store.discover import files_below
from steno.store.read import FileSource
from steno.store.relocate.belongs import Belongings, belongings, is_inside
from steno.store.relocate.manifest import (
    FORMAT,
    HISTORY,
    MANIFEST,
    Manifest,
    Packed,
    member,
    travels,
)
from steno.store.relocate.plan import refuse_root
from steno.store.relocate.rewrite import pieces, sum_of
from steno.store.relocate.values import Sum
from steno.store.replace import keep_new
from steno.store.scratch import Scratch

__all__ = ["Packing", "pack"]

_LEVEL: Final = 10
_MODE: Final = 0o600
_BLOCK: Final = tarfile.BLOCKSIZE
_NANO: Final = 10**9


class Packing(msgspec.Struct, frozen=True):
    """What was packed, and what was left out."""

    manifest: Manifest
    left: tuple[str, ...]


def pack(
    project: str, config: str, path: str, done: Callable[[int], None] | None = None
) -> Packing:
    """Write the sessions of a project into one new file; nothing else is changed.

    Raises:
        BadRequest: it is a whole disk.
        NotFound: there is nothing of such a project.
        Busy: a session changed while it was read.
        Unwritable: the file is there already, or cannot be written.
    """
    refuse_root(project)
    config = os.path.realpath(config)
    root, have = _have(project, config)
    sources = {_below(move.source, config): move.source for move in have.moves}
    ids = {os.path.basename(name).removesuffix(".jsonl") for name in sources}
    sources |= dict(_around(config, {each for each in ids if is_uuid(each)}))
    left = tuple(source for name, source in sources.items() if not travels(name))
    wanted = sorted((name, source) for name, source in sources.items() if travels(name))
    files = [_packed(name, source) for name, source in wanted]
    typed = _typed(os.path.join(config, HISTORY), root)
    if typed:
        told = sum_of([typed])
        files.append(Packed(HISTORY, told.size, told.sha256, int(now()) * _NANO))
    manifest = Manifest(FORMAT, root, config, tuple(files), __version__, now())
    bodies = [*((source, None) for _, source in wanted), *([("", typed)] if typed else [])]
    with Scratch(path) as scratch:
        try:
            scratch.write(_compressed(_tar(manifest, bodies, done)))
        except Unwritable as error:
            # Not the writing failed, but what was to be written.
            if isinstance(error.__cause__, Busy | Unreadable):
                raise error.__cause__ from None
            raise
        keep_new(scratch, path)
    return Packing(manifest, left)


def _have(project: str, config: str) -> tuple[str, Belongings]:
    # As in `plan`: by the name that is given, else by where it really lies.
    for root in dict.fromkeys((os.path.abspath(project), os.path.realpath(project))):
        have = belongings(config, root, root)
        if have.moves:
            return root, have
    raise NotFound(
        f"there is nothing of a project at {project}", hint="`steno ls` says where sessions ran"
    )


def _below(path: str, config: str) -> str:
    return os.path.relpath(path, config).replace(os.sep, "/")


def _around(config: str, ids: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what lies elsewhere in the config folder for some sessions."""
    for top in ("file-history", "tasks"):
        for each in sorted(ids):
            folder = os.path.join(config, top, each)
            for found in files_below(folder, [], prefix=f"{top}/{each}"):
                yield _below(found.path, config), found.path
    for found in files_below(os.path.join(config, "todos"), [], prefix="todos"):
        if found.place.session_id in ids:
            yield _below(found.path, config), found.path


def _packed(name: str, source: str) -> Packed:
    with FileSource(source) as file:
        told = sum_of(file.chunks())
        return Packed(name, told.size, told.sha256, os.stat(source).st_mtime_ns)


def _typed(path: str, root: str) -> bytes:
    """Return the lines of the prompts that were typed in a project."""
    if not os.path.isfile(path):
        return b""
    with FileSource(path) as file:
        lines = list(pieces(file.chunks(), "lines"))
    return b"".join(line for line in lines if line.endswith(b"\n") and _is_of(line, root))


def _is_of(line: bytes, root: str) -> bool:
    told = loose(line)
    project = cast("dict[str, Any]", told).get("project") if isinstance(told, dict) else None
    return isinstance(project, str) and is_inside(project, root)


def _tar(
    manifest: Manifest,
    bodies: Iterable[tuple[str, bytes | None]],
    done: Callable[[int], None] | None,
) -> Iterator[bytes]:
    about = msgspec.json.encode(manifest)
    yield from _member(
        MANIFEST, Packed(MANIFEST, len(about), "", int(manifest.time) * _NANO), [about]
    )
    for number, (packed, (source, typed)) in enumerate(zip(manifest.files, bodies, strict=True)):
        yield from _member(member(number), packed, _body(source, typed, packed))
        if done is not None:
            done(packed.size)
    yield bytes(2 * _BLOCK)


def _member(name: str, packed: Packed, body: Iterable[bytes]) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = packed.size, _MODE, packed.mtime_ns // _NANO
    yield info.tobuf(tarfile.GNU_FORMAT)
    yield from body
    yield bytes(-packed.size % _BLOCK)


def _body(source: str, typed: bytes | None, packed: Packed) -> Iterator[bytes]:
    """Yield a file, which must be what the manifest says."""
    if typed is not None:
        yield typed
        return
    with FileSource(source) as file:
        if file.size < packed.size:
            raise Busy(f"{source} changed while it was read", hint="nothing was written; try again")
        file.size = packed.size
        told = sum_of(file.chunks())
        if told != Sum(packed.size, packed.sha256):
            raise Busy(f"{source} changed while it was read", hint="nothing was written; try again")
        yield from file.chunks()


def _compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    from zstandard import ZstdCompressor

    packer = ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()
