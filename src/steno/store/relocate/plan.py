"""What a move will do to every file, worked out to the byte before anything is touched."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Busy, NotFound, Unreadable
from steno.format.loose import loose
from steno.format.reroot import Reroot
from steno.store.busy import is_fresh, is_running, look_now
from steno.store.folder import ConfigFolder
from steno.store.places import home_dir
from steno.store.read import FileSource
from steno.store.relocate.belongs import belongings, is_inside
from steno.store.relocate.rewrite import measure, sum_of
from steno.store.relocate.values import Move, Plan, Step
from steno.store.session_lock import refuse_if_locked

__all__ = [
    "Done",
    "checked",
    "plan_move",
    "refuse_if_live",
    "refuse_root",
    "shared_files",
    "steps_of",
    "turned",
]

Done = Callable[[int], None]
_HISTORY: Final = "history.jsonl"
_STATE: Final = ".claude.json"


def plan_move(old: str, new: str, config: str, *, done: Done | None = None) -> Plan:
    """Return what it takes to have the sessions of the project at `old` follow it to `new`.

    Raises:
        BadRequest: both are the same folder, one is a whole disk, or sessions of the same id lie at
            both.
        NotFound: there is nothing of such a project.
        Busy: a client is at work in it.
    """
    for folder in (old, new):
        refuse_root(folder)
    given, config = os.path.abspath(config), os.path.realpath(config)
    old, found = _found(old, os.path.realpath(new), config)
    new = os.path.realpath(new)
    folders = [(source, target) for source, target in found.folders if source != target]
    moves = [*found.moves, *shared_files(config)]
    pairs = turned(old, new, config, folders)
    if given != config:
        # The client writes the folder as it is named, links and all.
        pairs += [(given + a[len(config) :], given + b[len(config) :]) for a, b in folders]
    steps = steps_of(moves, Reroot(pairs), done)
    plan = Plan(
        old,
        new,
        config,
        tuple(pairs),
        folders=tuple(source for source, _ in folders),
        notes=tuple(found.notes),
    )
    plan = checked(plan, list(steps))
    if not plan.steps:
        raise NotFound(
            f"there is nothing of a project at {old}", hint="`steno ls` says where sessions ran"
        )
    refuse_if_live(plan)
    return plan


def refuse_root(folder: str) -> None:
    """Refuse what everything else lies in: no path would say which project it is of.

    Raises:
        BadRequest: it is the root of a disk.
    """
    whole = os.path.realpath(folder)
    if os.path.dirname(whole) == whole:
        raise BadRequest(f"{folder} is no folder of a project")


def _found(given: str, new: str, config: str) -> tuple[str, Any]:
    """Return the folder under the name that its sessions know, and what there is of it."""
    # Clients name a project by where it really lies; what is gone cannot be asked any more.
    names = dict.fromkeys((os.path.abspath(given), os.path.realpath(given)))
    if new in names and len(names) == 1:
        raise BadRequest("both are the same folder")
    for old in names:
        found = belongings(config, old, new)
        if old != new and found.moves:
            return old, found
    return next(iter(names)), belongings(config, next(iter(names)), new)


def turned(
    old: str, new: str, config: str, folders: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return folders and what they are from now on; the config folder itself stays."""
    pairs = [(old, new), *folders]
    if is_inside(config, old):
        pairs.append((config, config))
    return pairs


def shared_files(config: str) -> list[Move]:
    """Return the files in which all projects are named: they stay, and are rewritten."""
    state = os.path.join(config, _STATE)
    if not os.path.isfile(state) and os.path.basename(config) == ".claude":
        beside = os.path.join(os.path.dirname(config), _STATE)
        state = beside if os.path.realpath(home_dir()) == os.path.dirname(config) else state
    history = os.path.join(config, _HISTORY)
    wanted = [Move(history, history, "lines", "rewrite"), Move(state, state, "whole", "rewrite")]
    return [move for move in wanted if os.path.isfile(move.source)]


def steps_of(moves: Iterable[Move], paths: Reroot, done: Done | None = None) -> Iterator[Step]:
    """Yield what becomes of each file; files that stay and do not change are left out."""
    for move in moves:
        shared = move.action == "rewrite"
        with FileSource(move.source) as source:
            found = measure(source.chunks(), paths, move.mode, marks=shared, done=done)
        if move.source == move.target and not found.paths:
            continue
        yield Step(
            move.source,
            move.target,
            move.mode,
            "rewrite" if move.source == move.target else move.action,
            found.before,
            found.after,
            found.paths,
            exact=found.exact,
            lines=found.lines,
            session=move.session,
        )


def checked(plan: Plan, steps: list[Step]) -> Plan:
    """Leave out what cannot go, and say so; refuse where a session would get lost."""
    kept: list[Step] = []
    notes = list(plan.notes)
    _refuse_odd_names((plan.old, plan.new, *(each.source for each in steps)))
    for step in steps:
        if os.path.basename(step.source) == _STATE and (twice := _twice(step, plan)):
            notes.append(f"{step.source} is left: it has an entry for {twice} already")
        elif step.action in ("move", "add") and os.path.lexists(step.target):
            if _is_there(step):
                # What an earlier run placed before it was cut off; what was unpacked before.
                kept += [step] if step.action == "move" else []
            elif step.session:
                raise BadRequest(
                    f"{step.target} is there already, with other content",
                    hint="nothing was changed; two sessions cannot have one name",
                )
            else:
                notes.append(f"{step.source} is left: there is one at {step.target}")
        else:
            kept.append(step)
    if not os.path.isdir(plan.new):
        notes.append(f"there is no folder {plan.new} yet")
    return msgspec.structs.replace(plan, steps=tuple(kept), notes=tuple(notes))


def _refuse_odd_names(paths: Iterable[str]) -> None:
    """Refuse names that are not UTF-8: neither JSON nor a receipt can hold them."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(f"{path!r} is not UTF-8", hint="rename it first") from error


def _is_there(step: Step) -> bool:
    try:
        with FileSource(step.target) as there:
            return sum_of(there.chunks()) == step.after
    except Unreadable:
        return False


def _twice(step: Step, plan: Plan) -> str:
    """Return a project that the client's own file would have two entries for."""
    with FileSource(step.source) as source:
        told = loose(source.read(0, source.size))
    projects = cast("dict[str, Any]", told).get("projects") if isinstance(told, dict) else None
    if not isinstance(projects, dict):
        return ""
    names = cast("dict[str, Any]", projects)
    paths = Reroot(plan.pairs)
    for name in names:
        if (new := paths.path(name)) != name and new in names:
            return new
    return ""


def refuse_if_live(plan: Plan) -> None:
    """Let nobody move what a client is at work on.

    Raises:
        Busy: one is, or a session was written to a moment ago.
    """
    hint = "nothing was changed; leave that session first"
    running = [each for each in ConfigFolder(plan.config).live() if is_running(each)]
    for process in running:
        if any(is_inside(process.cwd, each) for each in (plan.old, plan.new)):
            raise Busy(f"a client is at work in {process.cwd} (process {process.pid})", hint=hint)
    ids = {process.session_id for process in running} - {""}
    for step in plan.steps:
        seen = look_now(step.source) if step.session else None
        if seen is None:
            continue
        if is_fresh(seen.mtime_ns) or not ids.isdisjoint(_names(step.source)):
            raise Busy(f"{step.source} is being written to", hint=hint)
        refuse_if_locked(step.source)


def _names(path: str) -> list[str]:
    return path.removesuffix(".jsonl").split(os.sep)
