"""`/api/v1/search`: messages in which words were found, in order of time."""

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UnsetType

from steno.errors import BadRequest, NotFound
from steno.index.database import stamp_of
from steno.index.opened import Index
from steno.index.search.excerpts import Excerpt as Found
from steno.index.search.excerpts import excerpt_of
from steno.index.search.finder import Finder, open_finder, why_ignored
from steno.index.search.language import Filter, Query, parse
from steno.index.search.reader import Reader, Text, offset_of
from steno.index.search.survey import Survey, survey
from steno.index.state import SHIFT
from steno.report.clock import meant
from steno.report.keys import keys_of
from steno.web.api.cursors import FIRST_PAGE, integers, make_cursor, read_cursor
from steno.web.api.filters import end_of, iso, start_of
from steno.web.api.models.search import Excerpt, Hit, SearchResult, TextRange
from steno.web.api.parameters import Paged, SearchParameters
from steno.web.house import House

_FIRST: Final = 256
_MORE: Final = 8
_PLACES: Final = (
    "SELECT a.file, coalesce(s.id, a.id), coalesce(s.title, ''), coalesce(s.project, a.project), "
    "a.agent FROM sessions a LEFT JOIN sessions s ON s.file = a.owner "
    "WHERE a.file IN (SELECT value FROM json_each(?))"
)
_UNDATED: Final = 1 << 62
_Key: TypeAlias = tuple[int, int]
"""Where a message stands in the order: by its time, then by its number."""


def search_page(house: House, _path: dict[str, str], parameters: SearchParameters) -> SearchResult:
    """Return a page of hits."""
    query = _query(parameters, house.now())
    place = read_cursor("search", parameters, 2)
    after = None if place is None else (integers(place)[0], integers(place)[1])
    absent = house.kept.get(stamp_of(house.home.folder), "absent", set[str])
    with house.index() as index:
        finder = open_finder(index, lambda text: meant(text, house.now()), absent)
        try:
            found = survey(finder, query, parameters.order)
        except BadRequest as error:
            raise BadRequest(f"q: {error}", hint=error.hint) from error
        files = _files(house, index, parameters, found)
        page, more = _page(index, found, files, parameters, after)
        hits = _hits(index, finder, found, [message for _, message in page])
        return SearchResult(
            query=parameters.q,
            hits=hits,
            total=sum(found.files[file] for file in files),
            sessions=_session_count(index, files),
            inside_words=found.wide,
            ignored=[why_ignored(word) for word in found.wanted.ignored],
            next_cursor=make_cursor("search", parameters, *page[-1]) if more else None,
        )


def _query(parameters: SearchParameters, now: float) -> Query:
    """Return the words of a query with the filters of the other parameters.

    Raises:
        BadRequest: the words cannot be searched, or a time means nothing.
    """
    start_of("since", parameters.since, now)
    end_of("until", parameters.until, now)
    try:
        query = parse(parameters.q)
    except BadRequest as error:
        raise BadRequest(f"q: {error}", hint=error.hint) from error
    more: list[Filter] = []
    for name in ("project", "since", "until"):
        value: str | UnsetType = getattr(parameters, name)
        if isinstance(value, str):
            more.append(Filter(name, value))
    return msgspec.structs.replace(query, filters=(*query.filters, *more))


def _files(
    house: House, index: Index, parameters: SearchParameters, found: Survey
) -> frozenset[int]:
    """Return the files with hits, of one session with its sub-agents if only that is asked for.

    Raises:
        BadRequest: there is no such session.
    """
    if not isinstance(parameters.session, str):
        return frozenset(found.files)
    try:
        place = house.place(index, parameters.session)
    except NotFound as error:
        raise BadRequest(f"session: {error}", hint=error.hint) from error
    rows = index.connection.execute("SELECT file FROM sessions WHERE owner = ?", (place.file,))
    return frozenset(file for (file,) in rows if file in found.files)


