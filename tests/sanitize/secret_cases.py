"""Made-up secrets in the shapes that vendors use, in the places where people leave them.

Everything is drawn from a seed, so that a failure can be repeated. No secret is a real one.
"""

import base64
import hashlib
import json
import string
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
B64 = ALNUM + "+/"
LOWER = string.ascii_lowercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
DIGITS = "123456789"
PASSWORD = ALNUM + "!#%+*?"

Draw = Callable[[str, int], str]


class Case(NamedTuple):
    """A text, and what of it must not be shown."""

    name: str
    text: str
    secrets: tuple[str, ...]


def drawing(seed: str) -> Draw:
    """Return what draws letters, the same ones for the same seed."""
    numbers = count()

    def draw(letters: str, length: int) -> str:
        lot = hashlib.shake_256(f"{seed} {next(numbers)}".encode()).digest(2 * length)
        pairs = zip(lot[::2], lot[1::2], strict=True)
        return "".join(letters[(high << 8 | low) % len(letters)] for high, low in pairs)

    return draw


def _uuid(draw: Draw) -> str:
    return "-".join(draw(HEX, length) for length in (8, 4, 4, 4, 12))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _jwt(draw: Draw) -> str:
    header = _b64('{"alg":"HS256","typ":"JWT"}').rstrip("=")
    payload = _b64(json.dumps({"sub": draw(DIGITS, 10), "name": "ada", "iat": 1516239022}))
    return f"{header}.{payload.rstrip('=')}.{draw(URL, 43)}"


def _password(draw: Draw) -> str:
    """Return a password as a person makes one up: a word, digits and a sign."""
    words = ("Summer", "falcon", "Monkey", "hunter", "Winter", "dragon", "Coffee", "berlin")
    word = words[int(draw("01234567", 1))]
    return f"{word}{draw(DIGITS, 3)}{draw('!#*?+', 1)}"


