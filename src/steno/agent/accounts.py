"""What a conversation has taken so far: of the window, and of money."""

from typing import Any, Final

from steno.agent.loop import Agent
from steno.agent.sizes import estimate
from steno.format.encode import encode

__all__ = ["context_of", "cost_of"]

_CHARACTERS_PER_TOKEN: Final = 4
_MICRO: Final = 1_000_000
_TOTALS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache read",
    "cache_creation_input_tokens": "cache write",
}


def cost_of(agent: Agent) -> str:
    """Return what was spent, in words."""
    meter = agent.meter
    spent = ", ".join(f"{meter.usage.get(key, 0):,} {word}" for key, word in _TOTALS.items())
    return f"Total cost: ${meter.cost / _MICRO:.4f}\nUsage: {spent}"


def context_of(agent: Agent, window: int) -> tuple[str, dict[str, Any]]:
    """Return how full the window is, in words and as a session keeps it."""
    parts = _parts(agent)
    used = sum(parts.values())
    model = agent.course.model
    lines = [
        f"{model}: about {used:,} of {window:,} tokens ({_share(used, window)}%)",
        *(f"{name}: {size:,} ({_share(size, window)}%)" for name, size in parts.items()),
        f"Free: {max(window - used, 0):,}",
    ]
    usage: dict[str, Any] = {
        "model": model,
        "total_tokens": used,
        "raw_max_tokens": window,
        "percentage": _share(used, window),
        "categories": [
            {"name": name, "tokens": size, "kind": "used"} for name, size in parts.items()
        ],
    }
    return "\n".join(lines), usage


def _parts(agent: Agent) -> dict[str, int]:
    """Return what the next request is made of, in tokens; all of it is estimated."""
    own: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for tool in agent.caller.tools.wire():
        (theirs if str(tool.get("name")).startswith("mcp__") else own).append(tool)
    system = sum(len(str(block.get("text", ""))) for block in agent.course.system)
    sizes = {
        "System prompt": system // _CHARACTERS_PER_TOKEN,
        "Tools": _size(own),
        "Tools of servers": _size(theirs),
        "Messages": estimate(agent.talk.messages()),
    }
    return {name: size for name, size in sizes.items() if size}


def _size(tools: list[dict[str, Any]]) -> int:
    return sum(len(encode(tool)) for tool in tools) // _CHARACTERS_PER_TOKEN


def _share(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0
