"""Masks the secrets of a session before it is read, and lists them.

Output made from a masked session cannot contain a secret, as the secret is removed before parsing. A finding of the
scan does not contain the secret either: only the prefix published by its vendor, its length, and a hash with a random
key, so that findings of one scan can be compared.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from secrets import token_bytes
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.message import ToolUse
from steno.format.paths import JSONL_SUFFIX
from steno.format.source import BytesSource
from steno.sanitize.secret_masker import PERSONAL_IDS, SECRET_FAMILIES, MaskEdit, Masker, apply_edits, find_edits
from steno.session.session import Session
from steno.session.transcript import Node, Transcript, load
from steno.session.turns.subagents import SubagentFile
from steno.store.archive.file_access import open_file
from steno.store.discovery import DiscoveredFile
from steno.store.session_lookup import foreign_titles
from steno.store.summary import read_custom_title
from steno.store.watch.incremental import agent_files


class MaskedSession(msgspec.Struct, frozen=True):
    """A session to export, and its file."""

    session: Session
    found: DiscoveredFile
    size: int


def open_masked(session_file: DiscoveredFile, masker: Masker | None) -> MaskedSession:
    """Open a session with its sub-agents, masked if a masker is given.

    Raises:
        Unreadable: The session cannot be read.
    """
    name = session_file.path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)

    def agent(agent_file: DiscoveredFile) -> Transcript:
        try:
            data = read_bytes_of(agent_file)
        except Unreadable:
            # A missing sub-agent must not prevent the export of the session.
            data = b""
        masked = masked_bytes(data, masker, f"{name}/{agent_file.place.agent_id}")
        return load(BytesSource(masked), keep=True)

    transcript = load(BytesSource(masked_bytes(read_bytes_of(session_file), masker, name)), keep=True)
    version = next((node.version for node in reversed(transcript.nodes) if node.version), "")
    session = Session(
        transcript,
        name=name,
        agents=[_mask_agent(agent_file, masker) for agent_file in agent_files(session_file, load_transcript=agent)],
        custom_title=_mask_text(read_custom_title(session_file), masker, name),
        summaries=[(leaf, _mask_text(title, masker, name)) for leaf, title in foreign_titles(session_file, version)],
    )
    return MaskedSession(session, session_file, session_file.size)


def read_bytes_of(session_file: DiscoveredFile) -> bytes:
    """Return the content of a file.

    Raises:
        Unreadable: The file cannot be read.
    """
    with open_file(session_file) as source:
        return source.read(0, source.size)


def masked_bytes(data: bytes, masker: Masker | None, location: str) -> bytes:
    """Return the content of a file, masked if a masker is given."""
    return data if masker is None else masker.mask_bytes(data, location)


def _mask_text(text: str, masker: Masker | None, location: str) -> str:
    return masker.mask_text(text, location) if masker is not None and text else text


def _mask_agent(agent: SubagentFile, masker: Masker | None) -> SubagentFile:
    meta = agent.meta
    if meta is None or masker is None or not meta.description:
        return agent
    masked_meta = msgspec.structs.replace(meta, description=masker.mask_text(meta.description))
    return msgspec.structs.replace(agent, meta=masked_meta)


class MaskedSpans:
    """Masked spans of a file, applied to parts of it without shifting offsets."""

    def __init__(self, edits: Sequence[MaskEdit]) -> None:
        self._edits = edits
        self._ends = [edit.end for edit in edits]

    def masked_bytes_between(self, data: bytes, begin: int, end: int) -> bytes:
        """Return a part of a file with its secrets masked, including those that extend beyond it."""
        clipped: list[MaskEdit] = []
        for number in range(bisect_right(self._ends, begin), len(self._edits)):
            edit = self._edits[number]
            if edit.begin >= end:
                break
            low, high = max(edit.begin, begin) - begin, min(edit.end, end) - begin
            clipped.append(msgspec.structs.replace(edit, begin=low, end=high))
        return apply_edits(data[begin:end], clipped)


def find_masked_spans(data: bytes, masker: Masker | None, location: str) -> MaskedSpans:
    """Return the spans to mask in a file, and record them in the masker."""
    if masker is None:
        return MaskedSpans(())
    edits = find_edits(data)
    masker.record(data, edits, location)
    return MaskedSpans(edits)


_HASH_BYTES: Final = 4
_PREFIXES: Final = {
    family.id: tuple(sorted(family.needles, key=len, reverse=True)) for family in SECRET_FAMILIES if family.prefix
}


class SecretFinding(msgspec.Struct, frozen=True):
    """A secret and its location."""

    family: str
    line: int
    """Line number, starting at 1."""
    byte: int
    """Offset of the record, as for `steno show SESSION --at BYTE`."""
    turn: int | None
    tool: str
    """Tool whose input or result contains the secret; empty for other records."""
    encoding: str
    """Encoding, for example base64; empty for plain text."""
    prefix: str
    """Published prefix of tokens of this family; empty if there is none."""
    length: int
    hash: str


class FileSecrets(msgspec.Struct, frozen=True):
    """Secrets in one file."""

    session_file: DiscoveredFile
    findings: tuple[SecretFinding, ...]
    error: str = ""
    """Reason why the file could not be read."""


def scan_for_secrets(
    files: Iterable[DiscoveredFile], progress: Callable[[int], None] = lambda _size: None
) -> Iterator[FileSecrets]:
    """Yield the secrets in each session file and its sub-agent files."""
    key = token_bytes(16)
    for session in files:
        for session_file in (session, *session.agents):
            try:
                data = read_bytes_of(session_file)
            except Unreadable as error:
                yield FileSecrets(session_file, (), str(error))
            else:
                yield FileSecrets(session_file, tuple(_findings(data, key)))
            progress(session_file.size)


def _findings(data: bytes, key: bytes) -> Iterator[SecretFinding]:
    edits = [edit for edit in find_edits(data) if edit.family not in PERSONAL_IDS]
    if not edits:
        return
    locator = _SecretLocator(data)
    for edit in edits:
        secret = data[edit.begin : edit.end]
        line, byte = locator.line_of(edit.begin)
        node = locator.node_at(byte)
        yield SecretFinding(
            edit.family,
            line,
            byte,
            locator.turn_of(node),
            locator.tool_of(node),
            edit.cover,
            _prefix_of(edit, secret),
            len(secret),
            blake2b(secret, digest_size=_HASH_BYTES, key=key).hexdigest(),
        )


def _prefix_of(edit: MaskEdit, secret: bytes) -> str:
    if edit.cover:
        return ""
    prefixes = _PREFIXES.get(edit.family, ())
    return next((prefix.decode() for prefix in prefixes if secret.startswith(prefix)), "")


class _SecretLocator:
    """Locates a byte offset in a session: line, record, turn, tool."""

    def __init__(self, data: bytes) -> None:
        self._starts = [0]
        at = data.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = data.find(b"\n", at + 1)
        self._transcript: Transcript = load(BytesSource(data), keep=True)
        self._nodes = {node.offset: node for node in self._transcript.nodes}
        turns = Session(self._transcript, name="").turns()
        self._turns = {node.offset: turn.number for turn in turns for node in turn.nodes}
        self._callers = {use: node for node in self._transcript.nodes for use in node.uses}

    def line_of(self, offset: int) -> tuple[int, int]:
        """Return the line number of an offset, and the offset of the line."""
        line = bisect_right(self._starts, offset)
        return line, self._starts[line - 1]

    def node_at(self, byte: int) -> Node | None:
        """Return the record at an offset."""
        return self._nodes.get(byte)

    def turn_of(self, node: Node | None) -> int | None:
        """Return the turn number of a record."""
        return self._turns.get(node.offset) if node is not None else None

    def tool_of(self, node: Node | None) -> str:
        """Return the name of the first tool in the calls and results of a record."""
        if node is None:
            return ""
        for call_id in (*node.uses, *node.results):
            caller = self._callers.get(call_id)
            name = self._tool_name(caller, call_id) if caller is not None else ""
            if name:
                return name
        return ""

    def _tool_name(self, node: Node, call_id: str) -> str:
        blocks = self._transcript.record(node).blocks
        return next((block.name for block in blocks if isinstance(block, ToolUse) and block.id == call_id), "")
