r"""Decides whether a value looks like a secret, a placeholder or an ordinary word.

Every function looks at a bounded number of bytes, so a caller may ask for every candidate in a text.
"""

from functools import cache
from itertools import pairwise
from typing import Final

from steno.safe.lazy_pattern import LazyPattern

__all__ = ["is_password", "is_placeholder", "is_random", "is_scrambled", "is_varied"]

_SAMPLE: Final = 96
"""Bytes of a value that are judged; the rest of a longer one is like them."""
_DISTINCT: Final = 6
_LEAST: Final = 8
_MIXED: Final = 12
"""Bytes; a random value of this length without a digit is still told from words."""
_LETTERS: Final = 3
_ODD: Final = 0.4
"""Share of unusual letter pairs from which on a value counts as random. Words stay below 0.2."""
_ODD_MIXED: Final = 0.45
"""The same for a value without digits, where pairs of letters are all there is."""
_COMMON: Final = frozenset(
    b"ab ac ad ag ai al am an ap ar as at au ay ba be bj bl bo bu by ca ce ch ci ck cl co cr ct cu da "
    b"dd de di do ds ea ec ed ee ef eg el em en ep eq er es et ev ex ey fa ff fi fo fr fu ge gi gr gs "
    b"ha he hi ho ht ia ib ic id ie if ig il im in io ip ir is it iv ke la ld le lf li ll lo ls lt lu "
    b"ly ma mb me mi mm mo mp ms na nc nd ne nf ng ni no ns nt nu ob oc od of ok ol om on oo op or os "
    b"ot ou ow pa pe pi pl po pp pr pt pu py qu ra rc rd re rg ri rm rn ro rr rs rt ru ry sa sc se sh "
    b"si so sp ss st su ta tc te th ti to tr ts tt tu ty ue ui ul um un up ur us ut va ve wa we wh wi "
    b"wo xc xe xt yp ys yt ze".split()
)
"""The letter pairs that make up 93 % of English text and source code."""
_LOWER: Final = LazyPattern(rb"[a-z]")
_UPPER: Final = LazyPattern(rb"[A-Z]")
_DIGIT: Final = LazyPattern(rb"[0-9]")
_LETTER: Final = LazyPattern(rb"[A-Za-z]")
_SYMBOL: Final = LazyPattern(rb"[!#$%^&*?+~@]")
_MOMENT: Final = LazyPattern(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.Z+-]{0,20})?\Z")
_VERSION: Final = LazyPattern(
    rb"[vV=~^]{0,2}[0-9]{1,5}(?:\.[0-9A-Za-z]{1,10}){1,5}(?:[-+][0-9A-Za-z.]{0,20})?\Z"
)
_NUMBER: Final = LazyPattern(rb"[0-9.,_:%-]{1,40}[A-Za-z%]{0,4}\Z")


def is_varied(secret: bytes) -> bool:
    """Say whether a token is more than words or one letter over and over."""
    sample = secret[-_SAMPLE:]
    mixed = _LOWER.search(sample) is not None and _UPPER.search(sample) is not None
    return len(set(sample[-20:])) >= _DISTINCT and (mixed or _DIGIT.search(sample) is not None)


def is_random(value: bytes) -> bool:
    """Say whether a value was generated rather than made up of words.

    >>> is_random(b"Xk9mQ2vL8"), is_random(b"passwordField2"), is_random(b"2026-11-15T10:20Z")
    (True, False, False)
    >>> is_random(b"q7w3k9x2m5v8"), is_random(b"KRSXG5CTMVRXEZLU"), is_random(b"my-secret-name-2")
    (True, True, False)
    """
    value = value[:_SAMPLE]
    if len(value) < _LEAST or not is_varied(value) or value[:1] in (b"/", b"$"):
        return False
    if len(_LETTER.findall(value)) < _LETTERS or _VERSION.match(value):
        return False
    odd = _odd_pairs(value)
    if _DIGIT.search(value) is not None:
        return odd >= _ODD
    return len(value) >= _MIXED and odd >= _ODD_MIXED


def _odd_pairs(value: bytes) -> float:
    """Return the share of pairs of neighbours that hardly occur in words."""
    table = _weights()
    weights = [table[first << 8 | second] for first, second in pairwise(value)]
    pairs = len(weights) - weights.count(_SKIPPED)
    return (weights.count(_HALF) / 2 + weights.count(_WHOLE)) / pairs if pairs else 0.0


_SKIPPED: Final = 1
_HALF: Final = 2
_WHOLE: Final = 3


