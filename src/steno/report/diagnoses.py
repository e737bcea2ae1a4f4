"""Diagnoses of a config directory: the problem, its consequence, and the commands that fix it."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from steno.check.checkup import RULES
from steno.check.doctor import LARGE_LINE, ExpiringSession, Inspection, LargeFile
from steno.check.drift_model import Drift
from steno.report import humanize
from steno.report.drift_report import CODE_DESCRIPTIONS, DriftRow
from steno.report.session_references import SessionReferences, shell_argument
from steno.store.client_folders import CLEANUP_WARNING_DAYS, Leftover
from steno.store.discovery import DiscoveredFile, Problem

DiagnosisCategory = Literal["damage", "risk", "drift", "clutter"]
DIAGNOSIS_CATEGORIES: Final[tuple[DiagnosisCategory, ...]] = ("damage", "risk", "drift", "clutter")
"""Categories, most severe first.

Damage: data is lost or rejected. Risk: data may be lost. Drift: the catalogue does not cover a part of the format.
Clutter: files that can be deleted.
"""
_MAX_SESSIONS: Final = 5
"""Maximum number of sessions listed in a diagnosis."""
_MAX_COMMANDS: Final = 3
_MAX_DRIFT_ROWS: Final = 12
"""Maximum number of drift rows with a diagnosis each."""


class SessionInspection(msgspec.Struct, frozen=True):
    """Results of inspecting one session and its sub-agents."""

    session_file: DiscoveredFile
    sight: Inspection | None
    """None if the file cannot be read."""
    drifts: tuple[Drift, ...]
    versions: frozenset[str]
    problems: tuple[Problem, ...]
    records: int = 0
    """Number of records compared with the catalogue."""
    left_out: int = 0
    """Number of differences beyond the limit."""


class AffectedSession(msgspec.Struct, frozen=True):
    """A session that a diagnosis applies to; `id` is empty for a sub-agent without a session."""

    id: str
    name: str
    """Short ID."""
    path: str
    """Path of the session file or the sub-agent file."""
    about: str


class HealthDiagnosis(msgspec.Struct, frozen=True):
    """A problem, its consequence, and the commands that fix it."""

    harm: DiagnosisCategory
    id: str
    title: str
    means: str
    note: str
    commands: tuple[str, ...] = ()
    sessions: tuple[AffectedSession, ...] = ()
    more: int = 0
    """Number of further sessions."""


class DiagnosisBuilder:
    """Builds diagnoses from inspection results."""

    def __init__(self, references: SessionReferences, options: str) -> None:
        self._references = references
        self._options = options

    def broken_sessions(self, inspections: list[Inspection]) -> list[HealthDiagnosis]:
        """Return a diagnosis for each rule that sessions violate, by lost messages in descending order."""
        by_rule: dict[str, list[Inspection]] = {}
        for inspection in inspections:
            for rule in _broken_rules(inspection):
                by_rule.setdefault(rule, []).append(inspection)
        return [self._broken_rule(rule, by_rule[rule]) for rule in sorted(by_rule, key=_rule_sort_key(by_rule))]

    def _broken_rule(self, rule_id: str, inspections: list[Inspection]) -> HealthDiagnosis:
        rule = RULES[rule_id]
        inspections = sorted(inspections, key=_loss_sort_key)
        repairable = [
            inspection for inspection in inspections if inspection.broken is not None and inspection.broken.mendable
        ]
        commands = [self._command("repair", each.found.path) for each in repairable]
        return HealthDiagnosis(
            "damage",
            rule_id,
            _as_sentence(rule.title).rstrip("."),
            _as_sentence(rule.hint),
            humanize.count(len(inspections), "session"),
            tuple(filter(None, commands[:_MAX_COMMANDS])),
            *self._affected_sessions([(each.found, _loss_text(each)) for each in inspections]),
        )

    def unreadable_paths(self, problems: list[Problem]) -> list[HealthDiagnosis]:
        """Return a diagnosis for paths that cannot be read."""
        if not problems:
            return []
        first = problems[0]
        reason = f": {first.message}" if first.message else ""
        means = f"For example, {first.path}{reason}. Unreadable paths are not indexed."
        path_argument = shell_argument(first.path)
        commands = (f"ls -ld {path_argument}",) if path_argument else ()
        count_text = humanize.count(len(problems), "path")
        return [HealthDiagnosis("damage", "store.unread", "Unreadable paths", means, count_text, commands)]

    def due_for_deletion(self, due: list[ExpiringSession], days: float) -> list[HealthDiagnosis]:
        """Return a diagnosis for sessions that Claude Code deletes soon and that are not archived."""
        if not due:
            return []
        size = humanize.size(sum(session.found.size for session in due))
        sessions = humanize.count(len(due), "session")
        overdue = sum(each.days <= 0 for each in due)
        overdue_text = f" {overdue:,} of them may be deleted the next time it starts." if overdue else ""
        means = (
            f"Claude Code deletes sessions that have not changed for {days:g} days.{overdue_text} These sessions are not "
            "archived; an archived copy is byte-exact."
        )
        verb = "is" if len(due) == 1 else "are"
        return [
            HealthDiagnosis(
                "risk",
                "store.cleanup",
                f"{sessions} {verb} deleted by Claude Code within {CLEANUP_WARNING_DAYS} days",
                means,
                f"{sessions}, {size}",
                (f"steno archive{self._options}",),
                *self._affected_sessions([(each.found, _days_text(each.days)) for each in due]),
            )
        ]

    def large_files(self, large: list[LargeFile]) -> list[HealthDiagnosis]:
        """Return a diagnosis for very large files."""
        if not large:
            return []
        large = sorted(large, key=lambda each: -each.found.size)
        count_text = humanize.count(len(large), "file")
        command = self._command("repair", large[0].found.path, " --slim")
        return [
            HealthDiagnosis(
                "risk",
                "store.large",
                f"{count_text} too large to resume reliably",
                "Claude Code resumes them slowly or fails. A slim copy omits progress records "
                "and duplicate tool output, and keeps the conversation.",
                f"{count_text}, {humanize.size(sum(large_file.found.size for large_file in large))}",
                tuple(filter(None, [command])),
                *self._affected_sessions([(each.found, _size_text(each)) for each in large]),
            )
        ]

    def format_drift(self, rows: list[DriftRow], inspections: list[SessionInspection]) -> list[HealthDiagnosis]:
        """Return a diagnosis for each difference from the catalogue."""
        command = f"steno drift{self._options}"
        cases = [self._drift_diagnosis(row, inspections, command) for row in rows[:_MAX_DRIFT_ROWS]]
        if len(rows) > _MAX_DRIFT_ROWS:
            remaining = len(rows) - _MAX_DRIFT_ROWS
            means = "The command lists all differences with counts and versions."
            title = humanize.count(remaining, "more difference")
            cases.append(HealthDiagnosis("drift", "drift", title, means, "", (command,)))
        return cases

    def _drift_diagnosis(self, row: DriftRow, inspections: list[SessionInspection], command: str) -> HealthDiagnosis:
        name = row.path or row.kinds[0]
        kinds = {*row.kinds}
        session_count = sum(
            any(drift.code == row.code and drift.kind in kinds for drift in inspection.drifts)
            for inspection in inspections
        )
        first_seen = f" First seen in Claude Code {row.versions[0]}." if row.versions else ""
        on_kind = f" On {row.kinds[0]}" if row.path else ""
        other_kinds = f" and {humanize.count(len(row.kinds) - 1, 'other kind')}" if len(row.kinds) > 1 else ""
        sample = f", for example {row.sample}" if row.sample and row.path else ""
        location = f"{on_kind}{other_kinds}{sample}." if on_kind else ""
        means = f"{_as_sentence(CODE_DESCRIPTIONS[row.code]).rstrip('.')}.{location}{first_seen} Preserved and shown unchanged."
        note = f"{humanize.count(session_count, 'session')}, {humanize.count(row.count, 'record')}"
        code = f"drift.{row.code.lower().replace('_', '-')}"
        return HealthDiagnosis("drift", code, name, means, note, (command,))

    def leftovers(self, leftovers_found: list[Leftover]) -> list[HealthDiagnosis]:
        """Return a diagnosis for files left over from deleted sessions."""
        if not leftovers_found:
            return []
        count_text = humanize.count(len(leftovers_found), "leftover")
        size = humanize.size(sum(leftover.size for leftover in leftovers_found))
        commands = [
            f"rm -r {path_argument}" for each in leftovers_found if (path_argument := shell_argument(each.path))
        ]
        means = "To-dos, backups and logs of deleted sessions."
        return [
            HealthDiagnosis(
                "clutter",
                "store.leftover",
                f"{count_text} of deleted sessions",
                means,
                size,
                tuple(commands[:_MAX_COMMANDS]),
            )
        ]

    def duplicate_sessions(self, groups: list[tuple[DiscoveredFile, ...]]) -> list[HealthDiagnosis]:
        """Return a diagnosis for sessions with several identical files."""
        if not groups:
            return []
        count_text = humanize.count(len(groups), "session")
        verb = "is" if len(groups) == 1 else "are"
        spare = sum(group[0].size * (len(group) - 1) for group in groups)
        pairs = [(group[0], humanize.count(len(group), "copy", "copies")) for group in groups]
        return [
            HealthDiagnosis(
                "clutter",
                "store.copies",
                f"{count_text} {verb} stored more than once",
                "The files are identical. `steno doctor` shows which of them Claude Code resumes.",
                f"{humanize.size(spare)} of duplicates",
                (f"steno doctor{self._options}",),
                *self._affected_sessions(pairs),
            )
        ]

    def _affected_sessions(self, pairs: list[tuple[DiscoveredFile, str]]) -> tuple[tuple[AffectedSession, ...], int]:
        affected = [
            AffectedSession(
                session_file.place.session_id, self._references.short_id(session_file.path), session_file.path, about
            )
            for session_file, about in pairs[:_MAX_SESSIONS]
        ]
        return tuple(affected), len(pairs) - len(affected)

    def _command(self, name: str, path: str, suffix: str = "") -> str:
        path_argument = shell_argument(self._references.argument_for(path))
        return f"steno {name}{self._options} {path_argument}{suffix}" if path_argument else ""


def _broken_rules(inspection: Inspection) -> list[str]:
    """Return the rules that make a session broken: those of its highest severity."""
    if inspection.broken is None:
        return []
    severities_found = {severity for _, severity in inspection.counts}
    highest = "error" if "error" in severities_found else "warning"
    return [rule for rule, severity in inspection.counts if severity == highest and rule in RULES]


def _rule_sort_key(by_rule: dict[str, list[Inspection]]) -> Callable[[str], tuple[int, int, str]]:
    def key(rule: str) -> tuple[int, int, str]:
        lost = sum(inspection.broken.lost for inspection in by_rule[rule] if inspection.broken is not None)
        return -lost, -len(by_rule[rule]), rule

    return key


def _loss_sort_key(inspection: Inspection) -> tuple[int, str]:
    return -(inspection.broken.lost if inspection.broken else 0), inspection.found.path


def _loss_text(inspection: Inspection) -> str:
    broken = inspection.broken
    if broken is None or not broken.lost:
        return "no messages lost"
    return f"{broken.lost:,} of {broken.total:,} messages lost"


def _days_text(days: float) -> str:
    if days <= 0:
        return "overdue"
    return f"in {humanize.count(int(days), 'day')}" if days >= 1 else "today"


def _size_text(large_file: LargeFile) -> str:
    line_text = f", a line of {humanize.size(large_file.longest)}" if large_file.longest > LARGE_LINE else ""
    return f"{humanize.size(large_file.found.size)}{line_text}"


def _as_sentence(clause: str) -> str:
    text = clause[:1].upper() + clause[1:]
    return text if text.endswith(".") else f"{text}."
