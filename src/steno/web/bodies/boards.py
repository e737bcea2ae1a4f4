"""To-do lists and tasks as a board of three columns; what moved since the board before is marked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from steno.format.blocks import ToolUse
from steno.format.tool_catalogue import tools_where
from steno.safe.html import Html, escaped
from steno.session.nodes import Node
from steno.web.bodies.about import About, Call
from steno.web.bodies.parts import Fact, clipped, facts, joined
from steno.web.bodies.plain import result
from steno.web.bodies.values import Fields, as_fields, as_items, as_text, first_text
from steno.web.render.pieces import icon_of

__all__ = ["board_of", "tasks", "todos"]

_COLUMNS: Final = (
    ("To do", "", "ring", ("pending", "open", "todo")),
    ("Doing", "doing", "half", ("in_progress", "doing", "active")),
    ("Done", "done", "check", ("completed", "done")),
)
_GONE: Final = "deleted"
_BACK: Final = 4_000
"""Records that are looked through for the board before."""
_TASKS: Final = tools_where(lambda facts: facts.view == "tasks" and facts.name != "TaskGet")
_ITEMS: Final = 200


class Item(msgspec.Struct, frozen=True):
    """One thing to do."""

    name: str
    words: str
    status: str
    detail: str = ""


class _Entry(msgspec.Struct, frozen=True):
    words: str
    detail: str
    mark: str


class _Column(msgspec.Struct, frozen=True):
    title: str
    kind: str
    icon: str
    entries: list[_Entry]
    more: int


def board_of(items: Sequence[Item], before: Mapping[str, str] | None) -> Html:
    """Return a board; `before` is the status of each thing by name, if it is known."""
    columns: list[_Column] = []
    known = {status for column in _COLUMNS for status in column[3]}
    for title, kind, icon, statuses in _COLUMNS:
        # What nobody knows is still to do.
        own = [
            item
            for item in items
            if item.status in statuses or (not kind and item.status not in known)
        ]
        entries = [_entry(item, before, known) for item in own[:_ITEMS]]
        columns.append(_Column(f"{title} {len(own)}", kind, icon, entries, len(own) - len(entries)))
    return Html(f'<div class="box board">{"".join(map(_column_html, columns))}</div>\n')


def _column_html(column: _Column) -> str:
    icon = icon_of(column.icon)
    rows = "".join([f"<li>{icon}{_entry_html(entry)}</li>" for entry in column.entries])
    more = f'<p class="dim">{column.more} more</p>' if column.more else ""
    kind = f' class="{column.kind}"' if column.kind else ""
    return f"<section{kind}><h4>{column.title}</h4><ul>{rows}</ul>{more}</section>"


def _entry_html(entry: _Entry) -> str:
    mark = f' class="{entry.mark}"' if entry.mark else ""
    detail = f' <span class="dim">{escaped(entry.detail)}</span>' if entry.detail else ""
    return f"<span{mark}>{escaped(entry.words)}{detail}</span>"


def _entry(item: Item, before: Mapping[str, str] | None, known: set[str]) -> _Entry:
    mark = ""
    if before:
        was = before.get(item.name)
        mark = "new" if was is None else "moved" if was != item.status else ""
    odd = item.status if item.status and item.status not in known else ""
    detail = ", ".join(word for word in (item.detail, odd) if word)
    return _Entry(clipped(item.words), clipped(detail), mark)


# To-do lists


def todos(call: Call) -> Html:
    """Return the list that was written, against the one before."""
    now = _items(call.fields.get("newTodos")) or _items(call.asked.get("todos"))
    before = _items(call.fields.get("oldTodos"))
    if not before and "oldTodos" not in call.fields and call.step.call is not None:
        before = _written_before(call.about, call.step.call)
    if not now and not before:
        return Html("")
    made = board_of(now, {item.name: item.status for item in before})
    gone = [item.words for item in before if item.name not in {each.name for each in now}]
    return joined(made, facts(Fact("no longer on it", ", ".join(gone)[:2_000])), _failure(call))


def _items(value: Any) -> list[Item]:
    fields = [as_fields(item) for item in as_items(value)]
    found = [(first_text(each, "content", "subject", "title", "text"), each) for each in fields]
    return [
        Item(words, words, as_text(each.get("status")), as_text(each.get("priority")))
        for words, each in found
        if words
    ]


def _written_before(about: About, node: Node) -> list[Item]:
    """Return the list of the last call before this one, where the client did not keep it."""
    for use, _ in _uses(about, reversed(_nodes_before(about, node)), ("TodoWrite",)):
        return _items(use.input.get("todos"))
    return []


def _nodes_before(about: About, node: Node) -> list[Node]:
    return about.transcript.nodes[max(0, node.index - _BACK) : node.index]


def _uses(
    about: About, nodes: Iterable[Node], names: Sequence[str]
) -> Iterator[tuple[ToolUse, Node]]:
    """Yield the calls of some tools; records are only decoded where the name is in them."""
    marks = [f'"{name}"'.encode() for name in names]
    for node in nodes:
        if not node.uses:
            continue
        raw = about.transcript.source.read(node.offset, node.length)
        if not any(mark in raw for mark in marks):
            continue
        for use in about.transcript.record(node).tool_uses:
            if use.name in names:
                yield use, node


# Tasks


def tasks(call: Call) -> Html:
    """Return the board as a call left it, and what the call did."""
    node = call.step.call
    if node is None:
        return Html("")
    before = _tasks_before(call.about, node)
    after = dict(before)
    _follow(after, call.tool, call.asked, call.fields)
    if not after:
        return Html("")
    statuses = {name: item.status for name, item in before.items()}
    made = board_of(list(after.values()), statuses if call.tool != "TaskList" else None)
    return joined(made, _did(call), _failure(call))


def _did(call: Call) -> Html:
    task = as_fields(call.fields.get("task")) or call.asked
    change = as_fields(call.fields.get("statusChange"))
    moved = " → ".join(as_text(change.get(end)) for end in ("from", "to")) if change else ""
    return facts(
        Fact("task", first_text(task, "id", "taskId") or as_text(call.asked.get("taskId"))),
        Fact("status", moved),
        Fact("about", first_text(task, "description")),
        Fact("owner", first_text(call.asked, "owner")),
        Fact("waits for", ", ".join(map(as_text, as_items(call.asked.get("addBlockedBy"))))),
        Fact("error", first_text(call.fields, "error"), "bad"),
    )


def _tasks_before(about: About, node: Node) -> dict[str, Item]:
    """Return the board as the calls before this one left it."""
    board: dict[str, Item] = {}
    nodes = _nodes_before(about, node)
    calls = {use.id: use for use, _ in _uses(about, nodes, _TASKS)}
    if not calls:
        return board
    for each in nodes:
        named = [use for use in each.results if use in calls]
        if len(named) == 1 and len(each.results) == 1:
            use = calls[named[0]]
            kept = as_fields(about.transcript.record(each).tool_use_result)
            _follow(board, use.name, use.input, kept)
    return board


def _follow(board: dict[str, Item], tool: str, asked: Fields, kept: Fields) -> None:
    if tool == "TaskList":
        listed = [_task(each) for each in as_items(kept.get("tasks"))]
        if listed:
            board.clear()
            board.update({item.name: item for item in listed})
        return
    task = as_fields(kept.get("task"))
    if tool in ("TaskCreate", "TaskGet") and task:
        made = _task({**asked, **task})
        board[made.name] = made
        return
    name = first_text(asked, "taskId") or first_text(kept, "taskId")
    change = as_fields(kept.get("statusChange"))
    status = first_text(change, "to") or (first_text(asked, "status") if not change else "")
    old = board.get(name, Item(name, f"Task {name}", "pending"))
    if tool == "TaskUpdate" and name and kept.get("success") is not False:
        if status == _GONE:
            board.pop(name, None)
            return
        words = first_text(asked, "subject") or old.words
        board[name] = Item(
            name, words, status or old.status, first_text(asked, "owner") or old.detail
        )


def _task(value: Any) -> Item:
    fields = as_fields(value)
    name = first_text(fields, "id", "taskId")
    waits = ", ".join(map(as_text, as_items(fields.get("blockedBy"))))
    detail = f"waits for {waits}" if waits else first_text(fields, "owner")
    words = first_text(fields, "subject", "content") or f"Task {name}"
    return Item(name, words, first_text(fields, "status") or "pending", detail)


def _failure(call: Call) -> Html:
    return result(call) if call.failed else Html("")
