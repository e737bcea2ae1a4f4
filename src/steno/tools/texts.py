"""Files as the tools see them: where they are, what kind they are, how their text is written down.

A text is shown with plain line ends and without a mark of its encoding; what is written back keeps
both (`Form`), so that an edit changes no byte that it does not name.
"""

import codecs
import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from steno.guard.told import told
from steno.store.beneath import Folder
from steno.tools.base import ToolFailure
from steno.tools.words import failed, shown, size_words

if TYPE_CHECKING:
    from steno.tools.context import ToolContext

__all__ = [
    "MOST_WHOLE",
    "Form",
    "Stamp",
    "Text",
    "decode",
    "encode",
    "form_of",
    "load",
    "open_file",
    "place",
    "read_up_to",
    "remember",
    "settled",
    "stamp_of",
]

Stamp = tuple[int, int]
"""When a file was changed (ns) and how big it was: another value means that it has changed."""

MOST_WHOLE: Final = 10 << 20
"""The most bytes of a file that is taken into memory as a whole."""
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Without these a fifo that took a file's name would be waited for, and a terminal be taken over.
_OPEN: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_NEWLINE: Final = re.compile(r"\r?\n")
_SAMPLE: Final = 1 << 16
# More control characters than this share, and bytes that are no UTF-8 are no Latin-1 either.
_MOST_CONTROLS: Final = 0.1
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + bytes(range(0x7F, 0xA0))
_NEAR: Final = 3
_MOST_NAMES: Final = 5_000


# Paths


def place(given: str, context: "ToolContext") -> str:
    """Return the absolute path that a call means.

    Raises:
        ToolFailure: it is no path at all.
    """
    if not given or "\0" in given:
        raise ToolFailure(
            "the path is empty" if not given else "a path cannot hold a NUL character"
        )
    try:
        os.fsencode(given)
    except UnicodeEncodeError as error:
        raise ToolFailure(f"{shown(given)} is no path: it holds half a character") from error
    return told(given, context.cwd, context.env.get("HOME", ""))


def settled(path: str, context: "ToolContext", call: str) -> str:
    """Return where a path really leads, which must be where it led when the call was judged.

    Raises:
        ToolFailure: somebody has put a link in its way since.
    """
    real = os.path.realpath(path)
    judged = context.judged.get(call, ())
    if judged and real not in judged:
        raise ToolFailure(
            f"{shown(path)} leads elsewhere than it did when the call was allowed: nothing was done"
        )
    return real


# Files


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what tells whether a file has changed."""
    return status.st_mtime_ns, status.st_size


def open_file(path: str, real: str, context: "ToolContext") -> tuple[int, os.stat_result]:
    """Open the regular file at `real`, which was asked for as `path`; no link is followed.

    Raises:
        ToolFailure: it is not there, not a file, or may not be read.
    """
    try:
        with Folder(os.path.dirname(real)) as folder:
            name = os.path.basename(real) or os.curdir
            _refuse_other(path, folder.status(name))
            descriptor = folder.open(name, _OPEN)
    except FileNotFoundError as error:
        raise ToolFailure(_missing(path, context)) from error
    except OSError as error:
        raise failed("read", path, error) from error
    status = os.fstat(descriptor)
    try:
        _refuse_other(path, status)
    except ToolFailure:
        os.close(descriptor)
        raise
    return descriptor, status


def read_up_to(descriptor: int, most: int, path: str) -> bytes:
    """Return a file's bytes from where it stands, no more than so many."""
    pieces: list[bytes] = []
    try:
        while most > 0 and (piece := os.read(descriptor, min(most, 1 << 20))):
            pieces.append(piece)
            most -= len(piece)
    except OSError as error:
        raise failed("read", path, error) from error
    return b"".join(pieces)


def load(path: str, real: str, context: "ToolContext") -> tuple[bytes, os.stat_result]:
    """Return the whole of the file at `real`, which was asked for as `path`.

    Raises:
        ToolFailure: it cannot be read, or is too big.
    """
    descriptor, status = open_file(path, real, context)
    try:
        data = read_up_to(descriptor, MOST_WHOLE + 1, path)
    finally:
        os.close(descriptor)
    if len(data) > MOST_WHOLE:
        raise ToolFailure(
            f"{shown(path)} is too big for this ({size_words(max(status.st_size, len(data)))}; "
            f"at most {size_words(MOST_WHOLE)}): use Bash"
        )
    return data, status


