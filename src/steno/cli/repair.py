"""`steno repair`: a broken session made to resume, in a new file; or put back as it was."""

import os
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import click
import msgspec

from steno.check.repair.job import STEPS, Job, Wish, mend
from steno.check.repair.parts import sessions_in
from steno.cli import clock
from steno.cli.edits import job_json, job_lines
from steno.cli.options import (
    COLOR,
    JSON,
    SESSION,
    WHERE,
    WIDTH,
    options,
    program,
    roots,
    where_to_look,
)
from steno.cli.pager import page
from steno.cli.progress import Progress
from steno.cli.screen import Screen, write_json
from steno.errors import BadRequest, Busy, NotFound, Unreadable
from steno.format.paths import is_uuid
from steno.safe.terminal import ColourMode, one_line
from steno.session.resume.clients import LATEST, client_for
from steno.session.transcript import load
from steno.store.busy import is_growing
from steno.store.found import Found
from steno.store.glance import glance
from steno.store.library import find
from steno.store.read import FileSource
from steno.store.replace import keep_new, swap, undo
from steno.store.scratch import Identity, Scratch, identify
from steno.store.workbench import Workbench, owned

__all__ = ["command"]

_SUFFIX: Final = ".jsonl"
_NANO: Final = 1e9
_NOT_PROVEN: Final = 1


class _Asked(msgspec.Struct):
    """What was asked for, beside the name."""

    output: str | None = None
    in_place: bool = False
    undo: bool = False
    dry_run: bool = False
    force: bool = False
    client: str = LATEST.version
    until: str | None = None
    slim: bool = False
    split: bool = False
    everything: bool = False
    as_json: bool = False
    again: str = ""
    """The options that lead the next command to the same sessions."""


