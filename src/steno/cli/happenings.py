"""What an agent does, line by line, for people who watch it."""

from collections.abc import Iterator
from typing import Any, Final

from steno.agent import events
from steno.agent.events import Event
from steno.format.values import as_object
from steno.safe.terminal import Line, clean, cut, one_line, wrap

__all__ = ["lines_of"]

_SHOWN: Final = ("file_path", "notebook_path", "command", "pattern", "url", "query", "description")
_OUTPUT: Final = 6
_INDENT: Final = 4


def lines_of(event: Event, columns: int) -> Iterator[Line]:
    """Yield the lines that tell of an event; of most there is nothing to tell."""
    match event:
        case events.Prompted(text, _):
            for line in wrap(text, columns - 2):
                yield [("│ ", "bold cyan"), (line, "bold")]
            yield []
        case events.Answered(response, _):
            for block in response.blocks:
                yield from _block(block, columns)
        case events.ToolEnded():
            yield from _step(event, columns)
        case _:
            yield from _notice(event, columns)


def _step(event: events.ToolEnded, columns: int) -> Iterator[Line]:
    outcome = event.outcome
    sign, style = ("✗", "red") if outcome.is_error else ("✓", "green")
    head = one_line(f"{event.call.get('name')} {_about(event.call.get('input'))}", columns - 14)
    yield ["  ", (sign, style), " ", head, (f"  {event.seconds:.1f} s", "dim")]
    for line in _output(outcome.content):
        yield [" " * _INDENT, (cut(clean(line), columns - _INDENT), "dim")]


def _notice(event: Event, columns: int) -> Iterator[Line]:
    match event:
        case events.Refused(call, decision):
            said = f"{call.get('name')}: {decision.reason}"
        case events.Retrying(attempt, of, delay, error):
            said = f"{error}; again in {delay:.0f} s ({attempt} of {of})"
        case events.Noticed(words, _):
            said = words
        case events.Compacted(_, before, after, _):
            said = f"compacted: {before:,} → {after:,} tokens"
        case events.Trimmed(before, after, calls):
            said = f"left out the output of {len(calls)} calls: {before:,} → {after:,} tokens"
        case _:
            return
    yield [("  ! ", "yellow"), one_line(said, columns - _INDENT)]


def _block(block: dict[str, Any], columns: int) -> Iterator[Line]:
    if block.get("type") == "text":
        for line in wrap(str(block.get("text", "")), columns):
            yield [line]
        yield []


def _about(given: Any) -> str:
    """Return what a call is about."""
    known = as_object(given) or {}
    return next((str(known[key]) for key in _SHOWN if key in known), "")


def _output(content: Any) -> list[str]:
    """Return the end of what a tool said, which mostly holds what matters."""
    lines = content.strip().splitlines() if isinstance(content, str) else []
    return lines[-_OUTPUT:]
