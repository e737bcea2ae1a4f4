"""What was found in sessions as values for a page: excerpts under the sessions they stand in."""

from typing import Final

import msgspec
from markupsafe import Markup

from steno.format.tool_catalogue import facts_of
from steno.index.database import stamp_of
from steno.index.opened import Index
from steno.index.search.excerpts import Excerpt, excerpt_of
from steno.index.search.finder import Finder, open_finder, why_ignored
from steno.index.search.grouping import Group, groups_of, key_of_group
from steno.index.search.language import Filter, Query, parse
from steno.index.search.reader import Reader, Text, offset_of
from steno.index.search.survey import Survey, survey
from steno.index.state import SHIFT
from steno.report import words
from steno.report.clock import meant
from steno.report.keys import keys_of
from steno.report.listing import Listing, files_of, list_sessions, titled
from steno.safe.html import words as shown
from steno.web.house import House
from steno.web.listed.asked import Asked
from steno.web.paint import links

__all__ = ["SESSIONS", "Finds", "Hit", "Session", "called", "look_for"]

SESSIONS: Final = 12
"""How many are shown at once."""
_EACH: Final = 4
_ALL: Final = 200
"""How many hits of one session are shown when somebody asks for all of them."""
_TITLES: Final = 3
_ALL_TITLES: Final = 300
_FIRST: Final = 256
_MORE: Final = 8
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
_PROSE: Final = frozenset(("prompt", "answer", "thinking", "title", "summary", "note"))
_LOST: Final = {
    "gone": "The file is gone and not in the archive: the words cannot be shown.",
    "changed": "The record is not what was indexed; the next sync reads it again.",
}


class Hit(msgspec.Struct, frozen=True):
    """One place where the words stand."""

    where: str
    icon: str
    href: str
    text: Markup
    prose: bool
    lost: str = ""


class Session(msgspec.Struct, frozen=True):
    """A session with its hits."""

    group: Group
    key: str
    href: str
    number: int
    when: str
    hits: list[Hit]
    more: int
    all: str


class Finds(msgspec.Struct, frozen=True):
    """What was found, as far as it is shown."""

    total: int
    number: int
    """In how many sessions."""
    wide: bool
    ignored: list[str]
    sessions: list[Session]
    more: bool
    """Whether there are sessions behind these."""
    files: tuple[int, ...]
    """The file of every session in which something was found, whatever it is narrowed by."""


def look_for(house: House, index: Index, asked: Asked) -> Finds:
    """Look for words in the sessions that an address asks for.

    Raises:
        BadRequest: they cannot be looked for.
        Unreadable: the words of the index are damaged.
    """
    query = _within(parse(asked.words), asked.only)
    absent = house.kept.get(stamp_of(house.home.folder), "absent", set[str])
    finder = open_finder(index, lambda text: meant(text, house.now()), absent)
    found = survey(finder, query, asked.order)
    names, every = _names(index, found.files)
    names = _narrowed(index, asked, names)
    ids = _in_order(found, names, asked.start + SESSIONS + 1)
    look = _Look(index, finder, found, asked, house.now())
    with Reader(index.connection) as reader:
        sessions = [
            look.session(reader, [file for file, name in names.items() if name == wanted])
            for wanted in ids[asked.start : asked.start + SESSIONS]
        ]
    return Finds(
        total=sum(found.files[file] for file in names),
        number=len(set(names.values())),
        wide=found.wide,
        ignored=[why_ignored(word) for word in found.wanted.ignored],
        sessions=sessions,
        more=len(ids) > asked.start + SESSIONS,
        files=every,
    )


def called(index: Index, asked: Asked) -> tuple[Listing | None, list[int]]:
    """Return the first sessions whose title has the words, and the files of all of them.

    There are none where something else is asked for than titles could tell.

    Raises:
        BadRequest: the words cannot be looked for.
    """
    query = parse(asked.words)
    if asked.only or asked.start or query.filters or not query.wanted:
        return None, []
    wanted = [[word.text.strip("*").casefold() for word in group] for group in query.wanted]
    unwanted = [word.text.strip("*").casefold() for word in query.unwanted]

    def fits(title: str) -> bool:
        text = title.casefold()
        has = all(any(word in text for word in group) for group in wanted)
        return has and not any(word in text for word in unwanted)

    files = titled(index.connection, asked.choice, fits)
    choice = msgspec.structs.replace(asked.choice, files=tuple(files))
    limit = _ALL_TITLES if asked.open == "titles" else _TITLES
    return list_sessions(index.connection, choice, limit=limit), files


