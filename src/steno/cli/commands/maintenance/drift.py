"""`steno drift`: reports record types and fields that are not in the catalogue."""

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, report_unreadable, write_json
from steno.cli.output.table_layout import Column, layout_columns, wrap_line
from steno.errors import BadRequest, NotFound, Unreadable
from steno.report import humanize
from steno.sanitize.terminal import ColourMode, StyledLine
from steno.store.discovery import DiscoveredFile, Discovery, Problem, ProblemKind, discover_agents, unreadable_problems
from steno.store.session_lookup import find, resolve_roots

if TYPE_CHECKING:
    from steno.check.drift import Observer
    from steno.check.drift_model import Code, Drift
    from steno.format.catalogue import Catalogue
    from steno.report.drift_report import DriftRow


_UNREAD_KINDS: Final[tuple[ProblemKind, ...]] = ("missing", "special")


@click.command("drift", short_help="Report record types and fields unknown to steno.")
@click.argument("names", metavar="[PATH|SESSION]...", nargs=-1)
@add_options(ROOT_OPTIONS)
@click.option("--since-version", metavar="V", help="Only records of Claude Code V or newer")
@click.option("--as-of", metavar="V", help="Compare with the catalogue as of Claude Code V")
@click.option(
    "--catalogue", "file", metavar="FILE", type=click.Path(readable=False), help="Compare with this catalogue file"
)
@click.option("--learn", is_flag=True, help="Print a JSON merge patch that adds the drift to the catalogue")
@add_options(JSON)
@WIDTH
@add_options(COLOR)
def command(
    names: tuple[str, ...] = (),
    root: tuple[str, ...] = (),
    color: ColourMode = "auto",
    width: int | None = None,
    *,
    demo: bool = False,
    **values: Any,
) -> None:
    """Report record types and fields that are not in steno's catalogue of the format.

    Lists new types, fields, blocks, tools and values, changed types and missing fields, with counts
    per Claude Code version. Samples are masked: letters become x, digits become 0. Without PATH or
    SESSION, reads all sessions and sub-agents. Sessions with drift remain readable.

    --learn covers plain names; records without a type and names with unusual characters remain
    drift.

    Exit codes: 0 no drift, 1 drift or no session found, 2 usage error, 3 cannot read.
    """
    command_options = _DriftOptions(**values)
    _check_options(command_options)
    problems: list[Problem] = []
    files = _collect_files(names, search_roots(root, demo=demo), problems)
    observer = _observe_files(files, command_options, problems)
    unread = unreadable_problems(problems, *_UNREAD_KINDS)
    report_unreadable(unread, with_reason=True)
    drifts = observer.drifts()
    if command_options.learn:
        from steno.check.drift import propose_patch

        write_json(propose_patch(observer))
    elif command_options.as_json:
        write_json(_drift_json(observer, drifts, len(files)))
    else:
        screen = Screen(color, width)
        screen.print_lines(_drift_lines(observer, drifts, screen.width))
        if files or not unread:
            screen.print_lines(wrap_line([_drift_summary(observer, drifts, len(files), command_options)], screen.width))
        if drifts:
            drift_command = f"{program_name()} drift{root_arguments(root, demo=demo)}"
            screen.print_next_steps([f"{drift_command} --json", f"{drift_command} --learn"])
    if unread or drifts:
        raise click.exceptions.Exit(3 if unread else 1)


class _DriftOptions(msgspec.Struct):
    since_version: str | None = None
    as_of: str | None = None
    file: str | None = None
    learn: bool = False
    as_json: bool = False


def _check_options(options: _DriftOptions) -> None:
    from steno.format.catalogue import version_key

    for option, version in (("--since-version", options.since_version), ("--as-of", options.as_of)):
        if version is not None and not version_key(version):
            raise click.UsageError(f"{option} needs a version such as 2.1.42, not {version!r}")
    if options.learn and options.as_json:
        raise click.UsageError("--json cannot be combined with --learn, which prints JSON")


def _collect_files(
    names: tuple[str, ...], folders_to_search: tuple[str, ...] | None, problems: list[Problem]
) -> list[DiscoveredFile]:
    files: dict[str, DiscoveredFile] = {}
    folders: list[str] = [] if names else list(resolve_roots(folders_to_search))
    for name in names:
        if os.path.isdir(name):
            folders.append(name)
        else:
            try:
                files.update(_files_by_real_path(_files_of_session(name, folders_to_search, problems)))
            except Unreadable as error:
                problems.append(Problem("unreadable", name, str(error).removeprefix(f"{name}: ")))
    for folder in folders:
        # A new machine has no config directory yet.
        if names or os.path.lexists(folder):
            files.update(_files_by_real_path(Discovery(folder, problems).transcripts()))
    if names and not files and not unreadable_problems(problems, *_UNREAD_KINDS):
        # A named directory without sessions is an error, so that a CI job does not pass on it.
        folder_names = ", ".join(folders)
        raise NotFound(f"no sessions in {folder_names}", hint="PATH can be a file or a directory.")
    return list(files.values())


