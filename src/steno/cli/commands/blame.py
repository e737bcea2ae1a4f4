"""`steno blame`: shows which session, turn and prompt wrote each line of a file."""

import os
import re
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from steno.cli.command_arguments import root_arguments
from steno.cli.fresh_index import NO_SYNC, open_fresh_index
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.file_history_lines import version_origin
from steno.cli.output.screen import Screen, print_error, write_json
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock, humanize
from steno.report.blame import FileBlame, LineOrigin
from steno.report.clock import iso_time_from_ms, seconds_from_ms
from steno.report.file_history.file_versions import Version
from steno.sanitize.terminal import ColourMode, StyledLine, clean, display_width, one_line, pad, truncate
from steno.store import environment
from steno.store.git import Commit

_MAX_AUTHOR_WIDTH: Final = 16
_MAX_LABEL_WIDTH: Final = 34
_LABEL_GAP: Final = 2
_UNLIMITED_WIDTH: Final = 1 << 30
_UNATTRIBUTED_LABELS: Final = {"outside": "external change", "before": "pre-existing", "unknown": "no session"}
_UNATTRIBUTED_MEANINGS: Final = {
    "outside": "changed outside of recorded sessions",
    "before": "present before the first recorded session",
    "unknown": "not written by any indexed session",
}
_ORIGIN_STYLES: Final = {"session": "cyan", "commit": "yellow"}


def blame_lines(
    result: FileBlame, columns: int, now: float, *, summary: bool = False, untruncated: bool = False
) -> Iterator[StyledLine]:
    """Yield each line of a file with its origin, then a legend of the origins.

    `summary` omits the lines, `untruncated` keeps long lines in full.
    """
    if not result.lines:
        yield ["The file is empty."]
        return
    if not summary:
        yield from _blamed_lines(result, _UNLIMITED_WIDTH if untruncated else columns, now)
        yield []
    yield from _legend_lines(result, columns, now)
    yield from _blame_notes(result)


def _blamed_lines(result: FileBlame, columns: int, now: float) -> Iterator[StyledLine]:
    labels = [_origin_label(origin) for origin in result.origins]
    days = [_origin_day(origin, now) for origin in result.origins]
    label_width = min(max(map(display_width, labels)), _MAX_LABEL_WIDTH)
    day_width = max(map(display_width, days))
    digits = len(str(result.lines[-1].number))
    previous = ""
    for line in result.lines:
        origin = result.origins[line.origin]
        is_repeated = labels[line.origin] == previous
        previous = labels[line.origin]
        style = _ORIGIN_STYLES.get(origin.kind, "dim")
        yield [
            (pad("" if is_repeated else labels[line.origin], label_width), style),
            " " * _LABEL_GAP,
            (pad("" if is_repeated else days[line.origin], day_width), "dim"),
            (f"  {line.number:>{digits}} │ ", "dim"),
            truncate(clean(line.text).expandtabs(4), max(20, columns - label_width - day_width - digits - 7)),
        ]


def _origin_label(origin: LineOrigin) -> str:
    if origin.kind == "session" and origin.version is not None:
        return _version_label(origin.version)
    if origin.commit is not None:
        return f"{origin.commit.hash[:SHORT_ID_LENGTH]} {one_line(origin.commit.author, _MAX_AUTHOR_WIDTH)}"
    return f"{_version_label(origin.suspect)} command?" if origin.suspect else _UNATTRIBUTED_LABELS[origin.kind]


def _version_label(version: Version) -> str:
    return version_origin(version) + (" rewound" if version.abandoned else "")


def _origin_day(origin: LineOrigin, now: float) -> str:
    seconds = _origin_timestamp(origin)
    return "" if seconds is None else humanize.short_weekday(seconds, now)


def _origin_timestamp(origin: LineOrigin) -> float | None:
    if origin.kind == "session" and origin.version is not None:
        return seconds_from_ms(origin.version.time)
    return float(origin.commit.time) if origin.commit is not None else None


def _legend_lines(result: FileBlame, columns: int, now: float) -> Iterator[StyledLine]:
    """Yield the origins by number of lines, most first, with their prompts."""
    origins_by_label: dict[str, list[LineOrigin]] = {}
    for origin in result.origins:
        origins_by_label.setdefault(_origin_label(origin), []).append(origin)
    total = sum(origin.lines for origin in result.origins)
    ranked = sorted(origins_by_label.items(), key=lambda each: -sum(one.lines for one in each[1]))
    for label, origins in ranked:
        origin = origins[0]
        number = sum(item.lines for item in origins)
        head = f"{humanize.count(number, 'line')}, {humanize.percentage(number, total)}"
        details = " · ".join(
            part for part in (_origin_time(origin, now), _origin_title(origin, git=result.git)) if part
        )
        yield [
            (label, _ORIGIN_STYLES.get(origin.kind, "dim")),
            f"  {head}",
            (f"  {truncate(details, max(12, columns - display_width(label) - display_width(head) - 4))}", "dim"),
        ]
        if origin.kind == "session" and origin.version is not None:
            yield ["    ", one_line(origin.version.prompt, columns - 4) or ("(no prompt)", "dim")]
        elif origin.suspect is not None:
            command_text = f"possibly changed by: {origin.suspect.command}"
            yield ["    ", one_line(command_text, columns - 4)]
        commits = {each.commit.hash[:SHORT_ID_LENGTH]: each.commit for each in origins if each.commit}
        if origin.kind == "session" and commits:
            commit_texts = ", ".join(f"{name} {one_line(each.summary, 40)}" for name, each in commits.items())
            yield ["    ", (truncate(f"committed as {commit_texts}", columns - 4), "yellow")]