TOKENS: dict[str, Callable[[Draw], str]] = {
    "anthropic api": lambda d: f"sk-ant-api03-{d(URL, 93)}AA",
    "anthropic admin": lambda d: f"sk-ant-admin01-{d(URL, 93)}AA",
    "anthropic oauth": lambda d: f"sk-ant-oat01-{d(URL, 93)}AA",
    "openai legacy": lambda d: f"sk-{d(ALNUM, 20)}T3BlbkFJ{d(ALNUM, 20)}",
    "openai project": lambda d: f"sk-proj-{d(URL, 74)}T3BlbkFJ{d(URL, 74)}",
    "openai service": lambda d: f"sk-svcacct-{d(URL, 58)}T3BlbkFJ{d(URL, 58)}",
    "openai admin": lambda d: f"sk-admin-{d(URL, 58)}T3BlbkFJ{d(URL, 58)}",
    "openrouter": lambda d: f"sk-or-v1-{d(HEX, 64)}",
    "deepseek": lambda d: f"sk-{d(HEX, 32)}",
    "xai": lambda d: f"xai-{d(ALNUM, 80)}",
    "replicate": lambda d: f"r8_{d(ALNUM, 37)}",
    "perplexity": lambda d: f"pplx-{d(ALNUM, 48)}",
    "tavily": lambda d: f"tvly-{d(ALNUM, 32)}",
    "tavily dev": lambda d: f"tvly-dev-{d(ALNUM, 32)}",
    "huggingface": lambda d: f"hf_{d(string.ascii_letters, 34)}",
    "groq": lambda d: f"gsk_{d(ALNUM, 52)}",
    "fireworks": lambda d: f"fw_{d(ALNUM, 22)}",
    "cerebras": lambda d: f"csk-{d(LOWER, 48)}",
    "together": lambda d: f"tgp_v1_{d(URL, 43)}",
    "nvidia": lambda d: f"nvapi-{d(URL, 64)}",
    "langsmith": lambda d: f"lsv2_pt_{d(HEX, 32)}_{d(HEX, 10)}",
    "jina": lambda d: f"jina_{d(HEX, 32)}{d(URL, 28)}",
    "elevenlabs": lambda d: f"sk_{d(HEX, 48)}",
    "firecrawl": lambda d: f"fc-{d(HEX, 32)}",
    "e2b": lambda d: f"e2b_{d(HEX, 40)}",
    "modal id": lambda d: f"ak-{d(ALNUM, 22)}",
    "modal secret": lambda d: f"as-{d(ALNUM, 22)}",
    "runpod": lambda d: f"rpa_{d(UPPER, 40)}{d(LOWER, 6)}",
    "brave": lambda d: f"BSA{d(URL, 28)}",
    "pinecone": lambda d: f"pcsk_{d(ALNUM, 6)}_{d(ALNUM, 63)}",
    "github pat": lambda d: f"ghp_{d(ALNUM, 36)}",
    "github oauth": lambda d: f"gho_{d(ALNUM, 36)}",
    "github user": lambda d: f"ghu_{d(ALNUM, 36)}",
    "github server": lambda d: f"ghs_{d(ALNUM, 36)}",
    "github refresh": lambda d: f"ghr_{d(ALNUM, 76)}",
    "github fine": lambda d: f"github_pat_{d(ALNUM, 22)}_{d(ALNUM, 59)}",
    "gitlab pat": lambda d: f"glpat-{d(URL, 20)}",
    "gitlab routable": lambda d: f"glpat-{d(URL, 27)}.01.{d(LOWER, 9)}",
    "gitlab deploy": lambda d: f"gldt-{d(URL, 20)}",
    "gitlab runner": lambda d: f"glrt-{d(URL, 20)}",
    "gitlab registration": lambda d: f"GR1348941{d(URL, 20)}",
    "gitlab trigger": lambda d: f"glptt-{d(HEX, 40)}",
    "gitlab ci job": lambda d: f"glcbt-64_{d(URL, 20)}",
    "gitlab oauth secret": lambda d: f"gloas-{d(HEX, 64)}",
    "gitlab feed": lambda d: f"glft-{d(URL, 20)}",
    "gitlab agent": lambda d: f"glagent-{d(URL, 50)}",
    "gitlab mail": lambda d: f"glimt-{d(LOWER, 25)}",
    "bitbucket": lambda d: f"ATBB{d(ALNUM, 32)}",
    "bitbucket repo": lambda d: f"ATCTT3xFfGN0{d(URL, 160)}={d(UPPER, 8)}",
    "atlassian": lambda d: f"ATATT3xFfGF0{d(URL, 160)}={d(UPPER, 8)}",
    "npm": lambda d: f"npm_{d(ALNUM, 36)}",
    "pypi": lambda d: f"pypi-AgEIcHlwaS5vcmc{d(URL, 120)}",
    "rubygems": lambda d: f"rubygems_{d(HEX, 48)}",
    "nuget": lambda d: f"oy2{d(LOWER, 43)}",
    "docker": lambda d: f"dckr_pat_{d(URL, 27)}",
    "sourcegraph": lambda d: f"sgp_{d(HEX, 16)}_{d(HEX, 40)}",
    "sonar": lambda d: f"squ_{d(HEX, 40)}",
    "artifactory": lambda d: f"AKCp{d(ALNUM, 69)}",
    "buildkite": lambda d: f"bkua_{d(HEX, 40)}",
    "circleci": lambda d: f"CCIPAT_{d(ALNUM, 22)}_{d(HEX, 40)}",
    "aws id": lambda d: f"AKIA{d(BASE32, 16)}",
    "aws temporary id": lambda d: f"ASIA{d(BASE32, 16)}",
    "aws session": lambda d: f"IQoJb3JpZ2luX2Vj{d(B64, 300)}==",
    "bedrock": lambda d: f"ABSK{d(B64, 120)}=",
    "google api": lambda d: f"AIza{d(URL, 35)}",
    "google access": lambda d: f"ya29.a0{d(URL, 160)}",
    "google refresh": lambda d: f"1//0{d(DIGITS, 1)}{d(URL, 60)}",
    "google client secret": lambda d: f"GOCSPX-{d(URL, 28)}",
    "digitalocean": lambda d: f"dop_v1_{d(HEX, 64)}",
    "cloudflare user": lambda d: f"cfut_{d(ALNUM, 48)}",
    "cloudflare account": lambda d: f"cfat_{d(ALNUM, 48)}",
    "cloudflare origin": lambda d: f"v1.0-{d(HEX, 24)}-{d(HEX, 146)}",
    "vercel": lambda d: f"vcp_{d(ALNUM, 56)}",
    "vercel blob": lambda d: f"vercel_blob_rw_{d(ALNUM, 16)}_{d(ALNUM, 30)}",
    "netlify": lambda d: f"nfp_{d(ALNUM, 36)}",
    "heroku": lambda d: f"HRKU-AA{d(URL, 58)}",
    "fly": lambda d: f"fo1_{d(URL, 43)}",
    "fly macaroon": lambda d: f"fm2_{d(B64, 200)}",
    "render": lambda d: f"rnd_{d(ALNUM, 28)}",
    "alibaba": lambda d: f"LTAI{d(ALNUM, 20)}",
    "openshift": lambda d: f"sha256~{d(URL, 43)}",
    "supabase": lambda d: f"sbp_{d(HEX, 40)}",
    "supabase secret": lambda d: f"sb_secret_{d(URL, 31)}",
    "planetscale token": lambda d: f"pscale_tkn_{d(URL, 43)}",
    "planetscale password": lambda d: f"pscale_pw_{d(URL, 43)}",
    "cockroach": lambda d: f"CCDB1_{d(ALNUM, 22)}_{d(ALNUM, 40)}",
    "dbt": lambda d: f"dbtc_{d(ALNUM, 40)}",
    "neon": lambda d: f"napi_{d(LOWER, 64)}",
    "neon password": lambda d: f"npg_{d(ALNUM, 12)}",
    "doppler": lambda d: f"dp.pt.{d(ALNUM, 43)}",
    "doppler service": lambda d: f"dp.st.dev.{d(ALNUM, 40)}",
    "databricks": lambda d: f"dapi{d(HEX, 32)}",
    "vault": lambda d: f"hvs.{d(URL, 91)}",
    "vault batch": lambda d: f"hvb.{d(URL, 140)}",
    "terraform": lambda d: f"{d(ALNUM, 14)}.atlasv1.{d(URL, 67)}",
    "pulumi": lambda d: f"pul-{d(HEX, 40)}",
    "tailscale": lambda d: f"tskey-auth-k{d(ALNUM, 11)}CNTRL-{d(ALNUM, 32)}",
    "prefect": lambda d: f"pnu_{d(ALNUM, 36)}",
    "1password service": lambda d: f"ops_eyJ{d(B64, 300)}",
    "1password key": lambda d: f"A3-{d(UPPER, 6)}-{d(UPPER, 6)}-" + "-".join(d(UPPER, 5) for _ in range(4)),
    "stripe": lambda d: f"sk_live_{d(ALNUM, 24)}",
    "stripe long": lambda d: f"sk_test_51{d(ALNUM, 97)}",
    "stripe restricted": lambda d: f"rk_live_{d(ALNUM, 24)}",
    "stripe webhook": lambda d: f"whsec_{d(ALNUM, 32)}",
    "square": lambda d: f"sq0atp-{d(URL, 22)}",
    "square secret": lambda d: f"sq0csp-{d(URL, 43)}",
    "square access": lambda d: f"EAAA{d(URL, 60)}",
    "shopify": lambda d: f"shpat_{d(HEX, 32)}",
    "shopify secret": lambda d: f"shpss_{d(HEX, 32)}",
    "easypost": lambda d: f"EZAK{d(ALNUM, 54)}",
    "plaid": lambda d: f"access-production-{_uuid(d)}",
    "sendgrid": lambda d: f"SG.{d(URL, 22)}.{d(URL, 43)}",
    "mailgun": lambda d: f"key-{d(HEX, 32)}",
    "mailchimp": lambda d: f"{d(HEX, 32)}-us{d('123456789', 1)}",
    "brevo": lambda d: f"xkeysib-{d(HEX, 64)}-{d(ALNUM, 16)}",
    "resend": lambda d: f"re_{d(ALNUM, 8)}_{d(ALNUM, 24)}",
    "mailersend": lambda d: f"mlsn.{d(HEX, 64)}",
    "twilio": lambda d: f"SK{d(HEX, 32)}",
    "slack bot": lambda d: f"xoxb-{d(DIGITS, 12)}-{d(DIGITS, 13)}-{d(ALNUM, 24)}",
    "slack user": lambda d: f"xoxp-{d(DIGITS, 12)}-{d(DIGITS, 12)}-{d(DIGITS, 12)}-{d(HEX, 32)}",
    "slack app": lambda d: f"xapp-1-A{d(UPPER, 10)}-{d(DIGITS, 13)}-{d(HEX, 64)}",
    "slack refresh": lambda d: f"xoxe-1-{d(ALNUM, 146)}",
    "telegram": lambda d: f"{d(DIGITS, 10)}:AA{d(URL, 33)}",
    "discord": lambda d: f"{_b64(d(DIGITS, 18))}.G{d(URL, 5)}.{d(URL, 38)}",
    "facebook": lambda d: f"EAAC{d(ALNUM, 180)}",
    "linear": lambda d: f"lin_api_{d(ALNUM, 40)}",
    "notion": lambda d: f"ntn_{d(DIGITS, 11)}{d(ALNUM, 35)}",
    "notion legacy": lambda d: f"secret_{d(ALNUM, 43)}",
    "figma": lambda d: f"figd_{d(URL, 40)}",
    "asana": lambda d: f"1/{d(DIGITS, 16)}:{d(HEX, 32)}",
    "airtable": lambda d: f"patX{d(ALNUM, 13)}.{d(HEX, 64)}",
    "contentful": lambda d: f"CFPAT-{d(URL, 43)}",
    "typeform": lambda d: f"tfp_{d(URL, 44)}_{d(ALNUM, 14)}",
    "hubspot": lambda d: f"pat-na1-{_uuid(d)}",
    "postman": lambda d: f"PMAK-{d(HEX, 24)}-{d(HEX, 34)}",
    "trello": lambda d: f"ATTA{d(HEX, 72)}",
    "dropbox": lambda d: f"sl.B{d(URL, 136)}",
    "grafana": lambda d: f"glsa_{d(ALNUM, 32)}_{d(HEX, 8)}",
    "grafana cloud": lambda d: f"glc_{_b64(json.dumps({'o': d(DIGITS, 6), 'k': d(ALNUM, 24)}))}",
    "sentry org": lambda d: f"sntrys_{_b64(json.dumps({'iat': 1700000000.1, 'url': 'x'}))}_{d(B64, 43)}",
    "sentry user": lambda d: f"sntryu_{d(HEX, 64)}",
    "newrelic": lambda d: f"NRAK-{d(UPPER, 27)}",
    "newrelic insert": lambda d: f"NRII-{d(URL, 32)}",
    "dynatrace": lambda d: f"dt0c01.{d(UPPER, 24)}.{d(UPPER, 64)}",
    "posthog": lambda d: f"phx_{d(ALNUM, 43)}",
    "launchdarkly": lambda d: f"sdk-{_uuid(d)}",
    "mapbox": lambda d: f"sk.eyJ{d(ALNUM, 70)}.{d(URL, 22)}",
    "ngrok": lambda d: f"ak_2{d(ALNUM, 26)}",
    "azure client secret": lambda d: f"{d(ALNUM, 3)}8Q~{d(ALNUM, 34)}",
    "voyage": lambda d: f"pa-{d(URL, 43)}",
    "apify": lambda d: f"apify_api_{d(ALNUM, 36)}",
    "langfuse": lambda d: f"sk-lf-{_uuid(d)}",
    "wandb": lambda d: f"wandb_v1_{d(ALNUM, 60)}",
    "crates": lambda d: f"cio{d(ALNUM, 32)}",
    "clojars": lambda d: f"CLOJARS_{d(HEX, 60)}",
    "hex": lambda d: f"hex_{d(ALNUM, 40)}",
    "codecov": lambda d: f"codecov_{d(ALNUM, 36)}",
    "snyk": lambda d: f"snyk_uat.{d(HEX, 8)}.{d(URL, 60)}",
    "scaleway": lambda d: f"SCW{d(UPPER, 17)}",
    "tencent": lambda d: f"AKID{d(ALNUM, 32)}",
    "yandex": lambda d: f"AQVN{d(URL, 36)}",
    "ibm": lambda d: f"ApiKey-{_uuid(d)}",
    "infracost": lambda d: f"ico-{d(ALNUM, 32)}",
    "upstash": lambda d: f"A{d(ALNUM, 3)}AAIjcD{d(ALNUM, 44)}",
    "mongodb": lambda d: f"mdb_sa_sk_{d(URL, 40)}",
    "clickhouse": lambda d: f"4b1d{d(ALNUM, 38)}",
    "shippo": lambda d: f"shippo_live_{d(HEX, 40)}",
    "paddle": lambda d: f"pdl_live_apikey_{d(LOWER, 26)}_{d(ALNUM, 22)}_{d(ALNUM, 3)}",
    "flutterwave": lambda d: f"FLWSECK_TEST-{d(HEX, 32)}-X",
    "razorpay": lambda d: f"rzp_live_{d(ALNUM, 14)}",
    "braintree": lambda d: f"access_token$production${d(LOWER, 16)}${d(HEX, 32)}",
    "mandrill": lambda d: f"md-{d(ALNUM, 22)}",
    "intercom": lambda d: f"dG9rO{d(B64, 54)}=",
    "x bearer": lambda d: f"{'A' * 22}{d(ALNUM, 80)}",
    "matrix": lambda d: f"syt_{d(ALNUM, 12)}_{d(ALNUM, 20)}_{d(ALNUM, 6)}",
    "readme": lambda d: f"rdme_{d(LOWER, 70)}",
    "seed phrase": lambda d: f"mnemonic: {' '.join(d('abcdefgh', 5) for _ in range(12))}",
    "okta header": lambda d: f"SSWS 00{d(URL, 40)}",
    "workos": lambda d: f"sk_{d(ALNUM, 46)}",
    "calcom": lambda d: f"cal_live_{d(HEX, 32)}",
    "honeycomb": lambda d: f"hcaik_{d(LOWER, 58)}",
    "logfire": lambda d: f"pylf_v1_us_{d(ALNUM, 43)}",
    "axiom": lambda d: f"xaat-{_uuid(d)}",
    "statsig": lambda d: f"secret-{d(ALNUM, 43)}",
    "trigger": lambda d: f"tr_prod_{d(ALNUM, 20)}",
    "duffel": lambda d: f"duffel_live_{d(URL, 43)}",
    "frameio": lambda d: f"fio-u-{d(URL, 64)}",
    "adobe": lambda d: f"p8e-{d(URL, 32)}",
    "maxmind": lambda d: f"{d(ALNUM, 6)}_{d(ALNUM, 29)}_mmk",
    "azure openai": lambda d: f"{d(ALNUM, 52)}JQQJ99{d(ALNUM, 26)}",
    "nostr": lambda d: f"nsec1{d(LOWER, 58)}",
    "wallet": lambda d: f"xprv9s21ZrQH143K{d(ALNUM, 95)}",
    "jwt": _jwt,
    "age": lambda d: f"AGE-SECRET-KEY-1{d(UPPER, 58)}",
    "minisign": lambda d: f"RWRTY0Iy{d(B64, 204)}",
    "password hash": lambda d: f"$2b$12${d(ALNUM, 53)}",
    "shadow": lambda d: f"$6${d(ALNUM, 16)}${d(ALNUM, 86)}",
}
"""Tokens that are known wherever they stand."""

