"""`/api/v1/files` and `/api/v1/files/{tag}`."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

from steno.errors import BadRequest
from steno.index.database import SessionIndex
from steno.report.clock import iso_time_from_ms
from steno.report.file_history.file_versions import History, Version
from steno.report.file_history.touched_files import TouchedFile, TouchedFilter, TouchedSort, list_touched_files
from steno.report.session_lookup import session_keys
from steno.web.api.parameters import (
    FIRST_PAGE,
    FileParameters,
    Paged,
    invalid_cursor,
    make_cursor,
    period_start,
    projects_matching,
    read_cursor,
)
from steno.web.api.schemas import File, FileHistory, FileList, FileSession, FileVersion
from steno.web.state.app_state import AppState
from steno.web.urls import path_tag
from steno.web.views.file_pages import file_cache_of

_Rank: TypeAlias = tuple[int, int, str]
_CURSOR_PARTS: Final = 4
_MAX_CURSOR_PATH: Final = 200
"""Maximum characters of a path in a cursor; longer paths are identified by tag."""


def list_files(app_state: AppState, _path: dict[str, str], parameters: FileParameters) -> FileList:
    """Return a page of the files that sessions read or changed."""
    position = read_cursor("files", parameters, _CURSOR_PARTS)
    # Read the stamp first: changes during the request belong to the next state.
    index_stamp = app_state.index_stamp()
    with app_state.index() as index:
        choice = TouchedFilter(
            words=parameters.q or "",
            changed=parameters.changed,
            since=period_start("since", parameters.since, app_state.now()),
            sort=parameters.sort,
            among=projects_matching(index, parameters.project),
        )
        ranked_files = app_state.index_cache.get(
            index_stamp, ("api files", choice), lambda: _ranked_files(index, choice)
        )
    start = 0
    if position is not None:
        start = bisect_right([rank for rank, _ in ranked_files], _rank_at(position, ranked_files))
    page = ranked_files[start : start + parameters.limit]
    more = len(ranked_files) > start + len(page)
    return FileList(
        files=[_file_schema(file) for _, file in page],
        total=len(ranked_files),
        next_cursor=make_cursor("files", parameters, *_cursor_position(page[-1][0])) if more else None,
    )


def _ranked_files(index: SessionIndex, choice: TouchedFilter) -> list[tuple[_Rank, TouchedFile]]:
    """Return the files in order, each with its unique sort rank."""
    ranked = ((_rank(file, choice.sort), file) for file in list_touched_files(index.connection, choice))
    return sorted(ranked, key=lambda pair: pair[0])


def _rank(file: TouchedFile, sort: TouchedSort) -> _Rank:
    number = {
        "last": 0,
        "path": 0,
        "edits": file.edits,
        "reads": file.reads,
        "lines": file.added + file.removed,
        "sessions": file.sessions,
    }[sort]
    return -number, 0 if sort == "path" else -(file.last or 0), file.path


def _cursor_position(rank: _Rank) -> tuple[int, int, str, str]:
    """Return the cursor position of a file; it must fit into a URL."""
    number, last, path = rank
    return (number, last, path[:_MAX_CURSOR_PATH], path_tag(path) if len(path) > _MAX_CURSOR_PATH else "")


def _rank_at(position: Sequence[int | str], ranked_files: Sequence[tuple[_Rank, TouchedFile]]) -> _Rank:
    """Return the sort rank of a cursor position. A long path that no longer exists is compared by its beginning."""
    number, last, path, tag = position
    if not (isinstance(number, int) and isinstance(last, int) and isinstance(path, str) and isinstance(tag, str)):
        raise invalid_cursor()
    if tag:
        path = next((file.path for _, file in ranked_files if path_tag(file.path) == tag), path)
    return number, last, path


def _file_schema(file: TouchedFile) -> File:
    return File(
        id=path_tag(file.path),
        path=file.path,
        reads=file.reads,
        edits=file.edits,
        added=file.added,
        removed=file.removed,
        sessions=file.sessions,
        last=iso_time_from_ms(file.last),
    )


# One file


def file_history(app_state: AppState, path: dict[str, str], parameters: Paged) -> FileHistory:
    """Return a file with its sessions and a page of its versions."""
    file_cache, tag = file_cache_of(app_state), path["tag"]
    with app_state.index() as index:
        history = file_cache.history(app_state, index, file_cache.path(index, tag))
        keys = session_keys(index.connection, {version.file for version in history.versions})
    name = f"files {tag}"
    position = read_cursor(name, parameters, 1)
    start = 0 if position is None else _start_after(history, position[0])
    page = history.versions[start : start + parameters.limit]
    end = start + len(page)
    return FileHistory(
        id=tag,
        path=history.path,
        project=history.project,
        unreadable=history.lost,
        sessions=_file_sessions(history, keys),
        versions=[_version_schema(entry, keys) for entry in page],
        total=len(history.versions),
        next_cursor=make_cursor(name, parameters, page[-1].name) if end < len(history.versions) else None,
    )


def _start_after(history: History, name: object) -> int:
    """Return the index of the version after a named one. Older versions may have been added since the last page.

    Raises:
        BadRequest: The version no longer exists.
    """
    for number, version in enumerate(history.versions):
        if version.name == name:
            return number + 1
        if f"{version.name}b" == name:
            # The external change before this version is now known to be a version of a session.
            return number
    raise BadRequest("cursor: expired, because its version no longer exists", hint=FIRST_PAGE)


def _file_sessions(history: History, keys: dict[int, str]) -> list[FileSession]:
    """Return the sessions of a file, latest first."""
    versions_by_key: dict[str, list[Version]] = {}
    for version in history.versions:
        if version.session:
            versions_by_key.setdefault(keys.get(version.file, version.session), []).append(version)
    sessions = [
        FileSession(
            key=key,
            id=versions[0].session,
            title=versions[0].title,
            versions=len(versions),
            last=iso_time_from_ms(max((entry.time for entry in versions if entry.time is not None), default=None)),
        )
        for key, versions in versions_by_key.items()
    ]
    return sorted(sessions, key=lambda each: (each.last or "", each.key), reverse=True)


def _version_schema(version: Version, keys: dict[int, str]) -> FileVersion:
    return FileVersion(
        name=version.name,
        verb=version.verb,
        tool=version.tool,
        known=version.known,
        added=version.added,
        removed=version.removed,
        note=version.note,
        same_as=version.back or None,
        command=version.command or None,
        changed_nothing=version.settled,
        session=keys.get(version.file, version.session),
        agent=version.agent or None,
        turn=version.turn,
        offset=version.offset,
        time=iso_time_from_ms(version.time),
        abandoned=version.abandoned,
        copies=version.copies,
        prompt=version.prompt,
    )
