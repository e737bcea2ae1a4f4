"""Lists the secrets in session files that an export would mask, and where they are.

A finding never holds the secret: only the prefix that its vendor publishes, its length, and a hash
with a random key, by which two findings of one scan can be compared.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from secrets import token_bytes
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.blocks import ToolUse
from steno.format.source import BytesSource
from steno.report.export.opened import bytes_of
from steno.safe.families import FAMILIES
from steno.safe.masking import PERSONAL, Edit, edits_of
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.transcript import Transcript, load
from steno.store.found import Found

__all__ = ["FileSecrets", "SecretFinding", "scan_files"]

_HASH_BYTES: Final = 4
_PREFIXES: Final = {
    family.id: tuple(sorted(family.needles, key=len, reverse=True))
    for family in FAMILIES
    if family.prefix
}


class SecretFinding(msgspec.Struct, frozen=True):
    """One secret, and where it is."""

    family: str
    line: int
    """The line of the file, from 1."""
    byte: int
    """The byte where the record begins, as `steno show SESSION --at BYTE` takes it."""
    turn: int | None
    tool: str
    """The tool whose input or result holds it; empty elsewhere."""
    encoding: str
    """How it is written, such as base64; empty if it is plain."""
    prefix: str
    """The public beginning of tokens of this family; empty if there is none."""
    length: int
    hash: str


class FileSecrets(msgspec.Struct, frozen=True):
    """The secrets in one file."""

    found: Found
    findings: tuple[SecretFinding, ...]
    error: str = ""
    """Why the file could not be read."""


def scan_files(
    files: Iterable[Found], done: Callable[[int], None] = lambda _size: None
) -> Iterator[FileSecrets]:
    """Yield the secrets of each session file and of its sub-agents' files."""
    key = token_bytes(16)
    for session in files:
        for found in (session, *session.agents):
            try:
                data = bytes_of(found)
            except Unreadable as error:
                yield FileSecrets(found, (), str(error))
            else:
                yield FileSecrets(found, tuple(_findings(data, key)))
            done(found.size)


def _findings(data: bytes, key: bytes) -> Iterator[SecretFinding]:
    edits = [edit for edit in edits_of(data) if edit.family not in PERSONAL]
    if not edits:
        return
    places = _Places(data)
    for edit in edits:
        secret = data[edit.begin : edit.end]
        line, byte = places.line_of(edit.begin)
        node = places.node_at(byte)
        yield SecretFinding(
            edit.family,
            line,
            byte,
            places.turn_of(node),
            places.tool_of(node),
            edit.cover,
            _prefix_of(edit, secret),
            len(secret),
            blake2b(secret, digest_size=_HASH_BYTES, key=key).hexdigest(),
        )


def _prefix_of(edit: Edit, secret: bytes) -> str:
    if edit.cover:
        return ""
    prefixes = _PREFIXES.get(edit.family, ())
    return next((each.decode() for each in prefixes if secret.startswith(each)), "")


class _Places:
    """Says where in a session a byte of its file is."""

    def __init__(self, data: bytes) -> None:
        self._starts = [0]
        at = data.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = data.find(b"\n", at + 1)
        self._transcript: Transcript = load(BytesSource(data), hold=True)
        self._nodes = {node.offset: node for node in self._transcript.nodes}
        turns = Session(self._transcript, name="").turns()
        self._turns = {node.offset: turn.number for turn in turns for node in turn.nodes}
        self._callers = {use: node for node in self._transcript.nodes for use in node.uses}

    def line_of(self, place: int) -> tuple[int, int]:
        """Return the number of a line and the byte where it begins."""
        line = bisect_right(self._starts, place)
        return line, self._starts[line - 1]

    def node_at(self, byte: int) -> Node | None:
        """Return the record that begins at a byte."""
        return self._nodes.get(byte)

    def turn_of(self, node: Node | None) -> int | None:
        """Return the number of the turn that a record belongs to."""
        return self._turns.get(node.offset) if node is not None else None

    def tool_of(self, node: Node | None) -> str:
        """Return the name of the first tool that a record calls or has a result of."""
        if node is None:
            return ""
        for use in (*node.uses, *node.results):
            caller = self._callers.get(use)
            name = self._tool_name(caller, use) if caller is not None else ""
            if name:
                return name
        return ""

    def _tool_name(self, node: Node, use: str) -> str:
        blocks = self._transcript.record(node).blocks
        return next(
            (block.name for block in blocks if isinstance(block, ToolUse) and block.id == use), ""
        )
