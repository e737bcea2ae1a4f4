"""The list of things to do, as a plan: from whichever tool the model keeps it with."""

from typing import Any, Final

from acp import helpers
from acp.schema import AgentPlanUpdate, PlanEntryStatus

from steno.format.values import as_list, as_object

__all__ = ["Todos"]

_STATES: Final = ("pending", "in_progress", "completed")


class Todos:
    """What is to be done, by the calls that were made."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, PlanEntryStatus]] = {}

    def take(self, call: dict[str, Any], detail: Any) -> AgentPlanUpdate | None:
        """Take a call that was made, and what came of it; return the plan where it has changed."""
        given = as_object(call.get("input")) or {}
        match call.get("name"):
            case "TodoWrite":
                listed = [as_object(each) or {} for each in as_list(given.get("todos")) or []]
                self._tasks = {
                    str(at): (str(each.get("content", "")), _status(each.get("status")))
                    for at, each in enumerate(listed)
                }
            case "TaskCreate":
                task = as_object((as_object(detail) or {}).get("task")) or {}
                self._tasks[str(task.get("id"))] = (str(given.get("subject", "")), "pending")
            case "TaskUpdate":
                self._change(str(given.get("taskId")), given)
            case _:
                return None
        return helpers.update_plan(
            helpers.plan_entry(words, status=status) for words, status in self._tasks.values()
        )

    def _change(self, name: str, given: dict[str, Any]) -> None:
        if given.get("status") == "deleted":
            self._tasks.pop(name, None)
        elif name in self._tasks:
            words, status = self._tasks[name]
            told = str(given.get("subject") or words)
            self._tasks[name] = (told, _status(given.get("status") or status))


def _status(found: Any) -> PlanEntryStatus:
    return found if found in _STATES else "pending"
