"""The archived copies of one session: a JSON Lines journal and compressed frames, read by range.

The journal is append-only. A line describes a file of the session (`file`; a new line for each generation), a range of
it in the archive (`frame`), the state of the file on disk when it was completely archived (`seen`), or that everything
named by earlier damaged lines was archived again (`mended`). Each line has a checksum. Data without a complete journal
line is not archived.
"""

import os
import re
from binascii import crc32
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar

import msgspec

from steno.errors import Unreadable
from steno.store.atomic import read_all, reading

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor


JOURNAL_FILE: Final = "index.jsonl"
_CHECKSUM_PREFIX: Final = b',"crc":"'
_CHECKSUM_LENGTH: Final = len('00000000"}')
_CHECKSUM_FIELD_LENGTH: Final = len(_CHECKSUM_PREFIX) + _CHECKSUM_LENGTH
UNSAFE_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")
_MAX_COPY_NAME_LENGTH: Final = 120

T = TypeVar("T")
EncodedPath: TypeAlias = tuple[str, str]
"""A path as text, and its bytes in hexadecimal if they are not UTF-8."""


class SessionLine(msgspec.Struct, frozen=True, tag="session", tag_field="k"):
    """The session that the directory belongs to."""

    path: str
    raw: str = ""
    version: int = 1


class FileLine(msgspec.Struct, frozen=True, tag="file", tag_field="k"):
    """A file of the session, with the number that other lines refer to."""

    n: int
    path: str
    raw: str = ""
    role: str = ""
    session_id: str = ""
    agent_id: str = ""
    generation: int = 1
    instead: int = 0
    """Number of the damaged copy of the same generation that this copy replaces."""


class FrameLine(msgspec.Struct, frozen=True, tag="frame", tag_field="k"):
    """Bytes [offset, offset + length) of a file are the frame at `at` of its copy.

    `sha256` is the hash of the bytes, `chain` the hash of the previous chain and `sha256`, and so of all bytes so far.
    `check` is the CRC-32 of the compressed frame.
    """

    n: int
    offset: int
    length: int
    at: int
    packed: int
    check: int
    sha256: str
    chain: str


class StateLine(msgspec.Struct, frozen=True, tag="seen", tag_field="k"):
    """The status of the file on disk when everything up to `size` was archived."""

    n: int
    size: int
    mtime_ns: int
    inode: int = 0
    mode: int = 0o600
    time: float = 0.0


class RepairLine(msgspec.Struct, frozen=True, tag="mended", tag_field="k"):
    """Earlier lines are damaged, but everything they named was archived again."""

    time: float = 0.0


_JournalLine: TypeAlias = SessionLine | FileLine | FrameLine | StateLine | RepairLine
_LINE_DECODER: Final[msgspec.json.Decoder[_JournalLine]] = msgspec.json.Decoder(_JournalLine)
_ENCODER: Final = msgspec.json.Encoder()


