"""What a session does at this moment, from the end of its file."""

from typing import Final

import msgspec

from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.format.source import Source
from steno.report.context import window_of
from steno.session.session import Session
from steno.session.story.steps import Step
from steno.session.story.turns import Turn
from steno.session.story.usage import SYNTHETIC
from steno.session.transcript import Transcript

__all__ = ["Doing", "doing_of", "end_of"]

_TAIL: Final = 1 << 18
_SILENT: Final = frozenset(("note", "hook", "queued"))


class Doing(msgspec.Struct, frozen=True):
    """The step that a session is in, or came to last, and how full its context is."""

    step: Step | None = None
    """None while the model is at it, or where it has answered."""
    answered: bool = False
    context: int = 0
    """Tokens that the last request held; 0 where the end of the file does not say."""
    window: int = 0
    """How many the model can hold, as far as that shows."""


def doing_of(source: Source) -> Doing:
    """Return what the session in a file does."""
    session = Session(end_of(source, _TAIL))
    turns = session.turns()
    context = _context(session.transcript)
    last = turns[-1] if turns else None
    return Doing(
        _step(last) if last is not None else None,
        last is not None and last.done,
        context,
        window_of(context),
    )


def end_of(source: Source, length: int) -> Transcript:
    """Return the last lines of a file, as far as they are whole."""
    transcript = Transcript(source, [], [])
    start = max(0, source.size - length)
    if start:
        rest = source.read(start, length)
        start += rest.find(b"\n") + 1
    for piece in read_pieces(source, start):
        if isinstance(piece, Record):
            transcript.take(piece)
        else:
            transcript.gaps.append(piece)
    transcript.close_last_line()
    return transcript


def _step(turn: Turn) -> Step | None:
    """Return the step that is open, or the last one of a turn that goes on."""
    if turn.done:
        return None
    said = [step for step in turn.steps if step.kind not in _SILENT]
    open_ones = [step for step in said if step.state == "open"]
    return (open_ones or said or [None])[-1]


def _context(transcript: Transcript) -> int:
    for node in reversed(transcript.nodes):
        if node.type == "assistant" and not node.sidechain and node.model != SYNTHETIC:
            usage = transcript.record(node).usage
            if usage is not None and usage.context > 0:
                return usage.context
    return 0
