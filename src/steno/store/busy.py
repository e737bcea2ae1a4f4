"""Is somebody writing to a session? Asked before it is exchanged, without waiting."""

import os
import stat
from typing import Final

from steno.errors import Busy
from steno.format.paths import transcript_place
from steno.format.sidecars import LiveProcess
from steno.store.clock import now
from steno.store.folder import ConfigFolder
from steno.store.found import peek
from steno.store.scratch import Identity, alive, real_file
from steno.store.walk import folder_names

__all__ = ["is_fresh", "is_growing", "is_running", "look_now", "refuse_if_busy", "writer_of"]

_MOST: Final = 1 << 16
_STARTED: Final = 22 - 3
_FRESH: Final = 3
"""For how many seconds after the last write more may come: a client writes as it thinks."""


def is_growing(path: str, seen: Identity) -> bool:
    """Say whether more may be written to a file.

    It is not what it was when it was read, it was written a moment ago, or a live client has it
    open.
    """
    if look_now(real_file(path)) != seen or writer_of(path) is not None:
        return True
    return is_fresh(seen.mtime_ns)


def is_fresh(mtime_ns: int) -> bool:
    """Say whether a file was written to so lately that more may come."""
    return abs(now() - mtime_ns / 1e9) < _FRESH


def writer_of(path: str) -> LiveProcess | None:
    """Return the live client that says it is at work on the session of a file, if there is one."""
    for each in dict.fromkeys((path, real_file(path))):
        folder = ConfigFolder.around(each)
        if folder is None:
            continue
        stem = os.path.basename(each).removesuffix(".jsonl")
        ids = {stem, transcript_place(folder_names(each)).session_id} - {""}
        for process in folder.live():
            if process.session_id in ids and is_running(process):
                return process
    return None


def is_running(process: LiveProcess) -> bool:
    """Say whether a client still runs: its number may be another process's by now."""
    if not alive(process.pid):
        return False
    if not process.proc_start.isdecimal():
        return True
    # Linux tells when a process began, in its 22nd field; the second may hold blanks and brackets.
    told = peek(f"/proc/{process.pid}/stat", _MOST, []) or b""
    fields = told.rpartition(b")")[2].split()
    return len(fields) <= _STARTED or fields[_STARTED] == process.proc_start.encode()


def look_now(path: str) -> Identity | None:
    """Return what a file is at this moment; None when it is no file."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return Identity.of(status) if stat.S_ISREG(status.st_mode) else None


def refuse_if_busy(path: str, seen: Identity, *, live: bool) -> None:
    """Let nobody exchange a file that is not what was read, or, if asked, that a client has open.

    Raises:
        Busy: it is one.
    """
    if look_now(real_file(path)) != seen:
        raise Busy(f"{path} changed since it was read", hint="nothing was changed; try again")
    process = writer_of(path) if live else None
    if process is not None:
        raise Busy(
            f"{path} is in use: a client is at work on it (process {process.pid})",
            hint="nothing was changed; leave that session first",
        )
