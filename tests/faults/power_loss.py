"""Simulates power cuts: records what is done to files, then makes what a disk may have of it.

with Recording(root) as recording:
    ...                                  # anything that writes below the folder through `os`
    recording.acknowledge("saved")       # from here on it must survive
for state in crash_states(recording, 500):
    state.write(folder)                  # the files as they may be found after the cut

A power cut comes after any operation. What an fsync of the file (its bytes) or of the folder (its
names) has covered by then is there. Of everything else any part may be: any subset of operations,
and of a write its beginning, a number of whole pages, or only the room for it, filled with zeros.
Programs that are not Python (SQLite) are not recorded.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

__all__ = ["Recording", "State", "crash_states"]

T = TypeVar("T")
_PAGE: Final = 4096
_PATCHED: Final = (
    "open",
    "write",
    "fsync",
    "fdatasync",
    "ftruncate",
    "truncate",
    "replace",
    "rename",
    "link",
    "unlink",
    "remove",
    "mkdir",
    "rmdir",
)


class Operation(msgspec.Struct):
    """One thing that was done, in terms of the disk: bytes of a file, or names in a folder."""

    kind: Literal["write", "truncate", "names", "sync", "sync names"]
    file: int = 0
    """The file whose bytes it changes or flushes."""
    folder: str = ""
    """The folder whose names it changes or flushes."""
    offset: int = 0
    data: bytes = b""
    added: dict[str, int] = {}
    removed: tuple[str, ...] = ()


class State(msgspec.Struct):
    """What a disk has after a power cut."""

    files: dict[str, int]
    """The names, with the file that each stands for; 0 for a folder."""
    contents: dict[int, bytes]
    acknowledged: str
    """What was acknowledged last before the cut."""
    cut: int
    """After how many operations it came."""

    def write(self, folder: Path) -> None:
        """Lay the files out in a folder."""
        made: dict[int, Path] = {}
        for name in sorted(self.files):
            file, path = self.files[name], folder / name
            if _folder(name) and not path.parent.is_dir():
                # The folder itself was lost, with everything in it.
                continue
            if not file:
                path.mkdir(exist_ok=True)
            elif file in made:
                path.hardlink_to(made[file])
            else:
                path.write_bytes(self.contents.get(file, b""))
                made[file] = path


class Recording:
    """What is done below a folder, in order."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.operations: list[Operation] = []
        self.acknowledged: list[tuple[int, str]] = [(0, "")]
        self._real: dict[str, Callable[..., Any]] = {}
        self._numbers: dict[int, int] = {}
        """The files by their inode, which may be that of another file later."""
        self._count = 0
        self.base_files: dict[str, int] = {}
        self.base_contents: dict[int, bytes] = {}
        for path in sorted(Path(self.root).rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_dir():
                self.base_files[name] = 0
            else:
                number = self._number(path.stat().st_ino)
                self.base_files[name] = number
                self.base_contents[number] = path.read_bytes()

    def acknowledge(self, what: str) -> None:
        """Note that everything so far was promised."""
        self.acknowledged.append((len(self.operations), what))

    def __enter__(self) -> Self:
        for name in _PATCHED:
            self._real[name] = getattr(os, name)
            setattr(os, name, getattr(self, f"_{name}"))
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    # Names

    def _below(self, path: Any) -> str | None:
        """Return the name of a path below the root; None for any other."""
        if isinstance(path, int):
            return None
        given = Path(os.fsdecode(path))
        whole = str(given.parent.resolve() / given.name)
        if not whole.startswith(self.root + os.sep):
            return None
        return whole[len(self.root) + 1 :]

    def _number(self, inode: int, *, new: bool = False) -> int:
        if new or inode not in self._numbers:
            self._count += 1
            self._numbers[inode] = self._count
        return self._numbers[inode]

    def _file(self, descriptor: int) -> int | None:
        """Return the file below the root that a descriptor is of."""
        return self._numbers.get(os.fstat(descriptor).st_ino)

    def _names(self, folder: str, added: dict[str, int], removed: tuple[str, ...] = ()) -> None:
        self.operations.append(Operation(kind="names", folder=folder, added=added, removed=removed))

    # What is done

    def _open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        name = self._below(path) if "dir_fd" not in named else None
        existed = os.path.lexists(path) if name is not None else True
        descriptor = self._real["open"](path, flags, *more, **named)
        if name is None:
            return descriptor
        inode = os.fstat(descriptor).st_ino
        if not existed:
            number = self._number(inode, new=True)
            self._names(_folder(name), {name: number})
        elif flags & os.O_TRUNC:
            self.operations.append(Operation(kind="truncate", file=self._number(inode)))
        return descriptor

    def _write(self, descriptor: int, data: Any) -> int:
        written = self._real["write"](descriptor, data)
        file = self._file(descriptor)
        if file is not None:
            offset = os.lseek(descriptor, 0, os.SEEK_CUR) - written
            self.operations.append(Operation(kind="write", file=file, offset=offset, data=bytes(data)[:written]))
        return written

    def _fsync(self, descriptor: int) -> None:
        self._real["fsync"](descriptor)
        where = os.path.realpath(f"/proc/self/fd/{descriptor}")
        if Path(where).is_dir():
            if where == self.root or where.startswith(self.root + os.sep):
                folder = where[len(self.root) + 1 :]
                self.operations.append(Operation(kind="sync names", folder=folder))
            return
        file = self._file(descriptor)
        if file is not None:
            self.operations.append(Operation(kind="sync", file=file))

    def _fdatasync(self, descriptor: int) -> None:
        self._fsync(descriptor)

    def _ftruncate(self, descriptor: int, size: int) -> None:
        self._real["ftruncate"](descriptor, size)
        file = self._file(descriptor)
        if file is not None:
            self.operations.append(Operation(kind="truncate", file=file, offset=size))

    def _truncate(self, path: Any, size: int) -> None:
        self._real["truncate"](path, size)
        if self._below(path) is not None:
            file = self._number(Path(path).stat().st_ino)
            self.operations.append(Operation(kind="truncate", file=file, offset=size))

    def _replace(self, source: Any, target: Any) -> None:
        old, new = self._below(source), self._below(target)
        inode = os.lstat(source).st_ino
        self._real["replace"](source, target)
        if new is not None and old is not None:
            self._names(_folder(new), {new: self._number(inode)}, (old,))

    def _rename(self, source: Any, target: Any) -> None:
        self._replace(source, target)

    def _link(self, source: Any, target: Any, **named: Any) -> None:
        self._real["link"](source, target, **named)
        name = self._below(target)
        if name is not None:
            self._names(_folder(name), {name: self._number(os.lstat(target).st_ino)})

    def _unlink(self, path: Any, **named: Any) -> None:
        self._real["unlink"](path, **named)
        name = self._below(path) if "dir_fd" not in named else None
        if name is not None:
            self._names(_folder(name), {}, (name,))

    def _remove(self, path: Any, **named: Any) -> None:
        self._unlink(path, **named)

    def _mkdir(self, path: Any, *more: Any, **named: Any) -> None:
        self._real["mkdir"](path, *more, **named)
        name = self._below(path) if "dir_fd" not in named else None
        if name is not None:
            self._names(_folder(name), {name: 0})

    def _rmdir(self, path: Any, **named: Any) -> None:
        self._real["rmdir"](path, **named)
        name = self._below(path) if "dir_fd" not in named else None
        if name is not None:
            self._names(_folder(name), {}, (name,))


class _Chance:
    """Numbers that look like chance, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def number(self, below: int) -> int:
        self._count += 1
        digest = sha256(b"%d %d" % (self._seed, self._count)).digest()
        return int.from_bytes(digest[:8], "big") % below

    def choice(self, among: Sequence[T]) -> T:
        return among[self.number(len(among))]


def _folder(name: str) -> str:
    return name.rpartition(os.sep)[0]


def crash_states(recording: Recording, count: int, seed: int = 7) -> Iterator[State]:
    """Yield what a disk may have after power cuts, the same ones for the same seed."""
    chance = _Chance(seed)
    operations = recording.operations
    for number in range(count):
        # Every operation in turn, and right after what was promised more often.
        cut = chance.choice(recording.acknowledged)[0] if number % 4 == 3 else number * 7919 % (len(operations) + 1)
        yield _state(recording, cut, chance)


def _state(recording: Recording, cut: int, chance: _Chance) -> State:
    done = recording.operations[:cut]
    state = State(
        dict(recording.base_files),
        dict(recording.base_contents),
        [what for at, what in recording.acknowledged if at <= cut][-1],
        cut,
    )
    likely = chance.choice((0, 100, 50, 90, 10))
    for at, operation in enumerate(done):
        if operation.kind in ("sync", "sync names"):
            continue
        safe = _is_safe(operation, done[at + 1 :])
        if safe or chance.number(100) < likely:
            _apply(state, operation, chance, whole=safe)
    return state


def _is_safe(operation: Operation, after: list[Operation]) -> bool:
    """Say whether a later flush has brought an operation to the disk."""
    if operation.kind == "names":
        return any(each.kind == "sync names" and each.folder == operation.folder for each in after)
    return any(each.kind == "sync" and each.file == operation.file for each in after)


def _apply(state: State, operation: Operation, chance: _Chance, *, whole: bool) -> None:
    if operation.kind == "names":
        for name in operation.removed:
            state.files.pop(name, None)
        state.files.update(operation.added)
        return
    content = state.contents.get(operation.file, b"")
    if operation.kind == "truncate":
        state.contents[operation.file] = content[: operation.offset].ljust(operation.offset, b"\0")
        return
    data = operation.data if whole else _part(operation, chance)
    content = content.ljust(operation.offset, b"\0")
    end = operation.offset + len(data)
    state.contents[operation.file] = content[: operation.offset] + data + content[end:]


def _part(operation: Operation, chance: _Chance) -> bytes:
    """Return what may be on the disk of a write that was not flushed."""
    data = operation.data
    how = chance.choice(("all", "all", "pages", "bytes", "zeros"))
    if how == "pages":
        edge = (operation.offset // _PAGE + 1) * _PAGE - operation.offset
        edges = range(edge, len(data), _PAGE)
        return data[: chance.choice(edges)] if edges else data
    if how == "bytes":
        return data[: chance.number(len(data) + 1)]
    return b"\0" * len(data) if how == "zeros" else data
