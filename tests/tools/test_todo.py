"""The list of things to do."""

import asyncio
from typing import Any

import pytest

from steno.tools.base import Around, Outcome, ToolFailure
from steno.tools.todo import TodoWrite


def make() -> Around:
    return Around(cwd="/", project="/", session_id="s", folder="/none", env={})


def write(around: Around, todos: Any) -> Outcome:
    return asyncio.run(TodoWrite().run({"todos": todos}, around, "toolu_1"))


def todo(content: str, status: str) -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": f"Doing {content}"}


def test_the_list_before_and_after_are_kept() -> None:
    around = make()
    first = [todo("one", "in_progress"), todo("two", "pending")]
    second = [todo("one", "completed"), todo("two", "in_progress")]
    assert write(around, first).detail == {"oldTodos": [], "newTodos": first}
    assert write(around, second).detail == {"oldTodos": first, "newTodos": second}


def test_a_list_that_is_done_is_put_away() -> None:
    around = make()
    done = [todo("one", "completed")]
    assert write(around, done).detail["newTodos"] == done
    assert write(around, [todo("two", "pending")]).detail["oldTodos"] == []


@pytest.mark.parametrize(
    "todos", [None, "x", [{}], [todo("one", "someday")], [{"content": 1, "status": "pending"}]]
)
def test_a_bad_list_is_a_failure_that_leaves_the_old_one(todos: Any) -> None:
    around = make()
    write(around, [todo("one", "pending")])
    with pytest.raises(ToolFailure):
        write(around, todos)
    assert around.kept["todos"] == [todo("one", "pending")]
