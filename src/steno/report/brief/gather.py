"""A session → its brief."""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from steno.report.brief.agent_progress import progress_by_call
from steno.report.brief.commits import commits, linked_pulls, pulls
from steno.report.brief.context_compactions import compactions_by_turn
from steno.report.brief.decisions import decisions
from steno.report.brief.file_changes import backups_by_turn, only_in_backups
from steno.report.brief.left import left_open, uncommitted
from steno.report.brief.queue_operations import queue_by_turn
from steno.report.brief.sub_agents import agents_by_turn
from steno.report.brief.troubles import troubles
from steno.report.brief.turn_positions import TurnPositions
from steno.report.brief.turn_reader import TurnReader
from steno.report.brief.values import Asked, Brief, Pull, Work
from steno.report.brief.work import changed, helpers, looks, ran, tested, tools
from steno.report.deeds.deed import Deed, deeds_of, loose_deeds
from steno.session.session import Session
from steno.session.story.spawns import clues_in
from steno.session.story.titles import cut_title
from steno.session.story.turns import Turn

__all__ = ["brief_of"]

_BY_CLIENT: Final = frozenset(("summary", "meta"))
"""Origins of words that nobody asked with."""


def brief_of(
    session: Session,
    *,
    since: float | None = None,
    until: float | None = None,
    age: float | None = None,
    skip: Container[str] = (),
    full: bool = False,
) -> Brief:
    """Return a session in brief.

    `since` and `until` leave only the turns that began in that time (seconds since 1970; `until` is
    the first moment behind it); what is open at the end is told of the whole session. `age` is how
    many seconds ago the file was written to: it says whether the session may still be at work.
    `skip` are the ids of prompts whose turns are told elsewhere: forks and resumed sessions hold
    copies of them. `full` keeps the parameters of calls whole, however long.

    Raises:
        Unreadable: the file changed while it was read.
    """
    turns = session.turns()
    deeds = _all_deeds(session, turns)
    project = session.project
    whole = _whole(session, turns, deeds)
    shown = [turn for turn in turns if _is_in(turn, since, until) and _uuid(turn) not in skip]
    by_turn: dict[int, list[Deed]] = {turn.number: [] for turn in turns}
    for deed in deeds:
        by_turn[deed.turn].append(deed)
    content = _Content(session, turns, deeds, whole, full=full)
    whole = content.work
    facts = session.facts
    status = session.status(age)
    told = tuple(content.asked(turn, by_turn[turn.number]) for turn in shown)
    work = whole if len(shown) == len(turns) else _of_some(whole, told, by_turn, project)
    return Brief(
        id=session.id,
        title=_title(session, turns),
        project=project,
        branch=session.branch,
        models=session.models,
        started=_seconds(facts.started),
        ended=_seconds(facts.ended),
        seconds=_worked(shown),
        standing=status.standing,
        reason=status.reason,
        turns=told,
        elsewhere=len(turns) - len(shown),
        work=work,
        open=left_open(turns, deeds, whole, status, _uncommitted(session, deeds)),
        gaps=sum(bool(gap.damage) for gap in session.transcript.gaps),
    )


def _title(session: Session, turns: Sequence[Turn]) -> str:
    """Return what it is called; without a name, what was asked first."""
    title = session.title
    if title.source != "none":
        return title.text
    prompts = (cut_title(turn.prompt.text) for turn in turns if turn.prompt is not None)
    return next(filter(None, prompts), title.text)


def _all_deeds(session: Session, turns: Sequence[Turn]) -> list[Deed]:
    seen: set[int] = set()
    found = [deed for turn in turns for deed in deeds_of(turn, session.transcript, seen)]
    _hear(found, session)
    last = turns[-1].number if turns else 0
    return [*found, *loose_deeds(session.loose_agents, last, seen)]


def _hear(deeds: Iterable[Deed], session: Session) -> None:
    """Give calls the reports of sub-agents in the background that have no records."""
    silent = [
        deed
        for deed in deeds
        if deed.step.kind == "agent" and deed.step.agent is None and not deed.agent and deed.is_call
    ]
    if silent:
        notices = clues_in(session.transcript).notices
        by_call = {notice.call_id: notice for notice in notices.values() if notice.call_id}
        for deed in silent:
            name = deed.kept.get("agentId")
            noted = notices.get(name) if isinstance(name, str) else None
            deed.notice = noted or by_call.get(deed.step.call_id)


def _is_in(turn: Turn, since: float | None, until: float | None) -> bool:
    if since is None and until is None:
        return True
    moment = _seconds(turn.started)
    if moment is None:
        return False
    return (since is None or moment >= since) and (until is None or moment < until)


def _uuid(turn: Turn) -> str:
    return (turn.prompt.node.uuid or "") if turn.prompt is not None else ""


