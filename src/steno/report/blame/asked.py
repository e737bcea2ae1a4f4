"""A file on disk, the index and the repository → who wrote its lines."""

import os
import sqlite3
from collections.abc import Sequence
from typing import Final

from steno.errors import BadRequest
from steno.report.blame.merge import Chain, committed, merge
from steno.report.blame.values import Blame
from steno.report.blame.weave import lines_of, weave
from steno.report.files.finding import Opener
from steno.report.files.history import history
from steno.report.names import text_of
from steno.store.git import Repository, Row, Was, is_in_one, repository_of
from steno.store.plain import read_plain

__all__ = ["blame"]

_MOST: Final = 32 << 20
_SECOND: Final = 1000
_REFUSED: Final = "git is not there, or does not take this repository"
_SLOW: Final = "git took too long: lines that are committed may not say so"


def blame(
    connection: sqlite3.Connection,
    path: str,
    opened: Opener | None = None,
    *,
    lines: tuple[int, int] | None = None,
    names: Sequence[str] = (),
    git: bool = True,
) -> Blame:
    """Return who wrote each line of a file as it is now.

    `lines` are the first and the last that are wanted; `names` are further paths under which
    sessions may know the file; without `git` no repository is asked.

    Raises:
        BadRequest: the file is no text, is huge, or has no such lines.
        Unreadable: it cannot be read.
    """
    text = _text(path)
    now = lines_of(text)
    wanted = _wanted(lines, len(now), path)
    here = os.path.abspath(path)
    repository = repository_of(here) if git else None
    chains: list[Chain] = []
    doubts = 0
    for name, until in _names(here, names, repository).items():
        # No session can have written a name that is no text.
        found = history(connection, name, opened) if text_of(name) == name else None
        if found is not None:
            end = None if until is None else (until + 1) * _SECOND
            versions = [each for each in found.versions if end is None or (each.time or 0) < end]
            woven = weave(versions, text)
            chains.append(Chain(name, versions, woven.marks))
            doubts += woven.doubts
    rows = _rows(repository, here)
    blamed, origins = merge(now, chains, committed(rows, now), wanted)
    return Blame(
        path=here,
        total=len(now),
        lines=tuple(blamed),
        origins=tuple(origins),
        names=tuple(chain.path for chain in chains),
        git=repository is not None,
        trouble=_trouble(repository, here) if git else "",
        doubts=doubts,
    )


def _trouble(repository: Repository | None, here: str) -> str:
    if repository is None:
        return _REFUSED if is_in_one(here) else ""
    return _SLOW if repository.slow else ""


def _text(path: str) -> str:
    data = read_plain(path, _MOST)
    if b"\0" in data:
        raise BadRequest(f"{path} is no text")
    return data.decode("utf-8", "replace")


def _wanted(lines: tuple[int, int] | None, total: int, path: str) -> range:
    """Return the places that are asked for."""
    if lines is None:
        return range(total)
    first, last = lines
    if not 1 <= first <= last or first > total:
        raise BadRequest(f"{path} has no line {first}", hint=f"it has {total:,}")
    return range(first - 1, min(last, total))


def _names(
    here: str, further: Sequence[str], repository: Repository | None
) -> dict[str, int | None]:
    """Return what the file may be called in sessions, and until when (in seconds)."""
    names: dict[str, int | None] = dict.fromkeys((here, os.path.realpath(here), *further))
    if repository is None:
        return names
    name = repository.name_of(here)
    mine = here.removesuffix(f"/{name}") if here.endswith(f"/{name}") else repository.top
    tops = dict.fromkeys((mine, repository.top, *repository.work_trees()))
    for was in (Was(name, None), *repository.names_before(name)):
        for top in tops:
            names.setdefault(os.path.join(top, was.name), was.until)
    return names


def _rows(repository: Repository | None, here: str) -> list[Row]:
    """Return the lines at HEAD; of a file that was renamed since, under the name it had there."""
    if repository is None:
        return []
    name = repository.name_of(here)
    rows = repository.annotated(name)
    if not rows:
        staged = [was.name for was in repository.names_before(name) if was.until is None]
        rows = repository.annotated(staged[0]) if staged else []
    return rows
