"""Session page (also of a sub-agent): page, fragments, event stream, download."""

import os
from collections.abc import AsyncGenerator, Iterator
from time import perf_counter
from typing import Any, Final

import msgspec
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from steno.errors import BadRequest, NotFound, StenoError
from steno.format.paths import JSONL_SUFFIX, SHORT_ID_LENGTH
from steno.report.export.export_options import ExportFormat
from steno.report.export.session_export import ExportJob, export_chunks
from steno.sanitize.secret_masker import Masker
from steno.web.export.session_pages import render_page_bytes
from steno.web.sse import KEEPALIVE, QUIET_SECONDS, RETRY, encode_event, pause_since, stream_response
from steno.web.state.app_state import AppState
from steno.web.state.caches import SessionRef, discover_path
from steno.web.templating import links, render_page, render_part
from steno.web.urls import parse_number
from steno.web.views.file_findings import session_findings
from steno.web.views.find_in_session import FindView, find_view, highlight, locate_record
from steno.web.views.opened_session import (
    BIG,
    OpenedSession,
    locate_session,
    open_session,
    render_options,
    request_params,
    tail_preview,
)
from steno.web.views.session_charts import session_map
from steno.web.views.session_panel import session_panel
from steno.web.views.session_params import SessionPageParams
from steno.web.views.session_view import SessionHeader, SessionIndexInfo, SessionView, session_header, subagent_key
from steno.web.views.step_view import RenderOptions
from steno.web.views.turn_view import all_branches, branch_view, sections_around, sections_between, turn_view

_MAX_RECORDS_WITH_PANEL = 4_000
"""Maximum records of a page that includes the side panel; for longer sessions, it is loaded after the page."""


def session_page(app_state: AppState, request: Request) -> Response:
    """Return the page of a session or sub-agent."""
    params = request_params(request)
    session_ref, indexed = locate_session(app_state, params)
    needs_reading = (
        indexed.metadata.size > BIG
        and not session_ref.is_deleted
        and not app_state.session_cache.is_fresh(session_ref.path)
    )
    if needs_reading and not params.read_all and not params.agent:
        return HTMLResponse(_preview_page(app_state, params, session_ref, indexed))
    with open_session(app_state, params, with_costs=True) as opened_session:
        target = ""
        if params.record_offset is not None:
            found_target = locate_record(opened_session.view, params)
            if found_target is None:
                # Records that are not part of a turn have a page.
                record_url = links().record(params.key, params.record_offset, params.agent)
                return RedirectResponse(record_url, status_code=303)
            target = found_target
        return HTMLResponse(_full_page(app_state, opened_session, target))


def _full_page(app_state: AppState, opened_session: OpenedSession, target: str = "") -> str:
    params, session_ref, indexed, view = (
        opened_session.params,
        opened_session.session_ref,
        opened_session.indexed,
        opened_session.view,
    )
    head = session_header(view, session_ref, indexed, app_state.now())
    options = opened_session.render_options(live=head.live)
    finding = find_view(view, params, options)
    start = _start_turn(view, params, head, indexed)
    sections_html = render_part("session-turns.html.j2", pieces=sections_around(view, options, start, params.branch))
    with_panel = params.panel or len(view.transcript.nodes) <= _MAX_RECORDS_WITH_PANEL
    last = view.turns[-1] if view.turns else None
    return render_page(
        app_state,
        "session.html.j2",
        **_common_values(params, session_ref, indexed, head),
        pieces=highlight(sections_html, finding.terms),
        finding=finding,
        goto=target,
        ends=start > 1 and not params.turn,
        map=_session_map_html(view),
        panel=session_panel(view, options, indexed.copied_responses) if with_panel else None,
        panel_source=links().inside(params.key, "panel", params.agent, detail=params.query()["detail"]),
        live_source=links().inside(params.key, "live", params.agent, detail=params.query()["detail"]),
        live_at=f"{last.number}.{view.turn_fingerprints[-1]}" if last is not None else "0.",
        records=len(view.transcript.nodes),
        size=view.transcript.source.size,
        loose=_unlinked_subagents(view, options),
        glimpsed=False,
    )


