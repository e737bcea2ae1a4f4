"""Opens a session for a request: reference, index facts and view; a tail preview of large files."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import msgspec
from starlette.requests import Request

from steno.errors import NotFound
from steno.report.current_step import load_tail
from steno.report.pricing import PriceTable
from steno.session.session import Session
from steno.session.turns.turn_builder import Turn
from steno.store.archive.file_access import lazy_source
from steno.store.discovery import discover_file
from steno.web.state.app_state import AppState
from steno.web.state.caches import SessionRef
from steno.web.templating import links
from steno.web.views.session_params import SessionPageParams, session_page_params
from steno.web.views.session_view import SessionIndexInfo, SessionView, session_index_info, session_view
from steno.web.views.step_view import RenderOptions


class OpenedSession(msgspec.Struct):
    """All that pages about a session begin with."""

    params: SessionPageParams
    session_ref: SessionRef
    indexed: SessionIndexInfo
    view: SessionView

    def render_options(self, *, live: bool = False) -> RenderOptions:
        """Return how the reader wants it told."""
        return render_options(self.params, self.indexed, live=live)


def render_options(params: SessionPageParams, indexed: SessionIndexInfo, *, live: bool = False) -> RenderOptions:
    """Return how a reader wants a session told."""
    return RenderOptions(params.key, links(), params.detail, params.open_steps, live, indexed.metadata.project)


def request_params(request: Request) -> SessionPageParams:
    """Return what a request wants to see."""
    path_params = request.path_params
    return session_page_params(path_params["key"], path_params.get("agent", ""), request.query_params)


def locate_session(
    app_state: AppState, params: SessionPageParams, *, with_costs: bool = False
) -> tuple[SessionRef, SessionIndexInfo]:
    """Return where a session lies, and what is known of it without opening it.

    With `whole` its cost is summed up as well, and its neighbours are looked for.

    Raises:
        NotFound: there is no such session.
    """
    with app_state.index() as index:
        try:
            session_ref = app_state.session_ref(index, params.key)
        except NotFound:
            if not params.agent:
                raise
            # A sub-agent whose session is not here is told on its own.
            session_ref = app_state.subagent_ref(index, params.key, params.agent)
        indexed = session_index_info(app_state, index, session_ref, with_costs=with_costs)
    params.key = session_ref.key
    return session_ref, indexed


@contextmanager
def open_session(
    app_state: AppState, params: SessionPageParams, *, with_costs: bool = False
) -> Generator[OpenedSession]:
    """Give a session, or a sub-agent, to a page; nobody else reads it meanwhile.

    Raises:
        NotFound: there is no such session or sub-agent, or its file is gone.
        Unreadable: it cannot be read.
    """
    session_ref, indexed = locate_session(app_state, params, with_costs=with_costs)
    with app_state.open_session(session_ref) as session:
        yield OpenedSession(params, session_ref, indexed, session_view(app_state, session, session_ref, params.agent))


BIG: Final = 12 << 20
"""From this size on the whole takes longer than anybody should wait for the first line."""
_TAIL: Final = 1 << 20
_MAX_TAIL: Final = 8 << 20
_PREVIEW_TURNS: Final = 3


def tail_preview(path: str, prices: PriceTable) -> tuple[SessionView, list[Turn]]:
    """Return the last turns of the session at a path; their numbers mean nothing.

    Raises:
        Unreadable: it cannot be read.
    """
    source = lazy_source(discover_file(path))
    length = _TAIL
    while True:
        session = Session(load_tail(source, length))
        # What stands first was begun before what was read.
        turns = session.turns()[1:]
        if turns or length >= _MAX_TAIL:
            return SessionView(session, prices), turns[-_PREVIEW_TURNS:]
        length *= 4
