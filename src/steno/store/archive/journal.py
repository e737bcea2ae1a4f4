"""The archived copies of one session: a JSON Lines journal and compressed frames, read by span.

The journal is append-only. A line names a file of the session (`file`; a new one for each generation), a stretch of it
in the archive (`frame`), the state of the file on disk when it was completely archived (`seen`), or that everything
named by earlier damaged lines was archived again (`mended`). Each line has a checksum. What is not in a complete line
is not archived.
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
"""A path as text and, where that is not all of it, its bytes in hexadecimal."""


class SessionLine(msgspec.Struct, frozen=True, tag="session", tag_field="k"):
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


class FrameLine(msgspec.Struct, frozen=True, tag="frame", tag_field="k"):
    """Bytes [offset, offset + length) of a file are the frame at `at` of its copy.

    `sha256` is that of the bytes, `chain` that of the chain before and of `sha256`: it stands for all bytes so far.
    `check` is the CRC-32 of the frame as it lies there.
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
    """How the file on disk looked when everything up to `size` had been kept."""

    n: int
    size: int
    mtime_ns: int
    inode: int = 0
    mode: int = 0o600
    time: float = 0.0


class RepairLine(msgspec.Struct, frozen=True, tag="mended", tag_field="k"):
    """Lines before this one are damaged, and nothing that they spoke of is missing any more."""

    time: float = 0.0


_JournalLine: TypeAlias = SessionLine | FileLine | FrameLine | StateLine | RepairLine
_LINE_DECODER: Final[msgspec.json.Decoder[_JournalLine]] = msgspec.json.Decoder(_JournalLine)
_ENCODER: Final = msgspec.json.Encoder()


class FileGeneration:
    """One generation of one file, as far as it was kept."""

    def __init__(self, line: FileLine) -> None:
        self.number = line.n
        self.line = line
        self.path = decode_path(line.path, line.raw)
        self.role = line.role
        self.generation = line.generation
        self.frames: list[FrameLine] = []
        self.detached_frames: list[FrameLine] = []
        """Frames behind a break: they cannot be read, but tell what the file was."""
        self.last_state: StateLine | None = None
        self.break_reason = ""
        """Why nothing more can be added to it; what was kept before can still be read."""

    @property
    def size(self) -> int:
        """How many bytes of the file were kept."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    @property
    def known_size(self) -> int:
        """How many bytes the file had at least, as far as anything says."""
        last = max((frame.offset + frame.length for frame in self.detached_frames), default=0)
        return max(self.size, last, self.last_state.size if self.last_state else 0)

    @property
    def packed(self) -> int:
        """How many bytes they take."""
        return self.frames[-1].at + self.frames[-1].packed if self.frames else 0

    @property
    def copy_name(self) -> str:
        """What its copy is called: made from the number and what is harmless of its own name."""
        base = UNSAFE_NAME.sub("_", self.path.replace("\\", "/").rpartition("/")[2])
        return f"{self.number:04}-{base[-_MAX_COPY_NAME_LENGTH:]}.zst"

    @property
    def mtime_ns(self) -> int:
        """When the file on disk was last written, as far as it was seen."""
        return self.last_state.mtime_ns if self.last_state else 0

    def add_frame(self, frame: FrameLine) -> None:
        """Add the next frame; behind one that does not fit, nothing does."""
        chain = self.frames[-1].chain if self.frames else ""
        if not self.break_reason and (frame.offset, frame.at) != (self.size, self.packed):
            self.break_reason = f"a frame before byte {frame.offset:,} is missing"
        elif not self.break_reason and frame.chain != chain_digest(chain, frame.sha256):
            self.break_reason = f"the chain of checksums breaks at byte {frame.offset:,}"
        (self.detached_frames if self.break_reason else self.frames).append(frame)


class Journal:
    """What the journal of a folder says."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.session_line: SessionLine | None = None
        self.files: dict[int, FileGeneration] = {}
        self.damaged_lines: list[int] = []
        """Which lines of the journal are damaged."""
        self.unnamed_numbers: set[int] = set()
        """Numbers of files that are spoken of and not named."""
        self.complete_size = 0
        """How many bytes of the journal are whole lines."""
        self._latest: dict[str, FileGeneration] = {}
        self._replacements: dict[int, FileGeneration] = {}

    @property
    def path(self) -> str:
        """Where the session itself lies, or lay."""
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
        """Return every generation of every file, without damaged copies that others stand in for."""
        return [file for file in self.files.values() if not self.is_replaced(file)]

    def is_replaced(self, file: FileGeneration) -> bool:
        """Say whether another copy holds all that a damaged one did."""
        replacement = self._replacements.get(file.number)
        while replacement is not None and replacement.size < file.known_size:
            replacement = self._replacements.get(replacement.number)
        return replacement is not None

    @property
    def damage_messages(self) -> list[str]:
        """What is wrong with the journal, or with what it says."""
        line_messages = [f"line {number} of {JOURNAL_FILE} is damaged" for number in self.damaged_lines]
        unnamed_messages = [
            f"{JOURNAL_FILE} speaks of file {n}, which is not named" for n in sorted(self.unnamed_numbers)
        ]
        broken_files = [file for file in self.files.values() if file.break_reason]
        broken_messages = [
            f"{file.copy_name}: {file.break_reason}" for file in broken_files if not self.is_replaced(file)
        ]
        return line_messages + unnamed_messages + broken_messages

    @property
    def session_file(self) -> FileGeneration | None:
        """The last generation of the session's own file."""
        return self._latest.get(self.path)

    def copy_path(self, file: FileGeneration) -> str:
        """Return where the copy of a file lies."""
        return os.path.join(self.folder, file.copy_name)

    def add_line(self, line: _JournalLine) -> None:
        """Take in the next line."""
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
    """Return what a folder's journal says; an empty one where there is none.

    Raises Unreadable if it is there and cannot be read.
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
    """Return what a line says; None where it is not what was written."""
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
    """Return the checksum of everything so far from the one before and that of what is new."""
    from hashlib import sha256

    return sha256(f"{chain}{digest}".encode("ascii", "replace")).hexdigest()


def encode_path(path: str) -> EncodedPath:
    """Return a path for a line."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), raw.hex()


