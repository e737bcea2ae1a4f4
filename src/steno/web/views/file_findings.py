"""Findings of `steno check` for the files of a session, cached while the files are unchanged."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from steno.check.file_reports import FileReport, check_file, with_agents
from steno.check.findings import SEVERITIES, Finding, Severity
from steno.errors import NotFound
from steno.index.sync.scan import path_from_column
from steno.report import humanize
from steno.report.session_references import SessionReferences, shell_argument
from steno.store.discovery import DiscoveredFile, Problem, discover_file
from steno.web.state.app_state import AppState
from steno.web.state.caches import SessionRef
from steno.web.urls import Links

_MAX_REPORTS: Final = 24
_MAX_FINDINGS: Final = 40
_SEVERITY_ICONS: Final = {"error": "cross", "warning": "warn", "info": "dot"}
_SEVERITY_CLASSES: Final = {"error": "bad", "warning": "warn", "info": "dim"}

_lock: Final = threading.Lock()
_Fingerprint = tuple[tuple[str, int, int], ...]
_reports: Final[OrderedDict[_Fingerprint, FileReport]] = OrderedDict()


class FindingView(msgspec.Struct):
    """A finding; repeated findings of a rule are combined."""

    severity: Severity
    id: str
    message: str
    hint: str
    count_label: str
    href: str = ""
    agent: str = ""
    """Sub-agent whose file has the finding; empty for the main file."""

    @property
    def icon(self) -> str:
        """Return the icon of the severity."""
        return _SEVERITY_ICONS[self.severity]

    @property
    def css_class(self) -> str:
        """Return the CSS class of the severity."""
        return _SEVERITY_CLASSES[self.severity]


class FileFindings:
    """The findings section of a page."""

    def __init__(self, findings: Sequence[FindingView], problem_count: int, command: str, verdict: str) -> None:
        self.findings = findings
        self.problem_count = problem_count
        self.command = command
        self.verdict = verdict


def session_findings(app_state: AppState, session_ref: SessionRef, links: Links, agent: str = "") -> FileFindings:
    """Return the findings of a session.

    Raises:
        NotFound: The file does not exist.
        Unreadable: The file cannot be read.
    """
    report = check_session(session_ref)
    findings = [
        finding
        for file in report.files
        for finding in _finding_views(file, links, session_ref.key, agent if file is report else _subagent_of(file))
    ]
    findings.sort(key=lambda each: SEVERITIES.index(each.severity))
    problem_count = report.number("error", "warning")
    newest = report.newest
    verdict = ""
    if newest is not None and report.lost:
        lost_messages = humanize.count(report.lost, "message")
        verdict = f"On resume, Claude Code would omit {lost_messages} of {newest.there:,}."
    command = _fix_command(app_state, session_ref, "repair" if report.number("error") else "check")
    return FileFindings(findings[:_MAX_FINDINGS], problem_count, command, verdict)


def check_session(session_ref: SessionRef) -> FileReport:
    """Return the findings of `steno check` in the files of a session and its sub-agents.

    Raises:
        NotFound: The file does not exist.
        Unreadable: The file cannot be read.
    """
    if session_ref.is_deleted:
        raise NotFound(
            "the session file is only in the archive",
            hint=f"Run `steno archive --verify {session_ref.id}` to check the archived copy.",
        )
    return _cached_report(discover_file(session_ref.path))


def _subagent_of(report: FileReport) -> str:
    return report.found.place.agent_id


def _finding_views(report: FileReport, links: Links, key: str, agent: str) -> Iterator[FindingView]:
    """Yield the findings of one file, one per rule at its highest severity."""
    seen_ids: set[str] = set()
    for finding in sorted(report.findings, key=lambda each: SEVERITIES.index(each.severity)):
        if finding.id in seen_ids:
            continue
        seen_ids.add(finding.id)
        times = report.counts.get((finding.id, finding.severity), 1)
        yield FindingView(
            finding.severity,
            finding.id,
            finding.message,
            finding.hint,
            f"{times:,} times" if times > 1 else "",
            _record_url(report, finding, links, key, agent),
            agent if report.role == "agent" else "",
        )


def _record_url(report: FileReport, finding: Finding, links: Links, key: str, agent: str) -> str:
    """Return the URL of the record of a finding."""
    record_place = finding.location
    if not report.is_converted or not record_place.uuid:
        return links.record(key, record_place.span.offset, agent)
    return links.inside(key, f"record/{quote(record_place.uuid, safe='')}", agent)


def _fix_command(app_state: AppState, session_ref: SessionRef, name: str) -> str:
    """Return the command to check or repair the file; empty if its path cannot be quoted."""
    path_argument = session_ref.path
    if not session_ref.subagent:
        with app_state.index() as index:
            rows = index.connection.execute("SELECT path FROM files WHERE gone IS NULL")
            path_argument = SessionReferences(path_from_column(path) for (path,) in rows).argument_for(session_ref.path)
    quoted = shell_argument(path_argument)
    return f"steno {name}{app_state.location_options} {quoted}" if quoted else ""


def _cached_report(discovered: DiscoveredFile) -> FileReport:
    problems: list[Problem] = []
    with_subagents = with_agents(discovered, problems)
    key = tuple((file.path, file.size, file.mtime_ns) for file in (with_subagents, *with_subagents.agents))
    with _lock:
        cached = _reports.get(key)
        if cached is not None:
            _reports.move_to_end(key)
            return cached
    report = check_file(with_subagents, problems=problems, judge="troubled")
    with _lock:
        _reports[key] = report
        while len(_reports) > _MAX_REPORTS:
            _reports.popitem(last=False)
    return report
