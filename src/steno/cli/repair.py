"""`steno repair`: a broken session made to resume, in a new file; or put back as it was."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import uuid4

import click
import msgspec

from steno.check.repair.job import STEPS, Job, Wish, mend
from steno.check.repair.parts import sessions_in
from steno.cli.edits import job_json, job_lines
from steno.cli.names import argument, text_of, title_of
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
from steno.cli.screen import Screen, write_bytes, write_json
from steno.errors import BadRequest, Busy, NotFound
from steno.format.paths import is_uuid
from steno.safe.terminal import ColourMode, Line, clean, one_line, wrap
from steno.session.resume.clients import LATEST, client_for
from steno.session.transcript import load
from steno.store.busy import is_growing
from steno.store.discover import agents_of
from steno.store.found import Found
from steno.store.library import find
from steno.store.read import FileSource
from steno.store.replace import keep_new, swap, undo
from steno.store.scratch import Identity, Scratch, identify
from steno.store.workbench import Workbench, owned

__all__ = ["command"]

_SUFFIX: Final = ".jsonl"
_AGENT: Final = "agent-"
_NANO: Final = 1e9
_NOT_PROVEN: Final = 1
_STDOUT: Final = "-"


class _Asked(msgspec.Struct):
    """What was asked for."""

    name: str = ""
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
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write here; - prints it.")
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

    What is not proven to resume is not written, except with -o.

    Exit codes: 0 mended, or nothing to mend; 1 it cannot be made to resume, or there is no such
    session, record or backup; 2 wrong usage; 3 cannot read or write, or somebody is writing to it.
    """
    wanted = _Asked(**asked, name=name, again=where_to_look(root, demo=demo))
    _refuse_contradictions(wanted)
    found = find(name, roots(root, demo=demo), archived=False)
    screen = Screen(color, width)
    if wanted.undo:
        _undo(found, screen, wanted)
    elif wanted.split:
        _split(found, screen, wanted)
    else:
        _repair(found, screen, wanted)


def _refuse_contradictions(wanted: _Asked) -> None:
    client_for(wanted.client)
    for option, given in (("--until", wanted.until), ("-o", wanted.output)):
        if given is not None and not given.strip():
            raise click.UsageError(f"{option} names nothing")
    if wanted.output == _STDOUT and wanted.as_json:
        raise click.UsageError("-o - and --json exclude each other: both print")
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
        name=_new_name(found, wanted),
        slim=wanted.slim,
        session=session,
        written=found.mtime_ns / _NANO,
    )


def _new_name(found: Found, wanted: _Asked) -> str:
    """Return the id of the new session, if no client would take the name it has now."""
    if wanted.split:
        return _stem_of(wanted.output or "")
    own = wanted.in_place or wanted.output or is_uuid(_stem(found))
    return "" if own or _stem(found).startswith(_AGENT) else str(uuid4())


def _place(found: Found, job: Job, seen: Identity, wanted: _Asked) -> str:
    """Put the mended file where it belongs and return where that is.

    Nothing is written of a session that was sound, and of one that is not proven to resume only
    what was asked for by name.
    """
    named = wanted.output is not None and not wanted.split
    if job.hopeless or not (named or job.proven) or (wanted.output is None and not job.changed):
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
    if wanted.output == _STDOUT:
        for chunk in job.chunks():
            write_bytes(chunk)
        return _STDOUT
    path = wanted.output or os.path.join(os.path.dirname(found.path), _fresh_name(job))
    if os.path.isdir(path):
        raise BadRequest(f"{path} is a folder", hint="name a file that is not there yet")
    with Scratch(path) as scratch:
        return owned(keep_new(scratch.write(job.chunks()), path, like=found.path))


def _fresh_name(job: Job) -> str:
    return f"{job.wish.name or uuid4()}{_SUFFIX}"


def _tell(found: Found, job: Job, placed: str, screen: Screen, wanted: _Asked) -> None:
    if wanted.as_json:
        write_json(job_json(found.path, title_of(found), job, placed))
    else:
        _say(screen, _story(_stem(found), title_of(found), job, screen, wanted), wanted)
        _say(screen, _closing(found, job, placed, screen, wanted), wanted)
    if not job.proven:
        raise click.exceptions.Exit(_NOT_PROVEN)


def _story(name: str, title: str, job: Job, screen: Screen, wanted: _Asked) -> Iterator[Line]:
    used = job.wish.client.version
    note = "" if wanted.client == used else f"for {wanted.client}: as {used}, the nearest studied"
    return job_lines(name, title, job, screen.width, everything=wanted.everything, note=note)


def _say(screen: Screen, lines: Iterable[Line], wanted: _Asked) -> None:
    """Write lines; to the standard error where the session itself goes to the standard output."""
    if wanted.output == _STDOUT:
        sys.stderr.write(screen.text(lines))
    else:
        page(screen, lines, wanted=False)


