"""The walk through folders that finds transcripts, in whatever kind of folder it starts."""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from steno.format.paths import CONFIG_FOLDERS, Place, is_uuid, transcript_place
from steno.store.found import (
    HEAD,
    Found,
    Problem,
    found_entry,
    is_folder,
    is_transcript,
    listed,
    peek,
    problem_of,
)

__all__ = ["MAX_DEPTH", "NEVER", "Walk", "folder_names", "folders_walked"]

MAX_DEPTH: Final = 24
_SUFFIX: Final = ".jsonl"
NEVER: Final = frozenset({".git", "node_modules", "tool-results"})
_TOPS: Final = frozenset({"projects", "conversations"})
_ABOVE: Final = 6


def folder_names(path: str) -> tuple[str, ...]:
    """Return the names of a folder and the few above it, which say what a file in it is."""
    names = os.path.abspath(path).split(os.sep)
    return tuple(name for name in names[-_ABOVE:] if name)


def folders_walked(root: str) -> tuple[str, ...]:
    """Return the folders that a walk looks into: of a config folder those that hold transcripts."""
    below = listed(root, [])
    if not any(entry.name in _TOPS for entry in below):
        return (root,)
    other = NEVER | CONFIG_FOLDERS
    return tuple(e.path for e in below if e.name not in other and is_folder(e, links=True))


class Walk:
    """One walk from one root. Every folder is read once, however many links lead to it.

    Links to folders are followed after everything else, so a folder inside the tree is found
    under its own name; a link to a folder above itself is never followed.
    """

    def __init__(
        self,
        root: str,
        problems: list[Problem],
        *,
        agents: bool,
        known: Callable[[os.DirEntry[str]], bool] | None = None,
    ) -> None:
        """Take `known` to pass over files that the caller has nothing to ask about."""
        self._root = root
        self._known = known
        self._problems = problems
        self._agents = agents
        self._seen: set[tuple[int, int]] = set()
        self._folders: list[tuple[str, tuple[str, ...], int]] = []
        self._links: list[tuple[str, tuple[str, ...], int]] = []

    def run(self) -> Iterator[Found]:
        """Yield what there is, folder by folder, by name."""
        try:
            status = os.stat(self._root)
        except (OSError, ValueError) as error:
            self._problems.append(problem_of(self._root, error))
            return
        if not stat.S_ISDIR(status.st_mode):
            yield from self._single(status)
            return
        self._folders.append((self._root, folder_names(self._root), 0))
        while self._folders or self._links:
            if self._folders:
                yield from self._folder(*self._folders.pop())
            else:
                self._follow(*self._links.pop(0))

    def _single(self, status: os.stat_result) -> Iterator[Found]:
        if not stat.S_ISREG(status.st_mode):
            self._problems.append(Problem("special", self._root, "not a regular file"))
            return
        place = transcript_place(folder_names(self._root))
        if place.role != "agent":
            # Whoever names one file means it to be read.
            place = msgspec.structs.replace(place, role="session")
        yield Found(self._root, status.st_size, status.st_mtime_ns, place, self._root)

    def _folder(self, path: str, names: tuple[str, ...], depth: int) -> Iterator[Found]:
        if not self._first_time(path):
            return
        entries = listed(path, self._problems)
        here = {entry.name for entry in entries}
        config = not _TOPS.isdisjoint(here)
        known = self._known
        below: list[tuple[str, tuple[str, ...], int]] = []
        for entry in entries:
            name = entry.name
            if name.endswith(_SUFFIX):
                if known is not None and known(entry):
                    continue
                found = self._file(entry, names)
                if found is not None:
                    yield found
            elif self._wanted(name, here, config=config):
                below += self._below(entry, names, depth)
        self._folders += reversed(below)

    def _wanted(self, name: str, here: set[str], *, config: bool) -> bool:
        if name in NEVER or (config and name in CONFIG_FOLDERS):
            return False
        if self._agents:
            return True
        # The folder beside a session holds what belongs to it, but no other session.
        return name != "subagents" and not (name + _SUFFIX in here and is_uuid(name))

    def _below(
        self, entry: os.DirEntry[str], names: tuple[str, ...], depth: int
    ) -> list[tuple[str, tuple[str, ...], int]]:
        try:
            if entry.is_dir(follow_symlinks=False):
                step = (entry.path, (*names, entry.name), depth + 1)
                if depth < MAX_DEPTH:
                    return [step]
                self._problems.append(Problem("too-deep", entry.path, "too many folders deep"))
            elif entry.is_symlink():
                if entry.is_dir():
                    self._links.append((entry.path, (*names, entry.name), depth + 1))
                else:
                    entry.stat()
        except FileNotFoundError:
            self._problems.append(Problem("dangling", entry.path, "a link to nothing"))
        except OSError as error:
            self._problems.append(problem_of(entry.path, error))
        return []

    def _follow(self, path: str, names: tuple[str, ...], depth: int) -> None:
        target = os.path.realpath(path)
        here = os.path.realpath(os.path.dirname(path))
        if (here + os.sep).startswith(target.rstrip(os.sep) + os.sep):
            self._problems.append(Problem("loop", path, "a link to a folder it lies in"))
        elif depth <= MAX_DEPTH:
            self._folders.append((path, names, depth))

    def _first_time(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError as error:
            self._problems.append(problem_of(path, error))
            return False
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _file(self, entry: os.DirEntry[str], names: tuple[str, ...]) -> Found | None:
        place = transcript_place((*names, entry.name))
        if place.role == "session":
            return found_entry(entry, place, self._root, self._problems)
        if place.role == "agent":
            if not self._agents:
                return None
            return found_entry(entry, place, self._root, self._problems)
        if place.role == "unknown":
            return self._glance(entry, place)
        return None

    def _glance(self, entry: os.DirEntry[str], place: Place) -> Found | None:
        """Look inside a file whose name says nothing."""
        found = found_entry(entry, place, self._root, self._problems)
        if found is None or not found.size:
            return None
        head = peek(found.path, HEAD, self._problems)
        if head is None or not is_transcript(head):
            return None
        return msgspec.structs.replace(found, place=msgspec.structs.replace(place, role="session"))
