"""The archive's catalogue: one line per session, sessions that exist only in the archive, and moved sessions.

The catalogue repeats the journals of the archived sessions; if it is lost, it is rebuilt from them.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.paths import JSONL_SUFFIX, classify_transcript, is_uuid
from steno.store.archive.file_access import SESSIONS_FOLDER
from steno.store.archive.journal import (
    UNSAFE_NAME,
    ArchiveSource,
    FileGeneration,
    Journal,
    decode_line,
    decode_path,
    encode_line,
    encode_path,
    read_journal,
)
from steno.store.atomic import TempFile, append_lines, read_all, reading, remove_stale_temp_files, sync_file, writing
from steno.store.discovery import ArchivedFile, DiscoveredFile, is_below, path_context
from steno.store.environment import CATALOGUE_PATH, steno_home

_MAX_STEM_LENGTH: Final = 80
_SPARE_LINES: Final = 200
_DIGEST_LENGTH: Final = 12


class CatalogueEntry(msgspec.Struct, frozen=True):
    """An archived session as of its last archiving."""

    said: str = msgspec.field(name="path")
    raw: str = ""
    folder: str = ""
    """Name of the session's archive directory."""
    number: int = 0
    """Number of the session's own file in the directory; its last generation."""
    size: int = 0
    mtime_ns: int = 0
    files: int = 0
    total: int = 0
    """Total bytes of all generations of all files."""
    packed: int = 0
    """Compressed size of all generations, without replaced damaged copies."""
    generations: int = 1
    """Number of generations of the session's own file."""
    state: str = ""
    latest: int = 0
    """Total bytes of the last generations of all files."""

    @property
    def path(self) -> str:
        """Original path of the session."""
        return decode_path(self.said, self.raw)


_ENTRY_DECODER: Final = msgspec.json.Decoder(CatalogueEntry)


def folder_name(path: str) -> str:
    """Return the archive directory name of a session, which starts with the session's file name."""
    from hashlib import sha256

    stem = os.path.basename(path).removesuffix(".jsonl")
    digest = sha256(os.fsencode(path)).hexdigest()[:_DIGEST_LENGTH]
    return f"{UNSAFE_NAME.sub('_', stem)[:_MAX_STEM_LENGTH]}-{digest}"


class PathResolver:
    """Resolver of real paths with a cache, so that linked directories are recognized."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def resolve(self, path: str) -> str:
        """Return a path with links in its directory resolved; the file itself may be a link."""
        folder, name = os.path.split(path)
        real_folder = self._folders.get(folder)
        if real_folder is None:
            real_folder = self._folders[folder] = os.path.realpath(folder or os.curdir)
        return os.path.join(real_folder, name)


def catalogue_entry(journal: Journal, state: str = "") -> CatalogueEntry | None:
    """Return the catalogue entry of a journal; None if the journal does not name its session."""
    session = journal.session_file
    if session is None:
        return None
    return CatalogueEntry(
        *encode_path(journal.path),
        os.path.basename(journal.folder),
        session.number,
        session.size,
        session.mtime_ns,
        len(journal.latest_generations()),
        sum(file.size for file in journal.valid_generations()),
        sum(file.packed for file in journal.valid_generations()),
        len(journal.generations(journal.path)),
        state,
        sum(file.size for file in journal.latest_generations()),
    )


def read_entries(path: str) -> tuple[dict[str, CatalogueEntry], int, int]:
    """Return the last entry of each session, the number of complete bytes, and the number of lines.

    Raises Unreadable if the catalogue exists and cannot be read.
    """
    with reading(path):
        data = read_all(path)
    entries: dict[str, CatalogueEntry] = {}
    complete_size = data.rfind(b"\n") + 1
    lines = data[:complete_size].split(b"\n")[:-1]
    for line in lines:
        entry = decode_line(line, _ENTRY_DECODER)
        # Entries that refer outside the archive directory are not valid.
        if entry is not None and UNSAFE_NAME.search(entry.folder) is None and entry.folder[:1] != ".":
            entries[entry.path] = entry
    return entries, complete_size, len(lines)


class Catalogue:
    """The catalogue; the caller must hold the lock to write."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, CATALOGUE_PATH[-1])
        self.entries, _, self._lines = read_entries(self._path)

    def add(self, entry: CatalogueEntry) -> None:
        """Write the entry of a session. Raises Unwritable on failure."""
        if self.entries.get(entry.path) == entry:
            return
        self.entries[entry.path] = entry
        self._lines += 1
        with writing(self._path):
            append_lines(self._path, encode_line(entry))

    def remove(self, path: str) -> None:
        """Remove the entry of a session. Raises Unwritable on failure; the catalogue is then unchanged."""
        self.entries, _, self._lines = read_entries(self._path)
        if self.entries.pop(path, None) is not None:
            self.write()

    def compact(self) -> None:
        """Flush the catalogue to disk; rewrite it if most of it is outdated.

        Raises Unwritable on failure.
        """
        if self._lines > 2 * len(self.entries) + _SPARE_LINES:
            # Another process may have written since it was read.
            self.entries, _, self._lines = read_entries(self._path)
            self.write()
            return
        # Once for all sessions of a run. If a power cut removed an entry, a session whose file is deleted later could
        # no longer be found.
        with writing(self._path):
            sync_file(self._path)

    def write(self) -> None:
        """Rewrite the catalogue. Raises Unwritable on failure; the catalogue is then unchanged."""
        remove_stale_temp_files(self._path)
        with TempFile(self._path) as temp_file:
            temp_file.write(map(encode_line, self.entries.values()))
            temp_file.replace(self._path)
        self._lines = len(self.entries)


