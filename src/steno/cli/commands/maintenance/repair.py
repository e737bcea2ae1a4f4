"""`steno repair`: makes a damaged session resumable, in a new file or in place, and prints the edits."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

import click
import msgspec

from steno.check.repair.edits import Action, Change, DroppedMessage, Edit
from steno.check.repair.repair_job import MIN_STEPS, FileState, RepairJob, RepairOptions, run_repair, sessions_in
from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, SESSION, WIDTH, add_options
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, print_paged, write_bytes, write_json
from steno.cli.output.table_layout import session_heading, wrap_line
from steno.errors import BadRequest, Busy, NotFound
from steno.format.encode import encode
from steno.format.paths import JSONL_SUFFIX, SHORT_ID_LENGTH, is_uuid
from steno.report import humanize
from steno.report.session_references import printable_path, session_title, shell_argument
from steno.sanitize.terminal import ColourMode, StyledLine, clean, one_line, wrap
from steno.session.resume.api_rules import Breach
from steno.session.resume.clients import LATEST, Client, client_for
from steno.session.transcript import load
from steno.store.atomic import FileIdentity, TempFile, file_identity
from steno.store.discovery import DiscoveredFile, discover_agents
from steno.store.file_source import FileSource
from steno.store.replace import StagingArea, make_owner_writable, place_new, swap, undo
from steno.store.session_lock import is_being_written
from steno.store.session_lookup import find

_ACTION_MARKS: Final[dict[Action, tuple[str, str]]] = {
    "change": ("~", "yellow"),
    "insert": ("+", "green"),
    "remove": ("-", "red"),
    "set aside": ("<", "cyan"),
}
_SEVERITY_PLURALS: Final = {"info": "info"}
_MAX_EDITS: Final = 30
_MAX_LOSSES: Final = 10
_LABEL_WIDTH: Final = 12
_NO_VALUE: Final = "(none)"
# Texts for the rules of the Messages API that a session can break.
BREACH_TEXTS: Final = {
    "tool_use.unique": "two tool calls have the ID {}",
    "tool_use.answered": "a tool call has no result ({})",
    "tool_result.called": "a tool result has no call in the previous message ({})",
    "tool_result.once": "a tool call has two results ({})",
    "tool_result.first": "a message has other content before its tool results",
    "role.first": "the first message is not from the user",
    "role.known": "a message has the unknown role {}",
    "content.empty": "a message is empty",
    "block.known": "a message has a block of the unknown type {}",
    "block.text": "a text block is empty",
    "block.thinking": "a thinking block has no signature",
    "block.redacted_thinking": "a redacted thinking block has no data",
    "block.image": "an image is invalid: {}",
    "block.document": "a document is invalid: {}",
    "block.tool_use": "a tool call is invalid: {}",
    "block.server_tool_use": "a tool call is invalid: {}",
    "block.tool_result": "a tool result is invalid: {}",
}


def repair_lines(
    name: str, title: str, repair: RepairJob, columns: int, *, show_all: bool, note: str = ""
) -> Iterator[StyledLine]:
    """Yield the report of a repair; `note` is printed below the title."""
    yield from session_heading(name, title, columns)
    for line in wrap(note, columns - 2) if note else ():
        yield ["  ", (line, "dim")]
    yield from _file_state_lines("before", repair.before, repair.options.client, columns)
    if not repair.changed:
        return
    yield []
    visible = repair.edits if show_all else repair.edits[:_MAX_EDITS]
    for edit in visible:
        yield from _edit_lines(edit, columns)
    if len(repair.edits) > len(visible):
        omitted = humanize.count(len(repair.edits) - len(visible), "more edit")
        yield from wrap_line([(f"  … {omitted}; use --all to show all", "dim")], columns)
    yield []
    yield from _loss_lines(repair.lost, columns)
    yield from _dropped_message_lines(repair.left, columns)
    yield from _file_state_lines("after", repair.after, repair.options.client, columns)
    if repair.before.size != repair.after.size:
        sizes = f"{humanize.size(repair.before.size)} → {humanize.size(repair.after.size)}"
        yield [("  size      ", "dim"), sizes]


def _file_state_lines(label: str, file_state: FileState, client: Client, columns: int) -> Iterator[StyledLine]:
    for index, line in enumerate(wrap(_finding_counts(file_state), columns - _LABEL_WIDTH)):
        yield [("  " + ("" if index else label).ljust(10), "dim"), line]
    shown_verdicts = tuple(
        verdict_of_client for verdict_of_client in file_state.verdicts if client.version in verdict_of_client.clients
    )
    if len({verdict.outcome for verdict in file_state.verdicts}) > 1:
        shown_verdicts = file_state.verdicts
    for verdict in shown_verdicts:
        style = "" if verdict.outcome == "fully" else "yellow"
        yield from _indented_lines(verdict.words, columns, style)
    if file_state.breaches:
        yield from _indented_lines(f"the API would reject it: {_breach_text(file_state.breaches[0])}", columns, "red")


def _indented_lines(text: str, columns: int, style: str = "") -> Iterator[StyledLine]:
    for line in wrap(text, columns - _LABEL_WIDTH):
        yield [" " * _LABEL_WIDTH, (line, style)]


def _breach_text(breach: Breach) -> str:
    """Return the reason why the Messages API would reject the session."""
    template = BREACH_TEXTS.get(breach.rule)
    if template is not None:
        return template.format(breach.detail)
    return f"{breach.rule.removeprefix('block.').replace('_', ' ')}: {breach.detail}"


def _finding_counts(state: FileState) -> str:
    counts_text = [
        humanize.count(number, level, _SEVERITY_PLURALS.get(level, ""))
        for level, number in state.counts.items()
        if number
    ]
    return ", ".join(counts_text) or "no findings"


def _edit_lines(edit: Edit, columns: int) -> Iterator[StyledLine]:
    mark, style = _ACTION_MARKS[edit.action]
    position = f"line {edit.line:,}" if edit.line else "new"
    name = edit.uuid[:SHORT_ID_LENGTH]
    head = f"{position}  {name}  " if name else f"{position}  "
    yield from wrap_line(["  ", (mark, style), " ", (head, "dim"), (edit.finding, "bold")], columns)
    for line in wrap(edit.what, columns - 6):
        yield ["      ", line]
    for change in edit.changes:
        yield from _change_lines(change, columns)


def _change_lines(change: Change, columns: int) -> Iterator[StyledLine]:
    for sign, style, value in (("-", "red", change.before), ("+", "green", change.after)):
        text = _NO_VALUE if value is None else encode(value).decode("utf-8", "replace")
        yield ["      ", (f"{sign} {one_line(f'{change.field}: {text}', columns - 8)}", style)]


def _loss_lines(losses: Sequence[str], columns: int) -> Iterator[StyledLine]:
    if not losses:
        yield [("  lost      ", "dim"), "nothing"]
        return
    for index, loss in enumerate(losses[:_MAX_LOSSES]):
        label = "  lost      " if not index else " " * _LABEL_WIDTH
        yield [(label, "dim"), (one_line(loss, columns - _LABEL_WIDTH), "yellow")]
    if len(losses) > _MAX_LOSSES:
        yield [" " * _LABEL_WIDTH, (f"… {len(losses) - _MAX_LOSSES:,} more", "dim")]


def _dropped_message_lines(dropped: Sequence[DroppedMessage], columns: int) -> Iterator[StyledLine]:
    if not dropped:
        return
    lines = [f"{line:,}" for line in sorted({message.line for message in dropped})]
    omitted = f" and {len(lines) - _MAX_LOSSES:,} more" if lines[_MAX_LOSSES:] else ""
    positions = f"{'lines' if len(lines) > 1 else 'line'} {', '.join(lines[:_MAX_LOSSES])}{omitted}"
    verb_phrase = "stay in the file, but are" if len(dropped) > 1 else "stays in the file, but is"
    explanation = f"{humanize.count(len(dropped), 'message')} {verb_phrase} no longer in the conversation: {positions}"
    for index, line in enumerate(wrap(explanation, columns - _LABEL_WIDTH)):
        yield [("  " + ("" if index else "dropped").ljust(10), "dim"), (line, "yellow")]


def repair_json(path: str, title: str, repair: RepairJob, output_path: str) -> dict[str, Any]:
    """Return a repair as JSON."""
    return {
        "path": printable_path(path),
        "title": title or None,
        "output": printable_path(output_path) or None,
        "client": repair.options.client.version,
        "changed": repair.changed,
        "resumes": repair.is_verified,
        "edits": [_edit_json(edit) for edit in repair.edits],
        "lost": repair.lost,
        "left": [{"line": message.line, "uuid": message.uuid} for message in repair.left],
        "before": _file_state_json(repair.before),
        "after": _file_state_json(repair.after),
    }


def _edit_json(edit: Edit) -> dict[str, Any]:
    return {
        "finding": edit.finding or None,
        "action": edit.action,
        "line": edit.line or None,
        "uuid": edit.uuid or None,
        "what": edit.what,
        "lost": edit.lost or None,
        "changes": [{"field": change.field, "before": change.before, "after": change.after} for change in edit.changes],
    }


def _file_state_json(state: FileState) -> dict[str, Any]:
    return {
        "size": state.size,
        "counts": dict(state.counts),
        "verdicts": msgspec.to_builtins(state.verdicts),
        "breaches": msgspec.to_builtins(state.breaches),
    }


_AGENT_PREFIX: Final = "agent-"
_NANOSECONDS: Final = 1e9
_EXIT_NOT_PROVEN: Final = 1
_STDOUT_PATH: Final = "-"


class _RepairCommandOptions(msgspec.Struct):
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
    root_options: str = ""
    """The options that select the same sessions in another command."""


@click.command("repair", short_help="Repair a session so that it can be resumed.")
@SESSION
@add_options(ROOT_OPTIONS)
@click.option("-n", "--dry-run", is_flag=True, help="Print the edits without writing")
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Output file; `-` for standard output")
@click.option("--in-place", is_flag=True, help="Replace the file and keep a backup next to it")
@click.option("--undo", is_flag=True, help="Restore the file that --in-place replaced")
@click.option("--for", "client", metavar="VERSION", default=LATEST.version, help="Claude Code version to resume with")
@click.option("--until", metavar="UUID", help="End the session at this record")
@click.option("--slim", is_flag=True, help="Remove progress records and copies of tool output")
@click.option("--split", is_flag=True, help="Write each session of a file to a separate file")
@click.option("--force", is_flag=True, help="Repair even if the session is in use")
@click.option("--all", "everything", is_flag=True, help="Show all edits")
@add_options(JSON)
@WIDTH
@add_options(COLOR)
def command(
    name: str, root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Repair a session so that it can be resumed, in a new file.

    The session is checked, repaired and checked again. By default, the repaired session gets a new
    ID and is written next to the original, which is not changed. Each edit is shown with the finding
    it fixes and the content it loses. A session without problems is not written.

    A result that Claude Code might not be able to resume is only written with -o.

    Exit codes: 0 repaired or nothing to repair, 1 not repairable, or no such session, record or
    backup, 2 usage error, 3 cannot read or write, or the session is in use.
    """
    command_options = _RepairCommandOptions(**values, name=name, root_options=root_arguments(root, demo=demo))
    _check_options(command_options)
    file = find(name, search_roots(root, demo=demo), archived=False)
    screen = Screen(color, width)
    if command_options.undo:
        _undo_repair(file, screen, command_options)
    elif command_options.split:
        _split_sessions(file, screen, command_options)
    else:
        _repair_session(file, screen, command_options)


