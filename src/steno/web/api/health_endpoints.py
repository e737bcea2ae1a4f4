"""`/api/v1/health` and `/api/v1/drift`: results of the background check so far."""

import msgspec

from steno.check.drift_model import Drift, sort_drifts
from steno.format.catalogue import catalogue, version_key
from steno.report.clock import iso_time
from steno.report.diagnoses import AffectedSession
from steno.report.diagnoses import HealthDiagnosis as Found
from steno.report.drift_report import merge_drift
from steno.web.api.parameters import Parameters
from steno.web.api.schemas import (
    Case,
    CaseSession,
    Check,
    ClientVersion,
    Difference,
    DriftReport,
    HealthReport,
    IndexState,
)
from steno.web.state.app_state import AppState


def get_health(app_state: AppState, _path: dict[str, str], _parameters: Parameters) -> HealthReport:
    """Return the state of all sessions, and start a new check unless one has just ended."""
    app_state.health_monitor.start_check()
    report, state = app_state.health_monitor.health, app_state.index_status
    sessions = app_state.keys_and_titles_at([named.path for case in report.cases for named in case.sessions])
    return HealthReport(
        check=_check_schema(app_state),
        index=IndexState(syncing=state.syncing, updated=iso_time(state.updated or None), problem=state.problem),
        sessions=report.sessions,
        checked_sessions=report.looked,
        broken_sessions=report.broken,
        empty_files=report.empty,
        records=report.records,
        gaps=report.gaps,
        due_sessions=report.due,
        due_not_archived=report.unkept,
        cleanup_days=report.cleanup_days,
        unreadable_paths=report.unread,
        differences=report.unknown,
        known_up_to=catalogue().newest,
        cases=[_case_schema(case, sessions) for case in report.cases],
        versions=[
            ClientVersion(version=each.name, sessions=each.sessions, differences=each.unknown)
            for each in report.versions
        ],
    )


def _check_schema(app_state: AppState) -> Check:
    now = app_state.health_monitor.progress
    return Check(
        running=now.running,
        complete=bool(now.last_ended),
        bytes_done=now.done,
        bytes_planned=now.planned,
        ended=iso_time(now.last_ended or None),
        problem=now.problem,
    )


def _case_schema(case: Found, sessions: dict[str, tuple[str, str]]) -> Case:
    return Case(
        harm=case.harm,
        id=case.id,
        title=case.title,
        description=case.means,
        note=case.note,
        commands=list(case.commands),
        sessions=[_session_schema(named, sessions) for named in case.sessions],
        more_sessions=case.more,
    )


def _session_schema(named: AffectedSession, sessions: dict[str, tuple[str, str]]) -> CaseSession:
    key, title = sessions.get(named.path, ("", ""))
    return CaseSession(key=key or None, id=named.id, title=title, about=named.about)


def get_drift(app_state: AppState, _path: dict[str, str], _parameters: Parameters) -> DriftReport:
    """Return the drift of all files: content that is not in the catalogue."""
    app_state.health_monitor.start_check()
    inspections = app_state.health_monitor.inspections
    files = {
        discovered.path
        for inspection in inspections
        for discovered in (inspection.session_file, *inspection.session_file.agents)
    }
    versions = {version for look in inspections for version in look.versions}
    return DriftReport(
        check=_check_schema(app_state),
        catalogue=catalogue().newest,
        files=len(files),
        records=sum(look.records for look in inspections),
        versions=sorted(versions, key=version_key),
        left_out=sum(look.left_out for look in inspections),
        drift=[_difference_schema(each) for each in sort_drifts(merge_drift(look.drifts for look in inspections))],
    )


def _difference_schema(drift: Drift) -> Difference:
    return msgspec.convert(msgspec.to_builtins(drift), Difference)
