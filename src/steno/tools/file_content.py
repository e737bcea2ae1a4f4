"""File content for tools: path resolution, opening, text encodings and images.

Text is shown with LF line endings and without a byte order mark; written text keeps the original format
(`TextFormat`), so that an edit changes only the bytes that it replaces.
"""

import codecs
import os
import re
import stat
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.permissions.paths import resolve_path
from steno.store.dirfd import Directory
from steno.tools.output import file_error, format_size, quote_name
from steno.tools.protocol import ToolFailure, ToolResult

if TYPE_CHECKING:
    from steno.tools.context import ToolContext


FileStamp = tuple[int, int]
"""Modification time (ns) and size of a file: a different value means that the file has changed."""

MAX_FILE_SIZE: Final = 10 << 20
"""Largest file, in bytes, that is loaded into memory."""
_ENCODINGS_BY_BOM: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Without these flags, opening a FIFO would block and opening a terminal could take control of it.
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_LINE_END: Final = re.compile(r"\r?\n")
_SAMPLE_SIZE: Final = 1 << 16
# If the share of control characters is higher than this, bytes that are not UTF-8 are binary, not Latin-1.
_MAX_CONTROL_SHARE: Final = 0.1
_CONTROL_BYTES: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + bytes(range(0x7F, 0xA0))
_MAX_SUGGESTIONS: Final = 3
_MAX_LISTED_NAMES: Final = 5_000


# Paths


def resolve_tool_path(path: str, context: "ToolContext") -> str:
    """Return the absolute path for a path argument.

    Raises:
        ToolFailure: The argument is not a valid path.
    """
    if not path or "\0" in path:
        raise ToolFailure("The path is empty." if not path else "The path contains a NUL character.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolFailure(f"{quote_name(path)} is not a valid path: it contains an unpaired surrogate.") from error
    return resolve_path(path, context.cwd, context.env.get("HOME", ""))


def approved_real_path(path: str, context: "ToolContext", call_id: str) -> str:
    """Return the real path, which must be the one that was approved for this call.

    Raises:
        ToolFailure: A symbolic link on the path has changed since the approval.
    """
    real_path = os.path.realpath(path)
    approved_paths = context.approved_paths.get(call_id, ())
    if approved_paths and real_path not in approved_paths:
        raise ToolFailure(
            f"{quote_name(path)} resolves to a different file than when the call was approved. Nothing was changed."
        )
    return real_path


# Files


def file_stamp(status: os.stat_result) -> FileStamp:
    """Return the stamp that changes whenever the file is written."""
    return status.st_mtime_ns, status.st_size


def open_regular_file(path: str, real_path: str, context: "ToolContext") -> tuple[int, os.stat_result]:
    """Open the regular file at `real_path` without following links; messages name it `path`.

    Raises:
        ToolFailure: The file does not exist, is not a regular file, or cannot be read.
    """
    try:
        with Directory(os.path.dirname(real_path)) as folder:
            name = os.path.basename(real_path) or os.curdir
            _refuse_special_file(path, folder.status(name))
            descriptor = folder.open(name, _OPEN_FLAGS)
    except FileNotFoundError as error:
        raise ToolFailure(_missing_file_message(path, context)) from error
    except OSError as error:
        raise file_error("read", path, error) from error
    status = os.fstat(descriptor)
    try:
        _refuse_special_file(path, status)
    except ToolFailure:
        os.close(descriptor)
        raise
    return descriptor, status


def read_up_to(descriptor: int, max_size: int, path: str) -> bytes:
    """Read at most `max_size` bytes from the current position."""
    chunks: list[bytes] = []
    try:
        while max_size > 0 and (piece := os.read(descriptor, min(max_size, 1 << 20))):
            chunks.append(piece)
            max_size -= len(piece)
    except OSError as error:
        raise file_error("read", path, error) from error
    return b"".join(chunks)


def load_file(path: str, real_path: str, context: "ToolContext") -> tuple[bytes, os.stat_result]:
    """Read the whole file at `real_path`; messages name it `path`.

    Raises:
        ToolFailure: The file cannot be read or is too large.
    """
    descriptor, status = open_regular_file(path, real_path, context)
    try:
        data = read_up_to(descriptor, MAX_FILE_SIZE + 1, path)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_SIZE:
        raise ToolFailure(
            f"{quote_name(path)} is too large ({format_size(max(status.st_size, len(data)))}; "
            f"limit {format_size(MAX_FILE_SIZE)}). Use Bash instead."
        )
    return data, status


def _refuse_special_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure(f"{quote_name(path)} is a directory, not a file. List it with Glob, or with ls in Bash.")
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a broken symbolic link"))
    kind = next((description for is_kind, description in kinds if is_kind(status.st_mode)), "a device")
    raise ToolFailure(f"{quote_name(path)} is {kind}, not a regular file.")


def _missing_file_message(path: str, context: "ToolContext") -> str:
    message = f"File not found: {quote_name(path)}. The working directory is {quote_name(context.cwd)}."
    if os.path.islink(path):
        message = f"{quote_name(path)} is a broken symbolic link."
    suggestions = _similar_names(path)
    return f"{message} Did you mean {' or '.join(map(quote_name, suggestions))}?" if suggestions else message


def _similar_names(path: str) -> list[str]:
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MAX_LISTED_NAMES), strict=False)]
    names_by_folded = {other.lower(): other for other in sorted(names)}
    stem = os.path.splitext(name)[0].lower()
    same_stem = [names_by_folded[other] for other in names_by_folded if os.path.splitext(other)[0] == stem]
    similar = same_stem + [
        names_by_folded[other] for other in get_close_matches(name.lower(), list(names_by_folded), _MAX_SUGGESTIONS)
    ]
    return [os.path.join(folder, other) for other in dict.fromkeys(similar)][:_MAX_SUGGESTIONS]


