"""To-do lists and tasks as a board of three columns, with changes marked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from steno.format.message import ToolUse
from steno.format.tool_catalogue import tools_where
from steno.sanitize.html import SafeHtml, escape_html
from steno.session.transcript import Node
from steno.web.templating import icon_html
from steno.web.tool_views.components import Fact, clip, fact_list, join_html
from steno.web.tool_views.generic_view import result_view
from steno.web.tool_views.view_context import Fields, ToolCall, ViewContext, as_fields, as_items, as_text, first_text

_BOARD_COLUMNS: Final = (
    ("To do", "", "ring", ("pending", "open", "todo")),
    ("In progress", "doing", "half", ("in_progress", "doing", "active")),
    ("Done", "done", "check", ("completed", "done")),
)
_DELETED: Final = "deleted"
_MAX_LOOKBACK: Final = 4_000
"""Maximum records searched for the previous board."""
_TASK_TOOLS: Final = tools_where(lambda facts: facts.view == "tasks" and facts.name != "TaskGet")
_MAX_ITEMS: Final = 200


class BoardItem(msgspec.Struct, frozen=True):
    """A to-do item or task."""

    name: str
    title: str
    status: str
    detail: str = ""


class _BoardEntry(msgspec.Struct, frozen=True):
    title: str
    detail: str
    css_class: str


class _BoardColumn(msgspec.Struct, frozen=True):
    title: str
    css_class: str
    icon: str
    entries: list[_BoardEntry]
    more: int


def board_html(items: Sequence[BoardItem], previous: Mapping[str, str] | None) -> SafeHtml:
    """Return a board; `previous` maps item keys to their previous status, if known."""
    columns: list[_BoardColumn] = []
    known_statuses = {status for column in _BOARD_COLUMNS for status in column[3]}
    for title, kind, icon, statuses in _BOARD_COLUMNS:
        # Unknown states count as to do.
        column_items = [
            item for item in items if item.status in statuses or (not kind and item.status not in known_statuses)
        ]
        entries = [_build_entry(item, previous, known_statuses) for item in column_items[:_MAX_ITEMS]]
        columns.append(
            _BoardColumn(f"{title} {len(column_items)}", kind, icon, entries, len(column_items) - len(entries))
        )
    return SafeHtml(f'<div class="box board">{"".join(map(_column_html, columns))}</div>\n')


def _column_html(column: _BoardColumn) -> str:
    icon = icon_html(column.icon)
    rows = "".join([f"<li>{icon}{_entry_html(entry)}</li>" for entry in column.entries])
    more = f'<p class="dim">{column.more} more</p>' if column.more else ""
    kind = f' class="{column.css_class}"' if column.css_class else ""
    return f"<section{kind}><h4>{column.title}</h4><ul>{rows}</ul>{more}</section>"


def _entry_html(entry: _BoardEntry) -> str:
    mark = f' class="{entry.css_class}"' if entry.css_class else ""
    detail = f' <span class="dim">{escape_html(entry.detail)}</span>' if entry.detail else ""
    return f"<span{mark}>{escape_html(entry.title)}{detail}</span>"


def _build_entry(item: BoardItem, previous: Mapping[str, str] | None, known_statuses: set[str]) -> _BoardEntry:
    mark = ""
    if previous:
        old_status = previous.get(item.name)
        mark = "new" if old_status is None else "moved" if old_status != item.status else ""
    unknown_status = item.status if item.status and item.status not in known_statuses else ""
    detail = ", ".join(text for text in (item.detail, unknown_status) if text)
    return _BoardEntry(clip(item.title), clip(detail), mark)


# To-do lists


def todo_view(call: ToolCall) -> SafeHtml:
    """Return the to-do list that a call wrote, compared with the previous list."""
    current = _todo_items(call.result_fields.get("newTodos")) or _todo_items(call.tool_input.get("todos"))
    previous = _todo_items(call.result_fields.get("oldTodos"))
    if not previous and "oldTodos" not in call.result_fields and call.step.call is not None:
        previous = _previous_todos(call.context, call.step.call)
    if not current and not previous:
        return SafeHtml("")
    html = board_html(current, {item.name: item.status for item in previous})
    removed = [item.title for item in previous if item.name not in {current_item.name for current_item in current}]
    return join_html(html, fact_list(Fact("removed", ", ".join(removed)[:2_000])), _failure_html(call))


def _todo_items(value: Any) -> list[BoardItem]:
    fields = [as_fields(item) for item in as_items(value)]
    titled = [(first_text(item_fields, "content", "subject", "title", "text"), item_fields) for item_fields in fields]
    return [
        BoardItem(title, title, as_text(each.get("status")), as_text(each.get("priority")))
        for title, each in titled
        if title
    ]


def _previous_todos(context: ViewContext, node: Node) -> list[BoardItem]:
    """Return the to-do list of the previous call; used if the result does not record the previous list."""
    for use, _ in _tool_uses(context, reversed(_preceding_nodes(context, node)), ("TodoWrite",)):
        return _todo_items(use.input.get("todos"))
    return []


def _preceding_nodes(context: ViewContext, node: Node) -> list[Node]:
    return context.transcript.nodes[max(0, node.index - _MAX_LOOKBACK) : node.index]


def _tool_uses(context: ViewContext, nodes: Iterable[Node], names: Sequence[str]) -> Iterator[tuple[ToolUse, Node]]:
    """Yield the calls of some tools. Decode only records that contain a tool name."""
    marks = [f'"{name}"'.encode() for name in names]
    for node in nodes:
        if not node.uses:
            continue
        raw = context.transcript.source.read(node.offset, node.length)
        if not any(mark in raw for mark in marks):
            continue
        for use in context.transcript.record(node).tool_uses:
            if use.name in names:
                yield use, node


# Tasks


def task_view(call: ToolCall) -> SafeHtml:
    """Return the board after a call, and the changes of the call."""
    node = call.step.call
    if node is None:
        return SafeHtml("")
    previous = _previous_tasks(call.context, node)
    current = dict(previous)
    _apply_task_call(current, call.tool, call.tool_input, call.result_fields)
    if not current:
        return SafeHtml("")
    statuses = {name: item.status for name, item in previous.items()}
    html = board_html(list(current.values()), statuses if call.tool != "TaskList" else None)
    return join_html(html, _task_facts(call), _failure_html(call))


def _task_facts(call: ToolCall) -> SafeHtml:
    task = as_fields(call.result_fields.get("task")) or call.tool_input
    change = as_fields(call.result_fields.get("statusChange"))
    status_change = " → ".join(as_text(change.get(end)) for end in ("from", "to")) if change else ""
    return fact_list(
        Fact("task", first_text(task, "id", "taskId") or as_text(call.tool_input.get("taskId"))),
        Fact("status", status_change),
        Fact("description", first_text(task, "description")),
        Fact("owner", first_text(call.tool_input, "owner")),
        Fact("blocked by", ", ".join(map(as_text, as_items(call.tool_input.get("addBlockedBy"))))),
        Fact("error", first_text(call.result_fields, "error"), "bad"),
    )


def _previous_tasks(context: ViewContext, node: Node) -> dict[str, BoardItem]:
    """Return the board before a call."""
    board: dict[str, BoardItem] = {}
    nodes = _preceding_nodes(context, node)
    calls = {use.id: use for use, _ in _tool_uses(context, nodes, _TASK_TOOLS)}
    if not calls:
        return board
    for result_node in nodes:
        matching = [use for use in result_node.results if use in calls]
        if len(matching) == 1 and len(result_node.results) == 1:
            use = calls[matching[0]]
            result_fields = as_fields(context.transcript.record(result_node).tool_use_result)
            _apply_task_call(board, use.name, use.input, result_fields)
    return board


def _apply_task_call(board: dict[str, BoardItem], tool: str, tool_input: Fields, result_fields: Fields) -> None:
    if tool == "TaskList":
        listed_tasks = [_board_item(task_item) for task_item in as_items(result_fields.get("tasks"))]
        if listed_tasks:
            board.clear()
            board.update({item.name: item for item in listed_tasks})
        return
    task = as_fields(result_fields.get("task"))
    if tool in ("TaskCreate", "TaskGet") and task:
        new_task = _board_item({**tool_input, **task})
        board[new_task.name] = new_task
        return
    name = first_text(tool_input, "taskId") or first_text(result_fields, "taskId")
    change = as_fields(result_fields.get("statusChange"))
    status = first_text(change, "to") or (first_text(tool_input, "status") if not change else "")
    old = board.get(name, BoardItem(name, f"Task {name}", "pending"))
    if tool == "TaskUpdate" and name and result_fields.get("success") is not False:
        if status == _DELETED:
            board.pop(name, None)
            return
        title = first_text(tool_input, "subject") or old.title
        board[name] = BoardItem(name, title, status or old.status, first_text(tool_input, "owner") or old.detail)


def _board_item(value: Any) -> BoardItem:
    fields = as_fields(value)
    name = first_text(fields, "id", "taskId")
    blockers = ", ".join(map(as_text, as_items(fields.get("blockedBy"))))
    detail = f"blocked by {blockers}" if blockers else first_text(fields, "owner")
    title = first_text(fields, "subject", "content") or f"Task {name}"
    return BoardItem(name, title, first_text(fields, "status") or "pending", detail)


def _failure_html(call: ToolCall) -> SafeHtml:
    return result_view(call) if call.failed else SafeHtml("")
