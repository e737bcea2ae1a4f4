"""Looking for words in a session: which of the places that have them is shown, and the others."""

from collections.abc import Sequence

import msgspec

from steno.report import words
from steno.session.story.steps import one_line
from steno.session.story.threads import Thread
from steno.web.paint import links
from steno.web.story.find import find, wanted_words
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale, name_of
from steno.web.story.turns import PRIME
from steno.web.story.wish import Wish

__all__ = ["Finding", "finding_of"]

_SAID = 60
_SHOWN = 12


class Elsewhere(msgspec.Struct, frozen=True):
    """A sub-agent that has the words."""

    name: str
    number: int
    href: str


class Finding(msgspec.Struct):
    """What was found."""

    words: Sequence[str] = ()
    hits: int = 0
    at: int = 0
    where: str = ""
    """Where the one that is shown stands, if not in the conversation."""
    abandoned: int = 0
    previous: str = ""
    next: str = ""
    agents: Sequence[Elsewhere] = ()
    more: str = ""


def finding_of(tale: Tale, wish: Wish, manner: Manner) -> Finding:
    """Look for words, and go to one of the places that have them."""
    wanted = wanted_words(wish.find)
    found = find(tale, wanted)
    made = Finding(agents=_agents(wish, found.agents[:_SHOWN]))
    if len(found.agents) > _SHOWN:
        made.more = f"and in {words.count(len(found.agents) - _SHOWN, 'more sub-agent')}"
    hits = found.hits
    if not hits:
        return made
    at = wish.hit
    if not at:
        later = (number for number, hit in enumerate(hits, 1) if hit.turn >= wish.turn)
        at = next(later, 1)
    at = min(at, len(hits))
    hit = hits[at - 1]
    wish.turn = hit.turn
    if hit.side:
        wish.branch = hit.side
        side = tale.side(hit.side)
        made.where = f"in {side.first}{PRIME * side.depth}, which was abandoned"
    if hit.place:
        manner.opened |= {hit.place}
    made.words, made.hits, made.at = wanted, len(hits), at
    made.abandoned = sum(bool(each.side) for each in hits)
    made.previous, made.next = (
        _way(wish, hits[way - 1].turn, hits[way - 1].side, way)
        for way in (at - 1 or len(hits), at % len(hits) + 1)
    )
    return made


def _way(wish: Wish, turn: int, side: int, hit: int) -> str:
    anchor = f"b{side}" if side else f"t{turn}"
    return wish.address(links(), anchor, hit=hit, turn=None, branch=None)


def _agents(wish: Wish, found: Sequence[tuple[Thread, int]]) -> list[Elsewhere]:
    made: list[Elsewhere] = []
    for thread, number in found:
        said = thread.description or thread.kind or thread.prompt
        href = links().agent(wish.key, name_of(thread), find=wish.find)
        made.append(Elsewhere(one_line(said, _SAID) or "sub-agent", number, href))
    return made
