"""The journal of one session's folder in the archive: JSON lines, only ever appended to.

A line says that a file belongs to the session (`file`; a new one for each generation), that a
stretch of it lies in the archive (`frame`), how the file on disk looked when all of it did
(`seen`), or that all that damaged lines before it spoke of has been kept anew (`mended`). Each line carries a checksum of itself. What is not in a whole line has not been kept.
"""

import os
import re
from binascii import crc32
from typing import Final, TypeAlias, TypeVar

import msgspec

from steno.store.disk import read_all
from steno.store.scratch import unreadable

__all__ = [
    "INDEX",
    "File",
    "FileLine",
    "Frame",
    "Head",
    "Index",
    "Mended",
    "Path",
    "Seen",
    "chained",
    "decode_line",
    "encode_line",
    "path_of",
    "read_index",
    "said_path",
]

INDEX: Final = "index.jsonl"
_MARK: Final = b',"crc":"'
_SUM: Final = len('00000000"}')
_CHECK: Final = len(_MARK) + _SUM
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST: Final = 120

T = TypeVar("T")
Path: TypeAlias = tuple[str, str]
"""A path as text and, where that is not all of it, its bytes in hexadecimal."""


class Head(msgspec.Struct, frozen=True, tag="session", tag_field="k"):
    """Whose folder it is."""

    path: str
    raw: str = ""
    version: int = 1


class FileLine(msgspec.Struct, frozen=True, tag="file", tag_field="k"):
    """A file of the session, under the number that the other lines know it by."""

    n: int
    path: str
    raw: str = ""
    role: str = ""
    session_id: str = ""
    agent_id: str = ""
    generation: int = 1
    instead: int = 0
    """The number of a damaged copy of the same generation, which this one stands in for."""


class Frame(msgspec.Struct, frozen=True, tag="frame", tag_field="k"):
    """Bytes [offset, offset + length) of a file are the frame at `at` of its copy.

    `sha256` is that of the bytes, `chain` that of the chain before and of `sha256`: it stands for
    all bytes so far. `check` is the CRC-32 of the frame as it lies there.
    """

    n: int
    offset: int
    length: int
    at: int
    packed: int
    check: int
    sha256: str
    chain: str


class Seen(msgspec.Struct, frozen=True, tag="seen", tag_field="k"):
    """How the file on disk looked when everything up to `size` had been kept."""

    n: int
    size: int
    mtime_ns: int
    inode: int = 0
    mode: int = 0o600
    time: float = 0.0


class Mended(msgspec.Struct, frozen=True, tag="mended", tag_field="k"):
    """Lines before this one are damaged, and nothing that they spoke of is missing any more."""

    time: float = 0.0


_Line: TypeAlias = Head | FileLine | Frame | Seen | Mended
_DECODER: Final[msgspec.json.Decoder[_Line]] = msgspec.json.Decoder(_Line)
_ENCODER: Final = msgspec.json.Encoder()