class FileGeneration:
    """One generation of one archived file."""

    def __init__(self, line: FileLine) -> None:
        self.number = line.n
        self.line = line
        self.path = decode_path(line.path, line.raw)
        self.role = line.role
        self.generation = line.generation
        self.frames: list[FrameLine] = []
        self.detached_frames: list[FrameLine] = []
        """Frames after a break: they cannot be read, but identify the file."""
        self.last_state: StateLine | None = None
        self.break_reason = ""
        """Why the copy cannot be extended; earlier frames can still be read."""

    @property
    def size(self) -> int:
        """Number of archived bytes."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    @property
    def known_size(self) -> int:
        """Minimum size of the original file, from all journal lines."""
        last = max((frame.offset + frame.length for frame in self.detached_frames), default=0)
        return max(self.size, last, self.last_state.size if self.last_state else 0)

    @property
    def packed(self) -> int:
        """Compressed size of the archived bytes."""
        return self.frames[-1].at + self.frames[-1].packed if self.frames else 0

    @property
    def copy_name(self) -> str:
        """File name of the copy, from the number and the safe characters of the original name."""
        base = UNSAFE_NAME.sub("_", self.path.replace("\\", "/").rpartition("/")[2])
        return f"{self.number:04}-{base[-_MAX_COPY_NAME_LENGTH:]}.zst"

    @property
    def mtime_ns(self) -> int:
        """Last known modification time of the original file."""
        return self.last_state.mtime_ns if self.last_state else 0

    def add_frame(self, frame: FrameLine) -> None:
        """Add the next frame; after one that does not fit, all frames are detached."""
        chain = self.frames[-1].chain if self.frames else ""
        if not self.break_reason and (frame.offset, frame.at) != (self.size, self.packed):
            self.break_reason = f"a frame before byte {frame.offset:,} is missing"
        elif not self.break_reason and frame.chain != chain_digest(chain, frame.sha256):
            self.break_reason = f"the chain of checksums breaks at byte {frame.offset:,}"
        (self.detached_frames if self.break_reason else self.frames).append(frame)


class Journal:
    """The parsed journal of an archive directory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.session_line: SessionLine | None = None
        self.files: dict[int, FileGeneration] = {}
        self.damaged_lines: list[int] = []
        """Numbers of the damaged journal lines."""
        self.unnamed_numbers: set[int] = set()
        """File numbers that are referred to but not described."""
        self.complete_size = 0
        """Bytes of complete journal lines."""
        self._latest: dict[str, FileGeneration] = {}
        self._replacements: dict[int, FileGeneration] = {}

    @property
    def path(self) -> str:
        """Original path of the session."""
        return decode_path(self.session_line.path, self.session_line.raw) if self.session_line else ""

    def latest(self, path: str) -> FileGeneration | None:
        """Return the last generation of a file."""
        return self._latest.get(path)

    def latest_generations(self) -> list[FileGeneration]:
        """Return the last generation of each file."""
        return list(self._latest.values())

    def generations(self, path: str) -> list[FileGeneration]:
        """Return every generation of a file, oldest first."""
        return [file for file in self.valid_generations() if file.path == path]

    def valid_generations(self) -> list[FileGeneration]:
        """Return every generation of every file, without replaced damaged copies."""
        return [file for file in self.files.values() if not self.is_replaced(file)]

    def is_replaced(self, file: FileGeneration) -> bool:
        """Return whether another copy contains all data of a damaged one."""
        replacement = self._replacements.get(file.number)
        while replacement is not None and replacement.size < file.known_size:
            replacement = self._replacements.get(replacement.number)
        return replacement is not None

    @property
    def damage_messages(self) -> list[str]:
        """Descriptions of the damage in the journal."""
        line_messages = [f"line {number} of {JOURNAL_FILE} is damaged" for number in self.damaged_lines]
        unnamed_messages = [
            f"{JOURNAL_FILE} refers to file {n}, which it does not describe" for n in sorted(self.unnamed_numbers)
        ]
        broken_files = [file for file in self.files.values() if file.break_reason]
        broken_messages = [
            f"{file.copy_name}: {file.break_reason}" for file in broken_files if not self.is_replaced(file)
        ]
        return line_messages + unnamed_messages + broken_messages

    @property
    def session_file(self) -> FileGeneration | None:
        """Last generation of the session's own file."""
        return self._latest.get(self.path)

    def copy_path(self, file: FileGeneration) -> str:
        """Return the path of the copy of a file."""
        return os.path.join(self.folder, file.copy_name)

    def add_line(self, line: _JournalLine) -> None:
        """Apply the next line of the journal."""
        if isinstance(line, SessionLine):
            self.session_line = line
        elif isinstance(line, FileLine):
            file = self.files[line.n] = FileGeneration(line)
            self._latest[file.path] = file
            if 0 < line.instead < line.n:
                self._replacements[line.instead] = file
        elif isinstance(line, RepairLine):
            self.damaged_lines.clear()
        elif (file := self.files.get(line.n)) is None:
            self.unnamed_numbers.add(line.n)
        elif isinstance(line, StateLine):
            file.last_state = line
        else:
            file.add_frame(line)


def read_journal(folder: str) -> Journal:
    """Read the journal of a directory; empty if it does not exist.

    Raises Unreadable if it exists and cannot be read.
    """
    path = os.path.join(folder, JOURNAL_FILE)
    with reading(path):
        data = read_all(path)
    journal = Journal(folder)
    journal.complete_size = data.rfind(b"\n") + 1
    for number, line_data in enumerate(data[: journal.complete_size].split(b"\n")[:-1], 1):
        line = decode_line(line_data, _LINE_DECODER)
        if line is None:
            journal.damaged_lines.append(number)
        else:
            journal.add_line(line)
    return journal


