"""Sessions that are only in the archive, as if they had been found on the disk."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.format.paths import is_uuid, transcript_place
from steno.store.archive.catalogue import Entry, read_entries
from steno.store.archive.index import File, Index, read_index
from steno.store.archive.opened import CATALOGUE, SESSIONS, Archived
from steno.store.found import Found
from steno.store.places import steno_home
from steno.store.walk import folder_names

if TYPE_CHECKING:
    from steno.store.relocate.moved import Moved

__all__ = ["agents_in", "beside", "gone_at", "gone_below", "is_kept", "kept_as", "kept_number"]

_SUFFIX: Final = ".jsonl"


def _catalogue() -> str:
    return os.path.join(steno_home(), *CATALOGUE)


def gone_below(roots: Iterable[str], living: Iterable[Found]) -> list[Archived]:
    """Return the sessions that were kept from below the roots and are no longer there.

    One that lives on elsewhere below the roots, with at least as much in it, was only moved; so was
    one of which `steno relocate` knows where it lies.
    """
    catalogue = _catalogue()
    entries = read_entries(catalogue)[0]
    tops = [(os.path.realpath(root), root) for root in roots]
    there, sizes = _known(living)
    moved = _moved() if entries else {}
    found: list[Archived] = []
    for entry in sorted(entries.values(), key=_size, reverse=True):
        root = next((root for top, root in tops if _is_below(entry.path, top)), None)
        if root is None or entry.path in there:
            continue
        if (move := moved.get(entry.path)) and move.new in there and entry.size <= move.size:
            continue
        name = os.path.basename(entry.path)
        if is_uuid(name.removesuffix(_SUFFIX)):
            if sizes.get(name, -1) >= entry.size:
                continue
            sizes[name] = entry.size
        found.append(_archived(entry, catalogue, root))
    return found


def _moved() -> "dict[str, Moved]":
    from steno.store.relocate.moved import moved_to

    return moved_to()


def _known(living: Iterable[Found]) -> tuple[set[str], dict[str, int]]:
    """Return where the living lie, really, and how big those of each name are."""
    folders: dict[str, str] = {}
    there: set[str] = set()
    sizes: dict[str, int] = {}
    for found in living:
        folder, name = os.path.split(found.path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or os.curdir)
        there.add(os.path.join(folders[folder], name))
        sizes[name] = max(found.size, sizes.get(name, -1))
    return there, sizes


def _size(entry: Entry) -> tuple[int, int]:
    return entry.size, entry.mtime_ns


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def _archived(entry: Entry, catalogue: str, root: str) -> Archived:
    place = transcript_place(folder_names(entry.path))
    if place.role != "session":
        place = msgspec.structs.replace(place, role="session")
    folder = os.path.join(os.path.dirname(catalogue), SESSIONS, entry.folder)
    return Archived(
        entry.path, entry.size, entry.mtime_ns, place, root, folder=folder, number=entry.number
    )


def gone_at(path: str) -> Archived | None:
    """Return the session, or the sub-agent's transcript, that was kept from a path."""
    catalogue = _catalogue()
    folder, name = os.path.split(path)
    folder = os.path.realpath(folder or os.curdir)
    real = os.path.join(folder, name)
    kept = _read(catalogue)
    if real in kept.entries:
        return _archived(kept.entries[real], catalogue, path)
    near = [entry for each in _above(real) if (entry := kept.entries.get(each)) is not None]
    if name.startswith("agent-"):
        near += kept.folders.get(folder, ())
    for entry in near:
        for agent in agents_in(_archived(entry, catalogue, path)):
            if agent.path == real:
                return agent
    return None


def is_kept(found: Found) -> bool:
    """Say whether the archive has a session that is still there, with all that is in it now."""
    return kept_as(found.path, found.size, found.mtime_ns)


def kept_as(path: str | bytes, size: int, mtime_ns: int) -> bool:
    """Say whether the archive has the session of a path as it is: of that size and time."""
    entries = _entries()
    if not entries:
        return False
    folder, name = os.path.split(os.fsdecode(path))
    entry = entries.get(os.path.join(os.path.realpath(folder), name))
    return entry is not None and (entry.size, entry.mtime_ns) == (size, mtime_ns)


def kept_number() -> int:
    """Return how many sessions the archive has."""
    return len(_entries())


def _entries() -> dict[str, Entry]:
    try:
        return _read(_catalogue()).entries
    except Unreadable:
        return {}


def _above(path: str) -> Iterator[str]:
    """Yield where a session would lie whose own folder a path is in."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        yield folder + _SUFFIX
        yield folder
        folder = os.path.dirname(folder)


class _Kept(msgspec.Struct):
    entries: dict[str, Entry]
    folders: dict[str, list[Entry]]
    """The same, by the folder they were in."""


def _read(catalogue: str) -> _Kept:
    """Return the catalogue; it is read again only when it was written since."""
    try:
        seen = os.stat(catalogue)
    except OSError:
        return _read_as(catalogue, 0, 0, 0)
    return _read_as(catalogue, seen.st_mtime_ns, seen.st_size, seen.st_ino)


@lru_cache(maxsize=1)
def _read_as(catalogue: str, _mtime_ns: int, _size: int, _inode: int) -> _Kept:
    kept = _Kept(read_entries(catalogue)[0], {})
    for path, entry in kept.entries.items():
        kept.folders.setdefault(os.path.dirname(path), []).append(entry)
    return kept


def agents_in(session: Archived) -> list[Archived]:
    """Return the sub-agents of a session that is only in the archive."""
    index = _index(session)
    if index is None:
        return []
    agents = [_agent(file, session) for file in index.newest() if file.role == "agent"]
    return sorted(agents, key=_path)


def _agent(file: File, session: Archived) -> Archived:
    place = transcript_place(folder_names(file.path))
    place = msgspec.structs.replace(
        place, role="agent", session_id=file.line.session_id, agent_id=file.line.agent_id
    )
    return Archived(
        file.path,
        file.size,
        file.mtime_ns,
        place,
        session.root,
        folder=session.folder,
        number=file.number,
    )


def _path(found: Found) -> str:
    return found.path


def beside(found: Archived, path: str, limit: int) -> bytes | None:
    """Return the first bytes of another file that was kept with a session; None if it was not."""
    from steno.store.archive.source import ArchiveSource

    index = _index(found)
    file = index.latest(path) if index else None
    if index is None or file is None:
        return None
    try:
        return ArchiveSource(found.folder, file.number, index).read(0, limit)
    except Unreadable:
        return None


def _index(found: Archived) -> Index | None:
    try:
        return read_index(found.folder)
    except Unreadable:
        return None
