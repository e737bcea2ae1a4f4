"""The folders of a git repository that lie outside the folder where git is run."""

import os
from collections.abc import Iterator
from typing import Final

__all__ = ["git_folders"]

_LONGEST: Final = 4096


def git_folders(folder: str) -> Iterator[str]:
    """Yield the folders that git reads for a folder: `.git` above it, or that of a work tree.

    A `.git` file can name any folder. It is followed only to one that points back at it, which
    nobody can arrange who cannot write there.
    """
    at = os.path.realpath(folder)
    while True:
        path = os.path.join(at, ".git")
        if os.path.isdir(path) and not os.path.islink(path):
            yield path
            return
        if os.path.isfile(path) and not os.path.islink(path):
            yield from _linked(path)
            return
        above = os.path.dirname(at)
        if above == at:
            return
        at = above


def _linked(path: str) -> Iterator[str]:
    """Yield the folders of a linked work tree, or of a submodule."""
    top = os.path.dirname(path)
    named = _first_line(path)
    if not named.startswith("gitdir: "):
        return
    own = os.path.realpath(os.path.join(top, named.removeprefix("gitdir: ")))
    back = _first_line(os.path.join(own, "gitdir"))
    if back and os.path.realpath(os.path.join(own, back)) == os.path.realpath(path):
        shared = os.path.realpath(os.path.join(own, _first_line(os.path.join(own, "commondir"))))
        yield own
        if own == os.path.join(shared, "worktrees", os.path.basename(own)) and _is_one(shared):
            yield shared
        return
    if _worktree(os.path.join(own, "config"), own) == os.path.realpath(top):
        yield own


def _is_one(folder: str) -> bool:
    """Whether a folder is a repository: where others write, nobody can make it look like one."""
    return all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def _worktree(config: str, folder: str) -> str:
    """Return the work tree that a submodule's settings name; empty if there is none."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return ""
    for line in lines:
        name, given, value = line.partition("=")
        if given and name.strip().lower() == "worktree":
            return os.path.realpath(os.path.join(folder, value.strip()))
    return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_LONGEST).partition("\n")[0].strip()
    except OSError:
        return ""
