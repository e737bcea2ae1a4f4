"""One conversation as pages show it: turns, branches, sub-agents, costs; and its header."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import NotFound
from steno.format.dialects.detection import dialect_label
from steno.report import humanize
from steno.report.humanize import SHORT_ID_LENGTH, money
from steno.report.pricing import Cost, PriceTable, cost_of_nodes
from steno.report.session_list import usage_by_session
from steno.report.session_lookup import SessionIndexRow, count_copied_responses, neighbour_keys, session_index_row
from steno.session.session import Session
from steno.session.session_status import Status, activity_age, status_of
from steno.session.transcript import Node, Transcript
from steno.session.turns.branches import Branch
from steno.session.turns.session_facts import SessionCounts, count_session, count_steps, last_model, working_agents
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn, build_turns, work_milliseconds

if TYPE_CHECKING:
    from steno.index.database import SessionIndex
    from steno.web.state.app_state import AppState
    from steno.web.state.caches import SessionRef
    from steno.web.tool_views.view_context import ViewContext
    from steno.web.views.find_in_session import SearchResult


_CostKey = tuple[str, str, int, int, int]
"""Some records: the day, whose they are, the first, the last, and how many."""
_COLOUR_COUNT: Final = 4
_MAX_VIEWS: Final = 8


class AbandonedBranch(msgspec.Struct, frozen=True):
    """An abandoned branch, and where it left."""

    number: int
    branch: Branch
    after_turn: int
    """The turn behind which it is drawn; 0 for before the first."""
    depth: int = 1
    """How many branches it is off the conversation."""
    first_turn: int = 1
    """What its first turn would have been."""


class _CostCache:
    """What stretches of a conversation cost: what has not changed need not be read again."""

    def __init__(self, previous: dict[_CostKey, Cost] | None = None) -> None:
        self._costs: dict[_CostKey, Cost] = {}
        self._previous = previous or {}

    def get_cost(self, key: _CostKey) -> Cost | None:
        """Return what a stretch cost, if that is known."""
        return self._costs.get(key) or self._previous.get(key)

    def put_cost(self, key: _CostKey, cost: Cost) -> None:
        """Keep what a stretch cost."""
        self._costs[key] = cost

    def for_grown_session(self) -> "_CostCache":
        """Return the same for the conversation when it has grown; what nobody asked for is gone."""
        return _CostCache(self._costs or self._previous)


class SessionView:
    """One conversation: a session's own, or a sub-agent's."""

    def __init__(self, session: Session, prices: PriceTable, agent: str = "", *, alone: bool = False) -> None:
        self.session = session
        self.agent = agent
        self.prices = prices
        self.subagent = find_subagent(session, agent) if agent and not alone else None
        """The sub-agent that it is about; one whose session is not here is a session itself."""
        self.html_cache: dict[str, str] = {}
        """Pieces of pages that were drawn already: many readers may want the same."""
        self.find_cache: dict[tuple[str, ...], SearchResult] = {}
        """Where the words are that somebody looked for last."""
        self.cost_cache = _CostCache()
        self.shared_context: ViewContext | None = None
        """What the bodies of all its steps know, where steps have no addresses of their own."""

    @property
    def transcript(self) -> Transcript:
        """Where it is written."""
        return self.subagent.transcript if self.subagent is not None else self.session.transcript

    @cached_property
    def turns(self) -> list[Turn]:
        """What happened."""
        return self.subagent.turns if self.subagent is not None else self.session.turns()

    @cached_property
    def compaction_numbers(self) -> dict[int, int]:
        """The number of each compaction that is shown, by the place of its boundary."""
        seams = [compaction for turn in self.turns for compaction in (*turn.seams, turn.closing) if compaction]
        return {seam.boundary.index: number for number, seam in enumerate(seams, 1)}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every record of it, in file order, abandoned ones as well."""
        return self.subagent.nodes if self.subagent is not None else tuple(self.transcript.nodes)

    @cached_property
    def figures(self) -> SessionCounts:
        """It in numbers."""
        if self.subagent is None:
            return count_session(self.session)
        turns = self.turns
        return SessionCounts(
            turns=len(turns),
            steps=sum(count_steps(turn.steps) for turn in turns),
            failed=sum(turn.errors for turn in turns),
            worked=work_milliseconds(turns),
            agents=len(working_agents(self.subagent.children)),
            model=last_model(self.nodes),
        )

    @cached_property
    def turn_fingerprints(self) -> list[str]:
        """One word for each turn, which changes when it, or what was abandoned behind it, does."""
        branches = self.branches_by_turn
        return [
            turn_fingerprint(turn, [len(branch.branch.nodes) for branch in branches.get(turn.number, ())])
            for turn in self.turns
        ]

    # Sub-agents

    @cached_property
    def _colour_numbers(self) -> dict[int, int]:
        # First those that the session itself called, then those that these called.
        everyone = dict.fromkeys((*self.session.agents, *self.session.all_agents))
        return {id(subagent): position for position, subagent in enumerate(everyone)}

    def subagent_colour(self, subagent: Thread) -> int:
        """Return a sub-agent's colour: 1 to 4, in order of appearance."""
        return self._colour_numbers.get(id(subagent), 0) % _COLOUR_COUNT + 1

    # Branches

    @cached_property
    def abandoned_branches(self) -> tuple[AbandonedBranch, ...]:
        """What was abandoned, each at its place."""
        if self.subagent is not None or not self.session.branches:
            return ()
        turn_and_depth: dict[int, tuple[int, int]] = {}
        for turn in self.turns:
            for node in turn.nodes:
                turn_and_depth[node.index] = turn.number, 0
        starts = [(turn.nodes[0].index, turn.number) for turn in self.turns if turn.nodes]
        abandoned: list[AbandonedBranch] = []
        for number, branch in enumerate(self.session.branches, 1):
            fork = turn_and_depth.get(branch.fork.index) if branch.fork is not None else None
            after, depth = fork or (_last_turn_before(starts, branch.nodes[0].index), 0)
            abandoned.append(AbandonedBranch(number, branch, after, depth + 1, after + 1))
            for node in branch.nodes:
                turn_and_depth.setdefault(node.index, (after, depth + 1))
        return tuple(abandoned)

    @cached_property
    def branches_by_turn(self) -> dict[int, list[AbandonedBranch]]:
        """The same by the turn they are drawn behind."""
        by_turn: dict[int, list[AbandonedBranch]] = {}
        for branch in self.abandoned_branches:
            by_turn.setdefault(branch.after_turn, []).append(branch)
        return by_turn

    def abandoned_branch(self, number: int) -> AbandonedBranch:
        """Return an abandoned branch by its number.

        Raises:
            NotFound: there is none.
        """
        if not 1 <= number <= len(self.abandoned_branches):
            raise NotFound(f"no branch {number} was abandoned in this session")
        return self.abandoned_branches[number - 1]

    def branch_turns(self, branch: AbandonedBranch) -> list[Turn]:
        """Return what happened in an abandoned branch."""
        agents = {
            name: subagent
            for subagent in self.session.all_agents
            for name in (subagent.agent_id, subagent.call_id)
            if name
        }
        return build_turns(self.transcript, branch.branch.nodes, agents=agents)

    # Where things are

    @cached_property
    def turn_by_offset(self) -> dict[int, int]:
        """The turn of every record in the conversation, by the record's offset."""
        return {node.offset: turn.number for turn in self.turns for node in turn.nodes}

    @cached_property
    def branch_by_offset(self) -> dict[int, int]:
        """The branch of every abandoned record, by the record's offset."""
        return {node.offset: branch.number for branch in self.abandoned_branches for node in branch.branch.nodes}

    # What it cost

    @cached_property
    def price_date(self) -> str:
        """The day whose prices hold."""
        first = next((turn.started for turn in self.turns if turn.started is not None), None)
        return humanize.local_date(first)

    def turn_cost(self, turn: Turn) -> Cost:
        """Return what a turn cost, without its sub-agents."""
        return self._cached_cost(self.transcript, turn.nodes)

    def branch_cost(self, branch: AbandonedBranch) -> Cost:
        """Return what an abandoned branch cost."""
        return self._cached_cost(self.transcript, branch.branch.nodes)

    def subagent_cost(self, subagent: Thread) -> Cost:
        """Return what a sub-agent and those that it started cost."""
        costs = (
            self._cached_cost(descendant.transcript, descendant.nodes, descendant.path)
            for descendant in subagent.family()
        )
        return sum(costs, Cost())

    def total_cost(self) -> Cost:
        """Return what all of it cost, with its sub-agents and what was abandoned."""
        session_cost = self._cached_cost(self.transcript, self.nodes)
        files = (subagent for subagent in self.session.all_agents if not subagent.inline)
        return sum((self._cached_cost(e.transcript, e.nodes, e.path) for e in files), session_cost)

    def _cached_cost(self, transcript: Transcript, nodes: Sequence[Node], path: str = "") -> Cost:
        if not nodes:
            return Cost()
        key = self.price_date, path, nodes[0].offset, nodes[-1].offset, len(nodes)
        cost = self.cost_cache.get_cost(key)
        if cost is None:
            cost = cost_of_nodes(transcript, nodes, self.prices, self.price_date)
        self.cost_cache.put_cost(key, cost)
        return cost


