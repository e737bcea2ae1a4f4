"""What git knows of one file: who committed its lines, and what it was called before.

repository = repository_of("/home/ada/work/a.py")     # None: no git here, or no repository
repository.annotated("a.py")                          # its lines at HEAD, each with its commit

A repository may have been made by somebody else, and its own settings can name programs to run.
None of them runs: only objects and the list of files are read, never the files of the work tree
(so no filter), nothing is fetched, no signature is checked, and no settings but the repository's
own count, with everything that names a program put out.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Final

import msgspec

__all__ = ["Commit", "Repository", "Row", "Was", "is_in_one", "repository_of"]

_TIME: Final = 20.0
"""Seconds after which git is not waited for any more."""
_MOST: Final = 64 << 20
_RENAMES: Final = 20
_FIELDS: Final = 3
_OFF: Final = (
    *(
        "core.fsmonitor=false",
        f"core.hooksPath={os.devnull}",
        "core.pager=cat",
        "core.editor=false",
    ),
    *("core.sshCommand=false", "core.askPass=false", "core.untrackedCache=false"),
    *(f"core.attributesFile={os.devnull}", "core.quotePath=false", "credential.helper="),
    *("diff.external=", "diff.renameLimit=1000", "gpg.program=false", "log.showSignature=false"),
    *("protocol.allow=never", "safe.bareRepository=explicit", "blame.ignoreRevsFile="),
    *("i18n.logOutputEncoding=UTF-8", "gc.auto=0", "maintenance.auto=false"),
)
_OWN: Final = {
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
    """Who committed something; `time` is when it came into the repository, in seconds."""

    hash: str
    author: str
    time: int
    summary: str


class Row(msgspec.Struct, frozen=True):
    """A line of a file at HEAD."""

    text: str
    commit: Commit


class Was(msgspec.Struct, frozen=True):
    """A name that a file had, and when it was given up (None: not committed yet)."""

    name: str
    until: int | None


class Repository:
    """A repository that was found around a file. Names are told from its top."""

    def __init__(self, program: str, top: str) -> None:
        self.top = top
        self.slow = False
        """Whether git took too long, or said too much, for an answer."""
        self._program = program

    def name_of(self, path: str) -> str:
        """Return what the repository calls a file."""
        return os.path.relpath(os.path.realpath(path), self.top).replace(os.sep, "/")

    def annotated(self, name: str) -> list[Row]:
        """Return the lines of a file at HEAD; nothing where it is not there."""
        told = self._ask("blame", "--porcelain", "--no-textconv", "HEAD", "--", name)
        return list(_rows(told)) if told is not None else []

    def names_before(self, name: str) -> list[Was]:
        """Return the names that a file had, the latest first; renamed ones are followed."""
        found: list[Was] = []
        staged = self._ask("diff-index", "--cached", "-M", "--name-status", "-z", "HEAD")
        for old, new in _renames((staged or b"").split(b"\0")):
            if new == name:
                found.append(Was(old, None))
                name = old
                break
        told = self._ask(
            *("log", "--follow", "--diff-filter=R", "-M", "--name-status", "-z"),
            *("--no-show-signature", "--no-ext-diff", "--no-textconv", f"-n{_RENAMES}"),
            *("--format=format:%x01%ct", "--", name),
        )
        for part in (told or b"").split(b"\x01")[1:]:
            time, _, rest = part.partition(b"\n")
            if time.isdigit():
                found += [Was(old, int(time)) for old, _ in _renames(rest.split(b"\0"))]
        return found

    def work_trees(self) -> list[str]:
        """Return where else the repository is checked out."""
        told = self._ask("worktree", "list", "--porcelain", "-z") or b""
        fields = [each.removeprefix(b"worktree ") for each in told.split(b"\0") if each]
        found = [os.fsdecode(each) for each in fields if each.startswith(b"/")]
        return [each for each in found if os.path.realpath(each) != self.top]

    def _ask(self, *words: str) -> bytes | None:
        try:
            return _run(self._program, self.top, *words)
        except TimeoutError:
            self.slow = True
            return None


def repository_of(path: str) -> Repository | None:
    """Return the repository that a file lies in; None where git is not there or knows of none."""
    program = shutil.which("git")
    if program is None or not os.path.isabs(program):
        return None
    folder = os.path.dirname(os.path.realpath(path))
    try:
        told = _run(program, folder, "rev-parse", "--show-toplevel")
    except TimeoutError:
        return None
    top = os.fsdecode(told.rstrip(b"\n")) if told else ""
    return Repository(program, os.path.realpath(top)) if top else None


def is_in_one(path: str) -> bool:
    """Say whether a file looks as if it lay in a repository, whatever git says."""
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


def _run(program: str, folder: str, *words: str) -> bytes | None:
    """Return what git says; None where it fails.

    Raises:
        TimeoutError: it takes too long or says too much.
    """
    import subprocess

    options = [part for each in _OFF for part in ("-c", each)]
    try:
        done = subprocess.run(
            [program, "--no-pager", "--literal-pathspecs", *options, *words],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIME,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    except (OSError, ValueError):
        return None
    if len(done.stdout) > _MOST:
        raise TimeoutError
    return done.stdout if done.returncode == 0 else None


def _environment() -> dict[str, str]:
    """Return the variables for git: nothing that points it elsewhere or names a program."""
    kept = ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TEMP")
    return {name: os.environ[name] for name in kept if name in os.environ} | _OWN


def _rows(told: bytes) -> Iterator[Row]:
    """Read what `blame --porcelain` says: a commit's own facts stand where it is named first."""
    known: dict[str, dict[str, str]] = {}
    current = ""
    for line in told.split(b"\n"):
        if line.startswith(b"\t"):
            yield Row(line[1:].decode("utf-8", "replace"), _commit(current, known[current]))
            current = ""
            continue
        word, _, rest = line.decode("utf-8", "replace").partition(" ")
        if not current:
            current = word
            known.setdefault(word, {})
        else:
            known[current][word] = rest


def _commit(name: str, facts: dict[str, str]) -> Commit:
    time = facts.get("committer-time", "")
    return Commit(
        name,
        facts.get("author", ""),
        int(time) if time.isdecimal() else 0,
        facts.get("summary", ""),
    )


def _renames(fields: list[bytes]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each rename among the fields of `--name-status -z`."""
    at = 0
    while at < len(fields):
        state = fields[at].lstrip(b"\n")
        if state[:1] in (b"R", b"C") and at + 2 < len(fields):
            if state[:1] == b"R":
                yield os.fsdecode(fields[at + 1]), os.fsdecode(fields[at + 2])
            at += _FIELDS
        else:
            at += 2 if state else 1