AROUND_TOKENS = (
    "{}",
    "export SERVICE={}",
    "  File \"app/client.py\", line 41, in connect\n    raise AuthError('rejected {}')",
    '{{"user": "ada", "value": "{}", "ok": true}}',
    "value: {}\nother: 1",
    "const client = new Client('{}', {{ retries: 3 }});",
    "2026-11-15T10:20:31Z ERROR request with {} failed after 31 ms",
    "$ tool login {}\nLogged in as ada.",
    "I put {} in the settings, is that right?",
    "https://api.example.org/v1/items?limit=5&x={}&page=2",
)

NAMES: dict[str, Callable[[Draw], str]] = {
    "COHERE_API_KEY": lambda d: d(ALNUM, 40),
    "MISTRAL_API_KEY": lambda d: d(ALNUM, 32),
    "AZURE_OPENAI_API_KEY": lambda d: d(HEX, 32),
    "DATADOG_API_KEY": lambda d: d(HEX, 32),
    "DD_APP_KEY": lambda d: d(HEX, 40),
    "ALGOLIA_ADMIN_KEY": lambda d: d(HEX, 32),
    "ALGOLIA_WRITE_API_KEY": lambda d: d(HEX, 32),
    "SEGMENT_WRITE_KEY": lambda d: d(ALNUM, 32),
    "ASSEMBLYAI_API_KEY": lambda d: d(HEX, 32),
    "DEEPGRAM_API_KEY": lambda d: d(HEX, 40),
    "SERPAPI_API_KEY": lambda d: d(HEX, 64),
    "EXA_API_KEY": _uuid,
    "WEAVIATE_API_KEY": lambda d: d(ALNUM, 36),
    "QDRANT_API_KEY": lambda d: d(URL, 54),
    "UPSTASH_REDIS_REST_TOKEN": lambda d: d(B64, 60),
    "TURSO_AUTH_TOKEN": _jwt,
    "RAILWAY_TOKEN": _uuid,
    "HEROKU_API_KEY": _uuid,
    "POSTMARK_SERVER_TOKEN": _uuid,
    "LINODE_TOKEN": lambda d: d(HEX, 64),
    "HCLOUD_TOKEN": lambda d: d(ALNUM, 64),
    "CLOUDFLARE_API_TOKEN": lambda d: d(URL, 40),
    "CLOUDFLARE_GLOBAL_API_KEY": lambda d: d(HEX, 37),
    "FASTLY_API_TOKEN": lambda d: d(URL, 32),
    "OKTA_API_TOKEN": lambda d: f"00{d(URL, 40)}",
    "AUTH0_CLIENT_SECRET": lambda d: d(URL, 64),
    "CLERK_SECRET_KEY": lambda d: f"sk_test_{d(ALNUM, 42)}",
    "TWILIO_AUTH_TOKEN": lambda d: d(HEX, 32),
    "MAILGUN_API_KEY": lambda d: f"{d(HEX, 32)}-{d(HEX, 8)}-{d(HEX, 8)}",
    "PAGERDUTY_TOKEN": lambda d: d(URL, 20),
    "OPSGENIE_API_KEY": _uuid,
    "BOX_CLIENT_SECRET": lambda d: d(ALNUM, 32),
    "SNOWFLAKE_PASSWORD": _password,
    "AWS_SECRET_ACCESS_KEY": lambda d: d(B64, 40),
    "AWS_SESSION_TOKEN": lambda d: d(B64, 200),
    "RAILS_MASTER_KEY": lambda d: d(HEX, 32),
    "SECRET_KEY_BASE": lambda d: d(HEX, 128),
    "DJANGO_SECRET_KEY": lambda d: d(LOWER + "!@#%^&*(-_=+)", 50),
    "APP_SECRET": lambda d: d(HEX, 32),
    "APP_KEY": lambda d: f"base64:{d(B64, 43)}=",
    "NEXTAUTH_SECRET": lambda d: f"{d(B64, 43)}=",
    "JWT_SECRET": lambda d: d(ALNUM, 32),
    "SESSION_SECRET": lambda d: d(LOWER, 40),
    "FLASK_SECRET_KEY": lambda d: d(HEX, 48),
    "ENCRYPTION_KEY": lambda d: d(HEX, 64),
    "POSTGRES_PASSWORD": _password,
    "DB_PASSWORD": lambda d: d(PASSWORD, 16),
    "REDIS_PASSWORD": lambda d: d(ALNUM, 24),
    "SMTP_PASS": _password,
    "TF_VAR_db_password": _password,
    "ansible_become_pass": _password,
    "spring.datasource.password": _password,
    "client_secret": lambda d: d(ALNUM, 32),
    "private_token": lambda d: d(ALNUM, 20),
    "apiToken": lambda d: d(LOWER, 32),
    "sessionToken": lambda d: d(BASE32, 32),
    "signing_key": lambda d: d(B64, 44),
    "WEBHOOK_SECRET": lambda d: d(HEX, 40),
}
"""Secrets without a prefix, by the names that vendors and frameworks document."""

