"""`/api/v1/tasks` and `/api/v1/tasks/{id}`: sessions as tasks, as a published description has them.

The index tells which sessions the list rule shows (`session.step_records`); the figures of a task are
those of its steps, so the files of a page are read, once each.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from steno.errors import NotFound, Unreadable
from steno.format.paths import is_uuid
from steno.format.records import read_time
from steno.index.opened import Index
from steno.report.clock import iso, moment
from steno.report.export.steps import session_id_of, steps_of, times_of
from steno.report.listing import Choice, Listed, list_sessions, listed_at
from steno.session.liveness import activity_age, is_live
from steno.session.session import Session
from steno.store.library import open_found
from steno.web.api.cursors import integers, make_cursor, read_cursor
from steno.web.api.filters import projects_matching
from steno.web.api.models.tasks import (
    StepType,
    TaskDetail,
    TaskItem,
    TaskList,
    TaskStep,
    TaskSummary,
    ToolUse,
)
from steno.web.api.models.turns import Step
from steno.web.api.opening import open_key
from steno.web.api.parameters import Paged, TaskParameters
from steno.web.api.turns import document_steps
from steno.web.house import House
from steno.web.kept import Few
from steno.web.shelf import found_at_path

_SECOND: Final = 1000
_CHUNK: Final = 100
_ALL: Final = 1 << 40
_MOST: Final = 100_000
_TOP: Final = 5
_COUNTS: Final = "SELECT step_records, calls FROM sessions WHERE file = ?"
_STATE: Final = "SELECT size, mtime, device, inode, gone FROM files WHERE id = ?"
"""What tells one state of a file from another, as the index does."""
_TYPES: Final[dict[str, StepType]] = {
    "USER_MESSAGE": "user_message",
    "ASSISTANT_MESSAGE": "assistant_message",
    "TOOL_CALL": "tool_call",
    "TOOL_RESULT": "tool_result",
}
_answers: Final[WeakKeyDictionary[House, Few]] = WeakKeyDictionary()


class _Figures(msgspec.Struct, frozen=True):
    """What the steps of a session say of it as a task."""

    session_id: str
    project: str
    started: str | None
    last: str | None
    steps: int
    calls: int


def task_page(house: House, _path: dict[str, str], parameters: TaskParameters) -> TaskList:
    """Return a page of tasks, the last active first."""
    place = read_cursor("tasks", parameters, 2)
    after = None if place is None else (integers(place)[0], integers(place)[1])
    now = house.now()
    with house.index() as index:
        choice = Choice(
            projects=projects_matching(index, parameters.project),
            hidden=True,
            listed=not parameters.everything,
            min_steps=1,
            live={"running": True, "completed": False}.get(parameters.status or ""),
            now=int(now * _SECOND),
        )
        total = sum(
            _is_session(each) for each in list_sessions(index.connection, choice, limit=_ALL).rows
        )
        page: list[Listed] = []
        more = True
        while more and len(page) <= parameters.limit:
            listing = list_sessions(index.connection, choice, limit=_CHUNK, after=after)
            page += filter(_is_session, listing.rows)
            more = listing.more
            after = (listing.rows[-1].rank, listing.rows[-1].file) if more else None
        more = len(page) > parameters.limit
        page = page[: parameters.limit]
        tasks = [_item(each, _figures_in(house, index, each), now) for each in page]
    cursor = make_cursor("tasks", parameters, page[-1].rank, page[-1].file) if more else None
    return TaskList(tasks=tasks, total=total, next_cursor=cursor)


def _is_session(listed: Listed) -> bool:
    """Return whether a file has steps: it is named by a session's id, or is in a dialect."""
    stem = listed.path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
    return is_uuid(stem) or listed.dialect != "claude"


def _figures_in(house: House, index: Index, listed: Listed) -> _Figures:
    """Return the figures of a session, from the index where its file cannot be read any more."""
    known = _answers.setdefault(house, Few(_MOST))
    state = index.connection.execute(_STATE, (listed.file,)).fetchone()
    figures = known.get((listed.path, *state), lambda: _read(listed))
    if figures is not None:
        return figures
    steps, calls = index.connection.execute(_COUNTS, (listed.file,)).fetchone()
    started, last = (
        iso(None if each is None else each / _SECOND) for each in (listed.started, listed.ended)
    )
    return _Figures(listed.id, listed.project, started, last, steps, calls)


