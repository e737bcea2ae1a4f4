"""`steno export`: writes sessions in other formats, with secrets masked.

Also prints the results of `steno sync --steps` and runs its watch loop, which write the same steps
directory.
"""

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import is_folder_argument, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, add_options
from steno.cli.output.progress import progress_factory
from steno.cli.output.screen import Screen, print_error, write_bytes, write_json
from steno.errors import NotFound
from steno.report import humanize
from steno.report.export.export_options import FORMATS, LEVELS, ExportFormat, ExportLevel
from steno.report.export.steps_folder import StepsJob, StepsReport, sync_steps
from steno.report.session_references import printable_path
from steno.sanitize.terminal import ColourMode, StyledLine
from steno.store.discovery import unreadable_problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from queue import SimpleQueue

    from steno.report.export.session_export import ExportJob
    from steno.sanitize.secret_masker import Receipt
    from steno.store.discovery import DiscoveredFile


_MAX_PRINTED_FAILURES: Final = 5
_MIN_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 10.0
_PAUSE_FACTOR: Final = 4.0
"""Pause after a run, as a multiple of its duration."""
_MAX_WAIT: Final = 86_400.0


def steps_summary_line(report: StepsReport) -> StyledLine:
    """Return a one-line summary of a run."""
    written = humanize.count(len(report.written), "session")
    line = f"Wrote {written}, {len(report.unchanged):,} unchanged, {len(report.removed):,} removed"
    return [line, (_skipped_text(report), "dim")]


def _skipped_text(report: StepsReport) -> str:
    if not report.skipped:
        return ""
    reasons = Counter(
        "not written (see above)" if skipped_file.failed else skipped_file.reason for skipped_file in report.skipped
    )
    reasons_text = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    return f"; skipped {humanize.count(len(report.skipped), 'file')}: {reasons_text}"


def steps_json(report: StepsReport, output_folder: str) -> dict[str, Any]:
    """Return the report of a run as JSON."""
    return {
        "folder": printable_path(output_folder),
        "written": [printable_path(os.path.join(output_folder, name)) for name in report.written],
        "unchanged": [printable_path(os.path.join(output_folder, name)) for name in report.unchanged],
        "removed": [printable_path(os.path.join(output_folder, name)) for name in report.removed],
        "skipped": [
            {"path": printable_path(entry.path), "reason": printable_path(entry.reason), "failed": entry.failed}
            for entry in report.skipped
        ],
        "problems": [
            {"kind": each.kind, "path": printable_path(each.path), "message": each.message} for each in report.problems
        ],
    }


def print_steps_failures(report: StepsReport) -> None:
    """Report the sessions that could not be written and the directories that could not be read."""
    for problem in unreadable_problems(report.problems, "missing"):
        message = f"cannot read {problem.path}: {problem.message.lower()}"
        print_error(message, "Step directories of deleted sessions are kept until this path can be read.")
    for failure in report.failed[:_MAX_PRINTED_FAILURES]:
        print_error(failure.reason, _failure_hint(failure.reason))
    if omitted := len(report.failed[_MAX_PRINTED_FAILURES:]):
        print_error(f"{humanize.count(omitted, 'more session')} could not be written; --json lists them")


def _failure_hint(reason: str) -> str:
    """Return the next step for a session that could not be written."""
    if "not written by steno" in reason:
        return "Move it away, or run `steno export --format steps --force`."
    return "Move it away." if "not a readable" in reason else ""


def print_steps_report(report: StepsReport, job: StepsJob, screen: Screen, *, as_json: bool) -> None:
    """Print the results of a run."""
    print_steps_failures(report)
    if as_json:
        # One line per run while watching.
        sys.stdout.buffer.write(msgspec.json.encode(steps_json(report, job.out)) + b"\n")
    else:
        screen.print_lines([steps_summary_line(report)])
    sys.stdout.flush()


def write_steps_once(job: StepsJob, screen: Screen, *, as_json: bool) -> StepsReport:
    """Update a steps directory once, and print the results."""
    with progress_factory("Writing steps") as plan:
        report = sync_steps(msgspec.structs.replace(job, planned=plan))
    print_steps_report(report, job, screen, as_json=as_json)
    return report


