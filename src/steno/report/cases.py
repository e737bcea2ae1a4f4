"""What is wrong, in words: what is so, what it means, and the commands that mend it."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from steno.check.checkup import RULES
from steno.check.doctor import LARGE_LINE, SOON, Due, Large, Sight
from steno.check.observed import Drift
from steno.report import words
from steno.report.drift import MEANS, Row
from steno.report.names import Names, argument
from steno.store.found import Found, Problem
from steno.store.upkeep import Leftover

__all__ = ["HARMS", "Case", "Cases", "Harm", "Look", "Named"]

Harm = Literal["damage", "risk", "drift", "clutter"]
HARMS: Final[tuple[Harm, ...]] = ("damage", "risk", "drift", "clutter")
"""Worst first. Damage: something is lost or refused. Risk: something will be. Drift: something is
not known. Clutter: something can go."""
_NAMED: Final = 5
"""How many sessions a case names."""
_COMMANDS: Final = 3
_ROWS: Final = 12
"""How many differences from the catalogue are told one by one."""


class Look(msgspec.Struct, frozen=True):
    """What was seen in one session and in its sub-agents' files."""

    found: Found
    sight: Sight | None
    """None where it could not be read."""
    drifts: tuple[Drift, ...]
    versions: frozenset[str]
    problems: tuple[Problem, ...]
    records: int = 0
    """How many records were compared with the catalogue."""
    left_out: int = 0
    """Differences that were too many to keep."""


class Named(msgspec.Struct, frozen=True):
    """A session that a case is about; of a sub-agent without a session there is no id."""

    id: str
    name: str
    """As few letters of its id as will do."""
    path: str
    """Its file, or that of its sub-agent."""
    about: str


class Case(msgspec.Struct, frozen=True):
    """One thing to know of: what is so, what it means, and the commands that mend it."""

    harm: Harm
    id: str
    title: str
    means: str
    note: str
    commands: tuple[str, ...] = ()
    sessions: tuple[Named, ...] = ()
    more: int = 0
    """How many sessions there are beyond those."""


