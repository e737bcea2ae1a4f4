"""Base of the secret detectors: families, value classification, masks and lazy patterns.

Every function looks at a bounded number of bytes, so a caller may ask for every candidate in a text. Patterns are
compiled at first use: most are never used, and compiling all would slow every start of a command that may mask
something.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec

_METHODS: Final = ("match", "search", "fullmatch", "finditer", "findall", "sub")


class LazyPattern:
    """Has the methods of a compiled pattern of bytes that are used here."""

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
        # Reached once: from then on the methods are attributes of the instance.
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return self.__dict__[name]


MASK_PREFIX: Final = b"<masked:"
MASK_PATTERN: Final = rb"<masked(?::[a-z0-9-]{1,40}+)?>"
"""The pattern of a mask, with or without the family of what was masked."""
_MASK: Final = LazyPattern(MASK_PATTERN)


def make_mask(family: str) -> bytes:
    """Return the mask for a secret of a family."""
    return MASK_PREFIX + family.encode() + b">"


def find_mask_end(data: bytes, place: int) -> int:
    """Return where the mask ends that begins at a place, or the place itself if none does."""
    match = _MASK.match(data, place)
    return match.end() if match else place


def text_after_masks(text: bytes) -> bytes:
    """Return the part of a text behind its last mask: how far away anything before it was is not known.

    >>> text_after_masks(b"login <masked:x> and"), text_after_masks(b"login")
    (b' and', b'login')
    """
    if b"<masked" not in text:
        return text
    ends = [match.end() for match in _MASK.finditer(text)]
    return text[ends[-1] :] if ends else text


def cover_masks(text: bytes) -> bytes:
    """Return a text, as long as it was, in which nothing in a mask is taken for a part of the rest.

    >>> cover_masks(b"a<masked:x>:b")
    b'a__________:b'
    """
    if b"<masked" not in text:
        return text
    return _MASK.sub(_cover_match, text)


def _cover_match(mask: re.Match[bytes]) -> bytes:
    return b"_" * len(mask[0])


def remove_masks(text: bytes) -> bytes:
    """Return a text without the masks in it."""
    return _MASK.sub(b"", text) if b"<masked" in text else text


def has_mask(text: bytes) -> bool:
    """Say whether a mask stands in a text.

    >>> has_mask(b"ada:<masked:password>@host"), has_mask(b"<masked>"), has_mask(b"a <masked b")
    (True, True, False)
    """
    return b"<masked" in text and _MASK.search(text) is not None


_VALUE_SAMPLE: Final = 96
"""Bytes of a value that are judged; the rest of a longer one is like them."""
_MIN_VARIED: Final = 6
_MIN_LENGTH: Final = 8
_MIN_MIXED_LENGTH: Final = 12
"""Bytes; a random value of this length without a digit is still told from words."""
_MIN_LETTERS: Final = 3
_MIN_ODD_SHARE: Final = 0.4
"""Share of unusual letter pairs from which on a value counts as random. Words stay below 0.2."""
_MIN_ODD_SHARE_MIXED: Final = 0.45
"""The same for a value without digits, where pairs of letters are all there is."""
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
    """Say whether a token is more than words or one letter over and over."""
    sample = secret[-_VALUE_SAMPLE:]
    mixed = _LOWER.search(sample) is not None and _UPPER.search(sample) is not None
    return len(set(sample[-20:])) >= _MIN_VARIED and (mixed or DIGIT.search(sample) is not None)


def is_random(value: bytes) -> bool:
    """Say whether a value was generated rather than made up of words.

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
    """Return the share of pairs of neighbours that hardly occur in words."""
    table = _pair_weights()
    weights = [table[first << 8 | second] for first, second in pairwise(value)]
    pairs = len(weights) - weights.count(_SKIPPED_PAIR)
    return (weights.count(_HALF_WEIGHT) / 2 + weights.count(_FULL_WEIGHT)) / pairs if pairs else 0.0


_SKIPPED_PAIR: Final = 1
_HALF_WEIGHT: Final = 2
_FULL_WEIGHT: Final = 3


