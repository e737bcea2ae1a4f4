"""`files`: what agents read and changed, and any version of it."""

from collections.abc import Generator, Iterator
from sqlite3 import Connection

from steno.errors import BadRequest, NotFound
from steno.history.asked import Files
from steno.history.library import Library
from steno.history.quoted import passage, path, word
from steno.report import clock, words
from steno.report.files.history import diff, history, shown
from steno.report.files.touched import Choice, projects, touched
from steno.report.files.values import History, Version
from steno.store.library import open_session

__all__ = ["touched_files"]


def touched_files(asked: Files, library: Library) -> Generator[str, None, None]:
    """Yield files, the versions of a file, or a version."""
    if not asked.path:
        if asked.version or asked.diff:
            raise BadRequest("`version` and `diff` need the `path` of a file")
        yield from _files(asked, library)
        return
    with library.index() as index:
        told = history(index.connection, asked.path, open_session, library.has)
    if told is None:
        raise NotFound(f"no session touched {asked.path!r}", hint="`words` finds part of a path")
    yield f"# File {path(told.path)}"
    if asked.version:
        yield from _version(told, asked)
        return
    if told.lost:
        yield f"{words.count(told.lost, 'touch', 'touches')} cannot be read any more."
    for version in told.versions:
        yield _line(version)


def _files(asked: Files, library: Library) -> Iterator[str]:
    since = library.wanted("", asked.since, "").since
    with library.index() as index:
        among = _projects(index.connection, library) if library.is_limited else None
        choice = Choice(words=asked.words, changed=asked.changed, since=since, among=among)
        found = touched(index.connection, choice)
    yield f"{words.count(len(found), 'file')}, the last touched first. `path` = one shows its versions."
    for each in found:
        counts = f"{each.edits:,} changes (+{each.added:,} -{each.removed:,}), {each.reads:,} reads"
        if each.source == "snapshot":
            counts = f"{words.count(each.backups, 'backup')} by the client, no call names it"
        sessions = words.count(each.sessions, "session")
        yield f"- {path(each.path)}: {counts}, in {sessions}, last {_when(each.last)}"


def _projects(connection: Connection, library: Library) -> tuple[str, ...]:
    return tuple(each.path for each in projects(connection) if library.has(each.path))


def _when(moment: int | None) -> str:
    return clock.iso(None if moment is None else moment / 1000) or "unknown"


def _line(version: Version) -> str:
    parts = [f"{version.verb} by {word(version.tool)}", version.known, _when(version.time)]
    if version.added or version.removed:
        parts.append(f"+{version.added:,} -{version.removed:,}")
    if version.abandoned:
        parts.append("on an abandoned branch")
    if version.note:
        parts.append(word(version.note))
    where = f"session {path(version.session)} turn {version.turn}"
    return f"- Version {path(version.name)}: {', '.join(parts)}; {where}: {word(version.prompt)}"


def _version(told: History, asked: Files) -> Iterator[str]:
    version = told.named(asked.version)
    if version is None:
        names = ", ".join(each.name for each in told.versions[-5:])
        raise NotFound(f"there is no version {asked.version!r}", hint=f"the last are {names}")
    yield _line(version)
    if not asked.diff:
        text = shown(version)
        if text is None:
            yield "Its text is not known as a whole."
            for piece in version.pieces:
                yield f"From line {piece.start}:"
                yield from passage("\n".join(piece.lines))
            return
        yield from passage(text)
        return
    earlier = told.before(version)
    before = version.before if version.before is not None else shown(earlier) if earlier else ""
    if version.text is None or before is None:
        yield "What it changed cannot be told: one of the two texts is not known."
        return
    for stretch in diff(before, version.text):
        yield f"From line {stretch.new}:"
        yield from passage("\n".join(stretch.lines))
