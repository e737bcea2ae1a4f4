"""How many tokens a request and an answer would be: from their size, with a cache that remembers.

The figures are plausible, not those of any real model; the same requests give the same figures.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steno.format.values import as_list, as_object
from steno.session.resume.images import read_header

__all__ = ["Meter", "output_tokens"]

_BYTES: Final = 4
_PIXELS: Final = 750
_PAGE: Final = 1_500
_REMEMBERED: Final = 4_096
_ANCHOR: Final = b"steno"


class Meter:
    """Counts tokens, and remembers which beginnings of requests were marked for the cache."""

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}

    def usage(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the figures of a request as the API begins an answer with them."""
        total = read = written = 0
        hourly = False
        digest = _ANCHOR
        for block, size in _blocks(body):
            total += size
            digest = _folded(digest, block)
            if digest in self._known:
                read = total
            mark = as_object(block.get("cache_control"))
            if mark is not None:
                written = total
                hourly = mark.get("ttl") == "1h"
                self._remember(digest)
        created = max(0, written - read)
        kept = {"ephemeral_5m_input_tokens": 0 if hourly else created}
        kept["ephemeral_1h_input_tokens"] = created if hourly else 0
        return {
            "input_tokens": max(1, total - read - created),
            "cache_creation_input_tokens": created,
            "cache_read_input_tokens": read,
            "cache_creation": kept,
            "output_tokens": 1,
            "service_tier": "standard",
        }

    def _remember(self, digest: bytes) -> None:
        self._known.pop(digest, None)
        self._known[digest] = None
        if len(self._known) > _REMEMBERED:
            self._known.pop(next(iter(self._known)))

    @staticmethod
    def count(body: dict[str, Any]) -> int:
        """Return how many tokens a request is."""
        return max(1, sum(size for _, size in _blocks(body)))


def output_tokens(content: list[dict[str, Any]]) -> int:
    """Return how many tokens an answer is; even an empty one is some."""
    return 3 + sum(_tokens(block) for block in content)


def _blocks(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield what a request holds in the order the API reads it, with the tokens of each."""
    for tool in _objects(body.get("tools")):
        yield tool, _tokens(tool)
    for block in _objects(body.get("system")):
        yield block, _tokens(block)
    for message in _objects(body.get("messages")):
        role = str(message.get("role"))
        for block in _objects(message.get("content")):
            yield {"role": role, **block}, _tokens(block) + 1


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [as_object(each) or {} for each in as_list(value) or ()]


def _tokens(block: dict[str, Any]) -> int:
    source = as_object(block.get("source"))
    data = source.get("data") if source else None
    if isinstance(data, str) and block.get("type") == "image":
        header = read_header(data)
        return header.width * header.height // _PIXELS + 1 if header else 1
    if isinstance(data, str) and block.get("type") == "document":
        return _PAGE
    inner = as_list(block.get("content"))
    if inner is not None:
        return sum(_tokens(as_object(each) or {}) for each in inner) + _BYTES
    return len(_encoded(block)) // _BYTES + 1


def _folded(digest: bytes, block: dict[str, Any]) -> bytes:
    """Return the digest of a beginning that is one block longer."""
    return hashlib.blake2b(digest + _encoded(block), digest_size=16).digest()


def _encoded(block: dict[str, Any]) -> bytes:
    """Return a block as bytes; marks for the cache make no difference."""
    return msgspec.json.encode({key: each for key, each in block.items() if key != "cache_control"})
