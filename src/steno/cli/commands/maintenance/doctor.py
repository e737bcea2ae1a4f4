"""`steno doctor`: reports problems of a config directory: damaged, expiring, large and leftover files."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import click
import msgspec

from steno.check.doctor import (
    LARGE_LINE,
    BrokenSession,
    Diagnosis,
    ExpiringSession,
    LargeFile,
    collect_files,
    inspect_files,
)
from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.findings import problem_json
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, print_paged, report_unreadable, write_json
from steno.cli.output.table_layout import wrap_line
from steno.format.paths import JSONL_SUFFIX, SHORT_ID_LENGTH
from steno.permissions.sandbox.mechanisms import SandboxSupport, probe_sandbox
from steno.report import clock, humanize
from steno.report.check_policy import load_check_policy
from steno.report.retention import Retention, retention_json
from steno.report.session_references import SessionReferences, printable_path, session_title, shell_argument
from steno.sanitize.terminal import ColourMode, StyledLine, display_width, one_line, shorten_path, wrap
from steno.store import environment
from steno.store.client_folders import CLEANUP_WARNING_DAYS, Leftover
from steno.store.discovery import DiscoveredFile, Problem, unreadable_problems
from steno.store.session_lookup import resolve_roots

ItemT = TypeVar("ItemT")
_MAX_LISTED: Final = 10
_MIN_TITLE_WIDTH: Final = 10
_SECONDS_PER_DAY: Final = 86_400
_LEFTOVER_KINDS: Final = {
    "session": "sub-agents and tool results",
    "file-history": "file backups",
    "tasks": "tasks",
    "todos": "to-do list",
    "debug": "debug log",
    "session-env": "environment",
}


@click.command("doctor", short_help="Check the config directory for problems.")
@add_options(ROOT_OPTIONS)
@add_options(JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(
    root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, as_json: bool, no_pager: bool
) -> None:
    """Check the config directory for problems: damaged, expiring and large sessions.

    Damaged sessions are sorted by how many messages a resume would lose. Leftover files of deleted
    sessions and duplicate sessions are listed too. Nothing is changed; each section ends with a
    command or setting that fixes the problem.

    Exit codes: 0 no problems, 1 problems found, 2 usage error or damaged steno config file, 3 cannot
    read.
    """
    policy = load_check_policy()
    folders = resolve_roots(search_roots(root, demo=demo))
    problems: list[Problem] = []
    inspection_scope = collect_files([folder for folder in folders if os.path.lexists(folder)], problems)
    with ProgressBar(inspection_scope.size, "Examining") as bar:
        diagnosis = inspect_files(
            inspection_scope, environment.now(), problems=problems, policy=policy, done=bar.advance
        )
    # Demo sessions are unrelated to the sandbox of this machine.
    sandbox_support = None if demo else probe_sandbox()
    if as_json:
        write_json(_diagnosis_json(diagnosis, problems, sandbox_support))
    else:
        names = SessionReferences(file.path for file in inspection_scope.files)
        screen = Screen(color, width)
        report = _DiagnosisReport(diagnosis, names, screen.width, root_arguments(root, demo=demo))
        print_paged(screen, (*report.lines(), *_sandbox_lines(sandbox_support, screen.width)), use_pager=not no_pager)
    unreadable = unreadable_problems(problems, "special")
    report_unreadable(unreadable)
    if unreadable or not diagnosis.healthy:
        raise click.exceptions.Exit(3 if unreadable else 1)


def _sandbox_lines(sandbox_support: SandboxSupport | None, columns: int) -> Iterator[StyledLine]:
    """Yield the status of the command sandbox on this machine."""
    if sandbox_support is not None:
        mark = ("✓", "green") if sandbox_support.usable else ("!", "yellow")
        yield from wrap_line([mark, f" {sandbox_support.summary}"], columns)


class _DiagnosisReport:
    def __init__(self, diagnosis: Diagnosis, names: SessionReferences, columns: int, root_options: str) -> None:
        self._diagnosis = diagnosis
        self._references = names
        self._columns = columns
        self._root_options = root_options

    def lines(self) -> Iterator[StyledLine]:
        """Yield the sections that have items, and a summary."""
        diagnosis = self._diagnosis
        sessions = humanize.count(diagnosis.sessions, "session")
        if not diagnosis.sessions and diagnosis.healthy:
            text = f"No sessions to check. Run `{program_name()} demo` to write demo sessions."
            yield from wrap_line([text], self._columns)
            yield from self._empty_line()
            return
        if diagnosis.healthy:
            text = f" No problems found: {sessions}, {humanize.size(diagnosis.size)}"
            yield from wrap_line([("✓", "green"), text], self._columns)
            yield from self._empty_line()
            return
        yield from self._broken_lines()
        yield from self._expiring_lines()
        yield from self._large_lines()
        yield from self._leftover_lines()
        yield from self._copy_lines()
        yield [(f"{sessions}, {diagnosis.sound:,} without problems", "bold"), f", {humanize.size(diagnosis.size)}"]
        yield from self._empty_line()

    def _empty_line(self) -> Iterator[StyledLine]:
        if number := len(self._diagnosis.empty):
            yield [(f"{humanize.count(number, 'file')} without a conversation", "dim")]

    def _broken_lines(self) -> Iterator[StyledLine]:
        broken = self._diagnosis.broken
        head = f"{humanize.count(len(broken), 'damaged session')}, most messages lost first"
        first = next((item for item in broken if item.mendable), None)
        hint = self._suggested_command("repair", first.found.path) if first else ""
        yield from self._section_lines("✗", "red", head, broken, self._broken_line, hint)

    def _broken_line(self, broken: BrokenSession) -> list[StyledLine]:
        lost_text = f"{broken.lost:,} of {broken.total:,} messages lost" if broken.lost else "no messages lost"
        return self._session_lines(broken.found, f"{lost_text}, {humanize.count(broken.errors, 'error')}")

    def _expiring_lines(self) -> Iterator[StyledLine]:
        expiring = self._diagnosis.due
        overdue = sum(item.days <= 0 for item in expiring)
        size = humanize.size(sum(each.found.size for each in expiring))
        late = f", {overdue:,} overdue" if overdue else ""
        sessions = humanize.count(len(expiring), "session")
        unarchived = sum(not each.archived for each in expiring)
        archived_text = f", {unarchived:,} not archived" if unarchived else ""
        head = (
            f"{sessions} to be deleted by Claude Code within {CLEANUP_WARNING_DAYS} days{late}{archived_text}, {size}"
        )
        days = f"{self._diagnosis.cleanup_days:g}"
        hint = f'Claude Code keeps sessions for {days} days; set "cleanupPeriodDays" in settings.json to change this.'
        if any(not each.archived for each in expiring):
            hint += f" Run `{program_name()} archive{self._root_options}` to archive them."
        yield from self._section_lines("!", "yellow", head, expiring, self._expiring_line, hint)

    def _expiring_line(self, expiring: ExpiringSession) -> list[StyledLine]:
        days = int(expiring.days)
        if expiring.days <= 0:
            return self._session_lines(expiring.found, "overdue")
        return self._session_lines(expiring.found, f"in {humanize.count(days, 'day')}" if days else "today")

    def _large_lines(self) -> Iterator[StyledLine]:
        large = self._diagnosis.large
        head = f"{humanize.count(len(large), 'large file')}"
        hint = self._suggested_command("repair", large[0].found.path, " --slim") if large else ""
        yield from self._section_lines("!", "yellow", head, large, self._large_line, hint)

    def _large_line(self, large: LargeFile) -> list[StyledLine]:
        line = f", longest line {humanize.size(large.longest)}" if large.longest > LARGE_LINE else ""
        return self._session_lines(large.found, f"{humanize.size(large.found.size)}{line}")

    def _leftover_lines(self) -> Iterator[StyledLine]:
        leftovers = self._diagnosis.leftovers
        size = humanize.size(sum(item.size for item in leftovers))
        head = f"{humanize.count(len(leftovers), 'leftover')} of deleted sessions, {size}"
        quoted = shell_argument(leftovers[0].path) if leftovers else None
        plural_hint = f"All of these can be deleted. To delete the first, run: rm -r {quoted}"
        hint = plural_hint if len(leftovers) > 1 else f"rm -r {quoted}"
        hint = hint if quoted else "These can be deleted."
        yield from self._section_lines("·", "dim", head, leftovers, self._leftover_line, hint)

    def _leftover_line(self, leftover: Leftover) -> list[StyledLine]:
        details = f"{_LEFTOVER_KINDS.get(leftover.kind, leftover.kind)}, {humanize.size(leftover.size)}"
        return self._path_lines(leftover.path, details)

    def _copy_lines(self) -> Iterator[StyledLine]:
        groups = [sorted(group, key=_copy_order) for group in self._diagnosis.copies]
        head = f"{humanize.count(len(groups), 'duplicate session')}"
        deletable = next(filter(None, map(_deletable_copy, groups)), None)
        quoted = shell_argument(deletable.path) if deletable else None
        hint = f"rm {quoted}" if quoted else "Keep the copy that Claude Code resumes."
        pairs = [(copy, group[0].path) for group in groups for copy in group]
        yield from self._section_lines("·", "dim", head, pairs, self._copy_line, hint)

    def _copy_line(self, pair: tuple[DiscoveredFile, str]) -> list[StyledLine]:
        file, first = pair
        return self._path_lines(file.path, humanize.size(file.size) if file.path == first else "identical")

    def _section_lines(
        self,
        mark: str,
        style: str,
        head: str,
        items: Sequence[ItemT],
        lines: Callable[[ItemT], list[StyledLine]],
        hint: str,
    ) -> Iterator[StyledLine]:
        if not items:
            return
        for index, item in enumerate(wrap(head, self._columns - 2)):
            yield [(" " if index else mark, style), " ", (item, "bold")]
        for item in items[:_MAX_LISTED]:
            yield from lines(item)
        if len(items) > _MAX_LISTED:
            yield [(f"    … {len(items) - _MAX_LISTED:,} more; use --json to list all", "dim")]
        # Commands are not wrapped, so that they can be copied.
        command = hint.startswith((program_name(), "rm "))
        for item in [hint] if command else wrap(hint, self._columns - 4) if hint else ():
            yield ["    ", (item, "cyan")]
        yield []

    def _session_lines(self, file: DiscoveredFile, details: str) -> list[StyledLine]:
        short = one_line(self._references.short_id(file.path), self._columns - 4)
        available = self._columns - 8 - display_width(short) - display_width(details)
        name: StyledLine = ["    ", (short, "bold"), "  "]
        if available >= _MIN_TITLE_WIDTH:
            return [[*name, one_line(_session_or_agent_title(file), available), "  ", (details, "dim")]]
        available = self._columns - 6 - display_width(short)
        return [[*name, one_line(_session_or_agent_title(file), available)], *self._details_below(details)]

    def _path_lines(self, path: str, details: str) -> list[StyledLine]:
        available = self._columns - 6 - display_width(details)
        fits_beside = available >= _MIN_TITLE_WIDTH
        folder, name = shorten_path(path, available if fits_beside else self._columns - 4)
        line: StyledLine = ["    ", (folder, "dim"), name]
        return [[*line, "  ", (details, "dim")]] if fits_beside else [line, *self._details_below(details)]

    def _details_below(self, details: str) -> list[StyledLine]:
        return [["      ", (line, "dim")] for line in wrap(details, self._columns - 6)]

    def _suggested_command(self, name: str, path: str, options: str = "") -> str:
        quoted = shell_argument(self._references.argument_for(path))
        return f"{program_name()} {name}{self._root_options} {quoted}{options}" if quoted else ""


def _is_in_projects(file: DiscoveredFile) -> bool:
    """Return whether a file is where Claude Code reads sessions: projects/PROJECT/ID.jsonl."""
    folder = os.path.dirname(os.path.abspath(file.path))
    return os.path.basename(os.path.dirname(folder)) == "projects"


def _copy_order(file: DiscoveredFile) -> tuple[bool, bool, str]:
    """Return the sort key of copies: resumable ones first, then those with a session directory."""
    has_folder = os.path.isdir(file.path.removesuffix(JSONL_SUFFIX))
    return not _is_in_projects(file), not has_folder, file.path


def _deletable_copy(group: Sequence[DiscoveredFile]) -> DiscoveredFile | None:
    """Return the copy that can be deleted; None unless exactly one copy is in projects/."""
    unused = [file for file in group if not _is_in_projects(file)]
    return unused[-1] if len(group) - len(unused) == 1 else None


def _session_or_agent_title(file: DiscoveredFile) -> str:
    if file.place.role == "agent":
        return f"sub-agent of {file.place.session_id[:SHORT_ID_LENGTH]}" if file.place.session_id else ""
    return session_title(file) or "(no title)"


def _diagnosis_json(
    diagnosis: Diagnosis, problems: Sequence[Problem], sandbox_support: SandboxSupport | None
) -> dict[str, Any]:
    return {
        "confinement": None if sandbox_support is None else msgspec.to_builtins(sandbox_support),
        "sessions": diagnosis.sessions,
        "sound": diagnosis.sound,
        "size": diagnosis.size,
        "cleanup_days": diagnosis.cleanup_days,
        "retention": _retention_json(diagnosis),
        "broken": [
            {
                **_file_json(item.found),
                "lost": item.lost,
                "messages": item.total,
                "errors": item.errors,
                "warnings": item.warnings,
                "verdict": item.words,
            }
            for item in diagnosis.broken
        ],
        "empty": [_file_json(each) for each in diagnosis.empty],
        "due": [
            {**_file_json(each.found), "days": round(each.days, 2), "archived": each.archived} for each in diagnosis.due
        ],
        "large": [{**_file_json(each.found), "longest_line": each.longest} for each in diagnosis.large],
        "leftovers": [{**msgspec.to_builtins(each), "path": printable_path(each.path)} for each in diagnosis.leftovers],
        "copies": [[_file_json(each) for each in group] for group in diagnosis.copies],
        "problems": [problem_json(problem) for problem in problems],
    }


def _retention_json(diagnosis: Diagnosis) -> dict[str, Any]:
    now = environment.now()
    unarchived = [item for item in diagnosis.due if not item.archived]
    sizes_and_times = ((each.found.size, now + each.days * _SECONDS_PER_DAY) for each in unarchived)
    retention = Retention.of(diagnosis.cleanup_days, sizes_and_times, now)
    return retention_json(retention, clock.iso_time(retention.first))


def _file_json(file: DiscoveredFile) -> dict[str, Any]:
    return {"path": printable_path(file.path), "size": file.size, "modified": clock.iso_time(file.mtime_ns / 1e9)}
