"""Follows several sessions and their sub-agents together: the events since the last read."""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.format.paths import JSONL_SUFFIX, PathInfo, classify_transcript, meta_path
from steno.format.sidecars import AgentMeta, read_agent_meta
from steno.session.live_turns import Event, Follower, RecentTurns, SubagentTask
from steno.store.discovered import HEAD_SIZE, DiscoveredFile, is_transcript, path_context, peek, session_id_in
from steno.store.discovery import discover_agents
from steno.store.watch.incremental import IncrementalReader

_LARGE_SIZE: Final = 64 << 20
"""Of a longer file only the end is read."""
_READ_END_SIZE: Final = 16 << 20


class FollowedFile:
    """One file that is followed: a session, or a sub-agent of one."""

    def __init__(self, path: str, session_id: str, agent_id: str = "", start: int = 0) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.meta: AgentMeta | None = _read_agent_meta(path) if agent_id else None
        self.reader = IncrementalReader(path, start)
        self.follower = Follower(start, agent=bool(agent_id))
        self.owner: FollowedFile | None = None

    def restart(self) -> None:
        """Forget what was said; the file is another one now."""
        self.follower = Follower(agent=bool(self.agent_id))

    def agent_brief(self, inner_agent: str = "") -> SubagentTask:
        """Return what a sub-agent is: this file's own, or one that lies inside this file."""
        if inner_agent:
            return self.follower.task_of(inner_agent)
        if self.meta is None and self.agent_id:
            # Written a moment after the transcript, by some clients never.
            self.meta = _read_agent_meta(self.path)
        meta = self.meta or AgentMeta()
        briefs = self.owner.follower.tasks if self.owner is not None else {}
        known_brief = briefs.get(meta.tool_use_id) or briefs.get(self.follower.first_prompt) or SubagentTask()
        return SubagentTask(meta.agent_type or known_brief.kind, meta.description or known_brief.description)


class SourcedEvent(msgspec.Struct, frozen=True):
    """An event, and whose it is."""

    source: FollowedFile
    event: Event


class MultiTail:
    """Those who are listened to: the session at one path and its sub-agents, else everyone."""

    def __init__(self, session_path: str | None = None) -> None:
        self._session_path = session_path
        self._sources: dict[str, FollowedFile] = {}
        self._ignored_sizes: dict[str, int] = {}

    def __iter__(self) -> Iterator[FollowedFile]:
        return iter(list(self._sources.values()))

    def ignore(self, file: DiscoveredFile) -> None:
        """Know a file without reading it; only what is added to it later will be told."""
        self._ignored_sizes[file.path] = file.size

    def has_changes(self, file: DiscoveredFile) -> bool:
        """Say whether a file is not known, or not read to its end."""
        source = self._sources.get(file.path)
        if source is not None:
            return source.reader.offset != file.size
        return self._ignored_sizes.get(file.path) != file.size

    def start_with_recent(self, file: DiscoveredFile, recall: RecentTurns) -> list[SourcedEvent]:
        """Begin with a file that is there, and return those of its last words that are wanted."""
        source = self._follow(file.path, file.place, _start_offset(file.size))
        if source is None:
            return []
        self._ignored_sizes.pop(file.path, None)
        for chunk in source.reader.read_new():
            recall.feed(source.follower.feed(chunk))
        return [SourcedEvent(source, event) for event in recall.events]

    def read_changes(self, paths: Iterable[str]) -> Iterator[list[SourcedEvent]]:
        """Yield what was added to each of some files; the records behind it can be had until then."""
        for path in sorted(paths, key=_owner_first_key):
            yield from self._read_file_changes(path)

    def _read_file_changes(self, path: str) -> Iterator[list[SourcedEvent]]:
        source = self._sources.get(path) or self._follow_new(path)
        if source is None:
            return
        existed = source.reader.exists
        if source.reader.detect_replacement():
            source.restart()
            yield [SourcedEvent(source, Event(kind="anew"))]
        elif not source.reader.exists:
            if existed:
                yield [SourcedEvent(source, Event(kind="gone"))]
            return
        for chunk in source.reader.read_new():
            events = [SourcedEvent(source, event) for event in source.follower.feed(chunk)]
            if events:
                yield events

    def _follow_new(self, path: str) -> FollowedFile | None:
        """Let somebody in who is not known, if they belong."""
        size = _file_size(path)
        if size is None:
            return None
        ignored_size = self._ignored_sizes.pop(path, 0)
        ignored_size = ignored_size if ignored_size <= size else 0
        start = _start_offset(ignored_size)
        source = self._follow(path, classify_transcript(path_context(path)), start)
        if source is not None:
            for chunk in source.reader.read_new(ignored_size):
                source.follower.feed(chunk)
        return source

    def _follow(self, path: str, location: PathInfo, start: int = 0) -> FollowedFile | None:
        session_id = location.session_id
        if location.role == "agent":
            session_id = session_id or session_id_in(peek(path, HEAD_SIZE, []) or b"")
            owner = self._owner_of(path, session_id)
            if owner is None and self._session_path not in (None, path):
                return None
            source = FollowedFile(path, session_id, location.agent_id, start)
            source.owner = owner
        else:
            if self._session_path not in (None, path):
                return None
            if (
                self._session_path is None
                and location.role != "session"
                and not is_transcript(peek(path, HEAD_SIZE, []) or b"")
            ):
                return None
            stem = os.path.basename(path).removesuffix(JSONL_SUFFIX)
            source = FollowedFile(path, session_id or stem, "", start)
        self._sources[path] = source
        return source

    def _owner_of(self, path: str, session_id: str) -> FollowedFile | None:
        """Return the session a sub-agent works for, if it is listened to."""
        for source in self._sources.values():
            is_inside = path.startswith(source.path.removesuffix(JSONL_SUFFIX) + os.sep)
            if not source.agent_id and (is_inside or source.session_id == session_id):
                return source
        if self._session_path is None and self._ignored_sizes:
            return self._ignored_owner(path)
        return None

    def _ignored_owner(self, path: str) -> FollowedFile | None:
        """Return a session that was silent so far, now that its sub-agent speaks."""
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder):
            if folder + JSONL_SUFFIX in self._ignored_sizes:
                return self._follow_new(folder + JSONL_SUFFIX)
            folder = os.path.dirname(folder)
        return None

    def agents(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the sub-agents of a session that are there."""
        return discover_agents(session)


def _read_agent_meta(path: str) -> AgentMeta | None:
    raw = peek(meta_path(path), HEAD_SIZE, [])
    return read_agent_meta(raw)[0] if raw is not None else None


def _start_offset(size: int) -> int:
    return size - _READ_END_SIZE if size > _LARGE_SIZE else 0


def _file_size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _owner_first_key(path: str) -> tuple[int, str]:
    return path.count(os.sep), path
