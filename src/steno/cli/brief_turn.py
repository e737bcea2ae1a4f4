"""One turn of a brief on a terminal: with everything in it, or what the client did beside it."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from steno.report import words
from steno.safe.terminal import Line, clean, one_line, width, without_colours, wrap

if TYPE_CHECKING:
    from steno.report.brief.turn_content import (
        AssistantText,
        ContextCompaction,
        FileBackup,
        QueueOperation,
        SubAgent,
        ToolCall,
    )
    from steno.report.brief.values import Asked

__all__ = ["client_notes", "full_turn"]

_MARKS: Final = {"ok": ("✓", "green"), "failed": ("✗", "red"), "denied": ("✗", "yellow")}
_NARROWEST: Final = 8


def client_notes(turn: "Asked") -> Iterator[str]:
    """Yield one line each for compactions and for files that only backups show as changed."""
    yield from map(_compacted, turn.compactions)
    if turn.work.snapshot_files:
        paths = ", ".join(turn.work.snapshot_files)
        yield one_line(f"changed, known from backups alone: {paths}")


def full_turn(turn: "Asked", head: str, columns: int) -> Iterator[Line]:
    """Yield a turn with all of its texts, calls, sub-agents, backups and queue."""
    pad = " " * len(head)
    yield from _before(turn, pad, columns)
    asked = turn.text or f"({turn.origin or 'nobody asked'})"
    for place, line in enumerate(_wrapped(asked, columns - len(head) - 2)):
        yield [(pad if place else head, "bold"), ("│ ", "blue"), line]
    for said in turn.meanwhile:
        yield [pad, ("│ ", "blue"), (one_line(said, columns - len(head) - 2), "dim")]
    yield from _rows(turn.texts, turn.calls, f"{pad}  ", columns)
    for agent in turn.agents:
        yield from _agent(agent, f"{pad}  ", columns)
    within = (each for each in turn.compactions if each.order >= 0)
    facts = [words.duration(turn.seconds), "interrupted" if turn.interrupted else ""]
    notes = [
        *map(_compacted, within),
        *map(_backup, turn.backups),
        *map(_queued, turn.queue),
        "  ".join(fact for fact in facts if fact),
    ]
    for note in notes:
        if note:
            yield [f"{pad}  ", (one_line(note, columns - len(pad) - 2), "dim")]
    yield []


def _before(turn: "Asked", pad: str, columns: int) -> Iterator[Line]:
    for each in turn.compactions:
        if each.order < 0:
            yield [f"{pad}  ", (one_line(_compacted(each), columns - len(pad) - 2), "dim")]
            yield from _text(each.summary, f"{pad}    ", columns, "dim")


def _rows(
    texts: "Iterable[AssistantText]", calls: "Iterable[ToolCall]", pad: str, columns: int
) -> Iterator[Line]:
    """Yield texts and calls in the order of the conversation."""
    named = {each.order: each for each in calls}
    spoken = {each.order: each for each in texts}
    for order in sorted({*named, *spoken}):
        if order in spoken:
            yield from _text(spoken[order].text, pad, columns)
        if order in named:
            yield from _call(named[order], pad, columns)


def _call(call: "ToolCall", pad: str, columns: int) -> Iterator[Line]:
    mark = _MARKS.get(call.state, ("◻", "yellow"))
    state = "" if call.state == "ok" else f"{call.state}  "
    yield _headed(pad, mark, call.tool, state + call.outcome, columns)
    for name, value in call.input.items():
        text = value if isinstance(value, str) else _json(value)
        size = call.cut.get(name)
        more = f" … [{size:,} characters]" if size is not None else ""
        yield from _text(f"{name}: {text}{more}", f"{pad}    ", columns, "dim")


def _headed(pad: str, mark: tuple[str, str], name: str, said: str, columns: int) -> Line:
    """Return a line with a mark and a name, and what is said of it as far as there is room."""
    room = columns - len(pad) - 2
    shown = one_line(name, room)
    left = room - width(shown) - 2
    return [
        pad,
        mark,
        f" {shown}",
        (f"  {one_line(said, left)}" if left > 1 and said else "", "dim"),
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _agent(agent: "SubAgent", pad: str, columns: int) -> Iterator[Line]:
    facts = [agent.status, "in the background" if agent.background else ""]
    if agent.updates:
        facts.append(words.count(agent.updates, "progress record"))
    told = "  ".join(fact for fact in facts if fact)
    yield _headed(pad, ("▪", "magenta"), f"{agent.kind} {agent.task}", told, columns)
    for name, text in (("prompt", agent.prompt), ("report", agent.report)):
        if name == "report" and (agent.texts or agent.calls):
            yield [(f"{pad}  work:", "dim")]
            yield from _rows(agent.texts, agent.calls, f"{pad}    ", columns)
        if text:
            yield [(f"{pad}  {name}:", "dim")]
            yield from _text(text, f"{pad}    ", columns)


def _compacted(each: "ContextCompaction") -> str:
    facts = [
        one_line(each.trigger),
        f"{words.tokens(each.pre_tokens)} tokens before" if each.pre_tokens is not None else "",
        f"{words.tokens(each.tokens_saved)} saved" if each.tokens_saved is not None else "",
        words.count(each.results_removed, "tool result") + " removed"
        if each.results_removed
        else "",
    ]
    said = "compacted" if each.kind == "full" else "old results removed from the context"
    return "  ".join([said, *(fact for fact in facts if fact)])


def _backup(each: "FileBackup") -> str:
    version = f" version {each.version}" if each.version is not None else ""
    by = "" if each.by_call or each.change == "earlier" else ", no call changed it"
    return f"backup of {each.path}{version} ({each.change.replace('_', ' ')}{by})"


def _queued(each: "QueueOperation") -> str:
    return f"queue: {each.operation} {each.content}"


def _text(text: str, pad: str, columns: int, style: str = "") -> Iterator[Line]:
    for line in _wrapped(text, columns - len(pad)):
        yield [pad, (line, style)]


def _wrapped(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a text, with nothing in them that acts on the terminal."""
    for line in clean(without_colours(text.strip("\n")), newlines=True).split("\n"):
        yield from wrap(line, max(_NARROWEST, columns)) or [""]
