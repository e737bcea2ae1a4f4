r"""What programs print, on its way to the model: made harmless, bounded, kept whole beside.

>>> harmless("\x1b[31mred\x1b[0m\r\nbell\x07")
'red\nbell␇'
"""

import codecs
import os
import re
import string
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from steno.store.disk import FOLDER, open_private
from steno.tools.base import ToolFailure
from steno.tools.words import size_words, worded

if TYPE_CHECKING:
    from steno.tools.context import ToolContext

__all__ = [
    "LIMIT",
    "Capture",
    "Cleaner",
    "Log",
    "folder_for_results",
    "harmless",
    "new_id",
    "persisted",
    "put_file",
    "result_name",
    "save",
]

LIMIT: Final = 30_000
"""How many characters of output the model reads at most; more goes to a file."""
PREVIEW: Final = 2_000
MOST: Final = 64 << 20
"""How many bytes of one stream are kept at all."""
MOST_LOGGED: Final = 16 << 20
"""How many bytes the file of a background command grows to."""
TAIL: Final = 128 << 10
_IN_MEMORY: Final = 256 << 10
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_LETTERS: Final = string.ascii_lowercase + string.digits
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")

# A terminal's control sequences: CSI, the string kinds up to their end, and those of two letters.
_STRING: Final = r"[\]PX^_][^\x07\x1b]{0,4096}"
_SEQUENCE: Final = re.compile(
    rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
)
_PARTIAL: Final = re.compile(rf"(?:\x1b(?:\[[0-?]{{0,64}}[ -/]*|{_STRING}\x1b?|[ -/]*)|\r)\Z")
# Controls become their pictures; letters that only carry hidden words become their number.
_VISIBLE: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}},
    0x7F: "␡",
    **{code: f"\\u{{{code:x}}}" for code in (*range(0x80, 0xA0), *range(0xE0000, 0xE0080))},
}


def new_id(first: str) -> str:
    """Return a name that nobody guesses, of nine letters and digits."""
    import secrets

    return first + "".join(secrets.choice(_LETTERS) for _ in range(8))


# Making it harmless


def harmless(text: str) -> str:
    """Take out a terminal's control sequences, and make every other control visible.

    Letters stay as they are: the model may have to write the same ones back.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        # Nothing is hidden behind a return of the carriage: each such piece is a line.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_VISIBLE)


class Cleaner:
    """Makes a stream of bytes harmless, piece by piece, whatever the pieces cut through."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return the text of a piece; what may go on in the next one is held back."""
        text = self._held + self._decoder.decode(data, last)
        self._held = ""
        if not last and (partial := _PARTIAL.search(text)):
            self._held = text[partial.start() :]
            text = text[: partial.start()]
        return harmless(text)


# Keeping it


class Capture:
    """What one stream wrote: its beginning as text, and all of it, to a limit, as bytes."""

    def __init__(self, most: int = MOST) -> None:
        self.size = 0
        self._most = most
        self._cleaner = Cleaner()
        self._pieces: list[str] = []
        self._length = 0
        self._memory = bytearray()
        self._spool: IO[bytes] | None = None

    def take(self, data: bytes, *, last: bool = False) -> str:
        """Keep a piece; return its text."""
        text = self._cleaner.feed(data, last=last)
        if self._length <= LIMIT:
            self._pieces.append(text[: LIMIT + 1 - self._length])
        self._length += len(text)
        self._keep(data)
        return text

    def _keep(self, data: bytes) -> None:
        room = self._most - self.size
        self.size += len(data)
        if room <= 0 or not data:
            return
        try:
            if self._spool is None and len(self._memory) + len(data) > _IN_MEMORY:
                self._spool = _nameless_file()
            if self._spool is None:
                self._memory += data[:room]
            else:
                self._spool.write(data[:room])
        except OSError:
            # The disk is full: what was printed until now is still there.
            self._most = 0

    @property
    def length(self) -> int:
        """How many characters there are in all."""
        return self._length

    @property
    def text(self) -> str:
        """The beginning, up to the limit and one more."""
        return "".join(self._pieces)

    def pieces(self) -> Iterable[bytes]:
        """Yield the bytes as they came."""
        kept = len(self._memory)
        yield bytes(self._memory)
        if self._spool is not None:
            self._spool.seek(0)
            while data := self._spool.read(1 << 16):
                kept += len(data)
                yield data
        if kept < self.size:
            yield f"\n[{self.size - kept} more bytes were not kept]\n".encode()

    def close(self) -> None:
        """Let go of the bytes."""
        self._memory.clear()
        if self._spool is not None:
            with suppress(OSError):
                self._spool.close()
            self._spool = None