def _files_by_real_path(files: Iterable[DiscoveredFile]) -> dict[str, DiscoveredFile]:
    return {os.path.realpath(file.path): file for file in files}


def _files_of_session(name: str, folders: tuple[str, ...] | None, problems: list[Problem]) -> list[DiscoveredFile]:
    """Return a session file; for a session name instead of a path, also the sub-agent files."""
    file = find(name, folders, archived=False)
    return [file] if os.path.isfile(name) else [file, *discover_agents(file, problems)]


def _observe_files(files: list[DiscoveredFile], options: _DriftOptions, problems: list[Problem]) -> "Observer":
    from steno.check.drift import Observer
    from steno.report.drift_report import observe_files

    observer = Observer(_load_catalogue(options), options.since_version or "")
    with ProgressBar(sum(file.size for file in files), "Comparing") as bar:
        observe_files(files, observer, problems=problems, progress=bar.advance)
    return observer


def _load_catalogue(options: _DriftOptions) -> "Catalogue":
    from steno.format.catalogue import catalogue, load_catalogue
    from steno.store.file_source import FileSource

    known_format = catalogue()
    if options.file is not None:
        try:
            with FileSource(options.file) as source:
                data = source.read(0, source.size)
        except Unreadable as error:
            cause = error.__cause__
            reason = (cause.strerror or "") if isinstance(cause, OSError) else "not a file"
            raise Unreadable(
                f"cannot read catalogue {options.file}: {reason.lower()}",
                hint="--catalogue needs a file written by `steno.format.catalogue`.",
            ) from error
        try:
            known_format = load_catalogue(data)
        except BadRequest as error:
            raise BadRequest(f"{options.file}: {error}") from error
    return known_format.as_of(options.as_of) if options.as_of else known_format


def _drift_json(observer: "Observer", drifts: "list[Drift]", files: int) -> dict[str, Any]:
    from steno.format.catalogue import version_key

    return {
        "catalogue": observer.facts.newest,
        "files": files,
        "records": observer.records,
        "versions": sorted(observer.versions, key=version_key),
        "left_out": observer.left_out,
        "drift": drifts,
    }


def _drift_lines(observer: "Observer", drifts: "list[Drift]", width: int) -> Iterator[StyledLine]:
    from steno.report.drift_report import CODE_DESCRIPTIONS, drift_rows

    for code, rows in groupby(drift_rows(drifts), key=_row_code):
        heads, cells = layout_columns(_drift_columns(list(rows), width), width - 2)
        yield from wrap_line([(code, "bold"), (f"  {CODE_DESCRIPTIONS[code]}", "dim")], width)
        for line in (heads, *cells):
            yield ["  ", *line]
        yield []
    if observer.left_out:
        text = f"{observer.left_out:,} more differences are not listed."
        yield from wrap_line([text], width)


def _drift_summary(observer: "Observer", drifts: "list[Drift]", files: int, options: _DriftOptions) -> str:
    from steno.format.catalogue import version_key

    if not files:
        return f"No sessions to compare. Run `{program_name()} demo` to write demo sessions."
    if options.since_version and not observer.records:
        return f"No records of Claude Code {options.since_version} or newer in {humanize.count(files, 'file')}."
    text = humanize.count(len(drifts), "difference") if drifts else "No drift"
    scope_text = f"{humanize.count(observer.records, 'record')} of {humanize.count(files, 'file')}"
    newest = observer.facts.newest
    beyond = version_key(options.as_of or "") > version_key(newest)
    suffix = f"; {options.as_of} is newer than the catalogue" if options.as_of and beyond else ""
    return f"{text} in {scope_text}, compared with the catalogue of {newest}{suffix}."


def _row_code(row: "DriftRow") -> "Code":
    return row.code


def _drift_columns(rows: "list[DriftRow]", width: int) -> list[Column]:
    min_width = 10 if any(row.sample for row in rows) else 0
    return [
        Column("COUNT", [f"{row.count:,}" for row in rows], align_right=True),
        Column(
            "IN" if rows[0].path else "NAME",
            [(row.kinds[0] if len(row.kinds) == 1 else f"{row.kinds[0]} +{len(row.kinds) - 1}") for row in rows],
            max_width=width * 28 // 100 if rows[0].path else width // 2,
        ),
        Column("FIELD", [row.path for row in rows], "bold", max_width=width * 38 // 100),
        Column(
            "VERSIONS",
            [
                (row.versions[0] if len(row.versions) == 1 else f"{row.versions[0]} to {row.versions[-1]}")
                for row in rows
            ],
            "dim",
            max_width=20,
            min_flexible_width=min_width,
        ),
        Column("SAMPLE", [row.sample for row in rows], "dim", flexible=True, min_flexible_width=8),
    ]