class Cases:
    """Cases in words."""

    def __init__(self, names: Names, where: str) -> None:
        self._names = names
        self._where = where

    def broken(self, sights: list[Sight]) -> list[Case]:
        """Return a case for each rule that sessions break; those that lose most first."""
        by_rule: dict[str, list[Sight]] = {}
        for sight in sights:
            for rule in _rules(sight):
                by_rule.setdefault(rule, []).append(sight)
        return [self._rule(rule, by_rule[rule]) for rule in sorted(by_rule, key=_worst(by_rule))]

    def _rule(self, rule_id: str, sights: list[Sight]) -> Case:
        rule = RULES[rule_id]
        sights = sorted(sights, key=_loss)
        mendable = [each for each in sights if each.broken is not None and each.broken.mendable]
        commands = [self._command("repair", each.found.path) for each in mendable]
        return Case(
            "damage",
            rule_id,
            _sentence(rule.title).rstrip("."),
            _sentence(rule.hint),
            words.count(len(sights), "session"),
            tuple(filter(None, commands[:_COMMANDS])),
            *self._some([(each.found, _lost(each)) for each in sights]),
        )

    def unread(self, problems: list[Problem]) -> list[Case]:
        """Return a case for what cannot be read."""
        if not problems:
            return []
        first = problems[0]
        why = f": {first.message}" if first.message else ""
        means = f"Such as {first.path}{why}. What is in there is not in the index either."
        quoted = argument(first.path)
        commands = (f"ls -ld {quoted}",) if quoted else ()
        number = words.count(len(problems), "path")
        return [
            Case("damage", "store.unread", "Not everything can be read", means, number, commands)
        ]

    def due(self, due: list[Due], days: float) -> list[Case]:
        """Return a case for what the client deletes soon and nobody has kept."""
        if not due:
            return []
        size = words.size(sum(each.found.size for each in due))
        sessions = words.count(len(due), "session")
        overdue = sum(each.days <= 0 for each in due)
        late = f" {overdue:,} of them may go the next time it starts." if overdue else ""
        means = (
            f"The client deletes what was not written to for {days:g} days.{late} They are not in "
            "the archive; archiving keeps every byte."
        )
        be = "is" if len(due) == 1 else "are"
        return [
            Case(
                "risk",
                "store.cleanup",
                f"{sessions} {be} deleted by the client within {SOON} days",
                means,
                f"{sessions}, {size}",
                (f"steno archive{self._where}",),
                *self._some([(each.found, _when(each.days)) for each in due]),
            )
        ]

    def large(self, large: list[Large]) -> list[Case]:
        """Return a case for what is hard to work with."""
        if not large:
            return []
        large = sorted(large, key=lambda each: -each.found.size)
        number = words.count(len(large), "file")
        command = self._command("repair", large[0].found.path, " --slim")
        return [
            Case(
                "risk",
                "store.large",
                f"{number} too big to work with well",
                "Clients take long to resume them, or give up. A slim copy leaves out progress "
                "and second copies of tool output; the conversation stays.",
                f"{number}, {words.size(sum(each.found.size for each in large))}",
                tuple(filter(None, [command])),
                *self._some([(each.found, _bulk(each)) for each in large]),
            )
        ]

    def drift(self, rows: list[Row], looks: list[Look]) -> list[Case]:
        """Return a case for each thing that the catalogue does not know."""
        again = f"steno drift{self._where}"
        cases = [self._difference(row, looks, again) for row in rows[:_ROWS]]
        if len(rows) > _ROWS:
            number = len(rows) - _ROWS
            means = "The command lists all of them, with how often and from which version on."
            more = words.count(number, "more difference")
            cases.append(Case("drift", "drift", more, means, "", (again,)))
        return cases

    def _difference(self, row: Row, looks: list[Look], again: str) -> Case:
        name = row.path or row.kinds[0]
        kinds = {*row.kinds}
        with_it = sum(
            any(each.code == row.code and each.kind in kinds for each in look.drifts)
            for look in looks
        )
        first = f" First seen in client {row.versions[0]}." if row.versions else ""
        where = f" On {row.kinds[0]}" if row.path else ""
        others = (
            f" and {words.count(len(row.kinds) - 1, 'other kind')}" if len(row.kinds) > 1 else ""
        )
        sample = f", such as {row.sample}" if row.sample and row.path else ""
        said = f"{where}{others}{sample}." if where else ""
        means = f"{_sentence(MEANS[row.code]).rstrip('.')}.{said}{first} Kept and shown as it is."
        note = f"{words.count(with_it, 'session')}, {words.count(row.count, 'line')}"
        code = f"drift.{row.code.lower().replace('_', '-')}"
        return Case("drift", code, name, means, note, (again,))

    def leftovers(self, left: list[Leftover]) -> list[Case]:
        """Return a case for what sessions left behind."""
        if not left:
            return []
        number = words.count(len(left), "leftover")
        size = words.size(sum(each.size for each in left))
        commands = [f"rm -r {quoted}" for each in left if (quoted := argument(each.path))]
        means = "To-dos, backups and logs of sessions that are not there any more."
        return [
            Case(
                "clutter",
                "store.leftover",
                f"{number} of sessions that are gone",
                means,
                size,
                tuple(commands[:_COMMANDS]),
            )
        ]

    def copies(self, groups: list[tuple[Found, ...]]) -> list[Case]:
        """Return a case for sessions that are there twice."""
        if not groups:
            return []
        number = words.count(len(groups), "session")
        be = "is" if len(groups) == 1 else "are"
        spare = sum(group[0].size * (len(group) - 1) for group in groups)
        pairs = [(group[0], words.count(len(group), "copy", "copies")) for group in groups]
        return [
            Case(
                "clutter",
                "store.copies",
                f"{number} {be} there more than once",
                "The files have the same bytes. `steno doctor` says which the client resumes.",
                f"{words.size(spare)} to spare",
                (f"steno doctor{self._where}",),
                *self._some(pairs),
            )
        ]

    def _some(self, pairs: list[tuple[Found, str]]) -> tuple[tuple[Named, ...], int]:
        some = [
            Named(found.place.session_id, self._names.short(found.path), found.path, about)
            for found, about in pairs[:_NAMED]
        ]
        return tuple(some), len(pairs) - len(some)

    def _command(self, name: str, path: str, more: str = "") -> str:
        quoted = argument(self._names.again(path))
        return f"steno {name}{self._where} {quoted}{more}" if quoted else ""


def _rules(sight: Sight) -> list[str]:
    """Return the rules that say why a session is broken."""
    if sight.broken is None:
        return []
    said = {severity for _, severity in sight.counts}
    gravest = "error" if "error" in said else "warning"
    return [rule for rule, severity in sight.counts if severity == gravest and rule in RULES]


def _worst(by_rule: dict[str, list[Sight]]) -> Callable[[str], tuple[int, int, str]]:
    def key(rule: str) -> tuple[int, int, str]:
        lost = sum(each.broken.lost for each in by_rule[rule] if each.broken is not None)
        return -lost, -len(by_rule[rule]), rule

    return key


def _loss(sight: Sight) -> tuple[int, str]:
    return -(sight.broken.lost if sight.broken else 0), sight.found.path


def _lost(sight: Sight) -> str:
    broken = sight.broken
    if broken is None or not broken.lost:
        return "nothing lost yet"
    return f"{broken.lost:,} of {broken.total:,} messages lost"


def _when(days: float) -> str:
    if days <= 0:
        return "overdue"
    return f"in {words.count(int(days), 'day')}" if days >= 1 else "today"


def _bulk(each: Large) -> str:
    line = f", a line of {words.size(each.longest)}" if each.longest > LARGE_LINE else ""
    return f"{words.size(each.found.size)}{line}"


def _sentence(clause: str) -> str:
    text = clause[:1].upper() + clause[1:]
    return text if text.endswith(".") else f"{text}."
