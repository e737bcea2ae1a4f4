"""A session as plain pieces: what was asked, what each step did, what was answered."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steno.format.encode import encode
from steno.report.export.levels import Level
from steno.session.session import Session
from steno.session.story.steps import Step
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["Told", "asked_of", "facts_of", "result_of", "shown_steps", "told_steps"]

_QUIET: Final = frozenset(("note", "hook"))
_SPOKEN: Final = frozenset(("words", "queued", "note", "error", "unknown"))
_DEEPEST: Final = 4


class Told(msgspec.Struct, frozen=True):
    """One step, with what is inside of it."""

    step: Step
    depth: int
    """How many sub-agents it is inside of."""
    asked: str = ""
    result: str = ""


def shown_steps(level: Level) -> bool:
    """Say whether steps are told at all."""
    return level in ("full", "high", "low")


def told_steps(turn: Turn, transcript: Transcript, level: Level) -> Iterator[Told]:
    """Yield the steps of a turn, and of the sub-agents that it called, as far as a level tells."""
    yield from _told(turn.steps, transcript, level, 0)


def _told(
    steps: tuple[Step, ...], transcript: Transcript, level: Level, depth: int
) -> Iterator[Told]:
    inside = level in ("full", "high")
    for step in steps:
        is_quiet = step.kind in _QUIET and step.state == "ok" and step.seam is None
        if is_quiet and level != "full":
            continue
        if not inside:
            yield Told(step, depth)
            continue
        yield Told(step, depth, asked_of(step, transcript), result_of(step, transcript))
        thread = step.agent
        if thread is not None and depth < _DEEPEST:
            for turn in thread.turns:
                yield from _told(turn.steps, thread.transcript, level, depth + 1)


def asked_of(step: Step, transcript: Transcript) -> str:
    """Return what a tool was asked, or the words of a step that is no tool call."""
    if step.call is None:
        return ""
    record = transcript.record(step.call)
    if step.kind == "thought":
        return record.thinking
    if step.kind in _SPOKEN:
        return record.text
    if step.command:
        return step.command
    for use in record.tool_uses:
        if use.id == step.call_id and use.input:
            return msgspec.json.format(encode(use.input), indent=2).decode("utf-8", "replace")
    return ""


def result_of(step: Step, transcript: Transcript) -> str:
    """Return what came of a tool call."""
    if step.result is None:
        return ""
    for result in transcript.record(step.result).tool_results:
        if result.tool_use_id == step.call_id:
            return result.text
    return ""


def facts_of(session: Session) -> list[tuple[str, str]]:
    """Return what is to be known of a session, as names and values."""
    started, ended = session.started, session.ended
    usage = session.usage
    found = [
        ("session", session.id),
        ("project", session.project),
        ("branch", session.branch),
        ("model", ", ".join(each for each in session.models if not each.startswith("<"))),
        ("client", ", ".join(session.versions)),
        ("started", f"{started.astimezone():%Y-%m-%d %H:%M}" if started else ""),
        ("ended", f"{ended.astimezone():%Y-%m-%d %H:%M}" if ended else ""),
        ("turns", str(len(session.turns()))),
        ("tokens", f"{usage.context:,} in, {usage.output:,} out" if usage.messages else ""),
    ]
    return [(name, value) for name, value in found if value]