def _refuse_other(path: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure(
            f"{shown(path)} is a folder, not a file: list it with Glob, or with ls in Bash"
        )
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link that leads nowhere"),
    )
    kind = next((words for is_kind, words in kinds if is_kind(status.st_mode)), "a device")
    raise ToolFailure(f"{shown(path)} is {kind}, not a file")


def _missing(path: str, context: "ToolContext") -> str:
    words = f"{shown(path)} does not exist. The working directory is {shown(context.cwd)}."
    if os.path.islink(path):
        words = f"{shown(path)} is a link to something that does not exist."
    near = _near(path)
    return f"{words} Did you mean {' or '.join(map(shown, near))}?" if near else words


def _near(path: str) -> list[str]:
    """Return files beside a missing one that have nearly its name."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    folded = {other.lower(): other for other in sorted(names)}
    stem = os.path.splitext(name)[0].lower()
    same = [folded[other] for other in folded if os.path.splitext(other)[0] == stem]
    near = same + [folded[other] for other in get_close_matches(name.lower(), list(folded), _NEAR)]
    return [os.path.join(folder, other) for other in dict.fromkeys(near)][:_NEAR]


# Text


class Form(msgspec.Struct, frozen=True):
    """How a text is written down."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def dress(self, text: str) -> str:
        """Give the lines of a text the ends that the file has."""
        return _NEWLINE.sub("\r\n", text) if self.newline == "\r\n" else text


class Text(msgspec.Struct, frozen=True):
    """A file's text."""

    raw: str
    """With the line ends that it has."""
    form: Form

    @property
    def text(self) -> str:
        """With plain line ends."""
        return self.raw.replace("\r\n", "\n")


def decode(data: bytes, form: Form | None = None) -> Text | None:
    r"""Return the text in a file's bytes; None when they are no text.

    `form` is what is known of the file from before, where its bytes alone leave it open.

    >>> decode(b"\xff\xfea\x00").text, decode(b"caf\xe9").form.encoding, decode(b"\x00")
    ('a', 'latin-1', None)
    """
    if form is not None and data.startswith(form.bom):
        raw = _decoded(data[len(form.bom) :], form.encoding)
        if raw is not None:
            return Text(raw, form)
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            raw = _decoded(data[len(bom) :], encoding)
            if raw is not None:
                return Text(raw, Form(encoding, bom, _newline(raw)))
    for encoding in ("utf-8", "latin-1"):
        raw = _decoded(data, encoding)
        if raw is not None:
            return Text(raw, Form(encoding, b"", _newline(raw)))
    return None


def encode(raw: str, form: Form, path: str) -> bytes:
    """Return a text's bytes.

    Raises:
        ToolFailure: it holds a character that its encoding does not have.
    """
    try:
        return form.bom + raw.encode(form.encoding)
    except UnicodeEncodeError as error:
        sign = raw[error.start]
        raise ToolFailure(
            f"{shown(path)} is written in {form.encoding.upper()}, "
            f"which cannot hold U+{ord(sign):04X} ({shown(sign)})"
        ) from error


def remember(context: "ToolContext", real: str, status: os.stat_result, form: Form) -> None:
    """Keep how a file was written down: after an edit its bytes alone may no longer tell."""
    context.seen[real] = stamp_of(status)
    context.text_forms[real] = (stamp_of(status), form)


def form_of(context: "ToolContext", real: str, status: os.stat_result) -> Form | None:
    """Return how a file is written down, when that is known and it has not changed since."""
    stamp, form = context.text_forms.get(real, ((0, 0), None))
    return form if stamp == stamp_of(status) else None


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        raw = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if "\0" in raw:
        return None
    if encoding == "latin-1":
        sample = data[:_SAMPLE]
        controls = len(sample) - len(sample.translate(None, _CONTROLS))
        return None if controls > len(sample) * _MOST_CONTROLS else raw
    return raw


def _newline(raw: str) -> str:
    pairs = raw.count("\r\n")
    return "\r\n" if pairs > raw.count("\n") - pairs else "\n"
