"""Says on the standard error what no client sends of a session that was compacted."""

from typing import TYPE_CHECKING

from steno.cli.screen import complain

if TYPE_CHECKING:
    from steno.session.transcript import Transcript

__all__ = ["warn_of_unsent_summary"]


def warn_of_unsent_summary(transcript: "Transcript", name: str) -> None:
    """Warn where the last summary of a session is in a record that no client sends.

    `name` is what `steno repair` finds the session by.
    """
    from shlex import quote

    from steno.check.compacted import UNSENT_SUMMARY, has_unsent_summary

    if has_unsent_summary(transcript):
        complain(UNSENT_SUMMARY, f"`steno repair {quote(name)}` writes it as a message")