def _check_options(options: _RepairCommandOptions) -> None:
    client_for(options.client)
    for option, value in (("--until", options.until), ("-o", options.output)):
        if value is not None and not value.strip():
            raise click.UsageError(f"{option} is empty")
    if options.output == _STDOUT_PATH and options.as_json:
        raise click.UsageError("-o - cannot be combined with --json")
    output_modes = {"--in-place": options.in_place, "-o": options.output, "--undo": options.undo}
    chosen_modes = [name for name, given in output_modes.items() if given]
    if len(chosen_modes) > 1:
        raise click.UsageError(f"{' and '.join(chosen_modes)} cannot be combined")
    if options.split and chosen_modes:
        raise click.UsageError(f"--split cannot be combined with {chosen_modes[0]}")
    other_options = {
        "--dry-run": options.dry_run,
        "--until": options.until is not None,
        "--slim": options.slim,
        "--split": options.split,
    }
    for name, value in other_options.items():
        if options.undo and value:
            raise click.UsageError(f"--undo cannot be combined with {name}")
    if options.split and options.until is not None:
        raise click.UsageError("--split cannot be combined with --until")


def _repair_session(file: DiscoveredFile, screen: Screen, options: _RepairCommandOptions) -> None:
    identity = file_identity(file.path)
    with StagingArea() as staging, FileSource(file.path) as source:
        repair = _run_repair(source, _file_stem(file), _repair_options(file, options), staging)
        output_path = "" if options.dry_run else _write_output(file, repair, identity, options)
    _print_result(file, repair, output_path, screen, options)


