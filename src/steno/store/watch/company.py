"""Several sessions and their sub-agents, followed together: who said what since the last look."""

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.format.paths import Place, meta_path, transcript_place
from steno.format.sidecars import AgentMeta, agent_meta
from steno.session.events import Brief, Event
from steno.session.follow import Follower
from steno.session.recall import Recall
from steno.store.discover import Found, agents_of
from steno.store.found import HEAD, is_transcript, peek, session_id_in
from steno.store.walk import folder_names
from steno.store.watch.growing import Growing

__all__ = ["Company", "Speaker", "Told"]

_SUFFIX: Final = ".jsonl"
_LONG: Final = 64 << 20
"""Of a longer file only the end is read."""
_END: Final = 16 << 20


class Speaker:
    """One file that is followed: a session, or a sub-agent of one."""

    def __init__(self, path: str, session_id: str, agent_id: str = "", start: int = 0) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.meta: AgentMeta | None = _meta(path) if agent_id else None
        self.growing = Growing(path, start)
        self.follower = Follower(start, agent=bool(agent_id))
        self.owner: Speaker | None = None

    def begin_again(self) -> None:
        """Forget what was said; the file is another one now."""
        self.follower = Follower(agent=bool(self.agent_id))

    def brief(self, inside: str = "") -> Brief:
        """Return what a sub-agent is: this file's own, or one that lies inside this file."""
        if inside:
            return self.follower.brief_of(inside)
        if self.meta is None and self.agent_id:
            # Written a moment after the transcript, by some clients never.
            self.meta = _meta(self.path)
        meta = self.meta or AgentMeta()
        known = self.owner.follower.briefs if self.owner is not None else {}
        told = known.get(meta.tool_use_id) or known.get(self.follower.asked) or Brief()
        return Brief(meta.agent_type or told.kind, meta.description or told.description)


class Told(msgspec.Struct, frozen=True):
    """An event, and whose it is."""

    speaker: Speaker
    event: Event


class Company:
    """Those who are listened to: the session at one path and its sub-agents, else everyone."""

    def __init__(self, only: str | None = None) -> None:
        self._only = only
        self._speakers: dict[str, Speaker] = {}
        self._silent: dict[str, int] = {}

    def __iter__(self) -> Iterator[Speaker]:
        return iter(list(self._speakers.values()))

    def ignore(self, found: Found) -> None:
        """Know a file without reading it; only what is added to it later will be told."""
        self._silent[found.path] = found.size

    def is_news(self, found: Found) -> bool:
        """Say whether a file is not known, or not read to its end."""
        speaker = self._speakers.get(found.path)
        if speaker is not None:
            return speaker.growing.offset != found.size
        return self._silent.get(found.path) != found.size

    def recall(self, found: Found, recall: Recall) -> list[Told]:
        """Begin with a file that is there, and return those of its last words that are wanted."""
        speaker = self._welcome(found.path, found.place, _start_of(found.size))
        if speaker is None:
            return []
        self._silent.pop(found.path, None)
        for chunk in speaker.growing.more():
            recall.take(speaker.follower.feed(chunk))
        return [Told(speaker, event) for event in recall.events]

    def hear(self, paths: Iterable[str]) -> Iterator[list[Told]]:
        """Yield what was added to each of some files; the records behind it can be had until then."""
        for path in sorted(paths, key=_owner_first):
            yield from self._hear(path)

    def _hear(self, path: str) -> Iterator[list[Told]]:
        speaker = self._speakers.get(path) or self._newcomer(path)
        if speaker is None:
            return
        was_there = speaker.growing.there
        if speaker.growing.began_anew():
            speaker.begin_again()
            yield [Told(speaker, Event(kind="anew"))]
        elif not speaker.growing.there:
            if was_there:
                yield [Told(speaker, Event(kind="gone"))]
            return
        for chunk in speaker.growing.more():
            told = [Told(speaker, event) for event in speaker.follower.feed(chunk)]
            if told:
                yield told

    def _newcomer(self, path: str) -> Speaker | None:
        """Let somebody in who is not known, if they belong."""
        size = _size(path)
        if size is None:
            return None
        silent = self._silent.pop(path, 0)
        silent = silent if silent <= size else 0
        start = _start_of(silent)
        speaker = self._welcome(path, transcript_place(folder_names(path)), start)
        if speaker is not None:
            for chunk in speaker.growing.more(silent):
                speaker.follower.feed(chunk)
        return speaker

    def _welcome(self, path: str, place: Place, start: int = 0) -> Speaker | None:
        named = place.session_id
        if place.role == "agent":
            named = named or session_id_in(peek(path, HEAD, []) or b"")
            owner = self._session(path, named)
            if owner is None and self._only not in (None, path):
                return None
            speaker = Speaker(path, named, place.agent_id, start)
            speaker.owner = owner
        else:
            if self._only not in (None, path):
                return None
            if (
                self._only is None
                and place.role != "session"
                and not is_transcript(peek(path, HEAD, []) or b"")
            ):
                return None
            stem = os.path.basename(path).removesuffix(_SUFFIX)
            speaker = Speaker(path, named or stem, "", start)
        self._speakers[path] = speaker
        return speaker

    def _session(self, path: str, session_id: str) -> Speaker | None:
        """Return the session a sub-agent works for, if it is listened to."""
        for speaker in self._speakers.values():
            inside = path.startswith(speaker.path.removesuffix(_SUFFIX) + os.sep)
            if not speaker.agent_id and (inside or speaker.session_id == session_id):
                return speaker
        if self._only is None and self._silent:
            return self._silent_owner(path)
        return None

    def _silent_owner(self, path: str) -> Speaker | None:
        """Return a session that was silent so far, now that its sub-agent speaks."""
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder):
            if folder + _SUFFIX in self._silent:
                return self._newcomer(folder + _SUFFIX)
            folder = os.path.dirname(folder)
        return None

    def agents(self, session: Found) -> list[Found]:
        """Return the sub-agents of a session that are there."""
        return agents_of(session)


def _meta(path: str) -> AgentMeta | None:
    raw = peek(meta_path(path), HEAD, [])
    return agent_meta(raw)[0] if raw is not None else None


def _start_of(size: int) -> int:
    return size - _END if size > _LONG else 0


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _owner_first(path: str) -> tuple[int, str]:
    return path.count(os.sep), path
