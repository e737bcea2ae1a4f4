"""The session archive: store sessions, list, read, verify and restore them.

    archive = Archive()
    archive.keep(found)
    for entry in archive.entries():
        load(archive.source(entry))

Nothing in the archive is changed or removed. A file that grew is continued; one that was truncated or rewritten gets a
new generation. A damaged copy is replaced as long as the file is on disk.
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
    """A session and everything that goes with it."""

    path: str
    """Where the session really lies: what it is known by in the archive."""
    files: tuple[tuple[str, DiscoveredFile], ...]
    """Each file with its real path; the session's own comes first."""
    state: str
    """Another value means that a file was written, added or taken away."""

    @property
    def session(self) -> DiscoveredFile:
        """The session's own file."""
        return self.files[0][1]

    @property
    def size(self) -> int:
        """How many bytes all of them have."""
        return sum(file.size for _, file in self.files)


def session_group(session: DiscoveredFile, discovery: Discovery, resolver: PathResolver) -> SessionGroup:
    """Return a session with its sub-agents and its small files."""
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
    """Yield every session below the roots, or only some, with what goes with it; each once."""
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
    """What became of one file."""

    path: str
    state: Literal["written", "same", "other", "damaged"]
    """Written; there already, with the same bytes; there with other bytes, and left alone; or damaged in the archive,
    and not written."""
    size: int = 0
    reason: str = ""
    """Which lines of the journal are damaged, and what can be done about it."""


def restore_session(journal: Journal, target_folder: str | None, generation: int) -> list[RestoreResult]:
    """Put back the last generation of every file, or one that was asked for of the session's."""
    selected = [_find_generation(journal, generation)] if generation else []
    selected_paths = {file.path for file in selected}
    files = selected + [file for file in journal.latest_generations() if file.path not in selected_paths]
    results = [_restore_file(journal, file, _target_path(journal, file, target_folder)) for file in files]
    if journal.unnamed_numbers:
        results.append(_damaged_result(journal, os.path.join(journal.folder, JOURNAL_FILE), journal.path))
    return results


def _damaged_result(journal: Journal, target: str, path: str) -> RestoreResult:
    reason = "; ".join(journal.damage_messages[:3]) or "a part of it is missing"
    return RestoreResult(target, "damaged", 0, f"{reason}; {repair_hint(path)}")


def _is_incomplete(journal: Journal, file: FileGeneration) -> bool:
    """Say whether a part of a file cannot be given back, because lines of the journal are damaged."""
    copy = journal.copy_path(file)
    longer = bool(journal.damaged_lines) and os.path.exists(copy) and os.path.getsize(copy) > file.packed
    return longer or file.known_size > file.size


def _find_generation(journal: Journal, generation: int) -> FileGeneration:
    generations = journal.generations(journal.path)
    for file in generations:
        if file.generation == generation:
            return file
    raise NotFound(f"there is no generation {generation}", hint=f"there are {len(generations)}")


def _target_path(journal: Journal, file: FileGeneration, target_folder: str | None) -> str:
    """Return where a file goes: below another folder it lies as in its config folder."""
    if target_folder is None:
        return file.path
    base = config_folder_of(journal.path) or os.path.dirname(journal.path)
    prefix = base.rstrip(os.sep) + os.sep
    if file.path.startswith(prefix):
        relative_path = file.path[len(prefix) :]
    else:
        # Part of the config folder was a link to somewhere else.
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
            raise Unreadable(f"{frames.path} is not what was kept", hint="nothing was written")
        yield data


_SMALL_GROWTH: Final = 1 << 16
_ACTIVE_SECONDS: Final = 3600
_MIN_PREFIX_LENGTH: Final = 4


