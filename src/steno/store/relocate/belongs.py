"""Which files of a config folder are a project's, by every rule that ever named its folder.

Two projects may share a folder (`/my-work` and `/my/work`), so each session is asked where it ran.
"""

import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.format.loose import REFUSED
from steno.format.paths import transcript_place
from steno.format.slugs import SLUG_LIMIT, slug_candidates, slug_like
from steno.store.found import HEAD, is_folder, listed, peek, session_id_in
from steno.store.read import FileSource
from steno.store.relocate.values import Mode, Move

__all__ = ["Belongings", "belongings", "is_inside", "mode_of"]

_TOPS: Final = ("projects", "conversations")
_SUFFIX: Final = ".jsonl"
_CWD: Final = re.compile(rb'(?<!\\)"cwd"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*")')
_MOST: Final = 64 << 20


class Belongings(msgspec.Struct):
    """What is a project's: files and where they go, folders and what they will be called."""

    moves: list[Move] = []
    folders: list[tuple[str, str]] = []
    notes: list[str] = []


class _Folder:
    """One folder below `projects`: which of its sessions ran in the project, and where."""

    def __init__(self, path: str, old: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self._old = old
        self.homes: dict[str, str] = {}
        self.foreign: set[str] = set()
        self.strays: list[str] = []
        self._look()

    @property
    def is_shared(self) -> bool:
        """Whether sessions of another project lie here too."""
        return bool(self.foreign)

    def _look(self) -> None:
        unsure: list[str] = []
        for entry in listed(self.path, []):
            if not entry.name.endswith(_SUFFIX) or entry.name.startswith("agent-"):
                continue
            stem = entry.name.removesuffix(_SUFFIX)
            home = self._home(entry.path)
            if home is None:
                unsure.append(stem)
                self.strays += [entry.path] if self._ran_here(entry.path) else []
            elif is_inside(home, self._old):
                self.homes[stem] = home
            else:
                self.foreign.add(stem)
        ours = self.name in slug_candidates(self._old) and not self.foreign
        for stem in unsure:
            if ours:
                self.homes[stem] = self._old
            else:
                self.foreign.add(stem)
        self.strays = [] if ours else self.strays

    def _home(self, path: str) -> str | None:
        """Return the folder that a session ran in and this folder is named after."""
        return next((cwd for cwd in _cwds(path) if self.name in slug_candidates(cwd)), None)

    def _ran_here(self, path: str) -> bool:
        return any(is_inside(cwd, self._old) for cwd in _cwds(path))

    def home_of(self, entry: os.DirEntry[str]) -> str | None:
        """Return where the session ran that something in the folder belongs to; None if not ours."""
        name = entry.name
        if name.startswith("agent-"):
            session = self._session_of(entry)
            if session in self.homes or session in self.foreign:
                return self.homes.get(session)
            home = self._home(entry.path)
            return home if home and is_inside(home, self._old) else self._rest()
        for stem in (name, name.removesuffix(_SUFFIX), name.partition(_SUFFIX + ".")[0]):
            if stem in self.homes or stem in self.foreign:
                return self.homes.get(stem)
        return self._rest()

    def _session_of(self, entry: os.DirEntry[str]) -> str:
        path = entry.path
        if path.endswith(".meta.json"):
            path = path.removesuffix(".meta.json") + _SUFFIX
        return session_id_in(peek(path, HEAD, []) or b"")

    def _rest(self) -> str | None:
        """Return the home of what belongs to no session: the folder's, if it is ours alone."""
        if self.is_shared:
            return None
        if self.homes:
            return next(iter(self.homes.values()))
        return self._old if self.name in slug_candidates(self._old) else None


def belongings(config: str, old: str, new: str) -> Belongings:
    """Return what a config folder has of the project at `old`, and where it will lie."""
    found = Belongings()
    for top in _TOPS:
        above = os.path.join(config, top)
        for entry in listed(above, []) if os.path.isdir(above) else ():
            if is_folder(entry, links=False) and _may_be(entry.name, old):
                _gather(_Folder(entry.path, old), old, new, found)
    return found


def _may_be(name: str, old: str) -> bool:
    """Say whether a folder's name may be that of the project, or of a folder in it."""
    return any(name.startswith(each[:SLUG_LIMIT]) for each in slug_candidates(old))


def _gather(folder: _Folder, old: str, new: str, found: Belongings) -> None:
    above = os.path.dirname(folder.path)
    found.notes += [f"{each} is left: no rule names its folder so" for each in folder.strays]
    for entry in listed(folder.path, []):
        home = folder.home_of(entry)
        if home is None:
            if folder.homes and entry.name.removesuffix(_SUFFIX) not in folder.foreign:
                found.notes.append(f"{entry.path} is left: sessions of two projects share it")
            continue
        there = os.path.join(above, slug_like(folder.name, home, new + home[len(old) :]))
        if (folder.path, there) not in found.folders:
            found.folders.append((folder.path, there))
        for source in _files(entry, found.notes):
            target = there + source[len(folder.path) :]
            found.moves.append(Move(source, target, mode_of(source), session=_is_session(source)))


def _is_session(path: str) -> bool:
    names = path.replace(os.sep, "/").split("/")[-6:]
    return path.endswith(_SUFFIX) and transcript_place(names).role in {"session", "agent"}


def _files(entry: os.DirEntry[str], notes: list[str]) -> Iterator[str]:
    """Yield the regular files of an entry; links stay where they are."""
    if entry.is_symlink():
        notes.append(f"{entry.path} is left: a link")
    elif entry.is_dir(follow_symlinks=False):
        for below in listed(entry.path, []):
            yield from _files(below, notes)
    elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(".steno-tmp"):
        yield entry.path


def mode_of(path: str) -> Mode:
    """Return how paths are looked for in a file, by its name."""
    if path.endswith(_SUFFIX):
        return "lines"
    if not path.endswith(".json") or "/tool-results/" in path.replace(os.sep, "/"):
        return "bytes"
    try:
        return "whole" if os.path.getsize(path) <= _MOST else "bytes"
    except OSError:
        return "bytes"


def is_inside(path: str, folder: str) -> bool:
    """Say whether a path is a folder, or below it; of any system."""
    separator = "\\" if "\\" in folder and not folder.startswith("/") else "/"
    return path == folder or path.startswith(folder.rstrip(separator) + separator)


def _cwds(path: str) -> Iterator[str]:
    """Yield the folders that a transcript says it ran in, each once."""
    seen: set[bytes] = set()
    rest = b""
    with FileSource(path) as source:
        for chunk in source.chunks():
            whole, _, rest = (rest + chunk).rpartition(b"\n")
            yield from _told(whole, seen)
    yield from _told(rest, seen)


def _told(data: bytes, seen: set[bytes]) -> Iterator[str]:
    for found in _CWD.finditer(data):
        if found[1] in seen:
            continue
        seen.add(found[1])
        try:
            yield msgspec.json.decode(found[1], type=str)
        except REFUSED:
            continue
