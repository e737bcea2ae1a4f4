"""`/api/v1/sessions`, `/api/v1/sessions/{key}`, its turns and its steps."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final, get_args
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UnsetType

from steno.errors import NotFound, StenoError
from steno.format.message import SYNTHETIC, Text
from steno.index.database import ARRAY_SQL, SessionIndex, json_array
from steno.report.clock import iso_time, iso_time_from_ms
from steno.report.export.steps_format import session_steps
from steno.report.humanize import MS_PER_SECOND
from steno.report.session_list import (
    SessionFeature,
    SessionFilter,
    SessionRow,
    file_ids_at,
    file_ids_by_title,
    list_sessions,
    session_row_at,
    status_moment,
    usage_by_session,
)
from steno.report.session_references import printable_path
from steno.report.usage.usage_report import UsageFigures as Spent
from steno.report.usage.usage_report import figures_json
from steno.session import session as sessions
from steno.session.session_status import is_live, status_at
from steno.session.transcript import Transcript
from steno.session.turns.compactions import RepeatTracker
from steno.session.turns.session_facts import count_steps, working_agents
from steno.session.turns.steps import Step as SessionStep
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn as SessionTurn
from steno.web.api.parameters import (
    Paged,
    Parameters,
    SessionParameters,
    TurnParameters,
    make_cursor,
    period_end,
    period_start,
    projects_matching,
    read_cursor,
    require_integers,
)
from steno.web.api.schemas import (
    Agent,
    Branch,
    ChangedFile,
    Compaction,
    FindingCount,
    Findings,
    Prompt,
    Session,
    SessionDetail,
    SessionList,
    Step,
    StepList,
    Tokens,
    Turn,
    TurnList,
    TurnStep,
    Usage,
)
from steno.web.state.app_state import AppState
from steno.web.state.caches import SessionRef
from steno.web.urls import path_tag
from steno.web.views.file_findings import check_session
from steno.web.views.opened_session import OpenedSession, open_session
from steno.web.views.session_params import session_page_params
from steno.web.views.session_view import SessionView, live_status, subagent_key


@contextmanager
def open_session_by_key(
    app_state: AppState, key: str, agent: str | UnsetType = "", *, with_costs: bool = False
) -> Generator[OpenedSession]:
    """Open a session, or a sub-agent of it, by its key.

    With `with_costs`, also compute its cost and find the previous and next session.

    Raises:
        NotFound: The session does not exist, or its file was deleted and not archived.
        Unreadable: The file cannot be read.
    """
    params = session_page_params(key, agent if isinstance(agent, str) else "", {})
    with open_session(app_state, params, with_costs=with_costs) as opened_session:
        yield opened_session


_DAMAGED: Final = "damaged"
_VERSIONS_SQL: Final = f"SELECT file, version FROM sessions WHERE file IN {ARRAY_SQL}"


def list_sessions_page(app_state: AppState, _path: dict[str, str], parameters: SessionParameters) -> SessionList:
    """Return a page of matching sessions."""
    now = app_state.now()
    position = read_cursor("sessions", parameters, 2)
    after = None if position is None else (require_integers(position)[0], require_integers(position)[1])
    with app_state.index() as index:
        choice = _session_filters(app_state, index, parameters, now)
        listing = list_sessions(index.connection, choice, limit=parameters.limit, after=after)
        sessions = _session_schemas(app_state, index, listing.rows, now)
    cursor = None
    if listing.more:
        last = listing.rows[-1]
        cursor = make_cursor("sessions", parameters, last.rank, last.file)
    return SessionList(sessions=sessions, total=listing.total, next_cursor=cursor)


def _session_filters(
    app_state: AppState, index: SessionIndex, parameters: SessionParameters, now: float
) -> SessionFilter:
    filters = parameters
    feature_names = filters.has.split(",") if isinstance(filters.has, str) else []
    has: tuple[SessionFeature, ...] = tuple(feature for feature in get_args(SessionFeature) if feature in feature_names)
    damaged = _DAMAGED in feature_names
    choice = SessionFilter(
        projects=projects_matching(index, filters.project),
        branch=_text_or_none(filters.branch),
        model=_text_or_none(filters.model),
        since=period_start("since", filters.since, now),
        until=period_end("until", filters.until, now),
        has=has,
        size=filters.size or None,
        now=status_moment(now),
        files=file_ids_at(index.connection, sorted(app_state.health_monitor.damaged_paths)) if damaged else None,
        sort=filters.sort,
        state=filters.status or None,
        live=filters.live if isinstance(filters.live, bool) else None,
        min_turns=filters.min_turns or 0,
        min_steps=filters.min_steps or 0,
        listed=filters.listed,
        dialect=filters.dialect or None,
    )
    title_words = filters.q.casefold().split() if isinstance(filters.q, str) else []
    if not title_words:
        return choice
    files = file_ids_by_title(index.connection, choice, _contains_all(title_words))
    return msgspec.structs.replace(choice, among=tuple(files))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _contains_all(title_words: Sequence[str]) -> Callable[[str], bool]:
    return lambda title: all(word in title.casefold() for word in title_words)


def _session_schemas(app_state: AppState, index: SessionIndex, rows: Sequence[SessionRow], now: float) -> list[Session]:
    files = [session.file for session in rows]
    costs = usage_by_session(index.connection, files, app_state.prices)
    versions = _versions(index, files)
    return [Session(**_session_fields(each, costs.get(each.file), versions.get(each.file, ""), now)) for each in rows]


def _versions(index: SessionIndex, files: Sequence[int]) -> dict[int, str]:
    return dict(index.connection.execute(_VERSIONS_SQL, (json_array(files),)))


def _session_fields(listed: SessionRow, cost_figures: Spent | None, version: str, now: float) -> dict[str, Any]:
    """Return the fields common to the session list and the session details."""
    age = _activity_age(listed, now)
    figures = listed.figures
    return {
        "key": listed.key,
        "id": listed.id,
        "path": printable_path(listed.path),
        "dialect": listed.dialect,
        "title": listed.title,
        "project": listed.project,
        "project_id": path_tag(listed.project) if listed.project else "",
        "branch": listed.branch,
        "model": listed.model,
        "version": version,
        "status": status_at(listed.ending, age),
        "live": is_live(listed.ending, age),
        "archived_only": listed.gone,
        "started": iso_time_from_ms(listed.started),
        "ended": iso_time_from_ms(listed.ended),
        "duration_seconds": figures.worked / MS_PER_SECOND,
        "turns": figures.turns,
        "steps": figures.steps,
        "failed_steps": figures.failed,
        "agents": figures.agents,
        "compactions": figures.compactions,
        "abandoned_branches": figures.branches,
        "size_bytes": listed.size,
        "usage": _usage(cost_figures),
    }


def _activity_age(listed: SessionRow, now: float) -> float:
    """Return the seconds since the last activity; infinite if the file was deleted."""
    if listed.gone:
        return float("inf")
    # The same time as in the filters, so that both agree.
    return listed.age(status_moment(now) / MS_PER_SECOND)


def _usage(cost_figures: Spent | None) -> Usage:
    figures = cost_figures if cost_figures is not None else Spent(unpriced={})
    return msgspec.convert(figures_json(figures, figures.cost or 0), Usage)


# One session


def get_session(app_state: AppState, path: dict[str, str], _parameters: Parameters) -> SessionDetail:
    """Return one session."""
    now = app_state.now()
    with open_session_by_key(app_state, path["key"], with_costs=True) as opened_session:
        session_ref, view = opened_session.session_ref, opened_session.view
        with app_state.index() as index:
            listed = session_row_at(index.connection, session_ref.file)
            if listed is None:
                raise NotFound(f"no session matches {path['key']!r}")
            cost_figures = usage_by_session(index.connection, [session_ref.file], app_state.prices).get(
                session_ref.file
            )
            version = _versions(index, [session_ref.file]).get(session_ref.file, "")
        facts = _session_fields(msgspec.structs.replace(listed, figures=view.figures), cost_figures, version, now)
        return SessionDetail(
            **facts,
            **_detail_fields(opened_session, _activity_age(listed, now), facts["status"]),
            findings=_findings_schema(session_ref),
        )


def _detail_fields(opened_session: OpenedSession, age: float, status: str) -> dict[str, Any]:
    """Return the fields that are read from the session file."""
    view, session = opened_session.view, opened_session.view.session
    status_details = live_status(view, age, gone=opened_session.session_ref.is_deleted)
    is_current = status in {status_details.standing, "empty"}
    return {
        "status_reason": status_details.reason if is_current else "",
        "entrypoint": session.entrypoint,
        "models": list(session.models),
        "versions": list(session.versions),
        "branches": list(session.git_branches),
        "directories": list(session.cwds),
        "copied_responses": opened_session.indexed.copied_responses,
        "earlier": opened_session.indexed.earlier or None,
        "later": opened_session.indexed.later or None,
        "records": len(view.transcript.nodes),
        "gaps": sum(bool(gap.damage) for gap in view.transcript.gaps),
        "files": _changed_files(view),
        "sub_agents": [_subagent_schema(view, subagent) for subagent in working_agents(session.all_agents)],
        "compacted": [_compaction_schema(turn.number, compaction) for turn in view.turns for compaction in turn.seams],
        "abandoned": [
            Branch(
                number=branch.number,
                reason=branch.branch.why,
                after_turn=branch.after_turn,
                records=len(branch.branch.nodes),
                turns=branch.branch.turns,
            )
            for branch in view.abandoned_branches
        ],
    }


def turn_compaction(turn: Any) -> Compaction | None:
    """Return the compaction before a turn."""
    compaction = turn.compaction
    return None if compaction is None else _compaction_schema(turn.number, compaction)


def _compaction_schema(turn: int, compaction: Any) -> Compaction:
    return Compaction(
        turn=turn,
        kind=compaction.kind,
        trigger=compaction.trigger,
        pre_tokens=compaction.pre_tokens,
        post_tokens=compaction.post_tokens,
        messages_before=compaction.messages_before,
        messages_kept=compaction.messages_kept,
        ratio=compaction.ratio,
    )


def _subagent_schema(view: SessionView, subagent: Thread) -> Agent:
    return Agent(
        id=subagent_key(subagent),
        parent=None if subagent.parent is None else subagent_key(subagent.parent),
        kind=subagent.kind,
        description=subagent.description,
        status=subagent.status,
        turns=len(subagent.turns),
        steps=count_steps(subagent.steps),
        tokens=subagent.usage.total,
        cost_micro_usd=view.subagent_cost(subagent).amount,
    )


class _FileTotals(msgspec.Struct):
    """Running totals of the reads and changes of a file."""

    reads: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    turns: dict[int, None] = {}
    agents: dict[str, None] = {}
    last: float | None = None


def _changed_files(view: SessionView) -> list[ChangedFile]:
    """Return the files of the conversation and its sub-agents, in order of first use."""
    files: dict[str, _FileTotals] = {}
    for turn in view.turns:
        for touched in _add_touches(files, turn.steps):
            touched.turns[turn.number] = None
    for subagent in view.session.all_agents:
        for touched in _add_touches(files, subagent.steps):
            touched.agents[subagent_key(subagent)] = None
    return [
        ChangedFile(
            id=path_tag(path),
            path=path,
            reads=totals.reads,
            edits=totals.edits,
            added=totals.added,
            removed=totals.removed,
            turns=list(totals.turns),
            agents=list(totals.agents),
            last=iso_time(totals.last),
        )
        for path, totals in files.items()
    ]


def _add_touches(files: dict[str, _FileTotals], steps: Iterable[SessionStep]) -> Iterable[_FileTotals]:
    """Add the file accesses of some steps to the totals, and yield the totals of each accessed file."""
    for step in steps:
        touch = step.touch
        if touch is None:
            continue
        file = files.setdefault(touch.path, _FileTotals())
        file.reads += not touch.changes
        file.edits += touch.changes
        file.added += touch.added
        file.removed += touch.removed
        moment = step.ended or step.started
        if moment is not None:
            file.last = max(file.last or 0.0, moment.timestamp())
        yield file


def _findings_schema(session_ref: SessionRef) -> Findings:
    try:
        report = check_session(session_ref)
    except StenoError:
        return Findings(checked=False, errors=0, warnings=0, infos=0, findings=[])
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Any] = {}
    for file in report.files:
        counts.update(file.counts)
        for finding in file.findings:
            first.setdefault((finding.id, finding.severity), finding)
    severities = ("error", "warning", "info")
    counted_keys = [key for key in first if key in counts]
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
            for key in sorted(counted_keys, key=lambda key: (severities.index(key[1]), key[0]))
        ],
    )


_steps_cache: Final[WeakKeyDictionary[sessions.Session, list[Step]]] = WeakKeyDictionary()
"""Cached steps of open, unchanged sessions."""


def list_turns(app_state: AppState, path: dict[str, str], parameters: TurnParameters) -> TurnList:
    """Return a page of the turns of a session or sub-agent."""
    with open_session_by_key(app_state, path["key"], parameters.agent) as opened_session:
        view, key = opened_session.view, opened_session.session_ref.key
        name = f"turns {key}"
        position = read_cursor(name, parameters, 1)
        start = 0 if position is None else require_integers(position)[0]
        later = [turn for turn in view.turns if turn.number > start]
        page = later[: parameters.limit]
        more = len(later) > len(page)
        return TurnList(
            session=key,
            agent=opened_session.params.agent or None,
            turns=[_turn_schema(view, turn) for turn in page],
            total=len(view.turns),
            next_cursor=make_cursor(name, parameters, page[-1].number) if more else None,
        )


def _turn_schema(view: SessionView, turn: SessionTurn) -> Turn:
    prompt, transcript = turn.prompt, view.transcript
    return Turn(
        number=turn.number,
        prompt=None
        if prompt is None
        else Prompt(text=prompt.text, origin=prompt.origin, images=prompt.images, uuid=prompt.node.uuid),
        texts=texts_of(transcript, turn),
        answer=turn.answer,
        steps=[_step_schema(transcript, step) for step in turn.steps],
        started=None if turn.started is None else iso_time(turn.started.timestamp()),
        ended=None if turn.ended is None else iso_time(turn.ended.timestamp()),
        duration_seconds=turn.duration,
        usage=msgspec.convert(turn.usage, Tokens, from_attributes=True),
        cost_micro_usd=view.turn_cost(turn).amount,
        commands=list(turn.commands),
        failed_steps=turn.errors,
        interrupted=turn.interrupted,
        compaction=turn_compaction(turn),
    )


def texts_of(transcript: Transcript, turn: SessionTurn) -> list[str]:
    """Return all texts of the model in a turn, in order."""
    texts: list[str] = []
    repeats = RepeatTracker()
    for node in turn.nodes:
        if node.type != "assistant" or node.model == SYNTHETIC:
            continue
        if repeats.is_repeated_answer(node.parent, node.message_id, node.uses):
            continue
        record = transcript.record(node)
        if not record.envelope.is_api_error_message:
            texts += [block.text for block in record.blocks if type(block) is Text and block.text.strip()]
    return texts


def _step_schema(transcript: Transcript, step: SessionStep) -> TurnStep:
    touch = step.touch
    return TurnStep(
        kind=step.kind,
        verb=step.verb,
        tool=_tool_name(transcript, step),
        subject=step.subject,
        outcome=step.outcome,
        state=step.state,
        started=None if step.started is None else iso_time(step.started.timestamp()),
        duration_seconds=step.duration,
        tokens=step.tokens,
        agent=None if step.agent is None else subagent_key(step.agent),
        path=None if touch is None else touch.path,
        added=0 if touch is None else touch.added,
        removed=0 if touch is None else touch.removed,
        call=None if step.call is None else step.call.uuid,
        result=None if step.result is None else step.result.uuid,
    )


def _tool_name(transcript: Transcript, step: SessionStep) -> str | None:
    """Return the tool of a step; for sub-agents, the verb is their type instead."""
    if step.kind == "tool":
        return step.verb
    if step.kind != "agent" or step.call is None or step.call.type != "assistant":
        return None
    uses = transcript.record(step.call).tool_uses
    return next((use.name for use in uses if use.id == step.call_id), None)


# Steps as in `steps.jsonl`


def list_steps(app_state: AppState, path: dict[str, str], parameters: Paged) -> StepList:
    """Return a page of the steps of a session, as in `steps.jsonl`."""
    with open_session_by_key(app_state, path["key"]) as opened_session:
        key, steps = opened_session.session_ref.key, published_steps(opened_session.view.session)
        name = f"steps {key}"
        position = read_cursor(name, parameters, 1)
        start = 0 if position is None else require_integers(position)[0]
        page = [step for step in steps if step.step_id > start][: parameters.limit]
        more = bool(page) and page[-1].step_id < len(steps)
        return StepList(
            session=key,
            steps=page,
            total=len(steps),
            next_cursor=make_cursor(name, parameters, page[-1].step_id) if more else None,
        )


def published_steps(session: sessions.Session) -> list[Step]:
    """Return the steps of a session, cached while it is open and unchanged."""
    steps = _steps_cache.get(session)
    if steps is None:
        steps = _steps_cache[session] = msgspec.convert(session_steps(session), list[Step])
    return steps
