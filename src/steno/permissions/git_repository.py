"""Git repositories that commands use: their directories, and locations outside the working directories.

A repository can refer to other locations: a work tree, a common directory, alternate object stores, symbolic links.
With a rule such as `Bash(git log:*)` git would read or write there.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from steno.permissions.paths import STANDARD_DEVICES, ResolvedPath, is_inside
from steno.permissions.program_environment import remote_settings, work_tree
from steno.permissions.shell.command import Command, Word, literal_word
from steno.permissions.shell.command_paths import RunFolders, path_candidates
from steno.permissions.shell.nested_commands import program_name
from steno.permissions.shell.read_only_commands import find_repository
from steno.store.git import repository_root

_MAX_LINE: Final = 4096


def git_folders(folder: str) -> Iterator[str]:
    """Yield the directories that git reads: the nearest `.git` at or above `folder`, or that of a linked work tree.

    A `.git` file can name any directory. It is only followed to a directory that points back at it, which requires
    write access to that directory.
    """
    current = os.path.realpath(folder)
    while True:
        path = os.path.join(current, ".git")
        if os.path.isdir(path) and not os.path.islink(path):
            yield path
            return
        if os.path.isfile(path) and not os.path.islink(path):
            yield from _linked_git_folders(path)
            return
        parent = os.path.dirname(current)
        if parent == current:
            return
        current = parent


def _linked_git_folders(path: str) -> Iterator[str]:
    """Yield the git directories of a linked work tree or of a submodule."""
    top = os.path.dirname(path)
    gitdir_line = _first_line(path)
    if not gitdir_line.startswith("gitdir: "):
        return
    git_dir = os.path.realpath(os.path.join(top, gitdir_line.removeprefix("gitdir: ")))
    back_link = _first_line(os.path.join(git_dir, "gitdir"))
    if back_link and os.path.realpath(os.path.join(git_dir, back_link)) == os.path.realpath(path):
        common_dir = os.path.realpath(os.path.join(git_dir, _first_line(os.path.join(git_dir, "commondir"))))
        yield git_dir
        if git_dir == os.path.join(common_dir, "worktrees", os.path.basename(git_dir)) and _is_repository(common_dir):
            yield common_dir
        return
    if _worktree(os.path.join(git_dir, "config"), git_dir) == os.path.realpath(top):
        yield git_dir


def _is_repository(folder: str) -> bool:
    """Whether a directory has the layout of a repository."""
    return all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def _worktree(config: str, folder: str) -> str:
    """Return the work tree in the settings of a submodule; empty if none is set."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return ""
    for line in lines:
        name, separator, value = line.partition("=")
        if separator and name.strip().lower() == "worktree":
            return os.path.realpath(os.path.join(folder, value.strip()))
    return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_LINE).partition("\n")[0].strip()
    except OSError:
        return ""


_MAX_ENTRIES: Final = 20_000
_MAX_BYTES: Final = 1 << 16
_FOLDER_OPTIONS: Final = ("-C", "--git-dir", "--work-tree")
# Subcommands that contact another repository, and those that create the directory in their operand.
_REMOTE_SUBCOMMANDS: Final = frozenset({"clone", "fetch", "ls-remote", "pull", "push", "remote"})
_CREATING_SUBCOMMANDS: Final = frozenset({"clone", "init", "worktree"})
# Options with the value in the next word; more options may follow.
_VALUE_OPTIONS: Final = ("-c", "--config-env", "--namespace", "--super-prefix", "--attr-source")


def git_reach_outside(command: Command, run_folders: RunFolders, working_folders: tuple[str, ...]) -> str:
    """Return why git would reach outside the working directories, which wildcard rules do not allow."""
    git_commands = [
        git_command for git_command in (command, *command.inner) if program_name(git_command.program) == "git"
    ]
    for each in git_commands:
        folders = None if run_folders.lost else git_run_folders((each,), run_folders.all)
        if folders is None:
            return "the directory that git runs in depends on a variable"
        roots = tuple(root for root in map(find_repository, folders) if os.path.isabs(root))
        subcommand = _subcommand(each)
        for word in path_candidates(each):
            if not word.literal or not (subcommand in _REMOTE_SUBCOMMANDS or re.match(r"[/~.]", word.text)):
                continue
            for resolved_path in run_folders.resolve(word) or ():
                is_allowed = (
                    is_inside(resolved_path, (*working_folders, *roots)) or resolved_path.path in STANDARD_DEVICES
                )
                if not is_allowed and (subcommand in _CREATING_SUBCOMMANDS or os.path.lexists(resolved_path.path)):
                    return f"{resolved_path.path} is outside the working directories"
        risks = (_repository_risk(folder, working_folders) for folder in folders)
        reason = next(filter(None, risks), "")
        if not reason and subcommand in _REMOTE_SUBCOMMANDS:
            reason = next(filter(None, (_remote_risk(at, working_folders) for at in folders)), "")
        if reason:
            return reason
    return ""


