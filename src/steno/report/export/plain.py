"""A session as plain text: nothing in it acts on a terminal, and every line is one."""

from collections.abc import Iterator
from typing import Final

from steno.report import words
from steno.report.export.levels import Level
from steno.report.export.telling import Told, facts_of, shown_steps, told_steps
from steno.safe.terminal import clean
from steno.session.session import Session
from steno.session.story.turns import Turn

__all__ = ["plain"]

_RULE: Final = "-" * 72
_COMPACTED: Final = "compacted here\n"


def plain(session: Session, level: Level) -> Iterator[str]:
    """Yield a session as stretches of text."""
    yield f"{clean(session.title.text or session.id)}\n"
    for name, value in facts_of(session):
        yield f"{name:>10}  {clean(value)}\n"
    for turn in session.turns():
        yield from _turn(session, turn, level)


def _turn(session: Session, turn: Turn, level: Level) -> Iterator[str]:
    clock = words.clock(turn.started.timestamp()) if turn.started else ""
    seam = _COMPACTED if turn.opening is not None else ""
    yield f"\n{_RULE}\n{seam}Turn {turn.number}{f'  {clock}' if clock else ''}\n\n"
    if turn.prompt is not None:
        yield _indented(turn.prompt.text, "> ") + "\n"
    if shown_steps(level):
        for told in told_steps(turn, session.transcript, level):
            yield _step(told)
    if level != "prompts" and turn.answer:
        yield f"\n{clean(turn.answer, newlines=True)}\n"
    if turn.closing is not None:
        yield f"\n{_RULE}\n{_COMPACTED}"


def _step(told: Told) -> str:
    step = told.step
    if step.seam is not None:
        return f"\n{_RULE}\n{_COMPACTED}\n"
    pad = "  " * (told.depth + 1)
    parts = (clean(step.verb), clean(step.subject), clean(step.outcome))
    state = "" if step.state in ("ok", "open", "unknown") else f"  ({step.state})"
    made = pad + "  ".join(part for part in parts if part) + state + "\n"
    for text in (told.asked, told.result):
        if text.strip():
            made += _indented(text, f"{pad}    ")
    return made


def _indented(text: str, pad: str) -> str:
    shown = clean(text.strip("\n"), newlines=True)
    return "".join(f"{pad}{line}\n" for line in shown.split("\n"))