def _catalogue_path() -> str:
    return os.path.join(steno_home(), *CATALOGUE_PATH)


def archived_only_below(roots: Iterable[str], existing: Iterable[DiscoveredFile]) -> list[ArchivedFile]:
    """Return the archived sessions from below the roots that no longer exist there.

    Sessions that exist elsewhere below the roots with at least the same size were moved and are omitted, as are those
    moved by `steno relocate`.
    """
    catalogue = _catalogue_path()
    entries = read_entries(catalogue)[0]
    real_roots = [(os.path.realpath(root), root) for root in roots]
    existing_paths, sizes = _existing_paths(existing)
    moved = read_moves() if entries else {}
    archived: list[ArchivedFile] = []
    for entry in sorted(entries.values(), key=_entry_size_key, reverse=True):
        root = next((root for real_root, root in real_roots if is_below(entry.path, real_root, or_equal=True)), None)
        if root is None or entry.path in existing_paths:
            continue
        if (move := moved.get(entry.path)) and move.new in existing_paths and entry.size <= move.size:
            continue
        name = os.path.basename(entry.path)
        if is_uuid(name.removesuffix(JSONL_SUFFIX)):
            if sizes.get(name, -1) >= entry.size:
                continue
            sizes[name] = entry.size
        archived.append(_archived_file(entry, catalogue, root))
    return archived


def _existing_paths(existing: Iterable[DiscoveredFile]) -> tuple[set[str], dict[str, int]]:
    """Return the real paths of existing sessions, and the largest size of each file name."""
    resolver = PathResolver()
    paths: set[str] = set()
    sizes: dict[str, int] = {}
    for file in existing:
        paths.add(resolver.resolve(file.path))
        name = os.path.basename(file.path)
        sizes[name] = max(file.size, sizes.get(name, -1))
    return paths, sizes


def _entry_size_key(entry: CatalogueEntry) -> tuple[int, int]:
    return entry.size, entry.mtime_ns


def _archived_file(entry: CatalogueEntry, catalogue: str, root: str) -> ArchivedFile:
    place = classify_transcript(path_context(entry.path))
    if place.role != "session":
        place = msgspec.structs.replace(place, role="session")
    folder = os.path.join(os.path.dirname(catalogue), SESSIONS_FOLDER, entry.folder)
    return ArchivedFile(entry.path, entry.size, entry.mtime_ns, place, root, folder=folder, copy_number=entry.number)


def archived_at(path: str) -> ArchivedFile | None:
    """Return the archived session or sub-agent transcript of a path."""
    catalogue = _catalogue_path()
    real = PathResolver().resolve(path)
    folder, name = os.path.split(real)
    catalogue_entries = _read_catalogue(catalogue)
    if real in catalogue_entries.entries:
        return _archived_file(catalogue_entries.entries[real], catalogue, path)
    candidates = [
        entry
        for session_path in _session_paths_above(real)
        if (entry := catalogue_entries.entries.get(session_path)) is not None
    ]
    if name.startswith("agent-"):
        candidates += catalogue_entries.folders.get(folder, ())
    for entry in candidates:
        for agent in archived_agents(_archived_file(entry, catalogue, path)):
            if agent.path == real:
                return agent
    return None


def is_archived(file: DiscoveredFile) -> bool:
    """Return whether the archive has an existing session in its current state."""
    return is_archived_as(file.path, file.size, file.mtime_ns)


