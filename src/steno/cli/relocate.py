"""`steno relocate`: sessions follow their project to another folder, or to another machine."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import msgspec

from steno.cli.fit import wrapped
from steno.cli.names import argument, text_of
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.errors import BadRequest
from steno.index.home import index_of
from steno.report import words
from steno.safe.terminal import ColourMode, Line, one_line
from steno.store.places import config_dir
from steno.store.relocate.carry import apply, finish, take_back
from steno.store.relocate.pack import Packing, pack
from steno.store.relocate.plan import plan_move
from steno.store.relocate.receipt import Receipt, cut_off, find_receipt, new_folder
from steno.store.relocate.unpack import forget_staged, plan_unpack
from steno.store.relocate.values import Plan, Step

__all__ = ["command"]

_LONG: Final = 2000
_SHOWN: Final = 12
_VERBS: Final = {"move": "→", "rewrite": "~", "add": "+", "merge": "+"}

_HELP: Final = """\
Have the sessions of a project follow it from the folder OLD to the folder NEW.

The client finds sessions by the folder they ran in, so those of a project that was moved or
renamed are lost to it. This gives their files the place where the client looks now, and
rewrites the project's paths in them; every other byte stays, also paths inside of what was said:
in prompts, answers, commands and their output. Sub-agents, tool results, the history of prompts,
the client's entry for the project and steno's index follow.

Without --apply nothing is changed: the plan is told. A receipt can undo the move.

\b
  steno relocate ~/old/app ~/new/app            what would be done
  steno relocate ~/old/app ~/new/app --apply    do it
  steno relocate --undo last                    and back
  steno relocate ~/app --to-machine app.tar.zst
  steno relocate --from-machine app.tar.zst ~/src/app --apply