def _common_values(
    params: SessionPageParams, session_ref: SessionRef, indexed: SessionIndexInfo, head: SessionHeader
) -> dict[str, Any]:
    """Return the template values that all variants of the page share."""
    return {
        "here": "session",
        "params": params,
        "place": session_ref,
        "head": head,
        "indexed": indexed,
        "details": [
            (name, params.url(links(), detail="" if name == "steps" else name, turn=None))
            for name in ("prompts", "answers", "steps", "everything")
        ],
        "toggles": {
            "abandoned": params.url(links(), abandoned="off" if params.abandoned else ""),
            "thinking": params.url(links(), thinking="off" if params.thinking else ""),
        },
    }


def _session_map_html(view: SessionView) -> Markup:
    if "map" not in view.html_cache:
        view.html_cache["map"] = session_map(view)
    return Markup(view.html_cache["map"])


def _start_turn(view: SessionView, params: SessionPageParams, head: SessionHeader, indexed: SessionIndexInfo) -> int:
    """Return the first turn to render in full."""
    if params.turn:
        return min(params.turn, max(1, len(view.turns)))
    starts_at_end = head.live or (indexed.metadata.size > BIG and not params.agent)
    return max(1, len(view.turns)) if starts_at_end else 1


def _unlinked_subagents(view: SessionView, options: RenderOptions) -> list[tuple[str, str]]:
    """Return the sub-agents without a known tool call, which are linked separately."""
    if view.subagent is not None:
        return []
    return [
        (
            subagent.description or subagent.prompt.strip().split("\n")[0][:120] or subagent_key(subagent),
            options.links.agent(options.key, subagent_key(subagent)),
        )
        for subagent in view.session.loose_agents
    ]


# Preview of a large session


def _preview_page(
    app_state: AppState, params: SessionPageParams, session_ref: SessionRef, indexed: SessionIndexInfo
) -> str:
    metadata = indexed.metadata
    options = render_options(params, indexed, live=False)
    boxes: list[Any] = []
    if not params.turn and not params.find and not params.branch and params.record_offset is None:
        view, turns = tail_preview(session_ref.path, app_state.prices)
        boxes = [turn_view(turn, view, options, label="…", prefix="g") for turn in turns]
    head = SessionHeader(
        metadata.title or session_ref.id, metadata.project, metadata.branch, session_ref.id[:SHORT_ID_LENGTH]
    )
    return render_page(
        app_state,
        "session.html.j2",
        **_common_values(params, session_ref, indexed, head),
        pieces=Markup(render_part("session-turns.html.j2", pieces=boxes)),
        finding=FindView(),
        goto="",
        ends=bool(boxes),
        map="",
        panel=None,
        panel_source="",
        live_source="",
        live_at="",
        records=0,
        size=metadata.size,
        loose=[],
        glimpsed=params.url(links(), whole=1, at=params.record_offset),
    )


# Fragments


def turn_range(app_state: AppState, request: Request) -> Response:
    """Return a range of turns."""
    params = request_params(request)
    with open_session(app_state, params) as opened_session:
        last = params.last_turn or len(opened_session.view.turns)
        sections = sections_between(opened_session.view, opened_session.render_options(), params.first_turn or 1, last)
        return HTMLResponse(render_part("session-turns.html.j2", pieces=sections))


def abandoned_branches(app_state: AppState, request: Request) -> Response:
    """Return all abandoned branches after a turn."""
    with open_session(app_state, request_params(request)) as opened_session:
        sections = all_branches(opened_session.view, opened_session.render_options(), opened_session.params.first_turn)
        return HTMLResponse(render_part("session-turns.html.j2", pieces=sections))


