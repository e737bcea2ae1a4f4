"""Which response a line belongs to, where `message.id` does not say. For rules and repair."""

from collections.abc import Iterable, Iterator, Sequence

from steno.session.nodes import Node

__all__ = ["misnamed", "nameless"]

_Run = list[Node]


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


def misnamed(conversation: Sequence[Node]) -> list[tuple[Node, str]]:
    """Return lines under the name of another response, with the name they should have, if known.

    A response is written without a break but for the results of its own calls. A line between two
    lines of one response, or behind a call whose result is still to come, belongs to it; a
    name that comes back after another response of the same turn is not its own. In another turn
    it may come back: clients do not mind.
    """
    found: list[tuple[Node, str]] = []
    answered = {call for node in conversation for call in node.results}
    finished: set[str] = set()
    current: str | None = None
    for run, prompted in _runs(conversation):
        if prompted:
            finished.clear()
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


def _runs(conversation: Iterable[Node]) -> Iterator[tuple[_Run, bool]]:
    """Yield the answers between the user's messages, and whether a prompt stands before them."""
    run: _Run = []
    prompted = False
    for node in conversation:
        if node.type == "assistant":
            run.append(node)
        elif node.type == "user":
            if run:
                yield run, prompted
                run, prompted = [], False
            prompted = prompted or not node.results
    if run:
        yield run, prompted
