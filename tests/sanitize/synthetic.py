"""Made-up secrets of every family, and the ways in which they come disguised."""

import base64
import hashlib
import json
import string
from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import quote

_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "-_"
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits

Draw = Callable[[str, int], str]


def _pem(draw: Draw) -> str:
    body = "\n".join(draw(_ALNUM + "+/", 64) for _ in range(6))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


SECRETS: dict[str, Callable[[Draw], str]] = {
    "anthropic-key": lambda draw: f"sk-ant-api03-{draw(_URLSAFE, 93)}AA",
    "openai-key": lambda draw: f"sk-proj-{draw(_URLSAFE, 64)}",
    "github-token": lambda draw: f"gh{draw('pousr', 1)}_{draw(_ALNUM, 36)}",
    "github-fine-grained": lambda draw: f"github_pat_{draw(_ALNUM, 22)}_{draw(_ALNUM, 59)}",
    "gitlab-token": lambda draw: f"glpat-{draw(_URLSAFE, 20)}",
    "aws-access-key": lambda draw: f"AKIA{draw(_UPPER, 16)}",
    "aws-secret-key": lambda draw: f"aws_secret_access_key={draw(_ALNUM + '+/', 40)}",
    "google-api-key": lambda draw: f"AIza{draw(_URLSAFE, 35)}",
    "google-oauth": lambda draw: f"ya29.{draw(_URLSAFE, 60)}",
    "slack-token": lambda draw: f"xoxb-{draw('123456789', 12)}-{draw(_ALNUM, 24)}",
    "webhook": lambda draw: f"hooks.slack.com/services/T{draw(_UPPER, 8)}/B{draw(_UPPER, 8)}/{draw(_ALNUM, 24)}",
    "stripe-key": lambda draw: f"sk_live_{draw(_ALNUM, 24)}",
    "sendgrid-key": lambda draw: f"SG.{draw(_URLSAFE, 22)}.{draw(_URLSAFE, 43)}",
    "npm-token": lambda draw: f"npm_{draw(_ALNUM, 36)}",
    "pypi-token": lambda draw: f"pypi-AgEIcHlwaS5vcmc{draw(_URLSAFE, 100)}",
    "huggingface-token": lambda draw: f"hf_{draw(_ALNUM, 34)}",
    "digitalocean-token": lambda draw: f"dop_v1_{draw(_HEX, 64)}",
    "jwt": lambda draw: f"eyJhbGciOiJIUzI1NiJ9.eyJ{draw(_URLSAFE, 40)}.{draw(_URLSAFE, 43)}",
    "private-key": _pem,
    "url-password": lambda draw: f"postgres://ada:{draw(_ALNUM, 14)}@db.internal/app",
    "bearer": lambda draw: f"Authorization: Bearer {draw(_URLSAFE, 40)}",
    "password": lambda draw: f"password: {draw(_ALNUM, 18)}",
    "env-password": lambda draw: f"PGPASSWORD={draw(_ALNUM, 12)}",
    "named-secret": lambda draw: f"client_secret={draw(_ALNUM, 32)}",
    "azure-key": lambda draw: f"AccountKey={draw(_ALNUM + '+/', 86)}==",
    "shopify-token": lambda draw: f"shpat_{draw(_HEX, 32)}",
    "databricks-token": lambda draw: f"dapi{draw(_HEX, 32)}",
    "telegram-token": lambda draw: f"{draw('123456789', 10)}:AAF{draw(_URLSAFE, 32)}",
    "vault-token": lambda draw: f"hvs.{draw(_URLSAFE, 90)}",
    "docker-token": lambda draw: f"dckr_pat_{draw(_URLSAFE, 27)}",
    "linear-key": lambda draw: f"lin_api_{draw(_ALNUM, 40)}",
    "grafana-token": lambda draw: f"glsa_{draw(_ALNUM, 32)}_{draw(_HEX, 8)}",
    "groq-key": lambda draw: f"gsk_{draw(_ALNUM, 52)}",
    "sentry-token": lambda draw: f"sntrys_{draw(_ALNUM, 60)}",
    "age-key": lambda draw: f"AGE-SECRET-KEY-1{draw(_UPPER, 58)}",
}
"""One maker for each family."""


def secrets(seed: int, each: int) -> Iterator[tuple[str, str, str]]:
    """Yield so many secrets of every family: its id, the secret, the part of it drawn by lot."""
    drawn: list[str] = []
    lots = count()

    def draw(letters: str, length: int) -> str:
        lot = hashlib.shake_256(f"{seed} {next(lots)}".encode()).digest(length)
        drawn.append("".join(letters[each % len(letters)] for each in lot))
        return drawn[-1]

    for family, make in SECRETS.items():
        for _ in range(each):
            drawn.clear()
            secret = make(draw)
            yield family, secret, max(drawn, key=len)


def _split(secret: str) -> str:
    third = len(secret) // 3
    return f'"{secret[:third]}" + "{secret[third:-third]}"+"{secret[-third:]}"'


def _coloured(secret: str) -> str:
    half = len(secret) // 2
    return f"\x1b[1;31m{secret[:half]}\x1b[0m\x1b[32m{secret[half:]}\x1b[0m"


def _as_json(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def _in_file(secret: str) -> str:
    """Return a file that holds it as base64, where it begins anywhere in a group."""
    return base64.b64encode(f"# settings\nx: {secret}\n".encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: secret,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64url": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "hex": lambda secret: secret.encode().hex(),
    "url": lambda secret: quote(secret, safe=""),
    "json": lambda secret: json.dumps({"value": secret}),
    "json-escaped": _as_json,
    "json-twice": lambda secret: json.dumps(json.dumps({"v": _as_json(secret)})),
    "split": _split,
    "colour": _coloured,
    "data-url": lambda secret: f"data:text/plain;base64,{_in_file(secret)}",
    "html": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "percent": lambda secret: "".join(f"%{ord(letter):02X}" for letter in secret),
}
"""Every disguise; the words around it are put there by the test."""


def traces(secret: str, core: str, name: str) -> set[str]:
    """Return what must not be left of a secret: pieces of its core, as a disguise writes them."""
    hidden = ENCODINGS[name](secret)
    if name in ("base64", "base64url", "data-url"):
        at = secret.index(core)
        begin = hidden.index(",") + 1 + 18 if name == "data-url" else 0
        hidden = hidden[begin + (at + 4) * 4 // 3 : begin + (at + len(core) - 4) * 4 // 3]
    elif name in ("hex", "json-escaped", "html", "percent", "json-twice"):
        hidden = ENCODINGS["json-escaped" if name == "json-twice" else name](core)
    else:
        hidden = core
    size = 6 if hidden == core else 12
    if name == "json-twice":
        hidden = hidden.replace("\\u", "\\\\\\\\u")
        size = 18
    return {hidden[at : at + size] for at in range(len(hidden) - size + 1)}
