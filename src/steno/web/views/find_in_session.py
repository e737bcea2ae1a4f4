"""Text search in one session: matching records, the selected match, highlighting."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from typing import Final

import msgspec
from markupsafe import Markup

from steno.format.lenient_json import DECODE_ERRORS
from steno.index.line_decoder import IndexedLine, decode_lines, line_from_record
from steno.index.searchable_text import text_parts
from steno.report import humanize
from steno.session.transcript import Node, Transcript
from steno.session.turns.steps import one_line
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn
from steno.web.templating import links
from steno.web.views.session_params import SessionPageParams
from steno.web.views.session_view import SessionView, subagent_key
from steno.web.views.step_view import RenderOptions, keyed_steps
from steno.web.views.turn_view import PRIME

_TERM: Final = re.compile(r'"([^"]+)"|(\S+)')
_MAX_HITS: Final = 2_000
_MAX_QUERY: Final = 200
# Skip tags and entities: only visible text is highlighted.
_TAG_OR_ENTITY: Final = re.compile(r"(<[^>]*>|&(?:[a-zA-Z]+|#\d+);)")


class TextHit(msgspec.Struct, frozen=True):
    """A record that contains all search terms."""

    turn: int
    offset: int
    step_key: str = ""
    """The step of the record; empty if the record is not part of a step."""
    branch: int = 0
    """The abandoned branch of the record; 0 for the conversation."""


class SearchResult(msgspec.Struct, frozen=True):
    """The matches in a session."""

    hits: Sequence[TextHit] = ()
    """Matches in the conversation and in abandoned branches."""
    subagents: Sequence[tuple[Thread, int]] = ()
    """Sub-agents with matches, and their number of matching records."""


def parse_terms(query: str) -> tuple[str, ...]:
    """Return the words and phrases of a query.

    >>> parse_terms('row "same file" Twice')
    ('row', 'same file', 'twice')
    """
    terms = (phrase or single for phrase, single in _TERM.findall(query[:_MAX_QUERY]))
    return tuple(dict.fromkeys(part.casefold() for part in terms))


def find_text(view: SessionView, terms: Sequence[str]) -> SearchResult:
    """Return the records that contain all terms, each branch after the turn from which it starts."""
    if not terms:
        return SearchResult()
    if (cached := view.find_cache.get(tuple(terms))) is not None:
        return cached
    required_bytes = _required_bytes(terms)
    hits = list(islice(_all_hits(view, terms, required_bytes), _MAX_HITS))
    agents = [
        (subagent, _subagent_hit_count(subagent, terms, required_bytes)) for subagent in _searched_subagents(view)
    ]
    result = SearchResult(hits, [pair for pair in agents if pair[1]])
    # Moving between matches repeats the same search.
    view.find_cache = {tuple(terms): result}
    return result


def _all_hits(view: SessionView, terms: Sequence[str], required_bytes: tuple[bytes, ...]) -> Iterator[TextHit]:
    yield from _branch_hits(view, 0, terms, required_bytes)
    for turn in view.turns:
        yield from _turn_hits(view, turn, TextHit(turn.number, 0), terms, required_bytes)
        yield from _branch_hits(view, turn.number, terms, required_bytes)


def _branch_hits(
    view: SessionView, after: int, terms: Sequence[str], required_bytes: tuple[bytes, ...]
) -> Iterator[TextHit]:
    for branch in view.branches_by_turn.get(after, ()):
        if any(_matches(view.transcript, node, terms, required_bytes) for node in branch.branch.nodes):
            for turn in view.branch_turns(branch):
                template = TextHit(branch.after_turn or 1, 0, branch=branch.number)
                yield from _turn_hits(view, turn, template, terms, required_bytes)


def _turn_hits(
    view: SessionView, turn: Turn, template: TextHit, terms: Sequence[str], required_bytes: tuple[bytes, ...]
) -> Iterator[TextHit]:
    matching = [node for node in turn.nodes if _matches(view.transcript, node, terms, required_bytes)]
    if not matching:
        return
    step_keys: dict[int, str] = {}
    for step_key, step in keyed_steps(turn.steps):
        for node in (step.call, step.result):
            if node is not None:
                step_keys.setdefault(node.offset, step_key)
    for node in matching:
        step_key = step_keys.get(node.offset, "")
        yield msgspec.structs.replace(template, offset=node.offset, step_key=step_key)


def _searched_subagents(view: SessionView) -> Sequence[Thread]:
    if view.subagent is None:
        return view.session.all_agents
    return [subagent for subagent in view.subagent.family() if subagent is not view.subagent]


def _subagent_hit_count(subagent: Thread, terms: Sequence[str], required_bytes: tuple[bytes, ...]) -> int:
    return sum(_matches(subagent.transcript, node, terms, required_bytes) for node in subagent.nodes)


def locate_record(view: SessionView, params: SessionPageParams) -> str | None:
    """Set the page parameters to the turn or branch of a record. Return an anchor, or None if the record is not shown.

    The anchor is the key of a step, else the prompt or answer of a turn.
    """
    offset = -1 if params.record_offset is None else params.record_offset
    turns: Sequence[Turn] = ()
    if offset in view.turn_by_offset:
        params.turn = view.turn_by_offset[offset]
        turns = (view.turns[params.turn - 1],)
        anchor = f"t{params.turn}"
    elif offset in view.branch_by_offset:
        branch = view.abandoned_branch(view.branch_by_offset[offset])
        params.branch, params.turn = branch.number, branch.after_turn or 1
        turns = view.branch_turns(branch)
        anchor = f"b{branch.number}"
    else:
        return None
    for turn in turns:
        for step_key, step in keyed_steps(turn.steps):
            if offset in {node.offset for node in (step.call, step.result) if node is not None}:
                params.open_steps |= {step_key}
                return step_key
    return anchor


def _required_bytes(terms: Sequence[str]) -> tuple[bytes, ...]:
    """Return the ASCII parts of each term, which a matching line must contain."""
    runs = (part for word in terms for part in re.findall(r"[ -!#-\[\]-~]+", word))
    return tuple(part.encode() for part in runs if len(part) > 1)


def _matches(transcript: Transcript, node: Node, terms: Sequence[str], required_bytes: tuple[bytes, ...]) -> bool:
    raw = transcript.source.read(node.offset, node.length)
    lower = raw.lower()
    if not all(part in lower for part in required_bytes):
        return False
    parts = text_parts(_decode_line(transcript, node, raw), raw)
    text = "\n".join(part.text for part in parts).casefold()
    return all(term in text for term in terms)


def _decode_line(transcript: Transcript, node: Node, raw: bytes) -> IndexedLine:
    try:
        return decode_lines(raw)[0]
    except (*DECODE_ERRORS, IndexError):
        return line_from_record(transcript.record(node))


def highlight(html: str, terms: Sequence[str]) -> Markup:
    """Return HTML with the terms highlighted.

    >>> str(highlight("<p class='row'>a row &amp; rows</p>", ["row"]))
    "<p class='row'>a <mark>row</mark> &amp; <mark>row</mark>s</p>"
    """
    if not terms:
        return Markup(html)
    alternatives = "|".join(re.escape(escape(term)) for term in sorted(terms, key=len, reverse=True))
    pattern = re.compile(alternatives, re.IGNORECASE)
    return Markup("".join(_highlighted_pieces(html, pattern)))


def _highlighted_pieces(html: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for position, piece in enumerate(_TAG_OR_ENTITY.split(html)):
        yield piece if position % 2 else pattern.sub(r"<mark>\g<0></mark>", piece)


_MAX_LABEL = 60
_MAX_SUBAGENTS = 12


class SubagentHits(msgspec.Struct, frozen=True):
    """A sub-agent with matches."""

    name: str
    number: int
    href: str


class FindView(msgspec.Struct):
    """The search bar of a session page."""

    terms: Sequence[str] = ()
    hits: int = 0
    position: int = 0
    location_label: str = ""
    """Location of the selected match, if it is not in the conversation."""
    abandoned: int = 0
    previous: str = ""
    next: str = ""
    agents: Sequence[SubagentHits] = ()
    more_label: str = ""


def find_view(view: SessionView, params: SessionPageParams, options: RenderOptions) -> FindView:
    """Search the session and select a match."""
    terms = parse_terms(params.find)
    result = find_text(view, terms)
    find_view = FindView(agents=_subagent_hits(params, result.subagents[:_MAX_SUBAGENTS]))
    if len(result.subagents) > _MAX_SUBAGENTS:
        find_view.more_label = f"and {humanize.count(len(result.subagents) - _MAX_SUBAGENTS, 'more sub-agent')}"
    hits = result.hits
    if not hits:
        return find_view
    position = params.hit
    if not position:
        later = (number for number, hit in enumerate(hits, 1) if hit.turn >= params.turn)
        position = next(later, 1)
    position = min(position, len(hits))
    hit = hits[position - 1]
    params.turn = hit.turn
    if hit.branch:
        params.branch = hit.branch
        branch = view.abandoned_branch(hit.branch)
        find_view.location_label = f"in abandoned turn {branch.first_turn}{PRIME * branch.depth}"
    if hit.step_key:
        options.open_steps |= {hit.step_key}
    find_view.terms, find_view.hits, find_view.position = terms, len(hits), position
    find_view.abandoned = sum(bool(match.branch) for match in hits)
    find_view.previous, find_view.next = (
        _hit_url(params, hits[target - 1].turn, hits[target - 1].branch, target)
        for target in (position - 1 or len(hits), position % len(hits) + 1)
    )
    return find_view


def _hit_url(params: SessionPageParams, turn: int, branch: int, hit: int) -> str:
    anchor = f"b{branch}" if branch else f"t{turn}"
    return params.url(links(), anchor, hit=hit, turn=None, branch=None)


def _subagent_hits(params: SessionPageParams, subagents: Sequence[tuple[Thread, int]]) -> list[SubagentHits]:
    rows: list[SubagentHits] = []
    for subagent, number in subagents:
        label = subagent.description or subagent.kind or subagent.prompt
        href = links().agent(params.key, subagent_key(subagent), find=params.find)
        rows.append(SubagentHits(one_line(label, _MAX_LABEL) or "sub-agent", number, href))
    return rows
