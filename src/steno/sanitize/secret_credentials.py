"""Detects credentials and personal data by syntax: URLs, headers, cookies, key files, home directories, email.

Each function examines the position of a needle and reads a bounded number of bytes around it, or returns how far it
read.
"""

import re
from base64 import b64decode
from typing import Final

from steno.sanitize.secret_family import (
    LazyPattern,
    SecretFamily,
    SecretMatch,
    Span,
    is_password,
    is_placeholder,
    is_random,
    is_varied,
    pattern_matcher,
    remove_masks,
    starts_word,
    text_after_masks,
    with_encoded_tail,
)

_MIN_TOKEN: Final = 16
_MIN_PASSWORD: Final = 3
_MIN_CREDENTIAL: Final = 8
_MIN_COOKIE: Final = 6
_PRINTED: Final = LazyPattern(rb"[ -~]*+")

# URLs

_USER: Final = LazyPattern(rb"://([^\s/?#\"'`\\<>|;,(){}$:@]{0,80}+)(:?)")
_HOST_MARK: Final = LazyPattern(rb"[^\s/\"'`\\<>|]{1,8192}+")
_EXAMPLE_PASSWORDS: Final = frozenset(
    b"pass password passwd pw pwd token secret user username x xx xxx xxxx pat key port 1234 12345 123456".split()
)
_DIGITS: Final = LazyPattern(rb"[0-9]{1,5}(?:[/?#]|\Z)")


def _match_address(data: bytes, place: int) -> SecretMatch | None:
    """Find the password of a URL: `scheme://user:password@host`."""
    user = _USER.match(data, place)
    if user is None:
        return None
    if not user[2]:
        # A token without a user before the host.
        is_token = data[user.end() : user.end() + 1] == b"@" and len(user[1]) >= _MIN_TOKEN
        if is_token and is_random(user[1]) and not is_placeholder(user[1]):
            return SecretMatch((user.span(1),), user.end())
        return None
    begin = user.end()
    rest = _HOST_MARK.match(data, begin)
    if rest is None:
        return None
    at = rest[0].rfind(b"@")
    while at > 0 and not rest[0][at + 1 : at + 2].isalnum() and rest[0][at + 1 : at + 2] != b"[":
        at = rest[0].rfind(b"@", 0, at)
    # Several URLs in one word, such as the members of a cluster.
    comma = rest[0].find(b",")
    if 0 <= comma < at and b"@" in rest[0][:comma]:
        at = rest[0].find(b"@")
    secret = rest[0][:at] if at > 0 else b""
    if len(secret) < _MIN_PASSWORD or _DIGITS.match(secret) or _is_example_password(secret):
        return None
    return SecretMatch(((begin, begin + at),), begin + at)


def _is_example_password(secret: bytes) -> bool:
    """Return whether a password in a URL is an example."""
    return (
        secret.lower() in _EXAMPLE_PASSWORDS
        or (secret[:1] in (b"$", b"{", b"<", b"*", b"[", b"%") and not re.match(rb"%[0-9A-Fa-f]{2}", secret))
        or len(set(secret)) == 1
        or b"{" in secret
        or b"$(" in secret
        or (not is_random(secret) and secret.lower().startswith((b"your", b"my-pass", b"mypass")))
    )


_SIGNED: Final = LazyPattern(rb"(?:sig|(?i:ignature))=(?P<secret>[A-Za-z0-9%+/=_~-]{16,1024}+)")


def _match_signature(data: bytes, place: int) -> SecretMatch | None:
    """Find the signature of a URL that grants access to everyone who has it."""
    match = _SIGNED.match(data, place)
    if match is None or (data[place : place + 1] == b"s" and data[place - 1 : place].isalnum()):
        return None
    fits = is_random(match["secret"]) and not is_placeholder(match["secret"])
    return with_encoded_tail(data, *match.span("secret")) if fits else None


