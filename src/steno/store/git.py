"""Git history of one file: the commits of its lines, and its former names.

repository = find_repository("/home/ada/work/a.py")   # None: git or the repository is missing
repository.annotate("a.py")                           # its lines at HEAD, each with its commit

A repository can come from an untrusted source, and its configuration can name programs to run. None of them is run:
only objects and the index are read, never the work tree (so no filter runs), nothing is fetched, no signature is
checked, only the repository's configuration is used, and every setting that names a program is overridden.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Final

import msgspec

_TIMEOUT: Final = 20.0
"""Seconds before a git process is cancelled."""
_MAX_OUTPUT: Final = 64 << 20
_MAX_RENAMES: Final = 20
_RENAME_FIELDS: Final = 3
_DISABLED_SETTINGS: Final = (
    *("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "core.editor=false"),
    *("core.sshCommand=false", "core.askPass=false", "core.untrackedCache=false"),
    *(f"core.attributesFile={os.devnull}", "core.quotePath=false", "credential.helper="),
    *("diff.external=", "diff.renameLimit=1000", "gpg.program=false", "log.showSignature=false"),
    *("protocol.allow=never", "safe.bareRepository=explicit", "blame.ignoreRevsFile="),
    *("i18n.logOutputEncoding=UTF-8", "gc.auto=0", "maintenance.auto=false"),
)
_GIT_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


class Commit(msgspec.Struct, frozen=True):
    """A commit; `time` is the commit time in seconds since 1970."""

    hash: str
    author: str
    time: int
    summary: str


class AnnotatedLine(msgspec.Struct, frozen=True):
    """A line of a file at HEAD."""

    text: str
    commit: Commit


class FormerName(msgspec.Struct, frozen=True):
    """A former name of a file, and the time of the rename (None: not committed yet)."""

    name: str
    until: int | None


class Repository:
    """The repository that contains a file. Names are relative to its root."""

    def __init__(self, program: str, top: str) -> None:
        self.top = top
        self.timed_out = False
        """Whether git took too long or returned too much output."""
        self._program = program

    def name_of(self, path: str) -> str:
        """Return the name of a file in the repository."""
        return os.path.relpath(os.path.realpath(path), self.top).replace(os.sep, "/")

    def annotate(self, name: str) -> list[AnnotatedLine]:
        """Return the lines of a file at HEAD; an empty list if HEAD does not contain it."""
        output = self._run_git("blame", "--porcelain", "--no-textconv", "HEAD", "--", name)
        return list(_parse_blame(output)) if output is not None else []

    def former_names(self, name: str) -> list[FormerName]:
        """Return the former names of a file, latest first, following renames."""
        names: list[FormerName] = []
        staged = self._run_git("diff-index", "--cached", "-M", "--name-status", "-z", "HEAD")
        for old, new in _parse_renames((staged or b"").split(b"\0")):
            if new == name:
                names.append(FormerName(old, None))
                name = old
                break
        output = self._run_git(
            *("log", "--follow", "--diff-filter=R", "-M", "--name-status", "-z"),
            *("--no-show-signature", "--no-ext-diff", "--no-textconv", f"-n{_MAX_RENAMES}"),
            *("--format=format:%x01%ct", "--", name),
        )
        for part in (output or b"").split(b"\x01")[1:]:
            time, _, rest = part.partition(b"\n")
            if time.isdigit():
                names += [FormerName(old, int(time)) for old, _ in _parse_renames(rest.split(b"\0"))]
        return names

    def work_trees(self) -> list[str]:
        """Return the paths of the other work trees of the repository."""
        output = self._run_git("worktree", "list", "--porcelain", "-z") or b""
        fields = [field.removeprefix(b"worktree ") for field in output.split(b"\0") if field]
        paths = [os.fsdecode(field) for field in fields if field.startswith(b"/")]
        return [path for path in paths if os.path.realpath(path) != self.top]

    def _run_git(self, *arguments: str) -> bytes | None:
        try:
            return _run_command(self._program, self.top, *arguments)
        except TimeoutError:
            self.timed_out = True
            return None


def find_repository(path: str) -> Repository | None:
    """Return the repository that contains a file; None if git is missing or reports none."""
    program = shutil.which("git")
    if program is None or not os.path.isabs(program):
        return None
    folder = os.path.dirname(os.path.realpath(path))
    try:
        output = _run_command(program, folder, "rev-parse", "--show-toplevel")
    except TimeoutError:
        return None
    top = os.fsdecode(output.rstrip(b"\n")) if output else ""
    return Repository(program, os.path.realpath(top)) if top else None


def is_in_work_tree(path: str) -> bool:
    """Return whether a parent directory of a file contains `.git`, without running git."""
    return bool(repository_root(os.path.dirname(os.path.realpath(path))))


def repository_root(folder: str) -> str:
    """Return the nearest directory, this one or a parent, with a `.git` entry; empty if none has one."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


def _run_command(program: str, folder: str, *arguments: str) -> bytes | None:
    """Return the output of git; None if it fails. Raises TimeoutError if it takes too long or is too large."""
    import subprocess

    options = [part for setting in _DISABLED_SETTINGS for part in ("-c", setting)]
    try:
        completed = subprocess.run(
            [program, "--no-pager", "--literal-pathspecs", *options, *arguments],
            cwd=folder,
            env=_git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    except (OSError, ValueError):
        return None
    if len(completed.stdout) > _MAX_OUTPUT:
        raise TimeoutError
    return completed.stdout if completed.returncode == 0 else None


def _git_environment() -> dict[str, str]:
    """Return the environment for git, without variables that redirect it or name a program."""
    inherited = ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TEMP")
    return {name: os.environ[name] for name in inherited if name in os.environ} | _GIT_ENVIRONMENT


def _parse_blame(output: bytes) -> Iterator[AnnotatedLine]:
    """Parse the output of `blame --porcelain`, which describes a commit only at its first line."""
    facts_by_commit: dict[str, dict[str, str]] = {}
    current = ""
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            yield AnnotatedLine(line[1:].decode("utf-8", "replace"), _make_commit(current, facts_by_commit[current]))
            current = ""
            continue
        key, _, value = line.decode("utf-8", "replace").partition(" ")
        if not current:
            current = key
            facts_by_commit.setdefault(key, {})
        else:
            facts_by_commit[current][key] = value


def _make_commit(name: str, facts: dict[str, str]) -> Commit:
    time = facts.get("committer-time", "")
    return Commit(name, facts.get("author", ""), int(time) if time.isdecimal() else 0, facts.get("summary", ""))


def _parse_renames(fields: list[bytes]) -> Iterator[tuple[str, str]]:
    """Yield the old and new name of each rename among the fields of `--name-status -z`."""
    index = 0
    while index < len(fields):
        state = fields[index].lstrip(b"\n")
        if state[:1] in (b"R", b"C") and index + 2 < len(fields):
            if state[:1] == b"R":
                yield os.fsdecode(fields[index + 1]), os.fsdecode(fields[index + 2])
            index += _RENAME_FIELDS
        else:
            index += 2 if state else 1