def _run_repair(source: FileSource, name: str, repair_options: RepairOptions, staging: StagingArea) -> RepairJob:
    with ProgressBar(source.size * MIN_STEPS, "Repairing") as bar:
        return run_repair(source, name, repair_options, staging, lambda: bar.advance(source.size))


def _repair_options(file: DiscoveredFile, options: _RepairCommandOptions, session: str = "") -> RepairOptions:
    return RepairOptions(
        client=client_for(options.client),
        until=options.until or "",
        name=_new_session_id(file, options),
        slim=options.slim,
        session=session,
        written=file.mtime_ns / _NANOSECONDS,
    )


def _new_session_id(file: DiscoveredFile, options: _RepairCommandOptions) -> str:
    """Return a new session ID if the file name is not a valid one, else ""."""
    if options.split:
        return _path_stem(options.output or "")
    keeps_name = options.in_place or options.output or is_uuid(_file_stem(file))
    return "" if keeps_name or _file_stem(file).startswith(_AGENT_PREFIX) else str(uuid4())


def _write_output(
    file: DiscoveredFile, repair: RepairJob, identity: FileIdentity, options: _RepairCommandOptions
) -> str:
    """Write the repaired file and return its path.

    Returns "" without writing if the session has no problems, or if the result is not proven to
    resume and no output was named.
    """
    is_named_output = options.output is not None and not options.split
    if (
        repair.is_hopeless
        or not (is_named_output or repair.is_verified)
        or (options.output is None and not repair.changed)
    ):
        return ""
    if repair.is_agent and not options.output and not options.in_place:
        raise BadRequest(
            "a copy of a sub-agent file cannot be resumed",
            hint="Use --in-place to repair the file, or -o FILE for a copy.",
        )
    if not options.force and is_being_written(file.path, identity):
        raise Busy(f"{file.path} is in use", hint="Exit that session first, or use --force. Nothing was changed.")
    if options.in_place:
        with TempFile(file.path) as scratch:
            return swap(scratch.write(repair.chunks()), file.path, identity, check_clients=not options.force).path
    if options.output == _STDOUT_PATH:
        for chunk in repair.chunks():
            write_bytes(chunk)
        return _STDOUT_PATH
    path = options.output or os.path.join(os.path.dirname(file.path), f"{repair.options.name or uuid4()}{JSONL_SUFFIX}")
    if os.path.isdir(path):
        raise BadRequest(f"{path} is a directory", hint="Choose a new file name.")
    with TempFile(path) as scratch:
        return make_owner_writable(place_new(scratch.write(repair.chunks()), path, template=file.path))


