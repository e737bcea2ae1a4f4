"""Taking files back: what it means for each, what is in its way, and doing it."""

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from steno.agent.checkpoint_backups import Backups
from steno.agent.checkpoint_journal import Journal
from steno.agent.checkpoint_records import Backup, History
from steno.agent.file_paths import is_in
from steno.agent.file_putting import put, put_link
from steno.agent.file_states import BITS, State, pieces, status_of
from steno.errors import Unreadable, Unwritable

__all__ = ["Restore", "Restored", "Restoring"]


class Restore(msgspec.Struct, frozen=True):
    """What taking a file back means, or meant."""

    path: str
    action: Literal["write", "delete", "unchanged"]
    foreign: bool = False
    """Whether somebody else has changed it: its content is none that is known here."""
    obstacle: str = ""
    """Why it cannot be done; such a file is left as it is."""


class Restored(msgspec.Struct, frozen=True):
    """What was done."""

    done: tuple[Restore, ...]
    left: tuple[Restore, ...]
    """What could not be done, and why."""
    undo: str = ""
    """Restore this to have everything as it was before; nothing if nothing was to be done."""


class Restoring:
    """Takes files back to what they were, where nothing is in the way."""

    def __init__(self, project: str, history: History, backups: Backups, journal: Journal) -> None:
        self._project = project
        self._history = history
        self._backups = backups
        self._journal = journal

    def planned(self, path: str, number: int) -> Restore:
        """Return what taking a file back to a moment would do."""
        backup = self._history.at(path, number)
        target = self._backups.kept(backup)
        action = "delete" if backup.name is None else "write"
        if target is None:
            return Restore(path, action, obstacle="its backup is lost")
        try:
            now = self._backups.state(path)
        except Unreadable as error:
            return Restore(path, action, obstacle=str(error))
        if now.same(target):
            return Restore(path, "unchanged")
        foreign = bool(now.digest) and not self._is_known(path, now)
        return Restore(path, action, foreign, self._obstacle(path, backup))

    def attempt(self, wanted: Restore, number: int) -> Restore:
        """Take a file back to a moment; return what it came to."""
        if wanted.obstacle:
            return wanted
        path = wanted.path
        backup = self._history.at(path, number)
        try:
            kept = self._backups.kept(self._history.last(path))
            if kept is None or not self._backups.state(path).same(kept):
                raise Unwritable("it was changed this very moment")
            if wanted.action == "delete":
                os.unlink(path)
            else:
                self._bring_back(path, backup)
        except (FileNotFoundError, NotADirectoryError):
            return wanted
        except OSError as error:
            said = str(error) if isinstance(error, Unreadable | Unwritable) else error.strerror
            return msgspec.structs.replace(wanted, obstacle=said or type(error).__name__)
        return wanted

    def clear_folders(self, gone: Iterable[str]) -> None:
        """Remove the folders that were made here and are empty again."""
        for path in gone:
            folder = os.path.dirname(path)
            while folder in self._journal.made:
                try:
                    os.rmdir(folder)
                except OSError:
                    break
                folder = os.path.dirname(folder)

    def _is_known(self, path: str, now: State) -> bool:
        if self._journal.left.get(path) == now.digest:
            return True
        kept = (self._backups.kept(backup) for _, backup in reversed(self._history.files[path]))
        return any(state is not None and state.digest == now.digest for state in kept)

    def _obstacle(self, path: str, backup: Backup) -> str:
        """Return why a path must not be written to, if so: records may have been made by anybody."""
        inside = is_in(path, self._project)
        if not inside and path not in self._journal.left:
            return "it is not in the project"
        real = os.path.realpath(os.path.dirname(path))
        if inside and not is_in(real, self._project, itself=True):
            return f"its folder leads out of the project, to {real}"
        if not inside and real != (backup.parent or real):
            return f"its folder now leads to {real}"
        if backup.parent and is_in(backup.parent, self._project) and real != backup.parent:
            return f"its folder now leads to {real}"
        return ""

    def _bring_back(self, path: str, backup: Backup) -> None:
        target = self._backups.kept(backup)
        source = os.path.join(self._backups.folder, backup.name or "")
        if target is None:
            raise Unreadable("its backup is lost")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Now that all folders are there, once more.
        obstacle = self._obstacle(path, backup)
        if obstacle:
            raise Unwritable(obstacle)
        if target.is_link:
            put_link(path, b"".join(pieces(source)))
            return
        now = status_of(path)
        mode = target.mode or (now.st_mode if now is not None else 0o666 & ~_umask())
        put(path, pieces(source), mode & BITS, like=now, digest=target.digest)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
