"""Files page (all files by project and directory) and file page (versions and diffs of one file)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.errors import BadRequest, NotFound
from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.clock import local_midnight
from steno.report.file_history.file_versions import History, Version
from steno.report.file_history.history import TimelineEntry, event_text, origin_text, time_text, timeline_entries
from steno.report.file_history.touched_files import (
    TouchedFile,
    TouchedFilter,
    TouchedProject,
    TouchedSort,
    list_touched_files,
    sort_touched,
)
from steno.report.humanize import MINUS_SIGN, MS_PER_SECOND
from steno.report.session_lookup import session_keys
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page
from steno.web.urls import parse_number, path_for_tag, path_tag
from steno.web.views.file_pages import (
    Folder,
    TreeRow,
    build_tree,
    diff_panel,
    file_cache_of,
    files_inside,
    folder_paths,
    tree_rows,
    version_panel,
)

_PAGE_SIZE: Final = 100
_MAX_QUERY: Final = 200
_DAYS_BACK: Final = {"today": 0, "week": 6, "month": 29}
_TIMES: Final = (("", "Any time"), ("today", "Today"), ("week", "Week"), ("month", "Month"))
_SORTS: Final[dict[TouchedSort, str]] = {
    "last": "Last accessed",
    "edits": "Most edits",
    "reads": "Most reads",
    "lines": "Most changed lines",
    "sessions": "Most sessions",
    "path": "Path",
}
_SORT_NAMES: Final[dict[str, TouchedSort]] = {name: name for name in _SORTS}
_MAX_PROJECTS: Final = 12


class _FileRow(msgspec.Struct, frozen=True):
    """A file as a list row."""

    file: TouchedFile
    href: str
    folder: str
    name: str
    when: str


class _FilesPageParams(msgspec.Struct, frozen=True):
    """Parameters of the files page."""

    filters: TouchedFilter
    query: dict[str, str]
    folder: str
    start: int


def files_page(app_state: AppState, request: Request) -> Response:
    """Return the files page."""
    file_cache = file_cache_of(app_state)
    with app_state.index() as index:
        projects = file_cache.projects(index)
        params = _files_page_params(app_state, request, [project.path for project in projects])
        root: Folder | None = None
        if params.filters.project is not None:
            root = build_tree(file_cache.project_files(index, params.filters.project), params.filters.project)
        params = _with_folder(params, root)
        matching, total = _matching_files(app_state, index, params)
    bases = sorted((each.path for each in projects if each.path), key=len, reverse=True)
    visible = matching[params.start : params.start + _PAGE_SIZE]
    rows = [_file_row(file, params, bases, app_state.now()) for file in visible]
    more = len(matching) > params.start + _PAGE_SIZE
    shown_all = request.query_params.get("open") == "project"
    values: dict[str, Any] = {
        "here": "files",
        "params": params,
        "rows": rows,
        "total": total,
        "projects": _project_links(projects, params, show_all=shown_all),
        "all_projects": "" if shown_all or len(projects) <= _MAX_PROJECTS else _filtered_url(params, open="project"),
        "touches": sum(each.touches for each in projects),
        "tree": _tree_rows(root, params),
        "crumbs": _breadcrumbs(params),
        "everywhere": links().files(**{**params.query, "project": "", "dir": ""}),
        "any_kind": (_filtered_url(params, changed=""), _filtered_url(params, changed="1")),
        "times": [
            (label, _filtered_url(params, since=name), params.query.get("since", "") == name) for name, label in _TIMES
        ],
        "sorts": [
            (label, _filtered_url(params, sort="" if name == "last" else name), name == params.filters.sort)
            for name, label in _SORTS.items()
        ],
        "sorted": _SORTS[params.filters.sort],
        "next": _filtered_url(params, **{"from": params.start + _PAGE_SIZE}) if more else "",
        "previous": _filtered_url(params, **{"from": max(0, params.start - _PAGE_SIZE)}) if params.start else "",
        "first": params.start + 1,
    }
    return HTMLResponse(render_page(app_state, "files.html.j2", **values))


def _files_page_params(app_state: AppState, request: Request, projects: Iterable[str]) -> _FilesPageParams:
    query_params = request.query_params
    names = ("project", "dir", "q", "changed", "since", "sort")
    query = {name: query_params[name] for name in names if query_params.get(name)}
    text = query.get("q", "")
    if len(text) > _MAX_QUERY:
        raise BadRequest("query is too long", hint=f"Use at most {_MAX_QUERY} characters.")
    project = path_for_tag(query["project"], projects) if "project" in query else None
    sort = query.get("sort", "last")
    start = query_params.get("from", "")
    back = _DAYS_BACK.get(query.get("since", ""))
    choice = TouchedFilter(
        project=project,
        words=text,
        changed=bool(query.get("changed")),
        since=None if back is None else int(local_midnight(app_state.now(), back) * MS_PER_SECOND),
        sort=_SORT_NAMES.get(sort, "last"),
    )
    return _FilesPageParams(choice, query, "", parse_number(start))


def _with_folder(params: _FilesPageParams, root: Folder | None) -> _FilesPageParams:
    """Set the selected directory; the `dir` parameter requires a project."""
    if "dir" not in params.query or root is None:
        query = {name: value for name, value in params.query.items() if name != "dir"}
        return msgspec.structs.replace(params, query=query)
    return msgspec.structs.replace(params, folder=path_for_tag(params.query["dir"], folder_paths(root)))


def _matching_files(
    app_state: AppState, index: SessionIndex, params: _FilesPageParams
) -> tuple[list[TouchedFile], int | None]:
    """Return the matching files and their number, if known."""
    choice = params.filters
    if choice.project is None and not choice.words:
        return list_touched_files(index.connection, choice, limit=params.start + _PAGE_SIZE + 1), None
    if choice.project is not None and choice.since is None:
        project_files = file_cache_of(app_state).project_files(index, choice.project)
        search_words = [word.lower() for word in choice.words.split()]
        matching = sort_touched(
            (
                file
                for file in project_files
                if (file.is_changed or not choice.changed) and all(word in file.path.lower() for word in search_words)
            ),
            choice.sort,
        )
    else:
        matching = list_touched_files(index.connection, choice)
    if params.folder:
        matching = files_inside(matching, params.folder)
    return matching, len(matching)


def _file_row(file: TouchedFile, params: _FilesPageParams, bases: Sequence[str], now: float) -> _FileRow:
    """Return a row; the path is relative to the selected directory or the project."""
    relative = file.path.replace("\\", "/")
    base = params.folder or params.filters.project or ""
    if base and relative.startswith(f"{base}/"):
        relative = relative[len(base) + 1 :]
    elif not base and (
        base_match := next((base_path for base_path in bases if relative.startswith(f"{base_path}/")), "")
    ):
        relative = humanize.project_name(base_match) + relative[len(base_match) :]
    folder, slash, name = relative.rpartition("/")
    when = "" if file.last is None else _format_time(file.last / MS_PER_SECOND, now)
    return _FileRow(file, links().file(path_tag(file.path)), folder + slash, name, when)


def _format_time(seconds: float, now: float) -> str:
    return (
        humanize.time_of_day(seconds)
        if local_midnight(seconds) == local_midnight(now)
        else humanize.short_weekday(seconds, now)
    )


def _filtered_url(params: _FilesPageParams, **changes: str | int | None) -> str:
    return links().files(**{**params.query, **changes})


def _project_links(
    projects: list[TouchedProject], params: _FilesPageParams, *, show_all: bool
) -> list[tuple[str, int, str, bool]]:
    """Return the name, touches, URL and selection state of each project."""
    chosen = params.filters.project
    names = _project_names([project.path for project in projects])
    return [
        (
            names[each.path],
            each.touches,
            links().files(**{**params.query, "dir": "", "project": path_tag(each.path)}),
            each.path == chosen,
        )
        for position, each in enumerate(projects)
        if show_all or position < _MAX_PROJECTS or each.path == chosen
    ]


def _project_names(paths: Sequence[str]) -> dict[str, str]:
    """Return unique project names, with parent directories where needed."""
    names: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(humanize.project_name(path) or "no project", []).append(path)
    for name, same_name in groups.items():
        parts = {path: path.replace("\\", "/").strip("/").split("/") for path in same_name}
        for path, path_parts in parts.items():
            others = [other for each, other in parts.items() if each != path]
            tails = range(1, len(path_parts) + 1)
            lengths = (at for at in tails if all(other[-at:] != path_parts[-at:] for other in others))
            names[path] = name if len(same_name) == 1 else "/".join(path_parts[-next(lengths, len(path_parts)) :])
    return names


def _tree_rows(root: Folder | None, params: _FilesPageParams) -> list[tuple[TreeRow, str, bool]]:
    """Return the rows of the tree with their URLs and whether each is selected."""
    if root is None:
        return []
    rows: list[tuple[TreeRow, str, bool]] = []
    for branch in tree_rows(root, params.folder):
        if branch.folder:
            is_current = branch.path == params.folder
            folder = branch.parent if is_current else branch.path
            rows.append((branch, _filtered_url(params, dir=path_tag(folder) if folder else ""), is_current))
        else:
            rows.append((branch, links().file(path_tag(branch.path)), False))
    return rows


def _breadcrumbs(params: _FilesPageParams) -> list[tuple[str, str]]:
    """Return the breadcrumbs of the selected directory."""
    project = params.filters.project
    if project is None:
        return []
    crumbs = [(humanize.project_name(project) or "no project", _filtered_url(params, dir=""))]
    if params.folder:
        base = f"{project}/"
        relative = params.folder.removeprefix(base)
        folder = project if params.folder.startswith(base) else ""
        for part in relative.split("/"):
            if part:
                folder = f"{folder}/{part}" if folder or params.folder.startswith("/") else part
                crumbs.append((part, _filtered_url(params, dir=path_tag(folder))))
    return crumbs


_MAX_ENTRIES: Final = 120
_MAX_VERSION_OPTIONS: Final = 300
_MAX_PROMPT: Final = 400


class _VersionOption(msgspec.Struct, frozen=True):
    """A version in a select box."""

    name: str
    label: str


class _VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """The displayed version."""

    version: Version
    title: str
    when: str
    day: str
    session_label: str
    session_url: str
    record_url: str
    prompt: str
    prompt_rest: str
    """The part of a long prompt that `prompt` omits."""


def file_page(app_state: AppState, request: Request) -> Response:
    """Return the file page."""
    query = request.query_params
    file_cache = file_cache_of(app_state)
    with app_state.index() as index:
        path = file_cache.path(index, request.path_params["tag"])
        history = file_cache.history(app_state, index, path)
        entries = timeline_entries(history.versions, app_state.now())
        tree = _neighbour_tree(app_state, index, history)
        if query.get("a") and query.get("b"):
            values = _two_versions(history, query["a"], query["b"], app_state.now(), index)
        else:
            values = _single_version(history, request, app_state, index)
    current = values.pop("name", "")
    start = _first_row(entries, current, query.get("from", ""))
    folder, name = _split_path(path, history.project)
    values |= {
        "here": "files",
        "tag": path_tag(path),
        "path": path,
        "folder": folder,
        "name": name,
        "history": history,
        "touches": sum(version.verb != "outside" for version in history.versions),
        "sessions": len({each.session for each in history.versions}),
        "entries": entries[start : start + _MAX_ENTRIES],
        "current": current,
        "newer": _page_url(path, current, start - _MAX_ENTRIES) if start else "",
        "older": _page_url(path, current, start + _MAX_ENTRIES) if start + _MAX_ENTRIES < len(entries) else "",
        "points": _version_options(history, app_state.now()),
        "tree": tree,
        "project": history.project,
        "project_way": links().files(project=path_tag(history.project)),
    }
    return HTMLResponse(render_page(app_state, "file.html.j2", **values))


# Content


def _single_version(history: History, request: Request, app_state: AppState, index: SessionIndex) -> dict[str, Any]:
    """Return the selected version, by default the last one with changes."""
    query = request.query_params
    name = query.get("v", "")
    if name:
        version = history.version_named(name)
        if version is None:
            raise NotFound("no such version of this file", hint="The version may belong to a copied session.")
    else:
        unsettled = [candidate for candidate in history.versions if not candidate.settled]
        changes = [each for each in unsettled if each.verb in ("write", "edit")]
        version = next(reversed(changes or unsettled), None)
    if version is None:
        return {"shown": None, "panel": None, "pair": None}
    panel = version_panel(history, version, query.get("view", ""), full=query.get("full") == "1")
    tag = path_tag(history.path)
    return {
        "name": version.name,
        "shown": _version_view(version, index, app_state.now()),
        "panel": panel,
        "pair": None,
        "ways": [
            (each, links().file(tag, v=version.name, view="" if each == panel.views[0] else each))
            for each in panel.views
        ],
        "all_lines": links().file(tag, v=version.name, view=panel.view, full=1),
        "back": links().file(tag, v=version.back) if version.back else "",
    }


def _two_versions(history: History, first: str, second: str, now: float, index: SessionIndex) -> dict[str, Any]:
    a, b = history.version_named(first), history.version_named(second)
    if a is None or b is None:
        raise NotFound("no such version of this file")
    return {
        "shown": None,
        "panel": diff_panel(history, a, b),
        "pair": (_version_view(a, index, now), _version_view(b, index, now)),
        "swapped": links().file(path_tag(history.path), a=second, b=first),
        "name": b.name,
    }


def _version_view(version: Version, index: SessionIndex, now: float) -> _VersionView:
    key = _session_key(index, version)
    href = links().thread(key, version.agent, at=version.offset)
    prompt = version.prompt
    cut = len(prompt) if len(prompt) <= _MAX_PROMPT else prompt.rfind(" ", 0, _MAX_PROMPT) % len(prompt)
    return _VersionView(
        version=version,
        title=event_text(version),
        when=time_text(version),
        day="" if version.time is None else humanize.day_name(version.time / MS_PER_SECOND, now),
        session_label=origin_text(version),
        session_url=href,
        record_url=links().record(key, version.offset, version.agent),
        prompt=prompt[:cut],
        prompt_rest=prompt[cut:],
    )


def _session_key(index: SessionIndex, version: Version) -> str:
    """Return the URL key of the session of a version."""
    return session_keys(index.connection, [version.file]).get(version.file, version.session)


def _version_options(history: History, now: float) -> list[_VersionOption]:
    """Return the versions to choose from, newest first."""
    versions = [
        version
        for version in reversed(history.versions)
        if version.text is not None and (version.changes or version is history.versions[0])
    ]
    options: list[_VersionOption] = []
    for each in versions[:_MAX_VERSION_OPTIONS]:
        day = "" if each.time is None else humanize.short_weekday(each.time / MS_PER_SECOND, now)
        change = "".join(
            f" {sign}{number}" for sign, number in (("+", each.added), (MINUS_SIGN, each.removed)) if number
        )
        options.append(_VersionOption(each.name, f"{day} {time_text(each)} · {event_text(each)}{change}".strip()))
    return options


# Navigation


def _first_row(entries: list[TimelineEntry], name: str, start_text: str) -> int:
    """Return the index of the first row, from the URL, or chosen so that the selected version is visible."""
    requested = parse_number(start_text, -1)
    if requested >= 0:
        return min(requested, max(0, len(entries) - 1))
    row_number = next((row for row, entry in enumerate(entries) if name in entry.names), 0)
    return 0 if row_number < _MAX_ENTRIES else row_number - _MAX_ENTRIES // 2


def _page_url(path: str, name: str, start: int) -> str:
    return links().file(path_tag(path), v=name, **{"from": max(0, start)})


def _split_path(path: str, project: str) -> tuple[str, str]:
    relative = path.replace("\\", "/")
    base = project.replace("\\", "/").rstrip("/")
    if base and relative.startswith(f"{base}/"):
        relative = relative[len(base) + 1 :]
    folder, slash, name = relative.rpartition("/")
    return folder + slash, name


def _neighbour_tree(app_state: AppState, index: SessionIndex, history: History) -> list[tuple[TreeRow, str, bool]]:
    """Return the directory tree around the file."""
    project = history.project
    root = build_tree(file_cache_of(app_state).project_files(index, project), project)
    folder = history.path.replace("\\", "/").rpartition("/")[0]
    rows: list[tuple[TreeRow, str, bool]] = []
    for branch in tree_rows(root, folder):
        if branch.folder:
            url = links().files(project=path_tag(project), dir=path_tag(branch.path))
            rows.append((branch, url, False))
        else:
            is_current = branch.path == history.path
            rows.append((branch, links().file(path_tag(branch.path)), is_current))
    return rows