def git_run_folders(commands: Iterable[Command], folders: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the directories that git runs in, including `-C`; None if they are unknown."""
    run_folders = dict.fromkeys(folders)
    for command in commands:
        if program_name(command.program) != "git":
            continue
        current_folders = list(folders)
        rest = iter(command.words[1:])
        for word in rest:
            name, separator, value = word.text.partition("=")
            if not name.startswith("-"):
                break
            if name in _VALUE_OPTIONS and not separator:
                next(rest, None)
            if name not in _FOLDER_OPTIONS:
                continue
            target = Word(value) if separator else next(rest, literal_word("."))
            if any(not item.literal for item in (word, target)):
                return None
            current_folders = [os.path.join(each, target.text) for each in current_folders]
            run_folders |= dict.fromkeys(current_folders)
    return tuple(run_folders)


def _subcommand(command: Command) -> str:
    """Return the subcommand of a git command, or an empty string."""
    rest = iter(command.words[1:])
    for word in rest:
        if not word.text.startswith("-"):
            return word.text
        if word.text in (*_FOLDER_OPTIONS, *_VALUE_OPTIONS):
            next(rest, None)
    return ""


def _remote_risk(folder: str, working_folders: tuple[str, ...]) -> str:
    """Return why the remote repositories of a repository are a risk: paths outside, or programs."""
    root = repository_root(os.path.realpath(folder))
    if not root:
        return ""
    settings = remote_settings(folder)
    if settings is None:
        return f"cannot read the git settings of {root}"
    addresses, programs = settings
    local_paths = [local_path for local_path in map(_local_path, addresses) if local_path]
    for path in local_paths:
        if not is_inside(ResolvedPath.of(os.path.expanduser(path), root), working_folders):
            return f"the remote repository {path} is outside the working directories"
    if local_paths and programs:
        # git uses the first value of such a setting, so it cannot be overridden.
        return f"the setting {programs[0]} names a program to run"
    for name in ("remotes", "branches"):
        config_dir = os.path.join(root, ".git", name)
        if os.path.isdir(config_dir) and os.listdir(config_dir):
            return f"{config_dir} names remote repositories"
    return ""


def _local_path(address: str) -> str:
    """Return the path of a local repository; empty for a remote address."""
    scheme, separator, path = address.partition("://")
    if separator:
        return "/" + path.partition("/")[2] if scheme.lower() == "file" else ""
    # `host:path` is another machine, unless a slash comes first.
    return "" if re.match(r"[^/]*:", address) else address


def _repository_risk(folder: str, folders: tuple[str, ...]) -> str:
    """Return why a wildcard rule does not cover a repository; empty if it does.

    Reasons: it reaches outside the working directories, or its state names programs that git would run.

    A repository above the directory counts as inside, and so does that of a linked work tree that points back at it.
    """
    root = repository_root(os.path.realpath(folder))
    if not root:
        return ""
    dot_git = os.path.join(root, ".git")
    allowed = (*folders, *git_folders(folder))
    git_dir = os.path.realpath(dot_git)
    if os.path.isfile(dot_git):
        git_dir = os.path.realpath(os.path.join(root, _read_text(dot_git).removeprefix("gitdir:").strip()))
    common_dir = os.path.realpath(os.path.join(git_dir, _read_text(os.path.join(git_dir, "commondir")).strip()))
    for path in (git_dir, common_dir):
        if not is_inside(ResolvedPath(path, path), allowed):
            return f"the repository of {root} is {path}, outside the working directories"
    tree_path = work_tree(folder)
    if tree_path and tree_path != os.path.realpath(root) and not is_inside(ResolvedPath(tree_path, tree_path), folders):
        return f"the work tree of {root} is {tree_path}, outside the working directories"
    rebase_todo = os.path.join(git_dir, "rebase-merge", "git-rebase-todo")
    if re.search(r"^\s*(?:x|exec)\s", _read_text(rebase_todo), re.MULTILINE):
        return f"{rebase_todo} names programs to run"
    for path in dict.fromkeys((git_dir, common_dir)):
        outside_link = next(_links_outside(path, (*allowed, git_dir, common_dir)), "")
        if outside_link:
            return f"{outside_link} links outside the working directories"
    return ""


def _links_outside(repository: str, allowed: tuple[str, ...]) -> Iterator[str]:
    """Yield entries of a repository that refer to outside locations: symbolic links and alternate object lists."""
    objects = os.path.join(repository, "objects")
    for name in ("alternates", "http-alternates"):
        path = os.path.join(objects, "info", name)
        for line in _read_text(path).splitlines():
            target = os.path.realpath(os.path.join(objects, line))
            if line and not line.startswith("#") and not is_inside(ResolvedPath(target, target), allowed):
                yield path
    pending, entry_count = [repository], 0
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            entry_count += 1
            if entry_count > _MAX_ENTRIES:
                yield repository
            if entry.is_symlink() and not is_inside(ResolvedPath.of(entry.path), allowed):
                yield entry.path
            # Directories of loose objects contain nothing that git follows.
            elif entry.is_dir(follow_symlinks=False) and not _holds_objects(entry, objects):
                pending.append(entry.path)


def _holds_objects(entry: "os.DirEntry[str]", objects: str) -> bool:
    return os.path.dirname(entry.path) == objects and len(entry.name) == len("00")


def _read_text(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return ""
