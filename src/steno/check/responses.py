"""Which response a line belongs to, where `message.id` does not say. For rules and repair."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from steno.check.graph import Graph
from steno.session.nodes import Node

__all__ = ["misnamed", "nameless"]

_Run = list[Node]
_COMMAND: Final = "local_command"


def nameless(conversation: Iterable[Node]) -> list[tuple[_Run, str]]:
    """Return lines that name a model but no message, with the name they should have, if known.

    Clients take all such lines for one response. A single response of that kind does no harm; two
    are merged into one, and a line among lines that have a name is torn from its response.
    """
    found = list(_unnamed(conversation))
    return found if len(found) > 1 or any(name for _, name in found) else []


def _unnamed(conversation: Iterable[Node]) -> Iterator[tuple[_Run, str]]:
    for run, _ in _runs(conversation):
        lines = [node for node in run if node.message_id is None and node.model]
        if lines:
            names = [node.message_id for node in run if node.message_id is not None]
            yield lines, names[0] if names else ""


def misnamed(graph: Graph) -> list[tuple[Node, str]]:
    """Return lines under the name of another response, with the name they should have, if known.

    What is pulled in beside the way goes by its name, so a wrong one brings it to a wrong place:
    where something is wrong, the way is looked at first, and then what hangs on a call of another
    response. Where nothing seems to be, the way tells only of names that come back, as results
    may have been brought behind them; results that are missing from it prove nothing.
    """
    found = _misnamed(graph.conversation)
    if len(graph.way) == len(graph.chain):
        return found
    on_way = _misnamed([node for node in graph.way if node.index in graph.sent])
    if not found:
        return [(node, name) for node, name in on_way if not name]
    return on_way or _astray(graph) or found


def _astray(graph: Graph) -> list[tuple[Node, str]]:
    """Return lines that hang on a call of another response, and so belong to that."""
    answered = {call for node in graph.conversation for call in node.results}
    found: list[tuple[Node, str]] = []
    for node in graph.conversation:
        above = graph.parent(node) if node.type == "assistant" and node.message_id else None
        if (
            above is None
            or above.type != "assistant"
            or above.message_id in (None, node.message_id)
        ):
            continue
        if not answered.isdisjoint(above.uses):
            found.append((node, above.message_id or ""))
    return found


def _misnamed(conversation: Sequence[Node]) -> list[tuple[Node, str]]:
    """Return the misnamed lines of a conversation as it stands.

    A response is written without a break but for the results of its own calls. A line between two
    lines of one response, or behind a call whose result is still to come, belongs to it; a
    name that comes back after another response of the same turn is not its own. In another turn
    it may come back: clients do not mind. But a prompt right behind results begins none: clients
    make one message of them. And no response goes on behind a command of the user's.
    """
    found: list[tuple[Node, str]] = []
    answered = {call for node in conversation for call in node.results}
    finished: set[str] = set()
    current: str | None = None
    for run, begins in _runs(conversation):
        if begins == "prompt":
            finished.clear()
            current = None
        elif begins == "command":
            finished |= {current} if current is not None else set()
            current = None
        calling = False
        last = {node.message_id: place for place, node in enumerate(run)}
        for place, node in enumerate(run):
            name = node.message_id
            if name is None or name == current:
                calling = calling or not answered.isdisjoint(node.uses)
            elif current is not None and (calling or last.get(current, -1) > place):
                found.append((node, current))
            elif name in finished:
                found.append((node, ""))
            else:
                finished |= {current} if current is not None else set()
                current, calling = name, not answered.isdisjoint(node.uses)
    return found


def _runs(conversation: Iterable[Node]) -> Iterator[tuple[_Run, str]]:
    """Yield the answers between the user's messages, and by what these begin something new."""
    run: _Run = []
    asked: list[Node] = []
    for node in conversation:
        if node.type == "assistant":
            run.append(node)
        elif node.type == "user" or node.subtype == _COMMAND:
            if run:
                yield run, _beginning(asked)
                run, asked = [], []
            asked.append(node)
    if run:
        yield run, _beginning(asked)


def _beginning(asked: list[Node]) -> str:
    """Return `prompt`, `command`, or nothing where a response may go on."""
    if any(node.results for node in asked):
        return "command" if any(node.subtype == _COMMAND for node in asked) else ""
    return "prompt" if asked else ""
