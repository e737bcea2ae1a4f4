"""A repair for people: how the file stood, what is done to it record by record, how it stands now."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.check.repair.changes import Change
from steno.check.repair.edits import Action, Edit
from steno.check.repair.job import Job, State
from steno.cli import words
from steno.format.encode import encode
from steno.safe.terminal import Line, one_line, width
from steno.session.resume.clients import Client

__all__ = ["job_json", "job_lines"]

_SIGNS: Final[dict[Action, tuple[str, str]]] = {
    "change": ("~", "yellow"),
    "insert": ("+", "green"),
    "remove": ("-", "red"),
    "set aside": ("<", "cyan"),
}
_WORDS: Final = {"info": "remark"}
_SHOWN: Final = 30
_LOST: Final = 10
_SHORT: Final = 8


def job_lines(name: str, title: str, job: Job, columns: int, *, everything: bool) -> Iterator[Line]:
    """Yield the whole story of a repair."""
    shown_name = one_line(name, columns)
    room = columns - width(shown_name) - 2
    yield [(shown_name, "bold"), "  ", one_line(title, room) or ("(no title)", "dim")]
    yield from _state_lines("as it is", job.before, job.wish.client, columns)
    if not job.changed:
        return
    yield []
    shown = job.edits if everything else job.edits[:_SHOWN]
    for edit in shown:
        yield from _edit_lines(edit, columns)
    if len(job.edits) > len(shown):
        more = words.count(len(job.edits) - len(shown), "more edit")
        shows = "shows it" if len(job.edits) - len(shown) == 1 else "shows them"
        yield [(f"  and {more}; --all {shows}", "dim")]
    yield []
    yield from _lost_lines(job.lost, columns)
    yield from _state_lines("mended", job.after, job.wish.client, columns)
    if job.before.size != job.after.size:
        sizes = f"{words.size(job.before.size)} → {words.size(job.after.size)}"
        yield [("  size      ", "dim"), sizes]


def _state_lines(label: str, state: State, client: Client, columns: int) -> Iterator[Line]:
    yield [("  " + label.ljust(10), "dim"), _counted(state)]
    told = tuple(each for each in state.verdicts if client.version in each.clients)
    if len({verdict.outcome for verdict in state.verdicts}) > 1:
        told = state.verdicts
    for verdict in told:
        style = "" if verdict.outcome == "fully" else "yellow"
        yield [" " * 12, (one_line(verdict.words, columns - 12), style)]
    if state.breaches:
        first = state.breaches[0]
        said = f"the API would refuse it: {first.rule}, {first.detail}"
        yield [" " * 12, (one_line(said, columns - 12), "red")]


def _counted(state: State) -> str:
    found = [
        words.count(number, _WORDS.get(level, level))
        for level, number in state.counts.items()
        if number
    ]
    return ", ".join(found) or "no findings"


def _edit_lines(edit: Edit, columns: int) -> Iterator[Line]:
    sign, style = _SIGNS[edit.action]
    where = f"line {edit.line:,}" if edit.line else "new"
    name = edit.uuid[:_SHORT]
    head = f"{where}  {name}  " if name else f"{where}  "
    yield ["  ", (sign, style), " ", (head, "dim"), (edit.finding, "bold")]
    yield ["      ", one_line(edit.what, columns - 6)]
    for change in edit.changes:
        yield from _change_lines(change, columns)


def _change_lines(change: Change, columns: int) -> Iterator[Line]:
    for sign, style, value in (("-", "red", change.before), ("+", "green", change.after)):
        text = one_line(encode(value).decode("utf-8", "replace"), columns - 10 - len(change.field))
        yield ["      ", (f"{sign} {one_line(change.field)}: {text}", style)]


def _lost_lines(lost: Sequence[str], columns: int) -> Iterator[Line]:
    if not lost:
        yield [("  lost      ", "dim"), "nothing"]
        return
    for place, each in enumerate(lost[:_LOST]):
        label = "  lost      " if not place else " " * 12
        yield [(label, "dim"), (one_line(each, columns - 12), "yellow")]
    if len(lost) > _LOST:
        yield [" " * 12, (f"and {len(lost) - _LOST:,} more", "dim")]


def job_json(path: str, title: str, job: Job, placed: str) -> dict[str, Any]:
    """Return a repair for programs."""
    return {
        "path": _text(path),
        "title": title or None,
        "output": _text(placed) or None,
        "client": job.wish.client.version,
        "changed": job.changed,
        "resumes": job.proven,
        "edits": [_edit_json(edit) for edit in job.edits],
        "lost": job.lost,
        "before": _state_json(job.before),
        "after": _state_json(job.after),
    }


def _edit_json(edit: Edit) -> dict[str, Any]:
    return {
        "finding": edit.finding or None,
        "action": edit.action,
        "line": edit.line or None,
        "uuid": edit.uuid or None,
        "what": edit.what,
        "lost": edit.lost or None,
        "changes": [
            {"field": change.field, "before": change.before, "after": change.after}
            for change in edit.changes
        ],
    }


def _state_json(state: State) -> dict[str, Any]:
    return {
        "size": state.size,
        "counts": dict(state.counts),
        "verdicts": msgspec.to_builtins(state.verdicts),
        "breaches": msgspec.to_builtins(state.breaches),
    }


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
