"""Health report of a config directory: the results of `steno doctor` and `steno drift`, sorted by severity.

Each session is inspected separately (`inspect_session`), so that unchanged sessions are not read again; `health_of`
combines the inspections.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from steno.check.checkup import Policy
from steno.check.doctor import Diagnosis, InspectionScope, diagnose, expiring_sessions, inspection_of
from steno.check.drift import Observer
from steno.check.file_reports import check_file
from steno.errors import Unreadable
from steno.format.catalogue import Catalogue, version_key
from steno.report.diagnoses import DiagnosisBuilder, HealthDiagnosis, SessionInspection
from steno.report.drift_report import drift_rows, merge_drift, observe_files
from steno.report.session_references import SessionReferences
from steno.store.discovery import DiscoveredFile, Problem, problem_from_error, unreadable_problems


class ClientVersion(msgspec.Struct, frozen=True):
    """A Claude Code version found in the sessions."""

    name: str
    sessions: int
    unknown: int
    """Number of differences from the catalogue in records of this version."""


class HealthReport(msgspec.Struct, frozen=True):
    """Diagnoses and totals of a config directory."""

    cases: tuple[HealthDiagnosis, ...] = ()
    sessions: int = 0
    """Number of sessions found."""
    looked: int = 0
    """Number of sessions inspected so far."""
    broken: int = 0
    records: int = 0
    gaps: int = 0
    due: int = 0
    """Number of sessions that Claude Code deletes soon."""
    unkept: int = 0
    """Number of these sessions that are not archived."""
    unknown: int = 0
    strange: int = 0
    """Number of sessions with format drift."""
    empty: int = 0
    unread: int = 0
    cleanup_days: float = 0
    versions: tuple[ClientVersion, ...] = ()
    newest: str = ""
    """Latest Claude Code version covered by the catalogue."""

    @property
    def trouble(self) -> int:
        """Number of diagnoses that require action."""
        return sum(case.harm in ("damage", "risk") for case in self.cases)

    def of(self, harm: str) -> list[HealthDiagnosis]:
        """Return the diagnoses of one category."""
        return [case for case in self.cases if case.harm == harm]


def inspect_session(
    session_file: DiscoveredFile,
    catalogue: Catalogue,
    *,
    policy: Policy | None = None,
    progress: Callable[[int], None] | None = None,
) -> SessionInspection:
    """Inspect a session and its sub-agents; every file is read twice, and `progress` receives the bytes of both reads."""
    problems: list[Problem] = []
    try:
        report = check_file(session_file, problems=problems, policy=policy, judge="troubled", done=progress)
    except Unreadable as error:
        cause = error.__cause__
        problem = Problem("unreadable", session_file.path, str(error))
        problem = problem_from_error(session_file.path, cause) if isinstance(cause, OSError) else problem
        return SessionInspection(session_file, None, (), frozenset(), (problem,))
    observer = Observer(catalogue)
    # Read errors were recorded by `check_file`.
    observe_files((session_file, *session_file.agents), observer, problems=[], progress=progress)
    return SessionInspection(
        session_file,
        inspection_of(report),
        tuple(observer.drifts()),
        frozenset(observer.versions),
        tuple(problems),
        observer.records,
        observer.left_out,
    )


def health_of(
    config_folder: InspectionScope,
    inspection_results: Iterable[SessionInspection],
    now: float,
    *,
    problems: Sequence[Problem] = (),
    complete: bool = True,
    newest: str = "",
    options: str = "",
) -> HealthReport:
    """Combine the inspections so far; checks across files run only when `complete`."""
    inspections = list(inspection_results)
    session_checks = [inspection.sight for inspection in inspections if inspection.sight is not None]
    all_problems = [*problems, *(problem for look in inspections for problem in look.problems)]
    diagnosis = (
        diagnose(config_folder, session_checks, now, all_problems) if complete else _due_diagnosis(config_folder, now)
    )
    unread = unreadable_problems(all_problems, "special")
    drifts = drift_rows(merge_drift(look.drifts for look in inspections))
    unarchived = [due_session for due_session in diagnosis.due if not due_session.archived]
    builder = DiagnosisBuilder(SessionReferences(each.path for each in config_folder.files), options)
    return HealthReport(
        cases=(
            *builder.broken_sessions(session_checks),
            *builder.unreadable_paths(unread),
            *builder.due_for_deletion(unarchived, diagnosis.cleanup_days),
            *builder.large_files([large for session_check in session_checks for large in session_check.large]),
            *builder.format_drift(drifts, inspections),
            *builder.leftovers(diagnosis.leftovers),
            *builder.duplicate_sessions(diagnosis.copies),
        ),
        sessions=sum(session_file.place.role != "agent" for session_file in config_folder.files),
        looked=sum(look.session_file.place.role != "agent" for look in inspections),
        broken=sum(sight.broken is not None for sight in session_checks),
        records=sum(sight.records for sight in session_checks),
        gaps=sum(sight.gaps for sight in session_checks),
        due=len(diagnosis.due),
        unkept=len(unarchived),
        unknown=len(drifts),
        strange=sum(bool(look.drifts) for look in inspections),
        empty=sum(sight.empty for sight in session_checks),
        unread=len(unread),
        cleanup_days=diagnosis.cleanup_days,
        versions=_client_versions(inspections),
        newest=newest,
    )


def _due_diagnosis(config_folder: InspectionScope, now: float) -> Diagnosis:
    days, due = expiring_sessions(config_folder, now)
    return Diagnosis(cleanup_days=days, due=due)


def _client_versions(inspections: list[SessionInspection]) -> tuple[ClientVersion, ...]:
    names = sorted({name for inspection in inspections for name in inspection.versions}, key=version_key)
    rows = drift_rows(merge_drift(look.drifts for look in inspections))
    return tuple(
        ClientVersion(
            name, sum(name in look.versions for look in inspections), sum(name in row.versions for row in rows)
        )
        for name in reversed(names)
    )