Exit codes: 0 fine, 1 there is nothing of such a project, 2 wrong usage or an archive that is
refused, 3 a client is at work in it, or something cannot be read or written.
"""


class _Asked(msgspec.Struct):
    """What was asked for."""

    folders: tuple[str, ...] = ()
    apply: bool = False
    undo: str | None = None
    to_machine: str | None = None
    from_machine: str | None = None
    everything: bool = False
    as_json: bool = False
    again: str = ""
    """Options that make another command look at the same folder."""


@click.command("relocate", help=_HELP, short_help="Have sessions follow a project that was moved.")
@click.argument("folders", metavar="[OLD] [NEW]", nargs=-1, type=click.Path())
@click.option("--apply", is_flag=True, help="Do it. Without this, only what would be done is told.")
@click.option(
    "--undo", metavar="RECEIPT", help="Take a move back, by its receipt's id or path; or `last`."
)
@click.option(
    "--to-machine",
    metavar="FILE",
    type=click.Path(),
    help="Pack the sessions of OLD into FILE, for another machine. Nothing is moved.",
)
@click.option(
    "--from-machine",
    metavar="FILE",
    type=click.Path(),
    help="Unpack FILE here, for the project at NEW.",
)
@click.option("--all", "everything", is_flag=True, help="List every file.")
@options(WHERE)
@options(JSON)
@WIDTH
@options(COLOR)
def command(
    root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **asked: Any
) -> None:
    """Plan a move, do it, or take it back."""
    wanted = _Asked(**asked, again=where_to_look(root, demo=demo))
    _refuse_contradictions(wanted)
    where = roots(root, demo=demo)
    if where is not None and len(where) > 1:
        raise click.UsageError("only one config folder at a time")
    config = os.path.abspath(where[0] if where else config_dir())
    screen = Screen(color, width)
    if wanted.undo is not None:
        _undo(find_receipt(wanted.undo), where, screen, wanted)
    elif wanted.to_machine is not None:
        _pack(config, screen, wanted)
    elif wanted.from_machine is not None:
        _unpack(config, where, screen, wanted)
    else:
        _move(config, where, screen, wanted)


def _refuse_contradictions(wanted: _Asked) -> None:
    modes = [wanted.undo, wanted.to_machine, wanted.from_machine]
    if sum(mode is not None for mode in modes) > 1:
        raise click.UsageError("--undo, --to-machine and --from-machine exclude each other")
    if wanted.undo is not None:
        number, names = 0, "no folder"
    elif wanted.to_machine is not None:
        number, names = 1, "the project's folder"
    elif wanted.from_machine is not None:
        number, names = 1, "the folder of the project here"
    else:
        number, names = 2, "the folder it was in and the one it is in"
    if len(wanted.folders) != number or not all(each.strip() for each in wanted.folders):
        raise click.UsageError(f"this takes {names}")
    if wanted.apply and (wanted.undo is not None or wanted.to_machine is not None):
        raise click.UsageError("--apply goes with OLD NEW, or with --from-machine")


# Moving


def _move(config: str, where: tuple[str, ...] | None, screen: Screen, wanted: _Asked) -> None:
    old, new = wanted.folders
    left = cut_off()
    if left is not None and wanted.apply and _is_same(left, old, new):
        receipt = _with_bar(0, "Moving", lambda done: finish(left, done))
        _moved(receipt, None, where, screen, wanted)
        return
    if left is not None:
        complain(
            f"the move {left.id} of {left.old} was cut off",
            f"the same again with --apply goes on; --undo {left.id} takes it back",
        )
    plan: Plan = _with_bar(0, "Reading", lambda done: plan_move(old, new, config, done=done))
    if not wanted.apply:
        _told(plan, screen, wanted, _again(wanted, plan))
        return
    receipt = _with_bar(plan.size, "Moving", lambda done: apply(plan, done=done))
    _moved(receipt, plan, where, screen, wanted)


def _is_same(receipt: Receipt, old: str, new: str) -> bool:
    olds = (os.path.abspath(old), os.path.realpath(old))
    unfinished = receipt.state in ("begun", "placed")
    return unfinished and receipt.old in olds and receipt.new == os.path.realpath(new)


def _with_bar(size: int, label: str, work: Callable[[Callable[[int], None]], Any]) -> Any:
    with Progress(size, label) as bar:
        return work(bar.add)


def _again(wanted: _Asked, plan: Plan) -> str:
    """Return the command that does it."""
    if wanted.from_machine is not None:
        names = ["--from-machine", wanted.from_machine, wanted.folders[0]]
    else:
        names = [plan.old, plan.new]
    quoted = [each if each.startswith("--") else argument(each) or "" for each in names]
    command = f"{program()} relocate{wanted.again} {' '.join(quoted)} --apply"
    return command if all(quoted) else ""


def _moved(
    receipt: Receipt,
    plan: Plan | None,
    where: tuple[str, ...] | None,
    screen: Screen,
    wanted: _Asked,
) -> None:
    _follow(receipt, where, back=False)
    if wanted.as_json:
        told = _plan_json(plan) if plan else {"old": receipt.old, "new": receipt.new}
        write_json({**told, "applied": True, "receipt": receipt.id})
        return
    paths = words.count(sum(step.paths for step in receipt.steps), "path")
    to = one_line(receipt.new, _LONG)
    screen.lines([[("✓", "green"), f" {_belong(receipt)} to {to} now; {paths} rewritten."]])
    screen.lines(_notes(plan.notes if plan else (), screen.width))
    back = f"{program()} relocate{wanted.again} --undo {receipt.id}   takes it back"
    screen.lines([[(back, "dim")]])


def _belong(receipt: Receipt) -> str:
    number = _sessions(receipt)
    return f"{words.count(number, 'session')} {'belongs' if number == 1 else 'belong'}"


def _sessions(receipt: Receipt) -> int:
    return Plan("", "", "", (), steps=receipt.steps).sessions


def _follow(receipt: Receipt, where: tuple[str, ...] | None, *, back: bool) -> None:
    """Have the index know the new places, if there is an index."""
    from steno.index.database import DATABASE
    from steno.index.sync import forget_files, sync

    home = index_of(where)
    if not os.path.exists(os.path.join(home.folder, DATABASE)):
        return
    moved = [step for step in receipt.steps if step.session]
    gone = [step.target if back else step.source for step in moved]
    forget_files(home, [path for path in gone if not os.path.exists(path)])
    sync(home)


# Taking back


def _undo(receipt: Receipt, where: tuple[str, ...] | None, screen: Screen, wanted: _Asked) -> None:
    size = sum(step.after.size for step in receipt.steps)
    done, notes = _with_bar(size, "Moving back", lambda add: take_back(receipt, add))
    _follow(done, where, back=True)
    if wanted.as_json:
        write_json({"receipt": done.id, "old": done.old, "new": done.new, "notes": notes})
        return
    if done.kind == "unpack":
        said = f" {words.count(_sessions(done), 'session')} from the archive removed again."
    else:
        said = f" {_belong(done)} to {one_line(done.old, _LONG)} again."
    screen.lines([[("✓", "green"), said]])
    screen.lines(_notes(tuple(notes), screen.width))


# Other machines


def _pack(config: str, screen: Screen, wanted: _Asked) -> None:
    target = wanted.to_machine or ""
    if os.path.lexists(target):
        raise BadRequest(f"{target} is there already", hint="name a file that is not there yet")
    done: Packing = _with_bar(
        0, "Packing", lambda add: pack(wanted.folders[0], config, os.path.abspath(target), add)
    )
    about = done.manifest
    if wanted.as_json:
        write_json(
            {
                "file": text_of(os.path.abspath(target)),
                "packed": os.path.getsize(target),
                "project": about.project,
                "sessions": about.sessions,
                "size": about.size,
                "files": [msgspec.to_builtins(each) for each in about.files],
                "left_out": [text_of(each) for each in done.left],
            }
        )
        return
    sizes = f"{words.size(about.size)} in {words.size(os.path.getsize(target))}"
    files = words.count(len(about.files), "file")
    sessions = words.count(about.sessions, "session")
    shown = one_line(target, _LONG)
    screen.lines([[("✓", "green"), f" {sessions} in {shown}: {files}, {sizes}"]])
    left = tuple(f"{each} is left out: it stays on this machine" for each in done.left)
    screen.lines(_notes(left, screen.width))
    screen.lines([[("It has all that was said in them, unmasked. There:", "dim")]])
    there = argument(os.path.basename(target)) or "FILE"
    screen.lines([[(f"steno relocate --from-machine {there} NEW", "dim")]])


def _unpack(config: str, where: tuple[str, ...] | None, screen: Screen, wanted: _Asked) -> None:
    source, new = wanted.from_machine or "", wanted.folders[0]
    left = cut_off()
    if left is not None and wanted.apply and left.kind == "unpack" and left.state != "undoing":
        _moved(_with_bar(0, "Moving", lambda done: finish(left, done)), None, where, screen, wanted)
        return
    folder = new_folder()
    applied = False
    try:
        plan: Plan = _with_bar(
            0, "Unpacking", lambda done: plan_unpack(source, new, config, folder, done)
        )
        if not plan.steps:
            raise BadRequest("all that is in this archive is here already")
        applied = wanted.apply
    finally:
        if not applied:
            forget_staged(folder)
    if not applied:
        _told(plan, screen, wanted, _again(wanted, plan))
        return
    receipt = _with_bar(plan.size, "Moving", lambda done: apply(plan, "unpack", folder, done))
    _moved(receipt, plan, where, screen, wanted)


# Telling


def _told(plan: Plan, screen: Screen, wanted: _Asked, again: str) -> None:
    if wanted.as_json:
        write_json({**_plan_json(plan), "applied": False})
        return
    screen.lines(_plan_lines(plan, screen.width, everything=wanted.everything))
    if again:
        screen.lines([[(again, "cyan")]])


def _plan_lines(plan: Plan, width: int, *, everything: bool) -> Iterator[Line]:
    yield [(one_line(plan.old, _LONG), "bold"), " → ", (one_line(plan.new, _LONG), "bold")]
    shown = plan.steps if everything else plan.steps[:_SHOWN]
    for step in shown:
        yield _step_line(step, plan)
    if len(plan.steps) > len(shown):
        yield [(f"  and {len(plan.steps) - len(shown):,} more; --all lists them", "dim")]
    yield from _notes(plan.notes, width)
    sessions = words.count(plan.sessions, "session")
    files = words.count(len(plan.steps), "file")
    paths = words.count(plan.paths, "path")
    yield []
    yield [f"{sessions}, {files}, {words.size(plan.size)}; {paths} to rewrite."]
    kept = [step for step in plan.steps if not step.exact and not step.lines]
    if kept:
        files = words.count(len(kept), "file")
        yield from wrapped(
            [
                f"{files} name the new folder already: a copy of each is kept, so that --undo is exact."
            ],
            width,
        )
    yield ["Nothing was changed. To do it:"]


def _step_line(step: Step, plan: Plan) -> Line:
    place = _below(step.target, plan.config)
    about = words.size(step.before.size)
    if step.paths:
        about += f", {words.count(step.paths, 'path')}"
    return [f"  {_VERBS[step.action]} ", one_line(place, _LONG), "  ", (about, "dim")]


def _below(path: str, config: str) -> str:
    return path.removeprefix(config + os.sep)


def _notes(notes: tuple[str, ...], width: int) -> Iterator[Line]:
    for note in notes:
        yield from wrapped([("! ", "yellow"), one_line(note, _LONG)], width)


def _plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "old": text_of(plan.old),
        "new": text_of(plan.new),
        "config": text_of(plan.config),
        "sessions": plan.sessions,
        "size": plan.size,
        "paths": plan.paths,
        "steps": [
            {
                "action": step.action,
                "from": text_of(step.source),
                "to": text_of(step.target),
                "size": step.before.size,
                "paths": step.paths,
                "exact": step.exact,
            }
            for step in plan.steps
        ],
        "notes": [text_of(note) for note in plan.notes],
    }