@click.command("repair", short_help="Make a broken session resume, in a new file.")
@SESSION
@options(WHERE)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write here instead.")
@click.option("--in-place", is_flag=True, help="Exchange the file; the old one is kept beside it.")
@click.option("--undo", is_flag=True, help="Bring back what --in-place replaced.")
@click.option(
    "--for", "client", metavar="VERSION", default=LATEST.version, help="The client to resume it in."
)
@click.option("--until", metavar="UUID", help="End the session with this record.")
@click.option("--slim", is_flag=True, help="Leave out progress and copies of tool output.")
@click.option("--split", is_flag=True, help="Write each session of a file into one of its own.")
@click.option("--force", is_flag=True, help="Even if the session is being written to.")
@click.option("--all", "everything", is_flag=True, help="Show every edit.")
@options(JSON)
@WIDTH
@options(COLOR)
def command(
    name: str,
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Repair a session: diagnose it, mend it in a new file, and check that one the same way.

    The session as it is stays untouched: unless told otherwise, the mended one gets an id of its
    own and lies beside it. Each edit is shown with the finding it mends and what is lost by it, if
    anything. A sound session is left alone.

    Exit codes: 0 mended, or nothing to mend; 1 it cannot be made to resume; 2 wrong usage; 3 cannot
    read or write, or somebody is writing to it.
    """
    wanted = _Asked(**asked, again=where_to_look(root, demo=demo))
    _refuse_contradictions(wanted)
    found = find(name, roots(root, demo=demo))
    screen = Screen(color, width)
    if wanted.undo:
        _undo(found, screen, wanted)
    elif wanted.split:
        _split(found, screen, wanted)
    else:
        _repair(found, screen, wanted)


def _refuse_contradictions(wanted: _Asked) -> None:
    client_for(wanted.client)
    ways = {"--in-place": wanted.in_place, "-o": wanted.output, "--undo": wanted.undo}
    chosen = [name for name, given in ways.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    if wanted.split and chosen:
        raise click.UsageError(f"--split and {chosen[0]} exclude each other")
    others = {
        "--dry-run": wanted.dry_run,
        "--until": wanted.until is not None,
        "--slim": wanted.slim,
        "--split": wanted.split,
    }
    for name, given in others.items():
        if wanted.undo and given:
            raise click.UsageError(f"--undo and {name} exclude each other")
    if wanted.split and wanted.until is not None:
        raise click.UsageError("--split and --until exclude each other")


def _repair(found: Found, screen: Screen, wanted: _Asked) -> None:
    seen = identify(found.path)
    with Workbench() as bench, FileSource(found.path) as source:
        job = _mended(source, _stem(found), _wish(found, wanted), bench)
        placed = "" if wanted.dry_run else _place(found, job, seen, wanted)
    _tell(found, job, placed, screen, wanted)


def _mended(source: FileSource, name: str, wish: Wish, bench: Workbench) -> Job:
    with Progress(source.size * STEPS, "Repairing") as bar:
        return mend(source, name, wish, bench, lambda: bar.add(source.size))


def _wish(found: Found, wanted: _Asked, session: str = "") -> Wish:
    return Wish(
        client=client_for(wanted.client),
        until=wanted.until or "",
        slim=wanted.slim,
        session=session,
        written=found.mtime_ns / _NANO,
    )


def _place(found: Found, job: Job, seen: Identity, wanted: _Asked) -> str:
    """Put the mended file where it belongs and return where that is; nothing if it was sound."""
    if job.hopeless or (wanted.output is None and not job.changed):
        return ""
    if job.is_agent and not wanted.output and not wanted.in_place:
        raise BadRequest(
            "no client resumes a sub-agent's file by itself, so a copy beside it is of no use",
            hint="--in-place mends the file itself, -o FILE writes a copy; nothing was written",
        )
    if not wanted.force and is_growing(found.path, seen):
        raise Busy(
            f"{found.path} is being written to",
            hint="nothing was changed; leave that session first, or use --force",
        )
    if wanted.in_place:
        with Scratch(found.path) as scratch:
            return swap(scratch.write(job.chunks()), found.path, seen, live=not wanted.force).path
    path = wanted.output or os.path.join(os.path.dirname(found.path), f"{uuid4()}{_SUFFIX}")
    if os.path.isdir(path):
        raise BadRequest(f"{path} is a folder", hint="name a file that is not there yet")
    with Scratch(path) as scratch:
        return owned(keep_new(scratch.write(job.chunks()), path, like=found.path))


def _tell(found: Found, job: Job, placed: str, screen: Screen, wanted: _Asked) -> None:
    if wanted.as_json:
        write_json(job_json(found.path, _title(found), job, placed))
    else:
        lines = job_lines(
            _stem(found), _title(found), job, screen.width, everything=wanted.everything
        )
        page(screen, lines, wanted=False)
        screen.lines([[], *([line] for line in _ending(found, job, placed, wanted))])
    if not job.proven:
        raise click.exceptions.Exit(_NOT_PROVEN)


def _ending(found: Found, job: Job, placed: str, wanted: _Asked) -> Iterator[str]:
    """Yield what was written where, and what to do with it."""
    if job.is_agent:
        yield "A sub-agent's file: no client resumes it by itself, so only its lines are mended."
    if job.hopeless:
        yield "Nothing was written: there is no conversation in this file to resume."
    elif not job.changed and not placed:
        yield "Nothing to mend; the file is left as it is."
    elif wanted.dry_run:
        yield "Nothing was written (--dry-run)."
    elif wanted.in_place:
        yield f"{one_line(placed)} was exchanged; the old file is kept beside it."
        yield f"{program()} repair{wanted.again} {one_line(_stem(found))} --undo   brings it back"
    elif placed:
        yield f"Written to {one_line(placed)}"
        if wanted.output is None or wanted.split:
            yield f"claude --resume {_stem_of(placed)}"


def _undo(found: Found, screen: Screen, wanted: _Asked) -> None:
    done = undo(found.path, force=wanted.force, live=not wanted.force)
    if wanted.as_json:
        write_json({"path": done.path, "kept": done.kept})
        return
    screen.lines(
        [[f"{one_line(done.path)} is as it was before."], [f"Kept: {one_line(done.kept)}"]]
    )


def _split(found: Found, screen: Screen, wanted: _Asked) -> None:
    """Write the sessions of one file into files of their own, each mended."""
    seen = identify(found.path)
    with FileSource(found.path) as source:
        names = list(sessions_in(load(source)))
    if len(names) <= 1:
        raise NotFound("there is only one session in this file", hint="nothing was written")
    told: list[dict[str, Any]] = []
    proven = True
    for name in names:
        with Workbench() as bench, FileSource(found.path) as source:
            job = _mended(source, name, _wish(found, wanted, name), bench)
            part = msgspec.structs.replace(wanted, output=_free_path(found, name))
            placed = "" if wanted.dry_run else _place(found, job, seen, part)
        proven = proven and job.proven
        if wanted.as_json:
            told.append({"session": name, **job_json(found.path, "", job, placed)})
            continue
        lines = job_lines(name, "", job, screen.width, everything=wanted.everything)
        page(screen, lines, wanted=False)
        screen.lines([[], *([line] for line in _ending(found, job, placed, part)), []])
    if wanted.as_json:
        write_json(told)
    if not proven:
        raise click.exceptions.Exit(_NOT_PROVEN)


def _free_path(found: Found, name: str) -> str:
    folder = os.path.dirname(found.path)
    path = os.path.join(folder, f"{name}{_SUFFIX}")
    taken = not is_uuid(name) or os.path.lexists(path)
    return os.path.join(folder, f"{uuid4()}{_SUFFIX}") if taken else path


def _title(found: Found) -> str:
    try:
        return glance(found, clock.now()).title
    except Unreadable:
        return ""


def _stem(found: Found) -> str:
    return _stem_of(found.path)


def _stem_of(path: str) -> str:
    return os.path.basename(path).removesuffix(_SUFFIX)
