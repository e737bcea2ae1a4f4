"""`steno check`: reports problems in session files, and what each Claude Code version would resume."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from steno.check.checkup import Policy
from steno.check.file_reports import FileReport, check_files, find_all_files, total_bytes, with_agents
from steno.check.findings import SEVERITIES, Severity
from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.findings import explain_lines, problem_json, report_json, report_lines, rules_json, rules_lines
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, print_error, print_paged, report_unreadable, write_json
from steno.cli.output.table_layout import wrap_line
from steno.errors import NotFound, Unreadable
from steno.report import humanize
from steno.report.check_policy import load_check_policy
from steno.report.session_references import SessionReferences, session_title, shell_argument
from steno.sanitize.terminal import ColourMode, StyledLine
from steno.store.discovery import DiscoveredFile, Problem, unreadable_problems
from steno.store.session_lookup import find, resolve_roots

_SERIOUS_SEVERITIES: Final[tuple[Severity, ...]] = SEVERITIES[:2]
_EXIT_FINDINGS: Final = 1
_EXIT_UNREADABLE: Final = 3


class _CheckOptions(msgspec.Struct):
    as_json: bool = False
    sarif: bool = False
    everything: bool = False
    silence: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    fail_on: Severity = "warning"
    rules: bool = False
    explain: str | None = None
    secrets: bool = False
    no_pager: bool = False

    @property
    def visible_severities(self) -> tuple[Severity, ...]:
        """Severities whose findings are listed."""
        return SEVERITIES if self.everything or self.fail_on == "info" else SEVERITIES[:2]

    @property
    def failing_severities(self) -> tuple[Severity, ...]:
        """Severities that set exit code 1."""
        return SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]


@click.command("check", short_help="Check sessions for problems.")
@click.argument("names", metavar="[PATH|SESSION]...", nargs=-1)
@add_options(ROOT_OPTIONS)
@click.option("--all", "everything", is_flag=True, help="Include harmless findings (info)")
@click.option("--silence", metavar="ID", multiple=True, help="Disable a rule, or a family with `family.*`")
@click.option(
    "--severity", metavar="ID=LEVEL", multiple=True, help="Set the severity of a rule: error, warning or info"
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="Lowest severity that sets exit code 1",
)
@click.option("--rules", is_flag=True, help="List all rules")
@click.option("--explain", metavar="ID", help="Explain a rule")
@click.option("--secrets", is_flag=True, help="List secrets that an export would mask")
@add_options(JSON)
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts and editors")
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(
    names: tuple[str, ...], root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Check sessions for problems, and report what Claude Code would resume.

    Without arguments, checks everything in the config directory. PATH is a file or a directory;
    SESSION is an ID or title, as in `steno show`. Sub-agents are checked with their session. Files
    are never modified.

    --secrets lists what `steno export` would mask: family, file, line, turn and tool, the public
    prefix of a token, its length and a hash. Equal hashes in one run are the same secret. Secrets
    are never printed.

    Exit codes: 0 no problems, 1 findings, 2 usage error, 3 cannot read.
    """
    command_options = _CheckOptions(**values)
    _check_option_combinations(command_options, names)
    policy = load_check_policy(command_options.silence, command_options.severity)
    screen = Screen(color, width)
    if command_options.rules:
        if command_options.as_json:
            write_json(rules_json(policy))
        else:
            print_paged(screen, rules_lines(policy, screen.width), use_pager=not command_options.no_pager)
        return
    if command_options.explain is not None:
        screen.print_lines(explain_lines(command_options.explain, screen.width))
        return
    folders = search_roots(root, demo=demo)
    run = _CheckRun(command_options, policy, screen, root_options=root_arguments(root, demo=demo))
    run.collect_files(names, folders)
    if command_options.secrets:
        run.scan_secrets()
    else:
        run.check_all()
    if exit_code := run.exit_code:
        raise click.exceptions.Exit(exit_code)


def _check_option_combinations(options: _CheckOptions, names: tuple[str, ...]) -> None:
    if options.as_json and options.sarif:
        raise click.UsageError("--json cannot be combined with --sarif")
    if options.rules and options.explain is not None:
        raise click.UsageError("--rules cannot be combined with --explain")
    listing_option = "--rules" if options.rules else "--explain" if options.explain is not None else ""
    if listing_option and names:
        raise click.UsageError(f"{listing_option} cannot be combined with PATH or SESSION")
    if listing_option and options.sarif:
        raise click.UsageError(f"{listing_option} cannot be combined with --sarif")
    if options.secrets:
        ignored = {
            "--rules": options.rules,
            "--explain": options.explain is not None,
            "--sarif": options.sarif,
            "--all": options.everything,
            "--silence": bool(options.silence),
            "--severity": bool(options.severity),
        }
        for option, is_set in ignored.items():
            if is_set:
                raise click.UsageError(f"--secrets cannot be combined with {option}")
    if options.explain is not None and options.as_json:
        raise click.UsageError("--explain cannot be combined with --json; use --rules --json")


