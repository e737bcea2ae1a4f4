r"""Tool output for the model: names, sizes and errors as text, escaped, bounded, and saved in full.

>>> escape_controls("\x1b[31mred\x1b[0m\r\nbell\x07")
'red\nbell␇'
"""

import codecs
import os
import re
import string
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from steno.store.atomic import PRIVATE_FOLDER_MODE, open_private, write_atomic
from steno.tools.protocol import ToolFailure

if TYPE_CHECKING:
    from steno.tools.context import ToolContext


def quote_name(name: str) -> str:
    r"""Return a name for a message: one that could play tricks is quoted and escaped.

    >>> print(quote_name("a.py"), quote_name("a\nb"))
    a.py "a\nb"
    """
    if name.isprintable():
        return name
    return '"' + "".join(_escape_character(character) for character in name) + '"'


def _escape_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def json_safe_name(name: str) -> str:
    """Return a name that can be written as JSON; bytes that are no text are lost."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def format_size(size: int) -> str:
    """Return a size for people.

    >>> format_size(900), format_size(280_883)
    ('900 bytes', '274.3KB')
    """
    if size < 1 << 10:
        return f"{size} bytes"
    units = (("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30))
    unit, step = next((u for u in units if size < u[1] << 10), units[-1])
    return f"{size / step:.1f}{unit}"


def error_message(error: OSError) -> str:
    """Return what went wrong, in the system's words."""
    return (error.strerror or str(error)).lower()


def file_error(action: str, path: str, error: OSError) -> ToolFailure:
    """Return what to raise when the system does not let a file be read or written."""
    return ToolFailure(f"cannot {action} {quote_name(path)}: {error_message(error)}")


MAX_OUTPUT_LENGTH: Final = 30_000
"""How many characters of output the model reads at most; more goes to a file."""
PREVIEW_LENGTH: Final = 2_000
MAX_STREAM_SIZE: Final = 64 << 20
"""How many bytes of one stream are kept at all."""
MAX_LOG_SIZE: Final = 16 << 20
"""How many bytes the file of a background command grows to."""
LOG_TAIL_SIZE: Final = 128 << 10
_MAX_MEMORY_SIZE: Final = 256 << 10
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_ID_CHARACTERS: Final = string.ascii_lowercase + string.digits
_SAFE_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")

# A terminal's control sequences: CSI, the string kinds up to their end, and those of two letters.
_STRING_SEQUENCE: Final = r"[\]PX^_][^\x07\x1b]{0,4096}"
_CONTROL_SEQUENCE: Final = re.compile(
    rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|{_STRING_SEQUENCE}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
)
_PARTIAL_SEQUENCE: Final = re.compile(rf"(?:\x1b(?:\[[0-?]{{0,64}}[ -/]*|{_STRING_SEQUENCE}\x1b?|[ -/]*)|\r)\Z")
# Controls become their pictures; letters that only carry hidden words become their number.
_VISIBLE_CONTROLS: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}},
    0x7F: "␡",
    **{code: f"\\u{{{code:x}}}" for code in (*range(0x80, 0xA0), *range(0xE0000, 0xE0080))},
}


def new_id(prefix: str) -> str:
    """Return a name that nobody guesses, of nine letters and digits."""
    import secrets

    return prefix + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(8))


# Making it harmless


def escape_controls(text: str) -> str:
    """Take out a terminal's control sequences, and make every other control visible.

    Letters stay as they are: the model may have to write the same ones back.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _CONTROL_SEQUENCE.sub("", text)
    if "\r" in text:
        # Nothing is hidden behind a return of the carriage: each such piece is a line.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_VISIBLE_CONTROLS)


class OutputDecoder:
    """Makes a stream of bytes harmless, piece by piece, whatever the pieces cut through."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def decode(self, data: bytes, *, last: bool = False) -> str:
        """Return the text of a piece; what may go on in the next one is held back."""
        text = self._pending + self._decoder.decode(data, last)
        self._pending = ""
        if not last and (partial := _PARTIAL_SEQUENCE.search(text)):
            self._pending = text[partial.start() :]
            text = text[: partial.start()]
        return escape_controls(text)


# Keeping it


