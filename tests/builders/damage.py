"""Broken bytes on purpose: each kind of damage that session files have been seen with.

Damage is done when the bytes are asked for; a line's number is the number of its record as it
was built, whatever is done to the lines before it.
"""

import re
from collections.abc import Callable
from typing import Final, Self

import msgspec
from tests.builders.agents import Agents
from tests.builders.blocks import Json

from steno.format.encode import encode

__all__ = ["Cell", "Damage"]

_STRING: Final = re.compile(rb'":"(?=[^"\\]{3})')
_HUGE: Final = b"123456789012345678901234567890"


class Cell(msgspec.Struct):
    """One record's bytes: what stands before it, its line, its end."""

    record: Json
    line: bytes
    before: bytes = b""
    end: bytes = b"\n"


_Edit = Callable[[list[Cell]], None]


class Damage(Agents):
    """Ways to break a file."""

    _edits: tuple[_Edit, ...] = ()
    _finish: tuple[Callable[[bytes], bytes], ...] = ()

    def torn_tail(self, cut: int | None = None) -> Self:
        """Cut the last `cut` bytes of the last line, and its newline; half the line unless told."""

        def tear(data: bytes) -> bytes:
            body = data.removesuffix(b"\n")
            length = len(body) - (body.rfind(b"\n") + 1)
            return body[: len(body) - (length // 2 if cut is None else cut)]

        return self._at_end(tear)

    def no_final_newline(self) -> Self:
        """Leave the last newline out."""
        return self._at_end(lambda data: data.removesuffix(b"\n"))

    def bom(self) -> Self:
        """Begin with a byte order mark."""
        return self._at_end(lambda data: b"\xef\xbb\xbf" + data)

    def crlf(self) -> Self:
        """End every line as Windows does."""
        return self._at_end(lambda data: data.replace(b"\n", b"\r\n"))

    def glue(self, at: int) -> Self:
        """Leave out the newline between a line and the next."""
        return self._on(at, lambda cell: _set(cell, end=b""))

    def splice(self, at: int, cut: int) -> Self:
        """Keep only `cut` bytes of a line and let the next begin right behind them."""
        return self._on(at, lambda cell: _set(cell, line=cell.line[:cut], end=b""))

    def nul_run(self, at: int, length: int = 512) -> Self:
        """Put a run of NUL bytes before a line."""
        return self._on(at, lambda cell: _set(cell, before=cell.before + b"\0" * length))

    def bad_utf8(self, at: int) -> Self:
        """Put bytes that are no UTF-8 into a string of a line."""
        return self._inside(at, b"\xff\xc3")

    def lone_surrogate(self, at: int) -> Self:
        """Put half a surrogate pair, escaped, into a string of a line."""
        return self._inside(at, b"\\ud83d")

    def duplicate_key(self, at: int) -> Self:
        """Say the last key of a line twice, the second time with another value."""
        return self._on(at, lambda cell: _append(cell, f'"{list(cell.record)[-1]}":"again"'))

    def huge_int(self, at: int) -> Self:
        """Add a number that no 64 bits hold."""
        return self._on(at, lambda cell: _append(cell, f'"huge":{_HUGE.decode()}'))

    def deep(self, at: int, depth: int = 2000) -> Self:
        """Add arrays within arrays."""
        return self._on(at, lambda cell: _append(cell, f'"deep":{"[" * depth}{"]" * depth}'))

    def oversize(self, at: int, size: int) -> Self:
        """Pad a line to `size` bytes."""

        def pad(cell: Cell) -> None:
            room = size - len(cell.line) - len(',"padding":""')
            _append(cell, f'"padding":"{"x" * max(room, 0)}"')

        return self._on(at, pad)

    def not_object(self, at: int, line: bytes = b'["no","object"]') -> Self:
        """Put a line before another that is JSON, but no object."""
        return self._on(at, lambda cell: _set(cell, before=cell.before + line + b"\n"))

    def blank(self, at: int) -> Self:
        """Put an empty line before a line."""
        return self._on(at, lambda cell: _set(cell, before=cell.before + b"\n"))

    def drop(self, at: int) -> Self:
        """Leave a line out."""
        return self._on(at, lambda cell: _set(cell, line=b"", end=b""))

    def retarget(self, at: int, uuid: str | None) -> Self:
        """Let a record name another parent."""
        return self._on(at, lambda cell: _rewrite(cell, {"parentUuid": uuid}))

    def cycle(self) -> Self:
        """Let the first record of the chain name the last as its parent."""

        def bend(cells: list[Cell]) -> None:
            chain = [cell for cell in cells if "uuid" in cell.record]
            _rewrite(chain[0], {"parentUuid": chain[-1].record["uuid"]})

        return self._edit(bend)

    def duplicate_uuid(self, at: int, **changes: object) -> Self:
        """Append a record once more at the end, under the same uuid, with other fields."""

        def repeat(cells: list[Cell]) -> None:
            again = {**cells[at].record, **changes}
            cells.append(Cell(again, encode(again)))

        return self._edit(repeat)

    def heal(self) -> Self:
        """Take all damage back."""
        self._edits, self._finish = (), ()
        return self

    def _on(self, at: int, change: Callable[[Cell], None]) -> Self:
        return self._edit(lambda cells: change(cells[at]))

    def _inside(self, at: int, junk: bytes) -> Self:
        def change(cell: Cell) -> None:
            cell.line = _STRING.sub(lambda found: found.group() + junk, cell.line, count=1)

        return self._on(at, change)

    def _edit(self, edit: _Edit) -> Self:
        self._edits = (*self._edits, edit)
        return self

    def _at_end(self, change: Callable[[bytes], bytes]) -> Self:
        self._finish = (*self._finish, change)
        return self

    def _damaged(self, records: list[Json]) -> bytes:
        cells = [Cell(record, encode(record)) for record in records]
        for edit in self._edits:
            edit(cells)
        data = b"".join(cell.before + cell.line + cell.end for cell in cells)
        for change in self._finish:
            data = change(data)
        return data


def _set(cell: Cell, *, line: bytes | None = None, before: bytes | None = None, end: bytes | None = None) -> None:
    cell.line = cell.line if line is None else line
    cell.before = cell.before if before is None else before
    cell.end = cell.end if end is None else end


def _append(cell: Cell, member: str) -> None:
    cell.line = cell.line[:-1] + b"," + member.encode() + b"}"


def _rewrite(cell: Cell, changes: Json) -> None:
    cell.record = {**cell.record, **changes}
    cell.line = encode(cell.record)
