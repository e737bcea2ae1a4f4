"""What failed, and what became of it: whether the same thing was later seen to work, and after what."""

from collections.abc import Iterable
from typing import Final

from steno.report.brief.deeds import Deed
from steno.report.brief.outcomes import telling_line
from steno.report.brief.shell import named
from steno.report.brief.values import Trouble
from steno.report.compare.path import below

__all__ = ["troubles"]

_SLIPS: Final = frozenset(
    (
        *("Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Glob", "Grep", "LS", "BashOutput"),
        *("TodoWrite", "ToolSearch", "TaskOutput", "KillShell", "KillBash", "Skill", "TaskUpdate"),
        *("WebFetch", "WebSearch"),
    )
)
"""Tools whose failures are mostly a call that was made wrongly, and made again."""
_API: Final = "API"
_MISUSED: Final = "<tool_use_error>"
_AFTER: Final = 8
_LOOK: Final = 1_000
_WHAT: Final = 300


class _Case:
    """Something that failed and has not been seen to work yet."""

    def __init__(self, deed: Deed, place: int, changes: int) -> None:
        self.first = self.last = deed
        self.place = place
        self.changes = changes
        """How many changes of files came before it."""
        self.times = 0


def troubles(
    deeds: Iterable[Deed], project: str, *, answered: bool = True
) -> tuple[tuple[Trouble, ...], int]:
    """Return what failed, in the order in which it first did, and how many slips there were.

    `answered` says that the API gave an answer in the end.
    """
    cases: dict[tuple[str, str], _Case] = {}
    closed: list[tuple[int, Trouble]] = []
    changed: list[str] = []
    last = slips = 0
    for place, deed in enumerate(deeds):
        key, last = _key(deed), deed.turn
        if _is_slip(deed):
            slips += 1
        elif key is not None and deed.verdict == "failed":
            case = cases.setdefault(key, _Case(deed, place, len(changed)))
            case.times, case.last = case.times + 1, deed
        elif key is not None and key in cases and deed.verdict == "ok":
            case = cases.pop(key)
            closed.append((case.place, _trouble(case, deed.turn, changed, project)))
        touch = deed.step.touch
        if touch is not None and touch.changes and deed.step.state == "ok":
            changed.append(below(touch.path, project))
    for (kind, _), case in cases.items():
        over = last if kind == _API and answered else 0
        closed.append((case.place, _trouble(case, over, changed, project)))
    return tuple(trouble for _, trouble in sorted(closed, key=lambda pair: pair[0])), slips


def _key(deed: Deed) -> tuple[str, str] | None:
    """Return what must work for a failure to be over."""
    step = deed.step
    if step.kind == "error":
        return _API, ""
    if step.kind not in ("tool", "agent"):
        return None
    if deed.shell is not None:
        return step.verb, deed.shell.gist
    return step.verb, step.subject


def _is_slip(deed: Deed) -> bool:
    if deed.verdict != "failed":
        return False
    if deed.step.verb in _SLIPS or (deed.shell is not None and deed.shell.only_looks):
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