def turn_fingerprint(turn: Turn, branch_sizes: list[int]) -> str:
    """Return what changes when a turn does, however little of it."""
    steps = tuple(
        (step.state, step.outcome, len(step.agent.nodes) if step.agent is not None else 0) for step in turn.steps
    )
    last = turn.nodes[-1].offset if turn.nodes else 0
    turn_state = (turn.number, len(turn.nodes), last, steps, len(turn.answer), turn.interrupted)
    digest = hash((turn_state, tuple(branch_sizes)))
    return f"{digest & 0xFFFFFFFFFFFF:x}"


def _last_turn_before(starts: list[tuple[int, int]], index: int) -> int:
    """Return the last turn that begins before a record, in the order of the file."""
    return max((number for start, number in starts if start < index), default=0)


def subagent_key(subagent: Thread) -> str:
    """Return what an address calls a sub-agent; old clients gave them no ids."""
    first = subagent.nodes[0].offset if subagent.nodes else 0
    return subagent.agent_id or subagent.call_id or f"@{first}"


def find_subagent(session: Session, name: str) -> Thread:
    """Return the sub-agent of that name.

    Raises:
        NotFound: there is none.
    """
    subagent = next((candidate for candidate in session.all_agents if subagent_key(candidate) == name), None)
    if subagent is None:
        raise NotFound(f"no sub-agent of this session is called {name!r}")
    return subagent