def encode_line(line: msgspec.Struct) -> bytes:
    """Return a line with its checksum."""
    body = _ENCODER.encode(line)[:-1]
    return b'%s%s%08x"}\n' % (body, _CHECKSUM_PREFIX, crc32(body))


def decode_line(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Return the decoded line; None if its checksum or content is invalid."""
    body, mark, check = (
        raw[:-_CHECKSUM_FIELD_LENGTH],
        raw[-_CHECKSUM_FIELD_LENGTH:-_CHECKSUM_LENGTH],
        raw[-_CHECKSUM_LENGTH:],
    )
    if mark != _CHECKSUM_PREFIX or check != b'%08x"}' % crc32(body):
        return None
    try:
        return decoder.decode(body + b"}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def chain_digest(chain: str, digest: str) -> str:
    """Return the checksum of all data so far, from the previous chain and the digest of new data."""
    from hashlib import sha256

    return sha256(f"{chain}{digest}".encode("ascii", "replace")).hexdigest()


def encode_path(path: str) -> EncodedPath:
    """Encode a path for a journal line."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), raw.hex()


def decode_path(text: str, raw: str) -> str:
    """Return the path encoded in a journal line."""
    try:
        return os.fsdecode(bytes.fromhex(raw)) if raw else text
    except ValueError:
        return text


_CACHED_FRAMES: Final = 2
"""Frames cached, because summaries read both ends of a file."""


class FrameReader:
    """The copy of one file; reopened for each read, so that many readers can exist at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._decompressor: ZstdDecompressor | None = None

    def read_packed(self, frame: FrameLine) -> bytes:
        """Return a compressed frame. Raises Unreadable if it is incomplete."""
        with reading(self.path), open(self.path, "rb") as file:
            file.seek(frame.at)
            data = file.read(frame.packed)
        if len(data) != frame.packed:
            raise self._damaged_error(frame, "truncated")
        return data

    def read_frame(self, frame: FrameLine) -> bytes:
        """Return the decompressed bytes of a frame. Raises Unreadable if the frame is damaged."""
        import zstandard

        data = self.read_packed(frame)
        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor()
        try:
            # The header of the frame is not trusted, because it could request any amount of memory.
            if zstandard.frame_content_size(data) != frame.length:
                raise self._damaged_error(frame, "wrong size")
            return self._decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise self._damaged_error(frame, str(error).lower()) from error

    def _damaged_error(self, frame: FrameLine, reason: str) -> Unreadable:
        return Unreadable(
            f"{self.path} is damaged at byte {frame.at:,}: {reason}",
            hint="Run `steno archive --verify` to check the whole archive.",
        )


class ArchiveSource:
    """An archived file at its size when opened: bytes archived later are ignored."""

    def __init__(self, folder: str, number: int, journal: Journal | None = None) -> None:
        journal = read_journal(folder) if journal is None else journal
        file = journal.files.get(number)
        if file is None:
            raise Unreadable(f"{folder} does not contain file {number}")
        self._set_file(journal, file)

    def _set_file(self, journal: Journal, file: FileGeneration) -> None:
        self.path = file.path
        self.size = file.size
        self._frames = tuple(file.frames)
        self._starts = [frame.offset for frame in self._frames]
        self._reader = FrameReader(journal.copy_path(file))
        self._frame_cache: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Clear the frame cache; the source can still be read."""
        self._frame_cache.clear()

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`.

        Raises:
            Unreadable: the archive is damaged at this position.
        """
        end = min(offset + length, self.size)
        if offset < 0 or offset >= end:
            return b""
        first = bisect_right(self._starts, offset) - 1
        parts: list[bytes] = []
        for number in range(first, len(self._frames)):
            frame = self._frames[number]
            if frame.offset >= end:
                break
            data = self._read_frame(number)
            parts.append(data[max(0, offset - frame.offset) : end - frame.offset])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order."""
        for frame in self._frames:
            if frame.offset + frame.length > start:
                data = self._reader.read_frame(frame)
                yield data[max(0, start - frame.offset) :]

    def _read_frame(self, number: int) -> bytes:
        data = self._frame_cache.get(number)
        if data is None:
            data = self._reader.read_frame(self._frames[number])
            if len(self._frame_cache) >= _CACHED_FRAMES:
                self._frame_cache.pop(next(iter(self._frame_cache)))
            self._frame_cache[number] = data
        return data
