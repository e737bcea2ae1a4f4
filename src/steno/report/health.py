"""How a config folder is: what `steno doctor` and `steno drift` see of it, sorted by harm.

Each file is looked at by itself (`look_at`), so that what did not change is not read again; what
was seen is put together (`health_of`) as often as somebody asks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from steno.check.doctor import (
    Diagnosis,
    Patient,
    diagnose,
    due_of,
    sight_of,
)
from steno.check.drift import Observer
from steno.check.files import check_file
from steno.check.policy import Policy
from steno.errors import Unreadable
from steno.format.catalogue import Catalogue, version_key
from steno.report.cases import Case, Cases, Look
from steno.report.drift import merged, observe, rows_of
from steno.report.names import Names
from steno.store.found import Found, Problem, problem_of

__all__ = ["Health", "Version", "health_of", "look_at"]

_TROUBLE: Final = frozenset(("denied", "unreadable", "special"))


class Version(msgspec.Struct, frozen=True):
    """What the client of one version wrote."""

    name: str
    sessions: int
    unknown: int
    """How many differences from the catalogue there are in it."""


class Health(msgspec.Struct, frozen=True):
    """How it stands."""

    cases: tuple[Case, ...] = ()
    sessions: int = 0
    """How many were found."""
    looked: int = 0
    """How many of them were looked at so far."""
    broken: int = 0
    records: int = 0
    gaps: int = 0
    due: int = 0
    """How many the client deletes soon."""
    unkept: int = 0
    """How many of them are not in the archive."""
    unknown: int = 0
    strange: int = 0
    """In how many sessions there is something unknown."""
    empty: int = 0
    unread: int = 0
    cleanup_days: float = 0
    versions: tuple[Version, ...] = ()
    newest: str = ""
    """Up to which version the format is known."""

    @property
    def trouble(self) -> int:
        """How many cases somebody should do something about."""
        return sum(case.harm in ("damage", "risk") for case in self.cases)

    def of(self, harm: str) -> list[Case]:
        """Return the cases of one kind."""
        return [case for case in self.cases if case.harm == harm]


def look_at(
    found: Found,
    facts: Catalogue,
    *,
    policy: Policy | None = None,
    done: Callable[[int], None] | None = None,
) -> Look:
    """Look at a session and its sub-agents; `done` hears of every byte twice."""
    problems: list[Problem] = []
    try:
        report = check_file(found, problems=problems, policy=policy, judge="troubled", done=done)
    except Unreadable as error:
        why = error.__cause__
        problem = Problem("unreadable", found.path, str(error))
        problem = problem_of(found.path, why) if isinstance(why, OSError) else problem
        return Look(found, None, (), frozenset(), (problem,))
    observer = Observer(facts)
    # What cannot be read was noted the first time.
    observe((found, *found.agents), observer, problems=[], done=done)
    return Look(
        found,
        sight_of(report),
        tuple(observer.drifts()),
        frozenset(observer.versions),
        tuple(problems),
        observer.records,
        observer.left_out,
    )


def health_of(
    patient: Patient,
    looks: Iterable[Look],
    now: float,
    *,
    problems: Sequence[Problem] = (),
    whole: bool = True,
    newest: str = "",
    where: str = "",
) -> Health:
    """Put together what was seen so far; what compares files with each other only when `whole`."""
    seen = list(looks)
    sights = [look.sight for look in seen if look.sight is not None]
    met = [*problems, *(problem for look in seen for problem in look.problems)]
    diagnosis = diagnose(patient, sights, now, met) if whole else _due_only(patient, now)
    unread = [problem for problem in met if problem.kind in _TROUBLE]
    drifts = rows_of(merged(look.drifts for look in seen))
    unkept = [each for each in diagnosis.due if not each.archived]
    told = Cases(Names(each.path for each in patient.files), where)
    return Health(
        cases=(
            *told.broken(sights),
            *told.unread(unread),
            *told.due(unkept, diagnosis.cleanup_days),
            *told.large([large for sight in sights for large in sight.large]),
            *told.drift(drifts, seen),
            *told.leftovers(diagnosis.leftovers),
            *told.copies(diagnosis.copies),
        ),
        sessions=sum(found.place.role != "agent" for found in patient.files),
        looked=sum(look.found.place.role != "agent" for look in seen),
        broken=sum(sight.broken is not None for sight in sights),
        records=sum(sight.records for sight in sights),
        gaps=sum(sight.gaps for sight in sights),
        due=len(diagnosis.due),
        unkept=len(unkept),
        unknown=len(drifts),
        strange=sum(bool(look.drifts) for look in seen),
        empty=sum(sight.empty for sight in sights),
        unread=len(unread),
        cleanup_days=diagnosis.cleanup_days,
        versions=_versions(seen),
        newest=newest,
    )


def _due_only(patient: Patient, now: float) -> Diagnosis:
    days, due = due_of(patient, now)
    return Diagnosis(cleanup_days=days, due=due)


def _versions(looks: list[Look]) -> tuple[Version, ...]:
    names = sorted({name for look in looks for name in look.versions}, key=version_key)
    rows = rows_of(merged(look.drifts for look in looks))
    return tuple(
        Version(
            name,
            sum(name in look.versions for look in looks),
            sum(name in row.versions for row in rows),
        )
        for name in reversed(names)
    )
