r"""What secrets look like: families of keys, tokens and passwords, each with an id.

A family is found by its needles, fixed letters that stand in every secret of it, which are looked
for at the speed of memory. Its pattern is tried only where a needle stands. Everything is bytes: of
a line of JSON, where a line end is `\n` and a quote `\"`, as well as of plain text.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

__all__ = ["FAMILIES", "Family", "is_random"]

_TAIL: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_.~+/=-]*)+")
"""What goes on behind a secret that was written for an address."""
_DISTINCT: Final = 6
_LETTERS: Final = 3
_LEAST: Final = 8
_LONG: Final = 20
"""Letters; so many drawn by lot have a digit among them, or are no word at all."""
_CHANGES: Final = 0.3
"""Of two letters beside each other in words, fewer are of different kinds."""
_DIGIT: Final = re.compile(rb"[0-9]")
_KINDS: Final = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+")
_LOWER: Final = re.compile(rb"[a-z]")
_UPPER: Final = re.compile(rb"[A-Z]")
_BACK: Final = 40
_STEM: Final = 4


class Family(msgspec.Struct, frozen=True):
    """Secrets of one kind."""

    id: str
    says: str
    needles: tuple[bytes, ...]
    """Letters that stand at the beginning of every secret of it, or of the name before it."""
    pattern: bytes
    """Fits from the needle on; its group `secret`, where it has one, is all that is masked."""
    fits: Callable[[bytes], bool] | None = None
    """What a secret has to be beside."""
    alone: bool = True
    """Whether no letter or digit may stand before it."""
    stems: tuple[bytes, ...] = ()
    """Letters by which it is found in disguise; as few as will do, because each costs time."""

    def at(self, data: bytes, place: int) -> tuple[int, int] | None:
        """Return where the secret is whose needle stands at a place, if it is one."""
        pattern = _compiled(self.pattern)
        found = pattern.match(data, place)
        if found is None or (self.alone and not _begins(data, place)):
            return None
        group = "secret" if "secret" in pattern.groupindex else 0
        if self.fits is not None and not self.fits(found[group]):
            return None
        more = _TAIL.match(data, found.end(group))
        return found.start(group), more.end() if more else found.end(group)


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Return a pattern, ready: of most families no needle is ever found."""
    return re.compile(pattern)


def _begins(data: bytes, place: int) -> bool:
    """Say whether a word begins at a place."""
    before = data[place - 1 : place]
    if not before.isalnum() and before != b"_":
        return True
    if before in (b"n", b"r", b"t", b"b", b"f", b"v") and data[place - 2 : place - 1] == b"\\":
        return True
    return _CONTROL.search(data, max(0, place - _BACK), place) is not None


_CONTROL: Final = re.compile(rb"(?:\[[0-9;]{0,12}m|\\u00[01][0-9a-fA-F]|\\x[01][0-9a-fA-F])\Z")


def is_varied(secret: bytes) -> bool:
    """Say whether a text is more than a stand-in of words, or of one letter over and over."""
    mixed = _LOWER.search(secret) is not None and _UPPER.search(secret) is not None
    return len(set(secret[-20:])) >= _DISTINCT and (mixed or _DIGIT.search(secret) is not None)


def is_random(value: bytes) -> bool:
    """Say whether somebody drew a text by lot, rather than made it up of words.

    >>> is_random(b"Xk9mQ2vL8"), is_random(b"passwordField2"), is_random(b"2026-11-15T10:20Z")
    (True, False, False)
    """
    kinds = _KINDS.findall(value)
    letters = sum(len(kind) for kind in kinds if not kind.isdigit())
    return (
        len(value) >= _LEAST
        and letters >= _LETTERS
        and is_varied(value)
        and (_DIGIT.search(value) is not None or len(value) >= _LONG)
        and len(kinds) - 1 >= _CHANGES * (len(value) - 1)
        and not value.startswith((b"/", b"$"))
    )


def _of(  # a row of the table below
    name: str,
    says: str,
    needles: bytes,
    pattern: bytes,
    fits: Callable[[bytes], bool] | None = is_varied,
    *,
    alone: bool = True,
    stems: bytes = b"",
) -> Family:
    found = tuple(needles.split())
    return Family(
        name,
        says,
        found,
        pattern,
        fits,
        alone,
        tuple(stems.split()) or tuple(dict.fromkeys(each[:_STEM] for each in found)),
    )


