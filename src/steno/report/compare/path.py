"""A session as the row of what was asked and done, so that two can be laid side by side."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from steno.report.words import below
from steno.session.nodes import Node
from steno.session.story.steps import State, Step
from steno.session.story.turns import Turn

__all__ = ["Item", "Kind", "items_of"]

Kind: TypeAlias = Literal["prompt", "tool", "agent", "error", "unknown"]
_ASKED: Final = 2_000
"""How many letters of a prompt are kept."""
_SPACE: Final = re.compile(r"\s+")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, or a step that did something; a sub-agent's whole work is one step.

    Thoughts, words between steps, notes and hooks are left out: they never come twice.
    """

    kind: Kind
    key: tuple[str, str]
    """What makes two of them the same: for a step its verb and subject."""
    turn: int
    number: int = 0
    """Which step it is, from 1; a prompt has the number of the step before it."""
    verb: str = ""
    subject: str = ""
    """What it is about; for a prompt its words."""
    outcome: str = ""
    state: State = "ok"
    seconds: float | None = None
    tokens: int | None = None
    added: int = 0
    removed: int = 0
    place: str = ""
    """Where it stands: the offset of its record, and which step of that record it is."""
    uuid: str = ""
    agent: str = ""
    """The sub-agent's id, where it has one."""
    more: int = 0
    """How many letters of the prompt were left out."""

    @property
    def is_prompt(self) -> bool:
        """Whether somebody asks for something here."""
        return self.kind == "prompt"


def items_of(turns: Iterable[Turn], project: str) -> Iterator[Item]:
    """Yield what was asked and done, in order; paths are told from the project's folder on."""
    number = 0
    for turn in turns:
        if turn.prompt is not None:
            pictures = " [picture]" * turn.prompt.images
            yield _asked(turn.prompt.text + pictures, turn.number, number, turn.prompt.node)
        for place, step in _placed(turn.steps):
            if step.kind == "queued":
                yield _asked(step.subject, turn.number, number, step.call)
            elif step.is_work:
                number += 1
                yield _step(step, turn.number, number, place, project)


def _asked(text: str, turn: int, number: int, node: Node | None) -> Item:
    words = text.strip()
    return Item(
        kind="prompt",
        key=("", _SPACE.sub(" ", words).casefold()),
        turn=turn,
        number=number,
        subject=words[:_ASKED],
        more=max(0, len(words) - _ASKED),
        uuid=_uuid(node),
    )


def _step(step: Step, turn: int, number: int, place: str, project: str) -> Item:
    subject = below(step.subject, project)
    kind: Kind = "tool"
    if step.kind in ("agent", "error", "unknown"):
        kind = step.kind
    touch = step.touch
    return Item(
        kind=kind,
        key=(step.verb, _SPACE.sub(" ", subject)),
        turn=turn,
        number=number,
        verb=step.verb,
        subject=subject,
        outcome=step.outcome,
        state=step.state,
        seconds=step.duration,
        tokens=step.tokens,
        added=touch.added if touch is not None else 0,
        removed=touch.removed if touch is not None else 0,
        place=place,
        uuid=_uuid(step.call),
        agent=step.agent.agent_id if step.agent is not None else "",
    )


def _placed(steps: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    seen: dict[int, int] = {}
    for step in steps:
        node = step.call or step.result
        offset = -1 if node is None else node.offset
        number = seen.get(offset, 0)
        seen[offset] = number + 1
        yield f"{offset}-{number}" if node is not None else "", step


def _uuid(node: Node | None) -> str:
    return (node.uuid or "") if node is not None else ""