AROUND_NAMES = (
    "{name}={value}",
    "export {name}={value}",
    'export {name}="{value}"',
    "{name}: {value}",
    '{name}: "{value}"',
    '{{"{name}": "{value}", "region": "eu"}}',
    "{name} = '{value}'",
    "os.environ['{name}'] = '{value}'",
    "docker run -e {name}={value} -p 8080:80 image:latest",
    "      - name: {name}\n        value: {value}",
    "HOME=/root\n{name}={value}\nLANG=C.UTF-8",
    "config.set('{name}', '{value}')",
    "[app]\n{name} = {value}\ndebug = false",
)


def _pem(d: Draw, kind: str = "RSA PRIVATE KEY") -> str:
    body = "\n".join(d(B64, 64) for _ in range(8))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


PLACES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("cookie header", lambda s: f"GET / HTTP/1.1\nCookie: lang=en; sid={s}\nAccept: */*"),
    ("set-cookie", lambda s: f"< Set-Cookie: sessionid={s}; Path=/; HttpOnly; Secure"),
    ("cookie json", lambda s: json.dumps({"headers": {"cookie": f"_sess={s}; a=1"}})),
    ("cookie jar", lambda s: f"#HttpOnly_.x.org\tTRUE\t/\tTRUE\t1795689600\tsession\t{s}"),
    ("curl cookie", lambda s: f"curl -s -b 'session={s}' https://x.org/me"),
    ("curl cookie long", lambda s: f'curl --cookie "JSESSIONID={s}" https://x.org'),
    ("netrc", lambda s: f"machine api.x.org login ada password {s}"),
    ("netrc lines", lambda s: f"machine api.x.org\n  login ada\n  password {s}\n"),
    ("pgpass", lambda s: f"db.internal:5432:app:ada:{s}"),
    ("pgpass star", lambda s: f"*:*:*:postgres:{s}"),
    ("curl user", lambda s: f"curl -u ada:{s} https://x.org/api"),
    ("curl user quoted", lambda s: f"curl -fsS --user 'ada:{s}' https://x.org/api"),
    ("curl lines", lambda s: f"curl -X POST \\\n  -u ada:{s} \\\n  https://x.org"),
    ("mysql", lambda s: f"mysql -h db -u root -p{s} app"),
    ("mysqldump", lambda s: f"mysqldump --single-transaction -uroot -p'{s}' app > a.sql"),
    ("password option", lambda s: f"tool connect --password {s} --host db"),
    ("password option equals", lambda s: f"tool connect --password={s} --host db"),
    ("token option", lambda s: f"sentry-cli --auth-token {s} releases list"),
    ("sshpass", lambda s: f"sshpass -p {s} ssh root@10.0.0.5 uptime"),
    ("sshpass quoted", lambda s: f"sshpass -p '{s}' scp a.txt root@10.0.0.5:"),
    ("redis-cli", lambda s: f"redis-cli -h cache -a {s} ping"),
    ("pgpassword", lambda s: f"PGPASSWORD={s} psql -h db -U app"),
    ("mongo", lambda s: f"mongosh -u admin -p {s} --authenticationDatabase admin"),
    ("docker login", lambda s: f"docker login -u ada -p {s} registry.x.org"),
    ("ldapsearch", lambda s: f"ldapsearch -x -D cn=admin,dc=x -w {s} -b dc=x"),
    ("htpasswd", lambda s: f"htpasswd -bc /etc/nginx/.htpasswd ada {s}"),
    ("openssl", lambda s: f"openssl rsa -in k.pem -passin pass:{s} -out o.pem"),
    ("unzip", lambda s: f"unzip -P {s} backup.zip -d out"),
    ("7z", lambda s: f"7z x -p{s} backup.7z"),
    ("net use", lambda s: f"net use Z: \\\\srv\\share {s} /user:corp\\ada"),
    ("wget", lambda s: f"wget --user=ada --password={s} https://x.org/f"),
    ("httpie", lambda s: f"http -a ada:{s} GET https://x.org/me"),
    ("az login", lambda s: f"az login --service-principal -u app -p {s} --tenant t"),
    ("aws configure", lambda s: f"aws configure set aws_secret_access_key {s}"),
    ("keytool", lambda s: f"keytool -list -keystore k.jks -storepass {s}"),
    ("smbclient", lambda s: f"smbclient //srv/share -U ada%{s} -c ls"),
    ("lftp", lambda s: f"lftp -u ada,{s} ftp.x.org"),
    ("sudo", lambda s: f"echo {s} | sudo -S apt-get update"),
    ("login stdin", lambda s: f"echo '{s}' | docker login -u ada --password-stdin"),
    ("from-literal", lambda s: f"kubectl create secret generic db --from-literal=pw={s}"),
    ("sqlcmd", lambda s: f"sqlcmd -S db -U sa -P {s} -Q 'select 1'"),
    ("ssh-keygen", lambda s: f"ssh-keygen -t ed25519 -N {s} -f key"),
    ("gpg", lambda s: f"gpg --batch --passphrase {s} -d f.gpg"),
    ("postgres url", lambda s: f"psql postgresql://ada:{s}@db.internal:5432/app"),
    ("mysql url", lambda s: f"DATABASE_URL=mysql://ada:{s}@db/app?ssl=1"),
    ("mongo url", lambda s: f"mongodb+srv://ada:{s}@c0.ab1.mongodb.net/app"),
    ("redis url", lambda s: f"REDIS_URL=redis://:{s}@cache:6379/0"),
    ("amqp url", lambda s: f'broker = "amqps://app:{s}@mq.x.org/vhost"'),
    ("smtp url", lambda s: f"smtp://mailer:{s}@smtp.x.org:587"),
    ("git url", lambda s: f"git clone https://ada:{s}@git.x.org/a/b.git"),
    ("jdbc", lambda s: f"jdbc:sqlserver://db:1433;databaseName=a;user=sa;password={s};"),
    ("jdbc query", lambda s: f"jdbc:postgresql://db/app?user=ada&password={s}&ssl=true"),
    ("ado", lambda s: f"Server=db;Database=app;User Id=sa;Password={s};Encrypt=true"),
    ("odbc", lambda s: f"Driver={{SQL Server}};Server=db;Uid=sa;Pwd={s};"),
    ("libpq", lambda s: f"host=db port=5432 user=ada password={s} dbname=app"),
    ("laravel", lambda s: f"DB_CONNECTION=mysql\nDB_PASSWORD={s}\nDB_PORT=3306"),
    ("wordpress", lambda s: f"define( 'DB_PASSWORD', '{s}' );"),
    ("wordpress tight", lambda s: f"define('DB_PASSWORD','{s}');"),
    ("yaml", lambda s: f"database:\n  user: ada\n  password: {s}\n  port: 5432"),
    ("toml", lambda s: f'[db]\nuser = "ada"\npassword = "{s}"'),
    ("xml", lambda s: f"<server><id>x</id><password>{s}</password></server>"),
    ("xml attributes", lambda s: f'<property name="password" value="{s}"/>'),
    ("nuget config", lambda s: f'<add key="ClearTextPassword" value="{s}" />'),
    ("python call", lambda s: f"conn = connect(host='db', user='ada', password='{s}')"),
    ("js object", lambda s: f"const c = {{ user: 'ada', password: '{s}' }};"),
    ("go", lambda s: f'cfg := Config{{User: "ada", Password: "{s}"}}'),
    ("ruby", lambda s: f"password => '{s}', host => 'db'"),
    ("terraform", lambda s: f'variable "db_password" {{\n  default = "{s}"\n}}'),
    ("tfvars", lambda s: f'db_password = "{s}"'),
    ("sql", lambda s: f"CREATE USER ada IDENTIFIED BY '{s}';"),
    ("sql postgres", lambda s: f"ALTER ROLE ada WITH PASSWORD '{s}';"),
    ("redis conf", lambda s: f"bind 0.0.0.0\nrequirepass {s}\n"),
    ("k8s json", lambda s: json.dumps({"name": "DB_PASSWORD", "value": s})),
    ("docker inspect", lambda s: json.dumps({"Env": [f"MYSQL_ROOT_PASSWORD={s}", "A=b"]})),
    ("sentence", lambda s: f"the password is {s} and the user is ada"),
    ("query", lambda s: f"GET /login?user=ada&password={s}&next=/ HTTP/1.1"),
    ("powershell", lambda s: f'$env:DB_PASSWORD = "{s}"'),
    ("properties", lambda s: f"spring.datasource.username=sa\nspring.datasource.password={s}"),
)
"""Places of a password that a person made up or a program drew."""

