"""Messages without what the API would refuse in them: all at once, or one after the other.

What was proven is not proven again: a message changes nothing in those before it.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from steno.session.resume.pictures import not_too_many
from steno.session.resume.rules import NOTHING, blocks_of, fixed_block
from steno.session.resume.trims import trimmed

__all__ = ["BEGINNING", "Proof", "make_valid"]

BEGINNING: Final = "(the beginning of this conversation is missing)"
_OWN_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
"""Calls that the server itself makes: their results stand beside them."""
_NAMED: Final = {"tool_use": "id", "tool_result": "tool_use_id"}

_Block = dict[str, Any]
_Message = dict[str, Any]


def make_valid(
    messages: list[_Message], calls: Collection[str] = frozenset[str]()
) -> list[_Message]:
    """Return the messages without what the API would refuse in them; pairing must be right.

    Notes stand in the place of what some `calls` have printed, before images are counted.
    """
    proven = _proven(messages)
    return not_too_many([trimmed(each, calls) for each in proven] if calls else proven)


def _proven(messages: list[_Message]) -> list[_Message]:
    proof = Proof()
    mended = [good for message in messages[:-1] for good in proof.take(message)]
    return [*mended, *(good for message in messages[-1:] for good in proof.look(message))]


class Proof:
    """What of a conversation has been proven to be sendable, as far as the rest hangs on it."""

    def __init__(self) -> None:
        self._begun = False
        self._calls: set[str] = set()
        self._renamed: dict[str, list[str]] = {}

    def take(self, message: _Message) -> list[_Message]:
        """Return what to send for the next message, which others follow."""
        good, renamed, calls = self._proven(message, followed=True)
        self._begun = True
        self._renamed = renamed
        self._calls |= calls
        return good

    def look(self, message: _Message) -> list[_Message]:
        """Return what to send for the next message while it is the last; it can become another."""
        return self._proven(message, followed=False)[0]

    def _proven(
        self, message: _Message, *, followed: bool
    ) -> tuple[list[_Message], dict[str, list[str]], set[str]]:
        role = str(message.get("role"))
        renamed, calls = self._renamed, set[str]()
        if role == "assistant":
            renamed, calls = self._new_names(message)
        blocks = _under_new_names(blocks_of(message), renamed)
        fixed = [fit for block in blocks if (fit := fixed_block(block, role)) is not None]
        # At the very end, a server that paused goes on with its call.
        if role == "assistant" and followed:
            fixed = _served(fixed)
        if role == "user":
            # The API takes results before words alone.
            fixed.sort(key=lambda block: block.get("type") != "tool_result")
        good: list[_Message] = []
        if not self._begun and role != "user":
            good.append({"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
        good.append({"role": role, "content": fixed or [{"type": "text", "text": NOTHING}]})
        return good, renamed, calls

    def _new_names(self, message: _Message) -> tuple[dict[str, list[str]], set[str]]:
        """Return the ids under which calls are sent, as ids are unique, and all ids.

        Calls of one message that share an id get one each, in their order.
        """
        names: dict[str, list[str]] = {}
        calls: set[str] = set()
        for block in blocks_of(message):
            if block.get("type") != "tool_use":
                continue
            name = new = str(block.get("id"))
            while new in self._calls or new in calls:
                new = f"{new}-again"
            names.setdefault(name, []).append(new)
            calls.add(new)
        return {name: new for name, new in names.items() if new != [name]}, calls


def _served(blocks: list[_Block]) -> list[_Block]:
    """Return blocks without calls of the server's own tools that lack a result, and the reverse."""
    calls = {str(each.get("id")) for each in blocks if each.get("type") in _OWN_CALLS}
    results = {str(each.get("tool_use_id")) for each in blocks if _is_own_result(each)}
    return [
        each
        for each in blocks
        if not (each.get("type") in _OWN_CALLS and str(each.get("id")) not in results)
        and not (_is_own_result(each) and str(each.get("tool_use_id")) not in calls)
    ]


def _is_own_result(block: _Block) -> bool:
    return str(block.get("type")).endswith("_tool_result")


def _under_new_names(blocks: list[_Block], renamed: dict[str, list[str]]) -> list[_Block]:
    """Return blocks, each call or result under its new id: the first, the second and so on."""
    seen: Counter[tuple[str, str]] = Counter()
    done: list[_Block] = []
    for block in blocks:
        key = _NAMED.get(str(block.get("type")), "")
        names = renamed.get(str(block.get(key)), []) if key else []
        if names:
            name = (key, str(block.get(key)))
            done.append({**block, key: names[min(seen[name], len(names) - 1)]})
            seen[name] += 1
        else:
            done.append(block)
    return done
