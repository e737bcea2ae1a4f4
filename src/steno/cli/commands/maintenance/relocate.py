"""`steno relocate`: updates the sessions of a project for another directory or machine."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import msgspec

from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, print_error, write_json
from steno.cli.output.table_layout import wrap_line
from steno.errors import BadRequest
from steno.index.database import locate_index
from steno.report import humanize
from steno.report.session_references import printable_path, shell_argument
from steno.sanitize.terminal import ColourMode, StyledLine, one_line
from steno.store.environment import config_dir
from steno.store.relocate.execution import (
    RelocationReceipt,
    apply_plan,
    find_interrupted,
    find_receipt,
    new_receipt_folder,
    resume,
    undo_relocation,
)
from steno.store.relocate.plan import RelocationPlan, RelocationStep, plan_move
from steno.store.relocate.transfer import PackResult, pack_project, plan_unpack, remove_staged

_MAX_TEXT_LENGTH: Final = 2000
_MAX_STEPS: Final = 12
_ACTION_MARKS: Final = {"move": "→", "rewrite": "~", "add": "+", "merge": "+"}

_HELP: Final = """\
Update the sessions of a project that was moved from OLD to NEW.

Claude Code finds sessions by working directory, so it no longer finds the sessions of a moved or
renamed project. This command moves the session files to the matching directory and rewrites the
project paths in them. All other bytes stay unchanged, including paths in prompts, answers, commands
and output. Sub-agents, tool results, the prompt history, Claude Code's project entry and steno's
index are updated too.

Without --apply, only the plan is printed. Each move writes a receipt, so that it can be undone.

\b
Examples:
  steno relocate ~/old/app ~/new/app            Print the plan
  steno relocate ~/old/app ~/new/app --apply    Apply it
  steno relocate --undo last                    Undo it
  steno relocate ~/app --to-machine app.tar.zst
  steno relocate --from-machine app.tar.zst ~/src/app --apply

