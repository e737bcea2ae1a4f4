"""`/api/v1/tasks` and `/api/v1/tasks/{id}`: sessions as tasks, as a published description has them.

What a task is, and which of them are listed, is defined in `report.export.steps`; it counts records
that only the file itself tells apart, so files are read page by page, once each.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from steno.errors import NotFound, Unreadable
from steno.index.opened import Index
from steno.report.clock import iso, moment
from steno.report.export.opened import Leaving
from steno.report.export.steps import is_listed, metadata_of, steps_of
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
_FEWEST: Final = 5
"""Records below which the list rules hide a session that is over; the index counts no fewer."""
_CHUNK: Final = 100
_ALL: Final = 1 << 40
_LITTLE: Final = 24 << 20
"""Bytes that are read only to count all tasks."""
_MOST: Final = 100_000
_TOP: Final = 5
_MESSAGES: Final = (
    "SELECT file, messages FROM sessions WHERE file IN (SELECT value FROM json_each(?))"
)
_TYPES: Final[dict[str, StepType]] = {
    "USER_MESSAGE": "user_message",
    "ASSISTANT_MESSAGE": "assistant_message",
    "TOOL_CALL": "tool_call",
    "TOOL_RESULT": "tool_result",
}
_answers: Final[WeakKeyDictionary[House, Few]] = WeakKeyDictionary()


class _Task(msgspec.Struct, frozen=True):
    """What a file says of a task."""

    metadata: dict[str, Any]
    listed: bool


def task_page(house: House, _path: dict[str, str], parameters: TaskParameters) -> TaskList:
    """Return a page of tasks, the last active first."""
    place = read_cursor("tasks", parameters, 2)
    after = None if place is None else (integers(place)[0], integers(place)[1])
    with house.index() as index:
        choice = Choice(projects=projects_matching(index, parameters.project), hidden=True)
        tasks = _Tasks(house, index, parameters)
        page: list[tuple[Listed, TaskItem]] = []
        more = False
        for pair in tasks.matching(choice, after):
            more = len(page) == parameters.limit
            if more:
                break
            page.append(pair)
        total = tasks.total(choice)
    cursor = None
    if more:
        last = page[-1][0]
        cursor = make_cursor("tasks", parameters, last.rank, last.file)
    return TaskList(tasks=[item for _, item in page], total=total, next_cursor=cursor)


class _Tasks:
    """Sessions of the index as tasks."""

    def __init__(self, house: House, index: Index, parameters: TaskParameters) -> None:
        self._house = house
        self._index = index
        self._parameters = parameters
        self._known = _answers.setdefault(house, Few(_MOST))
        self._now = house.now()

    def matching(
        self, choice: Choice, after: tuple[int, int] | None
    ) -> Iterator[tuple[Listed, TaskItem]]:
        """Yield the tasks behind a place in the list."""
        more = True
        while more:
            listing = list_sessions(self._index.connection, choice, limit=_CHUNK, after=after)
            for listed in self._likely(listing.rows):
                item = self._item(listed)
                if item is not None:
                    yield listed, item
            more = listing.more
            if more:
                after = listing.rows[-1].rank, listing.rows[-1].file

    def total(self, choice: Choice) -> int | None:
        """Return how many tasks there are; None where too much would have to be read."""
        rows = list_sessions(self._index.connection, choice, limit=_ALL).rows
        rows = list(self._likely(rows))
        unread = sum(each.size for each in rows if not self._known.holds(self._name(each)))
        if unread > _LITTLE:
            return None
        return sum(self._item(each) is not None for each in rows)

    def _likely(self, rows: Sequence[Listed]) -> Iterator[Listed]:
        """Yield the sessions that the list rules may show, without a look into their files."""
        packed = msgspec.json.encode([each.file for each in rows]).decode()
        messages = dict(self._index.connection.execute(_MESSAGES, (packed,)))
        for each in rows:
            few = messages.get(each.file, 0) < _FEWEST and not _is_live(each, self._now)
            if self._parameters.everything or not few or each.ending == "question":
                yield each

    def _item(self, listed: Listed) -> TaskItem | None:
        task = self._known.get(self._name(listed), lambda: self._read(listed))
        if task is None or not (task.listed or self._parameters.everything):
            return None
        item = _item(listed, task.metadata)
        wanted = self._parameters.status or item.status
        return item if item.status == wanted else None

    def _name(self, listed: Listed) -> tuple[object, ...]:
        return listed.path, listed.size, listed.ended, listed.gone, _is_live(listed, self._now)

    def _read(self, listed: Listed) -> _Task | None:
        """Return what a file says; None where it cannot be read or has no steps."""
        try:
            with open_found(found_at_path(listed.path)) as session:
                steps = steps_of(session)
                metadata = _metadata(session, listed, steps, self._now)
        except (NotFound, Unreadable):
            return None
        return _Task(metadata, is_listed(metadata, steps)) if steps else None


def _is_live(listed: Listed, now: float) -> bool:
    return not listed.gone and is_live(listed.ending, _age(listed, now))


def _age(listed: Listed, now: float) -> float:
    ended = None if listed.ended is None else listed.ended / _SECOND
    return activity_age(now, ended, None if listed.grown is None else listed.grown / _SECOND)


def _metadata(
    session: Session, listed: Listed, steps: list[dict[str, Any]], now: float
) -> dict[str, Any]:
    found = found_at_path(listed.path)
    age = None if listed.gone else _age(listed, now)
    return metadata_of(Leaving(session, found, found.size), steps, age)


def _item(listed: Listed, metadata: dict[str, Any]) -> TaskItem:
    return TaskItem(**_facts(listed, metadata))


def _facts(listed: Listed, metadata: dict[str, Any]) -> dict[str, Any]:
    started, ended, last = (
        _iso(metadata[name]) for name in ("started_at", "ended_at", "last_activity")
    )
    first, behind = moment(started or ""), moment(last or "")
    took = 0.0 if first is None or behind is None else max(0.0, behind - first)
    return {
        "id": listed.key,
        "session_id": metadata["session_id"],
        "title": listed.title,
        "name": listed.title,
        "status": "running" if metadata["status"] == "RUNNING" else "completed",
        "agent_type": "claude",
        "project_path": metadata["project_path"],
        "started_at": started,
        "ended_at": ended,
        "completed_at": ended,
        "last_activity": last,
        "duration_ms": round(took * _SECOND),
        "step_count": metadata["step_count"],
        "tool_call_count": metadata["tool_call_count"],
    }


def _iso(text: str | None) -> str | None:
    return iso(moment(text or ""))


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
        facts = _facts(listed, _metadata(session, listed, plain, house.now()))
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
