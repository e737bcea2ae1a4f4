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
    r"""Return a name for messages, quoted and escaped if it contains unprintable characters.

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
    """Return a name as valid Unicode; undecodable bytes become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def format_size(size: int) -> str:
    """Return a size in bytes as readable text.

    >>> format_size(900), format_size(280_883)
    ('900 bytes', '274.3KB')
    """
    if size < 1 << 10:
        return f"{size} bytes"
    units = (("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30))
    unit, step = next((u for u in units if size < u[1] << 10), units[-1])
    return f"{size / step:.1f}{unit}"


def error_message(error: OSError) -> str:
    """Return the operating system's message for an error, in lower case."""
    return (error.strerror or str(error)).lower()


def file_error(action: str, path: str, error: OSError) -> ToolFailure:
    """Return the exception for a file that cannot be read or written."""
    return ToolFailure(f"Cannot {action} {quote_name(path)}: {error_message(error)}")


MAX_OUTPUT_LENGTH: Final = 30_000
"""Maximum number of characters of output in a result; longer output is saved to a file."""
PREVIEW_LENGTH: Final = 2_000
MAX_STREAM_SIZE: Final = 64 << 20
"""Maximum number of bytes kept of one stream."""
MAX_LOG_SIZE: Final = 16 << 20
"""Maximum size in bytes of the output file of a background command."""
LOG_TAIL_SIZE: Final = 128 << 10
_MAX_MEMORY_SIZE: Final = 256 << 10
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_ID_CHARACTERS: Final = string.ascii_lowercase + string.digits
_SAFE_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")

# Terminal control sequences: CSI, string sequences with their terminator, and two-character sequences.
_STRING_SEQUENCE: Final = r"[\]PX^_][^\x07\x1b]{0,4096}"
_CONTROL_SEQUENCE: Final = re.compile(
    rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|{_STRING_SEQUENCE}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
)
_PARTIAL_SEQUENCE: Final = re.compile(rf"(?:\x1b(?:\[[0-?]{{0,64}}[ -/]*|{_STRING_SEQUENCE}\x1b?|[ -/]*)|\r)\Z")
# Control characters become control pictures; invisible tag characters become their code point.
_VISIBLE_CONTROLS: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}},
    0x7F: "␡",
    **{code: f"\\u{{{code:x}}}" for code in (*range(0x80, 0xA0), *range(0xE0000, 0xE0080))},
}


def new_id(prefix: str) -> str:
    """Return a random ID: the prefix and eight letters and digits."""
    import secrets

    return prefix + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(8))


# Escaping


def escape_controls(text: str) -> str:
    """Remove terminal control sequences and make all other control characters visible.

    All other characters stay, since the model may have to reproduce them exactly.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _CONTROL_SEQUENCE.sub("", text)
    if "\r" in text:
        # A carriage return must not hide the text before it, so each part becomes a line.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_VISIBLE_CONTROLS)


class OutputDecoder:
    """Decodes and escapes a byte stream piece by piece, wherever the pieces are split."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def decode(self, data: bytes, *, last: bool = False) -> str:
        """Return the text of a piece; an incomplete sequence at its end waits for the next piece."""
        text = self._pending + self._decoder.decode(data, last)
        self._pending = ""
        if not last and (partial := _PARTIAL_SEQUENCE.search(text)):
            self._pending = text[partial.start() :]
            text = text[: partial.start()]
        return escape_controls(text)


# Buffering


class OutputCapture:
    """Captured output of one stream: the beginning as text, and all bytes up to a limit."""

    def __init__(self, max_size: int = MAX_STREAM_SIZE) -> None:
        self.size = 0
        self._max_size = max_size
        self._decoder = OutputDecoder()
        self._pieces: list[str] = []
        self._length = 0
        self._memory = bytearray()
        self._spool: IO[bytes] | None = None

    def add(self, data: bytes, *, last: bool = False) -> str:
        """Add a piece; return its text."""
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
            # The disk is full: keep what was stored so far.
            self._max_size = 0

    @property
    def length(self) -> int:
        """Total number of characters."""
        return self._length

    @property
    def text(self) -> str:
        """The beginning of the output: up to one character more than the limit."""
        return "".join(self._pieces)

    def raw_chunks(self) -> Iterable[bytes]:
        """Yield the captured bytes."""
        stored_size = len(self._memory)
        yield bytes(self._memory)
        if self._spool is not None:
            self._spool.seek(0)
            while data := self._spool.read(1 << 16):
                stored_size += len(data)
                yield data
        if stored_size < self.size:
            yield f"\n[{self.size - stored_size} more bytes were discarded]\n".encode()

    def close(self) -> None:
        """Release the captured bytes."""
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
    """Output of a background command: a file up to a size limit, and the latest part in memory."""

    def __init__(self, path: str, max_size: int = MAX_LOG_SIZE) -> None:
        self.path = path
        self.size = 0
        self._available = max_size
        self._tail = bytearray()
        self._read_size = 0
        self._decoder = OutputDecoder()
        self._file = open_private(path, _CREATE_FLAGS)

    def add(self, data: bytes) -> None:
        """Append a piece."""
        self.size += len(data)
        self._tail += data
        if len(self._tail) > 2 * LOG_TAIL_SIZE:
            del self._tail[:-LOG_TAIL_SIZE]
        if self._file < 0 or self._available <= 0:
            return
        with suppress(OSError):
            self._available -= os.write(self._file, data[: self._available])
            if self._available <= 0:
                os.write(self._file, b"\n[output limit reached, later output was discarded]\n")

    def read_new(self, *, last: bool) -> str:
        """Return the output since the last call, at most the last `MAX_OUTPUT_LENGTH` characters."""
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
        """Close the file; the part in memory stays readable."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# Saving


def make_results_folder(context: "ToolContext") -> str:
    """Create the directory for output that is too large to record; return its path."""
    folder = os.path.join(context.folder, "tool-results")
    os.makedirs(folder, mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    return folder


def result_file_name(call_id: str) -> str:
    """Return the file name for the output of a call, whose ID may contain any characters."""
    return f"{call_id if _SAFE_CALL_ID.fullmatch(call_id) else new_id('b')}.txt"


def save_output(context: "ToolContext", call_id: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write the output of a call to its file; return path and size.

    Raises:
        ToolFailure: The file cannot be written.
    """
    try:
        path = os.path.join(make_results_folder(context), result_file_name(call_id))
        return path, write_atomic(path, chunks, sync=False)
    except OSError as error:
        raise ToolFailure(f"The output is too large and could not be saved: {error_message(error)}") from error


def saved_output_message(text: str, path: str, size: int) -> str:
    """Return the result text that replaces an output saved to a file."""
    preview = text[:PREVIEW_LENGTH]
    end = preview.rfind("\n")
    if end > PREVIEW_LENGTH // 2:
        preview = preview[:end]
    return (
        f"<persisted-output>\nOutput too large ({format_size(size)}). Full output saved to: {path}"
        f"\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
    )
