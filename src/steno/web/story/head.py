"""What a session is: its name and place, its figures, and how it stands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steno.format.dialects.detection import label_of
from steno.report import words
from steno.report.listing import costs_of
from steno.report.sessions import Known, copied_into, known_of, neighbours_of
from steno.session.liveness import activity_age
from steno.session.story.status import Status, status_of
from steno.web.paint import duration, money
from steno.web.story.tale import Tale

if TYPE_CHECKING:
    from steno.index.opened import Index
    from steno.web.house import House
    from steno.web.place import Place

__all__ = ["Head", "Lying", "head_of", "lying", "standing_of"]

_SHORT: Final = 8
_STANDINGS: Final = {
    "running": "Live, writing turn {}",
    "waiting": "Live, waiting for you",
    "finished": "Finished",
    "interrupted": "Interrupted",
    "failed": "Failed",
}
"""Each has a line of the head, so that nothing below it moves when a session goes on."""


class Lying(msgspec.Struct):
    """What the index says of a session, looked up once for a page."""

    known: Known
    cost: int | None = 0
    """What it and its sub-agents cost; what others paid for already is left out."""
    copied: int = 0
    """Responses in it that another session paid for."""
    earlier: str = ""
    later: str = ""
    age: float = 0.0
    """Seconds since it was last active."""


class Badge(msgspec.Struct):
    """A count that is worth a glance."""

    icon: str
    text: str
    cls: str = ""
    href: str = ""


class Head(msgspec.Struct):
    """What stands above the turns."""

    title: str
    project: str = ""
    branch: str = ""
    short: str = ""
    standing: str = ""
    live: bool = False
    said: str = ""
    """How it stands, in words; nothing for what is over and well."""
    reason: str = ""
    facts: Sequence[str] = ()
    cost: str = ""
    copied: str = ""
    """What the cost leaves out."""
    badges: Sequence[Badge] = ()
    gone: bool = False


def lying(house: "House", index: "Index", place: "Place", *, whole: bool = True) -> Lying:
    """Return what the index says of a session; without `whole` only what costs nothing to know."""
    known = known_of(index.connection, place.file)
    found = Lying(known, age=activity_age(house.now(), known.ended, known.grown))
    if whole:
        found.earlier, found.later = neighbours_of(index.connection, place.file, known)
        figures = costs_of(index.connection, [place.file], house.prices).get(place.file)
        found.cost = figures.cost if figures is not None else 0
        found.copied = copied_into(index.connection, place.file)
    return found


def standing_of(tale: Tale, age: float, *, gone: bool) -> Status:
    """Return how a conversation stands."""
    if tale.thread is not None:
        running = tale.thread.status == "running" and not gone
        return status_of(tale.turns, seconds_since_write=age if running else None)
    left = False
    for node in reversed(tale.transcript.nodes):
        if node.converses or node.type == "cost-state":
            left = node.type == "cost-state"
            break
    return status_of(tale.turns, seconds_since_write=None if gone else age, left=left)


def head_of(tale: Tale, place: "Place", found: Lying, now: float) -> Head:
    """Return the head of a page about a session or a sub-agent."""
    known = found.known
    status = standing_of(tale, found.age, gone=place.gone)
    live = status.standing in ("running", "waiting")
    thread = tale.thread
    title = known.title or place.id
    if thread is not None:
        title = thread.description or thread.prompt.strip().split("\n")[0][:160] or tale.agent
    cost = found.cost if thread is None else tale.cost_of_agent(thread).known
    return Head(
        title,
        known.project,
        known.branch,
        place.id[:_SHORT],
        status.standing,
        live,
        _STANDINGS.get(status.standing, "").format(len(tale.turns)),
        status.reason,
        [fact for fact in _facts(tale, known, now) if fact],
        money(cost),
        f"without {words.count(found.copied, 'copied response')}" if found.copied else "",
        [*_badges(tale)],
        place.gone,
    )


def _facts(tale: Tale, known: Known, now: float) -> list[str]:
    figures = tale.figures
    started = tale.turns[0].started if tale.turns else None
    begun = started.timestamp() if started is not None else known.started
    when = f"{words.day(begun, now)} {words.clock(begun)}" if begun is not None else ""
    return [
        words.model_name(figures.model or known.model),
        when[:1].lower() + when[1:] if when.startswith(("Today", "Yesterday")) else when,
        duration(figures.worked / 1000) if figures.worked else "",
        f"{words.count(figures.turns, 'turn')}, {words.count(figures.steps, 'step')}",
        tale.thread.kind if tale.thread is not None else "",
        label_of(tale.transcript.source),
    ]


def _badges(tale: Tale) -> list[Badge]:
    made: list[Badge] = []
    figures = tale.figures
    if figures.agents:
        made.append(Badge("agent", words.count(figures.agents, "sub-agent"), href="#p-use"))
    if figures.compactions:
        made.append(Badge("fold", words.count(figures.compactions, "compaction"), href="#c1"))
    if figures.branches:
        made.append(Badge("rewind", f"{figures.branches:,} abandoned", href="#p-out"))
    apart = len(tale.sides) - figures.branches
    if apart > 0:
        made.append(Badge("rewind", f"{apart:,} broken off", href="#p-out"))
    if figures.failed:
        made.append(Badge("warn", f"{figures.failed:,} failed", "bad"))
    gaps = [gap for gap in tale.transcript.gaps if gap.damage]
    if gaps:
        made.append(
            Badge("warn", f"{words.count(len(gaps), 'gap')} in the file", "warn", "#p-find")
        )
    return made