class ArchivedSession(msgspec.Struct, frozen=True):
    """What was done about one session."""

    path: str
    changes: tuple[ArchivedChange, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def added(self) -> int:
        """How many bytes were new."""
        return sum(change.added for change in self.changes)

    @property
    def packed(self) -> int:
        """How many bytes they take."""
        return sum(change.packed for change in self.changes)

    @property
    def rewritten(self) -> int:
        """How many files got another generation, because they no longer begin as they did."""
        return sum(change.begun and change.generation > 1 and not change.healed for change in self.changes)

    @property
    def healed(self) -> int:
        """How many files were kept anew, because the archive's copy was damaged."""
        return sum(change.healed for change in self.changes)


class ArchiveReport(msgspec.Struct, frozen=True):
    """What one run over many sessions did."""

    sessions: int = 0
    """How many there are below the roots."""
    archived: tuple[ArchivedSession, ...] = ()
    """Those of which something was new."""
    problems: tuple[Problem, ...] = ()

    @property
    def files(self) -> int:
        """How many files had something new."""
        return sum(len(session.changes) for session in self.archived)

    @property
    def added(self) -> int:
        """How many bytes were new."""
        return sum(session.added for session in self.archived)

    @property
    def packed(self) -> int:
        """How many bytes they take."""
        return sum(session.packed for session in self.archived)

    @property
    def rewritten(self) -> int:
        """How many files got another generation."""
        return sum(session.rewritten for session in self.archived)

    @property
    def healed(self) -> int:
        """How many files were kept anew."""
        return sum(session.healed for session in self.archived)


class Archive:
    """The archive below steno's own folder. Reading it takes no lock; writing takes one."""

    def __init__(self, steno_folder: str | None = None, level: int | None = None) -> None:
        self.folder = os.path.join(steno_home() if steno_folder is None else steno_folder, ARCHIVE_FOLDER)
        self.lock = os.path.join(self.folder, "lock")
        """The file that whoever writes has to hold."""
        self._level = level
        self._catalogue: Catalogue | None = None

    @property
    def catalogue(self) -> Catalogue:
        """One line for each session."""
        if self._catalogue is None:
            self._catalogue = Catalogue(self.folder)
        return self._catalogue

    @property
    def level(self) -> int:
        """How hard to pack: what was asked for, else what the config file says."""
        if self._level is None:
            self._level = read_config().archive_level if self._is_default_home() else ARCHIVE_LEVEL
        return self._level

    def _is_default_home(self) -> bool:
        return os.path.dirname(self.folder) == steno_home()

    # Reading

    def entries(self) -> list[CatalogueEntry]:
        """Return every session that was kept, the last written first."""
        return sorted(self.catalogue.entries.values(), key=_newest_first_key)

    def entry(self, path: str) -> CatalogueEntry:
        """Return the session that lies, or lay, at a path. Raises NotFound if it was never kept."""
        entry = self.catalogue.entries.get(PathResolver().resolve(path))
        if entry is None:
            raise NotFound(f"{path} is not in the archive", hint="`steno archive --list` says what is")
        return entry

    def find_entries(self, name: str) -> list[CatalogueEntry]:
        """Return what was kept under an id, the beginning of one, or a path, wherever it lay."""
        path = PathResolver().resolve(os.path.abspath(name))
        if path in self.catalogue.entries:
            return [self.catalogue.entries[path]]
        prefix = name.lower()
        exact = [entry for entry in self.entries() if _entry_stem(entry) == prefix]
        if exact or len(name) < _MIN_PREFIX_LENGTH:
            return exact
        return [entry for entry in self.entries() if _entry_stem(entry).startswith(prefix)]

    def journal(self, entry: CatalogueEntry) -> Journal:
        """Return what the archive knows of a session's files. Raises Unreadable if that cannot be read."""
        return read_journal(self.folder_of(entry))

    def folder_of(self, entry: CatalogueEntry) -> str:
        """Return the folder that holds the copies of a session's files."""
        return os.path.join(self.folder, SESSIONS_FOLDER, entry.folder)

    def source(self, entry: CatalogueEntry, file: FileGeneration | None = None) -> ArchiveSource:
        """Return the bytes of a session, or of any generation of any of its files.

        Raises Unreadable if they cannot be read.
        """
        return ArchiveSource(self.folder_of(entry), file.number if file else entry.number)

    # Keeping

    def pending(
        self, groups: Iterable[SessionGroup], *, defer_active: bool = False
    ) -> Iterator[tuple[SessionGroup, bool]]:
        """Yield each session, and whether any file of it may have news.

        With `defer_active`, a little more in a session that is being written can wait for more.
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
        """Keep what is new of a session and of everything that goes with it.

        What is known is told from what is new by the ends of the file; `full` compares all of it, and proves the
        copies, so that one that was damaged is written anew. A file that cannot be read is told in `problems`. Raises
        Unwritable if the archive cannot be written; what it held before, it still holds.
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
        # What could not be read is looked at again next time.
        entry = catalogue_entry(writer.journal, "" if problems else group.state)
        if entry is not None:
            self.catalogue.add(entry)
        # A small file that went away meanwhile is no trouble.
        reported = tuple(problem for problem in problems if problem.kind != "missing")
        return ArchivedSession(group.path, tuple(changes), reported)

    def compact(self) -> None:
        """Have the catalogue on the disk, and small again when most of it is out of date.

        Raises Unwritable if that cannot be done.
        """
        if os.path.exists(os.path.join(self.folder, CATALOGUE_PATH[-1])):
            with FileLock(self.lock):
                self.catalogue.compact()

    # Proving, and putting back

    def verify(
        self, entries: list[CatalogueEntry] | None = None, on_progress: ProgressCallback | None = None
    ) -> "Iterator[VerificationFailure]":
        """Yield what is wrong with the archive, or with some sessions in it.

        Every frame is unpacked and compared with its checksum, and with the file on disk where that is still what was
        kept. Raises Unreadable if the archive's folder cannot be read.
        """
        from steno.store.archive.copies import verify_archive, verify_session

        if entries is None:
            return verify_archive(self, on_progress or _ignore_progress)
        folders = map(self.folder_of, entries)
        return (failure for folder in folders for failure in verify_session(folder, on_progress or _ignore_progress))

    def restore(
        self, entry: CatalogueEntry, target_folder: str | None = None, generation: int = 0
    ) -> "list[RestoreResult]":
        """Put a session and what goes with it back where it was, or below another folder.

        A file that is there with other bytes stays as it is. `generation` is that of the session's own file; 0 is the
        last. Raises NotFound if there is no such generation, or Unreadable if the archive cannot be read, or Unwritable
        if a file cannot be written.
        """
        return restore_session(self.journal(entry), target_folder, generation)

    def forget(self, entry: CatalogueEntry) -> None:
        """Throw away all that was kept of a session: the only way to lose something here.

        Raises Unwritable if that cannot be done, or not all of it.
        """
        folder = self.folder_of(entry)
        with FileLock(self.lock):
            try:
                # The journal last: as long as it is there, the rest can be found.
                for name in sorted(os.listdir(folder), key=JOURNAL_FILE.__eq__):
                    os.unlink(os.path.join(folder, name))
                os.rmdir(folder)
            except FileNotFoundError:
                # By hand, or by somebody else: it is gone in any case.
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
    """Keep every session below the roots; without any, below those that every command looks at.

    `start_progress` gets the number of bytes to read, if any, and returns the callback for bytes that were read. With
    `defer_active`, a session that is being written is left until it has grown by more than a few lines. With
    `sessions`, only those are looked at. Raises
    BadRequest if the config file is broken, or Unwritable if the archive cannot be written.
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
        (*problems, *(problem for each in archived for problem in each.problems)),
    )


def _entry_stem(entry: CatalogueEntry) -> str:
    return os.path.basename(entry.path).removesuffix(".jsonl").lower()


def _newest_first_key(entry: CatalogueEntry) -> tuple[int, str]:
    return -entry.mtime_ns, entry.path


def _can_defer(group: SessionGroup, entry: CatalogueEntry) -> bool:
    """Say whether there is little new in a session that somebody, or a sub-agent, is at work in."""
    growth = group.size - entry.latest
    if group.session.size < entry.size or not 0 <= growth < _SMALL_GROWTH:
        return False
    current_time = now()
    # A file from the future would be waited for until then.
    return any(abs(current_time - file.mtime_ns / 1e9) < _ACTIVE_SECONDS for _, file in group.files)


def _ignore_progress(_: int) -> None:
    """Tell nobody."""
