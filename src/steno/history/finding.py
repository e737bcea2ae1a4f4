"""`search`: words in all sessions, and where to read on."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from steno.history.asked import Search
from steno.history.library import Library
from steno.history.quoted import passage, path, word
from steno.index.search.excerpts import excerpt_of
from steno.index.search.finder import open_finder
from steno.index.search.grouping import Group, groups_of
from steno.index.search.language import Filter, Query, parse
from steno.index.search.reader import Reader, Text
from steno.index.state import SHIFT
from steno.report import clock, words

if TYPE_CHECKING:
    from steno.index.search.finder import Finder, Found

__all__ = ["found_words"]

_MOST: Final = 400
"""How many sessions are gone through, however far somebody pages."""
_LOST: Final = "(The words are gone with their file, or it was changed since.)"


def found_words(asked: Search, library: Library) -> Generator[str, None, None]:
    """Yield what was found, session by session."""
    with library.index() as index:
        finder = open_finder(index, lambda text: clock.meant(text, clock.now()))
        found = finder.find(_query(asked), "rank" if asked.rank else "newest")
        groups = [
            group
            for group in groups_of(index.connection, found.messages)
            if library.has(group.project)
        ]
        hits = words.count(sum(len(group.messages) for group in groups), "hit")
        yield f"{hits} in {words.count(len(groups), 'session')}."
        if not groups:
            yield "Fewer words, `part*` or `this OR that` may find more."
        with Reader(index.connection) as reader:
            for group in groups[:_MOST]:
                yield from _session(reader, finder, found, group, asked.each)


def _query(asked: Search) -> Query:
    query = parse(asked.query)
    told = {"project": asked.project, "since": asked.since, "until": asked.until}
    more = [Filter(name, value) for name, value in told.items() if value]
    return msgspec.structs.replace(query, filters=(*query.filters, *more))


def _session(
    reader: Reader, finder: "Finder", found: "Found", group: Group, each: int
) -> Iterator[str]:
    when = clock.iso(None if group.ended is None else group.ended / 1000) or "at an unknown time"
    hits = words.count(len(group.messages), "hit")
    about = f"project {path(group.project)}, last written {when}, {hits}"
    yield f"### Session {path(group.id)}: {word(group.title)}\n{about}"
    for text in reader.texts(group.messages[:each]):
        excerpt = excerpt_of(text, found.wanted, found.scope, finder.cut)
        yield _where(group, text, excerpt.part.kind if excerpt else "")
        if excerpt is None:
            yield _LOST
            continue
        cut = ("" if excerpt.begins else "…", "" if excerpt.ends else "…")
        yield from passage(f"{cut[0]}{excerpt.text}{cut[1]}")
    if len(group.messages) > each:
        yield f"{len(group.messages) - each:,} more in this session; `each` shows more of them."


def _where(group: Group, text: Text, kind: str) -> str:
    agent = group.agents.get(text.message >> SHIFT, "")
    turn = "" if group.rewound else f"turn {text.turn}"
    parts = [kind, turn if not agent else f"sub-agent {path(agent)}"]
    if text.uuid:
        parts.append(f"record {path(text.uuid)}")
    return ", ".join(filter(None, parts)) + ":"
