"""Which git branch a folder is on, read from git's own files: no program is run for it."""

import os

__all__ = ["git_branch"]

_HEADS = "ref: refs/heads/"


def git_branch(folder: str) -> str:
    """Return the name of the branch, `HEAD` when it is detached, nothing outside a repository."""
    head = _read(os.path.join(_git_folder(folder), "HEAD"))
    if not head:
        return ""
    return head.removeprefix(_HEADS) if head.startswith(_HEADS) else "HEAD"


def _git_folder(folder: str) -> str:
    """Return the folder of git's own files; a worktree has a file there that names it."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return git
        named = _read(git).removeprefix("gitdir: ")
        if named:
            return os.path.join(folder, named)
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""