def _worked(turns: Sequence[Turn]) -> float:
    """Return how long was worked: what turns took, where they overlap only once."""
    spans = sorted(
        (turn.started.timestamp(), turn.started.timestamp() + turn.duration)
        for turn in turns
        if turn.started is not None and turn.duration
    )
    took, reached = 0.0, float("-inf")
    for start, end in spans:
        took += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return took


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _whole(session: Session, turns: Sequence[Turn], deeds: list[Deed]) -> Work:
    """Return all that was done; what only the whole session tells is found here, once."""
    project = session.project
    answered = not turns or turns[-1].failure is None
    failed, slips = troubles(deeds, project, answered=answered)
    made = pulls(deeds)
    known = {pull.url for pull in made}
    linked = {pull.url: pull for pull in linked_pulls(session.transcript, turns)}
    pulled: list[Pull] = [*made, *(each for url, each in linked.items() if url not in known)]
    rest = Work(
        commits=commits(deeds),
        pulls=tuple(pulled),
        decisions=decisions(deeds, {turn.number: turn.answer for turn in turns}, project),
        troubles=failed,
        slips=slips,
    )
    return _part(rest, deeds, None, project)


def _of_some(
    whole: Work, turns: Sequence[Asked], deeds: dict[int, list[Deed]], project: str
) -> Work:
    numbers = sorted(turn.number for turn in turns)
    some = [each for turn in numbers for each in deeds[turn]]
    alone = dict.fromkeys(path for turn in turns for path in turn.work.snapshot_files)
    work = _part(whole, some, set(numbers), project)
    return msgspec.structs.replace(work, snapshot_files=tuple(alone))


def _part(whole: Work, deeds: Sequence[Deed], turns: set[int] | None, project: str) -> Work:
    """Return the work of some turns, of all where none are named."""

    def within(turn: int) -> bool:
        return turns is None or turn in turns

    files = changed(deeds, project)
    return Work(
        tools=tools(deeds),
        files=files,
        snapshot_files=whole.snapshot_files if turns is None else (),
        changed=len(files),
        added=sum(each.added for each in files),
        removed=sum(each.removed for each in files),
        commands=ran(deeds, project),
        looks=looks(deeds),
        tests=tested(deeds, project),
        helpers=helpers(deeds),
        commits=tuple(each for each in whole.commits if within(each.turn)),
        pulls=tuple(each for each in whole.pulls if within(each.turn)),
        decisions=tuple(each for each in whole.decisions if within(each.turn)),
        troubles=tuple(each for each in whole.troubles if within(each.turn)),
        slips=whole.slips if turns is None else 0,
    )


class _Content:
    """What belongs to each turn, gathered once for the whole session."""

    def __init__(
        self,
        session: Session,
        turns: Sequence[Turn],
        deeds: Sequence[Deed],
        whole: Work,
        *,
        full: bool,
    ) -> None:
        transcript, self._project = session.transcript, session.project
        positions = TurnPositions(transcript, turns)
        self._reader = TurnReader(full=full)
        self._transcript = transcript
        began = _seconds(session.facts.started)
        backups = backups_by_turn(transcript, positions, session.project, began)
        changed = {each.path for each in whole.files}
        self._backups, alone = only_in_backups(backups, changed)
        self.work = msgspec.structs.replace(whole, snapshot_files=tuple(alone))
        self._compactions = compactions_by_turn(session, turns, positions)
        self._queue = queue_by_turn(transcript, positions)
        progress = progress_by_call(transcript, self._reader.longest)
        self._agents = agents_by_turn(
            deeds, session.loose_agents, turns, positions, progress, self._reader
        )

    def asked(self, turn: Turn, deeds: Sequence[Deed]) -> Asked:
        """Return a turn with everything that belongs to it."""
        prompt, number = turn.prompt, turn.number
        said = "" if prompt is None or prompt.origin in _BY_CLIENT else prompt.text
        rows = self._reader.read(self._transcript, turn)
        compactions = tuple(
            msgspec.structs.replace(each, order=rows.orders.get(each.uuid, 0))
            for each in self._compactions.get(number, ())
        )
        backups = self._backups.get(number, [])
        work = _part(self.work, deeds, {number}, self._project)
        only = (each for each in backups if not each.by_call and each.change != "earlier")
        alone = dict.fromkeys(each.path for each in only)
        work = msgspec.structs.replace(work, snapshot_files=tuple(alone))
        by_human = prompt is not None and prompt.origin == "human"
        return Asked(
            number=number,
            uuid=_uuid(turn),
            origin=prompt.origin if prompt is not None else "",
            text=said.strip(),
            images=prompt.images if prompt is not None else 0,
            meanwhile=self._reader.queued(self._transcript, turn),
            answer=turn.answer.strip(),
            started=_seconds(turn.started),
            seconds=turn.duration,
            interrupted=turn.interrupted,
            compacted=any(each.kind == "full" and each.order < 0 for each in compactions),
            idle=not (turn.answer or rows.calls or work.tools or turn.interrupted or by_human),
            texts=rows.texts,
            calls=rows.calls,
            agents=tuple(self._agents.get(number, ())),
            backups=tuple(backups),
            compactions=compactions,
            queue=tuple(self._queue.get(number, ())),
            work=work,
        )


def _uncommitted(session: Session, deeds: list[Deed]) -> list[str]:
    """Return the changed files that are in no commit, where the project is one of git's."""
    by_git = bool(session.branch) or any(
        deed.shell is not None and deed.shell.runs("git") for deed in deeds
    )
    return uncommitted(deeds, session.project) if by_git else []
