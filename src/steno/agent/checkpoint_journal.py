"""The journal of a session's checkpoints: what the records of the real client have no place for."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from steno.agent.file_states import State, pieces
from steno.format.encode import encode_line
from steno.store.append import Appender

__all__ = ["Journal"]


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the journal."""

    backup: str = ""
    path: str = ""
    made: str = ""
    digest: str = ""
    mode: int = 0


class Journal:
    """What no record has a place for: modes, what we have left in files, folders we have made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.kept: dict[str, State] = {}
        self.left: dict[str, str] = {}
        self.made: set[str] = set()

    def read(self, path: str) -> None:
        """Take in what was noted before."""
        try:
            data = b"".join(pieces(path))
        except OSError:
            return
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):
                note = msgspec.json.decode(line, type=_Note)
                self._apply(note)

    def add_kept(self, name: str, state: State) -> None:
        """Note what a backup holds."""
        self._add(_Note(backup=name, digest=state.digest, mode=state.mode))

    def add_left(self, path: str, state: State) -> None:
        """Note what a file was left as."""
        if self.left.get(path) != state.digest:
            self._add(_Note(path=path, digest=state.digest))

    def add_made(self, folders: Iterable[str]) -> None:
        """Note folders that were made."""
        for folder in folders:
            if folder not in self.made:
                self._add(_Note(made=folder))

    def _add(self, note: _Note) -> None:
        self._apply(note)
        with Appender(self._path) as file:
            file.append(encode_line(msgspec.to_builtins(note)))

    def _apply(self, note: _Note) -> None:
        if note.backup:
            self.kept[note.backup] = State(note.digest, note.mode)
        elif note.path:
            self.left[note.path] = note.digest
        elif note.made:
            self.made.add(note.made)
