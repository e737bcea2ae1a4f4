"""The parameters of tool calls, with long values cut.

>>> shortened_input({"file_path": "a.py", "content": "x" * 30}, 10)
({'file_path': 'a.py', 'content': 'xxxxxxxxxx'}, {'content': 30})
"""

import json
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from steno.report.brief.turn_content import ToolCall
from steno.report.brief.values import Brief

__all__ = ["KEPT", "SHOWN", "shortened_calls", "shortened_input", "with_short_inputs"]

SHOWN: Final = 2_000
"""Characters of a parameter that are shown."""
KEPT: Final = 8_192
"""Characters that are kept until secrets are masked: one at the cut must not lose its end."""
_DEEPEST: Final = 20


def shortened_input(value: dict[str, Any], longest: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return parameters with long values cut, and the whole sizes of those that were cut."""
    made: dict[str, Any] = {}
    cut: dict[str, int] = {}
    for name, each in value.items():
        text = _long_text(each, longest)
        if text is None:
            made[name] = each
            continue
        made[name] = text[:longest]
        if len(text) > longest:
            cut[name] = len(text)
    return made, cut


def _long_text(value: Any, longest: int) -> str | None:
    """Return a value as text where it has to be: a long text, a long or a deep structure."""
    if isinstance(value, str):
        return value if len(value) > longest else None
    if not isinstance(value, dict | list):
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) > longest or _is_deep(value) else None


def _is_deep(value: Any) -> bool:
    """Whether lists and objects nest deeper than whoever writes them out should follow."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    """Return what a list or an object holds."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def with_short_inputs(brief: Brief, longest: int = SHOWN) -> Brief:
    """Return a brief in which long parameters of calls are cut."""
    turns = tuple(
        msgspec.structs.replace(
            turn,
            calls=shortened_calls(turn.calls, longest),
            agents=tuple(
                msgspec.structs.replace(agent, calls=shortened_calls(agent.calls, longest))
                for agent in turn.agents
            ),
        )
        for turn in brief.turns
    )
    return msgspec.structs.replace(brief, turns=turns)


def shortened_calls(calls: Iterable[ToolCall], longest: int) -> tuple[ToolCall, ...]:
    """Return calls in which long parameters are cut."""
    return tuple(_short_call(call, longest) for call in calls)


def _short_call(call: ToolCall, longest: int) -> ToolCall:
    given, cut = shortened_input(call.input, longest)
    if not cut:
        return call
    # Of what was cut before, the whole size is known already.
    return msgspec.structs.replace(call, input=given, cut={**cut, **call.cut})
