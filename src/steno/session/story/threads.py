"""Sub-agents: whose work they are, and what they did.

They lie in three places: inside the main file (1.0), beside it (2.0), and in a folder of the
session (2.1). Which call started one is told, in this order, by the result of the call, by its own
`.meta.json`, by the notification it sent, by the progress the client noted, by its prompt, and for
those inside the main file by their order.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from steno.format.sidecars import AgentMeta
from steno.session.nodes import Node
from steno.session.story.spawns import Clues, Spawn, clues_in
from steno.session.story.titles import first_prompt
from steno.session.story.usage import Counter, Totals
from steno.session.transcript import Transcript

if TYPE_CHECKING:
    from steno.session.story.steps import Step
    from steno.session.story.turns import Telling, Turn

__all__ = ["WARMUP", "AgentFile", "Cast", "Thread", "agent_nodes", "cast_of"]

WARMUP: Final = "Warmup"
"""What 2.0 asks of the idle agents that it starts with every session."""


class AgentFile(msgspec.Struct, frozen=True):
    """A sub-agent's own transcript, as the store found it."""

    agent_id: str
    transcript: Transcript
    meta: AgentMeta | None = None
    path: str = ""


class Thread:
    """One sub-agent."""

    def __init__(
        self,
        transcript: Transcript,
        nodes: Sequence[Node],
        *,
        agent_id: str = "",
        meta: AgentMeta | None = None,
        path: str = "",
    ) -> None:
        self.agent_id = agent_id
        self.path = path
        self._telling: Telling | None = None
        self.grow(transcript, nodes, meta)

    def __repr__(self) -> str:
        return f"<Thread {self.agent_id or '(inline)'} {self.kind}>"

    def grow(
        self, transcript: Transcript, nodes: Sequence[Node], meta: AgentMeta | None = None
    ) -> None:
        """Take in the records that there are by now; whose work it is must be found out anew."""
        self.transcript = transcript
        self.nodes = tuple(nodes)
        self.meta = meta
        self.spawn: Spawn | None = None
        self.parent: Thread | None = None
        self.children: tuple[Thread, ...] = ()
        self.depth = 1
        self.notification: Node | None = None
        self.reported = ""
        self._agents: Mapping[str, Thread] = {}
        for name in ("prompt", "turns", "usage"):
            self.__dict__.pop(name, None)

    @property
    def inline(self) -> bool:
        """Whether it lies inside the main file."""
        return not self.path

    @property
    def kind(self) -> str:
        """What sort of agent it is."""
        said = self.spawn.kind if self.spawn else ""
        return said or (self.meta.agent_type if self.meta else "")

    @property
    def description(self) -> str:
        """What it was started for, in a few words."""
        said = self.spawn.description if self.spawn else ""
        return said or (self.meta.description if self.meta else "")

    @cached_property
    def prompt(self) -> str:
        """What it was told."""
        return first_prompt(self.transcript, self.nodes, agent=True)

    @property
    def warmup(self) -> bool:
        """Whether it is one of the idle agents that 2.0 starts with every session."""
        return self.prompt.strip() == WARMUP

    @property
    def call_id(self) -> str:
        """The tool call that started it."""
        return self.spawn.call_id if self.spawn else ""

    @property
    def asynchronous(self) -> bool:
        """Whether it worked in the background and reported later."""
        return self.notification is not None or (self.spawn is not None and self.spawn.background)

    @property
    def status(self) -> str:
        """What was last heard of it: completed, failed, killed, running, or unknown."""
        if self.reported:
            return self.reported
        if self.spawn is not None and self.spawn.status not in ("", "async_launched"):
            return self.spawn.status
        if self.meta is not None and self.meta.finished:
            return "completed"
        last = next((node for node in reversed(self.nodes) if node.is_message), None)
        if last is not None and last.type == "assistant" and not last.uses:
            return "completed"
        return "running" if self.spawn is not None and not self.spawn.result else "unknown"

    @cached_property
    def turns(self) -> "list[Turn]":
        """What it did."""
        from steno.session.story.turns import Telling

        if self._telling is None:
            self._telling = Telling(agent=True)
        return self._telling.turns(self.transcript, list(self.nodes), self._agents, {})

    @property
    def steps(self) -> "tuple[Step, ...]":
        """Every step of it."""
        return tuple(step for turn in self.turns for step in turn.steps)

    @property
    def steps_with_deleted(self) -> "tuple[Step, ...]":
        """Every step of it, and what is deleted."""
        return tuple(step for turn in self.turns for step in turn.with_deleted().steps)

    @property
    def report(self) -> str:
        """Its last words."""
        return self.turns[-1].answer if self.turns else ""

    @cached_property
    def usage(self) -> Totals:
        """What it cost, without the agents it started itself."""
        counter = Counter()
        self.count(counter)
        return counter.totals()

    def count(self, counter: Counter) -> None:
        """Add its token figures to a count."""
        counter.add_nodes(self.transcript, self.nodes)

    def join(self, agents: Mapping[str, "Thread"]) -> None:
        """Let it know the agents it may have started."""
        self._agents = agents

    def family(self) -> "Iterator[Thread]":
        """Yield it and all below it."""
        stack: list[Thread] = [self]
        while stack:
            thread = stack.pop()
            yield thread
            stack.extend(reversed(thread.children))


