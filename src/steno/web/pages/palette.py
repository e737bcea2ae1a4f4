"""Everything there is to go to or to do, by a few letters: what the palette lists."""

from collections.abc import Iterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.report import words
from steno.report.goto import files_like, projects_like, sessions_like
from steno.web.house import House, NotReady
from steno.web.links import Links
from steno.web.paint import links, page
from steno.web.tags import tag_of

__all__ = ["palette"]

_EACH: Final = 6
_LONGEST: Final = 200
_ACTIONS: Final = (
    ("theme", "Light, dark, or as the system", "theme", "t"),
    ("density", "Dense or roomy", "sort", "d"),
    ("link", "Copy the address of this page", "copy", ""),
    ("keys", "Show all keys", "help", "?"),
)


class _Option(msgspec.Struct, frozen=True):
    """One line: an address to go to, or an action to run."""

    icon: str
    title: str
    note: str = ""
    href: str = ""
    action: str = ""
    key: str = ""


class _Group(msgspec.Struct, frozen=True):
    """Lines of one kind."""

    title: str
    options: list[_Option]


def palette(house: House, request: Request) -> Response:
    """Return the lines that fit what was typed, as a piece of a page."""
    text = " ".join(request.query_params.get("q", "").split())
    if len(text) > _LONGEST:
        raise BadRequest("too much to look for", hint=f"at most {_LONGEST} letters")
    groups = [
        _Group("Pages", [each for each in _pages(links()) if _fits(text, each)]),
        _Group("Actions", [each for each in _actions() if _fits(text, each)]),
    ]
    try:
        with house.index() as index:
            found = list(_found(index, text, house.now()))
    except NotReady:
        found = []
    # Whoever types looks for something of their own; before that, pages are nearest.
    order = [*found, *groups] if text else [*groups, *found]
    shown = [group for group in order if group.options]
    return HTMLResponse(page(house, "palette-options.html.j2", groups=shown, text=text))


def _pages(to: Links) -> list[_Option]:
    return [
        _Option("say", "Sessions", href=to.sessions(), key="g s"),
        _Option("half", "Usage", href=to.usage(), key="g u"),
        _Option("read", "Files", href=to.files(), key="g f"),
        _Option("compare", "Compare", href=to.compare(), key="g c"),
        _Option("check", "Health", href=to.health(), key="g h"),
    ]


def _actions() -> list[_Option]:
    return [_Option(icon, title, action=name, key=key) for name, title, icon, key in _ACTIONS]


def _fits(text: str, option: _Option) -> bool:
    title = option.title.casefold()
    return all(word in title for word in text.casefold().split())


def _found(index: Index, text: str, now: float) -> Iterator[_Group]:
    to, connection = links(), index.connection
    sessions = [
        _Option(
            "say",
            each.title or "(no title)",
            _note(each.project, each.ended, now),
            to.session(each.key),
        )
        for each in sessions_like(connection, text, _EACH)
    ]
    yield _Group("Sessions" if text else "Newest sessions", sessions)
    if not text:
        return
    projects = [
        _Option(
            "folder",
            words.project_name(path),
            words.count(number, "session"),
            to.project(tag_of(path)),
        )
        for path, number in projects_like(connection, text, _EACH)
    ]
    yield _Group("Projects", projects)
    files = [
        _Option("edit", path, words.count(number, "change"), to.file(tag_of(path)))
        for path, number in files_like(connection, text, _EACH)
    ]
    yield _Group("Files", files)
    yield _Group(
        "Search", [_Option("search", f"Search for {text}", "in all text", to.search(q=text))]
    )


def _note(project: str, ended: int | None, now: float) -> str:
    name = words.project_name(project) if project else ""
    day = "" if ended is None else words.day(ended / 1000, now)
    return ", ".join(filter(None, (name, day)))
