"""One file through time: who changed it when and why, any version, and what lies between two."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import NotFound
from steno.index.opened import Index
from steno.report import words
from steno.report.files.timeline import Entry, brief_day, entries_of, what_of, when_of, where_of
from steno.report.files.values import History, Version
from steno.report.keys import keys_of
from steno.web.files.panel import between, panel_of
from steno.web.files.shelf import shelf_of
from steno.web.files.tree import Branch, rows_of, tree_of
from steno.web.house import House
from steno.web.numbers import number_in
from steno.web.paint import links, page
from steno.web.tags import tag_of

__all__ = ["file"]

_ROWS: Final = 120
_OPTIONS: Final = 300
_SECOND: Final = 1000
_PROMPT: Final = 400


class _Point(msgspec.Struct, frozen=True):
    """A version to compare with."""

    name: str
    label: str


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around the version that is shown."""

    version: Version
    what: str
    when: str
    day: str
    where: str
    href: str
    record: str
    prompt: str
    rest: str
    """What is left of a long prompt."""


def file(house: House, request: Request) -> Response:
    """Return one file through time."""
    given = request.query_params
    shelf = shelf_of(house)
    with house.index() as index:
        path = shelf.path(index, request.path_params["tag"])
        history = shelf.history(house, index, path)
        entries = entries_of(history.versions, house.now())
        tree = _tree(house, index, history)
        if given.get("a") and given.get("b"):
            values = _compared(history, given["a"], given["b"], house.now(), index)
        else:
            values = _one(history, request, house, index)
    here = values.pop("name", "")
    start = _start(entries, here, given.get("from", ""))
    folder, name = _split(path, history.project)
    values |= {
        "here": "files",
        "tag": tag_of(path),
        "path": path,
        "folder": folder,
        "name": name,
        "history": history,
        "touches": sum(each.verb != "outside" for each in history.versions),
        "sessions": len({each.session for each in history.versions}),
        "entries": entries[start : start + _ROWS],
        "current": here,
        "newer": _from(path, here, start - _ROWS) if start else "",
        "older": _from(path, here, start + _ROWS) if start + _ROWS < len(entries) else "",
        "points": _points(history, house.now()),
        "tree": tree,
        "project": history.project,
        "project_way": links().files(project=tag_of(history.project)),
    }
    return HTMLResponse(page(house, "file.html.j2", **values))


# What is shown


def _one(history: History, request: Request, house: House, index: Index) -> dict[str, Any]:
    """Return one version: the one that is named, or the last that changed something."""
    given = request.query_params
    name = given.get("v", "")
    if name:
        version = history.named(name)
        if version is None:
            raise NotFound("there is no such version of this file", hint="it may have been copied")
    else:
        known = [each for each in history.versions if not each.settled]
        changes = [each for each in known if each.verb in ("write", "edit")]
        version = next(reversed(changes or known), None)
    if version is None:
        return {"shown": None, "panel": None, "pair": None}
    panel = panel_of(history, version, given.get("view", ""), full=given.get("full") == "1")
    tag = tag_of(history.path)
    return {
        "name": version.name,
        "shown": _shown(version, index, house.now()),
        "panel": panel,
        "pair": None,
        "ways": [
            (each, links().file(tag, v=version.name, view="" if each == panel.views[0] else each))
            for each in panel.views
        ],
        "all_lines": links().file(tag, v=version.name, view=panel.view, full=1),
        "back": links().file(tag, v=version.back) if version.back else "",
    }


def _compared(
    history: History, first: str, second: str, now: float, index: Index
) -> dict[str, Any]:
    a, b = history.named(first), history.named(second)
    if a is None or b is None:
        raise NotFound("there is no such version of this file")
    return {
        "shown": None,
        "panel": between(history, a, b),
        "pair": (_shown(a, index, now), _shown(b, index, now)),
        "swapped": links().file(tag_of(history.path), a=second, b=first),
        "name": b.name,
    }


def _shown(version: Version, index: Index, now: float) -> _Shown:
    key = _key(index, version)
    if version.agent:
        href = links().agent(key, version.agent, at=version.offset)
    else:
        href = links().session(key, at=version.offset)
    prompt = version.prompt
    cut = len(prompt) if len(prompt) <= _PROMPT else prompt.rfind(" ", 0, _PROMPT) % len(prompt)
    return _Shown(
        version=version,
        what=what_of(version),
        when=when_of(version),
        day="" if version.time is None else words.day(version.time / _SECOND, now),
        where=where_of(version),
        href=href,
        record=links().record(key, version.offset, version.agent),
        prompt=prompt[:cut],
        rest=prompt[cut:],
    )


def _key(index: Index, version: Version) -> str:
    """Return what addresses call the session of a version."""
    return keys_of(index.connection, [version.file]).get(version.file, version.session)


def _points(history: History, now: float) -> list[_Point]:
    """Return the versions that can be compared, newest first."""
    found = [
        each
        for each in reversed(history.versions)
        if each.text is not None and (each.changes or each is history.versions[0])
    ]
    made: list[_Point] = []
    for each in found[:_OPTIONS]:
        day = "" if each.time is None else brief_day(each.time / _SECOND, now)
        change = "".join(
            f" {sign}{number}"
            for sign, number in (("+", each.added), ("\N{MINUS SIGN}", each.removed))
            if number
        )
        made.append(_Point(each.name, f"{day} {when_of(each)} · {what_of(each)}{change}".strip()))
    return made


# Around it


def _start(entries: list[Entry], name: str, given: str) -> int:
    """Return the first row: as the address says, or so that what is shown is among them."""
    asked = number_in(given, -1)
    if asked >= 0:
        return min(asked, max(0, len(entries) - 1))
    place = next((at for at, entry in enumerate(entries) if name in entry.names), 0)
    return 0 if place < _ROWS else place - _ROWS // 2


def _from(path: str, name: str, start: int) -> str:
    return links().file(tag_of(path), v=name, **{"from": max(0, start)})


def _split(path: str, project: str) -> tuple[str, str]:
    way = path.replace("\\", "/")
    base = project.replace("\\", "/").rstrip("/")
    if base and way.startswith(f"{base}/"):
        way = way[len(base) + 1 :]
    folder, slash, name = way.rpartition("/")
    return folder + slash, name


def _tree(house: House, index: Index, history: History) -> list[tuple[Branch, str, bool]]:
    """Return the folders around the file, with it among its neighbours."""
    project = history.project
    root = tree_of(shelf_of(house).of_project(index, project), project)
    mine = history.path.replace("\\", "/").rpartition("/")[0]
    made: list[tuple[Branch, str, bool]] = []
    for branch in rows_of(root, mine):
        if branch.folder:
            way = links().files(project=tag_of(project), dir=tag_of(branch.path))
            made.append((branch, way, False))
        else:
            here = branch.path == history.path
            made.append((branch, links().file(tag_of(branch.path)), here))
    return made
