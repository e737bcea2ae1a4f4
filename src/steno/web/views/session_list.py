"""Session list: URL parameters, rows, sections by day or project, and filters with counts (facets)."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    FEATURE_SQL,
    SIZE_RANGES,
    SORT_SQL,
    STATUSES,
    FacetName,
    FacetValues,
    SessionFeature,
    SessionFilter,
    SessionGroup,
    SessionRow,
    SessionSort,
    SizeClass,
    StatusFilter,
    ValueCount,
    activity_slices,
    count_by_feature,
    count_by_size,
    count_by_status,
    count_by_step_records,
    facet_values,
    file_ids_at,
    group_totals,
    list_sessions,
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
"""Maximum characters of a query."""
_MAX_VALUE_LENGTH: Final = 300
_MAX_STEPS: Final = 1_000_000_000
_FILTERS: Final = (*("project", "branch", "model", "status", "size", "since", "has", "min_steps", "listed"),)
_KNOWN: Final = ("q", *_FILTERS, "sort", "view", "order")


class SessionListParams(msgspec.Struct, frozen=True):
    """Parameters of the list URL."""

    choice: SessionFilter
    query: dict[str, str]
    """Query parameters without the position in the list."""
    view: str
    cursor: tuple[int, int] | None
    open_facet: str
    """The facet that is shown in full."""
    search_text: str = ""
    """The search query."""
    order: SearchOrder = "newest"
    only_session: str = ""
    """Key of the only session to show, with all its matches."""
    start: int = 0
    """Number of sessions with matches to skip."""

    @property
    def filter_count(self) -> int:
        """Return the number of active filters. Ignore values that match no session."""
        choice = self.choice
        values = (choice.project, choice.branch, choice.model, choice.status, choice.size)
        filters_set = sum(value is not None for value in (*values, choice.since))
        return filters_set + bool(choice.has) + (choice.min_steps > 0) + choice.listed

    def url(self, **changes: str | int) -> str:
        """Return the URL of the first page with changed parameters."""
        return links().sessions(**{**self.query, **changes})


def session_list_params(
    index: SessionIndex, request: Request, now: float, damaged: Iterable[str] = frozenset()
) -> SessionListParams:
    """Return the parameters of a request for the list; `damaged` are paths of damaged sessions.

    Raises:
        BadRequest: The position in the list is invalid, or the query is too long.
        NotFound: The project does not exist.
    """
    query_params = request.query_params
    query = {name: query_params[name] for name in _KNOWN if query_params.get(name, "").strip()}
    if len(query.get("q", "")) > MAX_QUERY_LENGTH:
        raise BadRequest("query is too long", hint=f"Use at most {MAX_QUERY_LENGTH:,} characters.")
    for name, value in query.items():
        if name != "q" and len(value) > _MAX_VALUE_LENGTH:
            raise BadRequest(f"{name} is too long", hint=f"Use at most {_MAX_VALUE_LENGTH} characters.")
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
    """Return the start of `today`, `week` or `month` in milliseconds; None for other names."""
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
    """Return the minimum number of step records; 0 if the text is not a number."""
    return min(int(text), _MAX_STEPS) if text.isascii() and text.isdecimal() else 0


def _parse_order(name: str) -> SearchOrder:
    by_name: dict[str, SearchOrder] = {order: order for order in get_args(SearchOrder)}
    return by_name.get(name, "newest")


def _parse_cursor(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise BadRequest(f"invalid position in the list: {text!r}")
    return int(match[1]), int(match[2])


_CONTEXT_WARNING_SHARE: Final = 0.8
_NO_ACTIVITY: Final = CurrentStep()


class CurrentActivity(msgspec.Struct, frozen=True):
    """The current activity of a live session."""

    icon: str
    verb: str
    subject: str = ""
    share: int | None = None
    """Used share of the context window, in percent."""
    meter: Markup = Markup("")


class SessionListItem(msgspec.Struct, frozen=True):
    """A session as a list row."""

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
    """Yield sessions as rows; `dated` adds dates, for lists without date headings."""
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
    """Return the time of day, or the date if it is neither today nor shown in the heading."""
    if ended is None:
        return ""
    if local_midnight(ended) >= local_midnight(now, 0 if dated else 6):
        return humanize.time_of_day(ended)
    return humanize.short_day_name(ended, now)


# Activity


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
    icon, verb = ("clock", "Waiting for input") if state == "waiting" else ("think", "Thinking")
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
    return "Waiting for approval" if state == "waiting" else step.verb


_MAX_PRICED: Final = 2_000
"""Maximum sessions whose cost is summed for the headings of one page."""


class Section(msgspec.Struct, frozen=True):
    """Rows under a heading."""

    title: str
    note: str
    rows: list[SessionListItem]
    cost: int | None
    href: str = ""


def session_sections(
    app_state: AppState, index: SessionIndex, choice: SessionFilter, rows: Iterable[SessionListItem], view: str
) -> list[Section]:
    """Return rows by heading. The counts in headings include sessions that are not on the page."""
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


_MAX_VISIBLE: Final = 6
"""Number of facet values shown before "more"."""
_FEATURE_LABELS: Final[dict[SessionFeature, tuple[str, str]]] = {
    "failed": ("warn", "Failed steps"),
    "agents": ("agent", "Sub-agents"),
    "compacted": ("fold", "Compactions"),
    "abandoned": ("rewind", "Abandoned branches"),
    "archived": ("archive", "Archived only"),
    "pr": ("branch", "Pull requests"),
    "answered": ("say", "Text answers"),
}
_TIME_RANGES: Final = (("", "Any time"), ("today", "Today"), ("week", "This week"), ("month", "This month"))


_STATUS_LABELS: Final[dict[StatusFilter, tuple[str, str]]] = {
    "live": ("run", "Live"),
    "waiting": ("clock", "Waiting for input"),
    "finished": ("check", "Finished"),
    "interrupted": ("stop", "Interrupted"),
    "failed": ("cross", "Failed"),
    "damaged": ("warn", "Damaged"),
}
"""Labels of status filters, as in `steno ls`."""
_SIZE_LABELS: Final[dict[SizeClass, str]] = {
    "small": "Under 100 KB",
    "medium": "100 KB to 1 MB",
    "large": "1 to 10 MB",
    "huge": "Over 10 MB",
}


class Facet(msgspec.Struct, frozen=True):
    """A filter value: a link that turns it on or off."""

    name: str
    number: int
    href: str
    on: bool
    icon: str = ""


class FacetCounts(msgspec.Struct, frozen=True):
    """Number of sessions per filter value, given the other filters."""

    features: dict[SessionFeature, int]
    since_counts: list[int]
    """Number of sessions of any time, then since each range start."""
    statuses: dict[str, int]
    sizes: dict[SizeClass, int]
    lengths: dict[int, int]
    """Number of sessions by minimum number of step records."""
    listed: int
    """Number of sessions, excluding short ones."""
    values: dict[FacetName, FacetValues]


def count_facets(connection: sqlite3.Connection, choice: SessionFilter, range_starts: Sequence[int]) -> FacetCounts:
    """Count sessions per filter value. Slow, so cached until the index changes."""
    features, since = count_by_feature(connection, choice, range_starts)
    anytime = msgspec.structs.replace(choice, since=None)
    since = [list_sessions(connection, anytime, limit=0).total, *since]
    names: tuple[FacetName, ...] = ("project", "model", "branch")
    values: dict[FacetName, FacetValues] = {name: facet_values(connection, choice, name) for name in names}
    statuses, sizes = count_by_status(connection, choice), count_by_size(connection, choice)
    lengths, listed = count_by_step_records(connection, choice)
    return FacetCounts(features, since, statuses, sizes, lengths, listed, values)


Facets = list[tuple[str, list[Facet], str]]


def limit_to_files(params: SessionListParams, files: Sequence[int]) -> SessionListParams:
    """Return the parameters, limited to the sessions with some file IDs."""
    choice = msgspec.structs.replace(params.choice, among=tuple(files))
    return msgspec.structs.replace(params, choice=choice)


def build_facets(
    app_state: AppState,
    index: SessionIndex,
    params: SessionListParams,
    cached: Callable[[object, Callable[[], FacetCounts]], FacetCounts],
) -> Facets:
    """Return the facets of a list; `cached` caches the counts."""
    choice = params.choice
    range_starts = tuple(range_start(name, app_state.now()) or 0 for name, _ in _TIME_RANGES if name)
    cache_key = "facets", msgspec.structs.replace(choice, sort="newest"), range_starts
    counts = cached(cache_key, lambda: count_facets(index.connection, choice, range_starts))
    facets = [
        _shortened_facet("Project", "project", counts, params),
        ("Last active", _time_facets(params.query, counts.since_counts), ""),
        ("Status", _status_facets(app_state, index, params, counts.statuses), ""),
        ("Has", _feature_facets(params, counts.features), ""),
        _shortened_facet("Model", "model", counts, params),
        _shortened_facet("Branch", "branch", counts, params),
        ("Size", _size_facets(params, counts.sizes), ""),
        ("Step records", _step_count_facets(params, counts), ""),
    ]
    return [facet for facet in facets if facet[1]]


def _column_facets(counts: FacetCounts, params: SessionListParams, name: FacetName) -> list[Facet]:
    """Return the facets of a column. An empty value can be selected only for projects."""
    chosen = getattr(params.choice, name)
    values = [value for value in counts.values[name].values if value.name or name == "project"]
    visible = values if params.open_facet == name else _first_values(values, chosen)
    names = _display_names([each.name for each in values], name)
    return [
        Facet(
            names.get(each.name, each.name) or "no project",
            each.number,
            _toggle_url(
                params.query, name, path_tag(each.name) if name == "project" else each.name, on=each.name == chosen
            ),
            each.name == chosen,
        )
        for each in visible
    ]


def _first_values(values: list[ValueCount], chosen: str | None) -> list[ValueCount]:
    """Return the first values of a long list, always including the selected value."""
    if len(values) <= _MAX_VISIBLE + 1:
        return values
    return values[:_MAX_VISIBLE] + [value for value in values[_MAX_VISIBLE:] if value.name == chosen]


def _display_names(values: list[str], name: FacetName) -> dict[str, str]:
    if name == "project":
        return humanize.project_names(values)
    return {value: humanize.model_name(value) for value in values} if name == "model" else {}


def _shortened_facet(
    title: str, name: FacetName, counts: FacetCounts, params: SessionListParams
) -> tuple[str, list[Facet], str]:
    """Return a facet with its first values, and the URL of all values."""
    visible = _column_facets(counts, params, name)
    values = counts.values[name].values
    more = len(visible) < sum(bool(value.name) or name == "project" for value in values)
    return title, visible, links().sessions(**{**params.query, "open": name}) if more else ""


def _time_facets(query: dict[str, str], numbers: list[int]) -> list[Facet]:
    now = query.get("since", "")
    return [
        Facet(label, number, links().sessions(**{**query, "since": name}), name == now)
        for (name, label), number in zip(_TIME_RANGES, numbers, strict=True)
    ]


def _status_facets(
    app_state: AppState, index: SessionIndex, params: SessionListParams, statuses: dict[str, int]
) -> list[Facet]:
    chosen = params.choice.status
    numbers = dict(statuses)
    if damaged := sorted(app_state.health_monitor.damaged_paths):
        choice = msgspec.structs.replace(params.choice, status="damaged", files=file_ids_at(index.connection, damaged))
        numbers["damaged"] = list_sessions(index.connection, choice, limit=0).total
    return [
        Facet(
            label,
            numbers.get(name, 0),
            _toggle_url(params.query, "status", name, on=name == chosen),
            name == chosen,
            icon,
        )
        for name, (icon, label) in _STATUS_LABELS.items()
        if numbers.get(name) or name == chosen
    ]


def _size_facets(params: SessionListParams, numbers: dict[SizeClass, int]) -> list[Facet]:
    chosen = params.choice.size
    return [
        Facet(
            _SIZE_LABELS[name],
            numbers[name],
            _toggle_url(params.query, "size", name, on=name == chosen),
            name == chosen,
        )
        for name in SIZE_RANGES
        if numbers[name] or name == chosen
    ]


def _step_count_facets(params: SessionListParams, counts: FacetCounts) -> list[Facet]:
    """Return the filters by number of step records, and the filter for short sessions."""
    choice, query = params.choice, params.query
    facets = [
        Facet(
            f"{number:,} or more",
            count,
            _toggle_url(query, "min_steps", str(number), on=number == choice.min_steps),
            number == choice.min_steps,
        )
        for number, count in counts.lengths.items()
        if count or number == choice.min_steps
    ]
    if counts.listed or choice.listed:
        href = _toggle_url(query, "listed", "1", on=choice.listed)
        facets.append(Facet("Hide short sessions", counts.listed, href, choice.listed))
    return facets


def _feature_facets(params: SessionListParams, counts: dict[SessionFeature, int]) -> list[Facet]:
    choice = params.choice
    return [
        Facet(label, counts[name], _toggle_feature_url(params.query, choice, name), name in choice.has, icon)
        for name, (icon, label) in _FEATURE_LABELS.items()
        if counts[name] or name in choice.has
    ]


def _toggle_url(query: dict[str, str], name: str, value: str, *, on: bool) -> str:
    return links().sessions(**{**query, name: "" if on else value})


def _toggle_feature_url(query: dict[str, str], choice: SessionFilter, name: SessionFeature) -> str:
    features = [feature for feature in FEATURE_SQL if (feature in choice.has) != (feature == name)]
    return links().sessions(**{**query, "has": ",".join(features)})
