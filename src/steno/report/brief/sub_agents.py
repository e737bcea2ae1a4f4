"""Sub-agents of each turn: their prompts, what they wrote and called, and what they reported."""

from collections.abc import Iterable, Mapping, Sequence

from steno.report.brief.agent_progress import AgentProgress
from steno.report.brief.turn_content import SubAgent
from steno.report.brief.turn_positions import TurnPositions
from steno.report.brief.turn_reader import TurnReader
from steno.report.deeds.deed import Deed
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn

__all__ = ["agents_by_turn"]


def agents_by_turn(
    deeds: Iterable[Deed],
    loose: Iterable[Thread],
    turns: Sequence[Turn],
    positions: TurnPositions,
    progress: Mapping[str, AgentProgress],
    reader: TurnReader,
) -> dict[int, list[SubAgent]]:
    """Return the sub-agents by the turn that started them, each before those it started itself.

    `loose` are sub-agents that no call was found for; they go by the time they began. What is left
    of the progress goes by its position in the file.
    """
    found: dict[int, list[SubAgent]] = {}
    families = _Families(progress, reader)
    for deed in deeds:
        if deed.agent or deed.step.kind != "agent":
            continue
        mine = found.setdefault(deed.turn, [])
        thread = deed.step.agent
        if thread is not None:
            mine += families.of(thread)
        elif deed.is_call:
            mine.append(_without_records(deed, families.progress_of(deed.step.call_id)))
    for thread in loose:
        if not thread.warmup and turns:
            found.setdefault(_turn_at(thread, turns), []).extend(families.of(thread))
    for noted in families.progress_left():
        number = positions.at(noted.first)
        if number is not None:
            found.setdefault(number, []).append(_without_call(noted))
    return found


class _Families:
    """Sub-agents with all below them, each told once."""

    def __init__(self, progress: Mapping[str, AgentProgress], reader: TurnReader) -> None:
        self._by_call = progress
        self._by_agent = {noted.agent_id: noted for noted in progress.values() if noted.agent_id}
        self._reader = reader
        self._seen: set[int] = set()
        self._used: set[int] = set()

    def of(self, thread: Thread) -> list[SubAgent]:
        """Return a sub-agent and those it started, without what was told before."""
        made: list[SubAgent] = []
        for each in thread.family():
            if id(each) not in self._seen and not each.warmup:
                self._seen.add(id(each))
                noted = self.progress_of(each.call_id, each.agent_id)
                made.append(_with_records(each, noted, self._reader))
        return made

    def progress_of(self, call_id: str, agent_id: str = "") -> AgentProgress | None:
        """Return what was noted about a sub-agent, by its call or else by its own id."""
        noted = self._by_call.get(call_id) if call_id else None
        noted = noted or (self._by_agent.get(agent_id) if agent_id else None)
        if noted is not None:
            self._used.add(id(noted))
        return noted

    def progress_left(self) -> list[AgentProgress]:
        """Return what was noted about sub-agents of which nothing else is known."""
        once = {id(noted): noted for noted in self._by_call.values()}
        return [noted for name, noted in once.items() if name not in self._used]


def _without_call(noted: AgentProgress) -> SubAgent:
    """Return a sub-agent of which only the progress is left, as in the middle of a session."""
    return SubAgent(
        agent_id=noted.agent_id,
        call_id=noted.call_id,
        prompt=noted.prompt,
        status="unknown",
        source="progress",
        updates=noted.updates,
        texts=tuple(noted.texts),
        calls=tuple(noted.calls),
    )


def _with_records(thread: Thread, noted: AgentProgress | None, reader: TurnReader) -> SubAgent:
    texts, calls = reader.read_all(thread.transcript, thread.turns)
    spawn = thread.spawn
    return SubAgent(
        agent_id=thread.agent_id,
        call_id=thread.call_id,
        parent_id=thread.parent.agent_id if thread.parent is not None else "",
        kind=thread.kind,
        task=thread.description,
        prompt=thread.prompt or (spawn.prompt if spawn is not None else ""),
        status=thread.status,
        background=thread.asynchronous,
        source="transcript",
        updates=noted.updates if noted is not None else 0,
        texts=texts,
        calls=calls,
        report=thread.report.strip(),
    )


def _without_records(deed: Deed, noted: AgentProgress | None) -> SubAgent:
    """Return a sub-agent that has no records: from the call, its result and its progress."""
    step = deed.step
    given, kept = deed.given, deed.kept
    prompt, agent_id = given.get("prompt"), kept.get("agentId")
    if not isinstance(agent_id, str):
        agent_id = noted.agent_id if noted is not None else ""
    return SubAgent(
        agent_id=agent_id,
        call_id=step.call_id,
        kind=step.verb,
        task=step.subject,
        prompt=prompt if isinstance(prompt, str) else noted.prompt if noted is not None else "",
        status=deed.told_status,
        background=given.get("run_in_background") is True or kept.get("isAsync") is True,
        source="progress" if noted is not None else "result",
        updates=noted.updates if noted is not None else 0,
        texts=tuple(noted.texts) if noted is not None else (),
        calls=tuple(noted.calls) if noted is not None else (),
        report=deed.told_report.strip(),
    )


def _turn_at(thread: Thread, turns: Sequence[Turn]) -> int:
    """Return the last turn that had begun when a sub-agent began."""
    started = thread.turns[0].started if thread.turns else None
    number = turns[-1].number
    if started is not None:
        for turn in reversed(turns):
            if turn.started is not None and turn.started <= started:
                return turn.number
        return turns[0].number
    return number
