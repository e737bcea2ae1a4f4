"""Facets of the session list: filters with counts and the links that toggle them."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.session_list import (
    FEATURE_SQL,
    SIZE_RANGES,
    FacetName,
    FacetValues,
    SessionFeature,
    SessionFilter,
    SizeClass,
    StatusFilter,
    ValueCount,
    count_by_feature,
    count_by_size,
    count_by_status,
    count_by_step_records,
    facet_values,
    file_ids_at,
    list_sessions,
)
from steno.web.state.app_state import AppState
from steno.web.templating import links
from steno.web.urls import path_tag
from steno.web.views.session_list import SessionListParams, range_start

_MAX_VISIBLE: Final = 6
"""How many values of a facet are shown before `more`."""
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
    "waiting": ("clock", "Left waiting"),
    "finished": ("check", "Finished"),
    "interrupted": ("stop", "Interrupted"),
    "failed": ("cross", "Ended in an error"),
    "damaged": ("warn", "Damaged"),
}
"""How sessions stand, in the words of `steno ls`; and whether something of them is lost."""
_SIZE_LABELS: Final[dict[SizeClass, str]] = {
    "small": "Under 100 KB",
    "medium": "100 KB to 1 MB",
    "large": "1 to 10 MB",
    "huge": "Over 10 MB",
}


class Facet(msgspec.Struct, frozen=True):
    """Something to filter by: a link that turns it on, or off again."""

    name: str
    number: int
    href: str
    on: bool
    icon: str = ""


class FacetCounts(msgspec.Struct, frozen=True):
    """How many sessions there are of each kind, beside what is chosen."""

    features: dict[SessionFeature, int]
    since_counts: list[int]
    """Any time, then since each of the times."""
    statuses: dict[str, int]
    sizes: dict[SizeClass, int]
    lengths: dict[int, int]
    """How many have at least so many step records."""
    listed: int
    """How many the list rule shows."""
    values: dict[FacetName, FacetValues]


def count_facets(connection: sqlite3.Connection, choice: SessionFilter, range_starts: Sequence[int]) -> FacetCounts:
    """Count; this is most of the work of the page, and the same until the index changes."""
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
    """Return what is asked for, of some sessions only, by the numbers of their files."""
    choice = msgspec.structs.replace(params.choice, among=tuple(files))
    return msgspec.structs.replace(params, choice=choice)


def build_facets(
    app_state: AppState,
    index: SessionIndex,
    params: SessionListParams,
    cached: Callable[[object, Callable[[], FacetCounts]], FacetCounts],
) -> Facets:
    """Return the facets of a list; `keep` keeps what was counted."""
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
    """Return the values of a column; only a project may be none and be chosen all the same."""
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
    """Return the first values, if there are many; what is chosen is always among them."""
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
    """Return a facet with its first values, and the address of all."""
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
    """Return the filters by step records: lines of `steps.jsonl`, and the list rule over them."""
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
