"""`/api/v1/search`: messages that match a query, in order of time."""

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UnsetType

from steno.errors import BadRequest, NotFound
from steno.index.database import ARRAY_SQL, SessionIndex, database_stamp, json_array
from steno.index.search.finder import (
    FETCH_GROWTH,
    FIRST_FETCH,
    Finder,
    HitCounts,
    count_hits,
    ignored_reason,
    open_finder,
)
from steno.index.search.hit_text import Excerpt as Found
from steno.index.search.hit_text import HitReader, HitText, best_excerpt, message_offset
from steno.index.search.query_parser import Filter, Query, parse_query
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.clock import iso_time_from_ms, parse_time_range
from steno.report.session_lookup import session_keys
from steno.web.api.parameters import (
    FIRST_PAGE,
    Paged,
    SearchParameters,
    make_cursor,
    period_end,
    period_start,
    read_cursor,
    require_integers,
)
from steno.web.api.schemas import Excerpt, Hit, SearchResult, TextRange
from steno.web.state.app_state import AppState

_SESSIONS_SQL: Final = (
    "SELECT a.file, coalesce(s.id, a.id), coalesce(s.title, ''), coalesce(s.project, a.project), "
    "a.agent FROM sessions a LEFT JOIN sessions s ON s.file = a.owner "
    f"WHERE a.file IN {ARRAY_SQL}"
)
_UNDATED: Final = 1 << 62
_OrderKey: TypeAlias = tuple[int, int]
"""Sort key of a message: time or rank, then message ID."""


def search(app_state: AppState, _path: dict[str, str], parameters: SearchParameters) -> SearchResult:
    """Return a page of search results."""
    query = _search_query(parameters, app_state.now())
    position = read_cursor("search", parameters, 2)
    after = None if position is None else (require_integers(position)[0], require_integers(position)[1])
    absent = app_state.index_cache.get(database_stamp(app_state.home.folder), "absent", set[str])
    with app_state.index() as index:
        finder = open_finder(index, lambda text: parse_time_range(text, app_state.now()), absent)
        try:
            survey_result = count_hits(finder, query, parameters.order)
        except BadRequest as error:
            raise BadRequest(f"q: {error}", hint=error.hint) from error
        files = _files_with_hits(app_state, index, parameters, survey_result)
        page, more = _hit_page(index, survey_result, files, parameters, after)
        hits = _build_hits(index, finder, survey_result, [message for _, message in page])
        return SearchResult(
            query=parameters.q,
            hits=hits,
            total=sum(survey_result.counts_by_file[file] for file in files),
            sessions=_session_count(index, files),
            inside_words=survey_result.is_widened,
            ignored=[ignored_reason(ignored_word) for ignored_word in survey_result.query_forms.ignored],
            next_cursor=make_cursor("search", parameters, *page[-1]) if more else None,
        )


def _search_query(parameters: SearchParameters, now: float) -> Query:
    """Return the query with the filters of the other parameters.

    Raises:
        BadRequest: The query or a time is invalid.
    """
    period_start("since", parameters.since, now)
    period_end("until", parameters.until, now)
    try:
        query = parse_query(parameters.q)
    except BadRequest as error:
        raise BadRequest(f"q: {error}", hint=error.hint) from error
    more: list[Filter] = []
    for name in ("project", "since", "until"):
        value: str | UnsetType = getattr(parameters, name)
        if isinstance(value, str):
            more.append(Filter(name, value))
    return msgspec.structs.replace(query, filters=(*query.filters, *more))


def _files_with_hits(
    app_state: AppState, index: SessionIndex, parameters: SearchParameters, survey_result: HitCounts
) -> frozenset[int]:
    """Return the files with matches, optionally only those of one session and its sub-agents.

    Raises:
        BadRequest: The session does not exist.
    """
    if not isinstance(parameters.session, str):
        return frozenset(survey_result.counts_by_file)
    try:
        session_ref = app_state.session_ref(index, parameters.session)
    except NotFound as error:
        raise BadRequest(f"session: {error}", hint=error.hint) from error
    rows = index.connection.execute("SELECT file FROM sessions WHERE owner = ?", (session_ref.file,))
    return frozenset(file for (file,) in rows if file in survey_result.counts_by_file)


