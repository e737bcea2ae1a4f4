"""Turns, abandoned branches and rows that stand for turns: what the page is made of."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from steno.format.records import read_time
from steno.report import words
from steno.report.costs import Cost
from steno.safe.html import Html
from steno.session.nodes import Node
from steno.session.story.figures import GIVEN_UP, steps_in
from steno.session.story.prompts import Prompt
from steno.session.story.steps import one_line
from steno.session.story.turns import Turn
from steno.web.bodies.pictures import Shown, thumbnails
from steno.web.paint import duration, money
from steno.web.render.markdown import marked
from steno.web.story.prompts import Asked, asked
from steno.web.story.seams import own_address
from steno.web.story.steps import Manner, is_hidden, step_lines
from steno.web.story.tale import Side, Tale

__all__ = [
    "PRIME",
    "Fold",
    "More",
    "SideBox",
    "TurnBox",
    "context_at",
    "fold_of",
    "more_of",
    "side_of",
    "turn_of",
]

_WHY: Final = {
    "rewind": "after rewinding to turn {}",
    "edited": "a prompt that was taken back before it was answered",
    "dangling": "hangs on a record that is not in the file",
    "second root": "begins on its own",
}
PRIME: Final = "\u2032"
"""Marks the numbers of turns that were abandoned."""
_TO: Final = "\u2013"


class TurnBox(msgspec.Struct):
    """A turn, drawn in full."""

    id: str
    number: str
    clock: str = ""
    asked: Asked | None = None
    lines: Sequence[Html] = ()
    answer: Html | None = None
    later: Sequence[Html] = ()
    """Steps that were noted behind the answer."""
    foot: Sequence[tuple[str, str]] = ()
    """Figures: the number, and what it is of."""
    cost: str = ""
    agents_cost: str = ""
    interrupted: bool = False
    errors: int = 0
    hidden: str = ""
    """What is not drawn in this detail, in words."""
    href: str = ""
    more: str = ""
    """Where that is drawn."""
    raw: str = ""
    records: str = ""
    kind: str = "turn"


class Fold(msgspec.Struct):
    """Some turns as one row."""

    id: str
    first: int
    last: int
    text: str
    cost: str
    href: str
    source: str
    errors: int = 0
    kind: str = "fold"


class SideBox(msgspec.Struct):
    """An abandoned branch."""

    id: str
    number: str
    clock: str
    word: str
    why: str
    facts: str
    cost: str
    href: str
    source: str
    raw: str = ""
    turns: Sequence[TurnBox] = ()
    shut: bool = False
    kind: str = "side"


class More(msgspec.Struct):
    """Abandoned branches that are not drawn yet."""

    id: str
    text: str
    href: str
    source: str
    kind: str = "more"


def turn_of(
    turn: Turn, tale: Tale, manner: Manner, *, label: str = "", prefix: str = "t"
) -> TurnBox:
    """Return a turn in full."""
    here = manner.links
    first = turn.nodes[0].offset if turn.nodes else 0
    box = TurnBox(f"{prefix}{turn.number}", label or str(turn.number), interrupted=turn.interrupted)
    box.clock = words.clock(turn.started.timestamp()) if turn.started else ""
    box.errors = turn.errors
    box.href = own_address(tale, manner, turn.number)
    box.raw = here.inside(manner.key, "records", tale.agent, **{"from": first, "turn": turn.number})
    box.records = words.count(len(turn.nodes), "record")
    if turn.prompt is not None:
        box.asked = asked(turn.prompt, _pictures(turn.prompt, tale, manner))
    if manner.with_steps or turn.inner_seams:
        only = not manner.with_steps
        box.lines = step_lines(turn.steps, tale, manner, end=turn.before, only_seams=only)
        box.later = step_lines(turn.steps, tale, manner, begin=turn.before, only_seams=only)
    if not manner.everything:
        box.hidden = _hidden(turn, manner)
        box.more = own_address(tale, manner, turn.number, detail="everything")
    if manner.detail != "prompts" and turn.answer:
        box.answer = marked(turn.answer)
    if manner.detail != "prompts":
        _figures(box, turn, tale)
    return box


def _pictures(prompt: Prompt, tale: Tale, manner: Manner) -> tuple[Shown, ...]:
    if not prompt.images:
        return ()
    place = prompt.node.offset

    def address(number: int) -> str:
        return manner.links.inside(manner.key, f"image/{place}-{number}", tale.agent)

    return thumbnails(tale.transcript.record(prompt.node), address)


def _hidden(turn: Turn, manner: Manner) -> str:
    """Return what is not drawn of a turn: notes and hooks, or all of its steps."""
    if not manner.with_steps:
        return "Show its steps" if turn.steps else ""
    left = Counter(step.kind for step in turn.steps if is_hidden(step, manner))
    return ", ".join(words.count(left[kind], kind) for kind in ("note", "hook") if left[kind])


def _figures(box: TurnBox, turn: Turn, tale: Tale) -> None:
    foot: list[tuple[str, str]] = []
    work = steps_in(turn.steps)
    threads = {id(step.agent): step.agent for step in turn.steps if step.agent is not None}
    by_agents = sum(steps_in(each.steps) for each in threads.values())
    if work or by_agents:
        said = f"{'step' if work + by_agents == 1 else 'steps'}"
        foot.append(
            (f"{work + by_agents:,}", said + (f", {by_agents:,} by sub-agents" * bool(by_agents)))
        )
    if turn.duration is not None:
        foot.append((duration(turn.duration), ""))
    usage = turn.usage
    if usage.messages:
        cached = f", {usage.cache_read * 100 // usage.context}% cached" if usage.context else ""
        foot.append((words.tokens(usage.context), f"in{cached}"))
        about = "at least " if usage.estimated else ""
        foot.append((f"{about}{words.tokens(usage.output)}", "out"))
    spent = sum((tale.cost_of_agent(each) for each in threads.values()), Cost())
    own = tale.cost(turn)
    if own.known is not None and usage.messages:
        box.cost = money(own.micro + spent.micro)
        box.agents_cost = money(spent.micro) if spent.micro else ""
    held = context_at(tale, turn.nodes)
    if held:
        foot.append((words.tokens(held), "context"))
    box.foot = foot


def context_at(tale: Tale, nodes: Sequence[Node]) -> int:
    """Return how much the model had before it at the end of some records."""
    for node in reversed(nodes):
        if node.type == "assistant" and node.model and not node.synthetic_error:
            usage = tale.transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return 0


def fold_of(turns: Sequence[Turn], tale: Tale, manner: Manner) -> Fold:
    """Return some turns as one row."""
    first, last = turns[0].number, turns[-1].number
    work = sum(steps_in(turn.steps) for turn in turns)
    asking = next((turn.prompt.text for turn in turns if turn.prompt is not None), "")
    parts = [words.count(len(turns), "turn")] if len(turns) > 1 else []
    parts += [words.count(work, "step")] if work else []
    said = f"{one_line(asking, 160)}"
    cost = sum((tale.cost(turn) for turn in turns), Cost())
    query: dict[str, str | int | None] = {"from": first, "to": last}
    if manner.detail != "steps":
        query["detail"] = manner.detail
    return Fold(
        f"f{first}-{last}",
        first,
        last,
        f"{', '.join(parts)}: {said}" if parts and said else ", ".join(parts) or said,
        money(cost.known),
        own_address(tale, manner, first),
        manner.links.inside(manner.key, "turns", tale.agent, **query),
        sum(turn.errors for turn in turns),
    )


def side_of(side: Side, tale: Tale, manner: Manner, *, opened: bool = False) -> SideBox:
    """Return an abandoned branch; what is in it only when it stands open."""
    branch = side.branch
    begun, ended = (read_time(node.timestamp) for node in _ends(branch.nodes))
    took = (ended - begun).total_seconds() if begun is not None and ended is not None else None
    calls = sum(len(node.uses) for node in branch.nodes)
    facts = [
        words.count(branch.turns, "turn") if branch.turns else "",
        words.count(calls, "step") if calls else words.count(len(branch.nodes), "record"),
        duration(took) if took else "",
    ]
    prime = PRIME * side.depth
    last = side.first + max(branch.turns, 1) - 1
    anchor = f"b{side.number}"
    box = SideBox(
        anchor,
        f"{side.first}{prime}" if last == side.first else f"{side.first}{prime}{_TO}{last}{prime}",
        words.clock(begun.timestamp()) if begun is not None else "",
        "Abandoned" if branch.why in GIVEN_UP else "Broken off",
        _WHY[branch.why].format(side.after),
        ", ".join(fact for fact in facts if fact),
        money(tale.cost_of_side(side).known),
        manner.links.session(manner.key, anchor, turn=side.after or 1, branch=side.number),
        manner.links.inside(manner.key, f"branch/{side.number}", detail=_detail(manner)),
        manner.links.inside(manner.key, "records", "", **{"from": branch.nodes[0].offset}),
    )
    if opened:
        box.shut = manner.shut
        box.turns = [
            turn_of(turn, tale, manner, label=f"{side.first + place}{prime}", prefix=f"{anchor}-")
            for place, turn in enumerate(tale.side_turns(side))
        ]
    return box


def more_of(after: int, number: int, tale: Tale, manner: Manner) -> More:
    """Return a row that stands for further branches behind a turn."""
    first = tale.sides_by_turn[after][-number]
    return More(
        f"m{after}",
        f"{number:,} more abandoned here",
        manner.links.session(manner.key, f"b{first.number}", turn=after or 1, branch=first.number),
        manner.links.inside(manner.key, "sides", "", **{"from": after, "detail": _detail(manner)}),
    )


def _detail(manner: Manner) -> str:
    return "" if manner.detail == "steps" else manner.detail


def _ends(nodes: Sequence[Node]) -> tuple[Node, Node]:
    return nodes[0], nodes[-1]