def _read(listed: Listed) -> _Figures | None:
    """Return the figures of a file; None where it cannot be read any more."""
    try:
        with open_found(found_at_path(listed.path)) as session:
            return _figures(session, steps_of(session))
    except (NotFound, Unreadable):
        return None


def _figures(session: Session, steps: Sequence[dict[str, Any]]) -> _Figures:
    times = times_of(steps)
    return _Figures(
        session_id_of(session),
        session.project,
        _iso(times[0]) if times else None,
        _iso(times[-1]) if times else None,
        len(steps),
        sum(len(step.get("tool_calls", ())) for step in steps),
    )


def _iso(text: str) -> str | None:
    time = read_time(text)
    return None if time is None else iso(time.timestamp())


def _item(listed: Listed, figures: _Figures, now: float) -> TaskItem:
    return TaskItem(**_facts(listed, figures, now))


def _facts(listed: Listed, figures: _Figures, now: float) -> dict[str, Any]:
    """Return the fields of a task."""
    running = not listed.gone and is_live(listed.ending, _age(listed, now))
    first, behind = moment(figures.started or ""), moment(figures.last or "")
    took = 0.0 if first is None or behind is None else max(0.0, behind - first)
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
        "duration_ms": round(took * _SECOND),
        "step_count": figures.steps,
        "tool_call_count": figures.calls,
    }


def _age(listed: Listed, now: float) -> float:
    ended = None if listed.ended is None else listed.ended / _SECOND
    return activity_age(now, ended, None if listed.grown is None else listed.grown / _SECOND)


# One task


def task_detail(house: House, path: dict[str, str], parameters: Paged) -> TaskDetail:
    """Return a task with a page of its steps."""
    with open_key(house, path["id"]) as found:
        place, session = found.place, found.tale.session
        with house.index() as index:
            listed = listed_at(index.connection, place.file)
        steps = document_steps(session)
        if listed is None or not steps:
            raise NotFound(
                f"session {path['id']!r} has no steps", hint="/api/v1/tasks lists the tasks"
            )
        plain: list[dict[str, Any]] = msgspec.to_builtins(steps)
        facts = _facts(listed, _figures(session, plain), house.now())
    name = f"tasks {place.key}"
    cursor = read_cursor(name, parameters, 1)
    start = max(0, integers(cursor)[0]) if cursor is not None else 0
    page = steps[start : start + parameters.limit]
    end = start + len(page)
    counts = Counter(step.type for step in steps)
    return TaskDetail(
        **facts,
        user_message_count=counts["USER_MESSAGE"],
        assistant_message_count=counts["ASSISTANT_MESSAGE"],
        steps=list(_steps(steps, page)),
        steps_total=len(steps),
        steps_offset=min(start, len(steps)),
        has_more_steps=end < len(steps),
        summary=None if facts["status"] == "running" else _summary(facts, steps, counts),
        next_cursor=make_cursor(name, parameters, end) if end < len(steps) else None,
    )


def _calls(step: Step) -> Sequence[Any]:
    return step.tool_calls or ()


def _results(step: Step) -> Sequence[Any]:
    return step.tool_results or ()


def _steps(steps: list[Step], page: list[Step]) -> Iterator[TaskStep]:
    names = {call.tool_call_id: call.tool_name for step in steps for call in _calls(step)}
    results = {each.tool_call_id: each for step in steps for each in _results(step)}
    for step in page:
        calls = [*_calls(step), *_results(step)]
        call = calls[0].tool_call_id if calls else None
        result = results.get(call or "")
        yield TaskStep(
            step_id=step.step_id,
            type=_TYPES[step.type],
            timestamp=step.timestamp,
            content=step.content_summary,
            tool_name=None if call is None else names.get(call),
            tool_status=None if call is None else "pending" if result is None else result.status,
            tool_result=None if result is None else result.result_summary,
        )


def _summary(facts: dict[str, Any], steps: list[Step], counts: Counter[str]) -> TaskSummary:
    results = [each for step in steps for each in _results(step)]
    used = Counter(call.tool_name for step in steps for call in _calls(step))
    failed = sum(each.status == "error" for each in results)
    return TaskSummary(
        total_duration_ms=facts["duration_ms"],
        user_message_count=counts["USER_MESSAGE"],
        assistant_message_count=counts["ASSISTANT_MESSAGE"],
        tool_call_count=facts["tool_call_count"],
        tool_success_count=len(results) - failed,
        tool_error_count=failed,
        most_used_tools=[ToolUse(name=name, count=count) for name, count in used.most_common(_TOP)],
    )
