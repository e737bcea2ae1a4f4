"""The step a live session is working on, read from the end of its file."""

from typing import Final

import msgspec

from steno.format.lines import read_pieces
from steno.format.message import SYNTHETIC
from steno.format.records import Record
from steno.format.source import Source
from steno.report.context_usage import context_window
from steno.session.session import Session
from steno.session.transcript import Transcript
from steno.session.turns.steps import Step
from steno.session.turns.turn_builder import Turn

_TAIL_LENGTH: Final = 1 << 18
_HIDDEN_STEP_KINDS: Final = frozenset(("note", "hook", "queued"))


class CurrentStep(msgspec.Struct, frozen=True):
    """Current or last step of a session, and its context size."""

    step: Step | None = None
    """None while the model is responding or after it has answered."""
    answered: bool = False
    context: int = 0
    """Tokens of the last request; 0 if the end of the file has no usage."""
    window: int = 0
    """Estimated context window in tokens."""


def current_step(source: Source) -> CurrentStep:
    """Return the current step of the session in a file."""
    session = Session(load_tail(source, _TAIL_LENGTH))
    turns = session.turns()
    context = _context_tokens(session.transcript)
    last = turns[-1] if turns else None
    return CurrentStep(
        _step_of_turn(last) if last is not None else None,
        last is not None and last.done,
        context,
        context_window(context),
    )


def load_tail(source: Source, length: int) -> Transcript:
    """Return a transcript of the last complete lines of a file."""
    transcript = Transcript(source, [], [])
    start = max(0, source.size - length)
    if start:
        tail = source.read(start, length)
        start += tail.find(b"\n") + 1
    for piece in read_pieces(source, start):
        if isinstance(piece, Record):
            transcript.add(piece)
        else:
            transcript.gaps.append(piece)
    transcript.close_last_line()
    return transcript


def _step_of_turn(turn: Turn) -> Step | None:
    """Return the open step, or the last step of a turn that is not done."""
    if turn.done:
        return None
    visible_steps = [step for step in turn.steps if step.kind not in _HIDDEN_STEP_KINDS]
    open_ones = [step for step in visible_steps if step.state == "open"]
    return (open_ones or visible_steps or [None])[-1]


def _context_tokens(transcript: Transcript) -> int:
    for node in reversed(transcript.nodes):
        if node.type == "assistant" and not node.sidechain and node.model != SYNTHETIC:
            usage = transcript.record(node).usage
            if usage is not None and usage.context > 0:
                return usage.context
    return 0
