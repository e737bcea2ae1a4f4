"""The tools of one conversation: by name, by the names of other versions, and as the API sees them.

`file_tools()` and `other_tools()` make steno's own. The agent adds the ones that belong to a session:
sub-agents, skills, the tools of MCP servers, the tool for an answer in a shape.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from steno.format.tool_catalogue import AGENT, SKILL
from steno.tools.base import Spec, Tool

__all__ = ["ToolRegistry", "file_tools", "input_flaw", "other_tools", "own_names"]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def file_tools() -> list[Tool]:
    """Return the tools that read, search and write files, in the order in which a model sees them."""
    from steno.tools.edit import Edit, MultiEdit
    from steno.tools.glob import Glob
    from steno.tools.grep import Grep
    from steno.tools.notebook import NotebookEdit
    from steno.tools.read import Read
    from steno.tools.write import Write

    return [Glob(), Grep(), Read(), Edit(), MultiEdit(), Write(), NotebookEdit()]


def other_tools() -> list[Tool]:
    """Return every tool that is not for files: commands, tasks, the web, questions, plans."""
    from steno.tools.bash import Bash, TaskOutput, TaskStop
    from steno.tools.plan import EnterPlanMode, ExitPlanMode
    from steno.tools.questions import AskUserQuestion
    from steno.tools.tasks import TaskCreate, TaskGet, TaskList, TaskUpdate
    from steno.tools.todo import TodoWrite
    from steno.tools.web import WebFetch, WebSearch

    return [
        Bash(),
        TaskOutput(),
        TaskStop(),
        TodoWrite(),
        TaskCreate(),
        TaskGet(),
        TaskList(),
        TaskUpdate(),
        AskUserQuestion(),
        EnterPlanMode(),
        ExitPlanMode(),
        WebFetch(),
        WebSearch(),
    ]


def own_names() -> set[str]:
    """Return the names of all tools that a session can have without any server."""
    return {tool.spec.name for tool in (*file_tools(), *other_tools())} | {AGENT, SKILL}


class ToolRegistry:
    """Tools that can be found."""

    def __init__(
        self, tools: Iterable[Tool], *, more: Callable[[], Iterable[Tool]] = lambda: ()
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._more = more
        """Tools that come and go with the servers they belong to."""
        own = self._tools.values()
        self._named = {alias: tool for tool in own for alias in tool.spec.aliases} | self._tools

    def __iter__(self) -> Iterator[Tool]:
        yield from self._tools.values()
        yield from (tool for tool in self._more() if tool.spec.name not in self._tools)

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, be it the name of another version."""
        known = self._named.get(name)
        return known or next((tool for tool in self._more() if tool.spec.name == name), None)

    def only(self, wanted: Callable[[str], bool]) -> "ToolRegistry":
        """Return a registry of the tools whose names are wanted."""

        def fits(tool: Tool) -> bool:
            return any(map(wanted, (tool.spec.name, *tool.spec.aliases)))

        more = self._more
        return ToolRegistry(
            filter(fits, self._tools.values()), more=lambda: list(filter(fits, more()))
        )

    def wire(self) -> list[dict[str, Any]]:
        """Return them as the API wants them, always in the same order."""
        return [tool.spec.wire() for tool in sorted(self, key=lambda tool: tool.spec.name)]


def input_flaw(spec: Spec, tool_input: dict[str, Any]) -> str:
    """Return what is wrong with the input of a call, in words for the model; nothing if it fits."""
    known: dict[str, Any] = spec.schema.get("properties", {})
    missing = [name for name in spec.schema.get("required", ()) if name not in tool_input]
    if missing:
        return f"{spec.name} needs {', '.join(missing)}"
    if not spec.schema.get("additionalProperties", True):
        unknown = [name for name in tool_input if name not in known]
        if unknown:
            return f"{spec.name} knows no {', '.join(unknown)}"
    for name, value in tool_input.items():
        kind = known.get(name, {}).get("type")
        wanted = _TYPES.get(kind) if isinstance(kind, str) else None
        if wanted is None:
            continue
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            return f"{name} of {spec.name} must be a {kind}"
    return ""
