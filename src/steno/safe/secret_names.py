"""What the name of a variable, setting or field says about its value: `DB_PASSWORD`, `api-key`."""

from functools import lru_cache
from typing import Final

import msgspec

from steno.safe.lazy_pattern import LazyPattern

__all__ = ["Name", "read_name"]

_PARTS: Final = LazyPattern(rb"[A-Z]{2,32}+(?![a-z])|[A-Z]?[a-z]{1,64}+|[A-Z]|[0-9]{1,32}+")


def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


class Name(msgspec.Struct, frozen=True):
    """What a name says about its value."""

    kind: str
    """`password`, `secret` or `key`; nothing for a name that says nothing."""
    loud: bool
    """Whether it is written like a variable of the environment."""
    phrase: bool = False
    """Whether its value may be several words."""
    session: bool = False
    """Whether it is the id of a session, which is often no secret."""


_PASSWORD: Final = _words_of(
    "password passwd pwd pass passphrase passcode passw psw pw storepass keypass requirepass masterauth "
    "psk wpapsk userpass dbpass passwort contrasena senha"
)
_SECRET: Final = _words_of(
    "secret secrets token apikey apitoken authtoken accesstoken jwt bearer credential credentials creds "
    "cred auth salt cookie otp totp mnemonic "
    "secretkey accesskey privatekey masterkey signingkey encryptionkey authkey appkey accountkey "
    "sharedkey authorization pepper pat"
)
_SESSION: Final = _words_of("sessionid sessid phpsessid jsessionid connectsid session sid")
_KEY: Final = frozenset(("key", "keys"))
_NO_KEY: Final = _words_of(
    "socket cache primary foreign public partition sort object s3 idempotency dedup group row map dict hash index "
    "unique lookup translation i18n websocket host fingerprint known query state record item file blob "
    "column registry node pub react sort order tree parent child storage hot press label locale field "
    "registry surrogate natural commit build restore deps lock turn chunk trace image content color "
    "source target entity resource module package event message keyboard feature flag metric tag "
    "answer cursor next start last first first data json yaml toml dir path project session user"
)
"""What a key may be of that opens nothing."""
_HARMLESS: Final = _words_of(
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
"""Last words of names whose values are about a secret, and are none."""
_FORMS: Final = _words_of(
    "data value values base64 b64 pem plain plaintext raw content clear prod dev"
)
"""Last words of names that say how the value before them is written."""
_NOT_PASS: Final = _words_of(
    "minipass compass bypass trespass surpass encompass overpass underpass"
)
_PUBLIC: Final = frozenset(("public", "pub", "publishable"))


@lru_cache(maxsize=4_096)
def read_name(name: bytes) -> Name:
    """Return what a name says about its value."""
    parts = [part.decode("latin-1").lower() for part in _PARTS.findall(name)]
    while parts and (parts[-1].isdigit() or (len(parts[-1]) == 1 and parts[-1] != "x")):
        parts.pop()
    if len(parts) > 1 and parts[-1] in _FORMS:
        parts.pop()
    if parts[-2:] == ["secret", "id"]:
        # The half of a login with Vault that is a secret.
        parts.pop()
    if not parts or parts[-1] in _HARMLESS or any(part in _PUBLIC for part in parts[:-1]):
        return _NOTHING
    kind = _kind_of(parts)
    last = parts[-1]
    phrase = last.endswith("phrase")
    return Name(kind, name.isupper(), phrase=phrase, session=last in _SESSION) if kind else _NOTHING


def _kind_of(parts: list[str]) -> str:
    """Return what the last words of a name say about its value."""
    last = parts[-1]
    before = parts[-2] if len(parts) > 1 else ""
    if _is_password_word(last):
        return "password"
    if last in _SECRET or last.endswith(("secret", "token", "apikey", "secretkey", "cookie")):
        return "secret"
    if last in _SESSION:
        return "key"
    if last in _KEY:
        if before in _KEYS_OF:
            return "secret"
        return "key" if before and before not in _NO_KEY else ""
    for part in reversed(parts):
        if part in _PASSWORD or part.endswith(("password", "passwd")):
            return "secret"
        if part in _SECRET or part.endswith(("secret", "token", "apikey")):
            return "key"
    return ""


def _is_password_word(word: str) -> bool:
    if word in _PASSWORD or word.endswith(("password", "passwd", "passphrase")):
        return True
    return word.endswith(("pass", "pwd")) and word not in _NOT_PASS


_KEYS_OF: Final = _words_of("api secret access private auth master app account signing")


_NOTHING: Final = Name("", loud=False)
