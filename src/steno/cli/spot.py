"""`steno show --at`: the story around one record."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from steno.cli.records import excerpt
from steno.cli.story import Story
from steno.cli.transcript import Manner, StepTeller, prompt_lines, prose_lines, verb_column
from steno.errors import Ambiguous, NotFound
from steno.index.lines import line_of
from steno.index.words import parts_of
from steno.report import words
from steno.safe.terminal import Line, one_line, wrap
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.story.steps import Step
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["Spot", "spot_lines", "spot_of"]

_AROUND: Final = 3
_PROSE: Final = 84
_MOST: Final = 200
_LONGEST: Final = 19
"""A number with more digits is no place in a file."""


class Spot(msgspec.Struct):
    """A record, and where in the story it is told."""

    transcript: Transcript
    node: Node
    turn: Turn | None = None
    branch: int | None = None
    agent: str | None = None


def spot_of(session: Session, at: str, agent: str | None = None) -> Spot:
    """Return where a record is told: it is named by its id, the first letters of it, or its byte.

    Raises:
        NotFound: there is no such record.
        Ambiguous: several ids begin so.
    """
    threads = [
        thread
        for thread in session.all_agents
        if agent is None or thread.agent_id.startswith(agent.removeprefix("agent-"))
    ]
    if agent is None:
        node = _node(session.transcript, at, by_byte=True)
        if node is not None:
            return _in_session(session, node)
    for thread in threads:
        node = _node(thread.transcript, at, by_byte=agent is not None)
        if node is not None:
            turn = _turn_with(thread.turns, node)
            return Spot(thread.transcript, node, turn, agent=thread.agent_id)
    raise NotFound(f"no record is at {at!r}", hint="`steno show S --records` lists them")


def _node(transcript: Transcript, at: str, *, by_byte: bool) -> Node | None:
    names = transcript.by_uuid
    if at in names:
        return names[at]
    found = [node for name, node in names.items() if at and name.startswith(at)]
    if len(found) > 1:
        raise Ambiguous(f"{len(found)} records begin with {at!r}", hint="write more of the id")
    if found:
        return found[0]
    if by_byte and at.isascii() and at.isdecimal() and len(at) <= _LONGEST:
        byte = int(at)
        nodes = transcript.nodes
        return next((node for node in nodes if 0 <= byte - node.offset < node.length), None)
    return None


def _in_session(session: Session, node: Node) -> Spot:
    spot = Spot(session.transcript, node, _turn_with(session.turns(), node))
    if spot.turn is not None:
        return spot
    for number, branch in enumerate(session.branches, 1):
        if any(each.index == node.index for each in branch.nodes):
            spot.branch = number
            spot.turn = _turn_with(session.turns(branch.leaf), node)
            return spot
    for thread in session.all_agents:
        # In the first clients a sub-agent's records lie among the session's own.
        if thread.transcript is session.transcript and (turn := _turn_with(thread.turns, node)):
            spot.turn, spot.agent = turn, thread.agent_id
    return spot


def _turn_with(turns: list[Turn], node: Node) -> Turn | None:
    return next((t for t in turns if any(each.index == node.index for each in t.nodes)), None)


def spot_lines(story: Story, spot: Spot, manner: Manner) -> Iterator[Line]:
    """Yield the turn that a record is in, from a little before it to a little behind."""
    turn = spot.turn.with_deleted() if spot.turn and manner.everything else spot.turn
    if turn is None:
        yield from _alone(spot, manner)
        return
    yield from story.head([turn], branch=spot.branch, agent=spot.agent)
    yield []
    opened = msgspec.structs.replace(manner, everything=True)
    here = turn.prompt is not None and turn.prompt.node.index == spot.node.index
    yield from prompt_lines(turn.prompt, turn.number, turn.started, opened if here else manner)
    yield []
    place = _place(turn.steps, spot.node)
    if place is not None:
        yield from _around(spot, turn.steps, place, manner)
    elif here:
        yield from _some(spot.transcript, turn.steps[:_AROUND], manner)
        yield from _left(len(turn.steps) - _AROUND, "more ")
    elif spot.node.type == "assistant" and turn.answer:
        yield from _left(len(turn.steps) - _AROUND, "earlier ")
        yield from _some(spot.transcript, turn.steps[-_AROUND:], manner)
        yield []
        for line in prose_lines(turn.answer, manner):
            yield ["    ", *line]
    else:
        yield from _said(spot, manner)
    yield []
    yield _foot(spot)


def _place(steps: tuple[Step, ...], node: Node) -> int | None:
    for place, step in enumerate(steps):
        if any(each is not None and each.index == node.index for each in (step.call, step.result)):
            return place
    return None


def _around(spot: Spot, steps: tuple[Step, ...], place: int, manner: Manner) -> Iterator[Line]:
    first, last = max(0, place - _AROUND), place + 1
    yield from _left(first, "earlier ")
    yield from _some(spot.transcript, steps[first:place], manner)
    step = steps[place]
    if step.kind != "words":
        lines = StepTeller(manner).step(spot.transcript, step, verb_column([step]))
        yield from map(_pointed, islice(lines, 1))
    yield from _said(spot, manner)
    yield from _some(spot.transcript, steps[last : last + _AROUND], manner)
    yield from _left(len(steps) - last - _AROUND, "more ")


def _pointed(line: Line) -> Line:
    """Return the line with an arrow in its margin."""
    text, style = first if isinstance(first := line[0], tuple) else (first, "")
    return [("→ ", "bold yellow"), (text.removeprefix("  "), style), *line[1:]]


def _some(transcript: Transcript, steps: tuple[Step, ...], manner: Manner) -> Iterator[Line]:
    return StepTeller(manner).lines(transcript, steps)


def _left(number: int, where: str) -> Iterator[Line]:
    if number > 0:
        yield [(f"  … {words.count(number, where + 'step')}", "dim")]


def _said(spot: Spot, manner: Manner) -> Iterator[Line]:
    """Yield the words of the record, all that a search finds in it."""
    if spot.node.type == "deleted" and not manner.everything:
        yield ["    ", ("deleted  --all shows what it says", "dim")]
        return
    record = spot.transcript.record(spot.node)
    texts = [part.text for part in parts_of(line_of(record), record.line) if part.text]
    text = "\n\n".join(texts) or excerpt(record, _PROSE)
    lines = wrap(text.strip("\n"), max(manner.width - 6, 20))
    most = len(lines) if manner.everything else _MOST
    for line in lines[:most]:
        yield ["    ", ("│ ", "yellow"), line]
    if len(lines) > most:
        yield ["    ", (f"… {most} of {words.count(len(lines), 'line')}  --all", "dim")]


def _alone(spot: Spot, manner: Manner) -> Iterator[Line]:
    yield [("not a part of the story: a record of its own", "bold")]
    yield []
    yield from _said(spot, manner)
    yield []
    yield _foot(spot)


def _foot(spot: Spot) -> Line:
    record = spot.transcript.record(spot.node)
    parts = (record.uuid or "", record.kind, f"byte {spot.node.offset:,}")
    return [("    " + "  ".join(one_line(part, 60) for part in parts if part), "dim")]
