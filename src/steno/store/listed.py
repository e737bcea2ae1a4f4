"""Every session there is: which folders are looked in, what is found there, the newest first."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from steno.errors import BadRequest, Unreadable
from steno.store import clock
from steno.store.archive.opened import has_archive
from steno.store.discover import Found, Problem, discover
from steno.store.found import problem_of
from steno.store.glance import Glance, glance
from steno.store.places import config_dir, steno_home

if TYPE_CHECKING:
    from steno.store.archive.opened import Archived

__all__ = ["Roots", "newest_first", "roots_of", "seen"]

Roots: TypeAlias = str | Sequence[str] | None
_CONFIG: Final = "config.toml"


def roots_of(root: Roots = None) -> tuple[str, ...]:
    """Return the folders to look in: those named, else the client's and those of the config file.

    Raises:
        BadRequest: the config file is broken.
        Unreadable: it cannot be read.
    """
    if root is None:
        own = config_dir()
        return (own, *_further(own)) if _has_config() else (own,)
    return (root,) if isinstance(root, str) else tuple(root)


def _has_config() -> bool:
    """Say whether there is a config file: all that it costs to have none."""
    with suppress(BadRequest):
        return os.path.lexists(os.path.join(steno_home(), _CONFIG))
    return False


def _further(own: str) -> list[str]:
    """Return the folders of `index.roots`; one by two names is one."""
    from steno.store.config import read_config

    known = {os.path.realpath(own)}
    further: list[str] = []
    for each in read_config().roots:
        folder = os.path.abspath(os.path.expanduser(each))
        if (real := os.path.realpath(folder)) not in known:
            known.add(real)
            further.append(folder)
    return further


def newest_first(
    root: Roots = None, problems: list[Problem] | None = None, *, archived: bool = False
) -> list[Found]:
    """Return every session below the roots, by the time it was last written.

    `archived` adds those that are gone from there and only in the archive.
    """
    found: dict[str, Found] = {}
    folders = roots_of(root)
    for folder in folders:
        for each in discover(folder, problems):
            found.setdefault(each.path, each)
    only = _gone(folders, found.values()) if archived else ()
    return sorted((*found.values(), *only), key=_age)


def _gone(folders: tuple[str, ...], living: Iterable[Found]) -> "list[Archived]":
    if not has_archive():
        return []
    from steno.store.archive.gone import gone_below

    return gone_below(folders, living)


def _age(found: Found) -> tuple[int, str]:
    return -found.mtime_ns, found.path


def seen(
    files: Iterable[Found], now: float | None = None, problems: list[Problem] | None = None
) -> Iterator[tuple[Found, Glance]]:
    """Yield each file with a glance at it; one that cannot be read goes to `problems`."""
    now = clock.now() if now is None else now
    for found in files:
        try:
            look = glance(found, now)
        except Unreadable as error:
            if problems is not None:
                problems.append(_problem(found.path, error))
        else:
            yield found, look


def _problem(path: str, error: Unreadable) -> Problem:
    why = error.__cause__
    return problem_of(path, why) if isinstance(why, OSError) else Problem("unreadable", path)
