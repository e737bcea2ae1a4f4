"""Tokens that vendors give a fixed prefix, or another shape that nothing else has.

One row for each family: id, what it is, the prefixes, the letters that follow and the least number
of them. The lengths are a little below what vendors document, because tokens get cut off.
"""

import string
from collections.abc import Callable
from typing import Final

from steno.safe.family import Family, Match, begins_word, by_pattern, by_token, extended
from steno.safe.lazy_pattern import LazyPattern
from steno.safe.secret_values import is_random, is_varied

__all__ = ["TOKENS"]

_ALNUM: Final = rb"A-Za-z0-9"
_URL: Final = rb"A-Za-z0-9_-"
_B64: Final = rb"A-Za-z0-9+/=_-"
_HEX: Final = rb"a-fA-F0-9"
_DOTTED: Final = rb"A-Za-z0-9_.-"
_UPPER: Final = rb"A-Z0-9"
_STEM: Final = 4
_PUBLIC: Final = frozenset(
    (
        *("openai-key", "aws-access-key", "google-api-key", "sendgrid-key", "mailgun-key"),
        *("slack-token", "onepassword-key"),
    )
)
"""Families with a pattern whose needles are prefixes."""


def _token(
    name: str,
    says: str,
    needles: str,
    letters: bytes,
    least: int,
    *,
    strict: bool = False,
    stems: str = "",
) -> Family:
    texts = tuple(each.encode() for each in needles.split())
    # The needle that stands at a place is the longest that does.
    longest = sorted(texts, key=len, reverse=True)
    examine = by_token(letters, least, strict=strict)

    def at(data: bytes, place: int) -> Match | None:
        for needle in longest:
            if data.startswith(needle, place):
                return examine(needle, data, place)
        return None

    return Family(name, says, texts, at, _stems(texts, stems), prefix=not strict)


def _shape(
    name: str,
    says: str,
    needles: str,
    pattern: bytes,
    fits: Callable[[bytes], bool] = is_varied,
    *,
    before: bytes = b"",
    stems: str = "",
) -> Family:
    texts = tuple(each.encode() for each in needles.split())
    # Behind a colon or a run of letters a word cannot begin; the pattern says what is before.
    at = by_pattern(pattern, fits, alone=not before, before=before)
    return Family(name, says, texts, at, _stems(texts, stems), prefix=name in _PUBLIC)


def _stems(needles: tuple[bytes, ...], stems: str) -> tuple[bytes, ...]:
    if stems == "-":
        return ()
    chosen = tuple(each.encode() for each in stems.split())
    return chosen or tuple(dict.fromkeys(each[:_STEM] for each in needles))


_AFTER_PAT: Final = "".join(
    letter for letter in string.ascii_letters + string.digits if letter not in "chits"
)
"""Letters behind `pat` of an Airtable token, without those that make paths and patterns of it."""


def _discord() -> str:
    """Return how the base64 of a number can begin: a Discord token begins with the id of a user."""
    seconds = {"M": "TjzD", "N": "DTjz", "O": "DT"}
    return " ".join(
        first + second + third
        for first, all_seconds in seconds.items()
        for second in all_seconds
        for third in "AEIMQUYcgk"
    )


_RUN: Final = LazyPattern(rb"[A-Za-z0-9_-]*+")
_JWT_PART: Final = 8
_JWE_PARTS: Final = 4
"""Parts of an encrypted token behind its header."""


def _jwt_at(data: bytes, place: int) -> Match | None:
    """Find a JSON web token: a header, a payload and a signature, or the five parts of JWE."""
    if not begins_word(data, place):
        return None
    first = _run_end(data, place)
    end = first
    parts: list[int] = []
    while data[end : end + 1] == b"." and len(parts) < _JWE_PARTS:
        begin, end = end + 1, _run_end(data, end + 1)
        parts.append(end - begin)
    payload = data.startswith(b"eyJ", first + 1)
    whole = len(parts) == _JWE_PARTS and parts[2] >= _JWT_PART
    if first - place < _JWT_PART or not parts or not (payload or whole):
        # Nor is it one from a later place in the same run.
        return Match((), first)
    if payload:
        # Without its signature too, which a screen may have cut off; what follows it is a sentence.
        end = first + 1 + parts[0]
        if len(parts) > 1 and parts[1] >= _JWT_PART:
            end += 1 + parts[1]
    if not is_varied(data[max(place, end - 256) : end]):
        return Match((), first)
    return extended(data, place, end)