def _closing(found: Found, job: Job, placed: str, screen: Screen, wanted: _Asked) -> Iterator[Line]:
    yield []
    for line in _ending(found, job, placed, wanted):
        # What is to be copied stays in one piece.
        whole = line.startswith((program(), "claude ")) or bool(placed and _shown(placed) in line)
        for each in [line] if whole else wrap(line, screen.width):
            yield [each]


def _ending(found: Found, job: Job, placed: str, wanted: _Asked) -> Iterator[str]:
    """Yield what was written where, and what to do with it."""
    if job.is_agent:
        yield "A sub-agent's file: no client resumes it by itself, so only its lines are mended."
    if job.hopeless:
        yield "Nothing was written: there is no conversation in this file to resume."
    elif not job.proven:
        yield from _not_proven(job, placed, wanted)
    elif not job.changed and not placed:
        yield "Nothing to mend; the file is left as it is."
    elif wanted.dry_run:
        yield "Nothing was written (--dry-run)."
    elif wanted.in_place:
        yield f"{one_line(placed)} was exchanged; the old file is kept beside it."
        yield from _way_back(found, wanted)
    elif placed:
        yield from _written(found, placed, wanted)


def _written(found: Found, placed: str, wanted: _Asked) -> Iterator[str]:
    """Yield where the new session lies, and what becomes of the old one."""
    yield f"Written to {_shown(placed)}"
    if wanted.output is None or wanted.split:
        yield f"claude --resume {_stem_of(placed)}"
    if wanted.output is not None:
        return
    yield "The old session stays as it is: keep both, or exchange it with --in-place instead."
    if agents := len(agents_of(found)):
        stay = "sub-agent stays" if agents == 1 else "sub-agents stay"
        yield f"Its {agents:,} {stay} with the original; --in-place keeps them together."


def _shown(path: str) -> str:
    return "the standard output" if path == _STDOUT else one_line(path)


def _way_back(found: Found, wanted: _Asked) -> Iterator[str]:
    """Yield the command that undoes it, unless what is shown would not be what is meant."""
    stem = _stem(found)
    by_id = not os.path.lexists(wanted.name) and (is_uuid(stem) or stem.startswith(_AGENT))
    name = argument(stem if by_id else found.path)
    if name and clean(wanted.again) == wanted.again:
        yield f"{program()} repair{wanted.again} {name} --undo   brings it back"
    else:
        yield "`--undo` brings it back."


def _not_proven(job: Job, placed: str, wanted: _Asked) -> Iterator[str]:
    """Yield what came of a repair that is not known to resume, and why it is not."""
    if job.endless:
        yield "Not mended: there was more to mend after many rounds, so the repair was given up."
    elif not job.settled:
        yield "Not mended: one mend undoes another, so the repair was given up."
    if job.after.wayward:
        yield f"Not mended: {job.wish.client.version} does not go on from the record of --until."
    if placed:
        yield f"Written to {_shown(placed)}, but it is not proven to resume: see above."
    elif not job.changed:
        yield "Nothing in it can be mended; the file is left as it is."
    elif wanted.dry_run:
        yield "Nothing was written (--dry-run), nor would be: it is not proven to resume."
    else:
        yield "Nothing was written: the mended file is not proven to resume."
        yield "-o FILE writes it all the same."


def _undo(found: Found, screen: Screen, wanted: _Asked) -> None:
    done = undo(found.path, force=wanted.force, live=not wanted.force)
    if wanted.as_json:
        write_json({"path": text_of(done.path), "kept": text_of(done.kept)})
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
            part = msgspec.structs.replace(wanted, output=_free_path(found, name))
            job = _mended(source, name, _wish(found, part, name), bench)
            placed = "" if wanted.dry_run else _place(found, job, seen, part)
        proven = proven and job.proven
        if wanted.as_json:
            told.append({"session": name, **job_json(found.path, "", job, placed)})
            continue
        lines = _story(name, "", job, screen, wanted)
        page(screen, lines, wanted=False)
        screen.lines([*_closing(found, job, placed, screen, part), []])
    if wanted.as_json:
        write_json(told)
    if not proven:
        raise click.exceptions.Exit(_NOT_PROVEN)


def _free_path(found: Found, name: str) -> str:
    folder = os.path.dirname(found.path)
    path = os.path.join(folder, f"{name}{_SUFFIX}")
    taken = not is_uuid(name) or os.path.lexists(path)
    return os.path.join(folder, f"{uuid4()}{_SUFFIX}") if taken else path


def _stem(found: Found) -> str:
    return _stem_of(found.path)


def _stem_of(path: str) -> str:
    return os.path.basename(path).removesuffix(_SUFFIX)
