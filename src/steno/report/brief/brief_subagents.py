"""Sub-agents of each turn of a brief: prompt, texts, tool calls and report.

Clients from 2.1.12 to 2.1.81 wrote an `agent_progress` record for each message of a sub-agent; for
some sub-agents these are the only record.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from steno.format.lenient_json import as_object, decode_lenient
from steno.format.message import ServerToolUse, Text, ToolResult, ToolUse, read_blocks
from steno.format.records import Record, read_time
from steno.report.actions.action import Action
from steno.report.brief.brief_document import AssistantText, Subagent, ToolCall
from steno.report.brief.brief_reduction import shorten_input
from steno.report.brief.turn_reader import TurnPositions, TurnReader
from steno.session.transcript import Transcript
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn

_PROGRESS_MARK: Final = b'"agent_progress"'


class AgentProgress:
    """The progress of one sub-agent."""

    def __init__(self, call_id: str, first: int, longest: int) -> None:
        self.call_id = call_id
        self.first = first
        """The position of its first record in the file."""
        self.agent_id = ""
        self.prompt = ""
        self.updates = 0
        self.texts: list[AssistantText] = []
        self.calls: list[ToolCall] = []
        self._longest = longest
        self._seen: set[str] = set()

    def add_record(self, data: dict[str, Any], record: Record) -> None:
        """Take in the data of one record."""
        self.updates += 1
        agent_id, prompt = data.get("agentId"), data.get("prompt")
        self.agent_id = self.agent_id or (agent_id if isinstance(agent_id, str) else "")
        self.prompt = self.prompt or (prompt if isinstance(prompt, str) else "")
        outer_message = as_object(data.get("message")) or {}
        message = as_object(outer_message.get("message")) or outer_message
        uuid = outer_message.get("uuid")
        uuid = uuid if isinstance(uuid, str) else ""
        if uuid and uuid in self._seen:
            return
        self._seen.add(uuid)
        timestamp = outer_message.get("timestamp")
        time = read_time(timestamp) if isinstance(timestamp, str) else record.time
        seconds = time.timestamp() if time is not None else None
        is_assistant = "assistant" in (outer_message.get("type"), message.get("role"))
        for block in read_blocks(message.get("content")):
            if isinstance(block, ToolResult):
                self._add_result(block)
            elif is_assistant:
                self._add_block(block, seconds, uuid)

    def _add_block(self, block: Any, time: float | None, uuid: str) -> None:
        order = len(self.texts) + len(self.calls)
        if isinstance(block, ToolUse | ServerToolUse):
            tool_input, cut = shorten_input(block.input, self._longest)
            self.calls.append(
                ToolCall(order=order, id=block.id, tool=block.name, input=tool_input, cut=cut, time=time, uuid=uuid)
            )
        elif isinstance(block, Text) and block.text.strip():
            self.texts.append(AssistantText(order=order, text=block.text, size=len(block.text), time=time, uuid=uuid))

    def _add_result(self, block: ToolResult) -> None:
        state = "failed" if block.is_error else "ok"
        for place, call in enumerate(self.calls):
            if call.id == block.tool_use_id and call.state == "open":
                self.calls[place] = msgspec.structs.replace(call, state=state)


def progress_by_call(transcript: Transcript, longest: int) -> dict[str, AgentProgress]:
    """Return the progress of the sub-agents of a session, by the call that started each."""
    progress_of_calls: dict[str, AgentProgress] = {}
    for node in transcript.of_type("progress"):
        if _PROGRESS_MARK not in transcript.source.read(node.offset, node.length):
            continue
        record = transcript.record(node)
        value: Any = decode_lenient(record.envelope.data) if record.envelope.data else None
        if not isinstance(value, dict):
            continue
        data = cast("dict[str, Any]", value)
        if data.get("type") != "agent_progress":
            continue
        call_ids = _call_ids(record)
        progress = next((progress_of_calls[call_id] for call_id in call_ids if call_id in progress_of_calls), None)
        progress = progress or AgentProgress(call_ids[0] if call_ids else "", node.index, longest)
        progress.add_record(data, record)
        for name in call_ids or [""]:
            progress_of_calls.setdefault(name, progress)
    return progress_of_calls


def _call_ids(record: Record) -> list[str]:
    """Return the ids of the call: clients name it as the parent, a description as `toolUseID`."""
    values = (record.fields.get(name) for name in ("parentToolUseID", "toolUseID"))
    return [value for value in values if isinstance(value, str) and value]


def subagents_by_turn(
    actions: Iterable[Action],
    unlinked: Iterable[Thread],
    turns: Sequence[Turn],
    positions: TurnPositions,
    progress: Mapping[str, AgentProgress],
    reader: TurnReader,
) -> dict[int, list[Subagent]]:
    """Return the sub-agents by the turn that started them, each before those it started itself.

    `loose` are sub-agents that no call was found for; they go by the time they began. What is left
    of the progress goes by its position in the file.
    """
    agents: dict[int, list[Subagent]] = {}
    collector = _SubagentCollector(progress, reader)
    for action in actions:
        if action.agent or action.step.kind != "agent":
            continue
        turn_agents = agents.setdefault(action.turn, [])
        thread = action.step.agent
        if thread is not None:
            turn_agents += collector.with_descendants(thread)
        elif action.is_call:
            turn_agents.append(_agent_without_records(action, collector.progress_of(action.step.call_id)))
    for thread in unlinked:
        if not thread.warmup and turns:
            agents.setdefault(_turn_of_thread(thread, turns), []).extend(collector.with_descendants(thread))
    for agent_progress in collector.progress_left():
        number = positions.turn_at(agent_progress.first)
        if number is not None:
            agents.setdefault(number, []).append(_agent_without_call(agent_progress))
    return agents


class _SubagentCollector:
    """Sub-agents with all below them, each told once."""

    def __init__(self, progress: Mapping[str, AgentProgress], reader: TurnReader) -> None:
        self._by_call = progress
        self._by_agent = {noted.agent_id: noted for noted in progress.values() if noted.agent_id}
        self._reader = reader
        self._seen: set[int] = set()
        self._used: set[int] = set()

    def with_descendants(self, thread: Thread) -> list[Subagent]:
        """Return a sub-agent and those it started, without what was told before."""
        agents: list[Subagent] = []
        for descendant in thread.family():
            if id(descendant) not in self._seen and not descendant.warmup:
                self._seen.add(id(descendant))
                agent_progress = self.progress_of(descendant.call_id, descendant.agent_id)
                agents.append(_agent_with_records(descendant, agent_progress, self._reader))
        return agents

    def progress_of(self, call_id: str, agent_id: str = "") -> AgentProgress | None:
        """Return what was noted about a sub-agent, by its call or else by its own id."""
        agent_progress = self._by_call.get(call_id) if call_id else None
        agent_progress = agent_progress or (self._by_agent.get(agent_id) if agent_id else None)
        if agent_progress is not None:
            self._used.add(id(agent_progress))
        return agent_progress

    def progress_left(self) -> list[AgentProgress]:
        """Return what was noted about sub-agents of which nothing else is known."""
        unique = {id(agent_progress): agent_progress for agent_progress in self._by_call.values()}
        return [noted for name, noted in unique.items() if name not in self._used]


def _agent_without_call(progress: AgentProgress) -> Subagent:
    """Return a sub-agent of which only the progress is left, as in the middle of a session."""
    return Subagent(
        agent_id=progress.agent_id,
        call_id=progress.call_id,
        prompt=progress.prompt,
        status="unknown",
        source="progress",
        updates=progress.updates,
        texts=tuple(progress.texts),
        calls=tuple(progress.calls),
    )


def _agent_with_records(thread: Thread, progress: AgentProgress | None, reader: TurnReader) -> Subagent:
    texts, calls = reader.read_turns(thread.transcript, thread.turns)
    spawn = thread.spawn
    return Subagent(
        agent_id=thread.agent_id,
        call_id=thread.call_id,
        parent_id=thread.parent.agent_id if thread.parent is not None else "",
        kind=thread.kind,
        task=thread.description,
        prompt=thread.prompt or (spawn.prompt if spawn is not None else ""),
        status=thread.status,
        background=thread.asynchronous,
        source="transcript",
        updates=progress.updates if progress is not None else 0,
        texts=texts,
        calls=calls,
        report=thread.report.strip(),
    )


def _agent_without_records(action: Action, progress: AgentProgress | None) -> Subagent:
    """Return a sub-agent that has no records: from the call, its result and its progress."""
    step = action.step
    tool_input, client_result = action.tool_input, action.client_result
    prompt, agent_id = tool_input.get("prompt"), client_result.get("agentId")
    if not isinstance(agent_id, str):
        agent_id = progress.agent_id if progress is not None else ""
    return Subagent(
        agent_id=agent_id,
        call_id=step.call_id,
        kind=step.verb,
        task=step.subject,
        prompt=prompt if isinstance(prompt, str) else progress.prompt if progress is not None else "",
        status=action.told_status,
        background=tool_input.get("run_in_background") is True or client_result.get("isAsync") is True,
        source="progress" if progress is not None else "result",
        updates=progress.updates if progress is not None else 0,
        texts=tuple(progress.texts) if progress is not None else (),
        calls=tuple(progress.calls) if progress is not None else (),
        report=action.told_report.strip(),
    )


def _turn_of_thread(thread: Thread, turns: Sequence[Turn]) -> int:
    """Return the last turn that had begun when a sub-agent began."""
    started = thread.turns[0].started if thread.turns else None
    number = turns[-1].number
    if started is not None:
        for turn in reversed(turns):
            if turn.started is not None and turn.started <= started:
                return turn.number
        return turns[0].number
    return number
