"""Base of the secret detectors: families, value classification, masks and lazy patterns.

Every function reads a bounded number of bytes, so every candidate in a text can be examined. Patterns are compiled on
first use: most are never used, and compiling all would slow down the start of every command that may mask text.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec

_METHODS: Final = ("match", "search", "fullmatch", "finditer", "findall", "sub")


class LazyPattern:
    """A bytes pattern that is compiled on first use; has only the methods used here."""

    match: Callable[..., re.Match[bytes] | None]
    search: Callable[..., re.Match[bytes] | None]
    fullmatch: Callable[..., re.Match[bytes] | None]
    finditer: Callable[..., Iterator[re.Match[bytes]]]
    findall: Callable[[bytes], list[bytes]]
    sub: Callable[..., bytes]

    def __init__(self, pattern: bytes, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        # Called once: afterwards the methods are attributes of the instance.
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return self.__dict__[name]


MASK_PREFIX: Final = b"<masked:"
MASK_PATTERN: Final = rb"<masked(?::[a-z0-9-]{1,40}+)?>"
"""Pattern of a mask, with or without the family of the masked secret."""
_MASK: Final = LazyPattern(MASK_PATTERN)


def make_mask(family: str) -> bytes:
    """Return the mask for a secret of a family."""
    return MASK_PREFIX + family.encode() + b">"


def find_mask_end(data: bytes, place: int) -> int:
    """Return the end of the mask at a position, or the position itself if there is none."""
    match = _MASK.match(data, place)
    return match.end() if match else place


def text_after_masks(text: bytes) -> bytes:
    """Return the text after the last mask, because distances across a mask are unknown.

    >>> text_after_masks(b"login <masked:x> and"), text_after_masks(b"login")
    (b' and', b'login')
    """
    if b"<masked" not in text:
        return text
    ends = [match.end() for match in _MASK.finditer(text)]
    return text[ends[-1] :] if ends else text


def cover_masks(text: bytes) -> bytes:
    """Return a text of the same length with every mask replaced by underscores.

    >>> cover_masks(b"a<masked:x>:b")
    b'a__________:b'
    """
    if b"<masked" not in text:
        return text
    return _MASK.sub(_cover_match, text)


def _cover_match(mask: re.Match[bytes]) -> bytes:
    return b"_" * len(mask[0])


def remove_masks(text: bytes) -> bytes:
    """Return a text without masks."""
    return _MASK.sub(b"", text) if b"<masked" in text else text


def has_mask(text: bytes) -> bool:
    """Return whether a text contains a mask.

    >>> has_mask(b"ada:<masked:password>@host"), has_mask(b"<masked>"), has_mask(b"a <masked b")
    (True, True, False)
    """
    return b"<masked" in text and _MASK.search(text) is not None


_VALUE_SAMPLE: Final = 96
"""Number of bytes of a value that are classified; the rest of a longer one is ignored."""
_MIN_VARIED: Final = 6
_MIN_LENGTH: Final = 8
_MIN_MIXED_LENGTH: Final = 12
"""Minimum length in bytes at which a random value without digits is distinguishable from words."""
_MIN_LETTERS: Final = 3
_MIN_ODD_SHARE: Final = 0.4
"""Share of unusual letter pairs from which a value counts as random. Words stay below 0.2."""
_MIN_ODD_SHARE_MIXED: Final = 0.45
"""The share for a value without digits, where letter pairs are the only evidence."""
_COMMON_PAIRS: Final = frozenset(
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
DIGIT: Final = LazyPattern(rb"[0-9]")
_LETTER: Final = LazyPattern(rb"[A-Za-z]")
_SYMBOL: Final = LazyPattern(rb"[!#$%^&*?+~@]")
_DATE_TIME: Final = LazyPattern(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.Z+-]{0,20})?\Z")
_VERSION: Final = LazyPattern(rb"[vV=~^]{0,2}[0-9]{1,5}(?:\.[0-9A-Za-z]{1,10}){1,5}(?:[-+][0-9A-Za-z.]{0,20})?\Z")
_NUMBER: Final = LazyPattern(rb"[0-9.,_:%-]{1,40}[A-Za-z%]{0,4}\Z")


def is_varied(secret: bytes) -> bool:
    """Return whether a token is more than words or a repeated character."""
    sample = secret[-_VALUE_SAMPLE:]
    mixed = _LOWER.search(sample) is not None and _UPPER.search(sample) is not None
    return len(set(sample[-20:])) >= _MIN_VARIED and (mixed or DIGIT.search(sample) is not None)


def is_random(value: bytes) -> bool:
    """Return whether a value was generated randomly rather than composed of words.

    >>> is_random(b"Xk9mQ2vL8"), is_random(b"passwordField2"), is_random(b"2026-11-15T10:20Z")
    (True, False, False)
    >>> is_random(b"q7w3k9x2m5v8"), is_random(b"KRSXG5CTMVRXEZLU"), is_random(b"my-secret-name-2")
    (True, True, False)
    """
    value = value[:_VALUE_SAMPLE]
    if len(value) < _MIN_LENGTH or not is_varied(value) or value[:1] in (b"/", b"$"):
        return False
    if len(_LETTER.findall(value)) < _MIN_LETTERS or _VERSION.match(value):
        return False
    odd_share = _odd_pair_share(value)
    if DIGIT.search(value) is not None:
        return odd_share >= _MIN_ODD_SHARE
    return len(value) >= _MIN_MIXED_LENGTH and odd_share >= _MIN_ODD_SHARE_MIXED


def _odd_pair_share(value: bytes) -> float:
    """Return the share of adjacent pairs that are rare in words."""
    table = _pair_weights()
    weights = [table[first << 8 | second] for first, second in pairwise(value)]
    pairs = len(weights) - weights.count(_SKIPPED_PAIR)
    return (weights.count(_HALF_WEIGHT) / 2 + weights.count(_FULL_WEIGHT)) / pairs if pairs else 0.0


_SKIPPED_PAIR: Final = 1
_HALF_WEIGHT: Final = 2
_FULL_WEIGHT: Final = 3


@cache
def _pair_weights() -> bytes:
    """Return the weight of each pair of bytes: zero for one that occurs in words."""
    table = bytearray(1 << 16)
    for first in _ALNUM:
        for second in _ALNUM:
            pair = bytes((first, second))
            if pair.isdigit():
                weight = _SKIPPED_PAIR
            elif not pair.isalpha():
                weight = _FULL_WEIGHT
            elif pair[:1].islower() and pair[1:].isupper():
                weight = _HALF_WEIGHT
            else:
                weight = 0 if pair.lower() in _COMMON_PAIRS else _FULL_WEIGHT
            table[first << 8 | second] = weight
    return bytes(table)


_MIN_SIGN_KINDS: Final = 5


def is_scrambled(value: bytes) -> bool:
    """Return whether a value uses all kinds of keyboard symbols, as keys of web frameworks do."""
    value = value[:_VALUE_SAMPLE]
    signs = set(value) & _SIGNS
    if len(value) < _MIN_SCRAMBLED_LENGTH or len(signs) < _MIN_SIGN_KINDS or DIGIT.search(value) is None:
        return False
    if b"0-9" in value:
        # A regular expression.
        return False
    return _odd_pair_share(bytes(byte for byte in value if byte in _ALNUM)) >= _MIN_ODD_SHARE


_SIGNS: Final = frozenset(rb"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_MIN_SCRAMBLED_LENGTH: Final = 24
_ALNUM: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_PLACEHOLDER_WORDS: Final = LazyPattern(
    rb"change[-_ ]?(?:me|this|it)|place[-_ ]?holder|your[-_ ]?|example|sample|dummy|redacted|masked|hidden"
    rb"|replace|insert|(?:to|fix)[-_ ]?(?:do|me)\b|default|none\b|null\b|nil\b|undefined|true\b|false\b"
    rb"|password|passwd|secret|token|api[-_]?key|string\b|optional|required|not[-_ ]?set|unset|empty|invalid"
    rb"|put[-_]|abc[-_]?123|blah|(?<![a-z])(?:foo|bar|foobar)(?![a-z0-9])|enter[-_ ]|some[-_]?|the[-_]|lorem|mock|stub|fake|prompt|env\b|vault|variable|\.{3}"
)
"""Words in placeholder values of manuals and tests."""
_REFERENCE: Final = LazyPattern(
    rb"\$[{(A-Za-z_]|[<{*\[(]|%[({sd]|%[A-Za-z_]{1,40}%|@[{(A-Z]|&[a-z]|process\.env|os\.(?:environ|getenv)|System\."
    rb"|getenv|ENV\[|env[.(]|env:|secrets\.|vault:|arn:|op://|ref\+|file:|http|!|data:image|sha(?:256|512|1)[:-]"
    rb"|self\.|this\.|args\.|config\.|settings\.|var\.|local\.|module\.|params|request\.|[\x80-\xff]|\\u201"
)
"""Prefixes of a value that refers to a variable, a file or another source."""
_MIN_DISTINCT: Final = 3
"""Minimum number of distinct characters; a value with fewer is a repetition."""
_MASKED_VALUE: Final = LazyPattern(rb"(?:.{0,8}[*\xe2\x80\xa6\xa2]{3}|.{0,40}\.\.\.|.{0,12}[xX]{4})")


def is_placeholder(value: bytes) -> bool:
    """Return whether a value is a placeholder, as in manuals and templates.

    >>> [is_placeholder(each) for each in (b"${TOKEN}", b"<token>", b"changeme", b"xxxx", b"hunter2")]
    [True, True, True, True, False]
    """
    value = value[:_VALUE_SAMPLE]
    if _REFERENCE.match(value) or len(set(value.lower())) < _MIN_DISTINCT or _MASKED_VALUE.match(value):
        return True
    return not is_random(value) and _PLACEHOLDER_WORDS.search(value.lower()) is not None


BLANK: Final = LazyPattern(rb"[\x00-\x20]")
_MIN_PASSWORD: Final = 5


def is_password(value: bytes, *, quoted: bool) -> bool:
    """Return whether the value of a name like `password` is a password, including one chosen by a person.

    Plain words are not passwords: they are often a label, a type or another variable.

    >>> [is_password(each, quoted=True) for each in (b"hunter2", b"S3cr3t!x", b"string", b"${DB_PASS}")]
    [True, True, False, False]
    """
    value = value[:_VALUE_SAMPLE]
    if len(value) < _MIN_PASSWORD or is_placeholder(value):
        return False
    if _NUMBER.match(value) or _VERSION.match(value) or _DATE_TIME.match(value):
        return False
    if BLANK.search(value) or b"://" in value or value[:1] in (b"/", b".", b"~"):
        return False
    letters = _LETTER.search(value) is not None
    digits = DIGIT.search(value) is not None
    symbols = _SYMBOL.search(value) is not None
    if not quoted and (b"." in value or b"::" in value or b"->" in value) and not symbols:
        return False
    return letters and (digits or symbols)


Span = tuple[int, int]
"""Start and end of a secret."""


class SecretMatch(msgspec.Struct, frozen=True, gc=False):
    """Result of examining one position of a text."""

    spans: tuple[Span, ...]
    """The secrets found; may be empty."""
    examined: int
    """Position up to which the family has examined the text."""
    family: str = ""
    """Family of the secrets, if it differs from the examined one."""


class SecretFamily(msgspec.Struct, frozen=True):
    """Secrets of one kind."""

    id: str
    says: str
    needles: tuple[bytes, ...]
    """Fixed bytes that are part of every secret of the family, or precede it."""
    at: Callable[[bytes, int], SecretMatch | None]
    """Examines the position of a needle. Must read a bounded part of the text around it, or return how far it read."""
    stems: tuple[bytes, ...] = ()
    """Bytes for finding it in base64 and hex; few, because each adds cost to every text."""
    prefix: bool = False
    """Whether the needles are a vendor's token prefix, and so not secret themselves."""


