"""What an archive for another machine says of itself, and what is believed of it."""

import re
from typing import Final

import msgspec

from steno.errors import BadRequest
from steno.format.loose import REFUSED
from steno.format.paths import Role, classify, is_uuid

__all__ = [
    "FORMAT",
    "HISTORY",
    "MANIFEST",
    "MOST",
    "Manifest",
    "Packed",
    "member",
    "read_manifest",
    "travels",
]

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
HISTORY: Final = "history.jsonl"
MOST: Final = 64 << 20
"""How many bytes the manifest may have."""
_FILES: Final = 1_000_000
_LONGEST: Final = 1024
_NAME: Final = 255
_TRAVEL: Final[frozenset[Role]] = frozenset(
    {
        *("agent", "agent-meta", "custom-title", "file-history", "journal", "memory", "session"),
        *("sessions-index", "task", "todo", "tool-result", "workflow"),
    }
)
_TOPS: Final = frozenset(("projects", "conversations", "file-history", "todos", "tasks"))
_ODD: Final = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]|[\ud800-\udfff]')
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_LATEST: Final = 1 << 62
_DEPTH: Final = len(("projects", "slug", "session.jsonl"))


class Packed(msgspec.Struct, frozen=True):
    """A file in the archive, and what it must be."""

    name: str
    """Its path from the config folder on, with `/`."""
    size: int
    sha256: str
    mtime_ns: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """What is in the archive."""

    format: int
    project: str
    config: str
    files: tuple[Packed, ...]
    steno: str = ""
    time: float = 0.0

    @property
    def size(self) -> int:
        """How many bytes there are, unpacked."""
        return sum(each.size for each in self.files)

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        names = [each.name.split("/") for each in self.files]
        return sum(len(n) == _DEPTH and is_uuid(n[2].removesuffix(".jsonl")) for n in names)


def member(number: int) -> str:
    """Return what the archive calls a file: its real name is in the manifest, and nowhere else."""
    return f"files/{number:06}"


def travels(name: str) -> bool:
    """Say whether a file of a config folder may go to another machine, or come from one.

    Never what a client reads as settings or runs: no keys, no environment, no scripts.
    """
    if name == HISTORY:
        return True
    parts = name.split("/")
    plain = all(
        0 < len(p.encode("utf-8", "replace")) <= _NAME and p not in {".", ".."} for p in parts
    )
    if not plain or len(name) > _LONGEST or _ODD.search(name) or parts[0] not in _TOPS:
        return False
    if parts[-1].startswith(".") or "scripts" in parts[2:-1]:
        return False
    place = classify(name)
    return place.role in _TRAVEL


def read_manifest(raw: bytes) -> Manifest:
    """Return the manifest, if it asks for nothing odd.

    Raises:
        BadRequest: it is none, or names a file that may not come from elsewhere.
    """
    try:
        told = msgspec.json.decode(raw, type=Manifest)
    except REFUSED as error:
        raise BadRequest("not an archive that `steno relocate --to-machine` wrote") from error
    if told.format != FORMAT:
        raise BadRequest(f"an archive of another steno: format {told.format}, not {FORMAT}")
    if len(told.files) > _FILES:
        raise BadRequest(f"the archive has {len(told.files):,} files, more than anybody's")
    if not told.project or not told.config or "\0" in told.project + told.config:
        raise BadRequest("the archive does not say which project it is of")
    seen: set[str] = set()
    for each in told.files:
        if not travels(each.name):
            raise BadRequest(
                f"the archive has a file that may not come from elsewhere: {each.name!r}"
            )
        if each.name.casefold() in seen:
            raise BadRequest(f"the archive has {each.name!r} twice")
        seen.add(each.name.casefold())
        sound = each.size >= 0 and 0 <= each.mtime_ns < _LATEST
        if not sound or not _HASH.fullmatch(each.sha256):
            raise BadRequest(f"the archive says nothing sound of {each.name!r}")
    return told
