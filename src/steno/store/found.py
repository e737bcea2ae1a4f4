"""What a look at the disk gives: files found, problems met, and a first glance into a file."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from operator import attrgetter
from typing import Final, Literal

import msgspec

from steno.format.paths import Place

__all__ = [
    "HEAD",
    "Found",
    "Problem",
    "ProblemKind",
    "found_entry",
    "is_folder",
    "is_transcript",
    "listed",
    "peek",
    "problem_of",
    "session_id_in",
]

ProblemKind = Literal[
    "dangling",  # a link to nothing
    "denied",  # no permission
    "loop",  # a link back to a folder it lies in
    "missing",  # nothing of that name
    "not-a-file",  # a folder named like a transcript
    "special",  # a pipe, socket or device named like a transcript
    "too-deep",  # more folders inside each other than any client makes
    "unreadable",  # the system could not read it
]


class Problem(msgspec.Struct, frozen=True):
    """Something on disk that was skipped, and why."""

    kind: ProblemKind
    path: str
    message: str = ""


class Found(msgspec.Struct, frozen=True, gc=False):
    """A file that was found, as it was at that moment.

    `path` may hold bytes that are not UTF-8 (as lone surrogates): use `os.fsencode` on it, and
    `steno.safe` before showing it.
    """

    path: str
    size: int
    mtime_ns: int
    place: Place
    root: str
    agents: tuple["Found", ...] = ()


HEAD: Final = 1 << 16
_NAME: Final = attrgetter("name")
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_ERRORS: Final[dict[int | None, ProblemKind]] = {
    errno.ENOENT: "missing",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.ELOOP: "loop",
}
# A quote behind a backslash belongs to JSON inside a string, so it opens no key.
_KEY: Final = rb'(?<!\\)"(?:%s)"\s*:'
_CHAIN: Final = _KEY % rb"parentUuid|isSidechain"
_TYPE: Final = _KEY % rb"type"
_SIDE: Final = _KEY % rb"sessionId|leafUuid|messageId"
_HISTORY: Final = _KEY % rb"pastedContents"
_SESSION_ID: Final = _KEY % rb"sessionId" + rb'\s*"([^"\\\x00-\x1f]{1,200})"'


class _Ids(msgspec.Struct, rename="camel"):
    session_id: str = ""


def problem_of(path: str, error: OSError | ValueError) -> Problem:
    """Say what an error of the system means; a ValueError is a name that no file can have."""
    if isinstance(error, OSError):
        return Problem(_ERRORS.get(error.errno, "unreadable"), path, error.strerror or "")
    return Problem("missing", path, "no file can have that name")


def listed(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, by name; nothing, and a problem, if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_NAME)
    except OSError as error:
        problems.append(problem_of(folder, error))
        return []


def is_folder(entry: os.DirEntry[str], *, links: bool) -> bool:
    """Say whether an entry is a folder, or with `links` also a link to one."""
    try:
        return entry.is_dir(follow_symlinks=links)
    except OSError:
        return False


def found_entry(
    entry: os.DirEntry[str], place: Place, root: str, problems: list[Problem]
) -> Found | None:
    """Return the regular file behind an entry (links followed), or None and a problem."""
    try:
        status = entry.stat()
    except FileNotFoundError as error:
        # Either a link to nothing, or a file that went away since the folder was listed.
        if entry.is_symlink():
            problems.append(Problem("dangling", entry.path, "a link to nothing"))
        else:
            problems.append(problem_of(entry.path, error))
        return None
    except OSError as error:
        problems.append(problem_of(entry.path, error))
        return None
    if stat.S_ISREG(status.st_mode):
        return Found(entry.path, status.st_size, status.st_mtime_ns, place, root)
    if stat.S_ISDIR(status.st_mode):
        problems.append(Problem("not-a-file", entry.path, "a folder where a file should be"))
    else:
        problems.append(Problem("special", entry.path, "a pipe, socket or device"))
    return None


def peek(path: str, limit: int, problems: list[Problem]) -> bytes | None:
    """Return the first `limit` bytes of a regular file; None and a problem for anything else.

    Opened without blocking, so a pipe put in place of a file cannot hold us up.
    """
    try:
        handle = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        problems.append(problem_of(path, error))
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            problems.append(Problem("special", path, "not a regular file"))
            return None
        return b"".join(_pieces(handle, limit))
    except OSError as error:
        problems.append(problem_of(path, error))
        return None
    finally:
        os.close(handle)


def _pieces(handle: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (piece := os.read(handle, min(limit, 1 << 20))):
        limit -= len(piece)
        yield piece


def is_transcript(head: bytes) -> bool:
    """Say whether the first bytes of a file are those of a session, whole or damaged."""
    if re.search(_HISTORY, head):
        return False
    if re.search(_CHAIN, head):
        return True
    return re.search(_TYPE, head) is not None and re.search(_SIDE, head) is not None


def session_id_in(head: bytes) -> str:
    """Return the session id in the first bytes of a transcript, or nothing."""
    for line in head.split(b"\n"):
        try:
            ids = msgspec.json.decode(line, type=_Ids)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if ids.session_id:
            return ids.session_id
    # A first record longer than the head: its id stands before its message.
    found = re.search(_SESSION_ID, head)
    return found[1].decode("utf-8", "replace") if found else ""
