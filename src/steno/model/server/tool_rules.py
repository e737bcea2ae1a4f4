"""The rules for the tools of a request, and for how the model is to choose among them."""

import re
from collections.abc import Iterator
from typing import Any, Final

from steno.format.values import as_list, as_object
from steno.model.server.block_rules import CACHE
from steno.model.server.shapes import (
    anything,
    each,
    flag,
    integer,
    maybe,
    objects,
    one_of,
    shaped,
    string,
    tagged,
)

__all__ = ["CHOICE", "THINKING", "tool_problems", "tools"]

_NAME: Final = string(r"[a-zA-Z0-9_-]{1,128}")
_SCHEMA: Final = shaped(
    {"type": one_of("object")},
    {"properties": maybe(objects), "required": maybe(each(string()))},
    loose=True,
)
_CUSTOM: Final = shaped(
    {"name": _NAME, "input_schema": _SCHEMA},
    {
        "type": anything,
        "description": string(),
        "cache_control": CACHE,
        "allowed_callers": each(string()),
        "defer_loading": flag,
        "eager_input_streaming": maybe(flag),
        "input_examples": each(objects),
        "strict": flag,
    },
)
_OF_THE_SERVER: Final = re.compile(
    r"(bash|text_editor|computer|web_search|web_fetch|code_execution|memory|advisor"
    r"|tool_search_tool_bm25|tool_search_tool_regex|browser_toolset|computer_toolset)_\d{8}"
    r"|mcp_toolset|tool_search_tool_(bm25|regex)"
)
_WEB_SEARCH: Final = shaped(
    {"type": anything, "name": one_of("web_search")},
    {
        "max_uses": maybe(integer(1)),
        "allowed_domains": maybe(each(string(shortest=1))),
        "blocked_domains": maybe(each(string(shortest=1))),
        "user_location": maybe(
            shaped(
                {"type": one_of("approximate")},
                {key: maybe(string()) for key in ("city", "country", "region", "timezone")},
            )
        ),
        "cache_control": CACHE,
        "allowed_callers": each(string()),
        "defer_loading": flag,
        "strict": flag,
    },
)
_NAMELESS: Final = re.compile(r"mcp_toolset|(browser|computer)_toolset_\d{8}")
_DOMAINS: Final = ("allowed_domains", "blocked_domains")
_ALONE: Final = {"disable_parallel_tool_use": flag}
CHOICE: Final = tagged(
    {
        "auto": shaped({"type": anything}, _ALONE),
        "any": shaped({"type": anything}, _ALONE),
        "tool": shaped({"type": anything, "name": string(shortest=1)}, _ALONE),
        "none": shaped({"type": anything}),
    }
)
"""How the model chooses among the tools."""
_SHOWN: Final = {
    "display": maybe(one_of("summarized", "omitted", "updates")),
    "block_binding": maybe(objects),
}
THINKING: Final = tagged(
    {
        "enabled": shaped({"type": anything, "budget_tokens": integer(1024)}, _SHOWN),
        "adaptive": shaped({"type": anything}, _SHOWN),
        "between_tools": shaped({"type": anything}),
        "disabled": shaped({"type": anything}),
    }
)
"""How the model is to think."""


def tools(value: Any, path: str) -> Iterator[str]:
    """Yield what is wrong with the shapes of the tools."""
    yield from each(_tool)(value, path)


def _tool(value: Any, path: str) -> Iterator[str]:
    fields = as_object(value)
    kind = "custom" if fields is None else fields.get("type") or "custom"
    if kind == "custom":
        yield from _CUSTOM(value, f"{path}.custom" if fields is not None else path)
    elif not isinstance(kind, str) or not _OF_THE_SERVER.fullmatch(kind):
        found = f"Input tag '{kind}' found using 'type'"
        yield f"{path}: {found} does not match any of the expected tags: 'custom', …"
    elif kind.startswith("web_search_"):
        yield from _web_search(value, f"{path}.{kind}")
    elif not _NAMELESS.fullmatch(kind):
        yield from shaped({"name": _NAME}, loose=True)(value, f"{path}.{kind}")


def _web_search(value: Any, path: str) -> Iterator[str]:
    yield from _WEB_SEARCH(value, path)
    fields = as_object(value) or {}
    domains = [str(each) for key in _DOMAINS for each in as_list(fields.get(key)) or ()]
    if all(as_list(fields.get(key)) for key in _DOMAINS):
        yield f"{path}: Only one of `allowed_domains` and `blocked_domains` can be specified"
    for domain in domains:
        # A path may follow; a scheme, or anything that is no name of a host, may not.
        if not re.fullmatch(r"[a-zA-Z0-9*-]+(\.[a-zA-Z0-9*-]+)+(/\S*)?", domain):
            yield f"{path}: Invalid domain: {domain}"


def tool_problems(body: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong between the tools, the choice among them and thinking."""
    given = [as_object(each) or {} for each in as_list(body.get("tools")) or ()]
    names = [str(tool["name"]) for tool in given if tool.get("name")]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    if given and all(tool.get("defer_loading") for tool in given):
        yield "At least one tool must have defer_loading=false."
    choice = as_object(body.get("tool_choice"))
    if choice is None:
        return
    if not given and choice.get("type") != "none":
        yield "tool_choice: tool_choice may only be specified while providing tools."
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"
    thinks = (as_object(body.get("thinking")) or {}).get("type") in ("enabled", "adaptive")
    if thinks and choice.get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."
