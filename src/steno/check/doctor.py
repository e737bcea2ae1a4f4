"""A whole config folder: what is broken in it, what is about to go, and what lies about."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from steno.check.files import Done, FileReport, bytes_of, check_files, everything_below
from steno.check.findings import Severity
from steno.check.policy import Counts, Policy
from steno.store.archive.gone import is_kept
from steno.store.found import Found, Problem
from steno.store.upkeep import SOON, Leftover, cleanup_days, copies, is_config, leftovers

__all__ = [
    "Broken",
    "Diagnosis",
    "Due",
    "Large",
    "Patient",
    "Sight",
    "bytes_of",
    "diagnose",
    "due_of",
    "examine",
    "sight_of",
    "visit",
]

LARGE_FILE: Final = 50_000_000
LARGE_LINE: Final = 10_000_000
_DAY: Final = 86_400
_EMPTY: Final = "chain.empty"


class Broken(msgspec.Struct, frozen=True):
    """A session that clients have trouble with."""

    found: Found
    lost: int
    """How many messages the newest client would not send."""
    total: int
    errors: int
    warnings: int
    words: str = ""
    """What the newest client makes of it."""
    mendable: bool = True
    """Whether there is a conversation in it, so that a repair is worth trying."""


class Due(msgspec.Struct, frozen=True):
    """A session that the client's cleanup will delete."""

    found: Found
    days: float
    """How many days from now; less than none when it is overdue."""
    archived: bool = False
    """Whether the archive has it, just as it is."""


class Large(msgspec.Struct, frozen=True):
    """A file, or a line of it, that is hard to work with."""

    found: Found
    longest: int
    """The bytes of its longest line."""


class Sight(msgspec.Struct, frozen=True):
    """What is kept of a look at one file; the findings themselves are let go."""

    found: Found
    sound: bool
    empty: bool
    """Whether there is nothing to resume in it and nothing wrong either."""
    records: int
    gaps: int
    counts: Counts
    """How often each rule was met, sub-agents' files included."""
    broken: Broken | None
    large: tuple[Large, ...]


class Patient(msgspec.Struct, frozen=True):
    """What there is to examine."""

    roots: tuple[str, ...]
    files: tuple[Found, ...]

    @property
    def size(self) -> int:
        """How many bytes will be read."""
        return sum(map(bytes_of, self.files))


class Diagnosis(msgspec.Struct):
    """What was found; empty lists where there is nothing to say."""

    sessions: int = 0
    sound: int = 0
    size: int = 0
    cleanup_days: float = 0
    broken: list[Broken] = []
    empty: list[Found] = []
    """Files in which there is nothing to resume and nothing wrong either."""
    due: list[Due] = []
    large: list[Large] = []
    leftovers: list[Leftover] = []
    copies: list[tuple[Found, ...]] = []

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.broken or self.due or self.large or self.leftovers or self.copies)


def visit(roots: Sequence[str], problems: list[Problem]) -> Patient:
    """Find what there is in some folders."""
    files: dict[str, Found] = {}
    for root in roots:
        files.update((found.path, found) for found in everything_below(root, problems))
    return Patient(tuple(roots), tuple(files.values()))


def examine(
    patient: Patient,
    now: float,
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    done: Done | None = None,
) -> Diagnosis:
    """Look at everything. What cannot be read goes to `problems`."""
    reports = check_files(
        patient.files, problems=problems, policy=policy, judge="troubled", done=done
    )
    return diagnose(patient, map(sight_of, reports), now, problems)


def diagnose(
    patient: Patient, sights: Iterable[Sight], now: float, problems: list[Problem]
) -> Diagnosis:
    """Put together what was seen in each file, and what is only seen from above."""
    diagnosis = Diagnosis(size=patient.size)
    for sight in sights:
        _take(diagnosis, sight)
    diagnosis.broken.sort(key=_loss)
    diagnosis.large.sort(key=lambda each: (-each.found.size, each.found.path))
    sessions = [found for found in patient.files if found.place.role != "agent"]
    for config in filter(is_config, patient.roots):
        names = [found.place.session_id for found in sessions if found.root == config]
        diagnosis.leftovers += leftovers(config, names, problems)
    diagnosis.cleanup_days, diagnosis.due = due_of(patient, now)
    diagnosis.copies = copies(sessions, problems)
    return diagnosis


def due_of(patient: Patient, now: float) -> tuple[float, list[Due]]:
    """Return for how long the client keeps sessions, and which it deletes soon, the first first."""
    days, due = 0.0, list[Due]()
    for config in filter(is_config, patient.roots):
        days = cleanup_days(config)
        here = (found for found in patient.files if found.root == config)
        due += _due((found for found in here if found.place.role != "agent"), now, days)
    return days, sorted(due, key=lambda each: (each.days, each.found.path))


def sight_of(report: FileReport) -> Sight:
    """Keep of a report what will be told."""
    counts = Counter[tuple[str, Severity]]()
    for file in report.files:
        counts.update(file.counts)
    empty = sum(number for (rule, _), number in report.counts.items() if rule == _EMPTY)
    verdict = report.newest
    broken = Broken(
        report.found,
        report.lost,
        verdict.there if verdict else 0,
        report.number("error"),
        report.number("warning"),
        verdict.words if verdict else "",
        mendable=not empty,
    )
    large = (file for file in report.files if file.size > LARGE_FILE or file.longest > LARGE_LINE)
    return Sight(
        report.found,
        report.sound,
        # Clients leave these behind when they never get to a prompt: nothing is lost.
        empty=bool(empty) and report.number("error", "warning") == empty,
        records=sum(file.records for file in report.files),
        gaps=sum(file.gaps for file in report.files),
        counts=dict(counts),
        # An interrupted or half-known session works; only what is lost or refused is broken.
        broken=broken if not report.sound and (broken.lost or broken.errors) else None,
        large=tuple(Large(file.found, file.longest) for file in large),
    )


def _take(diagnosis: Diagnosis, sight: Sight) -> None:
    if sight.empty:
        diagnosis.empty.append(sight.found)
        return
    if sight.found.place.role != "agent":
        diagnosis.sessions += 1
        diagnosis.sound += sight.sound
    if sight.broken is not None:
        diagnosis.broken.append(sight.broken)
    diagnosis.large += sight.large


def _loss(broken: Broken) -> tuple[int, int, str]:
    return -broken.lost, -broken.errors, broken.found.path


def _due(sessions: Iterable[Found], now: float, kept: float) -> list[Due]:
    left = [(found, found.mtime_ns / 1e9 + kept * _DAY - now) for found in sessions]
    return [
        Due(found, seconds / _DAY, is_kept(found))
        for found, seconds in left
        if seconds < SOON * _DAY
    ]
