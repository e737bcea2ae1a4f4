"""Record-level views of a session: records and gaps, record tree, API messages, one record in context.

In the tree, successive records stay in one column. Where several records have the same parent, side
branches are drawn first, indented after a rail, and the branch of the conversation continues below.
Nothing recurses: a session can be a million records deep.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, cast

import msgspec

from steno.cli.output.screen import print_error
from steno.cli.output.transcript import (
    RenderOptions,
    SessionTranscript,
    StepRenderer,
    prompt_lines,
    prose_lines,
    verb_column_width,
)
from steno.errors import Ambiguous, NotFound
from steno.format.lines import read_pieces
from steno.format.records import Piece, Record
from steno.format.source import Damage, Source
from steno.index.line_decoder import line_from_record
from steno.index.searchable_text import text_parts
from steno.report import humanize
from steno.sanitize.terminal import StyledLine, one_line, pad, truncate, wrap
from steno.session.session import Session
from steno.session.transcript import Node, Transcript
from steno.session.turns.steps import Step
from steno.session.turns.turn_builder import Turn

_ENVELOPE_FIELDS: Final = frozenset(
    (
        *("type", "subtype", "uuid", "parentUuid", "sessionId", "session_id", "timestamp"),
        *("userType", "cwd", "version", "gitBranch", "entrypoint", "renderedRole", "level"),
        *("slug", "id", "requestId", "promptId", "messageId", "agentId", "toolUseID"),
        "logicalParentUuid",
    )
)


def numbered_pieces(source: Source) -> Iterator[tuple[int, Piece]]:
    """Yield every record and gap with its line number, without keeping them in memory."""
    number = 1
    for piece in read_pieces(source):
        yield number, piece
        end = piece.ending if isinstance(piece, Record) else source.read(piece.offset + piece.length - 1, 1)
        number += end.endswith(b"\n")


def piece_json(number: int, piece: Piece) -> dict[str, Any]:
    """Return a record or gap as one object of JSON Lines."""
    record = piece if isinstance(piece, Record) else None
    return {
        "offset": piece.offset,
        "length": piece.length,
        "line": number,
        "kind": record.kind if record else "gap",
        "type": record.envelope.type if record else None,
        "uuid": record.uuid if record else None,
        "parentUuid": record.parent_uuid if record else None,
        "timestamp": record.timestamp if record else None,
        "dialect": record.dialect if record else None,
        "damage": [_damage_json(damage) for damage in piece.damage],
        "gap": record is None,
    }


def _damage_json(damage: Damage) -> dict[str, Any]:
    return {
        "id": damage.id,
        "offset": damage.span.offset,
        "length": damage.span.length,
        "message": damage.message,
        "hint": damage.hint,
    }


def piece_line(number: int, piece: Piece, width: int) -> Iterator[StyledLine]:
    """Yield a line for a record or gap, and a line for each kind of damage in it."""
    size = pad(humanize.size(piece.length), 7, right=True)
    head: StyledLine = [(pad(f"{number:,}", 6, right=True), "dim"), "  ", (size, "dim"), "  "]
    if isinstance(piece, Record):
        uuid = pad(one_line((piece.uuid or "")[:8]), 8)
        kind = pad(one_line(piece.kind, 28), 28)
        available = max(width - 57, 0)
        text = record_excerpt(piece, available)
        yield [*head, (uuid, "bold"), "  ", kind, "  ", (text, "dim")]
    else:
        yield [*head, (pad("", 8), ""), "  ", ("gap", "yellow")]
    for damage in piece.damage:
        explanation = one_line(f"{damage.message}: {damage.hint}" if damage.message else damage.hint)
        available = max(width - 30 - len(damage.id), 20)
        yield [" " * 27, (f"! {damage.id}", "yellow"), " ", (one_line(explanation, available), "dim")]


def record_excerpt(record: Record, available: int) -> str:
    """Return the start of the text of a record of any kind."""
    if record.tool_uses:
        call = record.tool_uses[0]
        values = (str(value) for value in call.input.values() if isinstance(value, str))
        return one_line(f"{call.name} {next(values, '')}", available)
    if record.tool_results:
        return one_line(record.tool_results[0].text, available)
    text = record.text or record.thinking
    if text:
        return one_line(text, available)
    return one_line(next(_field_texts(record.fields), ""), available)


def _field_texts(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the string fields of a record without text, except those of the envelope."""
    inner = (cast("Any", value) for value in fields.values() if isinstance(value, dict))
    parts: list[dict[str, Any]] = [*inner, fields]
    for part in parts:
        for name, value in part.items():
            if name not in _ENVELOPE_FIELDS and isinstance(value, str) and value:
                yield f"{name} {value}"


