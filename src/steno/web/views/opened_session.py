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
    """An open session with its page parameters and index data."""

    params: SessionPageParams
    session_ref: SessionRef
    indexed: SessionIndexInfo
    view: SessionView

    def render_options(self, *, live: bool = False) -> RenderOptions:
        """Return the render options of the request."""
        return render_options(self.params, self.indexed, live=live)


def render_options(params: SessionPageParams, indexed: SessionIndexInfo, *, live: bool = False) -> RenderOptions:
    """Return the render options for page parameters."""
    return RenderOptions(params.key, links(), params.detail, params.open_steps, live, indexed.metadata.project)


def request_params(request: Request) -> SessionPageParams:
    """Return the page parameters of a request."""
    path_params = request.path_params
    return session_page_params(path_params["key"], path_params.get("agent", ""), request.query_params)


def locate_session(
    app_state: AppState, params: SessionPageParams, *, with_costs: bool = False
) -> tuple[SessionRef, SessionIndexInfo]:
    """Return the file and the index data of a session without opening it.

    With `with_costs`, also compute its cost and find the previous and next session.

    Raises:
        NotFound: The session does not exist.
    """
    with app_state.index() as index:
        try:
            session_ref = app_state.session_ref(index, params.key)
        except NotFound:
            if not params.agent:
                raise
            # A sub-agent whose session is not indexed is shown as a session.
            session_ref = app_state.subagent_ref(index, params.key, params.agent)
        indexed = session_index_info(app_state, index, session_ref, with_costs=with_costs)
    params.key = session_ref.key
    return session_ref, indexed


@contextmanager
def open_session(
    app_state: AppState, params: SessionPageParams, *, with_costs: bool = False
) -> Generator[OpenedSession]:
    """Open a session or sub-agent for exclusive use.

    Raises:
        NotFound: The session, the sub-agent or its file does not exist.
        Unreadable: The file cannot be read.
    """
    session_ref, indexed = locate_session(app_state, params, with_costs=with_costs)
    with app_state.open_session(session_ref) as session:
        yield OpenedSession(params, session_ref, indexed, session_view(app_state, session, session_ref, params.agent))


BIG: Final = 12 << 20
"""Maximum bytes of a file that is shown without a preview; otherwise a preview of the last turns is shown first."""
_TAIL: Final = 1 << 20
_MAX_TAIL: Final = 8 << 20
_PREVIEW_TURNS: Final = 3


def tail_preview(path: str, prices: PriceTable) -> tuple[SessionView, list[Turn]]:
    """Return the last turns of a session file. The turns are numbered from the start of the preview.

    Raises:
        Unreadable: The file cannot be read.
    """
    source = lazy_source(discover_file(path))
    length = _TAIL
    while True:
        session = Session(load_tail(source, length))
        # The first turn started before the part that was read.
        turns = session.turns()[1:]
        if turns or length >= _MAX_TAIL:
            return SessionView(session, prices), turns[-_PREVIEW_TURNS:]
        length *= 4