_WEBHOOK: Final = (
    rb"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{10,24}/"
    rb"|webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/|hooks\.zapier\.com/hooks/catch/"
    rb"|maker\.ifttt\.com/trigger/[A-Za-z0-9_-]{1,64}/(?:json/)?with/key/|chat\.googleapis\.com/v1/spaces/[A-Za-z0-9_-]{4,32}/messages\?key="
    rb"|hc-ping\.com/|api\.telegram\.org/(?:file/)?bot|hooks\.workato\.com/|connect\.pabbly\.com/workflow/sendwebhookdata/"
    rb"|events\.pagerduty\.com/integration/|webhook\.site/|hook\.[a-z0-9]{2,6}\.make\.com/|oapi\.dingtalk\.com/robot/send\?access_token="
    rb"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|open\.feishu\.cn/open-apis/bot/v2/hook/)"
    rb"(?P<secret>[A-Za-z0-9_/@:%&=.-]{16,512}+)"
)


# Headers

_HEADER: Final = LazyPattern(
    rb"(?i:uthorization)(?:\\{0,7}[\"'])?(?:\]|\))?[ \t]{0,3}(?:=>|:=|=|:|,)[ \t]{0,3}(?:[fbr]?\\{0,7}[\"'`])?"
    rb"(?P<scheme>(?i:bearer|basic|token|digest|apikey|api-key|key|splunk|ssws|genie[k]ey|aws4-hmac-sha256|negotiate|bot|discogs|klaviyo-api-key|oauth|hawk|zoho-oauthtoken)[ =]{1,3})?"
)
_TOKEN: Final = LazyPattern(rb"[A-Za-z0-9._~+/=|:-]{6,8192}+")
_DIGEST: Final = LazyPattern(
    rb"(?:response|mac|oauth_signature|oauth_token|[Ss]ignature)=(?:\\{0,7}[\"'])?([A-Za-z0-9+/=%-]{16,512}+)"
)
_SCHEMES_OF_PARTS: Final = (b"digest", b"aws4", b"hawk", b"oauth")


def _match_header(data: bytes, place: int) -> SecretMatch | None:
    """Find the credential of an Authorization header."""
    head = _HEADER.match(data, place)
    if head is None:
        return None
    scheme = (head["scheme"] or b"").lower()
    if scheme.startswith(_SCHEMES_OF_PARTS):
        digests = _DIGEST.finditer(data, head.end(), head.end() + 2_000)
        spans = tuple(match.span(1) for match in digests)
        return SecretMatch(spans, spans[-1][1]) if spans else None
    token = _TOKEN.match(data, head.end())
    if token is None or is_placeholder(token[0]):
        return None
    if scheme.startswith(b"basic"):
        fits = len(token[0]) >= _MIN_CREDENTIAL and (_is_basic(token[0]) or is_varied(token[0]))
    elif scheme:
        fits = len(token[0]) >= _MIN_CREDENTIAL and is_varied(token[0]) and not _PLAIN_WORDS.fullmatch(token[0])
    else:
        fits = len(token[0]) >= _MIN_TOKEN and is_random(token[0])
    return with_encoded_tail(data, *token.span()) if fits else None


_PLAIN_WORDS: Final = LazyPattern(rb"[a-z]{1,16}(?:[._-][a-z]{1,16}){0,5}+|[A-Z_]{1,40}+")
_SCHEME: Final = LazyPattern(rb"(?:(?P<basic>asic)|earer)[ ]{1,2}(?P<secret>[A-Za-z0-9._~+/=|-]{12,8192}+)")


def _match_scheme(data: bytes, place: int) -> SecretMatch | None:
    """Find a credential after a separate `Bearer` or `Basic`."""
    match = _SCHEME.match(data, place)
    if match is None:
        return None
    token = match["secret"]
    fits = _is_basic(token) if match["basic"] else len(token) >= _MIN_TOKEN and is_random(token)
    if not fits or is_placeholder(token):
        return None
    return with_encoded_tail(data, *match.span("secret"))


def _is_basic(token: bytes) -> bool:
    """Return whether a token is base64 of a user name and a password."""
    try:
        text = b64decode(token[:256] + b"=" * (-len(token[:256]) % 4), validate=True)
    except ValueError:
        return False
    return b":" in text and _PRINTED.fullmatch(text) is not None


# Cookies