_MAX_BLOCK_LINES = 12


def message_lines(messages: list[dict[str, Any]], width: int, *, show_all: bool = False) -> Iterator[StyledLine]:
    """Yield each message with number, role and blocks; long blocks are cut."""
    for number, message in enumerate(messages, 1):
        if number > 1:
            yield []
        role = str(message.get("role", ""))
        style = "bold blue" if role == "user" else "bold"
        yield [(f"{number:>3}  ", "dim"), (role, style)]
        for block in _content_blocks(message.get("content")):
            for line in _block_lines(block, width - 5, show_all=show_all):
                yield ["     ", *line]


def _content_blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _block_lines(block: dict[str, Any], width: int, *, show_all: bool) -> Iterator[StyledLine]:
    match block.get("type"):
        case "text":
            yield from _limited_lines(str(block.get("text", "")), width, show_all=show_all)
        case "thinking":
            yield [("thinking", "dim")]
            yield from _limited_lines(str(block.get("thinking", "")), width, show_all=show_all)
        case "tool_use":
            name = one_line(str(block.get("name", "")), width // 2)
            yield [("▸ ", "dim"), (name, "bold"), "  ", _input_text(block, width - len(name) - 4)]
        case "tool_result":
            failed = bool(block.get("is_error"))
            yield [("▸ result" + (" failed" if failed else ""), "red" if failed else "dim")]
            for inner in _content_blocks(block.get("content")):
                for line in _block_lines(inner, width - 2, show_all=show_all):
                    yield ["  ", *line]
        case block_type:
            yield [(f"[{block_type}]", "dim")]


def _input_text(block: dict[str, Any], width: int) -> str:
    tool_input = block.get("input")
    values = list(cast("dict[str, Any]", tool_input).values()) if isinstance(tool_input, dict) else []
    return one_line("  ".join(value for value in values if isinstance(value, str)), width)


def _limited_lines(text: str, width: int, *, show_all: bool) -> Iterator[StyledLine]:
    lines = wrap(text.strip("\n"), width)
    visible = lines if show_all else lines[:_MAX_BLOCK_LINES]
    for line in visible:
        yield [line]
    if len(visible) < len(lines):
        yield [(f"{len(visible)} of {humanize.count(len(lines), 'line')}", "dim")]


def warn_of_unsent_summary(transcript: "Transcript", name: str) -> None:
    """Warn if the last summary of a session is in a record that Claude Code does not send.

    `name` is the session argument for `steno repair`.
    """
    from shlex import quote

    from steno.check.rules.compaction import UNSENT_SUMMARY, has_unsent_summary

    if has_unsent_summary(transcript):
        print_error(UNSENT_SUMMARY, f"Run `steno repair {quote(name)}` to write the summary as a message.")


_MAX_RAILS = 12
_KIND_WIDTH = 27


class _TreePosition(msgspec.Struct):
    node: Node
    rails: tuple[str, ...]
    branch_mark: str = ""
    """Mark in front of the first record of a side branch."""
    depth: int = 0
    """Number of enclosing side branches; not limited like the rails."""


def graph_lines(session: Session, width: int) -> Iterator[StyledLine]:
    """Yield one line per record with an ID, below its parent."""
    conversation_ids = {node.uuid for node in session.conversation()}
    leaf = session.leaf
    for position in _tree_positions(session):
        in_conversation = position.node.uuid in conversation_ids
        yield _record_line(session, position, width, in_conversation=in_conversation, is_leaf=position.node is leaf)


def graph_json(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the records of `graph_lines` as JSON, in the same order."""
    conversation_ids = {node.uuid for node in session.conversation()}
    leaf = session.leaf
    for position in _tree_positions(session):
        node = position.node
        yield {
            "uuid": node.uuid,
            "parent": node.parent,
            "kind": session.transcript.record(node).kind,
            "offset": node.offset,
            "depth": position.depth,
            "sidechain": node.sidechain,
            "taken": node.uuid in conversation_ids,
            "leaf": node is leaf,
        }


def _tree_positions(session: Session) -> Iterator[_TreePosition]:
    """Yield the position of every record with an ID, each once."""
    nodes = [node for node in session.transcript.nodes if node.uuid]
    children, roots = _children_and_roots(nodes, session)
    ancestor_ids = _ancestor_ids(session)
    yielded: set[int] = set()
    stack = [_TreePosition(node, ()) for node in reversed(roots)]
    # Cycles have no root: start with the first remaining record.
    unvisited = iter(nodes)
    while True:
        if not stack:
            unreached = next((node for node in unvisited if node.index not in yielded), None)
            if unreached is None:
                return
            stack.append(_TreePosition(unreached, ()))
        position = stack.pop()
        node = position.node
        if node.index in yielded:
            continue
        yielded.add(node.index)
        yield position
        # If several records have the same ID, the first one gets the children.
        pending_children = [child for child in children.pop(node.uuid or "", ()) if child.index not in yielded]
        stack += _child_positions(pending_children, position, ancestor_ids)


def _children_and_roots(nodes: list[Node], session: Session) -> tuple[dict[str, list[Node]], list[Node]]:
    by_uuid = session.transcript.by_uuid
    children: dict[str, list[Node]] = {}
    roots: list[Node] = []
    for node in nodes:
        if node.parent and node.parent in by_uuid and node.parent != node.uuid:
            children.setdefault(node.parent, []).append(node)
        else:
            roots.append(node)
    return children, roots


def _ancestor_ids(session: Session) -> set[str | None]:
    """Return the IDs on the path from the leaf to the root."""
    ancestor_ids: set[str | None] = set()
    node = session.leaf
    while node is not None and node.uuid not in ancestor_ids:
        ancestor_ids.add(node.uuid)
        node = session.transcript.by_uuid.get(node.parent or "")
    return ancestor_ids


def _child_positions(
    children: list[Node], parent: _TreePosition, ancestor_ids: set[str | None]
) -> Iterator[_TreePosition]:
    """Yield the positions of the children of a record, in reverse drawing order."""
    if not children:
        return
    main_child = next((child for child in reversed(children) if child.uuid in ancestor_ids), children[-1])
    rails = parent.rails
    yield _TreePosition(main_child, rails, depth=parent.depth)
    branch_rails = (*rails, "│ ") if len(rails) < _MAX_RAILS else rails
    for child in reversed(children):
        if child is not main_child:
            yield _TreePosition(child, branch_rails, "├─", parent.depth + 1)


def _record_line(
    session: Session, position: _TreePosition, width: int, *, in_conversation: bool, is_leaf: bool
) -> StyledLine:
    node = position.node
    record = session.transcript.record(node)
    rails = "".join(position.rails[:-1] if position.branch_mark else position.rails) + position.branch_mark
    mark = "◆" if is_leaf else "●" if in_conversation else "·"
    column = min(_KIND_WIDTH, width // 3, max(width - len(rails) - 14, 1))
    kind = one_line(record.kind, column)
    available = max(width - len(rails) - 14 - column, 0)
    notes = truncate(_record_note(node, session, is_leaf=is_leaf), available)
    is_deleted = node.type == "deleted"
    text = "" if is_deleted else record_excerpt(record, max(available - len(notes), 0))
    style = "" if in_conversation else "magenta" if node.sidechain else "dim"
    return [
        (rails, "dim"),
        (mark, "bold blue" if is_leaf else style),
        " ",
        (one_line((node.uuid or "")[:8]), "bold" if in_conversation else "dim"),
        "  ",
        (pad(kind, column), style),
        "  ",
        (text, "dim"),
        (notes, "bold blue" if is_leaf else "yellow"),
    ]


def _record_note(node: Node, session: Session, *, is_leaf: bool) -> str:
    if is_leaf:
        return "  leaf"
    if node.parent and node.parent not in session.transcript.by_uuid:
        return "  parent missing"
    return ""


_CONTEXT_STEPS: Final = 3
_EXCERPT_WIDTH: Final = 84
_MAX_RECORD_LINES: Final = 200
_MAX_OFFSET_DIGITS: Final = 19
"""Maximum digits of a byte offset."""


class RecordLocation(msgspec.Struct):
    """A record and its position in the transcript."""

    transcript: Transcript
    node: Node
    turn: Turn | None = None
    branch: int | None = None
    agent: str | None = None


def locate_record(session: Session, reference: str, agent: str | None = None) -> RecordLocation:
    """Return the position of a record, by its ID, the first characters of its ID, or its byte offset.

    Raises:
        NotFound: no record matches.
        Ambiguous: several IDs match.
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
    raise NotFound(f"no record matches {reference!r}", hint="Run `steno show SESSION --records` to list records.")


def _find_node(transcript: Transcript, reference: str, *, by_byte: bool) -> Node | None:
    names = transcript.by_uuid
    if reference in names:
        return names[reference]
    matches = [node for name, node in names.items() if reference and name.startswith(reference)]
    if len(matches) > 1:
        raise Ambiguous(f"{reference!r} matches {len(matches)} records", hint="Use more characters of the ID.")
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
        # The first Claude Code versions wrote sub-agent records to the session file.
        if thread.transcript is session.transcript and (turn := _turn_of(thread.turns, node)):
            location.turn, location.agent = turn, thread.agent_id
    return location


def _turn_of(turns: list[Turn], node: Node) -> Turn | None:
    return next((t for t in turns if any(other.index == node.index for other in t.nodes)), None)


def record_context_lines(
    session_transcript: SessionTranscript, target: RecordLocation, options: RenderOptions
) -> Iterator[StyledLine]:
    """Yield a record with the surrounding steps of its turn."""
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
    text, style = first if isinstance(first := line[0], tuple) else (first, "")
    return [("→ ", "bold yellow"), (text.removeprefix("  "), style), *line[1:]]


def _step_lines(transcript: Transcript, steps: tuple[Step, ...], options: RenderOptions) -> Iterator[StyledLine]:
    return StepRenderer(options).lines(transcript, steps)


def _omitted_steps_line(number: int, position: str) -> Iterator[StyledLine]:
    if number > 0:
        yield [(f"  … {humanize.count(number, position + 'step')}", "dim")]


def _record_text_lines(target: RecordLocation, options: RenderOptions) -> Iterator[StyledLine]:
    """Yield the searchable text of a record."""
    if target.node.type == "deleted" and not options.show_all:
        yield ["    ", ("deleted; use --all to show", "dim")]
        return
    record = target.transcript.record(target.node)
    texts = [part.text for part in text_parts(line_from_record(record), record.line) if part.text]
    text = "\n\n".join(texts) or record_excerpt(record, _EXCERPT_WIDTH)
    lines = wrap(text.strip("\n"), max(options.width - 6, 20))
    max_lines = len(lines) if options.show_all else _MAX_RECORD_LINES
    for line in lines[:max_lines]:
        yield ["    ", ("│ ", "yellow"), line]
    if len(lines) > max_lines:
        yield ["    ", (f"… {max_lines} of {humanize.count(len(lines), 'line')}; use --all to show all", "dim")]


def _lines_outside_turns(target: RecordLocation, options: RenderOptions) -> Iterator[StyledLine]:
    yield [("this record is not part of a turn", "bold")]
    yield []
    yield from _record_text_lines(target, options)
    yield []
    yield _record_footer(target)


def _record_footer(target: RecordLocation) -> StyledLine:
    record = target.transcript.record(target.node)
    parts = (record.uuid or "", record.kind, f"byte {target.node.offset:,}")
    return [("    " + "  ".join(one_line(part, 60) for part in parts if part), "dim")]