class Cast:
    """All sub-agents of a session."""

    def __init__(self, threads: list[Thread], clues: Sequence[Clues] = ()) -> None:
        self.all = tuple(threads)
        self.roots = tuple(t for t in threads if t.spawn is not None and t.parent is None)
        self.loose = tuple(t for t in threads if t.spawn is None)
        self.clues = clues
        """What each file with sub-agents in it says about them, the main one first."""
        self.by_name: dict[str, Thread] = {}
        for thread in threads:
            for name in (thread.agent_id, thread.call_id):
                if name:
                    self.by_name.setdefault(name, thread)
            thread.join(self.by_name)


def cast_of(
    transcript: Transcript,
    files: Sequence[AgentFile],
    *,
    inline: bool = True,
    before: Cast | None = None,
) -> Cast:
    """Return the sub-agents of a session, each tied to the call that started it.

    `before` are those of the same session when it was shorter: they grow, and are the same ones.
    """
    before = before or Cast([])
    known = {(thread.path, thread.agent_id): thread for thread in before.all}
    threads = [_thread(file, known) for file in files]
    if inline:
        threads += _inline(transcript, {thread.agent_id for thread in threads}, known)
    if not threads:
        return Cast([])
    sources: list[tuple[Thread | None, Transcript]] = [(None, transcript)]
    sources += [(thread, thread.transcript) for thread in threads if not thread.inline]
    read = {id(found.nodes[0]): found for found in before.clues if found.nodes}
    clues = [(owner, clues_in(source, _first(source, read))) for owner, source in sources]
    _tie(threads, clues)
    _plant(threads)
    return Cast(sorted(threads, key=_order), [found for _, found in clues])


def _thread(file: AgentFile, known: Mapping[tuple[str, str], Thread]) -> Thread:
    path, nodes = file.path or file.agent_id, agent_nodes(file.transcript)
    thread = known.get((path, file.agent_id))
    if thread is None:
        thread = Thread(file.transcript, (), agent_id=file.agent_id, path=path)
    thread.grow(file.transcript, nodes, file.meta)
    return thread


def _first(source: Transcript, read: Mapping[int, Clues]) -> Clues | None:
    """Return what was read of a file before, known by its first record."""
    return read.get(id(source.nodes[0])) if source.nodes else None


def _order(thread: Thread) -> tuple[bool, int, str]:
    if thread.spawn is not None:
        return False, thread.spawn.node.index, thread.agent_id
    first = thread.nodes[0].index if thread.nodes and thread.inline else 0
    return True, first, thread.agent_id


def agent_nodes(transcript: Transcript) -> list[Node]:
    """Return the conversation of a sub-agent's file: all of it, in order, the last of its name."""
    names = transcript.by_uuid
    return [
        node
        for node in transcript.nodes
        if (node.uuid and names[node.uuid] is node) or (not node.uuid and node.is_message)
    ]


def _inline(
    transcript: Transcript, known: set[str], before: Mapping[tuple[str, str], Thread]
) -> Iterator[Thread]:
    """Yield the sub-agents inside the main file: by their id, else by where they begin."""
    groups: dict[str, list[Node]] = {}
    group_of: dict[str, str] = {}
    for node in transcript.nodes:
        if not node.sidechain:
            continue
        parent = group_of.get(node.parent or "")
        name = node.agent_id or parent or f"@{node.index}"
        groups.setdefault(name, []).append(node)
        if node.uuid:
            group_of[node.uuid] = name
    for name, nodes in groups.items():
        if name not in known:
            agent_id = "" if name.startswith("@") else name
            thread = before.get(("", agent_id)) if agent_id else None
            thread = thread or Thread(transcript, (), agent_id=agent_id)
            thread.grow(transcript, nodes)
            yield thread


