"""Parses a search query into terms, exclusions and filters; no I/O.

    connection reset            both words, in one message
    "connection reset"          the phrase
    reset*  *part*              words that start with, or contain, this text
    -timeout  -"read only"      exclusions
    timeout OR deadline         either word
    tool:Bash since:7d          filters; a repeated filter means either, `-tool:Bash` excludes

Everything else is plain text: `std::vector`, `http://…` and `key: value` have no special meaning.
"""

import re
from typing import Final

import msgspec

from steno.errors import BadRequest

FILTERS: Final = {
    "project": "part of the project path, or `.` for the working directory",
    "tool": "tool name, or part of it",
    "file": "file of a tool call: its path, the end of the path, or a pattern such as *.py",
    "role": "user, assistant, tool, client",
    "in": "prompt, answer, thinking, input, output, note, title, summary",
    "model": "part of the model name",
    "branch": "git branch, or part of it",
    "session": "session ID or its beginning, title or part of it, or `last`",
    "since": "start: 2026-11-07, 7d, 3h, today, yesterday",
    "until": "end; a day is included completely",
    "has": "error: results of failed tool calls",
}
"""All filters with a description of their values."""
MAX_QUERY_LENGTH: Final = 4_000
"""Maximum number of characters in a query."""

_MAX_WORD_WILDCARDS: Final = 8
_MAX_QUERY_WILDCARDS: Final = 32
WILDCARDS: Final = re.compile(r"\*+")
_FILTER_NAME: Final = re.compile(r"([A-Za-z]+):(?=\S)(?!//)")
_WORD_PATTERN: Final = re.compile(r'[^\s"“]+')
_VALUE_PATTERN: Final = re.compile(r"\S+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CLOSING_QUOTES: Final = {'"': '"', "“": "”"}
_EXCLUSION_STARTS: Final = '"“*_./#@$'
_OR: Final = "OR"


class QueryTooComplex(BadRequest):
    """The query needs too much work to answer."""


class Word(msgspec.Struct, frozen=True):
    """A word or a quoted phrase."""

    text: str
    quoted: bool = False


class Filter(msgspec.Struct, frozen=True):
    """A filter with its value."""

    name: str
    value: str
    negated: bool = False


class Query(msgspec.Struct, frozen=True):
    """A parsed query."""

    required: tuple[tuple[Word, ...], ...] = ()
    """At least one word of each group must match."""
    excluded: tuple[Word, ...] = ()
    filters: tuple[Filter, ...] = ()


class _QueryItem(msgspec.Struct):
    text: str
    name: str = ""
    quoted: bool = False
    negated: bool = False

    @property
    def is_or(self) -> bool:
        return self.text == _OR and not (self.name or self.quoted or self.negated)

    @property
    def is_required(self) -> bool:
        return not (self.name or self.negated)


def parse_query(text: str) -> Query:
    """Parse the text of a query.

    >>> parse_query('reset -"read only" tool:Bash').filters
    (Filter(name='tool', value='Bash', negated=False),)

    Raises:
        BadRequest: the query is too long, or combines terms with OR that cannot be combined.
        QueryTooComplex: the query has too many wildcards.
    """
    if len(text) > MAX_QUERY_LENGTH:
        raise BadRequest(f"the query is too long: {len(text):,} characters of at most {MAX_QUERY_LENGTH:,}")
    items = _split_items(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))
    _limit_wildcards(items)
    required = tuple(tuple(Word(i.text, i.quoted) for i in group) for group in _group_items(items))
    excluded = tuple(Word(i.text, i.quoted) for i in items if i.negated and not i.name)
    filters = tuple(Filter(i.name, i.text, i.negated) for i in items if i.name)
    return Query(required, excluded, filters)


def _limit_wildcards(items: list[_QueryItem]) -> None:
    counts = [len(WILDCARDS.findall(item.text)) for item in items]
    max_count = max(counts, default=0)
    if max_count > _MAX_WORD_WILDCARDS:
        raise QueryTooComplex(
            f"the query is too complex: {max_count} wildcards in one word",
            hint=f"Use at most {_MAX_WORD_WILDCARDS} wildcards (*) in a word.",
        )
    if sum(counts) > _MAX_QUERY_WILDCARDS:
        raise QueryTooComplex(
            f"the query is too complex: {sum(counts)} wildcards",
            hint=f"Use at most {_MAX_QUERY_WILDCARDS} wildcards (*) in a query.",
        )


def _split_items(text: str) -> list[_QueryItem]:
    items: list[_QueryItem] = []
    index = 0
    while index < len(text):
        if text[index].isspace():
            index += 1
            continue
        item, index = _parse_item(text, index)
        items.append(item)
    return items


def _parse_item(text: str, index: int) -> tuple[_QueryItem, int]:
    negated = text[index] == "-" and _is_exclusion(text[index + 1 : index + 2])
    index += negated
    name = ""
    filter_match = _FILTER_NAME.match(text, index)
    if filter_match and filter_match[1].lower() in FILTERS:
        name, index = filter_match[1].lower(), filter_match.end()
    closing = _CLOSING_QUOTES.get(text[index])
    if closing:
        end = text.find(closing, index + 1)
        end = len(text) if end < 0 else end
        return _QueryItem(text[index + 1 : end], name, quoted=True, negated=negated), end + 1
    match = (_VALUE_PATTERN if name else _WORD_PATTERN).match(text, index)
    end = match.end() if match else index + 1
    return _QueryItem(text[index:end], name, negated=negated), end


def _is_exclusion(character: str) -> bool:
    """Return whether a dash before this character excludes a term, unlike in `->` and `--flag`."""
    return bool(character) and (character.isalnum() or character in _EXCLUSION_STARTS)


def _group_items(items: list[_QueryItem]) -> list[list[_QueryItem]]:
    groups: list[list[_QueryItem]] = []
    joins_next = False
    for index, item in enumerate(items):
        previous = items[index - 1] if index else None
        following = items[index + 1] if index + 1 < len(items) else None
        if item.is_or and not joins_next and previous and following:
            joins_next = _can_join(previous, following)
        elif item.is_required:
            if joins_next:
                groups[-1].append(item)
            else:
                groups.append([item])
            joins_next = False
    return groups


def _can_join(left: _QueryItem, right: _QueryItem) -> bool:
    if left.is_required and right.is_required:
        return True
    if left.name == right.name and not (left.negated or right.negated):
        return False  # a repeated filter already means either
    raise BadRequest(
        "OR can only combine two search words",
        hint='Repeat a filter to match either value; quote "OR" to search for the word.',
    )
