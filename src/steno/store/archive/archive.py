"""The archive's door: keep sessions, list them, read them, prove them, put them back.

    archive = Archive()
    archive.keep(found)
    for entry in archive.entries():
        load(archive.source(entry))

Nothing that was kept is ever changed or thrown away. A file that grew is continued; one that was
cut short or rewritten gets a new generation beside the old. A copy that was damaged gets another
in its stead, as long as the file is on disk.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import NotFound, Unreadable
from steno.store.archive.catalogue import Catalogue, Entry, entry_of, folder_name
from steno.store.archive.gather import Group, Names, group_of, groups
from steno.store.archive.index import INDEX, File, Index, read_index
from steno.store.archive.keep import Change, Keeper
from steno.store.archive.opened import ARCHIVE, CATALOGUE, SESSIONS
from steno.store.archive.source import ArchiveSource
from steno.store.clock import now
from steno.store.config import ARCHIVE_LEVEL, read_config
from steno.store.discover import Discovery
from steno.store.disk import make_folder
from steno.store.found import Found, Problem, problem_of
from steno.store.lock import Lock
from steno.store.places import steno_home
from steno.store.scratch import unwritable

if TYPE_CHECKING:
    from steno.store.archive.restore import Restored
    from steno.store.archive.verify import Failure

__all__ = ["Archive", "Done", "Kept", "Summary", "archive_all"]

_SMALL: Final = 1 << 16
_QUIET: Final = 3600
_SHORTEST: Final = 4

Done = Callable[[int], None]


class Kept(msgspec.Struct, frozen=True):
    """What was done about one session."""

    path: str
    changes: tuple[Change, ...] = ()
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
        return sum(each.begun and each.generation > 1 and not each.healed for each in self.changes)

    @property
    def healed(self) -> int:
        """How many files were kept anew, because the archive's copy was damaged."""
        return sum(change.healed for change in self.changes)


class Summary(msgspec.Struct, frozen=True):
    """What one run over many sessions did."""

    sessions: int = 0
    """How many there are below the roots."""
    kept: tuple[Kept, ...] = ()
    """Those of which something was new."""
    problems: tuple[Problem, ...] = ()

    @property
    def files(self) -> int:
        """How many files had something new."""
        return sum(len(each.changes) for each in self.kept)

    @property
    def added(self) -> int:
        """How many bytes were new."""
        return sum(each.added for each in self.kept)

    @property
    def packed(self) -> int:
        """How many bytes they take."""
        return sum(each.packed for each in self.kept)

    @property
    def rewritten(self) -> int:
        """How many files got another generation."""
        return sum(each.rewritten for each in self.kept)

    @property
    def healed(self) -> int:
        """How many files were kept anew, because the archive's copy was damaged."""
        return sum(each.healed for each in self.kept)


