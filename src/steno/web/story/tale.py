"""A conversation with all that hangs on it: what a page about it begins with."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import NotFound
from steno.report.costs import Cost, cost_of_nodes
from steno.report.prices import Prices
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.story.branches import Branch
from steno.session.story.figures import (
    Figures,
    agents_among,
    figures_of,
    last_model,
    steps_in,
    worked,
)
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn, tell
from steno.session.transcript import Transcript

if TYPE_CHECKING:
    from steno.web.bodies.about import About
    from steno.web.house import House
    from steno.web.place import Place
    from steno.web.story.find import Finds

__all__ = ["Side", "Tale", "name_of", "tale_of"]

_Stretch = tuple[str, str, int, int, int]
"""Some records: the day, whose they are, the first, the last, and how many."""
_COLOURS: Final = 4
_KEPT: Final = 8


class Side(msgspec.Struct, frozen=True):
    """An abandoned branch, and where it left."""

    number: int
    branch: Branch
    after: int
    """The turn behind which it is drawn; 0 for before the first."""
    depth: int = 1
    """How many branches it is off the conversation."""
    first: int = 1
    """What its first turn would have been."""


class _Costs:
    """What stretches of a conversation cost: what has not changed need not be read again."""

    def __init__(self, before: dict[_Stretch, Cost] | None = None) -> None:
        self._known: dict[_Stretch, Cost] = {}
        self._before = before or {}

    def get(self, key: _Stretch) -> Cost | None:
        """Return what a stretch cost, if that is known."""
        return self._known.get(key) or self._before.get(key)

    def put(self, key: _Stretch, cost: Cost) -> None:
        """Keep what a stretch cost."""
        self._known[key] = cost

    def later(self) -> "_Costs":
        """Return the same for the conversation when it has grown; what nobody asked for is gone."""
        return _Costs(self._known or self._before)


class Tale:
    """One conversation: a session's own, or a sub-agent's."""

    def __init__(
        self, session: Session, prices: Prices, agent: str = "", *, alone: bool = False
    ) -> None:
        self.session = session
        self.agent = agent
        self.prices = prices
        self.thread = thread_of(session, agent) if agent and not alone else None
        """The sub-agent that it is about; one whose session is not here is a session itself."""
        self.parts: dict[str, str] = {}
        """Pieces of pages that were drawn already: many readers may want the same."""
        self.finds: dict[tuple[str, ...], Finds] = {}
        """Where the words are that somebody looked for last."""
        self.costs = _Costs()
        self.about: About | None = None
        """What the bodies of all its steps know, where steps have no addresses of their own."""

    @property
    def transcript(self) -> Transcript:
        """Where it is written."""
        return self.thread.transcript if self.thread is not None else self.session.transcript

    @cached_property
    def turns(self) -> list[Turn]:
        """What happened."""
        return self.thread.turns if self.thread is not None else self.session.turns()

    @cached_property
    def seam_numbers(self) -> dict[int, int]:
        """The number of each compaction that is shown, by the place of its boundary."""
        seams = [seam for turn in self.turns for seam in (*turn.seams, turn.closing) if seam]
        return {seam.boundary.index: number for number, seam in enumerate(seams, 1)}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every record of it, in file order, abandoned ones as well."""
        return self.thread.nodes if self.thread is not None else tuple(self.transcript.nodes)

    @cached_property
    def figures(self) -> Figures:
        """It in numbers."""
        if self.thread is None:
            return figures_of(self.session)
        turns = self.turns
        return Figures(
            turns=len(turns),
            steps=sum(steps_in(turn.steps) for turn in turns),
            failed=sum(turn.errors for turn in turns),
            worked=worked(turns),
            agents=len(agents_among(self.thread.children)),
            model=last_model(self.nodes),
        )

    @cached_property
    def marks(self) -> list[str]:
        """One word for each turn, which changes when it, or what was abandoned behind it, does."""
        behind = self.sides_by_turn
        return [
            mark_of(turn, [len(side.branch.nodes) for side in behind.get(turn.number, ())])
            for turn in self.turns
        ]

    # Sub-agents

    @cached_property
    def _colours(self) -> dict[int, int]:
        # First those that the session itself called, then those that these called.
        everyone = dict.fromkeys((*self.session.agents, *self.session.all_agents))
        return {id(each): place for place, each in enumerate(everyone)}

    def colour(self, thread: Thread) -> int:
        """Return a sub-agent's colour: 1 to 4, in order of appearance."""
        return self._colours.get(id(thread), 0) % _COLOURS + 1

    # Branches

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """What was abandoned, each at its place."""
        if self.thread is not None or not self.session.branches:
            return ()
        owner: dict[int, tuple[int, int]] = {}
        for turn in self.turns:
            for node in turn.nodes:
                owner[node.index] = turn.number, 0
        starts = [(turn.nodes[0].index, turn.number) for turn in self.turns if turn.nodes]
        made: list[Side] = []
        for number, branch in enumerate(self.session.branches, 1):
            fork = owner.get(branch.fork.index) if branch.fork is not None else None
            after, depth = fork or (_before(starts, branch.nodes[0].index), 0)
            made.append(Side(number, branch, after, depth + 1, after + 1))
            for node in branch.nodes:
                owner.setdefault(node.index, (after, depth + 1))
        return tuple(made)

    @cached_property
    def sides_by_turn(self) -> dict[int, list[Side]]:
        """The same by the turn they are drawn behind."""
        found: dict[int, list[Side]] = {}
        for side in self.sides:
            found.setdefault(side.after, []).append(side)
        return found

    def side(self, number: int) -> Side:
        """Return an abandoned branch by its number.

        Raises:
            NotFound: there is none.
        """
        if not 1 <= number <= len(self.sides):
            raise NotFound(f"no branch {number} was abandoned in this session")
        return self.sides[number - 1]

    def side_turns(self, side: Side) -> list[Turn]:
        """Return what happened in an abandoned branch."""
        agents = {
            name: each
            for each in self.session.all_agents
            for name in (each.agent_id, each.call_id)
            if name
        }
        return tell(self.transcript, side.branch.nodes, agents=agents)

    # Where things are

    @cached_property
    def turn_at(self) -> dict[int, int]:
        """The turn of every record in the conversation, by the record's offset."""
        return {node.offset: turn.number for turn in self.turns for node in turn.nodes}

    @cached_property
    def side_at(self) -> dict[int, int]:
        """The branch of every abandoned record, by the record's offset."""
        return {node.offset: side.number for side in self.sides for node in side.branch.nodes}

    # What it cost

    @cached_property
    def day(self) -> str:
        """The day whose prices hold."""
        first = next((turn.started for turn in self.turns if turn.started is not None), None)
        return first.astimezone().strftime("%Y-%m-%d") if first is not None else ""

    def cost(self, turn: Turn) -> Cost:
        """Return what a turn cost, without its sub-agents."""
        return self._cost(self.transcript, turn.nodes)

    def cost_of_side(self, side: Side) -> Cost:
        """Return what an abandoned branch cost."""
        return self._cost(self.transcript, side.branch.nodes)

    def cost_of_agent(self, thread: Thread) -> Cost:
        """Return what a sub-agent and those that it started cost."""
        costs = (self._cost(each.transcript, each.nodes, each.path) for each in thread.family())
        return sum(costs, Cost())

    def cost_of_all(self) -> Cost:
        """Return what all of it cost, with its sub-agents and what was abandoned."""
        own = self._cost(self.transcript, self.nodes)
        files = (each for each in self.session.all_agents if not each.inline)
        return sum((self._cost(e.transcript, e.nodes, e.path) for e in files), own)

    def _cost(self, transcript: Transcript, nodes: Sequence[Node], path: str = "") -> Cost:
        if not nodes:
            return Cost()
        key = self.day, path, nodes[0].offset, nodes[-1].offset, len(nodes)
        found = self.costs.get(key)
        if found is None:
            found = cost_of_nodes(transcript, nodes, self.prices, self.day)
        self.costs.put(key, found)
        return found