def is_archived_as(path: str | bytes, size: int, mtime_ns: int) -> bool:
    """Return whether the archive has the session of a path with this size and modification time."""
    entries = _current_entries()
    if not entries:
        return False
    entry = entries.get(PathResolver().resolve(os.fsdecode(path)))
    return entry is not None and (entry.size, entry.mtime_ns) == (size, mtime_ns)


def archived_count() -> int:
    """Return the number of archived sessions."""
    return len(_current_entries())


def _current_entries() -> dict[str, CatalogueEntry]:
    try:
        return _read_catalogue(_catalogue_path()).entries
    except Unreadable:
        return {}


def _session_paths_above(path: str) -> Iterator[str]:
    """Yield the possible paths of the session whose directory contains a path."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        yield folder + JSONL_SUFFIX
        yield folder
        folder = os.path.dirname(folder)


class _CatalogueEntries(msgspec.Struct):
    entries: dict[str, CatalogueEntry]
    folders: dict[str, list[CatalogueEntry]]
    """The entries, grouped by their original directory."""


def _read_catalogue(catalogue: str) -> _CatalogueEntries:
    """Return the catalogue, which is read again only after it has changed."""
    try:
        status = os.stat(catalogue)
    except OSError:
        return _read_catalogue_version(catalogue, 0, 0, 0)
    return _read_catalogue_version(catalogue, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=1)
def _read_catalogue_version(catalogue: str, _mtime_ns: int, _size: int, _inode: int) -> _CatalogueEntries:
    entries = _CatalogueEntries(read_entries(catalogue)[0], {})
    for path, entry in entries.entries.items():
        entries.folders.setdefault(os.path.dirname(path), []).append(entry)
    return entries


def archived_agents(session: ArchivedFile) -> list[ArchivedFile]:
    """Return the sub-agents of a session that exists only in the archive."""
    journal = _read_journal(session)
    if journal is None:
        return []
    agents = [_archived_agent(file, session) for file in journal.latest_generations() if file.role == "agent"]
    return sorted(agents, key=_file_path)


def _archived_agent(file: FileGeneration, session: ArchivedFile) -> ArchivedFile:
    place = classify_transcript(path_context(file.path))
    place = msgspec.structs.replace(place, role="agent", session_id=file.line.session_id, agent_id=file.line.agent_id)
    return ArchivedFile(
        file.path, file.size, file.mtime_ns, place, session.root, folder=session.folder, copy_number=file.number
    )


def _file_path(file: DiscoveredFile) -> str:
    return file.path


def archived_sidecar(session: ArchivedFile, path: str, limit: int) -> bytes | None:
    """Return the first bytes of another archived file of a session; None if it was not archived."""
    journal = _read_journal(session)
    file = journal.latest(path) if journal else None
    if journal is None or file is None:
        return None
    try:
        return ArchiveSource(session.folder, file.number, journal).read(0, limit)
    except Unreadable:
        return None


def _read_journal(session: ArchivedFile) -> Journal | None:
    try:
        return read_journal(session.folder)
    except Unreadable:
        return None


_MOVED_FILE: Final = ("moves", "moved.jsonl")
_MAX_MOVES: Final = 100


class MovedSession(msgspec.Struct, frozen=True):
    """A session that was moved, with its size at that time."""

    old: str
    new: str
    size: int


def record_moves(moves: Iterable[MovedSession]) -> None:
    """Record moves. Raises Unwritable if they cannot be written."""
    lines = b"".join(msgspec.json.encode(move) + b"\n" for move in moves)
    if not lines:
        return
    path = os.path.join(steno_home(), *_MOVED_FILE)
    with writing(path):
        append_lines(path, lines, sync=True)


def read_moves() -> dict[str, MovedSession]:
    """Return the moved sessions by their old path, with their current path."""
    try:
        raw = read_all(os.path.join(steno_home(), *_MOVED_FILE))
    except OSError:
        return {}
    latest: dict[str, MovedSession] = {}
    for line in raw.split(b"\n"):
        try:
            move = msgspec.json.decode(line, type=MovedSession)
        except DECODE_ERRORS:
            continue
        # The path is now occupied by this move, so earlier moves from it no longer apply.
        latest.pop(move.new, None)
        latest[move.old] = move
    return {path: _final_move(move, latest) for path, move in latest.items()}


def _final_move(move: MovedSession, latest: dict[str, MovedSession]) -> MovedSession:
    new = move.new
    for _ in range(_MAX_MOVES):
        if new not in latest:
            break
        new = latest[new].new
    return MovedSession(move.old, new, move.size)