def decode_path(text: str, raw: str) -> str:
    """Return the path that a line speaks of."""
    try:
        return os.fsdecode(bytes.fromhex(raw)) if raw else text
    except ValueError:
        return text


_CACHED_FRAMES: Final = 2
"""A listing looks at both ends of a file, by turns."""


class FrameReader:
    """The copy of one file, opened for each look: a thousand may be in hand."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._decompressor: ZstdDecompressor | None = None

    def read_packed(self, frame: FrameLine) -> bytes:
        """Return a frame as it lies there. Raises Unreadable if it does not."""
        with reading(self.path), open(self.path, "rb") as file:
            file.seek(frame.at)
            data = file.read(frame.packed)
        if len(data) != frame.packed:
            raise self._damaged_error(frame, "it was cut short")
        return data

    def read_frame(self, frame: FrameLine) -> bytes:
        """Return the bytes of the file that a frame holds. Raises Unreadable if the frame is damaged."""
        import zstandard

        data = self.read_packed(frame)
        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor()
        try:
            # The frame's own head is not believed: it could ask for any amount of memory.
            if zstandard.frame_content_size(data) != frame.length:
                raise self._damaged_error(frame, "its size is wrong")
            return self._decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise self._damaged_error(frame, str(error).lower()) from error

    def _damaged_error(self, frame: FrameLine, reason: str) -> Unreadable:
        return Unreadable(
            f"{self.path} is damaged at byte {frame.at:,}: {reason}", hint="`steno archive --verify` says what else is"
        )


class ArchiveSource:
    """A kept file as it was when looked up: what is added later is not seen."""

    def __init__(self, folder: str, number: int, journal: Journal | None = None) -> None:
        journal = read_journal(folder) if journal is None else journal
        file = journal.files.get(number)
        if file is None:
            raise Unreadable(f"{folder} holds no file {number}")
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
        """Let go of what was unpacked; it may still be read."""
        self._frame_cache.clear()

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`.

        Raises:
            Unreadable: the archive is damaged there.
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
        """Yield everything from `start` on, in order."""
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
