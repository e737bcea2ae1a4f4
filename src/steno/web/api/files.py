"""`/api/v1/files` and `/api/v1/files/{tag}`."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.report.files.touched import Choice, Sort, Touched, touched
from steno.report.files.values import History, Version
from steno.report.keys import keys_of
from steno.web.api.cursors import FIRST_PAGE, make_cursor, not_a_cursor, read_cursor
from steno.web.api.filters import iso, projects_matching, start_of
from steno.web.api.models.files import File, FileHistory, FileList, FileSession, FileVersion
from steno.web.api.parameters import FileParameters, Paged
from steno.web.files.shelf import shelf_of
from steno.web.house import House
from steno.web.tags import tag_of

_Rank: TypeAlias = tuple[int, int, str]
_PARTS: Final = 4
_LONGEST: Final = 200
"""Characters of a path in a cursor; a longer path is named by its tag."""


def file_page(house: House, _path: dict[str, str], parameters: FileParameters) -> FileList:
    """Return a page of the files that sessions read or changed."""
    place = read_cursor("files", parameters, _PARTS)
    # Before anything is read: what changes meanwhile belongs to another state.
    stamp = house.stamp()
    with house.index() as index:
        choice = Choice(
            words=parameters.q or "",
            changed=parameters.changed,
            since=start_of("since", parameters.since, house.now()),
            sort=parameters.sort,
            among=projects_matching(index, parameters.project),
        )
        found = house.kept.get(stamp, ("api files", choice), lambda: _in_order(index, choice))
    start = 0
    if place is not None:
        start = bisect_right([rank for rank, _ in found], _rank_at(place, found))
    page = found[start : start + parameters.limit]
    more = len(found) > start + len(page)
    return FileList(
        files=[_file(each) for _, each in page],
        total=len(found),
        next_cursor=make_cursor("files", parameters, *_place_of(page[-1][0])) if more else None,
    )


def _in_order(index: Index, choice: Choice) -> list[tuple[_Rank, Touched]]:
    """Return the files with what they are ordered by, which no two of them share."""
    ranked = ((_rank(each, choice.sort), each) for each in touched(index.connection, choice))
    return sorted(ranked, key=lambda pair: pair[0])


def _rank(file: Touched, sort: Sort) -> _Rank:
    number = {
        "last": 0,
        "path": 0,
        "edits": file.edits,
        "reads": file.reads,
        "lines": file.added + file.removed,
        "sessions": file.sessions,
    }[sort]
    return -number, 0 if sort == "path" else -(file.last or 0), file.path


def _place_of(rank: _Rank) -> tuple[int, int, str, str]:
    """Return the place of a file for a cursor, which has to fit into an address."""
    number, last, path = rank
    return number, last, path[:_LONGEST], tag_of(path) if len(path) > _LONGEST else ""


def _rank_at(place: Sequence[int | str], found: Sequence[tuple[_Rank, Touched]]) -> _Rank:
    """Return the rank of a place; of a long path that is not there any more, from its beginning."""
    number, last, path, tag = place
    if not (
        isinstance(number, int)
        and isinstance(last, int)
        and isinstance(path, str)
        and isinstance(tag, str)
    ):
        raise not_a_cursor()
    if tag:
        path = next((each.path for _, each in found if tag_of(each.path) == tag), path)
    return number, last, path


def _file(file: Touched) -> File:
    return File(
        id=tag_of(file.path),
        path=file.path,
        reads=file.reads,
        edits=file.edits,
        added=file.added,
        removed=file.removed,
        sessions=file.sessions,
        last=iso(file.last),
    )


# One file


def file_history(house: House, path: dict[str, str], parameters: Paged) -> FileHistory:
    """Return a file with its sessions and a page of its versions."""
    shelf, tag = shelf_of(house), path["tag"]
    with house.index() as index:
        history = shelf.history(house, index, shelf.path(index, tag))
        keys = keys_of(index.connection, {version.file for version in history.versions})
    name = f"files {tag}"
    place = read_cursor(name, parameters, 1)
    start = 0 if place is None else _behind(history, place[0])
    page = history.versions[start : start + parameters.limit]
    end = start + len(page)
    return FileHistory(
        id=tag,
        path=history.path,
        project=history.project,
        unreadable=history.lost,
        sessions=_sessions(history, keys),
        versions=[_version(each, keys) for each in page],
        total=len(history.versions),
        next_cursor=make_cursor(name, parameters, page[-1].name)
        if end < len(history.versions)
        else None,
    )


def _behind(history: History, name: object) -> int:
    """Return where the versions behind one begin. Older ones may have been found meanwhile.

    Raises:
        BadRequest: the version is not known any more.
    """
    for at, version in enumerate(history.versions):
        if version.name == name:
            return at + 1
        if f"{version.name}b" == name:
            # What it was before came from outside then, and is the version of a session now.
            return at
    raise BadRequest("cursor: no longer valid, its version is not known any more", hint=FIRST_PAGE)


def _sessions(history: History, keys: dict[int, str]) -> list[FileSession]:
    """Return the sessions of a file, the last one first."""
    found: dict[str, list[Version]] = {}
    for version in history.versions:
        if version.session:
            found.setdefault(keys.get(version.file, version.session), []).append(version)
    sessions = [
        FileSession(
            key=key,
            id=versions[0].session,
            title=versions[0].title,
            versions=len(versions),
            last=iso(max((each.time for each in versions if each.time is not None), default=None)),
        )
        for key, versions in found.items()
    ]
    return sorted(sessions, key=lambda each: (each.last or "", each.key), reverse=True)


def _version(version: Version, keys: dict[int, str]) -> FileVersion:
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
        time=iso(version.time),
        abandoned=version.abandoned,
        copies=version.copies,
        prompt=version.prompt,
    )
