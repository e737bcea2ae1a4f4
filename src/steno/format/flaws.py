r"""Oddities inside a line that did decode: half surrogates, huge integers, repeated keys, ….

Looking for them costs a second, slower decode, so it is done only when asked for.
"""

import json
import re
from typing import Any, Final

from steno.format.depth import MAX_DEPTH, depth_of
from steno.format.spans import Damage, Span

__all__ = ["flaws"]

_SAFE_INTEGER: Final = 2**53
_SAFE_DIGITS: Final = 15
_MANY_DIGITS: Final = 20
_LONE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*+(\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F][0-9a-fA-F]{2}))"
)
_PAIRED: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def flaws(line: bytes, offset: int) -> tuple[Damage, ...]:
    """Return a note for each kind of oddity inside a decodable line."""
    found: list[Damage] = []

    def note(name: str, at: int, length: int, message: str) -> None:
        found.append(Damage(f"line.{name}", Span(offset + at, length), message))

    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError as error:
            note("utf8", error.start, error.end - error.start, error.reason)
    if b"\\u" in line and (lone := _lone_surrogate(line)) is not None:
        note("surrogate", lone, 6, line[lone : lone + 6].decode("ascii"))
    depth = depth_of(line)
    if depth > MAX_DEPTH:
        note("depth", 0, len(line), f"{depth:,} levels")
        return tuple(found)
    _look_inside(line, note)
    return tuple(found)


def _lone_surrogate(line: bytes) -> int | None:
    """Return where the first escape of half a surrogate pair stands."""
    blanked = _PAIRED.sub(lambda match: b"_" * len(match.group()), line)
    match = _LONE.search(blanked)
    return match.start(1) if match else None


def _look_inside(line: bytes, note: Any) -> None:
    """Decode once more with hooks for what decoders pass over in silence."""
    seen: dict[str, str] = {}

    def pairs(items: list[tuple[str, Any]]) -> None:
        if "duplicate-key" in seen or len(dict(items)) == len(items):
            return
        met: set[str] = set()
        for key, _ in items:
            if key in met:
                seen["duplicate-key"] = key
                return
            met.add(key)

    def integer(digits: str) -> int:
        if len(digits) > _SAFE_DIGITS and (
            len(digits) > _MANY_DIGITS or abs(int(digits)) > _SAFE_INTEGER
        ):
            seen.setdefault("bigint", digits[:24])
        return 0

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_int=integer, strict=False)
    try:
        decoder.decode(line.decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        return
    for name, what in seen.items():
        note(name, 0, len(line), what)
