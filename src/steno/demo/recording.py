"""Writes the recorded demo sessions to disk.

The recording is `recording.zip` next to this module, built by `tools/make_demo.py` from the test
builders. Its `index.json` has the counts and the modification time of each file.
"""

import json
import os
import zipfile
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest
from steno.format.encode import encode_line

MARKER: Final = "steno-demo.json"
RECORDING: Final = Path(__file__).with_name("recording.zip")
INDEX: Final = "index.json"
_PRIVATE_FILE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700
_NANOSECONDS: Final = 1_000_000


class _Index(msgspec.Struct, frozen=True):
    projects: int
    sessions: int
    agents: int
    times: dict[str, int]


class Recording(msgspec.Struct, frozen=True):
    """The demo files by name, with content and modification time in milliseconds."""

    projects: int
    sessions: int
    agents: int
    files: dict[str, tuple[bytes, int]]


class DemoReport(msgspec.Struct, frozen=True):
    """Counts of the written files."""

    root: str
    projects: int
    sessions: int
    agents: int
    files: int
    size: int
    removed: int


def write_demo(root: str) -> DemoReport:
    """Write the demo sessions to `root`, a separate config directory.

    Files of an earlier demo are replaced, other files are kept. If another file is in the way,
    nothing is written.

    Raises:
        BadRequest: a file that no demo wrote is in the way.
    """
    recording = read_recording()
    files = recording.files
    top = Path(root)
    previous = _previously_written(top)
    _refuse_to_overwrite(top, files, previous)
    # List the files before writing them, so that an interrupted demo can be rewritten.
    _write_marker(top, {*previous, *files}, files)
    obsolete = previous - set(files)
    for name in obsolete:
        (top / name).unlink(missing_ok=True)
    for name, (data, ms) in files.items():
        _write(top / name, data, ms)
    _write_marker(top, set(files), files)
    return DemoReport(
        root=root,
        projects=recording.projects,
        sessions=recording.sessions,
        agents=recording.agents,
        files=len(files),
        size=sum(len(data) for data, _ in files.values()),
        removed=len(obsolete),
    )


def read_recording(path: Path = RECORDING) -> Recording:
    """Read the recorded files, with modification times in milliseconds, and the counts."""
    with zipfile.ZipFile(path) as archive:
        index = msgspec.json.decode(archive.read(INDEX), type=_Index)
        files = {name: (archive.read(name), ms) for name, ms in index.times.items()}
    return Recording(index.projects, index.sessions, index.agents, files)


def _previously_written(top: Path) -> set[str]:
    """Return the relative file names in the marker; others are ignored, since it is untrusted."""
    try:
        marker: Any = json.loads((top / MARKER).read_bytes())
    except (OSError, ValueError):
        return set()
    names_value: Any = cast("dict[str, Any]", marker).get("files") if isinstance(marker, dict) else None
    names = cast("list[Any]", names_value) if isinstance(names_value, list) else []
    return {name for name in names if isinstance(name, str) and _is_plain_name(name)}


def _is_plain_name(name: str) -> bool:
    special_parts = {"", ".", ".."}.intersection(name.split("/"))
    return not special_parts and not any(letter in name for letter in "\\:\0")


def _refuse_to_overwrite(top: Path, files: dict[str, tuple[bytes, int]], before: set[str]) -> None:
    for name in files:
        if name not in before and os.path.lexists(top / name):
            raise BadRequest(f"{top} contains another file: {name}", hint="Write the demo to an empty directory.")


def _write_marker(top: Path, names: set[str], files: dict[str, tuple[bytes, int]]) -> None:
    last = max(ms for _, ms in files.values())
    _write(top / MARKER, encode_line({"files": sorted(names)}), last)


def _write(path: Path, data: bytes, ms: int) -> None:
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.utime(temporary, ns=(ms * _NANOSECONDS, ms * _NANOSECONDS))
    temporary.replace(path)