@cache
def _weights() -> bytes:
    """Return what each pair of bytes weighs: nothing for one that occurs in words."""
    made = bytearray(1 << 16)
    for first in _ALNUM:
        for second in _ALNUM:
            pair = bytes((first, second))
            if pair.isdigit():
                weight = _SKIPPED
            elif not pair.isalpha():
                weight = _WHOLE
            elif pair[:1].islower() and pair[1:].isupper():
                weight = _HALF
            else:
                weight = 0 if pair.lower() in _COMMON else _WHOLE
            made[first << 8 | second] = weight
    return bytes(made)


_KINDS: Final = 5


def is_scrambled(value: bytes) -> bool:
    """Say whether a value is drawn from all signs of a keyboard, as keys of web frameworks are."""
    value = value[:_SAMPLE]
    signs = set(value) & _SIGNS
    if len(value) < _SCRAMBLED or len(signs) < _KINDS or _DIGIT.search(value) is None:
        return False
    if b"0-9" in value:
        # A regular expression.
        return False
    return _odd_pairs(bytes(byte for byte in value if byte in _ALNUM)) >= _ODD


_SIGNS: Final = frozenset(rb"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_SCRAMBLED: Final = 24
_ALNUM: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_STAND_INS: Final = LazyPattern(
    rb"change[-_ ]?(?:me|this|it)|place[-_ ]?holder|your[-_ ]?|example|sample|dummy|redacted|masked|hidden"
    rb"|replace|insert|(?:to|fix)[-_ ]?(?:do|me)\b|default|none\b|null\b|nil\b|undefined|true\b|false\b"
    rb"|password|passwd|secret|token|api[-_]?key|string\b|optional|required|not[-_ ]?set|unset|empty|invalid"
    rb"|put[-_]|abc[-_]?123|blah|(?<![a-z])(?:foo|bar|foobar)(?![a-z0-9])|enter[-_ ]|some[-_]?|the[-_]|lorem|mock|stub|fake|prompt|env\b|vault|variable|\.{3}"
)
"""Words that a value made up for a manual or a test holds."""
_REFERENCE: Final = LazyPattern(
    rb"\$[{(A-Za-z_]|[<{*\[(]|%[({sd]|%[A-Za-z_]{1,40}%|@[{(A-Z]|&[a-z]|process\.env|os\.(?:environ|getenv)|System\."
    rb"|getenv|ENV\[|env[.(]|env:|secrets\.|vault:|arn:|op://|ref\+|file:|http|!|data:image|sha(?:256|512|1)[:-]"
    rb"|self\.|this\.|args\.|config\.|settings\.|var\.|local\.|module\.|params|request\.|[\x80-\xff]|\\u201"
)
"""Beginnings of a value that names a variable, a file or another place."""
_FEW: Final = 3
"""Different letters; a value with fewer is one letter over and over."""
_MASKED: Final = LazyPattern(rb"(?:.{0,8}[*\xe2\x80\xa6\xa2]{3}|.{0,40}\.\.\.|.{0,12}[xX]{4})")


def is_placeholder(value: bytes) -> bool:
    """Say whether a value stands for another, as in manuals and templates.

    >>> [is_placeholder(each) for each in (b"${TOKEN}", b"<token>", b"changeme", b"xxxx", b"hunter2")]
    [True, True, True, True, False]
    """
    value = value[:_SAMPLE]
    if _REFERENCE.match(value) or len(set(value.lower())) < _FEW or _MASKED.match(value):
        return True
    return not is_random(value) and _STAND_INS.search(value.lower()) is not None


_BLANK: Final = LazyPattern(rb"[\x00-\x20]")
_SHORTEST: Final = 5


def is_password(value: bytes, *, quoted: bool) -> bool:
    """Say whether the value of a name like `password` is one, also where a person made it up.

    Words alone are not: they are as often a label, a type or another variable.

    >>> [is_password(each, quoted=True) for each in (b"hunter2", b"S3cr3t!x", b"string", b"${DB_PASS}")]
    [True, True, False, False]
    """
    value = value[:_SAMPLE]
    if len(value) < _SHORTEST or is_placeholder(value):
        return False
    if _NUMBER.match(value) or _VERSION.match(value) or _MOMENT.match(value):
        return False
    if _BLANK.search(value) or b"://" in value or value[:1] in (b"/", b".", b"~"):
        return False
    letters = _LETTER.search(value) is not None
    digits = _DIGIT.search(value) is not None
    symbols = _SYMBOL.search(value) is not None
    if not quoted and (b"." in value or b"::" in value or b"->" in value) and not symbols:
        return False
    return letters and (digits or symbols)
