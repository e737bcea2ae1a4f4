"""Messages that are said again behind a compaction, so that they stay in view word for word.

steno's own engine writes the last turn once more below the summary, under new ids: clients look for
the results of a call in the whole file. Such records are part of what is sent, but nothing happened
there: no turn begins, no tool ran. A prompt is marked by `repeatsCompactSummary`, an answer by an id
made from the record that it hangs on, and a result by the call that it answers.
"""

from collections.abc import Sequence

__all__ = ["Repeats", "repeated_id"]


def repeated_id(parent: str | None) -> str:
    """Return the `message.id` of an answer that is said again below a record."""
    return f"msg_{parent}"


class Repeats:
    """Recognizes repeated messages, record after record, in the order of the conversation."""

    def __init__(self, message_id: str = "", calls: Sequence[str] = ()) -> None:
        self.message_id = message_id
        """The answer that was repeated last."""
        self.calls = set(calls)
        """The calls of repeated answers that have no result yet."""

    def answer(self, parent: str | None, message_id: str | None, calls: Sequence[str]) -> bool:
        """Whether a line of an answer repeats; `calls` are those it makes."""
        if not message_id or message_id not in (self.message_id, repeated_id(parent)):
            return False
        self.message_id = message_id
        self.calls.update(calls)
        return True

    def results(self, calls: Sequence[str]) -> bool:
        """Whether results repeat: whether they answer repeated calls."""
        if not calls or not self.calls.issuperset(calls):
            return False
        self.calls.difference_update(calls)
        return True
