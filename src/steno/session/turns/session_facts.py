"""Metadata and counts of a whole session.

Each count is defined only here. The index uses these functions, or counts incrementally with the same results.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, as_object, decode_lenient
from steno.format.message import EMPTY_RAW, SYNTHETIC, Envelope, RecordFields, projection
from steno.format.records import Record, read_time
from steno.session.transcript import Node, Transcript

if TYPE_CHECKING:
    from steno.session.session import Session
    from steno.session.turns.branches import Branch
    from steno.session.turns.steps import Step
    from steno.session.turns.subagents import Thread


class SessionMetadata(msgspec.Struct, kw_only=True):
    """Metadata of a session; values in order of appearance, without duplicates."""

    cwds: tuple[str, ...] = ()
    git_branches: tuple[str, ...] = ()
    last_branch: str = ""
    versions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    entrypoints: tuple[str, ...] = ()
    slugs: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    """Other sessions named by `session_id` (in addition to `sessionId`)."""
    forked_from: tuple[str, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    left: bool = False
    """Whether Claude Code closed the session, without a later message."""


@projection("cwd session_id git_branch slug entrypoint lineage relocated_cwd")
class _MetadataLine(RecordFields):
    forked_from: msgspec.Raw = EMPTY_RAW


class _RecordOrigin(msgspec.Struct, frozen=True, gc=False):
    cwd: str | None
    branch: str | None
    entrypoint: str | None
    slug: str | None
    session: str | None
    lineage: str | None = None
    fork: str | None = None


_LINE_DECODER: Final = msgspec.json.Decoder(_MetadataLine)
_SKIPPED_TYPES: Final = frozenset(
    ("api-request", "api-request-blob", "api-request-shape", "file-history-snapshot", "progress")
)
"""Types with long lines that never change the metadata."""


def read_metadata(transcript: Transcript) -> SessionMetadata:
    """Return the metadata of a session, read in one pass."""
    nodes = transcript.nodes
    first: datetime | None = None
    last: datetime | None = None
    origin: _RecordOrigin | None = None
    origins: dict[_RecordOrigin, None] = {}
    branch = ""
    for node in nodes:
        cached = transcript.cached(node)
        moment = read_time(node.timestamp) if cached is None else cached.time
        if moment is not None:
            first = moment if first is None or moment < first else first
            last = moment if last is None or moment > last else last
        if node.type in _SKIPPED_TYPES:
            continue
        before, origin = origin, _record_origin(transcript, node, cached)
        # Consecutive records usually have the same origin.
        if origin != before:
            origins[origin] = None
            branch = origin.branch or branch
    return SessionMetadata(
        cwds=_unique(place.cwd for place in origins),
        git_branches=_unique(place.branch for place in origins),
        last_branch=branch,
        versions=_unique(node.version for node in nodes),
        models=_unique(node.model for node in nodes if node.model != SYNTHETIC),
        entrypoints=_unique(place.entrypoint for place in origins),
        slugs=_unique(place.slug for place in origins),
        session_ids=_unique(place.session for place in origins),
        lineage=_unique(place.lineage for place in origins),
        forked_from=_unique(place.fork for place in origins),
        started=first,
        ended=last,
        left=_was_closed(nodes),
    )


def _unique(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(value for value in dict.fromkeys(values) if value)


def _was_closed(nodes: list[Node]) -> bool:
    for node in reversed(nodes):
        if node.type == "cost-state":
            return True
        if node.converses:
            return False
    return False


def _record_origin(transcript: Transcript, node: Node, cached: Record | None) -> _RecordOrigin:
    line: Envelope
    try:
        line = (
            cached.envelope
            if cached is not None
            else _LINE_DECODER.decode(transcript.source.read(node.offset, node.length))
        )
    except DECODE_ERRORS:
        line = transcript.record(node).envelope
    return _RecordOrigin(
        line.cwd or (_text(decode_lenient(line.relocated_cwd)) if line.relocated_cwd else None),
        line.git_branch,
        line.entrypoint,
        line.slug,
        line.session_id,
        _text(decode_lenient(line.lineage)) if line.lineage else None,
        _text((as_object(decode_lenient(line.forked_from)) or {}).get("sessionId")) if line.forked_from else None,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


ABANDONED_REASONS: Final = frozenset(("rewind", "edited"))
"""Reasons for abandoned branches; other branches are broken off."""


class SessionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a session."""

    turns: int = 0
    """Turns of the conversation; abandoned ones are not counted."""
    steps: int = 0
    """Steps of these turns, without those of sub-agents."""
    failed: int = 0
    """Number of failed steps."""
    worked: int = 0
    """Total duration of the turns in milliseconds, without the time between them."""
    agents: int = 0
    """Number of sub-agents, including nested ones, without warm-ups."""
    compactions: int = 0
    branches: int = 0
    """Number of abandoned branches."""
    model: str = ""
    """Model of the last answer."""


def count_session(session: "Session") -> SessionCounts:
    """Return the counts of a session."""
    # Imported here because an index counts on its own and needs no turns.
    from steno.session.turns.turn_builder import work_milliseconds

    turns = session.turns()
    return SessionCounts(
        turns=len(turns),
        steps=sum(count_steps(turn.steps) for turn in turns),
        failed=sum(turn.errors for turn in turns),
        worked=work_milliseconds(turns),
        agents=len(working_agents(session.all_agents)),
        compactions=sum(compaction.kind == "full" for compaction in session.compactions),
        branches=len(find_abandoned_branches(session.branches)),
        model=last_model(session.transcript.nodes),
    )


def count_steps(steps: Iterable["Step"]) -> int:
    """Return the number of steps that did work; thinking, text, notes and reports are not counted."""
    return sum(step.is_work for step in steps)


def working_agents(threads: Iterable["Thread"]) -> list["Thread"]:
    """Return the sub-agents that are not warm-ups."""
    return [thread for thread in threads if not thread.warmup]


def find_abandoned_branches(branches: Iterable["Branch"]) -> list["Branch"]:
    """Return the branches that the user abandoned."""
    return [branch for branch in branches if branch.why in ABANDONED_REASONS]


def last_model(nodes: Sequence[Node]) -> str:
    """Return the model of the last answer, from the main conversation if it has one."""
    answering = [node for node in nodes if node.model and node.model != SYNTHETIC]
    main_models = (node.model for node in reversed(answering) if not node.sidechain)
    return next(main_models, answering[-1].model if answering else "")
