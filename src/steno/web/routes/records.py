"""Records of a session: the list of all records and gaps, one record, one step, one image."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.format.records import Gap
from steno.report import humanize
from steno.sanitize.html import trusted_markup
from steno.session.transcript import Node, Transcript
from steno.session.turns.steps import Step
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page
from steno.web.tool_views import gap_view, record_view
from steno.web.tool_views.record_images import image_bytes, images_in
from steno.web.urls import parse_number
from steno.web.views.opened_session import OpenedSession, open_session, request_params
from steno.web.views.session_view import SessionView
from steno.web.views.step_view import keyed_steps, step_body, step_html, view_context

_PAGE_SIZE: Final = 200
_MAX_TYPES: Final = 24


class RecordRow(msgspec.Struct):
    """A record or gap in the list."""

    number: int
    offset: int
    length: int
    type_label: str
    href: str
    source: str
    clock: str = ""
    uuid: str = ""
    turn_label: str = ""
    """The turn of the record."""
    turn_url: str = ""
    is_gap: bool = False


def records_page(app_state: AppState, request: Request) -> Response:
    """Return the list of records from an offset."""
    params = request_params(request)
    kind = request.query_params.get("kind", "")
    with open_session(app_state, params) as opened_session:
        all_entries = _all_entries(opened_session)
        chosen = [entry for entry in all_entries if not kind or _type_label(entry) == kind]
        offsets = [piece.offset for _, piece in _numbered(chosen)]
        start = bisect_left(offsets, params.first_turn)
        visible = chosen[start : start + _PAGE_SIZE]
        numbers = {id(piece): number for number, piece in _numbered(all_entries)}
        after = start + _PAGE_SIZE
        kinds = Counter(map(_type_label, all_entries)).most_common(_MAX_TYPES)
        return HTMLResponse(
            render_page(
                app_state,
                "records.html.j2",
                here="session",
                title=opened_session.indexed.metadata.title or opened_session.session_ref.id,
                back=params.url(links(), turn=None),
                wish=params,
                lines=[_record_row(opened_session, piece, numbers[id(piece)]) for piece in visible],
                all=len(all_entries),
                chosen=len(chosen),
                begin=start,
                size=opened_session.view.transcript.source.size,
                kind=kind,
                earlier=_records_url(opened_session, kind, offsets[max(0, start - _PAGE_SIZE)]) if start else "",
                later=_records_url(opened_session, kind, offsets[after]) if after < len(chosen) else "",
                ways=[(name, number, _records_url(opened_session, name, None)) for name, number in kinds],
                everything=_records_url(opened_session, "", None),
            )
        )


def record_page(app_state: AppState, request: Request) -> Response:
    """Return the page of a raw record."""
    params = request_params(request)
    record_name = request.path_params["offset"]
    with open_session(app_state, params) as opened_session:
        # In a converted file, external links identify a record by its ID.
        transcript = opened_session.view.transcript
        node = transcript.by_uuid.get(record_name) if transcript.is_converted else None
        offset = node.offset if node is not None else parse_number(record_name, -1)
        all_entries = _all_entries(opened_session)
        position = bisect_left([entry.offset for entry in all_entries], offset)
        if position >= len(all_entries) or all_entries[position].offset != offset:
            raise NotFound("no record at this offset", hint="The file may have changed.")
        piece = all_entries[position]
        about = view_context(f"record/{offset}", opened_session.view, params.key, links(), params)
        if isinstance(piece, Gap):
            body = gap_view(piece, about)
        else:
            body = record_view(opened_session.view.transcript.written(piece), about)
        if params.part:
            return HTMLResponse(body)
        neighbours = [all_entries[k] if 0 <= k < len(all_entries) else None for k in (position - 1, position + 1)]
        return HTMLResponse(
            render_page(
                app_state,
                "record.html.j2",
                here="session",
                title=opened_session.indexed.metadata.title or opened_session.session_ref.id,
                back=params.url(links(), turn=None),
                line=_record_row(opened_session, piece, position + 1),
                body=trusted_markup(body),
                all=len(all_entries),
                list=links().inside(params.key, "records", params.agent, **{"from": offset}),
                earlier=_record_url(opened_session, neighbours[0]),
                later=_record_url(opened_session, neighbours[1]),
            )
        )


def _all_entries(opened_session: OpenedSession) -> Sequence[Node | Gap]:
    transcript = opened_session.view.transcript
    if not transcript.gaps:
        return transcript.nodes
    return sorted((*transcript.nodes, *transcript.gaps), key=lambda piece: piece.offset)


def _numbered(entries: Sequence[Node | Gap]) -> list[tuple[int, Node | Gap]]:
    return list(enumerate(entries, 1))


def _type_label(entry: Node | Gap) -> str:
    if isinstance(entry, Gap):
        return entry.damage[0].id if entry.damage else "blank"
    return f"{entry.type}/{entry.subtype}" if entry.subtype else entry.type or "(no type)"


def _record_row(opened_session: OpenedSession, entry: Node | Gap, number: int) -> RecordRow:
    params, view = opened_session.params, opened_session.view
    line = RecordRow(
        number,
        entry.offset,
        entry.length,
        _type_label(entry),
        links().record(params.key, entry.offset, params.agent),
        links().inside(params.key, f"record/{entry.offset}", params.agent, part=1),
        is_gap=isinstance(entry, Gap),
    )
    if isinstance(entry, Gap):
        return line
    line.type_label = view.transcript.record(entry).kind or line.type_label
    moment = view.transcript.record(entry).time
    line.clock = humanize.time_of_day(moment.timestamp()) if moment is not None else ""
    line.uuid = entry.uuid or ""
    turn, branch_number = (view.turn_by_offset.get(entry.offset), view.branch_by_offset.get(entry.offset))
    if turn is not None:
        line.turn_label = f"turn {turn}"
        line.turn_url = params.url(links(), f"t{turn}", turn=turn)
    elif branch_number is not None:
        line.turn_label = "abandoned"
        after = view.abandoned_branch(branch_number).after_turn or 1
        line.turn_url = params.url(links(), f"b{branch_number}", turn=after, branch=branch_number)
    return line


def _records_url(opened_session: OpenedSession, kind: str, start: int | None) -> str:
    query: dict[str, str | int | None] = {"from": start, "kind": kind}
    return links().inside(opened_session.params.key, "records", opened_session.params.agent, **query)


def _record_url(opened_session: OpenedSession, entry: Node | Gap | None) -> str:
    if entry is None:
        return ""
    return links().record(opened_session.params.key, entry.offset, opened_session.params.agent)


def step_page(app_state: AppState, request: Request) -> Response:
    """Return the page of a step."""
    params = request_params(request)
    step_key = request.path_params["place"]
    with open_session(app_state, params) as opened_session:
        opened_step, turn, branch_number = _find_step(opened_session.view, step_key)
        body = step_body(opened_step, step_key, opened_session.view, opened_session.render_options(), params=params)
        if params.part:
            return HTMLResponse(body)
        line = step_html(opened_step, step_key, opened_session.view, opened_session.render_options(), body)
        back = {"turn": turn, "branch": branch_number or None, "open": step_key}
        anchor = f"b{branch_number}" if branch_number else f"t{turn}"
        return HTMLResponse(
            render_page(
                app_state,
                "session-step.html.j2",
                here="session",
                lines=[line],
                title=opened_session.indexed.metadata.title or opened_session.session_ref.id,
                turn=turn,
                side=branch_number,
                back=params.url(links(), anchor, **back),
                place=step_key,
                full=params.full,
                whole=links().inside(params.key, f"step/{step_key}", params.agent, full=1),
            )
        )


def _find_step(view: SessionView, step_key: str) -> tuple[Step, int, int]:
    """Return a step by its key, with its turn and abandoned branch, if any.

    Raises:
        NotFound: The step does not exist.
    """
    offset = step_key.partition("-")[0]
    record_offset = parse_number(offset, -1)
    turn_number = view.turn_by_offset.get(record_offset)
    ordered = [view.turns[turn_number - 1], *view.turns] if turn_number is not None else view.turns
    branch_number = view.branch_by_offset.get(record_offset) if turn_number is None else None
    if branch_number is not None:
        for turn in view.branch_turns(view.abandoned_branch(branch_number)):
            for name, step in keyed_steps(turn.steps):
                if name == step_key:
                    return step, view.abandoned_branch(branch_number).after_turn or 1, branch_number
    for turn in ordered:
        for name, step in keyed_steps(turn.steps):
            if name == step_key:
                return step, turn.number, 0
    raise NotFound("no such step in this session", hint="The step may be in an abandoned branch.")


_DISPOSITION: Final = "inline; filename=picture"


def image_response(app_state: AppState, request: Request) -> Response:
    """Return an image of a session or sub-agent: `image/OFFSET-N`.

    Raises:
        NotFound: The image does not exist.
    """
    with open_session(app_state, request_params(request)) as opened_session:
        data, kind = _find_image(opened_session.view.transcript, request.path_params["place"])
    return Response(data, media_type=kind, headers={"content-disposition": _DISPOSITION})


def _find_image(transcript: Transcript, image_key: str) -> tuple[bytes, str]:
    offset, _, number = image_key.partition("-")
    if offset.isdecimal() and number.isdecimal():
        node = next((candidate for candidate in transcript.nodes if str(candidate.offset) == offset), None)
        pictures = images_in(transcript.record(node)) if node is not None else []
        for picture in pictures:
            data = image_bytes(picture) if str(picture.number) == number else None
            if data is not None:
                return data, picture.media_type
    raise NotFound("no such image")