_views_lock: Final = threading.Lock()
"""Held while a tale is looked up, never while it is made: that may take long."""
_views: Final[OrderedDict[tuple[str, str], SessionView]] = OrderedDict()


def session_view(app_state: "AppState", session: Session, session_ref: "SessionRef", agent: str = "") -> SessionView:
    """Return the tale of a session that is open, or of one of its sub-agents.

    It is kept for as long as the session stays as it is; of those told long ago none.

    Raises:
        NotFound: there is no such sub-agent.
    """
    key = session_ref.path, agent
    with _views_lock:
        previous = _views.get(key)
    view = previous
    if view is None or view.session is not session:
        # Whoever has the session open has it alone, so nobody else makes the same tale.
        view = SessionView(session, app_state.prices, agent, alone=bool(session_ref.subagent))
        if previous is not None and previous.transcript.nodes[:1] == view.transcript.nodes[:1]:
            # The very same records: the file was only added to.
            view.cost_cache = previous.cost_cache.for_grown_session()
    with _views_lock:
        _views[key] = view
        _views.move_to_end(key)
        while len(_views) > _MAX_VIEWS:
            _views.popitem(last=False)
        return view


_STATUS_LABELS: Final = {
    "running": "Live, writing turn {}",
    "waiting": "Live, waiting for you",
    "finished": "Finished",
    "interrupted": "Interrupted",
    "failed": "Failed",
}
"""Each has a line of the head, so that nothing below it moves when a session goes on."""


class SessionIndexInfo(msgspec.Struct):
    """What the index says of a session, looked up once for a page."""

    metadata: SessionIndexRow
    cost: int | None = 0
    """What it and its sub-agents cost; what others paid for already is left out."""
    copied_responses: int = 0
    """Responses in it that another session paid for."""
    earlier: str = ""
    later: str = ""
    age: float = 0.0
    """Seconds since it was last active."""


class Badge(msgspec.Struct):
    """A count that is worth a glance."""

    icon: str
    text: str
    css_class: str = ""
    href: str = ""


class SessionHeader(msgspec.Struct):
    """What stands above the turns."""

    title: str
    project: str = ""
    branch: str = ""
    short: str = ""
    status: str = ""
    live: bool = False
    status_label: str = ""
    """How it stands, in words; nothing for what is over and well."""
    reason: str = ""
    facts: Sequence[str] = ()
    cost: str = ""
    copied: str = ""
    """What the cost leaves out."""
    badges: Sequence[Badge] = ()
    gone: bool = False


