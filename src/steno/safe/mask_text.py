"""The text that is written in place of a secret, and how it is recognized when a text is masked again."""

import re
from typing import Final

from steno.safe.lazy_pattern import LazyPattern

__all__ = [
    "MASK",
    "MASK_START",
    "behind_masks",
    "covered_masks",
    "has_mask",
    "mask_end",
    "mask_of",
    "without_masks",
]

MASK_START: Final = b"<masked:"
MASK: Final = rb"<masked(?::[a-z0-9-]{1,40}+)?>"
"""The pattern of a mask, with or without the family of what was masked."""
_MASK: Final = LazyPattern(MASK)


def mask_of(family: str) -> bytes:
    """Return the mask for a secret of a family."""
    return MASK_START + family.encode() + b">"


def mask_end(data: bytes, place: int) -> int:
    """Return where the mask ends that begins at a place, or the place itself if none does."""
    found = _MASK.match(data, place)
    return found.end() if found else place


def behind_masks(text: bytes) -> bytes:
    """Return the part of a text behind its last mask: how far away anything before it was is not known.

    >>> behind_masks(b"login <masked:x> and"), behind_masks(b"login")
    (b' and', b'login')
    """
    if b"<masked" not in text:
        return text
    ends = [found.end() for found in _MASK.finditer(text)]
    return text[ends[-1] :] if ends else text


def covered_masks(text: bytes) -> bytes:
    """Return a text, as long as it was, in which nothing in a mask is taken for a part of the rest.

    >>> covered_masks(b"a<masked:x>:b")
    b'a__________:b'
    """
    if b"<masked" not in text:
        return text
    return _MASK.sub(_cover, text)


def _cover(mask: re.Match[bytes]) -> bytes:
    return b"_" * len(mask[0])


def without_masks(text: bytes) -> bytes:
    """Return a text without the masks in it."""
    return _MASK.sub(b"", text) if b"<masked" in text else text


def has_mask(text: bytes) -> bool:
    """Say whether a mask stands in a text.

    >>> has_mask(b"ada:<masked:password>@host"), has_mask(b"<masked>"), has_mask(b"a <masked b")
    (True, True, False)
    """
    return b"<masked" in text and _MASK.search(text) is not None