def _run_end(data: bytes, place: int) -> int:
    run = _RUN.match(data, place)
    return run.end() if run else place


_LONG: Final = 50
_DISTINCT: Final = 8


def _is_openai(token: bytes) -> bool:
    return is_random(token[3:]) or (len(token) > _LONG and is_varied(token))


def _is_aws(token: bytes) -> bool:
    return len(set(token)) >= _DISTINCT


TOKENS: Final = (
    # Models
    _token("anthropic-key", "Anthropic keys", "sk-ant-", _URL, 20, stems="sk-"),
    _token("openrouter-key", "OpenRouter keys", "sk-or-", _URL, 24, stems="sk-"),
    _shape(
        "openai-key",
        "OpenAI keys, and keys of others that begin the same",
        "sk-",
        rb"sk-(?!ant-|or-|lf-)(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{20,512}+|[A-Za-z0-9]{32,128}+"
        rb"|[A-Za-z0-9_-]{20,256}+)",
        _is_openai,
        stems="sk-",
    ),
    _token("xai-key", "xAI keys", "xai-", _ALNUM, 40),
    _token("replicate-token", "Replicate tokens", "r8_", _ALNUM, 34),
    _token("perplexity-key", "Perplexity keys", "pplx-", _ALNUM, 32),
    _token("tavily-key", "Tavily keys", "tvly-", _URL, 24),
    _token(
        "huggingface-token", "Hugging Face tokens", "hf_ api_org_", _ALNUM, 30, stems="hf_ api_"
    ),
    _token("groq-key", "Groq keys", "gsk_", _ALNUM, 40),
    _token("fireworks-key", "Fireworks keys", "fw_", _ALNUM, 20, strict=True),
    _token("cerebras-key", "Cerebras keys", "csk-", _ALNUM, 40),
    _token("together-key", "Together keys", "tgp_v1_", _URL, 36),
    _token("nvidia-key", "NVIDIA keys", "nvapi-", _URL, 40),
    _token(
        "langsmith-key", "LangSmith keys", "lsv2_pt_ lsv2_sk_ ls__", rb"a-f0-9_", 28, stems="lsv2"
    ),
    _token("voyage-key", "Voyage keys", "pa-", _URL, 40, strict=True, stems="-"),
    _token("jina-key", "Jina keys", "jina_", _URL, 40),
    _token("elevenlabs-key", "ElevenLabs keys", "sk_", _HEX, 44, stems="-"),
    _token("firecrawl-key", "Firecrawl keys", "fc-", _HEX, 30, strict=True, stems="-"),
    _token("e2b-key", "E2B keys", "e2b_ sk_e2b_", _HEX, 36, stems="e2b_"),
    _shape(
        "modal-token",
        "Modal tokens",
        "ak- as- wk- ws-",
        rb"[aw][ks]-(?P<secret>[A-Za-z0-9]{21,24})(?![A-Za-z0-9_-])",
        is_random,
        stems="-",
    ),
    _token("runpod-key", "RunPod keys", "rpa_", _ALNUM, 36),
    _token("lambda-key", "Lambda keys", "secret_", _DOTTED, 36, strict=True, stems="secre"),
    _token("brave-key", "Brave Search keys", "BSA", _URL, 26, strict=True, stems="-"),
    _token("pinecone-key", "Pinecone keys", "pcsk_", _URL, 50),
    _token("apify-token", "Apify tokens", "apify_api_", _ALNUM, 30),
    _token("langfuse-key", "Langfuse keys", "sk-lf- pk-lf-", _URL, 30, stems="-"),
    _token("wandb-key", "Weights & Biases keys", "wandb_v1_", _URL, 40),
    # Code hosts and packages
    _token("github-token", "GitHub tokens", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 30),
    _token(
        "github-fine-grained", "GitHub tokens with chosen rights", "github_pat_", rb"A-Za-z0-9_", 22
    ),
    _token(
        "gitlab-token",
        "GitLab tokens",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- gloas- glft- glimt- glagent- glffct- glwt- GR1348941",
        _DOTTED,
        16,
        stems="glpa glrt",
    ),
    _token(
        "bitbucket-token", "Bitbucket and Atlassian tokens", "ATBB ATCTT3 ATATT3 ATSTT3", _B64, 24
    ),
    _token("npm-token", "npm tokens", "npm_", _ALNUM, 30),
    _token("pypi-token", "PyPI tokens", "pypi-Ag", _URL, 30),
    _token("rubygems-key", "RubyGems keys", "rubygems_", _HEX, 40),
    _token("crates-token", "crates.io tokens", "cio", _ALNUM, 30, strict=True, stems="-"),
    _token("nuget-key", "NuGet keys", "oy2", rb"a-z0-9", 40, strict=True, stems="-"),
    _token("clojars-token", "Clojars tokens", "CLOJARS_", _HEX, 50),
    _token("hex-key", "Hex keys", "hex_", _ALNUM, 36, strict=True, stems="-"),
    _token("docker-token", "Docker tokens", "dckr_pat_ dckr_oat_", _URL, 20),
    _token(
        "sourcegraph-token", "Sourcegraph tokens", "sgp_ sgd_ slk_", rb"a-f0-9_", 36, stems="sgp_"
    ),
    _token("sonar-token", "SonarQube tokens", "sqp_ squ_ sqa_", _HEX, 36),
    _token("codecov-token", "Codecov tokens", "codecov_", _URL, 30, strict=True, stems="-"),
    _token("artifactory-key", "Artifactory keys", "AKCp cmVmd", _ALNUM, 50, stems="AKCp"),
    _token("buildkite-token", "Buildkite tokens", "bkua_ bkct_ bkpat_", _ALNUM, 32, stems="bkua"),
    _token("circleci-token", "CircleCI tokens", "CCIPAT_ CCIPRJ_", _URL, 30),
    _token("snyk-token", "Snyk tokens", "snyk_", _DOTTED, 40, strict=True, stems="-"),
    # Clouds and hosting
    _shape(
        "aws-access-key",
        "AWS access key ids",
        "AKIA ASIA ABIA ACCA",
        rb"A(?:[KSB]I|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])",
        _is_aws,
        stems="AKIA ASIA",
    ),
    _token("bedrock-key", "Amazon Bedrock keys", "ABSK bedrock-api-key-", _B64, 60),
    _token(
        "aws-session-token",
        "AWS session tokens",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz",
        _B64,
        60,
    ),
    _shape("google-api-key", "Google API keys", "AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    _token(
        "google-oauth",
        "Google OAuth tokens and secrets",
        "ya29. GOCSPX- 1//0",
        _DOTTED,
        20,
        stems="ya29 GOCS",
    ),
    _token("digitalocean-token", "DigitalOcean tokens", "dop_v1_ doo_v1_ dor_v1_", rb"a-f0-9", 32),
    _token("cloudflare-token", "Cloudflare tokens", "cfut_ cfat_ cfk_ v1.0-", rb"A-Za-z0-9_-", 40),
    _token(
        "vercel-token",
        "Vercel tokens",
        "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_",
        _URL,
        24,
        stems="vcp_ verc",
    ),
    _token("netlify-token", "Netlify tokens", "nfp_ nfc_ nfo_ nfu_", _ALNUM, 32, stems="nfp_"),
    _token("heroku-key", "Heroku keys", "HRKU-", _URL, 36),
    _token("fly-token", "Fly tokens", "fm1r_ fm1a_ fm2_ fo1_", _B64, 36, stems="fm2_ fo1_"),
    _token("render-key", "Render keys", "rnd_", _ALNUM, 26),
    _token("scaleway-key", "Scaleway access keys", "SCW", rb"A-Z0-9", 17, strict=True, stems="-"),
    _token("alibaba-key", "Alibaba access keys", "LTAI", _ALNUM, 16),
    _token("tencent-key", "Tencent access keys", "AKID", _ALNUM, 30),
    _token("yandex-key", "Yandex keys", "AQVN YCAJE t1.9eu", _DOTTED, 30),
    _token("ibm-key", "IBM Cloud keys", "ApiKey-", _URL, 32, stems="-"),
    _token("openshift-token", "OpenShift tokens", "sha256~", _URL, 40),
    _token("supabase-key", "Supabase keys", "sbp_ sb_secret_ sbp_oauth_", _URL, 20),
    _token(
        "planetscale-token",
        "PlanetScale tokens",
        "pscale_tkn_ pscale_pw_ pscale_oauth_",
        _DOTTED,
        30,
    ),
    _token("neon-key", "Neon keys", "napi_ npg_", _ALNUM, 10, strict=True),
    _token(
        "doppler-token",
        "Doppler tokens",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
        _DOTTED,
        36,
        stems="dp.p dp.s",
    ),
    _token("databricks-token", "Databricks tokens", "dapi dose dkea", rb"a-f0-9", 30, stems="dapi"),
    _token("vault-token", "Vault tokens", "hvs. hvb. hvr.", _URL, 24),
    _shape(
        "terraform-token",
        "Terraform Cloud tokens",
        ".atlasv1.",
        rb"[A-Za-z0-9]{12,16}\.atlasv1\.[A-Za-z0-9_=-]{40,100}+",
        before=_ALNUM,
        stems="atlas",
    ),
    _token("pulumi-token", "Pulumi tokens", "pul-", _HEX, 36),
    _token("infracost-key", "Infracost keys", "ico-", _ALNUM, 30, strict=True, stems="-"),
    _token("tailscale-key", "Tailscale keys", "tskey-", _URL, 20),
    _token("prefect-key", "Prefect keys", "pnu_ pnb_", _ALNUM, 34),
    _token("onepassword-token", "1Password tokens", "ops_eyJ", _B64, 60),
    _shape(
        "onepassword-key",
        "1Password secret keys",
        "A3-",
        rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])",
        stems="-",
    ),
    _shape(
        "upstash-token",
        "Upstash tokens",
        "AAIjcD AAIncD ASQgM ASQgN ASQgO",
        rb"A[A-Za-z0-9_-]{1,8}(?:AAI[jn]cD|ASQg)[A-Za-z0-9_=-]{24,120}+",
        before=_URL,
        stems="-",
    ),
    _token("mongodb-key", "MongoDB Atlas secrets", "mdb_sa_sk_", _URL, 30),
    _token("clickhouse-key", "ClickHouse keys", "4b1d", _ALNUM, 38, strict=True, stems="-"),
    # Payment and shops
    _token(
        "stripe-key",
        "Stripe keys",
        "sk_live_ sk_test_ pk_live_ rk_live_ rk_test_ sk_prod_ rk_prod_",
        _ALNUM,
        16,
        stems="k_li k_te",
    ),
    _token("webhook-secret", "secrets that sign webhooks", "whsec_", rb"A-Za-z0-9+/=", 16),
    _token(
        "square-token",
        "Square tokens",
        "sq0atp- sq0csp- sq0idp- EAAA",
        _URL,
        22,
        strict=True,
        stems="sq0a",
    ),
    _token(
        "shopify-token",
        "Shopify tokens",
        "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_",
        _HEX,
        30,
        stems="shpa",
    ),
    _token("shippo-token", "Shippo tokens", "shippo_live_ shippo_test_", _HEX, 36),
    _token("easypost-key", "EasyPost keys", "EZAK EZTK", _ALNUM, 50),
    _token("paddle-key", "Paddle keys", "pdl_live_ pdl_sdbx_", rb"A-Za-z0-9_", 40),
    _token(
        "flutterwave-key", "Flutterwave keys", "FLWSECK_ FLWSECK-", rb"A-Za-z0-9_-", 12, strict=True
    ),
    _token(
        "plaid-token",
        "Plaid tokens",
        "access-sandbox- access-development- access-production-",
        rb"a-f0-9-",
        30,
    ),
    _token("razorpay-key", "Razorpay keys", "rzp_live_ rzp_test_", _ALNUM, 14),
    _token("braintree-token", "Braintree tokens", "access_token$", rb"a-z0-9$", 40, stems="-"),
    # Mail and messages
    _shape(
        "sendgrid-key",
        "SendGrid keys",
        "SG.",
        rb"SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+",
    ),
    _shape(
        "mailgun-key",
        "Mailgun keys",
        "key- pubkey-",
        rb"(?:pub)?key-[a-z0-9]{32}(?![A-Za-z0-9])",
        lambda token: is_random(token[-32:]),
        stems="-",
    ),
    _shape(
        "mailchimp-key",
        "Mailchimp keys",
        "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9",
        rb"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
        before=rb"a-f0-9",
        stems="-",
    ),
    _token("brevo-key", "Brevo keys", "xkeysib- xsmtpsib-", rb"A-Za-z0-9-", 60),
    _token("resend-key", "Resend keys", "re_", rb"A-Za-z0-9_", 24, strict=True, stems="-"),
    _token("mailersend-token", "MailerSend tokens", "mlsn.", _ALNUM, 40),
    _token("mandrill-key", "Mandrill keys", "md-", _URL, 22, strict=True, stems="-"),
    _shape(
        "twilio-key",
        "Twilio keys",
        " ".join(f"SK{digit}" for digit in "0123456789abcdef"),
        rb"SK[a-f0-9]{32}(?![A-Za-z0-9])",
        stems="-",
    ),
    _shape(
        "slack-token",
        "Slack tokens",
        "xox xapp- xwfp-",
        rb"(?:xox[abcdeoprs](?:\.xox[bp])?|xapp|xwfp)-[A-Za-z0-9%-]{16,512}+",
        stems="xox xapp",
    ),
    _shape(
        "telegram-token",
        "Telegram bot tokens",
        ":AA",
        rb"[0-9]{6,12}:AA[A-Za-z0-9_-]{30,34}(?![A-Za-z0-9_-])",
        before=rb"0-9",
        stems=":AA",
    ),
    _shape(
        "discord-token",
        "Discord bot tokens",
        _discord(),
        rb"(?:mfa\.)?[MNO][A-Za-z0-9_-]{21,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}+",
        stems="-",
    ),
    _token("intercom-token", "Intercom tokens", "dG9rO", _B64, 40),
    _token("facebook-token", "Facebook tokens", "EAAC EAAB EAAG EAAM", _ALNUM, 80, stems="-"),
    _token(
        "x-token",
        "X bearer tokens",
        "AAAAAAAAAAAAAAAAAAAAA",
        rb"A-Za-z0-9%",
        60,
        strict=True,
        stems="-",
    ),
    # Work
    _token("linear-key", "Linear keys", "lin_api_ lin_oauth_", _ALNUM, 32),
    _token("notion-token", "Notion tokens", "ntn_", _ALNUM, 40),
    _token("figma-token", "Figma tokens", "figd_ figu_ figr_ figo_ figh_", _URL, 36, stems="figd"),
    _shape(
        "airtable-token",
        "Airtable tokens",
        " ".join(f"pat{letter}" for letter in _AFTER_PAT),
        rb"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])",
        stems="-",
    ),
    _shape(
        "asana-token",
        "Asana tokens",
        " ".join(f"{kind}/{digit}" for kind in "012" for digit in "123456789"),
        rb"[0-2]/[0-9]{12,20}(?:/[0-9]{12,20})?:[a-f0-9]{32}(?![A-Za-z0-9])",
        stems="-",
    ),
    _token("dropbox-token", "Dropbox tokens", "sl.A sl.B sl.C sl.u.", _URL, 100, stems="-"),
    _token("trello-token", "Trello tokens", "ATTA", _ALNUM, 60),
    _token("contentful-token", "Contentful tokens", "CFPAT-", _URL, 40),
    _token("typeform-token", "Typeform tokens", "tfp_", _DOTTED, 40),
    _token(
        "hubspot-token",
        "HubSpot tokens",
        "pat-na1- pat-eu1- pat-na2- pat-eu2-",
        rb"a-fA-F0-9-",
        32,
        stems="-",
    ),
    _token("postman-key", "Postman keys", "PMAK-", rb"a-fA-F0-9-", 50),
    _token("readme-key", "ReadMe keys", "rdme_", rb"a-z0-9", 60),
    _shape(
        "okta-token",
        "Okta tokens",
        "SSWS",
        rb"SSWS[ ]{1,2}(?P<secret>[A-Za-z0-9_-]{36,60}+)",
        stems="-",
    ),
    _token("workos-key", "WorkOS keys", "sk_", _ALNUM, 40, strict=True, stems="-"),
    _token("calcom-key", "Cal.com keys", "cal_live_ cal_test_", _ALNUM, 24),
    # Watching
    _token("grafana-token", "Grafana tokens", "glsa_ glc_", rb"A-Za-z0-9+/=_", 32),
    _token(
        "sentry-token",
        "Sentry tokens",
        "sntrys_ sntryu_ sntrya_ sntryi_",
        rb"A-Za-z0-9+/=_",
        32,
        stems="sntr",
    ),
    _token(
        "newrelic-key",
        "New Relic keys",
        "NRAK- NRII- NRJS- NRRA- NRSP-",
        _URL,
        19,
        stems="NRAK NRII",
    ),
    _token(
        "dynatrace-token",
        "Dynatrace tokens",
        "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.",
        _DOTTED,
        60,
        stems="dt0c",
    ),
    _token("posthog-key", "PostHog keys", "phc_ phx_ phs_ phr_", _ALNUM, 36),
    _token("honeycomb-key", "Honeycomb keys", "hcaik_ hcbik_ hcamk_ hcxik_", _ALNUM, 30),
    _token(
        "launchdarkly-key",
        "LaunchDarkly keys",
        "sdk- mob- api-",
        rb"a-f0-9-",
        36,
        strict=True,
        stems="-",
    ),
    _token("logfire-token", "Logfire tokens", "pylf_v1_ pylf_v2_", _URL, 30),
    _token("axiom-token", "Axiom tokens", "xaat- xapt-", rb"a-f0-9-", 32),
    _token("statsig-key", "Statsig keys", "secret-", _ALNUM, 36, strict=True, stems="-"),
    _token("trigger-key", "Trigger.dev keys", "tr_dev_ tr_prod_ tr_pat_", _ALNUM, 18),
    _token("mapbox-token", "Mapbox tokens", "pk.eyJ sk.eyJ tk.eyJ", _DOTTED, 60, stems="-"),
    _token("duffel-token", "Duffel tokens", "duffel_test_ duffel_live_", _URL, 36),
    _token("frameio-token", "Frame.io tokens", "fio-u-", _URL, 50),
    _token(
        "adobe-secret",
        "Adobe client secrets",
        "p8e- p8-",
        rb"A-Za-z0-9_-",
        32,
        strict=True,
        stems="-",
    ),
    _token("ngrok-token", "ngrok keys", "ak_2 ek_2 cr_2", _ALNUM, 25, strict=True, stems="-"),
    _shape(
        "maxmind-key",
        "MaxMind keys",
        "_mmk",
        rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
        before=rb"A-Za-z0-9_",
        stems="-",
    ),
    _shape(
        "azure-client-secret",
        "Azure client secrets",
        "1Q~ 2Q~ 3Q~ 4Q~ 5Q~ 6Q~ 7Q~ 8Q~ 9Q~",
        rb"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
        before=rb"A-Za-z0-9_~.-",
        stems="-",
    ),
    _shape(
        "azure-openai-key",
        "Azure keys with a signature inside",
        "JQQJ99",
        rb"[A-Za-z0-9]{20,60}?JQQJ99[A-Za-z0-9]{8,40}+",
        before=_ALNUM,
        stems="-",
    ),
    Family("jwt", "JSON web tokens", (b"eyJ",), _jwt_at, (b"eyJ",)),
    _token("age-key", "age keys", "AGE-SECRET-KEY-1 AGE-PLUGIN-", _UPPER, 40, stems="AGE-"),
    _token(
        "minisign-key", "minisign secret keys", "RWRTY0Iy RWRCSw", rb"A-Za-z0-9+/=", 100, stems="-"
    ),
    _token("nostr-key", "Nostr keys", "nsec1", rb"a-z0-9", 50),
    _token("bitcoin-key", "keys of wallets", "xprv tprv yprv zprv", _ALNUM, 90, stems="xprv"),
)
"""Every vendor's. The ids are stable: receipts name them."""
