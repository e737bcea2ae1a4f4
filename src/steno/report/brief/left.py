"""What is still open at the end of a session."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from typing import Any, Final

from steno.format.tool_catalogue import AWAITED_TOOLS
from steno.format.values import as_list, as_object
from steno.report.brief.cues import POLITE, asks
from steno.report.brief.values import Open, Work
from steno.report.deeds.deed import Deed
from steno.report.words import below
from steno.session.story.status import Status
from steno.session.story.turns import Turn

__all__ = ["left_open", "uncommitted"]

_ENDS: Final = re.compile(r"(?<=[.!?:])\s+|(?<=[。\uff01\uff1f\uff1a])\s*")
_LONGEST: Final = 400
_TASK: Final = re.compile(r"Task #(\w{1,20})")
_EVERYTHING: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\badd\s+(?:-A|--all|-u|\.(?=\s|$|[;&|]))|\bgit\b[^\n;&|]{0,200}\bcommit\s+(?:-\w*a|--all)"
)
_ADDED: Final = re.compile(r"\bgit\b[^\n;&|]{0,200}?\badd\s+([^\n;&|]+)")
_UNDONE: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\b(?:reset\s+--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
_OUTSIDE: Final = ("/", "~", "\\")
_GLOB: Final = re.compile(r"[*?\[]")
_MOST: Final = 2_000
"""How many words behind `git add` are looked at before a commit."""
_CLOSED: Final = frozenset(("completed", "cancelled", "canceled", "deleted"))


def left_open(
    turns: list[Turn], deeds: list[Deed], work: Work, status: Status, changed: Iterable[str]
) -> tuple[Open, ...]:
    """Return what is open; `changed` are the files that are in no commit."""
    number = turns[-1].number if turns else 0
    found = [*_standing(status, number), *_questions(turns, deeds)]
    found += [Open(kind="todo", text=text, about=state) for text, state in todos(deeds)]
    found += _failing(work, number)
    found += [
        Open(kind="running", text=helper.task, about=helper.kind, turn=helper.turn)
        for helper in work.helpers
        if helper.status == "running"
    ]
    paths = list(changed)
    found += [Open(kind="uncommitted", text=path, of=len(paths)) for path in paths]
    return tuple(found)


def _standing(status: Status, turn: int) -> Iterator[Open]:
    if status.standing == "interrupted":
        yield Open(kind="interrupted", text=status.reason, turn=turn)


def _questions(turns: list[Turn], deeds: list[Deed]) -> Iterator[Open]:
    last = turns[-1] if turns else None
    if last is None:
        return
    for deed in deeds:
        asks = deed.turn == last.number and deed.step.verb in AWAITED_TOOLS and not deed.agent
        if asks and deed.step.state in ("open", "interrupted"):
            yield Open(kind="question", text=deed.step.subject[:_LONGEST], turn=last.number)
    asked = question_in(last.answer)
    if asked and last.done:
        yield Open(kind="question", text=asked, turn=last.number)


def question_in(answer: str) -> str:
    """Return the question that an answer ends with, if it does.

    >>> question_in("All green. Shall I push it?")
    'Shall I push it?'
    """
    paragraph = answer.rstrip().rpartition("\n")[2].strip(" *_")
    if not asks(paragraph):
        return ""
    question = [each for each in _ENDS.split(paragraph) if each][-1][-_LONGEST:]
    return "" if POLITE.match(question) else question


def _failing(work: Work, turn: int) -> Iterator[Open]:
    last = work.tests[-1] if work.tests else None
    if last is not None and not last.ok:
        numbers = f"{last.failed:,} failed" if last.failed else "failed"
        yield Open(kind="tests", text=last.command, about=numbers, turn=last.turn)
    for trouble in work.troubles:
        is_last = not trouble.solved and trouble.turn == turn
        if is_last and not any(trouble.what == test.command for test in work.tests):
            yield Open(kind="error", text=trouble.what, about=trouble.said, turn=trouble.turn)


# The agent's own list


def todos(deeds: Iterable[Deed]) -> list[tuple[str, str]]:
    """Return what is not done of the agent's own list, and how each item stands."""
    items: dict[str, tuple[str, str]] = {}
    for deed in deeds:
        if deed.agent or deed.step.state != "ok":
            continue
        match deed.step.verb:
            case "TodoWrite":
                items = _written(deed.given)
            case "TaskCreate":
                _create(deed, items)
            case "TaskUpdate":
                _update(deed.given, items)
            case _:
                continue
    return [(text, state) for text, state in items.values() if state not in _CLOSED]


def _written(given: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for place, item in enumerate(as_list(given.get("todos")) or []):
        fields = as_object(item) or {}
        text, state = fields.get("content"), fields.get("status")
        if isinstance(text, str) and isinstance(state, str):
            found[str(place)] = (text[:_LONGEST], state)
    return found


def _create(deed: Deed, items: dict[str, tuple[str, str]]) -> None:
    task = as_object(deed.kept.get("task")) or {}
    name = task.get("id")
    if not isinstance(name, str):
        found = _TASK.search(deed.printed[:200])
        name = found[1] if found else f"?{len(items)}"
    items[name] = (deed.step.subject[:_LONGEST], "pending")


def _update(given: dict[str, Any], items: dict[str, tuple[str, str]]) -> None:
    name, state, subject = given.get("taskId"), given.get("status"), given.get("subject")
    if not isinstance(name, str) or name not in items:
        return
    text, before = items[name]
    items[name] = (
        subject[:_LONGEST] if isinstance(subject, str) and subject else text,
        state if isinstance(state, str) else before,
    )


# Files that are in no commit


def uncommitted(deeds: Iterable[Deed], project: str) -> list[str]:
    """Return the files below the project that were changed and are in no commit of the session."""
    waiting: dict[str, None] = {}
    staged: list[str] = []
    for deed in deeds:
        touch = deed.step.touch
        if touch is not None and touch.changes and deed.step.state == "ok":
            path = below(touch.path, project)
            waiting.pop(path, None)
            waiting[path] = None
        command = deed.step.command
        if not command or deed.shell is None or not deed.shell.runs("git"):
            continue
        if _UNDONE.search(command) and deed.step.state == "ok":
            waiting.clear()
        staged += ["*"] if _EVERYTHING.search(command) else _named(command)
        del staged[_MOST:]
        if deed.shell.runs("git", "commit") and _committed(deed):
            for path in [path for path in waiting if _is_staged(path, staged)]:
                del waiting[path]
            staged = []
    return [path for path in waiting if not path.startswith(_OUTSIDE) and path[1:2] != ":"]


def _committed(deed: Deed) -> bool:
    return deed.step.state == "ok" or bool(
        re.search(r"^\[\S+.* [0-9a-f]{7,40}\] ", deed.printed, re.MULTILINE)
    )


def _named(command: str) -> list[str]:
    return [
        word.strip("\"'")
        for found in _ADDED.finditer(command[:20_000])
        for word in found[1].split()
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
        if (
            path.startswith(f"{name}/")
            or f"/{name}/" in path
            or (_GLOB.search(name) and fnmatch(path, name))
        ):
            return True
    return False
