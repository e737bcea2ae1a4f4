"""Sessions as rows: how each stands, what it does, what it cost."""

from collections.abc import Iterator
from typing import Final

import msgspec
from markupsafe import Markup

from steno.errors import StenoError
from steno.index.opened import Index
from steno.report import words
from steno.report.clock import day_of
from steno.report.doing import Doing, doing_of
from steno.report.listing import Listed, costs_of
from steno.report.session_activity import activity_of
from steno.session.liveness import activity_age, is_live, status_at
from steno.session.story.steps import Step
from steno.store.read import FileSource
from steno.web.house import House
from steno.web.render.charts import meter, spark
from steno.web.story.line import icon_for

__all__ = ["Row", "rows_of"]

_SECOND: Final = 1000
_FULL: Final = 0.8
_NOTHING: Final = Doing()


class Now(msgspec.Struct, frozen=True):
    """What a live session does at this moment."""

    icon: str
    verb: str
    subject: str = ""
    share: int | None = None
    """How full the context is, in hundredths."""
    meter: Markup = Markup("")


class Row(msgspec.Struct, frozen=True):
    """A session as the page shows it."""

    listed: Listed
    key: str
    state: str
    spark: Markup
    seconds: float | None
    cost: int | None
    when: str
    now: Now | None = None

    @property
    def live(self) -> bool:
        """Whether the session is live."""
        return self.now is not None


def rows_of(
    house: House, index: Index, listed: list[Listed], *, dated: bool = False
) -> Iterator[Row]:
    """Yield sessions as rows; `dated` says of each on which day it was, for no heading does."""
    costs = costs_of(index.connection, [each.file for each in listed], house.prices)
    now = house.now()
    for each in listed:
        ended = None if each.ended is None else each.ended / _SECOND
        age = activity_age(now, ended, None if each.grown is None else each.grown / _SECOND)
        state = "archived" if each.gone else status_at(each.ending, age)
        live = not each.gone and is_live(each.ending, age)
        yield Row(
            listed=each,
            key=each.key,
            state=state,
            spark=_spark(house, index, each),
            seconds=each.figures.worked / _SECOND or None,
            cost=None if (used := costs.get(each.file)) is None else used.cost,
            when="now" if state == "running" else _when(ended, now, dated=dated),
            now=_now(_doing(house, each), state) if live else None,
        )


def _spark(house: House, index: Index, each: Listed) -> Markup:
    key = "spark", each.file, each.size, each.ended
    return house.drawn.get(key, lambda: spark(*activity_of(index.connection, each)))


def _when(ended: float | None, now: float, *, dated: bool) -> str:
    """Return the time of the day where the day is told above, or is today; else the day."""
    if ended is None:
        return ""
    if day_of(ended) >= day_of(now, 0 if dated else 6):
        return words.clock(ended)
    return words.short_day(ended, now)


# What it does


def _doing(house: House, each: Listed) -> Doing:
    def look() -> Doing:
        try:
            with FileSource(each.path) as source:
                return doing_of(source)
        except StenoError:
            return _NOTHING

    return house.drawn.get(("doing", each.path, each.size, each.ended), look)


def _now(doing: Doing, state: str) -> Now:
    step = doing.step
    share = doing.context / doing.window if doing.window and doing.context else None
    icon, verb = ("clock", "Waiting for you") if state == "waiting" else ("think", "Thinking")
    if step is not None and step.state == "open":
        icon, verb = icon_for(step.kind, step.verb), _verb(step, state)
    return Now(
        icon,
        verb,
        step.subject if step is not None and step.state == "open" else "",
        None if share is None else round(share * 100),
        Markup("") if share is None else meter(share, "fwarn" if share > _FULL else "fa"),
    )


def _verb(step: Step, state: str) -> str:
    return "Waiting for your answer" if state == "waiting" else step.verb
