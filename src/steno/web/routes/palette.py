"""Command palette: pages, actions, sessions, projects and files that match a query."""

from collections.abc import Iterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest
from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.session_lookup import find_palette_files, find_palette_projects, find_palette_sessions
from steno.web.state.app_state import AppState, NotReady
from steno.web.templating import links, render_page
from steno.web.urls import Links, path_tag

_MAX_ITEMS: Final = 6
_MAX_QUERY: Final = 200
_ACTIONS: Final = (
    ("theme", "Switch theme: light, dark, system", "theme", "t"),
    ("density", "Switch density: normal, dense", "sort", "d"),
    ("link", "Copy page URL", "copy", ""),
    ("keys", "Keyboard shortcuts", "help", "?"),
)


class _PaletteItem(msgspec.Struct, frozen=True):
    """An item: a URL to open or an action to run."""

    icon: str
    title: str
    note: str = ""
    href: str = ""
    action: str = ""
    key: str = ""


class _PaletteGroup(msgspec.Struct, frozen=True):
    """Items of one kind."""

    title: str
    options: list[_PaletteItem]


def palette_items(app_state: AppState, request: Request) -> Response:
    """Return the items that match a query, as an HTML fragment."""
    text = " ".join(request.query_params.get("q", "").split())
    if len(text) > _MAX_QUERY:
        raise BadRequest("query is too long", hint=f"Use at most {_MAX_QUERY} characters.")
    groups = [
        _PaletteGroup("Pages", [item for item in _page_items(links()) if _matches(text, item)]),
        _PaletteGroup("Actions", [each for each in _action_items() if _matches(text, each)]),
    ]
    try:
        with app_state.index() as index:
            matches = list(_index_matches(index, text, app_state.now()))
    except NotReady:
        matches = []
    # Show sessions and files first for a query, pages first for an empty one.
    order = [*matches, *groups] if text else [*groups, *matches]
    visible = [group for group in order if group.options]
    return HTMLResponse(render_page(app_state, "palette-options.html.j2", groups=visible, text=text))


def _page_items(urls: Links) -> list[_PaletteItem]:
    return [
        _PaletteItem("say", "Sessions", href=urls.sessions(), key="g s"),
        _PaletteItem("half", "Usage", href=urls.usage(), key="g u"),
        _PaletteItem("read", "Files", href=urls.files(), key="g f"),
        _PaletteItem("compare", "Compare", href=urls.compare(), key="g c"),
        _PaletteItem("check", "Health", href=urls.health(), key="g h"),
    ]


def _action_items() -> list[_PaletteItem]:
    return [_PaletteItem(icon, title, action=name, key=key) for name, title, icon, key in _ACTIONS]


def _matches(text: str, option: _PaletteItem) -> bool:
    title = option.title.casefold()
    return all(word in title for word in text.casefold().split())


def _index_matches(index: SessionIndex, text: str, now: float) -> Iterator[_PaletteGroup]:
    urls, connection = links(), index.connection
    sessions = [
        _PaletteItem(
            "say",
            session.title or "(no title)",
            _session_note(session.project, session.ended, now),
            urls.session(session.key),
        )
        for session in find_palette_sessions(connection, text, _MAX_ITEMS)
    ]
    yield _PaletteGroup("Sessions" if text else "Newest sessions", sessions)
    if not text:
        return
    projects = [
        _PaletteItem(
            "folder", humanize.project_name(path), humanize.count(number, "session"), urls.project(path_tag(path))
        )
        for path, number in find_palette_projects(connection, text, _MAX_ITEMS)
    ]
    yield _PaletteGroup("Projects", projects)
    files = [
        _PaletteItem("edit", path, humanize.count(number, "change"), urls.file(path_tag(path)))
        for path, number in find_palette_files(connection, text, _MAX_ITEMS)
    ]
    yield _PaletteGroup("Files", files)
    yield _PaletteGroup("Search", [_PaletteItem("search", f"Search for {text}", "in all text", urls.search(q=text))])


def _session_note(project: str, ended: int | None, now: float) -> str:
    name = humanize.project_name(project) if project else ""
    day = "" if ended is None else humanize.day_name(ended / 1000, now)
    return ", ".join(filter(None, (name, day)))
