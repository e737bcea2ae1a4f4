"""One kind of secret: the fixed bytes it is found by, and what decides whether it is there."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

from steno.safe.lazy_pattern import LazyPattern
from steno.safe.secret_values import is_random, is_varied

__all__ = ["Family", "Match", "Span", "begins_word", "by_pattern", "by_token", "extended"]

Span = tuple[int, int]
"""Where a secret begins and ends."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """The result of examining one place of a text."""

    spans: tuple[Span, ...]
    """The secrets there; may be empty."""
    examined: int
    """The place before which the same family need not be asked again."""
    family: str = ""
    """The family of the secrets, where it is another one."""


class Family(msgspec.Struct, frozen=True):
    """Secrets of one kind."""

    id: str
    says: str
    needles: tuple[bytes, ...]
    """Fixed bytes that are part of every secret of it, or of what stands before it."""
    at: Callable[[bytes, int], Match | None]
    """Examines the place of a needle; has to look at a bounded part of the text around it, or to
    say how far it looked."""
    stems: tuple[bytes, ...] = ()
    """Bytes by which it is found in base64 and hex; few, because each costs time everywhere."""
    prefix: bool = False
    """Whether the needles are what the vendor puts before every token, and so no secret."""


_TAIL: Final = LazyPattern(rb"(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_.~+/=-]*+)++")
"""What follows a secret that was percent-encoded."""
_BACK: Final = 14
"""Bytes of the longest colour or escape that ends right before a word."""
_BEFORE: Final = 61
"""One more than the letters that any pattern begins with."""
_SAMPLE: Final = 256
_STEP: Final = 48
"""Bytes behind a run that is not random in which it is not tried again."""
_CONTROL: Final = LazyPattern(rb"(?:\[[0-9;]{0,12}m|\\u00[01][0-9a-fA-F]|\\x[01][0-9a-fA-F])\Z")
_ESCAPED: Final = frozenset((b"n", b"r", b"t", b"b", b"f", b"v"))


def begins_word(data: bytes, place: int) -> bool:
    """Say whether a word begins at a place, also behind an escape or a colour of a terminal."""
    before = data[place - 1 : place] if place else b""
    if not before.isalnum() and before != b"_":
        return True
    if before in _ESCAPED and data[place - 2 : place - 1] == b"\\":
        return True
    return before.isalnum() and _CONTROL.search(data, max(0, place - _BACK), place) is not None


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern when a needle of it is found for the first time: most never are."""
    return re.compile(pattern)


def by_token(
    letters: bytes, least: int, *, strict: bool = False
) -> Callable[[bytes, bytes, int], Match | None]:
    """Return what finds a token: a needle and a run of letters behind it.

    The run is looked at once: whether it is one token or none, every later needle in it belongs to
    it. With `strict`, for short needles, the run has to be random.
    """
    body = b"[" + letters + b"]"

    def at(needle: bytes, data: bytes, place: int) -> Match | None:
        if not begins_word(data, place) or (strict and data[place - 1 : place] in (b"/", b"+")):
            # A short needle behind one of these is part of base64.
            return None
        found = _compiled(body + b"{%d}" % least).match(data, place + len(needle))
        if found is None:
            return None
        run = _compiled(body + b"*+").match(data, found.end())
        end = run.end() if run else found.end()
        begin = place + len(needle) if strict else place
        sample = data[max(begin, end - _SAMPLE) : end]
        if not (is_random(sample) if strict else is_varied(sample)):
            return Match((), min(end, place + _STEP) if strict else end)
        return extended(data, place, end)

    return at


def by_pattern(
    pattern: bytes,
    fits: Callable[[bytes], bool] | None = is_varied,
    *,
    alone: bool = True,
    before: bytes = b"",
) -> Callable[[bytes, int], Match | None]:
    """Return what finds a secret by a pattern that looks at a bounded number of bytes.

    Its group `secret`, if it has one, is what is masked. With `before`, the pattern begins with the
    run of these letters that ends at the needle.
    """
    letters = b"[" + before + b"]*+"

    def at(data: bytes, place: int) -> Match | None:
        begin = place
        if before:
            back = _compiled(letters).match(data[max(0, place - _BEFORE) : place][::-1])
            begin -= back.end() if back else 0
        found = _compiled(pattern).match(data, begin)
        if found is None or found.end() <= place or (alone and not begins_word(data, begin)):
            return None
        group = "secret" if "secret" in found.re.groupindex else 0
        if fits is not None and not fits(found[group]):
            return None
        return extended(data, *found.span(group))

    return at


def extended(data: bytes, begin: int, end: int) -> Match:
    """Return the match of one secret, with what follows it where it is percent-encoded."""
    more = _TAIL.match(data, end)
    end = more.end() if more else end
    return Match(((begin, end),), end)
