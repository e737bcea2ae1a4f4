"""The table of what differs between two sessions."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from steno.report import words
from steno.report.compare.sides import Side
from steno.report.compare.weigh import Comparison, Figure, Which

__all__ = ["Row", "rows_of"]

_MINUS: Final = "\N{MINUS SIGN}"
_FEW: Final = 10
"""Below this, how many more says more than a share."""
_ENDS: Final = {
    "finished": "finished",
    "waiting": "waiting",
    "running": "still running",
    "interrupted": "interrupted",
    "failed": "failed",
}


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    name: str
    a: str
    b: str
    delta: str = ""
    better: Which = ""


def rows_of(
    found: Comparison, duration: Callable[[float | None], str] = words.duration
) -> list[Row]:
    """Return the lines; what neither has is left out. `duration` says how long something took."""
    return list(_rows(found, duration))


def _rows(found: Comparison, duration: Callable[[float | None], str]) -> Iterator[Row]:
    a, b = found.a, found.b
    figures = {figure.name: figure for figure in found.figures}
    yield Row("Model", _models(a), _models(b))
    yield Row("Ended", _ended(a), _ended(b), better=_finished(a, b))
    yield _plain(figures["Turns"], duration)
    yield _plain(figures["Steps"], duration)
    failed = figures["Failed steps"]
    if a.failed or b.failed:
        shares = _share(a.failed, a.steps), _share(b.failed, b.steps)
        yield Row(failed.name, *shares, _delta(failed), failed.better)
    for name in ("Time worked", "Cost", "Tokens read", "Tokens written", "Read from cache"):
        if figures[name].a is not None or figures[name].b is not None:
            yield _plain(figures[name], duration)
    for name in ("Sub-agents", "Compactions"):
        if figures[name].a or figures[name].b:
            yield _plain(figures[name], duration)
    if a.branches or b.branches:
        given_up = figures["Abandoned branches"]
        yield Row("Abandoned", _abandoned(a), _abandoned(b), _delta(given_up), given_up.better)
    yield from _tests(found, figures.get("Failing tests"))
    if a.changed or b.changed:
        yield Row("Files changed", _changed(a), _changed(b), _delta(figures["Files changed"]))


def _tests(found: Comparison, failing: Figure | None) -> Iterator[Row]:
    one, other = found.a.last_tests, found.b.last_tests
    if one is None and other is None:
        return
    yield Row(
        "Tests at the end",
        "none seen" if one is None else str(one),
        "none seen" if other is None else str(other),
        better=failing.better if failing is not None else "",
    )


def _plain(figure: Figure, duration: Callable[[float | None], str]) -> Row:
    one, other = (_shown(figure, value, duration) for value in (figure.a, figure.b))
    if one == other:
        return Row(figure.name, one, other)
    return Row(figure.name, one, other, _delta(figure), figure.better)


def _shown(figure: Figure, value: float | None, duration: Callable[[float | None], str]) -> str:
    if value is None:
        return "not known"
    match figure.unit:
        case "seconds":
            return duration(value)
        case "money":
            return words.money(int(value))
        case "tokens":
            return words.tokens(int(value))
        case "share":
            return f"{value:.0%}"
        case "count":
            return f"{int(value):,}" if value else "none"


def _delta(figure: Figure) -> str:
    """Return how B differs from A: small numbers by how many, the others by their share."""
    a, b = figure.a, figure.b
    if a is None or b is None or a == b:
        return ""
    if figure.unit == "share":
        points = round(b * 100) - round(a * 100)
        return f"{_signed(points)} points" if points else ""
    if figure.unit == "count" and max(a, b) <= _FEW:
        return _signed(int(b - a))
    return f"{_signed(round((b - a) / a * 100))}%" if a else ""


def _signed(number: int) -> str:
    return f"+{number:,}" if number >= 0 else f"{_MINUS}{-number:,}"


def _models(side: Side) -> str:
    return ", ".join(words.model_name(model) for model in side.known.models) or "none"


def _ended(side: Side) -> str:
    said = _ENDS[side.standing]
    if side.standing == "interrupted" and side.path:
        return f"{said} in turn {side.path[-1].turn}"
    return said


def _finished(a: Side, b: Side) -> Which:
    one, other = a.standing == "finished", b.standing == "finished"
    if one == other:
        return ""
    return "a" if one else "b"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if part else "none"


def _abandoned(side: Side) -> str:
    if not side.branches:
        return "none"
    said = words.count(side.branches, "branch", "branches")
    return said if not side.abandoned else f"{said}, {words.tokens(side.abandoned)} tokens"


def _changed(side: Side) -> str:
    changed = side.changed.values()
    added, removed = sum(each.added for each in changed), sum(each.removed for each in changed)
    return f"{len(changed):,}, +{added:,} {_MINUS}{removed:,}" if changed else "none"
