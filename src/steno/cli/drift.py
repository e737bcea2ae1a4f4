"""`steno drift`: what session files contain that the catalogue does not know."""

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fit import wrapped
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.cli.table import Column, layout
from steno.errors import BadRequest, NotFound, Unreadable
from steno.report import words
from steno.safe.terminal import ColourMode, Line
from steno.store.discover import Discovery, Found, Problem, agents_of
from steno.store.library import find, roots_of

if TYPE_CHECKING:
    from steno.check.drift import Observer
    from steno.check.observed import Code, Drift
    from steno.format.catalogue import Catalogue
    from steno.report.drift import Row

__all__ = ["command"]

_UNREAD: Final = frozenset(("denied", "unreadable", "missing", "special"))


@click.command("drift", short_help="Say what files contain that the catalogue does not know.")
@click.argument("names", metavar="[PATH|SESSION]...", nargs=-1)
@options(WHERE)
@click.option("--since-version", metavar="V", help="Only what clients from version V on wrote.")
@click.option("--as-of", metavar="V", help="Compare with what was known when V was the newest.")
@click.option(
    "--catalogue",
    "file",
    metavar="FILE",
    type=click.Path(readable=False),
    help="Compare with this catalogue instead of steno's own.",
)
@click.option("--learn", is_flag=True, help="Print the JSON merge patch for what can be learned.")
@options(JSON)
@WIDTH
@options(COLOR)
def command(
    names: tuple[str, ...] = (),
    root: tuple[str, ...] = (),
    color: ColourMode = "auto",
    width: int | None = None,
    *,
    demo: bool = False,
    **wanted: Any,
) -> None:
    """Compare what session files contain with the catalogue of the format.

    Names new types, fields, blocks, tools and values, changed types and missing fields, counted
    per client version. Samples are masked: letters are x, digits are 0. Without PATH or SESSION,
    every session and sub-agent is looked at. Nothing here keeps a session from being read.

    What can be learned is what has a plain name; a record without a type, or a name with odd
    characters in it, goes on drifting.

    Exit codes: 0 no drift, 1 drift, or no session in what was named, 2 wrong usage, 3 something
    could not be read.
    """
    asked = _Asked(**wanted)
    _refuse_what_makes_no_sense(asked)
    problems: list[Problem] = []
    files = _files(names, roots(root, demo=demo), problems)
    observer = _observed(files, asked, problems)
    unread = [problem for problem in problems if problem.kind in _UNREAD]
    _complain_about(unread)
    drifts = observer.drifts()
    if asked.learn:
        from steno.check.learn import propose

        write_json(propose(observer))
    elif asked.as_json:
        write_json(_json(observer, drifts, len(files)))
    else:
        screen = Screen(color, width)
        screen.lines(_lines(observer, drifts, screen.width))
        if files or not unread:
            screen.lines(wrapped([_ending(observer, drifts, len(files), asked)], screen.width))
        if drifts:
            again = f"{program()} drift{where_to_look(root, demo=demo)}"
            screen.next_steps([f"{again} --json", f"{again} --learn"])
    if unread or drifts:
        raise click.exceptions.Exit(3 if unread else 1)


def _complain_about(unread: list[Problem]) -> None:
    if unread:
        why = f": {unread[0].message}" if unread[0].message else ""
        number = words.count(len(unread), "path")
        complain(f"{number} could not be read, such as {unread[0].path}{why}")


class _Asked(msgspec.Struct):
    since_version: str | None = None
    as_of: str | None = None
    file: str | None = None
    learn: bool = False
    as_json: bool = False


def _refuse_what_makes_no_sense(asked: _Asked) -> None:
    from steno.format.catalogue import version_key

    for option, version in (("--since-version", asked.since_version), ("--as-of", asked.as_of)):
        if version is not None and not version_key(version):
            raise click.UsageError(f"{option} wants a version such as 2.1.42, not {version!r}")
    if asked.learn and asked.as_json:
        raise click.UsageError("--json says nothing about --learn, which prints JSON anyway")


def _files(
    names: tuple[str, ...], where: tuple[str, ...] | None, problems: list[Problem]
) -> list[Found]:
    found: dict[str, Found] = {}
    folders: list[str] = [] if names else list(roots_of(where))
    for name in names:
        if os.path.isdir(name):
            folders.append(name)
        else:
            try:
                found.update(_keyed(_one(name, where, problems)))
            except Unreadable as error:
                problems.append(Problem("unreadable", name, _reason(name, error)))
    for folder in folders:
        # Not to have a config folder yet is the usual case on a new machine.
        if names or os.path.lexists(folder):
            found.update(_keyed(Discovery(folder, problems).transcripts()))
    if names and not found and not any(problem.kind in _UNREAD for problem in problems):
        # Whoever names a folder expects something there: a job must not pass because it is empty.
        place = ", ".join(folders)
        raise NotFound(f"there is no session in {place}", hint="a PATH may be a file or a folder")
    return list(found.values())


