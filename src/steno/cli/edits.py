"""A repair for people: how the file stood, what is done to it record by record, how it stands now."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.check.repair.changes import Change
from steno.check.repair.edits import Action, Edit, Left
from steno.check.repair.job import Job, State
from steno.cli.fit import heading, wrapped
from steno.cli.names import text_of
from steno.format.encode import encode
from steno.report import words
from steno.safe.terminal import Line, one_line, wrap
from steno.session.resume.clients import Client
from steno.session.resume.rules import Breach

__all__ = ["BREACHES", "job_json", "job_lines"]

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
_LABEL: Final = 12
_NONE: Final = "(none)"
# In place of the names that the rules of the API have among themselves.
BREACHES: Final = {
    "tool_use.unique": "two tool calls have the id {}",
    "tool_use.answered": "a tool call has no result ({})",
    "tool_result.called": "a tool result answers no call of the message before it ({})",
    "tool_result.once": "a tool call is answered twice ({})",
    "tool_result.first": "a message has other content before its tool results",
    "role.first": "the first message is not the user's",
    "role.known": "a message is of the role {}",
    "content.empty": "a message is empty",
    "block.known": "a message holds a block of the unknown type {}",
    "block.text": "a text is empty",
    "block.thinking": "thinking has no signature",
    "block.redacted_thinking": "hidden thinking has no data",
    "block.image": "an image cannot be sent: {}",
    "block.document": "a document cannot be sent: {}",
    "block.tool_use": "a tool call is not whole: {}",
    "block.server_tool_use": "a tool call is not whole: {}",
    "block.tool_result": "a tool result is not whole: {}",
}


def job_lines(
    name: str, title: str, job: Job, columns: int, *, everything: bool, note: str = ""
) -> Iterator[Line]:
    """Yield the whole story of a repair; `note` is what to know before."""
    yield from heading(name, title, columns)
    for line in wrap(note, columns - 2) if note else ():
        yield ["  ", (line, "dim")]
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
        yield from wrapped([(f"  and {more}; --all {shows}", "dim")], columns)
    yield []
    yield from _lost_lines(job.lost, columns)
    yield from _left_lines(job.left, columns)
    yield from _state_lines("mended", job.after, job.wish.client, columns)
    if job.before.size != job.after.size:
        sizes = f"{words.size(job.before.size)} → {words.size(job.after.size)}"
        yield [("  size      ", "dim"), sizes]


def _state_lines(label: str, state: State, client: Client, columns: int) -> Iterator[Line]:
    for place, line in enumerate(wrap(_counted(state), columns - _LABEL)):
        yield [("  " + ("" if place else label).ljust(10), "dim"), line]
    told = tuple(each for each in state.verdicts if client.version in each.clients)
    if len({verdict.outcome for verdict in state.verdicts}) > 1:
        told = state.verdicts
    for verdict in told:
        style = "" if verdict.outcome == "fully" else "yellow"
        yield from _indented(verdict.words, columns, style)
    if state.breaches:
        yield from _indented(
            f"the API would refuse it: {_plain(state.breaches[0])}", columns, "red"
        )


def _indented(text: str, columns: int, style: str = "") -> Iterator[Line]:
    for line in wrap(text, columns - _LABEL):
        yield [" " * _LABEL, (line, style)]


def _plain(breach: Breach) -> str:
    """Return in plain words what the API does not take."""
    said = BREACHES.get(breach.rule)
    if said is not None:
        return said.format(breach.detail)
    return f"{breach.rule.removeprefix('block.').replace('_', ' ')}: {breach.detail}"


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
    yield from wrapped(["  ", (sign, style), " ", (head, "dim"), (edit.finding, "bold")], columns)
    for line in wrap(edit.what, columns - 6):
        yield ["      ", line]
    for change in edit.changes:
        yield from _change_lines(change, columns)


def _change_lines(change: Change, columns: int) -> Iterator[Line]:
    for sign, style, value in (("-", "red", change.before), ("+", "green", change.after)):
        text = _NONE if value is None else encode(value).decode("utf-8", "replace")
        yield ["      ", (f"{sign} {one_line(f'{change.field}: {text}', columns - 8)}", style)]


def _lost_lines(lost: Sequence[str], columns: int) -> Iterator[Line]:
    if not lost:
        yield [("  lost      ", "dim"), "nothing"]
        return
    for place, each in enumerate(lost[:_LOST]):
        label = "  lost      " if not place else " " * _LABEL
        yield [(label, "dim"), (one_line(each, columns - _LABEL), "yellow")]
    if len(lost) > _LOST:
        yield [" " * _LABEL, (f"and {len(lost) - _LOST:,} more", "dim")]


def _left_lines(left: Sequence[Left], columns: int) -> Iterator[Line]:
    if not left:
        return
    lines = [f"{line:,}" for line in sorted({each.line for each in left})]
    more = f" and {len(lines) - _LOST:,} more" if lines[_LOST:] else ""
    where = f"{'lines' if len(lines) > 1 else 'line'} {', '.join(lines[:_LOST])}{more}"
    stay = "stay in the file, but are" if len(left) > 1 else "stays in the file, but is"
    what = f"{words.count(len(left), 'message')} {stay} no longer in the conversation: {where}"
    for place, line in enumerate(wrap(what, columns - _LABEL)):
        yield [("  " + ("" if place else "left").ljust(10), "dim"), (line, "yellow")]


def job_json(path: str, title: str, job: Job, placed: str) -> dict[str, Any]:
    """Return a repair for programs."""
    return {
        "path": text_of(path),
        "title": title or None,
        "output": text_of(placed) or None,
        "client": job.wish.client.version,
        "changed": job.changed,
        "resumes": job.proven,
        "edits": [_edit_json(edit) for edit in job.edits],
        "lost": job.lost,
        "left": [{"line": each.line, "uuid": each.uuid} for each in job.left],
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