def _print_result(
    file: DiscoveredFile, repair: RepairJob, output_path: str, screen: Screen, options: _RepairCommandOptions
) -> None:
    if options.as_json:
        write_json(repair_json(file.path, session_title(file), repair, output_path))
    else:
        _print_lines(screen, _repair_report(_file_stem(file), session_title(file), repair, screen, options), options)
        _print_lines(screen, _closing_lines(file, repair, output_path, screen, options), options)
    if not repair.is_verified:
        raise click.exceptions.Exit(_EXIT_NOT_PROVEN)


def _repair_report(
    name: str, title: str, repair: RepairJob, screen: Screen, options: _RepairCommandOptions
) -> Iterator[StyledLine]:
    client_version = repair.options.client.version
    client_note = (
        ""
        if options.client == client_version
        else f"Claude Code {options.client}: using the rules of {client_version}, the nearest studied version"
    )
    return repair_lines(name, title, repair, screen.width, show_all=options.everything, note=client_note)


def _print_lines(screen: Screen, lines: Iterable[StyledLine], options: _RepairCommandOptions) -> None:
    """Print lines; to standard error if the session goes to standard output."""
    if options.output == _STDOUT_PATH:
        sys.stderr.write(screen.render_text(lines))
    else:
        print_paged(screen, lines, use_pager=False)


def _closing_lines(
    file: DiscoveredFile, repair: RepairJob, output_path: str, screen: Screen, options: _RepairCommandOptions
) -> Iterator[StyledLine]:
    yield []
    for text in _outcome_texts(file, repair, output_path, options):
        # Commands and paths are not wrapped, so that they can be copied.
        is_unbreakable = text.startswith((program_name(), "claude ")) or bool(
            output_path and _output_name(output_path) in text
        )
        for wrapped_line in [text] if is_unbreakable else wrap(text, screen.width):
            yield [wrapped_line]


def _outcome_texts(
    file: DiscoveredFile, repair: RepairJob, output_path: str, options: _RepairCommandOptions
) -> Iterator[str]:
    """Yield the result of a repair, and the next step."""
    if repair.is_agent:
        yield "This is a sub-agent file, which cannot be resumed by itself; only its records are repaired."
    if repair.is_hopeless:
        yield "Nothing was written: the file has no conversation to resume."
    elif not repair.is_verified:
        yield from _not_proven_texts(repair, output_path, options)
    elif not repair.changed and not output_path:
        yield "Nothing to repair. The file is unchanged."
    elif options.dry_run:
        yield "Nothing was written (--dry-run)."
    elif options.in_place:
        yield f"Replaced {one_line(output_path)}; a backup is next to it."
        yield from _undo_hint(file, options)
    elif output_path:
        yield from _written_texts(file, output_path, options)