def mark_of(turn: Turn, sides: list[int]) -> str:
    """Return what changes when a turn does, however little of it."""
    steps = tuple(
        (step.state, step.outcome, len(step.agent.nodes) if step.agent is not None else 0)
        for step in turn.steps
    )
    last = turn.nodes[-1].offset if turn.nodes else 0
    whole = (turn.number, len(turn.nodes), last, steps, len(turn.answer), turn.interrupted)
    named = hash((whole, tuple(sides)))
    return f"{named & 0xFFFFFFFFFFFF:x}"


def _before(starts: list[tuple[int, int]], index: int) -> int:
    """Return the last turn that begins before a record, in the order of the file."""
    return max((number for start, number in starts if start < index), default=0)


def name_of(thread: Thread) -> str:
    """Return what an address calls a sub-agent; old clients gave them no ids."""
    first = thread.nodes[0].offset if thread.nodes else 0
    return thread.agent_id or thread.call_id or f"@{first}"


def thread_of(session: Session, name: str) -> Thread:
    """Return the sub-agent of that name.

    Raises:
        NotFound: there is none.
    """
    found = next((each for each in session.all_agents if name_of(each) == name), None)
    if found is None:
        raise NotFound(f"no sub-agent of this session is called {name!r}")
    return found


_lock: Final = threading.Lock()
"""Held while a tale is looked up, never while it is made: that may take long."""
_tales: Final[OrderedDict[tuple[str, str], Tale]] = OrderedDict()


def tale_of(house: "House", session: Session, place: "Place", agent: str = "") -> Tale:
    """Return the tale of a session that is open, or of one of its sub-agents.

    It is kept for as long as the session stays as it is; of those told long ago none.

    Raises:
        NotFound: there is no such sub-agent.
    """
    key = place.path, agent
    with _lock:
        before = _tales.get(key)
    found = before
    if found is None or found.session is not session:
        # Whoever has the session open has it alone, so nobody else makes the same tale.
        found = Tale(session, house.prices, agent, alone=bool(place.agent))
        if before is not None and before.transcript.nodes[:1] == found.transcript.nodes[:1]:
            # The very same records: the file was only added to.
            found.costs = before.costs.later()
    with _lock:
        _tales[key] = found
        _tales.move_to_end(key)
        while len(_tales) > _KEPT:
            _tales.popitem(last=False)
        return found
