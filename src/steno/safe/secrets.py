r"""Words that look like keys, tokens and passwords, taken out of a text before it is shown.

>>> hide_secrets("curl -H 'Authorization: Bearer abc123def456ghi7' https://ada:pw@host/x")
"curl -H 'Authorization: <masked>' https://<masked>@host/x"
"""

import re
from typing import Final

__all__ = ["MASK", "hide_secrets"]

MASK: Final = "<masked>"
_KEYS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|(?:pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|gh[a-z]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|gl[a-z]+-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{6,1000}(?:\.[A-Za-z0-9_-]+){1,2}|npm_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{16,}"
    r"|pypi-[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{16,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r")"
)
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
    """Return a text with everything masked in it that looks like a secret."""
    text = _KEYS.sub(MASK, text)
    text = _INSIDE.sub(rf"\1{MASK}@", text)
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _NAMED.sub(_named, text)
    return _LONG.sub(_long, text)


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
