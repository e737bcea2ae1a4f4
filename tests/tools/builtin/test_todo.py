"""The list of things to do."""

import asyncio
from typing import Any

import msgspec
import pytest

from steno.tools.builtin.tasks import TodoWrite
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


def make() -> ToolContext:
    return ToolContext(cwd="/", project="/", session_id="s", folder="/none", env={})


def write(context: ToolContext, todos: Any) -> ToolResult:
    return asyncio.run(TodoWrite().run({"todos": todos}, context, "toolu_1"))


def todo(content: str, status: str) -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": f"Doing {content}"}


def test_the_list_before_and_after_are_kept() -> None:
    context = make()
    first = [todo("one", "in_progress"), todo("two", "pending")]
    second = [todo("one", "completed"), todo("two", "in_progress")]
    assert write(context, first).detail == {"oldTodos": [], "newTodos": first}
    assert write(context, second).detail == {"oldTodos": first, "newTodos": second}


def test_a_list_that_is_done_is_put_away() -> None:
    context = make()
    done = [todo("one", "completed")]
    assert write(context, done).detail["newTodos"] == done
    assert write(context, [todo("two", "pending")]).detail["oldTodos"] == []


@pytest.mark.parametrize("todos", [None, "x", [{}], [todo("one", "someday")], [{"content": 1, "status": "pending"}]])
def test_a_bad_list_is_a_failure_that_leaves_the_old_one(todos: Any) -> None:
    context = make()
    write(context, [todo("one", "pending")])
    with pytest.raises(ToolFailure):
        write(context, todos)
    assert msgspec.to_builtins(context.todos) == (todo("one", "pending"),)
