"""View model of one conversation: turns, branches, sub-agents, costs, header."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import NotFound
from steno.format.dialects.detection import dialect_label
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.report.humanize import money
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
"""Identifies a range of records: day, thread, first and last record, number of records."""
_COLOUR_COUNT: Final = 4
_MAX_VIEWS: Final = 8


class AbandonedBranch(msgspec.Struct, frozen=True):
    """An abandoned branch and its position."""

    number: int
    branch: Branch
    after_turn: int
    """The turn after which the branch is shown; 0 for before the first."""
    depth: int = 1
    """Nesting depth of the branch."""
    first_turn: int = 1
    """Number of the branch's first turn."""


class _CostCache:
    """Cost by range of records; unchanged ranges are not priced again."""

    def __init__(self, previous: dict[_CostKey, Cost] | None = None) -> None:
        self._costs: dict[_CostKey, Cost] = {}
        self._previous = previous or {}

    def get_cost(self, key: _CostKey) -> Cost | None:
        """Return the cost of a range, or None if unknown."""
        return self._costs.get(key) or self._previous.get(key)

    def put_cost(self, key: _CostKey, cost: Cost) -> None:
        """Store the cost of a range."""
        self._costs[key] = cost

    def for_grown_session(self) -> "_CostCache":
        """Return a cache for the session after it has grown, without unused entries."""
        return _CostCache(self._costs or self._previous)


