"""`steno export`: sessions for others, without what must not leave the machine."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import Screen, complain, write_bytes, write_json
from steno.cli.where import is_folder_name
from steno.errors import NotFound
from steno.report import words
from steno.report.export.levels import FORMATS, LEVELS, Format, Level
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steno.report.export.files import Job
    from steno.safe.masking import Receipt
    from steno.store.found import Found

__all__ = ["command"]

_FOLDERS: Final = ("steps", "parquet")
"""Formats that are more than one file."""
_TOLD: Final = ("html", "markdown", "txt")
"""Formats that tell more or less of a session."""
_MOST: Final = 6
_STEPS: Final = "it takes files named by a session's id, with messages; --listed more of them"
_HELP: Final = """\
Write sessions in a format that others can read.

Secrets, home folders and e-mail addresses are masked first, also in base64, hex and other
disguises; --receipt says what was masked and where. --no-redact leaves everything as it is.

\b
  steno export last -o talk.html              one page that needs nothing else
  steno export --project . -o pages/          a folder of pages, with an index
  steno export last --format markdown         to the standard output
  steno export 7c1f --format messages         input that the API accepts
  steno export --query 'tool:Bash npm' --format txt -o found/
  steno export --format steps steps/          all sessions; again: only what changed

\b
Formats:
  html      pages that open without a server: every turn, every step
  markdown  to read and to paste               txt       plain text
  json      every record, byte for byte        messages  for the Messages API
  steps     steps.jsonl and metadata.json      parquet   the tables of the index

A folder of steps is brought up to date: changed sessions are written, folders of sessions that are
gone are removed, and nothing else in it is touched. `steno sync --steps` does the same.
"""


class _Asked(msgspec.Struct):
    """What was asked for, beside the sessions."""

    format: Format = "html"
    level: Level | None = None
    out: str = ""
    redact: bool = True
    receipt: str | None = None
    listed: bool = False
    force: bool = False
    as_json: bool = False


@click.command("export", help=_HELP, short_help="Write sessions in a format for others.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@click.option("--project", metavar="P", help="All of projects whose path has P in it; `.` is here.")
@click.option(
    "--query", metavar="WORDS", help="All in which words stand, as `steno search` has it."
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="html",
    show_default=True,
    help="What to write; see above.",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="How much is told, from everything to prompts alone.  [default: full]",
)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="PATH",
    default="",
    help="A file; a folder where PATH ends in a slash; `-` is the standard output.",
)
@click.option("--redact/--no-redact", default=True, help="Mask secrets first.  [default: redact]")
@click.option("--receipt", metavar="FILE", help="Write what was masked, and where, as JSON.")
@click.option(
    "--listed",
    is_flag=True,
    help="With `steps`, leave out short sessions, as `steno ls --listed` does.",
)
@click.option("--force", is_flag=True, help="Write over what is there.")
@options(WHERE, JSON)
@options(COLOR)
def command(
    names: tuple[str, ...],
    project: str | None,
    query: str | None,
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Write sessions for others."""
    wanted = _Asked(**asked)
    if wanted.format == "steps" and not wanted.out and names and is_folder_name(names[-1]):
        *sessions, wanted.out = names
        names = tuple(sessions)
    ways = sum((bool(names), project is not None, query is not None))
    if ways == 0 and wanted.format == "steps" and not wanted.out:
        raise click.UsageError("--format steps needs a folder: -o NAME/")
    if ways > 1 or (ways == 0 and not (wanted.format == "steps" and wanted.out)):
        raise click.UsageError("name sessions, or a --project, or a --query; one of them")
    _refuse_what_would_be_ignored(wanted)
    if wanted.format == "parquet":
        from steno.report.export.parquet import need_pyarrow

        need_pyarrow()
    files = _chosen(names, project, query, root, demo=demo) if ways else None
    _refuse_what_does_not_fit(files or (), wanted)
    if wanted.format == "steps":
        _export_steps(files, wanted, Screen(color), root, demo=demo)
    elif files is not None:
        _export(files, wanted, Screen(color), root, demo=demo)


def _refuse_what_would_be_ignored(wanted: _Asked) -> None:
    if wanted.level is not None and wanted.format not in _TOLD:
        raise click.UsageError(f"--level says nothing about --format {wanted.format}")
    if wanted.listed and wanted.format != "steps":
        raise click.UsageError("--listed is about --format steps")
    if wanted.receipt is not None and not wanted.redact:
        raise click.UsageError("with --no-redact there is nothing to write a --receipt about")


def _chosen(
    names: tuple[str, ...],
    project: str | None,
    query: str | None,
    root: tuple[str, ...],
    *,
    demo: bool,
) -> "list[Found]":
    where = roots(root, demo=demo)
    if names:
        from steno.store.library import find

        found = [find(name, where) for name in names]
    elif project is not None:
        from steno.report.export.chosen import of_project

        found = of_project(project, where)
    else:
        from steno.cli.fresh import fresh_index
        from steno.report.export.chosen import with_words

        with fresh_index(root, demo=demo) as index:
            found = with_words(index, query or "")
    if not found:
        raise NotFound("no session is meant by that", hint="`steno ls` lists the sessions")
    return list({each.path: each for each in found}.values())


def _refuse_what_does_not_fit(files: "Sequence[Found]", wanted: _Asked) -> None:
    folder = wanted.out.endswith(("/", os.sep)) or os.path.isdir(wanted.out)
    if wanted.format in _FOLDERS or len(files) > 1:
        if not wanted.out or wanted.out == "-":
            what = f"--format {wanted.format}" if wanted.format in _FOLDERS else "many sessions"
            raise click.UsageError(f"{what} needs a folder: -o NAME/")
        wanted.out = os.path.join(wanted.out, "")
    elif folder:
        wanted.out = os.path.join(wanted.out, "")
    to_screen = wanted.out in ("", "-") and sys.stdout.isatty()
    if wanted.format == "html" and to_screen:
        raise click.UsageError("a page is not for a terminal: -o FILE.html")


