"""The transcripts of a session's sub-agents, opened when somebody asks what is in them."""

from typing import Any, Final

from steno.errors import Unreadable
from steno.format.paths import meta_path
from steno.format.sidecars import AgentMeta, agent_meta
from steno.format.source import BytesSource
from steno.session.story.threads import AgentFile
from steno.session.transcript import Transcript, load
from steno.store.discover import agents_of
from steno.store.found import Found, peek
from steno.store.read import PathSource

__all__ = ["agent_files"]

_MOST: Final = 1 << 20


def agent_files(session: Found) -> tuple[AgentFile, ...]:
    """Return a session's sub-agents; none of their files is read yet."""
    return tuple(
        AgentFile(found.place.agent_id, _Later(found.path), _meta(found.path), found.path)
        for found in agents_of(session)
    )


def _meta(path: str) -> AgentMeta | None:
    raw = peek(meta_path(path), _MOST, [])
    return agent_meta(raw)[0] if raw is not None else None


class _Later(Transcript):
    """A transcript that is read at the first question."""

    def __init__(self, path: str) -> None:
        # What the base class would set is set by the first question; see below.
        self.path = path

    def __getattr__(self, name: str) -> Any:
        if name not in {"source", "nodes", "gaps", "_by_uuid", "_recent"}:
            raise AttributeError(name)
        try:
            loaded = load(PathSource(self.path))
        except Unreadable:
            # The session's own story must not fail for want of a sub-agent's.
            loaded = load(BytesSource(b""))
        self.__dict__.update(vars(loaded))
        return self.__dict__[name]
