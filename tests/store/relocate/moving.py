"""Config folders with projects in them, and what is in a folder, to the byte."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from tests.builders import Session, session, tool

__all__ = ["NEW", "OLD", "aged", "copied", "project", "seen", "unflushed", "write"]

OLD: Final = "/home/ada/work"
NEW: Final = "/srv/ünï code/app"
_LONG_AGO: Final = 1_790_000_000


def project(seed: str = "move", cwd: str = OLD, version: str = "2.1.325") -> Session:
    """Return a session with files, a sub-agent and a long output."""
    made = session(version, seed=seed, cwd=cwd).user(f"Look at {cwd}/tide.py.")
    made.assistant(tool("Read", file_path=f"{cwd}/tide.py")).result("1\thigh")
    made.assistant(tool("Bash", command=f"cat {cwd}/big.txt")).saved("tide\n" * 2000)
    return made.assistant("Done.")


def write(folder: Path, *sessions: Session) -> Path:
    """Write sessions into a config folder, with the times they were made at."""
    for made in sessions:
        for name, data in made.files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return aged(folder)


def copied(source: Path, folder: Path) -> Path:
    """Copy a folder of the corpus to where it may be written."""
    shutil.copytree(source, folder)
    return aged(folder)


def aged(folder: Path) -> Path:
    """Let nothing in a folder be of this moment: what was just written is busy."""
    for number, path in enumerate(sorted(folder.rglob("*"))):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if path.is_file():
            os.utime(path, (_LONG_AGO + number, _LONG_AGO + number))
    return folder


def seen(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Return every file with its hash, time and mode."""
    found: dict[str, tuple[str, int, int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            status = path.stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = (digest, status.st_mtime_ns, status.st_mode)
    return found


def unflushed(_: int) -> None:
    """Take the place of `os.fsync` where nothing is cut off: hundreds of flushes take minutes."""
