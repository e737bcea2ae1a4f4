"""Sub-agents: the call that started each, its records, status and usage.

Their records are inside the main file (1.0), in a file next to it (2.0), or in a directory of the session (2.1). The
call that started a sub-agent is found, in this order, by: the result of the call, its `.meta.json`, its notification,
its progress records, its prompt, and for those inside the main file their order. The bytes of a record are searched
before it is decoded, so that long sessions stay fast.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from steno.format.lenient_json import decode_lenient, decode_or_default
from steno.format.message import RecordFields, Text, ToolUse, projection, read_blocks
from steno.format.records import Record
from steno.format.sidecars import AgentMeta
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.session.transcript import Node, Transcript
from steno.session.turns.prompts import WARMUP_PROMPT, first_prompt, tag_content
from steno.session.turns.usage import Totals, UsageCounter

if TYPE_CHECKING:
    from steno.session.turns.steps import Step
    from steno.session.turns.turn_builder import Turn, TurnReader


_AGENT_TOOL_NAMES: Final = tuple(f'"{name}"'.encode() for name in sorted(AGENT_TOOLS))
_NOTIFICATION_TAG: Final = b"<task-notification>"
_REPORT_TYPES: Final = frozenset(("user", "attachment", "queue-operation"))
_PROGRESS_TYPE: Final = b'"agent_progress"'


class SubagentCall(msgspec.Struct, kw_only=True):
    """A call that started, or could have started, a sub-agent."""

    call_id: str
    node: Node
    kind: str = ""
    description: str = ""
    prompt: str = ""
    background: bool = False
    status: str = ""
    result: Node | None = None


class SubagentReport(msgspec.Struct, frozen=True):
    """The report of a background task."""

    node: Node
    call_id: str = ""
    status: str = ""
    report: str = ""


class SubagentReferences:
    """References to sub-agents in one transcript."""

    def __init__(self) -> None:
        self.calls: dict[str, SubagentCall] = {}
        self.calls_by_agent: dict[str, str] = {}
        """Call IDs by the agent that their result names."""
        self.reports: dict[str, SubagentReport] = {}
        """Reports by agent."""
        self.calls_by_progress: dict[str, str] = {}
        """Call IDs by the agent whose progress is recorded under them."""
        self.nodes: list[Node] = []
        """Records that were scanned."""


class _Result(msgspec.Struct, rename="camel"):
    agent_id: str = ""
    is_async: bool = False
    status: str = ""
    description: str = ""
    prompt: str = ""
    agent_type: str = ""


class _Progress(msgspec.Struct, rename="camel"):
    agent_id: str = ""


@projection("data parent_tool_use_id")
class _ProgressLine(RecordFields):
    pass


def find_references(transcript: Transcript, before: SubagentReferences | None = None) -> SubagentReferences:
    """Return the references to sub-agents in a transcript.

    `before` contains the references of its first records; it is extended, and those records are not read again.
    """
    nodes = transcript.nodes
    known = before is not None and nodes[: len(before.nodes)] == before.nodes
    references = before if before is not None and known else SubagentReferences()
    for node in nodes[len(references.nodes) :]:
        _scan_record(references, transcript, node)
    references.nodes = nodes.copy()
    return references


def _scan_record(references: SubagentReferences, transcript: Transcript, node: Node) -> None:
    if node.uses:
        if transcript.cached(node) is not None or _call_names_agent(transcript, node):
            _add_calls(references, transcript.record(node), node)
    elif node.results:
        _add_result(references, transcript, node)
    elif node.type in _REPORT_TYPES:
        if _NOTIFICATION_TAG in transcript.source.read(node.offset, node.length):
            _add_report(references, transcript.record(node), node)
    elif node.type == "progress":
        raw = transcript.source.read(node.offset, node.length)
        if _PROGRESS_TYPE in raw:
            _add_progress(references, raw)


def _call_names_agent(transcript: Transcript, node: Node) -> bool:
    raw = transcript.source.read(node.offset, node.length)
    return any(name in raw for name in _AGENT_TOOL_NAMES)


def _add_calls(references: SubagentReferences, record: Record, node: Node) -> None:
    for block in record.blocks:
        if isinstance(block, ToolUse) and block.name in AGENT_TOOLS and block.id:
            tool_input = block.input
            references.calls.setdefault(
                block.id,
                SubagentCall(
                    call_id=block.id,
                    node=node,
                    kind=_text(tool_input.get("subagent_type")),
                    description=_text(tool_input.get("description")),
                    prompt=_text(tool_input.get("prompt")),
                    background=tool_input.get("run_in_background") is True,
                ),
            )


def _add_result(references: SubagentReferences, transcript: Transcript, node: Node) -> None:
    """Scan the result of a call that may have started an agent, whatever the tool."""
    known = [references.calls[use] for use in node.results if use in references.calls]
    if not known and not _result_names_agent(transcript, node):
        return
    record = transcript.record(node)
    detail = decode_or_default(record.envelope.tool_use_result, _Result)
    if not known and detail.agent_id and len(node.results) == 1:
        spawn = SubagentCall(call_id=node.results[0], node=node, kind=detail.agent_type)
        known = [references.calls.setdefault(spawn.call_id, spawn)]
    for spawn in known:
        spawn.result = spawn.result or node
        spawn.status = detail.status or spawn.status
        spawn.background = detail.is_async or spawn.background
        spawn.kind = spawn.kind or detail.agent_type
        spawn.description = spawn.description or detail.description
        spawn.prompt = spawn.prompt or detail.prompt
        if detail.agent_id:
            references.calls_by_agent.setdefault(detail.agent_id, spawn.call_id)


def _result_names_agent(transcript: Transcript, node: Node) -> bool:
    cached = transcript.cached(node)
    if cached is None:
        return b'"agentId"' in transcript.source.read(node.offset, node.length)
    detail = cached.tool_use_result
    return isinstance(detail, dict) and "agentId" in detail


def _add_report(references: SubagentReferences, record: Record, node: Node) -> None:
    """Add a report; its record in the queue is used only if no other record contains it."""
    text = record.text or _queued_text(record)
    agent = tag_content(text, "task-id")
    before = references.reports.get(agent)
    if agent and (before is None or before.node.type == "queue-operation"):
        tags = ("tool-use-id", "status", "result")
        references.reports[agent] = SubagentReport(node, *(tag_content(text, tag) for tag in tags))


def _queued_text(record: Record) -> str:
    """Return the text of an attachment or a queue entry."""
    envelope = record.envelope
    value: Any = decode_lenient(envelope.attachment) if envelope.attachment else None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("prompt")
    elif envelope.content:
        value = decode_lenient(envelope.content)
    return "\n".join(block.text for block in read_blocks(value) if isinstance(block, Text))


def _add_progress(references: SubagentReferences, raw: bytes) -> None:
    line = decode_or_default(raw, _ProgressLine)
    agent = decode_or_default(line.data, _Progress).agent_id
    if agent and line.parent_tool_use_id:
        references.calls_by_progress.setdefault(agent, line.parent_tool_use_id)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class SubagentFile(msgspec.Struct, frozen=True):
    """A sub-agent's transcript file, as found by the store."""

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
        self._telling: TurnReader | None = None
        self.grow(transcript, nodes, meta)

    def __repr__(self) -> str:
        return f"<Thread {self.agent_id or '(inline)'} {self.kind}>"

    def grow(self, transcript: Transcript, nodes: Sequence[Node], meta: AgentMeta | None = None) -> None:
        """Update the records after growth; the link to the call must be determined again."""
        self.transcript = transcript
        self.nodes = tuple(nodes)
        self.meta = meta
        self.spawn: SubagentCall | None = None
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
        """Whether its records are inside the main file."""
        return not self.path

    @property
    def kind(self) -> str:
        """Agent type."""
        kind = self.spawn.kind if self.spawn else ""
        return kind or (self.meta.agent_type if self.meta else "")

    @property
    def description(self) -> str:
        """Short description of the task."""
        description = self.spawn.description if self.spawn else ""
        return description or (self.meta.description if self.meta else "")

    @cached_property
    def prompt(self) -> str:
        """Prompt of the sub-agent."""
        return first_prompt(self.transcript, self.nodes, agent=True)

    @property
    def warmup(self) -> bool:
        """Whether this is one of the idle agents that Claude Code 2.0 starts with every session."""
        return self.prompt.strip() == WARMUP_PROMPT

    @property
    def call_id(self) -> str:
        """ID of the tool call that started it."""
        return self.spawn.call_id if self.spawn else ""

    @property
    def asynchronous(self) -> bool:
        """Whether it ran in the background and reported later."""
        return self.notification is not None or (self.spawn is not None and self.spawn.background)

    @property
    def status(self) -> str:
        """Last known status: completed, failed, killed, running or unknown."""
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
        """Turns of the sub-agent."""
        from steno.session.turns.turn_builder import TurnReader

        if self._telling is None:
            self._telling = TurnReader(agent=True)
        return self._telling.turns(self.transcript, list(self.nodes), self._agents, {})

    @property
    def steps(self) -> "tuple[Step, ...]":
        """All steps of the sub-agent."""
        return tuple(step for turn in self.turns for step in turn.steps)

    @property
    def steps_with_deleted(self) -> "tuple[Step, ...]":
        """All steps of the sub-agent, including deleted ones."""
        return tuple(step for turn in self.turns for step in turn.with_deleted().steps)

    @property
    def report(self) -> str:
        """Final text."""
        return self.turns[-1].answer if self.turns else ""

    @cached_property
    def usage(self) -> Totals:
        """Token usage, without the agents that it started."""
        counter = UsageCounter()
        self.count(counter)
        return counter.totals()

    def count(self, counter: UsageCounter) -> None:
        """Add its token usage to a counter."""
        counter.add_nodes(self.transcript, self.nodes)

    def join(self, agents: Mapping[str, "Thread"]) -> None:
        """Set the agents that it may have started."""
        self._agents = agents

    def family(self) -> "Iterator[Thread]":
        """Yield this sub-agent and all descendants."""
        stack: list[Thread] = [self]
        while stack:
            thread = stack.pop()
            yield thread
            stack.extend(reversed(thread.children))


