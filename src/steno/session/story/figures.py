"""The figures of a session: what a list, its page, a comparison and the command line say of it.

Each is counted here and nowhere else. The index counts along while it reads
(`steno.index.course`), and comes here for whatever is not plain.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steno.session.nodes import Node
from steno.session.story.branches import Branch
from steno.session.story.steps import Step
from steno.session.story.usage import SYNTHETIC

if TYPE_CHECKING:
    from steno.session.session import Session
    from steno.session.story.threads import Thread
    from steno.session.story.turns import Turn

__all__ = [
    "GIVEN_UP",
    "Figures",
    "agents_among",
    "figures_of",
    "given_up",
    "last_model",
    "steps_in",
    "worked",
]

GIVEN_UP: Final = frozenset(("rewind", "edited"))
"""Why a branch is off the conversation because somebody went back; the others are broken off."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A session in numbers."""

    turns: int = 0
    """The turns of the conversation, as they are numbered on its page; abandoned ones are not."""
    steps: int = 0
    """What was done in these turns. What sub-agents did is theirs, and so are their steps."""
    failed: int = 0
    """How many of the steps failed."""
    worked: int = 0
    """Milliseconds that the turns took, without the time between them."""
    agents: int = 0
    """Sub-agents, whoever started them; those that only warm up are none."""
    compactions: int = 0
    branches: int = 0
    """How often somebody went back, and went on differently."""
    model: str = ""
    """The model that answered last."""


def figures_of(session: "Session") -> Figures:
    """Count a session."""
    turns = session.turns()
    return Figures(
        turns=len(turns),
        steps=sum(steps_in(turn.steps) for turn in turns),
        failed=sum(turn.errors for turn in turns),
        worked=worked(turns),
        agents=len(agents_among(session.all_agents)),
        compactions=sum(each.kind == "full" for each in session.compactions),
        branches=len(given_up(session.branches)),
        model=last_model(session.transcript.nodes),
    )


def steps_in(steps: Iterable[Step]) -> int:
    """Return how many steps did something; thoughts, words, notes and reports did not."""
    return sum(step.is_work for step in steps)


def worked(turns: Iterable["Turn"]) -> int:
    """Return how many milliseconds some turns took."""
    return sum(round(turn.duration * 1000) for turn in turns if turn.duration is not None)


def agents_among(threads: Iterable["Thread"]) -> list["Thread"]:
    """Return the sub-agents that had something to do."""
    return [thread for thread in threads if not thread.warmup]


def given_up(branches: Iterable[Branch]) -> list[Branch]:
    """Return the branches that somebody left, of all that are off the conversation."""
    return [branch for branch in branches if branch.why in GIVEN_UP]


def last_model(nodes: Sequence[Node]) -> str:
    """Return the model that answered last, sub-agents aside where there is more than them."""
    spoke = [node for node in nodes if node.model and node.model != SYNTHETIC]
    own = (node.model for node in reversed(spoke) if not node.sidechain)
    return next(own, spoke[-1].model if spoke else "")
