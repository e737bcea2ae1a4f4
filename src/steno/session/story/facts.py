"""What the records of a session say about where, when and with what it ran."""

from datetime import datetime
from typing import Any, Final

import msgspec

from steno.format.envelope import Envelope
from steno.format.loose import REFUSED, fill
from steno.format.records import read_time
from steno.session.nodes import Node
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


class _Place(msgspec.Struct, rename="camel"):
    cwd: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    slug: str | None = None
    session_id: str | None = None
    lineage: str | None = msgspec.field(name="session_id", default=None)
    forked_from: _Fork | None = None
    relocated_cwd: str | None = None


_PLACE: Final = msgspec.json.Decoder(_Place)
_QUIET: Final = frozenset(
    ("api-request", "api-request-blob", "api-request-shape", "file-history-snapshot", "progress")
)
"""Types whose lines are long and say nothing new about the place."""


class _Gatherer:
    def __init__(self) -> None:
        self.seen: dict[str, dict[str, None]] = {}
        self.last: dict[str, str] = {}

    def note(self, name: str, value: str | None) -> None:
        if value:
            self.seen.setdefault(name, {})[value] = None
            self.last[name] = value

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self.seen.get(name, ()))


def facts_of(transcript: Transcript) -> Facts:
    """Read through a session once and note what it says about itself."""
    found = _Gatherer()
    first: datetime | None = None
    last: datetime | None = None
    left = False
    for node in transcript.nodes:
        found.note("version", node.version)
        if node.model != "<synthetic>":
            found.note("model", node.model)
        moment = read_time(node.timestamp)
        if moment is not None:
            first = moment if first is None or moment < first else first
            last = moment if last is None or moment > last else last
        left = (left and not node.converses) or node.type == "cost-state"
        if node.type not in _QUIET:
            _note(found, _place(transcript, node))
    return Facts(
        cwds=found.all("cwd"),
        git_branches=found.all("branch"),
        last_branch=found.last.get("branch", ""),
        versions=found.all("version"),
        models=found.all("model"),
        entrypoints=found.all("entrypoint"),
        slugs=found.all("slug"),
        session_ids=found.all("session"),
        lineage=found.all("lineage"),
        forked_from=found.all("fork"),
        started=first,
        ended=last,
        left=left,
    )


def _note(found: _Gatherer, place: _Place | Envelope) -> None:
    cwd = place.cwd
    if isinstance(place, _Place):
        cwd = cwd or place.relocated_cwd
        found.note("lineage", place.lineage)
        if place.forked_from is not None:
            found.note("fork", place.forked_from.session_id)
    found.note("cwd", cwd)
    found.note("branch", place.git_branch)
    found.note("entrypoint", place.entrypoint)
    found.note("slug", place.slug)
    found.note("session", place.session_id)


def _place(transcript: Transcript, node: Node) -> _Place | Envelope:
    held = transcript.held(node)
    if held is not None:
        envelope = held.envelope
        if not (envelope.lineage or envelope.forked_from or envelope.relocated_cwd):
            return envelope
    try:
        return _PLACE.decode(transcript.source.read(node.offset, node.length))
    except REFUSED:
        fields: dict[str, Any] = transcript.record(node).fields
        return fill(_Place, fields)
