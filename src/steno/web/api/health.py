"""`/api/v1/health` and `/api/v1/drift`: what the check in the background has found so far."""

import msgspec

from steno.check.observed import Drift, ordered
from steno.format.catalogue import catalogue, version_key
from steno.report.cases import Case as Found
from steno.report.cases import Named
from steno.report.clock import iso
from steno.report.drift import merged
from steno.report.keys import titled_at
from steno.web.api.models.health import (
    Case,
    CaseSession,
    Check,
    ClientVersion,
    Difference,
    DriftReport,
    HealthReport,
    IndexState,
)
from steno.web.api.parameters import Parameters
from steno.web.house import House, NotReady


def health(house: House, _path: dict[str, str], _parameters: Parameters) -> HealthReport:
    """Return the state of all sessions, and begin a new check unless one has just ended."""
    house.ward.look()
    found, state = house.ward.health, house.state
    known = _known(house, [each.path for case in found.cases for each in case.sessions])
    return HealthReport(
        check=_check(house),
        index=IndexState(
            syncing=state.syncing, updated=iso(state.fresh or None), problem=state.problem
        ),
        sessions=found.sessions,
        checked_sessions=found.looked,
        broken_sessions=found.broken,
        empty_files=found.empty,
        records=found.records,
        gaps=found.gaps,
        due_sessions=found.due,
        due_not_archived=found.unkept,
        cleanup_days=found.cleanup_days,
        unreadable_paths=found.unread,
        differences=found.unknown,
        known_up_to=catalogue().newest,
        cases=[_case(case, known) for case in found.cases],
        versions=[
            ClientVersion(version=each.name, sessions=each.sessions, differences=each.unknown)
            for each in found.versions
        ],
    )


def _check(house: House) -> Check:
    now = house.ward.round
    return Check(
        running=now.at_work,
        complete=bool(now.ended),
        bytes_done=now.done,
        bytes_planned=now.planned,
        ended=iso(now.ended or None),
        problem=now.problem,
    )


def _known(house: House, paths: list[str]) -> dict[str, tuple[str, str]]:
    """Return the keys and titles of the sessions at some paths."""
    try:
        with house.index() as index:
            return titled_at(index.connection, paths)
    except NotReady:
        return {}


def _case(case: Found, known: dict[str, tuple[str, str]]) -> Case:
    return Case(
        harm=case.harm,
        id=case.id,
        title=case.title,
        description=case.means,
        note=case.note,
        commands=list(case.commands),
        sessions=[_session(each, known) for each in case.sessions],
        more_sessions=case.more,
    )


def _session(named: Named, known: dict[str, tuple[str, str]]) -> CaseSession:
    key, title = known.get(named.path, ("", ""))
    return CaseSession(key=key or None, id=named.id, title=title, about=named.about)


def drift(house: House, _path: dict[str, str], _parameters: Parameters) -> DriftReport:
    """Return what files contain that the catalogue does not know."""
    house.ward.look()
    looks = house.ward.looks
    files = {each.path for look in looks for each in (look.found, *look.found.agents)}
    versions = {version for look in looks for version in look.versions}
    return DriftReport(
        check=_check(house),
        catalogue=catalogue().newest,
        files=len(files),
        records=sum(look.records for look in looks),
        versions=sorted(versions, key=version_key),
        left_out=sum(look.left_out for look in looks),
        drift=[_difference(each) for each in ordered(merged(look.drifts for look in looks))],
    )


def _difference(drift: Drift) -> Difference:
    return msgspec.convert(msgspec.to_builtins(drift), Difference)
