"""A kept file as bytes to be read by span: only the frames that are asked for are unpacked."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self

from steno.errors import Unreadable
from steno.store.archive.index import File, Frame, Index, read_index
from steno.store.scratch import unreadable

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

__all__ = ["ArchiveSource", "Frames"]

_HELD: Final = 2
"""A listing looks at both ends of a file, by turns."""


class Frames:
    """The copy of one file, opened for each look: a thousand may be in hand."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._unpacker: ZstdDecompressor | None = None

    def packed(self, frame: Frame) -> bytes:
        """Return a frame as it lies there.

        Raises:
            Unreadable: it does not.
        """
        try:
            with open(self.path, "rb") as file:
                file.seek(frame.at)
                data = file.read(frame.packed)
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(data) != frame.packed:
            raise self._damaged(frame, "it was cut short")
        return data

    def unpacked(self, frame: Frame) -> bytes:
        """Return the bytes of the file that a frame holds.

        Raises:
            Unreadable: the frame is damaged.
        """
        import zstandard

        data = self.packed(frame)
        if self._unpacker is None:
            self._unpacker = zstandard.ZstdDecompressor()
        try:
            # The frame's own head is not believed: it could ask for any amount of memory.
            if zstandard.frame_content_size(data) != frame.length:
                raise self._damaged(frame, "its size is wrong")
            return self._unpacker.decompress(data)
        except zstandard.ZstdError as error:
            raise self._damaged(frame, str(error).lower()) from error

    def _damaged(self, frame: Frame, why: str) -> Unreadable:
        return Unreadable(
            f"{self.path} is damaged at byte {frame.at:,}: {why}",
            hint="`steno archive --verify` says what else is",
        )


class ArchiveSource:
    """A kept file as it was when looked up: what is added later is not seen."""

    def __init__(self, folder: str, number: int, index: Index | None = None) -> None:
        index = read_index(folder) if index is None else index
        file = index.files.get(number)
        if file is None:
            raise Unreadable(f"{folder} holds no file {number}")
        self._fill(index, file)

    def _fill(self, index: Index, file: File) -> None:
        self.path = file.path
        self.size = file.size
        self._frames = tuple(file.frames)
        self._starts = [frame.offset for frame in self._frames]
        self._data = Frames(index.data_path(file))
        self._held: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was unpacked; it may still be read."""
        self._held.clear()

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
        for place in range(first, len(self._frames)):
            frame = self._frames[place]
            if frame.offset >= end:
                break
            data = self._frame(place)
            parts.append(data[max(0, offset - frame.offset) : end - frame.offset])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on, in order."""
        for frame in self._frames:
            if frame.offset + frame.length > start:
                data = self._data.unpacked(frame)
                yield data[max(0, start - frame.offset) :]

    def _frame(self, place: int) -> bytes:
        held = self._held.get(place)
        if held is None:
            held = self._data.unpacked(self._frames[place])
            if len(self._held) >= _HELD:
                self._held.pop(next(iter(self._held)))
            self._held[place] = held
        return held
