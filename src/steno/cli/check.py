"""`steno check`: what is wrong with sessions, and what each client would make of them."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from steno.check.files import FileReport, bytes_of, check_files, everything_below, with_agents
from steno.check.findings import SEVERITIES, Severity
from steno.check.policy import Policy
from steno.cli.findings import (
    explain_lines,
    problem_json,
    report_json,
    report_lines,
    rules_json,
    rules_lines,
)
from steno.cli.fit import wrapped
from steno.cli.names import Names, argument, title_of
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.pager import page
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.errors import NotFound, Unreadable
from steno.report import words
from steno.report.policy import policy_of
from steno.safe.terminal import ColourMode, Line
from steno.store.found import Found, Problem
from steno.store.library import find, roots_of

__all__ = ["command"]

_TROUBLE: Final = frozenset(("denied", "unreadable", "special"))
_GRAVE: Final[tuple[Severity, ...]] = SEVERITIES[:2]
_FOUND: Final = 1
_UNREAD: Final = 3


class _Asked(msgspec.Struct):
    """What was asked for, beside the names."""

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
    def shown(self) -> tuple[Severity, ...]:
        """The severities that are told one by one."""
        return SEVERITIES if self.everything or self.fail_on == "info" else SEVERITIES[:2]

    @property
    def failing(self) -> tuple[Severity, ...]:
        """The severities that make the command fail."""
        return SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]


@click.command("check", short_help="Say what is wrong with sessions, and what it means.")
@click.argument("names", metavar="[PATH|SESSION]...", nargs=-1)
@options(WHERE)
@click.option("--all", "everything", is_flag=True, help="Also what is odd and harmless (info).")
@click.option(
    "--silence", metavar="ID", multiple=True, help="Leave a rule out; `family.*` leaves all out."
)
@click.option(
    "--severity",
    metavar="ID=LEVEL",
    multiple=True,
    help="What a rule weighs: error, warning, info.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="Exit with 1 if there is anything as grave as this.",
)
@click.option("--rules", is_flag=True, help="List every rule instead.")
@click.option("--explain", metavar="ID", help="Explain one rule instead.")
@click.option(
    "--secrets", is_flag=True, help="List secrets that an export would mask, by family and place."
)
@options(JSON)
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts and editors.")
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(
    names: tuple[str, ...],
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Check session files: is anything lost, and what would each client resume?

    Without a name everything in the config folder is checked. PATH is a file or a folder; SESSION is
    a name as for `steno show`. Sub-agents are checked with their session. Nothing is changed.

    With --secrets, lists what `steno export` would mask instead: family, file, line, turn and tool,
    the public prefix of a token, its length and a hash. Equal hashes in one run are the same secret.
    The secret itself is never printed.

    Exit codes: 0 sound, 1 findings, 2 wrong usage, 3 something could not be read.
    """
    wanted = _Asked(**asked)
    _refuse_what_would_be_ignored(wanted, names)
    policy = policy_of(wanted.silence, wanted.severity)
    screen = Screen(color, width)
    if wanted.rules:
        if wanted.as_json:
            write_json(rules_json(policy))
        else:
            page(screen, rules_lines(policy, screen.width), wanted=not wanted.no_pager)
        return
    if wanted.explain is not None:
        screen.lines(explain_lines(wanted.explain, screen.width))
        return
    where = roots(root, demo=demo)
    run = _Run(wanted, policy, screen, again=where_to_look(root, demo=demo))
    run.look_for(names, where)
    if wanted.secrets:
        run.run_secrets()
    else:
        run.run()
    if code := run.exit_code:
        raise click.exceptions.Exit(code)


def _refuse_what_would_be_ignored(wanted: _Asked, names: tuple[str, ...]) -> None:
    if wanted.as_json and wanted.sarif:
        raise click.UsageError("--json and --sarif exclude each other")
    if wanted.rules and wanted.explain is not None:
        raise click.UsageError("--rules and --explain exclude each other")
    instead = "--rules" if wanted.rules else "--explain" if wanted.explain is not None else ""
    if instead and names:
        raise click.UsageError(f"{instead} says nothing about sessions")
    if instead and wanted.sarif:
        raise click.UsageError(f"{instead} and --sarif exclude each other")
    if wanted.secrets:
        ignored = {
            "--rules": wanted.rules,
            "--explain": wanted.explain is not None,
            "--sarif": wanted.sarif,
            "--all": wanted.everything,
            "--silence": bool(wanted.silence),
            "--severity": bool(wanted.severity),
        }
        for option, given in ignored.items():
            if given:
                raise click.UsageError(f"--secrets cannot be combined with {option}")
    if wanted.explain is not None and wanted.as_json:
        raise click.UsageError("--explain and --json exclude each other; there is --rules --json")


