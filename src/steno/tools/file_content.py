"""File content for tools: path resolution, opening, text encodings and images.

Text is shown with plain line ends and without a byte order mark; written text keeps both
(`TextFormat`), so that an edit changes no byte that it does not name.
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
"""When a file was changed (ns) and how big it was: another value means that it has changed."""

MAX_FILE_SIZE: Final = 10 << 20
"""The most bytes of a file that is taken into memory as a whole."""
_ENCODINGS_BY_BOM: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Without these a fifo that took a file's name would be waited for, and a terminal be taken over.
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_LINE_END: Final = re.compile(r"\r?\n")
_SAMPLE_SIZE: Final = 1 << 16
# More control characters than this share, and bytes that are no UTF-8 are no Latin-1 either.
_MAX_CONTROL_SHARE: Final = 0.1
_CONTROL_BYTES: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + bytes(range(0x7F, 0xA0))
_MAX_SUGGESTIONS: Final = 3
_MAX_LISTED_NAMES: Final = 5_000


# Paths


def resolve_tool_path(path: str, context: "ToolContext") -> str:
    """Return the absolute path that a call means.

    Raises:
        ToolFailure: it is no path at all.
    """
    if not path or "\0" in path:
        raise ToolFailure("the path is empty" if not path else "a path cannot hold a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolFailure(f"{quote_name(path)} is no path: it holds half a character") from error
    return resolve_path(path, context.cwd, context.env.get("HOME", ""))


def approved_real_path(path: str, context: "ToolContext", call_id: str) -> str:
    """Return where a path really leads, which must be where it led when the call was judged.

    Raises:
        ToolFailure: somebody has put a link in its way since.
    """
    real_path = os.path.realpath(path)
    approved_paths = context.approved_paths.get(call_id, ())
    if approved_paths and real_path not in approved_paths:
        raise ToolFailure(f"{quote_name(path)} leads elsewhere than it did when the call was allowed: nothing was done")
    return real_path


# Files


def file_stamp(status: os.stat_result) -> FileStamp:
    """Return what tells whether a file has changed."""
    return status.st_mtime_ns, status.st_size


def open_regular_file(path: str, real_path: str, context: "ToolContext") -> tuple[int, os.stat_result]:
    """Open the regular file at `real_path`, which was asked for as `path`; no link is followed.

    Raises:
        ToolFailure: it is not there, not a file, or may not be read.
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
    """Return a file's bytes from where it stands, no more than so many."""
    chunks: list[bytes] = []
    try:
        while max_size > 0 and (piece := os.read(descriptor, min(max_size, 1 << 20))):
            chunks.append(piece)
            max_size -= len(piece)
    except OSError as error:
        raise file_error("read", path, error) from error
    return b"".join(chunks)


def load_file(path: str, real_path: str, context: "ToolContext") -> tuple[bytes, os.stat_result]:
    """Return the whole of the file at `real_path`, which was asked for as `path`.

    Raises:
        ToolFailure: it cannot be read, or is too big.
    """
    descriptor, status = open_regular_file(path, real_path, context)
    try:
        data = read_up_to(descriptor, MAX_FILE_SIZE + 1, path)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_SIZE:
        raise ToolFailure(
            f"{quote_name(path)} is too big for this ({format_size(max(status.st_size, len(data)))}; "
            f"at most {format_size(MAX_FILE_SIZE)}): use Bash"
        )
    return data, status


def _refuse_special_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure(f"{quote_name(path)} is a folder, not a file: list it with Glob, or with ls in Bash")
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a link that leads nowhere"))
    kind = next((description for is_kind, description in kinds if is_kind(status.st_mode)), "a device")
    raise ToolFailure(f"{quote_name(path)} is {kind}, not a file")


def _missing_file_message(path: str, context: "ToolContext") -> str:
    message = f"{quote_name(path)} does not exist. The working directory is {quote_name(context.cwd)}."
    if os.path.islink(path):
        message = f"{quote_name(path)} is a link to something that does not exist."
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
    """How a text is written down."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def apply_line_ends(self, text: str) -> str:
        """Give the lines of a text the ends that the file has."""
        return _LINE_END.sub("\r\n", text) if self.newline == "\r\n" else text


class DecodedText(msgspec.Struct, frozen=True):
    """A file's text."""

    raw_text: str
    """With the line ends that it has."""
    text_format: TextFormat

    @property
    def text(self) -> str:
        """With plain line ends."""
        return self.raw_text.replace("\r\n", "\n")


def decode_text(data: bytes, known_format: TextFormat | None = None) -> DecodedText | None:
    r"""Return the text in a file's bytes; None when they are no text.

    `known_format` is what is known of the file from before, where its bytes alone leave it open.

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
    """Return a text's bytes.

    Raises:
        ToolFailure: it holds a character that its encoding does not have.
    """
    try:
        return text_format.bom + raw.encode(text_format.encoding)
    except UnicodeEncodeError as error:
        character = raw[error.start]
        raise ToolFailure(
            f"{quote_name(path)} is written in {text_format.encoding.upper()}, "
            f"which cannot hold U+{ord(character):04X} ({quote_name(character)})"
        ) from error


def remember_file(context: "ToolContext", real_path: str, status: os.stat_result, text_format: TextFormat) -> None:
    """Keep how a file was written down: after an edit its bytes alone may no longer tell."""
    context.file_stamps[real_path] = file_stamp(status)
    context.text_forms[real_path] = (file_stamp(status), text_format)


def known_text_format(context: "ToolContext", real_path: str, status: os.stat_result) -> TextFormat | None:
    """Return how a file is written down, when that is known and it has not changed since."""
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
    """Return which kind of image a file is, by its first bytes; nothing for what is none."""
    from steno.session.resume.api_rules import read_header

    header = read_header(b64encode(head).decode("ascii"))
    return header.media_type if header is not None else ""


def image_result(path: str, data: bytes) -> ToolResult:
    """Return an image as one.

    Raises:
        ToolFailure: it is damaged, or more than the API takes.
    """
    from steno.session.resume.api_rules import image_flaw, read_header

    encoded = b64encode(data).decode("ascii")
    header = read_header(encoded)
    media_type = header.media_type if header is not None else ""
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    flaw = image_flaw(source)[0]
    if not flaw and len(encoded) > _MAX_IMAGE_SIZE:
        flaw = f"{format_size(len(data))}, at most {format_size(_MAX_IMAGE_SIZE // 4 * 3)} allowed"
    if not flaw and header is not None and not header.width:
        # The API opens what it is sent; one that it cannot open would stop the whole session.
        flaw = "its beginning is damaged"
    if flaw or header is None:
        raise ToolFailure(f"{quote_name(path)} is an image that cannot be shown ({flaw}): make a sound, smaller copy")
    file: dict[str, Any] = {"base64": encoded, "type": media_type, "originalSize": len(data)}
    if header.width:
        file["dimensions"] = {
            "originalWidth": header.width,
            "originalHeight": header.height,
            "displayWidth": header.width,
            "displayHeight": header.height,
        }
    return ToolResult([{"type": "image", "source": source}], {"type": "image", "file": file})