class _CheckRun:
    def __init__(self, options: _CheckOptions, policy: Policy, screen: Screen, *, root_options: str) -> None:
        self._options = options
        self._policy = policy
        self._screen = screen
        self._root_options = root_options
        self._files: list[DiscoveredFile] = []
        self._problems: list[Problem] = []
        self._unreadable_names: list[tuple[str, Unreadable]] = []
        self._checks_everything = False
        self._counts: Counter[str] = Counter()
        self._broken_paths: list[str] = []
        self._references = SessionReferences(())
        self._user_names: dict[str, str] = {}
        """Session arguments as given, by path; `last` is left out because it changes."""

    def collect_files(self, names: tuple[str, ...], folders: tuple[str, ...] | None) -> None:
        """Collect the files to check."""
        files: dict[str, DiscoveredFile] = {}
        self._checks_everything = not names
        for name in names or resolve_roots(folders):
            try:
                matches = self._files_by_name(name, folders) if names else self._files_below(name)
            except Unreadable as error:
                self._unreadable_names.append((name, error))
            else:
                files.update((file.path, file) for file in matches)
                if names and len(matches) == 1 and name != "last":
                    self._user_names[matches[0].path] = name
        self._files = list(files.values())
        # Short IDs must be unique among all sessions, so they need the whole directory.
        self._references = SessionReferences(files) if self._checks_everything else SessionReferences(())

    def _files_below(self, folder: str) -> list[DiscoveredFile]:
        # A new machine has no config directory yet.
        return find_all_files(folder, self._problems) if os.path.lexists(folder) else []

    def _files_by_name(self, name: str, folders: tuple[str, ...] | None) -> list[DiscoveredFile]:
        is_path = name.startswith(".") or os.sep in name
        if is_path and os.path.isdir(name):
            return find_all_files(name, self._problems)
        try:
            return [with_agents(find(name, folders, archived=False), self._problems)]
        except (NotFound, Unreadable):
            if os.path.isdir(name):
                return find_all_files(name, self._problems)
            raise

    @property
    def _unreadable_found(self) -> list[Problem]:
        """Unreadable files that discovery found."""
        return unreadable_problems(self._problems, "special")

    @property
    def _unreadable_named(self) -> list[Problem]:
        """Unreadable files from the arguments."""
        return [Problem("unreadable", name, str(error)) for name, error in self._unreadable_names]

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        has_unreadable = self._unreadable_names or self._unreadable_found
        failed = any(self._counts[severity] for severity in self._options.failing_severities)
        return _EXIT_UNREADABLE if has_unreadable else _EXIT_FINDINGS if failed else 0

    def check_all(self) -> None:
        """Check all files and print the findings."""
        with ProgressBar(sum(map(total_bytes, self._files)), "Checking") as bar:
            if self._options.sarif:
                self._print_sarif(bar)
            elif self._options.as_json:
                self._print_json(bar)
            else:
                print_paged(self._screen, self._report_lines(bar), use_pager=not self._options.no_pager)
        self._print_unreadable()
        if not (self._options.sarif or self._options.as_json):
            self._print_next_steps()

    def scan_secrets(self) -> None:
        """Print the locations of secrets, without the secrets."""
        from steno.cli.output.findings import secret_lines, secrets_json, secrets_summary
        from steno.report.export.session_masking import FileSecrets, scan_for_secrets

        file_secrets: list[FileSecrets] = []

        def lines(bar: ProgressBar) -> Iterator[StyledLine]:
            for file in scan_for_secrets(self._files, bar.advance):
                file_secrets.append(file)
                if file.findings:
                    bar.clear()
                    yield from secret_lines(file, self._screen.width)
                    yield []
            bar.clear()
            yield from secrets_summary(file_secrets, self._screen.width)

        with ProgressBar(sum(map(total_bytes, self._files)), "Scanning") as bar:
            if self._options.as_json:
                file_secrets += scan_for_secrets(self._files, bar.advance)
                bar.clear()
                write_json(secrets_json(file_secrets))
            else:
                print_paged(self._screen, lines(bar), use_pager=not self._options.no_pager)
        self._problems += [
            Problem("unreadable", file.session_file.path, file.error) for file in file_secrets if file.error
        ]
        self._print_unreadable()
        self._counts["error"] = sum(len(file.findings) for file in file_secrets)

    def _check_reports(self, bar: ProgressBar) -> Iterator[FileReport]:
        programs = self._options.as_json or self._options.sarif
        reports = check_files(
            self._files,
            problems=self._problems,
            policy=Policy(severity=self._policy.severity),
            judge="all" if programs or not self._checks_everything else "troubled",
            done=bar.advance,
        )
        for full_report in reports:
            report = _without_silenced(full_report, self._policy.silence)
            self._counts["silenced"] += full_report.number(*_SERIOUS_SEVERITIES) - report.number(*_SERIOUS_SEVERITIES)
            self._counts["sessions" if report.role != "agent" else "agents"] += 1
            self._counts["sound"] += report.sound and report.role != "agent"
            for severity in SEVERITIES:
                self._counts[severity] += report.number(severity)
            yield report

    def _print_sarif(self, bar: ProgressBar) -> None:
        from steno.check.file_reports import sarif_log

        reports = list(self._absolute_reports(bar))
        unreadable = [
            msgspec.structs.replace(problem, path=os.path.abspath(problem.path))
            for problem in (*self._unreadable_named, *self._unreadable_found)
        ]
        log = sarif_log(reports, unreadable, base=os.getcwd())
        bar.clear()
        write_json(log)

    def _absolute_reports(self, bar: ProgressBar) -> Iterator[FileReport]:
        for report in self._check_reports(bar):
            yield _with_absolute_paths(_with_severities(report, self._options.visible_severities))

    def _print_json(self, bar: ProgressBar) -> None:
        files = [
            entry
            for report in self._check_reports(bar)
            for entry in report_json(report, self._options.visible_severities)
        ]
        bar.clear()
        write_json(
            {
                "sessions": self._counts["sessions"],
                "sound": self._counts["sound"],
                "errors": self._counts["error"],
                "warnings": self._counts["warning"],
                "infos": self._counts["info"],
                "files": files,
                "problems": [problem_json(each) for each in (*self._unreadable_named, *self._problems)],
            }
        )

    def _report_lines(self, bar: ProgressBar) -> Iterator[StyledLine]:
        severities = self._options.visible_severities
        is_single_file = not self._checks_everything and len(self._files) == 1
        for report in self._check_reports(bar):
            if not is_single_file and not report.number(*severities):
                continue
            bar.clear()
            if not report.sound and not any(rule == "chain.empty" for rule, _ in report.counts):
                self._broken_paths.append(report.path)
            short = self._references.short_id(report.path) if self._checks_everything else ""
            title = session_title(report.found)
            yield from report_lines(report, severities, self._screen.width, short_id=short, title=title)
            yield []
        bar.clear()
        yield from self._summary_lines()

    def _summary_lines(self) -> Iterator[StyledLine]:
        counts = self._counts
        if not (counts["sessions"] or counts["agents"]):
            if not self._unreadable_names:
                summary = f"No sessions to check. Run `{program_name()} demo` to write demo sessions."
                yield from wrap_line([summary], self._screen.width)
            return
        sessions = humanize.count(counts["sessions"], "session")
        if counts["sound"] == counts["sessions"]:
            summary = f"{sessions}, no problems"
        elif counts["sessions"] == 1:
            summary = f"{sessions} with problems"
        else:
            summary = f"{sessions}, {counts['sound']:,} without problems"
        if counts["silenced"]:
            summary += f" ({humanize.count(counts['silenced'], 'finding')} silenced)"
        agents = humanize.count(counts["agents"], "sub-agent")
        parts: StyledLine = [
            (f"{summary}" if counts["sessions"] else agents, "bold"),
            f", {agents} without a session" if counts["agents"] and counts["sessions"] else "",
        ]
        styles = (("error", "red"), ("warning", "yellow"), ("info", "dim"))
        for severity, style in styles:
            if counts[severity]:
                plural = "info" if severity == "info" else ""
                parts += ["  ", (humanize.count(counts[severity], severity, plural), style)]
        if counts["info"] and "info" not in self._options.visible_severities:
            parts += [("  (use --all to show)", "dim")]
        yield from wrap_line(parts, self._screen.width)

    def _print_unreadable(self) -> None:
        for _, error in self._unreadable_names:
            print_error(str(error), error.hint)
        report_unreadable(self._unreadable_found, with_reason=True)

    def _print_next_steps(self) -> None:
        steps: list[str] = []
        if self._broken_paths:
            path = self._broken_paths[0]
            name = shell_argument(self._user_names.get(path) or self._references.argument_for(path))
            steps += [f"{program_name()} repair{self._root_options} {name}"] if name else []
            steps.append(f"{program_name()} check --explain ID")
        self._screen.print_next_steps(steps)


def _without_silenced(report: FileReport, silence: frozenset[str]) -> FileReport:
    return msgspec.structs.replace(
        report,
        findings=tuple(finding for finding in report.findings if finding.id not in silence),
        counts={key: number for key, number in report.counts.items() if key[0] not in silence},
        agents=tuple(_without_silenced(agent, silence) for agent in report.agents),
    )


def _with_severities(report: FileReport, severities: tuple[Severity, ...]) -> FileReport:
    """Return a report with only the findings of these severities."""
    return msgspec.structs.replace(
        report,
        findings=tuple(finding for finding in report.findings if finding.severity in severities),
        counts={key: number for key, number in report.counts.items() if key[1] in severities},
        agents=tuple(_with_severities(agent, severities) for agent in report.agents),
    )


def _with_absolute_paths(report: FileReport) -> FileReport:
    file = msgspec.structs.replace(report.found, path=os.path.abspath(report.path))
    agents = tuple(_with_absolute_paths(agent) for agent in report.agents)
    return msgspec.structs.replace(report, found=file, agents=agents)