def _within(query: Query, session: str) -> Query:
    if not session:
        return query
    return msgspec.structs.replace(query, filters=(*query.filters, Filter("session", session)))


def _names(index: Index, files: dict[int, int]) -> tuple[dict[int, str], tuple[int, ...]]:
    """Return in which session each file is, and the files of those sessions themselves.

    A file that says nowhere which session it is of is alone.
    """
    rows = index.connection.execute("SELECT file, id, agent, owner FROM sessions").fetchall()
    keys = {
        file: key_of_group(file, name or f"@{file}", agent, owner)
        for file, name, agent, owner in rows
    }
    names = {file: keys.get(file, f"@{file}") for file in files}
    found = set(names.values())
    own = [file for file, _, agent, _ in rows if not agent and keys[file] in found]
    return names, tuple(own)


def _narrowed(index: Index, asked: Asked, names: dict[int, str]) -> dict[int, str]:
    """Leave the files of those sessions that the filters leave."""
    if not asked.narrowed:
        return names
    fits = {key_of_group(file, "", "", file) for file in files_of(index.connection, asked.choice)}
    return {file: name for file, name in names.items() if name in fits}


def _in_order(found: Survey, names: dict[int, str], number: int) -> list[str]:
    """Return the first so many sessions, in the order of what was found first in each."""
    files = None if len(names) == len(found.files) else names.keys()
    most = _FIRST
    total = sum(found.files[file] for file in names)
    while names:
        messages = found.first(most, files)
        ids = list(dict.fromkeys(names[message >> SHIFT] for message in messages))
        if len(ids) >= number or most >= total:
            return ids[:number]
        most *= _MORE
    return []


class _Look:
    """Shows what one search found."""

    def __init__(
        self, index: Index, finder: Finder, found: Survey, asked: Asked, now: float
    ) -> None:
        self._index = index
        self._finder = finder
        self._found = found
        self._asked = asked
        self._now = now

    def session(self, reader: Reader, files: list[int]) -> Session:
        """Return the session of some files with its first hits, or with all if it was asked for."""
        asked = self._asked
        messages = self._found.first(_ALL if asked.only else _EACH, files)
        (group,) = groups_of(self._index.connection, messages)
        number = sum(self._found.files[file] for file in files)
        keys = keys_of(self._index.connection, group.files)
        key = next(iter(keys.values()), group.id)
        return Session(
            group=group,
            key=key,
            href=links().session(key),
            number=number,
            when="" if group.ended is None else words.day(group.ended / 1000, self._now),
            hits=[
                self._hit(text, group, keys.get(text.message >> SHIFT, key))
                for text in reader.texts(messages)
            ],
            more=number - len(messages),
            all=asked.but(session=group.id),
        )

    def _hit(self, text: Text, group: Group, key: str) -> Hit:
        excerpt = excerpt_of(text, self._found.wanted, self._found.scope, self._finder.cut)
        agent = group.agents.get(text.message >> SHIFT, "")
        offset = offset_of(text.message)
        href = links().agent(key, agent, at=offset) if agent else links().session(key, at=offset)
        turn = f"turn {text.turn}" if text.turn else "no turn"
        if excerpt is None:
            lost = _LOST[text.lost or "changed"]
            return Hit(turn, "dot", href, Markup(""), prose=True, lost=lost)
        part = excerpt.part
        what = part.tool or part.kind
        where = f"agent · {what}" if agent else f"{turn} · {what}"
        icon = facts_of(part.tool).icon
        if icon == "tool":
            icon = _ICONS.get(part.kind, "dot")
        return Hit(where, icon, href, _marked(excerpt), prose=part.kind in _PROSE)


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