class File:
    """One generation of one file, as far as it was kept."""

    def __init__(self, line: FileLine) -> None:
        self.number = line.n
        self.line = line
        self.path = path_of(line.path, line.raw)
        self.role = line.role
        self.generation = line.generation
        self.frames: list[Frame] = []
        self.loose: list[Frame] = []
        """Frames behind a break: they cannot be read, but tell what the file was."""
        self.seen: Seen | None = None
        self.broken = ""
        """Why nothing more can be added to it; what was kept before can still be read."""

    @property
    def size(self) -> int:
        """How many bytes of the file were kept."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    @property
    def reach(self) -> int:
        """How many bytes the file had at least, as far as anything says."""
        last = max((frame.offset + frame.length for frame in self.loose), default=0)
        return max(self.size, last, self.seen.size if self.seen else 0)

    @property
    def packed(self) -> int:
        """How many bytes they take."""
        return self.frames[-1].at + self.frames[-1].packed if self.frames else 0

    @property
    def name(self) -> str:
        """What its copy is called: made from the number and what is harmless of its own name."""
        base = _UNSAFE.sub("_", self.path.replace("\\", "/").rpartition("/")[2])
        return f"{self.number:04}-{base[-_LONGEST:]}.zst"

    @property
    def mtime_ns(self) -> int:
        """When the file on disk was last written, as far as it was seen."""
        return self.seen.mtime_ns if self.seen else 0

    def take(self, frame: Frame) -> None:
        """Add the next frame; behind one that does not fit, nothing does."""
        chain = self.frames[-1].chain if self.frames else ""
        if not self.broken and (frame.offset, frame.at) != (self.size, self.packed):
            self.broken = f"a frame before byte {frame.offset:,} is missing"
        elif not self.broken and frame.chain != chained(chain, frame.sha256):
            self.broken = f"the chain of checksums breaks at byte {frame.offset:,}"
        (self.loose if self.broken else self.frames).append(frame)


class Index:
    """What the journal of a folder says."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.head: Head | None = None
        self.files: dict[int, File] = {}
        self.torn: list[int] = []
        """Which lines of the journal are damaged."""
        self.strays: set[int] = set()
        """Numbers of files that are spoken of and not named."""
        self.whole = 0
        """How many bytes of the journal are whole lines."""
        self._latest: dict[str, File] = {}
        self._instead: dict[int, File] = {}

    @property
    def path(self) -> str:
        """Where the session itself lies, or lay."""
        return path_of(self.head.path, self.head.raw) if self.head else ""

    def latest(self, path: str) -> File | None:
        """Return the last generation of a file."""
        return self._latest.get(path)

    def newest(self) -> list[File]:
        """Return the last generation of each file."""
        return list(self._latest.values())

    def generations(self, path: str) -> list[File]:
        """Return every generation of a file, oldest first."""
        return [file for file in self.standing() if file.path == path]

    def standing(self) -> list[File]:
        """Return every generation of every file, without damaged copies that others stand in for."""
        return [file for file in self.files.values() if not self.is_replaced(file)]

    def is_replaced(self, file: File) -> bool:
        """Say whether another copy holds all that a damaged one did."""
        other = self._instead.get(file.number)
        while other is not None and other.size < file.reach:
            other = self._instead.get(other.number)
        return other is not None

    @property
    def damage(self) -> list[str]:
        """What is wrong with the journal, or with what it says."""
        lines = [f"line {number} of {INDEX} is damaged" for number in self.torn]
        strays = [f"{INDEX} speaks of file {n}, which is not named" for n in sorted(self.strays)]
        broken = [file for file in self.files.values() if file.broken]
        told = [f"{file.name}: {file.broken}" for file in broken if not self.is_replaced(file)]
        return lines + strays + told

    @property
    def session(self) -> File | None:
        """The last generation of the session's own file."""
        return self._latest.get(self.path)

    def data_path(self, file: File) -> str:
        """Return where the copy of a file lies."""
        return os.path.join(self.folder, file.name)

    def take(self, line: _Line) -> None:
        """Take in the next line."""
        if isinstance(line, Head):
            self.head = line
        elif isinstance(line, FileLine):
            file = self.files[line.n] = File(line)
            self._latest[file.path] = file
            if 0 < line.instead < line.n:
                self._instead[line.instead] = file
        elif isinstance(line, Mended):
            self.torn.clear()
        elif (file := self.files.get(line.n)) is None:
            self.strays.add(line.n)
        elif isinstance(line, Seen):
            file.seen = line
        else:
            file.take(line)


def read_index(folder: str) -> Index:
    """Return what a folder's journal says; an empty one where there is none.

    Raises:
        Unreadable: it is there and cannot be read.
    """
    path = os.path.join(folder, INDEX)
    try:
        data = read_all(path)
    except OSError as error:
        raise unreadable(path, error) from error
    index = Index(folder)
    index.whole = data.rfind(b"\n") + 1
    for number, raw in enumerate(data[: index.whole].split(b"\n")[:-1], 1):
        line = decode_line(raw, _DECODER)
        if line is None:
            index.torn.append(number)
        else:
            index.take(line)
    return index


def encode_line(value: msgspec.Struct) -> bytes:
    """Return a line with its checksum."""
    body = _ENCODER.encode(value)[:-1]
    return b'%s%s%08x"}\n' % (body, _MARK, crc32(body))


def decode_line(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Return what a line says; None where it is not what was written."""
    body, mark, check = raw[:-_CHECK], raw[-_CHECK:-_SUM], raw[-_SUM:]
    if mark != _MARK or check != b'%08x"}' % crc32(body):
        return None
    try:
        return decoder.decode(body + b"}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def chained(chain: str, digest: str) -> str:
    """Return the checksum of everything so far from the one before and that of what is new."""
    from hashlib import sha256

    return sha256(f"{chain}{digest}".encode("ascii", "replace")).hexdigest()


def said_path(path: str) -> Path:
    """Return a path for a line."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), raw.hex()


def path_of(said: str, raw: str) -> str:
    """Return the path that a line speaks of."""
    try:
        return os.fsdecode(bytes.fromhex(raw)) if raw else said
    except ValueError:
        return said
