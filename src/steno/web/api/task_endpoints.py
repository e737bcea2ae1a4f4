"""`/api/v1/tasks` and `/api/v1/tasks/{id}`: sessions as tasks, as the published description for frago defines them.

The index selects the sessions by the list rule (`session.step_records`). The figures of a task require its
steps, so each file of a page is read once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from steno.errors import NotFound, Unreadable
from steno.format.paths import JSONL_SUFFIX, is_uuid
from steno.format.records import read_time
from steno.index.database import SessionIndex
from steno.report.clock import iso_time, iso_time_from_ms
from steno.report.export.steps_format import session_id_of, session_steps, step_times
from steno.report.humanize import MS_PER_SECOND
from steno.report.session_list import SessionFilter, SessionRow, list_sessions, session_row_at
from steno.session.session import Session
from steno.session.session_status import is_live
from steno.store.environment import parse_time
from steno.store.session_lookup import open_file_session
from steno.web.api.parameters import (
    Paged,
    TaskParameters,
    make_cursor,
    projects_matching,
    read_cursor,
    require_integers,
)
from steno.web.api.schemas import Step, StepType, TaskDetail, TaskItem, TaskList, TaskStep, TaskSummary, ToolUse
from steno.web.api.session_endpoints import open_session_by_key, published_steps
from steno.web.state.app_state import AppState
from steno.web.state.caches import LruCache, discover_path

_CHUNK: Final = 100
_ALL: Final = 1 << 40
_MAX_CACHED: Final = 100_000
_MAX_TOP_TOOLS: Final = 5
_COUNTS_SQL: Final = "SELECT step_records, calls FROM sessions WHERE file = ?"
_FILE_STATE_SQL: Final = "SELECT size, mtime, device, inode, gone FROM files WHERE id = ?"
"""Selects the columns that identify the state of a file."""
_STEP_TYPES: Final[dict[str, StepType]] = {
    "USER_MESSAGE": "user_message",
    "ASSISTANT_MESSAGE": "assistant_message",
    "TOOL_CALL": "tool_call",
    "TOOL_RESULT": "tool_result",
}
_figures_caches: Final[WeakKeyDictionary[AppState, LruCache]] = WeakKeyDictionary()


class _TaskFigures(msgspec.Struct, frozen=True):
    """Figures computed from the steps of a session."""

    session_id: str
    project: str
    started: str | None
    last: str | None
    steps: int
    calls: int


def list_tasks(app_state: AppState, _path: dict[str, str], parameters: TaskParameters) -> TaskList:
    """Return a page of tasks, last active first."""
    position = read_cursor("tasks", parameters, 2)
    after = None if position is None else (require_integers(position)[0], require_integers(position)[1])
    now = app_state.now()
    with app_state.index() as index:
        choice = SessionFilter(
            projects=projects_matching(index, parameters.project),
            hidden=True,
            listed=not parameters.everything,
            min_steps=1,
            live={"running": True, "completed": False}.get(parameters.status or ""),
            now=int(now * MS_PER_SECOND),
        )
        total = sum(_is_session(session) for session in list_sessions(index.connection, choice, limit=_ALL).rows)
        page: list[SessionRow] = []
        more = True
        while more and len(page) <= parameters.limit:
            listing = list_sessions(index.connection, choice, limit=_CHUNK, after=after)
            page += filter(_is_session, listing.rows)
            more = listing.more
            after = (listing.rows[-1].rank, listing.rows[-1].file) if more else None
        more = len(page) > parameters.limit
        page = page[: parameters.limit]
        tasks = [_task_item(each, _task_figures(app_state, index, each), now) for each in page]
    cursor = make_cursor("tasks", parameters, page[-1].rank, page[-1].file) if more else None
    return TaskList(tasks=tasks, total=total, next_cursor=cursor)


def _is_session(listed: SessionRow) -> bool:
    """Return whether a file has steps: its name is a session ID, or it has a converted dialect."""
    stem = listed.path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)
    return is_uuid(stem) or listed.dialect != "claude"


def _task_figures(app_state: AppState, index: SessionIndex, listed: SessionRow) -> _TaskFigures:
    """Return the figures of a session, from the index if its file cannot be read."""
    figures_cache = _figures_caches.setdefault(app_state, LruCache(_MAX_CACHED))
    state = index.connection.execute(_FILE_STATE_SQL, (listed.file,)).fetchone()
    figures = figures_cache.get((listed.path, *state), lambda: _read_figures(listed))
    if figures is not None:
        return figures
    steps, calls = index.connection.execute(_COUNTS_SQL, (listed.file,)).fetchone()
    started, last = (iso_time_from_ms(milliseconds) for milliseconds in (listed.started, listed.ended))
    return _TaskFigures(listed.id, listed.project, started, last, steps, calls)


def _read_figures(listed: SessionRow) -> _TaskFigures | None:
    """Return the figures of a file; None if it cannot be read."""
    try:
        with open_file_session(discover_path(listed.path)) as session:
            return _figures_of_steps(session, session_steps(session))
    except (NotFound, Unreadable):
        return None


def _figures_of_steps(session: Session, steps: Sequence[dict[str, Any]]) -> _TaskFigures:
    times = step_times(steps)
    return _TaskFigures(
        session_id_of(session),
        session.project,
        _iso_time(times[0]) if times else None,
        _iso_time(times[-1]) if times else None,
        len(steps),
        sum(len(step.get("tool_calls", ())) for step in steps),
    )


def _iso_time(text: str) -> str | None:
    time = read_time(text)
    return None if time is None else iso_time(time.timestamp())


def _task_item(listed: SessionRow, figures: _TaskFigures, now: float) -> TaskItem:
    return TaskItem(**_task_fields(listed, figures, now))


def _task_fields(listed: SessionRow, figures: _TaskFigures, now: float) -> dict[str, Any]:
    """Return the fields of a task."""
    running = not listed.gone and is_live(listed.ending, listed.age(now))
    start, end = parse_time(figures.started or ""), parse_time(figures.last or "")
    elapsed = 0.0 if start is None or end is None else max(0.0, end - start)
    ended = None if running else figures.last
    return {
        "id": listed.key,
        "session_id": figures.session_id,
        "title": listed.title,
        "name": listed.title,
        "status": "running" if running else "completed",
        "agent_type": "claude",
        "project_path": figures.project,
        "started_at": figures.started,
        "ended_at": ended,
        "completed_at": ended,
        "last_activity": figures.last,
        "duration_ms": round(elapsed * MS_PER_SECOND),
        "step_count": figures.steps,
        "tool_call_count": figures.calls,
    }


# One task


def get_task(app_state: AppState, path: dict[str, str], parameters: Paged) -> TaskDetail:
    """Return a task with a page of its steps."""
    with open_session_by_key(app_state, path["id"]) as opened_session:
        session_ref, session = opened_session.session_ref, opened_session.view.session
        with app_state.index() as index:
            listed = session_row_at(index.connection, session_ref.file)
        steps = published_steps(session)
        if listed is None or not steps:
            raise NotFound(f"session {path['id']!r} has no steps", hint="See /api/v1/tasks for all tasks.")
        step_fields: list[dict[str, Any]] = msgspec.to_builtins(steps)
        facts = _task_fields(listed, _figures_of_steps(session, step_fields), app_state.now())
    name = f"tasks {session_ref.key}"
    cursor = read_cursor(name, parameters, 1)
    start = max(0, require_integers(cursor)[0]) if cursor is not None else 0
    page = steps[start : start + parameters.limit]
    end = start + len(page)
    counts = Counter(step.type for step in steps)
    return TaskDetail(
        **facts,
        user_message_count=counts["USER_MESSAGE"],
        assistant_message_count=counts["ASSISTANT_MESSAGE"],
        steps=list(_task_steps(steps, page)),
        steps_total=len(steps),
        steps_offset=min(start, len(steps)),
        has_more_steps=end < len(steps),
        summary=None if facts["status"] == "running" else _task_summary(facts, steps, counts),
        next_cursor=make_cursor(name, parameters, end) if end < len(steps) else None,
    )


def _calls(step: Step) -> Sequence[Any]:
    return step.tool_calls or ()


def _results(step: Step) -> Sequence[Any]:
    return step.tool_results or ()


def _task_steps(steps: list[Step], page: list[Step]) -> Iterator[TaskStep]:
    names = {call.tool_call_id: call.tool_name for step in steps for call in _calls(step)}
    results = {tool_result.tool_call_id: tool_result for step in steps for tool_result in _results(step)}
    for step in page:
        calls = [*_calls(step), *_results(step)]
        call = calls[0].tool_call_id if calls else None
        result = results.get(call or "")
        yield TaskStep(
            step_id=step.step_id,
            type=_STEP_TYPES[step.type],
            timestamp=step.timestamp,
            content=step.content_summary,
            tool_name=None if call is None else names.get(call),
            tool_status=None if call is None else "pending" if result is None else result.status,
            tool_result=None if result is None else result.result_summary,
        )


def _task_summary(facts: dict[str, Any], steps: list[Step], counts: Counter[str]) -> TaskSummary:
    results = [result for step in steps for result in _results(step)]
    tool_counts = Counter(call.tool_name for step in steps for call in _calls(step))
    failed = sum(each.status == "error" for each in results)
    return TaskSummary(
        total_duration_ms=facts["duration_ms"],
        user_message_count=counts["USER_MESSAGE"],
        assistant_message_count=counts["ASSISTANT_MESSAGE"],
        tool_call_count=facts["tool_call_count"],
        tool_success_count=len(results) - failed,
        tool_error_count=failed,
        most_used_tools=[ToolUse(name=name, count=count) for name, count in tool_counts.most_common(_MAX_TOP_TOOLS)],
    )
