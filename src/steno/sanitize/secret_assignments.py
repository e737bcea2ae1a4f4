"""Detects secrets by their names: `password = x`, `"api_key": "x"`, `export TOKEN=x`, `--secret x`.

A needle is part of a word such as `ecret` or `oken`. The name is read around it, then the operator and the value after
it. How random the value must be depends on the name and the operator. Every step reads a bounded number of bytes.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from steno.sanitize.secret_family import (
    BLANK,
    DIGIT,
    LazyPattern,
    SecretFamily,
    SecretMatch,
    find_mask_end,
    has_mask,
    is_password,
    is_placeholder,
    is_random,
    is_scrambled,
    remove_masks,
    text_after_masks,
)

_NAME_PARTS: Final = LazyPattern(rb"[A-Z]{2,32}+(?![a-z])|[A-Z]?[a-z]{1,64}+|[A-Z]|[0-9]{1,32}+")


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


class SecretName(msgspec.Struct, frozen=True):
    """Classification of a name by the kind of its value."""

    kind: str
    """`password`, `secret` or `key`; empty if the name does not indicate a secret."""
    loud: bool
    """Whether it is written like an environment variable."""
    phrase: bool = False
    """Whether its value may consist of several words."""
    session: bool = False
    """Whether it names a session ID, which is often not secret."""


_PASSWORD_WORDS: Final = _word_set(
    "password passwd pwd pass passphrase passcode passw psw pw storepass keypass requirepass masterauth "
    "psk wpapsk userpass dbpass passwort contrasena senha"
)
_SECRET_WORDS: Final = _word_set(
    "secret secrets token apikey apitoken authtoken accesstoken jwt bearer credential credentials creds "
    "cred auth salt cookie otp totp mnemonic "
    "secretkey accesskey privatekey masterkey signingkey encryptionkey authkey appkey accountkey "
    "sharedkey authorization pepper pat"
)
_SESSION_WORDS: Final = _word_set("sessionid sessid phpsessid jsessionid connectsid session sid")
_KEY_WORDS: Final = frozenset(("key", "keys"))
_HARMLESS_KEY_QUALIFIERS: Final = _word_set(
    "socket cache primary foreign public partition sort object s3 idempotency dedup group row map dict hash index "
    "unique lookup translation i18n websocket host fingerprint known query state record item file blob "
    "column registry node pub react sort order tree parent child storage hot press label locale field "
    "registry surrogate natural commit build restore deps lock turn chunk trace image content color "
    "source target entity resource module package event message keyboard feature flag metric tag "
    "answer cursor next start last first first data json yaml toml dir path project session user"
)
"""Words before `key` that indicate a value other than a secret."""
_HARMLESS_LAST_WORDS: Final = _word_set(
    "id ids name names type types url uri urls path paths file files dir folder arn endpoint field fields "
    "label labels count counts counter limit limits length len expiry expires expire expiration ttl at in "
    "policy class ref refs version versions address email user username host hostname port region format "
    "regex pattern placeholder hint help description desc title message msg error errors index size max min "
    "public fingerprint checksum digest algorithm alg scheme usage used budget rate time date kind status "
    "state enabled required valid verified provider manager store service client source reader writer "
    "parser handler callback function fn method model schema config options settings builder factory "
    "generator validator cache bucket scope scopes audience issuer prefix suffix separator position pos "
    "offset start end begin stop eos bos pad unk usage cost price prices window stats total totals number "
    "num env var variable input inputs output outputs stream encoding encoder decoder string strings str "
    "strategy mode level view page form button icon link text2 tokens rotation rotate lifetime age "
    "created updated modified changed sha commit template example sample test doc docs plugin rules rule "
    "scan scanner detection detector"
)
"""Last words of names whose values relate to a secret but are not one."""
_FORM_WORDS: Final = _word_set("data value values base64 b64 pem plain plaintext raw content clear prod dev")
"""Last words of names that describe the encoding of the value."""
_NOT_PASSWORD_WORDS: Final = _word_set("minipass compass bypass trespass surpass encompass overpass underpass")
_PUBLIC_WORDS: Final = frozenset(("public", "pub", "publishable"))


@lru_cache(maxsize=4_096)
def classify_name(name: bytes) -> SecretName:
    """Return the classification of a name."""
    parts = [part.decode("latin-1").lower() for part in _NAME_PARTS.findall(name)]
    while parts and (parts[-1].isdigit() or (len(parts[-1]) == 1 and parts[-1] != "x")):
        parts.pop()
    if len(parts) > 1 and parts[-1] in _FORM_WORDS:
        parts.pop()
    if parts[-2:] == ["secret", "id"]:
        # The secret half of a Vault login.
        parts.pop()
    if not parts or parts[-1] in _HARMLESS_LAST_WORDS or any(part in _PUBLIC_WORDS for part in parts[:-1]):
        return _NO_SECRET_NAME
    kind = _classify_parts(parts)
    last = parts[-1]
    phrase = last.endswith("phrase")
    return SecretName(kind, name.isupper(), phrase=phrase, session=last in _SESSION_WORDS) if kind else _NO_SECRET_NAME


def _classify_parts(parts: list[str]) -> str:
    """Return the kind of value indicated by the last words of a name."""
    last = parts[-1]
    previous = parts[-2] if len(parts) > 1 else ""
    if _is_password_word(last):
        return "password"
    if last in _SECRET_WORDS or last.endswith(("secret", "token", "apikey", "secretkey", "cookie")):
        return "secret"
    if last in _SESSION_WORDS:
        return "key"
    if last in _KEY_WORDS:
        if previous in _SECRET_KEY_QUALIFIERS:
            return "secret"
        return "key" if previous and previous not in _HARMLESS_KEY_QUALIFIERS else ""
    for part in reversed(parts):
        if part in _PASSWORD_WORDS or part.endswith(("password", "passwd")):
            return "secret"
        if part in _SECRET_WORDS or part.endswith(("secret", "token", "apikey")):
            return "key"
    return ""


def _is_password_word(word: str) -> bool:
    if word in _PASSWORD_WORDS or word.endswith(("password", "passwd", "passphrase")):
        return True
    return word.endswith(("pass", "pwd")) and word not in _NOT_PASSWORD_WORDS


_SECRET_KEY_QUALIFIERS: Final = _word_set("api secret access private auth master app account signing")


_NO_SECRET_NAME: Final = SecretName("", loud=False)


_NAME_BEFORE: Final = 48
_NAME_BEHIND: Final = 40
_MAX_VALUE: Final = 4_096
_AWS_SECRET: Final = 40
"""Length of an AWS secret key."""
_NAME_LETTERS: Final = LazyPattern(rb"[A-Za-z0-9_.-]*+")
_QUOTES: Final = rb"\\{0,7}[\"'`]"
_SPACES: Final = rb"[ \t]{0,32}+"
_COLOUR_CODE: Final = rb"(?:(?:\\{1,7}(?:u001[bB]|x1[bB]|033|e)|\x1b)\[[0-9;]{0,16}m)?"

_NAME_VALUE_JOINT: Final = LazyPattern(
    rb"(?P<closed>" + _QUOTES + rb")?+(?P<subscript>\])?+" + _SPACES + rb"(?:"
    # Settings, code and JSON; with a type between name and value, as in `key: str = "x"`.
    rb"(?P<sign>:[ \t]{0,2}(?:[A-Za-z]{1,12}(?:\[[A-Za-z| ]{1,20}\])?|&?str|Final)[ \t]{0,2}=(?!=)"
    rb"|=>|:=|\|\|=|\?\?=|\?=|\+=|={1,3}|!==?|:)" + _SPACES +
    # A call with the value, or with name and value.
    rb"|(?P<call>\([ \t]{0,2})(?=\\{0,7}[\"'`])"
    # XML, and settings with name and value side by side.
    rb"|(?P<tag>>)"
    rb"|(?P<beside>(?:,|/?>)?[ \t]{0,4}(?:(?:\\{1,7}r)?\\{1,7}n|\r?\n)?[ \t]{0,24}(?:\\{0,7}[\"'])?(?:value|default|Value)"
    rb"(?:\\{0,7}[\"'])?[ \t]{0,2}[:=][ \t]{0,2}|(?:--body|--value|--plaintext|-b)[ =])"
    rb"|(?P<comma>,[ \t]{0,32}+)(?=\\{0,7}[\"'`])"
    rb"|(?P<block>\{[^{}]{0,300}?default[ \t]{0,8}=[ \t]{0,8})"
    rb"|(?P<is>(?:(?:for|of|to|on)(?:[ ][A-Za-z0-9_'-]{1,20}){1,4}?[ ])?(?:is|was)(?:[ \t]{1,2}:?|:)[ \t]{0,2})"
    rb"|(?P<space>)"
    rb")" + _COLOUR_CODE
)
_OPENING_QUOTE: Final = LazyPattern(rb"(?:[rbuf@]{0,2}(\\{0,7}[\"'`]))")
_BARE_VALUE: Final = LazyPattern(rb"[^\s\"'`\\,;&<>(){}\[\]|]{1,512}+")
_LINE_VALUE: Final = LazyPattern(rb"[^\s\"'`\\]{1,512}+")
_VALUE_REST: Final = LazyPattern(rb"[^\s\"'`\\,;&<>(){}\[\]|]++")
"""Remainder of a value that is longer than the part that is classified."""
_TAG_VALUE: Final = LazyPattern(rb"[^\s<>]{1,512}+")
"""Text between two XML tags."""
_UUID: Final = LazyPattern(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_HEX: Final = LazyPattern(rb"[0-9a-fA-F]{16,512}+\Z")
_CODE_AFTER: Final = LazyPattern(rb"[(\[.]|::|->")
_BEFORE_LINE: Final = LazyPattern(
    rb"(?:\A|[\n\r]|\\n|[\"'`]|(?:export|set|ENV|ARG|env|-e|--env|setx|setenv)[ \t]{1,4})\Z"
)
_SET_BEFORE: Final = LazyPattern(
    rb"(?:(?:^|[\s\"'(;=`]|\\n)-{1,2})\Z|(?:\bset|\bsetenv|\bsetx|\bENV|\bset -[a-zA-Z]{1,4}|\bput|\badd)[ \t]{1,4}\Z"
)
_LINE_BEFORE: Final = 10
"""Maximum length in bytes of the start of such a line."""
_LOGIN: Final = LazyPattern(rb"\b(?:machine|login|default)(?:[ \t\r\n]|\\{1,7}[nrt])")
_NETRC_ENTRY: Final = LazyPattern(
    rb"\b(?:machine|login|default)(?:(?:[ \t\r\n]|\\{1,7}[nrt])++(?:[^\s\\]|\\{1,7}+(?![nrt]))*+){1,7}+\Z"
)
"""A .netrc entry up to the name of its password. Counted in words, because a mask is one word, like a secret."""
_NETRC_BEFORE: Final = 600
_SQL_BEFORE: Final = LazyPattern(rb"(?:\b(?i:with|role|user|identified|encrypted|set)\b[^;]{0,80})\Z")


_BYTES_AFTER_NAME: Final = frozenset(bytes((byte,)) for byte in b"=:\"'`\\ \t\r\n>],(|?+!/\x1b")
"""Bytes that may follow the name of a value."""


class _Value(msgspec.Struct, frozen=True):
    """The value after a name."""

    begin: int
    end: int
    text: bytes
    quoted: bool
    masked: bool = False
    """Whether masks were removed from the text: words around a secret are not random."""


def _candidate_values(data: bytes, place: int, letters: LazyPattern) -> Iterator[_Value]:
    """Yield the possible values at a position, longest first.

    `letters` matches an unquoted value.
    """
    opened = _OPENING_QUOTE.match(data, place)
    if opened is not None:
        quote = opened[1]
        begin = opened.end()
        end = data.find(quote, begin, begin + _MAX_VALUE)
        if end == -1:
            # Cut off: take the rest of the line.
            bare = letters.match(data, begin)
            if bare:
                yield _Value(begin, bare.end(), bare[0], quoted=True)
            return
        text = data[begin:end]
        if text and b"\n" not in text:
            yield _Value(begin, end, text, quoted=True)
        return
    line = _LINE_VALUE.match(data, place) if letters is _BARE_VALUE else None
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


def _without_masks(value: _Value) -> _Value:
    """Return a value without masks, because their characters would affect its classification.

    The text is empty if it starts with a mask.
    """
    if not has_mask(value.text):
        return value
    text = b"" if find_mask_end(value.text, 0) else remove_masks(value.text)
    return msgspec.structs.replace(value, text=text, masked=True)


def _match_name(data: bytes, place: int) -> SecretMatch | None:
    """Examine the word of a name at a position."""
    reversed_before = _NAME_LETTERS.match(data[max(0, place - _NAME_BEFORE) : place][::-1])
    begin = place - (reversed_before.end() if reversed_before else 0)
    if place - begin >= _NAME_BEFORE:
        # The run is too long for a name.
        return None
    if data[begin - 1 : begin] == b"\\" and begin < place and data[begin : begin + 1] in b"nrtbf":
        # The letter of an escape sequence, as in `\nPASSWORD=`.
        begin += 1
    if data[place : place + len(b"api key")].lower() == b"api key":
        # `API key`, in a sentence.
        return _match_value(data, place, place + len(b"api key"), SecretName("secret", loud=False))
    rest_of_name = _NAME_LETTERS.match(data, place, place + _NAME_BEHIND)
    end = rest_of_name.end() if rest_of_name else place
    if end - place >= _NAME_BEHIND:
        return None
    while begin < place and data[begin : begin + 1] in (b".", b"-"):
        begin += 1
    if data[end - 1 : end] in (b".", b"-") or data[end : end + 1] not in _BYTES_AFTER_NAME:
        return None
    name = classify_name(data[begin:end])
    return _match_value(data, begin, end, name) if name.kind else None


def _match_value(data: bytes, begin: int, end: int, name: SecretName) -> SecretMatch | None:
    """Examine the text after a name."""
    joint = _NAME_VALUE_JOINT.match(data, end)
    if joint is None:
        return None
    for value in _candidate_values(data, joint.end(), _TAG_VALUE if joint["tag"] else _BARE_VALUE):
        if _is_secret(data, begin, joint, name, _without_masks(value)):
            break
    else:
        return None
    value_end = value.end
    if rest := _VALUE_REST.match(data, value_end):
        # Only after a secret is found: otherwise long runs would take quadratic time.
        value_end = rest.end()
    if name.loud and _BEFORE_LINE.search(data[max(0, begin - _LINE_BEFORE) : begin]):
        # The rest of a line in a file of variables, unless it is another variable.
        line_rest = _LINE_VALUE.match(data, value_end)
        if (
            line_rest
            and b"=" not in line_rest[0]
            and not line_rest[0].startswith((b"&&", b"|", b";", b",", b")", b"<"))
        ):
            value_end = line_rest.end()
    return SecretMatch(((value.begin, value_end),), value_end, _family_id(data[begin:end], joint, name, value))


def _family_id(text: bytes, joint: re.Match[bytes], name: SecretName, value: _Value) -> str:
    """Return the ID of the family named in the receipt."""
    if name.kind == "password":
        return "env-password" if name.loud and joint["sign"] == b"=" else "password"
    lower_name = text.lower()
    if b"secret" in lower_name and b"access" in lower_name and len(value.text) == _AWS_SECRET:
        return "aws-secret-key"
    return "named-secret"


def _is_secret(data: bytes, begin: int, joint: re.Match[bytes], name: SecretName, value: _Value) -> bool:
    text = value.text
    if value.quoted and is_scrambled(text) and not (value.masked and BLANK.search(text)):
        return True
    if is_placeholder(text):
        return False
    if not value.quoted:
        if _CODE_AFTER.match(data, value.end):
            return False
        text = text.rstrip(b".:")
    is_strong = _is_strong(text, value, name)
    kind = joint.lastgroup
    if kind == "sign" and name.phrase and value.quoted:
        return is_strong or text.count(b" ") > 1 or is_password(text, quoted=True)
    if kind == "space":
        return _is_secret_next_word(data, begin, joint, name, value, strong=is_strong)
    if kind == "is":
        return is_strong or (name.kind == "password" and is_password(text, quoted=value.quoted))
    if kind == "comma":
        return is_strong or (joint["closed"] is not None and _is_weak(text, name, value))
    if kind == "tag" and (data[begin - 1 : begin] != b"<" or data[value.end : value.end + 1] != b"<"):
        return False
    return is_strong or _is_weak(text, name, value) or _is_variable_value(data, begin, joint, name, value)


def _is_strong(text: bytes, value: _Value, name: SecretName) -> bool:
    """Return whether a value was generated randomly."""
    if BLANK.search(text):
        return False
    if _UUID.match(text):
        return name.kind in ("password", "secret") and not name.session
    if _HEX.match(text):
        return len(set(text)) >= _MIN_DISTINCT
    if name.kind == "key":
        return len(text) >= _MIN_KEY and is_random(text)
    if len(text) >= _AWS_SECRET and text.startswith(b"/"):
        # One in 64 base64 keys begins like a path.
        text = text[1:]
    return is_random(text) or (value.quoted and is_scrambled(text))


def _is_weak(text: bytes, name: SecretName, value: _Value) -> bool:
    """Return whether a value is a password chosen by a person."""
    if name.kind == "password":
        return is_password(text, quoted=value.quoted) and not _is_code(text, value)
    if name.kind == "secret" and len(text) >= _MIN_SECRET:
        is_mixed = _SIGN.search(text) is not None and DIGIT.search(text) is not None
        return is_mixed and is_password(text, quoted=value.quoted)
    return False


_SIGN: Final = LazyPattern(rb"[!#$%^*?+~@]")
_MIN_DISTINCT: Final = 6
_MIN_KEY: Final = 16
_MIN_SECRET: Final = 8
_MIN_WORD: Final = 4
_MIN_NEXT_WORD: Final = 3
"""Minimum length of a password where only a password can occur."""
_MIN_IN_SENTENCE: Final = 12
_VARIABLE: Final = LazyPattern(
    rb"(?:[a-z]{1,3}|[A-Za-z_]*(?:pass|pw|secret|token|key|cred|auth|hash|salt)[A-Za-z_]*)[0-9]{0,3}\Z", re.IGNORECASE
)


def _is_code(text: bytes, value: _Value) -> bool:
    return not value.quoted and _VARIABLE.match(text) is not None


def _is_variable_value(data: bytes, begin: int, joint: re.Match[bytes], name: SecretName, value: _Value) -> bool:
    """Return whether the value of a variable or option is secret; words are accepted as well."""
    if joint["sign"] != b"=" or joint.end() - joint.start() > 1:
        return False
    if name.loud and name.kind == "secret" and is_password(value.text, quoted=value.quoted):
        return not _is_code(value.text, value)
    if name.kind != "password" or not (name.loud or data[begin - 2 : begin] == b"--"):
        return False
    return len(value.text) >= _MIN_WORD and not value.text.startswith(b"/")


def _is_secret_next_word(
    data: bytes, begin: int, joint: re.Match[bytes], name: SecretName, value: _Value, *, strong: bool
) -> bool:
    """Return whether the next word of a command, a .netrc file or an SQL statement is secret."""
    if joint.end() == joint.start() or joint["closed"] or joint["subscript"]:
        return False
    preceding = data[max(0, begin - 160) : begin]
    if _SET_BEFORE.search(preceding):
        return not value.text.startswith(b"-") and (
            strong or (preceding.endswith(b"-") and _is_option_value(data, name, value))
        )
    is_certain = name.kind == "password" and (
        _LOGIN.search(text_after_masks(preceding)) is not None
        or _NETRC_ENTRY.search(data[max(0, begin - _NETRC_BEFORE) : begin]) is not None
        or (value.quoted and _SQL_BEFORE.search(preceding) is not None)
        or data.startswith((b"requirepass ", b"masterauth "), begin)
    )
    if is_certain:
        return len(value.text) >= _MIN_NEXT_WORD
    return strong and (value.quoted or len(value.text) >= _MIN_IN_SENTENCE)


def _is_option_value(data: bytes, name: SecretName, value: _Value) -> bool:
    """Return whether the word after an option such as `--password` is its value."""
    text = value.text
    if name.kind == "key" or text.startswith((b"/", b"./", b"~")):
        return False
    return not _IS_WORD.match(text) or (name.kind == "password" and _is_option_password(data, value))


_IS_WORD: Final = LazyPattern(rb"[a-z]{1,12}(?:[-_][a-z]{1,12}){0,3}\Z|[A-Z_]{1,40}\Z")


def _is_option_password(data: bytes, value: _Value) -> bool:
    """Return whether a word of letters only after `--password` is a password."""
    rest = data[value.end : value.end + 2]
    if value.text.lower() in _SENTENCE_WORDS:
        return False
    return len(value.text) >= _MIN_WORD and (
        value.quoted or rest[:1] in (b" ", b"", b"\n", b'"', b"'") or rest == b"\\n"
    )


_SENTENCE_WORDS: Final = frozenset(
    b"option options flag flags argument arguments parameter parameters instead with from when which that "
    b"this then prompt file files value values command should must will cannot were have using only "
    b"also into does needs switch stdin".split()
)
"""Words that follow an option name in a sentence."""


_LONG_NEEDLES: Final = (
    b"assword asswd asswort assphrase asscode senha contrasena requirepass masterauth pwd Pwd PWD ASSWORD ASSWD ASSPHRASE ecret "
    b"ECRET api_key API_KEY apiKey ApiKey api-key API-KEY Api-Key apikey APIKEY Apikey "
    b"ccess_key ACCESS_KEY redential REDENTIAL essionid= ESSID= ESSIONID= "
    b"mnemonic essionid\" essionid'".split()
)
_SHORT_NEEDLES: Final = b"oken OKEN _key _KEY -key -Key -KEY Key pass Pass PASS _pw _PW auth AUTH salt Salt SALT jwt JWT psk creds CREDS _PAT".split()
_BYTES_AFTER_SHORT: Final = (b"=", b":", b"\n", b"\r", b'"', b"'", b"\\", b" ", b"]", b">", b"`")
_PROSE_WORDS: Final = frozenset(
    (b"pass", b"Pass", b"auth", b"_key", b"Key", b"salt", b"psk", b"-key", b"-Key", b"creds")
)
"""Words that occur in prose, so a space after them proves nothing."""

_NEEDLES: Final = (
    *_LONG_NEEDLES,
    *(
        word + follow
        for word in _SHORT_NEEDLES
        for follow in _BYTES_AFTER_SHORT
        if not (word in _PROSE_WORDS and follow == b" ")
    ),
    *(word + b" =" for word in sorted(_PROSE_WORDS)),
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


NAMED_FAMILIES: Final = (
    SecretFamily(
        "named-secret",
        "keys, tokens and secrets in named fields",
        tuple(dict.fromkeys(_NEEDLES)),
        _match_name,
        tuple(b"assw ASSW ecret ECRET oken OKEN api_k API_K apiK".split()),
    ),
    # Found by the same needles.
    SecretFamily("password", "passwords in named fields", (), _match_name),
    SecretFamily("env-password", "passwords in environment variables", (), _match_name),
    SecretFamily("aws-secret-key", "AWS secret keys", (), _match_name),
)