@cache
def _pair_weights() -> bytes:
    """Return what each pair of bytes weighs: nothing for one that occurs in words."""
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
    """Say whether a value is drawn from all signs of a keyboard, as keys of web frameworks are."""
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
"""Words that a value made up for a manual or a test holds."""
_REFERENCE: Final = LazyPattern(
    rb"\$[{(A-Za-z_]|[<{*\[(]|%[({sd]|%[A-Za-z_]{1,40}%|@[{(A-Z]|&[a-z]|process\.env|os\.(?:environ|getenv)|System\."
    rb"|getenv|ENV\[|env[.(]|env:|secrets\.|vault:|arn:|op://|ref\+|file:|http|!|data:image|sha(?:256|512|1)[:-]"
    rb"|self\.|this\.|args\.|config\.|settings\.|var\.|local\.|module\.|params|request\.|[\x80-\xff]|\\u201"
)
"""Beginnings of a value that names a variable, a file or another place."""
_MIN_DISTINCT: Final = 3
"""Different letters; a value with fewer is one letter over and over."""
_MASKED_VALUE: Final = LazyPattern(rb"(?:.{0,8}[*\xe2\x80\xa6\xa2]{3}|.{0,40}\.\.\.|.{0,12}[xX]{4})")


def is_placeholder(value: bytes) -> bool:
    """Say whether a value stands for another, as in manuals and templates.

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
    """Say whether the value of a name like `password` is one, also where a person made it up.

    Words alone are not: they are as often a label, a type or another variable.

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
"""Where a secret begins and ends."""


class SecretMatch(msgspec.Struct, frozen=True, gc=False):
    """The result of examining one place of a text."""

    spans: tuple[Span, ...]
    """The secrets there; may be empty."""
    examined: int
    """The place before which the same family need not be asked again."""
    family: str = ""
    """The family of the secrets, where it is another one."""


class SecretFamily(msgspec.Struct, frozen=True):
    """Secrets of one kind."""

    id: str
    says: str
    needles: tuple[bytes, ...]
    """Fixed bytes that are part of every secret of it, or of what stands before it."""
    at: Callable[[bytes, int], SecretMatch | None]
    """Examines the place of a needle; has to look at a bounded part of the text around it, or to say how far it looked."""
    stems: tuple[bytes, ...] = ()
    """Bytes by which it is found in base64 and hex; few, because each costs time everywhere."""
    prefix: bool = False
    """Whether the needles are what the vendor puts before every token, and so no secret."""


_ENCODED_TAIL: Final = LazyPattern(rb"(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_.~+/=-]*+)++")
"""What follows a secret that was percent-encoded."""
_MAX_ESCAPE_LENGTH: Final = 14
"""Bytes of the longest colour or escape that ends right before a word."""
_MAX_LENGTH_BEFORE: Final = 61
"""One more than the letters that any pattern begins with."""
_TOKEN_SAMPLE: Final = 256
_SKIP_BYTES: Final = 48
"""Bytes behind a run that is not random in which it is not tried again."""
_CONTROL_BEFORE: Final = LazyPattern(rb"(?:\[[0-9;]{0,12}m|\\u00[01][0-9a-fA-F]|\\x[01][0-9a-fA-F])\Z")
_ESCAPE_LETTERS: Final = frozenset((b"n", b"r", b"t", b"b", b"f", b"v"))


def starts_word(data: bytes, place: int) -> bool:
    """Say whether a word begins at a place, also behind an escape or a colour of a terminal."""
    previous = data[place - 1 : place] if place else b""
    if not previous.isalnum() and previous != b"_":
        return True
    if previous in _ESCAPE_LETTERS and data[place - 2 : place - 1] == b"\\":
        return True
    return previous.isalnum() and _CONTROL_BEFORE.search(data, max(0, place - _MAX_ESCAPE_LENGTH), place) is not None


@cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern when a needle of it is found for the first time: most never are."""
    return re.compile(pattern)


def token_matcher(
    letters: bytes, min_length: int, *, strict: bool = False
) -> Callable[[bytes, bytes, int], SecretMatch | None]:
    """Return what finds a token: a needle and a run of letters behind it.

    The run is looked at once: whether it is one token or none, every later needle in it belongs to it. With `strict`,
    for short needles, the run has to be random.
    """
    body = b"[" + letters + b"]"

    def match_at(needle: bytes, data: bytes, place: int) -> SecretMatch | None:
        if not starts_word(data, place) or (strict and data[place - 1 : place] in (b"/", b"+")):
            # A short needle behind one of these is part of base64.
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
    """Return what finds a secret by a pattern that looks at a bounded number of bytes.

    Its group `secret`, if it has one, is what is masked. With `before`, the pattern begins with the run of these
    letters that ends at the needle.
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
    """Return the match of one secret, with what follows it where it is percent-encoded."""
    tail = _ENCODED_TAIL.match(data, end)
    end = tail.end() if tail else end
    return SecretMatch(((begin, end),), end)
