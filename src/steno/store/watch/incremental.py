"""Incremental reading: appended bytes, transcripts that grew, and sub-agent transcripts on demand."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from steno.errors import Unreadable
from steno.format.paths import meta_path
from steno.format.sidecars import AgentMeta, read_agent_meta
from steno.format.source import BytesSource
from steno.session.transcript import Transcript, load, load_growth
from steno.session.turns.subagents import SubagentFile
from steno.store.archive.file_access import lazy_source
from steno.store.discovery import ArchivedFile, DiscoveredFile, discover_agents, peek
from steno.store.file_source import FileSource, PathSource

if TYPE_CHECKING:
    from steno.format.source import Source


_COMPARED_SIZE: Final = 64
"""Bytes before the read position that are compared to detect a rewritten file."""


class IncrementalReader:
    """Reader of the bytes appended to a file since the last read."""

    def __init__(self, path: str, start: int = 0) -> None:
        self.path = path
        self.offset = start
        """Position up to which the file was read."""
        self.bytes_read = 0
        """Total bytes read, for measuring the work done."""
        self.exists = True
        self._identity: tuple[int, int] | None = None
        self._last_bytes = b""

    def detect_replacement(self) -> bool:
        """Return whether the file was replaced or truncated; if so, restart at the beginning."""
        try:
            with FileSource(self.path) as source:
                # A file that reappears is a new file, even at the same path.
                replaced = not self.exists or not self._is_continuation(source)
        except Unreadable:
            self.exists = False
            return False
        self.exists = True
        if replaced:
            self.offset, self._last_bytes, self._identity = 0, b"", None
        return replaced

    def read_new(self, until: int | None = None) -> Iterator[bytes]:
        """Yield the appended bytes, up to the offset `until` if given."""
        try:
            with FileSource(self.path) as source:
                self._identity = source.identity
                source.size = source.size if until is None else min(until, source.size)
                for chunk in source.chunks(self.offset):
                    self.offset += len(chunk)
                    self.bytes_read += len(chunk)
                    self._last_bytes = (self._last_bytes + chunk)[-_COMPARED_SIZE:]
                    yield chunk
        except Unreadable:
            # Truncated while being read, or deleted: the next `detect_replacement` call determines which.
            return

    def _is_continuation(self, source: FileSource) -> bool:
        if self._identity is None:
            return source.size >= self.offset
        if source.identity != self._identity or source.size < self.offset:
            return False
        self.bytes_read += len(self._last_bytes)
        return source.read(self.offset - len(self._last_bytes), len(self._last_bytes)) == self._last_bytes


_EDGE_SIZE: Final = 1 << 12


def reload_transcript(previous: Transcript | None, source: "Source") -> Transcript:
    """Return the current transcript of a file, reading only appended bytes where possible.

    Raises Unreadable if the file cannot be read.
    """
    can_extend = previous is not None and _is_appended(previous.source, source)
    transcript = load_growth(previous, source) if previous is not None and can_extend else load(source)
    if isinstance(source, PathSource):
        source.fingerprint = _fingerprint(source, source.size)
    return transcript


def _is_appended(old: "Source", new: "Source") -> bool:
    """Return whether the new file is the old one with bytes appended."""
    if not isinstance(old, PathSource) or not isinstance(new, PathSource) or not old.fingerprint:
        return False
    same = old.identity == new.identity and old.size <= new.size
    return same and _fingerprint(new, old.size) == old.fingerprint


def _fingerprint(source: PathSource, size: int) -> bytes:
    """Return the start and end of the first `size` bytes, to detect changes in them."""
    edge = min(_EDGE_SIZE, size)
    return b"%d:" % size + source.read(0, edge) + source.read(size - edge, edge)


MAX_META_SIZE: Final = 1 << 20


def agent_files(
    session: DiscoveredFile,
    previous: Sequence[SubagentFile] = (),
    *,
    load_transcript: Callable[[DiscoveredFile], Transcript] | None = None,
) -> tuple[SubagentFile, ...]:
    """Return a session's sub-agents, loaded lazily unless `load_transcript` is given.

    Unchanged transcripts are reused from `previous`, the sub-agents of an earlier read of the session.
    """
    transcripts = {file.path: file.transcript for file in previous}
    load_transcript = load_transcript or (lambda found: _lazy_transcript(found, transcripts))
    return tuple(
        SubagentFile(agent.place.agent_id, load_transcript(agent), _read_meta(agent), agent.path)
        for agent in discover_agents(session)
    )


def _lazy_transcript(file: DiscoveredFile, transcripts: Mapping[str, Transcript]) -> "_LazyTranscript":
    previous = transcripts.get(file.path)
    if not isinstance(previous, _LazyTranscript):
        return _LazyTranscript(file)
    unchanged = (previous.file.size, previous.file.mtime_ns) == (file.size, file.mtime_ns)
    return previous if unchanged else _LazyTranscript(file, previous)


def _read_meta(file: DiscoveredFile) -> AgentMeta | None:
    path = meta_path(file.path)
    if isinstance(file, ArchivedFile):
        from steno.store.archive.catalogue import archived_sidecar

        raw = archived_sidecar(file, path, MAX_META_SIZE)
    else:
        raw = peek(path, MAX_META_SIZE, [])
    return read_agent_meta(raw)[0] if raw is not None else None


class _LazyTranscript(Transcript):
    """A transcript that is loaded on first access of an attribute."""

    def __init__(self, file: DiscoveredFile, previous: Transcript | None = None) -> None:
        # `__getattr__` sets the attributes of the base class.
        self.file = file
        self.previous = previous if previous is not None and "source" in vars(previous) else None

    def __getattr__(self, name: str) -> Any:
        if name not in {"source", "nodes", "gaps", "_by_uuid", "_recent"}:
            raise AttributeError(name)
        try:
            loaded = reload_transcript(self.previous, lazy_source(self.file))
        except Unreadable:
            # A sub-agent that cannot be read must not make the session unreadable.
            loaded = load(BytesSource(b""))
        self.previous = None
        self.__dict__.update(vars(loaded))
        return self.__dict__[name]
