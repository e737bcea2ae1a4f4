"""`steno show --at`: finds a record and shows the turn around it."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from steno.cli.output.record_views import record_excerpt
from steno.cli.output.transcript import (
    RenderOptions,
    SessionTranscript,
    StepRenderer,
    prompt_lines,
    prose_lines,
    verb_column_width,
)
from steno.errors import Ambiguous, NotFound
from steno.index.line_decoder import line_from_record
from steno.index.searchable_text import text_parts
from steno.report import humanize
from steno.sanitize.terminal import StyledLine, one_line, wrap
from steno.session.session import Session
from steno.session.transcript import Node, Transcript
from steno.session.turns.steps import Step
from steno.session.turns.turn_builder import Turn

_CONTEXT_STEPS: Final = 3
_EXCERPT_WIDTH: Final = 84
_MAX_RECORD_LINES: Final = 200
_MAX_OFFSET_DIGITS: Final = 19
"""A number with more digits is no place in a file."""


class RecordLocation(msgspec.Struct):
    """A record, and where in the story it is told."""

    transcript: Transcript
    node: Node
    turn: Turn | None = None
    branch: int | None = None
    agent: str | None = None


def locate_record(session: Session, reference: str, agent: str | None = None) -> RecordLocation:
    """Return where a record is told: it is named by its id, the first letters of it, or its byte.

    Raises:
        NotFound: there is no such record.
        Ambiguous: several ids begin so.
    """
    threads = [
        thread
        for thread in session.all_agents
        if agent is None or thread.agent_id.startswith(agent.removeprefix("agent-"))
    ]
    if agent is None:
        node = _find_node(session.transcript, reference, by_byte=True)
        if node is not None:
            return _locate_in_session(session, node)
    for thread in threads:
        node = _find_node(thread.transcript, reference, by_byte=agent is not None)
        if node is not None:
            turn = _turn_of(thread.turns, node)
            return RecordLocation(thread.transcript, node, turn, agent=thread.agent_id)
    raise NotFound(f"no record is at {reference!r}", hint="`steno show S --records` lists them")


def _find_node(transcript: Transcript, reference: str, *, by_byte: bool) -> Node | None:
    names = transcript.by_uuid
    if reference in names:
        return names[reference]
    matches = [node for name, node in names.items() if reference and name.startswith(reference)]
    if len(matches) > 1:
        raise Ambiguous(f"{len(matches)} records begin with {reference!r}", hint="write more of the id")
    if matches:
        return matches[0]
    if by_byte and reference.isascii() and reference.isdecimal() and len(reference) <= _MAX_OFFSET_DIGITS:
        byte = int(reference)
        nodes = transcript.nodes
        return next((node for node in nodes if 0 <= byte - node.offset < node.length), None)
    return None


def _locate_in_session(session: Session, node: Node) -> RecordLocation:
    location = RecordLocation(session.transcript, node, _turn_of(session.turns(), node))
    if location.turn is not None:
        return location
    for number, branch in enumerate(session.branches, 1):
        if any(other.index == node.index for other in branch.nodes):
            location.branch = number
            location.turn = _turn_of(session.turns(branch.leaf), node)
            return location
    for thread in session.all_agents:
        # In the first clients a sub-agent's records lie among the session's own.
        if thread.transcript is session.transcript and (turn := _turn_of(thread.turns, node)):
            location.turn, location.agent = turn, thread.agent_id
    return location


def _turn_of(turns: list[Turn], node: Node) -> Turn | None:
    return next((t for t in turns if any(other.index == node.index for other in t.nodes)), None)


def record_context_lines(
    session_transcript: SessionTranscript, target: RecordLocation, options: RenderOptions
) -> Iterator[StyledLine]:
    """Yield the turn that a record is in, from a little before it to a little behind."""
    turn = target.turn.with_deleted() if target.turn and options.show_all else target.turn
    if turn is None:
        yield from _lines_outside_turns(target, options)
        return
    yield from session_transcript.header_lines([turn], branch=target.branch, agent=target.agent)
    yield []
    expanded_options = msgspec.structs.replace(options, show_all=True)
    is_prompt = turn.prompt is not None and turn.prompt.node.index == target.node.index
    yield from prompt_lines(turn.prompt, turn.number, turn.started, expanded_options if is_prompt else options)
    yield []
    step_index = _step_index(turn.steps, target.node)
    if step_index is not None:
        yield from _lines_around_step(target, turn.steps, step_index, options)
    elif is_prompt:
        yield from _step_lines(target.transcript, turn.steps[:_CONTEXT_STEPS], options)
        yield from _omitted_steps_line(len(turn.steps) - _CONTEXT_STEPS, "more ")
    elif target.node.type == "assistant" and turn.answer:
        yield from _omitted_steps_line(len(turn.steps) - _CONTEXT_STEPS, "earlier ")
        yield from _step_lines(target.transcript, turn.steps[-_CONTEXT_STEPS:], options)
        yield []
        for line in prose_lines(turn.answer, options):
            yield ["    ", *line]
    else:
        yield from _record_text_lines(target, options)
    yield []
    yield _record_footer(target)


def _step_index(steps: tuple[Step, ...], node: Node) -> int | None:
    for step_index, step in enumerate(steps):
        if any(other is not None and other.index == node.index for other in (step.call, step.result)):
            return step_index
    return None


def _lines_around_step(
    target: RecordLocation, steps: tuple[Step, ...], step_index: int, options: RenderOptions
) -> Iterator[StyledLine]:
    first, last = max(0, step_index - _CONTEXT_STEPS), step_index + 1
    yield from _omitted_steps_line(first, "earlier ")
    yield from _step_lines(target.transcript, steps[first:step_index], options)
    step = steps[step_index]
    if step.kind != "words":
        lines = StepRenderer(options).step_lines(target.transcript, step, verb_column_width([step]))
        yield from map(_with_arrow, islice(lines, 1))
    yield from _record_text_lines(target, options)
    yield from _step_lines(target.transcript, steps[last : last + _CONTEXT_STEPS], options)
    yield from _omitted_steps_line(len(steps) - last - _CONTEXT_STEPS, "more ")


def _with_arrow(line: StyledLine) -> StyledLine:
    """Return the line with an arrow in its margin."""
    text, style = first if isinstance(first := line[0], tuple) else (first, "")
    return [("→ ", "bold yellow"), (text.removeprefix("  "), style), *line[1:]]


def _step_lines(transcript: Transcript, steps: tuple[Step, ...], options: RenderOptions) -> Iterator[StyledLine]:
    return StepRenderer(options).lines(transcript, steps)


def _omitted_steps_line(number: int, position: str) -> Iterator[StyledLine]:
    if number > 0:
        yield [(f"  … {humanize.count(number, position + 'step')}", "dim")]


def _record_text_lines(target: RecordLocation, options: RenderOptions) -> Iterator[StyledLine]:
    """Yield the words of the record, all that a search finds in it."""
    if target.node.type == "deleted" and not options.show_all:
        yield ["    ", ("deleted  --all shows what it says", "dim")]
        return
    record = target.transcript.record(target.node)
    texts = [part.text for part in text_parts(line_from_record(record), record.line) if part.text]
    text = "\n\n".join(texts) or record_excerpt(record, _EXCERPT_WIDTH)
    lines = wrap(text.strip("\n"), max(options.width - 6, 20))
    max_lines = len(lines) if options.show_all else _MAX_RECORD_LINES
    for line in lines[:max_lines]:
        yield ["    ", ("│ ", "yellow"), line]
    if len(lines) > max_lines:
        yield ["    ", (f"… {max_lines} of {humanize.count(len(lines), 'line')}  --all", "dim")]


def _lines_outside_turns(target: RecordLocation, options: RenderOptions) -> Iterator[StyledLine]:
    yield [("not a part of the story: a record of its own", "bold")]
    yield []
    yield from _record_text_lines(target, options)
    yield []
    yield _record_footer(target)


def _record_footer(target: RecordLocation) -> StyledLine:
    record = target.transcript.record(target.node)
    parts = (record.uuid or "", record.kind, f"byte {target.node.offset:,}")
    return [("    " + "  ".join(one_line(part, 60) for part in parts if part), "dim")]