class SubagentSet:
    """All sub-agents of a session."""

    def __init__(self, threads: list[Thread], references: Sequence[SubagentReferences] = ()) -> None:
        self.all = tuple(threads)
        self.roots = tuple(t for t in threads if t.spawn is not None and t.parent is None)
        self.loose = tuple(t for t in threads if t.spawn is None)
        self.references = references
        """References of each file with sub-agents, the main file first."""
        self.by_name: dict[str, Thread] = {}
        for thread in threads:
            for name in (thread.agent_id, thread.call_id):
                if name:
                    self.by_name.setdefault(name, thread)
            thread.join(self.by_name)


def find_subagents(
    transcript: Transcript, files: Sequence[SubagentFile], *, inline: bool = True, before: SubagentSet | None = None
) -> SubagentSet:
    """Return the sub-agents of a session, each linked to the call that started it.

    `before` are the sub-agents of the same session before it grew; these objects are updated and reused.
    """
    before = before or SubagentSet([])
    known = {(thread.path, thread.agent_id): thread for thread in before.all}
    threads = [_thread_of_file(file, known) for file in files]
    if inline:
        threads += _inline_threads(transcript, {thread.agent_id for thread in threads}, known)
    if not threads:
        return SubagentSet([])
    sources: list[tuple[Thread | None, Transcript]] = [(None, transcript)]
    sources += [(thread, thread.transcript) for thread in threads if not thread.inline]
    previous = {id(references.nodes[0]): references for references in before.references if references.nodes}
    owners_and_references = [
        (owner, find_references(source, _previous_references(source, previous))) for owner, source in sources
    ]
    _match_calls(threads, owners_and_references)
    _set_hierarchy(threads)
    return SubagentSet(sorted(threads, key=_sort_key), [found for _, found in owners_and_references])


