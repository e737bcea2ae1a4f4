"""Steps as lines, and what is inside of them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from steno.safe.html import Html
from steno.session.story.figures import steps_in
from steno.session.story.steps import Step
from steno.web.bodies import About, body_of
from steno.web.links import Links
from steno.web.paint import part
from steno.web.render.markdown import markdown
from steno.web.story.line import END, QUIET, line_html, step_html
from steno.web.story.seams import seam_html
from steno.web.story.tale import Tale, name_of
from steno.web.story.wish import DETAILS, Wish

__all__ = ["Manner", "about_of", "is_hidden", "places_of", "step_body", "step_lines"]

_DEEPEST: Final = 3
"""How far sub-agents of sub-agents are drawn inside each other."""


class Manner(msgspec.Struct):
    """How a reader wants it told."""

    key: str
    links: Links
    detail: str = "steps"
    opened: frozenset[str] = frozenset()
    """The places of steps that stand open."""
    live: bool = False
    """Whether it may still be going on."""
    project: str = ""
    shut: bool = False
    """Whether steps whose inside is drawn are shut all the same."""
    full: bool = False
    """Whether all of what is inside is drawn, not only its first lines."""
    laid: Callable[[Html, Html, Html], Html] | None = None
    """Lays a step aside, its inside between what is around it, and gives what stands for it."""

    @property
    def everything(self) -> bool:
        """Whether notes and hooks are wanted as well."""
        return self.detail == "everything"

    @property
    def with_steps(self) -> bool:
        """Whether steps are drawn at all."""
        return self.detail in DETAILS[2:]


def places_of(steps: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    """Yield steps with their places: the offset of the call, and which one of that record it is."""
    seen: dict[int, int] = {}
    for step in steps:
        node = step.call or step.result
        offset = -1 if node is None else node.offset
        number = seen.get(offset, 0)
        seen[offset] = number + 1
        yield f"{offset}-{number}", step


def step_lines(
    steps: Iterable[Step],
    tale: Tale,
    manner: Manner,
    *,
    depth: int = 0,
    begin: int = 0,
    end: int | None = None,
    only_seams: bool = False,
) -> list[Html]:
    """Return the lines of the steps that are drawn, of those from `begin` to `end`.

    Compactions stand among them as boxes; with `only_seams` they stand there alone.
    """
    return [
        _line(place, step, tale, manner, depth)
        for place, step in islice(places_of(steps), begin, end)
        if step.seam is not None or not (only_seams or is_hidden(step, manner))
    ]


def is_hidden(step: Step, manner: Manner) -> bool:
    """Whether a step is not drawn unless everything is: a note or a hook that went well."""
    is_quiet = step.kind in QUIET and step.seam is None
    return is_quiet and not manner.everything and not _matters(step)


def _matters(step: Step) -> bool:
    """Whether a quiet step is worth a look all the same."""
    return step.state in ("failed", "interrupted", "denied")


def _line(place: str, step: Step, tale: Tale, manner: Manner, depth: int) -> Html:
    if step.seam is not None:
        return seam_html(step.seam, tale, manner, depth=depth)
    if place not in manner.opened or step.kind == "queued":
        return step_html(step, place, tale, manner)
    body = step_body(step, place, tale, manner, depth=depth)
    if manner.laid is None:
        return step_html(step, place, tale, manner, body)
    return manner.laid(line_html(step, place, tale, manner, drawn=True), body, END)


# What is inside


def step_body(
    step: Step, place: str, tale: Tale, manner: Manner, *, wish: Wish | None = None, depth: int = 0
) -> Html:
    """Return what is inside an opened step; a wish says how much of it, and in which form."""
    if step.agent is not None and depth < _DEEPEST:
        return _agent_body(step, tale, manner, depth)
    if wish is None and not manner.links.live:
        return body_of(step, _about(tale, manner))
    wanted = wish or Wish(manner.key, tale.agent, full=manner.full)
    about = about_of(f"step/{place}", tale, manner.key, manner.links, wanted)
    return body_of(step, about)


def _about(tale: Tale, manner: Manner) -> About:
    """Return what all bodies know where none has an address."""
    if tale.about is None:
        wanted = Wish(manner.key, tale.agent, full=manner.full)
        tale.about = about_of("", tale, manner.key, manner.links, wanted)
    return tale.about


def about_of(here: str, tale: Tale, key: str, links: Links, wish: Wish | None = None) -> About:
    """Return what a body has to know beside its step or record."""
    wanted = wish or Wish(key, tale.agent)
    return About(
        key,
        tale.agent,
        tale.transcript,
        links,
        full=wanted.full,
        begin=wanted.first,
        side=wanted.side,
        here=here,
    )


def _agent_body(step: Step, tale: Tale, manner: Manner, depth: int) -> Html:
    """Return a sub-agent's brief, its steps and its report."""
    thread = step.agent
    if thread is None:
        return Html("")
    own = Tale(tale.session, tale.prices, name_of(thread))
    steps = thread.steps
    return Html(
        part(
            "session-agent.html.j2",
            brief=markdown(thread.prompt),
            lines=step_lines(steps, own, manner, depth=depth + 1),
            report=markdown(thread.report) if thread.report else "",
            href=manner.links.agent(manner.key, own.agent),
            status=thread.status,
            steps=steps_in(steps),
        )
    )