def _page(
    index: Index,
    found: Survey,
    files: frozenset[int],
    parameters: SearchParameters,
    after: _Key | None,
) -> tuple[list[_Key], bool]:
    """Return the keys of the messages behind a place, and whether there are more behind them."""
    total, limit = sum(found.files[file] for file in files), parameters.limit
    some = None if len(files) == len(found.files) else files
    number = max(_FIRST, 2 * limit)
    while True:
        messages = found.first(number, some) if total else []
        whole = len(messages) < number or number >= total
        keys = _keys(index, parameters, messages)
        later = keys[_behind(parameters, keys, after, whole=whole) :]
        # Messages of the time that the engine stopped at may be missing.
        settled = later if whole else [key for key in later if key[0] != keys[-1][0]]
        if parameters.order == "rank" and not whole:
            settled = later
        if whole or len(settled) > limit:
            return settled[:limit], len(settled) > limit
        number *= _MORE


def _keys(index: Index, parameters: Paged, messages: list[int]) -> list[_Key]:
    """Return the keys of messages in order; those that are not in the index any more are left out."""
    order = getattr(parameters, "order", "newest")
    if order == "rank":
        return list(enumerate(messages))
    times: dict[int, int | None] = dict(
        index.connection.execute(
            "SELECT id, time FROM messages WHERE id IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(messages).decode(),),
        )
    )
    sign = 1 if order == "oldest" else -1
    return sorted(
        (_UNDATED if (time := times[each]) is None else sign * time, each)
        for each in messages
        if each in times
    )


def _behind(
    parameters: SearchParameters, keys: list[_Key], after: _Key | None, *, whole: bool
) -> int:
    """Return where the page begins.

    Raises:
        BadRequest: in order of rank, the message that it follows is not found any more.
    """
    if after is None:
        return 0
    if parameters.order != "rank":
        return sum(key <= after for key in keys)
    at = next((at for at, (_, message) in enumerate(keys) if message == after[1]), None)
    if at is None and whole:
        raise BadRequest(
            "cursor: no longer valid, the order by rank has changed",
            hint=FIRST_PAGE,
        )
    return len(keys) if at is None else at + 1


def _session_count(index: Index, files: frozenset[int]) -> int:
    rows = index.connection.execute("SELECT file, owner FROM sessions")
    return len({owner or file for file, owner in rows if file in files})


class _Place(msgspec.Struct, frozen=True):
    """The session that a file belongs to."""

    key: str
    id: str
    title: str
    project: str
    agent: str


def _places(index: Index, messages: list[int]) -> dict[int, _Place]:
    """Return the sessions of the files that some messages are in."""
    files = sorted({message >> SHIFT for message in messages})
    keys = keys_of(index.connection, files)
    rows = index.connection.execute(_PLACES, (msgspec.json.encode(files).decode(),))
    return {
        file: _Place(keys.get(file) or name, name, title, project, agent)
        for file, name, title, project, agent in rows
    }


def _hits(index: Index, finder: Finder, found: Survey, messages: list[int]) -> list[Hit]:
    places = _places(index, messages)
    with Reader(index.connection) as reader:
        return [
            _hit(text, places[text.message >> SHIFT], _excerpt(text, finder, found))
            for text in reader.texts(messages)
            if text.message >> SHIFT in places
        ]


def _excerpt(text: Text, finder: Finder, found: Survey) -> Found | None:
    return excerpt_of(text, found.wanted, found.scope, finder.cut)


def _hit(text: Text, place: _Place, found: Found | None) -> Hit:
    facts: dict[str, Any] = {"kind": None, "tool": None, "failed": False, "excerpt": None}
    if found is not None:
        facts = {
            "kind": found.part.kind,
            "tool": found.part.tool or None,
            "failed": found.part.failed,
            "excerpt": Excerpt(
                text=found.text,
                matches=[TextRange(start=start, end=end) for start, end in found.marks],
                starts_text=found.begins,
                ends_text=found.ends,
            ),
        }
    return Hit(
        session=place.key,
        session_id=place.id,
        title=place.title,
        project=place.project,
        agent=place.agent or None,
        turn=text.turn,
        uuid=text.uuid or None,
        offset=offset_of(text.message),
        time=iso(text.time),
        lost=(text.lost or "changed") if found is None else None,
        archived=text.archived,
        **facts,
    )
