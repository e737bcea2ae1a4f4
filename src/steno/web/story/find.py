"""Where words occur in a conversation, and the marks that show it."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import msgspec
from markupsafe import Markup

from steno.format.loose import REFUSED
from steno.index.lines import Line, decode_lines, line_of
from steno.index.words import parts_of
from steno.session.nodes import Node
from steno.session.transcript import Transcript
from steno.web.story.steps import places_of
from steno.web.story.tale import Tale
from steno.web.story.wish import Wish

if TYPE_CHECKING:
    from steno.session.story.turns import Turn

__all__ = ["Hit", "find", "marked", "seek", "wanted_words"]

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


def wanted_words(query: str) -> tuple[str, ...]:
    """Return the words and phrases that a search asks for.

    >>> wanted_words('row "same file" Twice')
    ('row', 'same file', 'twice')
    """
    found = (phrase or word for phrase, word in _WORDS.findall(query[:_LONGEST]))
    return tuple(dict.fromkeys(part.casefold() for part in found))


def find(tale: Tale, words: Sequence[str]) -> list[Hit]:
    """Return where all the words occur in one record, in the order of the conversation."""
    hits: list[Hit] = []
    if not words:
        return hits
    likely = _likely(words)
    for turn in tale.turns:
        found = [node for node in turn.nodes if _has(tale.transcript, node, words, likely)]
        if not found:
            continue
        places: dict[int, str] = {}
        for place, step in places_of(turn.steps):
            for node in (step.call, step.result):
                if node is not None:
                    places.setdefault(node.offset, place)
        for node in found:
            hits.append(Hit(turn.number, node.offset, places.get(node.offset, "")))
            if len(hits) == _MOST:
                return hits
    return hits


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