class Archive:
    """The archive below steno's own folder. Reading it takes no lock; writing takes one."""

    def __init__(self, home: str | None = None, level: int | None = None) -> None:
        self.folder = os.path.join(steno_home() if home is None else home, ARCHIVE)
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
            self._level = read_config().archive_level if self._is_usual() else ARCHIVE_LEVEL
        return self._level

    def _is_usual(self) -> bool:
        return os.path.dirname(self.folder) == steno_home()

    # Reading

    def entries(self) -> list[Entry]:
        """Return every session that was kept, the last written first."""
        return sorted(self.catalogue.entries.values(), key=_age)

    def entry(self, path: str) -> Entry:
        """Return the session that lies, or lay, at a path.

        Raises:
            NotFound: it was never kept.
        """
        entry = self.catalogue.entries.get(Names().real(path))
        if entry is None:
            raise NotFound(
                f"{path} is not in the archive", hint="`steno archive --list` says what is"
            )
        return entry

    def named(self, name: str) -> list[Entry]:
        """Return what was kept under an id, the beginning of one, or a path, wherever it lay."""
        path = Names().real(os.path.abspath(name))
        if path in self.catalogue.entries:
            return [self.catalogue.entries[path]]
        wanted = name.lower()
        exact = [entry for entry in self.entries() if _stem(entry) == wanted]
        if exact or len(name) < _SHORTEST:
            return exact
        return [entry for entry in self.entries() if _stem(entry).startswith(wanted)]

    def index(self, entry: Entry) -> Index:
        """Return what the archive knows of a session's files.

        Raises:
            Unreadable: that cannot be read.
        """
        return read_index(self.folder_of(entry))

    def folder_of(self, entry: Entry) -> str:
        """Return the folder that holds the copies of a session's files."""
        return os.path.join(self.folder, SESSIONS, entry.folder)

    def source(self, entry: Entry, file: File | None = None) -> ArchiveSource:
        """Return the bytes of a session, or of any generation of any of its files.

        Raises:
            Unreadable: they cannot be read.
        """
        return ArchiveSource(self.folder_of(entry), file.number if file else entry.number)

    # Keeping

    def pending(
        self, found: Iterable[Group], *, patient: bool = False
    ) -> Iterator[tuple[Group, bool]]:
        """Yield each session, and whether any file of it may have news.

        With `patient`, a little more in a session that is being written can wait for more.
        """
        for group in found:
            entry = self.catalogue.entries.get(group.path)
            waits = patient and entry is not None and _can_wait(group, entry)
            yield group, not waits and (entry is None or not self._has(entry, group))

    def _has(self, entry: Entry, group: Group) -> bool:
        index = os.path.join(self.folder_of(entry), INDEX)
        return entry.state == group.state and os.path.exists(index)

    def keep(self, found: Found | Group, *, full: bool = False, done: Done | None = None) -> Kept:
        """Keep what is new of a session and of everything that goes with it.

        What is known is told from what is new by the ends of the file; `full` compares all of it,
        and proves the copies, so that one that was damaged is written anew. A file that cannot be read is told in `problems`.

        Raises:
            Unwritable: the archive cannot be written; what it held before, it still holds.
        """
        if isinstance(found, Found):
            found = group_of(found, Discovery(found.root), Names())
        try:
            make_folder(os.path.join(self.folder, SESSIONS))
        except OSError as error:
            raise unwritable(self.folder, error) from error
        with Lock(self.lock):
            return self._keep(found, done or _ignore, full=full)

    def _keep(self, group: Group, done: Done, *, full: bool) -> Kept:
        folder = os.path.join(self.folder, SESSIONS, folder_name(group.path))
        keeper = Keeper(folder, group.path, self.level)
        problems: list[Problem] = []
        changes: list[Change] = []
        finished = False
        try:
            for path, found in group.files:
                try:
                    change = keeper.keep(found, path, done, full=full)
                except Unreadable as error:
                    problems.append(_problem(found.path, error))
                else:
                    changes += [change] if change else []
            if full and not problems:
                keeper.mend()
            keeper.commit()
            finished = True
        finally:
            if not finished:
                keeper.roll_back()
            keeper.close()
        # What could not be read is looked at again next time.
        entry = entry_of(keeper.index, "" if problems else group.state)
        if entry is not None:
            self.catalogue.add(entry)
        # A small file that went away meanwhile is no trouble.
        told = tuple(each for each in problems if each.kind != "missing")
        return Kept(group.path, tuple(changes), told)

    def tidy(self) -> None:
        """Have the catalogue on the disk, and small again when most of it is out of date.

        Raises:
            Unwritable: that cannot be done.
        """
        if os.path.exists(os.path.join(self.folder, CATALOGUE[-1])):
            with Lock(self.lock):
                self.catalogue.tidy()

    # Proving, and putting back

    def verify(
        self, entries: list[Entry] | None = None, done: Done | None = None
    ) -> "Iterator[Failure]":
        """Yield what is wrong with the archive, or with some sessions in it.

        Every frame is unpacked and compared with its checksum, and with the file on disk where
        that is still what was kept.

        Raises:
            Unreadable: the archive's folder cannot be read.
        """
        from steno.store.archive.verify import verify, verify_all

        if entries is None:
            return verify_all(self, done or _ignore)
        folders = map(self.folder_of, entries)
        return (each for folder in folders for each in verify(folder, done or _ignore))

    def restore(self, entry: Entry, to: str | None = None, generation: int = 0) -> "list[Restored]":
        """Put a session and what goes with it back where it was, or below another folder.

        A file that is there with other bytes stays as it is. `generation` is that of the
        session's own file; 0 is the last.

        Raises:
            NotFound: there is no such generation.
            Unreadable: the archive cannot be read.
            Unwritable: a file cannot be written.
        """
        from steno.store.archive.restore import restore

        return restore(self.index(entry), to, generation)

    def forget(self, entry: Entry) -> None:
        """Throw away all that was kept of a session: the only way to lose something here.

        Raises:
            Unwritable: that cannot be done, or not all of it.
        """
        folder = self.folder_of(entry)
        with Lock(self.lock):
            try:
                # The journal last: as long as it is there, the rest can be found.
                for name in sorted(os.listdir(folder), key=INDEX.__eq__):
                    os.unlink(os.path.join(folder, name))
                os.rmdir(folder)
            except FileNotFoundError:
                # By hand, or by somebody else: it is gone in any case.
                pass
            except OSError as error:
                raise unwritable(folder, error) from error
            self.catalogue.forget(entry.path)


def archive_all(
    roots: tuple[str, ...] | None = None,
    *,
    planned: Callable[[int], Done] | None = None,
    patient: bool = False,
    sessions: Iterable[Found] | None = None,
) -> Summary:
    """Keep every session below the roots; without any, below those that every command looks at.

    `planned` is told how many bytes there are to read, if any, and returns what is told of bytes as
    they are read. `patient` is for those who come often: a session
    that is being written is left until there is more of it than a few lines. Whoever knows which
    sessions have changed names them (`sessions`), and no other is looked at.

    Raises:
        BadRequest: the config file is broken.
        Unwritable: the archive cannot be written.
    """
    from steno.store.library import roots_of

    archive = Archive()
    problems: list[Problem] = []
    found = groups(roots or roots_of(), problems, sessions)
    pending = list(archive.pending(found, patient=patient))
    wanted = [group for group, news in pending if news]
    done = planned(sum(group.size for group in wanted)) if planned and wanted else None
    kept = [archive.keep(group, done=done) for group in wanted]
    if kept:
        archive.tidy()
    return Summary(
        len(pending),
        tuple(each for each in kept if each.changes),
        (*problems, *(problem for each in kept for problem in each.problems)),
    )


def _stem(entry: Entry) -> str:
    return os.path.basename(entry.path).removesuffix(".jsonl").lower()


def _age(entry: Entry) -> tuple[int, str]:
    return -entry.mtime_ns, entry.path


def _can_wait(group: Group, entry: Entry) -> bool:
    """Say whether there is little new in a session that somebody, or a sub-agent, is at work in."""
    grown = group.size - entry.latest
    if group.session.size < entry.size or not 0 <= grown < _SMALL:
        return False
    time = now()
    # A file from the future would be waited for until then.
    return any(abs(time - found.mtime_ns / 1e9) < _QUIET for _, found in group.files)


def _problem(path: str, error: Unreadable) -> Problem:
    why = error.__cause__
    return problem_of(path, why) if isinstance(why, OSError) else Problem("unreadable", path)


def _ignore(_: int) -> None:
    """Tell nobody."""
