"""Every record and every gap of a file, in its order, each with its exact line: nothing is hidden."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.format.records import Gap
from steno.report import words
from steno.safe.html import trusted
from steno.session.nodes import Node
from steno.web.bodies import gap_view, record_view
from steno.web.house import House
from steno.web.numbers import number_in
from steno.web.paint import links, page
from steno.web.story.opening import Opened, asked_of, opened
from steno.web.story.steps import about_of

__all__ = ["record", "records"]

_PAGE: Final = 200
_FACETS: Final = 24


class Line(msgspec.Struct):
    """One record or gap in the list."""

    number: int
    offset: int
    length: int
    what: str
    href: str
    source: str
    clock: str = ""
    uuid: str = ""
    told: str = ""
    """Where the story tells it."""
    told_href: str = ""
    gap: bool = False


def records(house: House, request: Request) -> Response:
    """Return the records from some offset on."""
    wish = asked_of(request)
    kind = request.query_params.get("kind", "")
    with opened(house, wish) as told:
        every = _pieces(told)
        chosen = [piece for piece in every if not kind or _what(piece) == kind]
        offsets = [piece.offset for _, piece in _numbered(chosen)]
        begin = bisect_left(offsets, wish.first)
        shown = chosen[begin : begin + _PAGE]
        numbers = {id(piece): number for number, piece in _numbered(every)}
        after = begin + _PAGE
        kinds = Counter(map(_what, every)).most_common(_FACETS)
        return HTMLResponse(
            page(
                house,
                "records.html.j2",
                here="session",
                title=told.found.known.title or told.place.id,
                back=wish.address(links(), turn=None),
                wish=wish,
                lines=[_line(told, piece, numbers[id(piece)]) for piece in shown],
                all=len(every),
                chosen=len(chosen),
                begin=begin,
                size=told.tale.transcript.source.size,
                kind=kind,
                earlier=_way(told, kind, offsets[max(0, begin - _PAGE)]) if begin else "",
                later=_way(told, kind, offsets[after]) if after < len(chosen) else "",
                ways=[(name, number, _way(told, name, None)) for name, number in kinds],
                everything=_way(told, "", None),
            )
        )


def record(house: House, request: Request) -> Response:
    """Return one record, just as it stands in its file."""
    wish = asked_of(request)
    named = request.path_params["offset"]
    with opened(house, wish) as told:
        # Of a file in a dialect, whoever knows only the file as it is names a record by its id.
        transcript = told.tale.transcript
        node = transcript.by_uuid.get(named) if transcript.is_converted else None
        at = node.offset if node is not None else number_in(named, -1)
        every = _pieces(told)
        place = bisect_left([piece.offset for piece in every], at)
        if place >= len(every) or every[place].offset != at:
            raise NotFound("no record begins at that byte", hint="the file may have changed")
        piece = every[place]
        about = about_of(f"record/{at}", told.tale, wish.key, links(), wish)
        if isinstance(piece, Gap):
            body = gap_view(piece, about)
        else:
            body = record_view(told.tale.transcript.written(piece), about)
        if wish.part:
            return HTMLResponse(body)
        near = [every[k] if 0 <= k < len(every) else None for k in (place - 1, place + 1)]
        return HTMLResponse(
            page(
                house,
                "record.html.j2",
                here="session",
                title=told.found.known.title or told.place.id,
                back=wish.address(links(), turn=None),
                line=_line(told, piece, place + 1),
                body=trusted(body),
                all=len(every),
                list=links().inside(wish.key, "records", wish.agent, **{"from": at}),
                earlier=_record(told, near[0]),
                later=_record(told, near[1]),
            )
        )


def _pieces(told: Opened) -> Sequence[Node | Gap]:
    transcript = told.tale.transcript
    if not transcript.gaps:
        return transcript.nodes
    return sorted((*transcript.nodes, *transcript.gaps), key=lambda piece: piece.offset)


def _numbered(pieces: Sequence[Node | Gap]) -> list[tuple[int, Node | Gap]]:
    return list(enumerate(pieces, 1))


def _what(piece: Node | Gap) -> str:
    if isinstance(piece, Gap):
        return piece.damage[0].id if piece.damage else "blank"
    return f"{piece.type}/{piece.subtype}" if piece.subtype else piece.type or "(no type)"


def _line(told: Opened, piece: Node | Gap, number: int) -> Line:
    wish, tale = told.wish, told.tale
    line = Line(
        number,
        piece.offset,
        piece.length,
        _what(piece),
        links().record(wish.key, piece.offset, wish.agent),
        links().inside(wish.key, f"record/{piece.offset}", wish.agent, part=1),
        gap=isinstance(piece, Gap),
    )
    if isinstance(piece, Gap):
        return line
    line.what = tale.transcript.record(piece).kind or line.what
    moment = tale.transcript.record(piece).time
    line.clock = words.clock(moment.timestamp()) if moment is not None else ""
    line.uuid = piece.uuid or ""
    turn, side = tale.turn_at.get(piece.offset), tale.side_at.get(piece.offset)
    if turn is not None:
        line.told = f"turn {turn}"
        line.told_href = wish.address(links(), f"t{turn}", turn=turn)
    elif side is not None:
        line.told = "abandoned"
        after = tale.side(side).after or 1
        line.told_href = wish.address(links(), f"b{side}", turn=after, branch=side)
    return line


def _way(told: Opened, kind: str, start: int | None) -> str:
    query: dict[str, str | int | None] = {"from": start, "kind": kind}
    return links().inside(told.wish.key, "records", told.wish.agent, **query)


def _record(told: Opened, piece: Node | Gap | None) -> str:
    if piece is None:
        return ""
    return links().record(told.wish.key, piece.offset, told.wish.agent)