_ENCODED_TAIL: Final = LazyPattern(rb"(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_.~+/=-]*+)++")
"""Text that follows a percent-encoded secret."""
_MAX_ESCAPE_LENGTH: Final = 14
"""Maximum length in bytes of a colour or escape sequence that ends right before a word."""
_MAX_LENGTH_BEFORE: Final = 61
"""One more than the maximum number of characters before the needle in a pattern."""
_TOKEN_SAMPLE: Final = 256
_SKIP_BYTES: Final = 48
"""Number of bytes of a run that is not random in which later needles are skipped."""
_CONTROL_BEFORE: Final = LazyPattern(rb"(?:\[[0-9;]{0,12}m|\\u00[01][0-9a-fA-F]|\\x[01][0-9a-fA-F])\Z")
_ESCAPE_LETTERS: Final = frozenset((b"n", b"r", b"t", b"b", b"f", b"v"))


def starts_word(data: bytes, place: int) -> bool:
    """Return whether a word begins at a position, including after an escape or colour sequence."""
    previous = data[place - 1 : place] if place else b""
    if not previous.isalnum() and previous != b"_":
        return True
    if previous in _ESCAPE_LETTERS and data[place - 2 : place - 1] == b"\\":
        return True
    return previous.isalnum() and _CONTROL_BEFORE.search(data, max(0, place - _MAX_ESCAPE_LENGTH), place) is not None


@cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern when one of its needles is first found: most never are."""
    return re.compile(pattern)


def token_matcher(
    letters: bytes, min_length: int, *, strict: bool = False
) -> Callable[[bytes, bytes, int], SecretMatch | None]:
    """Return a matcher for tokens: a needle and a run of characters after it.

    Each run is examined once; later needles in it belong to it. With `strict`, used for short needles, the run must be
    random.
    """
    body = b"[" + letters + b"]"

    def match_at(needle: bytes, data: bytes, place: int) -> SecretMatch | None:
        if not starts_word(data, place) or (strict and data[place - 1 : place] in (b"/", b"+")):
            # A short needle after one of these characters is part of base64.
            return None
        match = _compile(body + b"{%d}" % min_length).match(data, place + len(needle))
        if match is None:
            return None
        run = _compile(body + b"*+").match(data, match.end())
        end = run.end() if run else match.end()
        begin = place + len(needle) if strict else place
        sample = data[max(begin, end - _TOKEN_SAMPLE) : end]
        if not (is_random(sample) if strict else is_varied(sample)):
            return SecretMatch((), min(end, place + _SKIP_BYTES) if strict else end)
        return with_encoded_tail(data, place, end)

    return match_at


def pattern_matcher(
    pattern: bytes, fits: Callable[[bytes], bool] | None = is_varied, *, own_word: bool = True, before: bytes = b""
) -> Callable[[bytes, int], SecretMatch | None]:
    """Return a matcher for secrets by a pattern that reads a bounded number of bytes.

    If the pattern has a group `secret`, only that group is masked. With `before`, the pattern begins with the run of
    these characters that ends at the needle.
    """
    letters = b"[" + before + b"]*+"

    def match_at(data: bytes, place: int) -> SecretMatch | None:
        begin = place
        if before:
            reversed_run = _compile(letters).match(data[max(0, place - _MAX_LENGTH_BEFORE) : place][::-1])
            begin -= reversed_run.end() if reversed_run else 0
        match = _compile(pattern).match(data, begin)
        if match is None or match.end() <= place or (own_word and not starts_word(data, begin)):
            return None
        group = "secret" if "secret" in match.re.groupindex else 0
        if fits is not None and not fits(match[group]):
            return None
        return with_encoded_tail(data, *match.span(group))

    return match_at


def with_encoded_tail(data: bytes, begin: int, end: int) -> SecretMatch:
    """Return the match of one secret, extended by a percent-encoded remainder."""
    tail = _ENCODED_TAIL.match(data, end)
    end = tail.end() if tail else end
    return SecretMatch(((begin, end),), end)
