r"""Words that are or look like keys, tokens and passwords, taken out of a text before it is shown.

What a key looks like is said in one place, `steno.safe.families`. What is shown to anybody at a
glance is looked at more sternly than what is exported: long words without sense go as well.

>>> hide_secrets("curl -H 'Authorization: Bearer abc123def456ghi7' https://ada:pw@host/x")
"curl -H 'Authorization: <masked>' https://<masked>@host/x"
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from steno.safe.families import FAMILIES
from steno.safe.masking import PERSONAL, applied, edits_of

__all__ = ["MASK", "hide_known_secrets", "hide_secrets"]

MASK: Final = "<masked>"
_HEADER: Final = re.compile(
    r"(\b(?:proxy-)?authorization\b\s*[:=]\s*)(?:(?:bearer|basic|token)\s+)?[^\s\"'\\,;]+",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# Names are bounded behind the word that gives them away, and not looked at before it: in a long run
# of letters everything else takes the square of its length.
_NAMED: Final = re.compile(
    r"((?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|auth)"
    r"[A-Za-z0-9_-]{0,64}(?:\s*[=:]\s*|\s+(?=[^\s-])))((?!<masked>)[^\s\"'\\,;&]{3,})",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"(?:\A|[\s\"'])--?[A-Za-z0-9_-]*\Z")
_NAME: Final = 64
_INSIDE: Final = re.compile(r"(://)[^/\s\"'@]+@")
_LONG: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+_-]{32,}={0,2}(?![A-Za-z0-9+/_-])")
_DIGITS: Final = 4


def hide_secrets(text: str) -> str:
    """Return a text with everything masked in it that is, or looks like, a secret."""
    text = _keys().sub(MASK, hide_known_secrets(text))
    text = _INSIDE.sub(rf"\1{MASK}@", text)
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _NAMED.sub(_named, text)
    return _LONG.sub(_long, text)


def hide_known_secrets(text: str) -> str:
    """Return a text with every secret masked that an export would mask; homes and addresses stay."""
    data = text.encode("utf-8", "surrogatepass")
    edits = [
        msgspec.structs.replace(edit, new=MASK.encode())
        for edit in edits_of(data)
        if edit.family not in PERSONAL
    ]
    return applied(data, edits).decode("utf-8", "surrogatepass") if edits else text


@lru_cache(maxsize=1)
def _keys() -> re.Pattern[str]:
    """Return what finds a word that begins as the secrets of a family do, if it is none of them.

    A brief or a list is read by anybody: what is cut off, or of a form that is new, goes too.
    """
    needles = {needle.decode() for family in FAMILIES if family.prefix for needle in family.needles}
    needles.add("eyJ")
    stems = "|".join(sorted(map(re.escape, needles), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{stems})[A-Za-z0-9_.-]{{12,}}")


def _named(found: re.Match[str]) -> str:
    """Mask what stands behind a name; behind a mere space not a word, as in `token streaming`."""
    name, value = found[1].rstrip(), found[2].rstrip(".!?)*_`")
    if name.endswith(("=", ":")) or not value.isalpha():
        return found[1] + MASK
    before = found.string[max(0, found.start() - _NAME) : found.start()]
    return found[1] + MASK if _OPTION.search(before + name) else found[0]


def _long(found: re.Match[str]) -> str:
    """Mask a long run of letters and digits, unless it reads like words."""
    word = found[0]
    mixed = sum(letter.isdigit() for letter in word) >= _DIGITS
    return MASK if mixed and any(letter.isalpha() for letter in word) else word
