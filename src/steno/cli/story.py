"""The parts of a session's story in order: head, turns, and the branches where they leave."""

from collections.abc import Iterator
from typing import Any

import msgspec

from steno.cli.screen import Screen
from steno.cli.transcript import Manner, branch_lines, turn_lines
from steno.errors import NotFound
from steno.format.dialects.detection import label_of, records_in_dialect
from steno.report import clock, words
from steno.safe.terminal import Bit, Line, cut, one_line, width
from steno.session.session import Session
from steno.session.story.branches import Branch
from steno.session.story.compactions import Compaction
from steno.session.story.figures import worked
from steno.session.story.steps import Step
from steno.session.story.threads import Thread
from steno.session.story.titles import cut_title
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript
from steno.store.found import Found
from steno.store.glance import Glance, glance

__all__ = ["Story", "seam_json", "step_json"]


class Story:
    """One session, told to one screen."""

    def __init__(self, found: Found, session: Session, screen: Screen) -> None:
        self._found = found
        self._screen = screen
        self._session = session
        self._look: Glance = glance(found, clock.now())
        self._name = session.id[:8]

    def manner(self, *, thinking: bool, everything: bool) -> Manner:
        """Return how to tell it on this screen."""
        return Manner(
            width=self._screen.width,
            project=self._look.project,
            thinking=thinking,
            everything=everything,
            unicode=self._screen.paint.unicode,
        )

    def lines(
        self, manner: Manner, turn: int | None, branch: int | None, agent: str | None
    ) -> Iterator[Line]:
        """Yield the story, or the part of it that was asked for."""
        transcript, turns = self._part(branch, agent)
        chosen = _only(_shown(turns, everything=manner.everything), turn)
        yield from self._head(turns, branch, agent)
        main = branch is None and agent is None
        for each in chosen:
            yield []
            yield from turn_lines(transcript, each, manner)
            if main:
                leaving = list(self._leaving(each))
                if leaving:
                    yield []
                yield from branch_lines(leaving, manner)
        if main and turn is None:
            rest = list(self._unplaced(turns))
            if rest:
                yield []
            yield from branch_lines(rest, manner)
            yield from self._left_over()

    def _left_over(self) -> Iterator[Line]:
        """Yield what the story does not tell: gaps in the file, sub-agents that nobody called."""
        gaps = [gap for gap in self._session.transcript.gaps if gap.damage]
        if gaps:
            lost = words.size(sum(gap.length for gap in gaps))
            said = f"{words.count(len(gaps), 'gap')} in the file, {lost} that are no record"
            yield []
            yield self._fitting(("! ", "yellow"), said, "  --records shows them")
        for thread in self._session.loose_agents:
            if not thread.warmup:
                said = f"sub-agent {thread.agent_id}  {thread.description or thread.prompt}"
                yield self._fitting(("▪ ", "dim"), said, "  --agent ID opens it")

    def _fitting(self, mark: Bit, said: str, hint: str) -> Line:
        room = self._screen.width - 2
        said = one_line(said, max(room - len(hint), room // 2))
        return [mark, said, (cut(hint, room - width(said)), "dim")]

    def _part(self, branch: int | None, agent: str | None) -> tuple[Transcript, list[Turn]]:
        if agent is not None:
            thread = self._agent(agent)
            return thread.transcript, thread.turns
        turns = self._session.turns() if branch is None else self._branch(branch)
        return self._session.transcript, turns

    def _branch(self, number: int) -> list[Turn]:
        """Return the turns of an abandoned branch that are not in the conversation."""
        branches = self._session.branches
        if not 1 <= number <= len(branches):
            there = f"there are {len(branches)}" if branches else "nothing was abandoned"
            raise NotFound(f"no branch {number}; {there}")
        own = {node.index for node in branches[number - 1].nodes}
        turns = self._session.turns(branches[number - 1].leaf)
        return [turn for turn in turns if any(node.index in own for node in turn.nodes)]

    def _agent(self, name: str) -> Thread:
        """Return the sub-agent of that id, or of an id that begins so."""
        wanted = name.removeprefix("agent-")
        agents = self._session.all_agents
        found = [thread for thread in agents if wanted and thread.agent_id.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        many = f"{len(found)} sub-agents are" if found else "no sub-agent is"
        known = ", ".join(thread.agent_id for thread in agents[:8] if thread.agent_id)
        raise NotFound(f"{many} called {name!r}", hint=f"there are: {known}" if known else "")

    def head(
        self, turns: list[Turn], *, branch: int | None = None, agent: str | None = None
    ) -> Iterator[Line]:
        """Yield what the session is called, and the figures of some turns."""
        return self._head(turns, branch, agent)

    def _head(self, turns: list[Turn], branch: int | None, agent: str | None) -> Iterator[Line]:
        look, wide = self._look, self._screen.width
        yield [(one_line(self._title(turns), wide), "bold")]
        if agent:
            thread = self._agent(agent)
            said = one_line(f"{thread.kind}  {thread.description}", wide - 40)
            yield [("sub-agent ", "dim"), (thread.agent_id, "bold magenta"), "  ", said]
        if branch is not None:
            yield [(f"abandoned branch {branch} of {len(self._session.branches)}", "yellow")]
        took = worked(turns) / 1000
        parts = (
            words.project_name(look.project),
            look.branch,
            words.model_name(look.model),
            words.count(len(turns), "turn"),
            words.duration(took) if took else "",
            "" if look.status in ("finished", "empty") else look.status,
            label_of(self._session.transcript.source),
        )
        about = cut("  ".join(one_line(part) for part in parts if part), wide - 10)
        yield [(self._name, "bold"), (f"  {about}", "dim")]

    def _title(self, turns: list[Turn]) -> str:
        title = self._session.title
        if title.source == "summary":
            return title.text
        first = turns[0].prompt if turns else None
        return self._look.title or (cut_title(first.text) if first else "") or title.text

    def _leaving(self, turn: Turn) -> Iterator[tuple[int, Branch]]:
        here = {node.index for node in turn.nodes}
        for number, branch in enumerate(self._session.branches, 1):
            if branch.fork is not None and branch.fork.index in here:
                yield number, branch

    def _unplaced(self, turns: list[Turn]) -> Iterator[tuple[int, Branch]]:
        """Yield branches that leave no turn: second roots, and branches of branches."""
        here = {node.index for turn in turns for node in turn.nodes}
        for number, branch in enumerate(self._session.branches, 1):
            if branch.fork is None or branch.fork.index not in here:
                yield number, branch

    def as_json(
        self, turn: int | None, branch: int | None, agent: str | None, *, everything: bool = False
    ) -> dict[str, Any]:
        """Return the story for programs; what is deleted is part of it only on request."""
        _, turns = self._part(branch, agent)
        look = self._look
        return {
            "id": look.id,
            "title": self._title(turns),
            "project": look.project,
            "branch": look.branch,
            "model": look.model,
            "version": look.version,
            "dialect": look.dialect,
            "records_in_dialect": records_in_dialect(self._session.transcript.source),
            "status": look.status,
            "turns": [
                _turn_json(each) for each in _only(_shown(turns, everything=everything), turn)
            ],
            "abandoned": [_branch_json(each) for each in self._session.branches],
        }


def _shown(turns: list[Turn], *, everything: bool) -> list[Turn]:
    """Return turns as they are shown: with what is deleted only on request."""
    return [turn.with_deleted() for turn in turns] if everything else turns


def _only(turns: list[Turn], number: int | None) -> list[Turn]:
    if number is None:
        return turns
    chosen = [turn for turn in turns if turn.number == number]
    if not chosen:
        there = words.count(len(turns), "turn")
        raise NotFound(f"no turn {number}; the session has {there}")
    return chosen


def _branch_json(branch: Branch) -> dict[str, Any]:
    return {
        "why": branch.why,
        "fork": branch.fork.uuid if branch.fork else None,
        "leaf": branch.leaf.uuid,
        "records": len(branch.nodes),
        "turns": branch.turns,
        "usage": msgspec.to_builtins(branch.usage),
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    prompt = turn.prompt
    seam = turn.compaction
    return {
        "number": turn.number,
        "prompt": prompt
        and {
            "text": prompt.text,
            "origin": prompt.origin,
            "images": prompt.images,
            "uuid": prompt.node.uuid,
        },
        "steps": [step_json(step) for step in turn.steps],
        "answer": turn.answer,
        "started": turn.started,
        "ended": turn.ended,
        "duration": turn.duration,
        "usage": msgspec.to_builtins(turn.usage),
        "files": msgspec.to_builtins(turn.files),
        "commands": turn.commands,
        "errors": turn.errors,
        "interrupted": turn.interrupted,
        "compaction": seam and seam_json(seam),
        "closing": turn.closing and seam_json(turn.closing),
    }


def seam_json(seam: Compaction) -> dict[str, Any]:
    """Return a compaction for programs."""
    return {
        "kind": seam.kind,
        "trigger": seam.trigger,
        "pre_tokens": seam.pre_tokens,
        "post_tokens": seam.post_tokens,
        "messages_before": seam.messages_before,
        "messages_kept": seam.messages_kept,
        "ratio": seam.ratio,
    }


def step_json(step: Step) -> dict[str, Any]:
    """Return a step for programs."""
    return {
        "kind": step.kind,
        "verb": step.verb,
        "subject": step.subject,
        "outcome": step.outcome,
        "state": step.state,
        "started": step.started,
        "duration": step.duration,
        "tokens": step.tokens,
        "call": step.call.uuid if step.call else None,
        "result": step.result.uuid if step.result else None,
        "agent": step.agent.agent_id if step.agent else None,
    }