def watch_steps(job: StepsJob, screen: Screen, report: StepsReport, *, as_json: bool) -> None:
    """Keep a steps directory up to date until Ctrl-C.

    Runs when a session file changes, and when a live session changes its status through inactivity.
    """
    from contextlib import suppress
    from queue import SimpleQueue
    from threading import Thread

    from steno.store.watch.watcher import FileWatcher

    changes: SimpleQueue[bool] = SimpleQueue()
    if screen.is_terminal and not as_json:
        screen.print_lines([[("Watching. Press Ctrl-C to stop.", "dim")]])
    with suppress(KeyboardInterrupt), FileWatcher(job.roots) as watch:

        def listen() -> None:
            for _ in watch:
                changes.put(True)
            changes.put(False)

        thread = Thread(target=listen, daemon=True)
        thread.start()
        try:
            while _wait_for_change(changes, report):
                report = _rerun_steps(job, screen, report, as_json=as_json)
        finally:
            watch.stop()
            thread.join()


def _rerun_steps(job: StepsJob, screen: Screen, previous: StepsReport, *, as_json: bool) -> StepsReport:
    """Run again; print only if something changed since the previous run."""
    from time import monotonic, sleep

    began = monotonic()
    report = sync_steps(job)
    if report.changed or report.failed != previous.failed:
        print_steps_report(report, job, screen, as_json=as_json)
    # A session that is written often does not start a run for every record.
    sleep(min(_MAX_PAUSE, max(_MIN_PAUSE, (monotonic() - began) * _PAUSE_FACTOR)))
    return report


def _wait_for_change(changes: "SimpleQueue[bool]", report: StepsReport) -> bool:
    """Wait for a file or status change; return False when watching ended."""
    from queue import Empty

    from steno.store import environment

    status_changes_at = report.status_changes_at
    timeout = (
        _MAX_WAIT if status_changes_at is None else min(_MAX_WAIT, max(0.0, status_changes_at - environment.now()) + 1)
    )
    try:
        continues = changes.get(timeout=timeout)
        while continues:
            continues = changes.get_nowait()
    except Empty:
        return True
    return continues


_FOLDER_FORMATS: Final = ("steps", "parquet")
"""Formats that write several files."""
_TRANSCRIPT_FORMATS: Final = ("html", "markdown", "txt")
"""Formats with a choice of detail levels."""
_MAX_FAMILIES: Final = 6
_FAMILY_NOUNS: Final = {
    "home": ("home-directory path", "home-directory paths"),
    "e-mail": ("e-mail address", "e-mail addresses"),
}
_STEPS_HINT: Final = "Only files that are named after a session ID and contain messages can be exported as steps."
_HELP: Final = """\
Export sessions as HTML, Markdown, JSON or other formats.

Secrets, home directories and e-mail addresses are masked, also in base64, hex and other encodings.
--receipt lists what was masked and where. --no-redact disables masking.

\b
Examples:
  steno export last -o talk.html              Write one self-contained page
  steno export --project . -o pages/          Write pages of a project, with an index
  steno export last --format markdown         Print Markdown
  steno export 7c1f --format messages         Print messages for the Messages API
  steno export --query 'tool:Bash npm' --format txt -o found/
  steno export --format steps steps/          Write or update steps of all sessions

\b
Formats:
  html      self-contained pages               markdown  Markdown
  json      records, byte for byte             txt       plain text
  steps     steps.jsonl and metadata.json      messages  Messages API input
  parquet   tables of the index

Exporting to an existing steps directory updates it: changed sessions are written, sessions that no
longer exist are removed, and other files are kept. `steno sync --steps` does the same.
"""


class _ExportOptions(msgspec.Struct):
    format: ExportFormat = "html"
    level: ExportLevel | None = None
    out: str = ""
    redact: bool = True
    receipt: str | None = None
    listed: bool = False
    force: bool = False
    as_json: bool = False


