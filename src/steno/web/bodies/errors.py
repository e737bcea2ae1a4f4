"""When the API refused, or was tried again: a table of tries, and what the client said of it."""

from typing import Any, Final

from steno.format.records import Record
from steno.safe.html import Html, trusted
from steno.session.nodes import Node
from steno.session.story.steps import Step
from steno.web.bodies.about import About
from steno.web.bodies.notes import ENVELOPE
from steno.web.bodies.parts import Fact, box, joined, prose, raw_doors, table, time_of_day
from steno.web.bodies.plain import described
from steno.web.bodies.values import as_fields, as_number, as_text, first_text
from steno.web.paint import duration

__all__ = ["error"]

_NEAR: Final = 400
"""Records around the step in which its tries are."""
_TRIES: Final = 50
_THOUSAND: Final = 1000
_HIDDEN: Final = ENVELOPE | {
    "content",
    "error",
    "maxRetries",
    "message",
    "retryAttempt",
    "retryInMs",
    "isApiErrorMessage",
}


def error(step: Step, about: About) -> Html:
    """Return the tries, and how it ended."""
    node = step.call
    if node is None:
        return Html("")
    tries = _tries(step, node, about)
    record = about.transcript.record(node)
    made: list[Html] = []
    if tries:
        rows = [_row(about.transcript.record(each)) for each in tries[:_TRIES]]
        if step.state == "ok":
            rows.append(("", "", trusted('<span class="ok">answered</span>'), ""))
        shown = table(("Try", "At", "Answer", "Waited"), rows, numbers=(3,))
        doors = raw_doors(about, tries[0].offset)
        more = len(tries) - _TRIES
        foot = (Fact("", f"{more:,} more tries" if more > 0 else ""),)
        made.append(box(shown, doors=doors, foot=foot))
    if record.role == "assistant" or not tries:
        made.append(_told(record, about))
    return joined(*made)


def _tries(step: Step, node: Node, about: About) -> list[Node]:
    """Return the records of the tries: behind the first of them, or before the last word."""
    nodes = about.transcript.nodes
    if _is_try(node):
        near = nodes[node.index : node.index + _NEAR]
        return [each for each in near if _is_try(each)][: step.retries]
    near = nodes[max(0, node.index - _NEAR) : node.index]
    found = [each for each in near if _is_try(each)]
    return found[-step.retries :] if step.retries else []


def _is_try(node: Node) -> bool:
    return node.type == "system" and node.subtype == "api_error"


def _row(record: Record) -> tuple[Any, ...]:
    fields = record.fields
    number, most = as_number(fields.get("retryAttempt")), as_number(fields.get("maxRetries"))
    waited = as_number(fields.get("retryInMs"))
    of = f" of {most}" if most is not None else ""
    return (
        f"{number}{of}" if number is not None else "",
        time_of_day(record.time),
        _answer(fields.get("error")),
        duration(waited / _THOUSAND) if waited is not None else "",
    )


def _answer(value: Any) -> str:
    """Return what the API said, in any of the shapes clients keep it in."""
    fields = as_fields(value)
    status = as_number(fields.get("status"))
    inner = as_fields(as_fields(fields.get("error")).get("error")) or as_fields(fields.get("error"))
    cause = as_fields(fields.get("cause"))
    words = first_text(fields, "message", "formatted") or first_text(inner, "message", "type")
    words = words or first_text(cause, "code", "message") or as_text(value)
    head = f"{status} " if status is not None and str(status) not in words[:12] else ""
    return f"{head}{words}"[:600] or "no answer"


def _told(record: Record, about: About) -> Html:
    said = record.text or as_text(record.fields.get("content"))
    body = prose(said, about, offset=record.offset) if said.strip() else Html("")
    rest = described(record.fields, about, offset=record.offset, leave=_HIDDEN)
    detail = as_fields(record.fields.get("error"))
    more = described(detail, about, offset=record.offset, leave=frozenset())
    inside = joined(body, more, rest)
    return box(inside, plain="What was said", doors=raw_doors(about, record.offset))
