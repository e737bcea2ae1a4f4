"""Background check of all sessions, with cached results.

Unchanged files are not read again. Pages show the results available so far.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from steno.check.doctor import InspectionScope, collect_files
from steno.check.file_reports import total_bytes
from steno.errors import StenoError
from steno.report.check_policy import load_check_policy
from steno.report.diagnoses import SessionInspection
from steno.report.health_report import HealthReport, health_of, inspect_session
from steno.store.discovery import DiscoveredFile, Problem

_MIN_INTERVAL: Final = 5.0
"""Minimum seconds between the end of a check and the start of the next one."""
_REPORT_INTERVAL: Final = 0.5
"""Seconds between progress updates."""
_READS_PER_BYTE: Final = 2
"""Reads per byte: one for damage, one for drift."""

_Fingerprint = tuple[tuple[str, int, int], ...]


class CheckProgress(msgspec.Struct, frozen=True):
    """The progress of a check."""

    running: bool = False
    done: int = 0
    planned: int = 0
    last_ended: float = 0.0
    """End of the last complete check; 0 before the first."""
    problem: str = ""


class _Stopped(StenoError):
    """The explorer is shutting down."""


class HealthMonitor:
    """Checks all sessions in the background, and holds the results."""

    def __init__(self, roots: tuple[str, ...], now: Callable[[], float], location_options: str = "") -> None:
        self._roots = roots
        self._now = now
        self._location_options = location_options
        self._lock = threading.Lock()
        self._inspections: dict[str, tuple[_Fingerprint, SessionInspection]] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._last_ended = 0.0
        self.progress = CheckProgress()
        self.health = HealthReport()

    @property
    def problem_count(self) -> int:
        """Return the number of known problems that need action."""
        return self.health.trouble

    @property
    def damaged_paths(self) -> frozenset[str]:
        """Return the paths of sessions with known damage."""
        return frozenset(
            inspection.session_file.path
            for inspection in self.inspections
            if inspection.sight is not None and inspection.sight.broken
        )

    @property
    def inspections(self) -> list[SessionInspection]:
        """Return the inspections of all sessions so far."""
        return [inspection for _, inspection in list(self._inspections.values())]

    def start_check(self, max_bytes: int | None = None) -> None:
        """Start a check unless one is running, has just ended, or would read more than `max_bytes`."""
        with self._lock:
            if self.progress.running or self._stop.is_set():
                return
            if self.progress.last_ended and time.monotonic() - self._last_ended < _MIN_INTERVAL:
                return
            self.progress = msgspec.structs.replace(self.progress, running=True, done=0, planned=0)
            self._thread = threading.Thread(target=self._run_check, args=(max_bytes,), daemon=True)
            self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the running check has ended."""
        subagent = self._thread
        if subagent is not None:
            subagent.join(seconds)

    def close(self) -> None:
        """Stop the check."""
        self._stop.set()
        self.wait()

    def _run_check(self, max_bytes: int | None) -> None:
        ended, problem = self.progress.last_ended, ""
        try:
            if self._check_all(max_bytes):
                ended, self._last_ended = self._now(), time.monotonic()
        except _Stopped:
            pass
        except StenoError as error:
            problem = str(error)
        finally:
            self.progress = msgspec.structs.replace(self.progress, running=False, last_ended=ended, problem=problem)

    def _check_all(self, max_bytes: int | None) -> bool:
        from steno.format.catalogue import catalogue

        policy, facts = load_check_policy(), catalogue()
        problems: list[Problem] = []
        checked_files = collect_files([root for root in self._roots if os.path.lexists(root)], problems)
        pending_bytes = sum(
            total_bytes(discovered) for discovered in checked_files.files if self._cached_inspection(discovered) is None
        )
        if max_bytes is not None and pending_bytes > max_bytes:
            return False
        self.progress = msgspec.structs.replace(self.progress, planned=pending_bytes * _READS_PER_BYTE)
        is_first_check = not self.progress.last_ended
        last_report = 0.0
        inspections: list[SessionInspection] = []
        for found in checked_files.files:
            inspection = self._cached_inspection(found)
            if inspection is None:
                inspection = inspect_session(found, facts, policy=policy, progress=self._add_progress)
                self._inspections[found.path] = (_fingerprint(found), inspection)
            inspections.append(inspection)
            if is_first_check and time.monotonic() - last_report >= _REPORT_INTERVAL:
                self.health = self._summarize(checked_files, inspections, problems, complete=False)
                last_report = time.monotonic()
        self._drop_deleted(checked_files)
        self.health = self._summarize(checked_files, inspections, problems, complete=True)
        return True

    def _summarize(
        self,
        checked_files: InspectionScope,
        inspections: list[SessionInspection],
        problems: list[Problem],
        *,
        complete: bool,
    ) -> HealthReport:
        from steno.format.catalogue import catalogue

        return health_of(
            checked_files,
            inspections,
            self._now(),
            problems=problems,
            complete=complete,
            newest=catalogue().newest,
            options=self._location_options,
        )

    def _add_progress(self, byte_count: int) -> None:
        if self._stop.is_set():
            raise _Stopped("the explorer is shutting down")
        self.progress = msgspec.structs.replace(self.progress, done=self.progress.done + byte_count)

    def _cached_inspection(self, discovered: DiscoveredFile) -> SessionInspection | None:
        cached = self._inspections.get(discovered.path)
        return cached[1] if cached is not None and cached[0] == _fingerprint(discovered) else None

    def _drop_deleted(self, checked_files: InspectionScope) -> None:
        existing = {discovered.path for discovered in checked_files.files}
        for path in self._inspections.keys() - existing:
            del self._inspections[path]


def _fingerprint(discovered: DiscoveredFile) -> _Fingerprint:
    """Return a fingerprint of a session file and its sub-agent files."""
    return tuple((file.path, file.size, file.mtime_ns) for file in (discovered, *discovered.agents))
