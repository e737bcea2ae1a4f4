r"""Masks secrets in displayed text, more strictly than in exported text.

Masks every known secret and text that looks like one: long random words, cut-off tokens.

>>> hide_secrets("curl -H 'Authorization: Bearer abc123def456ghi7' https://ada:pw@host/x")
"curl -H 'Authorization: <masked>' https://<masked>@host/x"
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from steno.sanitize.secret_masker import PERSONAL_IDS, SECRET_FAMILIES, apply_edits, find_edits

PLAIN_MASK: Final = "<masked>"
_AUTH_HEADER: Final = re.compile(
    r"(\b(?:proxy-)?authorization\b\s*[:=]\s*)(?:(?:bearer|basic|token)\s+)?[^\s\"'\\,;]+", re.IGNORECASE
)
_AUTH_SCHEME: Final = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# Names are bounded after the keyword and not read before it: in a long run of letters, anything else takes quadratic
# time.
_NAMED_SECRET: Final = re.compile(
    r"((?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|auth)"
    r"[A-Za-z0-9_-]{0,64}(?:\s*[=:]\s*|\s+(?=[^\s-])))((?!<masked>)[^\s\"'\\,;&]{3,})",
    re.IGNORECASE,
)
_OPTION_NAME: Final = re.compile(r"(?:\A|[\s\"'])--?[A-Za-z0-9_-]*\Z")
_NAME_LENGTH: Final = 64
_URL_CREDENTIALS: Final = re.compile(r"(://)[^/\s\"'@]+@")
_LONG_RUN: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+_-]{32,}={0,2}(?![A-Za-z0-9+/_-])")
_MIN_DIGITS: Final = 4


def hide_secrets(text: str) -> str:
    """Return a text with everything masked that is, or looks like, a secret."""
    text = _key_pattern().sub(PLAIN_MASK, hide_known_secrets(text))
    text = _URL_CREDENTIALS.sub(rf"\1{PLAIN_MASK}@", text)
    text = _AUTH_HEADER.sub(rf"\1{PLAIN_MASK}", text)
    text = _AUTH_SCHEME.sub(rf"\1{PLAIN_MASK}", text)
    text = _NAMED_SECRET.sub(_mask_named, text)
    return _LONG_RUN.sub(_mask_long, text)


def hide_known_secrets(text: str) -> str:
    """Return a text with the same secrets masked as in an export; home directories and email addresses are kept."""
    data = text.encode("utf-8", "surrogatepass")
    edits = [
        msgspec.structs.replace(edit, new=PLAIN_MASK.encode())
        for edit in find_edits(data)
        if edit.family not in PERSONAL_IDS
    ]
    return apply_edits(data, edits).decode("utf-8", "surrogatepass") if edits else text


@lru_cache(maxsize=1)
def _key_pattern() -> re.Pattern[str]:
    """Return a pattern for words that begin like the secrets of a family without being one.

    Displayed text may be read by anyone, so cut-off tokens and tokens of a new form are masked as well.
    """
    needles = {needle.decode() for family in SECRET_FAMILIES if family.prefix for needle in family.needles}
    needles.add("eyJ")
    stems = "|".join(sorted(map(re.escape, needles), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{stems})[A-Za-z0-9_.-]{{12,}}")


def _mask_named(match: re.Match[str]) -> str:
    """Mask the value after a name; after a space only, plain words such as `token streaming` are kept."""
    name, value = match[1].rstrip(), match[2].rstrip(".!?)*_`")
    if name.endswith(("=", ":")) or not value.isalpha():
        return match[1] + PLAIN_MASK
    before = match.string[max(0, match.start() - _NAME_LENGTH) : match.start()]
    return match[1] + PLAIN_MASK if _OPTION_NAME.search(before + name) else match[0]


def _mask_long(match: re.Match[str]) -> str:
    """Mask a long run of letters and digits, unless it consists of words."""
    word = match[0]
    mixed = sum(character.isdigit() for character in word) >= _MIN_DIGITS
    return PLAIN_MASK if mixed and any(letter.isalpha() for letter in word) else word
