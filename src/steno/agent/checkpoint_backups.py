"""Backups of files, in the folder in which the real client has them."""

import os
from collections.abc import Callable, Iterable

import msgspec

from steno.agent.checkpoint_journal import Journal
from steno.agent.checkpoint_records import Backup
from steno.agent.file_putting import put
from steno.agent.file_states import ABSENT, Stamp, State, pieces, stamp_of, state_of
from steno.errors import Unreadable
from steno.format.paths import file_history_name
from steno.store.disk import flush_folder, make_folder
from steno.store.scratch import unwritable

__all__ = ["Backups"]


class Backups:
    """The backups of one session, and what the files are that they were made of."""

    def __init__(self, folder: str, journal: Journal, now: Callable[[], str]) -> None:
        self.folder = folder
        self._journal = journal
        self._now = now
        self._stamps: dict[str, tuple[Stamp, State]] = {}

    def state(self, path: str) -> State:
        """Return what is at a path now, without reading what has not changed.

        Raises:
            Unreadable: it cannot be read.
        """
        known = self._stamps.get(path)
        if known is not None and known[0] == stamp_of(path):
            return msgspec.structs.replace(known[1], mode=os.lstat(path).st_mode)
        state, stamp = state_of(path)
        if stamp is None:
            self._stamps.pop(path, None)
        else:
            self._stamps[path] = (stamp, state)
        return state

    def kept(self, backup: Backup) -> State | None:
        """Return what a backup holds; None if it is lost."""
        if backup.name is None:
            return ABSENT
        known = self._journal.kept.get(backup.name)
        path = os.path.join(self.folder, backup.name)
        if known is not None:
            return known if os.path.isfile(path) else None
        try:
            state, _ = state_of(path)
        except Unreadable:
            return None
        return State(state.digest) if state.digest and not state.is_link else None

    def keep(self, path: str, version: int) -> Backup:
        """Make a backup of what a file is now.

        Raises:
            Unreadable: it cannot be read.
            Unwritable: it cannot be kept.
        """
        state = self.state(path)
        if state == ABSENT:
            return self.make(path, version, None)
        if state.is_link:
            return self.make(path, version, state.mode, [os.fsencode(os.readlink(path))])
        return self.make(path, version, state.mode, pieces(path))

    def make(
        self, path: str, version: int, mode: int | None, chunks: Iterable[bytes] = ()
    ) -> Backup:
        """Make a backup of a content, of that version or a later one; no mode means no file.

        Raises:
            Unreadable: the content cannot be read.
            Unwritable: it cannot be kept.
        """
        name = None
        if mode is not None:
            # What is there already is somebody's, even if no record tells of it.
            while os.path.lexists(os.path.join(self.folder, file_history_name(path, version))):
                version += 1
            name = file_history_name(path, version)
            make_folder(self.folder)
            target = os.path.join(self.folder, name)
            try:
                digest = put(target, chunks, 0o600)
                flush_folder(self.folder)
            except OSError as error:
                raise (
                    error if isinstance(error, Unreadable) else unwritable(target, error)
                ) from None
            self._journal.add_kept(name, State(digest, mode))
        return Backup(name, version, self._now(), os.path.realpath(os.path.dirname(path)))

    def adopt(self, source: str, names: Iterable[str]) -> None:
        """Give the backups of another session to this one."""
        make_folder(self.folder)
        for name in names:
            old, new = os.path.join(source, name), os.path.join(self.folder, name)
            if not os.path.lexists(new) and os.path.isfile(old):
                put(new, pieces(old), 0o600)
