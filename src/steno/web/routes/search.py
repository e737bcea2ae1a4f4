"""Search: matches and matching titles for the session list, and the redirect from /search."""

from typing import Final

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from steno.format.tool_catalogue import tool_facts
from steno.index.database import SessionIndex, database_stamp
from steno.index.search.finder import (
    FETCH_GROWTH,
    FIRST_FETCH,
    Finder,
    HitCounts,
    HitGroup,
    count_hits,
    group_hits,
    group_key,
    ignored_reason,
    open_finder,
)
from steno.index.search.hit_text import Excerpt, HitReader, HitText, best_excerpt, message_offset
from steno.index.search.query_parser import Filter, Query, parse_query
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report import humanize
from steno.report.clock import parse_time_range
from steno.report.session_list import SessionListPage, file_ids_by_title, list_sessions, matching_file_ids
from steno.report.session_lookup import session_keys
from steno.sanitize.html import escape_markup as shown
from steno.web.state.app_state import AppState
from steno.web.templating import links
from steno.web.views.session_list import SessionListParams

SESSIONS_PER_PAGE: Final = 12
"""Sessions per page of search results."""
_HITS_PER_SESSION: Final = 4
_MAX_SESSION_HITS: Final = 200
"""Maximum matches shown for a single session."""
_MAX_TITLES: Final = 3
_MAX_ALL_TITLES: Final = 300
_ICONS: Final = {
    "prompt": "say",
    "answer": "read",
    "thinking": "think",
    "input": "tool",
    "output": "bash",
    "note": "dot",
    "title": "star",
    "summary": "fold",
}
_PROSE_KINDS: Final = frozenset(("prompt", "answer", "thinking", "title", "summary", "note"))
_LOST_MESSAGES: Final = {
    "gone": "Excerpt unavailable: the session file was deleted and not archived.",
    "changed": "Excerpt unavailable: the record changed after it was indexed.",
}


class HitView(msgspec.Struct, frozen=True):
    """A match."""

    location: str
    icon: str
    href: str
    text: Markup
    is_prose: bool
    lost_reason: str = ""


class SessionHits(msgspec.Struct, frozen=True):
    """A session with its matches."""

    group: HitGroup
    key: str
    href: str
    number: int
    when: str
    hits: list[HitView]
    more: int
    all: str


class SearchResults(msgspec.Struct, frozen=True):
    """The search results of a page."""

    total: int
    session_count: int
    """Number of sessions with matches."""
    inside_words: bool
    ignored: list[str]
    sessions: list[SessionHits]
    more: bool
    """Whether the results have further pages."""
    files: tuple[int, ...]
    """File IDs of all sessions with matches, before filters."""


def search_sessions(app_state: AppState, index: SessionIndex, params: SessionListParams) -> SearchResults:
    """Search the sessions that match the filters.

    Raises:
        BadRequest: The query is invalid.
        Unreadable: The text index is damaged.
    """
    query = _limit_to_session(parse_query(params.search_text), params.only_session)
    absent = app_state.index_cache.get(database_stamp(app_state.home.folder), "absent", set[str])
    finder = open_finder(index, lambda text: parse_time_range(text, app_state.now()), absent)
    survey_result = count_hits(finder, query, params.order)
    names, session_files = _session_ids(index, survey_result.counts_by_file)
    names = _filter_files(index, params, names)
    ids = _ordered_sessions(survey_result, names, params.start + SESSIONS_PER_PAGE + 1)
    renderer = _HitRenderer(index, finder, survey_result, params, app_state.now())
    with HitReader(index.connection) as reader:
        sessions = [
            renderer.render_session(reader, [file for file, name in names.items() if name == session_id])
            for session_id in ids[params.start : params.start + SESSIONS_PER_PAGE]
        ]
    return SearchResults(
        total=sum(survey_result.counts_by_file[file] for file in names),
        session_count=len(set(names.values())),
        inside_words=survey_result.is_widened,
        ignored=[ignored_reason(ignored_word) for ignored_word in survey_result.query_forms.ignored],
        sessions=sessions,
        more=len(ids) > params.start + SESSIONS_PER_PAGE,
        files=session_files,
    )


def title_matches(index: SessionIndex, params: SessionListParams) -> tuple[SessionListPage | None, list[int]]:
    """Return the first sessions with matching titles, and the file IDs of all sessions with matching titles.

    Queries with filters that do not apply to titles match no session.

    Raises:
        BadRequest: The query is invalid.
    """
    query = parse_query(params.search_text)
    if params.only_session or params.start or query.filters or not query.required:
        return None, []
    included_words = [[word.text.strip("*").casefold() for word in group] for group in query.required]
    excluded_words = [word.text.strip("*").casefold() for word in query.excluded]

    def matches_title(title: str) -> bool:
        text = title.casefold()
        has = all(any(word in text for word in group) for group in included_words)
        return has and not any(word in text for word in excluded_words)

    files = file_ids_by_title(index.connection, params.choice, matches_title)
    choice = msgspec.structs.replace(params.choice, files=tuple(files))
    limit = _MAX_ALL_TITLES if params.open_facet == "titles" else _MAX_TITLES
    return list_sessions(index.connection, choice, limit=limit), files