class SessionView:
    """The conversation of a session or a sub-agent."""

    def __init__(self, session: Session, prices: PriceTable, agent: str = "", *, alone: bool = False) -> None:
        self.session = session
        self.agent = agent
        self.prices = prices
        self.subagent = find_subagent(session, agent) if agent and not alone else None
        """The sub-agent; None for a session, or for a sub-agent whose session is not indexed."""
        self.html_cache: dict[str, str] = {}
        """Rendered HTML fragments, shared by requests."""
        self.find_cache: dict[tuple[str, ...], SearchResult] = {}
        """Results of recent searches."""
        self.cost_cache = _CostCache()
        self.shared_context: ViewContext | None = None
        """View context of all steps, used if steps have no URLs."""

    @property
    def transcript(self) -> Transcript:
        """Return the transcript."""
        return self.subagent.transcript if self.subagent is not None else self.session.transcript

    @cached_property
    def turns(self) -> list[Turn]:
        """Return the turns."""
        return self.subagent.turns if self.subagent is not None else self.session.turns()

    @cached_property
    def compaction_numbers(self) -> dict[int, int]:
        """Return the number of each visible compaction by the index of its boundary record."""
        seams = [compaction for turn in self.turns for compaction in (*turn.seams, turn.closing) if compaction]
        return {seam.boundary.index: number for number, seam in enumerate(seams, 1)}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Return all records in file order, including those of abandoned branches."""
        return self.subagent.nodes if self.subagent is not None else tuple(self.transcript.nodes)

    @cached_property
    def figures(self) -> SessionCounts:
        """Return the counts of the conversation."""
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
        """Return a fingerprint per turn that changes with the turn or its abandoned branches."""
        branches = self.branches_by_turn
        return [
            turn_fingerprint(turn, [len(branch.branch.nodes) for branch in branches.get(turn.number, ())])
            for turn in self.turns
        ]

    # Sub-agents

    @cached_property
    def _colour_numbers(self) -> dict[int, int]:
        # Number sub-agents of the session first, then their sub-agents.
        everyone = dict.fromkeys((*self.session.agents, *self.session.all_agents))
        return {id(subagent): position for position, subagent in enumerate(everyone)}

    def subagent_colour(self, subagent: Thread) -> int:
        """Return the colour number of a sub-agent, from 1 to 4."""
        return self._colour_numbers.get(id(subagent), 0) % _COLOUR_COUNT + 1

    # Branches

    @cached_property
    def abandoned_branches(self) -> tuple[AbandonedBranch, ...]:
        """Return the abandoned branches with their positions."""
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
        """Return the abandoned branches by the turn after which they are shown."""
        by_turn: dict[int, list[AbandonedBranch]] = {}
        for branch in self.abandoned_branches:
            by_turn.setdefault(branch.after_turn, []).append(branch)
        return by_turn

    def abandoned_branch(self, number: int) -> AbandonedBranch:
        """Return an abandoned branch by its number.

        Raises:
            NotFound: The branch does not exist.
        """
        if not 1 <= number <= len(self.abandoned_branches):
            raise NotFound(f"no abandoned branch {number} in this session")
        return self.abandoned_branches[number - 1]

    def branch_turns(self, branch: AbandonedBranch) -> list[Turn]:
        """Return the turns of an abandoned branch."""
        agents = {
            name: subagent
            for subagent in self.session.all_agents
            for name in (subagent.agent_id, subagent.call_id)
            if name
        }
        return build_turns(self.transcript, branch.branch.nodes, agents=agents)

    # Positions

    @cached_property
    def turn_by_offset(self) -> dict[int, int]:
        """Return the turn of each record by the offset of the record."""
        return {node.offset: turn.number for turn in self.turns for node in turn.nodes}

    @cached_property
    def branch_by_offset(self) -> dict[int, int]:
        """Return the abandoned branch of each record by the offset of the record."""
        return {node.offset: branch.number for branch in self.abandoned_branches for node in branch.branch.nodes}

    # Cost

    @cached_property
    def price_date(self) -> str:
        """Return the day whose prices apply."""
        first = next((turn.started for turn in self.turns if turn.started is not None), None)
        return humanize.local_date(first)

    def turn_cost(self, turn: Turn) -> Cost:
        """Return the cost of a turn without its sub-agents."""
        return self._cached_cost(self.transcript, turn.nodes)

    def branch_cost(self, branch: AbandonedBranch) -> Cost:
        """Return the cost of an abandoned branch."""
        return self._cached_cost(self.transcript, branch.branch.nodes)

    def subagent_cost(self, subagent: Thread) -> Cost:
        """Return the cost of a sub-agent and its sub-agents."""
        costs = (
            self._cached_cost(descendant.transcript, descendant.nodes, descendant.path)
            for descendant in subagent.family()
        )
        return sum(costs, Cost())

    def total_cost(self) -> Cost:
        """Return the total cost, including sub-agents and abandoned branches."""
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
    """Return a fingerprint that changes with any change of the turn."""
    steps = tuple(
        (step.state, step.outcome, len(step.agent.nodes) if step.agent is not None else 0) for step in turn.steps
    )
    last = turn.nodes[-1].offset if turn.nodes else 0
    turn_state = (turn.number, len(turn.nodes), last, steps, len(turn.answer), turn.interrupted)
    digest = hash((turn_state, tuple(branch_sizes)))
    return f"{digest & 0xFFFFFFFFFFFF:x}"


def _last_turn_before(starts: list[tuple[int, int]], index: int) -> int:
    """Return the last turn that starts before a record in the file."""
    return max((number for start, number in starts if start < index), default=0)


def subagent_key(subagent: Thread) -> str:
    """Return the ID of a sub-agent in URLs; old versions of Claude Code recorded no ID."""
    first = subagent.nodes[0].offset if subagent.nodes else 0
    return subagent.agent_id or subagent.call_id or f"@{first}"


def find_subagent(session: Session, name: str) -> Thread:
    """Return a sub-agent by its ID.

    Raises:
        NotFound: The sub-agent does not exist.
    """
    subagent = next((candidate for candidate in session.all_agents if subagent_key(candidate) == name), None)
    if subagent is None:
        raise NotFound(f"no sub-agent {name!r} in this session")
    return subagent


_views_lock: Final = threading.Lock()
"""Held while views are looked up, not while they are built, which may be slow."""
_views: Final[OrderedDict[tuple[str, str], SessionView]] = OrderedDict()


def session_view(app_state: "AppState", session: Session, session_ref: "SessionRef", agent: str = "") -> SessionView:
    """Return the view of an open session or of one of its sub-agents.

    The view is cached until the session changes or closes.

    Raises:
        NotFound: The sub-agent does not exist.
    """
    key = session_ref.path, agent
    with _views_lock:
        previous = _views.get(key)
    view = previous
    if view is None or view.session is not session:
        # The caller has exclusive use of the session, so no other thread builds this view.
        view = SessionView(session, app_state.prices, agent, alone=bool(session_ref.subagent))
        if previous is not None and previous.transcript.nodes[:1] == view.transcript.nodes[:1]:
            # The file was only appended to.
            view.cost_cache = previous.cost_cache.for_grown_session()
    with _views_lock:
        _views[key] = view
        _views.move_to_end(key)
        while len(_views) > _MAX_VIEWS:
            _views.popitem(last=False)
        return view


_STATUS_LABELS: Final = {
    "running": "Live, turn {}",
    "waiting": "Live, waiting for input",
    "finished": "Finished",
    "interrupted": "Interrupted",
    "failed": "Failed",
}
"""Labels of statuses. Each takes one line, so that the page does not shift when the status changes."""


class SessionIndexInfo(msgspec.Struct):
    """Index data of a session."""

    metadata: SessionIndexRow
    cost: int | None = 0
    """Cost in micro-dollars including sub-agents, excluding responses paid for in other sessions."""
    copied_responses: int = 0
    """Responses paid for in another session."""
    earlier: str = ""
    later: str = ""
    age: float = 0.0
    """Seconds since the last activity."""


class Badge(msgspec.Struct):
    """A count in the header."""

    icon: str
    text: str
    css_class: str = ""
    href: str = ""


class SessionHeader(msgspec.Struct):
    """The header of a session page."""

    title: str
    project: str = ""
    branch: str = ""
    short: str = ""
    status: str = ""
    live: bool = False
    status_label: str = ""
    """Label of the status; empty if unknown."""
    reason: str = ""
    facts: Sequence[str] = ()
    cost: str = ""
    copied: str = ""
    """Note on responses excluded from the cost."""
    badges: Sequence[Badge] = ()
    gone: bool = False


def session_index_info(
    app_state: "AppState", index: "SessionIndex", session_ref: "SessionRef", *, with_costs: bool = True
) -> SessionIndexInfo:
    """Return the index data of a session; without `with_costs`, only what is fast to read."""
    metadata = session_index_row(index.connection, session_ref.file)
    indexed = SessionIndexInfo(metadata, age=activity_age(app_state.now(), metadata.ended, metadata.grown))
    if with_costs:
        indexed.earlier, indexed.later = neighbour_keys(index.connection, session_ref.file, metadata)
        figures = usage_by_session(index.connection, [session_ref.file], app_state.prices).get(session_ref.file)
        indexed.cost = figures.cost if figures is not None else 0
        indexed.copied_responses = count_copied_responses(index.connection, session_ref.file)
    return indexed


def live_status(view: SessionView, age: float, *, gone: bool) -> Status:
    """Return the status of a conversation."""
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
    """Return the header of a session or sub-agent page."""
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
        f"excludes {humanize.count(indexed.copied_responses, 'copied response')}" if indexed.copied_responses else "",
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
        badges.append(Badge("rewind", f"{disconnected:,} disconnected", href="#p-out"))
    if figures.failed:
        badges.append(Badge("warn", f"{figures.failed:,} failed", "bad"))
    gaps = [gap for gap in view.transcript.gaps if gap.damage]
    if gaps:
        badges.append(Badge("warn", f"{humanize.count(len(gaps), 'gap')} in the file", "warn", "#p-find"))
    return badges
