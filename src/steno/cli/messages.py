"""API messages as people read them: one block per message."""

from collections.abc import Iterator
from typing import Any, cast

from steno.report import words
from steno.safe.terminal import Line, one_line, wrap

__all__ = ["message_lines"]

_MOST_LINES = 12


def message_lines(
    messages: list[dict[str, Any]], width: int, *, everything: bool = False
) -> Iterator[Line]:
    """Yield each message with its number and role, then its blocks; long ones are cut."""
    for number, message in enumerate(messages, 1):
        if number > 1:
            yield []
        role = str(message.get("role", ""))
        style = "bold blue" if role == "user" else "bold"
        yield [(f"{number:>3}  ", "dim"), (role, style)]
        for block in _blocks(message.get("content")):
            for line in _block_lines(block, width - 5, everything=everything):
                yield ["     ", *line]


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _block_lines(block: dict[str, Any], width: int, *, everything: bool) -> Iterator[Line]:
    match block.get("type"):
        case "text":
            yield from _cut(str(block.get("text", "")), width, everything=everything)
        case "thinking":
            yield [("thinking", "dim")]
            yield from _cut(str(block.get("thinking", "")), width, everything=everything)
        case "tool_use":
            name = one_line(str(block.get("name", "")), width // 2)
            yield [("▸ ", "dim"), (name, "bold"), "  ", _input(block, width - len(name) - 4)]
        case "tool_result":
            failed = bool(block.get("is_error"))
            yield [("▸ result" + (" failed" if failed else ""), "red" if failed else "dim")]
            for inner in _blocks(block.get("content")):
                for line in _block_lines(inner, width - 2, everything=everything):
                    yield ["  ", *line]
        case other:
            yield [(f"[{other}]", "dim")]


def _input(block: dict[str, Any], width: int) -> str:
    given = block.get("input")
    values = list(cast("dict[str, Any]", given).values()) if isinstance(given, dict) else []
    return one_line("  ".join(value for value in values if isinstance(value, str)), width)


def _cut(text: str, width: int, *, everything: bool) -> Iterator[Line]:
    lines = wrap(text.strip("\n"), width)
    shown = lines if everything else lines[:_MOST_LINES]
    for line in shown:
        yield [line]
    if len(shown) < len(lines):
        yield [(f"{len(shown)} of {words.count(len(lines), 'line')}", "dim")]
