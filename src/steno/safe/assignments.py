r"""Secrets by their names: `password = x`, `"api_key": "x"`, `export TOKEN=x`, `--secret x`.

A needle is a word such as `ecret` or `oken`. Around it the name is read, behind the name what joins
it to a value, then the value. How unlike words the value has to be depends on what the name says and
on how the two are joined. All of it looks at a bounded number of bytes.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.safe.family import Family, Match
from steno.safe.lazy_pattern import LazyPattern
from steno.safe.mask_text import behind_masks, has_mask, mask_end, without_masks
from steno.safe.secret_names import Name, read_name
from steno.safe.secret_values import is_password, is_placeholder, is_random, is_scrambled

__all__ = ["NAMED"]

_NAME_BEFORE: Final = 48
_NAME_BEHIND: Final = 40
_VALUE_MOST: Final = 4_096
_AWS_SECRET: Final = 40
"""Letters of an AWS secret key."""
_NAME_LETTERS: Final = LazyPattern(rb"[A-Za-z0-9_.-]*+")
_QUOTE: Final = rb"\\{0,7}[\"'`]"
_GAP: Final = rb"[ \t]{0,32}+"
_COLOUR: Final = rb"(?:(?:\\{1,7}(?:u001[bB]|x1[bB]|033|e)|\x1b)\[[0-9;]{0,16}m)?"

_JOINT: Final = LazyPattern(
    rb"(?P<closed>" + _QUOTE + rb")?+(?P<subscript>\])?+" + _GAP + rb"(?:"
    # Settings, code and JSON; with a type between name and value, as in `key: str = "x"`.
    rb"(?P<sign>:[ \t]{0,2}(?:[A-Za-z]{1,12}(?:\[[A-Za-z| ]{1,20}\])?|&?str|Final)[ \t]{0,2}=(?!=)"
    rb"|=>|:=|\|\|=|\?\?=|\?=|\+=|={1,3}|!==?|:)" + _GAP +
    # A call with the value, or with name and value.
    rb"|(?P<call>\([ \t]{0,2})(?=\\{0,7}[\"'`])"
    # XML, and settings in which name and value stand side by side.
    rb"|(?P<tag>>)"
    rb"|(?P<beside>(?:,|/?>)?[ \t]{0,4}(?:(?:\\{1,7}r)?\\{1,7}n|\r?\n)?[ \t]{0,24}(?:\\{0,7}[\"'])?(?:value|default|Value)"
    rb"(?:\\{0,7}[\"'])?[ \t]{0,2}[:=][ \t]{0,2}|(?:--body|--value|--plaintext|-b)[ =])"
    rb"|(?P<comma>,[ \t]{0,32}+)(?=\\{0,7}[\"'`])"
    rb"|(?P<block>\{[^{}]{0,300}?default[ \t]{0,8}=[ \t]{0,8})"
    rb"|(?P<is>(?:(?:for|of|to|on)(?:[ ][A-Za-z0-9_'-]{1,20}){1,4}?[ ])?(?:is|was)(?:[ \t]{1,2}:?|:)[ \t]{0,2})"
    rb"|(?P<space>)"
    rb")" + _COLOUR
)
_OPEN: Final = LazyPattern(rb"(?:[rbuf@]{0,2}(\\{0,7}[\"'`]))")
_BARE: Final = LazyPattern(rb"[^\s\"'`\\,;&<>(){}\[\]|]{1,512}+")
_LINE: Final = LazyPattern(rb"[^\s\"'`\\]{1,512}+")
_REST: Final = LazyPattern(rb"[^\s\"'`\\,;&<>(){}\[\]|]++")
"""What a value goes on with that is longer than what is judged of it."""
_TAGGED: Final = LazyPattern(rb"[^\s<>]{1,512}+")
"""What may stand between two tags of XML."""
_UUID: Final = LazyPattern(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_HEX: Final = LazyPattern(rb"[0-9a-fA-F]{16,512}+\Z")
_CODE: Final = LazyPattern(rb"[(\[.]|::|->")
_BEFORE_LINE: Final = LazyPattern(
    rb"(?:\A|[\n\r]|\\n|[\"'`]|(?:export|set|ENV|ARG|env|-e|--env|setx|setenv)[ \t]{1,4})\Z"
)
_SET: Final = LazyPattern(
    rb"(?:(?:^|[\s\"'(;=`]|\\n)-{1,2})\Z|(?:\bset|\bsetenv|\bsetx|\bENV|\bset -[a-zA-Z]{1,4}|\bput|\badd)[ \t]{1,4}\Z"
)
_LINE_BEFORE: Final = 10
"""Bytes of the longest of what begins such a line."""
_LOGIN: Final = LazyPattern(rb"\b(?:machine|login|default)(?:[ \t\r\n]|\\{1,7}[nrt])")
_NETRC: Final = LazyPattern(
    rb"\b(?:machine|login|default)(?:(?:[ \t\r\n]|\\{1,7}[nrt])++(?:[^\s\\]|\\{1,7}+(?![nrt]))*+){1,7}+\Z"
)
"""An entry of a .netrc up to the name of its password, counted in words: a mask is one, as a secret is."""
_NETRC_BEFORE: Final = 600
_SQL: Final = LazyPattern(rb"(?:\b(?i:with|role|user|identified|encrypted|set)\b[^;]{0,80})\Z")


_FOLLOWING: Final = frozenset(bytes((byte,)) for byte in b"=:\"'`\\ \t\r\n>],(|?+!/\x1b")
"""Bytes that may stand behind the name of a value."""


class _Value(msgspec.Struct, frozen=True):
    """The value that stands behind a name."""

    begin: int
    end: int
    text: bytes
    quoted: bool
    masked: bool = False
    """Whether masks were taken out of the text: words with a secret among them are not scrambled."""


def _values_at(data: bytes, place: int, letters: LazyPattern) -> Iterator[_Value]:
    """Yield what may be the value at a place, the longest first.

    `letters` is what it may be made of where it has no quotes.
    """
    opened = _OPEN.match(data, place)
    if opened is not None:
        quote = opened[1]
        begin = opened.end()
        end = data.find(quote, begin, begin + _VALUE_MOST)
        if end == -1:
            # Cut off: as far as the line goes.
            bare = letters.match(data, begin)
            if bare:
                yield _Value(begin, bare.end(), bare[0], quoted=True)
            return
        text = data[begin:end]
        if text and b"\n" not in text:
            yield _Value(begin, end, text, quoted=True)
        return
    line = _LINE.match(data, place) if letters is _BARE else None
    if (
        line is not None
        and data[line.end() : line.end() + 1] != b" "
        and is_scrambled(line[0])
        and not has_mask(line[0])
    ):
        yield _Value(place, line.end(), line[0], quoted=False)
    bare = letters.match(data, place)
    if bare:
        yield _Value(place, bare.end(), bare[0], quoted=False)


def _unmasked(value: _Value) -> _Value:
    """Return a value as it is judged: without the masks in it, which are full of signs.

    Nothing is left of one that begins with a mask.
    """
    if not has_mask(value.text):
        return value
    text = b"" if mask_end(value.text, 0) else without_masks(value.text)
    return msgspec.structs.replace(value, text=text, masked=True)


def _named_at(data: bytes, place: int) -> Match | None:
    """Examine the word of a name that stands at a place."""
    back = _NAME_LETTERS.match(data[max(0, place - _NAME_BEFORE) : place][::-1])
    begin = place - (back.end() if back else 0)
    if place - begin >= _NAME_BEFORE:
        # A run of letters that is too long for a name.
        return None
    if data[begin - 1 : begin] == b"\\" and begin < place and data[begin : begin + 1] in b"nrtbf":
        # The letter of an escape, as in `\nPASSWORD=`.
        begin += 1
    if data[place : place + len(b"api key")].lower() == b"api key":
        # `API key`, in a sentence.
        return _value_of(data, place, place + len(b"api key"), Name("secret", loud=False))
    behind = _NAME_LETTERS.match(data, place, place + _NAME_BEHIND)
    end = behind.end() if behind else place
    if end - place >= _NAME_BEHIND:
        return None
    while begin < place and data[begin : begin + 1] in (b".", b"-"):
        begin += 1
    if data[end - 1 : end] in (b".", b"-") or data[end : end + 1] not in _FOLLOWING:
        return None
    name = read_name(data[begin:end])
    return _value_of(data, begin, end, name) if name.kind else None


def _value_of(data: bytes, begin: int, end: int, name: Name) -> Match | None:
    """Examine what stands behind a name."""
    joint = _JOINT.match(data, end)
    if joint is None:
        return None
    for value in _values_at(data, joint.end(), _TAGGED if joint["tag"] else _BARE):
        if _is_secret(data, begin, joint, name, _unmasked(value)):
            break
    else:
        return None
    last = value.end
    if rest := _REST.match(data, last):
        # Looked at only behind a secret: before, it would take the square of a long run.
        last = rest.end()
    if name.loud and _BEFORE_LINE.search(data[max(0, begin - _LINE_BEFORE) : begin]):
        # The rest of a line in a file of variables, unless it is another variable.
        more = _LINE.match(data, last)
        if (
            more
            and b"=" not in more[0]
            and not more[0].startswith((b"&&", b"|", b";", b",", b")", b"<"))
        ):
            last = more.end()
    return Match(((value.begin, last),), last, _family_of(data[begin:end], joint, name, value))


def _family_of(text: bytes, joint: re.Match[bytes], name: Name, value: _Value) -> str:
    """Return the family that a receipt names."""
    if name.kind == "password":
        return "env-password" if name.loud and joint["sign"] == b"=" else "password"
    lowered = text.lower()
    if b"secret" in lowered and b"access" in lowered and len(value.text) == _AWS_SECRET:
        return "aws-secret-key"
    return "named-secret"


def _is_secret(data: bytes, begin: int, joint: re.Match[bytes], name: Name, value: _Value) -> bool:
    text = value.text
    if value.quoted and is_scrambled(text) and not (value.masked and _BLANK.search(text)):
        return True
    if is_placeholder(text):
        return False
    if not value.quoted:
        if _CODE.match(data, value.end):
            return False
        text = text.rstrip(b".:")
    strong = _is_strong(text, value, name)
    kind = joint.lastgroup
    if kind == "sign" and name.phrase and value.quoted:
        return strong or text.count(b" ") > 1 or is_password(text, quoted=True)
    if kind == "space":
        return _is_secret_word(data, begin, joint, name, value, strong=strong)
    if kind == "is":
        return strong or (name.kind == "password" and is_password(text, quoted=value.quoted))
    if kind == "comma":
        return strong or (joint["closed"] is not None and _is_weak(text, name, value))
    if kind == "tag" and (
        data[begin - 1 : begin] != b"<" or data[value.end : value.end + 1] != b"<"
    ):
        return False
    return strong or _is_weak(text, name, value) or _is_tight(data, begin, joint, name, value)


def _is_strong(text: bytes, value: _Value, name: Name) -> bool:
    """Say whether a value was generated."""
    if _BLANK.search(text):
        return False
    if _UUID.match(text):
        return name.kind in ("password", "secret") and not name.session
    if _HEX.match(text):
        return len(set(text)) >= _DISTINCT
    if name.kind == "key":
        return len(text) >= _KEY_LEAST and is_random(text)
    if len(text) >= _AWS_SECRET and text.startswith(b"/"):
        # One in 64 keys in base64 begins like a path.
        text = text[1:]
    return is_random(text) or (value.quoted and is_scrambled(text))


def _is_weak(text: bytes, name: Name, value: _Value) -> bool:
    """Say whether a value is a password that somebody made up."""
    if name.kind == "password":
        return is_password(text, quoted=value.quoted) and not _is_code(text, value)
    if name.kind == "secret" and len(text) >= _SECRET_LEAST:
        mixed = _SIGN.search(text) is not None and _DIGIT.search(text) is not None
        return mixed and is_password(text, quoted=value.quoted)
    return False


_BLANK: Final = LazyPattern(rb"[\x00-\x20]")
_SIGN: Final = LazyPattern(rb"[!#$%^*?+~@]")
_DIGIT: Final = LazyPattern(rb"[0-9]")
_DISTINCT: Final = 6
_KEY_LEAST: Final = 16
_SECRET_LEAST: Final = 8
_WORD_LEAST: Final = 4
_NEXT_LEAST: Final = 3
"""Letters of a password in a place where nothing else can stand."""
_SENTENCE_LEAST: Final = 12
_VARIABLE: Final = LazyPattern(
    rb"(?:[a-z]{1,3}|[A-Za-z_]*(?:pass|pw|secret|token|key|cred|auth|hash|salt)[A-Za-z_]*)[0-9]{0,3}\Z",
    re.IGNORECASE,
)


def _is_code(text: bytes, value: _Value) -> bool:
    return not value.quoted and _VARIABLE.match(text) is not None


def _is_tight(data: bytes, begin: int, joint: re.Match[bytes], name: Name, value: _Value) -> bool:
    """Say whether a value is that of a variable or of an option: there, words are taken too."""
    if joint["sign"] != b"=" or joint.end() - joint.start() > 1:
        return False
    if name.loud and name.kind == "secret" and is_password(value.text, quoted=value.quoted):
        return not _is_code(value.text, value)
    if name.kind != "password" or not (name.loud or data[begin - 2 : begin] == b"--"):
        return False
    return len(value.text) >= _WORD_LEAST and not value.text.startswith(b"/")


def _is_secret_word(
    data: bytes,
    begin: int,
    joint: re.Match[bytes],
    name: Name,
    value: _Value,
    *,
    strong: bool,
) -> bool:
    """Say whether a value is the next word of a command, a .netrc or a statement of SQL."""
    if joint.end() == joint.start() or joint["closed"] or joint["subscript"]:
        return False
    before = data[max(0, begin - 160) : begin]
    if _SET.search(before):
        return not value.text.startswith(b"-") and (
            strong or (before.endswith(b"-") and _is_option_value(data, name, value))
        )
    certain = name.kind == "password" and (
        _LOGIN.search(behind_masks(before)) is not None
        or _NETRC.search(data[max(0, begin - _NETRC_BEFORE) : begin]) is not None
        or (value.quoted and _SQL.search(before) is not None)
        or data.startswith((b"requirepass ", b"masterauth "), begin)
    )
    if certain:
        return len(value.text) >= _NEXT_LEAST
    return strong and (value.quoted or len(value.text) >= _SENTENCE_LEAST)


def _is_option_value(data: bytes, name: Name, value: _Value) -> bool:
    """Say whether the word behind an option such as `--password` is its value."""
    text = value.text
    if name.kind == "key" or text.startswith((b"/", b"./", b"~")):
        return False
    return not _IS_WORD.match(text) or (name.kind == "password" and _is_option_word(data, value))


_IS_WORD: Final = LazyPattern(rb"[a-z]{1,12}(?:[-_][a-z]{1,12}){0,3}\Z|[A-Z_]{1,40}\Z")


def _is_option_word(data: bytes, value: _Value) -> bool:
    """Say whether a word behind `--password` is one, though it is made of letters alone."""
    rest = data[value.end : value.end + 2]
    if value.text.lower() in _PROSE:
        return False
    return len(value.text) >= _WORD_LEAST and (
        value.quoted or rest[:1] in (b" ", b"", b"\n", b'"', b"'") or rest == b"\\n"
    )


_PROSE: Final = frozenset(
    b"option options flag flags argument arguments parameter parameters instead with from when which that "
    b"this then prompt file files value values command should must will cannot were have using only "
    b"also into does needs switch stdin".split()
)
"""Words that follow the name of an option in a sentence."""


_WORDS: Final = (
    b"assword asswd asswort assphrase asscode senha contrasena requirepass masterauth pwd Pwd PWD ASSWORD ASSWD ASSPHRASE ecret "
    b"ECRET api_key API_KEY apiKey ApiKey api-key API-KEY Api-Key apikey APIKEY Apikey "
    b"ccess_key ACCESS_KEY redential REDENTIAL essionid= ESSID= ESSIONID= "
    b"mnemonic essionid\" essionid'".split()
)
_SHORT: Final = b"oken OKEN _key _KEY -key -Key -KEY Key pass Pass PASS _pw _PW auth AUTH salt Salt SALT jwt JWT psk creds CREDS _PAT".split()
_FOLLOW: Final = (b"=", b":", b"\n", b"\r", b'"', b"'", b"\\", b" ", b"]", b">", b"`")
_TIGHT: Final = frozenset(
    (b"pass", b"Pass", b"auth", b"_key", b"Key", b"salt", b"psk", b"-key", b"-Key", b"creds")
)
"""Words that occur in prose; behind them a space says nothing."""

_NEEDLES: Final = (
    *_WORDS,
    *(
        word + follow
        for word in _SHORT
        for follow in _FOLLOW
        if not (word in _TIGHT and follow == b" ")
    ),
    *(word + b" =" for word in sorted(_TIGHT)),
    *(
        b"-pass ",
        b"_pass ",
        b"storepass ",
        b"keypass ",
        b"auth ",
        b"-key ",
        b"session=",
        b"sid=",
        b"essionid\\",
        b"session':",
        b"key-data:",
        b'key-data"',
        b"key_data",
        b"API key",
        b"api key",
    ),
)


NAMED: Final = (
    Family(
        "named-secret",
        "keys, tokens and secrets by their names",
        tuple(dict.fromkeys(_NEEDLES)),
        _named_at,
        tuple(b"assw ASSW ecret ECRET oken OKEN api_k API_K apiK".split()),
    ),
    # Found by the same needles.
    Family("password", "passwords by their names", (), _named_at),
    Family("env-password", "passwords in variables of the environment", (), _named_at),
    Family("aws-secret-key", "AWS secret keys", (), _named_at),
)