_IS: Final = rb"(?:\\{0,7}[\"'])?[ \t]{0,3}(?:=>|:=|=|:)[ \t]{0,3}(?:\\{0,7}[\"'`])?"
"""What stands between a name and its value, in code, settings, JSON and JSON inside of JSON."""
_VALUE: Final = rb"(?P<secret>[^\s\"'`\\,;&<>(){}\[\]|]{8,200}+)(?![(\[])"
_NAME: Final = rb"[A-Za-z0-9_-]{0,24}"


FAMILIES: Final = (
    _of("anthropic-key", "Anthropic keys", b"sk-", rb"sk-ant-[A-Za-z0-9_-]{20,}", stems=b"sk-"),
    _of(
        "openai-key",
        "OpenAI keys",
        b"sk-",
        rb"sk-(?!ant-)(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
        stems=b"sk-",
    ),
    _of(
        "github-token",
        "GitHub tokens",
        b"ghp_ gho_ ghu_ ghs_ ghr_",
        rb"gh[pousr]_[A-Za-z0-9]{30,255}",
    ),
    _of(
        "github-fine-grained",
        "GitHub tokens with chosen rights",
        b"github_pat_",
        rb"github_pat_[A-Za-z0-9_]{22,255}",
    ),
    _of(
        "gitlab-token",
        "GitLab tokens",
        b"glpat- gldt- glrt- glptt- glcbt- glsoat-",
        rb"gl(?:pat|dt|rt|ptt|cbt|soat)-[A-Za-z0-9_.-]{16,}",
        stems=b"glpa glrt",
    ),
    _of(
        "aws-access-key",
        "AWS access key ids",
        b"AKIA ASIA",
        rb"A(?:K|S)IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _of(
        "aws-secret-key",
        "AWS secret keys",
        b"ecret ECRET",
        rb"(?i:ecret_?access_?key)" + _IS + rb"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        is_varied,
        alone=False,
        stems=b"ecret",
    ),
    _of("google-api-key", "Google API keys", b"AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    _of(
        "google-oauth",
        "Google OAuth tokens and secrets",
        b"ya29. GOCSPX-",
        rb"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}",
    ),
    _of(
        "slack-token",
        "Slack tokens",
        b"xox xapp-",
        rb"x(?:ox[abeoprs]|app)-[A-Za-z0-9-]{16,}",
        stems=b"xox xapp",
    ),
    _of(
        "webhook",
        "addresses of webhooks, which are keys themselves",
        b"hooks.slack.com/services/ discord.com/api/webhooks/",
        rb"[a-z.]+/(?:services|api/webhooks)/(?P<secret>[A-Za-z0-9_/-]{20,})",
        alone=False,
        stems=b"hook",
    ),
    _of(
        "stripe-key",
        "Stripe keys",
        b"sk_live_ sk_test_ pk_live_ rk_live_ rk_test_ whsec_",
        rb"(?:[spr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,}",
        stems=b"k_li k_te whse",
    ),
    _of(
        "sendgrid-key",
        "SendGrid keys",
        b"SG.",
        rb"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    _of("npm-token", "npm tokens", b"npm_", rb"npm_[A-Za-z0-9]{30,}"),
    _of("pypi-token", "PyPI tokens", b"pypi-Ag", rb"pypi-Ag[A-Za-z0-9_-]{30,}"),
    _of("huggingface-token", "Hugging Face tokens", b"hf_", rb"hf_[A-Za-z0-9]{30,}"),
    _of(
        "digitalocean-token",
        "DigitalOcean tokens",
        b"dop_v1_ doo_v1_ dor_v1_",
        rb"do[opr]_v1_[a-f0-9]{32,}",
        stems=b"dop_",
    ),
    _of(
        "jwt",
        "JSON web tokens",
        b"eyJh eyJ0 eyJr eyJj",
        rb"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        stems=b"eyJ",
    ),
    _of(
        "private-key",
        "private keys",
        b"-----BEGIN",
        rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)(?:\\[^\n]|[^\"\\])){0,20000}"
        rb"(?:-----END [A-Z0-9 ]{0,40}-----)?",
        None,
        alone=False,
        stems=b"BEGIN",
    ),
    _of(
        "url-password",
        "passwords in addresses",
        b"://",
        rb"://[^\s/:@\"'\\<>]{0,64}:(?P<secret>(?!\$|\{|<|%[sd]|\*|x+@|pass(?:word)?@|pw@|token@)"
        rb"[^\s/:@\"'\\<>{}$]{3,128})@[A-Za-z0-9\[]",
        None,
        alone=False,
    ),
    _of(
        "bearer",
        "tokens in headers",
        b"uthorization UTHORIZATION",
        rb"(?i:uthorization)" + _IS + rb"(?:(?i:bearer|basic|token|digest)[ ]{1,3})?"
        rb"(?P<secret>[A-Za-z0-9._~+/=-]{12,})",
        alone=False,
        stems=b"uthor",
    ),
    _of(
        "password",
        "passwords by their names",
        b"assword asswd ASSWORD ASSWD assphrase ASSPHRASE",
        rb"(?i:assw(?:or)?d|assphrase)" + _NAME + _IS + _VALUE,
        is_random,
        alone=False,
        stems=b"assw ASSW",
    ),
    _of(
        "env-password",
        "passwords in variables of the environment",
        b"ASSWORD= ASSWD=",
        rb"ASSW(?:OR)?D=(?:\\{0,3}[\"'])?(?P<secret>[^\s\"'`\\$<>(){},;&|]{4,128})",
        None,
        alone=False,
        stems=b"ASSW",
    ),
    _of(
        "named-secret",
        "keys, tokens and secrets by their names",
        b'ecret ECRET oken= oken: oken" oken\\ OKEN= OKEN: OKEN" OKEN\\ api_key API_KEY apiKey '
        b"api-key API-KEY Api-Key apikey APIKEY ccess_key ACCESS_KEY",
        rb"(?i:ecret(?:[_-]?key)?|oken|api[_-]?key|ccess_key)" + _NAME + _IS + _VALUE,
        is_random,
        alone=False,
        stems=b"ecret ECRET oken OKEN api_k API_K apiK",
    ),
    _of(
        "azure-key",
        "Azure storage keys",
        b"AccountKey= SharedAccessKey=",
        rb"[A-Za-z]{10,20}=(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})",
        alone=False,
        stems=b"ntKe ssKe",
    ),
    _of(
        "shopify-token",
        "Shopify tokens",
        b"shpat_ shpca_ shppa_ shpss_",
        rb"shp[a-z]{2}_[a-f0-9]{32}",
        stems=b"shpa",
    ),
    _of("databricks-token", "Databricks tokens", b"dapi", rb"dapi[a-f0-9]{32}"),
    _of(
        "telegram-token",
        "Telegram bot tokens",
        b":AAE :AAF :AAG :AAH",
        rb":AA[A-Za-z0-9_-]{33}",
        alone=False,
        stems=b":AA",
    ),
    _of("vault-token", "Vault tokens", b"hvs. hvb.", rb"hv[sb]\.[A-Za-z0-9_-]{24,}", stems=b"hvs."),
    _of("docker-token", "Docker tokens", b"dckr_pat_", rb"dckr_pat_[A-Za-z0-9_-]{20,}"),
    _of("linear-key", "Linear keys", b"lin_api_", rb"lin_api_[A-Za-z0-9]{32,}"),
    _of("grafana-token", "Grafana tokens", b"glsa_ glc_", rb"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    _of("groq-key", "Groq keys", b"gsk_", rb"gsk_[A-Za-z0-9]{40,}"),
    _of(
        "sentry-token",
        "Sentry tokens",
        b"sntrys_ sntryu_",
        rb"sntry[su]_[A-Za-z0-9+/=_]{32,}",
        stems=b"sntr",
    ),
    _of("age-key", "age keys", b"AGE-SECRET-KEY-1", rb"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
)
"""Every family. The ids are stable: receipts and settings name them."""