def _nameless_file() -> IO[bytes]:
    from tempfile import mkstemp

    descriptor, path = mkstemp(prefix="steno-")
    os.unlink(path)
    return os.fdopen(descriptor, "w+b")


class Log:
    """What a background command prints: a file that grows to a limit, and the newest in memory."""

    def __init__(self, path: str, most: int = MOST_LOGGED) -> None:
        self.path = path
        self.size = 0
        self._room = most
        self._tail = bytearray()
        self._read = 0
        self._cleaner = Cleaner()
        self._file = open_private(path, _CREATE)

    def take(self, data: bytes) -> None:
        """Keep a piece."""
        self.size += len(data)
        self._tail += data
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]
        if self._file < 0 or self._room <= 0:
            return
        with suppress(OSError):
            self._room -= os.write(self._file, data[: self._room])
            if self._room <= 0:
                os.write(self._file, b"\n[what was printed after this was not kept]\n")

    def unread(self, *, last: bool) -> str:
        """Return what was printed since the last time, at most the newest `LIMIT` characters."""
        new = min(self.size - self._read, len(self._tail))
        skipped = self.size - self._read - new
        if skipped:
            self._cleaner = Cleaner()
        self._read = self.size
        text = self._cleaner.feed(bytes(self._tail[len(self._tail) - new :]), last=last)
        if skipped or len(text) > LIMIT:
            text = f"[earlier output is in {self.path}]\n{text[-LIMIT:]}"
        return text

    def close(self) -> None:
        """Close the file; what is in memory can still be read."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# Saving it


def folder_for_results(context: "ToolContext") -> str:
    """Return the folder for output that is too big to record; it is there afterwards."""
    folder = os.path.join(context.folder, "tool-results")
    os.makedirs(folder, mode=FOLDER, exist_ok=True)
    return folder


def result_name(call: str) -> str:
    """Return the file name for the output of a call, whose id may be anything."""
    return f"{call if _PLAIN_NAME.fullmatch(call) else new_id('b')}.txt"


def save(context: "ToolContext", call: str, pieces: Iterable[bytes]) -> tuple[str, int]:
    """Write the output of a call to a file of its own; return its path and size.

    Raises:
        ToolFailure: it cannot be written.
    """
    try:
        path = os.path.join(folder_for_results(context), result_name(call))
        return path, put_file(path, pieces)
    except OSError as error:
        raise ToolFailure(
            f"The output is too large and could not be saved: {worded(error)}"
        ) from error


def put_file(path: str, pieces: Iterable[bytes]) -> int:
    """Put a private file in its place, whole or not at all; return its size.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    scratch = os.path.join(os.path.dirname(path), f".{new_id('t')}.steno-tmp")
    with os.fdopen(open_private(scratch, _CREATE), "wb") as file:
        try:
            file.writelines(pieces)
            file.flush()
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise
        return file.tell()


def persisted(text: str, path: str, size: int) -> str:
    """Return what the model reads in place of an output that was saved."""
    preview = text[:PREVIEW]
    end = preview.rfind("\n")
    if end > PREVIEW // 2:
        preview = preview[:end]
    return (
        f"<persisted-output>\nOutput too large ({size_words(size)}). Full output saved to: {path}"
        f"\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
    )
