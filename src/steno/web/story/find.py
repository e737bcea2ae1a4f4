"""Where words occur in a conversation, and the marks that show it."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from typing import Final

import msgspec
from markupsafe import Markup

from steno.format.loose import REFUSED
from steno.index.lines import Line, decode_lines, line_of
from steno.index.words import parts_of
from steno.session.nodes import Node
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript
from steno.web.story.steps import places_of
from steno.web.story.tale import Tale
from steno.web.story.wish import Wish

__all__ = ["Finds", "Hit", "find", "marked", "seek", "wanted_words"]

_WORDS: Final = re.compile(r'"([^"]+)"|(\S+)')
_MOST: Final = 2_000
_LONGEST: Final = 200
# Tags and entities are passed over: only what is read is marked.
_PASSED: Final = re.compile(r"(<[^>]*>|&(?:[a-zA-Z]+|#\d+);)")


class Hit(msgspec.Struct, frozen=True):
    """A record that has all the words."""

    turn: int
    offset: int
    place: str = ""
    """The step that it belongs to, if it belongs to one."""
    side: int = 0
    """The abandoned branch that it is in; 0 for the conversation."""


class Finds(msgspec.Struct, frozen=True):
    """Where words occur in a session."""

    hits: Sequence[Hit] = ()
    """In the conversation, and in what was abandoned beside it."""
    agents: Sequence[tuple[Thread, int]] = ()
    """The sub-agents that have them, and how many of their records do."""


def wanted_words(query: str) -> tuple[str, ...]:
    """Return the words and phrases that a search asks for.

    >>> wanted_words('row "same file" Twice')
    ('row', 'same file', 'twice')
    """
    found = (phrase or word for phrase, word in _WORDS.findall(query[:_LONGEST]))
    return tuple(dict.fromkeys(part.casefold() for part in found))


def find(tale: Tale, words: Sequence[str]) -> Finds:
    """Return where all the words occur in one record, each branch behind the turn that it left."""
    if not words:
        return Finds()
    if (known := tale.finds.get(tuple(words))) is not None:
        return known
    likely = _likely(words)
    hits = list(islice(_hits(tale, words, likely), _MOST))
    agents = [(each, _count(each, words, likely)) for each in _agents(tale)]
    made = Finds(hits, [pair for pair in agents if pair[1]])
    # Who goes from hit to hit asks for the same words again.
    tale.finds = {tuple(words): made}
    return made


def _hits(tale: Tale, words: Sequence[str], likely: tuple[bytes, ...]) -> Iterator[Hit]:
    yield from _beside(tale, 0, words, likely)
    for turn in tale.turns:
        yield from _inside(tale, turn, Hit(turn.number, 0), words, likely)
        yield from _beside(tale, turn.number, words, likely)


def _beside(
    tale: Tale, after: int, words: Sequence[str], likely: tuple[bytes, ...]
) -> Iterator[Hit]:
    for side in tale.sides_by_turn.get(after, ()):
        if any(_has(tale.transcript, node, words, likely) for node in side.branch.nodes):
            for turn in tale.side_turns(side):
                at = Hit(side.after or 1, 0, side=side.number)
                yield from _inside(tale, turn, at, words, likely)


def _inside(
    tale: Tale, turn: Turn, at: Hit, words: Sequence[str], likely: tuple[bytes, ...]
) -> Iterator[Hit]:
    found = [node for node in turn.nodes if _has(tale.transcript, node, words, likely)]
    if not found:
        return
    places: dict[int, str] = {}
    for place, step in places_of(turn.steps):
        for node in (step.call, step.result):
            if node is not None:
                places.setdefault(node.offset, place)
    for node in found:
        place = places.get(node.offset, "")
        yield msgspec.structs.replace(at, offset=node.offset, place=place)


def _agents(tale: Tale) -> Sequence[Thread]:
    if tale.thread is None:
        return tale.session.all_agents
    return [each for each in tale.thread.family() if each is not tale.thread]


def _count(thread: Thread, words: Sequence[str], likely: tuple[bytes, ...]) -> int:
    return sum(_has(thread.transcript, node, words, likely) for node in thread.nodes)


def seek(tale: Tale, wish: Wish) -> str | None:
    """Let a reader begin where a record is told; None where it is not.

    Returns what to go to: the place of a step, the prompt or answer of a turn otherwise.
    """
    at = -1 if wish.at is None else wish.at
    turns: Sequence[Turn] = ()
    if at in tale.turn_at:
        wish.turn = tale.turn_at[at]
        turns = (tale.turns[wish.turn - 1],)
        found = f"t{wish.turn}"
    elif at in tale.side_at:
        side = tale.side(tale.side_at[at])
        wish.branch, wish.turn = side.number, side.after or 1
        turns = tale.side_turns(side)
        found = f"b{side.number}"
    else:
        return None
    for turn in turns:
        for place, step in places_of(turn.steps):
            if at in {node.offset for node in (step.call, step.result) if node is not None}:
                wish.opened |= {place}
                return place
    return found


def _likely(words: Sequence[str]) -> tuple[bytes, ...]:
    """Return bytes that must be in a line with the words: the plain stretches of each."""
    plain = (part for word in words for part in re.findall(r"[ -!#-\[\]-~]+", word))
    return tuple(part.encode() for part in plain if len(part) > 1)


def _has(
    transcript: Transcript, node: Node, words: Sequence[str], likely: tuple[bytes, ...]
) -> bool:
    raw = transcript.source.read(node.offset, node.length)
    lower = raw.lower()
    if not all(part in lower for part in likely):
        return False
    parts = parts_of(_line(transcript, node, raw), raw)
    text = "\n".join(part.text for part in parts).casefold()
    return all(word in text for word in words)


def _line(transcript: Transcript, node: Node, raw: bytes) -> Line:
    try:
        return decode_lines(raw)[0]
    except (*REFUSED, IndexError):
        return line_of(transcript.record(node))


def marked(html: str, words: Sequence[str]) -> Markup:
    """Return HTML of ours with the words in it marked.

    >>> str(marked("<p class='row'>a row &amp; rows</p>", ["row"]))
    "<p class='row'>a <mark>row</mark> &amp; <mark>row</mark>s</p>"
    """
    if not words:
        return Markup(html)
    any_of = "|".join(re.escape(escape(word)) for word in sorted(words, key=len, reverse=True))
    pattern = re.compile(any_of, re.IGNORECASE)
    return Markup("".join(_pieces(html, pattern)))


def _pieces(html: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for place, piece in enumerate(_PASSED.split(html)):
        yield piece if place % 2 else pattern.sub(r"<mark>\g<0></mark>", piece)
