"""Diagnoses a config folder: broken sessions, sessions to be deleted soon, large files, leftovers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from steno.check.checkup import Counts, Policy
from steno.check.file_reports import FileReport, ProgressCallback, check_files, find_all_files, total_bytes
from steno.check.findings import Severity
from steno.store.archive.catalogue import is_archived
from steno.store.client_folders import (
    CLEANUP_WARNING_DAYS,
    Leftover,
    cleanup_days,
    find_copies,
    find_leftovers,
    is_config_folder,
)
from steno.store.discovery import DiscoveredFile, Problem

LARGE_FILE: Final = 50_000_000
LARGE_LINE: Final = 10_000_000
_DAY_SECONDS: Final = 86_400
_EMPTY_RULE: Final = "chain.empty"


class BrokenSession(msgspec.Struct, frozen=True):
    """A session that clients have trouble with."""

    found: DiscoveredFile
    lost: int
    """How many messages the newest client would not send."""
    total: int
    errors: int
    warnings: int
    words: str = ""
    """What the newest client makes of it."""
    mendable: bool = True
    """Whether there is a conversation in it, so that a repair is worth trying."""


class ExpiringSession(msgspec.Struct, frozen=True):
    """A session that the client's cleanup will delete."""

    found: DiscoveredFile
    days: float
    """How many days from now; less than none when it is overdue."""
    archived: bool = False
    """Whether the archive has it, just as it is."""


class LargeFile(msgspec.Struct, frozen=True):
    """A file, or a line of it, that is hard to work with."""

    found: DiscoveredFile
    longest: int
    """The bytes of its longest line."""


class Inspection(msgspec.Struct, frozen=True):
    """What is kept of a look at one file; the findings themselves are let go."""

    found: DiscoveredFile
    sound: bool
    empty: bool
    """Whether there is nothing to resume in it and nothing wrong either."""
    records: int
    gaps: int
    counts: Counts
    """How often each rule was met, sub-agents' files included."""
    broken: BrokenSession | None
    large: tuple[LargeFile, ...]


class InspectionScope(msgspec.Struct, frozen=True):
    """What there is to examine."""

    roots: tuple[str, ...]
    files: tuple[DiscoveredFile, ...]

    @property
    def size(self) -> int:
        """How many bytes will be read."""
        return sum(map(total_bytes, self.files))


class Diagnosis(msgspec.Struct):
    """What was found; empty lists where there is nothing to say."""

    sessions: int = 0
    sound: int = 0
    size: int = 0
    cleanup_days: float = 0
    broken: list[BrokenSession] = []
    empty: list[DiscoveredFile] = []
    """Files in which there is nothing to resume and nothing wrong either."""
    due: list[ExpiringSession] = []
    large: list[LargeFile] = []
    leftovers: list[Leftover] = []
    copies: list[tuple[DiscoveredFile, ...]] = []

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.broken or self.due or self.large or self.leftovers or self.copies)


def collect_files(roots: Sequence[str], problems: list[Problem]) -> InspectionScope:
    """Find what there is in some folders."""
    files: dict[str, DiscoveredFile] = {}
    for root in roots:
        files.update((session_file.path, session_file) for session_file in find_all_files(root, problems))
    return InspectionScope(tuple(roots), tuple(files.values()))


def inspect_files(
    scope: InspectionScope,
    now: float,
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    done: ProgressCallback | None = None,
) -> Diagnosis:
    """Look at everything. What cannot be read goes to `problems`."""
    reports = check_files(scope.files, problems=problems, policy=policy, judge="troubled", done=done)
    return diagnose(scope, map(inspection_of, reports), now, problems)


def diagnose(
    scope: InspectionScope, inspections: Iterable[Inspection], now: float, problems: list[Problem]
) -> Diagnosis:
    """Put together what was seen in each file, and what is only seen from above."""
    diagnosis = Diagnosis(size=scope.size)
    for inspection in inspections:
        _add_inspection(diagnosis, inspection)
    diagnosis.broken.sort(key=_loss_key)
    diagnosis.large.sort(key=lambda large_file: (-large_file.found.size, large_file.found.path))
    sessions = [session_file for session_file in scope.files if session_file.place.role != "agent"]
    for config in filter(is_config_folder, scope.roots):
        names = [found.place.session_id for found in sessions if found.root == config]
        diagnosis.leftovers += find_leftovers(config, names, problems)
    diagnosis.cleanup_days, diagnosis.due = expiring_sessions(scope, now)
    diagnosis.copies = find_copies(sessions, problems)
    return diagnosis


def expiring_sessions(scope: InspectionScope, now: float) -> tuple[float, list[ExpiringSession]]:
    """Return for how long the client keeps sessions, and which it deletes soon, the first first."""
    days, due = 0.0, list[ExpiringSession]()
    for config in filter(is_config_folder, scope.roots):
        days = cleanup_days(config)
        in_root = (session_file for session_file in scope.files if session_file.root == config)
        due += _expiring_within((found for found in in_root if found.place.role != "agent"), now, days)
    return days, sorted(due, key=lambda expiring: (expiring.days, expiring.found.path))


def inspection_of(report: FileReport) -> Inspection:
    """Keep of a report what will be told."""
    counts = Counter[tuple[str, Severity]]()
    for file in report.files:
        counts.update(file.counts)
    empty = sum(number for (rule, _), number in report.counts.items() if rule == _EMPTY_RULE)
    verdict = report.newest
    broken = BrokenSession(
        report.found,
        report.lost,
        verdict.there if verdict else 0,
        report.number("error"),
        report.number("warning"),
        verdict.words if verdict else "",
        mendable=not empty,
    )
    large = (file for file in report.files if file.size > LARGE_FILE or file.longest > LARGE_LINE)
    return Inspection(
        report.found,
        report.sound,
        # Clients leave these behind when they never get to a prompt: nothing is lost.
        empty=bool(empty) and report.number("error", "warning") == empty,
        records=sum(file.records for file in report.files),
        gaps=sum(file.gaps for file in report.files),
        counts=dict(counts),
        # An interrupted or half-known session works; only what is lost or refused is broken.
        broken=broken if not report.sound and (broken.lost or broken.errors) else None,
        large=tuple(LargeFile(file.found, file.longest) for file in large),
    )


def _add_inspection(diagnosis: Diagnosis, inspection: Inspection) -> None:
    if inspection.empty:
        diagnosis.empty.append(inspection.found)
        return
    if inspection.found.place.role != "agent":
        diagnosis.sessions += 1
        diagnosis.sound += inspection.sound
    if inspection.broken is not None:
        diagnosis.broken.append(inspection.broken)
    diagnosis.large += inspection.large


def _loss_key(broken: BrokenSession) -> tuple[int, int, str]:
    return -broken.lost, -broken.errors, broken.found.path


def _expiring_within(sessions: Iterable[DiscoveredFile], now: float, keep_days: float) -> list[ExpiringSession]:
    remaining = [
        (session_file, session_file.mtime_ns / 1e9 + keep_days * _DAY_SECONDS - now) for session_file in sessions
    ]
    return [
        ExpiringSession(found, seconds / _DAY_SECONDS, is_archived(found))
        for found, seconds in remaining
        if seconds < CLEANUP_WARNING_DAYS * _DAY_SECONDS
    ]
