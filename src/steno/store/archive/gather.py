"""Which files belong to a session, for all sessions below some roots in one pass."""

import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec

from steno.store.discover import Discovery
from steno.store.found import Found, Problem

__all__ = ["Group", "Names", "group_of", "groups"]


class Group(msgspec.Struct, frozen=True):
    """A session and everything that goes with it."""

    path: str
    """Where the session really lies: what it is known by in the archive."""
    files: tuple[tuple[str, Found], ...]
    """Each file with its real path; the session's own comes first."""
    state: str
    """Another value means that a file was written, added or taken away."""

    @property
    def session(self) -> Found:
        """The session's own file."""
        return self.files[0][1]

    @property
    def size(self) -> int:
        """How many bytes all of them have."""
        return sum(found.size for _, found in self.files)


class Names:
    """Real paths: a link to a folder is not another folder."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def real(self, path: str) -> str:
        """Return a path with the links to its folder resolved; the file itself may be one."""
        folder, name = os.path.split(path)
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = os.path.realpath(folder or os.curdir)
        return os.path.join(known, name)


def group_of(session: Found, discovery: Discovery, names: Names) -> Group:
    """Return a session with its sub-agents and its small files."""
    files: dict[str, Found] = {}
    for found in (session, *discovery.agents(session), *discovery.sidecars(session)):
        files.setdefault(names.real(found.path), found)
    state = blake2b(digest_size=12)
    for path, found in sorted(files.items()):
        state.update(os.fsencode(path))
        state.update(b"\0%d %d\n" % (found.size, found.mtime_ns))
    return Group(next(iter(files)), tuple(files.items()), state.hexdigest())


def groups(
    roots: tuple[str, ...], problems: list[Problem], sessions: Iterable[Found] | None = None
) -> Iterator[Group]:
    """Yield every session below the roots, or only some, with what goes with it; each once."""
    names = Names()
    known: set[str] = set()
    for session, discovery in _sessions(roots, problems, sessions):
        path = names.real(session.path)
        if path not in known:
            known.add(path)
            yield group_of(session, discovery, names)


def _sessions(
    roots: tuple[str, ...], problems: list[Problem], sessions: Iterable[Found] | None
) -> Iterator[tuple[Found, Discovery]]:
    if sessions is not None:
        discovery = Discovery("", problems)
        for session in sessions:
            yield session, discovery
        return
    for root in roots:
        discovery = Discovery(root, problems)
        for session in discovery.sessions():
            yield session, discovery