_Sources = list[tuple[Thread | None, Clues]]


def _tie(threads: list[Thread], clues: _Sources) -> None:
    """Find the call that started each."""
    taken: set[str] = set()
    about, calls = _told(clues)
    for thread in threads:
        meta = thread.meta.tool_use_id if thread.meta else ""
        places = {*about.get(thread.agent_id, ()), *calls.get(meta, ())}
        for owner, found in (clues[place] for place in sorted(places)):
            if owner is not thread:
                _by_name(thread, owner, found, taken)
    by_words = _by_prompt(clues)
    for thread in threads:
        if thread.spawn is None and not thread.warmup:
            _by_words(thread, by_words, taken)
    in_order = deque(clues[0][1].spawns.values())
    for thread in threads:
        if thread.spawn is None and thread.inline and not thread.warmup:
            _by_order(thread, in_order, taken)


def _told(clues: _Sources) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return which sources say something about an agent, and which hold a call, by their ids."""
    about: dict[str, list[int]] = {}
    calls: dict[str, list[int]] = {}
    for place, (_, found) in enumerate(clues):
        for name in {*found.notices, *found.started, *found.seen}:
            about.setdefault(name, []).append(place)
        for call in found.spawns:
            places = calls.setdefault(call, [])
            # The first that is not the agent itself decides, however many repeat it.
            if len(places) <= 1:
                places.append(place)
    return about, calls


def _by_name(thread: Thread, owner: Thread | None, found: Clues, taken: set[str]) -> None:
    name = thread.agent_id
    notice = found.notices.get(name) if name else None
    if notice is not None and thread.notification is None:
        thread.notification, thread.reported = notice.node, notice.status
    meta = thread.meta.tool_use_id if thread.meta else ""
    calls = (found.started.get(name), meta, notice.call_id if notice else "", found.seen.get(name))
    for call in calls:
        spawn = found.spawns.get(call) if call else None
        if spawn is not None and thread.spawn is None and name:
            _bind(thread, owner, spawn, taken)


_Offers = dict[str, deque[tuple[Thread | None, Spawn]]]


def _by_prompt(clues: _Sources) -> _Offers:
    """Return the calls by the words they gave to their agent."""
    offers: _Offers = {}
    for owner, found in clues:
        for spawn in found.spawns.values():
            if words := spawn.prompt.strip():
                offers.setdefault(words, deque()).append((owner, spawn))
    return offers


def _by_words(thread: Thread, offers: _Offers, taken: set[str]) -> None:
    same = offers.get(thread.prompt.strip(), deque())
    own: list[tuple[Thread | None, Spawn]] = []
    while same:
        owner, spawn = same.popleft()
        if spawn.call_id in taken:
            continue
        if owner is not thread:
            _bind(thread, owner, spawn, taken)
            break
        own.append((owner, spawn))
    same.extendleft(reversed(own))


def _by_order(thread: Thread, calls: deque[Spawn], taken: set[str]) -> None:
    """Take the first call that is left; agents and calls both come in the order of the file."""
    start = thread.nodes[0].index if thread.nodes else 0
    while calls and (calls[0].call_id in taken or calls[0].node.sidechain):
        calls.popleft()
    if calls and calls[0].node.index < start:
        _bind(thread, None, calls.popleft(), taken)


def _bind(thread: Thread, owner: Thread | None, spawn: Spawn, taken: set[str]) -> None:
    thread.spawn, thread.parent = spawn, owner
    taken.add(spawn.call_id)


def _plant(threads: Iterable[Thread]) -> None:
    """Set children and depths; agents that claim each other in a ring are let go."""
    everyone = list(threads)
    sound: set[int] = set()
    for thread in everyone:
        above: Thread | None = thread
        path: set[int] = set()
        while above is not None and id(above) not in sound:
            if id(above) in path:
                above.parent = None
                break
            path.add(id(above))
            above = above.parent
        sound |= path
    children: dict[int, list[Thread]] = {}
    for thread in everyone:
        children.setdefault(id(thread.parent), []).append(thread)
    stack = [(thread, 1) for thread in everyone if thread.parent is None]
    while stack:
        thread, depth = stack.pop()
        thread.depth = depth
        thread.children = tuple(sorted(children.get(id(thread), ()), key=_order))
        stack.extend((child, depth + 1) for child in thread.children)
