"""Open items at the end of a session: questions, to-dos, failures, uncommitted files."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from typing import Any, Final

from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import AWAITED_TOOLS
from steno.report.actions.action import Action
from steno.report.brief.brief_document import OpenItem, WorkSummary
from steno.report.brief.decisions import COURTESY_QUESTION, is_question
from steno.report.humanize import relative_to_project
from steno.session.session_status import Status
from steno.session.turns.turn_builder import Turn

_CLAUSE_ENDS: Final = re.compile(r"(?<=[.!?:])\s+|(?<=[。\uff01\uff1f\uff1a])\s*")
_MAX_TEXT_LENGTH: Final = 400
_TASK_ID: Final = re.compile(r"Task #(\w{1,20})")
_ADDS_EVERYTHING: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\badd\s+(?:-A|--all|-u|\.(?=\s|$|[;&|]))|\bgit\b[^\n;&|]{0,200}\bcommit\s+(?:-\w*a|--all)"
)
_GIT_ADD: Final = re.compile(r"\bgit\b[^\n;&|]{0,200}?\badd\s+([^\n;&|]+)")
_DISCARDS_CHANGES: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\b(?:reset\s+--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
_OUTSIDE_PREFIXES: Final = ("/", "~", "\\")
_GLOB: Final = re.compile(r"[*?\[]")
_MAX_STAGED_WORDS: Final = 2_000
"""How many words behind `git add` are looked at before a commit."""
_CLOSED_STATES: Final = frozenset(("completed", "cancelled", "canceled", "deleted"))


def find_open_items(
    turns: list[Turn], actions: list[Action], work: WorkSummary, status: Status, uncommitted_paths: Iterable[str]
) -> tuple[OpenItem, ...]:
    """Return what is open; `changed` are the files that are in no commit."""
    number = turns[-1].number if turns else 0
    items = [*_interruption(status, number), *_open_questions(turns, actions)]
    items += [OpenItem(kind="todo", text=text, about=state) for text, state in open_todos(actions)]
    items += _failing_items(work, number)
    items += [
        OpenItem(kind="running", text=helper.task, about=helper.kind, turn=helper.turn)
        for helper in work.helpers
        if helper.status == "running"
    ]
    paths = list(uncommitted_paths)
    items += [OpenItem(kind="uncommitted", text=path, of=len(paths)) for path in paths]
    return tuple(items)


def _interruption(status: Status, turn: int) -> Iterator[OpenItem]:
    if status.standing == "interrupted":
        yield OpenItem(kind="interrupted", text=status.reason, turn=turn)


def _open_questions(turns: list[Turn], actions: list[Action]) -> Iterator[OpenItem]:
    last_turn = turns[-1] if turns else None
    if last_turn is None:
        return
    for action in actions:
        is_user_question = action.turn == last_turn.number and action.step.verb in AWAITED_TOOLS and not action.agent
        if is_user_question and action.step.state in ("open", "interrupted"):
            yield OpenItem(kind="question", text=action.step.subject[:_MAX_TEXT_LENGTH], turn=last_turn.number)
    question = final_question(last_turn.answer)
    if question and last_turn.done:
        yield OpenItem(kind="question", text=question, turn=last_turn.number)


def final_question(answer: str) -> str:
    """Return the question that an answer ends with, if it does.

    >>> final_question("All green. Shall I push it?")
    'Shall I push it?'
    """
    paragraph = answer.rstrip().rpartition("\n")[2].strip(" *_")
    if not is_question(paragraph):
        return ""
    question = [clause for clause in _CLAUSE_ENDS.split(paragraph) if clause][-1][-_MAX_TEXT_LENGTH:]
    return "" if COURTESY_QUESTION.match(question) else question


def _failing_items(work: WorkSummary, turn: int) -> Iterator[OpenItem]:
    last_test = work.tests[-1] if work.tests else None
    if last_test is not None and not last_test.ok:
        numbers = f"{last_test.failed:,} failed" if last_test.failed else "failed"
        yield OpenItem(kind="tests", text=last_test.command, about=numbers, turn=last_test.turn)
    for trouble in work.troubles:
        is_last = not trouble.solved and trouble.turn == turn
        if is_last and not any(trouble.what == test.command for test in work.tests):
            yield OpenItem(kind="error", text=trouble.what, about=trouble.said, turn=trouble.turn)


# The agent's own list


def open_todos(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """Return what is not done of the agent's own list, and how each item stands."""
    items: dict[str, tuple[str, str]] = {}
    for action in actions:
        if action.agent or action.step.state != "ok":
            continue
        match action.step.verb:
            case "TodoWrite":
                items = _todos_of_call(action.tool_input)
            case "TaskCreate":
                _add_task(action, items)
            case "TaskUpdate":
                _update_task(action.tool_input, items)
            case _:
                continue
    return [(text, state) for text, state in items.values() if state not in _CLOSED_STATES]


