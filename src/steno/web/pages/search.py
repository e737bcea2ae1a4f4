"""Words in every session, and where they were said."""

from typing import Any, Final, get_args

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.index.search.excerpts import Excerpt, excerpt_of
from steno.index.search.finder import Finder, Found, Order, open_finder, why_ignored
from steno.index.search.grouping import Group, groups_of
from steno.index.search.language import Filter, Query, parse
from steno.index.search.reader import Reader, Text, offset_of
from steno.index.state import SHIFT
from steno.report import words
from steno.report.clock import meant
from steno.safe.html import words as shown
from steno.web.house import House
from steno.web.numbers import number_in
from steno.web.paint import links, page

__all__ = ["search"]

_SESSIONS: Final = 12
_EACH: Final = 4
_ALL: Final = 200
"""How many hits of one session are shown when somebody asks for all of them."""
_LONGEST: Final = 2_000
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
_TOOLS: Final = {
    "Bash": "bash",
    "Read": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "write",
    "Grep": "grep",
    "Glob": "grep",
    "WebFetch": "web",
    "WebSearch": "web",
    "Task": "agent",
    "Agent": "agent",
    "TodoWrite": "todo",
}
_PROSE: Final = frozenset(("prompt", "answer", "thinking", "title", "summary", "note"))
_LOST: Final = {
    "gone": "The file is gone and not in the archive: the words cannot be shown.",
    "changed": "The record is not what was indexed; the next sync reads it again.",
}


class _Hit(msgspec.Struct, frozen=True):
    """One place where the words stand."""

    where: str
    icon: str
    href: str
    text: Markup
    prose: bool
    lost: str = ""


class _Session(msgspec.Struct, frozen=True):
    """A session with its hits."""

    group: Group
    key: str
    href: str
    number: int
    when: str
    hits: list[_Hit]
    more: int
    all: str


class _Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    text: str
    order: Order
    session: str
    """The only session to show, with all its hits."""
    start: int


def search(house: House, request: Request) -> Response:
    """Return what was found, or with `part=hits` only that."""
    given = request.query_params
    text = given.get("q", "").strip()
    if not text and given.get("part") != "hits":
        return RedirectResponse(links().sessions(), 303)
    if len(text) > _LONGEST:
        raise BadRequest("too many words to look for", hint=f"at most {_LONGEST:,} letters")
    order = given.get("order", "newest")
    known: dict[str, Order] = {name: name for name in get_args(Order)}
    start = given.get("from", "0")
    asked = _Asked(
        text,
        known.get(order, "newest"),
        given.get("session", ""),
        number_in(start),
    )
    with house.index() as index:
        values = _found(house, index, asked) if text else {"problem": "", "total": 0}
    values |= {"asked": asked, "query": text, "here": "sessions"}
    template = "search-hits.html.j2" if given.get("part") == "hits" else "search.html.j2"
    return HTMLResponse(page(house, template, **values))


def _found(house: House, index: Index, asked: _Asked) -> dict[str, Any]:
    """Return the values of the page. What is wrong with the words is told on it, not instead of it."""
    searched: int = index.connection.execute(
        "SELECT count(*) FROM sessions WHERE agent = ''"
    ).fetchone()[0]
    try:
        query = _within(parse(asked.text), asked.session)
        finder = open_finder(index, lambda text: meant(text, house.now()))
        found = finder.find(query, asked.order)
    except BadRequest as error:
        return {"problem": str(error), "hint": error.hint, "total": 0, "searched": searched}
    groups = groups_of(index.connection, found.messages)
    stop = asked.start + _SESSIONS
    look = _Look(index, finder, found, asked, house.now())
    with Reader(index.connection) as reader:
        shown_ones = [look.session(reader, group) for group in groups[asked.start : stop]]
    return {
        "problem": "",
        "total": len(found.messages),
        "number": len(groups),
        "searched": searched,
        "wide": found.wide,
        "ignored": [why_ignored(word) for word in found.wanted.ignored],
        "sessions": shown_ones,
        "next": links().search(q=asked.text, order=_order(asked), **{"from": stop})
        if len(groups) > stop
        else "",
        "orders": [
            (name, label, links().search(q=asked.text, order="" if name == "newest" else name))
            for name, label in (("newest", "Newest"), ("rank", "Best"), ("oldest", "Oldest"))
        ],
    }


def _order(asked: _Asked) -> str:
    return "" if asked.order == "newest" else asked.order


def _within(query: Query, session: str) -> Query:
    if not session:
        return query
    return msgspec.structs.replace(query, filters=(*query.filters, Filter("session", session)))


class _Look:
    """Shows what one search found."""

    def __init__(
        self, index: Index, finder: Finder, found: Found, asked: _Asked, now: float
    ) -> None:
        self._index = index
        self._finder = finder
        self._found = found
        self._asked = asked
        self._now = now

    def session(self, reader: Reader, group: Group) -> _Session:
        """Return a session with its first hits, or with all if it alone was asked for."""
        asked = self._asked
        messages = group.messages[: _ALL if asked.session else _EACH]
        key = _key(self._index, group)
        return _Session(
            group=group,
            key=key,
            href=links().session(key),
            number=len(group.messages),
            when="" if group.ended is None else words.day(group.ended / 1000, self._now),
            hits=[self._hit(text, group, key) for text in reader.texts(messages)],
            more=len(group.messages) - len(messages),
            all=links().search(q=asked.text, order=_order(asked), session=group.id),
        )

    def _hit(self, text: Text, group: Group, key: str) -> _Hit:
        excerpt = excerpt_of(text, self._found.wanted, self._found.scope, self._finder.cut)
        agent = group.agents.get(text.message >> SHIFT, "")
        offset = offset_of(text.message)
        href = links().agent(key, agent, at=offset) if agent else links().session(key, at=offset)
        turn = f"turn {text.turn}" if text.turn else "no turn"
        if excerpt is None:
            lost = _LOST[text.lost or "changed"]
            return _Hit(turn, "dot", href, Markup(""), prose=True, lost=lost)
        part = excerpt.part
        what = part.tool or part.kind
        where = f"agent · {what}" if agent else f"{turn} · {what}"
        icon = _TOOLS.get(part.tool, _ICONS.get(part.kind, "dot"))
        return _Hit(where, icon, href, _marked(excerpt), prose=part.kind in _PROSE)


def _key(index: Index, group: Group) -> str:
    """Return what addresses call a session: with its number where several have its id."""
    rows = index.connection.execute(
        "SELECT file FROM sessions WHERE id = ? AND agent = ''", (group.id,)
    ).fetchall()
    mine = next((file for file in group.files if (file,) in rows), None)
    return f"{group.id}~{mine}" if len(rows) > 1 and mine is not None else group.id


def _marked(excerpt: Excerpt) -> Markup:
    """Return the words with what was looked for marked in them."""
    made: list[Markup] = [] if excerpt.begins else [Markup("…")]
    end = 0
    for start, stop in excerpt.marks:
        made.append(shown(excerpt.text[end:start]))
        made.append(Markup("<mark>{}</mark>").format(shown(excerpt.text[start:stop])))
        end = stop
    made.append(shown(excerpt.text[end:]))
    if not excerpt.ends:
        made.append(Markup("…"))
    return Markup("").join(made)
