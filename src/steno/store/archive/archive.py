"""The session archive: stores, lists, reads, verifies and restores sessions.

    archive = Archive()
    archive.keep(file)
    for entry in archive.entries():
        load(archive.source(entry))

Nothing in the archive is changed or removed. A file that has grown is continued; one that was truncated or rewritten
gets a new generation. A damaged copy is replaced as long as the file is on disk.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from steno.errors import NotFound, Unreadable, Unwritable
from steno.store.archive.catalogue import Catalogue, CatalogueEntry, PathResolver, catalogue_entry, folder_name
from steno.store.archive.copies import ArchivedChange, ArchiveWriter, ProgressCallback, repair_hint, source_digests
from steno.store.archive.file_access import SESSIONS_FOLDER
from steno.store.archive.journal import JOURNAL_FILE, ArchiveSource, FileGeneration, FrameReader, Journal, read_journal
from steno.store.atomic import TempFile, make_private_folder, unwritable_error, writing
from steno.store.config import ARCHIVE_LEVEL, read_config
from steno.store.discovery import DiscoveredFile, Discovery, Problem, config_folder_of, unreadable_problem
from steno.store.environment import ARCHIVE_FOLDER, CATALOGUE_PATH, now, steno_home
from steno.store.file_lock import FileLock
from steno.store.file_source import FileSource
from steno.store.replace import place_new
from steno.store.session_lock import SessionLock

if TYPE_CHECKING:
    from steno.store.archive.copies import VerificationFailure


class SessionGroup(msgspec.Struct, frozen=True):
    """A session with all its files."""

    path: str
    """Real path of the session, which identifies it in the archive."""
    files: tuple[tuple[str, DiscoveredFile], ...]
    """Each file with its real path; the session's own file is first."""
    state: str
    """Digest that changes when a file is written, added or removed."""

    @property
    def session(self) -> DiscoveredFile:
        """The session's own file."""
        return self.files[0][1]

    @property
    def size(self) -> int:
        """Total bytes of all files."""
        return sum(file.size for _, file in self.files)


def session_group(session: DiscoveredFile, discovery: Discovery, resolver: PathResolver) -> SessionGroup:
    """Return a session with its sub-agents and sidecar files."""
    files: dict[str, DiscoveredFile] = {}
    for file in (session, *discovery.agents(session), *discovery.sidecars(session)):
        files.setdefault(resolver.resolve(file.path), file)
    digest = blake2b(digest_size=12)
    for path, file in sorted(files.items()):
        digest.update(os.fsencode(path))
        digest.update(b"\0%d %d\n" % (file.size, file.mtime_ns))
    return SessionGroup(next(iter(files)), tuple(files.items()), digest.hexdigest())


def session_groups(
    roots: tuple[str, ...], problems: list[Problem], sessions: Iterable[DiscoveredFile] | None = None
) -> Iterator[SessionGroup]:
    """Yield each session below the roots, or each given session, once with all its files."""
    resolver = PathResolver()
    seen_paths: set[str] = set()
    for session, discovery in _sessions_below(roots, problems, sessions):
        path = resolver.resolve(session.path)
        if path not in seen_paths:
            seen_paths.add(path)
            yield session_group(session, discovery, resolver)


def _sessions_below(
    roots: tuple[str, ...], problems: list[Problem], sessions: Iterable[DiscoveredFile] | None
) -> Iterator[tuple[DiscoveredFile, Discovery]]:
    if sessions is not None:
        discovery = Discovery("", problems)
        for session in sessions:
            yield session, discovery
        return
    for root in roots:
        discovery = Discovery(root, problems)
        for session in discovery.sessions():
            yield session, discovery


class RestoreResult(msgspec.Struct, frozen=True):
    """The result of restoring one file."""

    path: str
    state: Literal["written", "same", "other", "damaged"]
    """`same`: already present with the same bytes; `other`: present with other bytes and left unchanged; `damaged`:
    damaged in the archive and not written.
    """
    size: int = 0
    reason: str = ""
    """Damaged journal lines, and how to fix them."""


