"""What the rows of the tables of tokens are made with.

One row for each family: id, what it is, the prefixes, the letters that follow and the least number
of them. The lengths are a little below what vendors document, because tokens get cut off.
"""

import string
from collections.abc import Callable
from typing import Final

from steno.safe.family import Family, Match, begins_word, by_pattern, by_token, extended
from steno.safe.lazy_pattern import LazyPattern
from steno.safe.secret_values import is_random, is_varied

__all__ = [
    "AFTER_PAT",
    "ALNUM",
    "BASE64",
    "DOTTED",
    "HEX",
    "UPPER",
    "URL_SAFE",
    "discord_starts",
    "is_aws",
    "is_openai",
    "jwt_at",
    "shape_row",
    "token_row",
]

ALNUM: Final = rb"A-Za-z0-9"
URL_SAFE: Final = rb"A-Za-z0-9_-"
BASE64: Final = rb"A-Za-z0-9+/=_-"
HEX: Final = rb"a-fA-F0-9"
DOTTED: Final = rb"A-Za-z0-9_.-"
UPPER: Final = rb"A-Z0-9"
_STEM: Final = 4
_PUBLIC: Final = frozenset(
    (
        *("openai-key", "aws-access-key", "google-api-key", "sendgrid-key", "mailgun-key"),
        *("slack-token", "onepassword-key"),
    )
)
"""Families with a pattern whose needles are prefixes."""


def token_row(
    name: str,
    says: str,
    needles: str,
    letters: bytes,
    least: int,
    *,
    strict: bool = False,
    stems: str = "",
) -> Family:
    """Return a family of tokens that begin with a prefix; with `strict`, what follows is random."""
    texts = tuple(each.encode() for each in needles.split())
    # The needle that stands at a place is the longest that does.
    longest = sorted(texts, key=len, reverse=True)
    examine = by_token(letters, least, strict=strict)

    def at(data: bytes, place: int) -> Match | None:
        for needle in longest:
            if data.startswith(needle, place):
                return examine(needle, data, place)
        return None

    return Family(name, says, texts, at, _stems(texts, stems), prefix=not strict)


def shape_row(
    name: str,
    says: str,
    needles: str,
    pattern: bytes,
    fits: Callable[[bytes], bool] = is_varied,
    *,
    before: bytes = b"",
    stems: str = "",
) -> Family:
    """Return a family of tokens that fit a pattern, from the needle or from the letters before it."""
    texts = tuple(each.encode() for each in needles.split())
    # Behind a colon or a run of letters a word cannot begin; the pattern says what is before.
    at = by_pattern(pattern, fits, alone=not before, before=before)
    return Family(name, says, texts, at, _stems(texts, stems), prefix=name in _PUBLIC)


def _stems(needles: tuple[bytes, ...], stems: str) -> tuple[bytes, ...]:
    if stems == "-":
        return ()
    chosen = tuple(each.encode() for each in stems.split())
    return chosen or tuple(dict.fromkeys(each[:_STEM] for each in needles))


AFTER_PAT: Final = "".join(
    letter for letter in string.ascii_letters + string.digits if letter not in "chits"
)
"""Letters behind `pat` of an Airtable token, without those that make paths and patterns of it."""


def discord_starts() -> str:
    """Return how the base64 of a number can begin: a Discord token begins with the id of a user."""
    seconds = {"M": "TjzD", "N": "DTjz", "O": "DT"}
    return " ".join(
        first + second + third
        for first, all_seconds in seconds.items()
        for second in all_seconds
        for third in "AEIMQUYcgk"
    )


_RUN: Final = LazyPattern(rb"[A-Za-z0-9_-]*+")
_JWT_PART: Final = 8
_JWE_PARTS: Final = 4
"""Parts of an encrypted token behind its header."""


def jwt_at(data: bytes, place: int) -> Match | None:
    """Find a JSON web token: a header, a payload and a signature, or the five parts of JWE."""
    if not begins_word(data, place):
        return None
    first = _run_end(data, place)
    end = first
    parts: list[int] = []
    while data[end : end + 1] == b"." and len(parts) < _JWE_PARTS:
        begin, end = end + 1, _run_end(data, end + 1)
        parts.append(end - begin)
    payload = data.startswith(b"eyJ", first + 1)
    whole = len(parts) == _JWE_PARTS and parts[2] >= _JWT_PART
    if first - place < _JWT_PART or not parts or not (payload or whole):
        # Nor is it one from a later place in the same run.
        return Match((), first)
    if payload:
        # Without its signature too, which a screen may have cut off; what follows it is a sentence.
        end = first + 1 + parts[0]
        if len(parts) > 1 and parts[1] >= _JWT_PART:
            end += 1 + parts[1]
    if not is_varied(data[max(place, end - 256) : end]):
        return Match((), first)
    return extended(data, place, end)


def _run_end(data: bytes, place: int) -> int:
    run = _RUN.match(data, place)
    return run.end() if run else place


_LONG: Final = 50
_DISTINCT: Final = 8


def is_openai(token: bytes) -> bool:
    """Say whether a word that begins with `sk-` is a key rather than words with hyphens."""
    return is_random(token[3:]) or (len(token) > _LONG and is_varied(token))


def is_aws(token: bytes) -> bool:
    """Say whether the id of a key is more than a stand-in."""
    return len(set(token)) >= _DISTINCT
