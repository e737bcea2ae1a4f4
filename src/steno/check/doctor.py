"""Diagnose a config directory: broken sessions, sessions about to be deleted, large files, leftovers."""

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
    """A session that Claude Code cannot resume completely."""

    found: DiscoveredFile
    lost: int
    """Number of messages that the latest Claude Code would not send."""
    total: int
    errors: int
    warnings: int
    words: str = ""
    """Verdict for the latest Claude Code."""
    mendable: bool = True
    """Whether the file contains a conversation that a repair could restore."""


class ExpiringSession(msgspec.Struct, frozen=True):
    """A session that Claude Code's cleanup will delete."""

    found: DiscoveredFile
    days: float
    """Days until deletion; negative if overdue."""
    archived: bool = False
    """Whether the archive has a current copy."""


class LargeFile(msgspec.Struct, frozen=True):
    """A large file, or a file with a very long line."""

    found: DiscoveredFile
    longest: int
    """Length of the longest line in bytes."""


class Inspection(msgspec.Struct, frozen=True):
    """Summary of the check of one file, without its findings."""

    found: DiscoveredFile
    sound: bool
    empty: bool
    """Whether the file has nothing to resume and no other problem."""
    records: int
    gaps: int
    counts: Counts
    """Number of findings by rule, including sub-agent files."""
    broken: BrokenSession | None
    large: tuple[LargeFile, ...]


class InspectionScope(msgspec.Struct, frozen=True):
    """Directories and files to inspect."""

    roots: tuple[str, ...]
    files: tuple[DiscoveredFile, ...]

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(map(total_bytes, self.files))


class Diagnosis(msgspec.Struct):
    """Results of a diagnosis; a list without results is empty."""

    sessions: int = 0
    sound: int = 0
    size: int = 0
    cleanup_days: float = 0
    broken: list[BrokenSession] = []
    empty: list[DiscoveredFile] = []
    """Files with nothing to resume and no other problem."""
    due: list[ExpiringSession] = []
    large: list[LargeFile] = []
    leftovers: list[Leftover] = []
    copies: list[tuple[DiscoveredFile, ...]] = []

    @property
    def healthy(self) -> bool:
        """Whether no action is needed."""
        return not (self.broken or self.due or self.large or self.leftovers or self.copies)


def collect_files(roots: Sequence[str], problems: list[Problem]) -> InspectionScope:
    """Collect the files to inspect in several directories."""
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
    """Check all files and return a diagnosis. Unreadable files are added to `problems`."""
    reports = check_files(scope.files, problems=problems, policy=policy, judge="troubled", done=done)
    return diagnose(scope, map(inspection_of, reports), now, problems)


def diagnose(
    scope: InspectionScope, inspections: Iterable[Inspection], now: float, problems: list[Problem]
) -> Diagnosis:
    """Combine the inspections of single files with checks across files."""
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
    """Return the cleanup period in days, and the sessions that expire soon, earliest first."""
    days, due = 0.0, list[ExpiringSession]()
    for config in filter(is_config_folder, scope.roots):
        days = cleanup_days(config)
        in_root = (session_file for session_file in scope.files if session_file.root == config)
        due += _expiring_within((found for found in in_root if found.place.role != "agent"), now, days)
    return days, sorted(due, key=lambda expiring: (expiring.days, expiring.found.path))


def inspection_of(report: FileReport) -> Inspection:
    """Summarize a report."""
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
        # Claude Code leaves such files if no prompt is sent; no data is lost.
        empty=bool(empty) and report.number("error", "warning") == empty,
        records=sum(file.records for file in report.files),
        gaps=sum(file.gaps for file in report.files),
        counts=dict(counts),
        # Warnings alone do not make a session broken, only lost messages or errors.
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