def restore_session(journal: Journal, target_folder: str | None, generation: int) -> list[RestoreResult]:
    """Restore the last generation of every file; `generation` selects one of the session's own file."""
    selected = [_find_generation(journal, generation)] if generation else []
    selected_paths = {file.path for file in selected}
    files = selected + [file for file in journal.latest_generations() if file.path not in selected_paths]
    results = [_restore_file(journal, file, _target_path(journal, file, target_folder)) for file in files]
    if journal.unnamed_numbers:
        results.append(_damaged_result(journal, os.path.join(journal.folder, JOURNAL_FILE), journal.path))
    return results


def _damaged_result(journal: Journal, target: str, path: str) -> RestoreResult:
    reason = "; ".join(journal.damage_messages[:3]) or "part of the data is missing"
    return RestoreResult(target, "damaged", 0, f"{reason}. {repair_hint(path)}")


def _is_incomplete(journal: Journal, file: FileGeneration) -> bool:
    """Return whether part of a file cannot be restored because journal lines are damaged."""
    copy = journal.copy_path(file)
    longer = bool(journal.damaged_lines) and os.path.exists(copy) and os.path.getsize(copy) > file.packed
    return longer or file.known_size > file.size


def _find_generation(journal: Journal, generation: int) -> FileGeneration:
    generations = journal.generations(journal.path)
    for file in generations:
        if file.generation == generation:
            return file
    raise NotFound(f"generation {generation} does not exist", hint=f"The file has {len(generations)} generations.")


def _target_path(journal: Journal, file: FileGeneration, target_folder: str | None) -> str:
    """Return the path to restore to; below `target_folder`, relative to the config directory."""
    if target_folder is None:
        return file.path
    base = config_folder_of(journal.path) or os.path.dirname(journal.path)
    prefix = base.rstrip(os.sep) + os.sep
    if file.path.startswith(prefix):
        relative_path = file.path[len(prefix) :]
    else:
        # Part of the config directory was a link to another location.
        names = file.path.rstrip(os.sep).split(os.sep)
        relative_path = os.sep.join(names[-3:])
    if any(name in {"", os.pardir} for name in relative_path.split(os.sep)):
        relative_path = os.path.basename(file.path)
    return os.path.join(target_folder, relative_path)


def _restore_file(journal: Journal, file: FileGeneration, target: str) -> RestoreResult:
    if os.path.lexists(target):
        return RestoreResult(target, "same" if _is_same(file, target) else "other", file.size)
    if _is_incomplete(journal, file):
        return _damaged_result(journal, target, file.path)
    with writing(target):
        make_private_folder(os.path.dirname(os.path.abspath(target)))
    with TempFile(target) as temp_file:
        try:
            temp_file.write(_verified_frames(journal, file))
        except Unwritable as error:
            if isinstance(error.__cause__, Unreadable):
                return RestoreResult(target, "damaged", file.size)
            raise
        with writing(target):
            if file.last_state is not None:
                os.chmod(temp_file.path, file.last_state.mode & 0o777)
                os.utime(temp_file.path, ns=(file.last_state.mtime_ns, file.last_state.mtime_ns))
        with SessionLock.acquire(target, check_clients=False):
            place_new(temp_file, target)
    return RestoreResult(target, "written", file.size)


def _is_same(file: FileGeneration, target: str) -> bool:
    try:
        with FileSource(target) as source:
            if source.size != file.size:
                return False
            digests = source_digests(source, file.frames)
            return all(a == b.sha256 for a, b in zip(digests, file.frames, strict=True))
    except Unreadable:
        return False


