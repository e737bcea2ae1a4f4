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
"""So many bytes before the new ones are compared, to notice a file that was written anew."""


class IncrementalReader:
    """What was added to a file since the last look."""

    def __init__(self, path: str, start: int = 0) -> None:
        self.path = path
        self.offset = start
        """Up to where it was read."""
        self.bytes_read = 0
        """How many bytes were read in all, for those who count the work."""
        self.exists = True
        self._identity: tuple[int, int] | None = None
        self._last_bytes = b""

    def detect_replacement(self) -> bool:
        """Say whether the file was replaced or cut short; then it is read from its beginning."""
        try:
            with FileSource(self.path) as source:
                # What comes back is another file, even in the place of the old one.
                replaced = not self.exists or not self._is_continuation(source)
        except Unreadable:
            self.exists = False
            return False
        self.exists = True
        if replaced:
            self.offset, self._last_bytes, self._identity = 0, b"", None
        return replaced

    def read_new(self, until: int | None = None) -> Iterator[bytes]:
        """Yield what is new, up to a place if one is named."""
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
            # Cut short while it was read, or gone: the next look tells which.
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
    """Return what is in a file by now; it is read as a whole unless it was only added to.

    Raises Unreadable if it cannot be read.
    """
    can_extend = previous is not None and _is_appended(previous.source, source)
    transcript = load_growth(previous, source) if previous is not None and can_extend else load(source)
    if isinstance(source, PathSource):
        source.fingerprint = _fingerprint(source, source.size)
    return transcript


def _is_appended(old: "Source", new: "Source") -> bool:
    """Whether a file is the one that was read before, its beginning and former end unchanged."""
    if not isinstance(old, PathSource) or not isinstance(new, PathSource) or not old.fingerprint:
        return False
    same = old.identity == new.identity and old.size <= new.size
    return same and _fingerprint(new, old.size) == old.fingerprint


def _fingerprint(source: PathSource, size: int) -> bytes:
    """Return what tells whether a file is the same up to a place."""
    edge = min(_EDGE_SIZE, size)
    return b"%d:" % size + source.read(0, edge) + source.read(size - edge, edge)


MAX_META_SIZE: Final = 1 << 20


def agent_files(
    session: DiscoveredFile,
    previous: Sequence[SubagentFile] = (),
    *,
    load_transcript: Callable[[DiscoveredFile], Transcript] | None = None,
) -> tuple[SubagentFile, ...]:
    """Return a session's sub-agents; none of their files is read yet, unless `load_transcript` does.

    Of `previous`, which were the same session's, nothing that was read is read again.
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
    """A transcript that is read at the first question."""

    def __init__(self, file: DiscoveredFile, previous: Transcript | None = None) -> None:
        # What the base class would set is set by the first question; see below.
        self.file = file
        self.previous = previous if previous is not None and "source" in vars(previous) else None

    def __getattr__(self, name: str) -> Any:
        if name not in {"source", "nodes", "gaps", "_by_uuid", "_recent"}:
            raise AttributeError(name)
        try:
            loaded = reload_transcript(self.previous, lazy_source(self.file))
        except Unreadable:
            # The session's own story must not fail for want of a sub-agent's.
            loaded = load(BytesSource(b""))
        self.previous = None
        self.__dict__.update(vars(loaded))
        return self.__dict__[name]