def _thread_of_file(file: SubagentFile, known: Mapping[tuple[str, str], Thread]) -> Thread:
    path, nodes = file.path or file.agent_id, subagent_nodes(file.transcript)
    thread = known.get((path, file.agent_id))
    if thread is None:
        thread = Thread(file.transcript, (), agent_id=file.agent_id, path=path)
    thread.grow(file.transcript, nodes, file.meta)
    return thread


def _previous_references(source: Transcript, read: Mapping[int, SubagentReferences]) -> SubagentReferences | None:
    """Return the earlier references of a file, identified by its first record."""
    return read.get(id(source.nodes[0])) if source.nodes else None


def _sort_key(thread: Thread) -> tuple[bool, int, str]:
    if thread.spawn is not None:
        return False, thread.spawn.node.index, thread.agent_id
    first = thread.nodes[0].index if thread.nodes and thread.inline else 0
    return True, first, thread.agent_id


def subagent_nodes(transcript: Transcript) -> list[Node]:
    """Return the conversation of a sub-agent file: all records in order, without replaced duplicates."""
    names = transcript.by_uuid
    return [
        node
        for node in transcript.nodes
        if (node.uuid and names[node.uuid] is node) or (not node.uuid and node.is_message)
    ]


def _inline_threads(
    transcript: Transcript, known: set[str], before: Mapping[tuple[str, str], Thread]
) -> Iterator[Thread]:
    """Yield the sub-agents inside the main file, by agent ID, else by their first record."""
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


_ReferencesByOwner = list[tuple[Thread | None, SubagentReferences]]