def _verified_frames(journal: Journal, file: FileGeneration) -> Iterator[bytes]:
    frames = FrameReader(journal.copy_path(file))
    for frame in file.frames:
        data = frames.read_frame(frame)
        if sha256(data).hexdigest() != frame.sha256:
            raise Unreadable(f"checksum mismatch in {frames.path}", hint="Nothing was written.")
        yield data


_SMALL_GROWTH: Final = 1 << 16
_ACTIVE_SECONDS: Final = 3600
_MIN_PREFIX_LENGTH: Final = 4


class ArchivedSession(msgspec.Struct, frozen=True):
    """The result of archiving one session."""

    path: str
    changes: tuple[ArchivedChange, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def added(self) -> int:
        """Number of new bytes."""
        return sum(change.added for change in self.changes)

    @property
    def packed(self) -> int:
        """Compressed size of the new bytes."""
        return sum(change.packed for change in self.changes)

    @property
    def rewritten(self) -> int:
        """Number of files with a new generation because they were rewritten."""
        return sum(change.begun and change.generation > 1 and not change.healed for change in self.changes)

    @property
    def healed(self) -> int:
        """Number of files archived again because their copy was damaged."""
        return sum(change.healed for change in self.changes)


class ArchiveReport(msgspec.Struct, frozen=True):
    """The result of archiving many sessions."""

    sessions: int = 0
    """Number of sessions below the roots."""
    archived: tuple[ArchivedSession, ...] = ()
    """Sessions with new bytes."""
    problems: tuple[Problem, ...] = ()

    @property
    def files(self) -> int:
        """Number of files with new bytes."""
        return sum(len(session.changes) for session in self.archived)

    @property
    def added(self) -> int:
        """Number of new bytes."""
        return sum(session.added for session in self.archived)

    @property
    def packed(self) -> int:
        """Compressed size of the new bytes."""
        return sum(session.packed for session in self.archived)

    @property
    def rewritten(self) -> int:
        """Number of files with a new generation."""
        return sum(session.rewritten for session in self.archived)

    @property
    def healed(self) -> int:
        """Number of files archived again."""
        return sum(session.healed for session in self.archived)


class Archive:
    """The archive in steno's home directory. Reading needs no lock; writing takes one."""

    def __init__(self, steno_folder: str | None = None, level: int | None = None) -> None:
        self.folder = os.path.join(steno_home() if steno_folder is None else steno_folder, ARCHIVE_FOLDER)
        self.lock = os.path.join(self.folder, "lock")
        """Lock file held while writing."""
        self._level = level
        self._catalogue: Catalogue | None = None

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue, with one line per session."""
        if self._catalogue is None:
            self._catalogue = Catalogue(self.folder)
        return self._catalogue

    @property
    def level(self) -> int:
        """Compression level: the given one, or that of the configuration file."""
        if self._level is None:
            self._level = read_config().archive_level if self._is_default_home() else ARCHIVE_LEVEL
        return self._level

    def _is_default_home(self) -> bool:
        return os.path.dirname(self.folder) == steno_home()

    # Reading

    def entries(self) -> list[CatalogueEntry]:
        """Return every archived session, most recently written first."""
        return sorted(self.catalogue.entries.values(), key=_newest_first_key)

    def entry(self, path: str) -> CatalogueEntry:
        """Return the archived session of a path. Raises NotFound if it was never archived."""
        entry = self.catalogue.entries.get(PathResolver().resolve(path))
        if entry is None:
            raise NotFound(
                f"{path} is not in the archive", hint="Run `steno archive --list` to list archived sessions."
            )
        return entry

    def find_entries(self, name: str) -> list[CatalogueEntry]:
        """Return the archived sessions that match an ID, an ID prefix, or a path."""
        path = PathResolver().resolve(os.path.abspath(name))
        if path in self.catalogue.entries:
            return [self.catalogue.entries[path]]
        prefix = name.lower()
        exact = [entry for entry in self.entries() if _entry_stem(entry) == prefix]
        if exact or len(name) < _MIN_PREFIX_LENGTH:
            return exact
        return [entry for entry in self.entries() if _entry_stem(entry).startswith(prefix)]

    def journal(self, entry: CatalogueEntry) -> Journal:
        """Return the journal of a session's files. Raises Unreadable if it cannot be read."""
        return read_journal(self.folder_of(entry))

    def folder_of(self, entry: CatalogueEntry) -> str:
        """Return the archive directory of a session."""
        return os.path.join(self.folder, SESSIONS_FOLDER, entry.folder)

    def source(self, entry: CatalogueEntry, file: FileGeneration | None = None) -> ArchiveSource:
        """Return the bytes of a session, or of any generation of any of its files.

        Raises Unreadable if they cannot be read.
        """
        return ArchiveSource(self.folder_of(entry), file.number if file else entry.number)

    # Archiving

    def pending(
        self, groups: Iterable[SessionGroup], *, defer_active: bool = False
    ) -> Iterator[tuple[SessionGroup, bool]]:
        """Yield each session and whether any of its files may have new bytes.

        With `defer_active`, a session that is being written and has grown only a little is deferred.
        """
        for group in groups:
            entry = self.catalogue.entries.get(group.path)
            deferred = defer_active and entry is not None and _can_defer(group, entry)
            yield group, not deferred and (entry is None or not self._is_current(entry, group))

    def _is_current(self, entry: CatalogueEntry, group: SessionGroup) -> bool:
        journal_path = os.path.join(self.folder_of(entry), JOURNAL_FILE)
        return entry.state == group.state and os.path.exists(journal_path)

    def keep(
        self, session: DiscoveredFile | SessionGroup, *, full: bool = False, on_progress: ProgressCallback | None = None
    ) -> ArchivedSession:
        """Archive the new bytes of a session and all its files.

        By default only the ends of a file are compared; `full` compares all bytes and verifies the copies, replacing
        damaged ones. Files that cannot be read are listed in `problems`. Raises Unwritable if the archive cannot be
        written; its previous content is then intact.
        """
        if isinstance(session, DiscoveredFile):
            session = session_group(session, Discovery(session.root), PathResolver())
        with writing(self.folder):
            make_private_folder(os.path.join(self.folder, SESSIONS_FOLDER))
        with FileLock(self.lock):
            return self._archive_group(session, on_progress or _ignore_progress, full=full)

    def _archive_group(self, group: SessionGroup, on_progress: ProgressCallback, *, full: bool) -> ArchivedSession:
        folder = os.path.join(self.folder, SESSIONS_FOLDER, folder_name(group.path))
        writer = ArchiveWriter(folder, group.path, self.level)
        problems: list[Problem] = []
        changes: list[ArchivedChange] = []
        finished = False
        try:
            for path, file in group.files:
                try:
                    change = writer.archive_file(file, path, on_progress, full=full)
                except Unreadable as error:
                    problems.append(unreadable_problem(file.path, error))
                else:
                    changes += [change] if change else []
            if full and not problems:
                writer.note_repair()
            writer.commit()
            finished = True
        finally:
            if not finished:
                writer.roll_back()
            writer.close()
        # Without a state, files that could not be read are tried again next time.
        entry = catalogue_entry(writer.journal, "" if problems else group.state)
        if entry is not None:
            self.catalogue.add(entry)
        # A sidecar file that was deleted meanwhile is not a problem.
        reported = tuple(problem for problem in problems if problem.kind != "missing")
        return ArchivedSession(group.path, tuple(changes), reported)

    def compact(self) -> None:
        """Flush the catalogue to disk, and compact it if most of it is outdated.

        Raises Unwritable on failure.
        """
        if os.path.exists(os.path.join(self.folder, CATALOGUE_PATH[-1])):
            with FileLock(self.lock):
                self.catalogue.compact()

    # Verifying and restoring

    def verify(
        self, entries: list[CatalogueEntry] | None = None, on_progress: ProgressCallback | None = None
    ) -> "Iterator[VerificationFailure]":
        """Yield the failures in the archive, or in some of its sessions.

        Every frame is decompressed and compared with its checksum, and with the file on disk if that is unchanged.
        Raises Unreadable if the archive directory cannot be read.
        """
        from steno.store.archive.copies import verify_archive, verify_session

        if entries is None:
            return verify_archive(self, on_progress or _ignore_progress)
        folders = map(self.folder_of, entries)
        return (failure for folder in folders for failure in verify_session(folder, on_progress or _ignore_progress))

    def restore(
        self, entry: CatalogueEntry, target_folder: str | None = None, generation: int = 0
    ) -> "list[RestoreResult]":
        """Restore a session and its files to their original paths, or below another directory.

        An existing file with other bytes is not changed. `generation` is that of the session's own file; 0 is the last.
        Raises NotFound if the generation does not exist, Unreadable if the archive cannot be read, or Unwritable if a
        file cannot be written.
        """
        return restore_session(self.journal(entry), target_folder, generation)

    def forget(self, entry: CatalogueEntry) -> None:
        """Delete everything archived of a session; no other operation deletes archived data.

        Raises Unwritable if it cannot be deleted completely.
        """
        folder = self.folder_of(entry)
        with FileLock(self.lock):
            try:
                # The journal last: as long as it exists, the remaining files can be found.
                for name in sorted(os.listdir(folder), key=JOURNAL_FILE.__eq__):
                    os.unlink(os.path.join(folder, name))
                os.rmdir(folder)
            except FileNotFoundError:
                # Already deleted by the user or another process.
                pass
            except OSError as error:
                raise unwritable_error(folder, error) from error
            self.catalogue.remove(entry.path)


def archive_all(
    roots: tuple[str, ...] | None = None,
    *,
    start_progress: Callable[[int], ProgressCallback] | None = None,
    defer_active: bool = False,
    sessions: Iterable[DiscoveredFile] | None = None,
) -> ArchiveReport:
    """Archive every session below the roots; by default, below the roots of every command.

    `start_progress` gets the number of bytes to read, if any, and returns the callback for bytes that were read. With
    `defer_active`, a session that is being written is deferred until it has grown by more than a few lines. With
    `sessions`, only these are archived. Raises BadRequest if the configuration file is invalid, or Unwritable if the
    archive cannot be written.
    """
    from steno.store.session_lookup import resolve_roots

    archive = Archive()
    problems: list[Problem] = []
    group_iterator = session_groups(roots or resolve_roots(), problems, sessions)
    pending = list(archive.pending(group_iterator, defer_active=defer_active))
    changed_groups = [group for group, has_changes in pending if has_changes]
    on_progress = (
        start_progress(sum(group.size for group in changed_groups)) if start_progress and changed_groups else None
    )
    archived = [archive.keep(group, on_progress=on_progress) for group in changed_groups]
    if archived:
        archive.compact()
    return ArchiveReport(
        len(pending),
        tuple(session for session in archived if session.changes),
        (*problems, *(problem for session in archived for problem in session.problems)),
    )


def _entry_stem(entry: CatalogueEntry) -> str:
    return os.path.basename(entry.path).removesuffix(".jsonl").lower()


def _newest_first_key(entry: CatalogueEntry) -> tuple[int, str]:
    return -entry.mtime_ns, entry.path


def _can_defer(group: SessionGroup, entry: CatalogueEntry) -> bool:
    """Return whether a session is still being written and has grown only a little."""
    growth = group.size - entry.latest
    if group.session.size < entry.size or not 0 <= growth < _SMALL_GROWTH:
        return False
    current_time = now()
    # A file with a time in the future would be deferred until then.
    return any(abs(current_time - file.mtime_ns / 1e9) < _ACTIVE_SECONDS for _, file in group.files)


def _ignore_progress(_: int) -> None:
    """Ignore progress."""