def abandoned_branch(app_state: AppState, request: Request) -> Response:
    """Return the content of an abandoned branch."""
    number = request.path_params["number"]
    with open_session(app_state, request_params(request)) as opened_session:
        abandoned = opened_session.view.abandoned_branch(parse_number(number))
        box = branch_view(abandoned, opened_session.view, opened_session.render_options(), opened=True)
        return HTMLResponse(render_part("session-turns.html.j2", pieces=[box]))


def side_panel(app_state: AppState, request: Request) -> Response:
    """Return the side panel."""
    with open_session(app_state, request_params(request), with_costs=True) as opened_session:
        parts, detail = opened_session.view.html_cache, opened_session.params.detail
        if detail not in parts:
            panel_values = session_panel(
                opened_session.view, opened_session.render_options(), opened_session.indexed.copied_responses
            )
            parts[detail] = render_part("session-panel.html.j2", panel=panel_values)
        return HTMLResponse(parts[detail])


def findings_section(app_state: AppState, request: Request) -> Response:
    """Return the findings of a session file."""
    params = request_params(request)
    session_ref, _ = locate_session(app_state, params)
    if params.agent:
        session_ref = _subagent_ref(app_state, params, session_ref)
    try:
        file_findings = session_findings(app_state, session_ref, links(), params.agent)
    except StenoError as error:
        return HTMLResponse(render_part("session-findings.html.j2", findings=None, why=str(error)))
    return HTMLResponse(render_part("session-findings.html.j2", findings=file_findings, why="", asked=params.agent))


def _subagent_ref(app_state: AppState, params: SessionPageParams, session_ref: SessionRef) -> SessionRef:
    """Return the file of a sub-agent, or the session file if the sub-agent has no separate file."""
    with app_state.index() as index:
        try:
            return app_state.subagent_ref(index, params.key, params.agent)
        except NotFound:
            return session_ref


_MIN_PAUSE: Final = 0.2
_MAX_TURNS: Final = 12
"""Maximum new turns that are rendered in full per event; earlier new turns are folded."""


class _Client(msgspec.Struct):
    """The state of a connected page."""

    params: SessionPageParams
    last_turn: int = 0
    """The last turn on the page."""
    last_fingerprint: str = ""
    fingerprints: list[str] | None = None
    header_hash: int = 0


async def session_stream(app_state: AppState, request: Request) -> Response:
    """Return the event stream of a session."""
    params = request_params(request)
    session_ref, _ = await run_in_threadpool(locate_session, app_state, params)
    last_event = request.headers.get("last-event-id") or request.query_params.get("at", "")
    number, _, fingerprint = last_event.partition(".")
    last_turn = parse_number(number)
    client = _Client(params, last_turn, fingerprint)
    return stream_response(_session_events(app_state, session_ref, client))


async def _session_events(app_state: AppState, session_ref: SessionRef, client: _Client) -> AsyncGenerator[bytes]:
    async with app_state.pubsub.subscribe() as subscription:
        yield RETRY
        while not subscription.closed:
            started = perf_counter()
            try:
                changes = await run_in_threadpool(_changes_since, app_state, client)
            except StenoError as error:
                yield encode_event("gone", {"why": str(error)})
                return
            for event in changes:
                yield event
            await pause_since(started, _MIN_PAUSE)
            while not subscription.closed:
                paths = await subscription.wait(QUIET_SECONDS)
                if paths is None or any(_affects_session(path, session_ref) for path in paths):
                    break
                if not paths:
                    yield KEEPALIVE


def _affects_session(path: str, session_ref: SessionRef) -> bool:
    """Return whether a changed file belongs to the session or one of its sub-agents."""
    folder, name = os.path.split(path)
    is_subagent_file = folder == os.path.dirname(session_ref.path) and name.startswith("agent-")
    return (
        path == session_ref.path
        or is_subagent_file
        or path.startswith(session_ref.path.removesuffix(JSONL_SUFFIX) + "/")
    )