# Text


class TextFormat(msgspec.Struct, frozen=True):
    """Encoding, byte order mark and line ending of a text file."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def apply_line_ends(self, text: str) -> str:
        """Convert the line endings of a text to those of the file."""
        return _LINE_END.sub("\r\n", text) if self.newline == "\r\n" else text


class DecodedText(msgspec.Struct, frozen=True):
    """The decoded text of a file."""

    raw_text: str
    """The text with its original line endings."""
    text_format: TextFormat

    @property
    def text(self) -> str:
        """The text with LF line endings."""
        return self.raw_text.replace("\r\n", "\n")


def decode_text(data: bytes, known_format: TextFormat | None = None) -> DecodedText | None:
    r"""Decode the bytes of a file; return None for binary data.

    `known_format` is the format from an earlier read or write, used where the bytes are ambiguous.

    >>> decode_text(b"\xff\xfea\x00").text, decode_text(b"caf\xe9").text_format.encoding, decode_text(b"\x00")
    ('a', 'latin-1', None)
    """
    if known_format is not None and data.startswith(known_format.bom):
        raw = _try_decode(data[len(known_format.bom) :], known_format.encoding)
        if raw is not None:
            return DecodedText(raw, known_format)
    for bom, encoding in _ENCODINGS_BY_BOM:
        if data.startswith(bom):
            raw = _try_decode(data[len(bom) :], encoding)
            if raw is not None:
                return DecodedText(raw, TextFormat(encoding, bom, _detect_line_end(raw)))
    for encoding in ("utf-8", "latin-1"):
        raw = _try_decode(data, encoding)
        if raw is not None:
            return DecodedText(raw, TextFormat(encoding, b"", _detect_line_end(raw)))
    return None


def encode_text(raw: str, text_format: TextFormat, path: str) -> bytes:
    """Encode a text in the format of its file.

    Raises:
        ToolFailure: The encoding of the file lacks a character.
    """
    try:
        return text_format.bom + raw.encode(text_format.encoding)
    except UnicodeEncodeError as error:
        character = raw[error.start]
        raise ToolFailure(
            f"{quote_name(path)} is encoded in {text_format.encoding.upper()}, "
            f"which cannot represent U+{ord(character):04X} ({quote_name(character)})."
        ) from error


def remember_file(context: "ToolContext", real_path: str, status: os.stat_result, text_format: TextFormat) -> None:
    """Store the stamp and format of a file: after an edit, the bytes alone may not identify the encoding."""
    context.file_stamps[real_path] = file_stamp(status)
    context.text_forms[real_path] = (file_stamp(status), text_format)


def known_text_format(context: "ToolContext", real_path: str, status: os.stat_result) -> TextFormat | None:
    """Return the stored format of a file if the file has not changed since; else None."""
    stamp, text_format = context.text_forms.get(real_path, ((0, 0), None))
    return text_format if stamp == file_stamp(status) else None


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        raw = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if "\0" in raw:
        return None
    if encoding == "latin-1":
        sample = data[:_SAMPLE_SIZE]
        controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
        return None if controls > len(sample) * _MAX_CONTROL_SHARE else raw
    return raw


def _detect_line_end(raw: str) -> str:
    pairs = raw.count("\r\n")
    return "\r\n" if pairs > raw.count("\n") - pairs else "\n"


_MAX_IMAGE_SIZE: Final = 5 << 20


def detect_image_type(head: bytes) -> str:
    """Return the media type of an image by its first bytes; empty if it is not an image."""
    from steno.session.resume.api_rules import read_header

    header = read_header(b64encode(head).decode("ascii"))
    return header.media_type if header is not None else ""


def image_result(path: str, data: bytes) -> ToolResult:
    """Return an image as an image block.

    Raises:
        ToolFailure: The image is damaged or exceeds the limits of the API.
    """
    from steno.session.resume.api_rules import image_flaw, read_header

    encoded = b64encode(data).decode("ascii")
    header = read_header(encoded)
    media_type = header.media_type if header is not None else ""
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    flaw = image_flaw(source)[0]
    if not flaw and len(encoded) > _MAX_IMAGE_SIZE:
        flaw = f"{format_size(len(data))}, limit {format_size(_MAX_IMAGE_SIZE // 4 * 3)}"
    if not flaw and header is not None and not header.width:
        # The API decodes images: one that it cannot decode would block every later request of the session.
        flaw = "its header is damaged"
    if flaw or header is None:
        raise ToolFailure(f"Cannot show {quote_name(path)} ({flaw}). Create a valid, smaller copy of the image.")
    file: dict[str, Any] = {"base64": encoded, "type": media_type, "originalSize": len(data)}
    if header.width:
        file["dimensions"] = {
            "originalWidth": header.width,
            "originalHeight": header.height,
            "displayWidth": header.width,
            "displayHeight": header.height,
        }
    return ToolResult([{"type": "image", "source": source}], {"type": "image", "file": file})