STRONG: tuple[tuple[str, Callable[[Draw], tuple[str, str]]], ...] = (
    ("bearer", lambda d: (s := d(URL, 40), f"curl -H 'Authorization: Bearer {s}' https://x.org")),
    ("basic", lambda d: (s := _b64(f"ada:{d(ALNUM, 12)}"), f"Authorization: Basic {s}")),
    ("token header", lambda d: (s := d(HEX, 40), f"Authorization: Token {s}")),
    ("raw header", lambda d: (s := d(ALNUM, 40), f'headers = {{"Authorization": "{s}"}}')),
    (
        "digest",
        lambda d: (
            s := d(HEX, 32),
            f'Authorization: Digest username="a", realm="r", nonce="n1", uri="/", response="{s}"',
        ),
    ),
    ("proxy", lambda d: (s := _b64(f"ada:{d(ALNUM, 9)}"), f"Proxy-Authorization: Basic {s}")),
    ("bearer alone", lambda d: (s := d(URL, 48), f'"auth": "Bearer {s}"')),
    ("x-api-key", lambda d: (s := d(ALNUM, 32), f"curl https://x.org -H 'x-api-key: {s}'")),
    ("api-key header", lambda d: (s := d(HEX, 32), f"> api-key: {s}")),
    ("subscription", lambda d: (s := d(HEX, 32), f"Ocp-Apim-Subscription-Key: {s}")),
    ("private token", lambda d: (s := d(ALNUM, 20), f'curl --header "PRIVATE-TOKEN: {s}" https://g.org')),
    (
        "slack webhook",
        lambda d: (s := f"T{d(UPPER, 8)}/B{d(UPPER, 10)}/{d(ALNUM, 24)}", f"https://hooks.slack.com/services/{s}"),
    ),
    ("discord webhook", lambda d: (s := d(URL, 68), f"https://discord.com/api/webhooks/{d(DIGITS, 18)}/{s}")),
    (
        "teams webhook",
        lambda d: (
            s := d(HEX, 32),
            f"https://x.webhook.office.com/webhookb2/{_uuid(d)}@{_uuid(d)}/IncomingWebhook/{s}/{_uuid(d)}",
        ),
    ),
    ("telegram url", lambda d: (s := f"AA{d(URL, 33)}", f"curl https://api.telegram.org/bot{d(DIGITS, 10)}:{s}/getMe")),
    ("zapier", lambda d: (s := d(LOWER, 7), f"https://hooks.zapier.com/hooks/catch/{d(DIGITS, 8)}/{s}/")),
    (
        "azure storage",
        lambda d: (
            s := f"{d(B64, 86)}==",
            f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s};EndpointSuffix=core.windows.net",
        ),
    ),
    (
        "service bus",
        lambda d: (
            s := f"{d(B64, 43)}=",
            f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={s}",
        ),
    ),
    (
        "event hub",
        lambda d: (
            s := f"{d(B64, 43)}=",
            f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=s;SharedAccessKey={s};EntityPath=e",
        ),
    ),
    (
        "azure sas",
        lambda d: (
            s := f"{d(ALNUM, 43)}%3D",
            f"https://a.blob.core.windows.net/c/f?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig={s}",
        ),
    ),
    (
        "aws presigned",
        lambda d: (
            s := d(HEX, 64),
            f"https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=60&X-Amz-Signature={s}",
        ),
    ),
    (
        "gcs presigned",
        lambda d: (
            s := d(HEX, 512),
            f"https://storage.googleapis.com/b/k?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Signature={s}",
        ),
    ),
    (
        "service account",
        lambda d: (
            s := d(B64, 64),
            json.dumps(
                {
                    "type": "service_account",
                    "private_key": f"-----BEGIN PRIVATE KEY-----\n{s}\n{d(B64, 64)}\n-----END PRIVATE KEY-----\n",
                }
            ),
        ),
    ),
    ("rsa key", lambda d: _keyed(d, "RSA PRIVATE KEY")),
    ("ec key", lambda d: _keyed(d, "EC PRIVATE KEY")),
    ("pkcs8", lambda d: _keyed(d, "PRIVATE KEY")),
    ("encrypted key", lambda d: _keyed(d, "ENCRYPTED PRIVATE KEY")),
    ("openssh", lambda d: _keyed(d, "OPENSSH PRIVATE KEY")),
    ("pgp", lambda d: _keyed(d, "PGP PRIVATE KEY BLOCK")),
    ("dsa", lambda d: _keyed(d, "DSA PRIVATE KEY")),
    (
        "putty",
        lambda d: (
            s := d(B64, 64),
            f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPublic-Lines: 2\nAAAA\nPrivate-Lines: 1\n{s}\nPrivate-MAC: 00",
        ),
    ),
    ("ansible vault", lambda d: (s := d(HEX, 80), f"$ANSIBLE_VAULT;1.1;AES256\n{s}\n{d(HEX, 80)}\n")),
    ("cut key", lambda d: (s := d(B64, 64), f"-----BEGIN RSA PRIVATE KEY-----\n{s}\n{d(B64, 64)}")),
    ("npmrc", lambda d: (s := _uuid(d), f"//registry.x.org/:_authToken={s}")),
    ("npmrc auth", lambda d: (s := _b64(f"ada:{d(ALNUM, 14)}"), f"_auth={s}")),
    ("docker config", lambda d: (s := _b64(f"ada:{d(ALNUM, 14)}"), json.dumps({"auths": {"x.org": {"auth": s}}}))),
    ("kubeconfig", lambda d: (s := d(B64, 200), f"users:\n- name: a\n  user:\n    client-key-data: {s}\n")),
    (
        "wordpress salt",
        lambda d: (
            s := d(ALNUM + "!@#$%^&*()-_[]{}<>~+=,.;:/?|", 64).replace("<", "a"),
            f"define('AUTH_KEY',         '{s}');",
        ),
    ),
    ("aws pair", lambda d: (s := d(ALNUM, 39) + "/", f"ada,AKIA{d(BASE32, 16)},{s}")),
    (
        "aws file",
        lambda d: (
            s := d(B64, 40),
            f"[default]\naws_access_key_id = AKIA{d(BASE32, 16)}\naws_secret_access_key = {s}\n",
        ),
    ),
    ("jwk", lambda d: (s := d(URL, 43), json.dumps({"kty": "EC", "crv": "P-256", "x": "AA", "d": s}))),
    ("shadow", lambda d: (s := f"$6${d(ALNUM, 16)}${d(ALNUM, 86)}", f"ada:{s}:19000:0:99999:7:::")),
    ("htpasswd file", lambda d: (s := f"$apr1${d(ALNUM, 8)}${d(ALNUM, 22)}", f"ada:{s}")),
    ("git token url", lambda d: (s := d(HEX, 40), f"git remote add o https://{s}@git.x.org/a.git")),
    ("wireguard", lambda d: (s := f"{d(B64, 43)}=", f"[Interface]\nPrivateKey = {s}\nAddress = 10.0.0.2/32")),
    ("ngrok", lambda d: (s := d(ALNUM, 43), f"ngrok config add-authtoken {s}")),
    ("oracle", lambda d: (s := d(ALNUM, 12), f"jdbc:oracle:thin:scott/{s}@//db:1521/app")),
    ("smtp login", lambda d: (s := _password(d), f'smtp.login("ada", "{s}")')),
    ("basic auth", lambda d: (s := _password(d), f"requests.get(url, auth=('ada', '{s}'))")),
    ("vault login", lambda d: (s := d(ALNUM, 26), f"vault login {s}")),
)
"""Secrets with the text that says what they are: the secret and the whole."""


def _keyed(draw: Draw, kind: str) -> tuple[str, str]:
    pem = _pem(draw, kind)
    return pem.split("\n")[3], pem


def _pair(value: tuple[str, ...]) -> tuple[str, str]:
    return value[0], value[1]


def cases(seed: str) -> Iterator[Case]:
    """Yield every shape of a secret, each in one of the places where such a secret is found."""
    draw = drawing(seed)
    for number, (name, make) in enumerate(TOKENS.items()):
        token = make(draw)
        around = AROUND_TOKENS[(number + len(seed)) % len(AROUND_TOKENS)]
        yield Case(name, around.format(token), (token[-12:], token))
    for number, (name, make) in enumerate(NAMES.items()):
        value = make(draw)
        around = AROUND_NAMES[(number + len(seed)) % len(AROUND_NAMES)]
        yield Case(name, around.format(name=name, value=value), (value,))
    for number, (name, write) in enumerate(PLACES):
        value = draw(ALNUM, 14) if (number + len(seed)) % 2 else _password(draw)
        if name == "aws configure":
            value = draw(B64, 40)
        yield Case(name, write(value), (value,))
    for name, write_whole in STRONG:
        secret, text = _pair(write_whole(draw))
        yield Case(name, text, (secret,))
