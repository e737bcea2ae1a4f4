"""A query as people type it → what is wanted, what is not, and the filters. Pure; never injects.

    connection reset            both words, in one message
    "connection reset"          the phrase
    reset*  *part*              words that begin so, that have it inside
    -timeout  -"read only"      not these
    timeout OR deadline         either
    tool:Bash since:7d          filters; the same one twice means either, `-tool:Bash` none of it

Everything else is plain text: `std::vector`, `http://…` and `key: value` mean themselves.
"""

import re
from typing import Final

import msgspec

from steno.errors import BadRequest

__all__ = ["FILTERS", "LONGEST", "Filter", "Query", "TooComplex", "Word", "parse"]

FILTERS: Final = {
    "project": "part of the project's path; `.` is here",
    "tool": "the tool's name, or part of it",
    "file": "a file a tool was used on: its path, the end of it, or a pattern such as *.py",
    "role": "who spoke: user, assistant, tool, client",
    "in": "prompt, answer, thinking, input, output, note, title, summary",
    "model": "part of the model's name",
    "branch": "the git branch, or part of it",
    "session": "an id or the first letters of one, a title or part of one, or `last`",
    "since": "not before: 2026-11-07, 7d, 3h, today, yesterday",
    "until": "not after; a day is meant to its end",
    "has": "error: results of calls that failed",
}
"""What can be asked beside words, and what to put behind the colon."""
LONGEST: Final = 4_000
"""So many letters a query may have."""

_WORD_WILDCARDS: Final = 8
_QUERY_WILDCARDS: Final = 32
_WILDCARD: Final = re.compile(r"\*+")
_NAME: Final = re.compile(r"([A-Za-z]+):(?=\S)(?!//)")
_WORD: Final = re.compile(r'[^\s"“]+')
_BARE: Final = re.compile(r"\S+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CLOSING: Final = {'"': '"', "“": "”"}
_AFTER_DASH: Final = '"“*_./#@$'
_EITHER: Final = "OR"


class TooComplex(BadRequest):
    """The query takes too much work to answer."""


class Word(msgspec.Struct, frozen=True):
    """A word, or what stood between quotes."""

    text: str
    quoted: bool = False


class Filter(msgspec.Struct, frozen=True):
    """A known name, a colon, and what was asked for."""

    name: str
    value: str
    negated: bool = False


class Query(msgspec.Struct, frozen=True):
    """What was asked for."""

    wanted: tuple[tuple[Word, ...], ...] = ()
    """One word of each group must be there."""
    unwanted: tuple[Word, ...] = ()
    filters: tuple[Filter, ...] = ()


class _Item(msgspec.Struct):
    text: str
    name: str = ""
    quoted: bool = False
    negated: bool = False

    @property
    def is_either(self) -> bool:
        return self.text == _EITHER and not (self.name or self.quoted or self.negated)

    @property
    def is_wanted(self) -> bool:
        return not (self.name or self.negated)


def parse(text: str) -> Query:
    """Return what a query asks for.

    >>> parse('reset -"read only" tool:Bash').filters
    (Filter(name='tool', value='Bash', negated=False),)

    Raises:
        BadRequest: it is too long, or joins with OR what cannot be joined.
        TooComplex: it has too many wildcards.
    """
    if len(text) > LONGEST:
        raise BadRequest(f"the query is too long: {len(text):,} letters of at most {LONGEST:,}")
    items = _items(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))
    _limit_wildcards(items)
    wanted = tuple(tuple(Word(i.text, i.quoted) for i in group) for group in _groups(items))
    unwanted = tuple(Word(i.text, i.quoted) for i in items if i.negated and not i.name)
    filters = tuple(Filter(i.name, i.text, i.negated) for i in items if i.name)
    return Query(wanted, unwanted, filters)


def _limit_wildcards(items: list[_Item]) -> None:
    numbers = [len(_WILDCARD.findall(item.text)) for item in items]
    most = max(numbers, default=0)
    if most > _WORD_WILDCARDS:
        raise TooComplex(
            f"The query is too complex: {most} wildcards in one word",
            hint=f"Use at most {_WORD_WILDCARDS} wildcards (*) in a word.",
        )
    if sum(numbers) > _QUERY_WILDCARDS:
        raise TooComplex(
            f"The query is too complex: {sum(numbers)} wildcards",
            hint=f"Use at most {_QUERY_WILDCARDS} wildcards (*) in a query.",
        )


def _items(text: str) -> list[_Item]:
    items: list[_Item] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        item, at = _item(text, at)
        items.append(item)
    return items


def _item(text: str, at: int) -> tuple[_Item, int]:
    """Return the item that begins at a place that is no space, and where it ends."""
    negated = text[at] == "-" and _excludes(text[at + 1 : at + 2])
    at += negated
    name = ""
    named = _NAME.match(text, at)
    if named and named[1].lower() in FILTERS:
        name, at = named[1].lower(), named.end()
    closing = _CLOSING.get(text[at])
    if closing:
        end = text.find(closing, at + 1)
        end = len(text) if end < 0 else end
        return _Item(text[at + 1 : end], name, quoted=True, negated=negated), end + 1
    found = (_BARE if name else _WORD).match(text, at)
    end = found.end() if found else at + 1
    return _Item(text[at:end], name, negated=negated), end


def _excludes(letter: str) -> bool:
    """Whether a dash before this letter means `not`; `->` and `--flag` are what they are."""
    return bool(letter) and (letter.isalnum() or letter in _AFTER_DASH)


def _groups(items: list[_Item]) -> list[list[_Item]]:
    """Return the words that are wanted; those joined by OR together."""
    groups: list[list[_Item]] = []
    joined = False
    for place, item in enumerate(items):
        before = items[place - 1] if place else None
        after = items[place + 1] if place + 1 < len(items) else None
        if item.is_either and not joined and before and after:
            joined = _joins(before, after)
        elif item.is_wanted:
            if joined:
                groups[-1].append(item)
            else:
                groups.append([item])
            joined = False
    return groups


def _joins(before: _Item, after: _Item) -> bool:
    if before.is_wanted and after.is_wanted:
        return True
    if before.name == after.name and not (before.negated or after.negated):
        return False  # the same filter twice means either anyway
    raise BadRequest(
        "OR stands between two words that are wanted",
        hint='the same filter twice means either; "OR" in quotes is the word',
    )