def _changes_since(app_state: AppState, client: _Client) -> list[bytes]:
    """Return the events for changes since the last check."""
    with open_session(app_state, client.params, with_costs=True) as opened_session:
        head = session_header(opened_session.view, opened_session.session_ref, opened_session.indexed, app_state.now())
        events: list[bytes] = []
        text = render_part("session-head.html.j2", head=head)
        if client.header_hash != hash(text):
            if client.header_hash or client.fingerprints is None:
                events.append(encode_event("head", {"html": text, "live": head.live}))
            client.header_hash = hash(text)
        fingerprints = opened_session.view.turn_fingerprints
        first = _first_changed(client, fingerprints)
        known_turns = client.last_turn if client.fingerprints is None else len(client.fingerprints)
        client.fingerprints = fingerprints
        if first is not None:
            events += _turn_events(opened_session, client, first, min(known_turns, len(fingerprints)), live=head.live)
        return events


def _first_changed(client: _Client, fingerprints: list[str]) -> int | None:
    """Return the index of the first changed turn; None if nothing changed."""
    previous = client.fingerprints
    if previous is None:
        last_turn = client.last_turn
        if last_turn == len(fingerprints) and (not last_turn or fingerprints[last_turn - 1] == client.last_fingerprint):
            return None
        return max(0, min(last_turn, len(fingerprints)) - 1)
    if previous == fingerprints:
        return None
    pairs = enumerate(zip(previous, fingerprints, strict=False))
    same = min(len(previous), len(fingerprints))
    return next((position for position, (old, new) in pairs if old != new), max(0, same - 1))


def _turn_events(
    opened_session: OpenedSession, client: _Client, first: int, known_turns: int, *, live: bool
) -> Iterator[bytes]:
    """Yield the turns from `first`; `known_turns` of them are already on the page."""
    view = opened_session.view
    total = len(view.turns)
    for start, end in _batches(first, known_turns, total):
        key = f"{start} {end} {live} {client.params.detail}"
        if key not in view.html_cache:
            # Turns on the page stay rendered in full; only new ones may be folded.
            full = range(start + 1 if start < known_turns else max(start, end - _MAX_TURNS) + 1, end + 1)
            sections = sections_between(view, opened_session.render_options(live=live), start + 1, end, full)
            view.html_cache[key] = render_part("session-turns.html.j2", pieces=sections)
        name = f"{end}.{view.turn_fingerprints[end - 1]}" if end else "0."
        data = {"html": view.html_cache[key], "first": start + 1, "total": total}
        yield encode_event("turns", data, name)


def _batches(first: int, known_turns: int, total: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of turns to send: first the changed ones, then the new ones."""
    if total - first <= _MAX_TURNS:
        yield first, total
        return
    for start in range(first, known_turns, _MAX_TURNS):
        yield start, min(start + _MAX_TURNS, known_turns)
    if total > known_turns:
        yield known_turns, total


_FORMATS: Final[dict[str, tuple[ExportFormat, str]]] = {"html": ("html", "html"), "markdown": ("markdown", "md")}


def download(app_state: AppState, request: Request) -> Response:
    """Return a session as a file download.

    Raises:
        NotFound: The session does not exist.
        BadRequest: The format is unknown.
    """
    format_name = request.query_params.get("format", "html")
    if format_name not in _FORMATS:
        raise BadRequest(f"unknown format {format_name!r}", hint="Use `html` or `markdown`.")
    kind, end = _FORMATS[format_name]
    with app_state.index() as index:
        session_ref = app_state.session_ref(index, request.path_params["key"])
    discovered = discover_path(session_ref.path)
    job = ExportJob(kind, masker=Masker())
    data = render_page_bytes(discovered, job) if kind == "html" else b"".join(export_chunks(discovered, job))
    name = "".join(letter for letter in session_ref.id[:SHORT_ID_LENGTH] if letter.isalnum()) or "session"
    # Always a download: displayed on this origin, the export could run its own scripts.
    return Response(
        data,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="session-{name}.{end}"'},
    )