def _export(
    files: "list[Found]", wanted: _Asked, screen: Screen, root: tuple[str, ...], *, demo: bool
) -> None:
    from steno.cli.progress import Progress
    from steno.report.export.files import Job
    from steno.safe.masking import Masker

    masker = Masker() if wanted.redact else None
    job = Job(
        wanted.format,
        wanted.level or "full",
        masker,
        wanted.out,
        force=wanted.force,
    )
    with Progress(sum(each.size for each in files), "Exporting") as bar:
        job.done = bar.add
        written = _written(files, job, root, demo=demo)
    if masker is not None and wanted.receipt is not None:
        _write_receipt(wanted, masker.receipt, len(files))
    _tell(files, written, wanted, masker.receipt if masker is not None else None, screen)


def _export_steps(
    files: "list[Found] | None",
    wanted: _Asked,
    screen: Screen,
    root: tuple[str, ...],
    *,
    demo: bool,
) -> None:
    """Bring a folder of steps up to date with some sessions, or with all for None."""
    from steno.cli.progress import planned
    from steno.cli.steps_report import complain_of_failures, steps_json, steps_line
    from steno.report.export.steps_folder import StepsJob, sync_steps
    from steno.safe.masking import Masker
    from steno.store.library import roots_of

    masker = Masker() if wanted.redact else None
    job = StepsJob(
        wanted.out,
        roots_of(roots(root, demo=demo)),
        masker,
        listed=wanted.listed,
        force=wanted.force,
    )
    with planned("Exporting") as plan:
        job.planned = plan
        report = sync_steps(job, files)
    sessions = len(report.written) + len(report.unchanged)
    complain_of_failures(report)
    if files and not sessions and not report.failed:
        raise NotFound("none of these sessions is one for `steps`", hint=_STEPS)
    if masker is not None and wanted.receipt is not None:
        _write_receipt(wanted, masker.receipt, len(report.written))
    if wanted.as_json:
        masked = masker.receipt.counts if masker is not None else None
        write_json({"sessions": sessions, **steps_json(report, wanted.out), "masked": masked})
    else:
        screen.lines([steps_line(report)])
    if report.written and not wanted.as_json:
        _tell_masked(masker.receipt if masker is not None else None, wanted)
    if report.failed:
        raise click.exceptions.Exit(1)


def _written(files: "list[Found]", job: "Job", root: tuple[str, ...], *, demo: bool) -> list[str]:
    """Write everything; return where it is, nothing for what went to the standard output."""
    if not job.out.endswith(("/", os.sep)):
        return _one(files[0], job)
    from steno.report.export.files import write_all, write_each

    if job.format == "html":
        from steno.web.export.folder import pages_of

        return write_all(pages_of(files, job), job)
    if job.format == "parquet":
        return _tables(files, job, root, demo=demo)
    return write_each(files, job)


def _one(found: "Found", job: "Job") -> list[str]:
    from steno.report.export.files import parts_of
    from steno.report.export.put import put_file

    if job.format == "html":
        from steno.web.export.folder import one_page

        parts = iter([one_page(found, job)])
    else:
        parts = parts_of(found, job)
    if job.out not in ("", "-"):
        put_file(job.out, parts, force=job.force)
        return [job.out]
    for part in parts:
        write_bytes(part)
    sys.stdout.buffer.flush()
    return []


def _tables(files: "list[Found]", job: "Job", root: tuple[str, ...], *, demo: bool) -> list[str]:
    from steno.cli.fresh import fresh_index
    from steno.report.export.chosen import files_of
    from steno.report.export.parquet import write_tables

    with fresh_index(root, demo=demo) as index:
        return write_tables(index.connection, files_of(index, files), job)


def _write_receipt(wanted: _Asked, receipt: "Receipt", sessions: int) -> None:
    from steno.format.encode import encode
    from steno.report.export.put import put_file

    told = {"sessions": sessions, **msgspec.to_builtins(receipt)}
    tidy = msgspec.json.format(encode(told), indent=2) + b"\n"
    put_file(wanted.receipt or "", [tidy], force=wanted.force)


def _tell(
    files: "list[Found]",
    written: list[str],
    wanted: _Asked,
    receipt: "Receipt | None",
    screen: Screen,
) -> None:
    """Say what was written and what was masked; to the standard error where the rest went out."""
    number = len(files)
    if wanted.as_json and written:
        masked = receipt.counts if receipt is not None else None
        write_json({"sessions": number, "written": written, "masked": masked})
        return
    if written:
        what = words.count(number, "session")
        where = written[0] if len(written) == 1 else wanted.out
        screen.lines([[f"{what} in {where}"]])
    _tell_masked(receipt, wanted)


def _tell_masked(receipt: "Receipt | None", wanted: _Asked) -> None:
    if receipt is None:
        complain("nothing was masked: what is in there goes wherever the file goes")
        return
    counts = sorted(receipt.counts.items(), key=lambda each: -each[1])
    said = ", ".join(f"{count:,} {name}" for name, count in counts[:_MOST])
    more = f" and {len(counts) - _MOST} more families" if len(counts) > _MOST else ""
    hint = "" if wanted.receipt or not counts else "--receipt FILE says where"
    complain(f"masked: {said}{more}" if counts else "nothing had to be masked", hint)
