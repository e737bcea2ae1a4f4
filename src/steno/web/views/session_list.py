"""Session list: URL parameters, rows, and sections by day or project."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, get_args

import msgspec
from markupsafe import Markup
from starlette.requests import Request

from steno.errors import BadRequest, StenoError
from steno.index.database import SessionIndex
from steno.index.search.finder import SearchOrder
from steno.report import humanize
from steno.report.clock import local_midnight, seconds_from_ms
from steno.report.current_step import CurrentStep, current_step
from steno.report.humanize import MS_PER_SECOND
from steno.report.session_list import (
    SIZE_RANGES,
    SORT_SQL,
    STATUSES,
    SessionFeature,
    SessionFilter,
    SessionGroup,
    SessionRow,
    SessionSort,
    SizeClass,
    StatusFilter,
    activity_slices,
    file_ids_at,
    group_totals,
    status_moment,
    usage_by_session,
)
from steno.session.session_status import is_live, status_at
from steno.session.turns.steps import Step
from steno.store.file_source import FileSource
from steno.web.render.charts import meter, sparkline
from steno.web.state.app_state import AppState
from steno.web.templating import links
from steno.web.urls import parse_number, path_for_tag, path_tag
from steno.web.views.step_view import step_icon

VIEWS: Final = ("day", "project", "flat")
_CURSOR: Final = re.compile(r"(-?[0-9]{1,18})_([0-9]{1,18})")
_DAYS_BACK: Final = {"today": 0, "week": 6, "month": 29}
MAX_QUERY_LENGTH: Final = 2_000
"""So many letters may be looked for."""
_MAX_VALUE_LENGTH: Final = 300
_MAX_STEPS: Final = 1_000_000_000
_FILTERS: Final = (*("project", "branch", "model", "status", "size", "since", "has", "min_steps", "listed"),)
_KNOWN: Final = ("q", *_FILTERS, "sort", "view", "order")


class SessionListParams(msgspec.Struct, frozen=True):
    """What the address asks for."""

    choice: SessionFilter
    query: dict[str, str]
    """The address again, without where to go on."""
    view: str
    cursor: tuple[int, int] | None
    open_facet: str
    """The facet that is shown in full."""
    search_text: str = ""
    """What is looked for in them."""
    order: SearchOrder = "newest"
    only_session: str = ""
    """The only session to show, with all that was found in it."""
    start: int = 0
    """How many sessions with something found come before."""

    @property
    def filter_count(self) -> int:
        """How many filters are on; a value that none of them has is not counted."""
        choice = self.choice
        values = (choice.project, choice.branch, choice.model, choice.status, choice.size)
        filters_set = sum(value is not None for value in (*values, choice.since))
        return filters_set + bool(choice.has) + (choice.min_steps > 0) + choice.listed

    def url(self, **changes: str | int) -> str:
        """Return the address with something changed, from its beginning on."""
        return links().sessions(**{**self.query, **changes})


def session_list_params(
    index: SessionIndex, request: Request, now: float, damaged: Iterable[str] = frozenset()
) -> SessionListParams:
    """Return what a request for the list asks for; `damaged` are paths of damaged sessions.

    Raises:
        BadRequest: it names no place in the list, or looks for too much.
        NotFound: it names a project that there is not.
    """
    query_params = request.query_params
    query = {name: query_params[name] for name in _KNOWN if query_params.get(name, "").strip()}
    if len(query.get("q", "")) > MAX_QUERY_LENGTH:
        raise BadRequest("too many words to look for", hint=f"at most {MAX_QUERY_LENGTH:,} letters")
    for name, value in query.items():
        if name != "q" and len(value) > _MAX_VALUE_LENGTH:
            raise BadRequest(f"{name} is too long", hint=f"Use at most {_MAX_VALUE_LENGTH} letters.")
    has = tuple(feature for feature in get_args(SessionFeature) if feature in query.get("has", "").split(","))
    project = None
    if "project" in query:
        paths = index.connection.execute("SELECT DISTINCT project FROM sessions")
        project = path_for_tag(query["project"], (path for (path,) in paths))
    status = _parse_status(query.get("status", ""))
    choice = SessionFilter(
        status=status,
        now=status_moment(now),
        files=file_ids_at(index.connection, sorted(damaged)) if status == "damaged" else None,
        project=project,
        branch=query.get("branch"),
        model=query.get("model"),
        since=range_start(query.get("since", ""), now),
        size=_parse_size(query.get("size", "")),
        has=has,
        min_steps=_parse_min_steps(query.get("min_steps", "")),
        listed=query.get("listed") == "1",
        sort=_parse_sort(query.get("sort", "newest")),
    )
    view = query.get("view", "day" if choice.sort in ("newest", "oldest") else "flat")
    return SessionListParams(
        choice,
        query,
        view if view in VIEWS else "day",
        _parse_cursor(query_params.get("after", "")),
        query_params.get("open", ""),
        query.get("q", "").strip(),
        _parse_order(query.get("order", "newest")),
        query_params.get("session", ""),
        parse_number(query_params.get("from", "0")),
    )


def range_start(name: str, now: float) -> int | None:
    """Return when `today`, `week` or `month` began, in milliseconds; None for any other word."""
    days_back = _DAYS_BACK.get(name)
    return None if days_back is None else int(local_midnight(now, days_back) * MS_PER_SECOND)


def _parse_sort(name: str) -> SessionSort:
    by_name: dict[str, SessionSort] = {sort: sort for sort in SORT_SQL}
    return by_name.get(name, "newest")


def _parse_status(name: str) -> StatusFilter | None:
    by_name: dict[str, StatusFilter] = {status: status for status in STATUSES}
    return by_name.get(name)


def _parse_size(name: str) -> SizeClass | None:
    by_name: dict[str, SizeClass] = {size: size for size in SIZE_RANGES}
    return by_name.get(name)


def _parse_min_steps(text: str) -> int:
    """Return the fewest step records that are asked for; 0 for what is no number."""
    return min(int(text), _MAX_STEPS) if text.isascii() and text.isdecimal() else 0


def _parse_order(name: str) -> SearchOrder:
    by_name: dict[str, SearchOrder] = {order: order for order in get_args(SearchOrder)}
    return by_name.get(name, "newest")


def _parse_cursor(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise BadRequest(f"not a place in the list: {text!r}")
    return int(match[1]), int(match[2])


_CONTEXT_WARNING_SHARE: Final = 0.8
_NO_ACTIVITY: Final = CurrentStep()


class CurrentActivity(msgspec.Struct, frozen=True):
    """What a live session does at this moment."""

    icon: str
    verb: str
    subject: str = ""
    share: int | None = None
    """How full the context is, in hundredths."""
    meter: Markup = Markup("")


class SessionListItem(msgspec.Struct, frozen=True):
    """A session as the page shows it."""

    listed: SessionRow
    key: str
    state: str
    spark: Markup
    seconds: float | None
    cost: int | None
    when: str
    now: CurrentActivity | None = None

    @property
    def live(self) -> bool:
        """Whether the session is live."""
        return self.now is not None


def session_rows(
    app_state: AppState, index: SessionIndex, listed: list[SessionRow], *, dated: bool = False
) -> Iterator[SessionListItem]:
    """Yield sessions as rows; `dated` says of each on which day it was, for no heading does."""
    costs = usage_by_session(index.connection, [session.file for session in listed], app_state.prices)
    now = app_state.now()
    for each in listed:
        age = each.age(now)
        state = "archived" if each.gone else status_at(each.ending, age)
        live = not each.gone and is_live(each.ending, age)
        yield SessionListItem(
            listed=each,
            key=each.key,
            state=state,
            spark=_sparkline(app_state, index, each),
            seconds=each.figures.worked / MS_PER_SECOND or None,
            cost=None if (cost_figures := costs.get(each.file)) is None else cost_figures.cost,
            when="now" if state == "running" else _format_time(seconds_from_ms(each.ended), now, dated=dated),
            now=_current_activity(_session_activity(app_state, each), state) if live else None,
        )


def _sparkline(app_state: AppState, index: SessionIndex, session: SessionRow) -> Markup:
    key = "spark", session.file, session.size, session.ended
    return app_state.result_cache.get(key, lambda: sparkline(*activity_slices(index.connection, session)))


def _format_time(ended: float | None, now: float, *, dated: bool) -> str:
    """Return the time of the day where the day is told above, or is today; else the day."""
    if ended is None:
        return ""
    if local_midnight(ended) >= local_midnight(now, 0 if dated else 6):
        return humanize.time_of_day(ended)
    return humanize.short_day_name(ended, now)


# What it does


def _session_activity(app_state: AppState, session: SessionRow) -> CurrentStep:
    def read_activity() -> CurrentStep:
        try:
            with FileSource(session.path) as source:
                return current_step(source)
        except StenoError:
            return _NO_ACTIVITY

    return app_state.result_cache.get(("doing", session.path, session.size, session.ended), read_activity)


def _current_activity(doing: CurrentStep, state: str) -> CurrentActivity:
    step = doing.step
    share = doing.context / doing.window if doing.window and doing.context else None
    icon, verb = ("clock", "Waiting for you") if state == "waiting" else ("think", "Thinking")
    if step is not None and step.state == "open":
        icon, verb = step_icon(step.kind, step.verb), _activity_label(step, state)
    return CurrentActivity(
        icon,
        verb,
        step.subject if step is not None and step.state == "open" else "",
        None if share is None else round(share * 100),
        Markup("") if share is None else meter(share, "fwarn" if share > _CONTEXT_WARNING_SHARE else "fa"),
    )


def _activity_label(step: Step, state: str) -> str:
    return "Waiting for your answer" if state == "waiting" else step.verb


_MAX_PRICED: Final = 2_000
"""Sessions whose cost is summed for the headings of one page."""


class Section(msgspec.Struct, frozen=True):
    """Rows under one heading."""

    title: str
    note: str
    rows: list[SessionListItem]
    cost: int | None
    href: str = ""


def session_sections(
    app_state: AppState, index: SessionIndex, choice: SessionFilter, rows: Iterable[SessionListItem], view: str
) -> list[Section]:
    """Return rows under their headings; a heading counts all its sessions, also those not shown."""
    if view == "flat":
        return [Section("", "", list(rows), None)]
    groups: dict[SessionGroup, list[SessionListItem]] = {}
    for row in rows:
        groups.setdefault(_row_group(row, view), []).append(row)
    index_stamp = app_state.index_stamp()
    totals = app_state.index_cache.get(
        index_stamp,
        ("groups", choice, tuple(groups)),
        lambda: group_totals(index.connection, choice, list(groups), app_state.prices, max_sessions=_MAX_PRICED),
    )
    return [
        _build_section(group, group_rows, number, cost, app_state.now())
        for (group, group_rows), (number, cost) in zip(groups.items(), totals, strict=True)
    ]


def _row_group(row: SessionListItem, view: str) -> SessionGroup:
    if view == "project":
        return SessionGroup(project=row.listed.project)
    if row.listed.ended is None:
        return SessionGroup()
    ended = row.listed.ended / MS_PER_SECOND
    return SessionGroup(
        low=round(local_midnight(ended) * MS_PER_SECOND), high=round(local_midnight(ended, -1) * MS_PER_SECOND)
    )


def _build_section(
    group: SessionGroup, rows: list[SessionListItem], session_count: int, cost: int | None, now: float
) -> Section:
    note = humanize.count(session_count, "session")
    if group.project is not None:
        title = humanize.project_name(group.project) or "No project"
        href = links().project(path_tag(group.project)) if group.project else ""
        return Section(title, note, rows, cost, href)
    title = "Undated" if group.low is None else humanize.day_name(group.low / MS_PER_SECOND, now)
    return Section(title, note, rows, cost)