_COOKIE: Final = LazyPattern(rb"(?i:ookies?)(?:\\{0,7}[\"'])?[ \t]{0,3}(?:=>|=|:|,)[ \t]{0,3}(?:\\{0,7}[\"'`])?")
_COOKIES: Final = LazyPattern(
    rb"[A-Za-z0-9_.$!#%&'*+^`|~-]{1,80}+=[^\s;\"'`\\,<>]{0,4096}+(?:;[ ]{0,2}[^\s=;\"'`\\,<>]{1,80}+(?:=[^\s;\"'`\\,<>]{0,4096}+)?){0,60}+"
)
_ATTRIBUTES: Final = frozenset(
    b"path domain expires max-age samesite secure httponly version comment priority partitioned".split()
)


def _match_cookie(data: bytes, place: int) -> SecretMatch | None:
    """Find the values of the cookies in a header."""
    head = _COOKIE.match(data, place)
    match = _COOKIES.match(data, head.end()) if head else None
    if match is None:
        return None
    return SecretMatch(cookie_value_spans(match[0], match.start()), match.end())


def cookie_value_spans(cookies: bytes, place: int, *, is_certain: bool = False) -> tuple[Span, ...]:
    """Return the spans of all cookie values if one of them looks like a secret."""
    spans: list[Span] = []
    for pair in cookies.split(b";"):
        name, equals, value = pair.partition(b"=")
        if equals and value and name.strip().lower() not in _ATTRIBUTES and not is_placeholder(value):
            spans.append((place + len(name) + 1, place + len(pair)))
            is_certain = is_certain or _is_secret_cookie(name.strip().lower(), value)
        place += len(pair) + 1
    return tuple(spans) if is_certain else ()


def _is_secret_cookie(name: bytes, value: bytes) -> bool:
    session = any(word in name for word in (b"sess", b"sid", b"auth", b"token", b"csrf", b"jwt", b"login"))
    return is_random(value) or (session and len(value) >= _MIN_COOKIE and is_password(value, quoted=True))


_JAR: Final = LazyPattern(
    rb"(?:TRUE|FALSE)(?:\t|\\{1,7}t)/[^\s\\]{0,200}+(?:\t|\\{1,7}t)(?:TRUE|FALSE)(?:\t|\\{1,7}t)[0-9]{1,20}(?:\t|\\{1,7}t)"
    rb"[^\s\\]{1,100}+(?:\t|\\{1,7}t)(?P<secret>[^\s\\\"]{4,4096}+)"
)


# Key and password files

