"""What failed, and what became of it: whether the same thing was later seen to work, and after what."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from steno.format.tool_catalogue import facts_of
from steno.report.brief.values import Trouble
from steno.report.deeds.deed import Deed
from steno.report.deeds.outcomes import telling_line
from steno.report.deeds.shell import named
from steno.report.words import below

__all__ = ["troubles"]

_API: Final = "API"
_CALLS: Final = frozenset(("tool", "agent", "error"))
_MISUSED: Final = "<tool_use_error>"
_Key: TypeAlias = tuple[str, frozenset[str]]
_AFTER: Final = 8
_LOOK: Final = 1_000
_WHAT: Final = 300


class _Case:
    """Something that failed and has not been seen to work yet."""

    def __init__(self, deed: Deed, key: _Key, place: int, changes: int) -> None:
        self.first = self.last = deed
        self.place = place
        self.changes = changes
        """How many changes of files came before it."""
        self.times = 1
        self.verb, self.waits = key
        """What must work for it to be over: of several commands in one, each."""

    def is_over(self, deed: Deed, names: frozenset[str]) -> bool:
        """Take in what worked; say whether nothing is left of it."""
        failed, worked = self.first.shell, deed.shell
        if failed is not None and worked is not None and failed.tests:
            # Fewer tests say nothing about those that failed.
            if worked.tests_all:
                names |= self.waits
            elif not worked.picks <= failed.picks:
                return False
        self.waits -= names
        return not self.waits


class _Cases:
    """Everything that failed and has not been seen to work yet, by what must work."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], dict[_Case, None]] = {}
        self.all: dict[_Case, None] = {}

    def failed(self, deed: Deed, place: int, changes: int) -> None:
        """Note a failure; the same once more tells better what it is that fails."""
        verb, names = key = _key(deed)
        for case in self._near(verb, names):
            if names <= case.waits or case.waits <= names:
                case.waits &= names
                case.times, case.last = case.times + 1, deed
                return
        case = _Case(deed, key, place, changes)
        self.all[case] = None
        for name in names:
            self._by_name.setdefault((verb, name), {})[case] = None

    def worked(self, deed: Deed) -> list[_Case]:
        """Return what is over because this worked, and forget it."""
        verb, names = _key(deed)
        wide = deed.shell is not None and deed.shell.tests_all
        near = list(self.all) if wide else self._near(verb, names)
        over = [case for case in near if case.verb == verb and case.is_over(deed, names)]
        for case in over:
            del self.all[case]
        return over

    def _near(self, verb: str, names: frozenset[str]) -> list[_Case]:
        found = {
            case: None
            for name in sorted(names)
            for case in self._by_name.get((verb, name), ())
            if case in self.all
        }
        return sorted(found, key=lambda case: case.place)


def troubles(
    deeds: Iterable[Deed], project: str, *, answered: bool = True
) -> tuple[tuple[Trouble, ...], int]:
    """Return what failed, in the order in which it first did, and how many slips there were.

    `answered` says that the API gave an answer in the end.
    """
    cases = _Cases()
    closed: list[tuple[int, Trouble]] = []
    changed: list[str] = []
    last = slips = 0
    for place, deed in enumerate(deeds):
        last = deed.turn
        is_call = deed.step.kind in _CALLS
        if _is_slip(deed):
            slips += 1
        elif is_call and deed.verdict == "failed":
            cases.failed(deed, place, len(changed))
        elif is_call and cases.all and deed.verdict == "ok":
            over = cases.worked(deed)
            closed += [(each.place, _trouble(each, deed.turn, changed, project)) for each in over]
        touch = deed.step.touch
        if touch is not None and touch.changes and deed.step.state == "ok":
            changed.append(below(touch.path, project))
    for case in cases.all:
        until = last if case.verb == _API and answered else 0
        closed.append((case.place, _trouble(case, until, changed, project)))
    return tuple(trouble for _, trouble in sorted(closed, key=lambda pair: pair[0])), slips


def _key(deed: Deed) -> _Key:
    """Return what was used, and what for: what must work for a failure to be over."""
    step = deed.step
    if step.kind == "error":
        return _API, frozenset(("",))
    return step.verb, frozenset((step.subject,)) if deed.shell is None else deed.shell.gists


def _is_slip(deed: Deed) -> bool:
    if deed.verdict != "failed":
        return False
    if facts_of(deed.step.verb).minor_failures or (
        deed.shell is not None and deed.shell.only_looks
    ):
        return True
    return deed.printed.startswith(_MISUSED)


def _what(deed: Deed, project: str) -> str:
    step = deed.step
    if step.command:
        return named(step.command, project)
    return step.verb if step.kind == "error" else f"{step.verb} {below(step.subject, project)}"


def _trouble(case: _Case, until: int, changed: list[str], project: str) -> Trouble:
    last = case.last
    said = last.step.subject if last.step.kind == "error" else telling_line(last.printed)
    between = changed[case.changes : case.changes + _LOOK] if until else []
    return Trouble(
        what=_what(case.first, project)[:_WHAT],
        said=said or last.step.outcome,
        times=case.times,
        solved=bool(until),
        after=tuple(dict.fromkeys(between))[:_AFTER],
        turn=case.first.turn,
        until=until,
    )