def _todos_of_call(tool_input: dict[str, Any]) -> dict[str, tuple[str, str]]:
    items: dict[str, tuple[str, str]] = {}
    for place, item in enumerate(as_list(tool_input.get("todos")) or []):
        fields = as_object(item) or {}
        text, state = fields.get("content"), fields.get("status")
        if isinstance(text, str) and isinstance(state, str):
            items[str(place)] = (text[:_MAX_TEXT_LENGTH], state)
    return items


def _add_task(action: Action, items: dict[str, tuple[str, str]]) -> None:
    task = as_object(action.client_result.get("task")) or {}
    task_id = task.get("id")
    if not isinstance(task_id, str):
        match = _TASK_ID.search(action.output_text[:200])
        task_id = match[1] if match else f"?{len(items)}"
    items[task_id] = (action.step.subject[:_MAX_TEXT_LENGTH], "pending")


def _update_task(tool_input: dict[str, Any], items: dict[str, tuple[str, str]]) -> None:
    task_id, state, subject = (tool_input.get("taskId"), tool_input.get("status"), tool_input.get("subject"))
    if not isinstance(task_id, str) or task_id not in items:
        return
    text, before = items[task_id]
    items[task_id] = (
        subject[:_MAX_TEXT_LENGTH] if isinstance(subject, str) and subject else text,
        state if isinstance(state, str) else before,
    )


# Files that are in no commit


def uncommitted_files(actions: Iterable[Action], project: str) -> list[str]:
    """Return the files below the project that were changed and are in no commit of the session."""
    changed_paths: dict[str, None] = {}
    staged: list[str] = []
    for action in actions:
        touch = action.step.touch
        if touch is not None and touch.changes and action.step.state == "ok":
            path = relative_to_project(touch.path, project)
            changed_paths.pop(path, None)
            changed_paths[path] = None
        command = action.step.command
        if not command or action.shell_command is None or not action.shell_command.runs("git"):
            continue
        if _DISCARDS_CHANGES.search(command) and action.step.state == "ok":
            changed_paths.clear()
        staged += ["*"] if _ADDS_EVERYTHING.search(command) else _staged_names(command)
        del staged[_MAX_STAGED_WORDS:]
        if action.shell_command.runs("git", "commit") and _commit_succeeded(action):
            for path in [path for path in changed_paths if _is_staged(path, staged)]:
                del changed_paths[path]
            staged = []
    return [path for path in changed_paths if not path.startswith(_OUTSIDE_PREFIXES) and path[1:2] != ":"]


def _commit_succeeded(action: Action) -> bool:
    return action.step.state == "ok" or bool(re.search(r"^\[\S+.* [0-9a-f]{7,40}\] ", action.output_text, re.MULTILINE))


def _staged_names(command: str) -> list[str]:
    return [
        word.strip("\"'")
        for match in _GIT_ADD.finditer(command[:20_000])
        for word in match[1].split()
        if not word.startswith("-")
    ]


def _is_staged(path: str, staged: list[str]) -> bool:
    """Whether a file went into a commit; where nobody said what to add, everything did."""
    if not staged:
        return True
    for word in staged:
        name = word.removeprefix("./").rstrip("/")
        if word == "*" or path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}"):
            return True
        if path.startswith(f"{name}/") or f"/{name}/" in path or (_GLOB.search(name) and fnmatch(path, name)):
            return True
    return False