class _Run:
    """One check of some files, and what it came to."""

    def __init__(self, wanted: _Asked, policy: Policy, screen: Screen, *, again: str) -> None:
        self._wanted = wanted
        self._policy = policy
        self._screen = screen
        self._again = again
        self._files: list[Found] = []
        self._problems: list[Problem] = []
        self._refused: list[tuple[str, Unreadable]] = []
        self._whole = False
        self._tally: Counter[str] = Counter()
        self._broken: list[str] = []
        self._names = Names(())
        self._called: dict[str, str] = {}
        """What the user called a session, where that still fits it tomorrow."""

    def look_for(self, names: tuple[str, ...], where: tuple[str, ...] | None) -> None:
        """Find what is to be checked."""
        files: dict[str, Found] = {}
        self._whole = not names
        for name in names or roots_of(where):
            try:
                found = self._named(name, where) if names else self._below(name)
            except Unreadable as error:
                self._refused.append((name, error))
            else:
                files.update((each.path, each) for each in found)
                if names and len(found) == 1 and name != "last":
                    self._called[found[0].path] = name
        self._files = list(files.values())
        # A short id must fit no other session, checked or not; only whole folders are known.
        self._names = Names(files) if self._whole else Names(())

    def _below(self, folder: str) -> list[Found]:
        # Not to have a config folder yet is the usual case on a new machine.
        return everything_below(folder, self._problems) if os.path.lexists(folder) else []

    def _named(self, name: str, where: tuple[str, ...] | None) -> list[Found]:
        is_path = name.startswith(".") or os.sep in name
        if is_path and os.path.isdir(name):
            return everything_below(name, self._problems)
        try:
            return [with_agents(find(name, where, archived=False), self._problems)]
        except (NotFound, Unreadable):
            if os.path.isdir(name):
                return everything_below(name, self._problems)
            raise

    @property
    def _trouble(self) -> list[Problem]:
        """What was found and could not be read."""
        return [problem for problem in self._problems if problem.kind in _TROUBLE]

    @property
    def _unread(self) -> list[Problem]:
        """What was named and could not be read."""
        return [Problem("unreadable", name, str(error)) for name, error in self._refused]

    @property
    def exit_code(self) -> int:
        """What to leave with."""
        trouble = self._refused or self._trouble
        failed = any(self._tally[severity] for severity in self._wanted.failing)
        return _UNREAD if trouble else _FOUND if failed else 0

    def run(self) -> None:
        """Check everything and tell it."""
        with Progress(sum(map(bytes_of, self._files)), "Checking") as bar:
            if self._wanted.sarif:
                self._sarif(bar)
            elif self._wanted.as_json:
                self._json(bar)
            else:
                page(self._screen, self._lines(bar), wanted=not self._wanted.no_pager)
        self._complain()
        if not (self._wanted.sarif or self._wanted.as_json):
            self._finish()

    def run_secrets(self) -> None:
        """List the secrets that masking would hide; the secrets themselves are never shown."""
        from steno.cli.secret_findings import secret_lines, secrets_json, secrets_summary
        from steno.report.secret_scan import FileSecrets, scan_files

        scanned: list[FileSecrets] = []

        def lines(bar: Progress) -> Iterator[Line]:
            for file in scan_files(self._files, bar.add):
                scanned.append(file)
                if file.findings:
                    bar.clear()
                    yield from secret_lines(file, self._screen.width)
                    yield []
            bar.clear()
            yield from secrets_summary(scanned, self._screen.width)

        with Progress(sum(map(bytes_of, self._files)), "Scanning") as bar:
            if self._wanted.as_json:
                scanned += scan_files(self._files, bar.add)
                bar.clear()
                write_json(secrets_json(scanned))
            else:
                page(self._screen, lines(bar), wanted=not self._wanted.no_pager)
        self._problems += [
            Problem("unreadable", file.found.path, file.error) for file in scanned if file.error
        ]
        self._complain()
        self._tally["error"] = sum(len(file.findings) for file in scanned)

    def _reports(self, bar: Progress) -> Iterator[FileReport]:
        programs = self._wanted.as_json or self._wanted.sarif
        reports = check_files(
            self._files,
            problems=self._problems,
            policy=Policy(severity=self._policy.severity),
            judge="all" if programs or not self._whole else "troubled",
            done=bar.add,
        )
        for whole in reports:
            report = _spoken(whole, self._policy.silence)
            self._tally["silenced"] += whole.number(*_GRAVE) - report.number(*_GRAVE)
            self._tally["sessions" if report.role != "agent" else "agents"] += 1
            self._tally["sound"] += report.sound and report.role != "agent"
            for severity in SEVERITIES:
                self._tally[severity] += report.number(severity)
            yield report

    def _sarif(self, bar: Progress) -> None:
        from steno.check.sarif import sarif

        reports = list(self._absolute(bar))
        trouble = [
            msgspec.structs.replace(each, path=os.path.abspath(each.path))
            for each in (*self._unread, *self._trouble)
        ]
        log = sarif(reports, trouble, base=os.getcwd())
        bar.clear()
        write_json(log)

    def _absolute(self, bar: Progress) -> Iterator[FileReport]:
        for report in self._reports(bar):
            yield _absolute(_only(report, self._wanted.shown))

    def _json(self, bar: Progress) -> None:
        files = [
            each
            for report in self._reports(bar)
            for each in report_json(report, self._wanted.shown)
        ]
        bar.clear()
        write_json(
            {
                "sessions": self._tally["sessions"],
                "sound": self._tally["sound"],
                "errors": self._tally["error"],
                "warnings": self._tally["warning"],
                "infos": self._tally["info"],
                "files": files,
                "problems": [problem_json(each) for each in (*self._unread, *self._problems)],
            }
        )

    def _lines(self, bar: Progress) -> Iterator[Line]:
        shown = self._wanted.shown
        alone = not self._whole and len(self._files) == 1
        for report in self._reports(bar):
            if not alone and not report.number(*shown):
                continue
            bar.clear()
            if not report.sound and not _is_empty(report):
                self._broken.append(report.path)
            short = self._names.short(report.path) if self._whole else ""
            title = title_of(report.found)
            yield from report_lines(report, shown, self._screen.width, short=short, title=title)
            yield []
        bar.clear()
        yield from self._summary()

    def _summary(self) -> Iterator[Line]:
        tally = self._tally
        if not (tally["sessions"] or tally["agents"]):
            if not self._refused:
                said = f"Nothing to check: no session here. `{program()} demo` writes some."
                yield from wrapped([said], self._screen.width)
            return
        sessions = words.count(tally["sessions"], "session")
        if tally["sessions"] == 1:
            said = f"{sessions}, sound" if tally["sound"] else f"{sessions}, not sound"
        else:
            said = f"{sessions}, {tally['sound']:,} sound"
        if tally["silenced"]:
            said += f" ({words.count(tally['silenced'], 'finding')} silenced)"
        agents = words.count(tally["agents"], "sub-agent")
        parts: Line = [
            (f"{said}" if tally["sessions"] else agents, "bold"),
            f", {agents} without a session" if tally["agents"] and tally["sessions"] else "",
        ]
        styles = (("error", "red"), ("warning", "yellow"), ("info", "dim"))
        for severity, style in styles:
            if tally[severity]:
                noun = "remark" if severity == "info" else severity
                parts += ["  ", (words.count(tally[severity], noun), style)]
        if tally["info"] and "info" not in self._wanted.shown:
            parts += [("  (--all shows them)", "dim")]
        yield from wrapped(parts, self._screen.width)

    def _complain(self) -> None:
        for _, error in self._refused:
            complain(str(error), error.hint)
        if self._trouble:
            first = self._trouble[0]
            why = f": {first.message}" if first.message else ""
            number = words.count(len(self._trouble), "path")
            complain(f"{number} could not be read, such as {first.path}{why}")

    def _finish(self) -> None:
        steps: list[str] = []
        if self._broken:
            path = self._broken[0]
            name = argument(self._called.get(path) or self._names.again(path))
            steps += [f"{program()} repair{self._again} {name}"] if name else []
            steps.append(f"{program()} check --explain ID")
        self._screen.next_steps(steps)


def _is_empty(report: FileReport) -> bool:
    """Say whether there is nothing in a file to mend."""
    return any(rule == "chain.empty" for rule, _ in report.counts)


def _spoken(report: FileReport, silence: frozenset[str]) -> FileReport:
    """Return a report without the rules that are silenced."""
    return msgspec.structs.replace(
        report,
        findings=tuple(each for each in report.findings if each.id not in silence),
        counts={key: number for key, number in report.counts.items() if key[0] not in silence},
        agents=tuple(_spoken(agent, silence) for agent in report.agents),
    )


def _only(report: FileReport, shown: tuple[Severity, ...]) -> FileReport:
    """Return a report without what is not to be told."""
    return msgspec.structs.replace(
        report,
        findings=tuple(each for each in report.findings if each.severity in shown),
        counts={key: number for key, number in report.counts.items() if key[1] in shown},
        agents=tuple(_only(agent, shown) for agent in report.agents),
    )


def _absolute(report: FileReport) -> FileReport:
    found = msgspec.structs.replace(report.found, path=os.path.abspath(report.path))
    agents = tuple(_absolute(agent) for agent in report.agents)
    return msgspec.structs.replace(report, found=found, agents=agents)
