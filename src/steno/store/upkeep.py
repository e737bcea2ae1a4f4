"""What gathers around sessions: files soon to be deleted, what was left behind, second copies."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.loose import REFUSED
from steno.format.paths import Role, is_uuid
from steno.store.discover import files_below
from steno.store.found import Found, Problem, is_folder, listed, peek
from steno.store.read import FileSource

__all__ = ["CLEANUP_DAYS", "SOON", "Leftover", "cleanup_days", "copies", "is_config", "leftovers"]

CLEANUP_DAYS: Final = 30
"""For how many days the client keeps what was not written to, unless its settings say more."""
SOON: Final = 7
"""How many days ahead the client's cleanup is looked for."""
_MOST: Final = 1 << 20
_ENDS: Final = 1 << 16
_SUFFIX: Final = ".jsonl"
_NOTHING: Final = len("[]")
"""The size of a list without items, which clients write for every session."""
_BY_FOLDER: Final = ("file-history", "tasks", "session-env")
_BY_NAME: Final[dict[str, Role]] = {"todos": "todo", "debug": "debug"}


class Leftover(msgspec.Struct, frozen=True):
    """Something that belonged to a session which is gone."""

    path: str
    kind: str
    """The folder it lies in, such as `todos`; `session` for a session's own folder."""
    session_id: str
    files: int
    size: int


class _Settings(msgspec.Struct, rename="camel"):
    cleanup_period_days: msgspec.Raw = msgspec.Raw()


def is_config(folder: str) -> bool:
    """Say whether a folder is a client's config folder."""
    return os.path.isdir(os.path.join(folder, "projects"))


def cleanup_days(config: str) -> float:
    """Return for how many days the client of a config folder keeps its files."""
    raw = peek(os.path.join(config, "settings.json"), _MOST, [])
    try:
        said = msgspec.json.decode(raw or b"{}", type=_Settings).cleanup_period_days
        days = msgspec.json.decode(said or b"null", type=float)
    except REFUSED:
        return CLEANUP_DAYS
    return days if days >= 0 else CLEANUP_DAYS


def leftovers(config: str, sessions: Iterable[str], problems: list[Problem]) -> list[Leftover]:
    """Return what lies in a config folder for sessions other than those."""
    known = {name.lower() for name in sessions}
    found = [
        each
        for each in (*_own_folders(config, problems), *_elsewhere(config, problems))
        if each.session_id.lower() not in known
    ]
    return sorted(found, key=_bulk)


def _bulk(each: Leftover) -> tuple[int, str]:
    return -each.size, each.path


def _own_folders(config: str, problems: list[Problem]) -> Iterator[Leftover]:
    """Yield the folders that lie, or lay, beside a session of the same name."""
    for project in _folders(os.path.join(config, "projects"), problems):
        for entry in _folders(project.path, problems):
            if is_uuid(entry.name) and not os.path.lexists(entry.path + _SUFFIX):
                prefix = f"projects/{project.name}/{entry.name}"
                yield _folder(entry, "session", prefix, problems)


def _elsewhere(config: str, problems: list[Problem]) -> Iterator[Leftover]:
    for top in _BY_FOLDER:
        for entry in _folders(os.path.join(config, top), problems):
            if is_uuid(entry.name):
                yield _folder(entry, top, f"{top}/{entry.name}", problems)
    for top, role in _BY_NAME.items():
        for each in files_below(os.path.join(config, top), problems, prefix=top):
            if each.place.role == role and each.place.session_id and each.size > _NOTHING:
                yield Leftover(each.path, top, each.place.session_id, 1, each.size)


def _folders(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    if not os.path.isdir(folder):
        return []
    return [entry for entry in listed(folder, problems) if is_folder(entry, links=False)]


def _folder(entry: os.DirEntry[str], kind: str, prefix: str, problems: list[Problem]) -> Leftover:
    files = list(files_below(entry.path, problems, prefix=prefix))
    return Leftover(entry.path, kind, entry.name, len(files), sum(each.size for each in files))


def copies(
    files: Iterable[Found], problems: list[Problem], done: Callable[[int], None] | None = None
) -> list[tuple[Found, ...]]:
    """Return files with the same bytes, in groups; a file under two names is no copy.

    Only files of one size are opened, and only those with equal ends are read.
    """
    groups: list[list[Found]] = []
    for same_size in _sorted_by(files, _size):
        if same_size[0].size and len(same_size) > 1:
            groups += _sorted_by(_several(same_size, problems), lambda f: _ends(f, problems))
    found: list[tuple[Found, ...]] = []
    for group in groups:
        if len(group) > 1:
            same = _sorted_by(group, lambda f: _digest(f, problems, done))
            found += [tuple(each) for each in same if len(each) > 1]
    return sorted(found, key=lambda group: (-group[0].size, group[0].path))


def _size(found: Found) -> bytes:
    return str(found.size).encode()


def _sorted_by(files: Iterable[Found], mark: Callable[[Found], bytes | None]) -> list[list[Found]]:
    groups: dict[bytes, list[Found]] = {}
    for found in files:
        key = mark(found)
        if key is not None:
            groups.setdefault(key, []).append(found)
    return list(groups.values())


def _several(files: list[Found], problems: list[Problem]) -> list[Found]:
    """Return one path for each file, however many names it has."""
    seen: dict[tuple[int, int], Found] = {}
    for found in files:
        try:
            with FileSource(found.path) as source:
                seen.setdefault(source.identity, found)
        except Unreadable as error:
            problems.append(Problem("unreadable", found.path, str(error)))
    return list(seen.values())


def _ends(found: Found, problems: list[Problem]) -> bytes | None:
    from hashlib import blake2b

    try:
        with FileSource(found.path) as source:
            last = source.read(max(0, source.size - _ENDS), _ENDS)
            return blake2b(source.read(0, _ENDS) + last).digest()
    except Unreadable as error:
        problems.append(Problem("unreadable", found.path, str(error)))
        return None


def _digest(
    found: Found, problems: list[Problem], done: Callable[[int], None] | None
) -> bytes | None:
    from hashlib import blake2b

    digest = blake2b()
    try:
        with FileSource(found.path) as source:
            for chunk in source.chunks():
                digest.update(chunk)
                if done is not None:
                    done(len(chunk))
    except Unreadable as error:
        problems.append(Problem("unreadable", found.path, str(error)))
        return None
    return digest.digest()
