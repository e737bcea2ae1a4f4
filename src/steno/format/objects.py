"""Whole JSON objects on a line that is not one: found wherever they begin, with bounded work.

Every `{"` of a wreck may begin a record, and trying one may mean reading to the end of the line.
So each try reads through a window that grows only as long as the text is sound up to its end, and
all tries on a line share an allowance in proportion to the line's length: one for the objects that
stand where a value may stand, and so are most likely part of the wreck, one for the others. A
hopeless line costs no more than that; what is not found then is part of the gap.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

__all__ = ["Found", "Objects"]

_FIRST_WINDOW: Final = 4096
_GROWTH: Final = 8
_ALLOWANCE: Final = 32
_FREE: Final = 1 << 20
_PER_TRY: Final = 512
_NEAR_END: Final = 16  # no literal and no escape is longer than this
_BLANK: Final = " \t\r\n"
_VALUE_MAY_FOLLOW: Final = ":[,"
_OBJECT: Final = re.compile(r"[ \t\r]*\{")
_START: Final = re.compile(r'\{"[A-Za-z_][A-Za-z0-9_]*":')
# Only whether there is a number matters, and `len` takes one of any length.
_FORGIVING: Final = json.JSONDecoder(strict=False, parse_int=len)


class Found(NamedTuple):
    """An object and where it lies on its line; `inner` when a value may stand there."""

    start: int
    stop: int
    inner: bool
    fields: dict[str, Any]


class Objects:
    """The objects on one line."""

    def __init__(self, line: bytes) -> None:
        self.text = line.decode("latin-1")  # one character per byte: positions are byte offsets
        self._last_type = self.text.rfind('"type"')
        self._allowance = _ALLOWANCE * len(line) + _FREE
        self._spent = {False: 0, True: 0}

    def at(self, at: int) -> Found | None:
        """Return the object that begins at `at`, blanks before it included."""
        match = _OBJECT.match(self.text, at)
        if match is None:
            return None
        fields, length = self._read(match.end() - 1)
        return None if fields is None else Found(at, match.end() - 1 + length, False, fields)

    def behind(self, at: int) -> Iterator[Found]:
        """Yield what may be a record at or behind `at`, inner objects included."""
        for match in _START.finditer(self.text, at):
            start = match.start()
            if start > self._last_type:
                return
            inner = self.text[start - 1 : start] in _VALUE_MAY_FOLLOW
            if self._spent[inner] > self._allowance:
                continue
            fields, length = self._read(start)
            self._spent[inner] += _PER_TRY + length
            if fields is not None:
                yield Found(start, start + length, inner, fields)

    def _read(self, at: int) -> tuple[dict[str, Any] | None, int]:
        """Return the object at a brace and its length, or None and how much was read in vain."""
        size = _FIRST_WINDOW
        spent = 0
        while True:
            window = self.text[at : at + size]
            try:
                fields, length = _FORGIVING.raw_decode(window)
            except json.JSONDecodeError as error:
                cut = _is_cut(error, window)
                spent += len(window) if cut else error.pos
                if not cut or at + size >= len(self.text):
                    return None, spent
                size *= _GROWTH
            except (ValueError, RecursionError):
                return None, spent + len(window)
            else:
                return fields, length


def _is_cut(error: json.JSONDecodeError, window: str) -> bool:
    """Tell whether decoding failed because the window ended."""
    if error.msg.startswith("Unterminated string"):
        return True
    return error.pos >= len(window.rstrip(_BLANK)) - _NEAR_END