@click.command("export", help=_HELP, short_help="Export sessions as HTML, Markdown, JSON and more.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@click.option("--project", metavar="P", help="Export sessions by project path; `.` is the current directory")
@click.option("--query", metavar="QUERY", help="Export sessions that match a `steno search` query")
@click.option("--format", type=click.Choice(FORMATS), default="html", show_default=True, help="Output format")
@click.option("--level", type=click.Choice(LEVELS), help="Level of detail  [default: full]")
@click.option(
    "-o",
    "--output",
    "out",
    metavar="PATH",
    default="",
    help="Output file; a directory if PATH ends in a slash; `-` for standard output",
)
@click.option("--redact/--no-redact", default=True, help="Mask secrets  [default: redact]")
@click.option("--receipt", metavar="FILE", help="Write a JSON list of what was masked, and where")
@click.option("--listed", is_flag=True, help="With --format steps: omit short sessions, as `steno ls --listed` does")
@click.option("--force", is_flag=True, help="Overwrite existing files")
@add_options(ROOT_OPTIONS, JSON)
@add_options(COLOR)
def command(
    names: tuple[str, ...],
    project: str | None,
    query: str | None,
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    **values: Any,
) -> None:
    """Export sessions."""
    command_options = _ExportOptions(**values)
    if command_options.format == "steps" and not command_options.out and names and is_folder_argument(names[-1]):
        *sessions, command_options.out = names
        names = tuple(sessions)
    selection_count = sum((bool(names), project is not None, query is not None))
    if selection_count == 0 and command_options.format == "steps" and not command_options.out:
        raise click.UsageError("--format steps needs a directory: add -o NAME/")
    if selection_count > 1 or (
        selection_count == 0 and not (command_options.format == "steps" and command_options.out)
    ):
        raise click.UsageError("exactly one of SESSION, --project and --query is required")
    _check_options(command_options)
    if command_options.format == "parquet":
        from steno.report.export.session_export import require_pyarrow

        require_pyarrow()
    files = _selected_files(names, project, query, root, demo=demo) if selection_count else None
    _check_output(files or (), command_options)
    if command_options.format == "steps":
        _export_steps(files, command_options, Screen(color), root, demo=demo)
    elif files is not None:
        _export_files(files, command_options, Screen(color), root, demo=demo)


def _check_options(options: _ExportOptions) -> None:
    if options.level is not None and options.format not in _TRANSCRIPT_FORMATS:
        raise click.UsageError(f"--level cannot be combined with --format {options.format}")
    if options.listed and options.format != "steps":
        raise click.UsageError("--listed requires --format steps")
    if options.receipt is not None and not options.redact:
        raise click.UsageError("--receipt cannot be combined with --no-redact")


def _selected_files(
    names: tuple[str, ...], project: str | None, query: str | None, root: tuple[str, ...], *, demo: bool
) -> "list[DiscoveredFile]":
    folders = search_roots(root, demo=demo)
    if names:
        from steno.store.session_lookup import find

        files = [find(name, folders) for name in names]
    elif project is not None:
        from steno.report.export.session_export import sessions_of_project

        files = sessions_of_project(project, folders)
    else:
        from steno.cli.fresh_index import open_fresh_index
        from steno.report.export.session_export import sessions_with_text

        with open_fresh_index(root, demo=demo) as index:
            files = sessions_with_text(index, query or "")
    if not files:
        raise NotFound("no sessions match", hint="Run `steno ls` to list sessions.")
    return list({file.path: file for file in files}.values())


def _check_output(files: "Sequence[DiscoveredFile]", options: _ExportOptions) -> None:
    is_folder = options.out.endswith(("/", os.sep)) or os.path.isdir(options.out)
    if options.format in _FOLDER_FORMATS or len(files) > 1:
        if not options.out or options.out == "-":
            subject = f"--format {options.format}" if options.format in _FOLDER_FORMATS else "more than one session"
            raise click.UsageError(f"{subject} needs a directory: add -o NAME/")
        options.out = os.path.join(options.out, "")
    elif is_folder:
        options.out = os.path.join(options.out, "")
    to_screen = options.out in ("", "-") and sys.stdout.isatty()
    if options.format == "html" and to_screen:
        raise click.UsageError("HTML needs a file: add -o FILE.html")


def _export_files(
    files: "list[DiscoveredFile]", options: _ExportOptions, screen: Screen, root: tuple[str, ...], *, demo: bool
) -> None:
    from steno.cli.output.progress import ProgressBar
    from steno.report.export.session_export import ExportJob
    from steno.sanitize.secret_masker import Masker

    masker = Masker() if options.redact else None
    job = ExportJob(options.format, options.level or "full", masker, options.out, force=options.force)
    with ProgressBar(sum(file.size for file in files), "Exporting") as bar:
        job.done = bar.advance
        written = _write_files(files, job, root, demo=demo)
    if masker is not None and options.receipt is not None:
        _write_masking_receipt(options, masker.receipt, len(files))
    _print_result(files, written, options, masker.receipt if masker is not None else None, screen)


def _export_steps(
    files: "list[DiscoveredFile] | None", options: _ExportOptions, screen: Screen, root: tuple[str, ...], *, demo: bool
) -> None:
    """Update a steps directory with the given sessions, or with all of them for None."""
    from steno.cli.output.progress import progress_factory
    from steno.report.export.steps_folder import StepsJob, sync_steps
    from steno.sanitize.secret_masker import Masker
    from steno.store.session_lookup import resolve_roots

    masker = Masker() if options.redact else None
    job = StepsJob(
        options.out, resolve_roots(search_roots(root, demo=demo)), masker, listed=options.listed, force=options.force
    )
    with progress_factory("Exporting") as plan:
        job.planned = plan
        report = sync_steps(job, files)
    sessions = len(report.written) + len(report.unchanged)
    print_steps_failures(report)
    if files and not sessions and not report.failed:
        raise NotFound("none of these sessions can be exported as steps", hint=_STEPS_HINT)
    if masker is not None and options.receipt is not None:
        _write_masking_receipt(options, masker.receipt, len(report.written))
    if options.as_json:
        masked = masker.receipt.counts if masker is not None else None
        write_json({"sessions": sessions, **steps_json(report, options.out), "masked": masked})
    else:
        screen.print_lines([steps_summary_line(report)])
    if report.written and not options.as_json:
        _print_masked_counts(masker.receipt if masker is not None else None, options)
    if report.failed:
        raise click.exceptions.Exit(1)


def _write_files(files: "list[DiscoveredFile]", job: "ExportJob", root: tuple[str, ...], *, demo: bool) -> list[str]:
    """Write all sessions; return the written paths, none for standard output."""
    if not job.out.endswith(("/", os.sep)):
        return _write_single(files[0], job)
    from steno.report.export.session_export import write_files, write_sessions

    if job.format == "html":
        from steno.web.export.session_pages import render_pages

        return write_files(render_pages(files, job), job)
    if job.format == "parquet":
        return _write_parquet_tables(files, job, root, demo=demo)
    return write_sessions(files, job)


def _write_single(file: "DiscoveredFile", job: "ExportJob") -> list[str]:
    from steno.report.export.session_export import export_chunks, write_output_file

    if job.format == "html":
        from steno.web.export.session_pages import render_page_bytes

        parts = iter([render_page_bytes(file, job)])
    else:
        parts = export_chunks(file, job)
    if job.out not in ("", "-"):
        write_output_file(job.out, parts, force=job.force)
        return [job.out]
    for part in parts:
        write_bytes(part)
    sys.stdout.buffer.flush()
    return []


def _write_parquet_tables(
    files: "list[DiscoveredFile]", job: "ExportJob", root: tuple[str, ...], *, demo: bool
) -> list[str]:
    from steno.cli.fresh_index import open_fresh_index
    from steno.report.export.session_export import index_ids_of, write_parquet_tables

    with open_fresh_index(root, demo=demo) as index:
        return write_parquet_tables(index.connection, index_ids_of(index, files), job)


def _write_masking_receipt(options: _ExportOptions, receipt: "Receipt", sessions: int) -> None:
    from steno.format.encode import encode
    from steno.report.export.session_export import write_output_file

    receipt_data = {"sessions": sessions, **msgspec.to_builtins(receipt)}
    receipt_json = msgspec.json.format(encode(receipt_data), indent=2) + b"\n"
    write_output_file(options.receipt or "", [receipt_json], force=options.force)


def _print_result(
    files: "list[DiscoveredFile]",
    written: list[str],
    options: _ExportOptions,
    receipt: "Receipt | None",
    screen: Screen,
) -> None:
    """Print the written files, and to standard error the masked secrets."""
    number = len(files)
    if options.as_json and written:
        masked = receipt.counts if receipt is not None else None
        write_json({"sessions": number, "written": written, "masked": masked})
        return
    if written:
        session_text = humanize.count(number, "session")
        where = written[0] if len(written) == 1 else options.out
        screen.print_lines([[f"Exported {session_text} to {where}"]])
    _print_masked_counts(receipt, options)


def _print_masked_counts(receipt: "Receipt | None", options: _ExportOptions) -> None:
    if receipt is None:
        print_error("nothing was masked; the output may contain secrets")
        return
    counts = sorted(receipt.counts.items(), key=lambda count_item: -count_item[1])
    counts_text = ", ".join(_masked_count_text(name, count) for name, count in counts[:_MAX_FAMILIES])
    omitted = f" and {len(counts) - _MAX_FAMILIES} more kinds" if len(counts) > _MAX_FAMILIES else ""
    hint = "" if options.receipt or not counts else "Use --receipt FILE to list the locations."
    print_error(f"masked {counts_text}{omitted}" if counts else "no secrets found to mask", hint)


def _masked_count_text(family: str, number: int) -> str:
    singular, plural = _FAMILY_NOUNS.get(family, (family, family))
    return humanize.count(number, singular, plural)