Exit codes: 0 success, 1 no such project, 2 usage error or rejected archive, 3 in use by Claude
Code, or cannot read or write.
"""


class _RelocateOptions(msgspec.Struct):
    folders: tuple[str, ...] = ()
    apply: bool = False
    undo: str | None = None
    to_machine: str | None = None
    from_machine: str | None = None
    everything: bool = False
    as_json: bool = False
    root_options: str = ""
    """The options that select the same directory in another command."""


@click.command("relocate", help=_HELP, short_help="Update sessions after a project was moved.")
@click.argument("folders", metavar="[OLD] [NEW]", nargs=-1, type=click.Path())
@click.option("--apply", is_flag=True, help="Apply the plan instead of printing it")
@click.option("--undo", metavar="RECEIPT", help="Undo a move, by receipt ID or path, or `last`")
@click.option(
    "--to-machine", metavar="FILE", type=click.Path(), help="Pack the sessions of OLD into FILE for another machine"
)
@click.option("--from-machine", metavar="FILE", type=click.Path(), help="Unpack FILE for the project at NEW")
@click.option("--all", "everything", is_flag=True, help="List all files")
@add_options(ROOT_OPTIONS)
@add_options(JSON)
@WIDTH
@add_options(COLOR)
def command(root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any) -> None:
    """Plan, apply or undo a move."""
    command_options = _RelocateOptions(**values, root_options=root_arguments(root, demo=demo))
    _check_options(command_options)
    folders = search_roots(root, demo=demo)
    if folders is not None and len(folders) > 1:
        raise click.UsageError("only one config directory can be given")
    config = os.path.abspath(folders[0] if folders else config_dir())
    screen = Screen(color, width)
    if command_options.undo is not None:
        _undo_relocation(find_receipt(command_options.undo), folders, screen, command_options)
    elif command_options.to_machine is not None:
        _pack_project(config, screen, command_options)
    elif command_options.from_machine is not None:
        _unpack_project(config, folders, screen, command_options)
    else:
        _relocate_project(config, folders, screen, command_options)


def _check_options(options: _RelocateOptions) -> None:
    modes = [options.undo, options.to_machine, options.from_machine]
    if sum(mode is not None for mode in modes) > 1:
        raise click.UsageError("--undo, --to-machine and --from-machine cannot be combined")
    if options.undo is not None:
        number, expected = 0, "no directory"
    elif options.to_machine is not None:
        number, expected = 1, "one directory: the project"
    elif options.from_machine is not None:
        number, expected = 1, "one directory: the project on this machine"
    else:
        number, expected = 2, "two directories: OLD and NEW"
    if len(options.folders) != number or not all(folder.strip() for folder in options.folders):
        raise click.UsageError(f"expected {expected}")
    if options.apply and (options.undo is not None or options.to_machine is not None):
        raise click.UsageError("--apply requires OLD NEW or --from-machine")


# Moving


def _relocate_project(config: str, where: tuple[str, ...] | None, screen: Screen, options: _RelocateOptions) -> None:
    old, new = options.folders
    interrupted = find_interrupted()
    if interrupted is not None and options.apply and _is_same_relocation(interrupted, old, new):
        receipt = _with_progress(0, "Moving", lambda done: resume(interrupted, done))
        _finish_relocation(receipt, None, where, screen, options)
        return
    if interrupted is not None:
        print_error(
            f"the move {interrupted.id} of {interrupted.old} was interrupted",
            f"Run it again with --apply to continue, or use --undo {interrupted.id}.",
        )
    plan: RelocationPlan = _with_progress(
        0, "Reading", lambda advance: plan_move(old, new, config, on_progress=advance)
    )
    if not options.apply:
        _print_plan(plan, screen, options, _apply_command(options, plan))
        return
    receipt = _with_progress(plan.size, "Moving", lambda done: apply_plan(plan, on_progress=done))
    _finish_relocation(receipt, plan, where, screen, options)


def _is_same_relocation(receipt: RelocationReceipt, old: str, new: str) -> bool:
    olds = (os.path.abspath(old), os.path.realpath(old))
    unfinished = receipt.state in ("begun", "placed")
    return unfinished and receipt.old in olds and receipt.new == os.path.realpath(new)


def _with_progress(size: int, label: str, work: Callable[[Callable[[int], None]], Any]) -> Any:
    with ProgressBar(size, label) as bar:
        return work(bar.advance)


def _apply_command(options: _RelocateOptions, plan: RelocationPlan) -> str:
    if options.from_machine is not None:
        arguments = ["--from-machine", options.from_machine, options.folders[0]]
    else:
        arguments = [plan.old, plan.new]
    quoted = [name if name.startswith("--") else shell_argument(name) or "" for name in arguments]
    command = f"{program_name()} relocate{options.root_options} {' '.join(quoted)} --apply"
    return command if all(quoted) else ""


def _finish_relocation(
    receipt: RelocationReceipt,
    plan: RelocationPlan | None,
    where: tuple[str, ...] | None,
    screen: Screen,
    options: _RelocateOptions,
) -> None:
    _update_index(receipt, where, is_undo=False)
    if options.as_json:
        data = _plan_json(plan) if plan else {"old": receipt.old, "new": receipt.new}
        write_json({**data, "applied": True, "receipt": receipt.id})
        return
    paths = humanize.count(sum(step.paths for step in receipt.steps), "path")
    new_path = one_line(receipt.new, _MAX_TEXT_LENGTH)
    screen.print_lines([[("✓", "green"), f" {_sessions_belong_text(receipt)} to {new_path} now; {paths} rewritten"]])
    screen.print_lines(_note_lines(plan.notes if plan else (), screen.width))
    undo_text = f"{program_name()} relocate{options.root_options} --undo {receipt.id}   to undo"
    screen.print_lines([[(undo_text, "dim")]])


def _sessions_belong_text(receipt: RelocationReceipt) -> str:
    number = _session_count(receipt)
    return f"{humanize.count(number, 'session')} {'belongs' if number == 1 else 'belong'}"


def _session_count(receipt: RelocationReceipt) -> int:
    return RelocationPlan("", "", "", (), steps=receipt.steps).sessions


def _update_index(receipt: RelocationReceipt, where: tuple[str, ...] | None, *, is_undo: bool) -> None:
    """Update the paths in the index, if one exists."""
    from steno.index.database import DATABASE_NAME
    from steno.index.sync.updater import remove_paths, sync

    home = locate_index(where)
    if not os.path.exists(os.path.join(home.folder, DATABASE_NAME)):
        return
    session_steps = [step for step in receipt.steps if step.session]
    old_paths = [step.target if is_undo else step.source for step in session_steps]
    remove_paths(home, [path for path in old_paths if not os.path.exists(path)])
    sync(home)


# Undoing


def _undo_relocation(
    receipt: RelocationReceipt, where: tuple[str, ...] | None, screen: Screen, options: _RelocateOptions
) -> None:
    size = sum(step.after.size for step in receipt.steps)
    undone, notes = _with_progress(size, "Moving back", lambda advance: undo_relocation(receipt, advance))
    _update_index(undone, where, is_undo=True)
    if options.as_json:
        write_json({"receipt": undone.id, "old": undone.old, "new": undone.new, "notes": notes})
        return
    if undone.kind == "unpack":
        message = f" Removed {humanize.count(_session_count(undone), 'session')} of the archive"
    else:
        message = f" {_sessions_belong_text(undone)} to {one_line(undone.old, _MAX_TEXT_LENGTH)} again"
    screen.print_lines([[("✓", "green"), message]])
    screen.print_lines(_note_lines(tuple(notes), screen.width))


# Other machines


def _pack_project(config: str, screen: Screen, options: _RelocateOptions) -> None:
    target = options.to_machine or ""
    if os.path.lexists(target):
        raise BadRequest(f"{target} already exists", hint="Choose a new file name.")
    packed: PackResult = _with_progress(
        0, "Packing", lambda advance: pack_project(options.folders[0], config, os.path.abspath(target), advance)
    )
    manifest = packed.manifest
    if options.as_json:
        write_json(
            {
                "file": printable_path(os.path.abspath(target)),
                "packed": os.path.getsize(target),
                "project": manifest.project,
                "sessions": manifest.sessions,
                "size": manifest.size,
                "files": [msgspec.to_builtins(item) for item in manifest.files],
                "left_out": [printable_path(each) for each in packed.left_out],
            }
        )
        return
    sizes = f"{humanize.size(manifest.size)}, {humanize.size(os.path.getsize(target))} compressed"
    files = humanize.count(len(manifest.files), "file")
    sessions = humanize.count(manifest.sessions, "session")
    target_text = one_line(target, _MAX_TEXT_LENGTH)
    screen.print_lines([[("✓", "green"), f" Packed {sessions} into {target_text}: {files}, {sizes}"]])
    left_out_notes = tuple(f"not packed: {each}" for each in packed.left_out)
    screen.print_lines(_note_lines(left_out_notes, screen.width))
    screen.print_lines([[("The file contains the sessions unmasked. On the other machine, run:", "dim")]])
    archive_name = shell_argument(os.path.basename(target)) or "FILE"
    screen.print_lines([[(f"steno relocate --from-machine {archive_name} NEW", "dim")]])


def _unpack_project(config: str, where: tuple[str, ...] | None, screen: Screen, options: _RelocateOptions) -> None:
    source, new = options.from_machine or "", options.folders[0]
    interrupted = find_interrupted()
    if interrupted is not None and options.apply and interrupted.kind == "unpack" and interrupted.state != "undoing":
        _finish_relocation(
            _with_progress(0, "Moving", lambda done: resume(interrupted, done)), None, where, screen, options
        )
        return
    folder = new_receipt_folder()
    applied = False
    try:
        plan: RelocationPlan = _with_progress(
            0, "Unpacking", lambda done: plan_unpack(source, new, config, folder, done)
        )
        if not plan.steps:
            raise BadRequest("all sessions of this archive already exist here")
        applied = options.apply
    finally:
        if not applied:
            remove_staged(folder)
    if not applied:
        _print_plan(plan, screen, options, _apply_command(options, plan))
        return
    receipt = _with_progress(plan.size, "Moving", lambda advance: apply_plan(plan, "unpack", folder, advance))
    _finish_relocation(receipt, plan, where, screen, options)


# Printing


def _print_plan(plan: RelocationPlan, screen: Screen, options: _RelocateOptions, apply_command: str) -> None:
    if options.as_json:
        write_json({**_plan_json(plan), "applied": False})
        return
    screen.print_lines(_plan_lines(plan, screen.width, show_all=options.everything))
    if apply_command:
        screen.print_lines([[(apply_command, "cyan")]])


def _plan_lines(plan: RelocationPlan, width: int, *, show_all: bool) -> Iterator[StyledLine]:
    yield [(one_line(plan.old, _MAX_TEXT_LENGTH), "bold"), " → ", (one_line(plan.new, _MAX_TEXT_LENGTH), "bold")]
    visible = plan.steps if show_all else plan.steps[:_MAX_STEPS]
    for step in visible:
        yield _step_line(step, plan)
    if len(plan.steps) > len(visible):
        yield [(f"  … {len(plan.steps) - len(visible):,} more; use --all to list them", "dim")]
    yield from _note_lines(plan.notes, width)
    sessions = humanize.count(plan.sessions, "session")
    files = humanize.count(len(plan.steps), "file")
    paths = humanize.count(plan.paths, "path")
    yield []
    yield [f"{sessions}, {files}, {humanize.size(plan.size)}; {paths} to rewrite."]
    copied = [step for step in plan.steps if not step.exact and not step.lines]
    if copied:
        files = humanize.count(len(copied), "file")
        yield from wrap_line(
            [f"{files} already mention the new directory; a copy of each file is kept for --undo."], width
        )
    yield ["Nothing was changed. To apply the plan, run:"]


def _step_line(step: RelocationStep, plan: RelocationPlan) -> StyledLine:
    target = step.target.removeprefix(plan.config + os.sep)
    details = humanize.size(step.before.size)
    if step.paths:
        details += f", {humanize.count(step.paths, 'path')}"
    return [f"  {_ACTION_MARKS[step.action]} ", one_line(target, _MAX_TEXT_LENGTH), "  ", (details, "dim")]


def _note_lines(notes: tuple[str, ...], width: int) -> Iterator[StyledLine]:
    for note in notes:
        yield from wrap_line([("! ", "yellow"), one_line(note, _MAX_TEXT_LENGTH)], width)


def _plan_json(plan: RelocationPlan) -> dict[str, Any]:
    return {
        "old": printable_path(plan.old),
        "new": printable_path(plan.new),
        "config": printable_path(plan.config),
        "sessions": plan.sessions,
        "size": plan.size,
        "paths": plan.paths,
        "steps": [
            {
                "action": step.action,
                "from": printable_path(step.source),
                "to": printable_path(step.target),
                "size": step.before.size,
                "paths": step.paths,
                "exact": step.exact,
            }
            for step in plan.steps
        ],
        "notes": [printable_path(note) for note in plan.notes],
    }
