"""Every file that agents touched, by project and folder."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.report import words
from steno.report.clock import day_of
from steno.report.files.timeline import brief_day
from steno.report.files.touched import Choice, Project, Sort, Touched, in_order, touched
from steno.web.files.shelf import shelf_of
from steno.web.files.tree import Branch, Folder, folders_in, inside, rows_of, tree_of
from steno.web.house import House
from steno.web.numbers import number_in
from steno.web.paint import links, page
from steno.web.tags import tag_of, tagged

__all__ = ["files"]

_PAGE: Final = 100
_LONGEST: Final = 200
_SECOND: Final = 1000
_BACK: Final = {"today": 0, "week": 6, "month": 29}
_TIMES: Final = (("", "Any time"), ("today", "Today"), ("week", "Week"), ("month", "Month"))
_SORTS: Final[dict[Sort, str]] = {
    "last": "Last touched",
    "edits": "Most changed",
    "reads": "Most read",
    "lines": "Most lines",
    "sessions": "Most sessions",
    "path": "By path",
}
_KNOWN: Final[dict[str, Sort]] = {name: name for name in _SORTS}
_PROJECTS: Final = 12


class _Row(msgspec.Struct, frozen=True):
    """A file as the page shows it."""

    file: Touched
    href: str
    folder: str
    name: str
    when: str


class _Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    choice: Choice
    query: dict[str, str]
    folder: str
    start: int


def files(house: House, request: Request) -> Response:
    """Return the files that were touched."""
    shelf = shelf_of(house)
    with house.index() as index:
        projects = shelf.projects(index)
        asked = _asked(house, request, [each.path for each in projects])
        root: Folder | None = None
        if asked.choice.project is not None:
            root = tree_of(shelf.of_project(index, asked.choice.project), asked.choice.project)
        asked = _placed(asked, root)
        found, total = _found(house, index, asked)
    bases = sorted((each.path for each in projects if each.path), key=len, reverse=True)
    shown = found[asked.start : asked.start + _PAGE]
    rows = [_row(file, asked, bases, house.now()) for file in shown]
    more = len(found) > asked.start + _PAGE
    shown_all = request.query_params.get("open") == "project"
    values: dict[str, Any] = {
        "here": "files",
        "asked": asked,
        "rows": rows,
        "total": total,
        "projects": _projects(projects, asked, every=shown_all),
        "all_projects": ""
        if shown_all or len(projects) <= _PROJECTS
        else _way(asked, open="project"),
        "touches": sum(each.touches for each in projects),
        "tree": _tree(root, asked),
        "crumbs": _crumbs(asked),
        "everywhere": links().files(**{**asked.query, "project": "", "dir": ""}),
        "any_kind": (_way(asked, changed=""), _way(asked, changed="1")),
        "times": [
            (label, _way(asked, since=name), asked.query.get("since", "") == name)
            for name, label in _TIMES
        ],
        "sorts": [
            (label, _way(asked, sort="" if name == "last" else name), name == asked.choice.sort)
            for name, label in _SORTS.items()
        ],
        "sorted": _SORTS[asked.choice.sort],
        "next": _way(asked, **{"from": asked.start + _PAGE}) if more else "",
        "previous": _way(asked, **{"from": max(0, asked.start - _PAGE)}) if asked.start else "",
        "first": asked.start + 1,
    }
    return HTMLResponse(page(house, "files.html.j2", **values))


def _asked(house: House, request: Request, projects: Iterable[str]) -> _Asked:
    given = request.query_params
    known = ("project", "dir", "q", "changed", "since", "sort")
    query = {name: given[name] for name in known if given.get(name)}
    text = query.get("q", "")
    if len(text) > _LONGEST:
        raise BadRequest("too many words to look for", hint=f"at most {_LONGEST} letters")
    project = tagged(query["project"], projects) if "project" in query else None
    sort = query.get("sort", "last")
    start = given.get("from", "")
    back = _BACK.get(query.get("since", ""))
    choice = Choice(
        project=project,
        words=text,
        changed=bool(query.get("changed")),
        since=None if back is None else int(day_of(house.now(), back) * _SECOND),
        sort=_KNOWN.get(sort, "last"),
    )
    return _Asked(choice, query, "", number_in(start))


def _placed(asked: _Asked, root: Folder | None) -> _Asked:
    """Say which folder is meant; a name means one only together with its project."""
    if "dir" not in asked.query or root is None:
        query = {name: value for name, value in asked.query.items() if name != "dir"}
        return msgspec.structs.replace(asked, query=query)
    return msgspec.structs.replace(asked, folder=tagged(asked.query["dir"], folders_in(root)))


def _found(house: House, index: Index, asked: _Asked) -> tuple[list[Touched], int | None]:
    """Return the files, and how many there are where that is known."""
    choice = asked.choice
    if choice.project is None and not choice.words:
        return touched(index.connection, choice, limit=asked.start + _PAGE + 1), None
    if choice.project is not None and choice.since is None:
        mine = shelf_of(house).of_project(index, choice.project)
        wanted = [word.lower() for word in choice.words.split()]
        found = in_order(
            (
                file
                for file in mine
                if (file.is_changed or not choice.changed)
                and all(word in file.path.lower() for word in wanted)
            ),
            choice.sort,
        )
    else:
        found = touched(index.connection, choice)
    if asked.folder:
        found = inside(found, asked.folder)
    return found, len(found)


def _row(file: Touched, asked: _Asked, bases: Sequence[str], now: float) -> _Row:
    """Return a row: a path is told from the folder on that is open, or from its project on."""
    way = file.path.replace("\\", "/")
    base = asked.folder or asked.choice.project or ""
    if base and way.startswith(f"{base}/"):
        way = way[len(base) + 1 :]
    elif not base and (mine := next((each for each in bases if way.startswith(f"{each}/")), "")):
        way = words.project_name(mine) + way[len(mine) :]
    folder, slash, name = way.rpartition("/")
    when = "" if file.last is None else _when(file.last / _SECOND, now)
    return _Row(file, links().file(tag_of(file.path)), folder + slash, name, when)


def _when(seconds: float, now: float) -> str:
    return words.clock(seconds) if day_of(seconds) == day_of(now) else brief_day(seconds, now)


def _way(asked: _Asked, **more: str | int | None) -> str:
    return links().files(**{**asked.query, **more})


def _projects(
    projects: list[Project], asked: _Asked, *, every: bool
) -> list[tuple[str, int, str, bool]]:
    """Return the projects: their names, touches and addresses, and which is chosen."""
    chosen = asked.choice.project
    names = _names([each.path for each in projects])
    return [
        (
            names[each.path],
            each.touches,
            links().files(**{**asked.query, "dir": "", "project": tag_of(each.path)}),
            each.path == chosen,
        )
        for place, each in enumerate(projects)
        if every or place < _PROJECTS or each.path == chosen
    ]


def _names(paths: Sequence[str]) -> dict[str, str]:
    """Return what projects are called: those of one name with so much of their paths as it takes."""
    made: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(words.project_name(path) or "no project", []).append(path)
    for name, alike in groups.items():
        parts = {path: path.replace("\\", "/").strip("/").split("/") for path in alike}
        for path, mine in parts.items():
            others = [other for each, other in parts.items() if each != path]
            tails = range(1, len(mine) + 1)
            own = (at for at in tails if all(other[-at:] != mine[-at:] for other in others))
            made[path] = name if len(alike) == 1 else "/".join(mine[-next(own, len(mine)) :])
    return made


def _tree(root: Folder | None, asked: _Asked) -> list[tuple[Branch, str, bool]]:
    """Return the rows of the tree with their addresses, and which of them is open here."""
    if root is None:
        return []
    made: list[tuple[Branch, str, bool]] = []
    for branch in rows_of(root, asked.folder):
        if branch.folder:
            here = branch.path == asked.folder
            way = branch.above if here else branch.path
            made.append((branch, _way(asked, dir=tag_of(way) if way else ""), here))
        else:
            made.append((branch, links().file(tag_of(branch.path)), False))
    return made


def _crumbs(asked: _Asked) -> list[tuple[str, str]]:
    """Return the way to the folder that is open."""
    project = asked.choice.project
    if project is None:
        return []
    made = [(words.project_name(project) or "no project", _way(asked, dir=""))]
    if asked.folder:
        base = f"{project}/"
        rest = asked.folder.removeprefix(base)
        at = project if asked.folder.startswith(base) else ""
        for part in rest.split("/"):
            if part:
                at = f"{at}/{part}" if at or asked.folder.startswith("/") else part
                made.append((part, _way(asked, dir=tag_of(at))))
    return made
