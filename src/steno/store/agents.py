"""The transcripts of a session's sub-agents, opened when somebody asks what is in them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from steno.errors import Unreadable
from steno.format.paths import meta_path
from steno.format.sidecars import AgentMeta, agent_meta
from steno.format.source import BytesSource
from steno.session.story.threads import AgentFile
from steno.session.transcript import Transcript, load
from steno.store.archive.opened import Archived, source_of
from steno.store.discover import agents_of
from steno.store.found import Found, peek
from steno.store.grown import read_on

__all__ = ["agent_files"]

_MOST: Final = 1 << 20


def agent_files(
    session: Found,
    before: Sequence[AgentFile] = (),
    *,
    opening: Callable[[Found], Transcript] | None = None,
) -> tuple[AgentFile, ...]:
    """Return a session's sub-agents; none of their files is read yet, unless `opening` does.

    Of `before`, which were the same session's, nothing that was read is read again.
    """
    known = {file.path: file.transcript for file in before}
    opening = opening or (lambda found: _later(found, known))
    return tuple(
        AgentFile(found.place.agent_id, opening(found), _meta(found), found.path)
        for found in agents_of(session)
    )


def _later(found: Found, known: Mapping[str, Transcript]) -> "_Later":
    before = known.get(found.path)
    if not isinstance(before, _Later):
        return _Later(found)
    same = (before.found.size, before.found.mtime_ns) == (found.size, found.mtime_ns)
    return before if same else _Later(found, before)


def _meta(found: Found) -> AgentMeta | None:
    path = meta_path(found.path)
    if isinstance(found, Archived):
        from steno.store.archive.gone import beside

        raw = beside(found, path, _MOST)
    else:
        raw = peek(path, _MOST, [])
    return agent_meta(raw)[0] if raw is not None else None


class _Later(Transcript):
    """A transcript that is read at the first question."""

    def __init__(self, found: Found, before: Transcript | None = None) -> None:
        # What the base class would set is set by the first question; see below.
        self.found = found
        self.before = before if before is not None and "source" in vars(before) else None

    def __getattr__(self, name: str) -> Any:
        if name not in {"source", "nodes", "gaps", "_by_uuid", "_recent"}:
            raise AttributeError(name)
        try:
            loaded = read_on(self.before, source_of(self.found))
        except Unreadable:
            # The session's own story must not fail for want of a sub-agent's.
            loaded = load(BytesSource(b""))
        self.before = None
        self.__dict__.update(vars(loaded))
        return self.__dict__[name]
