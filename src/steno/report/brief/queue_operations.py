"""What entered and left the queue of prompts in each turn."""

from collections import deque
from itertools import islice
from typing import Any, Final

from steno.format.blocks import Text, read_blocks
from steno.format.loose import loose
from steno.format.records import Record
from steno.report.brief.turn_content import QueueOperation
from steno.report.brief.turn_positions import TurnPositions
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["queue_by_turn"]

_FRONT: Final = 100
"""How much of a queue is looked through for what begins a turn."""


def queue_by_turn(
    transcript: Transcript, positions: TurnPositions
) -> dict[int, list[QueueOperation]]:
    """Return the operations of each turn, by its number, in the order of the file.

    A prompt that leaves the queue to begin a turn belongs to that turn, and so does one that
    entered it right before.
    """
    waiting: deque[str] = deque()
    found: dict[int, list[QueueOperation]] = {}
    for node in transcript.of_type("queue-operation"):
        record = transcript.record(node)
        operation = _operation(record)
        words = operation.content
        behind = positions.prompt_behind(node.index)
        match operation.operation:
            case "enqueue":
                waiting.append(words)
            case "popAll":
                waiting.clear()
            case "dequeue" | "remove" | "complete" if words in waiting:
                waiting.remove(words)
            case "dequeue" | "remove" if waiting:
                # Prompts overtake notifications: what begins the next turn has just left the queue.
                front = islice(waiting, _FRONT if behind is not None else 0)
                words = next((each for each in front if _began(behind, each)), waiting[0])
                waiting.remove(words)
            case _:
                pass
        if behind is not None and _began(behind, words):
            number = behind.number
        else:
            number = positions.at(node.index)
        if number is not None:
            found.setdefault(number, []).append(operation)
    return found


def _began(turn: Turn | None, words: str) -> bool:
    """Whether a turn begins with what left the queue; of a notification it shows only a part."""
    prompt = turn.prompt.text.strip() if turn is not None and turn.prompt is not None else ""
    words = words.strip()
    return bool(prompt) and (words == prompt or (words.startswith("<") and prompt in words))


def _operation(record: Record) -> QueueOperation:
    envelope = record.envelope
    content: Any = loose(envelope.content) if envelope.content else ""
    reason: Any = record.fields.get("reason")
    words = "\n\n".join(part.text for part in read_blocks(content) if isinstance(part, Text))
    return QueueOperation(
        operation=envelope.operation or "",
        content=words,
        size=len(words),
        reason=reason if isinstance(reason, str) else "",
        time=record.time.timestamp() if record.time is not None else None,
    )