def _written_texts(file: DiscoveredFile, output_path: str, options: _RepairCommandOptions) -> Iterator[str]:
    """Yield the path of the new session, and notes on the original and its sub-agents."""
    yield f"Wrote {_output_name(output_path)}"
    if options.output is None or options.split:
        yield f"claude --resume {_path_stem(output_path)}"
    if options.output is not None:
        return
    yield "The original is unchanged. Use --in-place to replace it instead."
    if agents := len(discover_agents(file)):
        verb_phrase = "sub-agent stays" if agents == 1 else "sub-agents stay"
        yield f"{agents:,} {verb_phrase} with the original; --in-place keeps them with the session."


def _output_name(path: str) -> str:
    return "to standard output" if path == _STDOUT_PATH else one_line(path)


def _undo_hint(file: DiscoveredFile, options: _RepairCommandOptions) -> Iterator[str]:
    """Yield the undo command, or a note if its arguments cannot be shown safely."""
    stem = _file_stem(file)
    use_id = not os.path.lexists(options.name) and (is_uuid(stem) or stem.startswith(_AGENT_PREFIX))
    name = shell_argument(stem if use_id else file.path)
    if name and clean(options.root_options) == options.root_options:
        yield f"{program_name()} repair{options.root_options} {name} --undo   to undo"
    else:
        yield "Use --undo to restore the original."


def _not_proven_texts(repair: RepairJob, output_path: str, options: _RepairCommandOptions) -> Iterator[str]:
    """Yield the result of a repair that is not proven to resume, and the reason."""
    if repair.endless:
        yield "Not repaired: problems remained after many rounds."
    elif not repair.settled:
        yield "Not repaired: two edits undo each other."
    if repair.after.wayward:
        yield f"Not repaired: Claude Code {repair.options.client.version} would not continue from the --until record."
    if output_path:
        yield f"Wrote {_output_name(output_path)}, but Claude Code might not be able to resume it: see above."
    elif not repair.changed:
        yield "Nothing can be repaired. The file is unchanged."
    elif options.dry_run:
        yield "Nothing was written (--dry-run). Claude Code might not be able to resume the result, so it would not be written."
    else:
        yield "Nothing was written: Claude Code might not be able to resume the result."
        yield "Use -o FILE to write it anyway."


def _undo_repair(file: DiscoveredFile, screen: Screen, options: _RepairCommandOptions) -> None:
    undone = undo(file.path, force=options.force, check_clients=not options.force)
    if options.as_json:
        write_json({"path": printable_path(undone.path), "kept": printable_path(undone.repaired)})
        return
    screen.print_lines([[f"Restored {one_line(undone.path)}"], [f"The repaired file is {one_line(undone.repaired)}"]])


def _split_sessions(file: DiscoveredFile, screen: Screen, options: _RepairCommandOptions) -> None:
    """Write each session of a file to a separate file, repaired."""
    identity = file_identity(file.path)
    with FileSource(file.path) as source:
        names = list(sessions_in(load(source)))
    if len(names) <= 1:
        raise NotFound("the file contains only one session", hint="Nothing was written.")
    results: list[dict[str, Any]] = []
    proven = True
    for name in names:
        with StagingArea() as staging, FileSource(file.path) as source:
            part_options = msgspec.structs.replace(options, output=_unused_path(file, name))
            repair = _run_repair(source, name, _repair_options(file, part_options, name), staging)
            output_path = "" if options.dry_run else _write_output(file, repair, identity, part_options)
        proven = proven and repair.is_verified
        if options.as_json:
            results.append({"session": name, **repair_json(file.path, "", repair, output_path)})
            continue
        lines = _repair_report(name, "", repair, screen, options)
        print_paged(screen, lines, use_pager=False)
        screen.print_lines([*_closing_lines(file, repair, output_path, screen, part_options), []])
    if options.as_json:
        write_json(results)
    if not proven:
        raise click.exceptions.Exit(_EXIT_NOT_PROVEN)


def _unused_path(file: DiscoveredFile, name: str) -> str:
    folder = os.path.dirname(file.path)
    path = os.path.join(folder, f"{name}{JSONL_SUFFIX}")
    is_unusable = not is_uuid(name) or os.path.lexists(path)
    return os.path.join(folder, f"{uuid4()}{JSONL_SUFFIX}") if is_unusable else path


def _file_stem(file: DiscoveredFile) -> str:
    return _path_stem(file.path)


def _path_stem(path: str) -> str:
    return os.path.basename(path).removesuffix(JSONL_SUFFIX)
