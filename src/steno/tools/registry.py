"""The tool registry of a session: tools by name, by names of other versions, and as API definitions.

`builtin_tools()` finds the tools in `tools.builtin`: a new tool needs a module there and a row in
`format.tool_catalogue`. The agent adds the tools that belong to a session: sub-agents, skills, MCP
tools and structured output.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from steno.format.tool_catalogue import AGENT, SKILL, TOOLS
from steno.tools import builtin
from steno.tools.protocol import Tool, ToolSpec

_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def builtin_tools() -> list[Tool]:
    """Return an instance of every tool class in `tools.builtin`, in the order of the catalogue."""
    from importlib import import_module
    from pkgutil import iter_modules

    modules = [import_module(f"{builtin.__name__}.{module.name}") for module in iter_modules(builtin.__path__)]
    # Tools are the classes with a spec; a module may import the tools of another.
    tools: dict[str, Tool] = {
        member.spec.name: member()
        for module in modules
        for member in vars(module).values()
        if isinstance(getattr(member, "spec", None), ToolSpec) and member.__module__ == module.__name__
    }
    return [tools[name] for name in TOOLS if name in tools]


def builtin_tool_names() -> set[str]:
    """Return the names of all tools that do not depend on an MCP server."""
    return {tool.spec.name for tool in builtin_tools()} | {AGENT, SKILL}


class ToolRegistry:
    """Tools that can be looked up by name."""

    def __init__(self, tools: Iterable[Tool], *, additional_tools: Callable[[], Iterable[Tool]] = lambda: ()) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._additional_tools = additional_tools
        """Returns the tools of the MCP servers that are connected now."""
        builtin_tools = self._tools.values()
        self._tools_by_alias = {alias: tool for tool in builtin_tools for alias in tool.spec.aliases} | self._tools

    def __iter__(self) -> Iterator[Tool]:
        yield from self._tools.values()
        yield from (tool for tool in self._additional_tools() if tool.spec.name not in self._tools)

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, which may be its name in another version."""
        builtin_tool = self._tools_by_alias.get(name)
        return builtin_tool or next((tool for tool in self._additional_tools() if tool.spec.name == name), None)

    def filtered(self, is_included: Callable[[str], bool]) -> "ToolRegistry":
        """Return a registry of the tools whose names are included."""

        def is_tool_included(tool: Tool) -> bool:
            return any(map(is_included, (tool.spec.name, *tool.spec.aliases)))

        additional_tools = self._additional_tools
        return ToolRegistry(
            filter(is_tool_included, self._tools.values()),
            additional_tools=lambda: list(filter(is_tool_included, additional_tools())),
        )

    def to_api(self) -> list[dict[str, Any]]:
        """Return the tool definitions for the Messages API, sorted by name."""
        return [tool.spec.to_api() for tool in sorted(self, key=lambda tool: tool.spec.name)]


def find_input_error(spec: ToolSpec, tool_input: dict[str, Any]) -> str:
    """Return an error message for the model if the input does not match the schema; else an empty string."""
    properties: dict[str, Any] = spec.schema.get("properties", {})
    missing = [name for name in spec.schema.get("required", ()) if name not in tool_input]
    if missing:
        return f"Missing required input for {spec.name}: {', '.join(missing)}."
    if not spec.schema.get("additionalProperties", True):
        unknown = [name for name in tool_input if name not in properties]
        if unknown:
            return f"Unknown input for {spec.name}: {', '.join(unknown)}."
    for name, value in tool_input.items():
        type_name = properties.get(name, {}).get("type")
        types = _JSON_TYPES.get(type_name) if isinstance(type_name, str) else None
        if types is None:
            continue
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            return f"The input `{name}` of {spec.name} must be of type {type_name}."
    return ""
