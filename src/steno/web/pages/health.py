"""How the sessions are: what is lost, what will be, what is not known, and what mends it.

The page changes nothing and runs nothing: it shows what the ward knows so far, and has it look.
"""

from typing import Final

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.report.cases import HARMS, Case, Harm, Named
from steno.report.health import Health
from steno.report.keys import titled_at
from steno.safe.html import words as shown
from steno.session.story.titles import UNTITLED
from steno.store.archive.gone import kept_number
from steno.web.house import House, NotReady
from steno.web.paint import links, page

__all__ = ["health"]

_TITLES: Final[dict[Harm, str]] = {
    "damage": "Damage",
    "risk": "Risk",
    "drift": "Drift",
    "clutter": "Left over",
}
_ICONS: Final[dict[Harm, tuple[str, str]]] = {
    "damage": ("cross", "bad"),
    "risk": ("clock", "warn"),
    "drift": ("unknown", "mid"),
    "clutter": ("archive", "mid"),
}
_NO_TITLE: Final = ("", "(no title)", UNTITLED)
_VERSIONS: Final = 8
_WHOLE: Final = 100


class _Who(msgspec.Struct, frozen=True):
    """A session that a case is about."""

    title: str
    href: str
    about: str


class _Shown(msgspec.Struct, frozen=True):
    """A case as the page shows it."""

    case: Case
    means: Markup
    sessions: list[_Who]


class _Group(msgspec.Struct, frozen=True):
    """Cases of one kind of harm."""

    harm: Harm
    title: str
    icon: str
    ink: str
    cases: list[_Shown]


class _Check(msgspec.Struct, frozen=True):
    """One line of the short list: whether it is well, and what is so."""

    well: bool
    words: str


def health(house: House, request: Request) -> Response:
    """Return the page, or with `part=body` only what changes while the ward looks."""
    house.ward.look()
    found = house.ward.health
    asked = request.query_params.get("harm", "")
    chosen: list[Harm] = [harm for harm in HARMS if harm == asked] or list(HARMS)
    known = _known(house, [each.path for case in found.cases for each in case.sessions])
    groups = [
        _Group(harm, _TITLES[harm], *_ICONS[harm], [_shown(each, known) for each in cases])
        for harm in chosen
        if (cases := found.of(harm))
    ]
    template = "health-body.html.j2" if request.query_params.get("part") else "health.html.j2"
    text = page(
        house,
        template,
        here="health",
        health=found,
        round=house.ward.round,
        asked=asked if asked in HARMS else "",
        groups=groups,
        tabs=_tabs(found),
        versions=found.versions[:_VERSIONS],
        older=len(found.versions) - _VERSIONS,
        checks=_checks(house, found),
        read=_share(found),
    )
    return HTMLResponse(text)


def _known(house: House, paths: list[str]) -> dict[str, tuple[str, str]]:
    """Return what addresses call the sessions of some files, and their titles."""
    try:
        with house.index() as index:
            return titled_at(index.connection, paths)
    except NotReady:
        return {}


def _shown(case: Case, known: dict[str, tuple[str, str]]) -> _Shown:
    return _Shown(case, _prose(case.means), [_who(each, known) for each in case.sessions])


def _who(each: Named, known: dict[str, tuple[str, str]]) -> _Who:
    key, title = known.get(each.path, ("", ""))
    return _Who(
        each.name if title in _NO_TITLE else title,
        links().session(key) if key else "",
        each.about,
    )


def _prose(text: str) -> Markup:
    """Return a sentence with what stands between backticks as code."""
    parts = text.split("`")
    if not len(parts) % 2:
        return shown(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(shown(part)) if at % 2 else shown(part)
        for at, part in enumerate(parts)
    )


def _tabs(found: Health) -> list[tuple[str, str, int, str]]:
    each = [(harm, _TITLES[harm], len(found.of(harm)), links().health(harm=harm)) for harm in HARMS]
    return [("", "All", len(found.cases), links().health()), *(tab for tab in each if tab[2])]


def _share(found: Health) -> str:
    """Return how much of the files could be read as records, never rounded up to all of it."""
    lines = found.records + found.gaps
    if not lines:
        return "none"
    share = found.records * _WHOLE / lines
    return "100%" if not found.gaps else f"{min(share, 99.99):.2f}%"


def _checks(house: House, found: Health) -> list[_Check]:
    state, kept = house.state, kept_number()
    folders = "Folders readable" if not found.unread else f"{found.unread:,} paths unreadable"
    index = state.problem or (
        "Index is being brought up to date" if state.syncing else "Index fresh"
    )
    archive = f"Archive has {kept:,} of your sessions" if kept else "Nothing archived yet"
    days = f"Client keeps sessions {found.cleanup_days:g} days"
    checks = [
        _Check(not found.unread, folders),
        _Check(not state.problem, index),
        _Check(bool(kept) or not found.unkept, archive),
    ]
    if found.cleanup_days:
        checks.append(_Check(not found.unkept, days))
    if found.newest:
        beyond = not found.unknown
        checks.append(_Check(beyond, f"Format known up to {found.newest}"))
    if found.empty:
        checks.append(_Check(well=True, words=f"{found.empty:,} files without a conversation"))
    return checks