def _origin_time(origin: LineOrigin, now: float) -> str:
    seconds = _origin_timestamp(origin)
    return "" if seconds is None else humanize.weekday_and_time(seconds, now)


def _origin_title(origin: LineOrigin, *, git: bool) -> str:
    if origin.kind == "session" and origin.version is not None:
        return one_line(origin.version.title, 120)
    if origin.commit is not None:
        return one_line(origin.commit.summary, 120)
    return _UNATTRIBUTED_MEANINGS[origin.kind] + (", not committed" if git else "")


def _blame_notes(result: FileBlame) -> Iterator[StyledLine]:
    other_paths = [name for name in result.names if name != result.path]
    if other_paths:
        yield [(f"other paths: {', '.join(one_line(name) for name in other_paths)}", "dim")]
    if not result.names:
        yield [("no indexed session accessed this file", "dim")]
    if result.doubts:
        count_text = humanize.count(result.doubts, "tool call")
        yield [(f"{count_text} may have changed the file without recording the change", "dim")]


# For programs


def blame_json(result: FileBlame) -> dict[str, Any]:
    """Return the blame of a file as JSON; lines refer to origins by index."""
    return {
        "path": result.path,
        "total": result.total,
        "git": result.git,
        "names": result.names,
        "doubts": result.doubts,
        "origins": [_origin_json(item) for item in result.origins],
        "lines": [{"number": each.number, "text": each.text, "origin": each.origin} for each in result.lines],
    }


def _origin_json(origin: LineOrigin) -> dict[str, Any]:
    version = origin.version if origin.kind == "session" else None
    data: dict[str, Any] = {"kind": origin.kind, "lines": origin.lines, "commit": None}
    if version is not None:
        data |= {
            "session": version.session,
            "agent": version.agent or None,
            "turn": version.turn,
            "time": iso_time_from_ms(version.time),
            "tool": version.tool,
            "abandoned": version.abandoned,
            "title": version.title,
            "prompt": version.prompt,
            "path": origin.path,
            "version": version.name,
        }
    if origin.suspect is not None:
        version_before = origin.suspect
        data["suspect"] = {
            "session": version_before.session,
            "turn": version_before.turn,
            "command": version_before.command,
        }
    if origin.commit is not None:
        data["commit"] = _commit_json(origin.commit)
    return data


def _commit_json(commit: Commit) -> dict[str, Any]:
    return {
        "hash": commit.hash,
        "author": commit.author,
        "time": clock.iso_time(commit.time),
        "summary": commit.summary,
    }


_LINE_RANGE: Final = re.compile(r"(.+?):(\d{1,9})(?:-(\d{0,9}))?", re.DOTALL)
_LAST_LINE: Final = 10**9
_HELP: Final = """\
Show which session, turn and prompt wrote each line of a file.

Lines are traced from the versions that agents read and wrote (see `steno files`) to the file on
disk. In a git repository, renames and other worktrees are followed, and lines that no session
wrote show their commit. Commands in the repository's configuration are never run.

FILE:10 and FILE:10-20 select lines.

\b
Examples:
  steno blame src/login.py                     Show the origin of every line
  steno blame src/login.py:40-60               Show the origin of these lines
  steno blame old.py --as /srv/app/login.py    Use the path that sessions recorded
"""


class _BlameOptions(msgspec.Struct):
    """The options of the command."""

    names: tuple[str, ...] = ()
    no_git: bool = False
    summary: bool = False
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False


@click.command("blame", help=_HELP, short_help="Show which prompt wrote each line of a file.")
@click.argument("file", metavar="FILE[:LINES]", type=click.Path())
@click.option(
    "--as", "names", multiple=True, metavar="PATH", help="Another path that sessions recorded for the file; repeatable"
)
@click.option("--no-git", is_flag=True, help="Do not read the git repository")
@click.option("--summary", is_flag=True, help="Show only the number of lines per origin")
@add_options(NO_SYNC, ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(file: str, color: ColourMode, width: int | None, **values: Any) -> None:
    """Show the origin of each line of a file."""
    from steno.cli.output.screen import print_paged
    from steno.report.blame import blame
    from steno.store.session_lookup import open_session

    command_options = _BlameOptions(**values)
    path, lines = _parse_file_argument(file)
    screen = Screen(color, width)
    with open_fresh_index(
        command_options.root,
        demo=command_options.demo,
        no_sync=command_options.no_sync,
        while_syncing="results may be incomplete",
    ) as index:
        result = blame(
            index.connection,
            path,
            open_session,
            lines=lines,
            names=command_options.names,
            git=not command_options.no_git,
        )
    if result.trouble:
        print_error(result.trouble, "Use --no-git to skip the repository.")
    if command_options.as_json:
        write_json(blame_json(result))
        return
    untruncated = not screen.is_terminal and width is None
    lines_to_print = blame_lines(
        result, screen.width, environment.now(), summary=command_options.summary, untruncated=untruncated
    )
    print_paged(screen, lines_to_print, use_pager=not command_options.no_pager)
    root_options = root_arguments(command_options.root, demo=command_options.demo)
    screen.print_next_steps([f"steno files{root_options} FILE", f"steno show{root_options} SESSION --turn N"])


def _parse_file_argument(text: str) -> tuple[str, tuple[int, int] | None]:
    """Return the file and its line range; an existing file name with a colon is not a range."""
    match = None if os.path.lexists(text) else _LINE_RANGE.fullmatch(text)
    if match is None:
        return text, None
    first = int(match[2])
    last = first if match[3] is None else int(match[3]) if match[3] else _LAST_LINE
    if not 1 <= first <= last:
        raise click.UsageError(f"invalid line range: {first}-{last}")
    return match[1], (first, last)