class OutputCapture:
    """What one stream wrote: its beginning as text, and all of it, to a limit, as bytes."""

    def __init__(self, max_size: int = MAX_STREAM_SIZE) -> None:
        self.size = 0
        self._max_size = max_size
        self._decoder = OutputDecoder()
        self._pieces: list[str] = []
        self._length = 0
        self._memory = bytearray()
        self._spool: IO[bytes] | None = None

    def add(self, data: bytes, *, last: bool = False) -> str:
        """Keep a piece; return its text."""
        text = self._decoder.decode(data, last=last)
        if self._length <= MAX_OUTPUT_LENGTH:
            self._pieces.append(text[: MAX_OUTPUT_LENGTH + 1 - self._length])
        self._length += len(text)
        self._store(data)
        return text

    def _store(self, data: bytes) -> None:
        available = self._max_size - self.size
        self.size += len(data)
        if available <= 0 or not data:
            return
        try:
            if self._spool is None and len(self._memory) + len(data) > _MAX_MEMORY_SIZE:
                self._spool = _open_unlinked_file()
            if self._spool is None:
                self._memory += data[:available]
            else:
                self._spool.write(data[:available])
        except OSError:
            # The disk is full: what was printed until now is still there.
            self._max_size = 0

    @property
    def length(self) -> int:
        """How many characters there are in all."""
        return self._length

    @property
    def text(self) -> str:
        """The beginning, up to the limit and one more."""
        return "".join(self._pieces)

    def raw_chunks(self) -> Iterable[bytes]:
        """Yield the bytes as they came."""
        stored_size = len(self._memory)
        yield bytes(self._memory)
        if self._spool is not None:
            self._spool.seek(0)
            while data := self._spool.read(1 << 16):
                stored_size += len(data)
                yield data
        if stored_size < self.size:
            yield f"\n[{self.size - stored_size} more bytes were not kept]\n".encode()

    def close(self) -> None:
        """Let go of the bytes."""
        self._memory.clear()
        if self._spool is not None:
            with suppress(OSError):
                self._spool.close()
            self._spool = None


def _open_unlinked_file() -> IO[bytes]:
    from tempfile import mkstemp

    descriptor, path = mkstemp(prefix="steno-")
    os.unlink(path)
    return os.fdopen(descriptor, "w+b")


class OutputLog:
    """What a background command prints: a file that grows to a limit, and the newest in memory."""

    def __init__(self, path: str, max_size: int = MAX_LOG_SIZE) -> None:
        self.path = path
        self.size = 0
        self._available = max_size
        self._tail = bytearray()
        self._read_size = 0
        self._decoder = OutputDecoder()
        self._file = open_private(path, _CREATE_FLAGS)

    def add(self, data: bytes) -> None:
        """Keep a piece."""
        self.size += len(data)
        self._tail += data
        if len(self._tail) > 2 * LOG_TAIL_SIZE:
            del self._tail[:-LOG_TAIL_SIZE]
        if self._file < 0 or self._available <= 0:
            return
        with suppress(OSError):
            self._available -= os.write(self._file, data[: self._available])
            if self._available <= 0:
                os.write(self._file, b"\n[what was printed after this was not kept]\n")

    def read_new(self, *, last: bool) -> str:
        """Return what was printed since the last time, at most the newest `MAX_OUTPUT_LENGTH` characters."""
        new_size = min(self.size - self._read_size, len(self._tail))
        skipped = self.size - self._read_size - new_size
        if skipped:
            self._decoder = OutputDecoder()
        self._read_size = self.size
        text = self._decoder.decode(bytes(self._tail[len(self._tail) - new_size :]), last=last)
        if skipped or len(text) > MAX_OUTPUT_LENGTH:
            text = f"[earlier output is in {self.path}]\n{text[-MAX_OUTPUT_LENGTH:]}"
        return text

    def close(self) -> None:
        """Close the file; what is in memory can still be read."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# Saving it


def make_results_folder(context: "ToolContext") -> str:
    """Return the folder for output that is too big to record; it is there afterwards."""
    folder = os.path.join(context.folder, "tool-results")
    os.makedirs(folder, mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    return folder


def result_file_name(call_id: str) -> str:
    """Return the file name for the output of a call, whose id may be anything."""
    return f"{call_id if _SAFE_CALL_ID.fullmatch(call_id) else new_id('b')}.txt"


def save_output(context: "ToolContext", call_id: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write the output of a call to a file of its own; return its path and size.

    Raises:
        ToolFailure: it cannot be written.
    """
    try:
        path = os.path.join(make_results_folder(context), result_file_name(call_id))
        return path, write_atomic(path, chunks, sync=False)
    except OSError as error:
        raise ToolFailure(f"The output is too large and could not be saved: {error_message(error)}") from error


def saved_output_message(text: str, path: str, size: int) -> str:
    """Return what the model reads in place of an output that was saved."""
    preview = text[:PREVIEW_LENGTH]
    end = preview.rfind("\n")
    if end > PREVIEW_LENGTH // 2:
        preview = preview[:end]
    return (
        f"<persisted-output>\nOutput too large ({format_size(size)}). Full output saved to: {path}"
        f"\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
    )
