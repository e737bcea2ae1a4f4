"""Sub-agents of each turn: their prompts, what they wrote and called, and what they reported."""

from collections.abc import Iterable, Mapping, Sequence

from steno.report.brief.agent_progress import AgentProgress
from steno.report.brief.turn_content import SubAgent
from steno.report.brief.turn_reader import TurnReader
from steno.report.deeds.deed import Deed
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn

__all__ = ["agents_by_turn"]


def agents_by_turn(
    deeds: Iterable[Deed],
    loose: Iterable[Thread],
    turns: Sequence[Turn],
    progress: Mapping[str, AgentProgress],
    reader: TurnReader,
) -> dict[int, list[SubAgent]]:
    """Return the sub-agents by the turn that started them, each before those it started itself.

    `loose` are sub-agents that no call was found for; they go by the time they began.
    """
    found: dict[int, list[SubAgent]] = {}
    seen: set[int] = set()
    for deed in deeds:
        if deed.agent or deed.step.kind != "agent":
            continue
        mine = found.setdefault(deed.turn, [])
        thread = deed.step.agent
        if thread is None:
            if deed.is_call:
                mine.append(_without_records(deed, progress.get(deed.step.call_id)))
        elif id(thread) not in seen:
            mine += _families(thread, progress, reader, seen)
    for thread in loose:
        if id(thread) not in seen and not thread.warmup and turns:
            mine = found.setdefault(_turn_at(thread, turns), [])
            mine += _families(thread, progress, reader, seen)
    return found


def _families(
    thread: Thread,
    progress: Mapping[str, AgentProgress],
    reader: TurnReader,
    seen: set[int],
) -> list[SubAgent]:
    made: list[SubAgent] = []
    for each in thread.family():
        if id(each) not in seen and not each.warmup:
            seen.add(id(each))
            made.append(_with_records(each, progress.get(each.call_id), reader))
    return made


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
    worked = step.state == "ok"
    if not isinstance(agent_id, str):
        agent_id = noted.agent_id if noted is not None else ""
    return SubAgent(
        agent_id=agent_id,
        call_id=step.call_id,
        kind=step.verb,
        task=step.subject,
        prompt=prompt if isinstance(prompt, str) else noted.prompt if noted is not None else "",
        status=_status(deed, kept.get("status")),
        background=given.get("run_in_background") is True or kept.get("isAsync") is True,
        source="progress" if noted is not None else "result",
        updates=noted.updates if noted is not None else 0,
        texts=tuple(noted.texts) if noted is not None else (),
        calls=tuple(noted.calls) if noted is not None else (),
        report=(deed.printed if worked else step.outcome).strip(),
    )


def _status(deed: Deed, stated: object) -> str:
    if isinstance(stated, str) and stated not in ("", "async_launched"):
        return stated
    if stated == "async_launched":
        return "unknown"
    if deed.step.state == "ok":
        return "completed"
    return "running" if deed.step.state == "open" else deed.step.state


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