def _limit_to_session(query: Query, session: str) -> Query:
    if not session:
        return query
    return msgspec.structs.replace(query, filters=(*query.filters, Filter("session", session)))


def _session_ids(index: SessionIndex, files: dict[int, int]) -> tuple[dict[int, str], tuple[int, ...]]:
    """Return the session ID of each file, and the main files of those sessions.

    A file without a session ID counts as a session.
    """
    rows = index.connection.execute("SELECT file, id, agent, owner FROM sessions").fetchall()
    keys = {file: group_key(file, name or f"@{file}", agent, owner) for file, name, agent, owner in rows}
    names = {file: keys.get(file, f"@{file}") for file in files}
    session_ids = set(names.values())
    session_files = [file for file, _, agent, _ in rows if not agent and keys[file] in session_ids]
    return names, tuple(session_files)


def _filter_files(index: SessionIndex, params: SessionListParams, names: dict[int, str]) -> dict[int, str]:
    """Return the files of the sessions that match the filters."""
    if not params.filter_count:
        return names
    matching = {group_key(file, "", "", file) for file in matching_file_ids(index.connection, params.choice)}
    return {file: name for file, name in names.items() if name in matching}


def _ordered_sessions(survey_result: HitCounts, names: dict[int, str], number: int) -> list[str]:
    """Return the first sessions, ordered by their best-ranked match."""
    files = None if len(names) == len(survey_result.counts_by_file) else names.keys()
    limit = FIRST_FETCH
    total = sum(survey_result.counts_by_file[file] for file in names)
    while names:
        messages = survey_result.first_messages(limit, files)
        ids = list(dict.fromkeys(names[message >> FILE_ID_SHIFT] for message in messages))
        if len(ids) >= number or limit >= total:
            return ids[:number]
        limit *= FETCH_GROWTH
    return []


class _HitRenderer:
    """Renders the results of a search."""

    def __init__(
        self, index: SessionIndex, finder: Finder, survey_result: HitCounts, params: SessionListParams, now: float
    ) -> None:
        self._index = index
        self._finder = finder
        self._survey = survey_result
        self._params = params
        self._now = now

    def render_session(self, reader: HitReader, files: list[int]) -> SessionHits:
        """Return a session with its first matches, or all of them if it is the only session."""
        params = self._params
        messages = self._survey.first_messages(_MAX_SESSION_HITS if params.only_session else _HITS_PER_SESSION, files)
        (group,) = group_hits(self._index.connection, messages)
        number = sum(self._survey.counts_by_file[file] for file in files)
        keys = session_keys(self._index.connection, group.files)
        key = next(iter(keys.values()), group.id)
        return SessionHits(
            group=group,
            key=key,
            href=links().session(key),
            number=number,
            when="" if group.ended is None else humanize.day_name(group.ended / 1000, self._now),
            hits=[
                self._render_hit(text, group, keys.get(text.message >> FILE_ID_SHIFT, key))
                for text in reader.read_texts(messages)
            ],
            more=number - len(messages),
            all=params.url(session=group.id),
        )

    def _render_hit(self, text: HitText, group: HitGroup, key: str) -> HitView:
        excerpt = best_excerpt(text, self._survey.query_forms, self._survey.scope, self._finder.tokenize)
        agent = group.agents.get(text.message >> FILE_ID_SHIFT, "")
        offset = message_offset(text.message)
        href = links().thread(key, agent, at=offset)
        turn = f"turn {text.turn}" if text.turn else "no turn"
        if excerpt is None:
            lost = _LOST_MESSAGES[text.loss_reason or "changed"]
            return HitView(turn, "dot", href, Markup(""), is_prose=True, lost_reason=lost)
        part = excerpt.part
        label = part.tool or part.kind
        where = f"agent · {label}" if agent else f"{turn} · {label}"
        icon = tool_facts(part.tool).icon
        if icon == "tool":
            icon = _ICONS.get(part.kind, "dot")
        return HitView(where, icon, href, _highlighted(excerpt), is_prose=part.kind in _PROSE_KINDS)


def _highlighted(excerpt: Excerpt) -> Markup:
    """Return the excerpt with matches highlighted."""
    parts: list[Markup] = [] if excerpt.is_at_start else [Markup("…")]
    end = 0
    for start, stop in excerpt.marks:
        parts.append(shown(excerpt.text[end:start]))
        parts.append(Markup("<mark>{}</mark>").format(shown(excerpt.text[start:stop])))
        end = stop
    parts.append(shown(excerpt.text[end:]))
    if not excerpt.is_at_end:
        parts.append(Markup("…"))
    return Markup("").join(parts)


def redirect_search(_app_state: AppState, request: Request) -> Response:
    """Redirect to the session list with the query."""
    return RedirectResponse(links().search(**dict(request.query_params)), 303)
