"""The queue of prompts typed while the agent was busy."""

from collections.abc import Iterable

import pytest

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.transcript import load
from steno.session.turns.prompts import unrecorded_queued_prompts


def taken(operations: Iterable[tuple[str, str]]) -> list[int]:
    """Return which operations are those of prompts that were taken up."""
    lines = (
        encode_line({"type": "queue-operation", "operation": operation, "content": content})
        for operation, content in operations
    )
    return [node.index for node in unrecorded_queued_prompts(load(BytesSource(b"".join(lines))))]


def test_prompts_are_taken_by_their_words_else_the_first() -> None:
    asked = [("enqueue", "a"), ("enqueue", "b"), ("enqueue", "b"), ("enqueue", "c")]
    assert taken([*asked, ("remove", "b"), ("remove", "b")]) == [1, 2]
    assert taken([*asked, ("remove", "other"), ("remove", "c")]) == [0, 3]
    assert taken([*asked, ("dequeue", ""), ("dequeue", ""), ("remove", "b")]) == [2]
    assert taken([*asked, ("popAll", ""), ("remove", "b")]) == []


@pytest.mark.timeout(15)
def test_a_long_queue_that_empties_from_its_end_is_not_searched_again_and_again() -> None:
    many = 30_000
    asked = [("enqueue", f"prompt {n}") for n in range(many)]
    removed = [("remove", content) for _, content in reversed(asked)]
    assert len(taken([*asked, *removed])) == many
