"""TodoWrite: the list of things to do that the model keeps for itself, written anew each time."""

from typing import Any

import msgspec

from steno.tools.base import ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import TodoItem, ToolContext
from steno.tools.inputs import taken

__all__ = ["TodoWrite"]


class _Todos(msgspec.Struct, frozen=True):
    todos: tuple[TodoItem, ...]


class TodoWrite:
    """Writes the list of things to do; the context has it as `todos`."""

    spec = own_spec(
        "TodoWrite",
        description=(
            "Writes your list of things to do, in place of the one before. Use it for work of "
            "three steps or more, so that you and the user see how far it is. Have one thing in "
            "progress at a time, and mark it completed as soon as it really is."
        ),
        schema={
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "The whole list",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {
                                "type": "string",
                                "minLength": 1,
                                "description": "What is to be done: Run the tests",
                            },
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed"],
                            },
                            "activeForm": {
                                "type": "string",
                                "minLength": 1,
                                "description": "The same while it is done: Running the tests",
                            },
                        },
                        "required": ["content", "status", "activeForm"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["todos"],
            "additionalProperties": False,
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Write it."""
        del call
        todos = taken(tool_input, _Todos).todos
        detail = {
            "oldTodos": msgspec.to_builtins(list(context.todos)),
            "newTodos": msgspec.to_builtins(list(todos)),
        }
        # A list that is done is put away: the next one begins with nothing.
        done = all(todo.status == "completed" for todo in todos)
        context.todos = () if done else todos
        words = "The list was written. Keep it up to date, and go on with what is in progress."
        return ToolResult(words, detail)