def _match_calls(threads: list[Thread], references: _ReferencesByOwner) -> None:
    assigned: set[str] = set()
    about, calls = _references_by_id(references)
    for thread in threads:
        meta = thread.meta.tool_use_id if thread.meta else ""
        indexes = {*about.get(thread.agent_id, ()), *calls.get(meta, ())}
        for owner, file_references in (references[index] for index in sorted(indexes)):
            if owner is not thread:
                _match_by_id(thread, owner, file_references, assigned)
    calls_by_prompt = _calls_by_prompt(references)
    for thread in threads:
        if thread.spawn is None and not thread.warmup:
            _match_by_prompt(thread, calls_by_prompt, assigned)
    in_order = deque(references[0][1].calls.values())
    for thread in threads:
        if thread.spawn is None and thread.inline and not thread.warmup:
            _match_by_order(thread, in_order, assigned)


def _references_by_id(references: _ReferencesByOwner) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the indexes of sources by the ID of an agent they refer to, and by the ID of a call they contain."""
    about: dict[str, list[int]] = {}
    calls: dict[str, list[int]] = {}
    for index, (_, file_references) in enumerate(references):
        for name in {*file_references.reports, *file_references.calls_by_agent, *file_references.calls_by_progress}:
            about.setdefault(name, []).append(index)
        for call in file_references.calls:
            indexes = calls.setdefault(call, [])
            # The first source other than the agent itself decides, so two are enough.
            if len(indexes) <= 1:
                indexes.append(index)
    return about, calls


def _match_by_id(thread: Thread, owner: Thread | None, references: SubagentReferences, assigned: set[str]) -> None:
    name = thread.agent_id
    report = references.reports.get(name) if name else None
    if report is not None and thread.notification is None:
        thread.notification, thread.reported = report.node, report.status
    meta = thread.meta.tool_use_id if thread.meta else ""
    calls = (
        references.calls_by_agent.get(name),
        meta,
        report.call_id if report else "",
        references.calls_by_progress.get(name),
    )
    for call in calls:
        spawn = references.calls.get(call) if call else None
        if spawn is not None and thread.spawn is None and name:
            _assign_call(thread, owner, spawn, assigned)


_CallsByPrompt = dict[str, deque[tuple[Thread | None, SubagentCall]]]


def _calls_by_prompt(references: _ReferencesByOwner) -> _CallsByPrompt:
    offers: _CallsByPrompt = {}
    for owner, file_references in references:
        for spawn in file_references.calls.values():
            if prompt := spawn.prompt.strip():
                offers.setdefault(prompt, deque()).append((owner, spawn))
    return offers


def _match_by_prompt(thread: Thread, calls_by_prompt: _CallsByPrompt, assigned: set[str]) -> None:
    same_prompt = calls_by_prompt.get(thread.prompt.strip(), deque())
    own_calls: list[tuple[Thread | None, SubagentCall]] = []
    while same_prompt:
        owner, spawn = same_prompt.popleft()
        if spawn.call_id in assigned:
            continue
        if owner is not thread:
            _assign_call(thread, owner, spawn, assigned)
            break
        own_calls.append((owner, spawn))
    same_prompt.extendleft(reversed(own_calls))


def _match_by_order(thread: Thread, calls: deque[SubagentCall], assigned: set[str]) -> None:
    """Assign the first remaining call; agents and calls are both in file order."""
    start = thread.nodes[0].index if thread.nodes else 0
    while calls and (calls[0].call_id in assigned or calls[0].node.sidechain):
        calls.popleft()
    if calls and calls[0].node.index < start:
        _assign_call(thread, None, calls.popleft(), assigned)


def _assign_call(thread: Thread, owner: Thread | None, spawn: SubagentCall, assigned: set[str]) -> None:
    thread.spawn, thread.parent = spawn, owner
    assigned.add(spawn.call_id)


def _set_hierarchy(threads: Iterable[Thread]) -> None:
    """Set children and depths; agents in a parent cycle are unlinked."""
    all_threads = list(threads)
    acyclic: set[int] = set()
    for thread in all_threads:
        ancestor: Thread | None = thread
        path: set[int] = set()
        while ancestor is not None and id(ancestor) not in acyclic:
            if id(ancestor) in path:
                ancestor.parent = None
                break
            path.add(id(ancestor))
            ancestor = ancestor.parent
        acyclic |= path
    children: dict[int, list[Thread]] = {}
    for thread in all_threads:
        children.setdefault(id(thread.parent), []).append(thread)
    stack = [(thread, 1) for thread in all_threads if thread.parent is None]
    while stack:
        thread, depth = stack.pop()
        thread.depth = depth
        thread.children = tuple(sorted(children.get(id(thread), ()), key=_sort_key))
        stack.extend((child, depth + 1) for child in thread.children)