_PEM: Final = LazyPattern(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PEM_BODY: Final = LazyPattern(rb"(?:[A-Za-z0-9+/=:;,. \t\r\n()<>@*_%#$&|'-]|\\.|\"){0,20000}+")
_PEM_CUT: Final = LazyPattern(rb"(?:[A-Za-z0-9+/=\r\n]|\\{1,7}[nr]){40,20000}+")
_MAX_PEM: Final = 20_000
_BASE64: Final = LazyPattern(rb"[A-Za-z0-9+/=]{24}")
_PEM_END: Final = LazyPattern(rb"-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5}")


def _match_pem(data: bytes, place: int) -> SecretMatch | None:
    """Find a private key: up to its last line, or if cut off, up to the end of the base64."""
    head = _PEM.match(data, place)
    if head is None:
        return None
    # A fast search first: a text may contain many key headers and no end line.
    stop = data.find(b"END ", head.end(), head.end() + _MAX_PEM)
    if stop >= 0 and data.find(b"BEGIN ", head.end(), stop) >= 0:
        stop = -1
    body = _PEM_BODY.match(data, head.end(), stop) if stop >= 0 else None
    last = _PEM_END.search(data, stop - 6, stop + 60) if body and body.end() == stop else None
    if last is None:
        last = _PEM_CUT.match(data, head.end())
    if last is None or _BASE64.search(data, head.end(), last.start() + 80) is None:
        return SecretMatch((), head.end())
    return SecretMatch(((place, last.end()),), last.end())


_PUTTY: Final = LazyPattern(rb"Private-Lines: ?[0-9]{1,4}")
_PUTTY_BODY: Final = LazyPattern(rb"(?:[A-Za-z0-9+/=\r\n]|\\{1,7}[rn]){40,20000}+")
_VAULT: Final = LazyPattern(
    rb"\$ANSIBLE_VAULT;[0-9.]{1,8};AES(?:256)?(?:;[A-Za-z0-9_-]{1,40})?(?P<secret>(?:[0-9a-f \t\r\n]|\\{1,7}[rnt]){40,200000}+)"
)


def _match_putty(data: bytes, place: int) -> SecretMatch | None:
    """Find the private half of a PuTTY key."""
    head = _PUTTY.match(data, place)
    body = _PUTTY_BODY.match(data, head.end()) if head else None
    return SecretMatch((body.span(),), body.end()) if body else None


def _match_vault(data: bytes, place: int) -> SecretMatch | None:
    """Find the body of an encrypted Ansible file."""
    match = _VAULT.match(data, place)
    if match is None:
        return None
    begin, end = match.span("secret")
    return SecretMatch(((begin, begin + len(match["secret"].rstrip())),), end)


_PGPASS: Final = LazyPattern(
    rb"(?P<port>:(?:[0-9]{4,5}|\*):)(?P<db>[A-Za-z0-9_.*-]{1,63}):(?P<user>[A-Za-z0-9_.*@-]{1,63}):(?P<secret>[^\s\"'\\:][^\s\"'\\]{2,127})"
)
_HOST: Final = LazyPattern(rb"[A-Za-z0-9_.*-]{1,100}+")


def _match_pgpass(data: bytes, place: int) -> SecretMatch | None:
    """Find the password in a line of a .pgpass file: host, port, database, user and password."""
    match = _PGPASS.match(data, place)
    if match is None:
        return None
    host = _HOST.match(data[max(0, place - 100) : place][::-1])
    begin = place - (host.end() if host else 0)
    if host is None or data[begin - 1 : begin] in (b":", b"/", b"@"):
        return None
    if is_placeholder(match["secret"]) or match["secret"].isdigit():
        return None
    return SecretMatch((match.span("secret"),), match.end())


_HASH: Final = (
    rb"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{50,60}|(?:1|5|6|7|y|gy|apr1|sha1|md5)\$[^\s$:\"'\\]{1,40}(?:\$[^\s$:\"'\\]{1,40})?\$[./A-Za-z0-9]{20,128}+"
    rb"|argon2(?:id|i|d)\$[^\s\"'\\:]{30,300}+|pbkdf2[a-z0-9-]{0,10}\$[^\s\"'\\:]{30,300}+|scrypt\$[^\s\"'\\:]{30,300}+)"
)


# Connection strings

_AZURE: Final = (
    rb"(?:(?i:(?:shared)?(?:account|access)key)=|windows\.net(?:\\{0,7}[\"'])?[ =:,]{1,4}(?:\\{0,7}[\"'])?(?=[A-Za-z0-9+/]{86}==))"
    rb"(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})"
)
_ORACLE: Final = rb"thin:[A-Za-z0-9_$#]{1,30}/(?P<secret>[^\s@/\"'\\]{3,64})@"
_ADO: Final = LazyPattern(
    rb"(?i:;[ ]{0,2}(?:pwd|password)[ ]{0,2}=[ ]{0,2})(?P<secret>\{[^}\"\s]{2,128}\}|[^;\"'\s\\<>]{2,128})"
)
_FIELDS: Final = LazyPattern(rb"[^\"'\r\n\\]*+")
"""The fields of a connection string, which may be longer than the usual limit."""
_FIELDS_BEFORE: Final = 600
_WORDS_BEFORE: Final = 300
_FIELD_WORDS: Final = (b"server", b"data source", b"host", b"driver", b"jdbc:", b"uid=", b"user")
_JWK: Final = LazyPattern(
    rb"\\{0,7}\"(?:d|k|p|q|dp|dq|qi)\\{0,7}\"[ ]{0,2}:[ ]{0,2}\\{0,7}\"(?P<secret>[A-Za-z0-9_-]{22,1400}+)"
)
_KTY: Final = LazyPattern(rb"kty\\{0,7}\"[ ]{0,2}:[ ]{0,2}\\{0,7}\"(?:RSA|EC|OKP|oct)")


def _match_connection_string(data: bytes, place: int) -> SecretMatch | None:
    """Find the password in a connection string of ADO, ODBC or JDBC."""
    match = _ADO.match(data, place)
    if match is None or is_placeholder(match["secret"].strip(b"{}")):
        return None
    reversed_fields = _FIELDS.match(data[max(0, place - _FIELDS_BEFORE) : place][::-1])
    nearby = text_after_masks(data[max(0, place - _WORDS_BEFORE) : place]).lower()
    before_in_string = remove_masks(reversed_fields[0][::-1]).lower() if reversed_fields else b""
    if not any(word in nearby or word in before_in_string for word in _FIELD_WORDS):
        return None
    return SecretMatch((match.span("secret"),), match.end())


def _match_jwk(data: bytes, place: int) -> SecretMatch | None:
    """Find the private parts of a JSON web key."""
    if _KTY.match(data, place) is None:
        return None
    low, high = max(0, place - 1_000), place + 6_000
    start = data.rfind(b"{", low, place)
    stop = data.find(b"}", place, high)
    matches = _JWK.finditer(data, max(start, low), stop if stop >= 0 else high)
    spans = tuple(match.span("secret") for match in matches if is_varied(match["secret"]))
    return SecretMatch(spans, stop if stop >= 0 else high)


_AWS_SECRET_NEARBY: Final = LazyPattern(rb"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_ID: Final = LazyPattern(rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")


def _match_aws_secret(data: bytes, place: int) -> SecretMatch | None:
    """Find an AWS secret key near its access key ID, as in a table."""
    if not starts_word(data, place) or _AWS_ID.match(data, place) is None:
        return None
    for match in _AWS_SECRET_NEARBY.finditer(data, place + 20, place + 160):
        if is_random(match[0]) and not re.fullmatch(rb"[0-9a-f]{40}", match[0]):
            return SecretMatch((match.span(),), place + 20)
    return None


_LOGIN: Final = LazyPattern(
    rb"(?:ecureString(?:[ ]{1,3}-String)?[ (]{1,3}|(?:etworkCredential|asicAuth|igestAuth|asswordCredentials?|uthenticator|\.login|auth[ ]?=[ ]?|\.auth)"
    rb"\([ ]{0,3}(?:username[ ]?=[ ]?|user[ ]?=[ ]?)?(?:\\{0,7}[\"'][^\"'\\\n]{1,80}\\{0,7}[\"']|[A-Za-z_.]{1,40}),[ ]{0,3}(?:password[ ]?=[ ]?)?)"
    rb"(?P<quote>\\{0,7}[\"'])(?P<secret>[^\"'\\\n]{4,128})(?P=quote)"
)


def _match_login_call(data: bytes, place: int) -> SecretMatch | None:
    """Find a password passed to a login call in code after a user name."""
    match = _LOGIN.match(data, place)
    if match is None or is_placeholder(match["secret"]):
        return None
    app_password = re.fullmatch(rb"[a-z]{4}(?: [a-z]{4}){3}", match["secret"]) is not None
    if not app_password and not is_password(match["secret"], quoted=True):
        return None
    return SecretMatch((match.span("secret"),), match.end())


_IDENTIFIED: Final = LazyPattern(
    rb"(?i:dentified[ ]by|dentified[ ]with[ ][a-z0-9_]{1,40}[ ]by)[ ]{1,2}(?:(?i:password)[ ])?\\{0,7}[\"'](?P<secret>[^\"'\\\s]{3,128})"
)


def _match_sql_password(data: bytes, place: int) -> SecretMatch | None:
    """Find the password of a user in SQL."""
    match = _IDENTIFIED.match(data, place)
    if match is None or is_placeholder(match["secret"]):
        return None
    if not match[0][:8].isupper() and not is_password(match["secret"], quoted=True):
        return None
    return SecretMatch((match.span("secret"),), match.end())


# Home directories and email addresses

HOME_NEEDLES: Final = (b"/home/", b"/Users/", b"\\Users\\", b"-home-", b"-Users-", b"%2Fhome%2F", b"%2FUsers%2F")
EMAIL_NEEDLE: Final = b"@"
_USER_NAME: Final = rb"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})"
_HOME_PATH: Final = re.compile(rb"/(?:home|Users)/(?!(?:Shared|linuxbrew|runner|user)\b)" + _USER_NAME)
_UNPREFIXED_HOME: Final = re.compile(rb"(?<![A-Za-z0-9_.-])" + _HOME_PATH.pattern)
_ESCAPE_BEFORE: Final = re.compile(rb"(?:\\[nrtbf]|\\u00[01][0-9a-f]|m|/mnt/[a-z])\Z")
"""Text that may precede a home path without being part of it: the end of an escape sequence."""
_OTHER_HOME_FORMS: Final = (
    (b"\\", re.compile(rb"\\+Users\\+(?!(?:Public|Default)\b)" + _USER_NAME)),
    (b"-", re.compile(rb"-(?:home|Users)-(?P<name>[A-Za-z0-9]{1,32})(?=-|\b)")),
    (b"%", re.compile(rb"%2F(?:home|Users)%2F(?P<name>[A-Za-z0-9_]{1,64})")),
)
_DRIVE: Final = re.compile(rb"(?:[A-Za-z]:|/mnt/[a-z]|/[a-z])\Z")
_DOMAIN: Final = re.compile(rb"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}\b(?![(=])")
_IMPERSONAL_ADDRESS: Final = re.compile(
    rb"(?:(?:no-?reply|git|user|you|me|someone|name|email|foo|bar|test|hg|ssh|root|actions)@"
    rb"|[^@]{1,64}@(?:[a-z0-9-]+\.)*(?:example|test|invalid|localhost|local)(?:\.[a-z]{2,4})?\Z"
    rb"|[^@]{1,64}@users\.noreply\.)",
    re.IGNORECASE,
)
_FILE_EXTENSIONS: Final = frozenset(
    b"py js ts tsx jsx rs go sh md json yml yaml toml txt html css service timer so png svg".split()
)
"""File name extensions, as opposed to top-level domains."""
_MAX_LOCAL_PART: Final = 64
_MAILTO: Final = b"mailto:"


def match_home(data: bytes, place: int) -> tuple[int, int, bytes] | None:
    """Return the span of a home directory at a position, and its replacement."""
    home = _UNPREFIXED_HOME.match(data, place)
    if home is not None:
        # The most frequent form.
        return place, home.end(), b"~"
    first = data[place : place + 1]
    if first == b"/":
        home = _HOME_PATH.match(data, place)
        if home is None or not _ESCAPE_BEFORE.search(data[max(0, place - 6) : place]):
            # A directory named home inside another one, as in a web address.
            return None
        return place, home.end(), b"~"
    for first_byte, pattern in _OTHER_HOME_FORMS:
        if first == first_byte:
            match = pattern.match(data, place)
            if match is None:
                return None
            if first == b"\\":
                begin, end = match.span()
                while data[begin - 1 : begin] == first:
                    begin -= 1
                drive = _DRIVE.search(data, max(0, begin - 6), begin)
                return drive.start() if drive else begin, end, b"~"
            begin, end = match.span("name")
            return begin, end, b"user"
    return None


def match_email(data: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of the email address whose `@` is at a position."""
    domain = _DOMAIN.match(data, place)
    if domain is None or domain[0].rpartition(b".")[2].lower() in _FILE_EXTENSIONS:
        return None
    reversed_before = data[max(0, place - _MAX_LOCAL_PART) : place][::-1]
    local = _REVERSED_LOCAL_PART.match(reversed_before)
    if local is None:
        return None
    begin = place - local.end()
    if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in b"nrtbf":
        begin += 1
    is_mailto = data[max(0, begin - len(_MAILTO)) : begin].lower() == _MAILTO
    if begin >= place or (data[begin - 1 : begin] in (b":", b"/", b"@") and not is_mailto):
        # After a colon or slash it is the user of a URL.
        return None
    return None if _IMPERSONAL_ADDRESS.match(data[begin : domain.end()]) else (begin, domain.end())


_REVERSED_LOCAL_PART: Final = re.compile(rb"[A-Za-z0-9._%+-]*[A-Za-z0-9_%+-]")


def _split_needles(text: str) -> tuple[bytes, ...]:
    return tuple(needle.encode().replace(b"_SPACE_", b" ") for needle in text.split())


CREDENTIAL_FAMILIES: Final = (
    SecretFamily("url-password", "passwords in URLs", (b"://",), _match_address, (b"://",)),
    SecretFamily(
        "signed-url",
        "signatures of URLs that grant access",
        _split_needles("sig= ignature= IGNATURE="),
        _match_signature,
    ),
    SecretFamily(
        "webhook",
        "webhook URLs, which are secrets themselves",
        _split_needles(
            "hooks.slack.com/ discord.com/api/ discordapp.com/api/ webhook.office.com/ outlook.office.com/webhook/ "
            "hooks.zapier.com/ maker.ifttt.com/ chat.googleapis.com/ hc-ping.com/ api.telegram.org/ hooks.workato.com/ "
            "connect.pabbly.com/ events.pagerduty.com/ webhook.site/ oapi.dingtalk.com/ qyapi.weixin.qq.com/ "
            "open.feishu.cn/"
        ),
        pattern_matcher(_WEBHOOK, own_word=False),
        (b"hook",),
    ),
    SecretFamily(
        "bearer", "tokens in headers", _split_needles("uthorization UTHORIZATION"), _match_header, (b"uthor",)
    ),
    SecretFamily(
        "auth-scheme", "tokens after Bearer and Basic", _split_needles("earer_SPACE_ asic_SPACE_"), _match_scheme
    ),
    SecretFamily(
        "cookie",
        "cookie values",
        _split_needles(
            'ookie: ookie" ookie\' ookie= ookie\\ ookies: ookies" ookie_SPACE_= ookies_SPACE_= ookies= OOKIE= ookie:_SPACE_'
        ),
        _match_cookie,
        (b"ookie",),
    ),
    SecretFamily(
        "cookie-jar",
        "values in cookie files",
        (b"TRUE\t/", b"FALSE\t/", rb"TRUE\t/", rb"FALSE\t/", rb"TRUE\\t/", rb"FALSE\\t/"),
        pattern_matcher(_JAR.pattern, None, own_word=False),
    ),
    SecretFamily("private-key", "private keys", (b"---- BEGIN", b"-----BEGIN"), _match_pem, (b"BEGIN",)),
    SecretFamily("putty-key", "PuTTY private keys", (b"Private-Lines:",), _match_putty, (b"ivate-L",)),
    SecretFamily("ansible-vault", "files encrypted by Ansible", (b"$ANSIBLE_VAULT;",), _match_vault),
    SecretFamily(
        "pgpass",
        "passwords in .pgpass files",
        _split_needles(":5432: :5433: :5434: :5439: :6432: :6543: :26257: :*:"),
        _match_pgpass,
    ),
    SecretFamily(
        "password-hash",
        "password hashes",
        _split_needles("$2a$ $2b$ $2y$ $2x$ $1$ $5$ $6$ $7$ $y$ $gy$ $apr1$ $argon2 $pbkdf2 $scrypt$"),
        pattern_matcher(_HASH, own_word=False),
    ),
    SecretFamily(
        "azure-key",
        "Azure storage keys",
        _split_needles(
            "AccountKey= SharedAccessKey= accountkey= ACCOUNTKEY= AccessKey= windows.net_SPACE_ windows.net= windows.net:"
        ),
        pattern_matcher(_AZURE, own_word=False),
        _split_needles("ntKe ssKe"),
    ),
    SecretFamily(
        "connection-string",
        "passwords in connection strings",
        tuple(
            b";" + gap + word + equals
            for word in (b"Pwd", b"PWD", b"pwd", b"Password", b"password", b"PASSWORD")
            for gap in (b"", b" ")
            for equals in (b"=", b" =")
        ),
        _match_connection_string,
    ),
    SecretFamily(
        "oracle-password", "passwords in Oracle URLs", (b"thin:",), pattern_matcher(_ORACLE, None, own_word=False)
    ),
    SecretFamily("json-web-key", "private parts of JSON web keys", (b"kty",), _match_jwk),
    SecretFamily("aws-secret-near", "AWS secret keys near their IDs", (b"AKIA", b"ASIA"), _match_aws_secret),
    SecretFamily(
        "login-call",
        "passwords in login calls",
        _split_needles(
            "ecureString etworkCredential asicAuth( igestAuth( asswordCredential uthenticator( .login( .auth( auth=( auth_SPACE_=_SPACE_("
        ),
        _match_login_call,
    ),
    SecretFamily("sql-password", "passwords in SQL", _split_needles("DENTIFIED dentified"), _match_sql_password),
)
