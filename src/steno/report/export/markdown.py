"""A session as Markdown: headings for turns, fences for what tools were told and printed.

Words of a session stay words: `calm` sees to it that no HTML in them acts, that pictures from elsewhere
are not loaded, and that no fence of theirs swallows what comes behind.
"""

import re
from collections.abc import Iterator
from typing import Final

from steno.report import words
from steno.report.export.calm import calm, fence_for
from steno.report.export.levels import Level
from steno.report.export.telling import Told, facts_of, shown_steps, told_steps
from steno.safe.terminal import clean
from steno.session.session import Session
from steno.session.story.steps import one_line
from steno.session.story.turns import Turn

__all__ = ["markdown"]

_COMPACTED: Final = "\n---\n\n*Compacted here: what stands above was summed up.*\n"
_PLAIN: Final = re.compile(r"([\\`*_\[\]<>#])")


def markdown(session: Session, level: Level) -> Iterator[str]:
    """Yield a session as stretches of Markdown."""
    yield f"# {_inline(session.title.text or session.id)}\n\n"
    for name, value in facts_of(session):
        yield f"- {name}: {_inline(value)}\n"
    for turn in session.turns():
        yield from _turn(session, turn, level)


def _turn(session: Session, turn: Turn, level: Level) -> Iterator[str]:
    if turn.opening is not None:
        yield _COMPACTED
    clock = words.clock(turn.started.timestamp()) if turn.started else ""
    yield f"\n## Turn {turn.number}{f' · {clock}' if clock else ''}\n\n"
    if turn.prompt is not None:
        yield _quoted(turn.prompt.text)
    if shown_steps(level):
        for told in told_steps(turn, session.transcript, level):
            yield _step(told)
    if level != "prompts" and turn.answer:
        # Below the headings of turns, so that those stay the outline.
        yield "\n" + calm(clean(turn.answer, newlines=True), deeper=2) + "\n"
    if turn.closing is not None:
        yield _COMPACTED


def _step(told: Told) -> str:
    step = told.step
    if step.seam is not None:
        return f"{_COMPACTED}\n"
    pad = "  " * told.depth
    said = f" {_span(step.subject)}" if step.subject and step.kind in ("tool", "agent") else ""
    if step.subject and not said:
        said = f" {_inline(one_line(step.subject))}"
    end = f" — {_inline(step.outcome)}" if step.outcome else ""
    state = f" **({step.state})**" if step.state not in ("ok", "open", "unknown") else ""
    made = f"{pad}- **{_inline(step.verb)}**{said}{end}{state}\n"
    for text in (told.asked, told.result):
        if text.strip():
            made += _fenced(text, f"{pad}  ")
    return made


def _fenced(text: str, pad: str) -> str:
    """Return a text in a fence that nothing in it can end."""
    shown = clean(text.strip("\n"), newlines=True)
    fence = fence_for(shown)
    lines = "\n".join(f"{pad}{line}" for line in (f"{fence}text", *shown.split("\n"), fence))
    return f"\n{lines}\n\n"


def _quoted(text: str) -> str:
    lines = calm(clean(text.strip("\n"), newlines=True)).split("\n")
    return "".join(f"> {line}\n" for line in lines) + "\n"


def _inline(text: str) -> str:
    return _PLAIN.sub(r"\\\1", clean(text).replace("\n", " "))


def _span(text: str) -> str:
    shown = clean(text).replace("\n", " ").replace("`", "'")
    return f"`{shown}`"
