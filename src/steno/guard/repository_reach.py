"""Where git commands run, and what the repositories there reach outside the working folders.

A repository can name other places: a work tree, a shared repository, further objects, symbolic links
among its own files. Under a rule such as `Bash(git log:*)` git would read or write there.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from steno.guard.command_words import DEVICES, path_words
from steno.guard.moves import Folders
from steno.guard.paths import Place, is_inside
from steno.guard.program_environment import remote_settings, work_tree
from steno.guard.readonly import repository_of
from steno.guard.repository import git_folders
from steno.guard.words import Command, Word, literal
from steno.guard.wrappers import base_name

__all__ = ["git_outside", "git_run_folders"]

_MOST_ENTRIES: Final = 20_000
_MOST_BYTES: Final = 1 << 16
_NAMES_FOLDER: Final = ("-C", "--git-dir", "--work-tree")
# Subcommands that talk to another repository, and those that make the folder they are given.
_CONNECTS: Final = frozenset({"clone", "fetch", "ls-remote", "pull", "push", "remote"})
_MAKES_FOLDERS: Final = frozenset({"clone", "init", "worktree"})
# Their value is the next word, and options may follow it.
_TAKES_VALUE: Final = ("-c", "--config-env", "--namespace", "--super-prefix", "--attr-source")


def git_outside(command: Command, where: Folders, working: tuple[str, ...]) -> str:
    """Say what git would reach outside the working folders; a rule with a `*` does not allow it."""
    inner = [each for each in (command, *command.inner) if base_name(each.program) == "git"]
    for each in inner:
        folders = None if where.lost else git_run_folders((each,), where.all)
        if folders is None:
            return "the folder that git runs in is not known before it runs"
        tops = tuple(top for top in map(repository_of, folders) if os.path.isabs(top))
        verb = _verb(each)
        for word in path_words(each):
            if not word.literal or not (verb in _CONNECTS or re.match(r"[/~.]", word.text)):
                continue
            for place in where.places(word) or ():
                inside = is_inside(place, (*working, *tops)) or place.path in DEVICES
                if not inside and (verb in _MAKES_FOLDERS or os.path.lexists(place.path)):
                    return f"{place.path} is outside the working folders"
        risks = (_repository_risk(at, working) for at in folders)
        found = next(filter(None, risks), "")
        if not found and verb in _CONNECTS:
            found = next(filter(None, (_remote_risk(at, working) for at in folders)), "")
        if found:
            return found
    return ""


def git_run_folders(
    commands: Iterable[Command], folders: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return the folders that git works in, also by `-C`; None when they are not known."""
    found = dict.fromkeys(folders)
    for command in commands:
        if base_name(command.program) != "git":
            continue
        at = list(folders)
        rest = iter(command.words[1:])
        for word in rest:
            name, given, value = word.text.partition("=")
            if not name.startswith("-"):
                break
            if name in _TAKES_VALUE and not given:
                next(rest, None)
            if name not in _NAMES_FOLDER:
                continue
            target = Word(value) if given else next(rest, literal("."))
            if any(not each.literal for each in (word, target)):
                return None
            at = [os.path.join(each, target.text) for each in at]
            found |= dict.fromkeys(at)
    return tuple(found)


def _verb(command: Command) -> str:
    """Return the subcommand of a git command; empty where there is none."""
    rest = iter(command.words[1:])
    for word in rest:
        if not word.text.startswith("-"):
            return word.text
        if word.text in (*_NAMES_FOLDER, *_TAKES_VALUE):
            next(rest, None)
    return ""


def _remote_risk(folder: str, working: tuple[str, ...]) -> str:
    """Say which remote repository of a folder's repository is a place on this machine outside."""
    top = _top(folder)
    if not top:
        return ""
    found = remote_settings(folder)
    if found is None:
        return f"the settings of the repository of {top} cannot be read"
    addresses, programs = found
    local = [each for each in map(_local_path, addresses) if each]
    for path in local:
        if not is_inside(Place.of(os.path.expanduser(path), top), working):
            return f"the remote repository {path} is outside the working folders"
    if local and programs:
        # git takes the first value of such a setting, so none can be put in its place.
        return f"the setting {programs[0]} names a program to run"
    for name in ("remotes", "branches"):
        at = os.path.join(top, ".git", name)
        if os.path.isdir(at) and os.listdir(at):
            return f"{at} names remote repositories"
    return ""


def _local_path(address: str) -> str:
    """Return the path of a repository on this machine; empty for an address elsewhere."""
    scheme, given, rest = address.partition("://")
    if given:
        return "/" + rest.partition("/")[2] if scheme.lower() == "file" else ""
    # `host:path` is another machine, unless a slash comes first.
    return "" if re.match(r"[^/]*:", address) else address


def _repository_risk(folder: str, folders: tuple[str, ...]) -> str:
    """Say why a rule with a `*` does not cover the repository of a folder; empty when it does.

    It reaches outside the working folders, or its state names programs that git would run.

    A repository above the folder counts as inside, and so does that of a linked work tree which
    points back at it.
    """
    top = _top(folder)
    if not top:
        return ""
    git = os.path.join(top, ".git")
    allowed = (*folders, *git_folders(folder))
    own = os.path.realpath(git)
    if os.path.isfile(git):
        own = os.path.realpath(os.path.join(top, _text(git).removeprefix("gitdir:").strip()))
    shared = os.path.realpath(os.path.join(own, _text(os.path.join(own, "commondir")).strip()))
    for path in (own, shared):
        if not is_inside(Place(path, path), allowed):
            return f"the repository of {top} is {path}, outside the working folders"
    tree = work_tree(folder)
    if tree and tree != os.path.realpath(top) and not is_inside(Place(tree, tree), folders):
        return f"the work tree of {top} is {tree}, outside the working folders"
    todo = os.path.join(own, "rebase-merge", "git-rebase-todo")
    if re.search(r"^\s*(?:x|exec)\s", _text(todo), re.MULTILINE):
        return f"{todo} names programs to run"
    for path in dict.fromkeys((own, shared)):
        reached = next(_reached(path, (*allowed, own, shared)), "")
        if reached:
            return f"{reached} leads outside the working folders"
    return ""


def _top(folder: str) -> str:
    """Return the nearest folder above that has a `.git`; empty when there is none."""
    at = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return ""
        at = above
    return at


def _reached(repository: str, allowed: tuple[str, ...]) -> Iterator[str]:
    """Yield what in a repository leads elsewhere: links, and lists of further objects."""
    objects = os.path.join(repository, "objects")
    for name in ("alternates", "http-alternates"):
        path = os.path.join(objects, "info", name)
        for line in _text(path).splitlines():
            target = os.path.realpath(os.path.join(objects, line))
            if line and not line.startswith("#") and not is_inside(Place(target, target), allowed):
                yield path
    waiting, seen = [repository], 0
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _MOST_ENTRIES:
                yield repository
            if entry.is_symlink() and not is_inside(Place.of(entry.path), allowed):
                yield entry.path
            # The folders of single objects hold nothing that git follows.
            elif entry.is_dir(follow_symlinks=False) and not _holds_objects(entry, objects):
                waiting.append(entry.path)


def _holds_objects(entry: "os.DirEntry[str]", objects: str) -> bool:
    return os.path.dirname(entry.path) == objects and len(entry.name) == len("00")


def _text(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
