"""`/api/v1/sessions` and `/api/v1/sessions/{key}`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, get_args

import msgspec

from steno.errors import NotFound, StenoError
from steno.index.opened import Index
from steno.report.clock import iso as iso_seconds
from steno.report.listing import (
    Choice,
    Has,
    Listed,
    costs_of,
    files_at,
    list_sessions,
    listed_at,
    titled,
)
from steno.report.names import text_of
from steno.report.usage.as_json import figures_json
from steno.report.usage.totals import Figures as Spent
from steno.session.liveness import activity_age, is_live, status_at
from steno.session.story.figures import agents_among, steps_in
from steno.session.story.steps import Step
from steno.session.story.threads import Thread
from steno.web.api.cursors import integers, make_cursor, read_cursor
from steno.web.api.filters import end_of, iso, projects_matching, start_of
from steno.web.api.models.sessions import (
    Agent,
    Branch,
    ChangedFile,
    Compaction,
    FindingCount,
    Findings,
    Session,
    SessionDetail,
    SessionList,
)
from steno.web.api.models.usage import Usage
from steno.web.api.opening import open_key
from steno.web.api.parameters import Parameters, SessionParameters
from steno.web.house import House, Place
from steno.web.story.findings import report_at
from steno.web.story.head import standing_of
from steno.web.story.opening import Opened
from steno.web.story.tale import Tale, name_of
from steno.web.tags import tag_of

_SECOND: Final = 1000
_STEP: Final = 15_000
_DAMAGED: Final = "damaged"
_VERSIONS: Final = (
    "SELECT file, version FROM sessions WHERE file IN (SELECT value FROM json_each(?))"
)


def list_page(house: House, _path: dict[str, str], parameters: SessionParameters) -> SessionList:
    """Return a page of the sessions that match."""
    now = house.now()
    place = read_cursor("sessions", parameters, 2)
    after = None if place is None else (integers(place)[0], integers(place)[1])
    with house.index() as index:
        choice = _choice(house, index, parameters, now)
        listing = list_sessions(index.connection, choice, limit=parameters.limit, after=after)
        sessions = _sessions(house, index, listing.rows, now)
    cursor = None
    if listing.more:
        last = listing.rows[-1]
        cursor = make_cursor("sessions", parameters, last.rank, last.file)
    return SessionList(sessions=sessions, total=listing.total, next_cursor=cursor)


def _choice(house: House, index: Index, parameters: SessionParameters, now: float) -> Choice:
    given = parameters
    wanted = given.has.split(",") if isinstance(given.has, str) else []
    has: tuple[Has, ...] = tuple(each for each in get_args(Has) if each in wanted)
    damaged = _DAMAGED in wanted
    choice = Choice(
        projects=projects_matching(index, given.project),
        branch=_or_none(given.branch),
        model=_or_none(given.model),
        since=start_of("since", given.since, now),
        until=end_of("until", given.until, now),
        has=has,
        size=given.size or None,
        now=int(now * _SECOND) // _STEP * _STEP,
        files=files_at(index.connection, sorted(house.ward.broken)) if damaged else None,
        sort=given.sort,
        state=given.status or None,
        live=given.live if isinstance(given.live, bool) else None,
        min_turns=given.min_turns or 0,
        min_steps=given.min_steps or 0,
        listed=given.listed,
        dialect=given.dialect or None,
    )
    words = given.q.casefold().split() if isinstance(given.q, str) else []
    if not words:
        return choice
    files = titled(index.connection, choice, _has_all(words))
    return msgspec.structs.replace(choice, among=tuple(files))


def _or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _has_all(words: Sequence[str]) -> Callable[[str], bool]:
    return lambda title: all(word in title.casefold() for word in words)


def _sessions(house: House, index: Index, rows: Sequence[Listed], now: float) -> list[Session]:
    files = [each.file for each in rows]
    costs = costs_of(index.connection, files, house.prices)
    versions = _versions(index, files)
    return [
        Session(**_facts(each, costs.get(each.file), versions.get(each.file, ""), now))
        for each in rows
    ]


def _versions(index: Index, files: Sequence[int]) -> dict[int, str]:
    return dict(index.connection.execute(_VERSIONS, (msgspec.json.encode(files).decode(),)))


def _facts(listed: Listed, spent: Spent | None, version: str, now: float) -> dict[str, Any]:
    """Return the fields that a session has in the list and on its own."""
    age = _age(listed, now)
    figures = listed.figures
    return {
        "key": listed.key,
        "id": listed.id,
        "path": text_of(listed.path),
        "dialect": listed.dialect,
        "title": listed.title,
        "project": listed.project,
        "project_id": tag_of(listed.project) if listed.project else "",
        "branch": listed.branch,
        "model": listed.model,
        "version": version,
        "status": status_at(listed.ending, age),
        "live": is_live(listed.ending, age),
        "archived_only": listed.gone,
        "started": iso(listed.started),
        "ended": iso(listed.ended),
        "duration_seconds": figures.worked / _SECOND,
        "turns": figures.turns,
        "steps": figures.steps,
        "failed_steps": figures.failed,
        "agents": figures.agents,
        "compactions": figures.compactions,
        "abandoned_branches": figures.branches,
        "size_bytes": listed.size,
        "usage": _usage(spent),
    }


def _age(listed: Listed, now: float) -> float:
    """Return the seconds since a session was active; one whose file is gone is over."""
    if listed.gone:
        return float("inf")
    # The same time as in the filters, so that a list never holds what its filter leaves out.
    now = int(now * _SECOND) // _STEP * _STEP / _SECOND
    ended = None if listed.ended is None else listed.ended / _SECOND
    return activity_age(now, ended, None if listed.grown is None else listed.grown / _SECOND)


def _usage(spent: Spent | None) -> Usage:
    figures = spent if spent is not None else Spent(unpriced={})
    return msgspec.convert(figures_json(figures, figures.cost or 0), Usage)


# One session


def detail(house: House, path: dict[str, str], _parameters: Parameters) -> SessionDetail:
    """Return one session."""
    now = house.now()
    with open_key(house, path["key"], whole=True) as found:
        place, tale = found.place, found.tale
        with house.index() as index:
            listed = listed_at(index.connection, place.file)
            if listed is None:
                raise NotFound(f"no session is called {path['key']!r}")
            spent = costs_of(index.connection, [place.file], house.prices).get(place.file)
            version = _versions(index, [place.file]).get(place.file, "")
        facts = _facts(msgspec.structs.replace(listed, figures=tale.figures), spent, version, now)
        return SessionDetail(
            **facts, **_more(found, _age(listed, now), facts["status"]), findings=_findings(place)
        )


def _more(found: Opened, age: float, status: str) -> dict[str, Any]:
    """Return what only the session itself says."""
    tale, session = found.tale, found.tale.session
    standing = standing_of(tale, age, gone=found.place.gone)
    known = status in {standing.standing, "empty"}
    return {
        "status_reason": standing.reason if known else "",
        "entrypoint": session.entrypoint,
        "models": list(session.models),
        "versions": list(session.versions),
        "branches": list(session.git_branches),
        "directories": list(session.cwds),
        "copied_responses": found.found.copied,
        "earlier": found.found.earlier or None,
        "later": found.found.later or None,
        "records": len(tale.transcript.nodes),
        "gaps": sum(bool(gap.damage) for gap in tale.transcript.gaps),
        "files": _files(tale),
        "sub_agents": [_agent(tale, each) for each in agents_among(session.all_agents)],
        "compacted": [_compaction(turn.number, seam) for turn in tale.turns for seam in turn.seams],
        "abandoned": [
            Branch(
                number=side.number,
                reason=side.branch.why,
                after_turn=side.after,
                records=len(side.branch.nodes),
                turns=side.branch.turns,
            )
            for side in tale.sides
        ],
    }


def compaction_of(turn: Any) -> Compaction | None:
    """Return the compaction before a turn."""
    seam = turn.compaction
    return None if seam is None else _compaction(turn.number, seam)


def _compaction(turn: int, seam: Any) -> Compaction:
    return Compaction(
        turn=turn,
        kind=seam.kind,
        trigger=seam.trigger,
        pre_tokens=seam.pre_tokens,
        post_tokens=seam.post_tokens,
        messages_before=seam.messages_before,
        messages_kept=seam.messages_kept,
        ratio=seam.ratio,
    )


def _agent(tale: Tale, thread: Thread) -> Agent:
    return Agent(
        id=name_of(thread),
        parent=None if thread.parent is None else name_of(thread.parent),
        kind=thread.kind,
        description=thread.description,
        status=thread.status,
        turns=len(thread.turns),
        steps=steps_in(thread.steps),
        tokens=thread.usage.total,
        cost_micro_usd=tale.cost_of_agent(thread).known,
    )


class _Touched(msgspec.Struct):
    """A file while its touches are added up."""

    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    turns: dict[int, None] = {}
    agents: dict[str, None] = {}
    last: float | None = None


def _files(tale: Tale) -> list[ChangedFile]:
    """Return the files of the conversation and of its sub-agents, as they were first touched."""
    files: dict[str, _Touched] = {}
    for turn in tale.turns:
        for touched in _touched(files, turn.steps):
            touched.turns[turn.number] = None
    for thread in tale.session.all_agents:
        for touched in _touched(files, thread.steps):
            touched.agents[name_of(thread)] = None
    return [
        ChangedFile(
            id=tag_of(path),
            path=path,
            reads=each.reads,
            edits=each.edits,
            added=each.added,
            removed=each.removed,
            turns=list(each.turns),
            agents=list(each.agents),
            last=iso_seconds(each.last),
        )
        for path, each in files.items()
    ]


def _touched(files: dict[str, _Touched], steps: Iterable[Step]) -> Iterable[_Touched]:
    """Add the touches of some steps, and yield the file of each."""
    for step in steps:
        touch = step.touch
        if touch is None:
            continue
        file = files.setdefault(touch.path, _Touched())
        file.reads += not touch.changes
        file.edits += touch.changes
        file.added += touch.added
        file.removed += touch.removed
        moment = step.ended or step.started
        if moment is not None:
            file.last = max(file.last or 0.0, moment.timestamp())
        yield file


def _findings(place: Place) -> Findings:
    try:
        report = report_at(place)
    except StenoError:
        return Findings(checked=False, errors=0, warnings=0, infos=0, findings=[])
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Any] = {}
    for file in report.files:
        counts.update(file.counts)
        for finding in file.findings:
            first.setdefault((finding.id, finding.severity), finding)
    severities = ("error", "warning", "info")
    known = [key for key in first if key in counts]
    return Findings(
        checked=True,
        errors=report.number("error"),
        warnings=report.number("warning"),
        infos=report.number("info"),
        findings=[
            FindingCount(
                id=key[0],
                severity=first[key].severity,
                count=counts[key],
                message=first[key].message,
                hint=first[key].hint,
            )
            for key in sorted(known, key=lambda key: (severities.index(key[1]), key[0]))
        ],
    )
