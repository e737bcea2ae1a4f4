"""How deep a line nests, counted without decoding it and without recursion."""

import re
from typing import Final

__all__ = ["MAX_DEPTH", "depth_of"]

MAX_DEPTH: Final = 256
"""Deeper than any client writes."""

# Possessive throughout: nothing is remembered to go back to, so memory does not grow with a string.
# A string that never ends runs up to the end: looking for its end again from inside would not end.
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[{]|[\]}]', re.DOTALL)


def depth_of(line: bytes) -> int:
    """Return how deep the brackets of a line nest, without recursion."""
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _TOKENS.finditer(line):
        first = line[match.start()]
        if first in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"}]":
            depth -= 1
    return deepest
