"""What the records of a session say about where, when and with what it ran."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from steno.format.loose import REFUSED, fill
from steno.format.records import Record, read_time
from steno.session.nodes import Node
from steno.session.story.usage import SYNTHETIC
from steno.session.transcript import Transcript

__all__ = ["Facts", "facts_of"]


class Facts(msgspec.Struct, kw_only=True):
    """Everything in order of appearance, each once."""

    cwds: tuple[str, ...] = ()
    git_branches: tuple[str, ...] = ()
    last_branch: str = ""
    versions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    entrypoints: tuple[str, ...] = ()
    slugs: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    """Other sessions that `session_id` (beside `sessionId`) names."""
    forked_from: tuple[str, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    left: bool = False
    """Whether the client closed the session itself, and nothing was said after that."""


class _Fork(msgspec.Struct, rename="camel"):
    session_id: str | None = None


class _Line(msgspec.Struct, rename="camel"):
    cwd: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    slug: str | None = None
    session_id: str | None = None
    lineage: str | None = msgspec.field(name="session_id", default=None)
    forked_from: _Fork | None = None
    relocated_cwd: str | None = None


class _Place(msgspec.Struct, frozen=True, gc=False):
    """Where a record was written, as far as it says it."""

    cwd: str | None
    branch: str | None
    entrypoint: str | None
    slug: str | None
    session: str | None
    lineage: str | None = None
    fork: str | None = None


_LINE: Final = msgspec.json.Decoder(_Line)
_QUIET: Final = frozenset(
    ("api-request", "api-request-blob", "api-request-shape", "file-history-snapshot", "progress")
)
"""Types whose lines are long and say nothing new about the place."""


def facts_of(transcript: Transcript) -> Facts:
    """Read through a session once and note what it says about itself."""
    nodes = transcript.nodes
    first: datetime | None = None
    last: datetime | None = None
    place: _Place | None = None
    places: dict[_Place, None] = {}
    branch = ""
    for node in nodes:
        held = transcript.held(node)
        moment = read_time(node.timestamp) if held is None else held.time
        if moment is not None:
            first = moment if first is None or moment < first else first
            last = moment if last is None or moment > last else last
        if node.type in _QUIET:
            continue
        before, place = place, _place(transcript, node, held)
        # Nearly all are written where the one before was.
        if place != before:
            places[place] = None
            branch = place.branch or branch
    return Facts(
        cwds=_each(place.cwd for place in places),
        git_branches=_each(place.branch for place in places),
        last_branch=branch,
        versions=_each(node.version for node in nodes),
        models=_each(node.model for node in nodes if node.model != SYNTHETIC),
        entrypoints=_each(place.entrypoint for place in places),
        slugs=_each(place.slug for place in places),
        session_ids=_each(place.session for place in places),
        lineage=_each(place.lineage for place in places),
        forked_from=_each(place.fork for place in places),
        started=first,
        ended=last,
        left=_left(nodes),
    )


def _each(values: Iterable[str | None]) -> tuple[str, ...]:
    """Return what there is, each once, in order of appearance."""
    return tuple(value for value in dict.fromkeys(values) if value)


def _left(nodes: list[Node]) -> bool:
    for node in reversed(nodes):
        if node.type == "cost-state":
            return True
        if node.converses:
            return False
    return False


def _place(transcript: Transcript, node: Node, held: Record | None) -> _Place:
    if held is not None:
        said = held.envelope
        if not (said.lineage or said.forked_from or said.relocated_cwd):
            return _Place(said.cwd, said.git_branch, said.entrypoint, said.slug, said.session_id)
    try:
        line = _LINE.decode(transcript.source.read(node.offset, node.length))
    except REFUSED:
        line = fill(_Line, transcript.record(node).fields)
    return _Place(
        line.cwd or line.relocated_cwd,
        line.git_branch,
        line.entrypoint,
        line.slug,
        line.session_id,
        line.lineage,
        line.forked_from.session_id if line.forked_from else None,
    )