def session_index_info(
    app_state: "AppState", index: "SessionIndex", session_ref: "SessionRef", *, with_costs: bool = True
) -> SessionIndexInfo:
    """Return what the index says of a session; without `whole` only what costs nothing to know."""
    metadata = session_index_row(index.connection, session_ref.file)
    indexed = SessionIndexInfo(metadata, age=activity_age(app_state.now(), metadata.ended, metadata.grown))
    if with_costs:
        indexed.earlier, indexed.later = neighbour_keys(index.connection, session_ref.file, metadata)
        figures = usage_by_session(index.connection, [session_ref.file], app_state.prices).get(session_ref.file)
        indexed.cost = figures.cost if figures is not None else 0
        indexed.copied_responses = count_copied_responses(index.connection, session_ref.file)
    return indexed


def live_status(view: SessionView, age: float, *, gone: bool) -> Status:
    """Return how a conversation stands."""
    if view.subagent is not None:
        running = view.subagent.status == "running" and not gone
        return status_of(view.turns, seconds_since_write=age if running else None)
    user_left = False
    for node in reversed(view.transcript.nodes):
        if node.converses or node.type == "cost-state":
            user_left = node.type == "cost-state"
            break
    return status_of(view.turns, seconds_since_write=None if gone else age, left=user_left)


def session_header(
    view: SessionView, session_ref: "SessionRef", indexed: SessionIndexInfo, now: float
) -> SessionHeader:
    """Return the head of a page about a session or a sub-agent."""
    metadata = indexed.metadata
    status = live_status(view, indexed.age, gone=session_ref.is_deleted)
    live = status.standing in ("running", "waiting")
    subagent = view.subagent
    title = metadata.title or session_ref.id
    if subagent is not None:
        title = subagent.description or subagent.prompt.strip().split("\n")[0][:160] or view.agent
    cost = indexed.cost if subagent is None else view.subagent_cost(subagent).amount
    return SessionHeader(
        title,
        metadata.project,
        metadata.branch,
        session_ref.id[:SHORT_ID_LENGTH],
        status.standing,
        live,
        _STATUS_LABELS.get(status.standing, "").format(len(view.turns)),
        status.reason,
        [fact for fact in _header_facts(view, metadata, now) if fact],
        money(cost),
        f"without {humanize.count(indexed.copied_responses, 'copied response')}" if indexed.copied_responses else "",
        [*_header_badges(view)],
        session_ref.is_deleted,
    )


def _header_facts(view: SessionView, metadata: SessionIndexRow, now: float) -> list[str]:
    figures = view.figures
    started = view.turns[0].started if view.turns else None
    started_at = started.timestamp() if started is not None else metadata.started
    when = humanize.day_and_time(started_at, now) if started_at is not None else ""
    return [
        humanize.model_name(figures.model or metadata.model),
        when[:1].lower() + when[1:] if when.startswith(("Today", "Yesterday")) else when,
        humanize.spaced_duration(figures.worked / 1000) if figures.worked else "",
        f"{humanize.count(figures.turns, 'turn')}, {humanize.count(figures.steps, 'step')}",
        view.subagent.kind if view.subagent is not None else "",
        dialect_label(view.transcript.source),
    ]


def _header_badges(view: SessionView) -> list[Badge]:
    badges: list[Badge] = []
    figures = view.figures
    if figures.agents:
        badges.append(Badge("agent", humanize.count(figures.agents, "sub-agent"), href="#p-use"))
    if figures.compactions:
        badges.append(Badge("fold", humanize.count(figures.compactions, "compaction"), href="#c1"))
    if figures.branches:
        badges.append(Badge("rewind", f"{figures.branches:,} abandoned", href="#p-out"))
    disconnected = len(view.abandoned_branches) - figures.branches
    if disconnected > 0:
        badges.append(Badge("rewind", f"{disconnected:,} broken off", href="#p-out"))
    if figures.failed:
        badges.append(Badge("warn", f"{figures.failed:,} failed", "bad"))
    gaps = [gap for gap in view.transcript.gaps if gap.damage]
    if gaps:
        badges.append(Badge("warn", f"{humanize.count(len(gaps), 'gap')} in the file", "warn", "#p-find"))
    return badges
