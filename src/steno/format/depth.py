"""How deep a line nests, counted without decoding it and without recursion."""

import re
from typing import Final

__all__ = ["MAX_DEPTH", "depth_of"]

MAX_DEPTH: Final = 256
"""Deeper than any client writes."""

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def depth_of(line: bytes) -> int:
    """Return how deep the brackets of a line nest, without recursion."""
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _BRACKETS.finditer(line):
        first = line[match.start()]
        if first in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"}]":
            depth -= 1
    return deepest