def _hit_page(
    index: SessionIndex,
    survey_result: HitCounts,
    files: frozenset[int],
    parameters: SearchParameters,
    after: _OrderKey | None,
) -> tuple[list[_OrderKey], bool]:
    """Return the keys of the messages after a position, and whether more messages follow."""
    total, limit = sum(survey_result.counts_by_file[file] for file in files), parameters.limit
    file_filter = None if len(files) == len(survey_result.counts_by_file) else files
    fetch_count = max(FIRST_FETCH, 2 * limit)
    while True:
        messages = survey_result.first_messages(fetch_count, file_filter) if total else []
        is_complete = len(messages) < fetch_count or fetch_count >= total
        keys = _order_keys(index, parameters, messages)
        later = keys[_page_start(parameters, keys, after, is_complete=is_complete) :]
        # Messages with the time at which the search stopped may be incomplete.
        settled = later if is_complete else [key for key in later if key[0] != keys[-1][0]]
        if parameters.order == "rank" and not is_complete:
            settled = later
        if is_complete or len(settled) > limit:
            return settled[:limit], len(settled) > limit
        fetch_count *= FETCH_GROWTH


def _order_keys(index: SessionIndex, parameters: Paged, messages: list[int]) -> list[_OrderKey]:
    """Return the keys of messages in order. Skip messages that are no longer indexed."""
    order = getattr(parameters, "order", "newest")
    if order == "rank":
        return list(enumerate(messages))
    times: dict[int, int | None] = dict(
        index.connection.execute(f"SELECT id, time FROM messages WHERE id IN {ARRAY_SQL}", (json_array(messages),))
    )
    sign = 1 if order == "oldest" else -1
    return sorted(
        (_UNDATED if (time := times[message]) is None else sign * time, message)
        for message in messages
        if message in times
    )


def _page_start(
    parameters: SearchParameters, keys: list[_OrderKey], after: _OrderKey | None, *, is_complete: bool
) -> int:
    """Return the index of the first message of the page.

    Raises:
        BadRequest: With order by rank, the previous message is no longer found.
    """
    if after is None:
        return 0
    if parameters.order != "rank":
        return sum(key <= after for key in keys)
    position = next((at for at, (_, message) in enumerate(keys) if message == after[1]), None)
    if position is None and is_complete:
        raise BadRequest("cursor: expired, because the order by rank has changed", hint=FIRST_PAGE)
    return len(keys) if position is None else position + 1


def _session_count(index: SessionIndex, files: frozenset[int]) -> int:
    rows = index.connection.execute("SELECT file, owner FROM sessions")
    return len({owner or file for file, owner in rows if file in files})


class _HitSession(msgspec.Struct, frozen=True):
    """The session of a file."""

    key: str
    id: str
    title: str
    project: str
    agent: str


def _hit_sessions(index: SessionIndex, messages: list[int]) -> dict[int, _HitSession]:
    """Return the sessions of some messages, by file ID."""
    files = sorted({message >> FILE_ID_SHIFT for message in messages})
    keys = session_keys(index.connection, files)
    rows = index.connection.execute(_SESSIONS_SQL, (json_array(files),))
    return {
        file: _HitSession(keys.get(file) or name, name, title, project, agent)
        for file, name, title, project, agent in rows
    }


def _build_hits(index: SessionIndex, finder: Finder, survey_result: HitCounts, messages: list[int]) -> list[Hit]:
    hit_sessions = _hit_sessions(index, messages)
    with HitReader(index.connection) as reader:
        return [
            _build_hit(text, hit_sessions[text.message >> FILE_ID_SHIFT], _hit_excerpt(text, finder, survey_result))
            for text in reader.read_texts(messages)
            if text.message >> FILE_ID_SHIFT in hit_sessions
        ]


def _hit_excerpt(text: HitText, finder: Finder, survey_result: HitCounts) -> Found | None:
    return best_excerpt(text, survey_result.query_forms, survey_result.scope, finder.tokenize)


def _build_hit(text: HitText, hit_session: _HitSession, excerpt: Found | None) -> Hit:
    facts: dict[str, Any] = {"kind": None, "tool": None, "failed": False, "excerpt": None}
    if excerpt is not None:
        facts = {
            "kind": excerpt.part.kind,
            "tool": excerpt.part.tool or None,
            "failed": excerpt.part.failed,
            "excerpt": Excerpt(
                text=excerpt.text,
                matches=[TextRange(start=start, end=end) for start, end in excerpt.marks],
                starts_text=excerpt.is_at_start,
                ends_text=excerpt.is_at_end,
            ),
        }
    return Hit(
        session=hit_session.key,
        session_id=hit_session.id,
        title=hit_session.title,
        project=hit_session.project,
        agent=hit_session.agent or None,
        turn=text.turn,
        uuid=text.uuid or None,
        offset=message_offset(text.message),
        time=iso_time_from_ms(text.time),
        lost=(text.loss_reason or "changed") if excerpt is None else None,
        archived=text.archived,
        **facts,
    )