def _reason(name: str, error: Unreadable) -> str:
    return str(error).removeprefix(f"{name}: ")


def _keyed(files: Iterable[Found]) -> dict[str, Found]:
    return {os.path.realpath(each.path): each for each in files}


def _one(name: str, where: tuple[str, ...] | None, problems: list[Problem]) -> list[Found]:
    """Return a file alone, or a session that was named with its sub-agents."""
    found = find(name, where, archived=False)
    return [found] if os.path.isfile(name) else [found, *agents_of(found, problems)]


def _observed(files: list[Found], asked: _Asked, problems: list[Problem]) -> "Observer":
    from steno.check.drift import Observer
    from steno.report.drift import observe

    observer = Observer(_catalogue(asked), asked.since_version or "")
    with Progress(sum(found.size for found in files), "Comparing") as bar:
        observe(files, observer, problems=problems, done=bar.add)
    return observer


def _catalogue(asked: _Asked) -> "Catalogue":
    from steno.format.catalogue import catalogue, load_catalogue
    from steno.store.read import FileSource

    facts = catalogue()
    if asked.file is not None:
        try:
            with FileSource(asked.file) as source:
                stored = source.read(0, source.size)
        except Unreadable as error:
            why = error.__cause__
            said = (why.strerror or "") if isinstance(why, OSError) else "not a file"
            raise Unreadable(
                f"cannot read the catalogue {asked.file}: {said.lower()}",
                hint="--catalogue wants a file as `steno.format.catalogue` writes it",
            ) from error
        try:
            facts = load_catalogue(stored)
        except BadRequest as error:
            raise BadRequest(f"{asked.file}: {error}") from error
    return facts.until(asked.as_of) if asked.as_of else facts


def _json(observer: "Observer", drifts: "list[Drift]", files: int) -> dict[str, Any]:
    from steno.format.catalogue import version_key

    return {
        "catalogue": observer.facts.newest,
        "files": files,
        "records": observer.records,
        "versions": sorted(observer.versions, key=version_key),
        "leftOut": observer.left_out,
        "drift": drifts,
    }


def _lines(observer: "Observer", drifts: "list[Drift]", width: int) -> Iterator[Line]:
    from steno.report.drift import MEANS, rows_of

    for code, rows in groupby(rows_of(drifts), key=_code):
        heads, cells = layout(_columns(list(rows), width), width - 2)
        yield from wrapped([(code, "bold"), (f"  {MEANS[code]}", "dim")], width)
        for line in (heads, *cells):
            yield ["  ", *line]
        yield []
    if observer.left_out:
        said = f"{observer.left_out:,} more were met than can be kept; they are not listed."
        yield from wrapped([said], width)


def _ending(observer: "Observer", drifts: "list[Drift]", files: int, asked: _Asked) -> str:
    from steno.format.catalogue import version_key

    if not files:
        return f"Nothing to compare: no session here. `{program()} demo` writes some."
    if asked.since_version and not observer.records:
        return f"No record of {asked.since_version} or newer in {words.count(files, 'file')}."
    said = words.count(len(drifts), "difference") if drifts else "No drift"
    seen = f"{words.count(observer.records, 'record')} of {words.count(files, 'file')}"
    newest = observer.facts.newest
    beyond = version_key(asked.as_of or "") > version_key(newest)
    more = f"; of {asked.as_of} nothing is known" if asked.as_of and beyond else ""
    return f"{said} in {seen}, compared with what is known up to {newest}{more}."


def _code(row: "Row") -> "Code":
    return row.code


def _columns(rows: "list[Row]", width: int) -> list[Column]:
    needs = 10 if any(row.sample for row in rows) else 0
    return [
        Column("COUNT", [f"{row.count:,}" for row in rows], right=True),
        Column(
            "IN" if rows[0].path else "NAME",
            [_kinds(row.kinds) for row in rows],
            most=width * 28 // 100 if rows[0].path else width // 2,
        ),
        Column("FIELD", [row.path for row in rows], "bold", most=width * 38 // 100),
        Column("VERSIONS", [_versions(row.versions) for row in rows], "dim", most=20, needs=needs),
        Column("SAMPLE", [row.sample for row in rows], "dim", flexible=True, needs=8),
    ]


def _kinds(kinds: list[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{kinds[0]} +{len(kinds) - 1}"


def _versions(versions: list[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
