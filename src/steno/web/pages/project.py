"""Everything that is known of a project."""

from typing import Any, Final

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.report import words
from steno.report.project import Project, gather
from steno.report.project.config import Note, Todo, Typed
from steno.report.project.figures import Pull, Week
from steno.safe.html import trusted
from steno.web.house import House
from steno.web.paint import links, money, page
from steno.web.pair.pick import choices_of
from steno.web.render.code import code_block
from steno.web.render.markdown import markdown
from steno.web.render.weeks import weeks
from steno.web.tags import tag_of, tagged

__all__ = ["project"]

_SECOND: Final = 1000
_WEB: Final = ("https://", "http://")


class _Text(msgspec.Struct, frozen=True):
    """A note as it is drawn."""

    name: str
    source: str
    shown: Markup
    more: int
    lines: int


class _List(msgspec.Struct, frozen=True):
    """What a session had set out to do."""

    title: str
    href: str
    todo: Todo


class _Prompt(msgspec.Struct, frozen=True):
    """A prompt as it was typed."""

    typed: Typed
    when: str
    href: str


class _Pull(msgspec.Struct, frozen=True):
    """A pull request, with its address where that leads to the web."""

    pull: Pull
    href: str
    session: str


def project(house: House, request: Request) -> Response:
    """Return the page of a project."""
    with house.index() as index:
        connection = index.connection
        paths = connection.execute("SELECT DISTINCT project FROM sessions WHERE project != ''")
        path = tagged(request.path_params["tag"], (each for (each,) in paths))
        found = gather(connection, path, house.prices, house.now())
        rows = choices_of(house, index, ((each, "") for each in found.listing.rows))
        names = [
            *(each.session for each in found.kept.lists),
            *(each.session for each in found.kept.prompts),
        ]
        marks = ", ".join("?" * len(names))
        titles: dict[str, str] = dict(
            connection.execute(
                f"SELECT id, title FROM sessions WHERE agent = '' AND id IN ({marks})", names
            )
        )
    values: dict[str, Any] = {
        "here": "sessions",
        "found": found,
        "tag": tag_of(path),
        "name": words.project_name(path) or path,
        "rows": rows,
        "strip": _strip(found, house.now()),
        "chart": _chart(found.weeks),
        "told": [_drawn(each) for each in (*found.own.notes, *found.kept.instructions)],
        "memory": [_drawn(each) for each in found.kept.memory],
        "plans": [_drawn(each) for each in found.kept.plans],
        "lists": [_list(each, titles) for each in found.kept.lists],
        "prompts": [_prompt(each, titles, house.now()) for each in found.kept.prompts],
        "pulls": [_pull(each) for each in found.pulls],
        "settings": [
            (each.source, each.settings, trusted(code_block(each.settings.masked, "json")))
            for each in found.settings
        ],
        "ended": {
            each.name: "" if each.ended is None else words.day(each.ended / _SECOND, house.now())
            for each in found.branches
        },
        "tag_of": tag_of,
        "short": _short(path),
    }
    return HTMLResponse(page(house, "project.html.j2", **values))


def _strip(found: Project, now: float) -> list[tuple[str, str, str]]:
    """Return the few numbers at the head: what, how much, and a word on it."""
    sums = found.sums
    since = "" if sums.started is None else words.day(sums.started / _SECOND, now)
    last = "" if sums.ended is None else words.day(sums.ended / _SECOND, now)
    last = last.lower() if last in ("Today", "Yesterday") else last
    figures = sums.figures
    cached = f"{figures.cache_read / figures.context:.0%} from cache" if figures.context else ""
    share = f"{sums.failed / sums.steps:.0%} of {sums.steps:,} steps" if sums.steps else ""
    return [
        ("Sessions", f"{sums.sessions:,}", f"since {since}" if since else ""),
        ("Turns", f"{sums.turns:,}", f"last {last}" if last else ""),
        ("Cost", money(sums.cost) or "not known", words.count(figures.responses, "response")),
        ("Tokens read", words.tokens(figures.context), cached),
        ("Tokens written", words.tokens(figures.output), ""),
        ("Failed steps", f"{sums.failed:,}", share),
    ]


def _chart(some: list[Week]) -> Markup:
    """Draw what each week cost, or its tokens where nothing has a price."""
    if not some:
        return Markup("")
    priced = any(week.cost for week in some)
    values = [week.cost if priced else week.tokens for week in some]
    shown = [money(value) if priced else f"{words.tokens(value)} tokens" for value in values]
    said = [f"Week of {week.monday}: {what}" for week, what in zip(some, shown, strict=True)]
    highest = shown[values.index(max(values))]
    label = f"{words.count(len(some), 'week')}, the highest {highest}, this week {shown[-1]}"
    return weeks(values, [week.monday for week in some], said, label, highest)


def _drawn(note: Note) -> _Text:
    return _Text(
        note.name, note.source, markdown(note.text), note.more, len(note.text.splitlines())
    )


def _list(each: Todo, titles: dict[str, str]) -> _List:
    known = each.session in titles
    title = titles.get(each.session) or each.session[:8]
    return _List(title, links().session(each.session) if known else "", each)


def _prompt(each: Typed, titles: dict[str, str], now: float) -> _Prompt:
    known = each.session in titles
    seconds = each.time / _SECOND
    when = f"{words.day(seconds, now)} {words.clock(seconds)}" if 0 < seconds < now * 2 else ""
    return _Prompt(each, when, links().session(each.session) if known else "")


def _pull(each: Pull) -> _Pull:
    href = each.address if each.address.startswith(_WEB) else ""
    return _Pull(each, href, links().session(each.key))


def _short(path: str) -> str:
    base = path.rstrip("/\\")
    return base + ("\\" if "\\" in base and "/" not in base else "/") if base else ""
